// NestJS and bull-board.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createBullBoard } from '@bull-board/api';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';

import { BoardAdapter } from '../src/bull-board.js';
import { Board, type Context } from '../src/index.js';
import { Handler, JobboardModule } from '../src/nestjs.js';
import { serverOf, until } from './harness.js';

const server = await serverOf({ manualClock: false });

test('methods of providers are handlers, for as long as the application lives', async () => {
  const board = server.board();
  const welcome = board.task<{ to: string }, string>('welcome');
  class Mails {
    greeting = 'Hello';

    send({ to }: { to: string }, context: Context): string {
      return `${this.greeting} ${to}, try ${context.attempt}`;
    }

    bulk(payload: number): number {
      return payload * 2;
    }
  }
  // What @Handler(welcome) above a method does; this file is compiled without decorators.
  Handler(welcome)(Mails.prototype, 'send', {});
  Handler({ queue: 'bulk' })(Mails.prototype, 'bulk', {});
  const of = (descriptor: unknown) => descriptor as never;
  const decorate = Handler(welcome);
  // Compiled, and not run: what the decorator takes.
  const checked = (): void => {
    decorate(Mails.prototype, 'send', of(0) as TypedPropertyDescriptor<Mails['send']>);
    // @ts-expect-error: the task has an object as its payload
    decorate(Mails.prototype, 'bulk', of(0) as TypedPropertyDescriptor<Mails['bulk']>);
  };
  assert.equal(typeof checked, 'function');
  class App {}
  Module({ imports: [JobboardModule.forRoot({ board, worker: { logger: null } })], providers: [Mails] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const injected = app.get(Board);
  assert.equal(injected, board);
  assert.equal(await welcome.call({ to: 'ann' }, { within: '30s' }), 'Hello ann, try 1');
  assert.equal(await board.call(4, { queue: 'bulk', within: '30s' }), 8);
  assert.equal((await board.info())?.claimed, 0);
  await app.close();
  const other = server.board();
  assert.deepEqual((await other.workers()).length, 0);
});

test('an application that only posts has no worker', async () => {
  const board = server.board();
  class App {}
  Module({ imports: [JobboardModule.forRoot({ board, worker: false })] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  await app.close();
});

test('bull-board shows a queue, and steers it', async () => {
  const board = server.board();
  const adapter = new BoardAdapter(board, 'mails');
  const handlers: Record<string, unknown> = {};
  const serverAdapter = new Proxy({}, { get: (_, name) => (...words: unknown[]) => ((handlers[String(name)] = words), serverAdapter) });
  createBullBoard({ queues: [adapter], serverAdapter: serverAdapter as never, options: { uiBasePath: '.' } });
  assert.ok(Object.keys(handlers).length > 3);

  await board.postMany([1, 2], { queue: 'mails', name: 'x', ids: ['a', 'b'] });
  await board.post({ n: 3 }, { queue: 'mails', id: 'c', delay: '1h' });
  const [job] = await board.claim('w', { queue: 'mails' });
  await board.fail('w', job ?? { id: '' }, 'Bad', 'no', { noretry: true });
  const counts = await adapter.getJobCounts();
  assert.deepEqual([counts.waiting, counts.failed, counts.delayed, counts.active], [1, 1, 1, 0]);
  const [failed] = await adapter.getJobs(['failed']);
  assert.deepEqual([failed?.toJSON().failedReason, await failed?.getState()], ['Bad: no', 'failed']);
  assert.equal((await adapter.getJobs(['waiting', 'delayed'])).length, 2);
  await failed?.retry();
  await adapter.promoteAll();
  assert.equal((await adapter.getJobCounts()).waiting, 3);
  await adapter.pause();
  assert.equal(await adapter.isPaused(), true);
  await adapter.resume();
  assert.equal((await adapter.addJob('y', { n: 1 }, { attempts: 3 })).toJSON().name, 'y');
  assert.ok((await adapter.getJobLogs('a')).some((line) => line.includes('Bad: no')));
  await board.scheduleSet('tick', {}, { every: '1h', queue: 'mails' });
  assert.deepEqual((await adapter.getJobSchedulers()).map((one) => [one.id, one.every]), [['tick', 3_600_000]]);
  assert.equal(await adapter.updateJobScheduler('tick', { pattern: '0 3 * * *' }), 'updated');
  assert.equal(await adapter.updateJobScheduler('tick', { pattern: 'never' }), 'invalid-schedule');
  assert.ok((await adapter.runJobSchedulerNow('tick')) !== 'not-found');
  assert.equal(await adapter.removeJobScheduler('tick'), true);
  await adapter.setGlobalConcurrency(3);
  assert.equal(await adapter.getGlobalConcurrency(), 3);
  await adapter.clean('wait', 0);
  await until(async () => (await adapter.getJobCounts()).waiting === 0);
  await adapter.obliterate();
  assert.equal(await board.count({ queue: 'mails' }), 0);
});
