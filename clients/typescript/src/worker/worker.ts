/** The worker, as a program uses it. */
import type { Board } from '../board/board.js';
import { refuseUnknown } from '../known.js';
import { mapping, type Reply } from '../replies.js';
import { shown } from '../shown.js';
import { Engine, type Told } from './engine.js';
import { Emitter, type FailedTry } from './events.js';
import { refuseUnknownOfWorker, settled, type Settled, type WorkerOptions } from './options.js';
import type { Outcome, Run } from './run.js';

/** How long the server is told of the last ends, beyond `stopWithin`, ms. */
const LEAVE_WITHIN = 3000;

/**
 * Claims the jobs of a board, runs their handlers, and keeps their leases.
 *
 *     await new Worker(board, { concurrency: 4 }).run(); // until SIGTERM or SIGINT
 */
export class Worker extends Emitter {
  readonly options: Settled;
  #engine: Engine | undefined;
  #running: Promise<boolean> | undefined;
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
        `${this.name} has a handler of all jobs, and claims from ${this.options.queues.join(', ')} alone: say queues: [] for every queue, or queues: ['default', …] for those`,
      );
    }
    if (this.options.session && !board.place.single) throw new Error('session needs one connection to one server, which a cluster and Sentinels do not give');
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
    });
    return this.#running;
  }

  /**
   * Stops it, as SIGTERM does, and waits until it has stopped. With `now` it gives back at once what still runs. Several
   * calls are as one, also beside a signal. While it does not run this does nothing.
   */
  async stop(options: { now?: boolean } = {}): Promise<void> {
    refuseUnknown('stop', options, { now: true });
    if (this.#running === undefined) return;
    this.#engine?.stop();
    if (options.now === true) this.#hurry();
    await this.#running.catch(() => undefined);
  }

  async #work({ burst = false, signals = true }: { burst?: boolean; signals?: boolean }): Promise<boolean> {
    const engine = (this.#engine = new Engine(this.board, this.options, this.#told(), burst));
    const { log } = this.options;
    const hurry = new Promise<void>((resolve) => {
      this.#hurry = resolve;
    });
    // The program may call `stop` at a signal, too: only signals count.
    let heard = 0;
    const heed = (): void => {
      heard += 1;
      engine.stop();
      if (heard > 1) this.#hurry();
    };
    if (signals) for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, heed);
    log.info(`${this.name} starts on ${String(this.board)}: ${this.options.queues.join(', ') || 'every queue'}; ${String(this.options.concurrency)} at once`);
    try {
      engine.start();
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
    log.info(`${this.name} has stopped: it ended ${counted(engine.done, 'job', 'jobs')}`);
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
        this.options.log[tell](`${run.shown} failed (attempt ${String(run.job.attempt)}): ${why}; it is ${then.state}${then.left === undefined ? '' : `, ${counted(then.left, 'retry', 'retries')} left`}${stack}`);
        this.emit('failed', run.context, outcome.value, then);
      },
      lost: (run: Run, why: string) => this.emit('lost', run.context, why),
      drained: () => this.emit('drained'),
    };
  }
}

/** Also one that another copy of the package has made. */
const isBoard = (given: unknown): given is Board => typeof given === 'object' && given !== null && 'handlers' in given && 'place' in given;

function some(runs: readonly Run[]): string {
  const shown = runs.slice(0, 5).map((run) => run.shown);
  return `${shown.join(', ')}${runs.length > 5 ? ` and ${String(runs.length - 5)} more` : ''}`;
}

function counted(number: number, one: string, many: string): string {
  return `${String(number)} ${number === 1 ? one : many}`;
}
