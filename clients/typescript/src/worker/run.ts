/** One claim in a worker's hands, and how it ends. */
import type { Board } from '../board/board.js';
import { toMs } from '../durations.js';
import { Context, type Report, type Reports } from '../context.js';
import type { Row } from '../replies.js';
import type { Job } from '../jobs.js';
import { type Complete, type Next, shortened } from '../outcomes.js';
import type { Word } from '../words.js';

/** What becomes of a claim: the command, its words behind the job's id, and its options. */
export interface Outcome {
  readonly kind: 'complete' | 'next' | 'fail' | 'giveBack' | 'trash' | 'unhandled' | 'nothing';
  readonly command: string;
  readonly head: readonly Word[];
  readonly options: readonly Word[];
  /** Of a plain completion: it can share a command with others. `null`: there is no result. */
  readonly data?: Word | null;
  /** What the handler returned or threw. */
  readonly value?: unknown;
  /** Where the error comes from, for the worker's log. */
  readonly stack?: string | undefined;
  /** What is sent in its place when the server refuses its words. */
  readonly instead?: () => Outcome;
}

/**
 * What a handler has written since its last chunk of output was sent. It gets its number when it is sent, and keeps both
 * when it has to be sent again, so that the server knows it.
 */
export class Writing {
  number = 0;
  readonly #parts: Buffer[] = [];
  #size = 0;

  /** Adds to it, where it has no number yet and is not too long. */
  takes(data: Buffer): boolean {
    const fits = this.number === 0 && (this.#size === 0 || this.#size + data.length <= MOST);
    if (fits) {
      this.#parts.push(data);
      this.#size += data.length;
    }
    return fits;
  }

  get data(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

/** The longest chunk that is put together, bytes. */
const MOST = 16_384;

/** Where a run's reports and questions go: to the worker's sender. */
export interface Sending {
  report(run: Run, fields: Report): void;
  flush(run: Run): Promise<void>;
  store(run: Run, name: string, data: Word, replace: boolean): Promise<Word | undefined>;
  wait(run: Run, words: readonly Word[]): Promise<Row>;
  confirm(run: Run): Promise<void>;
  late(run: Run): void;
}

/** A claim, from the moment it is in our hands until the server has taken its end. It takes its context's reports. */
export class Run implements Reports {
  readonly context: Context;
  began = 0;
  /** Its outcome is known, and waits to be sent. */
  ended = false;
  /** When its handler was told to stop. */
  told = 0;
  warned = false;
  /** How many reports were made, and answered. */
  made = 0;
  answered = 0;
  /** The chunk of output that may still grow. */
  writing: Writing | undefined;
  /** How many chunks have a number. */
  written = 0;
  /** Whether the server takes chunks. */
  writes = true;
  /** It may be a claim that we have had before, and have written chunks for. */
  returned = false;
  /** How long it stays ours without a heartbeat, ms. */
  lease = 0;
  /** Whether that is the lease which the server gave it; else it is a guess, and a short one. */
  isKnown = true;
  /** Its end is sent in a command of its own: one that it shared was refused. */
  alone = false;

  constructor(
    readonly job: Job,
    board: Board,
    worker: string,
    private readonly sender: Sending,
  ) {
    this.context = new Context(job, worker, board, this);
  }

  get id(): string {
    return this.job.id;
  }

  get token(): number {
    return this.job.token;
  }

  get shown(): string {
    return `${this.job.name ?? this.job.queue} ${this.id}`;
  }

  report(fields: Report): void {
    this.sender.report(this, fields);
  }

  /** Gives a number to a chunk of output, unless it has one. */
  numbered(chunk: Writing): void {
    if (chunk.number > 0) return;
    this.written += 1;
    chunk.number = this.written;
    this.writing = undefined;
  }

  async store(name: string, data: Word, replace: boolean): Promise<Word | undefined> {
    return this.sender.store(this, name, data, replace);
  }

  async wait(words: readonly Word[]): Promise<Row> {
    return this.sender.wait(this, words);
  }

  async flush(): Promise<void> {
    return this.sender.flush(this);
  }

  async confirm(): Promise<void> {
    return this.sender.confirm(this);
  }

  late(): void {
    this.sender.late(this);
  }
}

export const NOTHING: Outcome = { kind: 'nothing', command: '', head: [], options: [] };

export function completed(data: Word | null, value: unknown, options: Complete['options'] = {}): Outcome {
  const words: Word[] = data === null ? [] : ['RESULT', data];
  if (options.retain !== undefined) words.push('RETAIN', String(toMs(options.retain)));
  if (options.force === true) words.push('FORCE');
  const plain = options.retain === undefined && options.force !== true;
  return { kind: 'complete', command: 'JOB.CONSUME', head: [], options: words, value, ...(plain ? { data } : {}) };
}

export function advanced(next: Next, data: Word | null): Outcome {
  const { name, delay, priority, after = [] } = next.options;
  const words: Word[] = data === null ? [] : ['PAYLOAD', data];
  words.push('NEXT', next.queue);
  if (name !== undefined) words.push('NAME', name);
  if (delay !== undefined) words.push('DELAY', String(toMs(delay)));
  if (priority !== undefined) words.push('PRIORITY', String(priority));
  if (after.length > 0) words.push('AFTER', String(after.length), ...after);
  return { kind: 'next', command: 'JOB.CONSUME', head: [], options: words };
}

export function failed(kind: string, message: string, { delay, noretry = false, error, stack }: { delay?: number; noretry?: boolean; error?: unknown; stack?: string | undefined } = {}): Outcome {
  const options = noretry ? ['NORETRY'] : delay === undefined ? [] : ['RETRY', String(delay)];
  const found: Outcome = { kind: 'fail', command: 'JOB.FAIL', head: [shortened(kind, 255) || 'Error', shortened(message)], options, value: error, stack };
  // The server refuses a delay of more than 34 years: then the job's back-off counts.
  return delay === undefined ? found : { ...found, instead: () => ({ ...found, options: [] }) };
}

/** Back to the queue after `delay`, ms. With `rest` a shared limit of the job is paused: its name, and how long, ms. */
export function givenBack(reason: string, delay?: number, rest?: readonly [limit: string, ms: number]): Outcome {
  const options = ['REASON', shortened(reason), ...(delay === undefined ? [] : ['DELAY', String(delay)])];
  const found: Outcome = { kind: 'giveBack', command: 'JOB.ABANDON', head: [], options };
  if (rest === undefined) return delay === undefined ? found : { ...found, instead: () => givenBack(reason) };
  const [limit, ms] = rest;
  // The server refuses a limit that is none of the job's: then the job alone waits.
  return { ...found, options: [...options, 'PAUSE', limit, String(ms)], instead: () => givenBack(reason, ms) };
}

export function trashed(reason: string): Outcome {
  return { kind: 'trash', command: 'JOB.TRASH', head: [], options: ['REASON', shortened(reason)] };
}
