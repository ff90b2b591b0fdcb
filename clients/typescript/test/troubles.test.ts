// What goes wrong around a worker: hostile names, words that nobody can send, listeners that throw, servers that say nothing.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { createClient } from '@redis/client';

import { Abandon, Board, BoardError, ConnectionLost, type Context, Next, RateLimited, Retry, TimedOut, Worker, type WorkerEvents } from '../src/index.js';
import { Away } from '../src/errors.js';
import { Link } from '../src/link.js';
import { TestServer } from '../src/testing.js';
import { Engine } from '../src/worker/engine.js';
import { ask, ended, gate, leasesTaken, serverOf, started, until } from './harness.js';

const server = await serverOf({ manualClock: false });
const calls = async (command: string): Promise<number> => Number(new RegExp(String.raw`cmdstat_${command}:calls=(\d+)`).exec(String(await ask(server.url, 'INFO', 'commandstats')))?.[1] ?? 0);

test('fields of META may have any name', async (t) => {
  const board = server.board();
  const names = ['__proto__', 'constructor', 'toString', 'valueOf', 'hasOwnProperty'];
  await ask(server.url, 'JOB.POST', board.name, '{}', 'ID', 'a', 'NAME', 'work', 'META', String(names.length), ...names.flatMap((name) => [name, 'text']), 'RETAIN', '60000');
  const task = board.task('work').handle((_, context) => Object.entries(context.meta));
  started(t, board);
  const entries = names.map((name) => [name, 'text']);
  assert.deepEqual(await task.result('a', { timeout: '60s' }), entries);
  assert.deepEqual(Object.entries((await board.get('a'))?.meta ?? {}), entries);
});

describe('words that cannot be sent', () => {
  const wrong: Record<string, (context: Context) => unknown> = {
    'a payload with a BigInt': (context) => {
      context.save({ n: 1n });
    },
    'progress that is no number': (context) => {
      context.progress(0 / 0);
    },
    'a log that is no text': (context) => {
      context.log(5 as never);
    },
    'a stage that is no text': (context) => {
      context.stage(5 as never);
    },
    'a step that has no name': async (context) => context.step(5 as never, () => 1),
    'a wait for what is no text': async (context) => context.waitFor([5 as never]),
    'a next name that is no text': () => new Next('default', {}, { name: 5 as never }),
  };
  for (const [what, tell] of Object.entries(wrong)) {
    test(`fail the job alone: ${what}`, async (t) => {
      const board = server.board();
      const { open, passed } = gate();
      const good = board.task('good', { retain: '1h' }).handle(async () => passed);
      const bad = board.task('bad', { retries: 0 }).handle((_, context) => {
        open(); // the end of the other job is sent together with this
        return tell(context);
      });
      const goodId = await good.post({});
      const badId = await bad.post({});
      started(t, board);
      await ended(board, badId);
      await good.result(goodId, { timeout: '60s' });
      assert.equal((await board.get(badId))?.state, 'failed');
      assert.equal((await board.get(goodId))?.attempt, 1);
    });
  }

  test('a payload is saved as it was then', async (t) => {
    const board = server.board();
    const task = board.task<{ at: number }>('work', { retain: '1h' }).handle((payload, context) => {
      payload.at = 1;
      context.save(payload);
      payload.at = 2;
    });
    const id = await task.post({ at: 0 });
    started(t, board);
    await task.result(id, { timeout: '60s' });
    assert.deepEqual((await board.get(id))?.payload, { at: 1 });
  });
});

describe('a listener that throws', () => {
  for (const name of ['active', 'completed', 'failed', 'lost', 'drained'] as const satisfies (keyof WorkerEvents)[]) {
    test(`stops the worker, whose run throws that: ${name}`, async () => {
      const board = server.board();
      const other = server.board();
      const task = board.task('work', { retries: 0 }).handle(async (_, context) => {
        if (name === 'lost') await other.release([context.id]);
        if (name === 'failed') throw new Error('broken');
        if (name === 'lost') await context.sleep('1h');
      });
      const worker = new Worker(board, { concurrency: 1, prefetch: 3, register: false, block: '20ms', stopWithin: '5s', logger: null });
      let told = 0;
      worker.on(name, () => {
        told += 1;
        if (told === 2 || name === 'lost') throw new Error(`of ${name}`);
      });
      if (name !== 'drained') await task.postMany([{}, {}, {}, {}, {}, {}]);
      const found = await Promise.race([worker.run({ signals: false }).catch((error: unknown) => (error as Error).message), sleep(60_000, 'it goes on', { ref: false })]);
      await worker.stop();
      assert.equal(found, `of ${name}`);
      assert.equal(await board.count({ state: 'claimed' }), 0); // also of jobs that the same answer has brought
    });
  }
});

describe('what a handler throws', () => {
  class Listed extends Error {}
  const evil = new Proxy(new Error('x'), {
    get: () => {
      throw Object.create(null);
    },
  });
  const thrown: [unknown, string][] = [
    [Object.assign(new Listed('x'), { message: ['a', 'b'] }), "Listed: [ 'a', 'b' ]"],
    [Object.assign(new Listed('x'), { name: 5 }), 'Listed: x'],
    [Object.assign(new Listed('x'), { message: undefined }), 'Listed: undefined'],
    [evil, 'Unsendable: how this run ended cannot be sent: it threw what cannot be shown'],
  ];
  for (const [error, text] of thrown) {
    test(`is told, whatever it is: ${text}`, async (t) => {
      const board = server.board();
      const task = board.task('work', { noretry: [Listed], retries: text.startsWith('Uns') ? 0 : 3 }).handle(() => {
        throw error;
      });
      const id = await task.post({});
      started(t, board);
      await ended(board, id);
      const job = await board.get(id);
      assert.deepEqual([`${job?.kind ?? ''}: ${job?.message ?? ''}`, job?.attempt], [text, 1]);
    });
  }

  test('with a delay that the server does not take ends without it', async (t) => {
    const board = server.board();
    const runs = new Map<string, number>();
    const task = board.task<string>('work', { backoff: '0s' }).handle((how, context) => {
      runs.set(context.id, (runs.get(context.id) ?? 0) + 1);
      if (runs.get(context.id) === 2) return how;
      if (how === 'retry') throw new Retry('x', { delay: '99999999d' });
      if (how === 'abandon') throw new Abandon('x', { delay: '99999999d' });
      throw new RateLimited('x', '99999999d');
    });
    started(t, board);
    for (const how of ['retry', 'abandon', 'rest']) assert.equal(await task.result(await task.post(how, { retain: '1h' }), { timeout: '60s' }), how);
  });
});

describe('times that are longer than a timer bears', () => {
  test('are waited for all the same', async () => {
    const board = server.board();
    const { open, passed } = gate();
    let slept = false;
    const task = board.task<string>('work', { retain: '1h' }).handle(async (how, context) => {
      if (how === 'sleep') await context.sleep('30d').finally(() => (slept = true));
      await passed;
      return how;
    });
    await board.settingsSet({ concurrency: 10 });
    const ids = [await task.post('sleep'), await task.post('work')];
    const before = await calls('job.mheartbeat');
    const worker = new Worker(board, { lease: '90d', stopWithin: '30d', logger: null });
    const running = worker.run({ signals: false });
    await until(async () => (await board.count({ state: 'claimed' })) === 2);
    await sleep(300);
    assert.equal(slept, false);
    assert.ok((await calls('job.mheartbeat')) - before < 10);
    const stopped = worker.stop();
    await sleep(100);
    open();
    assert.equal(await task.result(ids[1] ?? '', { timeout: '60s' }), 'work'); // it was not given back at once
    await worker.stop({ now: true });
    await stopped;
    assert.equal(await running, false);
    assert.equal(await board.state(ids[0] ?? ''), 'ready');
  });
});

/** A way to the server that a test cuts. */
async function relay(): Promise<{ path: string; made: () => number; cut: () => Promise<void>; mend: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  let made = 0;
  const { port: real } = new URL(server.url);
  const folder = mkdtempSync(join(tmpdir(), 'jobboard-relay-'));
  const path = join(folder, 'socket'); // a port could be another's while it is cut
  after(() => {
    rmSync(folder, { recursive: true });
  });
  const make = (): ReturnType<typeof createServer> =>
    createServer((near) => {
      made += 1;
      const far = connect(Number(real), '127.0.0.1');
      for (const [one, other] of [[near, far], [far, near]] as const) {
        sockets.add(one);
        one.pipe(other);
        one.on('error', () => undefined).on('close', () => other.destroy());
      }
    });
  let found = make();
  await new Promise<void>((resolve) => found.listen(path, resolve));
  return {
    path,
    made: () => made,
    cut: async () => {
      for (const socket of sockets) socket.destroy();
      sockets.clear();
      await new Promise((resolve) => found.close(resolve));
    },
    mend: async () => {
      found = make();
      await new Promise<void>((resolve) => found.listen(path, resolve));
    },
  };
}

describe('a server that was away', { concurrency: true }, () => {
  test('is connected to once by who listens for cancels, whatever comes first', async (t) => {
    const way = await relay();
    const board = new Board('board', { server: { socket: { path: way.path, tls: false } } });
    server.allow(board);
    board.handler('work', () => 1);
    const worker = new Worker(board, { name: 'w', logger: null });
    const running = worker.run({ signals: false });
    t.after(async () => {
      await worker.stop();
      await running;
      board.close();
      await way.cut();
    });
    const listens = async (): Promise<boolean> => Number(((await ask(server.url, 'PUBSUB', 'NUMSUB', 'job.worker:board:w')) as unknown[])[1]) === 1;
    await until(listens);
    await way.cut();
    await sleep(5600); // its second ping, each 3 s, most likely comes before its next try
    await way.mend();
    await until(listens);
    await until(async () => /name=w:claims [^]*name=w:ends |name=w:ends [^]*name=w:claims /.test(String(await ask(server.url, 'CLIENT', 'LIST'))));
    const before = way.made();
    await sleep(1000);
    assert.ok(way.made() - before < 3, `${String(way.made() - before)} connections in a second`);
  });

  test('that stands still when it is asked for its role is no primary', async (t) => {
    const sockets: Socket[] = [];
    const half = createServer((socket) => {
      sockets.push(socket);
      const { port } = half.address() as AddressInfo;
      socket.on('data', (data) => {
        const asked = data.toString();
        if (asked.includes('GET-MASTER-ADDR-BY-NAME')) socket.write(`*2\r\n$9\r\n127.0.0.1\r\n$${String(String(port).length)}\r\n${String(port)}\r\n`);
        else if (!asked.includes('ROLE')) socket.write(asked.includes('HELLO') ? '%0\r\n+OK\r\n+OK\r\n' : '+OK\r\n+OK\r\n');
      });
    });
    await new Promise<void>((resolve) => half.listen(0, '127.0.0.1', resolve));
    const { port } = half.address() as AddressInfo;
    const board = new Board('board', { server: { name: 'mymaster', sentinelRootNodes: [{ host: '127.0.0.1', port }] } });
    server.allow(board);
    t.after(() => {
      board.close();
      for (const socket of sockets) socket.destroy();
      half.close();
    });
    const found = await Promise.race([board.count().catch((error: unknown) => error), sleep(60_000, 'it waits', { ref: false })]);
    assert.ok(found instanceof ConnectionLost, String(found));
    assert.match(found.message, /it takes the connection, and does not answer/);
  });

  test('that takes connections and says nothing is no server', async (t) => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const board = new Board('board', { server: `redis://127.0.0.1:${String((silent.address() as AddressInfo).port)}` });
    server.allow(board);
    t.after(() => {
      board.close();
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
    const found = await Promise.race([board.count().catch((error: unknown) => error), sleep(60_000, 'it waits', { ref: false })]);
    assert.ok(found instanceof ConnectionLost, String(found));
    assert.match(found.message, /^no answer from 127\.0\.0\.1:\d+: it takes the connection, and does not answer/);
  });
});

describe('a test server', () => {
  test('is stopped twice, and after it was killed', async () => {
    const late = async (stopped: Promise<void>): Promise<unknown> => Promise.race([stopped, sleep(60_000, 'it waits', { ref: false })]);
    const first = await TestServer.start();
    await first.stop();
    assert.equal(await late(first.stop()), undefined);
    const second = await TestServer.start();
    process.kill(Number(/process_id:(\d+)/.exec(String(await ask(second.url, 'INFO', 'server')))?.[1]), 'SIGKILL');
    await until(async () => ask(second.url, 'PING').then(() => false, () => true));
    await sleep(100);
    assert.equal(await late(second.stop()), undefined);
  });
});

describe('waits that end early', () => {
  test('leave a board that can wait again', async () => {
    const board = server.board();
    const id = await board.post({});
    const before = await calls('job.wait');
    const waits = assert.rejects(board.wait([id]), ConnectionLost);
    await until(async () => (await calls('job.wait')) > before);
    board.use(server.url);
    await waits;
    assert.equal(await board.wait([id], { timeout: '10ms' }), null);
  });

  test('end with the reason of their signal: output', async () => {
    const board = server.board();
    const id = await board.post({});
    const stop = new AbortController();
    const before = await calls('job.output');
    const reads = assert.rejects(async () => {
      for await (const chunk of board.output(id, { signal: stop.signal })) assert.fail(chunk.text);
    }, /^Error: enough$/);
    await until(async () => (await calls('job.output')) > before);
    stop.abort(new Error('enough'));
    await reads;
  });

  test('leave no connection: events that may not be heard', async (t) => {
    await ask(server.url, 'ACL', 'SETUSER', 'deaf', 'on', '>p', '~*', 'resetchannels', '+@all');
    t.after(async () => ask(server.url, 'ACL', 'DELUSER', 'deaf'));
    const board = new Board('board', { server: server.url.replace('//', '//deaf:p@') });
    t.after(() => {
      board.close();
    });
    await server.board().settingsSet({ events: 'all' });
    for (let round = 0; round < 3; round += 1) await assert.rejects(board.events(), (error) => BoardError.is(error, 'NOPERM'));
    await until(async () => String(await ask(server.url, 'CLIENT', 'LIST')).split('user=deaf').length - 1 === 1);
  });
});

describe('a call whose connection is lost', () => {
  const waits = async (): Promise<string | undefined> => /^id=(\d+) .*flags=b .*cmd=job\.wait/m.exec(String(await ask(server.url, 'CLIENT', 'LIST')))?.[1];
  /** Ends the connection that waits. */
  const cutWait = async (): Promise<void> =>
    until(async () => {
      const id = await waits();
      return id !== undefined && (await ask(server.url, 'CLIENT', 'KILL', 'ID', id)) === 1;
    });

  test('waits on within its time', async (t) => {
    const board = server.board();
    const mayEnd = gate();
    board.handler('work', async () => {
      await mayEnd.passed;
      return 'done';
    });
    started(t, board, { listen: false });
    const called = board.call({}, { name: 'work', id: 'a', within: '5m' });
    await cutWait();
    await cutWait();
    mayEnd.open();
    assert.equal(await called, 'done');
  });

  test('without a time ends, and cancels nothing', async () => {
    const board = server.board();
    let found: unknown;
    board.call({}, { id: 'a' }).catch((error: unknown) => (found = error));
    await until(async () => {
      const id = await waits(); // between two waits nothing is lost with it
      if (id !== undefined) await ask(server.url, 'CLIENT', 'KILL', 'ID', id);
      return found !== undefined;
    });
    assert.ok(found instanceof ConnectionLost, String(found));
    assert.equal(await board.state('a'), 'ready');
  });

  test('ends when the board is closed, and cancels nothing', async () => {
    const board = server.board();
    const lost = assert.rejects(board.call({}, { id: 'a', within: '5m' }), ConnectionLost);
    await until(async () => (await waits()) !== undefined);
    board.close();
    await lost;
    assert.equal(await server.board().state('a'), 'ready');
  });

  test('cancels when its signal fires', async () => {
    const board = server.board();
    const stop = new AbortController();
    const ends = assert.rejects(board.call({}, { id: 'a', within: '5m', signal: stop.signal }), /^Error: enough$/);
    await cutWait();
    stop.abort(new Error('enough'));
    await ends;
    assert.equal(await board.state('a'), 'cancelled');
  });
});

test('a server with too many connections is tried again', async (t) => {
  const admin = await createClient({ url: server.url }).connect();
  t.after(() => {
    admin.destroy();
  });
  const board = server.board();
  const task = board.task('work', { retain: '1h' }).handle(() => 'done');
  const most = String(Object.values(await admin.sendCommand<object>(['CONFIG', 'GET', 'maxclients'])).at(-1));
  const refused = async (): Promise<number> => Number(/rejected_connections:(\d+)/.exec(String(await admin.sendCommand(['INFO', 'stats'])))?.[1]);
  const before = await refused();
  await admin.sendCommand(['CONFIG', 'SET', 'maxclients', '1']);
  const warnings: string[] = [];
  const ignored = (): void => undefined;
  started(t, board, { name: 'w', logger: { debug: ignored, info: ignored, error: ignored, warn: (text) => warnings.push(text) } });
  try {
    await until(async () => (await refused()) >= before + 9); // each of its connections more than once, most likely
  } finally {
    await admin.sendCommand(['CONFIG', 'SET', 'maxclients', most]);
  }
  await until(async () => (await admin.sendCommand<unknown[]>(['PUBSUB', 'NUMSUB', 'job.worker:board:w']))[1] === 1);
  assert.equal(await task.result(await task.post({}), { timeout: '60s' }), 'done');
  assert.ok(!warnings.some((text) => text.includes('at heartbeats only')), warnings.join('\n'));
});

test('a wait for ever is given up by nobody', async (t) => {
  const board = server.board();
  const asks = Reflect.get(Link.prototype, 'ask');
  const given: [string, number | undefined][] = [];
  t.mock.method(Link.prototype, 'ask', async function (this: Link, ...[words, asking]: Parameters<typeof asks>) {
    if (words.includes('BLOCK')) given.push([String(words[0]), asking?.block]);
    return asks.call(this, words, asking);
  });
  await board.post({}, { id: 'a', block: '0s' });
  await board.postMany([{}], { ids: ['b'], block: '0s' });
  assert.equal((await board.claim('w', { block: '0s', count: 1 })).length, 1);
  await board.workerRegister('s', { session: true });
  assert.equal((await board.claim('s', { block: '1h', session: true, count: 1 })).length, 1);
  assert.deepEqual(given, [
    ['JOB.POST', Infinity],
    ['JOB.MPOST', Infinity],
    ['JOB.CLAIM', Infinity],
    ['JOB.CLAIM', 3_600_000],
  ]);
});

test('a flush leaves no listener behind', async (t) => {
  const board = server.board();
  const task = board.task('work').handle(async (_, context) => {
    for (let n = 1; n < 20; n += 1) {
      context.progress(n);
      await context.flush();
    }
    return getEventListeners(context.signal, 'abort').length;
  });
  started(t, board);
  assert.equal(await task.result(await task.post({}), { timeout: '20s' }), 0);
});

test('reports come also after the clock was set back', async (t) => {
  const board = server.board();
  const { open, passed } = gate();
  const task = board.task('work', { retain: '1h' }).handle(async (_, context) => {
    context.progress(10);
    await context.flush();
    const { now } = Date;
    t.mock.method(Date, 'now', () => now() - 3_600_000);
    context.progress(50);
    await passed;
  });
  const id = await task.post({});
  started(t, board, { listen: false });
  const end = performance.now() + 60_000;
  while ((await board.get(id))?.progress !== 50 && performance.now() < end) await sleep(20);
  const found = (await board.get(id))?.progress;
  open();
  assert.equal(found, 50);
});

test('a password that is wrong for a while ends no worker, and loses no end', async (t) => {
  await ask(server.url, 'ACL', 'SETUSER', 'w', 'reset', 'on', '>one', '~*', '&*', '+@all');
  t.after(async () => ask(server.url, 'ACL', 'DELUSER', 'w'));
  const board = new Board('board', { server: server.url.replace('//', '//w:one@') });
  t.after(() => {
    board.close();
  });
  const direct = server.board();
  const { open, passed } = gate();
  const warnings: string[] = [];
  const logger = { debug: () => undefined, info: () => undefined, error: () => undefined, warn: (text: string) => warnings.push(text) };
  board.task('work').handle(async () => passed);
  const id = await direct.post({}, { name: 'work', retain: '1h', lease: '10m' });
  started(t, board, { name: 'w', logger });
  const listens = async (): Promise<boolean> => Number(((await ask(server.url, 'PUBSUB', 'NUMSUB', 'job.worker:board:w')) as unknown[])[1]) === 1;
  await until(async () => (await direct.state(id)) === 'claimed' && (await listens()));
  await ask(server.url, 'ACL', 'SETUSER', 'w', 'resetpass', '>two');
  await ask(server.url, 'CLIENT', 'KILL', 'USER', 'w');
  open();
  await until(() => warnings.some((text) => text.includes('(ends and leases)') || text.includes('(claiming)')));
  await sleep(500);
  await ask(server.url, 'ACL', 'SETUSER', 'w', 'resetpass', '>one');
  const job = await direct.wait([id], { timeout: '60s' });
  assert.deepEqual([job?.[0]?.state, job?.[0]?.attempt], ['complete', 1]);
  await until(listens);
});

test('a worker that may not keep leases does not ask again and again', async (t) => {
  await ask(server.url, 'ACL', 'SETUSER', 'w', 'reset', 'on', '>one', '~*', '&*', '+@all', '-job.mheartbeat');
  t.after(async () => ask(server.url, 'ACL', 'DELUSER', 'w'));
  const board = new Board('board', { server: server.url.replace('//', '//w:one@') });
  t.after(() => {
    board.close();
  });
  let asks = false;
  board.handler('work', async (_, context) => {
    context.oursUntil = 0; // as after a pause that was longer than the lease
    asks = true;
    await context.step('charge', () => 1);
  });
  await server.board().post({}, { name: 'work', lease: '10m' });
  const errors: string[] = [];
  const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: (text: string) => errors.push(text) };
  started(t, board, { stopWithin: '100ms', logger });
  await until(() => asks);
  await sleep(500);
  assert.ok(errors.length < 10, `${String(errors.length)} heartbeats were refused`);
});

test('jobs that came with an end are not missed, when another answer says that the server is busy', async (t) => {
  const board = server.board();
  const askAll = Reflect.get(Link.prototype, 'askAll');
  let busy = false;
  t.mock.method(Link.prototype, 'askAll', async function (this: Link, ...all: Parameters<typeof askAll>) {
    const found = await askAll.apply(this, all);
    const chained = all[0].some((words) => words[0] === 'JOB.CONSUME' && words.includes('CLAIM'));
    if (busy || !chained) return found;
    busy = true; // as a command before it was told, while a script ran
    throw new Away('BUSY Redis is busy running a script');
  });
  const task = board.task('work').handle((_, context) => context.attempt);
  const ids = await task.postMany([{}, {}, {}], { retain: '1h', lease: '10m' });
  started(t, board, { concurrency: 1, block: '20ms' });
  for (const id of ids) assert.equal(await task.result(id, { timeout: '60s' }), 1);
  assert.ok(busy);
});

test('after a broken connection nothing is missed, and what comes then has its own lease', async (t) => {
  const board = server.board();
  const leases = leasesTaken(t);
  const own = (lease: number | undefined): boolean => lease === 3_600_000;
  const numbers: number[] = [];
  const late: [number, number][] = [];
  const task = board.task<{ n: number }>('work').handle(async ({ n }, context) => {
    numbers.push(n);
    if (n === 5) await ask(server.url, 'CLIENT', 'KILL', 'TYPE', 'normal');
    // As a claim that was sent before, over a connection that broke, and that the server reads after this one.
    if (late.length > 0 || own(leases.at(-1))) return;
    const [job] = await server.board().claim(context.worker);
    late.push([(job?.payload as { n: number }).n, numbers.length]);
  });
  await board.settingsSet({ lease: '1h' });
  await task.postMany(Array.from({ length: 100 }, (_, n) => ({ n })));
  started(t, board, { concurrency: 1 });
  await until(() => numbers.length >= 100);
  assert.ok(leases.slice(0, 5).every(own) && leases.slice(80).every(own), String(leases));
  const [[found, place] = []] = late;
  assert.equal(numbers[place ?? -1], found, String(numbers));
  assert.deepEqual(numbers.sort((a, b) => a - b), Array.from({ length: 100 }, (_, n) => n));
});

test('a pause leaves nothing behind in a worker, and ends when that stops', async (t) => {
  const board = server.board();
  board.handler('work', () => 1);
  const ignored = (): void => undefined;
  const engine = new Engine(board, new Worker(board, { logger: null }).options, { active: ignored, completed: ignored, failed: ignored, lost: ignored, drained: ignored }, false);
  const { mock } = t.mock.method(engine.wantsStop, 'then'); // it lives as long as the worker
  await engine.pause(1);
  assert.equal(mock.callCount(), 0);
  const pauses = engine.pause(600_000);
  engine.goHome();
  await pauses;
});

describe('the clock of the machine', () => {
  /** Sets it, until the test ends. */
  const setClock = (t: TestContext, by: number): void => {
    const now = Date.now.bind(Date);
    t.mock.method(Date, 'now', () => now() + by);
  };

  test('is set back, and a wait ends in its time', async (t) => {
    const board = server.board();
    const id = await board.post({});
    const waits = board.result(id, { timeout: '500ms' });
    setClock(t, -3_600_000);
    await assert.rejects(Promise.race([waits, sleep(60_000, undefined, { ref: false })]), TimedOut);
  });

  test('is set back, and a server that is away is not tried for ever', async (t) => {
    const board = new Board('board', 'redis://127.0.0.1:1');
    server.allow(board);
    t.after(() => {
      board.close();
    });
    const asked = board.count();
    setClock(t, -3_600_000);
    await assert.rejects(Promise.race([asked, sleep(60_000, undefined, { ref: false })]), ConnectionLost);
  });

  test('is set ahead, and no connection is given up', async (t) => {
    const board = server.board();
    const id = await board.post({});
    const waits = board.result(id, { timeout: '2s' });
    setClock(t, 3_600_000);
    await assert.rejects(waits, TimedOut);
  });
});

describe('a primary that Sentinels name', () => {
  /** Two servers, and a Sentinel that names the first until it is told. */
  async function watched(t: TestContext) {
    const [old, fresh] = [await serverOf({ manualClock: false }), await serverOf({ manualClock: false })];
    const port = (url: string): string => new URL(url).port;
    let named = port(old.url);
    const sockets: Socket[] = [];
    const sentinel = createServer((socket) => {
      sockets.push(socket);
      socket.on('data', (data) => {
        const asked = data.toString();
        if (asked.includes('GET-MASTER-ADDR-BY-NAME')) socket.write(`*2\r\n$9\r\n127.0.0.1\r\n$${String(named.length)}\r\n${named}\r\n`);
        else socket.write(asked.includes('HELLO') ? '%0\r\n+OK\r\n+OK\r\n' : '+OK\r\n+OK\r\n');
      });
    });
    await new Promise<void>((resolve) => sentinel.listen(0, '127.0.0.1', resolve));
    const board = new Board('board', { server: { name: 'mymaster', sentinelRootNodes: [{ host: '127.0.0.1', port: (sentinel.address() as AddressInfo).port }] } });
    server.allow(board);
    const pid = Number(/process_id:(\d+)/.exec(String(await ask(old.url, 'INFO', 'server')))?.[1]);
    t.after(() => {
      board.close();
      for (const socket of sockets) socket.destroy();
      sentinel.close();
    });
    return {
      board,
      old,
      fresh: fresh.board('board'),
      freeze: () => process.kill(pid, 'SIGSTOP'),
      failOver: () => {
        named = port(fresh.url);
      },
    };
  }

  test('is left when it is cut off from its replicas', async (t) => {
    const { board, old, fresh, failOver } = await watched(t);
    await board.post(1, { id: 'a' });
    await ask(old.url, 'CONFIG', 'SET', 'min-replicas-to-write', '1');
    await assert.rejects(board.post(2, { id: 'b' }), /NOREPLICAS/);
    failOver();
    await board.post(2, { id: 'b' });
    assert.equal(await fresh.state('b'), 'ready');
  });

  test('is left by a worker at once when it has gone silent', async (t) => {
    const { board, fresh, freeze, failOver } = await watched(t);
    const [begun, ends] = [gate(), gate()];
    board.handler('first', async () => {
      begun.open();
      await ends.passed;
    });
    board.handler('second', () => 2);
    const lost = gate();
    const worker = started(t, board, { concurrency: 1, lease: '1m', block: '10m' });
    worker.on('lost', lost.open);
    await board.post({}, { name: 'first', id: 'first' });
    await begun.passed;
    freeze();
    failOver();
    ends.open();
    await fresh.post({}, { name: 'second', id: 'second', retain: '1h' });
    await lost.passed; // the end has got no answer, and the new primary does not know the job
    // A claim at the old primary would wait for ten minutes.
    assert.equal(await fresh.result('second', { timeout: '60s' }), 2);
  });
});
