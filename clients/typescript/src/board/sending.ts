/** What all verbs of a board share: its name, codec, hook and connections. */
import { type Codec, CODECS } from '../codecs.js';
import type { CommandName } from '../generated.js';
import { type Hook, NO_HOOK } from '../hooks.js';
import { Job } from '../jobs.js';
import { isOfServer, refuseUnknownOfBoard } from '../known.js';
import { isClient, type Link, Place, type Server } from '../link.js';
import { unpacked } from '../packed.js';
import { list, mapping, type Reply, type Row, text } from '../replies.js';
import { optionWords, type Word } from '../words.js';

/** How a board is made. */
export interface BoardOptions {
  /** Where the server is; by default `$JOBBOARD_URL`, else this machine's port 6379. */
  server?: Server | undefined;
  /** What payloads and results are as bytes: `json` by default, `raw` for bytes, or an object of your own. */
  codec?: 'json' | 'raw' | Codec | undefined;
  /** What is called around posts and runs, such as `tracing()` of `jobboard/otel`. */
  hook?: Hook | undefined;
}

const NAMES: Readonly<Record<keyof BoardOptions, true>> = { server: true, codec: true, hook: true };

/** A page of a listing: go on with the cursor until it is `'0'`. */
export interface Page<T> {
  readonly cursor: string;
  readonly items: readonly T[];
}

/** How long one wait of a command lasts, ms; longer ones are made of several. */
export const BLOCK = 2000;

const SPARE = 4;

/** A board's name, and how its commands are sent. */
export class Sending {
  readonly codec: Codec;
  readonly hook: Hook;
  /** Where the server is; connections of its own are opened here. */
  place: Place;
  #link: Link;
  readonly #waiting: Link[] = [];
  readonly #closers = new Set<() => void>();

  constructor(
    /** The board's key. */
    readonly name: string,
    options: BoardOptions | Server = {},
  ) {
    if (typeof name !== 'string' || name === '') throw new TypeError('a board has a name: new Board("mails")');
    if (typeof options !== 'string' && (typeof options !== 'object' || (options as unknown) === null)) {
      throw new TypeError(`a server is a URL, options of node-redis or a client of it, not ${String(options)}`);
    }
    const found: BoardOptions = isOptions(options) ? options : { server: options };
    const codec = found.codec ?? 'json';
    if (typeof codec === 'string' ? !Object.hasOwn(CODECS, codec) : typeof codec.encode !== 'function' || typeof codec.decode !== 'function') {
      throw new TypeError(`a codec is 'json', 'raw', or { encode, decode }, not ${JSON.stringify(codec)}`);
    }
    this.codec = typeof codec === 'string' ? CODECS[codec] : codec;
    this.hook = found.hook ?? NO_HOOK;
    this.place = new Place(found.server, name);
    this.#link = this.place.open();
  }

  /** Lets it talk to another server from now on: for tests. */
  use(server: Server): void {
    this.close();
    this.place = new Place(server, this.name);
    this.#link = this.place.open();
  }

  /** Closes its connections. A program that does nothing more ends without that, too. */
  close(): void {
    this.#link.close();
    for (const link of this.#waiting.splice(0)) link.close();
    for (const close of this.#closers) close();
    this.#closers.clear();
    this.#link = this.place.open();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  toString(): string {
    return `Board(${JSON.stringify(this.name)}) at ${this.place.shown}`;
  }

  /** @internal */
  closes(close: () => void): () => void {
    this.#closers.add(close);
    return () => this.#closers.delete(close);
  }

  /** @internal Sends a command of the board: `words` come after its key. `block`: as `Link.ask` has it. */
  async send(command: string, words: readonly Word[] = [], asking: { block?: number } = {}): Promise<Reply> {
    return this.#link.ask([...command.split(' '), this.name, ...words], asking);
  }

  /** @internal The same with options behind the words. */
  async sendWith(command: CommandName, words: readonly Word[], options: object): Promise<Reply> {
    return this.send(command, [...words, ...optionWords(command, options, this.codec)]);
  }

  /** @internal Sends a command that the server may answer late, over a connection that nobody else needs. */
  async sendWaiting(command: string, words: readonly Word[], block: number, signal?: AbortSignal): Promise<Reply> {
    const link = this.#waiting.pop() ?? this.place.open();
    const closed = { is: false };
    const close = (): void => {
      closed.is = true;
      link.close();
    };
    const stop = this.closes(close);
    signal?.addEventListener('abort', close);
    try {
      return await link.ask([command, this.name, ...words], { block });
    } finally {
      stop();
      signal?.removeEventListener('abort', close);
      if (!closed.is && signal?.aborted !== true && this.#waiting.length < SPARE) this.#waiting.push(link);
      else link.close();
    }
  }

  /** @internal */
  job(record: Reply): Job {
    return new Job(record, this.codec);
  }

  /** @internal */
  jobs(packed: Reply): Job[] {
    return this.unpacked(packed).map((one) => this.job(one));
  }

  /** @internal */
  jobsOrNull(packed: Reply): (Job | null)[] {
    return this.unpacked(packed).map((one) => (one === null ? null : this.job(one)));
  }

  /** @internal The records of a packed reply. */
  unpacked(packed: Reply | undefined): readonly Reply[] {
    return list(unpacked(packed, this.codec.text !== true));
  }

  /** @internal Walks over all pages of a command. */
  async *pages<T>(command: string, words: readonly Word[], shape: (reply: Reply) => T, count = 100): AsyncGenerator<T, void, undefined> {
    for (let cursor = '0'; ; ) {
      const reply = list(await this.send(command, [...words, 'CURSOR', cursor, 'COUNT', String(count)]));
      for (const one of this.unpacked(reply[1])) yield shape(one);
      cursor = text(reply[0]);
      if (cursor === '0') return;
    }
  }

  /** @internal All rows of a listing. */
  async rows<R = Row>(command: string, words: readonly Word[] = [], shapes: Readonly<Record<string, (found: Reply) => unknown>> = {}): Promise<R[]> {
    const found: R[] = [];
    for await (const row of this.pages(command, words, (one) => mapping(one, shapes) as R, 1000)) found.push(row);
    return found;
  }
}

/**
 * Options of a board, and no server. What looks like neither is taken for options that are misspelt, as
 * `{ serverr: url }` is.
 */
function isOptions(given: BoardOptions | Server): given is BoardOptions {
  if (typeof given !== 'object' || isClient(given)) return false;
  const names = Object.keys(given);
  if (!names.some((name) => Object.hasOwn(NAMES, name)) && names.some(isOfServer)) return false;
  refuseUnknownOfBoard(given, NAMES);
  return true;
}

/** An array out of what a walk gives. */
export async function collected<T>(walk: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of walk) found.push(one);
  return found;
}
