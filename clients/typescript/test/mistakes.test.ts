import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { runInNewContext } from 'node:vm';

import { Abandon, Board, Complete, ConnectionLost, type FailedTry, Flow, Next, NoRetry, type Reason, Retry, type State, Worker } from '../src/index.js';
import { serverOf } from './harness.js';

const server = await serverOf();

/** What a program without types could write. */
const untyped = (value: unknown): never => value as never;

describe('what a program gets wrong is named where it is written', () => {
  test('a worker takes a board and options', () => {
    const board = server.board();
    board.handler('x', () => 1);
    for (const wrong of ['mails', undefined, null, {}]) assert.throws(() => new Worker(untyped(wrong)), /^TypeError: a Worker takes a board: new Worker\(new Board\('mails'\), \{ concurrency: 4 \}\), not /);
    assert.throws(() => new Worker(board, untyped('x')), /the options of a Worker are an object, such as \{ concurrency: … \}, not "x"/);
  });

  test('a worker tells of its events alone', async () => {
    const board = server.board();
    board.handler('x', () => 1);
    const worker = new Worker(board, { logger: null });
    // @ts-expect-error: BullMQ's word
    assert.throws(() => worker.on('stalled', () => undefined), /a Worker tells of no 'stalled'; there are active, completed, failed, lost, drained\. Here that is 'lost'$/);
    // @ts-expect-error: misspelt
    assert.throws(() => worker.once('complete', () => undefined), /Did you mean 'completed'\?$/);
    const seen: (State | FailedTry['state'])[] = [];
    worker.on('failed', (_context, _error, { state }) => seen.push(state));
    const drained = once(worker, 'drained'); // Node listens to `error` as well
    const running = worker.run({ signals: false });
    await drained;
    await worker.stop();
    await running;
    assert.deepEqual(seen, []);
  });

  test('handlers are functions', () => {
    const board = server.board();
    assert.throws(() => {
      board.handler('x', untyped(undefined));
    }, /a handler is a function: .*, not undefined/);
    assert.throws(() => board.task('y').handle(untyped({})), /the handler of y is a function: .*, not \{\}/);
  });

  test('options that do not exist, also those deeper down', async () => {
    const board = server.board();
    for (const wrong of [
      () => new Complete(1, untyped({ retian: '1s' })),
      () => new Next('q', {}, untyped({ nmae: 'x' })),
      () => new Retry('x', untyped({ dealy: '1s' })),
      () => new NoRetry('x', untyped({ knid: 'x' })),
      () => new Abandon('x', untyped({ dealy: '1s' })),
      () => board.list({}, untyped({ feilds: ['id'] })),
      () => new Board('x', untyped({ socket: { prot: 1 } })),
    ]) assert.throws(wrong, /^TypeError: .* has no option '.*'; there are .*Did you mean '.*'\?$/);
    for (const wrong of [
      board.result('x', untyped({ timeuot: '1s' })),
      board.wait(['x'], untyped({ timeuot: '1s' })),
      board.watch('x', untyped({ timeuot: '1s' })).next(),
      board.output('x', untyped({ folow: false })).next(),
      board.cancelWhere({ queue: 'x' }, untyped({ dryRun: true })),
      board.settingsSet({ retries: 1 }, untyped({ queu: 'x' })),
      board.signal('x', 'a', untyped({ vlaue: 1 })),
      board.listPage({}, untyped({ feilds: ['id'] })),
    ]) await assert.rejects(wrong, /^TypeError: .* has no option '.*'; there are .*Did you mean '.*'\?$/);
    await assert.rejects(board.pause(untyped('mails')), /the options of JOB.PAUSE are an object, such as \{ queue: … \}, not "mails"/);
    await assert.rejects(board.get(untyped(5)), /^TypeError: JOB.GET: ids, names and all other words are text, not 5$/);
    await assert.rejects(board.flow(untyped([{ payload: 1 }])), /each job of a flow has a label/);
  });

  test('values of the wrong kind', async () => {
    const board = server.board();
    // @ts-expect-error: permits are numbers
    await assert.rejects(board.post(1, { costs: { api: true } }), /costs.api is a number, not true/);
    // @ts-expect-error: meta is flat
    await assert.rejects(board.post(1, { meta: { a: { b: 1 } } }), /meta.a is text, a number or a boolean, not \{ b: 1 \}: JSON.stringify makes text of it/);
    assert.throws(() => new Next('q', {}, { after: untyped('abc') }), /after is a list of ids, such as \['a'\], not "abc"/);
    for (const delay of ['-1h', '1e3s', '1s1h'] as const) await assert.rejects(board.post(1, { delay }), /^RangeError: delay is text with a unit, such as '500ms', '5s', '1h30m' or '7d', not "/);
    // @ts-expect-error: there is no such field
    await assert.rejects(board.get('a', { fields: ['sate'] }), /unknown field 'sate': did you mean 'state'/);
    // @ts-expect-error: there is no such event
    await assert.rejects(board.settingsSet({ events: 'completd' }), /unknown event 'completd': did you mean 'completed'/);
    await assert.rejects(board.settingsSet({ events: 'completed,faild' }), /unknown event 'faild': did you mean 'failed'/);
  });

  test('a schedule has one kind of times', async () => {
    const board = server.board();
    const task = board.task('report');
    // @ts-expect-error: one of the two
    await assert.rejects(board.scheduleSet('s', {}, { cron: '0 3 * * *', every: '1h' }), /s: a schedule has cron or every, not both: \{ cron: '0 3 \* \* \*', every: '1h' \}/);
    // @ts-expect-error: one of the two
    await assert.rejects(task.schedule({ cron: '0 3 * * *', every: '1h' }, {}), /report: a schedule has cron or every, not both/);
    // @ts-expect-error: it has no times
    await assert.rejects(task.schedule({}, {}), /report: when\? schedule\(/);
    await assert.rejects(task.schedule(untyped(undefined), {}), /report: when\? schedule\(/);
  });

  test('what JSON cannot write is named with its task and its way', async () => {
    const board = server.board();
    const task = board.task('u');
    const circle: Record<string, unknown> = { id: 1 };
    circle['me'] = circle;
    const big = { rows: [{ n: 1n }] };
    const bigText = /^PayloadError: u: JSON cannot write its rows\[0\]\.n, a BigInt: String\(…\) makes text of it$/;
    await assert.rejects(task.post(circle), /^PayloadError: u: JSON cannot write its me, which leads back to the whole: give its id, or leave it out$/);
    await assert.rejects(task.post({ a: [circle] }), /^PayloadError: u: JSON cannot write its a\[0\]\.me, which leads back to what it is a part of/);
    await assert.rejects(task.post(big), bigText);
    await assert.rejects(task.postMany([big]), bigText);
    await assert.rejects(task.schedule({ every: '1h' }, big), bigText);
    await assert.rejects(new Flow(board).post().then(async () => board.flow([{ label: 'a', name: 'u', payload: big }])), bigText);
    await assert.rejects(board.signal('go', 'a', { value: 1n }), /^PayloadError: the value of the signal: JSON cannot write it, a BigInt/);
  });

  test('the options that are given stay as they were', async () => {
    for (const given of [
      { url: 'redis://u:p@127.0.0.1:1/3', socket: { connectTimeout: 5 } },
      { rootNodes: [{ url: 'redis://127.0.0.1:1', socket: { connectTimeout: 5 } }], defaults: { socket: { connectTimeout: 5 } } },
      { name: 'm', sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }], nodeClientOptions: { socket: { connectTimeout: 5 } } },
    ]) {
      const before = structuredClone(given);
      const away = new Board('x', given);
      server.allow(away);
      await assert.rejects(away.get('a'), ConnectionLost);
      assert.deepEqual(given, before);
    }
  });
});

describe('a failure says what has failed', () => {
  const circle: Record<string, unknown> = {};
  circle['me'] = circle;
  const throwing = (thrown: unknown) => () => {
    throw thrown;
  };
  const cases: Record<string, [handler: Parameters<Board['handler']>[1], kind: string, message: RegExp]> = {
    'an object': [throwing({ a: 1 }), 'Error', /^the handler threw \{ a: 1 \}, which is no Error$/],
    null: [throwing(null), 'Error', /^the handler threw null, which is no Error$/],
    undefined: [throwing(undefined), 'Error', /^the handler threw undefined, which is no Error$/],
    text: [throwing('no answer'), 'Error', /^no answer$/],
    'an error of another realm': [throwing(runInNewContext("new TypeError('there')")), 'TypeError', /^there$/],
    'a BigInt as result': [() => ({ n: 1n }), 'PayloadError', /^the result: JSON cannot write its n, a BigInt/],
    'a circle as result': [() => circle, 'PayloadError', /^the result: JSON cannot write its me, which leads back to the whole/],
    'a step without text': [async (_, context) => context.step('sum', () => 1n), 'PayloadError', /^the step 'sum': JSON cannot write it, a BigInt/],
    'meta that is not flat': [(_, context) => {
      context.setMeta(untyped({ a: { b: 1 } }));
    }, 'TypeError', /^meta\.a is text, a number or a boolean, not \{ b: 1 \}/],
    'a result that is too long': [() => 'x'.repeat(17 << 20), 'Refused', /^ERR RESULT is longer than 16777216 bytes$/],
  };
  for (const [what, [handler, kind, message]] of Object.entries(cases)) {
    test(what, async () => {
      const board = server.board();
      board.handler('x', handler);
      const id = await board.post({}, { name: 'x', retries: 0 });
      const lines: string[] = [];
      const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: (line: string) => lines.push(line) };
      await new Worker(board, { logger: log }).run({ burst: true, signals: false });
      const job = await board.get(id);
      assert.deepEqual([job?.state, job?.kind], ['failed', kind]);
      assert.match(job?.message ?? '', message);
      assert.ok(lines.at(-1)?.startsWith(`x ${id} failed (attempt 1): ${kind}: ${job?.message ?? ''}; it is failed, 0 retries left`), lines.at(-1));
    });
  }

  test('a result that is too long is an error for who listens', async () => {
    const board = server.board();
    board.handler('x', () => 'x'.repeat(17 << 20));
    await board.post({}, { name: 'x', retries: 0 });
    const worker = new Worker(board, { logger: null });
    const told: unknown[] = [];
    worker.on('failed', (_context, error) => told.push(error));
    await worker.run({ burst: true, signals: false });
    assert.match(String(told[0]), /^BoardError: ERR RESULT is longer/);
  });
});

test('each reason of the reference has its fields', () => {
  const page = readFileSync(join(process.cwd(), '../../commands.md'), 'utf8');
  const table = page.split('| reason | fields | when |')[1]?.split('\n\n')[0] ?? '';
  const types = readFileSync(join(process.cwd(), 'src/board/explanations.ts'), 'utf8').split('export interface Reasons {')[1]?.split('\n}\n')[0] ?? '';
  const shared = 'level name id state reason';
  const told = new Map(table.split('\n').filter((line) => line.startsWith('| `')).map((line) => {
    const [, reason = '', fields = ''] = line.split(' | ').join('|').split('|');
    return [reason.trim().replaceAll('`', ''), fields] as const;
  }));
  const typed = new Map([...types.matchAll(/^ {2}(\w+): ([\s\S]*?)(?=^ {2}\w+: |$(?![\s\S]))/gm)].map(([, name = '', body = '']) => [name, body] as const));
  assert.ok(told.size >= 18);
  assert.deepEqual([...typed.keys()].sort(), [...told.keys()].sort());
  for (const [reason, fields] of told) {
    const names = [...fields.matchAll(/`([a-z-]+)`/g)].map(([, name = '']) => name).filter((name) => !['board', 'queue', 'group'].includes(name));
    for (const name of names) {
      if (shared.split(' ').includes(name) || (name === 'limit' && reason !== 'concurrency')) continue;
      assert.ok(new RegExp(`\\b${name}\\b'?\\??:`).test(typed.get(reason) ?? ''), `${reason} has no ${name}`);
    }
  }
});

test('an explanation has types, also of what it waits for', async () => {
  const board = server.board();
  await board.post(1, { id: 'a', await: ['go', 'paid'] });
  const found: Reason | undefined = (await board.explain('a'))?.reasons[0];
  assert.ok(found?.reason === 'signals');
  assert.deepEqual([found.signals, found.ontimeout], [[{ name: 'go', arrived: 0 }, { name: 'paid', arrived: 0 }], 'run']);
  assert.equal((await board.info())?.blocked, 1);
});
