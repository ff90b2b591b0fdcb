/** What the tests share: servers, and waiting for conditions. */
import { after, beforeEach, type TestContext } from 'node:test';

import { createClient } from '@redis/client';

import { type Board, Worker, type WorkerOptions } from '../src/index.js';
import { TestServer, type TestServerOptions } from '../src/testing.js';
import { Engine } from '../src/worker/engine.js';

/** A worker that stops takes three seconds to tell its last ends. Here a process may stand still for so long. */
const waitSent = Reflect.get(Engine.prototype, 'waitSent');
Engine.prototype.waitSent = async function () {
  return waitSent.call(this, 60_000);
};

/** A server for the tests of a file, empty before each. `$JOBBOARD_SERVER` and `$JOBBOARD_MODULE` say which. */
export async function serverOf(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await TestServer.start(options);
  beforeEach(async () => server.empty());
  after(async () => server.stop());
  return server;
}

/** Waits until it is true: asks often at first, and then more and more rarely. */
export async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  const begun = performance.now();
  while (!(await what())) {
    const waited = performance.now() - begun;
    if (waited > 120_000) throw new Error(`this has not happened: ${what.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, Math.min(Math.max(waited / 10, 5), 50)));
  }
}

export const ended = async (board: Board, id: string): Promise<void> => until(async () => ['complete', 'failed', 'cancelled', 'trashed'].includes((await board.state(id)) ?? ''));

/** Starts a worker that ends with the test. */
export function started(t: TestContext, board: Board, options: WorkerOptions = {}): Worker {
  const worker = new Worker(board, { logger: null, ...options });
  const running = worker.run({ signals: false });
  t.after(async () => {
    await worker.stop();
    await running;
  });
  return worker;
}

/** Something that a test opens when it likes. */
export function gate() {
  let open: () => void = () => undefined;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, passed };
}

/** The answer to one command, over a connection of its own. */
export async function ask(url: string, ...words: string[]): Promise<unknown> {
  const client = createClient({ url });
  await client.connect();
  try {
    return await client.sendCommand(words);
  } finally {
    client.destroy();
  }
}

/** Ends all connections but one. */
export async function cut(server: TestServer): Promise<void> {
  const admin = createClient({ url: server.url });
  await admin.connect();
  for (const type of ['normal', 'pubsub']) await admin.sendCommand(['CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes']);
  admin.destroy();
}

/** The leases that workers take their jobs to have, in the order of their claims. */
export function leasesTaken(t: TestContext): number[] {
  const leases: number[] = [];
  const take = Reflect.get(Engine.prototype, 'take');
  t.mock.method(Engine.prototype, 'take', function (this: Engine, ...[runs, sent]: Parameters<typeof take>) {
    leases.push(...runs.map((run) => run.lease));
    take.call(this, runs, sent);
  });
  return leases;
}
