// BullMQ: posts, a worker, pick-up. The same words as jobboard.mjs.
const { Queue, Worker } = require(require.resolve('bullmq', { paths: [process.env.BENCH_PEERS] }));
const job = require('./job.cjs');

const [, , what, number] = process.argv;
const connection = { host: '127.0.0.1', port: job.port };
// Completed jobs are kept as those of jobboard are: a thousand, for an hour.
const kept = { removeOnComplete: { count: 1000, age: 3600 } };

async function post(jobs) {
  const queue = new Queue('bench', { connection });
  for (let start = 0; start < jobs; start += 1000) {
    const some = Array.from({ length: Math.min(1000, jobs - start) }, (_, n) => ({ name: 'order', data: job.order(start + n) }));
    await queue.addBulk(some);
  }
  process.exit(0);
}

async function latency(samples) {
  const queue = new Queue('bench', { connection });
  const worker = new Worker('bench', async () => job.called(), { connection, concurrency: 10, ...kept });
  await worker.waitUntilReady();
  await job.latency(samples, (order) => queue.add('order', order));
}

if (what === 'post') post(Number(number));
else if (what === 'work') new Worker('bench', async ({ data }) => job.work(data), { connection, concurrency: Number(number), ...kept });
else if (what === 'hold') new Worker('bench', ({ attemptsStarted }) => new Promise(() => console.log(attemptsStarted)), { connection, ...kept });
else latency(Number(number));
