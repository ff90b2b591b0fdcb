// What goes wrong around a worker: hostile names, words that nobody can send, listeners that throw, servers that say nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ask, serverOf, started } from './harness.js';

const server = await serverOf({ manualClock: false });

test('fields of META may have any name', async (t) => {
  const board = server.board();
  const names = ['__proto__', 'constructor', 'toString', 'valueOf', 'hasOwnProperty'];
  await ask(server.url, 'JOB.POST', board.name, '{}', 'ID', 'a', 'NAME', 'work', 'META', String(names.length), ...names.flatMap((name) => [name, 'text']), 'RETAIN', '60000');
  const task = board.task('work').handle((_, context) => Object.entries(context.meta));
  started(t, board);
  const entries = names.map((name) => [name, 'text']);
  assert.deepEqual(await task.result('a', { timeout: '10s' }), entries);
  assert.deepEqual(Object.entries((await board.get('a'))?.meta ?? {}), entries);
});
