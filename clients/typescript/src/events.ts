/** What happens on a board, as it happens: the messages that the server publishes. */
import type { Board } from './board/board.js';
import { eventBits } from './board/operating.js';
import { BoardError } from './errors.js';
import { type EventKind, EVENTS } from './generated.js';
import type { Link } from './link.js';

/**
 * One message: see Events in the reference. The kind `missed` is the package's own: the connection was lost, and
 * whatever happened since the event before was not heard.
 */
export interface BoardEvent {
  readonly event: EventKind | 'missed';
  readonly id?: string;
  /** Unix ms. */
  readonly at?: number;
  /** The board's revision. */
  readonly version?: number;
  /** The board's name, and the number of its database. */
  readonly board?: string;
  readonly db?: number;
  readonly queue?: string;
  readonly name?: string;
  readonly worker?: string;
  readonly token?: number;
  readonly attempt?: number;
  readonly kind?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly progress?: number;
  readonly stage?: string;
  readonly due?: number;
  readonly signal?: string;
  /** The queue to which it moved. */
  readonly next?: string;
  readonly [field: string]: unknown;
}

/** Walks over what happens on a board, from the moment when it was made until `close` or the end of the loop. */
export interface Events extends AsyncIterable<BoardEvent>, AsyncIterator<BoardEvent, void, undefined> {
  close(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** @internal */
export async function eventsOf(board: Board, kinds: readonly EventKind[]): Promise<Events> {
  const unknown = kinds.find((kind) => !(kind in EVENTS));
  if (unknown !== undefined) throw new TypeError(`there is no event '${unknown}'; there are ${Object.keys(EVENTS).join(', ')}`);
  await checkPublished(board, kinds);
  const found = new Listening(board, kinds);
  try {
    await found.start();
  } catch (error) {
    found.close();
    throw error;
  }
  return found;
}

async function checkPublished(board: Board, kinds: readonly EventKind[]): Promise<void> {
  let published: number;
  try {
    published = (await board.settingsGet(['events'])).events?.value as number;
  } catch (error) {
    if (BoardError.is(error, 'NOPERM')) return;
    throw error;
  }
  const missing = kinds.filter((kind) => (published & eventBits([kind])) === 0);
  if (missing.length > 0 || published === 0) {
    throw new Error(
      `this board publishes no ${missing.join(' or ') || 'events'}: board.settingsSet({ events: 'all' }), or those that you want: 'completed,failed'`,
    );
  }
}

class Listening implements Events {
  readonly #board: Board;
  readonly #kinds: readonly EventKind[];
  readonly #link: Link;
  readonly #forget: () => void;
  readonly #heard: BoardEvent[] = [];
  readonly #asked: ((result: IteratorResult<BoardEvent, void>) => void)[] = [];
  #pinging: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(board: Board, kinds: readonly EventKind[]) {
    this.#board = board;
    this.#kinds = kinds;
    this.#link = board.place.open('jobboard-events');
    this.#forget = board.closes(() => {
      this.close();
    });
  }

  async start(): Promise<void> {
    await this.#link.subscribe([`job.events:${this.#board.name}`], (message) => {
      this.#hear(message);
    });
    this.#link.onLost = () => void this.#again();
    this.#pinging ??= setInterval(() => {
      this.#link.ask(['PING'], { patient: false }).catch(() => undefined);
    }, 3000);
  }

  next(): Promise<IteratorResult<BoardEvent, void>> {
    const event = this.#heard.shift();
    if (event) return Promise.resolve({ value: event, done: false });
    if (this.#closed) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => this.#asked.push(resolve));
  }

  return(): Promise<IteratorResult<BoardEvent, void>> {
    this.close();
    return Promise.resolve({ value: undefined, done: true });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#pinging);
    this.#forget();
    this.#link.close();
    for (const resolve of this.#asked.splice(0)) resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }

  #hear(message: string): void {
    const fields = JSON.parse(message) as Record<string, unknown>;
    for (const name of Object.keys(fields).filter((one) => one.endsWith('64'))) {
      fields[name.slice(0, -2)] = Buffer.from(fields[name] as string, 'base64').toString();
      Reflect.deleteProperty(fields, name);
    }
    const event = fields as unknown as BoardEvent;
    if (fields['db'] !== this.#board.place.database) return;
    if (this.#kinds.length === 0 || this.#kinds.includes(event.event as EventKind)) this.#tell(event);
  }

  #tell(event: BoardEvent): void {
    const resolve = this.#asked.shift();
    if (resolve) resolve({ value: event, done: false });
    else this.#heard.push(event);
  }

  async #again(): Promise<void> {
    this.#link.onLost = undefined;
    for (let wait = 50; !this.#closed; wait = Math.min(wait * 2, 2000)) {
      try {
        await this.start();
        this.#tell({ event: 'missed' });
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  }
}
