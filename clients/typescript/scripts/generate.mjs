// Makes src/generated.ts from the reference, commands.md: the options of each command, as types and as the table by
// which calls become words; settings, record fields, events, states, codes of errors.
//
//     node scripts/generate.mjs [--check]
//
// With --check it writes nothing, and fails when the file is not what the reference says.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const PAGE = readFileSync(process.env.JOBBOARD_REFERENCE ?? here('../../../commands.md'), 'utf8');
const TARGET = here('../src/generated.ts');

/** Words that calls carry as arguments of a method, and not as options; and PACKED, which the package always sends. */
const POSITIONAL = new Set(['PACKED', 'WHERE', 'ALL', 'TOKENS', 'IDS', 'NODE', 'JOBS', 'HELP', 'SET', 'NOT', 'CHILDREN', 'RESULTS']);
/** Options that have a shape of their own in src/words.ts. */
const SPECIAL = { IF: 'only', BACKOFF: 'backoff', AFTER: 'after', CLAIM: 'claim', OUTPUT: 'chunk', PAUSE: 'rest' };
/** What an argument of this name is. */
const SHAPES = {
  ms: 'duration',
  'unix-ms': 'time',
  payload: 'data',
  result: 'data',
  cost: 'number',
  priority: 'number',
  percent: 'number',
  share: 'number',
  token: 'number',
  version: 'number',
  n: 'number',
  number: 'number',
};
const TYPES = {
  flag: 'boolean',
  duration: 'Duration',
  endless: "Duration | 'forever'",
  time: 'Time',
  data: 'unknown',
  number: 'number',
  text: 'string',
  list: 'readonly string[]',
  map: 'Readonly<Record<string, string | number | boolean>>',
  costs: 'Readonly<Record<string, number>>',
  only: 'Only',
  backoff: 'Backoff',
  after: 'After',
  claim: 'ClaimOptions',
  chunk: 'Chunk',
  rest: 'Rest',
};

// Sections and tables

const sections = new Map();
for (const section of PAGE.split('\n### ').slice(1)) {
  const [name] = section.split('\n', 1);
  if (name.startsWith('JOB.')) sections.set(name, section.split('\n## ')[0]);
}

function table(heading) {
  const [, text] = PAGE.split(`\n## ${heading}\n`);
  if (!text) throw new Error(`commands.md lacks the heading ${heading}`);
  return rows(text.split('\n## ')[0]);
}

function rows(text) {
  return text
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.slice(2, -2).split(/ (?<!\\)\| ?/));
}

const named = (cell) => [...cell.matchAll(/`([^`]+)`/g)].map((found) => found[1]);

/** What the tables of a command say of its options: meaning and range. */
function told(name) {
  const found = new Map();
  for (const [cell, meaning, range = ''] of rows(sections.get(name) ?? '')) {
    for (const option of named(cell)) found.set(option, { meaning, range });
  }
  return found;
}

// Syntax

function tokens(syntax) {
  return syntax.replaceAll(/[[\]<>|]/g, ' $& ').split(/\s+/).filter(Boolean);
}

/** Alternatives, each a list of words and of brackets (`[` or `<`) with alternatives of their own. */
function parse(words) {
  const alternatives = [[]];
  for (let word = words.shift(); word !== undefined && word !== ']' && word !== '>'; word = words.shift()) {
    if (word === '|') alternatives.push([]);
    else if (word === '[' || word === '<') alternatives.at(-1).push({ bracket: word, inside: parse(words) });
    else alternatives.at(-1).push(word);
  }
  return alternatives;
}

const isOption = (item) => typeof item === 'string' && /^[A-Z][A-Z-]*$/.test(item);
const isLower = (item) => typeof item === 'string' && !isOption(item) && item !== '...';

function options(alternatives, found = new Map()) {
  for (const sequence of alternatives) {
    if (sequence[0]?.inside?.flat().join() === 'NOT') continue; // a filter
    for (let at = 0; at < sequence.length; at += 1) {
      const item = sequence[at];
      if (!isOption(item)) {
        if (item.inside && !item.inside[0].includes('...')) options(item.inside, found);
        continue;
      }
      const rest = sequence.slice(at + 1);
      const end = rest.findIndex((one) => !isLower(one));
      const names = end < 0 ? rest : rest.slice(0, end);
      const follower = end < 0 ? undefined : rest[end];
      at += names.length;
      if (SPECIAL[item]) {
        if (!found.has(item)) found.set(item, { shape: SPECIAL[item] });
        break; // what follows in this bracket belongs to it
      }
      if (POSITIONAL.has(item)) continue;
      const one = option(names, follower, found.get(item));
      found.set(item, one);
      if (one.shape === 'choice' || one.shape === 'counted') at += 1;
    }
  }
  return found;
}

function option(names, follower, before) {
  if (before) return before;
  const choices = follower?.bracket === '<' && names.length === 0 ? follower.inside.flat() : undefined;
  if (choices?.includes('*')) return { shape: 'text' };
  if (choices?.includes('n')) return { shape: 'counted', choices: choices.filter((one) => one !== 'n').map((one) => one.toLowerCase()) };
  if (choices?.every((one) => typeof one === 'string')) return { shape: 'choice', choices: choices.map((one) => one.toLowerCase()) };
  const isList = follower?.inside?.[0].includes('...');
  if (isList) return { shape: names.length > 2 ? 'map' : 'list' };
  if (names.length === 0) return { shape: 'flag' };
  return { shape: SHAPES[names[0]] ?? 'text' };
}

// What is written

const camel = (word) => word.toLowerCase().replaceAll(/-([a-z])/g, (_, letter) => letter.toUpperCase());
const plain = (text) =>
  text
    .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')
    .replaceAll('\\|', '|')
    .replaceAll('*/', '* /');

function comment(text, indent = '  ') {
  return `${indent}/** ${plain(text)} */\n`;
}

const FALLBACK = ['JOB.POST', 'JOB.CLAIM', 'JOB.CONSUME', 'JOB.HEARTBEAT', 'JOB.LIST', 'JOB.CANCEL'].map(told);

/** What a page of a listing or a slice of a verb is, where its section leaves it to the chapter. */
const PAGES = {
  COUNT: { meaning: 'at most this many in one reply', range: '' },
  CURSOR: { meaning: 'the cursor of the last call; `0` begins', range: '' },
};

function describe(name, word) {
  const own = told(name);
  if (!own.has(word) && PAGES[word] && name !== 'JOB.CLAIM') return PAGES[word];
  // An M-form takes the options of the single one.
  for (const from of [own, ...(name.startsWith('JOB.M') ? [told(name.replace('JOB.M', 'JOB.'))] : []), ...FALLBACK]) {
    const found = from.get(word);
    if (found) return found;
  }
  return { meaning: `See ${name}.`, range: '' };
}

function typeName(command) {
  return command
    .replace('JOB.', '')
    .split(/[ .-]/)
    .map((word) => word[0] + word.slice(1).toLowerCase())
    .join('');
}

const commands = [];
for (const [name, text] of sections) {
  const syntax = /```syntax\n([\s\S]*?)\n```/.exec(text)?.[1].replaceAll('\n  ', ' ');
  if (!syntax) continue;
  const lines = syntax.split('\n').filter((line) => !line.endsWith(' HELP'));
  const hasSubcommands = syntax.includes(`${name} HELP`);
  for (const line of lines) {
    const command = hasSubcommands ? line.split(' ').slice(0, 2).join(' ') : name;
    const words = tokens(line.slice(command.length));
    const found = options(parse(words));
    const entries = [...found].map(([word, one]) => {
      const { meaning, range } = describe(name, word);
      const shape = one.shape === 'duration' && range.startsWith('-1') ? 'endless' : one.shape;
      return { word, key: camel(word), ...one, shape, meaning: range ? `${meaning}. Range: ${range}` : meaning };
    });
    commands.push({ command, name, entries });
  }
}

let out = `// Made by scripts/generate.mjs from commands.md: do not edit.
/* eslint-disable */
import type { Duration } from './durations.js';
import type { Time } from './times.js';
import type { After, Backoff, Chunk, Only, Rest } from './words.js';

`;
out += `/** The version of the reference that this was made from. */\nexport const REFERENCE = '${/commands? of jobboard ([\d.]+)/i.exec(PAGE)?.[1] ?? ''}';\n\n`;
for (const { command, entries } of commands) {
  if (entries.length === 0) continue;
  out += `/** The options of \`${command}\`, in the words of its reference. */\nexport interface ${typeName(command)}Options {\n`;
  for (const { key, shape, choices, meaning } of entries) {
    const words = choices?.map((one) => `'${one}'`).join(' | ');
    const type = /costs$/i.test(key) ? TYPES.costs : shape === 'counted' ? `${words} | number` : (words ?? TYPES[shape]);
    out += `${comment(meaning)}  ${key}?: ${type} | undefined;\n`;
  }
  out += '}\n\n';
}

out += `/** How an option becomes words. */
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
`;
for (const { command, entries } of commands) {
  out += `  '${command}': [${entries.length ? '\n' : ''}`;
  for (const { key, word, shape, choices } of entries) {
    out += `    ['${key}', '${word}', '${shape}'${choices ? `, [${choices.map((one) => `'${one}'`).join(', ')}]` : ''}],\n`;
  }
  out += `${entries.length ? '  ' : ''}],\n`;
}
out += `} as const satisfies Record<string, readonly (readonly [string, string, Shape, (readonly string[])?])[]>;

/** A command of the module; one with subcommands is named with each. */
export type CommandName = keyof typeof COMMANDS;

`;

// Filters

const filters = [];
const listed = /```syntax\nJOB\.LIST ([\s\S]*?)\n```/.exec(sections.get('JOB.LIST'))[1];
for (const found of listed.matchAll(/\[\[NOT\] ([A-Z]+)((?: [^\]]*)?)\]/g)) {
  const { meaning } = describe('JOB.LIST', found[1]);
  filters.push({ word: found[1], key: camel(found[1]), names: found[2].trim().split(' ').filter(Boolean), meaning });
}
out += '/** What jobs are to be. A list names alternatives. */\nexport interface Plainly {\n';
for (const { key, word, names, meaning } of filters) {
  let type = names.length === 0 ? 'boolean' : 'string | readonly string[]';
  if (word === 'STATE') type = 'State | readonly State[]';
  if (names[0] === 'version') type = 'number';
  if (names.length > 1) type = 'readonly (string | number)[]';
  if (word === 'META') type = 'Readonly<Record<string, string | number>> | readonly (string | number)[]';
  out += `${comment(`Jobs ${meaning}`)}  ${key}?: ${type} | undefined;\n`;
}
out += `}

/** Which jobs: those that pass all filters, and of \`not\` none. */
export interface Filters extends Plainly {
  /** Jobs that pass none of these. */
  not?: Plainly | undefined;
}

/** The filters, with how many words each takes. */
export const FILTERS = {
${filters.map(({ key, word, names }) => `  ${key}: ['${word}', ${names.length}],`).join('\n')}
} as const satisfies Record<keyof Plainly, readonly [string, number]>;

`;

// Rows of listings

/** What is more than a number in them. */
const ROW_TYPES = { queue: 'string', group: 'string', limit: 'string', worker: 'string', role: 'string', 'dead-queue': 'string', limits: 'readonly string[]', meta: 'Readonly<Record<string, string>>' };
const OF_WORKERS = new Set(['role', 'meta']);
for (const [command, type, what] of [
  ['JOB.QUEUES', 'QueueRow', 'A queue'],
  ['JOB.GROUPS', 'GroupRow', 'A group'],
  ['JOB.LIMITS', 'LimitRow', 'A shared limit'],
  ['JOB.WORKER', 'WorkerRow', 'A registered worker'],
]) {
  out += `/** ${what}, as \`${command}\` lists it. */\nexport interface ${type} {\n`;
  const [, body] = sections.get(command).split('| field | meaning |');
  for (const [cell, meaning] of rows(body.split('\n\n')[0])) {
    for (const name of named(cell)) {
      const optional = command === 'JOB.WORKER' && OF_WORKERS.has(name) ? '?' : '';
      out += `${comment(meaning)}  readonly '${name}'${optional}: ${ROW_TYPES[name] ?? 'number'};\n`;
    }
  }
  out += '}\n\n';
}

out += '/** A board at a glance, as `JOB.INFO` returns it. */\nexport interface BoardInfo {\n';
for (const [cell, meaning] of rows(sections.get('JOB.INFO').split('| field | meaning |')[1].split('\n\n')[0])) {
  for (const name of named(cell)) out += `${comment(meaning)}  readonly '${name}'${name === 'digest' ? '?' : ''}: ${name === 'digest' ? 'string' : 'number'};\n`;
}
out += '}\n\n';

out += `/** How long something took or was late, ms: see JOB.STATS in the reference. */
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

/** What happened on a day, as \`JOB.STATS\` returns it. */
export interface Statistics {
  /** The date: \`2026-11-21\`. */
  readonly day: string;
`;
for (const heading of ['counts', 'sum of', 'distribution of']) {
  const [, body] = sections.get('JOB.STATS').split(`| field | ${heading} |`);
  for (const [cell, meaning] of rows(body.split('\n\n')[0])) {
    for (const name of named(cell)) {
      const type = heading === 'distribution of' ? 'Distribution' : name === 'costs' ? 'Readonly<Record<string, number>>' : 'number';
      out += `${comment(meaning)}  readonly '${name}': ${type};\n`;
    }
  }
}
out += '}\n\n';

// Tables

const states = /in this state: ([a-z, ]+)/.exec(describe('JOB.LIST', 'STATE').meaning)[1].split(/, | or /);
out += `/** The states of a job. */\nexport const STATES = [${states.map((one) => `'${one}'`).join(', ')}] as const;\n/** The state of a job. */\nexport type State = (typeof STATES)[number];\n\n`;

const fields = table('Record fields').flatMap(([cell, meaning]) => named(cell).map((one) => [one, meaning]));
out += `/** The fields of a record. */\nexport const FIELDS = [${fields.map(([one]) => `'${one}'`).join(', ')}] as const;\n/** A field of a record. */\nexport type Field = (typeof FIELDS)[number];\n\n`;

const events = table('Events').filter((row) => /^\d+$/.test(row[1]));
out += `/** The events of a board, with their bits in the setting \`events\`. */\nexport const EVENTS = {\n${events.map(([cell, bit]) => `  ${named(cell)[0]}: ${bit},`).join('\n')}\n} as const;\n/** A kind of event. */\nexport type EventKind = keyof typeof EVENTS;\n\n`;

out += '/** The settings of boards, queues, groups and shared limits. */\nexport interface Settings {\n';
const settings = [];
/** Milliseconds as one writes them here. */
function asDuration(ms) {
  if (ms === '-1') return "'forever'";
  const number = Number(ms.replaceAll(',', ''));
  if (Number.isNaN(number)) return ms;
  for (const [unit, size] of [['d', 86_400_000], ['h', 3_600_000], ['m', 60_000], ['s', 1000]]) if (number > 0 && number % size === 0) return `'${number / size}${unit}'`;
  return `'${number}ms'`;
}
for (const [cell, meaning, range, byDefault, where] of table('Settings')) {
  if (!/board|queue|group|limit/.test(where ?? '')) continue;
  const [name] = named(cell);
  const kind = range.endsWith(' ms') ? (range.startsWith('-1') ? 'endless' : 'duration') : range === '0 to 1' ? 'flag' : range === 'a name' ? 'text' : 'number';
  settings.push([name, kind]);
  const type = { endless: "Duration | 'forever'", duration: 'Duration', flag: 'boolean', text: 'string', number: name === 'events' ? "number | EventKind | 'all' | 'none' | `${EventKind},${string}`" : 'number' }[kind];
  out += `${comment(`${meaning}. Range: ${range}; default: ${kind === 'duration' || kind === 'endless' ? asDuration(byDefault) : byDefault}; set for: ${where}`)}  '${name}'?: ${type} | undefined;\n`;
}
out += `  /** The shared limits that a queue or a group names. */\n  limits?: readonly string[] | undefined;\n}\n\n`;
out += `/** How settings are written. */\nexport const SETTINGS = {\n${settings.map(([name, kind]) => `  '${name}': '${kind}',`).join('\n')}\n  limits: 'list',\n} as const satisfies Record<keyof Settings, Shape>;\n\n`;

const codes = [...new Set(table('Errors').flatMap(([cell]) => named(cell).map((one) => one.split(' ')[0])))].filter((one) => /^[A-Z]+$/.test(one));
out += `/** The codes of what the server refuses. */\nexport const CODES = [${codes.map((one) => `'${one}'`).join(', ')}] as const;\n/** The code of a refusal: its first word. */\nexport type Code = (typeof CODES)[number];\n`;

if (process.argv.includes('--check')) {
  if (readFileSync(TARGET, 'utf8') !== out) {
    console.error('src/generated.ts is not what commands.md says: run `npm run generate`');
    process.exitCode = 1;
  }
} else {
  writeFileSync(TARGET, out);
}
