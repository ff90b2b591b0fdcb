/** Values as errors show them. */
import { inspect } from 'node:util';

/** In one line, and not longer than a line bears: text in quotes, objects with some of their fields. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : inspect(value, { depth: 2, breakLength: Infinity, maxArrayLength: 10, maxStringLength: 100 });
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

const LONGEST = 300;
