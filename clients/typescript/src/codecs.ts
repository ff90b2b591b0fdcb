/** What payloads and results are as bytes. */
import { PayloadError } from './errors.js';

/** Makes bytes of payloads and results, and back. */
export interface Codec {
  /** `decode` takes text as well: then no Buffer is made on the way. */
  readonly text?: boolean;
  encode(value: unknown): string | Buffer;
  decode(data: Buffer): unknown;
}

/** JSON, which every client reads. The default. */
export const json: Codec = {
  text: true,
  encode(value) {
    let text: string | undefined;
    try {
      text = (JSON.stringify as (value: unknown) => string | undefined)(value);
    } catch (error) {
      const where = bigintIn(value, '');
      throw new PayloadError(where === undefined ? `JSON cannot write it: ${(error as Error).message}` : `JSON cannot write ${where === '' ? 'it' : `its ${where}`}, a BigInt: String(…) makes text of it`, { cause: error });
    }
    if (text === undefined) throw new PayloadError(`JSON has no ${typeof value}`);
    return text;
  },
  decode(data) {
    try {
      return data.length === 0 ? undefined : (JSON.parse(data as unknown as string) as unknown);
    } catch (error) {
      throw new PayloadError(`this payload is not JSON: ${(error as Error).message}`, { cause: error });
    }
  },
};

/** The way to the first BigInt, of which JSON has none: `.items[2].id`; of a circle nothing. */
function bigintIn(value: unknown, path: string, above: readonly unknown[] = []): string | undefined {
  if (typeof value === 'bigint') return path.replace(/^\./, '');
  if (typeof value !== 'object' || value === null || above.includes(value)) return undefined;
  for (const [key, one] of Object.entries(value)) {
    const found = bigintIn(one, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`, [...above, value]);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Bytes as they are: text or a Buffer goes in, a Buffer comes out. */
export const raw: Codec = {
  encode(value) {
    if (typeof value === 'string' || Buffer.isBuffer(value)) return value;
    if (value instanceof Uint8Array) return Buffer.from(value);
    throw new PayloadError(`a raw payload is text or bytes, not ${typeof value}`);
  },
  decode: (data) => data,
};

/** The codecs that have a name. */
export const CODECS: Readonly<Record<'json' | 'raw', Codec>> = { json, raw };

/** The bytes of a reply as a value. */
export function decoded(codec: Codec, data: string | Buffer): unknown {
  if (codec.text === true) return codec.decode(data as Buffer);
  return codec.decode(typeof data === 'string' ? Buffer.from(data) : data);
}
