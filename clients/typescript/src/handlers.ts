/** Which function does which jobs. */
import type { Context } from './context.js';
import { sharedByAllCopies } from './copies.js';
import type { Schema } from './schema.js';

/** A function that does jobs: what it returns is the result, what it throws fails the try. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type HandlerFunction<Payload = any, Result = unknown> = (payload: Payload, context: Context<Payload>) => Result | Promise<Result>;

/** A class of errors. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type ErrorClass = abstract new (...args: any[]) => Error;

/** Which jobs a handler does. */
export interface Which {
  /** Jobs of this name. */
  name?: string | undefined;
  /** All jobs of this queue, or those of the name in it. */
  queue?: string | undefined;
  /** Errors after which a job is not tried again. */
  noretry?: readonly ErrorClass[] | undefined;
}

/** A handler, with what a worker needs to know of it. */
export interface Handler {
  readonly function: HandlerFunction;
  readonly noretry: readonly ErrorClass[];
  readonly queue: string;
  readonly schema: Schema | undefined;
}

/** A worker has no handler for a job. It gives the job back at no cost: another one may have it. */
export class NoHandler extends Error {
  override readonly name = 'NoHandler';
}

sharedByAllCopies({ NoHandler });

export class Handlers {
  /** By queue, then by name. */
  readonly #handlers = new Map<string | undefined, Map<string | undefined, Handler>>();
  readonly #queues = new Set<string>();

  get size(): number {
    return this.#handlers.size;
  }

  add(name: string | undefined, queue: string | undefined, handler: Handler): void {
    const named = this.#handlers.get(queue) ?? new Map<string | undefined, Handler>();
    if (named.has(name)) throw new Error(`there is a handler of ${shown(name, queue)} already`);
    this.#handlers.set(queue, named.set(name, handler));
    this.#queues.add(handler.queue);
  }

  /** The handler of a job: one of its queue goes before one of its name alone. */
  find(name: string | undefined, queue: string): Handler {
    const [own, any] = [this.#handlers.get(queue), this.#handlers.get(undefined)];
    const found = own?.get(name) ?? own?.get(undefined) ?? any?.get(name) ?? any?.get(undefined);
    if (found) return found;
    throw new NoHandler(`no handler of ${name === undefined ? 'jobs without a name' : `the name '${name}'`} in the queue '${queue}'`);
  }

  /** Whether there is a handler of all jobs that no other does, whatever their queue. */
  get takesAll(): boolean {
    return this.#handlers.get(undefined)?.has(undefined) === true;
  }

  /** The queues that their jobs are posted to. */
  queues(): string[] {
    return [...this.#queues];
  }
}

function shown(name: string | undefined, queue: string | undefined): string {
  const parts = [...(name === undefined ? [] : [`the name '${name}'`]), ...(queue === undefined ? [] : [`the queue '${queue}'`])];
  return parts.length === 0 ? 'all jobs' : parts.join(' in ');
}

/** The nearest of some names, when it is near. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const [best] = known.map((one) => [distance(name, one), one] as const).sort((a, b) => a[0] - b[0]);
  return best && best[0] <= Math.max(2, name.length / 3) ? best[1] : undefined;
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      next[j] = Math.min((next[j - 1] ?? 0) + 1, (row[j] ?? 0) + 1, (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
