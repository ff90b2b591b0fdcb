/** Verbs of workers, for programs that work without a `Worker`. */
import { type Children, childrenOf, type OnFailure } from '../children.js';
import { type Codec, decoded } from '../codecs.js';
import { blockOf } from '../durations.js';
import type { Refused } from '../errors.js';
import type { AbandonOptions, AwaitOptions, ClaimOptions, ConsumeOptions, FailOptions, HeartbeatOptions, MabandonOptions, MconsumeOptions, MfailOptions, MheartbeatOptions, MtrashOptions, State, StepOptions, TrashOptions, WorkerListOptions, WorkerRegisterOptions, WorkerRow } from '../generated.js';
import type { Job } from '../jobs.js';
import { list, mapping, orRefused, type Reply, strings, text } from '../replies.js';
import { type Signal, signalsOf } from '../signals.js';
import { counted, optionWords, type Word } from '../words.js';
import { Posting } from './posting.js';

/** A claim: a job's id, and its token. */
export interface Held {
  readonly id: string;
  readonly token?: number | undefined;
}

/** What a heartbeat answers: when the next command must come, and whether somebody wants the job cancelled. */
export interface Beat {
  readonly deadline: number;
  readonly cancel: boolean;
}

/** What a step answers: as a heartbeat, and the value that counts. With `deadline` 0 the worker has lost the job. */
export interface Stored extends Beat {
  readonly value: unknown;
}

/** What a wait for signals, or for signals and children, answers. */
export interface SignalWait {
  /** `claimed` when the worker keeps the job; else `blocked`, or `cancelled`. */
  readonly state: State;
  /** The time of this wait was over. */
  readonly timeout: boolean;
  /** By name; undefined when the job was given up. */
  readonly signals: Readonly<Record<string, Signal>> | undefined;
  /** Where the wait was for children too, and the worker keeps the job. */
  readonly children?: Children;
}

/** What a wait for children answers. */
export interface ChildrenWait {
  /** `claimed` when the worker keeps the job; else `blocked`, `cancelled` or `failed`. */
  readonly state: State;
  /** Undefined when the job was given up. */
  readonly children: Children | undefined;
}

/** What has become of a failed try. */
export interface Failure {
  /** `cancelled` when somebody asked to cancel it; `ready` also when it has moved to a dead queue. */
  readonly state: 'scheduled' | 'ready' | 'failed' | 'cancelled';
  readonly due?: number;
  readonly left: number;
  /** The dead queue to which the job has moved. */
  readonly dead?: string;
  /** How many bytes of the message were too many, and are cut off. */
  readonly cut?: number;
}

/** A verb that ended a job, and the jobs that it claimed. */
export interface Chained<T> {
  readonly ended: T;
  readonly jobs: Job[];
}

const beat = (reply: Reply): Beat => {
  const found = mapping(reply);
  return { deadline: found['deadline'] as number, cancel: found['cancel'] === 1 };
};
const failure = (reply: Reply) => mapping(reply) as unknown as Failure;

export class Working extends Posting {
  /** Claims ready jobs, or with `block` waits for some. */
  async claim(worker: string, options: Omit<ClaimOptions, 'id'> = {}): Promise<Job[]> {
    return this.jobs(await this.#claiming('JOB.CLAIM', [worker, ...optionWords('JOB.CLAIM', options, this.codec), 'PACKED'], options));
  }

  /** Claims this one job. */
  async claimId(worker: string, id: string, options: Pick<ClaimOptions, 'lease' | 'session' | 'fields'> = {}): Promise<Job> {
    const [job] = this.jobs(await this.sendWith('JOB.CLAIM', [worker, 'ID', id, 'PACKED'], options));
    return job as Job;
  }

  /** Keeps a claim alive, and reports progress. */
  async heartbeat(worker: string, { id, token }: Held, options: HeartbeatOptions = {}): Promise<Beat> {
    return beat(await this.sendWith('JOB.HEARTBEAT', [worker, id], { token, ...options }));
  }

  /** Stores what a step of the work came to, and keeps the claim alive; the first value wins, and the answer has it. */
  async step(worker: string, { id, token }: Held, name: string, value: unknown, options: StepOptions = {}): Promise<Stored> {
    const reply = await this.sendWith('JOB.STEP', [worker, id, name, this.codec.encode(value)], { token, ...options });
    const found = mapping(reply, { value: (other) => decoded(this.codec, other as string | Buffer) });
    return { ...beat(reply), value: 'value' in found ? found['value'] : value };
  }

  /**
   * Waits for signals: keeps the job when they have arrived, or the time is over; else gives it up until then, and
   * `signals` is undefined. With `children` the job's children must have ended too: the word says what becomes of the job
   * when one of them ends without success.
   */
  async awaitSignals(worker: string, { id, token }: Held, signals: readonly string[], { children, ...options }: Omit<AwaitOptions, 'claim' | 'signals' | 'onfailure'> & { children?: OnFailure | undefined } = {}): Promise<SignalWait> {
    const words = optionWords('JOB.AWAIT', { signals, ...options, token }, this.codec);
    const found = mapping(await this.send('JOB.AWAIT', [worker, id, ...words, ...childrenWords(children, this.codec)]), {
      signals: (all) => all,
    }) as { state: State; timeout?: number; signals?: Reply };
    if (found.signals === undefined) return { state: found.state, timeout: false, signals: undefined };
    const counts = childrenOf(found);
    return { state: found.state, timeout: found.timeout === 1, signals: signalsOf(found.signals, this.codec), ...(counts && { children: counts }) };
  }

  /** Waits for the job's children: keeps the job when all have ended, else gives it up until they have. */
  async awaitChildren(worker: string, { id, token }: Held, { onfailure = 'hold', ...options }: Pick<AwaitOptions, 'onfailure' | 'payload' | 'cost' | 'costs'> = {}): Promise<ChildrenWait> {
    const words = [...childrenWords(onfailure, this.codec), ...optionWords('JOB.AWAIT', { token, ...options }, this.codec)];
    const found = mapping(await this.send('JOB.AWAIT', [worker, id, ...words]));
    return { state: found['state'] as State, children: childrenOf(found) };
  }

  /** Keeps many claims alive, or all of a worker. */
  async mheartbeat(worker: string, held: readonly Held[], options?: MheartbeatOptions): Promise<(Beat | Refused)[]>;
  async mheartbeat(worker: string, held: 'all', options?: MheartbeatOptions): Promise<(Beat & { id: string; token: number })[]>;
  async mheartbeat(worker: string, held: readonly Held[] | 'all', options: MheartbeatOptions = {}): Promise<unknown[]> {
    const reply = list(await this.sendWith('JOB.MHEARTBEAT', [worker, ...many(held)], options));
    if (held === 'all') {
      return reply.map((one) => {
        const found = mapping(one);
        return { id: found['id'], token: found['token'], ...beat(one) };
      });
    }
    return reply.map((one) => orRefused(one, beat));
  }

  /** Completes a job, or with `next` moves it to its next queue; with `claim` it claims the next jobs as well. */
  async consume(worker: string, held: Held, options: ConsumeOptions & { claim: ClaimOptions }): Promise<Chained<string>>;
  async consume(worker: string, held: Held, options?: ConsumeOptions): Promise<string>;
  async consume(worker: string, held: Held, options: ConsumeOptions = {}): Promise<string | Chained<string>> {
    return this.#end('JOB.CONSUME', worker, held, [], options, text);
  }

  /** Completes many jobs, or all of a worker; `results` gives each its own. */
  async mconsume(worker: string, held: readonly Held[] | 'all', { results, ...options }: Omit<MconsumeOptions, 'claim'> & { results?: readonly unknown[] } = {}): Promise<(string | Refused | { id: string; ended: string })[]> {
    const extra = results === undefined ? [] : counted('RESULTS', results.map((one) => this.codec.encode(one)));
    return this.#endMany('JOB.MCONSUME', worker, held, [], extra, options, text);
  }

  /** Reports that this try failed. */
  async fail(worker: string, held: Held, kind: string, message: string, options: FailOptions & { claim: ClaimOptions }): Promise<Chained<Failure>>;
  async fail(worker: string, held: Held, kind: string, message: string, options?: FailOptions): Promise<Failure>;
  async fail(worker: string, held: Held, kind: string, message: string, options: FailOptions = {}): Promise<Failure | Chained<Failure>> {
    return this.#end('JOB.FAIL', worker, held, [kind, message], options, failure);
  }

  /** Fails many jobs, or all of a worker. */
  async mfail(worker: string, held: readonly Held[] | 'all', kind: string, message: string, options: Omit<MfailOptions, 'claim'> = {}): Promise<(Failure | Refused | { id: string; ended: Failure })[]> {
    return this.#endMany('JOB.MFAIL', worker, held, [kind, message], [], options, failure);
  }

  /** Gives a job back, at no cost to it. */
  async abandon(worker: string, held: Held, options: AbandonOptions & { claim: ClaimOptions }): Promise<Chained<string>>;
  async abandon(worker: string, held: Held, options?: AbandonOptions): Promise<string>;
  async abandon(worker: string, held: Held, options: AbandonOptions = {}): Promise<string | Chained<string>> {
    return this.#end('JOB.ABANDON', worker, held, [], options, text);
  }

  /** Gives many jobs back, or all of a worker. */
  async mabandon(worker: string, held: readonly Held[] | 'all', options: MabandonOptions = {}): Promise<(string | Refused | { id: string; ended: string })[]> {
    return this.#endMany('JOB.MABANDON', worker, held, [], [], options, text);
  }

  /** Sets a job aside that can never succeed. */
  async trash(worker: string, held: Held, options: TrashOptions & { claim: ClaimOptions }): Promise<Chained<string>>;
  async trash(worker: string, held: Held, options?: TrashOptions): Promise<string>;
  async trash(worker: string, held: Held, options: TrashOptions = {}): Promise<string | Chained<string>> {
    return this.#end('JOB.TRASH', worker, held, [], options, text);
  }

  /** Sets many jobs aside, or all of a worker. */
  async mtrash(worker: string, held: readonly Held[] | 'all', options: Omit<MtrashOptions, 'claim'> = {}): Promise<(string | Refused | { id: string; ended: string })[]> {
    return this.#endMany('JOB.MTRASH', worker, held, [], [], options, text);
  }

  /** Registers a worker, or refreshes its registration. */
  async workerRegister(worker: string, options: WorkerRegisterOptions = {}): Promise<{ expires: number; quiet: boolean }> {
    const found = mapping(await this.sendWith('JOB.WORKER REGISTER', [worker], options));
    return { expires: found['expires'] as number, quiet: found['quiet'] === 1 };
  }

  /** Ends a registration, and gives the worker's jobs back; whether there was one. */
  async workerDeregister(worker: string): Promise<boolean> {
    return (await this.send('JOB.WORKER DEREGISTER', [worker])) === 1;
  }

  /** Walks over the registered workers. Those that hold jobs: `workers`. */
  workerList(options: Pick<WorkerListOptions, 'role' | 'count'> = {}): AsyncGenerator<WorkerRow, void, undefined> {
    const words = options.role === undefined ? [] : ['ROLE', options.role];
    return this.pages('JOB.WORKER LIST', words, (one) => mapping(one, { meta: strings }) as unknown as WorkerRow, options.count);
  }

  /** Hands no more jobs to a worker. */
  async workerQuiet(worker: string): Promise<void> {
    await this.send('JOB.WORKER QUIET', [worker]);
  }

  /** Hands jobs to a quiet worker again. */
  async workerResume(worker: string): Promise<void> {
    await this.send('JOB.WORKER RESUME', [worker]);
  }

  async #claiming(command: string, words: readonly Word[], { block, session }: Pick<ClaimOptions, 'block' | 'session'>): Promise<Reply> {
    if (block === undefined) return this.send(command, words);
    if (session === true) return this.send(command, words, { block: blockOf(block) }); // the session is that of this connection
    return this.sendWaiting(command, words, blockOf(block));
  }

  async #end<T>(command: 'JOB.CONSUME' | 'JOB.FAIL' | 'JOB.ABANDON' | 'JOB.TRASH', worker: string, { id, token }: Held, head: readonly Word[], options: { claim?: ClaimOptions | undefined }, shape: (reply: Reply) => T): Promise<T | Chained<T>> {
    const words = [worker, id, ...head, ...optionWords(command, { token, ...options }, this.codec)];
    const reply = await this.#claiming(command, words, options.claim ?? {});
    if (options.claim === undefined) return shape(reply);
    const [ended, jobs] = list(reply);
    return { ended: shape(ended as Reply), jobs: this.jobs(jobs as Reply) };
  }

  async #endMany<T>(command: 'JOB.MCONSUME' | 'JOB.MFAIL' | 'JOB.MABANDON' | 'JOB.MTRASH', worker: string, held: readonly Held[] | 'all', head: readonly Word[], extra: readonly Word[], options: object, shape: (reply: Reply) => T): Promise<(T | Refused | { id: string; ended: T })[]> {
    const words = [worker, ...head, ...many(held), ...extra, ...optionWords(command, options, this.codec)];
    const reply = list(await this.send(command, words));
    if (held !== 'all') return reply.map((one) => orRefused(one, shape));
    return reply.map((one) => ({ id: text(list(one)[0]), ended: shape(list(one)[1] as Reply) }));
  }
}

/** `CHILDREN ONFAILURE word`: what belongs together there. */
export function childrenWords(onfailure: OnFailure | undefined, codec: Codec): Word[] {
  return onfailure === undefined ? [] : ['CHILDREN', ...optionWords('JOB.AWAIT', { onfailure }, codec)];
}

/** Claims as `n id … TOKENS n token …`. */
function many(held: readonly Held[] | 'all'): Word[] {
  if (held === 'all') return ['ALL'];
  const words: Word[] = [String(held.length), ...held.map((one) => one.id)];
  const tokens = held.map((one) => one.token);
  if (tokens.every((one) => one !== undefined)) words.push(...counted('TOKENS', tokens.map(String)));
  return words;
}
