/** Options as the words of a command, by the tables that are made from the reference. */
import type { Codec } from './codecs.js';
import { type Duration, toMs } from './durations.js';
import { COMMANDS, type CommandName, FILTERS, type Filters, type Shape } from './generated.js';
import { nearest } from './handlers.js';
import { otherWord } from './other-words.js';
import { shown } from './shown.js';
import { toUnix } from './times.js';

/** The wait before a retry: always the same, or doubling from the first to the second. */
export type Backoff = Duration | readonly [Duration, Duration];

/** Jobs that must be complete first, all with the same word on what happens when one fails. */
export interface AfterAll {
  readonly ids: readonly string[];
  readonly onfailure?: 'hold' | 'cancel' | 'fail' | 'run' | undefined;
}

/** That the children of the job must have ended first, with the word on what happens when one fails. */
export interface AfterChildren {
  readonly children: true;
  readonly onfailure?: AfterAll['onfailure'];
}

/** What must be complete first: ids, several lists of them, the children of the job. */
export type After = readonly string[] | AfterAll | AfterChildren | readonly (AfterAll | AfterChildren)[];

/** A chunk of output: its number in this run, from 1, and what it says. */
export type Chunk = readonly [number: number, text: string | Buffer];

/** What must be so, or the command is refused: the queue in which the job is. */
export interface Only {
  readonly queue: string;
}

/** A shared limit of a job, and how long nothing is claimed that counts against it. */
export type Rest = readonly [limit: string, time: Duration];

/** A word of a command. */
export type Word = string | Buffer;

type Row = readonly [key: string, word: string, shape: Shape, choices?: readonly string[]];

/** The options of a command as words. An unknown one raises, with those that there are. */
export function optionWords(command: CommandName, options: object, codec: Codec): Word[] {
  const rows: readonly Row[] = COMMANDS[command];
  if (typeof options !== 'object' || (options as unknown) === null) throw new TypeError(`the options of ${command} are an object, such as { ${rows[0]?.[0] ?? ''}: … }, not ${shown(options)}`);
  const values = options as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(values)) {
    if (values[key] !== undefined && !rows.some((row) => row[0] === key)) throw unknownOption(command, key, rows);
  }
  return rows.flatMap((row) => words(row, values[row[0]], codec));
}

function unknownOption(command: string, key: string, rows: readonly Row[]): TypeError {
  const known = rows.map((row) => row[0]);
  const other = /^JOB\.(M?POST|FLOW|SCHEDULE)/.test(command) ? otherWord(key) : undefined;
  if (other !== undefined) return new TypeError(`${command} has no option '${key}': write ${other}`);
  const near = known.find((one) => one.toLowerCase() === key.toLowerCase().replaceAll(/[-_]/g, ''));
  if (near !== undefined) return new TypeError(`${command} has no option '${key}': did you mean '${near}'?`);
  const like = nearest(key, known);
  return new TypeError(`${command} has no option '${key}'; there are ${known.join(', ')}${like === undefined ? '' : `. Did you mean '${like}'?`}`);
}

function words([key, word, shape, choices]: Row, value: unknown, codec: Codec): Word[] {
  if (value === undefined || value === null) return [];
  switch (shape) {
    case 'flag':
      return value === true ? [word] : [];
    case 'duration':
    case 'endless':
      return [word, String(toMs(value as Duration, key))];
    case 'time':
      return [word, String(toUnix(value as Date, key))];
    case 'data':
      return [word, codec.encode(value)];
    case 'number':
      return [word, number(value, key)];
    case 'text':
      return [word, text(value, key)];
    case 'list':
      return counted(word, list(value, key));
    case 'map': {
      const pairs = Object.entries(value);
      const wordOf = /costs$/i.test(key) ? number : plain;
      return [word, String(pairs.length), ...pairs.flatMap(([field, one]) => [field, wordOf(one, `${key}.${field}`)])];
    }
    case 'counted':
    case 'choice':
      if (shape === 'counted' && typeof value === 'number') return [word, number(value, key)];
      if (!choices?.includes(String(value))) {
        throw new TypeError(`${key} is one of ${(choices ?? []).join(', ')}, not ${shown(value)}`);
      }
      return [word, String(value)];
    case 'backoff':
      return Array.isArray(value)
        ? [word, 'EXPONENTIAL', ...value.map((one) => String(toMs(one as Duration, key)))]
        : [word, 'FIXED', String(toMs(value as Duration, key))];
    case 'after':
      return afterWords(value as After);
    case 'chunk': {
      const [number, chunk] = value as Chunk;
      return [word, String(number), chunk];
    }
    case 'only':
      return [word, 'QUEUE', text((value as Only).queue, `${key}.queue`)];
    case 'rest': {
      const [limit, time] = value as Rest;
      return [word, text(limit, key), String(toMs(time, key))];
    }
    case 'claim':
      return [word, ...optionWords('JOB.CLAIM', value, codec), 'PACKED'];
  }
}

/** A value of a map. */
export function plain(value: unknown, key: string): string {
  if (['string', 'number', 'boolean'].includes(typeof value)) return String(value);
  throw new TypeError(`${key} is text, a number or a boolean, not ${shown(value)}: JSON.stringify makes text of it`);
}

function afterWords(after: After): Word[] {
  const lists = Array.isArray(after) ? (after as readonly unknown[]) : [after];
  if (!lists.every((one) => (typeof one === 'string' && Array.isArray(after)) || (typeof one === 'object' && one !== null && ('ids' in one || 'children' in one)))) {
    throw new TypeError(`after is a list of ids, { ids, onfailure } or { children: true }, not ${shown(after)}`);
  }
  return afterLists(after);
}

function afterLists(after: After): Word[] {
  const lists = Array.isArray(after)
    ? after.every((one) => typeof one === 'string')
      ? [{ ids: after as readonly string[] }]
      : (after as readonly (AfterAll | AfterChildren)[])
    : [after as AfterAll | AfterChildren];
  return lists.flatMap((one: AfterAll | AfterChildren) => [
    ...('children' in one ? ['AFTER', 'CHILDREN'] : counted('AFTER', list(one.ids, 'after'))),
    ...(one.onfailure === undefined ? [] : ['ONFAILURE', one.onfailure]),
  ]);
}

function number(value: unknown, key: string): string {
  if (typeof value !== 'number' || Number.isNaN(value)) throw new TypeError(`${key} is a number, not ${shown(value)}`);
  return value === Infinity ? '-1' : String(value);
}

function text(value: unknown, key: string): string {
  if (typeof value !== 'string') throw new TypeError(`${key} is text, not ${shown(value)}`);
  return value;
}

function list(value: unknown, key: string): readonly string[] {
  if (!Array.isArray(value)) throw new TypeError(`${key} is a list of texts, not ${shown(value)}`);
  return value.map((one) => text(one, `each of ${key}`));
}

/** A list behind its length: `QUEUES 2 mail print`. */
export function counted(word: string, items: readonly Word[]): Word[] {
  return [word, String(items.length), ...items];
}

/** Filters as words: `STATE ready STATE claimed NOT QUEUE slow`. */
export function filterWords(filters: Filters, prefix: readonly string[] = []): Word[] {
  return Object.entries(filters).flatMap(([key, value]) => {
    if (value === undefined) return [];
    if (key === 'not' && prefix.length === 0) return filterWords(value as Filters, ['NOT']);
    const row = (FILTERS as Readonly<Record<string, readonly [string, number]>>)[key];
    if (row === undefined) throw new TypeError(`there is no filter '${key}'; there are ${Object.keys(FILTERS).join(', ')} and not`);
    const [word, length] = row;
    if (length > 1 && !Array.isArray(value)) return Object.entries(value as object).flatMap(([field, one]) => [...prefix, word, field, plain(one, `${key}.${field}`)]);
    if (length === 0) return value === true ? [...prefix, word] : [];
    if (length > 1) return [...prefix, word, ...(value as readonly unknown[]).map(String)];
    const many: readonly unknown[] = Array.isArray(value) ? value : [value];
    return many.flatMap((one) => [...prefix, word, String(one)]);
  });
}
