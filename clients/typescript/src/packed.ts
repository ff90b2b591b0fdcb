/**
 * Packed replies: records as MessagePack in one string, which costs server and client least. Written here, because the
 * package has one dependency, and because it reads no more than it needs: bytes become text, or stay bytes where the
 * board's codec wants them.
 */
import type { Reply } from './replies.js';

/** The longest text that is put together here, character by character: longer ones are faster from the Buffer. */
const SHORT = 24;

/**
 * Records as they come without `PACKED`: maps as flat arrays, keys and text as text. With `binary`, what the server has
 * as bytes comes as Buffers of their own. What is no packed string is returned as it is.
 */
export function unpacked(reply: Reply | undefined, binary: boolean): Reply {
  if (!Buffer.isBuffer(reply)) return reply ?? null;
  const reader = new Reader(reply, binary);
  const found = reader.next();
  if (reader.at !== reply.length) throw new Error(`a packed reply has ${reply.length - reader.at} bytes too many`);
  return found;
}

class Reader {
  at = 0;

  constructor(
    private readonly data: Buffer,
    private readonly binary: boolean,
  ) {}

  /** The next value. */
  next(): Reply {
    const kind = this.#number(1);
    if (kind < 0x80) return kind;
    if (kind >= 0xe0) return kind - 0x100;
    if (kind < 0x90) return this.#items(2 * (kind & 0x0f));
    if (kind < 0xa0) return this.#items(kind & 0x0f);
    if (kind < 0xc0) return this.#text(kind & 0x1f);
    switch (kind) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return this.#bytes(this.#number(1 << (kind - 0xc4)));
      case 0xc7:
      case 0xc8:
      case 0xc9:
        return this.#extension(this.#number(1 << (kind - 0xc7)));
      case 0xca:
        return this.data.readFloatBE(this.#skip(4));
      case 0xcb:
        return this.data.readDoubleBE(this.#skip(8));
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf:
        return this.#number(1 << (kind - 0xcc));
      case 0xd0:
        return this.data.readInt8(this.#skip(1));
      case 0xd1:
        return this.data.readInt16BE(this.#skip(2));
      case 0xd2:
        return this.data.readInt32BE(this.#skip(4));
      case 0xd3:
        return Number(this.data.readBigInt64BE(this.#skip(8)));
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return this.#extension(1 << (kind - 0xd4));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.#text(this.#number(1 << (kind - 0xd9)));
      case 0xdc:
      case 0xdd:
        return this.#items(this.#number(2 << (kind - 0xdc)));
      case 0xde:
      case 0xdf:
        return this.#items(2 * this.#number(2 << (kind - 0xde)));
      default:
        throw new Error(`a packed reply has the byte ${kind}, which MessagePack does not use`);
    }
  }

  /** A whole number of so many bytes. */
  #number(size: number): number {
    const start = this.#skip(size);
    let found = 0;
    for (let at = start; at < start + size; at += 1) found = found * 256 + (this.data[at] as number);
    return found;
  }

  #items(count: number): Reply[] {
    const found: Reply[] = [];
    for (let left = count; left > 0; left -= 1) found.push(this.next());
    return found;
  }

  #text(size: number): string {
    const start = this.#skip(size);
    if (size > SHORT) return this.data.toString('utf8', start, start + size);
    let found = '';
    for (let at = start; at < start + size; at += 1) {
      const byte = this.data[at] as number;
      if (byte > 0x7f) return this.data.toString('utf8', start, start + size);
      found += String.fromCharCode(byte);
    }
    return found;
  }

  #bytes(size: number): Reply {
    if (!this.binary) return this.#text(size);
    const start = this.#skip(size);
    return Buffer.from(this.data.subarray(start, start + size)); // a copy: the reply need not live as long
  }

  /** Kinds that the module does not use yet. */
  #extension(size: number): null {
    this.#skip(1 + size);
    return null;
  }

  /** Where so many bytes begin, which are behind us then. */
  #skip(size: number): number {
    const start = this.at;
    this.at += size;
    if (this.at > this.data.length) throw new Error('a packed reply ends early');
    return start;
  }
}
