/** How a board talks to its server: connections that fail at once when they break, and are made anew when asked. */
import { ErrorReply, RESP_TYPES } from '@redis/client';
import type { RedisClientOptions, RedisClientType } from '@redis/client';

import { Away, BoardError, ConnectionLost, refusal } from './errors.js';
import { HOW, refuseUnknownOfServer } from './known.js';
import { createClient } from './node-redis.js';
import type { Reply } from './replies.js';
import { type Address, checkPrimary, type Cluster, movingTo, ownerOf, primaryOf, type Sentinels, sentinelsOf, shownCluster, shownSentinels } from './primaries.js';
import { shown } from './shown.js';
import { hintOf, isOfTls, optionsOfUrl } from './urls.js';
import type { Word } from './words.js';

/* eslint-disable @typescript-eslint/no-explicit-any */
type AnyClient = RedisClientType<any, any, any, any, any>;
/* eslint-enable @typescript-eslint/no-explicit-any */

/**
 * Where the server is: a URL, options of node-redis (also those for Sentinels and for a cluster), or a client of it, whose
 * options connections of our own are made with.
 */
export type Server = string | RedisClientOptions | Sentinels | Cluster | AnyClient;

/** What is asked before anything is sent to a server, named as shown: throws when nothing must be. Only `jobboard/testing` adds any. */
export const guards = new Set<(shown: string) => void>();

/** How long a server that cannot be reached is tried, and how long an answer may take beside a wait, ms. */
export const PATIENCE = 10_000;
const CONNECT = 5000;
const DEFAULT_URL = 'redis://127.0.0.1:6379';

/** Maps come as flat arrays, text as Buffers: packed records are one. */
const OPTIONS = { typeMapping: { [RESP_TYPES.MAP]: Array, [RESP_TYPES.BLOB_STRING]: Buffer } };

/** What there is to say of one way to a server. */
interface Way {
  connect(): Promise<unknown>;
  destroy(): void;
  send(words: readonly Word[]): Promise<unknown>;
  subscribe(channels: string[], heard: (message: string, channel: string) => void): Promise<void>;
  readonly ready: boolean;
  /** Whether it speaks TLS; undefined while nobody knows whom it asks. */
  readonly tls: boolean | undefined;
  ref(): void;
  unref(): void;
  on(event: string, listener: (error: Error) => void): unknown;
}

/** A place is where connections are made to. */
export class Place {
  readonly #make: (name?: string, moving?: string) => Way;
  readonly shown: string;
  /** The number of the database, which events carry. */
  readonly database: number;
  /** Whether one connection is one connection to one server: a session needs that. */
  readonly single: boolean;
  /** The user of the server's ACL that connections log in as. */
  readonly #user: string;

  /** `key`: of the board, whose slot a node of a cluster has. */
  constructor(server: Server | undefined, key?: string) {
    const found = given(server);
    if (typeof found === 'object' && !isOther(found)) refuseUnknownOfServer(found);
    if (typeof found === 'string' && found.includes('sentinel://')) {
      const sentinels = sentinelsOf(found);
      [this.#make, this.shown, this.database, this.single] = sentinelPlace(sentinels);
      this.#user = userOf(sentinels.nodeClientOptions);
    } else if (isSentinels(found)) {
      [this.#make, this.shown, this.database, this.single] = sentinelPlace(found);
      this.#user = userOf(found.nodeClientOptions);
    } else if (isCluster(found)) {
      if (key === undefined) throw new TypeError('in a cluster a board says where it is');
      const known = new Map<string, Address>();
      this.#make = (name, moving) => (moving === undefined ? foundWay(async () => ownerOf(found, key, known), name) : asking(foundWay(() => Promise.resolve(movingTo(found, moving)), name)));
      [this.shown, this.database, this.single] = [shownCluster(found), 0, false];
      this.#user = userOf({ ...found.rootNodes[0], ...found.defaults });
    } else if (isOther(found)) {
      throw new TypeError(
        "a client of a cluster or of Sentinels does not show where they are: give a board its options, { rootNodes } or { name, sentinelRootNodes }, or 'sentinel://host:26379,host2:26379/service'",
      );
    } else {
      const options = withUrl(found, server === undefined ? '$JOBBOARD_URL' : 'the server of the board');
      this.#make = (name) => clientWay(createClient(ours(options, name)));
      const parsed = createClient(ours(options, undefined)).options;
      const socket = (parsed.socket ?? {}) as { host?: string; port?: number; path?: string };
      this.database = parsed.database ?? 0;
      this.shown = `${socket.path ?? `${socket.host ?? '127.0.0.1'}:${String(socket.port ?? 6379)}`}${this.database === 0 ? '' : `, db ${String(this.database)}`}`;
      this.single = true;
      this.#user = userOf(parsed);
    }
  }

  /** A connection of its own, made when it is first asked. `name` shows in CLIENT LIST. */
  open(name?: string): Link {
    return new Link((moving) => this.#make(name, moving), this.shown, this.#user, this.single);
  }
}

function userOf(options: { url?: string; username?: string } | undefined): string {
  const named = options?.username ?? (options?.url === undefined ? '' : decodeURIComponent(new URL(options.url).username));
  return named === '' ? 'default' : named;
}

function sentinelPlace(sentinels: Sentinels): [(name?: string) => Way, string, number, boolean] {
  return [(name) => foundWay(async () => primaryOf(sentinels), name), shownSentinels(sentinels), sentinels.nodeClientOptions?.database ?? 0, false];
}

/** What we add to a user's options: we connect again ourselves, and nothing is queued or timed out behind our back. */
function ours(options: RedisClientOptions, name: string | undefined): RedisClientOptions {
  return {
    maintNotifications: 'disabled',
    ...options,
    ...(name === undefined ? {} : { name: name.replaceAll(/[^!-~]/g, '_') }),
    disableOfflineQueue: true,
    commandOptions: { timeout: undefined },
    socket: { connectTimeout: CONNECT, ...options.socket, reconnectStrategy: false } as RedisClientOptions['socket'],
  } as unknown as RedisClientOptions;
}

function clientWay(client: AnyClient): Way {
  return {
    connect: async () => answered(client, async () => client.connect()),
    destroy: () => {
      if (client.isOpen || client.isReady) client.destroy();
    },
    send: (words) => client.sendCommand(words, OPTIONS),
    subscribe: (channels, heard) => client.subscribe(channels, heard),
    get ready() {
      return client.isReady;
    },
    tls: (client.options as RedisClientOptions).socket?.tls === true,
    ref: () => client.ref(),
    unref: () => client.unref(),
    on: (event, listener) => client.on(event, listener),
  };
}

/** Connects. A frozen server takes connections: it has the usual time for its first answers. */
async function answered(client: AnyClient, connect: () => Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    client.once('connect', () => {
      timer = setTimeout(() => {
        reject(new Error('it takes the connection, and does not answer'));
      }, PATIENCE);
    });
  });
  try {
    await Promise.race([connect(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A client of the primary, which is looked up when it connects. */
function foundWay(find: () => Promise<RedisClientOptions>, name: string | undefined): Way {
  let way: Way | undefined;
  const listeners: [string, (error: Error) => void][] = [];
  const found = (): Way => {
    if (way === undefined) throw new ConnectionLost('the primary is not known yet');
    return way;
  };
  return {
    connect: async () => {
      const client = createClient(ours(await find(), name));
      way = clientWay(client);
      for (const [event, listener] of listeners) way.on(event, listener);
      await answered(client, async () => {
        await client.connect();
        await checkPrimary(client);
      });
    },
    destroy: () => way?.destroy(),
    send: async (words) => found().send(words),
    subscribe: async (channels, heard) => found().subscribe(channels, heard),
    get ready() {
      return way?.ready === true;
    },
    get tls() {
      return way?.tls;
    },
    ref: () => way?.ref(),
    unref: () => way?.unref(),
    on: (event, listener) => listeners.push([event, listener]),
  };
}

/** To a node to which the slot of a board moves: it has the board already, and answers those who were sent to it. */
function asking(way: Way): Way {
  const send = way.send.bind(way);
  way.send = async (words) => {
    const [, answer] = await Promise.all([send(['ASKING']), send(words)]); // in this order
    return answer;
  };
  return way;
}

const isCluster = (server: object | string): server is Cluster => typeof server === 'object' && 'rootNodes' in server;
const isSentinels = (server: object | string): server is Sentinels => typeof server === 'object' && 'sentinelRootNodes' in server;
const isOther = (server: object | string): boolean => typeof server === 'object' && ('getSentinelNode' in server || 'nodeClient' in server);

/** What says where the server is: what was given, of a client its options; nothing, or an object without anything, is `$JOBBOARD_URL`. */
function given(server: Server | undefined): Exclude<Server, AnyClient> {
  if (server === undefined) return url();
  if (typeof server === 'string' || isOther(server)) return server as Exclude<Server, AnyClient>;
  if (isClient(server)) return optionsOf(server);
  return Object.keys(server).length === 0 ? url() : server;
}

/** The options of one server; what its URL says of TLS stands in them. */
function withUrl(found: string | RedisClientOptions, from: string): RedisClientOptions {
  if (typeof found === 'string') return optionsOfUrl(found, from);
  if (found.url === undefined) return found;
  const { url, socket } = optionsOfUrl(found.url, from);
  return { ...found, url, ...(socket === undefined ? {} : { socket: { ...socket, ...found.socket } }) } as RedisClientOptions;
}

function url(): string {
  const found = process.env['JOBBOARD_URL'];
  return found === undefined || found === '' ? DEFAULT_URL : found;
}

/** The options of a client of node-redis: server, user, database. What it wants to hear of maintenance is its own. */
function optionsOf(client: AnyClient): RedisClientOptions {
  const found = client.options as RedisClientOptions | undefined;
  if (!('isOpen' in client) || found === undefined) throw new TypeError(`this is a client of ioredis or another package, and a board takes one of node-redis: write ${HOW}`);
  const { maintNotifications: _, ...options } = found;
  return options;
}

export const isClient = (server: object | string): server is AnyClient => typeof server === 'object' && 'sendCommand' in server;

/**
 * One connection. A command whose answer did not come raises `ConnectionLost`: only who asked knows whether it may be
 * sent again. It lets the process end while nothing is asked.
 */
export class Link {
  readonly #make: (moving?: string) => Way;
  readonly #shown: string;
  #way: Way | undefined;
  #connecting: Promise<Way> | undefined;
  #pending = 0;
  #since = 0;
  #longest = 0;
  #watch: NodeJS.Timeout | undefined;
  #looked = 0;
  #closed = false;
  /** Where the board is moving to, as its node has said: `host:port`. */
  #moving: string | undefined;
  /** Told when the connection has gone. */
  onLost: (() => void) | undefined;
  /** Told when the server has said nothing for so long that the connection was given up. */
  onSilent: (() => void) | undefined;

  /** `single`: it asks one server, and none that Sentinels or a cluster name. */
  constructor(
    make: (moving?: string) => Way,
    shown: string,
    readonly user: string,
    readonly single: boolean,
  ) {
    this.#make = make;
    this.#shown = shown;
  }

  /** Sends a command; `block`: how long the server may wait before it answers, ms. */
  async ask(words: readonly Word[], { block = 0, patient = true }: Asking = {}): Promise<Reply> {
    this.#guarded();
    const way = this.#way?.ready === true ? this.#way : await this.#connected(patient);
    this.#begun(way, block);
    try {
      return (await way.send(words)) as Reply;
    } catch (error) {
      if (error instanceof TypeError) checkWords(words);
      throw this.#refused(way, error);
    } finally {
      this.#done(way);
    }
  }

  #guarded(): void {
    for (const refuse of guards) refuse(this.#shown);
  }

  #begun(way: Way, block: number): void {
    if (this.#pending === 0) {
      this.#since = performance.now();
      this.#longest = 0;
      way.ref();
      this.#watch ??= setInterval(() => {
        this.#look();
      }, 1000).unref();
    }
    this.#pending += 1;
    this.#longest = Math.max(this.#longest, block);
  }

  #done(way: Way): void {
    this.#since = performance.now();
    this.#pending -= 1;
    if (this.#pending === 0) way.unref();
  }

  /** What the server refuses; raises what is no answer, or the answer of one that cannot work now. */
  #refused(way: Way, error: unknown): BoardError {
    if (!(error instanceof ErrorReply)) {
      if (isOfTheProgram(error)) throw error;
      this.#drop(way);
      throw lost(error, this.#shown);
    }
    const found = this.#named(refusal(error.message));
    if (!(found instanceof Away)) return found;
    if (!this.single) this.#moving = /^ASK \d+ (\S+)/.exec(found.message)?.[1];
    // It had the board; who has it now? A primary without replicas may be one that is cut off, with a successor.
    if (/^(READONLY|MOVED|ASK|CLUSTERDOWN)/.test(found.message) || (!this.single && found.message.startsWith('NOREPLICAS'))) this.#drop(way);
    throw new Away(`${found.message} (${this.#shown})`);
  }

  /** Says whom a server does not let in, and what a node of a cluster has to be told. */
  #named(found: BoardError | Away): BoardError | Away {
    if (found instanceof Away) {
      const moved = /^(?:MOVED|ASK) \d+ (\S+)/.exec(found.message)?.[1];
      if (moved === undefined || !this.single) return found;
      return new BoardError('MOVED', `${this.#shown} is a node of a cluster, and ${moved} has this board: new Board(name, { rootNodes: [{ url: 'redis://${this.#shown}' }] }) finds the node of a board`);
    }
    if (!/^(WRONGPASS|NOAUTH)$/.test(found.code)) return found;
    return new BoardError(found.code, `user and password stand in the URL, redis://user:password@host:port (${this.#shown} says to the user '${this.user}': ${found.detail.replace(/\.$/, '')})`);
  }

  /**
   * Sends commands together; their replies, or what the server refused. A command that cannot be sent, with a word that
   * is no text, counts as refused. Raises `ConnectionLost` when one of them has no answer.
   */
  async askAll(all: readonly (readonly Word[])[], { patient = true }: Asking = {}): Promise<(Reply | BoardError)[]> {
    this.#guarded();
    const way = this.#way?.ready === true ? this.#way : await this.#connected(patient);
    this.#begun(way, 0);
    const found = await Promise.all(all.map(async (words) => way.send(words).catch((error: unknown) => new Unanswered(error))));
    this.#done(way);
    return found.map((one, at) => {
      if (!(one instanceof Unanswered)) return one as Reply;
      const wrong = one.error instanceof TypeError ? wrongWord(all[at] ?? []) : undefined;
      return wrong === undefined ? this.#refused(way, one.error) : new BoardError('ERR', wrong);
    });
  }

  /** Listens to channels, until the connection is lost or closed. */
  async subscribe(channels: string[], heard: (message: string, channel: string) => void): Promise<void> {
    this.#guarded();
    const way = await this.#connected(false);
    try {
      await way.subscribe(channels, heard);
      way.ref();
    } catch (error) {
      if (error instanceof ErrorReply) throw this.#named(refusal(error.message));
      this.#drop(way);
      throw lost(error, this.#shown);
    }
  }

  /** Ends what is asked, with `ConnectionLost`; the next command connects anew. */
  interrupt(): void {
    if (this.#way) this.#drop(this.#way);
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#watch);
    this.onLost = this.onSilent = undefined;
    this.interrupt();
  }

  async #connected(patient: boolean): Promise<Way> {
    this.#connecting ??= this.#connect(patient).finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #connect(patient: boolean): Promise<Way> {
    const end = performance.now() + CONNECT;
    for (let wait = 50; ; wait *= 2) {
      if (this.#closed) throw new ConnectionLost('it was closed');
      if (this.#way) this.#drop(this.#way);
      const way = (this.#way = this.#make(this.#moving));
      this.#moving = undefined;
      way.on('error', () => {
        this.#drop(way);
      });
      way.on('end', () => {
        this.#drop(way);
      });
      try {
        await way.connect();
        if (this.#way === way) return way;
        way.destroy(); // node-redis finishes a connection that is given up while it is made, and keeps it
        throw new ConnectionLost('it was closed while it connected');
      } catch (error) {
        this.#drop(way);
        if (isOfTheProgram(error)) throw error;
        const refused = error instanceof ErrorReply && this.#named(refusal(error.message));
        if (refused instanceof BoardError) throw refused;
        if (!patient || isOfTls(textOf(error)) || performance.now() + wait > end) throw lost(error, this.#shown, way.tls);
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  }

  #drop(way: Way): void {
    if (this.#way !== way) return;
    this.#way = undefined;
    try {
      way.destroy();
    } catch {
      // It has gone already.
    }
    this.onLost?.();
  }

  /** A connection on which nothing comes for too long is dead, although nobody has said so. */
  #look(): void {
    const late = this.#looked > 0 && performance.now() - this.#looked > 3000; // it was this process that stood still
    this.#looked = performance.now();
    if (late) this.#since = this.#looked;
    if (this.#pending === 0 || !this.#way || performance.now() - this.#since <= this.#longest + PATIENCE) return;
    this.#drop(this.#way);
    this.onSilent?.();
  }
}

/** Why a command has no reply. */
class Unanswered {
  constructor(readonly error: unknown) {}
}

interface Asking {
  block?: number;
  /** Whether a server that cannot be reached is tried for some seconds. */
  patient?: boolean;
}

/** Words that are no text, a port that is none: no server was asked, and no other try would help. */
const isOfTheProgram = (error: unknown): boolean => error instanceof TypeError || error instanceof RangeError;

/** Names the word that is none: types let nothing else through, but not everybody has them. */
function wrongWord(words: readonly unknown[]): string | undefined {
  const at = words.findIndex((word) => typeof word !== 'string' && !Buffer.isBuffer(word));
  return at < 0 ? undefined : `${String(words[0])}: ids, names and all other words are text, not ${shown(words[at])}`;
}

function checkWords(words: readonly unknown[]): void {
  const wrong = wrongWord(words);
  if (wrong !== undefined) throw new TypeError(wrong);
}

/** `tls`: while it connects, whether it speaks TLS. */
function lost(error: unknown, shown: string, tls?: boolean): ConnectionLost {
  if (error instanceof ConnectionLost) return error;
  const text = textOf(error);
  return new ConnectionLost(`no answer from ${shown}: ${text}${hintOf(text, tls)}`, { cause: error });
}

function textOf(error: unknown): string {
  const causes = error instanceof AggregateError ? (error.errors as Error[]) : [error as Error];
  return causes.map((one) => one.message).join('; ');
}
