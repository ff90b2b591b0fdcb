import assert from 'node:assert/strict';
import { cpSync, rmSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import * as own from '../src/index.js';
import { ask, cut, serverOf, started, until } from './harness.js';

const server = await serverOf();
const folder = new URL(`../another-copy-${String(process.pid)}/`, import.meta.url);
cpSync(new URL('../src/', import.meta.url), folder, { recursive: true });
after(() => {
  rmSync(fileURLToPath(folder), { recursive: true });
});
/** What another module has, which requires the package where we import it. */
const other = (await import(new URL('index.js', folder).href)) as typeof own;

describe('two copies of the package in one process', () => {
  test('a worker knows what a handler of the other copy returns and throws', async (t) => {
    const board = server.board();
    const ways: Record<string, (attempt: number) => unknown> = {
      complete: () => new other.Complete({ n: 1 }, { retain: '1d' }),
      next: () => new other.Next('second', {}, { name: 'end' }),
      abandon: (attempt) => {
        if (attempt === 1) throw new other.Abandon('not now');
        return 'now';
      },
      noretry: () => {
        throw new other.NoRetry('gone', { kind: 'Gone' });
      },
      trash: () => {
        throw new other.Trash('no image');
      },
      payload: () => {
        throw new other.PayloadError('torn');
      },
    };
    for (const [name, run] of Object.entries(ways)) board.handler(name, (_, { attempt }) => run(attempt));
    board.handler('end', () => 'end');
    started(t, board, { queues: [] });
    const found: Record<string, unknown> = {};
    for (const name of Object.keys(ways)) {
      const id = await board.post({}, { name, retries: 1, backoff: '1ms' });
      await until(async () => (await board.get(id))?.isEnded === true);
      const job = await board.get(id);
      found[name] = [job?.state, job?.kind ?? job?.reason ?? job?.result, job?.attempt];
    }
    assert.deepEqual(found, {
      complete: ['complete', { n: 1 }, 1],
      next: ['complete', 'end', 1],
      abandon: ['complete', 'not now', 2],
      noretry: ['failed', 'Gone', 1],
      trash: ['trashed', 'no image', 1],
      payload: ['failed', 'PayloadError', 1],
    });
  });

  test('a worker works on a board of the other copy', async (t) => {
    const board = new other.Board('board', server.url);
    t.after(() => {
      board.close();
    });
    board.handler('x', () => 'done');
    started(t, board, { queues: [] });
    const id = await board.post({}, { name: 'of nobody', retries: 0, elsewhere: true });
    await until(async () => (await board.state(id)) === 'scheduled');
    await cut(server);
    await ask(server.url, 'PING');
    assert.equal(await board.call({}, { name: 'x', within: '60s' }), 'done');
  });

  test('errors are told apart, and a subclass is what its program has made', () => {
    const lost = new other.Lost('x');
    assert.ok(lost instanceof own.Lost && lost instanceof own.Stopped && !(lost instanceof own.Waits));
    assert.ok(own.BoardError.is(new other.NoModule('x'), 'ERR'));
    for (const nothing of [undefined, null, 'x', {}] as unknown[]) assert.ok(!(nothing instanceof own.Retry));
    class Busy extends own.Retry {}
    assert.ok(new Busy() instanceof other.Retry && !((new other.Retry() as unknown) instanceof Busy));
    assert.ok(new Busy() instanceof Busy);
  });
});
