/** Verbs of operators: each by ids, all or none, or by filters, slice by slice. */
import { encoded } from '../codecs.js';
import type { CancelOptions, DependAddOptions, Filters, PauseOptions, RequeueOptions, ResumeOptions, Settings, UpdateOptions } from '../generated.js';
import { EVENTS, SETTINGS } from '../generated.js';
import type { FieldNames, Job } from '../jobs.js';
import { list, named, type Reply, text, textOrNull, value } from '../replies.js';
import { type Schedule, schedule, type ScheduleOptions } from '../schedules.js';
import { toMs } from '../durations.js';
import { refuseUnknown } from '../known.js';
import { shown } from '../shown.js';
import { counted, filterWords, optionWords, type Word } from '../words.js';
import { Working } from './working.js';

/** What a signal says beside its name, and who sends it, which is shown and not checked. */
export interface Said {
  value?: unknown;
  sender?: string | undefined;
}

/** What a verb over several jobs has done. */
export interface Slice {
  /** How many jobs it changed. */
  readonly count: number;
  /** The unknown ids, or by filters the ids that were held back. */
  readonly missed: string[];
  /** With `return`: the records. */
  readonly jobs: (Job | null)[];
}

/** What JOB.UPDATE sets. */
export type Changes = Omit<UpdateOptions, 'count' | 'cursor' | 'dryrun'>;

/** How a verb over filters goes about it. */
export interface Sweep {
  /** Jobs in a command; 1,000 by default. */
  count?: number;
  /** Counts the jobs, and changes nothing. */
  dryrun?: boolean;
  /** Told after each command how many jobs were done so far. */
  progress?: (done: number) => void;
}

/** A value in force, and where it comes from. */
export interface Setting {
  readonly value: number | string | readonly string[];
  readonly source: string;
}

/** Of what a setting is: the board, when empty. */
export interface Scope {
  queue?: string | undefined;
  /** With `queue`; `*`: all groups without settings of their own. */
  group?: string | undefined;
  limit?: string | undefined;
}

const EMPTY = {};
const SAID: Readonly<Record<keyof Said, true>> = { value: true, sender: true };
const SWEEP: Readonly<Record<keyof Sweep, true>> = { count: true, dryrun: true, progress: true };
const SCOPE: Readonly<Record<keyof Scope, true>> = { queue: true, group: true, limit: true };

export class Operating extends Working {
  /** Cancels jobs: for each `cancelled`, `requested` (its worker is told), `already`, or null (unknown). */
  async cancel(ids: string | readonly string[], options: Pick<CancelOptions, 'by' | 'force'> = {}): Promise<('cancelled' | 'requested' | 'already' | null)[]> {
    return list(await this.sendWith('JOB.CANCEL', idWords(ids), options)).map(textOrNull) as ('cancelled' | 'requested' | 'already' | null)[];
  }

  /** Cancels all jobs that pass the filters. */
  async cancelWhere(where: Filters, options: Pick<CancelOptions, 'by' | 'force'> & Sweep = {}): Promise<Slice> {
    const { by, force, ...sweep } = options;
    return this.#sweep('JOB.CANCEL', where, [], optionWords('JOB.CANCEL', { by, force }, this.codec), sweep);
  }

  /**
   * Sends a signal to jobs: for each `woken`, `kept` (it does not wait for it yet), `already`, `ended`, or null (unknown).
   * The first signal of a name counts.
   */
  async signal(name: string, ids: string | readonly string[], options: Said = {}): Promise<('woken' | 'kept' | 'already' | 'ended' | null)[]> {
    return list(await this.send('JOB.SIGNAL', [name, ...idWords(ids), ...this.#said(options)])).map(textOrNull) as ('woken' | 'kept' | 'already' | 'ended' | null)[];
  }

  /** Sends a signal to all jobs that pass the filters and have none of its name yet. */
  async signalWhere(name: string, where: Filters, { value: said, sender, ...sweep }: Said & Sweep = {}): Promise<Slice> {
    return this.#sweep('JOB.SIGNAL', where, [], this.#said({ value: said, sender }), sweep, [name]);
  }

  #said({ value: said, sender, ...others }: Said): Word[] {
    refuseUnknown('a signal', others, SAID);
    return [...(said === undefined ? [] : ['VALUE', encoded(this.codec, said, 'the value of the signal')]), ...(sender === undefined ? [] : ['SENDER', sender])];
  }

  /** Takes claimed jobs from their workers; with `front` they come next of their priority. */
  async release(ids: string | readonly string[], options: { front?: boolean } = {}): Promise<Slice> {
    return this.#slice(await this.sendWith('JOB.RELEASE', idWords(ids), options));
  }

  async releaseWhere(where: Filters, options: { front?: boolean } & Sweep = {}): Promise<Slice> {
    const { front, ...sweep } = options;
    return this.#sweep('JOB.RELEASE', where, [], front ? ['FRONT'] : [], sweep);
  }

  /**
   * Makes failed, trashed and cancelled jobs ready again; `fresh`: they forget their steps; `origin`: dead jobs go where
   * they failed; `payload`: another one, for one job.
   */
  async requeue(ids: string | readonly string[], options: Pick<RequeueOptions, 'queue' | 'fresh' | 'origin' | 'payload'> = {}): Promise<Slice> {
    return this.#slice(await this.sendWith('JOB.REQUEUE', idWords(ids), options));
  }

  /** The same of all jobs that pass the filters; `to`: into this queue; `origin`: dead jobs go where they failed. */
  async requeueWhere(where: Filters, options: { to?: string; origin?: boolean; fresh?: boolean } & Sweep = {}): Promise<Slice> {
    const { to, origin, fresh, ...sweep } = options;
    const words = [...(to === undefined ? [] : ['TO', to]), ...(origin ? ['ORIGIN'] : []), ...(fresh ? ['FRESH'] : [])];
    return this.#sweep('JOB.REQUEUE', where, words, [], sweep);
  }

  /** Deletes jobs in any state; with `return` their records come back. */
  async delete(ids: string | readonly string[], options: { return?: boolean; fields?: FieldNames } = {}): Promise<Slice> {
    return this.#slice(await this.send('JOB.DELETE', [...idWords(ids), ...returnWords(options)]));
  }

  async deleteWhere(where: Filters, options: { return?: boolean; fields?: FieldNames } & Sweep = {}): Promise<Slice> {
    const { return: wanted, fields, ...sweep } = options;
    return this.#sweep('JOB.DELETE', where, [], returnWords({ return: wanted, fields }), sweep);
  }

  /** Changes jobs: priority, queue, payload, tags and more. */
  async update(ids: string | readonly string[], changes: Changes): Promise<Slice> {
    return this.#slice(await this.send('JOB.UPDATE', [...idWords(ids), 'SET', ...optionWords('JOB.UPDATE', changes, this.codec)]));
  }

  async updateWhere(where: Filters, changes: Changes, sweep: Sweep = {}): Promise<Slice> {
    return this.#sweep('JOB.UPDATE', where, [], ['SET', ...optionWords('JOB.UPDATE', changes, this.codec)], sweep);
  }

  /** Adds jobs that a job waits for, or its children; the job's state. */
  async dependAdd(id: string, others: readonly string[] | 'children', options: DependAddOptions = {}): Promise<string> {
    const words = others === 'children' ? ['CHILDREN'] : [String(others.length), ...others];
    return text(await this.sendWith('JOB.DEPEND ADD', [id, ...words], options));
  }

  /** Removes some that it waits for, or all signals, or its children. */
  async dependRemove(id: string, others: readonly string[] | 'signals' | 'children'): Promise<string> {
    const words = typeof others === 'string' ? [others.toUpperCase()] : [String(others.length), ...others];
    return text(await this.send('JOB.DEPEND REMOVE', [id, ...words]));
  }

  /** Removes all that it waits for. */
  async dependClear(id: string): Promise<string> {
    return text(await this.send('JOB.DEPEND CLEAR', [id]));
  }

  /** Stops claims from the board, a queue or a group. */
  async pause(options: PauseOptions = {}): Promise<void> {
    await this.sendWith('JOB.PAUSE', [], options);
  }

  /** Ends a pause. */
  async resume(options: ResumeOptions = {}): Promise<void> {
    await this.sendWith('JOB.RESUME', [], options);
  }

  /** Makes a schedule, or changes one: the server posts a job at each of its times. */
  async scheduleSet(id: string, payload: unknown, options: ScheduleOptions): Promise<void> {
    const { cron, every } = options as { cron?: unknown; every?: unknown };
    if (cron !== undefined && every !== undefined) throw new TypeError(`${id}: a schedule has cron or every, not both: ${shown({ cron, every })}`);
    await this.sendWith('JOB.SCHEDULE SET', [id, encoded(this.codec, payload ?? EMPTY, options.name ?? id)], options);
  }

  /** A schedule, or null. */
  async scheduleGet(id: string): Promise<Schedule | null> {
    const reply = await this.send('JOB.SCHEDULE GET', [id]);
    return reply === null ? null : schedule(reply);
  }

  /** Walks over the schedules. */
  scheduleList(): AsyncGenerator<Schedule, void, undefined> {
    return this.pages('JOB.SCHEDULE LIST', [], schedule);
  }

  async scheduleDel(id: string): Promise<void> {
    await this.send('JOB.SCHEDULE DEL', [id]);
  }

  async schedulePause(id: string): Promise<void> {
    await this.send('JOB.SCHEDULE PAUSE', [id]);
  }

  async scheduleResume(id: string): Promise<void> {
    await this.send('JOB.SCHEDULE RESUME', [id]);
  }

  /** Posts a job of it now, beside its times; its id, or null when the last one still goes on and `overlap` is `skip`. */
  async scheduleRun(id: string): Promise<string | null> {
    return textOrNull(await this.send('JOB.SCHEDULE RUN', [id]));
  }

  /** The settings in force, all or these, and where each comes from. */
  async settingsGet(names: readonly (keyof Settings)[] = [], scope: Scope = {}): Promise<Readonly<Partial<Record<keyof Settings, Setting>>>> {
    const reply = await this.send('JOB.SETTINGS GET', [...scopeWords(scope), ...names]);
    return named(reply, (one) => ({ value: value(list(one)[0] as Reply) as Setting['value'], source: text(list(one)[1]) }));
  }

  /** Sets settings of the board, a queue, groups or a shared limit. */
  async settingsSet(settings: Settings, scope: Scope = {}): Promise<void> {
    await this.send('JOB.SETTINGS SET', [...scopeWords(scope), ...settingWords(settings)]);
  }

  /** Removes settings, these or all: those of the board or the module count again. */
  async settingsReset(names: readonly (keyof Settings)[] = [], scope: Scope = {}): Promise<void> {
    await this.send('JOB.SETTINGS RESET', [...scopeWords(scope), ...names]);
  }

  #slice(reply: Reply): Slice {
    const [count, , missed, jobs] = list(reply);
    return { count: count as number, missed: list(missed).map((one) => text(one)), jobs: this.jobsOrNull(jobs ?? null) };
  }

  async #sweep(command: string, where: Filters, head: readonly Word[], tail: readonly Word[], { count = 1000, dryrun = false, progress, ...others }: Sweep, first: readonly Word[] = []): Promise<Slice> {
    refuseUnknown(`${command} by filters`, others, SWEEP);
    const filters = filterWords(where);
    if (filters.length === 0) throw new TypeError('no filter is given: this would be every job');
    const sum: Slice = { count: 0, missed: [], jobs: [] };
    let done = 0;
    for (let cursor = '0'; ; ) {
      const words = [...first, 'WHERE', ...filters, ...head, 'COUNT', String(count), 'CURSOR', cursor, ...(dryrun ? ['DRYRUN'] : []), ...tail];
      const reply = await this.send(command, words);
      const slice = this.#slice(reply);
      done += slice.count;
      sum.missed.push(...slice.missed);
      sum.jobs.push(...slice.jobs);
      progress?.(done);
      cursor = text(list(reply)[1]);
      if (cursor === '0') return { ...sum, count: done };
    }
  }
}

function idWords(ids: string | readonly string[]): Word[] {
  const all = typeof ids === 'string' ? [ids] : ids;
  return [String(all.length), ...all];
}

/** `FIELDS n field …`, when there are any. */
function fieldWords(fields: FieldNames | undefined): Word[] {
  return fields === undefined ? [] : counted('FIELDS', fields);
}

/** What of records is wanted, and that they come packed. */
export function recordWords(fields: FieldNames | undefined): Word[] {
  return [...fieldWords(fields), 'PACKED'];
}

function returnWords({ return: wanted, fields }: { return?: boolean | undefined; fields?: FieldNames | undefined }): Word[] {
  return wanted === true || fields !== undefined ? ['RETURN', ...fieldWords(fields)] : [];
}

function scopeWords({ queue, group, limit, ...others }: Scope): Word[] {
  refuseUnknown('the scope of settings', others, SCOPE);
  const queues = queue === undefined ? [] : ['QUEUE', queue, ...(group === undefined ? [] : ['GROUP', group])];
  return limit === undefined ? queues : ['LIMIT', limit];
}

function settingWords(settings: Settings): Word[] {
  return Object.entries(settings).flatMap(([name, found]: [string, unknown]) => {
    if (found === undefined) return [];
    const shape = (SETTINGS as Readonly<Record<string, string>>)[name];
    if (shape === undefined) throw new TypeError(`there is no setting '${name}' of boards; there are ${Object.keys(SETTINGS).join(', ')}`);
    if (shape === 'list') return counted(name, found as readonly string[]);
    if (shape === 'flag') return [name, found === true || found === 1 ? '1' : '0'];
    if (shape === 'duration' || shape === 'endless') return [name, String(toMs(found as '1s', name))];
    return [name, String(found)];
  });
}

/** The bits of these kinds in the setting `events`. */
export function eventBits(kinds: readonly (keyof typeof EVENTS)[]): number {
  return kinds.reduce((sum, kind) => sum | EVENTS[kind], 0);
}
