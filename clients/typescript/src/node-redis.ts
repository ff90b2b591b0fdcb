/** Clients of node-redis. */
import { RedisClient } from '@redis/client';
import type { RedisClientOptions, RedisClientType } from '@redis/client';

let make: ((options: RedisClientOptions) => unknown) | undefined;

/**
 * A client with these options. node-redis' own `createClient` makes a class of all commands for each new set of options,
 * such as a name, which takes 30 ms; we send words, and one class does for all.
 */
export function createClient(options: RedisClientOptions): RedisClientType {
  make ??= RedisClient.factory() as (options: RedisClientOptions) => unknown;
  return make(options) as RedisClientType;
}
