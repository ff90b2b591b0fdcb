// welcome.test.ts
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { TestServer } from '../src/testing.js';
import { board, welcome } from './tasks.js';

const server = await TestServer.start(); // $JOBBOARD_SERVER and $JOBBOARD_MODULE, or { server, module }
after(() => server.stop());

test('the greeting', async () => {
  server.use(board); // from now on the board is on the private server
  const id = await welcome.post({ to: 'ann' }, { delay: '2h' });
  assert.deepEqual(await server.work(board), []); // it is not due
  await server.advance('2h');
  const [run] = await server.work(board);
  assert.equal(run?.state, 'complete');
  assert.equal(await welcome.result(id), 'Hello ann');
});

// What README.md does not show.
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Board, ConnectionLost, Worker } from '../src/index.js';
import { Killed } from '../src/testing.js';

test('a board of another server is refused', async () => {
  const other = new Board('mails', 'redis://127.0.0.1:1');
  other.task('x').handle(() => 1);
  await assert.rejects(server.work(other), /its jobs are real/);
});

test('a board that was not handed over is refused, until it is allowed', async () => {
  const other = new Board('mails', 'redis://127.0.0.1:1');
  const task = other.task('x').handle(() => 1);
  const real = /^Error: 127\.0\.0\.1:1 is another server than that of the tests, so its jobs are real: server\.use\(board\) first, or server\.allow\(board\) if you mean them$/;
  await assert.rejects(task.post({}), real);
  await assert.rejects(other.events('posted'), real);
  await assert.rejects(new Worker(other, { logger: null, keep: false, register: false }).run({ burst: true, signals: false }), real);
  await new Board('mails', server.url.replace('127.0.0.1', 'localhost')).get('a');
  await new Board('mails', `${server.url}/1`).get('a').catch((error: unknown) => assert.doesNotMatch(String(error), /real/));
  const second = await TestServer.start();
  await second.board('mails').post({});
  await second.stop();
  await assert.rejects(task.post({}), real);
  server.allow(other);
  await assert.rejects(task.post({}), ConnectionLost);
});

test('a server that does not start says why', async (t) => {
  const before = process.env['JOBBOARD_MODULE'];
  t.after(() => {
    process.env['JOBBOARD_MODULE'] = before;
  });
  await assert.rejects(TestServer.start({ server: '/nowhere/redis-server' }), /the server '\/nowhere\/redis-server' \(\$JOBBOARD_SERVER or \{ server \}\) has not started: spawn \/nowhere\/redis-server ENOENT$/);
  await assert.rejects(TestServer.start({ server: '/bin/true' }), /has not started, and ended with 0: it said nothing$/);
  await assert.rejects(TestServer.start({ module: '/nowhere/libjobboard.so' }), (error: Error) => error.message.includes('/nowhere/libjobboard.so') && !error.message.includes('overcommit'));
  const { JOBBOARD_SERVER, PATH } = process.env;
  t.after(() => Object.assign(process.env, { JOBBOARD_SERVER, PATH }));
  const folder = mkdtempSync(join(tmpdir(), 'jobboard-path-'));
  t.after(() => {
    rmSync(folder, { recursive: true });
  });
  delete process.env['JOBBOARD_SERVER'];
  process.env['PATH'] = folder;
  await assert.rejects(TestServer.start(), /^Error: there is no redis-server and no valkey-server on the PATH: \$JOBBOARD_SERVER or .* sets both variables$/);
  symlinkSync('/bin/false', join(folder, 'valkey-server'));
  await assert.rejects(TestServer.start(), /the server '.*\/valkey-server' .* has not started, and ended with 1/);
  delete process.env['JOBBOARD_MODULE'];
  await assert.rejects(TestServer.start(), /where is the module\? .* `eval "\$\(python -m jobboard\.serving\)"` sets both variables$/);
});

test('a port that another server has is left to it', async (t) => {
  const { port } = new URL(server.url);
  t.mock.method(Server.prototype, 'address', () => ({ port: Number(port) }), { times: 1 });
  const second = await TestServer.start();
  t.after(() => second.stop());
  assert.notEqual(second.url, server.url);
  await server.board('mails').count(); // the first one is still known
});

test('what a handler throws is told', async () => {
  const failing = server.board('other');
  const task = failing.task('x', { retries: 0 }).handle(() => {
    throw new Error('broken');
  });
  await task.post({});
  const [run] = await server.work(failing);
  assert.deepEqual([run?.state, (run?.error as Error).message], ['failed', 'broken']);
  await task.post({});
  await assert.rejects(server.work(failing, { raising: true }), /broken/);
});

test('a handler that is killed leaves its job to its lease, and its steps with it', async () => {
  const shop = server.board('killed');
  const paid: string[] = [];
  const task = shop.task('refund', { lease: '30s' }).handle(async (_, context) => {
    const receipt = await context.step('pay', () => `receipt ${String(paid.push(context.id))}`);
    if (context.attempt === 1) throw new Killed();
    return receipt;
  });
  const id = await task.post({});
  const [killed] = await server.work(shop);
  assert.deepEqual([killed?.state, killed?.error, (await shop.get(id))?.lapses], ['claimed', undefined, 0]);
  assert.deepEqual(await server.work(shop), []);
  await server.advance('30s');
  const [again] = await server.work(shop);
  assert.deepEqual([again?.attempt, again?.state, paid], [2, 'complete', [id]]);
  assert.equal(await task.result(id), 'receipt 1');
});

test('it claims where a worker claims, and leaves a dead queue alone', async () => {
  const mails = server.board('dead');
  await mails.settingsSet({ 'dead-queue': 'unsent' }, { queue: 'mails' });
  const task = mails.task('x', { queue: 'mails', retries: 0 }).handle(() => {
    throw new Error('broken');
  });
  await task.post({});
  assert.equal((await server.work(mails)).length, 1);
  assert.deepEqual(await server.work(mails), []);
  assert.equal((await server.work(mails, { queues: ['unsent'] })).length, 1);
});
