import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';

import { Context } from '../src/context.js';
import { Board, collected, Flow, Worker } from '../src/index.js';
import * as shop from '../examples/shop.js';
import { serverOf, until } from './harness.js';

const server = await serverOf({ manualClock: false });
const ROOT = process.cwd();

test('each file that README.md shows is one that is run here', () => {
  const folders = ['examples', 'test'].map((folder) => join(ROOT, folder));
  const programs = folders.flatMap((folder) => readdirSync(folder).filter((file) => file.endsWith('.ts')).map((file) => readFileSync(join(folder, file), 'utf8')));
  const plain = (text: string) => text.replaceAll('../src/index.js', 'jobboard').replaceAll('../src/testing.js', 'jobboard/testing').trim();
  const shown = [...readFileSync(join(ROOT, 'README.md'), 'utf8').matchAll(/```ts\n(\/\/ \S+\.ts\n[\s\S]*?)```/g)].map((found) => found[1] ?? '');
  assert.equal(shown.length, 3);
  for (const file of shown) assert.ok(programs.some((one) => plain(one).startsWith(plain(file))), `no program is this one:\n${file}`);
});

test('each method of ours that the guide for users of BullMQ names is there', () => {
  const guide = readFileSync(join(ROOT, '../../docs/guides/migrate/bullmq.md'), 'utf8');
  const kinds = { board: Board.prototype, context: Context.prototype, flow: Flow.prototype };
  const named = [...guide.matchAll(/\b(board|context|flow)\.(\w+)\(/g)];
  assert.ok(named.length > 20);
  for (const [shown, kind, method] of named) assert.ok((method as string) in kinds[kind as keyof typeof kinds], shown);
});

/** Runs an example as a program; what it prints. */
function program(t: TestContext, name: string, ...words: string[]) {
  const child = spawn(process.execPath, [join(ROOT, 'build/examples', `${name}.js`), ...words], { env: { ...process.env, JOBBOARD_URL: server.url } });
  t.after(() => child.kill('SIGKILL'));
  const found = { output: '', child, ended: new Promise<number | null>((resolve) => child.once('close', resolve)) };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (found.output += data.toString()));
  return found;
}

test('the first page works, and a program that has posted ends by itself', async (t) => {
  const worker = program(t, 'app', 'work');
  const poster = program(t, 'app');
  assert.equal(await poster.ended, 0, poster.output);
  assert.equal(poster.output, 'Hello ann\ncomplete\n');
  worker.child.kill('SIGTERM');
  assert.equal(await worker.ended, 0, worker.output);
});

test('the shop is short', () => {
  const lines = readFileSync(join(ROOT, 'examples/shop.ts'), 'utf8').split('\n');
  assert.ok(lines.filter((line) => line.trim() !== '' && !line.trim().startsWith('//')).length < 120);
});

test('the shop does all of its jobs', async () => {
  server.use(shop.shop);
  await shop.configure();
  const worker = new Worker(shop.shop, { logger: null });
  const running = worker.run({ signals: false });
  const order = await shop.take.post({ items: ['lamp'] });
  assert.deepEqual(await shop.shop.result(order, { timeout: '30s' }), { sent: 1 });
  assert.equal(await shop.mail.result(await shop.mail.post({ to: 'ann@example.org', text: 'flaky' })), 'sent at try 2');
  await assert.rejects(shop.mail.result(await shop.mail.post({ to: 'ann', text: '' })), /NoRetry: no address: ann/);
  assert.equal(await shop.rate.call({ currency: 'EUR' }, { within: '30s' }), 1);
  const quarter = await shop.quarter(['May', 'June']);
  await until(async () => (await shop.shop.state(quarter[2] ?? '')) === 'complete');
  assert.equal((await shop.shop.scheduleGet('report'))?.tz, 'Europe/Berlin');
  assert.ok((await collected(shop.shop.list({ name: 'mail', state: 'complete' }))).length >= 4);
  await worker.stop();
  await running;
});

test('an order is cancelled from another process while it shows its progress', async (t) => {
  const worker = program(t, 'shop', 'work');
  server.use(shop.shop);
  const order = program(t, 'shop', 'order', 'order-1', ...Array.from({ length: 2000 }, (_, n) => `item${String(n)}`));
  await until(() => order.output.includes('packs item'));
  const cancel = program(t, 'shop', 'cancel', 'order-1');
  assert.equal(await cancel.ended, 0);
  assert.match(cancel.output, /requested/);
  assert.equal(await order.ended, 0, order.output);
  assert.match(order.output, /packing cancelled/);
  const other = program(t, 'shop', 'order', 'order-2', 'lamp', 'chair');
  assert.equal(await other.ended, 0, other.output);
  assert.match(other.output, /sending complete/);
  worker.child.kill('SIGTERM');
  assert.equal(await worker.ended, 0, worker.output);
});
