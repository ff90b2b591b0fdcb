/** Durations: text with units, and as milliseconds. */

type Unit = 'ms' | 's' | 'm' | 'h' | 'd';

/**
 * A duration: `'500ms'`, `'5s'`, `'1h30m'`, `'7d'`, the longest unit first. A bare number is refused: it may mean
 * seconds or milliseconds.
 */
export type Duration =
  | `${number}${Unit}`
  | `${number}${Unit}${number}${Unit}`
  | `${number}${Unit}${number}${Unit}${number}${Unit}`;

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const;
const SHAPE = new RegExp(`^${Object.keys(UNITS).map((unit) => `(?:(\\d+(?:\\.\\d+)?)${unit}(?![a-z]))?`).join('')}$`);

/** Milliseconds of a duration; a fraction of one is cut off. -1 is `'forever'`. */
export function toMs(duration: Duration | 'forever', name = 'a duration'): number {
  if (duration === 'forever') return -1;
  const found = typeof duration === 'string' && duration.length > 0 ? SHAPE.exec(duration) : null;
  if (found) {
    const factors = Object.values(UNITS);
    const sum = factors.reduce((total, unit, at) => total + Number(found[at + 1] ?? 0) * unit, 0);
    return Math.floor(Number(sum.toFixed(6)));
  }
  const problem = `${name} is text with a unit, such as '500ms', '5s', '1h30m' or '7d'`;
  const given: unknown = duration;
  if (typeof given === 'number') {
    const number = String(given);
    const instead = given >= 0 ? `: write '${number}s' or '${number}ms'` : '';
    throw new TypeError(`${problem}: ${number} may mean seconds or milliseconds${instead}`);
  }
  throw new (typeof given === 'string' ? RangeError : TypeError)(`${problem}, not ${JSON.stringify(given)}`);
}

/** How long a command with this `block` may wait, ms: for the server 0 is for ever. */
export function blockOf(block: Duration): number {
  return toMs(block, 'block') || Infinity;
}

/** The longest time of a timer of Node, ms: with a longer one it ends at once. */
export const LONGEST_TIMER = 2 ** 31 - 1;

/** A duration of so many milliseconds, such as replies have. */
export function ofMs(ms: number): Duration {
  return `${Math.max(0, Math.round(ms))}ms`;
}
