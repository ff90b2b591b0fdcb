/** A job's record. */
import { type Codec, decoded } from './codecs.js';
import type { Field, State } from './generated.js';
import { double, list, mapping, pairs, type Reply, strings, value } from './replies.js';

const ENDED: ReadonlySet<string> = new Set(['complete', 'failed', 'cancelled', 'trashed']);

/** An entry of a job's history. */
export interface HistoryEntry {
  readonly at: number;
  readonly event: string;
  readonly worker?: string;
  /** The kind of a failure. */
  readonly kind?: string;
  /** Of a failure, a reason, or a line of log. */
  readonly message?: string;
  /** The queue to which the job moved. */
  readonly queue?: string;
  /** The first of the signals that it is about. */
  readonly signal?: string;
  /** How many signals it is about, when there are several. */
  readonly signals?: number;
  /** How many children had not ended. */
  readonly children?: number;
  /** 1: no other try follows this failure. */
  readonly final?: number;
}

/** The entries of a history. */
export const historyOf = (reply: Reply): HistoryEntry[] => list(reply).map((one) => mapping(one) as unknown as HistoryEntry);

/**
 * A record, with the fields that were asked for and that the job has: see Record fields in the reference. Times are
 * Unix milliseconds: `new Date(job.posted)`. `payload` and `result` are decoded when they are first read.
 */
export class Job<Payload = unknown, Result = unknown> {
  declare readonly id: string;
  declare readonly seq: number;
  declare readonly state: State;
  declare readonly queue: string;
  declare readonly name?: string;
  declare readonly priority: number;
  declare readonly attempt: number;
  declare readonly left: number;
  declare readonly token: number;
  declare readonly worker?: string;
  declare readonly deadline?: number;
  declare readonly kind?: string;
  declare readonly message?: string;
  declare readonly stage?: string;
  declare readonly progress?: number;
  declare readonly posted: number;
  declare readonly due?: number;
  declare readonly claimed?: number;
  declare readonly ended?: number;
  declare readonly modified: number;
  declare readonly version: number;
  declare readonly meta?: Readonly<Record<string, string>>;
  declare readonly previous?: string;
  declare readonly reason?: string;
  declare readonly intended?: number;
  declare readonly after?: readonly string[];
  declare readonly tags?: readonly string[];
  declare readonly tracked?: number;
  declare readonly user?: string;
  declare readonly unique?: string;
  declare readonly parent?: string;
  declare readonly share?: number;
  declare readonly children?: number;
  declare readonly pending?: number;
  declare readonly unsuccessful?: number;
  declare readonly group?: string;
  declare readonly cost?: number;
  /** The permits that a claim of it takes of single limits. */
  declare readonly costs?: Readonly<Record<string, number>>;
  /** What its claim, or the last one, has cost so far, as its worker has said. */
  declare readonly spent?: { readonly cost: number; readonly costs?: Readonly<Record<string, number>> };
  declare readonly session?: number;
  declare readonly retries: number;
  declare readonly lapses: number;
  declare readonly history?: readonly HistoryEntry[];
  declare readonly until?: number;

  /** What the steps of its work came to, as the server has it. */
  readonly #steps = new Map<string, { data: string | Buffer; at: number }>();
  readonly #codec: Codec;
  readonly #data: { payload?: string | Buffer; result?: string | Buffer } = {};
  readonly #decoded: { payload?: unknown; result?: unknown } = {};

  constructor(record: Reply, codec: Codec) {
    this.#codec = codec;
    const fields = this as unknown as Record<string, unknown>;
    pairs(record, (key, found) => {
      if (key === 'payload' || key === 'result') this.#data[key] = found as string | Buffer;
      else if (key === 'steps') {
        pairs(found, (name, step) => {
          const { value: data, at } = mapping(step, { value: (one) => one }) as { value: string | Buffer; at: number };
          this.#steps.set(name, { data, at });
        });
      } else fields[key] = field(key, found);
    });
  }

  /** The payload; undefined when it was not asked for. Raises `PayloadError` when the codec cannot read it. */
  get payload(): Payload {
    return this.#decode('payload') as Payload;
  }

  /** The result; undefined when there is none. */
  get result(): Result | undefined {
    return this.#decode('result') as Result | undefined;
  }

  /** What the steps of its work came to, when `steps` was asked for. */
  get steps(): Readonly<Record<string, { readonly value: unknown; readonly at: number }>> {
    return Object.fromEntries([...this.#steps].map(([name, { data, at }]) => [name, { value: decoded(this.#codec, data), at }]));
  }

  /** @internal The stored value of a step. */
  step(name: string): string | Buffer | undefined {
    return this.#steps.get(name)?.data;
  }

  /** The payload as it came. */
  get data(): string | Buffer | undefined {
    return this.#data.payload;
  }

  /** Whether it is complete, failed, cancelled or trashed. */
  get isEnded(): boolean {
    return ENDED.has(this.state);
  }

  toJSON(): Record<string, unknown> {
    const found: Record<string, unknown> = Object.fromEntries(Object.entries(this));
    for (const name of ['payload', 'result'] as const) if (this.#data[name] !== undefined) found[name] = this[name];
    if (this.#steps.size > 0) found['steps'] = this.steps;
    return found;
  }

  #decode(name: 'payload' | 'result'): unknown {
    const data = this.#data[name];
    if (data === undefined) return undefined;
    if (!(name in this.#decoded)) this.#decoded[name] = decoded(this.#codec, data);
    return this.#decoded[name];
  }
}

function field(key: string, found: Reply): unknown {
  if (key === 'meta') return strings(found);
  if (key === 'progress') return double(found);
  if (key === 'history') return historyOf(found);
  if (key === 'costs') return mapping(found);
  if (key === 'spent') return mapping(found, { costs: (limits) => mapping(limits) });
  return value(found);
}

/** Which fields a record is to have; all of them when undefined. */
export type FieldNames = readonly (Field | (string & {}))[];
