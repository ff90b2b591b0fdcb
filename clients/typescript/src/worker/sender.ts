/** Keeps the leases and sends what handlers say: reports, and how runs end. */
import type { Report } from '../context.js';
import { BoardError, ConnectionLost, LOST, Refused } from '../errors.js';
import type { Link } from '../link.js';
import { list, mapping, orRefused, type Reply, text } from '../replies.js';
import type { Word } from '../words.js';
import { optionWords, counted } from '../words.js';
import { Backoff } from './backoff.js';
import type { Engine } from './engine.js';
import { failed, givenBack, type Outcome, type Run, Writing } from './run.js';

/** Leases kept by one command. */
const BEATS = 1000;
/** Between two sends of reports, ms: what comes faster is put together. */
const REPORT_EVERY = 100;

/** The highest number of a chunk. */
const FAR_AHEAD = 2 ** 52;

/** A report that waits to be sent. */
type Waiting = Omit<Report, 'output'> & { readonly chunk?: Writing };

/** A step that is to be stored. */
interface Storing {
  readonly run: Run;
  readonly name: string;
  readonly data: Word;
  readonly replace: boolean;
  readonly resolve: (other: Word | undefined) => void;
  readonly reject: (error: unknown) => void;
}

interface Command {
  readonly words: readonly Word[];
  /** Takes the reply, or the refusal. */
  readonly take: (reply: Reply, refused: BoardError | undefined) => void;
}

/**
 * Everything that does not wait for jobs goes over its link, one batch at a time: what comes meanwhile is in the next.
 * What could not be sent stays, and is sent again with the same tokens, so that nothing is done twice.
 */
export class Sender {
  readonly #engine: Engine;
  readonly #link: Link;
  readonly #backoff = new Backoff();
  #ends: [Run, Outcome][] = [];
  #reports: [Run, Waiting][] = [];
  #steps: Storing[] = [];
  #waiting: { run: Run; made: number; resolve: () => void }[] = [];
  #reportsAt = 0;
  #beatDue = true;
  #mayRegister: boolean;
  #sending = false;
  #scheduled = false;
  #later: NodeJS.Timeout | undefined;
  #beating: NodeJS.Timeout | undefined;
  #beaten = Date.now();
  #troubled = false;
  #closed = false;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#link = engine.board.place.open(`${engine.options.name}:ends`);
    this.#mayRegister = engine.options.register;
  }

  start(): void {
    const every = this.#engine.options.lease / 3;
    this.#beating = setInterval(() => {
      this.#lookBack();
      this.#engine.lookForStuck();
      this.beatSoon();
    }, every);
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
    const wait = this.#reportsAt + REPORT_EVERY - Date.now();
    if (wait <= 0) this.#soon();
    else this.#later ??= setTimeout(() => {
      this.#later = undefined;
      this.#soon();
    }, wait);
  }

  /** Waits until the server has answered the reports that this run has made. */
  async flush(run: Run): Promise<void> {
    if (run.answered >= run.made) return;
    const { made } = run;
    const done = new Promise<void>((resolve) => {
      this.#waiting.push({ run, made, resolve });
      run.context.signal.addEventListener('abort', () => {
        resolve();
      });
    });
    this.#soon();
    await done;
  }

  /**
   * Stores a step, and waits for the answer, however long the server is away: what has been done must not be done
   * again. The stored value, when it is another one.
   */
  async store(run: Run, name: string, data: Word, replace: boolean): Promise<Word | undefined> {
    return new Promise((resolve, reject) => {
      this.#steps.push({ run, name, data, replace, resolve, reject });
      this.#soon();
    });
  }

  /** Asks the server now whether what we hold is ours. */
  beatSoon(): void {
    this.#beatDue = true;
    this.#soon();
  }

  /** Ends the registration, and the link. */
  async leave(): Promise<void> {
    this.#closed = true;
    for (const { name, reject } of this.#steps.splice(0)) reject(new ConnectionLost(`the worker stops, and the server cannot be reached: '${name}' is not stored`));
    clearInterval(this.#beating);
    clearTimeout(this.#later);
    if (this.#mayRegister) {
      const { name, key } = this.#engine;
      await this.#link.ask(['JOB.WORKER', 'DEREGISTER', key, name], { key, patient: false }).catch(() => undefined);
    }
    this.#link.close();
  }

  #soon(): void {
    if (this.#closed || this.#sending || this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    try {
      while (!this.#closed && (this.#ends.length > 0 || this.#steps.length > 0 || this.#beatDue || this.#reportsDue())) await this.#send();
    } catch (error) {
      this.#engine.fail(error);
    } finally {
      this.#sending = false;
    }
    if (this.#reports.length > 0) this.#later ??= setTimeout(() => {
      this.#later = undefined;
      this.#soon();
    }, REPORT_EVERY);
  }

  #reportsDue(): boolean {
    return this.#reports.length > 0 && (this.#ends.length > 0 || this.#waiting.length > 0 || Date.now() - this.#reportsAt >= REPORT_EVERY);
  }

  async #send(): Promise<void> {
    for (let returned = this.#returned(); returned.length > 0; returned = this.#returned()) {
      if (!(await this.#count(returned))) return;
    }
    const ends = this.#ends.splice(0);
    const reports = this.#reports.splice(0);
    const steps = this.#steps.splice(0);
    const beat = this.#beatDue;
    this.#beatDue = false;
    const commands: Command[] = [];
    if (reports.length > 0) {
      this.#reportsAt = Date.now();
      for (const [run, { chunk }] of reports) if (chunk !== undefined) run.numbered(chunk);
      this.#addReports(commands, reports);
    }
    for (const step of steps) commands.push(this.#step(step));
    if (beat) this.#addBeats(commands);
    const chained = this.#addEnds(commands, ends);
    if (commands.length === 0) return;
    const replies = await Promise.allSettled(commands.map(async ({ words }) => this.#link.ask(words, { key: this.#engine.key, binary: this.#engine.board.binary, patient: false })));
    const trouble = replies.find((one): one is PromiseRejectedResult => one.status === 'rejected' && !(one.reason instanceof BoardError));
    if (trouble) {
      if (chained) this.#engine.notClaimed();
      this.#ends.unshift(...ends);
      this.#reports.unshift(...reports);
      this.#steps.unshift(...steps);
      this.#beatDue = true;
      await this.#bear(trouble.reason);
      return;
    }
    this.#hearsAgain();
    replies.forEach((reply, at) => {
      const { take } = commands[at] as Command;
      if (reply.status === 'fulfilled') take(reply.value, undefined);
      else take(null, reply.reason as BoardError);
    });
    for (const [run] of reports) run.answered += 1;
    this.#waiting = this.#waiting.filter(({ run, made, resolve }) => {
      if (run.answered < made) return true;
      resolve();
      return false;
    });
  }

  #hearsAgain(): void {
    this.#backoff.reset();
    if (this.#troubled) this.#engine.options.log.info(`${this.#engine.name} hears from the server again`);
    this.#troubled = false;
  }

  /** Runs that are about to write, and of which earlier workers of our name may have written. */
  #returned(): Run[] {
    return [...new Set(this.#reports.filter(([run, { chunk }]) => run.returned && chunk !== undefined).map(([run]) => run))];
  }

  /**
   * Asks how many chunks they have written: the refusal of one that lies far ahead says so. No other right is needed for
   * that than to write. False when there is no answer.
   */
  async #count(runs: readonly Run[]): Promise<boolean> {
    const { key, name } = this.#engine;
    try {
      for (const run of runs) {
        const words = ['JOB.HEARTBEAT', key, name, run.id, 'TOKEN', String(run.token), 'OUTPUT', String(FAR_AHEAD), '-'];
        await this.#link.ask(words, { key, patient: false }).catch((error: unknown) => {
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

  async #bear(error: unknown): Promise<void> {
    if (!(error instanceof ConnectionLost)) throw error;
    // The first failure may be that of a connection which broke long ago, unused.
    if (this.#troubled) this.#engine.options.log.warn(`${this.#engine.name}: ends and leases wait: ${error.message}`);
    this.#troubled = true;
    const wait = this.#backoff.take();
    await new Promise((resolve) => setTimeout(resolve, wait));
  }

  // Reports

  /** Those of one run are put together, up to its next log line or chunk of output. */
  #addReports(commands: Command[], reports: readonly [Run, Waiting][]): void {
    const merged = new Map<Run, Waiting>();
    for (const [run, fields] of reports) {
      const found = merged.get(run);
      if (found === undefined) merged.set(run, { ...fields });
      else if ((['log', 'chunk'] as const).some((one) => fields[one] !== undefined && found[one] !== undefined)) {
        commands.push(this.#report(run, found));
        merged.set(run, { ...fields });
      } else merged.set(run, { ...found, ...fields, ...(found.meta || fields.meta ? { meta: { ...found.meta, ...fields.meta } } : {}), ...(found.costs || fields.costs ? { costs: { ...found.costs, ...fields.costs } } : {}) });
    }
    for (const [run, fields] of merged) commands.push(this.#report(run, fields));
  }

  #report(run: Run, { chunk, ...fields }: Waiting): Command {
    const { name, key, board, options } = this.#engine;
    const output = chunk === undefined ? {} : { output: [chunk.number, chunk.data] };
    const words = optionWords('JOB.HEARTBEAT', { token: run.token, lease: `${String(options.lease)}ms`, ...fields, ...output }, board.codec);
    return {
      words: ['JOB.HEARTBEAT', key, name, run.id, ...words],
      take: (reply, refused) => {
        if (refused === undefined) this.#heard(run, reply);
        else if (LOST.has(refused.code)) this.#engine.lose(run, refused.message);
        else if (refused.code === 'GAP' || refused.message === 'LIMIT output-bytes') {
          if (run.writes) options.log.warn(`${run.shown}: its output is written no longer: ${refused.message}`);
          run.writes = false;
        } else options.log.warn(`${run.shown}: a report was refused: ${refused.message}`);
      },
    };
  }

  #heard(run: Run, reply: Reply): void {
    const found = orRefused(reply, mapping);
    if (found instanceof Refused) {
      if (LOST.has(found.code)) this.#engine.lose(run, `${found.code} ${found.detail}`);
    } else if (found['cancel'] === 1) this.#engine.cancel(run);
  }

  #step({ run, name, data, replace, resolve, reject }: Storing): Command {
    const { key, options } = this.#engine;
    return {
      words: ['JOB.STEP', key, this.#engine.name, run.id, name, data, 'TOKEN', String(run.token), 'LEASE', String(options.lease), ...(replace ? ['REPLACE'] : [])],
      take: (reply, refused) => {
        if (refused) {
          if (LOST.has(refused.code)) this.#engine.lose(run, refused.message);
          reject(refused);
          return;
        }
        const found = mapping(reply, { value: (other) => other }) as { deadline: number; cancel: number; value?: Word };
        if (found.deadline === 0) this.#engine.lose(run, 'its lease has ended, and another job has its place');
        else if (found.cancel === 1) this.#engine.cancel(run);
        resolve(found.value);
      },
    };
  }

  // Leases

  #addBeats(commands: Command[]): void {
    const { name, key, options } = this.#engine;
    this.#beaten = Date.now();
    if (this.#mayRegister) {
      commands.push({
        words: ['JOB.WORKER', 'REGISTER', key, name, 'ROLE', options.role, ...this.#engine.about, ...(options.session ? ['SESSION'] : ['FOR', String(options.lease)])],
        take: (_, refused) => {
          if (refused === undefined) return;
          options.log.warn(`${name} works without being registered: ${refused.message}`);
          this.#mayRegister = refused.code === 'OOM'; // a full server may have room at the next beat
        },
      });
    }
    const runs = [...this.#engine.held.values()].filter((run) => !run.context.lost);
    for (let start = 0; start < runs.length; start += BEATS) {
      const some = runs.slice(start, start + BEATS);
      const words = [...counted('', some.map((run) => run.id)).slice(1), ...counted('TOKENS', some.map((run) => String(run.token)))];
      commands.push({
        words: ['JOB.MHEARTBEAT', key, name, ...words, 'LEASE', String(options.lease)],
        take: (reply, refused) => {
          if (refused) options.log.error(`leases of ${key} not kept: ${refused.message}`);
          else list(reply).forEach((one, at) => {
            this.#heard(some[at] as Run, one);
          });
        },
      });
    }
  }

  /** Tells when leases were kept too late, although the server could be reached. */
  #lookBack(): void {
    const late = Date.now() - this.#beaten;
    const { lease, log } = this.#engine.options;
    if (late > lease && this.#engine.held.size > 0 && !this.#troubled) {
      log.warn(
        `no heartbeat for ${(late / 1000).toFixed(1)} s, longer than the lease of ${String(lease / 1000)} s, so jobs may have been lost: ` +
          'a handler kept the event loop to itself (let it compute in a worker thread), or the machine slept; a longer lease bears more',
      );
    }
  }

  // Ends

  /** Plain completions share a command; the last command may claim the next jobs: whether it does. */
  #addEnds(commands: Command[], ends: readonly [Run, Outcome][]): boolean {
    if (ends.length === 0) return false;
    const { name, key } = this.#engine;
    const plain = { with: [] as [Run, Outcome][], without: [] as [Run, Outcome][] };
    const found: Command[] = [];
    for (const end of ends) {
      if (end[1].data === undefined || this.#alone.has(end[0])) found.push(this.#end(...end));
      else plain[end[1].data === null ? 'without' : 'with'].push(end);
    }
    for (const alike of [plain.with, plain.without]) {
      if (alike.length === 1) found.push(this.#end(...(alike[0] as [Run, Outcome])));
      else if (alike.length > 1) found.push(this.#endTogether(key, name, alike));
    }
    const count = this.#engine.mayChain();
    if (count > 0) {
      const last = found[found.length - 1] as Command;
      found[found.length - 1] = {
        words: [...last.words, 'CLAIM', ...this.#engine.claimWords(count)],
        take: (reply, refused) => {
          if (refused) {
            this.#engine.notClaimed();
            last.take(reply, refused);
            return;
          }
          const [ended, claimed] = list(reply);
          last.take(ended as Reply, undefined);
          this.#engine.claimed(list(claimed), list(claimed).length === count);
        },
      };
    }
    commands.push(...found);
    return count > 0;
  }

  readonly #alone = new Set<Run>();

  #end(run: Run, outcome: Outcome): Command {
    return {
      words: [outcome.command, this.#engine.key, this.#engine.name, run.id, ...outcome.head, 'TOKEN', String(run.token), ...outcome.options],
      take: (reply, refused) => {
        if (refused) this.#refused(run, outcome, refused);
        else {
          this.#alone.delete(run);
          this.#engine.hasEnded(run, outcome, reply);
        }
      },
    };
  }

  #endTogether(key: string, name: string, ends: readonly [Run, Outcome][]): Command {
    const words: Word[] = ['JOB.MCONSUME', key, name, String(ends.length), ...ends.map(([run]) => run.id)];
    words.push(...counted('TOKENS', ends.map(([run]) => String(run.token))));
    if (ends[0]?.[1].data !== null) words.push(...counted('RESULTS', ends.map(([, outcome]) => outcome.data as Word)));
    return {
      words,
      take: (reply, refused) => {
        if (refused) {
          // Whose fault it was is told when each is sent on its own.
          for (const end of ends) {
            this.#alone.add(end[0]);
            this.end(...end);
          }
          return;
        }
        list(reply).forEach((one, at) => {
          const [run, outcome] = ends[at] as [Run, Outcome];
          const answer = orRefused(one, text);
          if (answer instanceof Refused) this.#refused(run, outcome, answer.error());
          else this.#engine.hasEnded(run, outcome, answer);
        });
      },
    };
  }

  #refused(run: Run, outcome: Outcome, error: BoardError): void {
    const { log } = this.#engine.options;
    this.#alone.delete(run);
    if (error.code === 'CANCELLED' && error.message.includes('requested') && outcome.kind !== 'giveBack') {
      this.end(run, givenBack('cancelled'));
    } else if (error.code === 'ERR' && outcome.instead !== undefined) {
      log.error(`${run.shown}: the server refuses its pause: ${error.message}`);
      this.end(run, outcome.instead());
    } else if (error.code === 'ERR' && outcome.kind !== 'fail' && outcome.kind !== 'giveBack') {
      log.error(`${run.shown}: the server refuses its end: ${error.message}`);
      this.end(run, failed('Refused', error.message.slice(0, 200)));
    } else {
      log.warn(`${run.shown} was lost: its end was refused: ${error.message}`);
      this.#engine.letGo(run, error.message);
    }
  }
}
