import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createClient } from '@redis/client';
import { z } from 'zod';

import { Abandon, Board, BoardError, CancelRequested, Complete, type Context, type Duration, Lost, Next, NoRetry, RateLimited, Retry, Trash, Worker, type WorkerOptions } from '../src/index.js';
import { Link } from '../src/link.js';
import { Unhandled } from '../src/worker/backoff.js';
import { Engine } from '../src/worker/engine.js';
import { ask, cut as cutAll, ended, gate, leasesTaken, serverOf, started, until } from './harness.js';

const server = await serverOf({ manualClock: false });
const cut = async (): Promise<void> => cutAll(server);

describe('where it claims', () => {
  test('a worker warns when its handler of all jobs gets those of one queue alone', async (t) => {
    const board = server.board();
    board.handler({}, () => 'done');
    const warnings: string[] = [];
    const logger = { debug: () => undefined, info: () => undefined, error: () => undefined, warn: (text: string) => warnings.push(text) };
    new Worker(board, { name: 'w', logger });
    assert.deepEqual(warnings.splice(0), ["w has a handler of all jobs, and claims from default alone: say queues: [] for every queue, or queues: ['default', …] for those"]);
    const named = server.board();
    named.handler('count', () => 1);
    new Worker(named, { logger });
    new Worker(board, { queues: ['default'], logger });
    const id = await board.post({}, { queue: 'other' });
    started(t, board, { queues: [], logger });
    assert.equal(await board.result(id, { timeout: '30s' }), 'done');
    assert.deepEqual(warnings, []);
  });

  test('a server that does not let it in is named, with the user', async (t) => {
    await ask(server.url, 'ACL', 'SETUSER', 'ann', 'on', '>right', '~*', '&*', '+@all');
    t.after(async () => ask(server.url, 'ACL', 'DELUSER', 'ann'));
    const url = new URL(server.url);
    const text = new RegExp(String.raw`^WRONGPASS user and password stand in the URL, redis://user:password@host:port \(${url.host} says to the user 'ann': invalid username-password pair .*\)$`);
    for (const place of [server.url.replace('//', '//ann:wrong@'), { username: 'ann', password: 'wrong', socket: { host: url.hostname, port: Number(url.port) } }]) {
      const board = new Board('jobs', { server: place });
      board.handler('x', () => 1);
      await assert.rejects(new Worker(board, { logger: null }).run({ signals: false }), (error) => error instanceof BoardError && error.code === 'WRONGPASS' && text.test(error.message));
      await assert.rejects(board.count(), (error) => error instanceof BoardError && error.code === 'WRONGPASS' && text.test(error.message));
      board.close();
    }
  });
});

describe('ends', () => {
  test('a task runs and its result comes back typed', async (t) => {
    const board = server.board();
    const add = board.task('add', z.object({ a: z.number(), b: z.coerce.number().default(1) })).handle(({ a, b }) => a + b);
    started(t, board);
    const sum: number = await add.call({ a: 2, b: '3' }, { within: '30s' });
    assert.equal(sum, 5);
    assert.equal(await add.result(await add.post({ a: 2 })), 3);
  });

  test('what a handler returns or throws decides how the job ends', async (t) => {
    const board = server.board();
    class Fatal extends Error {}
    const ways: Record<string, (context: Context) => unknown> = {
      plain: () => 'done',
      nothing: () => undefined,
      complete: () => new Complete({ n: 1 }, { retain: '1d' }),
      next: (context) => (context.job.queue === 'default' ? new Next('second', { way: 'next' }, { name: 'ways', priority: 3 }) : 'advanced'),
      error: () => {
        throw new TypeError('broken');
      },
      retry: (context) => {
        if (context.attempt === 1) throw new Retry('busy', { delay: '1ms' });
        return `try ${String(context.attempt)}`;
      },
      noretry: () => {
        throw new NoRetry('gone', { kind: 'Gone' });
      },
      fatal: () => {
        throw new Fatal('for good');
      },
      abandon: (context) => {
        if (context.attempt === 1) throw new Abandon('not now');
        return 'now';
      },
      trash: () => {
        throw new Trash('no image');
      },
      same: () => new Next('default', {}),
      unserializable: () => 1n,
    };
    const task = board.task<{ way: string }>('ways', { noretry: [Fatal], retries: 2 }).handle((payload, context) => ways[payload.way]?.(context));
    started(t, board, { queues: [] });
    const ids = new Map<string, string>();
    for (const way of Object.keys(ways)) ids.set(way, await task.post({ way }, way === 'error' || way === 'unserializable' ? { retries: 0 } : {}));
    for (const id of ids.values()) await ended(board, id);
    const found: Record<string, string> = {};
    for (const [way, id] of ids) {
      const job = await board.get(id);
      found[way] = [job?.state, job?.kind, job?.message ?? job?.reason, job?.result === undefined ? undefined : JSON.stringify(job.result)].filter((one) => one !== undefined).join(' ');
    }
    assert.deepEqual(found, {
      plain: 'complete "done"',
      nothing: 'complete',
      complete: 'complete {"n":1}',
      next: 'complete "advanced"',
      error: 'failed TypeError broken',
      retry: 'complete Retry busy "try 2"',
      noretry: 'failed Gone gone',
      fatal: 'failed Fatal for good',
      abandon: 'complete not now "now"',
      trash: 'trashed no image',
      same: `failed SameHandler ${found['same']?.slice(19) ?? ''}`,
      unserializable: 'failed PayloadError the result: JSON cannot write it, a BigInt: String(…) makes text of it',
    });
    assert.match(found.same, /would lead to this handler again/);
    const history = await board.history(ids.get('error') ?? '');
    assert.ok(history?.some((one) => one.event === 'log' && one.message?.includes('worker.test')));
  });

  test('the log has the stack of an error that nobody meant', async (t) => {
    const board = server.board();
    const lines: string[] = [];
    const log = (text: string): void => void lines.push(text);
    const task = board.task<{ meant: boolean }>('breaks', { retries: 0 }).handle(function breaks({ meant }) {
      if (meant) throw new NoRetry('gone');
      throw new TypeError('broken', { cause: new Error('the disk') });
    });
    started(t, board, { logger: { debug: () => undefined, info: () => undefined, warn: log, error: log } });
    await ended(board, await task.post({ meant: false }));
    await until(() => lines.length === 1);
    assert.match(lines[0] ?? '', /^breaks \S+ failed \(attempt 1\): TypeError: broken; it is failed.*\nTypeError: broken\n +at .*breaks[^]*\ncaused by Error: the disk\n +at /);
    await ended(board, await task.post({ meant: true }));
    await until(() => lines.length === 2);
    assert.match(lines[1] ?? '', /^breaks \S+ failed [^\n]*$/);
  });

  test('an option that a worker does not have is refused', () => {
    const board = server.board();
    board.task('x').handle(() => 1);
    const misspelt = { concurency: 3 } as WorkerOptions;
    assert.throws(() => new Worker(board, misspelt), /^TypeError: a Worker has no option 'concurency'; there are concurrency, queues, /);
    assert.ok(new Worker(board, { concurrency: undefined }));
  });

  test('a payload that the schema refuses is not tried again', async (t) => {
    const board = server.board();
    board.task('add', z.object({ a: z.number() })).handle(({ a }) => a);
    started(t, board);
    const id = await server.board().post({ a: 'x' }, { name: 'add' });
    await ended(board, id);
    const job = await board.get(id);
    assert.deepEqual([job?.state, job?.kind, job?.attempt], ['failed', 'ArgumentError', 1]);
  });

  test('a name without a handler goes back for a worker that has one', async (t) => {
    const board = server.board();
    const warned: string[] = [];
    board.task('known').handle(() => 1);
    const log = (text: string) => void warned.push(text);
    started(t, board, { logger: { debug: () => undefined, info: () => undefined, warn: log, error: log } });
    const id = await board.post({}, { name: 'unknown', elsewhere: true });
    await until(async () => (await board.get(id))?.state === 'scheduled');
    const other = server.board();
    other.task('unknown').handle(() => 'here');
    started(t, other);
    assert.equal(await other.result(id), 'here');
    assert.equal((await board.get(id))?.left, 10);
    assert.equal(warned.filter((one) => one.includes("the name 'unknown'")).length, 1);
  });

  test('many short jobs are ended together, each once', async (t) => {
    const board = server.board();
    const runs = new Map<string, number>();
    const count = board.task<{ n: number }>('count').handle((payload, context) => {
      runs.set(context.id, (runs.get(context.id) ?? 0) + 1);
      return payload.n % 2 === 0 ? payload.n : undefined;
    });
    const ids = await count.postMany(Array.from({ length: 1000 }, (_, n) => ({ n })), { retain: '1h' });
    const worker = started(t, board, { concurrency: 20, prefetch: 50 });
    assert.equal(await board.waitFor('empty', { timeout: '1m' }), true);
    assert.equal(runs.size, 1000);
    assert.ok([...runs.values()].every((times) => times === 1));
    await until(() => worker.done === 1000);
    assert.equal((await board.get(ids[4] ?? ''))?.result, 4);
    assert.equal((await board.count({ state: 'complete' })), 1000);
  });
});

describe('reports', () => {
  test('come in order and before the end', async (t) => {
    const board = server.board();
    const task = board.task('report').handle(async (_, context) => {
      context.progress(10, 'begun');
      context.log('one');
      context.log('two');
      context.setMeta({ host: 'a', n: 1 });
      await context.flush();
      const seen = await board.get(context.id);
      context.setMeta({ n: 2 });
      context.save({ at: 5 });
      context.progress(90);
      return [seen?.progress, seen?.stage];
    });
    started(t, board);
    const id = await task.post({});
    assert.deepEqual(await task.result(id), [10, 'begun']);
    const job = await board.get(id);
    assert.deepEqual([job?.meta, job?.payload, job?.progress], [{ host: 'a', n: '2' }, { at: 5 }, 100]);
    assert.deepEqual((await board.history(id))?.filter((one) => one.event === 'log').map((one) => one.message), ['one', 'two']);
  });
});

describe('reports', () => {
  test('that are too long are cut, and take nothing with them', async (t) => {
    const board = server.board();
    const task = board.task<{ done: number }>('x', { retries: 0 }).handle((_, context) => {
      context.save({ done: 1 });
      context.setMeta({ page: 7 });
      context.progress(50, 'é'.repeat(5000));
      context.log('x'.repeat(5000));
    });
    const id = await task.post({ done: 0 });
    started(t, board);
    await ended(board, id);
    const job = await board.get(id, ['payload', 'meta', 'stage']);
    assert.deepEqual([job?.payload, job?.meta, job?.stage?.length], [{ done: 1 }, { page: '7' }, 2049]);
    assert.equal((await board.history(id))?.find((one) => one.event === 'log')?.message?.length, 4096);
  });
});

test('a worker remembers some names that it has no handler for', () => {
  const unhandled = new Unhandled();
  assert.ok(unhandled.wait('first').first);
  for (let n = 1; n < 10_000; n += 1) unhandled.wait(String(n));
  assert.ok(!unhandled.wait('first').first);
  unhandled.wait('one more');
  assert.ok(unhandled.wait('first').first);
});

describe('a next step', () => {
  test('may have the same name in a queue that others serve', async (t) => {
    const board = server.board();
    board.handler('step', () => new Next('of others', { n: 2 }));
    const id = await board.post({ n: 1 }, { name: 'step', retries: 0 });
    started(t, board);
    await until(async () => (await board.get(id))?.queue === 'of others');
    const job = await board.get(id);
    assert.deepEqual([job?.state, job?.payload], ['ready', { n: 2 }]);
  });
});

describe('output', () => {
  const whole = async (board: Board, id: string): Promise<string> => {
    let text = '';
    for await (const chunk of board.output(id, { timeout: '30s' })) text += chunk.text;
    return text;
  };

  test('is read while the handler writes', async (t) => {
    const board = server.board();
    const { open, passed } = gate();
    const task = board.task('writes').handle(async (_, context) => {
      context.output('the ');
      context.output(new TextEncoder().encode('sky '));
      context.progress(50);
      await passed;
      context.output('is blue');
    });
    const id = await task.post({});
    started(t, board);
    let text = '';
    for await (const chunk of board.output(id, { timeout: '30s' })) {
      text += chunk.text;
      if (text === 'the sky ') open();
    }
    assert.equal(text, 'the sky is blue');
  });

  test('comes whole, in order, however long and however fast', async (t) => {
    const board = server.board();
    const words = Array.from({ length: 500 }, (_, n) => `wörd ${String(n)}\n`);
    const task = board.task('writes').handle(async (_, context) => {
      for (const [n, word] of words.entries()) {
        context.output(word);
        context.progress(n / 5);
        if (n % 100 === 0) await context.flush();
      }
      context.output('');
      context.output('é'.repeat(20_000));
    });
    await task.post({}, { id: 'j' });
    started(t, board);
    assert.equal(await whole(board, 'j'), words.join('') + 'é'.repeat(20_000));
  });

  test('a new try writes anew', async (t) => {
    const board = server.board();
    const task = board.task('writes').handle((_, context) => {
      context.output(`try ${String(context.attempt)}`);
      if (context.attempt === 1) throw new Retry('it broke off', { delay: '0s' });
    });
    const id = await task.post({});
    started(t, board);
    await ended(board, id);
    const chunks = [];
    for await (const { text, attempt, anew } of board.output(id)) chunks.push({ text, attempt, anew });
    assert.deepEqual(chunks, [{ text: 'try 2', attempt: 2, anew: true }]);
  });

  test('is whole, although the connection breaks', async (t) => {
    const board = server.board();
    const task = board.task('writes').handle(async (_, context) => {
      for (let n = 0; n < 5; n += 1) {
        context.output(`${String(n)} `);
        await cut();
        await context.flush();
      }
    });
    const id = await task.post({});
    started(t, board);
    await until(async () => (await board.state(id).catch(() => null)) === 'complete'); // this connection breaks, too
    assert.equal(await whole(board, id), '0 1 2 3 4 ');
  });

  for (const concurrency of [1, 2, 5]) {
    test(`a claim that came back is written behind what is there: ${String(concurrency)} at once`, async (t) => {
      const board = server.board();
      const ids = ['a', 'b', 'c'];
      await server.board().postMany([{}, {}, {}], { ids, name: 'writes', queue: 'other' });
      board.task('writes').handle(async (_, context) => {
        context.output('new ');
        await context.flush();
        context.output('words');
      });
      const name = `writer-${String(concurrency)}`;
      started(t, board, { name, concurrency, queues: ['mine'], lease: '10m' });
      await until(async () => new RegExp(`name=${name}:claims .*cmd=job.claim`).test(String(await ask(server.url, 'CLIENT', 'LIST'))));
      const held = await server.board().claim(name, { count: 3, lease: '10m', queues: ['other'] });
      for (const job of held) {
        await board.heartbeat(name, job, { output: [1, 'old '] });
        await board.heartbeat(name, job, { output: [2, 'chunks '] });
      }
      await cut();
      for (const id of ids) assert.equal(await whole(board, id), 'old chunks new words');
      await board.post({}, { id: 'd', name: 'writes', queue: 'mine' });
      assert.equal(await whole(board, 'd'), 'new words');
    });
  }

  test('that is off fails no job, and only text and bytes are written', async (t) => {
    const board = server.board();
    const warned: string[] = [];
    const log = (text: string) => void warned.push(text);
    await board.settingsSet({ 'output-bytes': 0 });
    const task = board.task('writes').handle(async (_, context) => {
      assert.throws(() => {
        context.output(7 as never);
      }, /a chunk of output is text or bytes, not 7/);
      context.output('a');
      await context.flush();
      context.output('b');
      return 'done';
    });
    started(t, board, { logger: { debug: () => undefined, info: () => undefined, warn: log, error: log } });
    const id = await task.post({});
    assert.equal(await task.result(id), 'done');
    assert.equal(await whole(board, id), '');
    assert.equal(warned.filter((one) => one.includes('its output is written no longer: LIMIT output-bytes')).length, 1);
  });
});

describe('what is taken away', () => {
  for (const how of ['cancelled', 'deleted', 'released'] as const) {
    test(`a job that is ${how} stops its handler, and the worker goes on`, async (t) => {
      const board = server.board();
      let reason: unknown;
      const hold = board.task<{ id: string }>('hold').handle(async ({ id }, context) => {
        if (id === 'b') return 'next';
        if (context.attempt > 1) return 'again';
        await context.sleep('1h').catch((error: unknown) => {
          reason = error;
          throw error;
        });
        return '';
      });
      await hold.post({ id: 'a' }, { id: 'a' });
      started(t, board, { concurrency: 1 });
      await until(async () => (await board.get('a'))?.state === 'claimed');
      if (how === 'cancelled') await board.cancel('a');
      if (how === 'deleted') await board.delete('a');
      if (how === 'released') await board.release('a');
      await until(() => reason !== undefined);
      assert.ok(how === 'cancelled' ? reason instanceof CancelRequested : reason instanceof Lost);
      await hold.post({ id: 'b' }, { id: 'b' });
      assert.equal(await hold.result('b'), 'next');
      if (how === 'cancelled') assert.equal(await board.state('a'), 'cancelled');
      if (how === 'released') assert.equal(await hold.result('a'), 'again');
    });
  }

  for (const how of ['cancel', 'delete'] as const) {
    test(`what is published before the claim arrives is heard: ${how}`, async (t) => {
      const board = server.board();
      const { open, passed: heard } = gate();
      const [asks, subscribe] = [Reflect.get(Link.prototype, 'ask'), Reflect.get(Link.prototype, 'subscribe')];
      t.after(() => Object.assign(Link.prototype, { ask: asks, subscribe }));
      Link.prototype.ask = async function (words, asking) {
        const reply = await asks.call(this, words, asking);
        if (words[0] === 'JOB.CLAIM' && (await board.count({ state: 'claimed' })) > 0) {
          await board[how]('a');
          await heard;
        }
        return reply;
      };
      Link.prototype.subscribe = async function (channels, hear) {
        return subscribe.call(this, channels, (message, channel) => {
          hear(message, channel);
          open();
        });
      };
      board.task<{ id: string }>('hold').handle(async ({ id }, context) => (id === 'a' ? context.sleep('1h') : undefined));
      started(t, board, { concurrency: 1, lease: '1h' });
      await until(async () => ((await ask(server.url, 'PUBSUB', 'CHANNELS')) as string[]).length > 0);
      for (const id of ['a', 'b']) await board.post({ id }, { id, name: 'hold' });
      await until(async () => (await board.state('b')) === 'complete');
    });
  }

  test('what happens before it listens is heard, of a claim under way too', async (t) => {
    const board = server.board();
    const { open: cancelled, passed: mayListen } = gate();
    const { open: listens, passed: mayArrive } = gate();
    const [asks, subscribe] = [Reflect.get(Link.prototype, 'ask'), Reflect.get(Link.prototype, 'subscribe')];
    t.after(() => Object.assign(Link.prototype, { ask: asks, subscribe }));
    Link.prototype.ask = async function (words, asking) {
      const reply = await asks.call(this, words, asking);
      if (words[0] === 'JOB.CLAIM' && (await board.count({ state: 'claimed' })) > 0) {
        await board.cancel('a');
        cancelled();
        await mayArrive;
      }
      return reply;
    };
    Link.prototype.subscribe = async function (channels, hear) {
      await mayListen;
      await subscribe.call(this, channels, hear);
      setTimeout(listens, 200); // after the heartbeat that follows, which knows of no job
    };
    board.task('hold').handle(async (_, context) => context.sleep('1h'));
    started(t, board, { lease: '1h' });
    await board.post({}, { id: 'a', name: 'hold' });
    await until(async () => (await board.state('a')) === 'cancelled');
  });

  test('a handler that ends a cancelled job all the same is cancelled', async (t) => {
    const board = server.board();
    const { open, passed } = gate();
    const deaf = board.task('deaf').handle(async () => {
      await passed;
      return 1;
    });
    const id = await deaf.post({});
    started(t, board);
    await until(async () => (await board.get(id))?.state === 'claimed');
    await board.cancel(id);
    open();
    await until(async () => (await board.state(id)) === 'cancelled');
  });

  test('without Pub/Sub the heartbeats tell', async (t) => {
    const board = server.board();
    let [began, lost] = [false, false];
    const hold = board.task('hold').handle(async (_, context) => {
      began = true;
      await context.sleep('1h').finally(() => {
        lost = context.lost;
      });
    });
    const id = await hold.post({});
    started(t, board, { listen: false, lease: '2s' });
    await until(() => began); // a claim whose lease is over when it comes is not begun
    await board.delete(id);
    await until(() => lost);
  });
});

describe('broken connections', () => {
  test('cost nothing, and nothing is done twice', async (t) => {
    const board = server.board();
    const runs: string[] = [];
    const { open, passed } = gate();
    const task = board.task<{ n: number }>('work').handle(async (payload, context) => {
      runs.push(context.id);
      if (payload.n === 0) await passed;
      return payload.n;
    });
    const first = await task.post({ n: 0 });
    started(t, board, { lease: '1m' });
    await until(() => runs.length === 1);
    const deadline = async () => (await board.get(first))?.deadline ?? 0;
    for (let times = 0; times < 3; times += 1) {
      const before = await deadline();
      await cut();
      await until(async () => (await deadline().catch(() => 0)) > before);
    }
    const ids = await task.postMany(Array.from({ length: 50 }, (_, n) => ({ n: n + 1 })));
    open();
    await cut();
    assert.equal(await task.result(first), 0);
    for (const [n, id] of ids.entries()) assert.equal(await task.result(id), n + 1);
    assert.equal(new Set(runs).size, runs.length);
    assert.equal((await board.get(first))?.attempt, 1);
  });

  for (const burst of [true, false]) {
    test(`ends that the server has lost are made again${burst ? ', also in a burst' : ''}`, async (t) => {
      const board = server.board();
      const began: number[] = [];
      const [first, second] = [gate(), gate()];
      const task = board.task<number>('work', { retain: '1h' }).handle(async (n, context) => {
        began.push(n);
        await (n < 4 ? first : second).passed;
        return context.attempt;
      });
      const ids = await task.postMany([0, 1, 2, 3, 4, 5, 6, 7]);
      const worker = new Worker(board, { concurrency: 4, lease: '10m', logger: null });
      const running = worker.run({ burst, signals: false });
      t.after(async () => {
        second.open();
        await worker.stop();
        await running;
      });
      await until(() => began.length === 4);
      await ask(server.url, 'COPY', board.name, 'before');
      first.open();
      await until(() => began.length === 8); // the server has taken the ends of the first four
      await ask(server.url, 'COPY', 'before', board.name, 'REPLACE');
      await cut();
      second.open();
      if (burst) await running;
      const results = [];
      for (const id of ids) results.push(await task.result(id, { timeout: '30s' }));
      assert.deepEqual(results, Array.from(ids, () => 1));
      assert.deepEqual(began.sort(), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]);
    });
  }

  test('a claim whose end is refused is left to its lease, and not run again and again', async (t) => {
    await ask(server.url, 'ACL', 'SETUSER', 'w', 'on', 'nopass', '~*', '&*', '+@all', '-job.consume');
    t.after(async () => ask(server.url, 'ACL', 'DELUSER', 'w'));
    const board = new Board('jobs', { server: server.url.replace('//', '//w:x@') });
    t.after(() => {
      board.close();
    });
    let runs = 0;
    const task = board.task('work').handle(() => {
      runs += 1;
    });
    await task.post({});
    started(t, board, { concurrency: 2, lease: '10m', block: '10ms' });
    await until(() => runs === 1);
    const asked = async (): Promise<number> => Number(/cmdstat_job\.claim:calls=(\d+)/.exec(String(await ask(server.url, 'INFO', 'commandstats')))?.[1] ?? 0);
    const before = await asked();
    await until(async () => (await asked()) >= before + 10);
    assert.equal(runs, 1);
  });

  test('nothing is begun after a pause before it is known whose the job is', async (t) => {
    const board = server.board();
    const seen: string[] = [];
    const task = board.task<string>('work').handle(async (how, context) => {
      const lost = context.attempt === 1;
      if (lost) await other.release([context.id]);
      context.oursUntil = 0; // as after a pause that was longer than the lease
      try {
        if (how === 'check') context.check();
        if (how === 'signal') seen.push(`aborted ${String(context.signal.aborted)}`);
        await context.step('charge', () => seen.push(`charged ${String(context.attempt)}`));
      } catch (error) {
        seen.push((error as Error).constructor.name);
        throw error;
      }
    });
    const other = server.board();
    started(t, board, { listen: false, concurrency: 1 });
    await task.result(await task.post('step', { retain: '1h' }));
    assert.deepEqual(seen.splice(0), ['Lost', 'charged 2']); // the step asks the server first: the second job is still ours
    const id = await task.post('check');
    await until(() => seen.length === 2);
    assert.deepEqual(seen.splice(0), ['Lost', 'Lost']);
    await board.cancel([id]);
    await task.post('signal');
    await until(() => seen.length >= 2);
    assert.deepEqual(seen.slice(0, 2), ['aborted true', 'Lost']);
  });

  test('a job whose lease is not known is not lost by a pause: the server is asked', async (t) => {
    const board = server.board();
    const leases = leasesTaken(t);
    let beats = 0;
    const look = Reflect.get(Engine.prototype, 'lookForStuck');
    t.mock.method(Engine.prototype, 'lookForStuck', function (this: Engine) {
      beats += 1;
      look.call(this);
    });
    const warnings: string[] = [];
    const ignored = (): void => undefined;
    const seen: string[] = [];
    board.task<string>('work').handle(async (how, context) => {
      try {
        context.oursUntil = 0; // as after a pause that was longer than a second
        context.check();
        seen.push(how);
        if (how === 'kept') {
          const { now } = Date;
          let by = 0;
          const clock = t.mock.method(Date, 'now', () => now() + (by += 5000)); // longer than the guess between any two beats
          const before = beats;
          await until(() => beats > before);
          clock.mock.restore();
        }
        const isReleased = how === 'released' && context.attempt === 1;
        if (isReleased) await server.board().release([context.id]);
        await until(() => (isReleased ? context.lost : !context.isLate()));
        context.check();
        seen.push('ours');
      } catch (error) {
        seen.push((error as Error).constructor.name);
        if (how === 'kept') throw error;
      }
    });
    started(t, board, { name: 'w1', concurrency: 1, listen: false, block: '10m', logger: { debug: ignored, info: ignored, error: ignored, warn: (text) => warnings.push(text) } });
    const claims = async (): Promise<string | undefined> => /id=(\d+) [^\n]*name=w1:claims [^\n]*flags=b/.exec(String(await ask(server.url, 'CLIENT', 'LIST')))?.[1];
    for (const how of ['kept', 'released']) {
      await until(async () => (await claims()) !== undefined);
      await ask(server.url, 'CLIENT', 'KILL', 'ID', (await claims()) ?? ''); // the next claim may bring what this one has taken
      await board.post(how, { name: 'work', lease: '1h', queue: 'default' });
      const [first, second] = [how, how === 'kept' ? 'ours' : 'Lost'];
      await until(() => seen.length >= 2 || seen.includes('Lost'));
      assert.deepEqual(seen.splice(0, 2), [first, second]);
    }
    assert.deepEqual(leases.slice(0, 2), [1000, 1000]);
    assert.deepEqual(warnings.filter((text) => text.startsWith('no heartbeat for')), []);
  });

  for (const where of ['task', 'setting'] as const) {
    test(`the lease of a job holds and is kept: of the ${where}`, async (t) => {
      const board = server.board();
      const { open, passed } = gate();
      if (where === 'setting') await board.settingsSet({ lease: '9s' });
      const short = board.task('short', where === 'task' ? { lease: '9s' } : {}).handle(async () => passed);
      const long = board.task('long', { lease: '1h' }).handle(async () => passed);
      const [a, b] = [await short.post({}), await long.post({})];
      started(t, board);
      await until(async () => (await board.count({ state: 'claimed' })) === 2);
      const lease = async (id: string): Promise<number> => {
        const job = await board.get(id);
        return (job?.deadline ?? 0) - (job?.claimed ?? 0);
      };
      assert.ok((await lease(a)) < 30_000);
      assert.ok((await lease(b)) >= 3_600_000);
      const first = await board.get(a);
      await until(() => Date.now() > (first?.deadline ?? 0) + 300);
      open();
      await until(async () => (await board.count({ state: 'claimed' })) === 0);
      assert.equal((await board.stats()).lapsed, 0);
    });
  }

  for (const register of [true, false]) {
    test(`a restart under a name gets its jobs at once, as new claims: ${register ? '' : 'not '}registered`, async (t) => {
      const board = server.board();
      await board.post({}, { id: 'a', name: 'work' });
      const [before] = await server.board().claim('w1', { lease: '10m' });
      const task = board.task('work').handle((_, context) => [context.attempt, context.token > (before?.token ?? Infinity)]);
      started(t, board, { name: 'w1', register });
      assert.deepEqual(await task.result('a'), [2, true]);
      assert.equal((await board.get('a'))?.lapses, 1);
    });
  }

  test('two workers of one name never run a job under one token', async (t) => {
    const warnings: string[] = [];
    const logger = { debug: () => undefined, info: () => undefined, error: () => undefined, warn: (text: string) => warnings.push(text) };
    const { open, passed } = gate();
    const began: [string, number][] = [];
    const start = (block: Duration): void => {
      const board = server.board();
      board.task('work').handle(async (_, context) => {
        began.push([context.id, context.token]);
        await passed;
      });
      started(t, board, { name: 'w1', concurrency: 2, block, logger });
    };
    const board = server.board();
    await board.post({}, { id: 'a', name: 'work' });
    start('10m');
    await until(async () => began.length === 1 && /name=w1:claims .*flags=b/.test(String(await ask(server.url, 'CLIENT', 'LIST'))));
    await until(async () => Number(((await ask(server.url, 'PUBSUB', 'NUMSUB', 'job.worker:board:w1')) as unknown[])[1]) === 1);
    start('50ms'); // it takes the job over, and both go on claiming while they hold it
    await until(() => began.length === 2);
    await board.postMany([{}, {}], { ids: ['b', 'c'], name: 'work' });
    await until(() => began.length === 4);
    assert.equal(began.filter(([id]) => id === 'a').length, 2);
    assert.equal(new Set(began.map(([, token]) => token)).size, 4);
    open();
    await until(async () => (await board.count({ state: 'claimed' })) === 0);
    assert.equal((await board.stats()).lapsed, 1);
    assert.equal(warnings.filter((text) => text.includes('has another worker of this name started?')).length, 1);
  });
});

describe('a server that takes no writes', () => {
  test('is named once, and again when it is back', async (t) => {
    const board = server.board();
    const warnings: string[] = [];
    const logger = { debug: () => undefined, info: () => undefined, error: () => undefined, warn: (text: string) => warnings.push(text) };
    const task = board.task('work').handle(() => 'done');
    started(t, board, { name: 'w', block: '20ms', logger });
    await task.result(await task.post({})); // it has claimed
    await ask(server.url, 'CONFIG', 'RESETSTAT');
    await ask(server.url, 'REPLICAOF', '127.0.0.1', '1');
    try {
      const refused = async (): Promise<number> => Number(/cmdstat_job\.claim:.*rejected_calls=(\d+)/.exec(String(await ask(server.url, 'INFO', 'commandstats')))?.[1] ?? 0);
      await until(async () => (await refused()) >= 6);
    } finally {
      await ask(server.url, 'REPLICAOF', 'NO', 'ONE');
    }
    assert.equal(await task.result(await task.post({})), 'done');
    await until(() => warnings.length >= 2);
    assert.equal(warnings.length, 2, warnings.join('\n'));
    assert.match(warnings[0] ?? '', new RegExp(`^w: the server cannot do it now \\(.*\\): READONLY .*\\(${new URL(server.url).host}\\)`));
    assert.match(warnings[1] ?? '', /^w: the server is back after/);
  });
});

describe('stopping', () => {
  test('with work given back the process that it owns ends with 1', async () => {
    const board = server.board();
    const { open, passed } = gate();
    let began = false;
    board.task('work').handle(async () => {
      began = true;
      await passed;
    });
    await board.post({}, { name: 'work' });
    const worker = new Worker(board, { logger: null });
    const running = worker.run();
    await until(() => began);
    void worker.stop({ now: true });
    assert.equal(await running, false);
    open();
    const found = process.exitCode;
    process.exitCode = undefined;
    assert.equal(found, 1);
  });

  for (const way of ['stop twice', 'a signal and stop', 'stop and a signal', 'two signals', 'stop, and stop now'] as const) {
    const hurries = way === 'two signals' || way === 'stop, and stop now';
    test(`${hurries ? 'hurries' : 'waits for handlers'}: ${way}`, async (t) => {
      const before = process.exitCode;
      t.after(() => {
        process.exitCode = before;
      });
      const board = server.board();
      const [begun, mayEnd] = [gate(), gate()];
      const task = board.task('work', { retain: '1h' }).handle(async (_, context) => {
        begun.open();
        await mayEnd.passed;
        return context.mustStop;
      });
      const id = await task.post({});
      const texts: string[] = [];
      const tell = (text: string): unknown => texts.push(text);
      const worker = new Worker(board, { stopWithin: '10m', logger: { debug: tell, info: tell, warn: tell, error: tell } });
      const others = process.listeners('SIGTERM');
      const running = worker.run();
      // A signal to the process would end the tests.
      const heed = process.listeners('SIGTERM').find((one) => !others.includes(one));
      const signal = (): void => heed?.('SIGTERM');
      await begun.passed;
      if (way.startsWith('stop')) void worker.stop();
      else signal();
      if (way.endsWith('stop') || way.endsWith('twice')) void worker.stop();
      else if (way.endsWith('now')) void worker.stop({ now: true });
      else signal();
      if (!hurries) {
        await until(() => texts.some((text) => text.includes('waits up to 600 s')));
        await board.count(); // what gives back at once has done so
        mayEnd.open();
      }
      assert.equal(await running, !hurries);
      mayEnd.open();
      if (hurries) assert.equal(await board.state(id), 'ready');
      else assert.equal(await task.result(id, { timeout: '60s' }), false);
    });
  }

  test('a worker that does not run changes nothing for the next run', async () => {
    const board = server.board();
    const task = board.task('work', { retain: '1h' }).handle(() => 'done');
    const worker = new Worker(board, { logger: null });
    await worker.stop();
    for (const round of [1, 2]) {
      const id = await task.post({ round });
      const running = worker.run({ signals: false });
      assert.equal(await task.result(id, { timeout: '60s' }), 'done');
      await worker.stop();
      assert.equal(await running, true);
      await worker.stop(); // once more, when it has ended
    }
  });

  test('lets handlers finish, and gives back what has not begun', async () => {
    const board = server.board();
    const { open, passed } = gate();
    const began: string[] = [];
    const work = board.task('work').handle(async (_, context) => {
      began.push(context.id);
      await passed;
      return context.goingHome;
    });
    await work.postMany([{}, {}]);
    const worker = new Worker(board, { concurrency: 1, prefetch: 1, logger: null });
    const running = worker.run({ signals: false });
    await until(async () => began.length === 1 && (await board.count({ state: 'claimed' })) === 2);
    const stopped = worker.stop();
    await until(async () => (await board.count({ state: 'ready' })) === 1);
    open();
    await stopped;
    assert.equal(await running, true);
    assert.equal(await work.result(began[0] ?? ''), true);
    assert.deepEqual((await board.info())?.claimed, 0);
  });

  test('gives back what does not end in time', async () => {
    const board = server.board();
    let begun = false;
    const work = board.task('work').handle(async (_, context) => {
      begun = true;
      await context.sleep('1h');
    });
    const id = await work.post({});
    const worker = new Worker(board, { stopWithin: '10ms', logger: null });
    const running = worker.run({ signals: false });
    await until(() => begun); // the worker knows that it has the job
    await worker.stop();
    assert.equal(await running, false);
    const job = await board.get(id);
    assert.deepEqual([job?.state, job?.left, job?.reason], ['ready', 10, 'the worker stops']);
  });

  test('gives nothing back before the server has seen the end of its last claim', async (t) => {
    const board = server.board();
    const begun = gate();
    const work = board.task('work').handle(async (_, context) => {
      begun.open();
      await context.sleep('1h');
    });
    const id = await work.post({});
    const worker = new Worker(board, { listen: false, concurrency: 2, lease: '1h', stopWithin: '10ms', logger: null });
    const running = worker.run({ signals: false });
    await begun.passed;
    const sent: string[] = [];
    const [asks, asksAll] = [Reflect.get(Link.prototype, 'ask'), Reflect.get(Link.prototype, 'askAll')];
    t.mock.method(Link.prototype, 'ask', async function (this: Link, ...all: Parameters<typeof asks>) {
      sent.push(String(all[0][0]));
      return asks.apply(this, all);
    });
    t.mock.method(Link.prototype, 'askAll', async function (this: Link, ...all: Parameters<typeof asksAll>) {
      sent.push(...all[0].map(([command]) => String(command)));
      return asksAll.apply(this, all);
    });
    const pid = Number(/process_id:(\d+)/.exec(String(await ask(server.url, 'INFO', 'server')))?.[1]);
    const found = (): string[] => sent.filter((command) => command === 'PING' || command === 'JOB.ABANDON');
    process.kill(pid, 'SIGSTOP');
    t.after(() => process.kill(pid, 'SIGCONT'));
    const stopped = worker.stop();
    await until(() => found().length > 0);
    const before = found();
    process.kill(pid, 'SIGCONT');
    await stopped;
    assert.equal(await running, false);
    assert.deepEqual([before, found()], [['PING'], ['PING', 'PING', 'JOB.ABANDON']]);
    assert.equal(await board.state(id), 'ready');
  });

  test('a burst ends when there is no job', async () => {
    const board = server.board();
    const work = board.task<{ more: number }>('work').handle(async ({ more }) => {
      if (more > 0) await work.post({ more: more - 1 });
    });
    await work.post({ more: 3 });
    const worker = new Worker(board, { concurrency: 2, logger: null });
    assert.equal(await worker.run({ burst: true, signals: false }), true);
    assert.equal(worker.done, 4);
  });

  test('a worker that may not work says so', async () => {
    const board = server.board();
    board.task('work').handle(() => 1);
    const admin = server.board('x');
    await admin.post(1); // the connection is there
    const { send } = board as unknown as { send: Board['send'] };
    assert.ok(send);
    const other = createClient({ url: server.url });
    await other.connect();
    await other.sendCommand(['SET', 'board', 'text']);
    await assert.rejects(new Worker(board, { logger: null }).run({ signals: false }), /WRONGTYPE/);
    other.destroy();
    assert.throws(() => new Worker(server.board()), /there are no handlers/);
    assert.throws(() => new Worker(board, { concurrency: 0 }), /concurrency is a whole number from 1/);
  });
});

describe('costs', () => {
  test('that are known afterwards come together, the latest of each limit', async (t) => {
    const board = server.board();
    await board.settingsSet({ rate: 1000, 'rate-period': '1h', burst: 5000 }, { limit: 'tokens' });
    await board.settingsSet({ rate: 1000, 'rate-period': '1h', burst: 5000 }, { limit: 'calls' });
    await board.settingsSet({ limits: ['tokens', 'calls'] }, { queue: 'default' });
    const task = board.task('work', { retain: '1m' }).handle((_, context) => {
      context.cost({ tokens: 10 });
      context.cost({ calls: 2 });
      context.cost({ tokens: 812 });
      context.cost(3);
      assert.throws(() => {
        context.cost({ tokens: -1 });
      }, /a cost is a whole number of permits/);
    });
    const id = await task.post({});
    started(t, board);
    await task.result(id);
    assert.deepEqual((await board.get(id))?.spent, { cost: 3, costs: { calls: 2, tokens: 812 } });
  });

  test('a limit that an upstream refuses rests, and one that is none of the job delays it alone', async (t) => {
    const board = server.board();
    await board.settingsSet({ concurrency: 10 }, { limit: 'api' });
    await board.settingsSet({ limits: ['api'] }, { queue: 'default' });
    board.handler('own', () => {
      throw new RateLimited('api', '1h', '429');
    });
    board.handler('foreign', () => {
      throw new RateLimited('other', '1h');
    });
    const foreign = await board.post({}, { name: 'foreign', id: 'foreign' });
    started(t, board, { concurrency: 1 });
    await until(async () => (await board.state(foreign)) === 'scheduled');
    const own = await board.post({}, { name: 'own', id: 'own' });
    await until(async () => (await board.limits()).some((one) => one.limit === 'api' && one.paused > 0));
    await until(async () => (await board.state(own)) === 'ready');
    const job = await board.get(own, ['state', 'left', 'attempt', 'reason']);
    assert.deepEqual([job?.state, job?.left], ['ready', 10]);
  });
});
