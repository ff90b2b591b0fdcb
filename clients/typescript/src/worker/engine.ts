/**
 * The middle of a worker: what it holds, and how claims, runs, reports and ends go through it.
 *
 * One claim is under way at a time (`asked`), so `SEEN` is exact: all tokens up to it have arrived. An end that is
 * sent while nobody claims takes the next jobs along (`CONSUME … CLAIM`).
 *
 * A claim asks for what it may have missed (`SEEN`) only after a connection has broken: then a reply may be lost. The
 * server may also still count claims that we have ended: a failover can lose an end that the former primary had taken. A
 * worker that holds nothing therefore asks for all its claims, and does those jobs again. Without such trouble nothing
 * comes that was claimed before: of two workers with one name neither works on what the other has claimed.
 */
import { hostname } from 'node:os';

import type { Board } from '../board/board.js';
import { BoardError, ConnectionLost } from '../errors.js';
import { Job } from '../jobs.js';
import type { Link } from '../link.js';
import { CancelRequested, GoHome, Lost, type Stopped, Waits } from '../outcomes.js';
import type { Reply } from '../replies.js';
import { Backoff, Unhandled } from './backoff.js';
import type { Settled } from './options.js';
import { Outage } from './outage.js';
import { perform } from './performer.js';
import { failed, givenBack, type Outcome, Run } from './run.js';
import { Sender } from './sender.js';

/** How long a handler may take to stop before somebody is told, ms. */
const STUCK = 10_000;
/** How long completed jobs are kept, and how many, unless told otherwise. */
const KEEP = { 'retain-complete': '1h', 'keep-complete': 1000 } as const;

/** The lease of jobs when nobody names one, ms: the server's setting, too. */
const LEASE = 30_000;
/** The longest lease that is relied on where a claim may have come back, ms: how much is left is not known. */
const UNCERTAIN = 1000;

/** What a worker tells of its runs. */
export interface Told {
  active(run: Run): void;
  completed(run: Run, outcome: Outcome): void;
  failed(run: Run, outcome: Outcome, reply: Reply): void;
  lost(run: Run, why: string): void;
  drained(): void;
}

export class Engine {
  readonly held = new Map<number, Run>();
  readonly name: string;
  readonly key: string;
  readonly about: readonly string[];
  readonly outage: Outage;
  readonly #claims: Link;
  readonly #events: Link;
  readonly #sender: Sender;
  readonly #unhandled = new Unhandled();
  #waiting: Run[] = [];
  #running = 0;
  #busy = 0;
  #asked = 0;
  #seen = 0;
  /** The highest token of the claims that we have left to their leases, as their ends were refused. */
  #left = 0;
  /** How often one of our connections has broken. */
  #troubles = 0;
  /** `#troubles` when the claim under way was sent. */
  #toldAt = 0;
  /** What the claim under way asks for: all claims of ours, or those above the last that has arrived. */
  #asksAll = false;
  #asksMissed = false;
  /** `#troubles` at the last claim that has brought all that the board had above the last token, and all. */
  #hadMissed = 0;
  #hadAll = 0;
  /** An earlier process of our name may still hold jobs. */
  #behind: boolean;
  #sharedName = false;
  /** The shortest lease of what we hold, and the longest, ms: at most, and at least, that of the options. */
  shortest: number;
  #longest: number;
  readonly leaseWords: readonly string[];
  #stopping = false;
  #wake: (() => void)[] = [];
  #stopped: () => void = () => undefined;
  #pinging: NodeJS.Timeout | undefined;
  #burst = false;
  #ends = 0;
  /** What no waiting heals. */
  failure: unknown;
  /** Fulfilled when the worker is to stop. */
  readonly wantsStop = new Promise<void>((resolve) => {
    this.#stopped = resolve;
  });
  /** How many jobs it has ended. */
  done = 0;

  constructor(
    readonly board: Board,
    readonly options: Settled,
    private readonly told: Told,
  ) {
    this.name = options.name;
    this.outage = new Outage(options.log, options.name);
    this.key = board.name;
    this.about = ['META', '3', 'host', hostname(), 'pid', String(process.pid), 'mode', 'node'];
    this.#claims = board.place.open(`${this.name}:claims`);
    this.#events = board.place.open(`${this.name}:events`);
    this.shortest = this.#longest = options.lease ?? LEASE;
    this.leaseWords = options.lease === undefined ? [] : ['LEASE', String(options.lease)];
    this.#sender = new Sender(this);
    this.#behind = options.named;
    this.#claims.onLost = this.troubled;
  }

  start(burst: boolean): void {
    this.#burst = burst;
    this.#sender.start();
    if (this.options.listen) void this.#listen();
    void this.#claimAll().catch((error: unknown) => {
      this.notClaimed();
      this.fail(error);
    });
  }

  // Claims

  /** How many more jobs we would take. */
  get room(): number {
    return this.options.concurrency + this.options.prefetch - this.#busy;
  }

  claimWords(count: number): string[] {
    const { queueWords, fields } = this.options;
    this.#toldAt = this.#troubles;
    this.#asksAll = this.held.size === 0 && this.#hadAll < this.#troubles;
    this.#asksMissed = this.#asksAll || this.#hadMissed < this.#troubles;
    const missed = this.#asksMissed ? ['SEEN', String(this.#asksAll ? this.#left : this.#seen)] : [];
    return [...queueWords, 'COUNT', String(count), ...this.leaseWords, ...missed, 'FIELDS', String(fields.length), ...fields, 'PACKED'];
  }

  /** One of our connections has broken, and answers may be lost with it. */
  readonly troubled = (): void => {
    this.#troubles += 1;
  };

  registration(): string[] {
    const { role, session } = this.options;
    return ['JOB.WORKER', 'REGISTER', this.key, this.name, 'ROLE', role, ...this.about, ...(session ? ['SESSION'] : ['FOR', String(this.#longest)])];
  }

  /** Ends what an earlier process of our name still holds, as lapses. */
  async #startAnew(): Promise<void> {
    try {
      await this.#claims.ask([...this.registration(), 'ANEW'], { patient: false });
      if (!this.options.register) await this.#claims.ask(['JOB.WORKER', 'DEREGISTER', this.key, this.name], { patient: false });
    } catch (error) {
      if (!(error instanceof BoardError)) throw error;
      this.options.log.warn(`${this.name}: what a process of this name held before comes back when its leases end: ${error.message}`);
    }
  }

  /** Takes the right to claim along with an end: how many jobs, or 0. */
  mayChain(): number {
    if (this.#stopping || this.#asked > 0 || this.room <= 0 || this.#burst) return 0;
    this.#asked = this.room;
    return this.#asked;
  }

  /**
   * Takes what a claim has brought, and gives up the right to claim. `sent`: when it was asked, by `performance.now()`.
   * `full`: there may be more at once.
   */
  claimed(records: readonly Reply[], sent: number, full = false): void {
    const asked = this.#asked;
    this.#asked = 0;
    const runs: Run[] = [];
    let otherLease = false;
    const jobs = records.map((record) => new Job(record, this.board.codec));
    const [first] = jobs;
    if (first !== undefined && this.#seen === 0 && !this.#asksMissed) this.#left = first.token - 1; // what has lower tokens is not ours
    for (const job of jobs) {
      const known = job.token <= this.#seen;
      this.#seen = Math.max(this.#seen, job.token);
      if (this.held.has(job.token)) continue;
      const run = new Run(job, this.board, this.name, this.#sender);
      run.lease = this.#leaseOf(job);
      if (run.lease < this.shortest || run.lease > this.#longest) otherLease = true;
      this.shortest = Math.min(this.shortest, run.lease);
      this.#longest = Math.max(this.#longest, run.lease);
      run.returned = this.#asksMissed || known;
      this.keeps(run, sent);
      this.held.set(job.token, run);
      runs.push(run);
    }
    if (records.length < asked) {
      if (this.#asksMissed) this.#hadMissed = this.#toldAt;
      if (this.#asksAll) this.#hadAll = this.#toldAt;
    }
    this.#busy += runs.length;
    if (otherLease) this.#sender.beatSoon(); // heartbeats and the registration follow it
    if (runs.length === 0) {
      // Nothing to do.
    } else if (this.#stopping) {
      for (const run of runs) this.#finished(run, givenBack('the worker stops'));
    } else {
      this.#waiting.push(...runs);
      this.#pump();
    }
    if (!full) this.#changed();
  }

  #leaseOf(job: Job): number {
    if (this.options.lease !== undefined) return this.options.lease;
    const lease = (job.deadline ?? 0) - (job.claimed ?? 0);
    return Math.max(this.#asksMissed ? Math.min(lease, UNCERTAIN) : lease, 1);
  }

  /** Sees which leases we hold now. */
  lookAtLeases(): void {
    if (this.options.lease !== undefined) return;
    this.shortest = this.#longest = LEASE;
    for (const { lease } of this.held.values()) {
      this.shortest = Math.min(this.shortest, lease);
      this.#longest = Math.max(this.#longest, lease);
    }
  }

  /** The claim under way has come to nothing. */
  notClaimed(): void {
    this.#asked = 0;
    this.#changed();
  }

  async #claimAll(): Promise<void> {
    const backoff = new Backoff();
    let troubled = false;
    let kept = !this.options.keep;
    let answered = false;
    while (await this.#mayClaim()) {
      try {
        if (!kept) await this.#keep();
        kept = true;
        if (this.#behind) await this.#startAnew();
        this.#behind = false;
        if (this.#burst) {
          await this.#claimInBurst();
        } else {
          const words = ['JOB.CLAIM', this.key, this.name, ...this.claimWords(this.#asked), 'BLOCK', String(this.options.block)];
          const sent = performance.now();
          const found = this.board.unpacked(await this.#claims.ask(words, { block: this.options.block, patient: false }));
          if (found.length === 0 && this.held.size === 0) this.told.drained();
          this.claimed(found, sent);
        }
        answered = true;
        troubled = false;
        this.outage.back();
        backoff.reset();
      } catch (error) {
        this.notClaimed();
        if (this.#stopping) return;
        const passing = error instanceof ConnectionLost || (answered && error instanceof BoardError && /^(NOAUTH|WRONGPASS)$/.test(error.code));
        if (!passing) throw error;
        if (troubled) this.outage.gone(error, 'claiming'); // the first may be a connection that broke long ago
        troubled = true;
        await this.#until(backoff.take());
      }
    }
  }

  /** Waits until there is room, and takes the right to claim; false when the worker stops. */
  async #mayClaim(): Promise<boolean> {
    while (!this.#stopping && (this.#asked > 0 || this.room <= 0)) await this.#change();
    if (this.#stopping) return false;
    this.#asked = this.room;
    return true;
  }

  async #claimInBurst(): Promise<void> {
    const [ends, idle] = [this.#ends, this.held.size === 0];
    const words = ['JOB.CLAIM', this.key, this.name, ...this.claimWords(this.#asked)];
    const sent = performance.now();
    const found = this.board.unpacked(await this.#claims.ask(words, { patient: true }));
    this.claimed(found, sent);
    if (found.length > 0) return;
    if (idle) this.stop();
    else while (!this.#stopping && this.#ends === ends) await this.#change();
  }

  async #keep(): Promise<void> {
    const names = Object.keys(KEEP) as (keyof typeof KEEP)[];
    try {
      const found = await this.board.settingsGet(names);
      const unset = names.filter((name) => found[name]?.source === 'default');
      if (unset.length > 0) await this.board.settingsSet(Object.fromEntries(unset.map((name) => [name, KEEP[name]])));
    } catch (error) {
      if (!BoardError.is(error, 'NOPERM')) throw error;
      this.options.log.debug(`how long completed jobs are kept is as it was: ${error.message}`);
    }
  }

  // Runs

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
      outcome = await perform(this.board, run.context, this.options.stacks);
    } catch (error) {
      outcome = failed('Unsendable', `how this run ended cannot be sent: ${String(error)}`);
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
      if (this.holds(run)) this.letGo(run, '');
      else this.#changed();
      return;
    }
    let outcome = found;
    if (found.kind === 'unhandled') {
      const { delay, first } = this.#unhandled.wait(found.value as string);
      if (first) this.options.log.warn(`${found.value as string}: such jobs go back to their queue, at no cost, for a worker that has one; is its module imported here?`);
      outcome = givenBack(found.value as string, delay);
    }
    this.#sender.end(run, outcome);
    if (this.#stopping) this.#changed();
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
    this.options.log.debug(`${run.shown} ended as ${outcome.kind} in ${String(took)} ms (queue ${run.job.queue}, attempt ${String(run.job.attempt)})`);
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

  /** The server refuses the end of a run, and may still count its claim: that ends with its lease. */
  leaveToLease(run: Run): void {
    this.#left = Math.max(this.#left, run.token);
  }

  /** We hold this run no more, and nobody has taken its end. */
  letGo(run: Run, why: string): void {
    this.told.lost(run, why);
    this.#forget(run);
  }

  #forget(run: Run): void {
    this.held.delete(run.token);
    this.#ends += 1;
    this.#changed();
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
      this.#finished(run, reason instanceof Lost ? { ...NO_OUTCOME } : givenBack('cancelled'));
    }
  }

  /** Warns once of each run that goes on although it was told to stop. */
  lookForStuck(): void {
    for (const run of this.held.values()) {
      if (run.ended || run.warned || run.told === 0 || run.told > Date.now() - STUCK || this.#stopping) continue;
      run.warned = true;
      this.options.log.warn(
        `${run.shown} still runs, ${String(Math.round((Date.now() - run.told) / 1000))} s after it was told to stop, and holds one of ${String(this.options.concurrency)} places: ` +
          'pass context.signal to what its handler waits for, or call context.check()',
      );
    }
  }

  // Cancels and losses

  async #listen(): Promise<void> {
    const backoff = new Backoff();
    while (!this.#stopping) {
      try {
        const lost = new Promise<void>((resolve) => {
          this.#events.onLost = resolve;
        });
        await this.#events.subscribe([`job.worker:${this.key}:${this.name}`], (message) => {
          this.#hear(message);
        });
        backoff.reset();
        this.#sender.beatSoon(); // what happened while nobody listened is in the answers to heartbeats
        this.#pinging ??= setInterval(() => {
          this.#events.ask(['PING'], { patient: false }).catch(() => undefined);
        }, 3000);
        await lost;
      } catch (error) {
        if (!(error instanceof ConnectionLost)) {
          this.options.log.warn(`cancels are seen at heartbeats only: ${(error as Error).message}`);
          return;
        }
      }
      await this.#until(backoff.take());
    }
  }

  #hear(message: string): void {
    const event = JSON.parse(message) as { event: string; token?: number; reason?: string };
    const run = this.held.get(event.token ?? 0);
    if (run === undefined) return;
    if (event.event === 'cancel') this.cancel(run);
    else if (event.event === 'grace') this.#sender.beatSoon(); // the lease is over: whoever is quick keeps the job
    else if (event.event !== 'lost') return; // a later server's
    else if (event.reason === 'lapsed') {
      this.#lapsed(run);
      this.#sender.beatSoon(); // a late heartbeat takes the job back, if nobody else has it
    } else this.lose(run, event.reason ?? '');
  }

  /** The server has ended a lease. Warns once of the likely cause when it was not over. */
  #lapsed(run: Run): void {
    if (!this.options.named || this.options.session || this.#sharedName || run.context.isLate()) return;
    this.#sharedName = true;
    this.options.log.warn(
      `${this.name}: the lease of ${run.shown} has ended before its time: has another worker of this name started? Each needs a name of its own; without one it makes one up`,
    );
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
    this.#stopping = true;
    for (const run of this.#waiting.splice(0)) this.#finished(run, givenBack('the worker stops'));
    for (const run of this.running()) run.context.goingHome = true;
    clearInterval(this.#pinging);
    this.#claims.close();
    this.#events.close();
    this.#changed();
  }

  /** Whether all handlers have returned in time. */
  async waitIdle(within: number, hurry: Promise<void>): Promise<boolean> {
    return this.#waitFor(() => this.#busy === 0 && this.#asked === 0, within, hurry);
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
    return this.#waitFor(() => this.held.size === 0, within);
  }

  async leave(): Promise<void> {
    await this.#sender.leave();
  }

  async #waitFor(done: () => boolean, within: number, hurry?: Promise<void>): Promise<boolean> {
    const late = { is: false };
    const timer = setTimeout(() => {
      late.is = true;
      this.#changed();
    }, within);
    void hurry?.then(() => {
      late.is = true;
      this.#changed();
    });
    while (!done() && !late.is) await this.#change();
    clearTimeout(timer);
    return done();
  }

  #changed(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const resolve of wake) resolve();
  }

  async #change(): Promise<void> {
    return new Promise((resolve) => this.#wake.push(resolve));
  }

  async #until(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      void this.wantsStop.then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

const NO_OUTCOME: Outcome = { kind: 'nothing', command: '', head: [], options: [] };
