/** The events of a worker, and the EventEmitter that tells them. */
import { EventEmitter } from 'node:events';

import type { Context } from '../context.js';
import { nearest } from '../handlers.js';

/** What has become of a failed try. */
export interface FailedTry {
  /** `scheduled` or `ready`: it is tried again, or with `dead` it has moved to that queue. */
  readonly state: 'scheduled' | 'ready' | 'failed' | 'cancelled' | 'trashed';
  /** The retries left, -1 for no limit; absent when it was trashed. */
  readonly left?: number;
  /** When the next try may start, Unix ms. */
  readonly due?: number;
  /** The dead queue to which the job has moved. */
  readonly dead?: string;
}

/** What a worker tells, as an EventEmitter. */
export interface WorkerEvents {
  /** A handler is called. */
  active: [context: Context];
  /** The server has taken the completion of a job. */
  completed: [context: Context, result: unknown];
  /** The server has taken the failure of a try. */
  failed: [context: Context, error: unknown, then: FailedTry];
  /** A job was lost: its lease ended, or somebody took it. */
  lost: [context: Context, why: string];
  /** There is nothing to do. */
  drained: [];
}

type EventName = keyof WorkerEvents;
type Listener<Name extends EventName> = (...told: WorkerEvents[Name]) => void;

/**
 * The methods of Node's EventEmitter, for the events of a worker. They are written out here because @types/node writes
 * them in another way from version to version, and a class that overrides them compiles with some of these alone.
 */
interface WorkerEmitter {
  on<Name extends EventName>(name: Name, listener: Listener<Name>): this;
  once<Name extends EventName>(name: Name, listener: Listener<Name>): this;
  addListener<Name extends EventName>(name: Name, listener: Listener<Name>): this;
  prependListener<Name extends EventName>(name: Name, listener: Listener<Name>): this;
  prependOnceListener<Name extends EventName>(name: Name, listener: Listener<Name>): this;
  off<Name extends EventName>(name: Name, listener: Listener<Name>): this;
  removeListener<Name extends EventName>(name: Name, listener: Listener<Name>): this;
  removeAllListeners(name?: EventName): this;
  emit<Name extends EventName>(name: Name, ...told: WorkerEvents[Name]): boolean;
  eventNames(): (string | symbol)[];
  listenerCount<Name extends EventName>(name: Name, listener?: Listener<Name>): number;
  listeners<Name extends EventName>(name: Name): Listener<Name>[];
  rawListeners<Name extends EventName>(name: Name): Listener<Name>[];
  setMaxListeners(most: number): this;
  getMaxListeners(): number;
}

const Base = EventEmitter as unknown as new () => WorkerEmitter;

/** Node's EventEmitter, which refuses the name of an event that a worker never tells. */
export class Emitter extends Base {
  override on<Name extends EventName>(name: Name, listener: Listener<Name>): this {
    return super.on(known(name), listener);
  }

  override once<Name extends EventName>(name: Name, listener: Listener<Name>): this {
    return super.once(known(name), listener);
  }

  override addListener<Name extends EventName>(name: Name, listener: Listener<Name>): this {
    return this.on(name, listener);
  }

  override prependListener<Name extends EventName>(name: Name, listener: Listener<Name>): this {
    return super.prependListener(known(name), listener);
  }

  override prependOnceListener<Name extends EventName>(name: Name, listener: Listener<Name>): this {
    return super.prependOnceListener(known(name), listener);
  }
}

const EVENTS: Readonly<Record<EventName, true>> = { active: true, completed: true, failed: true, lost: true, drained: true };
/** Events that Node itself listens to or tells. */
const OF_NODE: ReadonlySet<unknown> = new Set(['error', 'newListener', 'removeListener']);
/** What other packages call an event, and what to write here. */
const ELSEWHERE: Readonly<Record<string, string>> = { stalled: "'lost'", progress: 'board.watch(id) or board.events()', closed: 'the end of await worker.run()', closing: 'the end of await worker.run()', ready: "'active' of the first job" };

/** Refuses an event that a worker never tells. */
function known<Name extends EventName>(name: Name): Name {
  if (typeof name !== 'string' || Object.hasOwn(EVENTS, name) || OF_NODE.has(name)) return name;
  const all = Object.keys(EVENTS);
  const instead = Object.hasOwn(ELSEWHERE, name) ? ELSEWHERE[name] : undefined;
  const near = nearest(name, all);
  throw new TypeError(`a Worker tells of no '${name as string}'; there are ${all.join(', ')}${instead === undefined ? (near === undefined ? '' : `. Did you mean '${near}'?`) : `. Here that is ${instead}`}`);
}
