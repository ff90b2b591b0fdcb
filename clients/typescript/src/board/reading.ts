/** Verbs that read: records, listings, counts, reasons, statistics. */
import type { BoardInfo, Filters, GroupRow, LimitRow, QueueRow, QueuesOptions, State, Statistics } from '../generated.js';
import { refuseUnknown } from '../known.js';
import { type FieldNames, type HistoryEntry, historyOf, type Job } from '../jobs.js';
import { double, list, mapping, type Reply, type Row, text, value } from '../replies.js';
import { filterWords, optionWords, type Word } from '../words.js';
import { type Explanation, explanationOf } from './explanations.js';
import { recordWords, Operating } from './operating.js';
import type { Page } from './sending.js';

/** What a listing is to have beside its filters. */
export interface Listing {
  fields?: FieldNames | undefined;
  /** The whole order reversed. */
  rev?: boolean | undefined;
  /** Jobs in a command. */
  count?: number | undefined;
}

/** A page of what has changed since a revision. */
export interface Changed extends Page<Job> {
  /** Ids of jobs that were removed since; null when the board no longer knows: then list all of it anew. */
  readonly removed: readonly string[] | null;
  /** The next `since`, from the first page. */
  readonly revision: number;
}

/** A tag, and how many jobs have it. */
export interface TagRow {
  readonly tag: string;
  readonly jobs: number;
}

/** A worker that holds jobs: how many, and how many ms ago it was last heard. */
export interface HolderRow {
  readonly worker: string;
  readonly claimed: number;
  readonly active: number;
}

const LISTING: Readonly<Record<keyof Listing, true>> = { fields: true, rev: true, count: true };
const PACE = { 'arrival-rate': double, 'completion-rate': double };
const distribution = (reply: Reply): Row => mapping(reply, { mean: double, deviation: double });
const TIMES = ['wait', 'run', 'await', 'lateness', 'lease-lateness', 'due-lateness', 'fire-lateness'];
const STATS = { ...Object.fromEntries(TIMES.map((name) => [name, distribution])), costs: (found: Reply) => mapping(found) };

/** The fields that are named alone or as an option. */
function fieldsOf(given: unknown): FieldNames | undefined {
  const isOptions = typeof given === 'object' && given !== null && !Array.isArray(given) && Object.keys(given).every((key) => key === 'fields');
  const fields = isOptions ? (given as { fields?: unknown }).fields : given;
  if (fields === undefined) return undefined;
  if (Array.isArray(fields) && fields.every((one) => typeof one === 'string')) return fields as FieldNames;
  throw new TypeError(`fields is a list of texts, such as { fields: ['state', 'steps'] }, not ${JSON.stringify(given)}`);
}

export class Reading extends Operating {
  /**
   * The record of a job, or null: unknown, or dropped at its end. `state` tells these apart. A record has those of the
   * fields that the job has.
   *
   *     const job = await board.get(id, { fields: ['state', 'steps'] })
   */
  async get(id: string, fields?: FieldNames | { fields?: FieldNames | undefined }): Promise<Job | null> {
    const reply = await this.send('JOB.GET', [id, ...recordWords(fieldsOf(fields))]);
    return reply === null ? null : this.job(this.unpacked(reply));
  }

  /** The state of a job, also of one whose record was dropped a short while ago; null of an unknown one. */
  async state(id: string): Promise<State | null> {
    const reply = await this.send('JOB.EXPLAIN', [id]);
    return reply === null ? null : text(mapping(reply, { reasons: () => null })['state'] as string) as State;
  }

  /** The records of many jobs, null for an unknown one. */
  async getMany(ids: readonly string[], fields?: FieldNames | { fields?: FieldNames | undefined }): Promise<(Job | null)[]> {
    return this.jobsOrNull(await this.send('JOB.MGET', [String(ids.length), ...ids, ...recordWords(fieldsOf(fields))]));
  }

  /** Walks over a job's children, in the order of their posts. */
  async *children(id: string, options: Omit<Listing, 'rev'> = {}): AsyncGenerator<Job, void, undefined> {
    refuseUnknown('children', options, { fields: true, count: true });
    for (let cursor = '0'; ; ) {
      const words = [id, 'CHILDREN', ...recordWords(options.fields), 'CURSOR', cursor, 'COUNT', String(options.count ?? 100)];
      const reply = await this.send('JOB.GET', words);
      if (reply === null) return;
      yield* this.jobs(list(reply)[2] as Reply);
      cursor = text(list(reply)[1]);
      if (cursor === '0') return;
    }
  }

  /** Walks over the jobs that pass all filters. */
  list(filters: Filters = {}, options: Listing = {}): AsyncGenerator<Job, void, undefined> {
    refuseUnknown('list', options, LISTING);
    const { fields, rev, count } = options;
    const words = [...filterWords(filters), ...(rev === true ? ['REV'] : []), ...recordWords(fields)];
    return this.pages('JOB.LIST', words, (one) => this.job(one), count);
  }

  /** One page of `list`. It may be empty and have a cursor: go on until that is `'0'`. */
  async listPage(filters: Filters = {}, options: Listing & { cursor?: string } = {}): Promise<Page<Job>> {
    refuseUnknown('listPage', options, { ...LISTING, cursor: true });
    const words = [...filterWords(filters), ...(options.rev === true ? ['REV'] : []), ...recordWords(options.fields)];
    const reply = list(await this.send('JOB.LIST', [...words, 'CURSOR', options.cursor ?? '0', 'COUNT', String(options.count ?? 100)]));
    return { cursor: text(reply[0]), items: this.jobs(reply[1] as Reply) };
  }

  /** One page of what has changed since a revision of the board. */
  async listChanged(since: number, options: { cursor?: string; count?: number; fields?: FieldNames } = {}): Promise<Changed> {
    refuseUnknown('listChanged', options, { cursor: true, count: true, fields: true });
    const words = ['SINCE', String(since), 'CURSOR', options.cursor ?? '0', 'COUNT', String(options.count ?? 100)];
    const [cursor, jobs, removed, revision] = list(await this.send('JOB.LIST', [...words, ...recordWords(options.fields)]));
    return {
      cursor: text(cursor),
      items: this.jobs(jobs as Reply),
      removed: removed === null ? null : list(removed).map((one) => text(one)),
      revision: revision as number,
    };
  }

  /** How many jobs pass the filters; without any, how many have not ended. */
  async count(filters: Filters = {}): Promise<number> {
    let total = 0;
    for (let cursor = '0'; ; ) {
      const reply = list(await this.send('JOB.COUNT', [...filterWords(filters), 'CURSOR', cursor]));
      total += reply[1] as number;
      cursor = text(reply[0]);
      if (cursor === '0') return total;
    }
  }

  /** What happened to a job, oldest first; null of an unknown one. */
  async history(id: string): Promise<HistoryEntry[] | null> {
    const reply = await this.send('JOB.HISTORY', [id]);
    return reply === null ? null : (historyOf(reply));
  }

  /** Why a job is not running, and what would change that; null of an unknown one. */
  async explain(id: string): Promise<Explanation | null> {
    const reply = await this.send('JOB.EXPLAIN', [id]);
    return reply === null ? null : explanationOf(reply);
  }

  /** The queues, with their jobs by state and their pace; with `by` those with most of it first. */
  async queues(options: Pick<QueuesOptions, 'contains' | 'by'> = {}): Promise<QueueRow[]> {
    return this.rows<QueueRow>('JOB.QUEUES', optionWords('JOB.QUEUES', options, this.codec), PACE);
  }

  /** The groups of a queue, or of all. */
  async groups(options: { queue?: string } = {}): Promise<GroupRow[]> {
    refuseUnknown('groups', options, { queue: true });
    return this.rows<GroupRow>('JOB.GROUPS', options.queue === undefined ? [] : ['QUEUE', options.queue]);
  }

  /** The shared limits. */
  async limits(): Promise<LimitRow[]> {
    return this.rows<LimitRow>('JOB.LIMITS');
  }

  /** The tags, those that most jobs have first. */
  async tags(): Promise<TagRow[]> {
    return this.rows<TagRow>('JOB.TAGS');
  }

  /** The workers that hold jobs. Registered ones: `workerList`. */
  async workers(): Promise<HolderRow[]> {
    return this.rows<HolderRow>('JOB.WORKERS');
  }

  /** How many failed jobs are kept of each kind of failure. */
  async kinds(): Promise<Record<string, number>> {
    return Object.fromEntries((await this.rows('JOB.KINDS')).map((row) => [row['kind'], row['jobs']])) as Record<string, number>;
  }

  /** What happened on a day: `2026-11-21`, or how many days back. */
  async stats(options: { queue?: string; day?: string | number } = {}): Promise<Statistics> {
    refuseUnknown('stats', options, { queue: true, day: true });
    const words: Word[] = options.queue === undefined ? [] : ['QUEUE', options.queue];
    if (options.day !== undefined) words.push('DAY', String(options.day));
    return mapping(await this.send('JOB.STATS', words), STATS) as unknown as Statistics;
  }

  /** The board at a glance; null when there is none. */
  async info(options: { digest?: boolean } = {}): Promise<BoardInfo | null> {
    refuseUnknown('info', options, { digest: true });
    const reply = await this.send('JOB.INFO', options.digest === true ? ['DIGEST'] : []);
    return reply === null ? null : (mapping(reply, PACE) as unknown as BoardInfo);
  }

  /** The numbers of the server and of this board, as OpenMetrics text. */
  async metrics(): Promise<string> {
    return text(value(await this.send('JOB.METRICS')) as string);
  }
}
