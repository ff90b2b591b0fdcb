/** A job's record. */
import type { OnFailure } from './children.js';
import { type Codec, decoded } from './codecs.js';
import type { Field, State } from './generated.js';
import { double, list, mapping, named, type Reply, type Row, strings, text, value } from './replies.js';
import { type Signal, signalsOf } from './signals.js';

const ENDED: ReadonlySet<string> = new Set(['complete', 'failed', 'cancelled', 'trashed']);

/** A payload or a result. */
type Value = { readonly data: string | Buffer; decoded?: unknown } | undefined;

/** The signals and children that a job waits for. */
export interface Awaits {
  readonly signals?: readonly string[];
  readonly missing?: readonly string[];
  /** When the wait for signals began, Unix ms. */
  readonly since?: number;
  /** 1: one of them is enough. */
  readonly any?: number;
  /** When the wait times out, Unix ms, and what happens then. */
  readonly until?: number;
  readonly ontimeout?: string;
  /** When the wait for children began, and what happens when one of them ends without success. */
  readonly children?: { readonly since: number; readonly onfailure: OnFailure };
}

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
  /** Where it was before it moved to a dead queue. */
  declare readonly origin?: Readonly<Row>;
  /** What it waits for. */
  declare readonly awaits?: Awaits;

  readonly #codec: Codec;
  // As the server has them, until somebody reads them.
  #payload: Value;
  #result: Value;
  #steps: Reply | undefined;
  #signals: Reply | undefined;

  constructor(record: Reply, codec: Codec) {
    this.#codec = codec;
    const fields = this as unknown as Record<string, unknown>;
    const flat = list(record);
    for (let at = 0; at + 1 < flat.length; at += 2) {
      const key = text(flat[at]);
      const found = flat[at + 1] as Reply;
      if (key === 'payload') this.#payload = { data: found as string | Buffer };
      else if (key === 'result') this.#result = { data: found as string | Buffer };
      else if (key === 'steps') this.#steps = found;
      else if (key === 'signals') this.#signals = found;
      else fields[key] = field(key, found);
    }
  }

  /** The payload; undefined when it was not asked for. Raises `PayloadError` when the codec cannot read it. */
  get payload(): Payload {
    return this.#decode(this.#payload) as Payload;
  }

  /** The result; undefined when there is none. */
  get result(): Result | undefined {
    return this.#decode(this.#result) as Result | undefined;
  }

  /** What the steps of its work came to, when `steps` was asked for; empty otherwise. */
  get steps(): Readonly<Record<string, { readonly value: unknown; readonly at: number }>> {
    const decode = (data: Reply): unknown => decoded(this.#codec, data as string | Buffer);
    return named(this.#steps, (step) => mapping(step, { value: decode }) as { value: unknown; at: number });
  }

  /** What somebody outside has said to it, by name, when `signals` was asked for; empty otherwise. */
  get signals(): Readonly<Record<string, Signal>> {
    return signalsOf(this.#signals, this.#codec);
  }

  /** @internal The stored value of a step. */
  step(name: string): string | Buffer | undefined {
    const flat = list(this.#steps);
    for (let at = 0; at + 1 < flat.length; at += 2) {
      if (text(flat[at]) === name) return mapping(flat[at + 1], { value: (data) => data })['value'] as string | Buffer;
    }
    return undefined;
  }

  /** The payload as it came. */
  get data(): string | Buffer | undefined {
    return this.#payload?.data;
  }

  /** Whether it is complete, failed, cancelled or trashed. */
  get isEnded(): boolean {
    return ENDED.has(this.state);
  }

  toJSON(): Record<string, unknown> {
    const found: Record<string, unknown> = Object.fromEntries(Object.entries(this));
    if (this.#payload !== undefined) found['payload'] = this.payload;
    if (this.#result !== undefined) found['result'] = this.result;
    if (this.#steps !== undefined) found['steps'] = this.steps;
    if (this.#signals !== undefined) found['signals'] = this.signals;
    return found;
  }

  #decode(value: Value): unknown {
    if (value === undefined) return undefined;
    if (!('decoded' in value)) value.decoded = decoded(this.#codec, value.data);
    return value.decoded;
  }
}

/** Fields that are more than text, a number, or a list of these. */
const SHAPES: Readonly<Record<string, (found: Reply) => unknown>> = {
  meta: strings,
  progress: double,
  origin: mapping,
  awaits: (found) => mapping(found, { children: mapping }),
  history: historyOf,
  costs: mapping,
  spent: (found) => mapping(found, { costs: (limits) => mapping(limits) }),
};

function field(key: string, found: Reply): unknown {
  return typeof found === 'number' ? found : (SHAPES[key] ?? value)(found);
}

/** Which fields a record is to have; when undefined, all but `steps`, `signals` and `history`. */
export type FieldNames = readonly Field[];
