/** bull-board: a queue of a board among the queues that it shows. The console of jobboard shows more. */
import { BaseAdapter } from '@bull-board/api/dist/queueAdapters/base.js';
import type { AppJobScheduler, JobCounts, JobSchedulerRepeatOptions, JobSchedulerUpdateResult, JobState, JobStatus, QueueAdapterOptions, QueueJob, QueueJobJson, QueueJobOptions, QueueMetrics, Status } from '@bull-board/api/dist/types.js';

import type { Board } from './board/board.js';
import { collected } from './board/sending.js';
import { ofMs } from './durations.js';
import type { State } from './generated.js';
import type { ScheduleOptions } from './schedules.js';
import type { Job } from './jobs.js';

const STATES = {
  active: 'claimed',
  waiting: 'ready',
  'waiting-children': 'blocked',
  delayed: 'scheduled',
  completed: 'complete',
  failed: 'failed',
} as const satisfies Partial<Record<Status, State>>;
type Shown = keyof typeof STATES;
const SHOWN = Object.keys(STATES) as Shown[];

/** A trashed job is among the failed ones. */
function statesOf(statuses: readonly string[]): State[] {
  const found = statuses.filter((one): one is Shown => one in STATES).map((one) => STATES[one]);
  return statuses.includes('failed') ? [...found, 'trashed'] : found;
}

/**
 * A queue of a board for bull-board.
 *
 *     createBullBoard({ queues: [new BoardAdapter(board, 'mails')], serverAdapter });
 */
export class BoardAdapter extends BaseAdapter {
  constructor(
    private readonly board: Board,
    private readonly queue = 'default',
    options: Partial<QueueAdapterOptions> = {},
  ) {
    super('bullmq', options);
  }

  getName(): string {
    return `${this.board.name} ${this.queue}`;
  }

  getStatuses(): Status[] {
    return ['latest', ...SHOWN];
  }

  getJobStatuses(): JobStatus[] {
    return SHOWN;
  }

  async getJobCounts(): Promise<JobCounts> {
    const row = (await this.board.queues()).find((one) => one.queue === this.queue);
    const counts = SHOWN.map((status) => [status, statesOf([status]).reduce((sum, state) => sum + (row?.[state] ?? 0), 0)]);
    return { latest: 0, prioritized: 0, paused: 0, ...(Object.fromEntries(counts) as Record<Shown, number>) };
  }

  async getJobs(statuses: JobStatus[], start = 0, end = 20): Promise<QueueJob[]> {
    const found: QueueJob[] = [];
    let at = 0;
    for await (const job of this.board.list({ queue: this.queue, state: statesOf(statuses) }, { rev: statuses.includes('completed') || statuses.includes('failed') })) {
      if (at >= start) found.push(this.#job(job));
      at += 1;
      if (at > end) break;
    }
    return found;
  }

  async getJob(id: string): Promise<QueueJob | null> {
    const job = await this.board.get(id);
    return job && this.#job(job);
  }

  async getJobLogs(id: string): Promise<string[]> {
    return ((await this.board.history(id)) ?? []).map((one) => [new Date(one.at).toISOString(), one.event, one.worker, [one.kind, one.message].filter(Boolean).join(': '), one.queue, one.signal].filter(Boolean).join(' '));
  }

  async addJob(name: string, data: unknown, options: QueueJobOptions): Promise<QueueJob> {
    const id = await this.board.post(data ?? {}, {
      ...{ name, queue: this.queue, elsewhere: true },
      ...(options.delay === undefined ? {} : { delay: ofMs(options.delay) }),
      ...(options.attempts === undefined ? {} : { retries: options.attempts - 1 }),
    });
    return (await this.getJob(id)) as QueueJob;
  }

  async clean(status: string, grace: number): Promise<void> {
    const states = statesOf([status === 'wait' ? 'waiting' : status]);
    const old = (await collected(this.board.list({ queue: this.queue, state: states }, { fields: ['id', 'modified'] }))).filter((job) => job.modified <= Date.now() - grace);
    for (let at = 0; at < old.length; at += 1000) await this.board.delete(old.slice(at, at + 1000).map((job) => job.id));
  }

  async empty(): Promise<void> {
    await this.board.deleteWhere({ queue: this.queue, state: ['ready', 'scheduled'] });
  }

  async obliterate(): Promise<void> {
    await this.board.deleteWhere({ queue: this.queue });
  }

  async promoteAll(): Promise<void> {
    await this.board.updateWhere({ queue: this.queue, state: 'scheduled' }, { delay: '0s' });
  }

  async isPaused(): Promise<boolean> {
    return (await this.board.queues()).some((one) => one.queue === this.queue && one.paused !== 0);
  }

  async pause(): Promise<void> {
    await this.board.pause({ queue: this.queue });
  }

  async resume(): Promise<void> {
    await this.board.resume({ queue: this.queue });
  }

  /** The board keeps counts of days, and not of minutes. */
  async getMetrics(type: 'completed' | 'failed'): Promise<QueueMetrics> {
    const count = (await this.board.stats({ queue: this.queue }))[type];
    return { meta: { count, prevTS: 0, prevCount: 0 }, data: [], count };
  }

  getRedisInfo(): Promise<string | null> {
    return Promise.resolve(null);
  }

  async getGlobalConcurrency(): Promise<number | null> {
    const found = Number((await this.board.settingsGet(['concurrency'], { queue: this.queue })).concurrency?.value);
    return found < 0 ? null : found;
  }

  async setGlobalConcurrency(concurrency: number): Promise<void> {
    await this.board.settingsSet({ concurrency }, { queue: this.queue });
  }

  async getJobSchedulers(): Promise<Omit<AppJobScheduler, 'queueName'>[]> {
    const found = (await collected(this.board.scheduleList())).filter((one) => one.queue === this.queue);
    return found.map((one) => ({
      id: one.id,
      name: one.name ?? one.id,
      pattern: one.cron,
      every: one.every,
      tz: one.tz,
      limit: one.max,
      endDate: one.end,
      next: one.next,
      lastRun: one.intended,
      iterationCount: one.fired,
    }));
  }

  async getJobSchedulersCount(): Promise<number> {
    return (await this.getJobSchedulers()).length;
  }

  override get supportsJobSchedulerUpdate(): boolean {
    return true;
  }

  async updateJobScheduler(id: string, repeat: JobSchedulerRepeatOptions): Promise<JobSchedulerUpdateResult> {
    const schedule = await this.board.scheduleGet(id);
    if (schedule === null) return 'not-found';
    const times: ScheduleOptions = {
      ...(repeat.every === undefined ? { cron: repeat.pattern } : { every: ofMs(repeat.every) }),
      ...{ tz: repeat.tz, max: repeat.limit, end: repeat.endDate },
    };
    try {
      await this.board.scheduleSet(id, JSON.parse(schedule.payload) as unknown, times);
      return 'updated';
    } catch {
      return 'invalid-schedule';
    }
  }

  async removeJobScheduler(id: string): Promise<boolean> {
    const known = (await this.board.scheduleGet(id)) !== null;
    if (known) await this.board.scheduleDel(id);
    return known;
  }

  override get supportsJobSchedulerRun(): boolean {
    return true;
  }

  async runJobSchedulerNow(id: string): Promise<QueueJob | 'not-found'> {
    if ((await this.board.scheduleGet(id)) === null) return 'not-found';
    const job = await this.board.scheduleRun(id);
    return (job === null ? null : await this.getJob(job)) ?? 'not-found';
  }

  #job(job: Job): QueueJob {
    const { board } = this;
    return {
      opts: {},
      promote: async () => {
        await board.update(job.id, { delay: '0s' });
      },
      remove: async () => {
        await board.delete(job.id);
      },
      retry: async () => {
        await board.requeue(job.id);
      },
      getState: async () => stateOf((await board.get(job.id, ['state']))?.state),
      updateData: async (payload) => {
        await board.update(job.id, { payload });
      },
      changePriority: async ({ priority = 0 }) => {
        await board.update(job.id, { priority: -priority });
      },
      toJSON: () => json(job),
    };
  }
}

function stateOf(state: State | undefined): JobState {
  if (state === 'trashed' || state === 'cancelled') return 'failed';
  return SHOWN.find((one) => STATES[one] === state) ?? 'unknown';
}

function json(job: Job): QueueJobJson {
  return {
    id: job.id,
    name: job.name ?? job.queue,
    progress: job.progress ?? 0,
    attemptsMade: job.attempt,
    finishedOn: job.ended ?? null,
    processedOn: job.claimed ?? null,
    processedBy: job.worker ?? job.previous ?? null,
    delay: job.due === undefined ? 0 : Math.max(0, job.due - job.posted),
    timestamp: job.posted,
    failedReason: [job.kind, job.message].filter(Boolean).join(': ') || (job.reason ?? ''),
    stacktrace: null,
    data: job.payload,
    returnvalue: job.result ?? null,
    opts: { attempts: job.attempt + job.left },
    priority: Math.max(0, -job.priority),
    ...(job.parent === undefined ? {} : { parentKey: job.parent }),
    ...(job.unique === undefined ? {} : { deduplicationId: job.unique }),
  };
}
