/** The worker, as a program uses it. */
import { EventEmitter } from 'node:events';

import type { Board } from '../board/board.js';
import type { Context } from '../context.js';
import { nearest } from '../handlers.js';
import { refuseUnknown } from '../known.js';
import { mapping, type Reply } from '../replies.js';
import { shown } from '../shown.js';
import { Engine, type Told } from './engine.js';
import { refuseUnknownOfWorker, settled, type Settled, type WorkerOptions } from './options.js';
import type { Outcome, Run } from './run.js';

/** How long the server is told of the last ends, beyond `stopWithin`, ms. */
const LEAVE_WITHIN = 3000;

/** What has become of a failed try. */
export interface FailedTry {
  /** `scheduled` or `ready`: it is tried again, or with `dead` it has moved to that queue. */
  readonly state: 'scheduled' | 'ready' | 'failed' | 'cancelled' | 'trashed';
  /** The retries left, -1 for no limit; absent when it was trashed. */
  readonly left?: number;
  /** When the next try may start, Unix ms. */
  readonly due?: number;
  /** The dead queue to which the job has moved. */
  readonly dead?: string;
}

/** What a worker tells, as an EventEmitter. */
export interface WorkerEvents {
  /** A handler is called. */
  active: [context: Context];
  /** The server has taken the completion of a job. */
  completed: [context: Context, result: unknown];
  /** The server has taken the failure of a try. */
  failed: [context: Context, error: unknown, then: FailedTry];
  /** A job was lost: its lease ended, or somebody took it. */
  lost: [context: Context, why: string];
  /** There is nothing to do. */
  drained: [];
}

type EventName = keyof WorkerEvents;
type Listener<Name extends EventName> = (...told: WorkerEvents[Name]) => void;

const EVENTS: Readonly<Record<EventName, true>> = { active: true, completed: true, failed: true, lost: true, drained: true };
/** Events that Node itself listens to or tells. */
const OF_NODE: ReadonlySet<unknown> = new Set(['error', 'newListener', 'removeListener']);
/** What other packages call an event, and what to write here. */
const ELSEWHERE: Readonly<Record<string, string>> = { stalled: "'lost'", progress: 'board.watch(id) or board.events()', closed: 'the end of await worker.run()', closing: 'the end of await worker.run()', ready: "'active' of the first job" };

/**
 * Claims the jobs of a board, runs their handlers, and keeps their leases.
 *
 *     await new Worker(board, { concurrency: 4 }).run(); // until SIGTERM or SIGINT
 */
export class Worker extends EventEmitter<WorkerEvents> {
  readonly options: Settled;
  #engine: Engine | undefined;
  #running: Promise<boolean> | undefined;
  #stops = 0;
  #hurry: () => void = () => undefined;

  constructor(
    readonly board: Board,
    options: WorkerOptions = {},
  ) {
    super();
    if (!isBoard(board)) throw new TypeError(`a Worker takes a board: new Worker(new Board('mails'), { concurrency: 4 }), not ${shown(board)}`);
    refuseUnknownOfWorker(options);
    if (board.handlers.size === 0) {
      throw new Error("there are no handlers: board.task('name', schema).handle(…), and import the modules that say so before the worker is made");
    }
    this.options = settled(options, board.handlers.queues());
    if (options.queues === undefined && board.handlers.takesAll) {
      this.options.log.warn(
        `${this.name} has a handler of all jobs, and claims from ${this.options.queueWords.slice(2).join(', ')} alone: say queues: [] for every queue, or queues: ['default', …] for those`,
      );
    }
    if (this.options.session && !board.place.single) throw new Error('session needs one connection to one server, which a cluster and Sentinels do not give');
  }

  override on<Name extends EventName>(name: Name, listener: Listener<Name>): this {
    return super.on(known(name), listener as never);
  }

  override once<Name extends EventName>(name: Name, listener: Listener<Name>): this {
    return super.once(known(name), listener as never);
  }

  override addListener<Name extends EventName>(name: Name, listener: Listener<Name>): this {
    return this.on(name, listener);
  }

  override prependListener<Name extends EventName>(name: Name, listener: Listener<Name>): this {
    return super.prependListener(known(name), listener as never);
  }

  override prependOnceListener<Name extends EventName>(name: Name, listener: Listener<Name>): this {
    return super.prependOnceListener(known(name), listener as never);
  }

  /** The name under which it claims. */
  get name(): string {
    return this.options.name;
  }

  /** How many jobs it has ended, in whatever way. */
  get done(): number {
    return this.#engine?.done ?? 0;
  }

  /**
   * Works until it is told to stop; whether all that it had begun was finished by then. `burst`: until there is no
   * job. `signals`: SIGTERM and SIGINT stop it; a second one gives back at once what still runs, and the process then
   * ends with 1 unless it names another `process.exitCode`. Raises what no
   * waiting heals: no rights, no module.
   */
  async run(options: { burst?: boolean; signals?: boolean } = {}): Promise<boolean> {
    refuseUnknown('run', options, { burst: true, signals: true });
    this.#running ??= this.#work(options).finally(() => {
      this.#running = undefined;
      this.#stops = 0;
    });
    return this.#running;
  }

  /** Stops it, as SIGTERM does, and waits until it has stopped. Called twice, it gives back at once what still runs. */
  async stop(): Promise<void> {
    this.#stops += 1;
    this.#engine?.stop();
    if (this.#stops > 1) this.#hurry();
    await this.#running?.catch(() => undefined);
  }

  async #work({ burst = false, signals = true }: { burst?: boolean; signals?: boolean }): Promise<boolean> {
    const engine = (this.#engine = new Engine(this.board, this.options, this.#told(), burst));
    const { log } = this.options;
    const hurry = new Promise<void>((resolve) => {
      this.#hurry = resolve;
    });
    const heed = (): void => void this.stop();
    if (signals) for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, heed);
    log.info(`${this.name} starts on ${String(this.board)}: ${this.options.queueWords.slice(2).join(', ') || 'every queue'}; ${String(this.options.concurrency)} at once`);
    try {
      engine.start();
      if (this.#stops > 0) engine.stop();
      await engine.wantsStop;
      const allDone = await this.#goHome(engine, hurry);
      if (engine.failure !== undefined) throw engine.failure as Error;
      if (signals && !allDone) process.exitCode ??= 1;
      return allDone;
    } finally {
      if (signals) for (const name of ['SIGTERM', 'SIGINT'] as const) process.off(name, heed);
    }
  }

  async #goHome(engine: Engine, hurry: Promise<void>): Promise<boolean> {
    const { log } = this.options;
    engine.goHome();
    const running = engine.running();
    log.info(`${this.name} stops: ${running.length === 0 ? 'nothing runs' : `waits up to ${String(this.options.stopWithin / 1000)} s for ${some(running)}`}`);
    let allDone = await engine.waitIdle(this.options.stopWithin, hurry);
    if (!allDone) {
      const given = engine.abandonAll();
      allDone = given.length === 0;
      if (!allDone) log.warn(`${this.name} gives back what still runs: ${some(given)}`);
    }
    if (!(await engine.waitSent(LEAVE_WITHIN))) log.warn(`${this.name} ends without having told the server of ${String(engine.held.size)} jobs`);
    await engine.leave();
    log.info(`${this.name} has stopped: it ended ${String(engine.done)} jobs`);
    return allDone;
  }

  #told(): Told {
    return {
      active: (run: Run) => this.emit('active', run.context),
      completed: (run: Run, outcome: Outcome) => this.emit('completed', run.context, outcome.value),
      failed: (run: Run, outcome: Outcome, reply: Reply) => {
        const then: FailedTry = outcome.kind === 'trash' ? { state: 'trashed' } : (mapping(reply) as unknown as FailedTry);
        const tell = then.state === 'failed' ? 'error' : 'warn';
        const stack = outcome.stack === undefined ? '' : `\n${outcome.stack}`;
        const why = outcome.kind === 'trash' ? String(outcome.options[1]) : outcome.head.join(': ');
        this.options.log[tell](`${run.shown} failed (attempt ${String(run.job.attempt)}): ${why}; it is ${then.state}${then.left === undefined ? '' : `, ${String(then.left)} retries left`}${stack}`);
        this.emit('failed', run.context, outcome.value, then);
      },
      lost: (run: Run, why: string) => this.emit('lost', run.context, why),
      drained: () => this.emit('drained'),
    };
  }
}

/** Also one that another copy of the package has made. */
const isBoard = (given: unknown): given is Board => typeof given === 'object' && given !== null && 'handlers' in given && 'place' in given;

/** Refuses an event that a worker never tells. */
function known<Name extends EventName>(name: Name): Name {
  if (typeof name !== 'string' || Object.hasOwn(EVENTS, name) || OF_NODE.has(name)) return name;
  const all = Object.keys(EVENTS);
  const instead = Object.hasOwn(ELSEWHERE, name) ? ELSEWHERE[name] : undefined;
  const near = nearest(name, all);
  throw new TypeError(`a Worker tells of no '${name as string}'; there are ${all.join(', ')}${instead === undefined ? (near === undefined ? '' : `. Did you mean '${near}'?`) : `. Here that is ${instead}`}`);
}

function some(runs: readonly Run[]): string {
  const shown = runs.slice(0, 5).map((run) => run.shown);
  return `${shown.join(', ')}${runs.length > 5 ? ` and ${String(runs.length - 5)} more` : ''}`;
}
