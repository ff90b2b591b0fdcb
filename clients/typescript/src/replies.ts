/** What makes replies values. Links have maps as flat arrays, whatever the protocol, and most text as Buffers. */
import { Refused } from './errors.js';

/** What a server answers. */
export type Reply = string | Buffer | number | boolean | null | readonly Reply[];

/** A row of a listing: names with values. */
export type Row = Record<string, unknown>;

export function text(reply: Reply | undefined): string {
  return typeof reply === 'string' ? reply : String(reply ?? '');
}

export function textOrNull(reply: Reply): string | null {
  return reply === null ? null : text(reply);
}

export function bytes(reply: Reply): Buffer {
  return Buffer.isBuffer(reply) ? reply : Buffer.from(text(reply));
}

export function list(reply: Reply | undefined): readonly Reply[] {
  return Array.isArray(reply) ? (reply as readonly Reply[]) : [];
}

/** Text, a number, null, or a list of these. */
export function value(reply: Reply): unknown {
  if (Buffer.isBuffer(reply)) return reply.toString();
  return Array.isArray(reply) ? (reply as readonly Reply[]).map(value) : reply;
}

/** Calls `take` with each pair of a map. */
export function pairs(reply: Reply | undefined, take: (key: string, found: Reply) => void): void {
  const flat = list(reply);
  for (let at = 0; at + 1 < flat.length; at += 2) take(text(flat[at]), flat[at + 1] as Reply);
}

/** The names of a map may be a user's: `constructor` is one. */
const shapeOf = (shapes: Readonly<Record<string, (found: Reply) => unknown>>, key: string): ((found: Reply) => unknown) => (Object.hasOwn(shapes, key) ? (shapes[key] ?? value) : value);

/** A map with values; `shapes` say what is not a plain one. */
export function mapping(reply: Reply | undefined, shapes: Readonly<Record<string, (found: Reply) => unknown>> = {}): Row {
  const found: Row = {};
  pairs(reply, (key, one) => {
    put(found, key, shapeOf(shapes, key)(one));
  });
  return found;
}

/** A map whose names are a user's, with values of one shape. */
export function named<T>(reply: Reply | undefined, shape: (found: Reply) => T): Record<string, T> {
  const found: Record<string, T> = {};
  pairs(reply, (key, one) => {
    put(found, key, shape(one));
  });
  return found;
}

/** Sets a field, also one of the name that objects have for their prototype. */
function put(object: Record<string, unknown>, key: string, found: unknown): void {
  if (key === '__proto__') Object.defineProperty(object, key, { value: found, enumerable: true, configurable: true, writable: true });
  else object[key] = found;
}

export const strings = (reply: Reply): Record<string, string> => mapping(reply, {}) as Record<string, string>;

/** RESP2 has doubles as text. */
export const double = (reply: Reply): number => Number(reply);

const CODE = /^[A-Z]+$/;

/** What an M-form tells of one id: the single reply, or what was refused. */
export function orRefused<T>(reply: Reply, shape: (reply: Reply) => T): T | Refused {
  const parts = list(reply);
  const code = text(parts[0]);
  return parts.length === 2 && CODE.test(code) ? new Refused(code, text(parts[1])) : shape(reply);
}
