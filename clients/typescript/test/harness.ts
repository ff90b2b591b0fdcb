/** What the tests share: servers, and waiting for conditions. */
import { after, beforeEach } from 'node:test';

import type { Board } from '../src/index.js';
import { TestServer, type TestServerOptions } from '../src/testing.js';

/** A server for the tests of a file, empty before each. `$JOBBOARD_SERVER` and `$JOBBOARD_MODULE` say which. */
export async function serverOf(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await TestServer.start(options);
  beforeEach(async () => server.empty());
  after(async () => server.stop());
  return server;
}

/** Waits until it is true. */
export async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 30_000;
  while (!(await what())) {
    if (Date.now() > end) throw new Error(`this has not happened: ${what.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export const ended = async (board: Board, id: string): Promise<void> => until(async () => ['complete', 'failed', 'cancelled', 'trashed'].includes((await board.state(id)) ?? ''));
