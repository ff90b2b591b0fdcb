/** What a handler is given beside the payload. */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Board } from './board/board.js';
import { type Duration, toMs } from './durations.js';
import type { Job } from './jobs.js';
import { CancelRequested, Lost, type Stopped } from './outcomes.js';

/** What a report sets: words of JOB.HEARTBEAT. */
export interface Report {
  progress?: number;
  stage?: string;
  log?: string;
  meta?: Record<string, string>;
  payload?: unknown;
}

/** Where a context's reports go: to the worker's sender. */
export interface Reports {
  report(fields: Report): void;
  flush(): Promise<void>;
}

/**
 * One run of a job: what is known of it, and what the handler says while it works.
 *
 * Reports (`progress`, `stage`, `log`, `setMeta`, `save`) return at once; the worker sends them in order, before the
 * end of the run. When the job is cancelled or lost, or the worker has to go, `signal` is aborted, with `Lost`,
 * `CancelRequested` or `GoHome` as its reason, and reports throw that.
 */
export class Context<Payload = unknown> {
  readonly #stop = new AbortController();
  readonly #reports: Reports;
  /** The worker is about to stop: the handler may finish, or throw `Abandon`. */
  goingHome = false;

  constructor(
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
    return this.#stop.signal;
  }

  get cancelled(): boolean {
    return this.signal.reason instanceof CancelRequested;
  }

  get lost(): boolean {
    return this.#lost;
  }

  #lost = false;

  /** Says how far the job is, 0 to 100, and in words; a lower number than before is ignored. */
  progress(percent: number, stage?: string): void {
    const progress = Math.min(Math.max(percent, 0), 100);
    this.#report(stage === undefined ? { progress } : { progress, stage });
  }

  /** Says in words how far the job is. */
  stage(text: string): void {
    this.#report({ stage: text });
  }

  /** Adds a line to the job's history. */
  log(text: string): void {
    this.#report({ log: text });
  }

  /** Sets fields of the job's META, as text; others stay. */
  setMeta(fields: Readonly<Record<string, string | number | boolean>>): void {
    this.#report({ meta: Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)])) });
  }

  /** Replaces the job's payload, so that the next try can go on from here. */
  save(payload: Payload): void {
    this.#report({ payload });
  }

  /** Waits until the server has taken all reports. */
  async flush(): Promise<void> {
    this.check();
    await this.#reports.flush();
    this.check();
  }

  /** Throws when the handler has to stop. Costs nothing: call it between any two steps. */
  check(): void {
    if (this.signal.aborted) throw this.signal.reason;
  }

  /** Waits so long; throws when the handler has to stop. */
  async sleep(duration: Duration): Promise<void> {
    await sleep(toMs(duration), undefined, { signal: this.signal }).catch(() => undefined);
    this.check();
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
    this.#stop.abort(reason);
  }
}
