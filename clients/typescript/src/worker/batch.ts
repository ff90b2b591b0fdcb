/** What a worker sends at once: commands, and what their replies mean for its runs. */
import { type BoardError, LOST, Refused } from '../errors.js';
import { list, mapping, orRefused, type Reply, type Row, text } from '../replies.js';
import { counted, optionWords, type Word } from '../words.js';
import type { Report } from '../context.js';
import type { Engine } from './engine.js';
import { failed, givenBack, type Outcome, type Run, type Writing } from './run.js';

/** Leases kept by one command. */
const BEATS = 1000;

/** A report that waits to be sent. */
export type Waiting = Omit<Report, 'output'> & { readonly chunk?: Writing };

/** A handler's question, whose answer it waits for: a step to store, a wait for signals or children. */
export interface Asking {
  readonly run: Run;
  readonly command: 'JOB.STEP' | 'JOB.AWAIT';
  /** Those behind the job's id. */
  readonly words: readonly Word[];
  readonly resolve: (answer: Row) => void;
  readonly reject: (error: unknown) => void;
}

interface Command {
  readonly words: readonly Word[];
  /** Takes the reply, or the refusal. */
  readonly take: (reply: Reply, refused: BoardError | undefined) => void;
}

export class Batch {
  readonly commands: Command[] = [];
  /** Its last command claims jobs as well. */
  chained = false;
  /** When it was sent, by `performance.now()`. */
  sent = 0;
  /** Ends that are to be sent in place of refused ones. */
  readonly instead: [Run, Outcome][] = [];
  /** The server does not register the worker, and will not. */
  notRegistered = false;
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Takes the replies, in the order of the commands. */
  take(replies: readonly (Reply | BoardError)[]): void {
    for (const [at, { take }] of this.commands.entries()) {
      const reply = replies[at] as Reply | BoardError;
      try {
        if (reply instanceof Error) take(null, reply);
        else take(reply, undefined);
      } catch (error) {
        this.#engine.fail(error); // of a program's listener, say: the others are told all the same
      }
    }
  }

  // Reports

  /** Those of one run are put together, up to its next log line or chunk of output. */
  addReports(reports: readonly [Run, Waiting][]): void {
    const merged = new Map<Run, Waiting>();
    for (const [run, fields] of reports) {
      if (fields.chunk !== undefined) run.numbered(fields.chunk);
      const found = merged.get(run);
      if (found === undefined) merged.set(run, fields);
      else if ((['log', 'chunk'] as const).some((one) => fields[one] !== undefined && found[one] !== undefined)) {
        this.commands.push(this.#report(run, found));
        merged.set(run, fields);
      } else merged.set(run, together(found, fields));
    }
    for (const [run, fields] of merged) this.commands.push(this.#report(run, fields));
  }

  #report(run: Run, { chunk, payload, ...fields }: Waiting): Command {
    const { name, key, board, options, leases } = this.#engine;
    const output = chunk === undefined ? {} : { output: [chunk.number, chunk.data] };
    const words = optionWords('JOB.HEARTBEAT', { token: run.token, ...fields, ...output }, board.codec);
    if (payload !== undefined) words.push('PAYLOAD', payload);
    return {
      words: ['JOB.HEARTBEAT', key, name, run.id, ...leases.words, ...words],
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
    if (!(found instanceof Refused)) {
      this.#engine.keeps(run, this.sent);
      if (found['cancel'] === 1) this.#engine.cancel(run);
    } else if (LOST.has(found.code) && this.#engine.holds(run)) {
      // One that was given up may have had its lease sent along with that.
      this.#engine.lose(run, `${found.code} ${found.detail}`);
    }
  }

  // Questions

  addAsked(asked: readonly Asking[]): void {
    const { name, key } = this.#engine;
    for (const { run, command, words, resolve, reject } of asked) {
      this.commands.push({
        words: [command, key, name, run.id, ...words, 'TOKEN', String(run.token)],
        take: (reply, refused) => {
          if (refused !== undefined) {
            if (LOST.has(refused.code)) this.#engine.lose(run, refused.message);
            reject(run.context.reason ?? refused);
            return;
          }
          const found = mapping(reply, { value: (one) => one, signals: (all) => all });
          if (found['deadline'] === undefined) this.#engine.giveUp(run);
          else if (found['deadline'] === 0) this.#engine.lose(run, 'its lease has ended, and another job has its place');
          else {
            if (command === 'JOB.STEP') this.#engine.keeps(run, this.sent);
            if (found['cancel'] === 1) this.#engine.cancel(run);
          }
          resolve(found);
        },
      });
    }
  }

  // Leases

  /** Keeps all leases, and says that the worker is there. */
  addBeats(register: boolean): void {
    const { name, key, options } = this.#engine;
    if (register) {
      this.commands.push({
        words: this.#engine.registration(),
        take: (_, refused) => {
          if (refused === undefined) return;
          options.log.warn(`${name} works without being registered: ${refused.message}`);
          this.notRegistered = refused.code !== 'OOM'; // a full server may have room at the next beat
        },
      });
    }
    const runs = [...this.#engine.held.values()].filter((run) => !run.context.lost);
    for (let start = 0; start < runs.length; start += BEATS) {
      const some = runs.slice(start, start + BEATS);
      const words = [...counted('', some.map((run) => run.id)).slice(1), ...counted('TOKENS', some.map((run) => String(run.token)))];
      this.commands.push({
        words: ['JOB.MHEARTBEAT', key, name, ...words, ...this.#engine.leases.words],
        take: (reply, refused) => {
          if (refused) options.log.error(`leases of ${key} not kept: ${refused.message}`);
          else for (const [at, one] of list(reply).entries()) this.#heard(some[at] as Run, one);
        },
      });
    }
  }

  // Ends

  /** Plain completions share a command; the last command may claim the next jobs. */
  addEnds(ends: readonly [Run, Outcome][]): void {
    if (ends.length === 0) return;
    const [withResult, without]: [Run, Outcome][][] = [[], []];
    for (const end of ends) {
      if (end[1].data === undefined || end[0].alone) this.commands.push(this.#end(...end));
      else (end[1].data === null ? without : withResult)?.push(end);
    }
    for (const alike of [withResult ?? [], without ?? []]) {
      if (alike.length === 1) this.commands.push(this.#end(...(alike[0] as [Run, Outcome])));
      else if (alike.length > 1) this.commands.push(this.#endTogether(alike));
    }
    const count = this.#engine.claims.mayChain();
    if (count === 0) return;
    this.chained = true;
    const last = this.commands.pop() as Command;
    this.commands.push({
      words: [...last.words, 'CLAIM', ...this.#engine.claims.words(count)],
      take: (reply, refused) => {
        if (refused) {
          this.#engine.claims.notClaimed();
          last.take(reply, refused);
          return;
        }
        const [ended, packed] = list(reply);
        last.take(ended as Reply, undefined);
        const claimed = this.#engine.board.unpacked(packed);
        this.#engine.claims.brought(claimed, this.sent, claimed.length === count);
      },
    });
  }

  #end(run: Run, outcome: Outcome): Command {
    return {
      words: [outcome.command, this.#engine.key, this.#engine.name, run.id, ...outcome.head, 'TOKEN', String(run.token), ...outcome.options],
      take: (reply, refused) => {
        if (refused) this.#refused(run, outcome, refused);
        else this.#engine.hasEnded(run, outcome, reply);
      },
    };
  }

  #endTogether(ends: readonly [Run, Outcome][]): Command {
    const words: Word[] = ['JOB.MCONSUME', this.#engine.key, this.#engine.name, String(ends.length)];
    for (const [run] of ends) words.push(run.id);
    words.push('TOKENS', String(ends.length));
    for (const [run] of ends) words.push(String(run.token));
    if (ends[0]?.[1].data !== null) {
      words.push('RESULTS', String(ends.length));
      for (const [, outcome] of ends) words.push(outcome.data as Word);
    }
    return {
      words,
      take: (reply, refused) => {
        if (refused) {
          // Whose fault it was is told when each is sent on its own.
          for (const [run] of ends) run.alone = true;
          this.instead.push(...ends);
          return;
        }
        for (const [at, one] of list(reply).entries()) {
          const [run, outcome] = ends[at] as [Run, Outcome];
          const answer = orRefused(one, text);
          if (answer instanceof Refused) this.#refused(run, outcome, answer.error());
          else this.#engine.hasEnded(run, outcome, answer);
        }
      },
    };
  }

  #refused(run: Run, outcome: Outcome, error: BoardError): void {
    const { log } = this.#engine.options;
    if (error.code === 'CANCELLED' && error.message.includes('requested') && outcome.kind !== 'giveBack') {
      this.instead.push([run, givenBack('cancelled')]);
    } else if (error.code === 'ERR' && outcome.instead !== undefined) {
      log.error(`${run.shown}: the server refuses its delay or pause: ${error.message}`);
      this.instead.push([run, outcome.instead()]);
    } else if (error.code === 'ERR' && outcome.kind !== 'fail' && outcome.kind !== 'giveBack') {
      log.error(`${run.shown}: the server refuses its end: ${error.message}`);
      this.instead.push([run, failed('Refused', error.message.slice(0, 200), { error })]);
    } else {
      log.warn(`${run.shown} was lost: its end was refused: ${error.message}`);
      if (!LOST.has(error.code)) this.#engine.claims.leave(run);
      this.#engine.letGo(run, error.message);
    }
  }
}

/** Two reports of one run as one: of what both say, the later holds. */
function together(earlier: Waiting, later: Waiting): Waiting {
  const meta = earlier.meta || later.meta ? { meta: { ...earlier.meta, ...later.meta } } : {};
  const costs = earlier.costs || later.costs ? { costs: { ...earlier.costs, ...later.costs } } : {};
  return { ...earlier, ...later, ...meta, ...costs };
}
