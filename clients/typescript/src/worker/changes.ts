/** Waiting for something of a worker to change. */
import { LONGEST_TIMER } from '../durations.js';

/** Whoever waits for a condition looks again whenever somebody says that something has changed. */
export class Changes {
  #wake: (() => void)[] = [];

  /** Wakes all who wait. */
  changed(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const resolve of wake) resolve();
  }

  /** Waits for the next change. */
  async next(): Promise<void> {
    return new Promise((resolve) => this.#wake.push(resolve));
  }

  /** Waits until it is so, at most `within` ms and not beyond `hurry`; whether it is. */
  async until(done: () => boolean, within: number, hurry?: Promise<void>): Promise<boolean> {
    const late = { is: false };
    const end = (): void => {
      late.is = true;
      this.changed();
    };
    const timer = setTimeout(end, Math.min(within, LONGEST_TIMER));
    void hurry?.then(end);
    while (!done() && !late.is) await this.next();
    clearTimeout(timer);
    return done();
  }
}
