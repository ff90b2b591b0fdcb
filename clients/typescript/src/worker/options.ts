/** What a worker is told at its making. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';

import { type Duration, toMs } from '../durations.js';
import type { FieldNames } from '../jobs.js';
import { refuseUnknown } from '../known.js';

/** Where a worker's log goes: `console` is one, and so are pino and winston. */
export interface Logger {
  debug(text: string): void;
  info(text: string): void;
  warn(text: string): void;
  error(text: string): void;
}

export interface WorkerOptions {
  /** Jobs at once; 10 by default. */
  concurrency?: number | undefined;
  /** The queues to claim from; those of the board's tasks by default, every queue when empty. */
  queues?: readonly string[] | undefined;
  /** See JOB.CLAIM in the reference. */
  order?: 'best' | 'listed' | 'rotate' | undefined;
  /**
   * The worker's name, unique among all that live. When a process starts under it, what an earlier one still holds lapses
   * at once: those jobs are ready again, and an earlier one that lives hears that it lost them.
   */
  name?: string | undefined;
  /**
   * How long a job stays ours without a heartbeat; by default what its options or the settings say, 30 s. There is a
   * heartbeat three times in the shortest of those that the worker holds.
   */
  lease?: Duration | undefined;
  /** How many more jobs are claimed than run, so that short ones (below some ms) travel in batches. 0 by default. */
  prefetch?: number | undefined;
  /** How long one claim waits. 2 s by default. */
  block?: Duration | undefined;
  /** After SIGTERM running handlers may finish for so long; then their jobs are given back. 20 s by default. */
  stopWithin?: Duration | undefined;
  /** The worker is listed by `workerList`, with `role`, and can be made quiet there. True by default. */
  register?: boolean | undefined;
  role?: string | undefined;
  /** The worker's claims end at the moment when its connection closes: those of a killed process are ready at once. */
  session?: boolean | undefined;
  /** Cancels and losses are heard at once, by Pub/Sub, and not at the next heartbeat only. True by default. */
  listen?: boolean | undefined;
  /**
   * Completed jobs are kept for an hour, unless the setting `retain-complete` of the board or the server says otherwise.
   * With a number, at most so many of them, unless `keep-complete` says otherwise; that number counts also jobs with a
   * `retain` of their own. With false the worker sets neither. True by default.
   */
  keep?: boolean | number | undefined;
  /** The stacks of failed tries go into the job's history. True by default. */
  stacks?: boolean | undefined;
  /** More fields of the jobs, for `context.job`: it has id, token, attempt, name, queue, payload, meta, steps, without `lease` also claimed and deadline, and no others without this. */
  fields?: FieldNames | undefined;
  /** Warnings and errors go to the console by default; `console` shows all, `null` nothing. */
  logger?: Logger | null | undefined;
}

/** The names of all options: a misspelt one would be left out in silence where no compiler looks. */
const NAMES: Readonly<Record<keyof WorkerOptions, true>> = {
  concurrency: true,
  queues: true,
  order: true,
  name: true,
  lease: true,
  prefetch: true,
  block: true,
  stopWithin: true,
  register: true,
  role: true,
  session: true,
  listen: true,
  keep: true,
  stacks: true,
  fields: true,
  logger: true,
};

/** The same with durations in ms, and all of them there. */
export interface Settled {
  concurrency: number;
  /** Every queue when empty. */
  queues: readonly string[];
  queueWords: string[];
  name: string;
  /** Somebody has given it its name, which an earlier process may have had. */
  named: boolean;
  /** None: each job's own. */
  lease: number | undefined;
  prefetch: number;
  block: number;
  stopWithin: number;
  register: boolean;
  role: string;
  session: boolean;
  listen: boolean;
  keep: boolean | number;
  stacks: boolean;
  fields: string[];
  log: Logger;
  /** Whether somebody reads what is said of each run. */
  verbose: boolean;
}

/** What is asked of each job that is claimed. */
const FIELDS = ['id', 'token', 'attempt', 'name', 'queue', 'payload', 'meta', 'steps'];

/** These as well where each job has a lease of its own: that is what lies between them. */
const LEASE_FIELDS = ['claimed', 'deadline'];

/* eslint-disable no-console */
const QUIET: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: (text) => {
    console.warn(text);
  },
  error: (text) => {
    console.error(text);
  },
};
/* eslint-enable no-console */
const SILENT: Logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** Host, process, and something that no other process has. */
function defaultName(): string {
  return `${hostname()}:${String(process.pid)}:${randomBytes(3).toString('hex')}`;
}

export const refuseUnknownOfWorker = (options: WorkerOptions): void => {
  refuseUnknown('a Worker', options, NAMES);
};

export function settled(options: WorkerOptions, queues: readonly string[]): Settled {
  const named = options.queues ?? queues;
  const found = {
    concurrency: atLeast('concurrency', options.concurrency ?? 10, 1),
    queues: named,
    queueWords: ['QUEUES', String(named.length), ...named, ...(options.order === undefined ? [] : ['ORDER', options.order])],
    name: options.name ?? defaultName(),
    named: options.name !== undefined,
    lease: options.lease === undefined ? undefined : atLeast('lease', toMs(options.lease, 'lease'), 30),
    prefetch: atLeast('prefetch', options.prefetch ?? 0, 0),
    block: atLeast('block', toMs(options.block ?? '2s', 'block'), 1),
    stopWithin: atLeast('stopWithin', toMs(options.stopWithin ?? '20s', 'stopWithin'), 0),
    register: options.register !== false || options.session === true,
    role: options.role ?? 'worker',
    session: options.session ?? false,
    listen: options.listen ?? true,
    keep: keepOf(options.keep ?? true),
    stacks: options.stacks ?? true,
    fields: [...new Set([...FIELDS, ...(options.lease === undefined ? LEASE_FIELDS : []), ...(options.fields ?? [])])],
    log: options.logger === null ? SILENT : (options.logger ?? QUIET),
    verbose: options.logger !== null && options.logger !== undefined,
  };
  return found;
}

function keepOf(keep: boolean | number): boolean | number {
  if (typeof keep === 'boolean' || (Number.isInteger(keep) && keep >= 1)) return keep;
  throw new RangeError(`keep is true, false, or how many completed jobs the board keeps, such as 5000, not ${String(keep)}`);
}

function atLeast(name: string, value: number, least: number): number {
  if (!Number.isInteger(value) || value < least) throw new RangeError(`${name} is a whole number from ${String(least)}, not ${String(value)}`);
  return value;
}
