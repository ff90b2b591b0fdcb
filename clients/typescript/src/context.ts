/** What a handler is given beside the payload. */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Board } from './board/board.js';
import { childrenWords } from './board/working.js';
import { type Children, childrenOf, type OnFailure } from './children.js';
import { decoded, encoded } from './codecs.js';
import { type Duration, LONGEST_TIMER, toMs } from './durations.js';
import type { Job } from './jobs.js';
import { refuseUnknown } from './known.js';
import { CancelRequested, Lost, shortened, type Stopped, Waits } from './outcomes.js';
import type { Reply, Row } from './replies.js';
import { type Signal, signalsOf } from './signals.js';
import { shown } from './shown.js';
import { counted, optionWords, plain, type Word } from './words.js';

/** What a report sets: words of JOB.HEARTBEAT. */
export interface Report {
  progress?: number;
  stage?: string;
  log?: string;
  meta?: Record<string, string>;
  /** As the codec has it. */
  payload?: Word;
  output?: Buffer;
  cost?: number;
  costs?: Readonly<Record<string, number>>;
}

/** Longer chunks of output are sent in parts, bytes, so that the board's `output-bytes` allows each. */
const PIECE = 8192;

/** Where a context's reports go: to the worker's sender. */
export interface Reports {
  report(fields: Report): void;
  flush(): Promise<void>;
  /** Stores a step; the stored value, when it is another one. */
  store(name: string, data: Word, replace: boolean): Promise<Word | undefined>;
  /** Asks whether signals and ends of children are there, or gives the job up until they are. */
  wait(words: readonly Word[]): Promise<Row>;
  /** Asks whether the job is still ours, for as long as the server is away. */
  confirm(): Promise<void>;
  /** The last answer about the job is older than its lease: it counts as lost, unless the server is away. */
  late(): void;
}

/** How a handler waits for signals. */
export interface WaitOptions {
  /** One of several signals is enough: the one that came first, in this run and in every later one. */
  any?: boolean | undefined;
  /** How long the job waits; without end by default. */
  within?: Duration | undefined;
  /** What happens then. `run`, the default: the handler is called, and gets null. */
  ontimeout?: 'run' | 'fail' | 'cancel' | undefined;
  /** The name of this wait, where a handler waits for the same signal twice. */
  step?: string | undefined;
}

const WAIT: Readonly<Record<keyof WaitOptions, true>> = { any: true, within: true, ontimeout: true, step: true };

/**
 * One run of a job: what is known of it, and what the handler says while it works.
 *
 * Reports (`progress`, `stage`, `log`, `setMeta`, `output`, `save`) return at once; the worker sends them in order,
 * before the end of the run. When the job is cancelled or lost, or the worker has to go, `signal` is aborted, with `Lost`,
 * `CancelRequested` or `GoHome` as its reason, and reports throw that.
 */
export class Context<Payload = unknown> {
  /** Made when somebody asks for its signal: most handlers do not, and it costs some microseconds. */
  #stop: AbortController | undefined;
  #reason: Stopped | undefined;
  readonly #reports: Reports;
  /** The names of the steps of this run. */
  #used: Set<string> | undefined;
  /** The worker is about to stop: the handler may finish, or throw `Abandon`. */
  goingHome = false;

  constructor(
    /**
     * Its record, with what a worker asks for: id, token, attempt, name, queue, payload, meta and steps, and without `lease` also claimed and deadline. Others, such as
     * `left` or `posted`, are there when the worker's option `fields` names them.
     */
    readonly job: Job<Payload>,
    /** The worker's name. */
    readonly worker: string,
    /** The worker's board, to post more jobs, for instance. */
    readonly board: Board,
    reports: Reports,
  ) {
    this.#reports = reports;
  }

  get id(): string {
    return this.job.id;
  }

  /** The fencing token: pass it on to what the handler writes to, so that it can refuse late writes. */
  get token(): number {
    return this.job.token;
  }

  /** 1 at the first try. */
  get attempt(): number {
    return this.job.attempt;
  }

  get meta(): Readonly<Record<string, string>> {
    return this.job.meta ?? {};
  }

  /** Pass it on: `fetch(url, { signal: context.signal })`. */
  get signal(): AbortSignal {
    this.#look();
    if (this.#stop === undefined) {
      this.#stop = new AbortController();
      if (this.#reason !== undefined) this.#stop.abort(this.#reason);
    }
    return this.#stop.signal;
  }

  /** @internal Why the handler has to stop. */
  get reason(): Stopped | undefined {
    return this.#reason;
  }

  get cancelled(): boolean {
    return this.#reason instanceof CancelRequested;
  }

  /** The job is lost or cancelled, or the worker has to go now. */
  get mustStop(): boolean {
    return this.#reason !== undefined;
  }

  get lost(): boolean {
    return this.#lost;
  }

  /** The job was given up, and waits for signals or children: what this run comes to is dropped. */
  get givenUp(): boolean {
    return this.#givenUp;
  }

  /** @internal Until when the job is ours by the last answer of the server, by `performance.now()`. */
  oursUntil = Infinity;

  /** @internal The last answer about this job is older than its lease: it may be lost. */
  isLate(): boolean {
    return performance.now() >= this.oursUntil;
  }

  /** @internal Fulfilled when it is known whether the job is ours. */
  async confirmed(): Promise<void> {
    if (this.#reason === undefined && this.isLate()) await this.#reports.confirm();
  }

  #look(): void {
    if (this.#reason === undefined && this.isLate()) this.#reports.late();
  }

  #lost = false;
  #givenUp = false;

  /** Says how far the job is, 0 to 100, and in words; a lower number than before is ignored. */
  progress(percent: number, stage?: string): void {
    if (typeof percent !== 'number' || Number.isNaN(percent)) throw new TypeError(`progress is a number from 0 to 100, not ${shown(percent)}`);
    const progress = Math.min(Math.max(percent, 0), 100);
    this.#report(stage === undefined ? { progress } : { progress, stage: shortened(textOf(stage, 'a stage')) });
  }

  /** Says in words how far the job is. */
  stage(text: string): void {
    this.#report({ stage: shortened(textOf(text, 'a stage')) });
  }

  /** Adds a line to the job's history. */
  log(text: string): void {
    this.#report({ log: shortened(textOf(text, 'a line of log')) });
  }

  /** Sets fields of the job's META, as text; others stay. */
  setMeta(fields: Readonly<Record<string, string | number | boolean>>): void {
    this.#report({ meta: Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plain(value, `meta.${name}`)])) });
  }

  /**
   * Says what this run has cost so far, in permits: `context.cost({ tokens: 812 })` of shared limits by name,
   * `context.cost(3)` of all other rates. The server takes or returns the difference to the estimate with which the job
   * was posted. A later report takes the place of an earlier one.
   */
  cost(permits: number | Readonly<Record<string, number>>): void {
    const all = typeof permits === 'number' ? [permits] : Object.values(permits);
    const wrong = all.find((one) => !Number.isInteger(one) || one < 0);
    if (wrong !== undefined || all.length === 0) throw new TypeError(`a cost is a whole number of permits, 0 or more, not ${JSON.stringify(wrong ?? permits)}`);
    this.#report(typeof permits === 'number' ? { cost: permits } : { costs: permits });
  }

  /**
   * Writes what the job says while it runs, for readers of `board.output(id)`. Each run writes anew.
   *
   *     for await (const word of model.stream(question)) context.output(word)
   *
   * What comes faster than it can be sent is sent together. The board's codec is not used: what is written is readable
   * for everybody who may read the board.
   */
  output(chunk: string | Uint8Array): void {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) throw new TypeError(`a chunk of output is text or bytes, not ${JSON.stringify(chunk)}`);
    const data = Buffer.from(chunk as string); // a copy: the caller may use its bytes again
    for (let start = 0; start < data.length; ) {
      const end = characterEnd(data, start + PIECE);
      this.#report({ output: data.subarray(start, end) });
      start = end;
    }
  }

  /** Replaces the job's payload, so that the next try can go on from here. */
  save(payload: Payload): void {
    this.#report({ payload: encoded(this.board.codec, payload, 'the payload') });
  }

  /**
   * Does a step of the work once: calls the function and stores what it returns. When the job runs again, the stored
   * value is returned, and the function is not called.
   *
   *     const receipt = await context.step('charge', () => charge(order, { key: context.id }))
   *
   * Each step of a job needs a name of its own. The value is in every run what the codec makes of it: with JSON a Date
   * comes as text. A worker that dies after the function and before the answer of the server leaves nothing, and the
   * step runs again: so pass a key to what must not happen twice.
   */
  async step<T>(name: string, work: () => T | Promise<T>): Promise<T> {
    await this.confirmed();
    const stored = this.#begin(name) ?? (await this.#store(name, encoded(this.board.codec, (await work()) ?? null, `the step '${name}'`), false));
    return decoded(this.board.codec, stored) as T;
  }

  /**
   * The items, one after the other, going on where the last run was. How many are done is stored under the name after
   * each `every` items; items must come in the same order in every run. After a crash up to `every` come again.
   */
  async *iterate<T>(name: string, items: Iterable<T> | AsyncIterable<T>, { every = 1 } = {}): AsyncGenerator<T, void, undefined> {
    const stored = this.#begin(name);
    const start = stored === undefined ? 0 : Number(stored.toString());
    if (!Number.isInteger(start)) throw new TypeError(`'${name}' is a step that does not count items: it holds ${stored?.toString() ?? ''}`);
    let at = 0;
    for await (const item of items) {
      at += 1;
      if (at <= start) continue;
      yield item;
      if ((at - start) % every === 0) await this.#store(name, String(at), true);
    }
    if (at > start && (at - start) % every !== 0) await this.#store(name, String(at), true);
  }

  /**
   * Waits for a signal from outside, such as an approval: what `board.signal` sends. When it has arrived, this returns
   * it. Otherwise the worker gives the job up, at no cost to it, and this throws `Waits`: the handler is left. When the
   * signal arrives, a worker calls the handler again; the steps before answer from the store, and this returns the signal.
   *
   *     const draft = await context.step('draft', () => write(request));
   *     const answer = await context.waitFor<boolean>('approved', { within: '2d' });
   *     if (answer?.value) await context.step('send', () => send(draft, { key: context.id }));
   *
   * So what stands before and must not happen twice belongs into a step. Several names wait for all of them, and return
   * them by name; with `any` the one that came first. Null: the time of `within` is over. A `catch` around this catches
   * `Waits` as well: let it through, `if (error instanceof Stopped) throw error`.
   */
  async waitFor<T = unknown>(signal: string, options?: WaitOptions): Promise<Signal<T> | null>;
  async waitFor<T = unknown>(signals: readonly string[], options?: WaitOptions): Promise<Readonly<Record<string, Signal<T>>> | null>;
  async waitFor(signals: string | readonly string[], options: WaitOptions = {}): Promise<unknown> {
    refuseUnknown('waitFor', options, WAIT);
    const { any, within, ontimeout, step } = options;
    const names = typeof signals === 'string' ? [signals] : signals;
    const words = [...counted('SIGNALS', names), ...optionWords('JOB.AWAIT', { any, within, ontimeout, step }, this.board.codec)];
    this.#name(`a wait for ${step ?? names[0] ?? 'nothing'}`);
    const found = await this.#reports.wait(words);
    this.check();
    if (found['timeout'] === 1) return null;
    const arrived = signalsOf(found['signals'] as Reply, this.board.codec);
    return typeof signals === 'string' ? arrived[signals] : arrived;
  }

  /**
   * Waits until all children of the job have ended: those that this handler has posted with `parent: context.id`, and
   * those that anybody has added meanwhile. When they have, this says how many there are, and how many failed, were
   * cancelled or were trashed. Otherwise the worker gives the job up and this throws `Waits`, as `waitFor` does; the
   * handler is called again when they have ended. So post the children in a step:
   *
   *     await context.step('parts', () => context.board.postMany(files, { name: 'size', parent: context.id }));
   *     const { unsuccessful } = await context.waitForChildren({ onfailure: 'run' });
   *
   * `onfailure` says what becomes of the job when one of them ends without success: `hold`, the default, waits until
   * somebody requeues or deletes it, `cancel` and `fail` end the job, `run` calls the handler.
   */
  async waitForChildren({ onfailure = 'hold' }: { onfailure?: OnFailure | undefined } = {}): Promise<Children> {
    this.check();
    const found = await this.#reports.wait(childrenWords(onfailure, this.board.codec));
    this.check();
    return childrenOf(found) as Children;
  }

  /** Waits until the server has taken all reports. */
  async flush(): Promise<void> {
    this.check();
    await this.#reports.flush();
    this.check();
  }

  /**
   * Throws when the handler has to stop. Costs nothing: call it between any two steps. A job counts as lost when the
   * event loop was blocked, or the process stood still, for longer than its lease.
   */
  check(): void {
    this.#look();
    if (this.#reason !== undefined) throw this.#reason;
  }

  /** Waits so long; throws when the handler has to stop. */
  async sleep(duration: Duration): Promise<void> {
    for (let left = toMs(duration); ; left -= LONGEST_TIMER) {
      await sleep(Math.min(left, LONGEST_TIMER), undefined, { signal: this.signal }).catch(() => undefined);
      this.check();
      if (left <= LONGEST_TIMER) return;
    }
  }

  /** What is stored under the name; throws when the run has used it. */
  #begin(name: string): Word | undefined {
    this.#name(name);
    return this.job.step(name);
  }

  #name(name: string): void {
    this.check();
    textOf(name, 'the name of a step');
    this.#used ??= new Set();
    if (this.#used.has(name)) throw new TypeError(`two steps of this run are called '${name}': give each a name of its own, in a loop one with the number of the round`);
    this.#used.add(name);
  }

  /** Stores a step also when the handler has to stop; the value that counts. */
  async #store(name: string, data: Word, replace: boolean): Promise<Word> {
    const other = await this.#reports.store(name, data, replace);
    this.check();
    return other ?? data;
  }

  #report(fields: Report): void {
    this.check();
    this.#reports.report(fields);
  }

  /** @internal The stack of a failed try, for the history. */
  stackOf(text: string): void {
    this.#reports.report({ log: text });
  }

  /** @internal Told by the worker. What came first counts. */
  stoppedBy(reason: Stopped): void {
    if (reason instanceof Lost) this.#lost = true;
    if (reason instanceof Waits) this.#givenUp = true;
    this.#reason ??= reason;
    this.#stop?.abort(this.#reason);
  }
}

/** The worker sends it later: what cannot be sent is told here, in the handler. */
function textOf(text: unknown, what: string): string {
  if (typeof text !== 'string') throw new TypeError(`${what} is text, not ${shown(text)}`);
  return text;
}

/** Where a part of a text may end, so that no character is cut; of other bytes anywhere. */
function characterEnd(data: Buffer, at: number): number {
  if (at >= data.length) return data.length;
  for (let back = 0; back < 4; back += 1) if (((data[at - back] as number) & 0xc0) !== 0x80) return at - back;
  return at;
}
