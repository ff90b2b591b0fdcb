/** Waits between tries, each longer than the last. */

const FIRST = 50;
const MOST = 2000;

/** From 50 ms to 2 s, with half of it at random, so that not all workers come back at once. */
export class Backoff {
  #next = FIRST;

  /** How long to wait now, ms. */
  take(): number {
    const now = this.#next;
    this.#next = Math.min(now * 2, MOST);
    return now * (0.5 + Math.random() / 2);
  }

  /** It has worked. */
  reset(): void {
    this.#next = FIRST;
  }
}

/** Names and queues that are remembered: who may post makes up as many as they like. */
const NAMES = 10_000;

/** How long a job waits for which a worker has no handler: from 1 s to 30 s, longer each time that its like comes. */
export class Unhandled {
  readonly #next = new Map<string, number>();

  /** Milliseconds, and whether it is the first time. */
  wait(what: string): { delay: number; first: boolean } {
    const first = !this.#next.has(what);
    const now = this.#next.get(what) ?? 1000;
    const [oldest] = this.#next.keys();
    if (first && oldest !== undefined && this.#next.size >= NAMES) this.#next.delete(oldest);
    this.#next.set(what, Math.min(now * 2, 30_000));
    return { delay: Math.round(now * (0.5 + Math.random() / 2)), first };
  }
}
