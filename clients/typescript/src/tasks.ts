/** Tasks: a name with the schema of its payload, options, and, in workers, a handler. */
import { createHash } from 'node:crypto';

import type { Board } from './board/board.js';
import type { Node } from './board/posting.js';
import type { Patience } from './board/waiting.js';
import type { Context } from './context.js';
import { sharedByAllCopies } from './copies.js';
import type { Duration } from './durations.js';
import { ArgumentError } from './errors.js';
import type { PostOptions, ScheduleSetOptions } from './generated.js';
import type { ErrorClass } from './handlers.js';
import { refuseUnknownOfSchedule } from './known.js';
import { type Complete, Next } from './outcomes.js';
import { type Schema, validated } from './schema.js';
import { shown } from './shown.js';
import { optionWords } from './words.js';

/** Options that only one job can have, and not a task. */
type OfOneJob = 'id' | 'nx' | 'xx' | 'replace' | 'name' | 'at' | 'after' | 'strict' | 'parent' | 'share';

/**
 * A key that one job at a time holds: text is the key itself, `true` makes one of the payload, a list one of these of
 * its fields, which every payload has to have: as given, or as a default of the schema. Null is a value.
 */
export type Unique<Input> = string | true | readonly (keyof Input & string)[];

/** Options of a task: those of a post, but for what only one job can have. */
export interface TaskOptions<Input = unknown, Result = unknown> extends Omit<PostOptions, OfOneJob | 'unique'> {
  unique?: Unique<Input> | undefined;
  /** Errors after which a job is not tried again. */
  noretry?: readonly ErrorClass[] | undefined;
  /** The schema of the result: it is checked where the job ends. */
  result?: Schema<Result, unknown> | undefined;
}

/** Options of one post of a task, over those of the task. */
export interface CallOptions<Input = unknown> extends Omit<PostOptions, 'name' | 'unique'> {
  unique?: Unique<Input> | false | undefined;
}

/** When a task's schedule posts: `cron`, or `every`; and options of the jobs. */
export type Times = Omit<ScheduleSetOptions, 'name' | 'cron' | 'every'> & {
  /** The schedule's id; the task's name by default. */
  id?: string;
} & ({ cron: string; every?: undefined } | { every: Duration; cron?: undefined });

/** A call of a task that is to be posted with others: see `Flow`. */
export type Call = Omit<Node, 'label'> & { readonly label?: string };

/**
 * What a handler's return value is as a result. With JSON others get what JSON makes of it: of a `Date` its text, of a
 * `Map` `{}`.
 */
export type ResultOf<R> = Exclude<Awaited<R>, Complete | Next>;

const LONGEST = 200;

/**
 * A task of a board. `Input` is what a post takes, `Output` what the schema makes of it for the handler, `Result` what
 * the handler returns.
 */
export class Task<Input, Output = Input, Result = unknown> {
  constructor(
    readonly board: Board,
    readonly name: string,
    readonly schema: Schema<Input, Output> | undefined,
    readonly options: TaskOptions<Input>,
  ) {
    const { noretry: _noretry, result: _result, unique, ...words } = options;
    optionWords('JOB.POST', { ...words, ...(typeof unique === 'string' ? { unique } : {}) }, board.codec); // raises what a post would
  }

  /**
   * Says which function does the jobs of this task; in workers. Its result is that of the task.
   *
   *     const welcome = board.task('welcome', schema).handle(async ({ to }, context) => `Hello ${to}`)
   */
  handle<R extends Result>(handler: (payload: Output, context: Context<Input>) => R | Promise<R>): Task<Input, Output, ResultOf<R>> {
    if (typeof handler !== 'function') throw new TypeError(`the handler of ${this.name} is a function: async (payload, context) => …, not ${shown(handler)}`);
    const { noretry = [], queue = 'default', result } = this.options;
    const checked = result && (async (value: unknown) => validated(result, value, `the result of ${this.name}`));
    const run = handler as (payload: Output, context: Context) => unknown;
    const found = checked ? async (payload: Output, context: Context) => checked(await run(payload, context)) : run;
    this.board.handlers.add(this.name, undefined, { function: found as never, noretry, queue, schema: this.schema });
    return this as unknown as Task<Input, Output, ResultOf<R>>;
  }

  /**
   * Posts a job; its id. Null when `nx` or `xx` prevented it. Raises `ArgumentError` when the schema does not take the
   * payload.
   */
  async post(payload: Input, options: CallOptions<Input> & ({ nx: true } | { xx: true })): Promise<string | null>;
  async post(payload: Input, options?: CallOptions<Input> & { nx?: false | undefined; xx?: false | undefined }): Promise<string>;
  async post(payload: Input, options?: CallOptions<Input>): Promise<string | null>;
  async post(payload: Input, options?: CallOptions<Input>): Promise<string | null> {
    return this.board.rawPost(payload, this.#words(payload, options, await validated(this.schema, payload, this.name)));
  }

  /** Posts many jobs, 1,000 in a command; their ids. */
  async postMany(payloads: Iterable<Input>, options?: Omit<CallOptions<Input>, 'id' | 'unique'> & { unique?: false | undefined }): Promise<string[]> {
    const all = [...payloads];
    if (this.options.unique !== undefined && options?.unique !== false) throw new TypeError(`${this.name}: jobs posted together have no keys of their own: give unique: false`);
    for (const payload of all) await validated(this.schema, payload, this.name);
    return (await this.board.rawPostMany(all, this.#words(all[0] as Input, options))) as string[];
  }

  /** A call that is posted with others, by `board.flow` or a `Flow`. */
  job(payload: Input, options?: Omit<CallOptions<Input>, 'nx' | 'xx' | 'replace' | 'onconflict'>): Call {
    return { ...this.#words(payload, options), payload };
  }

  /** What a handler returns so that the job goes on as one of this task, under the same id. */
  next(payload: Input, options: { delay?: Duration; priority?: number; after?: readonly string[] } = {}): Next {
    return new Next(this.options.queue ?? 'default', payload, { name: this.name, ...options });
  }

  /**
   * Makes the schedule of the task's name, or changes it: call it where the program starts. Options that it had and that
   * are not given stay as they are: `board.scheduleDel` before makes it anew.
   */
  async schedule(times: Times, payload: Input): Promise<void> {
    if (typeof times === 'object' && (times as unknown) !== null) refuseUnknownOfSchedule(this.name, times);
    const { cron, every } = { ...times } as { cron?: unknown; every?: unknown };
    if (cron === undefined && every === undefined) throw new TypeError(`${this.name}: when? schedule({ cron: '0 3 * * *' }, payload), or { every: '1h' }`);
    const { id = this.name, ...rest } = given(times);
    const { onconflict: _, jitter: backoffJitter, ...others } = this.#words(payload, undefined, await validated(this.schema, payload, this.name));
    await this.board.rawScheduleSet(id, payload, { ...(others as ScheduleSetOptions), backoffJitter, ...rest, name: this.name });
  }

  /** Waits for a job of this task, and returns its result: see `Board.result`. */
  async result(id: string, options?: Patience): Promise<Result> {
    return this.board.result<Result>(id, options);
  }

  /** Posts a job and waits for its result; one that nobody did `within` the time is cancelled. */
  async call(payload: Input, { within, signal, ...options }: CallOptions<Input> & { within?: Duration; signal?: AbortSignal } = {}): Promise<Result> {
    const found = await validated(this.schema, payload, this.name);
    return this.board.rawCall<Result>(payload, { ...this.#words(payload, options, found), within, signal });
  }

  /** The same task, posted to another board. */
  on(board: Board): Task<Input, Output, Result> {
    return new Task(board, this.name, this.schema, this.options);
  }

  /** `found`: what the schema has made of the payload. */
  #words(payload: Input, options: CallOptions<Input> = {}, found?: Output): PostOptions {
    const { noretry: _noretry, result: _result, unique: ofTask, ...own } = this.options;
    const { unique = ofTask, ...others } = options;
    const words = { ...beside(own, options), ...given(others), name: this.name };
    if (unique === undefined || unique === false) return words;
    return { ...words, unique: typeof unique === 'string' ? unique : uniqueKey(this.name, payload, found, unique) };
  }
}

sharedByAllCopies({ Task });

/** Options without those that are undefined, which say nothing: the task's own count. */
const given = <T extends object>(options: T): T => Object.fromEntries(Object.entries(options).filter(([, one]) => one !== undefined)) as T;

/** The options of a task without those that cannot stand beside what a call gives. */
function beside(own: PostOptions, given: CallOptions<never>): PostOptions {
  const dropped = [...(given.at === undefined ? [] : ['delay']), ...(given.unique === false ? ['onconflict', 'until', 'for'] : [])];
  return Object.fromEntries(Object.entries(own).filter(([option]) => !dropped.includes(option)));
}

/**
 * The key of a payload: what the Python package makes of the same one. A field that is not given counts as the schema
 * has it, and raises when that has none either: all jobs without it would be one.
 */
function uniqueKey(name: string, payload: unknown, output: unknown, fields: true | readonly string[]): string {
  const given = (payload ?? {}) as Record<string, unknown>;
  const found = fields === true ? given : Object.fromEntries(fields.map((one) => [one, given[one] ?? (output as Record<string, unknown> | undefined)?.[one]]));
  const absent = Object.keys(found).find((one) => found[one] === undefined);
  if (fields !== true && absent !== undefined) {
    throw new ArgumentError(`${name}: unique names '${absent}', which this payload does not have: give it (null is a value), or post with unique: false`);
  }
  const key = `${name}:${sorted(found)}`;
  return Buffer.byteLength(key) <= LONGEST ? key : `${name}:${createHash('sha256').update(key).digest('hex')}`;
}

/** JSON as the Python package writes it in a key: the fields of objects in the order of their names. */
function sorted(value: unknown): string {
  return canonical(JSON.parse(JSON.stringify(value)));
}

function canonical(value: unknown): string {
  if (typeof value === 'number') return numeral(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  // Not an object again: that has names such as '10' before all others. By bytes: text is compared by halves of characters.
  const fields = Object.entries(value).map(([name, one]) => [Buffer.from(name), `${JSON.stringify(name)}:${canonical(one)}`] as const);
  return `{${fields.sort(([a], [b]) => Buffer.compare(a, b)).map(([, field]) => field).join(',')}}`;
}

/** A small number as Python writes it: 0.00001 is 1e-05. */
function numeral(found: number): string {
  if (Number.isInteger(found) || Math.abs(found) >= 1e-4) return String(found);
  const [digits = '', exponent = ''] = found.toExponential().split('e-');
  return `${digits}e-${exponent.padStart(2, '0')}`;
}
