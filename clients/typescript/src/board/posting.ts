/** Verbs that post: jobs, flows. */
import { encoded } from '../codecs.js';
import { blockOf } from '../durations.js';
import type { FlowOptions, MpostOptions, PostOptions } from '../generated.js';
import { list, type Reply, text, textOrNull } from '../replies.js';
import { shown } from '../shown.js';
import { counted, optionWords, type Word } from '../words.js';
import { Sending } from './sending.js';

/** Options of a job that is posted. A job without `name` is done by a worker that has a handler for its queue. */
export type { FlowOptions, MpostOptions, PostOptions };

/** A node of a flow: a job with a label, by which other nodes name it in `after` and `parent`. */
export interface Node extends FlowOptions {
  label: string;
  payload?: unknown;
}

/** The payload of a post without one. */
const EMPTY = {};

export class Posting extends Sending {
  /**
   * Posts a job; its id. Null when `nx` or `xx` prevented it.
   *
   *     await board.post({ to: 'ann' }, { name: 'welcome', delay: '1h' })
   *
   * With `block` it waits so long for room before the error `LIMIT` is thrown. Give an `id` then: if the reply is lost,
   * posting again posts no second job. A handler that waits for room in its own queue can wait for itself.
   */
  async post(payload: unknown, options: PostOptions & { nx: true }): Promise<string | null>;
  async post(payload: unknown, options: PostOptions & { xx: true }): Promise<string | null>;
  async post(payload?: unknown, options?: PostOptions): Promise<string>;
  async post(payload: unknown = EMPTY, options: PostOptions = {}): Promise<string | null> {
    return this.#posted(options, 1, async (found) => textOrNull(await this.#sendPost('JOB.POST', [encoded(this.codec, payload, options.name)], found)));
  }

  /**
   * Posts many jobs with the same options, 1,000 in a command, each command all or none; their ids. `ids` gives them
   * ids of their own. `block` is the time of each command.
   */
  async postMany(payloads: Iterable<unknown>, options: MpostOptions & { ids?: readonly string[] | undefined } = {}): Promise<(string | null)[]> {
    const { ids, ...rest } = options;
    const all = [...payloads];
    if (ids && ids.length !== all.length) throw new TypeError(`there are ${String(all.length)} payloads and ${String(ids.length)} ids`);
    const found: (string | null)[] = [];
    for (let start = 0; start < all.length; start += 1000) {
      const some = all.slice(start, start + 1000);
      const words: Word[] = [String(some.length), ...some.map((one) => encoded(this.codec, one, options.name))];
      if (ids) words.push(...counted('IDS', ids.slice(start, start + 1000)));
      found.push(...(await this.#posted(rest, some.length, async (given) => list(await this.#sendPost('JOB.MPOST', words, given)).map(textOrNull))));
    }
    return found;
  }

  /** Posts jobs that wait for each other or are parts of each other, all or none; their ids. See `Flow`. */
  async flow(nodes: Iterable<Node>): Promise<string[]> {
    const all = [...nodes];
    if (all.length === 0) return [];
    return this.#posted({}, all.length, async ({ meta }) => {
      const words: Word[] = [String(all.length)];
      for (const { label, payload = EMPTY, ...options } of all) {
        if (typeof label !== 'string') throw new TypeError(`each job of a flow has a label, by which others name it, not ${shown(label)}: new Flow(board) makes them`);
        const given = meta === undefined ? options : { ...options, meta: { ...meta, ...options.meta } };
        words.push('NODE', label, encoded(this.codec, payload, options.name ?? label), ...optionWords('JOB.FLOW', given, this.codec));
      }
      return list(await this.send('JOB.FLOW', words)).map((one) => text(one));
    });
  }

  /** A post that may wait takes a connection that nobody else needs. */
  async #sendPost(command: 'JOB.POST' | 'JOB.MPOST', words: readonly Word[], options: PostOptions): Promise<Reply> {
    if (options.block === undefined) return this.sendWith(command, words, options);
    return this.sendWaiting(command, [...words, ...optionWords(command, options, this.codec)], blockOf(options.block));
  }

  async #posted<T extends string | null | readonly (string | null)[]>(options: PostOptions, count: number, send: (options: PostOptions) => Promise<T>): Promise<T> {
    const told = this.hook.posting?.(this.name, options.name, count);
    const meta = told?.meta && Object.keys(told.meta).length > 0 ? { ...told.meta, ...options.meta } : options.meta;
    try {
      const found = await send(meta === undefined ? options : { ...options, meta });
      told?.done?.(undefined, found);
      return found;
    } catch (error) {
      told?.done?.(error);
      throw error;
    }
  }
}
