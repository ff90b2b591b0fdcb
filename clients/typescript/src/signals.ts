/** Signals: what somebody outside says to a job. */
import { type Codec, decoded } from './codecs.js';
import { mapping, named, type Reply } from './replies.js';

/** What somebody outside has said to a job. */
export interface Signal<Value = unknown> {
  /** Undefined when it says nothing beside its name. */
  readonly value: Value;
  /** When it arrived, Unix ms. */
  readonly at: number;
  readonly sender?: string;
}

/** Signals by name, as the server has them. */
export function signalsOf(reply: Reply | undefined, codec: Codec): Record<string, Signal> {
  const said = (data: Reply): unknown => ((data as string | Buffer).length === 0 ? undefined : decoded(codec, data as string | Buffer));
  return named(reply, (one) => mapping(one, { value: said }) as unknown as Signal);
}
