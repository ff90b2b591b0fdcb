/** What a schedule is, as `JOB.SCHEDULE GET` and `LIST` return it. */
import type { Duration } from './durations.js';
import type { ScheduleSetOptions } from './generated.js';
import { mapping, type Reply, strings } from './replies.js';

/** The options of a schedule: when, by `cron` or by `every`, and those of its jobs. */
export type ScheduleOptions = Omit<ScheduleSetOptions, 'cron' | 'every'> & ({ cron?: string | undefined; every?: undefined } | { every?: Duration | undefined; cron?: undefined });

/** A schedule: its options in milliseconds, what it has posted, and what its runs get. What was not given is absent. */
export interface Schedule {
  readonly id: string;
  /** `over`: no time follows. */
  readonly state: 'active' | 'paused' | 'over';
  readonly every?: number;
  readonly cron?: string;
  readonly tz?: string;
  readonly start?: number;
  readonly end?: number;
  readonly max?: number;
  /** A number when one was given. */
  readonly backlog: 'skip' | 'one' | 'all' | number;
  readonly overlap: NonNullable<ScheduleSetOptions['overlap']>;
  readonly jitter: number;
  /** Runs posted so far. */
  readonly fired: number;
  /** How many times runs were refused. */
  readonly refused?: number;
  /** Number and intended time of the last run. */
  readonly last?: number;
  readonly intended?: number;
  /** The next time, unless it is paused or over; and when the run is posted then. */
  readonly next?: number;
  readonly due?: number;
  /** As it was stored: the codec has not read it. */
  readonly payload: string;
  readonly name?: string;
  readonly queue: string;
  readonly group?: string;
  readonly priority: number;
  readonly delay?: number;
  readonly parent?: string;
  readonly share?: number;
  readonly retries?: number;
  readonly lapses?: number;
  readonly 'backoff-base'?: number;
  readonly 'backoff-max'?: number;
  readonly 'backoff-jitter'?: number;
  readonly lease?: number;
  readonly timeout?: number;
  readonly expire?: number;
  readonly retain?: number;
  readonly cost?: number;
  readonly costs?: Readonly<Record<string, number>>;
  readonly user?: string;
  readonly maxlive?: number;
  readonly unique?: string;
  readonly until?: string;
  readonly for?: number;
  readonly meta?: Readonly<Record<string, string>>;
  readonly tags?: readonly string[];
}

export const schedule = (reply: Reply): Schedule => mapping(reply, { meta: strings, costs: (found) => mapping(found) }) as unknown as Schedule;
