/**
 * The middle of a worker: what it holds, what runs, and how that ends. `Claims` brings the jobs, `Sender` takes what is
 * said of them, `Listener` hears of cancels.
 */
import { hostname } from 'node:os';

import type { Board } from '../board/board.js';
import type { Job } from '../jobs.js';
import { CancelRequested, GoHome, Lost, type Stopped, Waits } from '../outcomes.js';
import type { Reply } from '../replies.js';
import { Unhandled } from './backoff.js';
import { Changes } from './changes.js';
import { Claims } from './claims.js';
import { Leases } from './leases.js';
import { Listener } from './listener.js';
import type { Settled } from './options.js';
import { Outage } from './outage.js';
import { perform } from './performer.js';
import { failed, givenBack, NOTHING, type Outcome, Run } from './run.js';
import { Sender } from './sender.js';

/** How long a handler may take to stop before somebody is told, ms. */
const STUCK = 10_000;

/** What a worker tells of its runs. */
export interface Told {
  active: (run: Run) => void;
  completed: (run: Run, outcome: Outcome) => void;
  failed: (run: Run, outcome: Outcome, reply: Reply) => void;
  lost: (run: Run, why: string) => void;
  drained: () => void;
}

export class Engine {
  readonly held = new Map<number, Run>();
  readonly name: string;
  readonly key: string;
  readonly about: readonly string[];
  readonly outage: Outage;
  readonly leases: Leases;
  readonly changes = new Changes();
  readonly claims: Claims;
  readonly #listener: Listener;
  readonly #sender: Sender;
  readonly #unhandled = new Unhandled();
  #waiting: Run[] = [];
  #running = 0;
  #busy = 0;
  /** It claims no more. */
  stopping = false;
  #stopped: () => void = () => undefined;
  /** How many runs are no longer held. */
  ends = 0;
  /** What no waiting heals. */
  failure: unknown;
  /** Fulfilled when the worker is to stop. */
  readonly wantsStop = new Promise<void>((resolve) => {
    this.#stopped = resolve;
  });
  /** How many jobs it has ended. */
  done = 0;

  readonly told: Told;

  /** `burst`: it stops when there is no job. */
  constructor(
    readonly board: Board,
    readonly options: Settled,
    told: Told,
    burst: boolean,
  ) {
    this.told = this.#heeded(told);
    this.name = options.name;
    this.outage = new Outage(options.log, options.name);
    this.key = board.name;
    this.about = ['META', '3', 'host', hostname(), 'pid', String(process.pid), 'mode', 'node'];
    this.leases = new Leases(options.lease);
    this.claims = new Claims(this, burst);
    this.#listener = new Listener(this);
    this.#sender = new Sender(this);
  }

  start(): void {
    this.#sender.start();
    if (this.options.listen) void this.#listener.run();
    void this.claims.run().catch((error: unknown) => {
      this.claims.notClaimed();
      this.fail(error);
    });
  }

  registration(): string[] {
    const { role, session } = this.options;
    return ['JOB.WORKER', 'REGISTER', this.key, this.name, 'ROLE', role, ...this.about, ...(session ? ['SESSION'] : ['FOR', String(this.leases.longest)])];
  }

  /** Asks the server soon whether what we hold is ours. */
  beatSoon(): void {
    this.#sender.beatSoon();
  }

  // Runs

  /** How many more jobs we would take. */
  get room(): number {
    return this.options.concurrency + this.options.prefetch - this.#busy;
  }

  runOf(job: Job): Run {
    return new Run(job, this.board, this.name, this.#sender);
  }

  /** Takes runs of jobs that are claimed. `sent`: when the claim was asked, by `performance.now()`. */
  take(runs: readonly Run[], sent: number): void {
    let otherLease = false;
    for (const run of runs) {
      otherLease = this.leases.add(run.lease) || otherLease;
      this.keeps(run, sent);
      this.held.set(run.token, run);
    }
    this.#busy += runs.length;
    if (otherLease) this.beatSoon(); // heartbeats and the registration follow it
    if (this.stopping) {
      for (const run of runs) this.#finished(run, givenBack('the worker stops'));
    } else {
      this.#waiting.push(...runs);
      this.#pump();
    }
  }

  #pump(): void {
    while (this.#running < this.options.concurrency) {
      const run = this.#waiting.shift();
      if (run === undefined) return;
      this.#running += 1;
      run.began = Date.now();
      this.told.active(run);
      void this.#perform(run);
    }
  }

  async #perform(run: Run): Promise<void> {
    let outcome: Outcome;
    try {
      await run.context.confirmed();
      outcome = await perform(this.board, run.context, this.options.stacks, this.options.queues);
    } catch (error) {
      outcome = failed('Unsendable', `how this run ended cannot be sent: ${textOf(error)}`);
    }
    this.#running -= 1;
    this.#finished(run, outcome);
    if (this.#waiting.length > 0) this.#pump();
  }

  #finished(run: Run, found: Outcome): void {
    if (run.ended) return; // given back meanwhile, by a worker that had to go
    run.ended = true;
    this.#busy -= 1;
    if (found.kind === 'nothing') {
      if (this.holds(run)) this.letGo(run, run.context.reason?.message ?? 'its handler has thrown Lost');
      else this.changes.changed();
      return;
    }
    let outcome = found;
    if (found.kind === 'unhandled') {
      const { delay, first } = this.#unhandled.wait(found.value as string);
      if (first) this.options.log.warn(`${found.value as string}: such jobs go back to their queue, at no cost, for a worker that has one; is its module imported here?`);
      outcome = givenBack(found.value as string, delay);
    }
    this.#sender.end(run, outcome);
    if (this.stopping) this.changes.changed();
  }

  /** The server has taken the end of a run. */
  hasEnded(run: Run, outcome: Outcome, reply: Reply): void {
    this.done += 1;
    if (outcome.kind === 'complete' || outcome.kind === 'next') this.told.completed(run, outcome);
    if (outcome.kind === 'fail' || outcome.kind === 'trash') this.told.failed(run, outcome, reply);
    if (this.options.verbose) this.#debug(run, outcome);
    this.#forget(run);
  }

  #debug(run: Run, outcome: Outcome): void {
    const took = run.began === 0 ? 0 : Date.now() - run.began;
    this.options.log.debug(`${run.shown} ended as ${outcome.kind === 'giveBack' && run.context.cancelled ? 'cancelled' : outcome.kind} in ${String(took)} ms (queue ${run.job.queue}, attempt ${String(run.job.attempt)})`);
  }

  holds(run: Run): boolean {
    return this.held.get(run.token) === run;
  }

  /** Nothing runs. */
  get idle(): boolean {
    return this.#running === 0;
  }

  /** The server has blocked the job until its signals arrive or its children end: its handler is left. */
  giveUp(run: Run): void {
    this.options.log.debug(`${run.shown} waits`);
    run.context.stoppedBy(new Waits('the job waits for signals or children'));
    this.#forget(run);
  }

  /** We hold this run no more, and nobody has taken its end. */
  letGo(run: Run, why: string): void {
    this.told.lost(run, why);
    this.#forget(run);
  }

  #forget(run: Run): void {
    this.held.delete(run.token);
    this.ends += 1;
    this.changes.changed();
  }

  cancel(run: Run): void {
    this.#stopRun(run, new CancelRequested('a cancel was requested'));
  }

  lose(run: Run, why: string): void {
    this.#stopRun(run, new Lost(`the job is not ours any more: ${why}`));
  }

  #stopRun(run: Run, reason: Stopped): void {
    if (run.ended || run.context.lost || (run.context.mustStop && !(reason instanceof Lost))) return;
    this.options.log.info(`${run.shown}: ${reason.message}`);
    run.told = run.told || Date.now();
    run.context.stoppedBy(reason);
    const at = this.#waiting.indexOf(run);
    if (at >= 0) {
      this.#waiting.splice(at, 1);
      this.#finished(run, reason instanceof Lost ? NOTHING : givenBack('cancelled'));
    }
  }

  /** Warns once of each run that goes on although it was told to stop. */
  lookForStuck(): void {
    for (const run of this.held.values()) {
      if (run.ended || run.warned || run.told === 0 || run.told > Date.now() - STUCK || this.stopping) continue;
      run.warned = true;
      this.options.log.warn(
        `${run.shown} still runs, ${String(Math.round((Date.now() - run.told) / 1000))} s after it was told to stop, and holds one of ${String(this.options.concurrency)} places: ` +
          'pass context.signal to what its handler waits for, or call context.check()',
      );
    }
  }

  /** The server has said that a run is ours, when it was asked at `sent`. */
  keeps(run: Run, sent: number): void {
    run.context.oursUntil = sent + run.lease;
  }

  // Stopping

  /** Something that no waiting heals: the worker stops, and `run` throws it. */
  fail(error: unknown): void {
    this.failure ??= error;
    this.stop();
  }

  /** What the program's listeners throw stops the worker, and nothing that is under way. */
  #heeded(told: Told): Told {
    const heed = <A extends unknown[]>(tell: (...all: A) => void) => (...all: A): void => {
      try {
        tell(...all);
      } catch (error) {
        this.fail(error);
      }
    };
    return { active: heed(told.active), completed: heed(told.completed), failed: heed(told.failed), lost: heed(told.lost), drained: heed(told.drained) };
  }

  /** Asks the worker to stop. */
  stop(): void {
    this.#stopped();
  }

  /** What runs. */
  running(): Run[] {
    return [...this.held.values()].filter((run) => !run.ended);
  }

  /** Claims no more; gives back what has not begun; tells the handlers that the end is near. */
  goHome(): void {
    this.stopping = true;
    for (const run of this.#waiting.splice(0)) this.#finished(run, givenBack('the worker stops'));
    for (const run of this.running()) run.context.goingHome = true;
    this.claims.close();
    this.#listener.close();
    this.changes.changed();
  }

  /** Whether all handlers have returned in time. */
  async waitIdle(within: number, hurry: Promise<void>): Promise<boolean> {
    return this.changes.until(() => this.#busy === 0 && !this.claims.underWay, within, hurry);
  }

  /** Gives back all that still runs, and stops the handlers; which there were. */
  abandonAll(): Run[] {
    const runs = this.running();
    for (const run of runs) {
      run.context.stoppedBy(new GoHome('the worker stops'));
      this.#finished(run, givenBack('the worker stops'));
    }
    return runs;
  }

  /** Whether all ends were taken in time. */
  async waitSent(within: number): Promise<boolean> {
    return this.changes.until(() => this.held.size === 0, within);
  }

  async leave(): Promise<void> {
    await this.#sender.leave();
  }

  /** Waits so long, or until the worker stops. */
  async pause(ms: number): Promise<void> {
    await this.changes.until(() => this.stopping, ms);
  }
}

function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return 'it threw what cannot be shown';
  }
}
