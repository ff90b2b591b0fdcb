// Jobs that remember and wait: steps, signals, children.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { BoardError, collected, Stopped, Waits } from '../src/index.js';
import { TestServer } from '../src/testing.js';
import { cut as cutAll, ended, gate, serverOf, started, until } from './harness.js';

const server = await serverOf({ manualClock: false });
const cut = async (): Promise<void> => cutAll(server);

describe('steps', () => {
  test('what is done is not done again', async (t) => {
    const board = server.board();
    const calls: string[] = [];
    let stored: unknown[] = [];
    const order = board.task('order', { backoff: '1ms', retries: 3 }).handle(async (_, context) => {
      const receipt = await context.step('charge', () => {
        calls.push(`charge ${context.id}`);
        return { sum: 5 };
      });
      for await (const row of context.iterate('rows', ['a', 'b', 'c'], { every: 2 })) {
        calls.push(row);
        if (row === 'c' && context.attempt === 1) throw new Error('broken');
      }
      await assert.rejects(context.step('charge', () => 1), /two steps of this run are called 'charge'/);
      stored = Object.entries(context.job.steps).map(([name, { value }]) => [name, value]);
      return receipt;
    });
    const id = await order.post({}, { id: 'a' });
    started(t, board);
    assert.deepEqual(await order.result(id), { sum: 5 });
    assert.deepEqual(calls, ['charge a', 'a', 'b', 'c', 'c']);
    assert.deepEqual(stored, [['charge', { sum: 5 }], ['rows', 2]]);
  });

  test('a step is stored once, although the connection breaks', async (t) => {
    const board = server.board();
    const { open, passed } = gate();
    let calls = 0;
    const task = board.task('work').handle(async (_, context) => {
      const value = await context.step('one', async () => {
        calls += 1;
        await passed;
        await cut();
        return calls;
      });
      const nothing: unknown = await context.step<unknown>('two', () => undefined);
      return [value, nothing];
    });
    started(t, board, { lease: '1m' });
    const id = await task.post({});
    await until(() => calls === 1);
    open();
    // The test's own connection breaks, too.
    await until(async () => (await board.state(id).catch(() => null)) === 'complete');
    assert.deepEqual(await task.result(id), [1, null]);
    assert.equal(calls, 1);
  });
});

describe('signals', () => {
  test('a job waits for one, and its steps are not done again', async (t) => {
    const board = server.board();
    const calls: string[] = [];
    const refund = board.task('refund').handle(async (_, context) => {
      await context.step('draft', () => calls.push('draft'));
      const answer = await context.waitFor<{ sum: number }>('approved', { within: '2d' });
      calls.push(`answer of ${answer?.sender ?? ''}`);
      return answer?.value.sum;
    });
    const id = await refund.post({});
    started(t, board);
    await until(async () => (await board.state(id)) === 'blocked');
    const waiting = await board.get(id, ['state', 'awaits', 'left', 'attempt']);
    assert.deepEqual([waiting?.awaits?.missing, waiting?.awaits?.ontimeout, waiting?.left], [['approved'], 'run', 10]);
    assert.deepEqual((await collected(board.list({ awaits: 'approved' }))).map((job) => job.id), [id]);
    assert.deepEqual(await board.signal('approved', id, { value: { sum: 5 }, sender: 'eve' }), ['woken']);
    assert.equal(await refund.result(id), 5);
    assert.deepEqual(calls, ['draft', 'answer of eve']);
    const job = await board.get(id, ['signals', 'steps', 'attempt']);
    assert.deepEqual([job?.signals['approved']?.value, job?.steps['draft']?.value, job?.attempt], [{ sum: 5 }, 1, 2]);
    assert.equal((JSON.parse(JSON.stringify(job)) as { signals: { approved: { sender: string } } }).signals.approved.sender, 'eve');
  });

  test('one that has come already costs no second run', async (t) => {
    const board = server.board();
    const task = board.task('work').handle(async (_, context) => {
      const found = await context.waitFor(['a', 'b'], { any: true, step: 'first' });
      const both = await context.waitFor(['a', 'b']);
      return [Object.keys(found ?? {}), Object.keys(both ?? {}).sort(), context.attempt];
    });
    const id = await task.post({});
    assert.deepEqual([await board.signal('b', id), await board.signal('a', id, { value: 1 })], [['kept'], ['kept']]);
    started(t, board);
    assert.deepEqual(await task.result(id), [['b'], ['a', 'b'], 1]);
  });

  test('all jobs that wait for it get it', async (t) => {
    const board = server.board();
    const task = board.task('work').handle(async (_, context) => (await context.waitFor('go'))?.value);
    const ids = await task.postMany([{}, {}, {}]);
    started(t, board);
    await until(async () => (await board.count({ awaits: 'go' })) === 3);
    assert.equal((await board.signalWhere('go', { awaits: 'go' }, { value: 'now', dryrun: true })).count, 3);
    assert.equal((await board.signalWhere('go', { awaits: 'go' }, { value: 'now', count: 2 })).count, 3);
    for (const id of ids) assert.equal(await task.result(id), 'now');
  });

  test('after its time the handler gets null, and in every later run', async () => {
    const private_ = await TestServer.start();
    try {
      const board = private_.board();
      const found: unknown[] = [];
      const task = board.task('work', { retries: 1, backoff: '1s' }).handle(async (_, context) => {
        found.push(await context.waitFor('approved', { within: '2d' }));
        if (context.attempt === 2) throw new Error('again');
      });
      const id = await task.post({});
      const [first] = await private_.work(board);
      assert.equal(first?.state, 'blocked');
      await private_.advance('2d');
      await private_.work(board);
      await private_.advance('1h');
      assert.deepEqual(await board.signal('approved', id), ['kept']);
      await private_.work(board);
      assert.deepEqual(found, [null, null]);
      const late = await board.post({}, { name: 'late', elsewhere: true });
      board.handler('late', async (_, context) => context.waitFor('never', { within: '1m', ontimeout: 'fail' }));
      await private_.work(board);
      await private_.advance('1m');
      assert.deepEqual([(await board.get(late))?.state, (await board.get(late))?.kind], ['failed', 'signal']);
    } finally {
      await private_.stop();
    }
  });

  test('what a handler does that swallows it is dropped', async (t) => {
    const board = server.board();
    const seen: unknown[] = [];
    const lost: string[] = [];
    const task = board.task('work').handle(async (_, context) => {
      try {
        await context.waitFor('go');
        return 'gone on';
      } catch (error) {
        seen.push(error, context.signal.aborted, context.givenUp);
        assert.throws(() => {
          context.progress(50);
        }, Waits);
        return 'swallowed';
      }
    });
    const worker = started(t, board, { concurrency: 1 });
    worker.on('lost', (_, why) => lost.push(why));
    const id = await task.post({});
    await until(() => seen.length === 3);
    assert.ok(seen[0] instanceof Waits && seen[0] instanceof Stopped);
    assert.deepEqual([seen[1], seen[2], await board.state(id)], [true, true, 'blocked']);
    await board.signal('go', id);
    assert.equal(await task.result(id), 'gone on');
    await until(() => worker.done === 1);
    assert.deepEqual(lost, []);
  });

  test('a wait that is asked again after a cut is the same wait', async (t) => {
    const board = server.board();
    const { open, passed } = gate();
    const task = board.task('work').handle(async (_, context) => {
      if (context.attempt === 1) {
        await passed;
        await cut();
      }
      return (await context.waitFor('go', { within: '1h' }))?.value;
    });
    started(t, board, { lease: '1m' });
    const id = await task.post({});
    await until(async () => (await board.state(id)) === 'claimed');
    open();
    await until(async () => (await board.state(id).catch(() => null)) === 'blocked');
    await board.signal('go', id, { value: 7 });
    assert.equal(await task.result(id), 7);
    assert.equal((await board.get(id))?.attempt, 2);
  });

  test('a cancelled job is not given up, and wrong words are refused', async (t) => {
    const board = server.board();
    const { open, passed } = gate();
    const task = board.task('work').handle(async (_, context) => {
      await assert.rejects(context.waitFor('go', { within: 5 as never }), /within is text with a unit|write '5s'/);
      await assert.rejects(context.waitFor([]), BoardError);
      await passed;
      await context.waitFor('go');
    });
    started(t, board);
    const id = await task.post({});
    await until(async () => (await board.state(id)) === 'claimed');
    await board.cancel(id);
    open();
    await until(async () => (await board.state(id)) === 'cancelled');
  });
});

describe('children', () => {
  test('a job posts its parts once, and adds them up when all have ended', async (t) => {
    const board = server.board();
    const posted: string[][] = [];
    const part = board.task<{ n: number }, number>('part', { retain: '1m', retries: 0 }).handle(({ n }) => {
      if (n === 1) throw new TypeError('one is none');
      return n * n;
    });
    const batch = board.task('batch').handle(async (_, context) => {
      await context.step('parts', async () => {
        const ids = await part.postMany([{ n: 0 }, { n: 1 }, { n: 2 }], { parent: context.id });
        posted.push(ids);
      });
      const found = await context.waitForChildren({ onfailure: 'run' });
      const again = await context.waitForChildren({ onfailure: 'run' });
      const results = (await collected(board.children(context.id, { fields: ['result'] }))).map((job) => job.result ?? null);
      return [found, again.total, results, context.attempt];
    });
    const id = await batch.post({});
    started(t, board, { concurrency: 1 });
    assert.deepEqual(await batch.result(id), [{ total: 3, pending: 0, unsuccessful: 1 }, 3, [0, null, 4], 2]);
    assert.equal(posted.length, 1);
  });

  test('a job that waits for them takes no place, and what fails can end it', async (t) => {
    const board = server.board();
    const lost: string[] = [];
    for (const onfailure of ['hold', 'cancel', 'fail', 'run'] as const) board.handler(onfailure, async (_, context) => context.waitForChildren({ onfailure }));
    const ids = await Promise.all(['hold', 'cancel', 'fail', 'run'].map((name) => board.post({}, { name, id: name, retain: '1m' })));
    for (const parent of ids) await board.post({}, { id: `of ${parent}`, parent, queue: 'other', retries: 0 });
    const worker = started(t, board, { concurrency: 1, queues: ['default'] });
    worker.on('lost', (_, why) => lost.push(why));
    const states = async () => (await board.getMany(ids, ['state'])).map((job) => job?.state);
    await until(async () => (await states()).every((state) => state === 'blocked'));
    const waiting = await board.get('fail', ['awaits', 'pending']);
    assert.deepEqual([waiting?.awaits?.children?.onfailure, typeof waiting?.awaits?.children?.since, waiting?.pending], ['fail', 'number', 1]);
    for (const child of await board.claim('other', { queues: ['other'], count: 4 })) await board.fail('other', child, 'Down', 'no');
    await until(async () => (await states()).join() === 'blocked,cancelled,failed,complete');
    assert.deepEqual((await board.get('run'))?.result, { total: 1, pending: 0, unsuccessful: 1 });
    await board.requeue('of hold');
    const [child] = await board.claim('other', { queues: ['other'] });
    assert.ok(child);
    await board.consume('other', child);
    assert.deepEqual(await board.result('hold'), { total: 1, pending: 0, unsuccessful: 0 });
    assert.deepEqual(lost, []);
  });

  test('a batch without children, and a wait that is asked again after a cut', async (t) => {
    const board = server.board();
    const { open, passed } = gate();
    board.handler('empty', async (_, context) => context.waitForChildren());
    board.handler('cut', async (_, context) => {
      await context.step('part', () => board.post({}, { id: 'part', parent: context.id, queue: 'other' }));
      if (context.attempt === 1) {
        await passed;
        await cut();
      }
      return (await context.waitForChildren()).total;
    });
    await board.post({}, { name: 'empty', id: 'empty', retain: '1m' });
    await board.post({}, { name: 'cut', id: 'cut', retain: '1m' });
    started(t, board, { lease: '1m', queues: ['default'] });
    assert.deepEqual(await board.result('empty'), { total: 0, pending: 0, unsuccessful: 0 });
    await until(async () => (await board.state('part')) === 'ready');
    open();
    await until(async () => (await board.state('cut').catch(() => null)) === 'blocked');
    await board.cancel('part');
    assert.equal((await board.explain('cut'))?.reasons[0]?.reason, 'children');
    await board.delete(['part']);
    assert.deepEqual([await board.result('cut'), (await board.get('cut'))?.attempt], [0, 2]);
  });

  test('wrong words are refused, and a job that its child waits for fails', async (t) => {
    const board = server.board();
    const found: string[] = [];
    board.handler('p', async (_, context) => {
      await assert.rejects(context.waitForChildren({ onfailure: 'stop' as never }), /onfailure is one of hold, cancel, fail, run/);
      await board.post({}, { id: 'c', parent: context.id, queue: 'other', after: [context.id] });
      await context.waitForChildren().catch((error: unknown) => found.push((error as BoardError).code));
    });
    const id = await board.post({}, { name: 'p', retain: '1m' });
    started(t, board, { queues: ['default'] });
    await ended(board, id);
    assert.deepEqual(found, ['CYCLE']);
  });
});
