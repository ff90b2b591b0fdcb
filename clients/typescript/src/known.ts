/** Refuses options that nobody reads: where no compiler looks, a misspelt one would be left out in silence. */
import type { RedisClientOptions, RedisClusterOptions, RedisSentinelOptions } from '@redis/client';

import { COMMANDS } from './generated.js';
import { nearest } from './handlers.js';
import { otherWord } from './other-words.js';
import { shown } from './shown.js';

type Names<T> = Readonly<Record<keyof T, true>>;

/** The options of node-redis, by which a server may be named. */
const CLIENT: Names<RedisClientOptions> = {
  url: true,
  socket: true,
  username: true,
  password: true,
  credentialsProvider: true,
  name: true,
  database: true,
  keyPrefix: true,
  commandsQueueMaxLength: true,
  disableOfflineQueue: true,
  readonly: true,
  pingInterval: true,
  commandOptions: true,
  clientSideCache: true,
  himportRegistry: true,
  disableClientInfo: true,
  clientInfoTag: true,
  emitInvalidate: true,
  maintNotifications: true,
  maintEndpointType: true,
  maintRelaxedCommandTimeout: true,
  maintRelaxedSocketTimeout: true,
  RESP: true,
  modules: true,
  functions: true,
  scripts: true,
};
const CLUSTER: Names<RedisClusterOptions> = {
  rootNodes: true,
  defaults: true,
  minimizeConnections: true,
  useReplicas: true,
  maxCommandRedirections: true,
  topologyRefreshOnReconnectionAttemptStrategy: true,
  nodeAddressMap: true,
  clientSideCache: true,
  himportRegistry: true,
  commandOptions: true,
  keyPrefix: true,
  RESP: true,
  modules: true,
  functions: true,
  scripts: true,
};
const SENTINELS: Names<RedisSentinelOptions> = {
  name: true,
  sentinelRootNodes: true,
  maxCommandRediscovers: true,
  nodeClientOptions: true,
  sentinelClientOptions: true,
  masterPoolSize: true,
  replicaPoolSize: true,
  nodeAddressMap: true,
  scanInterval: true,
  passthroughClientErrorEvents: true,
  reserveClient: true,
  clientSideCache: true,
  commandOptions: true,
  keyPrefix: true,
  RESP: true,
  modules: true,
  functions: true,
  scripts: true,
};

type RedisSocketOptions = NonNullable<RedisClientOptions['socket']>;
type KeysOf<T> = T extends unknown ? keyof T : never;
/** The options of its socket: those of `node:net` and `node:tls` too. */
const SOCKET: Readonly<Record<Exclude<KeysOf<RedisSocketOptions>, symbol | number>, true>> = {
  host: true,
  port: true,
  path: true,
  tls: true,
  connectTimeout: true,
  socketTimeout: true,
  reconnectStrategy: true,
  localAddress: true,
  localPort: true,
  hints: true,
  family: true,
  lookup: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: true,
  autoSelectFamily: true,
  autoSelectFamilyAttemptTimeout: true,
  fd: true,
  allowHalfOpen: true,
  signal: true,
  socket: true,
  checkServerIdentity: true,
  servername: true,
  session: true,
  minDHSize: true,
  timeout: true,
  pskCallback: true,
  ALPNCallback: true,
  allowPartialTrustChain: true,
  ca: true,
  cert: true,
  sigalgs: true,
  ciphers: true,
  clientCertEngine: true,
  crl: true,
  dhparam: true,
  ecdhCurve: true,
  honorCipherOrder: true,
  key: true,
  privateKeyEngine: true,
  privateKeyIdentifier: true,
  maxVersion: true,
  minVersion: true,
  passphrase: true,
  pfx: true,
  secureOptions: true,
  secureProtocol: true,
  sessionIdContext: true,
  ticketKeys: true,
  sessionTimeout: true,
  secureContext: true,
  enableTrace: true,
  requestCert: true,
  ALPNProtocols: true,
  SNICallback: true,
  rejectUnauthorized: true,
};

/** How a server is named. */
export const HOW = "'redis://user:password@host:6379', or { socket: { host, port } }";

/** Refuses what is no option of `what`; `hint` may say what to write for a name, behind the list or, `isWhole`, in its place. */
export function refuseUnknown(what: string, given: object, names: Readonly<Record<string, true>>, hint: (name: string) => string | undefined = () => undefined, isWhole = false): void {
  if (typeof given !== 'object' || (given as unknown) === null) throw new TypeError(`the options of ${what} are an object, such as { ${Object.keys(names)[0] ?? ''}: … }, not ${shown(given)}`);
  const all = Object.keys(names);
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(names, name));
  if (unknown === undefined) return;
  const near = nearest(unknown, all);
  const say = hint(unknown) ?? (near === undefined ? '' : `. Did you mean '${near}'?`);
  if (isWhole && hint(unknown) !== undefined) throw new TypeError(`${what} has no option '${unknown}': write ${say}`);
  throw new TypeError(`${what} has no option '${unknown}'; there are ${all.join(', ')}${say}`);
}

/** The options of node-redis: those of one server, of Sentinels, or of a cluster. */
export function refuseUnknownOfServer(given: object): void {
  if ('rootNodes' in given) refuseUnknown('a cluster', given, CLUSTER);
  else if ('sentinelRootNodes' in given) refuseUnknown('a place of Sentinels', given, SENTINELS);
  else refuseUnknown('a server', given, CLIENT, ofAnother);
  const { defaults, rootNodes, nodeClientOptions, sentinelClientOptions } = given as Partial<RedisClusterOptions & RedisSentinelOptions>;
  for (const one of [given, defaults, ...(rootNodes ?? []), nodeClientOptions, sentinelClientOptions]) refuseUnknownOfSocket((one as RedisClientOptions | undefined)?.socket);
}

function refuseUnknownOfSocket(socket: object | undefined): void {
  const unknown = Object.keys(socket ?? {}).find((name) => !Object.hasOwn(SOCKET, name));
  if (unknown === undefined) return;
  const near = nearest(unknown, Object.keys(SOCKET));
  throw new TypeError(`a socket has no option '${unknown}'; there are host, port, path, tls, connectTimeout, and those of node:net and node:tls${near === undefined ? '' : `. Did you mean '${near}'?`}`);
}

/** Those of a task: of its posts, and its own. */
export function refuseUnknownOfTask(name: string, given: object): void {
  const ofOneJob = new Set<string>(['id', 'nx', 'xx', 'replace', 'name', 'at', 'after', 'strict', 'parent', 'share']);
  const ofAll = COMMANDS['JOB.POST'].map(([key]) => key).filter((key) => !ofOneJob.has(key));
  const names = Object.fromEntries([...ofAll, 'noretry', 'result'].map((key) => [key, true as const]));
  refuseUnknown(`the task '${name}'`, given, names, otherWord, true);
}

/** Those of a task's schedule: of `JOB.SCHEDULE SET`, and its id. */
export function refuseUnknownOfSchedule(name: string, given: object): void {
  const known = COMMANDS['JOB.SCHEDULE SET'].map(([key]) => key).filter((key) => key !== 'name');
  refuseUnknown(`the schedule of '${name}'`, given, Object.fromEntries(['cron', 'every', 'id', ...known].map((key) => [key, true as const])), otherWord, true);
}

/** Whether a name is an option of node-redis. */
export const isOfServer = (name: string): boolean => [CLIENT, CLUSTER, SENTINELS].some((names) => Object.hasOwn(names, name));

/** Those of a board; `names` are its own. */
export function refuseUnknownOfBoard(given: object, names: Readonly<Record<string, true>>): void {
  refuseUnknown('a board', given, names, (name) => (Object.hasOwn(CLIENT, name) ? `. What the server is told is an option of its own: { server: { ${name}: … } }` : ofAnother(name)));
}

/** What other packages call the way to their server. */
function ofAnother(name: string): string | undefined {
  const known = ['host', 'port', 'path', 'tls', 'db', 'user', 'connection', 'client', 'redis', 'uri', 'hostname', 'nodes', 'sentinels'];
  return known.includes(name.toLowerCase()) ? `. Write ${HOW}` : undefined;
}
