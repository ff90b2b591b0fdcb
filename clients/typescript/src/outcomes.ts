/** How a run ends: what a handler may return or throw. Anything else that it returns is the result. */
import { sharedByAllCopies } from './copies.js';
import type { Duration } from './durations.js';
import { toMs } from './durations.js';
import { refuseUnknown } from './known.js';
import { shown } from './shown.js';

/** Completes the job, as `return value` does, and says more of it. */
export class Complete {
  constructor(
    readonly result?: unknown,
    /** `retain`: how long the record is kept; `force`: also when somebody asked to cancel the job. */
    readonly options: { retain?: Duration | 'forever'; force?: boolean } = {},
  ) {
    refuseUnknown('Complete', options, { retain: true, force: true });
    if (options.retain !== undefined) toMs(options.retain, 'retain');
  }
}

/** Sends the job on to another queue, under the same id; `name` says which handler does the next step there. */
export class Next {
  constructor(
    readonly queue: string,
    readonly payload?: unknown,
    readonly options: { name?: string; delay?: Duration; priority?: number; after?: readonly string[] } = {},
  ) {
    refuseUnknown('Next', options, { name: true, delay: true, priority: true, after: true });
    const after: unknown = options.after ?? [];
    if (!Array.isArray(after) || !after.every((one) => typeof one === 'string')) throw new TypeError(`after is a list of ids, such as ['a'], not ${shown(after)}`);
    if (options.delay !== undefined) toMs(options.delay, 'delay');
  }
}

const OWN_KINDS: ReadonlySet<string> = new Set(['lapsed', 'timeout', 'expired', 'dependency', 'signal']);

/** @internal A kind of failure that the server takes: one of its own gets `was-` before it. */
export const allowedKind = (kind: string): string => (OWN_KINDS.has(kind) ? `was-${kind}` : kind || 'Error');

/** The kind of a failure; raises here, in the handler, when it is one of the server's own. */
function kindOf(kind: string): string {
  if (typeof kind !== 'string') throw new TypeError(`kind is text, such as 'Busy', not ${shown(kind)}`);
  if (OWN_KINDS.has(kind)) throw new RangeError(`kind '${kind}' is the server's own: choose another one, such as 'Busy'`);
  return kind;
}

/** Thrown by a handler: fail this try, and try again after `delay` (without one, after the job's back-off). */
export class Retry extends Error {
  override readonly name = 'Retry';
  readonly delay: Duration | undefined;
  readonly kind: string;

  constructor(message = '', options: { delay?: Duration; kind?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    refuseUnknown('Retry', options, { delay: true, kind: true, cause: true });
    if (options.delay !== undefined) toMs(options.delay, 'delay');
    this.delay = options.delay;
    this.kind = kindOf(options.kind ?? 'Retry');
  }
}

/** Thrown by a handler: the job has failed, and is not tried again. */
export class NoRetry extends Error {
  override readonly name = 'NoRetry';
  readonly kind: string;

  constructor(message = '', options: { kind?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    refuseUnknown('NoRetry', options, { kind: true, cause: true });
    this.kind = kindOf(options.kind ?? 'NoRetry');
  }
}

/** Thrown by a handler: give the job back, which costs it nothing; ready again after `delay`. */
export class Abandon extends Error {
  override readonly name = 'Abandon';
  readonly delay: Duration | undefined;

  constructor(reason = '', options: { delay?: Duration } = {}) {
    super(reason);
    refuseUnknown('Abandon', options, { delay: true });
    if (options.delay !== undefined) toMs(options.delay, 'delay');
    this.delay = options.delay;
  }
}

/**
 * Thrown by a handler whose call was answered with 429: `throw new RateLimited('tokens', '30s')`.
 *
 * No job that counts against this shared limit is claimed for this time, and the job goes back at no cost. The limit has
 * to be one of the job's; otherwise the job alone waits, and the log says so.
 */
export class RateLimited extends Error {
  override readonly name = 'RateLimited';
  readonly limit: string;
  readonly time: Duration;

  constructor(limit: string, time: Duration, reason = '') {
    super(reason === '' ? `the limit ${limit} rests` : reason);
    toMs(time, 'time');
    this.limit = limit;
    this.time = time;
  }
}

/** Thrown by a handler: the job can never succeed; set it aside for a person to look at. */
export class Trash extends Error {
  override readonly name = 'Trash';
}

/** The reason of a context's signal: stop now. */
export class Stopped extends Error {
  override readonly name: string = 'Stopped';
}

/** The job is no longer ours: its lease ended, it timed out, or somebody took it. What is said of it is refused. */
export class Lost extends Stopped {
  override readonly name = 'Lost';
}

/**
 * The job waits for signals or children, and was given up until all is there: the handler is left, and called again then. A `catch`
 * catches this as any error, so throw it on: `if (error instanceof Stopped) throw error`. A handler that goes on all the
 * same can say nothing more: what it returns or throws is dropped.
 */
export class Waits extends Stopped {
  override readonly name = 'Waits';
}

/** Somebody asked to cancel the job. Unless the handler returns all the same, the job is cancelled. */
export class CancelRequested extends Stopped {
  override readonly name = 'CancelRequested';
}

/** The worker has to stop now: its time for finishing work is over. The job has been given back. */
export class GoHome extends Stopped {
  override readonly name = 'GoHome';
}

/**
 * Thrown by a handler in a test: the worker is killed there, as by SIGKILL. It says nothing more of the job, which stays
 * claimed until its lease ends.
 */
export class Killed extends Stopped {
  override readonly name = 'Killed';
}

sharedByAllCopies({ Complete, Next, Retry, NoRetry, Abandon, RateLimited, Trash, Stopped, Lost, Waits, CancelRequested, GoHome, Killed });

/** The longest message or reason, bytes: the module's default `max-text`. */
const TEXT = 4096;

/** Text of at most so many bytes. */
export function shortened(text: string, most = TEXT): string {
  if (Buffer.byteLength(text) <= most) return text;
  const cut = Buffer.from(text).subarray(0, most - 3).toString();
  return `${cut.replace(/\uFFFD+$/u, '')}...`;
}
