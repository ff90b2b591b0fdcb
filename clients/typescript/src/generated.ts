// Made by scripts/generate.mjs from commands.md: do not edit.
/* eslint-disable */
import type { Duration } from './durations.js';
import type { Time } from './times.js';
import type { After, Backoff, Chunk, Only, Rest } from './words.js';

/** The version of the reference that this was made from. */
export const REFERENCE = '0.2';

/** The options of `JOB.POST`, in the words of its reference. */
export interface PostOptions {
  /** the job's id. The post is refused when the id exists. Range: 1 to 255 bytes, not beginning with `@` */
  id?: string | undefined;
  /** posts only when the id is new; otherwise the reply is null. Range: with `ID` */
  nx?: boolean | undefined;
  /** replaces an existing job; when there is none, the reply is null. Range: with `ID` */
  xx?: boolean | undefined;
  /** replaces an existing job, or posts a new one. Range: with `ID` */
  replace?: boolean | undefined;
  /** the job's type, by which workers choose what to do. Range: 1 to 255 bytes */
  name?: string | undefined;
  /** the queue in which the job waits. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** the group with which the job takes turns in its queue. Range: 1 to 255 bytes, not `*` */
  group?: string | undefined;
  /** how many permits a claim of the job takes where a rate is set. Range: 1 to 2^31-1 */
  cost?: number | undefined;
  /** how many permits it takes of single shared limits, in place of `COST`. Range: n 1 to 16, each limit once; costs 0 to 2^31-1 */
  costs?: Readonly<Record<string, number>> | undefined;
  /** jobs with a higher priority are claimed first. Range: -2^31 to 2^31-1 */
  priority?: number | undefined;
  /** the job becomes ready after this time. Range: 0 to 2^40 ms */
  delay?: Duration | undefined;
  /** the job becomes ready at this time; a time in the past means now. Range: Unix ms, 0 to 2^47 */
  at?: Time | undefined;
  /** how many failures are followed by another try. Range: -1 (no limit) to 2^31-1 */
  retries?: number | undefined;
  /** how many lost leases are followed by another try. Range: -1 (no limit) to 2^31-1 */
  lapses?: number | undefined;
  /** the wait before a retry. `FIXED ms` is always the same; `EXPONENTIAL base max` doubles from base to max. Range: 0 to 2^40 ms */
  backoff?: Backoff | undefined;
  /** by how many percent that wait varies at random, up or down. Range: 0 to 100 */
  jitter?: number | undefined;
  /** how long a claim holds without a heartbeat. Range: 1 to 2^40 ms */
  lease?: Duration | undefined;
  /** the longest time that one run may take. A longer run fails with kind `timeout`. Range: -1 (no limit) or 1 to 2^40 ms */
  timeout?: Duration | 'forever' | undefined;
  /** the age at which an unclaimed job fails with kind `expired`. The age counts from when the job first could run, without back-off. Range: -1 (no limit) or 1 to 2^40 ms */
  expire?: Duration | 'forever' | undefined;
  /** how long the server keeps the record after the job is complete. Range: -1 (for ever) to 2^40 ms */
  retain?: Duration | 'forever' | undefined;
  /** on whose behalf the job is posted. JOB.CANCEL can check it. Range: 1 to 255 bytes */
  user?: string | undefined;
  /** posts only while this user has fewer jobs of this name that have not ended. Jobs without a name count together. Range: 1 to 2^31-1, with `USER` */
  maxlive?: number | undefined;
  /** fields of your own, up to 64. Range: field 1 to 255 bytes, value up to `max-text` */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** words by which people find the job, each named once. Their order is kept; JOB.UPDATE changes them. Range: n 0 to 64, each 1 to 255 bytes */
  tags?: readonly string[] | undefined;
  /** jobs that must be complete before this one runs: see Dependencies. With `CHILDREN` its children. The option can be repeated, with `CHILDREN` once. Range: n 0 to `max-batch`, at most 10,000 in all */
  after?: After | undefined;
  /** refuses the post when the board does not know an id in `AFTER`. Range: with `AFTER` */
  strict?: boolean | undefined;
  /** the parent, a job of the board that has not ended. Range: 1 to 255 bytes */
  parent?: string | undefined;
  /** the job's weight in its parent's progress. Range: 1 to 1000000, with `PARENT` */
  share?: number | undefined;
  /** signals that must arrive before the job runs: see Waiting for signals. Range: n 1 to 64, each once, 1 to 255 bytes */
  await?: readonly string[] | undefined;
  /** one of the signals is enough. Range: with `AWAIT` */
  any?: boolean | undefined;
  /** how long the job waits for the signals, counted from the post. Range: 1 to 2^40 ms, with `AWAIT` */
  within?: Duration | undefined;
  /** what happens then. `run`: its handler runs, and learns that nobody answered. `fail`: it fails with kind `signal`. `cancel`: it is cancelled. Range: with `WITHIN` */
  ontimeout?: 'run' | 'fail' | 'cancel' | undefined;
  /** a key that only one job of the board can hold: see Unique keys. Range: 1 to 255 bytes */
  unique?: string | undefined;
  /** when the key becomes free. `end`: when the job ends. `start`: when the job is claimed, or ends before; a job that comes back does not take the key again. Range: with `UNIQUE` */
  until?: 'start' | 'end' | undefined;
  /** how long the key is held, counted from the post. Alone: exactly this long, whatever happens to the job. With `UNTIL`: at most this long. Range: 1 to 2^40 ms, with `UNIQUE` */
  for?: Duration | undefined;
  /** what happens when another job holds the key. `reject`: the post is refused with `EXISTS id`. `return`: nothing is posted, and the reply is the holder's id. `replace`: the holder gets the payload and the given options, and the reply is its id. `debounce`: the same, and its delay starts again. Range: with `UNIQUE` */
  onconflict?: 'reject' | 'return' | 'replace' | 'debounce' | undefined;
  /** when `max-jobs` or `max-bytes` leaves no room, wait this long for it: see Waiting for room; 0 means for ever. Range: 0 to 2^40 ms */
  block?: Duration | undefined;
}

/** The options of `JOB.MPOST`, in the words of its reference. */
export interface MpostOptions {
  /** posts only when the id is new; otherwise the reply is null. Range: with `ID` */
  nx?: boolean | undefined;
  /** replaces an existing job; when there is none, the reply is null. Range: with `ID` */
  xx?: boolean | undefined;
  /** replaces an existing job, or posts a new one. Range: with `ID` */
  replace?: boolean | undefined;
  /** the job's type, by which workers choose what to do. Range: 1 to 255 bytes */
  name?: string | undefined;
  /** the queue in which the job waits. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** the group with which the job takes turns in its queue. Range: 1 to 255 bytes, not `*` */
  group?: string | undefined;
  /** how many permits a claim of the job takes where a rate is set. Range: 1 to 2^31-1 */
  cost?: number | undefined;
  /** how many permits it takes of single shared limits, in place of `COST`. Range: n 1 to 16, each limit once; costs 0 to 2^31-1 */
  costs?: Readonly<Record<string, number>> | undefined;
  /** jobs with a higher priority are claimed first. Range: -2^31 to 2^31-1 */
  priority?: number | undefined;
  /** the job becomes ready after this time. Range: 0 to 2^40 ms */
  delay?: Duration | undefined;
  /** the job becomes ready at this time; a time in the past means now. Range: Unix ms, 0 to 2^47 */
  at?: Time | undefined;
  /** how many failures are followed by another try. Range: -1 (no limit) to 2^31-1 */
  retries?: number | undefined;
  /** how many lost leases are followed by another try. Range: -1 (no limit) to 2^31-1 */
  lapses?: number | undefined;
  /** the wait before a retry. `FIXED ms` is always the same; `EXPONENTIAL base max` doubles from base to max. Range: 0 to 2^40 ms */
  backoff?: Backoff | undefined;
  /** by how many percent that wait varies at random, up or down. Range: 0 to 100 */
  jitter?: number | undefined;
  /** how long a claim holds without a heartbeat. Range: 1 to 2^40 ms */
  lease?: Duration | undefined;
  /** the longest time that one run may take. A longer run fails with kind `timeout`. Range: -1 (no limit) or 1 to 2^40 ms */
  timeout?: Duration | 'forever' | undefined;
  /** the age at which an unclaimed job fails with kind `expired`. The age counts from when the job first could run, without back-off. Range: -1 (no limit) or 1 to 2^40 ms */
  expire?: Duration | 'forever' | undefined;
  /** how long the server keeps the record after the job is complete. Range: -1 (for ever) to 2^40 ms */
  retain?: Duration | 'forever' | undefined;
  /** on whose behalf the job is posted. JOB.CANCEL can check it. Range: 1 to 255 bytes */
  user?: string | undefined;
  /** posts only while this user has fewer jobs of this name that have not ended. Jobs without a name count together. Range: 1 to 2^31-1, with `USER` */
  maxlive?: number | undefined;
  /** fields of your own, up to 64. Range: field 1 to 255 bytes, value up to `max-text` */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** words by which people find the job, each named once. Their order is kept; JOB.UPDATE changes them. Range: n 0 to 64, each 1 to 255 bytes */
  tags?: readonly string[] | undefined;
  /** jobs that must be complete before this one runs: see Dependencies. With `CHILDREN` its children. The option can be repeated, with `CHILDREN` once. Range: n 0 to `max-batch`, at most 10,000 in all */
  after?: After | undefined;
  /** refuses the post when the board does not know an id in `AFTER`. Range: with `AFTER` */
  strict?: boolean | undefined;
  /** the parent, a job of the board that has not ended. Range: 1 to 255 bytes */
  parent?: string | undefined;
  /** the job's weight in its parent's progress. Range: 1 to 1000000, with `PARENT` */
  share?: number | undefined;
  /** signals that must arrive before the job runs: see Waiting for signals. Range: n 1 to 64, each once, 1 to 255 bytes */
  await?: readonly string[] | undefined;
  /** one of the signals is enough. Range: with `AWAIT` */
  any?: boolean | undefined;
  /** how long the job waits for the signals, counted from the post. Range: 1 to 2^40 ms, with `AWAIT` */
  within?: Duration | undefined;
  /** what happens then. `run`: its handler runs, and learns that nobody answered. `fail`: it fails with kind `signal`. `cancel`: it is cancelled. Range: with `WITHIN` */
  ontimeout?: 'run' | 'fail' | 'cancel' | undefined;
  /** a key that only one job of the board can hold: see Unique keys. Range: 1 to 255 bytes */
  unique?: string | undefined;
  /** when the key becomes free. `end`: when the job ends. `start`: when the job is claimed, or ends before; a job that comes back does not take the key again. Range: with `UNIQUE` */
  until?: 'start' | 'end' | undefined;
  /** how long the key is held, counted from the post. Alone: exactly this long, whatever happens to the job. With `UNTIL`: at most this long. Range: 1 to 2^40 ms, with `UNIQUE` */
  for?: Duration | undefined;
  /** what happens when another job holds the key. `reject`: the post is refused with `EXISTS id`. `return`: nothing is posted, and the reply is the holder's id. `replace`: the holder gets the payload and the given options, and the reply is its id. `debounce`: the same, and its delay starts again. Range: with `UNIQUE` */
  onconflict?: 'reject' | 'return' | 'replace' | 'debounce' | undefined;
  /** when `max-jobs` or `max-bytes` leaves no room, wait this long for it: see Waiting for room; 0 means for ever. Range: 0 to 2^40 ms */
  block?: Duration | undefined;
}

/** The options of `JOB.FLOW`, in the words of its reference. */
export interface FlowOptions {
  /** the job's id. The post is refused when the id exists. Range: 1 to 255 bytes, not beginning with `@` */
  id?: string | undefined;
  /** the job's type, by which workers choose what to do. Range: 1 to 255 bytes */
  name?: string | undefined;
  /** the queue in which the job waits. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** the group with which the job takes turns in its queue. Range: 1 to 255 bytes, not `*` */
  group?: string | undefined;
  /** how many permits a claim of the job takes where a rate is set. Range: 1 to 2^31-1 */
  cost?: number | undefined;
  /** how many permits it takes of single shared limits, in place of `COST`. Range: n 1 to 16, each limit once; costs 0 to 2^31-1 */
  costs?: Readonly<Record<string, number>> | undefined;
  /** jobs with a higher priority are claimed first. Range: -2^31 to 2^31-1 */
  priority?: number | undefined;
  /** the job becomes ready after this time. Range: 0 to 2^40 ms */
  delay?: Duration | undefined;
  /** the job becomes ready at this time; a time in the past means now. Range: Unix ms, 0 to 2^47 */
  at?: Time | undefined;
  /** how many failures are followed by another try. Range: -1 (no limit) to 2^31-1 */
  retries?: number | undefined;
  /** how many lost leases are followed by another try. Range: -1 (no limit) to 2^31-1 */
  lapses?: number | undefined;
  /** the wait before a retry. `FIXED ms` is always the same; `EXPONENTIAL base max` doubles from base to max. Range: 0 to 2^40 ms */
  backoff?: Backoff | undefined;
  /** by how many percent that wait varies at random, up or down. Range: 0 to 100 */
  jitter?: number | undefined;
  /** how long a claim holds without a heartbeat. Range: 1 to 2^40 ms */
  lease?: Duration | undefined;
  /** the longest time that one run may take. A longer run fails with kind `timeout`. Range: -1 (no limit) or 1 to 2^40 ms */
  timeout?: Duration | 'forever' | undefined;
  /** the age at which an unclaimed job fails with kind `expired`. The age counts from when the job first could run, without back-off. Range: -1 (no limit) or 1 to 2^40 ms */
  expire?: Duration | 'forever' | undefined;
  /** how long the server keeps the record after the job is complete. Range: -1 (for ever) to 2^40 ms */
  retain?: Duration | 'forever' | undefined;
  /** on whose behalf the job is posted. JOB.CANCEL can check it. Range: 1 to 255 bytes */
  user?: string | undefined;
  /** posts only while this user has fewer jobs of this name that have not ended. Jobs without a name count together. Range: 1 to 2^31-1, with `USER` */
  maxlive?: number | undefined;
  /** fields of your own, up to 64. Range: field 1 to 255 bytes, value up to `max-text` */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** words by which people find the job, each named once. Their order is kept; JOB.UPDATE changes them. Range: n 0 to 64, each 1 to 255 bytes */
  tags?: readonly string[] | undefined;
  /** jobs that must be complete before this one runs: see Dependencies. With `CHILDREN` its children. The option can be repeated, with `CHILDREN` once. Range: n 0 to `max-batch`, at most 10,000 in all */
  after?: After | undefined;
  /** refuses the post when the board does not know an id in `AFTER`. Range: with `AFTER` */
  strict?: boolean | undefined;
  /** the parent, a job of the board that has not ended. Range: 1 to 255 bytes */
  parent?: string | undefined;
  /** the job's weight in its parent's progress. Range: 1 to 1000000, with `PARENT` */
  share?: number | undefined;
  /** signals that must arrive before the job runs: see Waiting for signals. Range: n 1 to 64, each once, 1 to 255 bytes */
  await?: readonly string[] | undefined;
  /** one of the signals is enough. Range: with `AWAIT` */
  any?: boolean | undefined;
  /** how long the job waits for the signals, counted from the post. Range: 1 to 2^40 ms, with `AWAIT` */
  within?: Duration | undefined;
  /** what happens then. `run`: its handler runs, and learns that nobody answered. `fail`: it fails with kind `signal`. `cancel`: it is cancelled. Range: with `WITHIN` */
  ontimeout?: 'run' | 'fail' | 'cancel' | undefined;
  /** a key that only one job of the board can hold: see Unique keys. Range: 1 to 255 bytes */
  unique?: string | undefined;
  /** when the key becomes free. `end`: when the job ends. `start`: when the job is claimed, or ends before; a job that comes back does not take the key again. Range: with `UNIQUE` */
  until?: 'start' | 'end' | undefined;
  /** how long the key is held, counted from the post. Alone: exactly this long, whatever happens to the job. With `UNTIL`: at most this long. Range: 1 to 2^40 ms, with `UNIQUE` */
  for?: Duration | undefined;
}

/** The options of `JOB.SCHEDULE SET`, in the words of its reference. */
export interface ScheduleSetOptions {
  /** the time from one run to the next. Range: 1 to 2^40 ms */
  every?: Duration | undefined;
  /** times by an expression, see below. Range: 1 to 255 bytes */
  cron?: string | undefined;
  /** the time zone of the expression, such as `Europe/Berlin`. Range: 1 to 64 bytes, with `CRON` */
  tz?: string | undefined;
  /** no run before this time. With `EVERY`: the first time, from which the others count. Range: Unix ms, 0 to 2^47 */
  start?: Time | undefined;
  /** no run after this time. Range: -1 (no end) or Unix ms, 0 to 2^47, not before `START` */
  end?: Time | undefined;
  /** at most this many runs, those of `RUN` included. Range: -1 (no limit) or 1 to 2^53-1 */
  max?: number | undefined;
  /** what happens to times that passed while the server could not post (down, or clients paused). `skip`: nothing is posted for them; a time counts as missed when the next one has passed, or after a minute. `one`: one run, with the last of these times as its intended time. `all`: a run for each, in order, in slices between other work. A number n: a run for each of the last n missed times, in order, and none for earlier ones. Range: or 1 to 400 */
  backlog?: 'skip' | 'one' | 'all' | number | undefined;
  /** what happens at a time when the last run has not ended. `allow`: the server posts all the same. `skip`: it posts nothing. `replace`: it cancels the last run first, claimed or not. Range: | `allow` */
  overlap?: 'allow' | 'skip' | 'replace' | undefined;
  /** a run is posted up to this long after its time, by a random wait for each. Range: 0 to 2^40 ms */
  jitter?: Duration | undefined;
  /** the job's type, by which workers choose what to do. Range: 1 to 255 bytes */
  name?: string | undefined;
  /** the queue in which the job waits. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** the group with which the job takes turns in its queue. Range: 1 to 255 bytes, not `*` */
  group?: string | undefined;
  /** how many permits a claim of the job takes where a rate is set. Range: 1 to 2^31-1 */
  cost?: number | undefined;
  /** how many permits it takes of single shared limits, in place of `COST`. Range: n 1 to 16, each limit once; costs 0 to 2^31-1 */
  costs?: Readonly<Record<string, number>> | undefined;
  /** jobs with a higher priority are claimed first. Range: -2^31 to 2^31-1 */
  priority?: number | undefined;
  /** a run becomes ready this long after its intended time. Range: 0 to 2^40 ms */
  delay?: Duration | undefined;
  /** how many failures are followed by another try. Range: -1 (no limit) to 2^31-1 */
  retries?: number | undefined;
  /** how many lost leases are followed by another try. Range: -1 (no limit) to 2^31-1 */
  lapses?: number | undefined;
  /** the wait before a retry. `FIXED ms` is always the same; `EXPONENTIAL base max` doubles from base to max. Range: 0 to 2^40 ms */
  backoff?: Backoff | undefined;
  /** the `JITTER` of JOB.POST. Range: 0 to 100 */
  backoffJitter?: number | undefined;
  /** how long a claim holds without a heartbeat. Range: 1 to 2^40 ms */
  lease?: Duration | undefined;
  /** the longest time that one run may take. A longer run fails with kind `timeout`. Range: -1 (no limit) or 1 to 2^40 ms */
  timeout?: Duration | 'forever' | undefined;
  /** the age at which an unclaimed job fails with kind `expired`. The age counts from when the job first could run, without back-off. Range: -1 (no limit) or 1 to 2^40 ms */
  expire?: Duration | 'forever' | undefined;
  /** how long the server keeps the record after the job is complete. Range: -1 (for ever) to 2^40 ms */
  retain?: Duration | 'forever' | undefined;
  /** on whose behalf the job is posted. JOB.CANCEL can check it. Range: 1 to 255 bytes */
  user?: string | undefined;
  /** posts only while this user has fewer jobs of this name that have not ended. Jobs without a name count together. Range: 1 to 2^31-1, with `USER` */
  maxlive?: number | undefined;
  /** fields of your own, up to 64. Range: field 1 to 255 bytes, value up to `max-text` */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** words by which people find the job, each named once. Their order is kept; JOB.UPDATE changes them. Range: n 0 to 64, each 1 to 255 bytes */
  tags?: readonly string[] | undefined;
  /** the parent, a job of the board that has not ended. Range: 1 to 255 bytes */
  parent?: string | undefined;
  /** the job's weight in its parent's progress. Range: 1 to 1000000, with `PARENT` */
  share?: number | undefined;
  /** signals that must arrive before the job runs: see Waiting for signals. Range: n 1 to 64, each once, 1 to 255 bytes */
  await?: readonly string[] | undefined;
  /** one of the signals is enough. Range: with `AWAIT` */
  any?: boolean | undefined;
  /** how long the job waits for the signals, counted from the post. Range: 1 to 2^40 ms, with `AWAIT` */
  within?: Duration | undefined;
  /** what happens then. `run`: its handler runs, and learns that nobody answered. `fail`: it fails with kind `signal`. `cancel`: it is cancelled. Range: with `WITHIN` */
  ontimeout?: 'run' | 'fail' | 'cancel' | undefined;
  /** a key that only one job of the board can hold: see Unique keys. Range: 1 to 255 bytes */
  unique?: string | undefined;
  /** when the key becomes free. `end`: when the job ends. `start`: when the job is claimed, or ends before; a job that comes back does not take the key again. Range: with `UNIQUE` */
  until?: 'start' | 'end' | undefined;
  /** how long the key is held, counted from the post. Alone: exactly this long, whatever happens to the job. With `UNTIL`: at most this long. Range: 1 to 2^40 ms, with `UNIQUE` */
  for?: Duration | undefined;
}

/** The options of `JOB.SCHEDULE LIST`, in the words of its reference. */
export interface ScheduleListOptions {
  /** the cursor of the last call; `0` begins */
  cursor?: string | undefined;
  /** at most this many in one reply */
  count?: number | undefined;
}

/** The options of `JOB.CLAIM`, in the words of its reference. */
export interface ClaimOptions {
  /** the queue to claim from. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** the queues to claim from. `QUEUES 0` means every queue. Range: n 0 to 1000, and to `max-batch` */
  queues?: readonly string[] | undefined;
  /** `best`: the best job of all these queues. `listed`: a job of the first named queue that has one. `rotate`: the queues take turns. Range: | `best` */
  order?: 'best' | 'listed' | 'rotate' | undefined;
  /** at most this many jobs. From Q named queues, for Q above 2, one claim gives up to 20,000 / (Q - 1), even when there are more. Of jobs that count against shared limits, one claim may stop after 300. Range: 1 to `max-batch` */
  count?: number | undefined;
  /** with `BLOCK`: wait until the queues have this many jobs, see below. Range: 1 to `COUNT` */
  min?: number | undefined;
  /** with `MIN`: wait at most this long after the first job, then take what there is. Range: 1 to 2^40 ms */
  linger?: Duration | undefined;
  /** how long this claim holds without a heartbeat. Range: 1 to 2^40 ms */
  lease?: Duration | undefined;
  /** when there is no job, wait this long for one; 0 means for ever. Range: 0 to 2^40 ms */
  block?: Duration | undefined;
  /** return this worker's claims with a higher token first, see below. Range: 0 to 2^53-1 */
  seen?: number | undefined;
  /** the claim ends with this connection, see below. Range: | it does not */
  session?: boolean | undefined;
  /** the fields of the returned records. Range: n 1 to `max-batch` */
  fields?: readonly string[] | undefined;
  /** the job's id. The post is refused when the id exists. Range: 1 to 255 bytes, not beginning with `@` */
  id?: string | undefined;
}

/** The options of `JOB.HEARTBEAT`, in the words of its reference. */
export interface HeartbeatOptions {
  /** the token of the claim. Always give it. Range: 0 to 2^53-1 */
  token?: number | undefined;
  /** the length of the lease, now and at later heartbeats. Range: 1 to 2^40 ms */
  lease?: Duration | undefined;
  /** percent done, kept to two places. A lower value than before is ignored. So is the value of a job with children: theirs count. Range: 0 to 100 */
  progress?: number | undefined;
  /** how far the work is, in words. Range: up to `max-text` bytes */
  stage?: string | undefined;
  /** replaces the payload, so that another attempt can continue from here. Range: up to `max-payload` bytes */
  payload?: unknown | undefined;
  /** sets these fields and keeps the others. Range: at most 64 in all */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** a line for the job's history. Range: up to `max-text` bytes */
  log?: string | undefined;
  /** a chunk of what the job writes while it runs, for readers of JOB.OUTPUT, and its number. Range: number 1 to 2^52, chunk 1 byte to `output-bytes` */
  output?: Chunk | undefined;
  /** the permits that this claim has cost so far, of every rate that `COSTS` does not name: see Costs known afterwards. Range: 0 to 2^31-1 */
  cost?: number | undefined;
  /** the same of single shared limits. Range: n 1 to 16, each limit once; costs 0 to 2^31-1 */
  costs?: Readonly<Record<string, number>> | undefined;
  /** no job that counts against this limit is claimed for this time. The limit must be one of the job's. Range: 1 to 2^40 ms */
  pause?: Rest | undefined;
}

/** The options of `JOB.MHEARTBEAT`, in the words of its reference. */
export interface MheartbeatOptions {
  /** the length of the lease, now and at later heartbeats. Range: 1 to 2^40 ms */
  lease?: Duration | undefined;
}

/** The options of `JOB.STEP`, in the words of its reference. */
export interface StepOptions {
  /** the token of the claim. Always give it. Range: 0 to 2^53-1 */
  token?: number | undefined;
  /** the length of the lease, now and at later heartbeats. Range: 1 to 2^40 ms */
  lease?: Duration | undefined;
  /** the value takes the place of the stored one: for a position in a list, for instance. Range: | the first value wins */
  replace?: boolean | undefined;
  /** a chunk of output, as in JOB.HEARTBEAT. Range: | */
  output?: Chunk | undefined;
  /** what this claim has cost so far. Range: as in JOB.HEARTBEAT */
  cost?: number | undefined;
  /** what this claim has cost so far. Range: as in JOB.HEARTBEAT */
  costs?: Readonly<Record<string, number>> | undefined;
}

/** The options of `JOB.AWAIT`, in the words of its reference. */
export interface AwaitOptions {
  /** the names of the signals. `SIGNALS` or `CHILDREN` is needed. Range: n 1 to 64, each once, 1 to 255 bytes */
  signals?: readonly string[] | undefined;
  /** one of them is enough: the one that arrived first, in this run and in every later one. Range: with `SIGNALS` */
  any?: boolean | undefined;
  /** how long the job waits for the signals, counted from now. Range: 1 to 2^40 ms, with `SIGNALS` */
  within?: Duration | undefined;
  /** what happens then. `run`: the job runs again, and learns that nobody answered. `fail`: it fails with kind `signal`. `cancel`: it is cancelled. Range: with `WITHIN` */
  ontimeout?: 'run' | 'fail' | 'cancel' | undefined;
  /** the name of this wait, where the work waits for the same signal twice. Range: 1 to 255 bytes, with `SIGNALS` */
  step?: string | undefined;
  /** what happens when one of them fails, is cancelled or is trashed, before the wait or during it: as in JOB.POST. Range: with `CHILDREN` */
  onfailure?: 'hold' | 'cancel' | 'fail' | 'run' | undefined;
  /** the token of the claim. Always give it. Range: 0 to 2^53-1 */
  token?: number | undefined;
  /** replaces the payload. Range: up to `max-payload` bytes */
  payload?: unknown | undefined;
  /** what this claim has cost so far. Range: as in JOB.HEARTBEAT */
  cost?: number | undefined;
  /** what this claim has cost so far. Range: as in JOB.HEARTBEAT */
  costs?: Readonly<Record<string, number>> | undefined;
  /** the last option: claims the next job as well, unless the worker keeps this one. Range: | */
  claim?: ClaimOptions | undefined;
}

/** The options of `JOB.CONSUME`, in the words of its reference. */
export interface ConsumeOptions {
  /** the token of the claim. Always give it. Range: 0 to 2^53-1 */
  token?: number | undefined;
  /** replaces the payload of the kept record. Range: up to `max-payload` bytes */
  payload?: unknown | undefined;
  /** the last chunk of output, as in JOB.HEARTBEAT. Range: | */
  output?: Chunk | undefined;
  /** sets these fields of the kept record, or of the job in its next queue, and keeps the others. Range: at most 64 in all */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** what this claim has cost. Range: as in JOB.HEARTBEAT */
  cost?: number | undefined;
  /** what this claim has cost. Range: as in JOB.HEARTBEAT */
  costs?: Readonly<Record<string, number>> | undefined;
  /** only when the job is in this queue: otherwise the command is refused with `WRONGQUEUE`. For a program that knows where the job should be, when others may have moved it. Range: 1 to 255 bytes */
  if?: Only | undefined;
  /** is kept with the record. Range: up to `max-payload` bytes */
  result?: unknown | undefined;
  /** how long the server keeps the record. Range: -1 (for ever) to 2^40 ms */
  retain?: Duration | 'forever' | undefined;
  /** completes the job although somebody asked to cancel it. Range: | */
  force?: boolean | undefined;
  /** the job continues in this queue under the same id. Excludes `RESULT`, `RETAIN` and `FORCE`: pass what the next worker needs in `PAYLOAD` or in meta fields. Range: 1 to 255 bytes */
  next?: string | undefined;
  /** what the next claim takes: the `COST` and `COSTS` of JOB.POST. Range: with `NEXT` */
  nextCost?: number | undefined;
  /** what the next claim takes: the `COST` and `COSTS` of JOB.POST. Range: with `NEXT` */
  nextCosts?: Readonly<Record<string, number>> | undefined;
  /** the name with which the job continues, for workers that choose by name what to do. Range: 1 to 255 bytes, with `NEXT` */
  name?: string | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  delay?: Duration | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  priority?: number | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  after?: After | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  strict?: boolean | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  await?: readonly string[] | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  any?: boolean | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  within?: Duration | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  ontimeout?: 'run' | 'fail' | 'cancel' | undefined;
  /** the last option: claims the next job as well. The options of the claim follow it. Range: | */
  claim?: ClaimOptions | undefined;
}

/** The options of `JOB.MCONSUME`, in the words of its reference. */
export interface MconsumeOptions {
  /** sets these fields of the kept record, or of the job in its next queue, and keeps the others. Range: at most 64 in all */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** what this claim has cost. Range: as in JOB.HEARTBEAT */
  cost?: number | undefined;
  /** what this claim has cost. Range: as in JOB.HEARTBEAT */
  costs?: Readonly<Record<string, number>> | undefined;
  /** only when the job is in this queue: otherwise the command is refused with `WRONGQUEUE`. For a program that knows where the job should be, when others may have moved it. Range: 1 to 255 bytes */
  if?: Only | undefined;
  /** is kept with the record. Range: up to `max-payload` bytes */
  result?: unknown | undefined;
  /** how long the server keeps the record. Range: -1 (for ever) to 2^40 ms */
  retain?: Duration | 'forever' | undefined;
  /** completes the job although somebody asked to cancel it. Range: | */
  force?: boolean | undefined;
  /** the job continues in this queue under the same id. Excludes `RESULT`, `RETAIN` and `FORCE`: pass what the next worker needs in `PAYLOAD` or in meta fields. Range: 1 to 255 bytes */
  next?: string | undefined;
  /** what the next claim takes: the `COST` and `COSTS` of JOB.POST. Range: with `NEXT` */
  nextCost?: number | undefined;
  /** what the next claim takes: the `COST` and `COSTS` of JOB.POST. Range: with `NEXT` */
  nextCosts?: Readonly<Record<string, number>> | undefined;
  /** the name with which the job continues, for workers that choose by name what to do. Range: 1 to 255 bytes, with `NEXT` */
  name?: string | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  delay?: Duration | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  priority?: number | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  after?: After | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  strict?: boolean | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  await?: readonly string[] | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  any?: boolean | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  within?: Duration | undefined;
  /** as in JOB.POST. Times count from now. Range: with `NEXT` */
  ontimeout?: 'run' | 'fail' | 'cancel' | undefined;
  /** the last option: claims the next job as well. The options of the claim follow it. Range: | */
  claim?: ClaimOptions | undefined;
}

/** The options of `JOB.FAIL`, in the words of its reference. */
export interface FailOptions {
  /** the token of the claim. Always give it. Range: 0 to 2^53-1 */
  token?: number | undefined;
  /** the wait before the next try. Range: 0 to 2^40 ms */
  retry?: Duration | undefined;
  /** no further try: the job is failed. Range: | */
  noretry?: boolean | undefined;
  /** how long the server keeps the record when no other try follows. Range: -1 (for ever) to 2^40 ms */
  retain?: Duration | 'forever' | undefined;
  /** replaces the payload. Range: up to `max-payload` bytes */
  payload?: unknown | undefined;
  /** sets these fields and keeps the others. Range: at most 64 in all */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** a line for the job's history, such as a traceback; it comes before the failure. Range: up to `max-text` bytes */
  log?: string | undefined;
  /** what this claim has cost, and a pause of a limit whose upstream refuses calls. Range: as in JOB.HEARTBEAT */
  cost?: number | undefined;
  /** what this claim has cost, and a pause of a limit whose upstream refuses calls. Range: as in JOB.HEARTBEAT */
  costs?: Readonly<Record<string, number>> | undefined;
  /** what this claim has cost, and a pause of a limit whose upstream refuses calls. Range: as in JOB.HEARTBEAT */
  pause?: Rest | undefined;
  /** the last option: claims the next job as well. The options of the claim follow it. Range: | */
  claim?: ClaimOptions | undefined;
}

/** The options of `JOB.MFAIL`, in the words of its reference. */
export interface MfailOptions {
  /** the wait before the next try. Range: 0 to 2^40 ms */
  retry?: Duration | undefined;
  /** no further try: the job is failed. Range: | */
  noretry?: boolean | undefined;
  /** how long the server keeps the record when no other try follows. Range: -1 (for ever) to 2^40 ms */
  retain?: Duration | 'forever' | undefined;
  /** sets these fields and keeps the others. Range: at most 64 in all */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** a line for the job's history, such as a traceback; it comes before the failure. Range: up to `max-text` bytes */
  log?: string | undefined;
  /** what this claim has cost, and a pause of a limit whose upstream refuses calls. Range: as in JOB.HEARTBEAT */
  cost?: number | undefined;
  /** what this claim has cost, and a pause of a limit whose upstream refuses calls. Range: as in JOB.HEARTBEAT */
  costs?: Readonly<Record<string, number>> | undefined;
  /** what this claim has cost, and a pause of a limit whose upstream refuses calls. Range: as in JOB.HEARTBEAT */
  pause?: Rest | undefined;
  /** the last option: claims the next job as well. The options of the claim follow it. Range: | */
  claim?: ClaimOptions | undefined;
}

/** The options of `JOB.ABANDON`, in the words of its reference. */
export interface AbandonOptions {
  /** the token of the claim. Always give it. Range: 0 to 2^53-1 */
  token?: number | undefined;
  /** the job becomes ready after this time. Range: 0 to 2^40 ms */
  delay?: Duration | undefined;
  /** See JOB.ABANDON. */
  reason?: string | undefined;
  /** fields of your own, up to 64. Range: field 1 to 255 bytes, value up to `max-text` */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** how many permits a claim of the job takes where a rate is set. Range: 1 to 2^31-1 */
  cost?: number | undefined;
  /** how many permits it takes of single shared limits, in place of `COST`. Range: n 1 to 16, each limit once; costs 0 to 2^31-1 */
  costs?: Readonly<Record<string, number>> | undefined;
  /** no job that counts against this limit is claimed for this time. The limit must be one of the job's. Range: 1 to 2^40 ms */
  pause?: Rest | undefined;
  /** the last option: claims the next job as well. The options of the claim follow it. Range: | */
  claim?: ClaimOptions | undefined;
}

/** The options of `JOB.MABANDON`, in the words of its reference. */
export interface MabandonOptions {
  /** the job becomes ready after this time. Range: 0 to 2^40 ms */
  delay?: Duration | undefined;
  /** See JOB.MABANDON. */
  reason?: string | undefined;
  /** fields of your own, up to 64. Range: field 1 to 255 bytes, value up to `max-text` */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** how many permits a claim of the job takes where a rate is set. Range: 1 to 2^31-1 */
  cost?: number | undefined;
  /** how many permits it takes of single shared limits, in place of `COST`. Range: n 1 to 16, each limit once; costs 0 to 2^31-1 */
  costs?: Readonly<Record<string, number>> | undefined;
  /** no job that counts against this limit is claimed for this time. The limit must be one of the job's. Range: 1 to 2^40 ms */
  pause?: Rest | undefined;
}

/** The options of `JOB.TRASH`, in the words of its reference. */
export interface TrashOptions {
  /** the token of the claim. Always give it. Range: 0 to 2^53-1 */
  token?: number | undefined;
  /** See JOB.TRASH. */
  reason?: string | undefined;
  /** fields of your own, up to 64. Range: field 1 to 255 bytes, value up to `max-text` */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** how many permits a claim of the job takes where a rate is set. Range: 1 to 2^31-1 */
  cost?: number | undefined;
  /** how many permits it takes of single shared limits, in place of `COST`. Range: n 1 to 16, each limit once; costs 0 to 2^31-1 */
  costs?: Readonly<Record<string, number>> | undefined;
  /** the last option: claims the next job as well. The options of the claim follow it. Range: | */
  claim?: ClaimOptions | undefined;
}

/** The options of `JOB.MTRASH`, in the words of its reference. */
export interface MtrashOptions {
  /** See JOB.MTRASH. */
  reason?: string | undefined;
  /** fields of your own, up to 64. Range: field 1 to 255 bytes, value up to `max-text` */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** how many permits a claim of the job takes where a rate is set. Range: 1 to 2^31-1 */
  cost?: number | undefined;
  /** how many permits it takes of single shared limits, in place of `COST`. Range: n 1 to 16, each limit once; costs 0 to 2^31-1 */
  costs?: Readonly<Record<string, number>> | undefined;
  /** the last option: claims the next job as well. The options of the claim follow it. Range: | */
  claim?: ClaimOptions | undefined;
}

/** The options of `JOB.WORKER REGISTER`, in the words of its reference. */
export interface WorkerRegisterOptions {
  /** what kind of worker it is. `LIST ROLE`: only workers of this role. Range: 1 to 255 bytes */
  role?: string | undefined;
  /** sets these fields and keeps the others, at most 64. Range: field 1 to 255 bytes, value up to `max-text` */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** how long the registration lasts without another `REGISTER`. Range: 1 to 2^40 ms */
  for?: Duration | undefined;
  /** the registration lasts as long as this connection. Excludes `FOR`. Range: | as before; no at first */
  session?: boolean | undefined;
  /** the worker has just started: what it still holds lapses, see below. Range: | it keeps its jobs */
  anew?: boolean | undefined;
}

/** The options of `JOB.WORKER LIST`, in the words of its reference. */
export interface WorkerListOptions {
  /** what kind of worker it is. `LIST ROLE`: only workers of this role. Range: 1 to 255 bytes */
  role?: string | undefined;
  /** the cursor of the last call; `0` begins. Range: | 0 */
  cursor?: string | undefined;
  /** at most this many workers. With `ROLE` a page may have fewer, even none: continue until the cursor is `0`. Range: 1 to `max-batch` */
  count?: number | undefined;
}

/** The options of `JOB.CANCEL`, in the words of its reference. */
export interface CancelOptions {
  /** at most this many in one reply */
  count?: number | undefined;
  /** the cursor of the last call; `0` begins */
  cursor?: string | undefined;
  /** See JOB.CANCEL. */
  dryrun?: boolean | undefined;
  /** See JOB.CANCEL. */
  by?: string | undefined;
  /** completes the job although somebody asked to cancel it. Range: | */
  force?: boolean | undefined;
}

/** The options of `JOB.RELEASE`, in the words of its reference. */
export interface ReleaseOptions {
  /** at most this many in one reply */
  count?: number | undefined;
  /** the cursor of the last call; `0` begins */
  cursor?: string | undefined;
  /** See JOB.RELEASE. */
  dryrun?: boolean | undefined;
  /** See JOB.RELEASE. */
  front?: boolean | undefined;
}

/** The options of `JOB.REQUEUE`, in the words of its reference. */
export interface RequeueOptions {
  /** the queue to which the jobs go. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** dead jobs go back to the queues in which they failed, also those that are ready, scheduled or blocked in the dead queue. Range: not with `QUEUE` or `TO` */
  origin?: boolean | undefined;
  /** another payload, for a job whose input was wrong. Range: with one id; up to `max-payload` bytes */
  payload?: unknown | undefined;
  /** the queue to which the jobs go. Range: 1 to 255 bytes */
  to?: string | undefined;
  /** at most this many in one reply */
  count?: number | undefined;
  /** the cursor of the last call; `0` begins */
  cursor?: string | undefined;
  /** See JOB.REQUEUE. */
  dryrun?: boolean | undefined;
  /** See JOB.REQUEUE. */
  fresh?: boolean | undefined;
}

/** The options of `JOB.DELETE`, in the words of its reference. */
export interface DeleteOptions {
  /** at most this many in one reply */
  count?: number | undefined;
  /** the cursor of the last call; `0` begins */
  cursor?: string | undefined;
  /** See JOB.DELETE. */
  dryrun?: boolean | undefined;
  /** See JOB.DELETE. */
  return?: boolean | undefined;
  /** the fields of the returned records. Range: n 1 to `max-batch` */
  fields?: readonly string[] | undefined;
}

/** The options of `JOB.UPDATE`, in the words of its reference. */
export interface UpdateOptions {
  /** at most this many in one reply */
  count?: number | undefined;
  /** the cursor of the last call; `0` begins */
  cursor?: string | undefined;
  /** See JOB.UPDATE. */
  dryrun?: boolean | undefined;
  /** jobs with a higher priority are claimed first. Range: -2^31 to 2^31-1 */
  priority?: number | undefined;
  /** the queue in which the job waits. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** the job becomes ready after this time. Range: 0 to 2^40 ms */
  delay?: Duration | undefined;
  /** the job becomes ready at this time; a time in the past means now. Range: Unix ms, 0 to 2^47 */
  at?: Time | undefined;
  /** replaces the payload of the kept record. Range: up to `max-payload` bytes */
  payload?: unknown | undefined;
  /** how many failures are followed by another try. Range: -1 (no limit) to 2^31-1 */
  retries?: number | undefined;
  /** how long a claim holds without a heartbeat. Range: 1 to 2^40 ms */
  lease?: Duration | undefined;
  /** fields of your own, up to 64. Range: field 1 to 255 bytes, value up to `max-text` */
  meta?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** a line for the job's history. Range: up to `max-text` bytes */
  log?: string | undefined;
  /** percent done, kept to two places. A lower value than before is ignored. So is the value of a job with children: theirs count. Range: 0 to 100 */
  progress?: number | undefined;
  /** See JOB.UPDATE. */
  unstep?: readonly string[] | undefined;
  /** with this name, with this tag, posted on behalf of this user. Range: 1 to 255 bytes */
  tag?: readonly string[] | undefined;
  /** See JOB.UPDATE. */
  untag?: readonly string[] | undefined;
  /** See JOB.UPDATE. */
  track?: boolean | undefined;
  /** See JOB.UPDATE. */
  untrack?: boolean | undefined;
}

/** The options of `JOB.SIGNAL`, in the words of its reference. */
export interface SignalOptions {
  /** at most this many in one reply */
  count?: number | undefined;
  /** the cursor of the last call; `0` begins */
  cursor?: string | undefined;
  /** See JOB.SIGNAL. */
  dryrun?: boolean | undefined;
  /** what it says. Range: up to `max-payload` bytes */
  value?: string | undefined;
  /** who sends it; it is shown, and not checked. Range: 1 to 255 bytes */
  sender?: string | undefined;
}

/** The options of `JOB.DEPEND ADD`, in the words of its reference. */
export interface DependAddOptions {
  /** what happens when a job, or a child, of the `AFTER` before it fails, is cancelled or is trashed. `hold`: the new job waits on, because that one may be requeued. `cancel`: it is cancelled. `fail`: it fails with kind `dependency`. `run`: it runs as if that one were complete. Range: with `AFTER` */
  onfailure?: 'hold' | 'cancel' | 'fail' | 'run' | undefined;
  /** refuses the post when the board does not know an id in `AFTER`. Range: with `AFTER` */
  strict?: boolean | undefined;
}

/** The options of `JOB.DEPEND REMOVE`, in the words of its reference. */
export interface DependRemoveOptions {
  /** See JOB.DEPEND. */
  signals?: boolean | undefined;
}

/** The options of `JOB.PAUSE`, in the words of its reference. */
export interface PauseOptions {
  /** pauses only this queue. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** pauses only this group of the queue. Range: 1 to 255 bytes, with `QUEUE` */
  group?: string | undefined;
  /** pauses the jobs that count against this shared limit, in whatever queue. A limit that the board does not have is refused. Range: 1 to 255 bytes */
  limit?: string | undefined;
  /** ends the pause after this time; then the server serves blocked claims. Range: 1 to 2^40 ms */
  for?: Duration | undefined;
  /** takes running jobs back as JOB.RELEASE does: the first 64 at once, the rest by the timer in slices. Range: | they continue */
  release?: boolean | undefined;
}

/** The options of `JOB.RESUME`, in the words of its reference. */
export interface ResumeOptions {
  /** the queue in which the job waits. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** the group with which the job takes turns in its queue. Range: 1 to 255 bytes, not `*` */
  group?: string | undefined;
  /** See JOB.RESUME. */
  limit?: string | undefined;
}

/** The options of `JOB.GET`, in the words of its reference. */
export interface GetOptions {
  /** the fields of the returned records. Range: n 1 to `max-batch` */
  fields?: readonly string[] | undefined;
  /** the cursor of the last call. Range: | 0 */
  cursor?: string | undefined;
  /** at most this many children. Range: 1 to `max-batch` */
  count?: number | undefined;
}

/** The options of `JOB.MGET`, in the words of its reference. */
export interface MgetOptions {
  /** the fields of the returned records. Range: n 1 to `max-batch` */
  fields?: readonly string[] | undefined;
}

/** The options of `JOB.LIST`, in the words of its reference. */
export interface ListOptions {
  /** reverses the whole order. Range: | */
  rev?: boolean | undefined;
  /** the cursor of the last call. Range: | 0 */
  cursor?: string | undefined;
  /** at most this many jobs. Range: 1 to `max-batch` */
  count?: number | undefined;
  /** returns ids only. Range: | */
  justid?: boolean | undefined;
  /** the fields of the records. Range: | all */
  fields?: readonly string[] | undefined;
}

/** The options of `JOB.COUNT`, in the words of its reference. */
export interface CountOptions {
  /** the cursor of the last call; `0` begins */
  cursor?: string | undefined;
}

/** The options of `JOB.WAIT`, in the words of its reference. */
export interface WaitOptions {
  /** one of the signals is enough. Range: with `AWAIT` */
  any?: boolean | undefined;
  /** See JOB.WAIT. */
  changed?: number | undefined;
  /** the fields of the returned records. Range: n 1 to `max-batch` */
  fields?: readonly string[] | undefined;
  /** how long the key is held, counted from the post. Alone: exactly this long, whatever happens to the job. With `UNTIL`: at most this long. Range: 1 to 2^40 ms, with `UNIQUE` */
  for?: 'claimable' | 'present' | 'empty' | undefined;
  /** the queue in which the job waits. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** the queues to claim from. `QUEUES 0` means every queue. Range: n 0 to 1000, and to `max-batch` */
  queues?: readonly string[] | undefined;
}

/** The options of `JOB.OUTPUT`, in the words of its reference. */
export interface OutputOptions {
  /** how many chunks the reader has: the reply begins after them. Range: 0 to 2^48-1 */
  since?: number | undefined;
  /** at most this many chunks. Range: 1 to `max-batch` */
  count?: number | undefined;
  /** when there is nothing new, and the job has not ended, wait this long; 0 means for ever. Range: 0 to 2^40 ms */
  block?: Duration | undefined;
}

/** The options of `JOB.QUEUES`, in the words of its reference. */
export interface QueuesOptions {
  /** only queues whose names contain this text; small and capital letters of ASCII are the same. Range: 1 to 255 bytes */
  contains?: string | undefined;
  /** sort by the number of jobs in this state, or by `oldest`, the greatest first; equal ones by name. A queue whose number changes between two pages may be listed twice or not at all. Range: a state, or `oldest` */
  by?: string | undefined;
  /** the cursor of the last call. Range: | 0 */
  cursor?: string | undefined;
  /** at most this many queues. Range: 1 to `max-batch` */
  count?: number | undefined;
}

/** The options of `JOB.GROUPS`, in the words of its reference. */
export interface GroupsOptions {
  /** only this queue. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** the cursor of the last call. Range: | 0 */
  cursor?: string | undefined;
  /** at most this many groups. Range: 1 to `max-batch` */
  count?: number | undefined;
}

/** The options of `JOB.LIMITS`, in the words of its reference. */
export interface LimitsOptions {
  /** the cursor of the last call. Range: | 0 */
  cursor?: string | undefined;
  /** at most this many limits. Range: 1 to `max-batch` */
  count?: number | undefined;
}

/** The options of `JOB.WORKERS`, in the words of its reference. */
export interface WorkersOptions {
  /** the cursor of the last call. Range: | 0 */
  cursor?: string | undefined;
  /** at most this many workers. Range: 1 to `max-batch` */
  count?: number | undefined;
}

/** The options of `JOB.KINDS`, in the words of its reference. */
export interface KindsOptions {
  /** the cursor of the last call. Range: | 0 */
  cursor?: string | undefined;
  /** at most this many kinds. Range: 1 to `max-batch` */
  count?: number | undefined;
}

/** The options of `JOB.TAGS`, in the words of its reference. */
export interface TagsOptions {
  /** the cursor of the last call. Range: | 0 */
  cursor?: string | undefined;
  /** at most this many tags. Range: 1 to `max-batch` */
  count?: number | undefined;
}

/** The options of `JOB.STATS`, in the words of its reference. */
export interface StatsOptions {
  /** the queue in which the job waits. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** See JOB.STATS. */
  day?: string | undefined;
}

/** The options of `JOB.INFO`, in the words of its reference. */
export interface InfoOptions {
  /** See JOB.INFO. */
  digest?: boolean | undefined;
}

/** The options of `JOB.SETTINGS GET`, in the words of its reference. */
export interface SettingsGetOptions {
  /** the queue in which the job waits. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** the group with which the job takes turns in its queue. Range: 1 to 255 bytes, not `*` */
  group?: string | undefined;
  /** See JOB.SETTINGS. */
  limit?: string | undefined;
}

/** The options of `JOB.SETTINGS SET`, in the words of its reference. */
export interface SettingsSetOptions {
  /** the queue in which the job waits. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** the group with which the job takes turns in its queue. Range: 1 to 255 bytes, not `*` */
  group?: string | undefined;
  /** See JOB.SETTINGS. */
  limit?: string | undefined;
}

/** The options of `JOB.SETTINGS RESET`, in the words of its reference. */
export interface SettingsResetOptions {
  /** the queue in which the job waits. Range: 1 to 255 bytes */
  queue?: string | undefined;
  /** the group with which the job takes turns in its queue. Range: 1 to 255 bytes, not `*` */
  group?: string | undefined;
  /** See JOB.SETTINGS. */
  limit?: string | undefined;
}

/** How an option becomes words. */
export type Shape =
  | 'flag'
  | 'duration'
  | 'endless'
  | 'time'
  | 'data'
  | 'number'
  | 'text'
  | 'list'
  | 'map'
  | 'choice'
  | 'counted'
  | 'only'
  | 'backoff'
  | 'after'
  | 'claim'
  | 'chunk'
  | 'rest';

/** Each command with its options: the key in a call, the word, and how its value is written. */
export const COMMANDS = {
  'JOB.POST': [
    ['id', 'ID', 'text'],
    ['nx', 'NX', 'flag'],
    ['xx', 'XX', 'flag'],
    ['replace', 'REPLACE', 'flag'],
    ['name', 'NAME', 'text'],
    ['queue', 'QUEUE', 'text'],
    ['group', 'GROUP', 'text'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['priority', 'PRIORITY', 'number'],
    ['delay', 'DELAY', 'duration'],
    ['at', 'AT', 'time'],
    ['retries', 'RETRIES', 'number'],
    ['lapses', 'LAPSES', 'number'],
    ['backoff', 'BACKOFF', 'backoff'],
    ['jitter', 'JITTER', 'number'],
    ['lease', 'LEASE', 'duration'],
    ['timeout', 'TIMEOUT', 'endless'],
    ['expire', 'EXPIRE', 'endless'],
    ['retain', 'RETAIN', 'endless'],
    ['user', 'USER', 'text'],
    ['maxlive', 'MAXLIVE', 'number'],
    ['meta', 'META', 'map'],
    ['tags', 'TAGS', 'list'],
    ['after', 'AFTER', 'after'],
    ['strict', 'STRICT', 'flag'],
    ['parent', 'PARENT', 'text'],
    ['share', 'SHARE', 'number'],
    ['await', 'AWAIT', 'list'],
    ['any', 'ANY', 'flag'],
    ['within', 'WITHIN', 'duration'],
    ['ontimeout', 'ONTIMEOUT', 'choice', ['run', 'fail', 'cancel']],
    ['unique', 'UNIQUE', 'text'],
    ['until', 'UNTIL', 'choice', ['start', 'end']],
    ['for', 'FOR', 'duration'],
    ['onconflict', 'ONCONFLICT', 'choice', ['reject', 'return', 'replace', 'debounce']],
    ['block', 'BLOCK', 'duration'],
  ],
  'JOB.MPOST': [
    ['nx', 'NX', 'flag'],
    ['xx', 'XX', 'flag'],
    ['replace', 'REPLACE', 'flag'],
    ['name', 'NAME', 'text'],
    ['queue', 'QUEUE', 'text'],
    ['group', 'GROUP', 'text'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['priority', 'PRIORITY', 'number'],
    ['delay', 'DELAY', 'duration'],
    ['at', 'AT', 'time'],
    ['retries', 'RETRIES', 'number'],
    ['lapses', 'LAPSES', 'number'],
    ['backoff', 'BACKOFF', 'backoff'],
    ['jitter', 'JITTER', 'number'],
    ['lease', 'LEASE', 'duration'],
    ['timeout', 'TIMEOUT', 'endless'],
    ['expire', 'EXPIRE', 'endless'],
    ['retain', 'RETAIN', 'endless'],
    ['user', 'USER', 'text'],
    ['maxlive', 'MAXLIVE', 'number'],
    ['meta', 'META', 'map'],
    ['tags', 'TAGS', 'list'],
    ['after', 'AFTER', 'after'],
    ['strict', 'STRICT', 'flag'],
    ['parent', 'PARENT', 'text'],
    ['share', 'SHARE', 'number'],
    ['await', 'AWAIT', 'list'],
    ['any', 'ANY', 'flag'],
    ['within', 'WITHIN', 'duration'],
    ['ontimeout', 'ONTIMEOUT', 'choice', ['run', 'fail', 'cancel']],
    ['unique', 'UNIQUE', 'text'],
    ['until', 'UNTIL', 'choice', ['start', 'end']],
    ['for', 'FOR', 'duration'],
    ['onconflict', 'ONCONFLICT', 'choice', ['reject', 'return', 'replace', 'debounce']],
    ['block', 'BLOCK', 'duration'],
  ],
  'JOB.FLOW': [
    ['id', 'ID', 'text'],
    ['name', 'NAME', 'text'],
    ['queue', 'QUEUE', 'text'],
    ['group', 'GROUP', 'text'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['priority', 'PRIORITY', 'number'],
    ['delay', 'DELAY', 'duration'],
    ['at', 'AT', 'time'],
    ['retries', 'RETRIES', 'number'],
    ['lapses', 'LAPSES', 'number'],
    ['backoff', 'BACKOFF', 'backoff'],
    ['jitter', 'JITTER', 'number'],
    ['lease', 'LEASE', 'duration'],
    ['timeout', 'TIMEOUT', 'endless'],
    ['expire', 'EXPIRE', 'endless'],
    ['retain', 'RETAIN', 'endless'],
    ['user', 'USER', 'text'],
    ['maxlive', 'MAXLIVE', 'number'],
    ['meta', 'META', 'map'],
    ['tags', 'TAGS', 'list'],
    ['after', 'AFTER', 'after'],
    ['strict', 'STRICT', 'flag'],
    ['parent', 'PARENT', 'text'],
    ['share', 'SHARE', 'number'],
    ['await', 'AWAIT', 'list'],
    ['any', 'ANY', 'flag'],
    ['within', 'WITHIN', 'duration'],
    ['ontimeout', 'ONTIMEOUT', 'choice', ['run', 'fail', 'cancel']],
    ['unique', 'UNIQUE', 'text'],
    ['until', 'UNTIL', 'choice', ['start', 'end']],
    ['for', 'FOR', 'duration'],
  ],
  'JOB.SCHEDULE SET': [
    ['every', 'EVERY', 'duration'],
    ['cron', 'CRON', 'text'],
    ['tz', 'TZ', 'text'],
    ['start', 'START', 'time'],
    ['end', 'END', 'time'],
    ['max', 'MAX', 'number'],
    ['backlog', 'BACKLOG', 'counted', ['skip', 'one', 'all']],
    ['overlap', 'OVERLAP', 'choice', ['allow', 'skip', 'replace']],
    ['jitter', 'JITTER', 'duration'],
    ['name', 'NAME', 'text'],
    ['queue', 'QUEUE', 'text'],
    ['group', 'GROUP', 'text'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['priority', 'PRIORITY', 'number'],
    ['delay', 'DELAY', 'duration'],
    ['retries', 'RETRIES', 'number'],
    ['lapses', 'LAPSES', 'number'],
    ['backoff', 'BACKOFF', 'backoff'],
    ['backoffJitter', 'BACKOFF-JITTER', 'number'],
    ['lease', 'LEASE', 'duration'],
    ['timeout', 'TIMEOUT', 'endless'],
    ['expire', 'EXPIRE', 'endless'],
    ['retain', 'RETAIN', 'endless'],
    ['user', 'USER', 'text'],
    ['maxlive', 'MAXLIVE', 'number'],
    ['meta', 'META', 'map'],
    ['tags', 'TAGS', 'list'],
    ['parent', 'PARENT', 'text'],
    ['share', 'SHARE', 'number'],
    ['await', 'AWAIT', 'list'],
    ['any', 'ANY', 'flag'],
    ['within', 'WITHIN', 'duration'],
    ['ontimeout', 'ONTIMEOUT', 'choice', ['run', 'fail', 'cancel']],
    ['unique', 'UNIQUE', 'text'],
    ['until', 'UNTIL', 'choice', ['start', 'end']],
    ['for', 'FOR', 'duration'],
  ],
  'JOB.SCHEDULE GET': [],
  'JOB.SCHEDULE LIST': [
    ['cursor', 'CURSOR', 'text'],
    ['count', 'COUNT', 'number'],
  ],
  'JOB.SCHEDULE DEL': [],
  'JOB.SCHEDULE PAUSE': [],
  'JOB.SCHEDULE RESUME': [],
  'JOB.SCHEDULE RUN': [],
  'JOB.CLAIM': [
    ['queue', 'QUEUE', 'text'],
    ['queues', 'QUEUES', 'list'],
    ['order', 'ORDER', 'choice', ['best', 'listed', 'rotate']],
    ['count', 'COUNT', 'number'],
    ['min', 'MIN', 'number'],
    ['linger', 'LINGER', 'duration'],
    ['lease', 'LEASE', 'duration'],
    ['block', 'BLOCK', 'duration'],
    ['seen', 'SEEN', 'number'],
    ['session', 'SESSION', 'flag'],
    ['fields', 'FIELDS', 'list'],
    ['id', 'ID', 'text'],
  ],
  'JOB.HEARTBEAT': [
    ['token', 'TOKEN', 'number'],
    ['lease', 'LEASE', 'duration'],
    ['progress', 'PROGRESS', 'number'],
    ['stage', 'STAGE', 'text'],
    ['payload', 'PAYLOAD', 'data'],
    ['meta', 'META', 'map'],
    ['log', 'LOG', 'text'],
    ['output', 'OUTPUT', 'chunk'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['pause', 'PAUSE', 'rest'],
  ],
  'JOB.MHEARTBEAT': [
    ['lease', 'LEASE', 'duration'],
  ],
  'JOB.STEP': [
    ['token', 'TOKEN', 'number'],
    ['lease', 'LEASE', 'duration'],
    ['replace', 'REPLACE', 'flag'],
    ['output', 'OUTPUT', 'chunk'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
  ],
  'JOB.AWAIT': [
    ['signals', 'SIGNALS', 'list'],
    ['any', 'ANY', 'flag'],
    ['within', 'WITHIN', 'duration'],
    ['ontimeout', 'ONTIMEOUT', 'choice', ['run', 'fail', 'cancel']],
    ['step', 'STEP', 'text'],
    ['onfailure', 'ONFAILURE', 'choice', ['hold', 'cancel', 'fail', 'run']],
    ['token', 'TOKEN', 'number'],
    ['payload', 'PAYLOAD', 'data'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['claim', 'CLAIM', 'claim'],
  ],
  'JOB.CONSUME': [
    ['token', 'TOKEN', 'number'],
    ['payload', 'PAYLOAD', 'data'],
    ['output', 'OUTPUT', 'chunk'],
    ['meta', 'META', 'map'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['if', 'IF', 'only'],
    ['result', 'RESULT', 'data'],
    ['retain', 'RETAIN', 'endless'],
    ['force', 'FORCE', 'flag'],
    ['next', 'NEXT', 'text'],
    ['nextCost', 'NEXT-COST', 'number'],
    ['nextCosts', 'NEXT-COSTS', 'map'],
    ['name', 'NAME', 'text'],
    ['delay', 'DELAY', 'duration'],
    ['priority', 'PRIORITY', 'number'],
    ['after', 'AFTER', 'after'],
    ['strict', 'STRICT', 'flag'],
    ['await', 'AWAIT', 'list'],
    ['any', 'ANY', 'flag'],
    ['within', 'WITHIN', 'duration'],
    ['ontimeout', 'ONTIMEOUT', 'choice', ['run', 'fail', 'cancel']],
    ['claim', 'CLAIM', 'claim'],
  ],
  'JOB.MCONSUME': [
    ['meta', 'META', 'map'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['if', 'IF', 'only'],
    ['result', 'RESULT', 'data'],
    ['retain', 'RETAIN', 'endless'],
    ['force', 'FORCE', 'flag'],
    ['next', 'NEXT', 'text'],
    ['nextCost', 'NEXT-COST', 'number'],
    ['nextCosts', 'NEXT-COSTS', 'map'],
    ['name', 'NAME', 'text'],
    ['delay', 'DELAY', 'duration'],
    ['priority', 'PRIORITY', 'number'],
    ['after', 'AFTER', 'after'],
    ['strict', 'STRICT', 'flag'],
    ['await', 'AWAIT', 'list'],
    ['any', 'ANY', 'flag'],
    ['within', 'WITHIN', 'duration'],
    ['ontimeout', 'ONTIMEOUT', 'choice', ['run', 'fail', 'cancel']],
    ['claim', 'CLAIM', 'claim'],
  ],
  'JOB.FAIL': [
    ['token', 'TOKEN', 'number'],
    ['retry', 'RETRY', 'duration'],
    ['noretry', 'NORETRY', 'flag'],
    ['retain', 'RETAIN', 'endless'],
    ['payload', 'PAYLOAD', 'data'],
    ['meta', 'META', 'map'],
    ['log', 'LOG', 'text'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['pause', 'PAUSE', 'rest'],
    ['claim', 'CLAIM', 'claim'],
  ],
  'JOB.MFAIL': [
    ['retry', 'RETRY', 'duration'],
    ['noretry', 'NORETRY', 'flag'],
    ['retain', 'RETAIN', 'endless'],
    ['meta', 'META', 'map'],
    ['log', 'LOG', 'text'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['pause', 'PAUSE', 'rest'],
    ['claim', 'CLAIM', 'claim'],
  ],
  'JOB.ABANDON': [
    ['token', 'TOKEN', 'number'],
    ['delay', 'DELAY', 'duration'],
    ['reason', 'REASON', 'text'],
    ['meta', 'META', 'map'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['pause', 'PAUSE', 'rest'],
    ['claim', 'CLAIM', 'claim'],
  ],
  'JOB.MABANDON': [
    ['delay', 'DELAY', 'duration'],
    ['reason', 'REASON', 'text'],
    ['meta', 'META', 'map'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['pause', 'PAUSE', 'rest'],
  ],
  'JOB.TRASH': [
    ['token', 'TOKEN', 'number'],
    ['reason', 'REASON', 'text'],
    ['meta', 'META', 'map'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['claim', 'CLAIM', 'claim'],
  ],
  'JOB.MTRASH': [
    ['reason', 'REASON', 'text'],
    ['meta', 'META', 'map'],
    ['cost', 'COST', 'number'],
    ['costs', 'COSTS', 'map'],
    ['claim', 'CLAIM', 'claim'],
  ],
  'JOB.WORKER REGISTER': [
    ['role', 'ROLE', 'text'],
    ['meta', 'META', 'map'],
    ['for', 'FOR', 'duration'],
    ['session', 'SESSION', 'flag'],
    ['anew', 'ANEW', 'flag'],
  ],
  'JOB.WORKER DEREGISTER': [],
  'JOB.WORKER LIST': [
    ['role', 'ROLE', 'text'],
    ['cursor', 'CURSOR', 'text'],
    ['count', 'COUNT', 'number'],
  ],
  'JOB.WORKER QUIET': [],
  'JOB.WORKER RESUME': [],
  'JOB.CANCEL': [
    ['count', 'COUNT', 'number'],
    ['cursor', 'CURSOR', 'text'],
    ['dryrun', 'DRYRUN', 'flag'],
    ['by', 'BY', 'text'],
    ['force', 'FORCE', 'flag'],
  ],
  'JOB.RELEASE': [
    ['count', 'COUNT', 'number'],
    ['cursor', 'CURSOR', 'text'],
    ['dryrun', 'DRYRUN', 'flag'],
    ['front', 'FRONT', 'flag'],
  ],
  'JOB.REQUEUE': [
    ['queue', 'QUEUE', 'text'],
    ['origin', 'ORIGIN', 'flag'],
    ['payload', 'PAYLOAD', 'data'],
    ['to', 'TO', 'text'],
    ['count', 'COUNT', 'number'],
    ['cursor', 'CURSOR', 'text'],
    ['dryrun', 'DRYRUN', 'flag'],
    ['fresh', 'FRESH', 'flag'],
  ],
  'JOB.DELETE': [
    ['count', 'COUNT', 'number'],
    ['cursor', 'CURSOR', 'text'],
    ['dryrun', 'DRYRUN', 'flag'],
    ['return', 'RETURN', 'flag'],
    ['fields', 'FIELDS', 'list'],
  ],
  'JOB.UPDATE': [
    ['count', 'COUNT', 'number'],
    ['cursor', 'CURSOR', 'text'],
    ['dryrun', 'DRYRUN', 'flag'],
    ['priority', 'PRIORITY', 'number'],
    ['queue', 'QUEUE', 'text'],
    ['delay', 'DELAY', 'duration'],
    ['at', 'AT', 'time'],
    ['payload', 'PAYLOAD', 'data'],
    ['retries', 'RETRIES', 'number'],
    ['lease', 'LEASE', 'duration'],
    ['meta', 'META', 'map'],
    ['log', 'LOG', 'text'],
    ['progress', 'PROGRESS', 'number'],
    ['unstep', 'UNSTEP', 'list'],
    ['tag', 'TAG', 'list'],
    ['untag', 'UNTAG', 'list'],
    ['track', 'TRACK', 'flag'],
    ['untrack', 'UNTRACK', 'flag'],
  ],
  'JOB.SIGNAL': [
    ['count', 'COUNT', 'number'],
    ['cursor', 'CURSOR', 'text'],
    ['dryrun', 'DRYRUN', 'flag'],
    ['value', 'VALUE', 'text'],
    ['sender', 'SENDER', 'text'],
  ],
  'JOB.DEPEND ADD': [
    ['onfailure', 'ONFAILURE', 'choice', ['hold', 'cancel', 'fail', 'run']],
    ['strict', 'STRICT', 'flag'],
  ],
  'JOB.DEPEND REMOVE': [
    ['signals', 'SIGNALS', 'flag'],
  ],
  'JOB.DEPEND CLEAR': [],
  'JOB.PAUSE': [
    ['queue', 'QUEUE', 'text'],
    ['group', 'GROUP', 'text'],
    ['limit', 'LIMIT', 'text'],
    ['for', 'FOR', 'duration'],
    ['release', 'RELEASE', 'flag'],
  ],
  'JOB.RESUME': [
    ['queue', 'QUEUE', 'text'],
    ['group', 'GROUP', 'text'],
    ['limit', 'LIMIT', 'text'],
  ],
  'JOB.GET': [
    ['fields', 'FIELDS', 'list'],
    ['cursor', 'CURSOR', 'text'],
    ['count', 'COUNT', 'number'],
  ],
  'JOB.MGET': [
    ['fields', 'FIELDS', 'list'],
  ],
  'JOB.LIST': [
    ['rev', 'REV', 'flag'],
    ['cursor', 'CURSOR', 'text'],
    ['count', 'COUNT', 'number'],
    ['justid', 'JUSTID', 'flag'],
    ['fields', 'FIELDS', 'list'],
  ],
  'JOB.COUNT': [
    ['cursor', 'CURSOR', 'text'],
  ],
  'JOB.WAIT': [
    ['any', 'ANY', 'flag'],
    ['changed', 'CHANGED', 'number'],
    ['fields', 'FIELDS', 'list'],
    ['for', 'FOR', 'choice', ['claimable', 'present', 'empty']],
    ['queue', 'QUEUE', 'text'],
    ['queues', 'QUEUES', 'list'],
  ],
  'JOB.OUTPUT': [
    ['since', 'SINCE', 'number'],
    ['count', 'COUNT', 'number'],
    ['block', 'BLOCK', 'duration'],
  ],
  'JOB.HISTORY': [],
  'JOB.EXPLAIN': [],
  'JOB.QUEUES': [
    ['contains', 'CONTAINS', 'text'],
    ['by', 'BY', 'text'],
    ['cursor', 'CURSOR', 'text'],
    ['count', 'COUNT', 'number'],
  ],
  'JOB.GROUPS': [
    ['queue', 'QUEUE', 'text'],
    ['cursor', 'CURSOR', 'text'],
    ['count', 'COUNT', 'number'],
  ],
  'JOB.LIMITS': [
    ['cursor', 'CURSOR', 'text'],
    ['count', 'COUNT', 'number'],
  ],
  'JOB.WORKERS': [
    ['cursor', 'CURSOR', 'text'],
    ['count', 'COUNT', 'number'],
  ],
  'JOB.KINDS': [
    ['cursor', 'CURSOR', 'text'],
    ['count', 'COUNT', 'number'],
  ],
  'JOB.TAGS': [
    ['cursor', 'CURSOR', 'text'],
    ['count', 'COUNT', 'number'],
  ],
  'JOB.STATS': [
    ['queue', 'QUEUE', 'text'],
    ['day', 'DAY', 'text'],
  ],
  'JOB.METRICS': [],
  'JOB.INFO': [
    ['digest', 'DIGEST', 'flag'],
  ],
  'JOB.SETTINGS GET': [
    ['queue', 'QUEUE', 'text'],
    ['group', 'GROUP', 'text'],
    ['limit', 'LIMIT', 'text'],
  ],
  'JOB.SETTINGS SET': [
    ['queue', 'QUEUE', 'text'],
    ['group', 'GROUP', 'text'],
    ['limit', 'LIMIT', 'text'],
  ],
  'JOB.SETTINGS RESET': [
    ['queue', 'QUEUE', 'text'],
    ['group', 'GROUP', 'text'],
    ['limit', 'LIMIT', 'text'],
  ],
  'JOB.CLOCK GET': [],
  'JOB.CLOCK SET': [],
  'JOB.CLOCK ADVANCE': [],
} as const satisfies Record<string, readonly (readonly [string, string, Shape, (readonly string[])?])[]>;

/** A command of the module; one with subcommands is named with each. */
export type CommandName = keyof typeof COMMANDS;

/** What jobs are to be. A list names alternatives. */
export interface Plainly {
  /** Jobs in this state: scheduled, blocked, ready, claimed, complete, failed, cancelled or trashed */
  state?: State | readonly State[] | undefined;
  /** Jobs in this queue, of this group, held by this worker */
  queue?: string | readonly string[] | undefined;
  /** Jobs in this queue, of this group, held by this worker */
  group?: string | readonly string[] | undefined;
  /** Jobs in this queue, of this group, held by this worker */
  worker?: string | readonly string[] | undefined;
  /** Jobs with this name, with this tag, posted on behalf of this user */
  name?: string | readonly string[] | undefined;
  /** Jobs with this name, with this tag, posted on behalf of this user */
  tag?: string | readonly string[] | undefined;
  /** Jobs whose last failure is of this kind, whatever their state */
  kind?: string | readonly string[] | undefined;
  /** Jobs that somebody follows */
  tracked?: boolean | undefined;
  /** Jobs with this name, with this tag, posted on behalf of this user */
  user?: string | readonly string[] | undefined;
  /** Jobs that have lost a lease */
  lapsed?: boolean | undefined;
  /** Jobs that have changed since this `revision` of the board: their `version` is higher */
  since?: number | undefined;
  /** Jobs posted, or ended, between these two times, both included: Unix ms, `-2h` for two hours ago, `-` and `+` for no bound */
  posted?: readonly (string | number)[] | undefined;
  /** Jobs posted, or ended, between these two times, both included: Unix ms, `-2h` for two hours ago, `-` and `+` for no bound */
  ended?: readonly (string | number)[] | undefined;
  /** Jobs that are children of this job, that wait for this job */
  parent?: string | readonly string[] | undefined;
  /** Jobs that are children of this job, that wait for this job */
  after?: string | readonly string[] | undefined;
  /** Jobs that wait for this signal, which has not arrived */
  awaits?: string | readonly string[] | undefined;
  /** Jobs whose id begins so: `order-*` */
  id?: string | readonly string[] | undefined;
  /** Jobs with this value in this field of their `meta` */
  meta?: Readonly<Record<string, string | number>> | readonly (string | number)[] | undefined;
  /** Jobs whose reported stage, or the message of whose last failure, contains this */
  stage?: string | readonly string[] | undefined;
  /** Jobs whose reported stage, or the message of whose last failure, contains this */
  message?: string | readonly string[] | undefined;
  /** Jobs whose payload contains this, byte for byte */
  contains?: string | readonly string[] | undefined;
}

/** Which jobs: those that pass all filters, and of `not` none. */
export interface Filters extends Plainly {
  /** Jobs that pass none of these. */
  not?: Plainly | undefined;
}

/** The filters, with how many words each takes. */
export const FILTERS = {
  state: ['STATE', 1],
  queue: ['QUEUE', 1],
  group: ['GROUP', 1],
  worker: ['WORKER', 1],
  name: ['NAME', 1],
  tag: ['TAG', 1],
  kind: ['KIND', 1],
  tracked: ['TRACKED', 0],
  user: ['USER', 1],
  lapsed: ['LAPSED', 0],
  since: ['SINCE', 1],
  posted: ['POSTED', 2],
  ended: ['ENDED', 2],
  parent: ['PARENT', 1],
  after: ['AFTER', 1],
  awaits: ['AWAITS', 1],
  id: ['ID', 1],
  meta: ['META', 2],
  stage: ['STAGE', 1],
  message: ['MESSAGE', 1],
  contains: ['CONTAINS', 1],
} as const satisfies Record<keyof Plainly, readonly [string, number]>;

/** A queue, as `JOB.QUEUES` lists it. */
export interface QueueRow {
  /** its name */
  readonly 'queue': string;
  /** jobs in that state */
  readonly 'scheduled': number;
  /** jobs in that state */
  readonly 'blocked': number;
  /** jobs in that state */
  readonly 'ready': number;
  /** jobs in that state */
  readonly 'claimed': number;
  /** jobs in that state */
  readonly 'complete': number;
  /** jobs in that state */
  readonly 'failed': number;
  /** jobs in that state */
  readonly 'cancelled': number;
  /** jobs in that state */
  readonly 'trashed': number;
  /** until when a pause of the queue or of the board stops claims: Unix ms, -1 until it is resumed, 0 when not paused */
  readonly 'paused': number;
  /** the setting in force */
  readonly 'concurrency': number;
  /** the shared limits that it names */
  readonly 'limits': readonly string[];
  /** the dead queue that it names; empty when it names none */
  readonly 'dead-queue': string;
  /** the bytes of its records, which `max-bytes` limits */
  readonly 'record-bytes': number;
  /** how long ago the oldest ready job first could run, ms; -1 when none is ready. Of more than 64 priorities, the highest 64 are compared */
  readonly 'oldest': number;
  /** jobs posted, and jobs ended in any way, per second over the last minute, as this server has seen them since it loaded the board */
  readonly 'arrival-rate': number;
  /** jobs posted, and jobs ended in any way, per second over the last minute, as this server has seen them since it loaded the board */
  readonly 'completion-rate': number;
  /** ms until no job is ready at these rates; 0 when none is ready now, -1 when the queue does not get empty */
  readonly 'drain': number;
  /** how late deadlines were handled today, ms, as in JOB.STATS */
  readonly 'lateness-p99': number;
  /** how late deadlines were handled today, ms, as in JOB.STATS */
  readonly 'lateness-max': number;
}

/** A group, as `JOB.GROUPS` lists it. */
export interface GroupRow {
  /** their names */
  readonly 'queue': string;
  /** their names */
  readonly 'group': string;
  /** jobs in that state */
  readonly 'scheduled': number;
  /** jobs in that state */
  readonly 'blocked': number;
  /** jobs in that state */
  readonly 'ready': number;
  /** jobs in that state */
  readonly 'claimed': number;
  /** jobs in that state */
  readonly 'complete': number;
  /** jobs in that state */
  readonly 'failed': number;
  /** jobs in that state */
  readonly 'cancelled': number;
  /** jobs in that state */
  readonly 'trashed': number;
  /** until when a pause of the group itself stops claims: Unix ms, -1 until it is resumed, 0 when not paused */
  readonly 'paused': number;
  /** the settings in force */
  readonly 'weight': number;
  /** the settings in force */
  readonly 'concurrency': number;
  /** the settings in force */
  readonly 'ordered': number;
  /** the settings in force */
  readonly 'rate': number;
  /** the settings in force */
  readonly 'rate-period': number;
  /** the settings in force */
  readonly 'burst': number;
  /** the settings in force */
  readonly 'max-jobs': number;
  /** the settings in force */
  readonly 'limits': readonly string[];
}

/** A shared limit, as `JOB.LIMITS` lists it. */
export interface LimitRow {
  /** its name */
  readonly 'limit': string;
  /** how many queues name it, for themselves or for their groups */
  readonly 'queues': number;
  /** how many claimed jobs count against it */
  readonly 'claimed': number;
  /** its settings */
  readonly 'concurrency': number;
  /** its settings */
  readonly 'rate': number;
  /** its settings */
  readonly 'rate-period': number;
  /** its settings */
  readonly 'burst': number;
  /** until when it has no permit: Unix ms, 0 when it has one, -1 when none will ever come */
  readonly 'dry': number;
  /** how many permits it owes, because jobs have cost more than was expected; 0 when none */
  readonly 'debt': number;
  /** until when it is paused: Unix ms, 0 when it is not, -1 without end */
  readonly 'paused': number;
}

/** A registered worker, as `JOB.WORKER` lists it. */
export interface WorkerRow {
  /** the name */
  readonly 'worker': string;
  /** role and fields, when given */
  readonly 'role'?: string;
  /** role and fields, when given */
  readonly 'meta'?: Readonly<Record<string, string>>;
  /** when the worker first registered */
  readonly 'registered': number;
  /** when the registration lapses, Unix ms; -1: no time is set */
  readonly 'expires': number;
  /** 1 when the registration lasts as long as a connection */
  readonly 'session': number;
  /** 1 when the worker is quiet */
  readonly 'quiet': number;
  /** ms since its last command that this server has seen */
  readonly 'active': number;
  /** how many jobs it holds */
  readonly 'claimed': number;
  /** how many leases it has lost since it registered */
  readonly 'lapsed': number;
}

/** A board at a glance, as `JOB.INFO` returns it. */
export interface BoardInfo {
  /** all records */
  readonly 'jobs': number;
  /** jobs in that state */
  readonly 'scheduled': number;
  /** jobs in that state */
  readonly 'blocked': number;
  /** jobs in that state */
  readonly 'ready': number;
  /** jobs in that state */
  readonly 'claimed': number;
  /** jobs in that state */
  readonly 'complete': number;
  /** jobs in that state */
  readonly 'failed': number;
  /** jobs in that state */
  readonly 'cancelled': number;
  /** jobs in that state */
  readonly 'trashed': number;
  /** queues */
  readonly 'queues': number;
  /** workers that hold jobs */
  readonly 'workers': number;
  /** schedules */
  readonly 'schedules': number;
  /** shared limits */
  readonly 'limits': number;
  /** dropped jobs that the board remembers */
  readonly 'tombstones': number;
  /** when the board was created, Unix ms: equal on a replica, and another when the board was deleted and made again */
  readonly 'created': number;
  /** the number of changes so far; equal on a replica that is in step */
  readonly 'revision': number;
  /** the last token given */
  readonly 'token': number;
  /** ms until the next deadline of a job, a schedule or a pause; -1 for none */
  readonly 'next': number;
  /** 1 when deadlines wait for the timer, else 0 */
  readonly 'overdue': number;
  /** 1 when a change of the replication stream was missing or could not be applied, else 0: see Broken boards */
  readonly 'broken': number;
  /** the memory of the board, approximately */
  readonly 'bytes': number;
  /** the bytes of all records, which `max-bytes` limits */
  readonly 'record-bytes': number;
  /** posts that wait for room on this server, and the bytes that it keeps of them */
  readonly 'blocked-posts': number;
  /** posts that wait for room on this server, and the bytes that it keeps of them */
  readonly 'blocked-post-bytes': number;
  /** until when the whole board is paused: Unix ms, -1 until it is resumed, 0 when not paused */
  readonly 'paused': number;
  /** as in JOB.QUEUES, for the whole board */
  readonly 'oldest': number;
  /** as in JOB.QUEUES, for the whole board */
  readonly 'arrival-rate': number;
  /** as in JOB.QUEUES, for the whole board */
  readonly 'completion-rate': number;
  /** as in JOB.QUEUES, for the whole board */
  readonly 'drain': number;
  /** how late the server handled deadlines today, ms, as in JOB.STATS */
  readonly 'lease-lateness-p99': number;
  /** how late the server handled deadlines today, ms, as in JOB.STATS */
  readonly 'lease-lateness-max': number;
  /** how late the server handled deadlines today, ms, as in JOB.STATS */
  readonly 'due-lateness-p99': number;
  /** how late the server handled deadlines today, ms, as in JOB.STATS */
  readonly 'due-lateness-max': number;
  /** how late the server handled deadlines today, ms, as in JOB.STATS */
  readonly 'fire-lateness-p99': number;
  /** how late the server handled deadlines today, ms, as in JOB.STATS */
  readonly 'fire-lateness-max': number;
  /** with `DIGEST`: a checksum of the state, hexadecimal. Equal boards have equal digests */
  readonly 'digest'?: string;
}

/** How long something took or was late, ms: see JOB.STATS in the reference. */
export interface Distribution {
  readonly count: number;
  readonly sum: number;
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly deviation: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  /** From, to (-1: without end) and how many, of each bin that is not empty. */
  readonly histogram: readonly (readonly [from: number, to: number, n: number])[];
}

/** What happened on a day, as `JOB.STATS` returns it. */
export interface Statistics {
  /** The date: `2026-11-21`. */
  readonly day: string;
  /** new jobs, those of schedules included */
  readonly 'posted': number;
  /** posts that replaced a job */
  readonly 'replaced': number;
  /** jobs that a schedule posted */
  readonly 'fired': number;
  /** claims */
  readonly 'claimed': number;
  /** jobs that ended so */
  readonly 'completed': number;
  /** jobs that ended so */
  readonly 'failed': number;
  /** jobs that ended so */
  readonly 'cancelled': number;
  /** jobs that ended so */
  readonly 'trashed': number;
  /** failed tries and run timeouts that another try follows */
  readonly 'retried': number;
  /** leases that ended, with a registration as well; not those of jobs that `cancel-grace` ended */
  readonly 'lapsed': number;
  /** runs that timed out */
  readonly 'timeouts': number;
  /** late heartbeats that took the job back */
  readonly 'revived': number;
  /** jobs that a worker gave back, or held when it deregistered */
  readonly 'abandoned': number;
  /** jobs that an operator or a pause took from a worker, and claims whose client had disconnected */
  readonly 'released': number;
  /** jobs that waited too long; they count as `failed` too */
  readonly 'expired': number;
  /** ended jobs that were made ready again */
  readonly 'requeued': number;
  /** jobs that an operator deleted */
  readonly 'deleted': number;
  /** waits for signals, and waits for children, that began */
  readonly 'awaited': number;
  /** signals that arrived */
  readonly 'signalled': number;
  /** waits for signals whose time was over */
  readonly 'await-timeouts': number;
  /** the permits that claims have cost: the estimates of their jobs, and what workers said instead. The difference counts on the day of the report, whose sum may be negative */
  readonly 'cost': number;
  /** the same of single limits, as `COSTS` named them for jobs that count against them: a map */
  readonly 'costs': Readonly<Record<string, number>>;
  /** how long jobs had been ready when they were claimed. The wait starts again after a failure, a lapse or a delay */
  readonly 'wait': Distribution;
  /** how long a worker had its job, from the claim until it consumed, failed, abandoned or trashed the job, in time or late. Claims that others ended are not counted */
  readonly 'run': Distribution;
  /** how long jobs waited for signals or for their children, until these were there, the time was over, or the job ended, was replaced or deleted: each wait of `awaited`, once it is over */
  readonly 'await': Distribution;
  /** how late the server handled a deadline: all of the following */
  readonly 'lateness': Distribution;
  /** of the end of a claim, after its lease (and grace), run timeout or `cancel-grace` had ended */
  readonly 'lease-lateness': Distribution;
  /** of a delayed job becoming ready, after it was due */
  readonly 'due-lateness': Distribution;
  /** of a run of a schedule, after its time */
  readonly 'fire-lateness': Distribution;
}

/** The states of a job. */
export const STATES = ['scheduled', 'blocked', 'ready', 'claimed', 'complete', 'failed', 'cancelled', 'trashed'] as const;
/** The state of a job. */
export type State = (typeof STATES)[number];

/** The fields of a record. */
export const FIELDS = ['id', 'seq', 'state', 'queue', 'name', 'payload', 'priority', 'attempt', 'left', 'token', 'worker', 'deadline', 'kind', 'message', 'stage', 'progress', 'posted', 'due', 'claimed', 'ended', 'modified', 'version', 'result', 'meta', 'previous', 'reason', 'intended', 'after', 'tags', 'tracked', 'user', 'unique', 'parent', 'share', 'children', 'group', 'cost', 'session', 'steps', 'origin', 'signals', 'awaits', 'costs', 'spent', 'retries', 'lapses', 'history', 'until', 'pending', 'unsuccessful'] as const;
/** A field of a record. */
export type Field = (typeof FIELDS)[number];

/** The events of a board, with their bits in the setting `events`. */
export const EVENTS = {
  posted: 1,
  ready: 2,
  claimed: 4,
  lost: 8,
  progress: 16,
  completed: 32,
  advanced: 64,
  failed: 128,
  retried: 256,
  abandoned: 512,
  cancelled: 1024,
  trashed: 2048,
  deleted: 4096,
  settings: 8192,
  dead: 16384,
  awaiting: 32768,
  signalled: 65536,
  grace: 131072,
  updated: 262144,
} as const;
/** A kind of event. */
export type EventKind = keyof typeof EVENTS;

/** The settings of boards, queues, groups and shared limits. */
export interface Settings {
  /** how long a claim holds without a heartbeat. Range: 1 to 2^40 ms; default: '30s'; set for: module, board, queue */
  'lease'?: Duration | undefined;
  /** how many failures are followed by another try; -1: no limit. Range: -1 to 2^31-1; default: 10; set for: module, board, queue */
  'retries'?: number | undefined;
  /** how many lost leases are followed by another try; -1: no limit. Range: -1 to 2^31-1; default: 5; set for: module, board, queue */
  'lapses'?: number | undefined;
  /** the wait before the first retry. Each further wait doubles. Range: 0 to 2^40 ms; default: '5s'; set for: module, board, queue */
  'backoff-base'?: Duration | undefined;
  /** the longest wait before a retry. Range: 0 to 2^40 ms; default: '1h'; set for: module, board, queue */
  'backoff-max'?: Duration | undefined;
  /** by how many percent that wait varies at random, up or down. Range: 0 to 100; default: 10; set for: module, board, queue */
  'jitter'?: number | undefined;
  /** the longest time that one run may take; -1 or 0: no limit. Range: -1 to 2^40 ms; default: 'forever'; set for: module, board, queue */
  'timeout'?: Duration | 'forever' | undefined;
  /** the age at which an unclaimed job fails; -1 or 0: no limit. Range: -1 to 2^40 ms; default: 'forever'; set for: module, board, queue */
  'expire'?: Duration | 'forever' | undefined;
  /** how long a complete job without a result is kept; -1: for ever. Range: -1 to 2^40 ms; default: '0ms'; set for: module, board */
  'retain-complete'?: Duration | 'forever' | undefined;
  /** how long a complete job with a result is kept; -1: for ever. Range: -1 to 2^40 ms; default: '1h'; set for: module, board */
  'retain-result'?: Duration | 'forever' | undefined;
  /** how long a failed job is kept; -1: for ever. Range: -1 to 2^40 ms; default: '30d'; set for: module, board */
  'retain-failed'?: Duration | 'forever' | undefined;
  /** how long a trashed job is kept; -1: for ever. Range: -1 to 2^40 ms; default: '30d'; set for: module, board */
  'retain-trashed'?: Duration | 'forever' | undefined;
  /** how long a cancelled job is kept; -1: for ever. Range: -1 to 2^40 ms; default: '1d'; set for: module, board */
  'retain-cancelled'?: Duration | 'forever' | undefined;
  /** how long a worker whose connection has closed may return to its `SESSION` claims and registration. Range: 0 to 2^40 ms; default: '0ms'; set for: module, board */
  'session-grace'?: Duration | undefined;
  /** how many complete jobs are kept; the oldest are dropped. Range: 0 to 2^31-1; default: 100000; set for: module, board */
  'keep-complete'?: number | undefined;
  /** how many failed jobs are kept; the oldest are dropped. Range: 0 to 2^31-1; default: 100000; set for: module, board */
  'keep-failed'?: number | undefined;
  /** how many trashed jobs are kept; the oldest are dropped. Range: 0 to 2^31-1; default: 100000; set for: module, board */
  'keep-trashed'?: number | undefined;
  /** how many cancelled jobs are kept; the oldest are dropped. Range: 0 to 2^31-1; default: 100000; set for: module, board */
  'keep-cancelled'?: number | undefined;
  /** how many dropped jobs the board remembers, for commands that are sent again. Range: 0 to 1000000; default: 10000; set for: board */
  'tombstones'?: number | undefined;
  /** how long it remembers them. Range: 0 to 2^40 ms; default: '1m'; set for: board */
  'tombstone-ttl'?: Duration | undefined;
  /** how many first events of a job's history are kept. Range: 0 to 1000; default: 5; set for: board */
  'history-first'?: number | undefined;
  /** how many last events of a job's history are kept. Range: 0 to 1000; default: 15; set for: board */
  'history-last'?: number | undefined;
  /** 1: `*` as worker means whoever holds a job, or nobody (see Ownerless boards). `yes` and `no` work as well. Range: 0 to 1; default: 0; set for: board */
  'ownerless'?: boolean | undefined;
  /** how many jobs of a queue, of a group or under a shared limit run at once; -1: no limit. The board's value is that of each queue without its own. A lower value takes no running job back. Range: -1 to 2^31-1; default: -1; set for: board, queue, group, limit */
  'concurrency'?: number | undefined;
  /** how many days of statistics are kept, today included; 0: none, and nothing is counted. Range: 0 to 3650; default: 30; set for: board */
  'stats-days'?: number | undefined;
  /** how long a worker keeps a job after its lease has ended, before the job is ready again. The claim fixes it. Range: 0 to 2^40 ms; default: '0ms'; set for: module, board, queue */
  'grace'?: Duration | undefined;
  /** how long a worker may continue after a request to cancel; then the job is cancelled. -1: as long as its claim holds. Range: -1 to 2^40 ms; default: 'forever'; set for: module, board, queue */
  'cancel-grace'?: Duration | 'forever' | undefined;
  /** how many turns a group gets for each turn of a group with weight 1. A change counts after the next turn of a waiting group. Range: 1 to 1000; default: 1; set for: group */
  'weight'?: number | undefined;
  /** 1: the group runs one job after the other. The next job waits until the last has ended, including its retries. A job that comes back is next, whatever the priorities of the others. Range: 0 to 1; default: 0; set for: group */
  'ordered'?: boolean | undefined;
  /** the waiting time that raises a job's priority by one; 0: never. Counts for jobs posted, requeued or moved afterwards. Range: 0 to 2^31-1 ms; default: '0ms'; set for: board, queue */
  'ageing'?: Duration | undefined;
  /** how many permits arrive in each `rate-period`, which limits how fast jobs are claimed; -1: no limit. The board's value is for all its queues together, not for each. Range: -1 to 2^31-1; default: -1; set for: board, queue, group, limit */
  'rate'?: number | undefined;
  /** the time in which `rate` permits arrive. Range: 1 to 2^31-1 ms; default: '1s'; set for: board, queue, group, limit */
  'rate-period'?: Duration | undefined;
  /** how many permits are kept, and how many there are at first. A rate above a few hundred a second needs a larger burst: with 1, at most one permit per millisecond is used, and those that arrive between claims are lost. `rate` / 50 (20 ms of permits) is enough. Range: 1 to 2^31-1; default: 1; set for: board, queue, group, limit */
  'burst'?: number | undefined;
  /** the dead queue of a queue; an empty name: none. Range: a name; default: none; set for: queue */
  'dead-queue'?: string | undefined;
  /** which events are published: the sum of their bits, or names. Range: 0 to 524287; default: 0; set for: module, board */
  'events'?: number | EventKind | 'all' | 'none' | `${EventKind},${string}` | undefined;
  /** 1: only events of tracked jobs are published. `JOB.SETTINGS` takes `yes` and `no` as well. Range: 0 to 1; default: 0; set for: module, board */
  'events-tracked'?: boolean | undefined;
  /** how many jobs that have not ended the board, the queue or the group can have, each counted by itself; -1: no limit. Posts, `JOB.REQUEUE`, and `JOB.UPDATE` of the queue are refused above it (`LIMIT max-jobs`), or wait with `BLOCK` of a post; schedules pass over their time. Range: -1 to 2^31-1; default: -1; set for: board, queue, group */
  'max-jobs'?: number | undefined;
  /** how many bytes all records of the board or the queue can have; -1: no limit. A record counts 64 bytes, its id and payload, and what else is kept of it, without tags. `JOB.INFO` and `JOB.QUEUES` show the sum as `record-bytes`. Range: -1 to 2^53; default: -1; set for: board, queue */
  'max-bytes'?: number | undefined;
  /** how many queues can exist: those that hold jobs, have settings (their own or those of groups), are paused, or have a group that waits for permits. A command that would create one more is refused (`LIMIT max-queues`); a schedule passes over its time. A day has statistics of at most this many queues; events in others are not counted. Range: 1 to 10000000; default: 100000; set for: board */
  'max-queues'?: number | undefined;
  /** how many groups a queue can have before unknown groups get no settings and no pause (`LIMIT max-groups`). Range: 1 to 100000000; default: 1000000; set for: board */
  'max-groups'?: number | undefined;
  /** how many schedules can exist (`LIMIT max-schedules`). Range: 1 to 1000000; default: 10000; set for: board */
  'max-schedules'?: number | undefined;
  /** how many keys of `UNIQUE` can be held at a time (`LIMIT max-keys`, of a post or a requeue); a schedule passes over its time. Range: 1 to 1000000000; default: 10000000; set for: board */
  'max-keys'?: number | undefined;
  /** how many steps and signals a job can have together (`LIMIT max-steps`). Range: 0 to 100000; default: 1000; set for: board */
  'max-steps'?: number | undefined;
  /** how many bytes the names and values of a job's steps and signals, and their senders, can have together (`LIMIT max-step-bytes`). Range: 0 to 2^30; default: 16777216; set for: board */
  'max-step-bytes'?: number | undefined;
  /** how many bytes of output are kept of a job, the last ones, and how long a chunk can be (`LIMIT output-bytes`); 0: no output. Range: 0 to 67108864; default: 65536; set for: board */
  'output-bytes'?: number | undefined;
  /** how long a job that lost a lease waits before workers can claim it again. Each further lapse doubles the wait, up to `backoff-max`, varied by `jitter`. So a job that kills its workers does not come first each time; 0: it is ready at once. Range: 0 to 2^40 ms; default: '0ms'; set for: module, board, queue */
  'lapse-delay'?: Duration | undefined;
  /** how long the record of a job with output is kept after its end at least, also where `RETAIN` or another setting says less, so that readers get the end of it. Range: 0 to 2^40 ms; default: '1m'; set for: board */
  'retain-output'?: Duration | undefined;
  /** The shared limits that a queue or a group names. */
  limits?: readonly string[] | undefined;
}

/** How settings are written. */
export const SETTINGS = {
  'lease': 'duration',
  'retries': 'number',
  'lapses': 'number',
  'backoff-base': 'duration',
  'backoff-max': 'duration',
  'jitter': 'number',
  'timeout': 'endless',
  'expire': 'endless',
  'retain-complete': 'endless',
  'retain-result': 'endless',
  'retain-failed': 'endless',
  'retain-trashed': 'endless',
  'retain-cancelled': 'endless',
  'session-grace': 'duration',
  'keep-complete': 'number',
  'keep-failed': 'number',
  'keep-trashed': 'number',
  'keep-cancelled': 'number',
  'tombstones': 'number',
  'tombstone-ttl': 'duration',
  'history-first': 'number',
  'history-last': 'number',
  'ownerless': 'flag',
  'concurrency': 'number',
  'stats-days': 'number',
  'grace': 'duration',
  'cancel-grace': 'endless',
  'weight': 'number',
  'ordered': 'flag',
  'ageing': 'duration',
  'rate': 'number',
  'rate-period': 'duration',
  'burst': 'number',
  'dead-queue': 'text',
  'events': 'number',
  'events-tracked': 'flag',
  'max-jobs': 'number',
  'max-bytes': 'number',
  'max-queues': 'number',
  'max-groups': 'number',
  'max-schedules': 'number',
  'max-keys': 'number',
  'max-steps': 'number',
  'max-step-bytes': 'number',
  'output-bytes': 'number',
  'lapse-delay': 'duration',
  'retain-output': 'duration',
  limits: 'list',
} as const satisfies Record<keyof Settings, Shape>;

/** The codes of what the server refuses. */
export const CODES = ['NOJOB', 'NOTCLAIMED', 'NOTOWNER', 'CLAIMED', 'STALE', 'NOTREADY', 'NOWORKER', 'ENDED', 'NOTENDED', 'CANCELLED', 'NOSCHEDULE', 'WRONGQUEUE', 'GAP', 'EXISTS', 'DEPENDED', 'CYCLE', 'LIMIT', 'BROKEN', 'WRONGTYPE', 'READONLY', 'NOPERM', 'OOM', 'ERR'] as const;
/** The code of a refusal: its first word. */
export type Code = (typeof CODES)[number];
