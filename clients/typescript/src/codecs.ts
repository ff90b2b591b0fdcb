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
    const text = JSON.stringify(value) as string | undefined;
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
