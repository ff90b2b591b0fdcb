// The package as a client of the conformance suite: docs/clients.md says what this has to do.
//
//     node conformance.js calls --port 6379      a call a line on stdin, an answer a line on stdout
//     node conformance.js work --port 6379 --board board --name w1 --lease 1000 [--also NAME]
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { Board, BoardError, collected, type Context, JobFailed, JobUnknown, NoRetry, ResultDropped, type Settings, TimedOut, toMs, Worker } from '../src/index.js';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    port: { type: 'string', default: '6379' },
    board: { type: 'string', default: 'board' },
    name: { type: 'string', default: 'worker' },
    lease: { type: 'string', default: '30000' },
    also: { type: 'string', multiple: true, default: [] },
  },
});
const server = `redis://127.0.0.1:${values.port}`;

/* eslint-disable @typescript-eslint/no-explicit-any, @typescript-eslint/no-unsafe-assignment, @typescript-eslint/no-unsafe-argument */
type Request = Record<string, any>;

const CALLS: Record<string, (board: Board, request: Request) => unknown> = {
  duration: (_, { text }) => toMs(text),
  post: (board, { payload, options }) => board.post(payload, options),
  post_many: (board, { payloads, options }) => board.postMany(payloads, options),
  flow: (board, { nodes }) => board.flow(nodes),
  get: (board, { id }) => board.get(id),
  list: async (board, { filters }) => (await collected(board.list(filters))).map((job) => job.id),
  count: (board, { filters }) => board.count(filters),
  cancel: (board, { ids }) => board.cancel(ids),
  requeue: async (board, { ids }) => (await board.requeue(ids)).count,
  delete: async (board, { ids }) => (await board.delete(ids)).count,
  update: async (board, { ids, options }) => (await board.update(ids, options)).count,
  claim: (board, { worker }) => board.claim(worker),
  heartbeat: async (board, { worker, id, token, options }) => board.heartbeat(worker, { id, token }, options),
  consume: (board, { worker, id, token, options }) => board.consume(worker, { id, token }, options),
  fail: (board, { worker, id, token, kind, message, options }) => board.fail(worker, { id, token }, kind, message, options),
  abandon: (board, { worker, id, token }) => board.abandon(worker, { id, token }),
  trash: (board, { worker, id, token, options }) => board.trash(worker, { id, token }, options),
  pause: (board, { options }) => board.pause(options),
  resume: (board, { options }) => board.resume(options),
  settings_set: (board, { settings, options }) => board.settingsSet(settings, options),
  settings_get: async (board, { setting, options }) => (await board.settingsGet([setting], options))[setting as keyof Settings],
  schedule_set: (board, { id, payload, options }) => board.scheduleSet(id, payload, options),
  schedule_run: (board, { id }) => board.scheduleRun(id),
  schedule_del: (board, { id }) => board.scheduleDel(id),
  result: (board, { id, timeout = '30s' }) => board.result(id, { timeout }),
};

async function answer(board: Board, { call, ...request }: Request): Promise<unknown> {
  try {
    return { returns: (await CALLS[call as string]?.(board, request)) ?? null };
  } catch (error) {
    if (error instanceof BoardError) return { raises: error.code, detail: error.detail };
    if (error instanceof JobFailed) return { raises: 'failed' };
    if (error instanceof ResultDropped) return { raises: 'dropped' };
    if (error instanceof JobUnknown) return { raises: 'unknown' };
    if (error instanceof TimedOut) return { raises: 'timeout' };
    if (error instanceof TypeError || error instanceof RangeError) return { raises: 'argument', detail: error.message };
    throw error;
  }
}

async function checksum(payload: Buffer, context: Context): Promise<string> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(payload, { signal: context.signal })) hash.update(chunk as Buffer);
  } catch (error) {
    context.check();
    throw new NoRetry((error as Error).message, { kind: 'unreadable' });
  }
  return hash.digest('hex');
}

async function approvedChecksum(payload: Buffer, context: Context): Promise<unknown> {
  const digest = await context.step<unknown>('digest', () => checksum(payload, context));
  await context.waitFor('approved');
  return digest;
}

if (positionals[0] === 'work') {
  const board = new Board(values.board, { server, codec: 'raw' });
  board.handler('approved-checksum', approvedChecksum);
  for (const name of ['checksum', ...values.also]) board.handler(name, checksum);
  const worker = new Worker(board, { concurrency: 1, prefetch: 7, name: values.name, lease: `${Number(values.lease)}ms`, stopWithin: '60s', logger: console });
  await worker.run();
} else {
  const board = new Board(values.board, server);
  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await answer(board, JSON.parse(line)))}\n`);
  }
}
