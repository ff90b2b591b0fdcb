/** Hears at once of cancels and losses, by Pub/Sub: at heartbeats they are heard of later. */
import { ConnectionLost, isOutside } from '../errors.js';
import type { Link } from '../link.js';
import { Backoff } from './backoff.js';
import type { Engine } from './engine.js';
import type { Run } from './run.js';

/** Between two pings of a connection that only listens, ms. */
const PING_EVERY = 3000;

/** What the server publishes of the jobs of one worker. */
export class Listener {
  readonly #engine: Engine;
  readonly #link: Link;
  #pinging: NodeJS.Timeout | undefined;
  #sharedName = false;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#link = engine.board.place.open(`${engine.name}:events`);
  }

  /** Listens until the worker stops, or may not. */
  async run(): Promise<void> {
    const { key, name, options } = this.#engine;
    const backoff = new Backoff();
    while (!this.#engine.stopping) {
      try {
        await this.#link.subscribe([`job.worker:${key}:${name}`], (message) => {
          this.#hear(message);
        });
        // Not before: to subscribe ends a connection that a ping has made meanwhile.
        const lost = new Promise<void>((resolve) => {
          this.#link.onLost = resolve;
        });
        backoff.reset();
        // What happened while nobody listened is in the answers to heartbeats.
        this.#engine.claims.listens();
        this.#engine.beatSoon();
        this.#pinging ??= setInterval(() => {
          this.#link.ask(['PING'], { patient: false }).catch(() => undefined);
        }, PING_EVERY);
        await lost;
      } catch (error) {
        if (!(error instanceof ConnectionLost) && !isOutside(error)) {
          options.log.warn(`cancels are seen at heartbeats only: ${(error as Error).message}`);
          return;
        }
      }
      await this.#engine.pause(backoff.take());
    }
  }

  close(): void {
    clearInterval(this.#pinging);
    this.#link.close();
  }

  #hear(message: string): void {
    const event = JSON.parse(message) as { event: string; token?: number; reason?: string };
    const { token = 0 } = event;
    const run = this.#engine.held.get(token);
    if (run === undefined) this.#engine.claims.heardOf(token);
    else if (event.event === 'cancel') this.#engine.cancel(run);
    else if (event.event === 'grace') this.#engine.beatSoon(); // the lease has ended, and a heartbeat within the grace keeps the job
    else if (event.event !== 'lost') return; // a later server's
    else if (event.reason === 'lapsed') {
      this.#lapsed(run);
      this.#engine.beatSoon(); // a late heartbeat takes the job back, if nobody else has it
    } else this.#engine.lose(run, event.reason ?? '');
  }

  /** The server has ended a lease. Warns once of the likely cause when it was not over. */
  #lapsed(run: Run): void {
    const { name, options } = this.#engine;
    if (!options.named || options.session || this.#sharedName || run.context.isLate()) return;
    this.#sharedName = true;
    options.log.warn(
      `${name}: the lease of ${run.shown} has ended before its time: has another worker of this name started? Each needs a name of its own; without one it makes one up`,
    );
  }
}
