/** Addresses of servers as text, as both packages read them, and what a connection that failed has to do with them. */
import { readFileSync } from 'node:fs';

import type { RedisClientOptions } from '@redis/client';

import { refuseUnknown } from './known.js';

const FORM = "'redis://user:password@host:6379/0', or rediss:// for TLS";

/** Options behind the `?`: those of redis-py for TLS. The others of redis-py say nothing to this package, and are left out. */
const QUERY = { ssl_ca_certs: 'ca', ssl_certfile: 'cert', ssl_keyfile: 'key', ssl_cert_reqs: 'rejectUnauthorized' } as const;
const OF_PYTHON = ['protocol', 'socket_timeout', 'socket_connect_timeout', 'socket_keepalive', 'health_check_interval', 'retry_on_timeout', 'max_connections', 'timeout', 'client_name', 'decode_responses'];
const KNOWN = Object.fromEntries([...Object.keys(QUERY), ...OF_PYTHON].map((name) => [name, true as const]));

/** Options of node-redis with a URL. `from` says where it was found. */
export function optionsOfUrl(given: string, from: string): RedisClientOptions & { url: string } {
  if (given.startsWith('unix:')) return { url: given };
  const url = parsed(given, from);
  const names = [...url.searchParams.keys()];
  refuseUnknown(`the URL of ${from}`, Object.fromEntries(names.map((name) => [name, true])), KNOWN);
  const secure = url.protocol === 'rediss:';
  const socket: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(QUERY)) {
    const found = url.searchParams.get(name);
    if (found === null) continue;
    if (!secure) throw new TypeError(`${name} in the URL of ${from} is for TLS: the URL begins with rediss://`);
    socket[option] = option === 'rejectUnauthorized' ? !['none', 'None', 'CERT_NONE', '0'].includes(found) : read(found, name, from);
  }
  url.search = '';
  return { url: url.href, ...(Object.keys(socket).length === 0 ? {} : { socket: socket }) };
}

function parsed(given: string, from: string): URL {
  const shown = given.replace(/\/\/[^/]*@/, '//…@'); // without the password
  const wrong = (why: string, instead = FORM): TypeError => new TypeError(`'${shown}', ${from}, ${why}: write ${instead}`);
  if (given.trim() === '') throw wrong('is empty', `${FORM}; without a server it is $JOBBOARD_URL`);
  const place = /^(?:(?:valkey|tcp|http)s?:\/\/)?([\w.-]+(?::\d+)?\/?)$/.exec(given)?.[1];
  let url: URL;
  try {
    url = new URL(given);
  } catch {
    throw wrong('is no URL', place === undefined ? FORM : `'redis://${place}'`);
  }
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') throw wrong('does not begin with redis:// or rediss://', place === undefined ? FORM : `'redis${/^\w+s:/.test(given) ? 's' : ''}://${place}'`);
  if (!/^\/?\d*$/.test(url.pathname)) throw wrong('ends with no number of a database', "'redis://host:6379/0'");
  return url;
}

function read(path: string, name: string, from: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new TypeError(`${name} in the URL of ${from} names a file that cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/** What of a certificate keeps a connection from being made: no other try would help. */
const CERTIFICATE = /self[- ]signed certificate|unable to (?:verify the first|get (?:local )?issuer) certificate|certificate has expired|altnames|tls alert|wrong version number/i;

/** Whether TLS itself refused: the server's certificate, or ours. */
export const isOfTls = (text: string): boolean => CERTIFICATE.test(text);

/** What may help when a server could not be reached. `tls`: whether TLS was spoken; undefined after a connection was made. */
export function hintOf(text: string, tls: boolean | undefined): string {
  const parts: string[] = [];
  if (/altnames/i.test(text)) parts.push("the certificate is of another name: { socket: { servername: 'name' } } says which");
  else if (/wrong version number/i.test(text)) parts.push('the server does not speak TLS there: then the URL begins with redis://');
  else if (/tls alert/i.test(text)) parts.push("the server refuses our certificate: { socket: { cert, key } }, or ?ssl_certfile=…&ssl_keyfile=… in the URL, say which");
  else if (isOfTls(text)) parts.push("{ socket: { ca: readFileSync('ca.pem') } }, or ?ssl_ca_certs=/path/ca.pem in the URL, says which authority has signed the server's certificate");
  if (/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|timeout/i.test(text)) parts.push("the board's server option or $JOBBOARD_URL says where the server is; `jobboard serve` starts one");
  if (tls === true && /timeout|ECONNRESET|socket disconnected/i.test(text)) parts.push('where the server does not speak TLS, the URL begins with redis://');
  if (tls === false && /timeout|ECONNRESET|socket closed/i.test(text)) parts.push('where the server speaks TLS, the URL begins with rediss://');
  return parts.length === 0 ? '' : `: ${parts.join('; ')}`;
}
