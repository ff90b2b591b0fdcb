/** Times: dates, and as Unix milliseconds. */

/** A time: a `Date`, or Unix milliseconds, such as `Date.now()` and replies give. */
export type Time = Date | number;

/** Unix milliseconds of a time. */
export function toUnix(time: Time, name = 'a time'): number {
  const found = time instanceof Date ? time.getTime() : time;
  if (typeof found !== 'number' || !Number.isFinite(found)) {
    throw new TypeError(`${name} is a Date, or Unix milliseconds, not ${String(time)}`);
  }
  return Math.floor(found);
}
