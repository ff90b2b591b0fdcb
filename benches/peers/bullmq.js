// What of BullMQ has to run in node.
//   node bullmq.js scripts          the text of its scripts as JSON
//   node bullmq.js work <port>      a worker that completes each job, until it is killed
//   node bullmq.js latency <port> <samples> <delay ms>
//                                   milliseconds from a post (or from its due time) until its processor runs
const path = require('path');
const place = process.env.PEERS;
const bullmq = require(path.join(place, 'node_modules', 'bullmq'));
const [, , what, port, samples, delay] = process.argv;
const connection = { host: '127.0.0.1', port: Number(port) };
const data = { d: 'x'.repeat(92) };

async function latency() {
  const queue = new bullmq.Queue('bench', { connection });
  let taken;
  const worker = new bullmq.Worker('bench', async () => taken(performance.now()), { connection, removeOnComplete: { count: 0 } });
  await worker.waitUntilReady();
  const found = [];
  for (let n = 0; n < Number(samples); n++) {
    const gone = new Promise((done) => (taken = done));
    const due = performance.now() + Number(delay);
    const added = queue.add('job', data, { delay: Number(delay) });
    found.push((await gone) - due);
    await added;
    await new Promise((done) => setTimeout(done, 5));
  }
  console.log(JSON.stringify(found));
  process.exit(0);
}

if (what === 'scripts') {
  const scripts = require(path.join(place, 'node_modules', 'bullmq', 'dist', 'cjs', 'scripts'));
  const found = {};
  for (const one of Object.values(scripts)) if (one && one.name) found[one.name] = one.content;
  console.log(JSON.stringify(found));
} else if (what === 'work') {
  new bullmq.Worker('bench', async () => null, { connection, concurrency: 10, removeOnComplete: { count: 0 } });
} else {
  latency();
}
