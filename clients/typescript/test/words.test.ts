import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { Board, COMMANDS, type Duration, json, ofMs, toMs } from '../src/index.js';
import { filterWords, optionWords } from '../src/words.js';

const ROOT = process.cwd();

test('what is made from the reference is up to date', () => {
  execFileSync(process.execPath, [join(ROOT, 'scripts/generate.mjs'), '--check'], { stdio: 'pipe' });
});

test('every command of the reference is sent by some method', () => {
  const folders = ['src/board', 'src', 'src/worker'].map((one) => join(ROOT, one));
  const files = folders.flatMap((folder) => readdirSync(folder).filter((file) => file.endsWith('.ts') && file !== 'generated.ts').map((file) => join(folder, file)));
  const source = files.map((file) => readFileSync(file, 'utf8').replaceAll("', '", ' ')).join('\n');
  const missing = Object.keys(COMMANDS).filter((command) => !source.includes(command));
  assert.deepEqual(missing, []);
});

test('durations', () => {
  const given: [Duration | 'forever', number][] = [
    ['500ms', 500],
    ['5s', 5000],
    ['1h30m', 5_400_000],
    ['7d', 604_800_000],
    ['1.5s', 1500],
    ['0.29s', 290],
    ['forever', -1],
  ];
  for (const [text, ms] of given) assert.equal(toMs(text), ms);
  assert.equal(ofMs(1500), '1500ms');
  for (const wrong of ['', '5', '5 s', '30m1h', '1s1s', '-5s']) assert.throws(() => toMs(wrong as Duration, 'delay'), /^RangeError: delay is text with a unit/);
  assert.throws(() => toMs(5 as unknown as Duration, 'delay'), /5 may mean seconds or milliseconds: write '5s' or '5ms'/);
  assert.throws(() => toMs({} as unknown as Duration), TypeError);
});

test('options become the words of a command', () => {
  const words = (options: object) => optionWords('JOB.POST', options, json).join(' ');
  assert.equal(words({ id: 'a', nx: true, replace: false }), 'ID a NX');
  assert.equal(words({ backoff: ['10s', '1h'], timeout: 'forever' }), 'BACKOFF EXPONENTIAL 10000 3600000 TIMEOUT -1');
  assert.equal(words({ backoff: '1s', at: new Date(5) }), 'AT 5 BACKOFF FIXED 1000');
  assert.equal(words({ meta: { to: 'ann', n: 1 }, tags: ['x', 'y'] }), 'META 2 to ann n 1 TAGS 2 x y');
  assert.equal(words({ after: ['a', 'b'] }), 'AFTER 2 a b');
  assert.equal(words({ after: [{ ids: ['a'], onfailure: 'run' }, { ids: ['b'] }] }), 'AFTER 1 a ONFAILURE run AFTER 1 b');
  assert.equal(optionWords('JOB.CONSUME', { result: 4, claim: { count: 2, queues: [] } }, json).join(' '), 'RESULT 4 CLAIM QUEUES 0 COUNT 2 PACKED');
  assert.throws(() => words({ prioity: 5 }), /JOB.POST has no option 'prioity'; there are id, /);
  assert.throws(() => words({ onConflict: 'return' }), /did you mean 'onconflict'\?/);
  assert.throws(() => words({ onconflict: 'merge' }), /onconflict is one of reject, return, replace, debounce, not "merge"/);
  assert.throws(() => words({ tags: 'x' }), /tags is a list of texts/);
  assert.throws(() => words({ priority: 'high' }), /priority is a number/);
});

test('filters become words', () => {
  assert.equal(filterWords({ state: ['ready', 'claimed'], tracked: true, not: { queue: 'slow' } }).join(' '), 'STATE ready STATE claimed TRACKED NOT QUEUE slow');
  assert.throws(() => filterWords({ sate: 'ready' } as never), /there is no filter 'sate'; there are state, /);
});

test('a board has a name, and says where it is', () => {
  assert.throws(() => new Board(''), /a board has a name/);
  assert.equal(String(new Board('mails', 'redis://127.0.0.1:6380/2')), 'Board("mails") at 127.0.0.1:6380, db 2');
  assert.equal(String(new Board('mails', { server: { socket: { port: 7 } } })), 'Board("mails") at 127.0.0.1:7');
});
