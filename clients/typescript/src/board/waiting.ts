/** Verbs that wait: for jobs to end, for a result, for work. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';

import { type Duration, ofMs, toMs } from '../durations.js';
import { BoardError, ConnectionLost, JobFailed, JobUnknown, NoResult, ResultDropped, TimedOut } from '../errors.js';
import type { PostOptions } from '../generated.js';
import { refuseUnknown } from '../known.js';
import { type FieldNames, Job } from '../jobs.js';
import { bytes, list, mapping, type Reply, text } from '../replies.js';
import type { Word } from '../words.js';
import { recordWords } from './operating.js';
import { Reading } from './reading.js';
import { BLOCK } from './sending.js';

/** How long to wait; for ever without. `signal` ends the wait with its reason. */
export interface Patience {
  timeout?: Duration | undefined;
  signal?: AbortSignal | undefined;
}

/** What a worker wrote at once. */
export interface OutputChunk {
  /** As it was written. A chunk may end within a character: a `TextDecoder` with `stream: true` joins them. */
  readonly data: Buffer;
  /** The same as text. */
  readonly text: string;
  /** The run that wrote it. */
  readonly attempt: number;
  /** It is the first of its run: what was read before is over. */
  readonly anew: boolean;
  /** How many chunks before it are no longer there. */
  readonly missed: number;
  /** The `since` with which reading goes on behind it. */
  readonly next: number;
}

const PATIENCE: Readonly<Record<keyof Patience, true>> = { timeout: true, signal: true };
const RETAIN = '60s';
/** Between two tries of a call whose connection was lost, ms. */
const AGAIN = 200;
/** What a job does that has not ended, by its state. */
const STANDS: Readonly<Partial<Record<string, string>>> = {
  ready: 'it is ready, and no worker has claimed it',
  claimed: 'it is claimed: a worker is at it',
  scheduled: 'it is scheduled: its time has not come',
  blocked: 'it is blocked: it waits for other jobs or for signals',
};
/** The fields that every heartbeat changes. */
const OF_HEARTBEATS = ['version', 'modified', 'deadline', 'until'];
const ENDS: ReadonlySet<string> = new Set(['complete', 'failed', 'cancelled', 'trashed']);

export class Waiting extends Reading {
  /**
   * Waits until all of the jobs, or `any`, have ended; their records, null for one without. Null when `timeout` has
   * passed. A record is there only when it is kept: post with `retain`, or let the handler give a result.
   */
  async wait(ids: readonly string[], options: Patience & { until?: 'all' | 'any'; fields?: FieldNames } = {}): Promise<(Job | null)[] | null> {
    refuseUnknown('wait', options, { ...PATIENCE, until: true, fields: true });
    const words = ['JOBS', String(ids.length), ...ids, (options.until ?? 'all').toUpperCase(), ...recordWords(options.fields)];
    const reply = await this.#wait(words, options);
    return reply === null ? null : this.jobsOrNull(reply);
  }

  /** Waits until something can be claimed, or the board has jobs that have not ended, or none; false when `timeout` has passed. */
  async waitFor(what: 'claimable' | 'present' | 'empty', options: Patience & { queues?: readonly string[] } = {}): Promise<boolean> {
    refuseUnknown('waitFor', options, { ...PATIENCE, queues: true });
    const queues = options.queues === undefined ? [] : ['QUEUES', String(options.queues.length), ...options.queues];
    return (await this.#wait(['FOR', what, ...queues], options)) !== null;
  }

  /**
   * Waits for a job and returns its result; undefined when it completed without one. Raises `JobFailed` when it did
   * not complete, `ResultDropped` when it did and its record is not kept, `JobUnknown` when the board does not know it
   * (all of them `NoResult`), and `TimedOut`.
   */
  async result<R = unknown>(id: string, options: Patience = {}): Promise<R> {
    refuseUnknown('result', options, PATIENCE);
    const found = await this.wait([id], { ...options, fields: ['id', 'state', 'result', 'kind', 'message', 'reason'] });
    if (found === null) throw await this.#notEnded(id);
    const [job] = found;
    if (!job) throw await this.#withoutRecord(id);
    if (job.state !== 'complete') throw new JobFailed(job.id, job.state, why(job), job);
    return job.result as R;
  }

  /**
   * Walks over what becomes of a job: its record now, and again each time that one of the fields has changed, until it
   * has ended. The fields are id, state and those of `fields`; without `fields` those of `get`, but for the ones that every
   * heartbeat changes: version, modified, deadline, until.
   *
   *     for await (const job of board.watch(id, { fields: ['progress', 'stage'] })) console.log(job.state, job.progress)
   *
   * Of changes that follow each other at once it may show the last alone. Raises `JobUnknown` and `TimedOut`.
   */
  async *watch(id: string, options: Patience & { fields?: FieldNames } = {}): AsyncGenerator<Job, void, undefined> {
    refuseUnknown('watch', options, { ...PATIENCE, fields: true });
    const asked = options.fields;
    const fields = asked && [...new Set<FieldNames[number]>(['id', 'state', 'version', ...asked])];
    const end = options.timeout === undefined ? undefined : performance.now() + toMs(options.timeout, 'timeout');
    const ignored: ReadonlySet<string> = new Set(asked === undefined ? OF_HEARTBEATS : asked.includes('version') ? [] : ['version']);
    let last: readonly Reply[] | undefined;
    for (let version = 0; ; ) {
      const reply = await this.#wait(['JOBS', '1', id, 'CHANGED', String(version), ...recordWords(fields)], { end, signal: options.signal });
      if (reply === null) throw new TimedOut(`${id} has not ended in time`);
      const [record = null] = this.unpacked(reply);
      let job = record === null ? null : this.job(record);
      if (job === null) {
        const ended = await this.#withoutRecord(id);
        if (ended instanceof JobUnknown) throw ended;
        job = new Job(['id', id, 'state', ended.state], this.codec);
      }
      const now = without(record, ignored);
      if (last === undefined || !isDeepStrictEqual(now, last)) yield job;
      if (job.isEnded) return;
      [last, version] = [now, job.version];
    }
  }

  /**
   * Walks over what the worker of a job writes, as it comes, until the job has ended; with `follow: false` over what is
   * there. `since`: the `next` of the last chunk that was read.
   *
   *     for await (const chunk of board.output(id)) process.stdout.write(chunk.text)
   *
   * Raises `JobUnknown` and `TimedOut`.
   */
  async *output(id: string, options: Patience & { since?: number; follow?: boolean } = {}): AsyncGenerator<OutputChunk, void, undefined> {
    refuseUnknown('output', options, { ...PATIENCE, since: true, follow: true });
    const { follow = true, signal } = options;
    const end = options.timeout === undefined ? undefined : performance.now() + toMs(options.timeout, 'timeout');
    for (let since = options.since ?? 0; ; ) {
      signal?.throwIfAborted();
      const block = Math.max(1, Math.round(end === undefined ? BLOCK : Math.min(BLOCK, end - performance.now())));
      const words = [id, 'SINCE', String(since), ...(follow ? ['BLOCK', String(block)] : [])];
      const ask = async (asked: readonly Word[]): Promise<Reply> =>
        this.sendWaiting('JOB.OUTPUT', asked, block, signal).catch((error: unknown) => {
          signal?.throwIfAborted();
          throw error;
        });
      // A wait may end where a board was whose slot moves: who asks without waiting is sent after it.
      const reply = (await ask(words)) ?? (follow ? await ask(words.slice(0, 3)) : null);
      if (reply === null) throw new JobUnknown(id, 'unknown');
      const found = mapping(reply, { chunks: (all) => list(all).map(bytes) });
      const chunks = found['chunks'] as readonly Buffer[];
      since = found['next'] as number;
      for (const [at, data] of chunks.entries()) {
        const first = at === 0;
        yield {
          data,
          text: data.toString(),
          attempt: found['attempt'] as number,
          anew: first && found['anew'] === 1,
          missed: first ? (found['missed'] as number) : 0,
          next: since - chunks.length + at + 1,
        };
      }
      if (chunks.length === 0 && (!follow || ENDS.has(found['state'] as string))) return;
      if (end !== undefined && performance.now() >= end) throw new TimedOut(`${id} has not ended in time`);
    }
  }

  /**
   * Posts a job and waits for its result, as `result` does. A job that nobody did in time is cancelled, and so is one whose
   * `signal` has fired. When the connection is lost, the job goes on: with `within` the call waits until that time is over,
   * without it the call throws `ConnectionLost`.
   */
  async call<R = unknown>(payload: unknown, { within, signal, ...options }: PostOptions & { within?: Duration; signal?: AbortSignal } = {}): Promise<R> {
    const patience = within === undefined ? undefined : toMs(within, 'within');
    const id = await this.post(payload, { ...options, retain: options.retain ?? RETAIN });
    const end = patience === undefined ? undefined : performance.now() + patience;
    let closed = false;
    const isClosed = (): boolean => closed;
    const forget = this.closes(() => (closed = true));
    try {
      for (;;) {
        try {
          return await this.result<R>(id, { timeout: end === undefined ? undefined : ofMs(end - performance.now()), signal });
        } catch (error) {
          const isLost = error instanceof ConnectionLost;
          const isOver = error instanceof TimedOut || (isLost && end !== undefined && performance.now() >= end);
          const cancelled = isOver || signal?.aborted === true ? this.cancel(id).catch(() => undefined) : undefined;
          if (isOver && isLost) throw new TimedOut(`${id} has not ended in time, and the server is away`, { cause: error });
          await cancelled;
          if (cancelled !== undefined || !isLost || end === undefined || isClosed()) throw error;
          await sleep(AGAIN, undefined, { signal }).catch(() => undefined); // the next wait throws the reason of the signal
          if (isClosed()) throw error;
        }
      }
    } finally {
      forget();
    }
  }

  /** Says where the job is instead: nobody may work there. */
  async #notEnded(id: string): Promise<TimedOut> {
    const text = `${id} has not ended in time`;
    const state = await this.get(id, { fields: ['state'] }).then((job) => job?.state, () => undefined);
    return new TimedOut(state === undefined ? text : `${text}: ${STANDS[state] ?? `it is ${state}`}`);
  }

  /** What a job has come to whose record was not kept. */
  async #withoutRecord(id: string): Promise<NoResult> {
    const dropped = 'its record was not kept';
    let found: string | null;
    try {
      found = await this.state(id);
    } catch (error) {
      if (!BoardError.is(error, 'NOPERM')) throw error;
      return new JobUnknown(id, 'unknown', `${dropped}, and JOB.EXPLAIN, which knows how it ended, may not be asked`);
    }
    if (found === null || !ENDS.has(found)) return new JobUnknown(id, 'unknown');
    return new (found === 'complete' ? ResultDropped : JobFailed)(id, found, dropped);
  }

  async #wait(words: readonly Word[], { timeout, end: given, signal }: Patience & { end?: number | undefined }): Promise<Reply> {
    const end = given ?? (timeout === undefined ? undefined : performance.now() + toMs(timeout, 'timeout'));
    for (;;) {
      signal?.throwIfAborted();
      const left = end === undefined ? BLOCK : Math.min(BLOCK, end - performance.now());
      const block = Math.max(1, Math.round(left)); // 0 would be for ever
      const reply = await this.sendWaiting('JOB.WAIT', [String(block), ...words], block, signal).catch((error: unknown) => {
        signal?.throwIfAborted();
        throw error;
      });
      if (reply !== null || (end !== undefined && performance.now() >= end)) return reply;
    }
  }
}

/** A record without some of its fields: names and values by turns. */
function without(record: Reply, ignored: ReadonlySet<string>): readonly Reply[] {
  const flat = list(record);
  return flat.filter((_, at) => !ignored.has(text(flat[at - (at % 2)])));
}

/** Why a job did not complete. */
function why(job: Job): string {
  const told = [job.kind, job.message].filter(Boolean).join(': ');
  const found = job.state === 'failed' ? told || (job.reason ?? '') : (job.reason ?? told);
  return found === job.state ? '' : found;
}
