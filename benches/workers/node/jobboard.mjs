// jobboard: posts, a worker, pick-up.
//   node jobboard.mjs post JOBS | work CONCURRENCY [OPTIONS] | hold [OPTIONS] | latency SAMPLES
// OPTIONS: those of a worker, as JSON. `hold` says when it is called, and never ends.
import { Board, Worker } from '../../../clients/typescript/dist/esm/index.js';
import job from './job.cjs';

const [, , what, number, options = '{}'] = process.argv;
const board = new Board('bench', `redis://127.0.0.1:${job.port}`);

if (what === 'post') {
  await board.postMany(Array.from({ length: Number(number) }, (_, n) => job.order(n)), { name: 'order' });
} else if (what === 'work') {
  board.handler('order', (payload) => job.work(payload));
  await new Worker(board, { concurrency: Number(number), logger: null, ...JSON.parse(options) }).run();
} else if (what === 'hold') {
  board.handler('order', (_, { attempt }) => new Promise(() => console.log(attempt)));
  await new Worker(board, { concurrency: 1, logger: null, ...JSON.parse(number) }).run();
} else {
  board.handler('order', () => job.called());
  void new Worker(board, { logger: null }).run();
  await job.latency(Number(number), (order) => board.post(order, { name: 'order' }));
}
