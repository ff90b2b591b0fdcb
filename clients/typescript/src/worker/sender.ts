/** Keeps the leases and sends what handlers say: reports, questions, and how runs end. */
import type { Report } from '../context.js';
import { LONGEST_TIMER } from '../durations.js';
import { BoardError, ConnectionLost, isOutside } from '../errors.js';
import type { Link } from '../link.js';
import type { Row } from '../replies.js';
import type { Word } from '../words.js';
import { Backoff } from './backoff.js';
import { type Asking, Batch, type Waiting } from './batch.js';
import type { Engine } from './engine.js';
import { type Outcome, type Run, type Sending, Writing } from './run.js';

/** Between two sends of reports, ms: what comes faster is put together. */
const REPORT_EVERY = 100;

/** Between two questions whether a run is ours, which was not answered, ms. */
const CONFIRM_EVERY = 1000;

/** The highest number of a chunk. */
const FAR_AHEAD = 2 ** 52;

/**
 * Everything that does not wait for jobs goes over its link, one batch at a time: what comes meanwhile is in the next.
 * What could not be sent stays, and is sent again with the same tokens, so that nothing is done twice.
 */
export class Sender implements Sending {
  readonly #engine: Engine;
  readonly #link: Link;
  readonly #backoff = new Backoff();
  #ends: [Run, Outcome][] = [];
  #reports: [Run, Waiting][] = [];
  #asked: Asking[] = [];
  #waiting: { run: Run; made: number; resolve: () => void }[] = [];
  /** Those who wait for the answer to a heartbeat. */
  readonly #confirming: (() => void)[] = [];
  /** When the last were sent, by `performance.now()`. */
  #reportsAt = -Infinity;
  #beatDue = true;
  #mayRegister: boolean;
  #sending = false;
  #scheduled: NodeJS.Immediate | undefined;
  #now = false;
  #later: NodeJS.Timeout | undefined;
  #beating: NodeJS.Timeout | undefined;
  #beaten = Date.now();
  #troubled = false;
  #closed = false;
  /** The server has seen that the worker claims no more. */
  #claimsGone = false;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#link = engine.board.place.open(`${engine.options.name}:ends`);
    this.#link.onLost = engine.claims.troubled;
    this.#link.onSilent = () => {
      engine.claims.interrupt();
    };
    this.#mayRegister = engine.options.register;
  }

  start(): void {
    this.beatSoon();
  }

  /** Takes the outcome of a run. */
  end(run: Run, outcome: Outcome): void {
    this.#ends.push([run, outcome]);
    this.#soon();
  }

  report(run: Run, { output, ...fields }: Report): void {
    if (output !== undefined) {
      if (!run.writes || run.writing?.takes(output) === true) return;
      run.writing = new Writing();
      run.writing.takes(output);
    }
    run.made += 1;
    this.#reports.push([run, output === undefined ? fields : { chunk: run.writing as Writing }]);
    this.#reportLater(this.#reportsAt + REPORT_EVERY - performance.now());
  }

  /** Waits until the server has answered the reports that this run has made. */
  async flush(run: Run): Promise<void> {
    if (run.answered >= run.made) return;
    const { made } = run;
    const { signal } = run.context;
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#waiting.push({ run, made, resolve: done });
      signal.addEventListener('abort', done);
      this.#soon();
    });
  }

  /**
   * Stores a step, and waits for the answer, however long the server is away: what has been done must not be done
   * again. The stored value, when it is another one.
   */
  async store(run: Run, name: string, data: Word, replace: boolean): Promise<Word | undefined> {
    const found = await this.#ask(run, 'JOB.STEP', [name, data, ...this.#engine.leases.words, ...(replace ? ['REPLACE'] : [])]);
    return found['value'] as Word | undefined;
  }

  /** Asks whether signals and ends of children are there, or gives the job up until they are. */
  async wait(run: Run, words: readonly Word[]): Promise<Row> {
    return this.#ask(run, 'JOB.AWAIT', words);
  }

  async #ask(run: Run, command: Asking['command'], words: readonly Word[]): Promise<Row> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ run, command, words, resolve, reject });
      this.#soon();
    });
  }

  /** Three times in the shortest lease. */
  #beatAgain(): void {
    this.#engine.leases.look(this.#engine.held.values());
    clearTimeout(this.#beating);
    this.#beating = setTimeout(() => {
      this.#lookBack();
      this.#engine.lookForStuck();
      this.beatSoon();
    }, Math.min(this.#engine.leases.shortest / 3, LONGEST_TIMER));
  }

  /**
   * Asks the server whether a run is ours, of which it has said nothing for longer than the lease. Waits however long it
   * is away: what is done next must not be done twice.
   */
  async confirm(run: Run): Promise<void> {
    while (run.context.isLate() && !run.context.mustStop && this.#engine.holds(run) && !this.#closed) {
      const heard = new Promise<void>((resolve) => this.#confirming.push(resolve));
      this.beatSoon();
      await heard;
      if (run.context.isLate()) await new Promise((resolve) => setTimeout(resolve, Math.min(run.lease / 3, CONFIRM_EVERY))); // refused, or slow
    }
  }

  /** A handler looks whether it has to stop, and nobody can be asked before it goes on. */
  late(run: Run): void {
    if (this.#troubled || !this.#engine.holds(run)) return; // a server that is away keeps no time
    // Of a guess nothing follows: the answer to the heartbeat says whether it is ours.
    if (run.isKnown) this.#engine.lose(run, 'its lease has ended while the event loop was blocked, or the process stood still');
    this.beatSoon();
  }

  #confirmed(): void {
    for (const resolve of this.#confirming.splice(0)) resolve();
  }

  /** Asks the server now whether what we hold is ours. */
  beatSoon(): void {
    this.#beatDue = true;
    this.#soon();
  }

  /** Ends the registration, and the link. */
  async leave(): Promise<void> {
    this.#closed = true;
    for (const { command, run, reject } of this.#asked.splice(0)) reject(new ConnectionLost(`the worker stops, and the server cannot be reached: ${command} of ${run.shown} was not sent`));
    this.#confirmed();
    clearTimeout(this.#beating);
    clearTimeout(this.#later);
    if (this.#mayRegister) {
      const { name, key } = this.#engine;
      await this.#link.ask(['JOB.WORKER', 'DEREGISTER', key, name], { patient: false }).catch(() => undefined);
    }
    this.#link.close();
  }

  /** At the end of this turn of the event loop; at once, when nothing runs that could end in it. */
  #soon(): void {
    if (this.#closed || this.#sending) return;
    if (!this.#now && this.#engine.idle) {
      this.#now = true;
      process.nextTick(this.#turn);
    } else if (!this.#now) this.#scheduled ??= setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    if (this.#scheduled !== undefined) clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
    this.#now = false;
    void this.#flush();
  };

  #reportLater(wait: number): void {
    if (wait <= 0) this.#soon();
    else this.#later ??= setTimeout(() => {
      this.#later = undefined;
      this.#soon();
    }, wait);
  }

  async #flush(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    try {
      while (!this.#closed && this.#due()) await this.#send();
    } catch (error) {
      this.#engine.fail(error);
    } finally {
      this.#sending = false;
    }
    if (this.#reports.length > 0) this.#reportLater(REPORT_EVERY);
  }

  /** Reports that are not due wait for ends and questions, before which they have to be sent. */
  #due(): boolean {
    if (this.#ends.length > 0 || this.#asked.length > 0 || this.#beatDue) return true;
    return this.#reports.length > 0 && (this.#waiting.length > 0 || performance.now() - this.#reportsAt >= REPORT_EVERY);
  }

  async #send(): Promise<void> {
    for (let returned = this.#returned(); returned.length > 0; returned = this.#returned()) {
      if (!(await this.#count(returned))) return;
    }
    if (this.#engine.stopping && this.#ends.length > 0 && !this.#claimsGone && !(await this.#lookForClaims())) return;
    const [ends, reports, asked, beat] = [this.#ends, this.#reports, this.#asked, this.#beatDue];
    [this.#ends, this.#reports, this.#asked, this.#beatDue] = [[], [], [], false];
    const batch = new Batch(this.#engine);
    if (reports.length > 0) {
      this.#reportsAt = performance.now();
      batch.addReports(reports);
    }
    batch.addAsked(asked);
    if (beat) {
      this.#beaten = Date.now();
      this.#beatAgain();
      batch.addBeats(this.#mayRegister);
    }
    batch.addEnds(ends);
    if (batch.commands.length === 0) return;
    let replies;
    batch.sent = performance.now();
    try {
      replies = await this.#link.askAll(batch.commands.map(({ words }) => words), { patient: false });
    } catch (error) {
      if (batch.chained) this.#engine.claims.unanswered();
      this.#ends.unshift(...ends);
      this.#reports.unshift(...reports);
      this.#asked.unshift(...asked);
      this.#beatDue = true;
      await this.#bear(error);
      return;
    }
    this.#hearsAgain();
    batch.take(replies);
    if (beat) this.#confirmed();
    if (batch.notRegistered) this.#mayRegister = false;
    this.#ends.push(...batch.instead);
    if (reports.length > 0) this.#answered(reports);
  }

  #answered(reports: readonly [Run, Waiting][]): void {
    for (const [run] of reports) run.answered += 1;
    this.#waiting = this.#waiting.filter(({ run, made, resolve }) => {
      if (run.answered < made) return true;
      resolve();
      return false;
    });
  }

  #hearsAgain(): void {
    this.#backoff.reset();
    this.#engine.outage.back();
    this.#troubled = false;
  }

  /** Runs that are about to write, and may have written under the same claim before. */
  #returned(): Run[] {
    if (this.#reports.length === 0) return [];
    return [...new Set(this.#reports.filter(([run, { chunk }]) => run.returned && chunk !== undefined).map(([run]) => run))];
  }

  /**
   * Asks how many chunks those were: the refusal of one that lies far ahead says so. No other right is needed for
   * that than to write. False when there is no answer.
   */
  async #count(runs: readonly Run[]): Promise<boolean> {
    const { key, name } = this.#engine;
    try {
      for (const run of runs) {
        const words = ['JOB.HEARTBEAT', key, name, run.id, 'TOKEN', String(run.token), 'OUTPUT', String(FAR_AHEAD), '-'];
        await this.#link.ask(words, { patient: false }).catch((error: unknown) => {
          if (!(error instanceof BoardError)) throw error;
          if (error.code === 'GAP') run.written = Number(error.detail.split(' ').at(-1)) - 1;
          // Another refusal comes again, and is told, with the chunk itself.
        });
        run.returned = false;
      }
    } catch (error) {
      await this.#bear(error);
      return false;
    }
    this.#hearsAgain();
    return true;
  }

  /**
   * Waits until the server has seen the end of the connection that claims: else it could give that what we give back. It
   * has read a last claim in the turn in which it answers the first time, and the end behind it in that of the second.
   * False when there is no answer.
   */
  async #lookForClaims(): Promise<boolean> {
    try {
      for (let turn = 0; turn < 2; turn += 1) {
        await this.#link.ask(['PING'], { patient: false }).catch((error: unknown) => {
          if (!(error instanceof BoardError)) throw error; // a refusal is an answer, too
        });
      }
    } catch (error) {
      await this.#bear(error);
      return false;
    }
    this.#claimsGone = true;
    this.#hearsAgain();
    return true;
  }

  async #bear(error: unknown): Promise<void> {
    if (!(error instanceof ConnectionLost) && !isOutside(error)) throw error; // at the start `Claims` throws both
    // The first failure may be that of a connection which broke long ago, unused.
    if (this.#troubled) this.#engine.outage.gone(error, 'ends and leases');
    this.#troubled = true;
    const wait = this.#backoff.take();
    await new Promise((resolve) => setTimeout(resolve, wait));
  }

  /** Tells when leases were kept too late, although the server could be reached. */
  #lookBack(): void {
    const late = Date.now() - this.#beaten;
    const { log } = this.#engine.options;
    const known = [...this.#engine.held.values()].filter((run) => run.isKnown);
    const lease = known.reduce((least, run) => Math.min(least, run.lease), Infinity);
    if (late > lease && !this.#troubled) {
      log.warn(
        `no heartbeat for ${(late / 1000).toFixed(1)} s, longer than the lease of ${String(lease / 1000)} s, so jobs may have been lost: ` +
          'a handler kept the event loop to itself (let it compute in a worker thread), or the machine slept; a longer lease bears more',
      );
    }
  }
}
