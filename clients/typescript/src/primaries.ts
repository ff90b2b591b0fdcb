/**
 * Which server has a board: the primary that Sentinels name, or the owner of its slot in a cluster. Looked up anew for
 * each connection, so that what follows a failover is what follows any lost connection: node-redis's own clients of
 * Sentinels and of clusters leave commands without an answer then.
 */
import { ErrorReply } from '@redis/client';
import type { RedisClientOptions, RedisClientType, RedisClusterOptions, RedisSentinelOptions } from '@redis/client';

import { createClient } from './node-redis.js';

/** How long a server may take to say who the primary is, ms: it may be frozen. */
const ANSWER = 1500;

/** Options of node-redis for Sentinels: those that connections need. */
export type Sentinels = Pick<RedisSentinelOptions, 'name' | 'sentinelRootNodes' | 'nodeClientOptions' | 'sentinelClientOptions' | 'nodeAddressMap'>;

/** Options of node-redis for a cluster: those that connections need. */
export type Cluster = Pick<RedisClusterOptions, 'rootNodes' | 'defaults' | 'nodeAddressMap'>;

/** `sentinel://[user:password@]host:port,host:port/service[/db]` */
export function sentinelsOf(url: string): Sentinels {
  const found = /^(?:redis\+)?sentinel:\/\/(?:([^:@]*):?([^@]*)@)?([^/?]+)\/([^/?]+)(?:\/(\d+))?(?:\?sentinel_password=(.*))?$/.exec(url);
  if (!found) throw new TypeError('Sentinels are named as sentinel://[user:password@]host:26379,host2:26379/service[/db]');
  const [, user, password, hosts = '', service = '', db, guard] = found;
  return {
    name: service,
    sentinelRootNodes: hosts.split(',').map((one) => {
      const [host = '127.0.0.1', port = '26379'] = one.split(':');
      return { host, port: Number(port) };
    }),
    nodeClientOptions: {
      ...(user ? { username: decodeURIComponent(user) } : {}),
      ...(password ? { password: decodeURIComponent(password) } : {}),
      database: Number(db ?? 0),
    },
    ...(guard ? { sentinelClientOptions: { password: decodeURIComponent(guard) } } : {}),
  };
}

export function shownSentinels({ name, sentinelRootNodes }: Sentinels): string {
  return `${name} by Sentinels ${sentinelRootNodes.map(({ host, port }) => `${host}:${String(port)}`).join(',')}`;
}

export function shownCluster({ rootNodes }: Cluster): string {
  return `a cluster of ${rootNodes.map(({ url, socket }) => url ?? Object.values(socket ?? {}).join(':')).join(', ')}`;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Options for a client of the primary, as the first Sentinel that answers names it. */
export async function primaryOf({ name, sentinelRootNodes, sentinelClientOptions, nodeClientOptions, nodeAddressMap }: Sentinels): Promise<RedisClientOptions> {
  const seeds = sentinelRootNodes.map((address) => at(address, sentinelClientOptions));
  const found = await first(seeds, async (client) => {
    const address = (await client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name])) as unknown;
    if (address === null) throw new Error(`it does not know ${name}`);
    const [host, port] = address as [string, string];
    return { host, port: Number(port) };
  });
  return at(mapped(found, nodeAddressMap), nodeClientOptions);
}

/**
 * Options for a client of the node that owns the slot of a key, as the first node that answers says: one of those that
 * were named, or one of `known`, which takes up all that a node has told of.
 */
export async function ownerOf({ rootNodes, defaults, nodeAddressMap }: Cluster, key: string, known: Map<string, Address>): Promise<RedisClientOptions> {
  const named = rootNodes.map((node) => ({ ...defaults, ...node, socket: { ...defaults?.socket, ...node.socket } }) as RedisClientOptions);
  const seeds = [...named, ...[...known.values()].map((address) => at(address, defaults))];
  const found = await first(seeds, async (client) => {
    const slot = Number(await client.sendCommand(['CLUSTER', 'KEYSLOT', key]));
    const ranges = (await client.sendCommand(['CLUSTER', 'SLOTS'])) as unknown as [number, number, ...[string | null, number][]][];
    const range = ranges.find(([begin, end]) => begin <= slot && slot <= end);
    if (range === undefined) throw new Error(`it knows no owner of the slot ${String(slot)}`);
    const asked = (client.options.socket as { host?: string } | undefined)?.host ?? '127.0.0.1';
    known.clear();
    for (const [, , ...nodes] of ranges) {
      for (const [host, port] of nodes) known.set(`${host ?? asked}:${String(port)}`, mapped({ host: host ?? asked, port }, nodeAddressMap));
    }
    const [host, port] = range[2] as [string | null, number];
    return { host: host ?? asked, port };
  });
  return at(mapped(found, nodeAddressMap), defaults);
}

const at = (address: Address, options: object | undefined): RedisClientOptions => ({ ...options, socket: { ...(options as RedisClientOptions | undefined)?.socket, ...address } });

/** Options for a client of the node that has a key while its slot moves there, as another node says: `host:port`. */
export function movingTo({ defaults, nodeAddressMap }: Cluster, address: string): RedisClientOptions {
  const colon = address.lastIndexOf(':');
  return at(mapped({ host: address.slice(0, colon), port: Number(address.slice(colon + 1)) }, nodeAddressMap), defaults);
}

/** Raises when a server is none that writes: who named it may not have heard yet. */
export async function checkPrimary(client: Pick<RedisClientType, 'sendCommand'>): Promise<void> {
  const role = (await client.sendCommand(['ROLE']).catch((error: unknown) => {
    if (error instanceof ErrorReply) return null; // no right to ask
    throw error;
  })) as unknown;
  const name = Array.isArray(role) ? String(role[0]) : 'master';
  if (name !== 'master') throw new Error(`the server that is said to be the primary is a ${name}`);
}

/** What the first server says that can say it. */
async function first<T>(seeds: readonly RedisClientOptions[], ask: (client: RedisClientType) => Promise<T>): Promise<T> {
  const causes: string[] = [];
  for (const seed of seeds) {
    const socket = { connectTimeout: ANSWER, ...seed.socket, reconnectStrategy: false } as RedisClientOptions['socket'];
    const client = createClient({ ...seed, disableOfflineQueue: true, maintNotifications: 'disabled', socket } as RedisClientOptions);
    client.on('error', () => undefined);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new Error('it does not answer'));
      }, ANSWER);
    });
    try {
      const answer = client.connect().then(async () => ask(client));
      answer.catch(() => undefined);
      return await Promise.race([answer, late]);
    } catch (error) {
      causes.push((error as Error).message);
    } finally {
      clearTimeout(timer);
      if (client.isOpen) client.destroy();
    }
  }
  throw new Error(`nobody says who the primary is: ${causes.join('; ')}`);
}

/** What `nodeAddressMap` makes of an address. */
function mapped({ host, port }: Address, map: Sentinels['nodeAddressMap']): Address {
  const address = `${host}:${String(port)}`;
  return (typeof map === 'function' ? map(address) : map?.[address]) ?? { host, port };
}
