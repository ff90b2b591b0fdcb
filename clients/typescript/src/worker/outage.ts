/** What is said of a server that does not answer, or cannot work. */
import { Away } from '../errors.js';
import type { Logger } from './options.js';

/** After so long it is said again, ms. */
const AGAIN = 60_000;

/** One warning when the server goes, one every minute, one when it is back, however often it is asked. */
export class Outage {
  #since: number | undefined;
  #told = 0;

  constructor(
    private readonly log: Logger,
    private readonly name: string,
  ) {}

  /** A command has got no answer; `doing` says what it was for. */
  gone(error: Error, doing: string): void {
    const now = performance.now();
    if (this.#since === undefined) {
      this.#since = this.#told = now;
      this.log.warn(`${this.name}: the server ${error instanceof Away ? 'cannot do it now' : 'does not answer'} (${doing}): ${error.message}; trying again until it does`);
    } else if (now - this.#told >= AGAIN) {
      this.#told = now;
      this.log.warn(`${this.name}: the server ${error instanceof Away ? 'cannot do it' : 'has not answered'} for ${seconds(now - this.#since)}: ${error.message}`);
    }
  }

  /** A command was answered. */
  back(): void {
    if (this.#since === undefined) return;
    this.log.warn(`${this.name}: the server is back after ${seconds(performance.now() - this.#since)}`);
    this.#since = undefined;
  }
}

const seconds = (ms: number): string => `${String(Math.round(ms / 1000))} s`;
