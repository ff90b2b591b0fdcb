// A worker and a client of it, where a URL or a node of a cluster says. Of each number on stdin it posts the square as a
// job, and prints the result; tests/python/programs/test_typescript_places.py lets servers fail meanwhile.
//
//     node place.js sentinel://127.0.0.1:26379/mymaster
//     node place.js cluster:6379
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

import { Board, ConnectionLost, Worker } from '../src/index.js';

const where = process.argv[2] ?? '';
const port = /^cluster:(\d+)$/.exec(where)?.[1];
const board = new Board('board', { server: port === undefined ? where : { rootNodes: [{ url: `redis://127.0.0.1:${port}` }] } });
const square = board.task<number>('square', { retain: '1h' }).handle((n) => n * n);
const worker = new Worker(board, { name: 'w', lease: '2s', logger: console });
const running = worker.run();

/** Asks again while no server answers: a post has an id, so that it is posted once. */
async function patient<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
      await sleep(100);
    }
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const n = Number(line);
  const id = `job-${String(n)}`;
  await patient(async () => board.post(n, { name: 'square', id, nx: true, retain: '1h' }));
  console.log(`${String(n)} ${String(await patient(async () => square.result(id)))}`);
}
await worker.stop();
process.exitCode = (await running) ? 0 : 1;
board.close();
