import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { type Context, Lost } from '../src/index.js';
import { gate, serverOf, started, until } from './harness.js';

const server = await serverOf();

describe('a worker that has lost a job says why', () => {
  const ways: Record<string, [(id: string) => Promise<unknown>, RegExp]> = {
    deleted: [async (id) => server.board().delete(id), /^the job is not ours any more: .*(deleted|NOJOB|NOTCLAIMED)/],
    released: [async (id) => server.board().release(id), /^the job is not ours any more: .*(released|NOTCLAIMED)/],
    lapsed: [async () => server.advance('1m'), /^the job is not ours any more: (ENDED|NOTCLAIMED) failed$/],
    thrown: [async () => Promise.resolve(), /^its handler has thrown Lost$/],
  };
  for (const [way, [lose, why]] of Object.entries(ways)) {
    test(way, async (t) => {
      const board = server.board();
      const begun = gate();
      board.handler('work', async (_: unknown, context: Context) => {
        begun.open();
        if (way === 'thrown') throw new Lost('mine');
        await until(() => {
          context.check();
          return false;
        });
      });
      // One that listens is told at once; the other asks in a third of its lease.
      const worker = started(t, board, { concurrency: 1, ...(way === 'lapsed' ? { listen: false, lease: '15s' } : { lease: '30s' }) });
      const told: string[] = [];
      worker.on('lost', (_, text) => told.push(text));
      const id = await board.post({}, { name: 'work', retries: 0, lapses: 0 });
      await begun.passed;
      await lose(id);
      await until(() => told.length > 0);
      assert.match(told[0] ?? '', why);
    });
  }
});
