/** What the server refuses, and what a wait for a result comes to. */
import { sharedByAllCopies } from './copies.js';
import type { Code } from './generated.js';
import type { Job } from './jobs.js';

/** The server refused a command. `code` is the first word of its answer, `detail` the rest. */
export class BoardError extends Error {
  override readonly name: string = 'BoardError';

  constructor(
    /** Such as `EXISTS` or `LIMIT`; `ERR` for syntax and ranges. */
    readonly code: Code | (string & {}),
    readonly detail: string,
  ) {
    super(`${code} ${detail}`.trim());
  }

  /** Whether an error is a refusal, and with a code whether it is this one. */
  static is(error: unknown, code?: Code): error is BoardError {
    return error instanceof BoardError && (code === undefined || error.code === code);
  }
}

/** The server has not loaded the module, or one that is older than the command. */
export class NoModule extends BoardError {
  override readonly name = 'NoModule';

  constructor(detail: string) {
    super(
      'ERR',
      `this server has no jobboard module: ${detail}; load it there, name a server that has it, or start one with \`jobboard serve\``,
    );
  }
}

/** There was no answer: the connection was lost, or there was none. What was asked for may have happened. */
export class ConnectionLost extends Error {
  override readonly name: string = 'ConnectionLost';
}

/** The server answered that it cannot work now: it loads, is a replica, is busy, or has too many connections. */
export class Away extends ConnectionLost {
  override readonly name = 'Away';
}

/** What was waited for has not happened in time. */
export class TimedOut extends Error {
  override readonly name = 'TimedOut';
}

/** A payload that a task does not take, by its schema. */
export class ArgumentError extends TypeError {
  override readonly name = 'ArgumentError';
}

/** A payload or a result that the board's codec cannot write or read. */
export class PayloadError extends Error {
  override readonly name = 'PayloadError';
}

/** The job that was waited for has no result to give. `state` says how it ended, `job` is its record as far as it was kept. */
export class NoResult extends Error {
  override readonly name: string = 'NoResult';

  constructor(
    readonly id: string,
    readonly state: string,
    text = '',
    readonly job?: Job,
  ) {
    super(`${id} ${state}${text === '' ? '' : `: ${text}`}`);
  }
}

/** It did not complete: its `state` is `failed`, `cancelled` or `trashed`. */
export class JobFailed extends NoResult {
  override readonly name = 'JobFailed';
}

/** It is complete, and its record was dropped: `retain-complete` and `retain-result` say when that is. */
export class ResultDropped extends NoResult {
  override readonly name = 'ResultDropped';
}

/** The board does not know it: it was never posted, was deleted, or was dropped longer than `tombstone-ttl` ago. */
export class JobUnknown extends NoResult {
  override readonly name = 'JobUnknown';
}

/** What the M-forms tell of one id that was refused. */
export class Refused {
  constructor(
    readonly code: Code | (string & {}),
    readonly detail: string,
  ) {}

  /** The same as an error. */
  error(): BoardError {
    return new BoardError(this.code, this.detail);
  }
}

sharedByAllCopies({ BoardError, NoModule, ConnectionLost, Away, TimedOut, ArgumentError, PayloadError, NoResult, JobFailed, ResultDropped, JobUnknown, Refused });

/** Codes that tell a worker that a job is no longer its own. */
export const LOST: ReadonlySet<string> = new Set(['NOJOB', 'NOTCLAIMED', 'NOTOWNER', 'STALE', 'ENDED', 'CANCELLED']);

/** The server lets nobody in under this name and password. While a worker runs that passes: both are changed one after the other. */
export const isOutside = (error: unknown): error is BoardError => error instanceof BoardError && /^(NOAUTH|WRONGPASS)$/.test(error.code);

/** With too many connections a server has no room for another one now. */
const AWAY = /^(UNBLOCKED|MOVED|ASK|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|MISCONF|LOADING|BUSY|READONLY|ERR max number of clients)\b/;

/** The error that stands for an answer of the server. */
export function refusal(text: string): BoardError | Away {
  if (AWAY.test(text)) return new Away(text);
  if (/^(ERR )?unknown command .?JOB\./i.test(text)) return new NoModule(text);
  const [code = '', ...rest] = text.split(' ');
  return /^[A-Z]+$/.test(code) ? new BoardError(code, rest.join(' ')) : new BoardError('ERR', text);
}
