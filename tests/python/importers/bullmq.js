// Makes jobs of BullMQ for test_bullmq.py:  node bullmq.js <port> [begun|paused|held|prefix|family]
const path = require('path');
const bullmq = require(path.join(process.env.PEERS, 'node_modules', 'bullmq'));
const [, , port, what] = process.argv;
const connection = { host: '127.0.0.1', port: Number(port) };
const open = (name, more) => new bullmq.Queue(name, { connection, ...more });

// Runs one job of a queue to its end, or to its next wait; nobody else takes jobs.
async function run(queue, process) {
  const worker = new bullmq.Worker(queue.name, null, { connection });
  const job = await worker.getNextJob('token');
  if (process) {
    try {
      await job.moveToCompleted(await process(job), 'token', false);
    } catch (error) {
      await job.moveToFailed(error, 'token', false);
    }
  }
  await worker.close();
  return job;
}

async function everything() {
  const mails = open('mails');
  const reports = open('reports');
  // These run before the others are there.
  await mails.add('send', {}, { jobId: 'broken' });
  await run(mails, () => { throw new TypeError('no such address'); });
  await mails.add('send', {}, { jobId: 'done' });
  await run(mails, () => 'sent');
  await mails.add('send', {}, { jobId: 'tried', attempts: 3 });
  await run(mails, () => { throw new Error('busy'); });

  await mails.add('send', { to: 'ann' });
  await mails.add('send', { to: 'bob' }, { attempts: 5, backoff: { type: 'exponential', delay: 1000 } });
  await mails.add('send', { to: 'eve' }, { lifo: true, removeOnComplete: true });
  await mails.add('send', {}, { jobId: 'own-id', deduplication: { id: 'letter' } });
  await mails.add('send', {}, { jobId: 'later', delay: 3600000 });
  await mails.add('send', {}, { priority: 10 });
  await mails.add('send', {}, { priority: 2 });

  const flow = new bullmq.FlowProducer({ connection });
  await flow.add({
    name: 'sum', queueName: 'reports', opts: { jobId: 'parent' },
    children: [1, 2].map((n) => ({ name: 'part', queueName: 'mails2', data: { n }, opts: { jobId: `child-${n}` } })),
  });
  await reports.upsertJobScheduler('hourly', { every: 3600000 }, { name: 'report', data: { kind: 'hourly' }, opts: { priority: 3 } });
  await reports.upsertJobScheduler('nightly', { pattern: '0 30 2 * * *', tz: 'Europe/Berlin' }, { name: 'report' });
}

// Three flows: of the first one part is done, one failed and one is delayed; of the third all parts have ended, one of
// them without success, and its parent is about to run.
async function family() {
  const parts = open('parts');
  const flow = new bullmq.FlowProducer({ connection });
  const part = (n, opts) => ({ name: 'part', queueName: 'parts', data: { n }, opts: { jobId: `part-${n}`, ...opts } });
  await flow.add({
    name: 'sum', queueName: 'sums', opts: { jobId: 'sum' },
    children: [part(1), part(2), part(3), part(4, { delay: 3600000 })],
  });
  await run(parts, (job) => job.data.n * 10);
  await run(parts, () => { throw new Error('no'); });
  await flow.add({
    name: 'book', queueName: 'sums', opts: { jobId: 'book' },
    children: [{ name: 'chapter', queueName: 'sums', opts: { jobId: 'chapter' }, children: [part(5)] }],
  });
  const pages = open('pages');
  const page = (n) => ({ name: 'page', queueName: 'pages', data: { n }, opts: { jobId: `page-${n}`, ignoreDependencyOnFailure: true } });
  await flow.add({ name: 'print', queueName: 'prints', opts: { jobId: 'print' }, children: [page(1), page(2)] });
  await run(pages, (job) => `page ${job.data.n}`);
  await run(pages, () => { throw new RangeError('no ink'); });
}

async function main() {
  if (what === 'begun') {
    const queue = open('begun');
    await queue.add('send', {}, { jobId: 'begun' });
    await run(queue);
  } else if (what === 'paused') {
    const queue = open('quiet');
    await queue.add('send', {});
    await queue.pause();
    await queue.add('send', {});
  } else if (what === 'held') {
    await family();
    const queue = open('parts');
    await queue.add('part', { n: 6 });
    await queue.pause();
    await queue.setGlobalConcurrency(1);
    await queue.setGlobalRateLimit(2, 3600000);
  } else if (what === 'family') {
    await family();
  } else if (what === 'prefix') {
    await open('mails', { prefix: '{mine}' }).add('send', {});
  } else {
    await everything();
  }
  process.exit(0);
}

main();
