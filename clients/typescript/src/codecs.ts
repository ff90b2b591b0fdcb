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
      throw new PayloadError(`JSON cannot write ${unwritable(value, '', []) ?? `it: ${(error as Error).message}`}`, { cause: error });
    }
    if (text === undefined) throw new PayloadError(`JSON has no ${value === undefined ? 'undefined: null is a value' : typeof value}`);
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

/** What JSON has no words for, and where: `its .items[2].id, a BigInt`. */
function unwritable(value: unknown, path: string, above: readonly unknown[]): string | undefined {
  const its = path === '' ? 'it' : `its ${path.replace(/^\./, '')}`;
  if (typeof value === 'bigint') return `${its}, a BigInt: String(…) makes text of it`;
  if (typeof value !== 'object' || value === null) return undefined;
  if (above.includes(value)) return `${its}, which leads back to ${above.indexOf(value) === 0 ? 'the whole' : 'what it is a part of'}: give its id, or leave it out`;
  for (const [key, one] of Object.entries(value)) {
    const found = unwritable(one, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`, [...above, value]);
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

/** Bytes of a value; `what` names it where the codec cannot write it. */
export function encoded(codec: Codec, value: unknown, what: string | undefined): string | Buffer {
  try {
    return codec.encode(value);
  } catch (error) {
    if (!(error instanceof PayloadError) || what === undefined) throw error;
    throw new PayloadError(`${what}: ${error.message}`, { cause: error.cause });
  }
}
