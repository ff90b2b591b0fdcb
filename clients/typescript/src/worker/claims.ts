/**
 * How a worker claims: when, how many, and what it may have missed.
 *
 * One claim is under way at a time (`asked`), so `SEEN` is exact: all tokens up to it have arrived. An end that is
 * sent while nobody claims takes the next jobs along (`CONSUME … CLAIM`).
 *
 * A claim asks for what it may have missed (`SEEN`) only after a connection has broken: then a reply may be lost. It asks
 * until one brings fewer jobs than it asked for. Such a claim gets what was missed before what is new. Once one is answered,
 * the server has read those before it: what comes is new when those that follow have brought as many jobs as claims without
 * an answer may have taken. The server may also still count claims that we have ended: a failover can lose an end that the
 * former primary had taken. A worker that holds nothing therefore asks for all its claims, and does those jobs again.
 * Without such trouble nothing comes that was claimed before: of two workers with one name neither works on what the other
 * has claimed.
 */
import { BoardError, ConnectionLost, isOutside } from '../errors.js';
import { Job } from '../jobs.js';
import type { Link } from '../link.js';
import type { Reply } from '../replies.js';
import { Backoff } from './backoff.js';
import type { Engine } from './engine.js';
import type { Run } from './run.js';

/** How long completed jobs are kept unless told otherwise; how many of them, the server says. */
const KEEP_FOR = '1h';

export class Claims {
  readonly #engine: Engine;
  readonly #link: Link;
  readonly #burst: boolean;
  /** How many jobs the claim under way asks for. */
  #asked = 0;
  #seen = 0;
  /** The highest token that the server has published something of before its claim has arrived, or 0. */
  #early = 0;
  /** The highest token of the claims that we have left to their leases, as their ends were refused. */
  #left = 0;
  /** How often one of the worker's connections has broken. */
  #troubles = 0;
  /** `#troubles` when the claim under way was sent. */
  #toldAt = 0;
  /** What the claim under way asks for: all claims of ours, or those above the last that has arrived. */
  #asksAll = false;
  #asksMissed = false;
  /**
   * How many jobs claims without an answer may have taken, that have not arrived. An earlier process of our name may have
   * any number, unless it was ended.
   */
  #missing: number;
  /** A claim that was sent after them, and asked for them, was answered. */
  #looked = false;
  /** `#troubles` at the last claim that has brought all that the board had above the last token, and all. */
  #hadMissed = 0;
  #hadAll = 0;
  /** An earlier process of our name may still hold jobs. */
  #behind: boolean;
  /** The server had no room for a setting. */
  #isFull = false;

  constructor(engine: Engine, burst: boolean) {
    this.#engine = engine;
    this.#burst = burst;
    this.#link = engine.board.place.open(`${engine.name}:claims`);
    this.#behind = engine.options.named;
    this.#missing = this.#behind ? Infinity : 0;
    this.#link.onLost = this.troubled;
  }

  /** One of the worker's connections has broken, and answers may be lost with it. */
  readonly troubled = (): void => {
    this.#troubles += 1;
  };

  /** A claim is under way. */
  get underWay(): boolean {
    return this.#asked > 0;
  }

  /** The words of a claim, which is sent now. */
  words(count: number): string[] {
    const { options, held, leases } = this.#engine;
    const { queueWords, fields } = options;
    this.#toldAt = this.#troubles;
    this.#asksAll = held.size === 0 && this.#hadAll < this.#troubles;
    this.#asksMissed = this.#asksAll || this.#hadMissed < this.#troubles;
    const missed = this.#asksMissed ? ['SEEN', String(this.#asksAll ? this.#left : this.#seen)] : [];
    return [...queueWords, 'COUNT', String(count), ...leases.words, ...missed, 'FIELDS', String(fields.length), ...fields, 'PACKED'];
  }

  /** Takes the right to claim along with an end: how many jobs, or 0. */
  mayChain(): number {
    const { stopping, room } = this.#engine;
    if (stopping || this.#asked > 0 || room <= 0 || this.#burst) return 0;
    this.#asked = room;
    return this.#asked;
  }

  /**
   * Takes what a claim has brought, and gives up the right to claim. `sent`: when it was asked, by `performance.now()`.
   * `full`: there may be more at once.
   */
  brought(records: readonly Reply[], sent: number, full = false): void {
    const engine = this.#engine;
    const asked = this.#asked;
    this.#asked = 0;
    const runs: Run[] = [];
    const jobs = records.map((record) => new Job(record, engine.board.codec));
    const [first] = jobs;
    const seen = this.#seen;
    const looked = this.#looked; // the server has read them all once a claim behind them was answered
    if (first !== undefined && seen === 0 && !this.#asksMissed) this.#left = first.token - 1; // what has lower tokens is not ours
    for (const job of jobs) {
      const known = job.token <= this.#seen;
      let isNew = !this.#asksMissed;
      if (job.token > seen) {
        isNew ||= this.#missing === 0;
        if (looked) this.#missing = Math.max(this.#missing - 1, 0);
      }
      this.#seen = Math.max(this.#seen, job.token);
      if (engine.held.has(job.token)) continue;
      const run = engine.runOf(job);
      run.lease = engine.leases.of(job, isNew);
      run.isKnown = isNew || engine.options.lease !== undefined;
      run.returned = this.#asksMissed || known;
      runs.push(run);
    }
    const isShort = records.length < asked;
    this.#looked = this.#asksMissed;
    // A claim that does not ask for what was missed says nothing about it, until it brings a job: what an earlier process
    // of our name holds has lower tokens, and is not asked for any more.
    if (this.#asksMissed ? isShort : this.#seen > 0) this.#missing = 0;
    if (isShort) {
      if (this.#asksMissed) this.#hadMissed = this.#toldAt;
      if (this.#asksAll) this.#hadAll = this.#toldAt;
    }
    engine.take(runs, sent);
    if (this.#early > 0 && this.#early <= this.#seen) {
      this.#early = 0;
      engine.beatSoon();
    }
    if (!full) engine.changes.changed();
  }

  /** The server has published something of a claim that we do not hold. When it arrives, a heartbeat asks what it was. */
  heardOf(token: number): void {
    if (token > this.#seen) this.#early = Math.max(this.#early, token);
  }

  /** The worker is subscribed now. The server may have published something before of the jobs that the claim under way brings. */
  listens(): void {
    if (this.underWay) this.heardOf(this.#seen + 1);
  }

  /** The claim under way has got no answer, and may have taken jobs. */
  unanswered(): void {
    this.troubled(); // the connection need not have broken: one command may be refused, and the claim not
    // All but the first ask for what was missed, and so get what another has taken, or take as much.
    const { concurrency, prefetch } = this.#engine.options;
    this.#missing = Math.max(this.#missing, Math.min(this.#missing + this.#asked, 2 * (concurrency + prefetch)));
    this.#looked = false;
    this.notClaimed();
  }

  /** The claim under way has come to nothing. */
  notClaimed(): void {
    this.#asked = 0;
    this.#engine.changes.changed();
  }

  /** The server refuses the end of a run, and may still count its claim: that ends with its lease. */
  leave(run: Run): void {
    this.#left = Math.max(this.#left, run.token);
  }

  /** Ends a claim that waits: another connection has found the server silent, which this one would notice after the wait. */
  interrupt(): void {
    this.#link.interrupt();
  }

  close(): void {
    this.#link.close();
  }

  /** Claims until the worker stops; raises what no waiting heals. */
  async run(): Promise<void> {
    const engine = this.#engine;
    const backoff = new Backoff();
    let troubled = false;
    let kept = !engine.options.keep;
    let answered = false;
    while (await this.#mayClaim()) {
      try {
        if (!kept) kept = await this.#keep();
        if (this.#behind) await this.#startAnew();
        this.#behind = false;
        if (this.#burst) await this.#claimInBurst();
        else await this.#claim();
        answered = true;
        troubled = false;
        engine.outage.back();
        backoff.reset();
      } catch (error) {
        this.unanswered();
        if (engine.stopping) return;
        const passing = error instanceof ConnectionLost || (answered && isOutside(error));
        if (!passing) throw error;
        if (troubled) engine.outage.gone(error, 'claiming'); // the first may be a connection that broke long ago
        troubled = true;
        await engine.pause(backoff.take());
      }
    }
  }

  /** Waits until there is room, and takes the right to claim; false when the worker stops. */
  async #mayClaim(): Promise<boolean> {
    const engine = this.#engine;
    while (!engine.stopping && (this.#asked > 0 || engine.room <= 0)) await engine.changes.next();
    if (engine.stopping) return false;
    this.#asked = engine.room;
    return true;
  }

  async #claim(): Promise<void> {
    const { key, name, options, held, told } = this.#engine;
    const words = ['JOB.CLAIM', key, name, ...this.words(this.#asked), 'BLOCK', String(options.block)];
    const sent = performance.now();
    const found = this.#engine.board.unpacked(await this.#link.ask(words, { block: options.block, patient: false }));
    if (found.length === 0 && held.size === 0) told.drained();
    this.brought(found, sent);
  }

  async #claimInBurst(): Promise<void> {
    const engine = this.#engine;
    const [ends, idle] = [engine.ends, engine.held.size === 0];
    const words = ['JOB.CLAIM', engine.key, engine.name, ...this.words(this.#asked)];
    const sent = performance.now();
    const found = engine.board.unpacked(await this.#link.ask(words, { patient: true }));
    this.brought(found, sent);
    if (found.length > 0) return;
    if (idle) engine.stop();
    else while (!engine.stopping && engine.ends === ends) await engine.changes.next();
  }

  /** Ends what an earlier process of our name still holds, as lapses. */
  async #startAnew(): Promise<void> {
    const { key, name, options } = this.#engine;
    try {
      await this.#link.ask([...this.#engine.registration(), 'ANEW'], { patient: false });
      this.#missing = 0;
      if (!options.register) await this.#link.ask(['JOB.WORKER', 'DEREGISTER', key, name], { patient: false });
    } catch (error) {
      if (!(error instanceof BoardError)) throw error;
      options.log.warn(`${name}: what a process of this name held before comes back when its leases end: ${error.message}`);
    }
  }

  /** Sets how long completed jobs are kept, where nobody has; whether that is done. */
  async #keep(): Promise<boolean> {
    const { board, options } = this.#engine;
    const wanted = { 'retain-complete': KEEP_FOR, ...(typeof options.keep === 'number' ? { 'keep-complete': options.keep } : {}) };
    const names = Object.keys(wanted) as (keyof typeof wanted)[];
    try {
      const found = await board.settingsGet(names);
      const unset = names.filter((name) => found[name]?.source === 'default');
      if (unset.length > 0) await board.settingsSet(Object.fromEntries(unset.map((name) => [name, wanted[name]])));
    } catch (error) {
      if (BoardError.is(error, 'OOM')) {
        // A full server gets room when jobs are done: a later claim tries again.
        if (!this.#isFull) options.log.warn(`${options.name}: how long completed jobs are kept is set when the server has room: ${error.message}`);
        this.#isFull = true;
        return false;
      }
      if (!BoardError.is(error, 'NOPERM')) throw error;
      options.log.debug(`how long completed jobs are kept is as it was: ${error.message}`);
    }
    return true;
  }
}
