import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Worker, type WorkerOptions } from '../src/index.js';
import { ask, serverOf, started, until } from './harness.js';

const server = await serverOf({ manualClock: false });

describe('how long completed jobs are kept', () => {
  const run = async (board: ReturnType<typeof server.board>, keep?: WorkerOptions['keep']): Promise<boolean> => new Worker(board, { logger: null, keep }).run({ burst: true, signals: false });
  const kept = async (board: ReturnType<typeof server.board>): Promise<unknown[]> => {
    const found = await board.settingsGet(['retain-complete', 'keep-complete']);
    return [found['retain-complete'], found['keep-complete']];
  };
  const nothing = (): ReturnType<typeof server.board> => {
    const board = server.board();
    board.handler({}, () => null);
    return board;
  };

  test('a worker sets the time where nobody has, and the number where it is given one', async () => {
    const board = nothing();
    await board.post({});
    await run(board, false);
    assert.deepEqual(await kept(board), [
      { value: 0, source: 'default' },
      { value: 100_000, source: 'default' },
    ]);
    await run(board);
    assert.deepEqual(await kept(board), [
      { value: 3_600_000, source: 'board' },
      { value: 100_000, source: 'default' },
    ]);
    await board.settingsSet({ 'retain-complete': '2s' });
    await run(board, 30);
    await run(board, 40);
    assert.deepEqual(await kept(board), [
      { value: 2000, source: 'board' },
      { value: 30, source: 'board' },
    ]);
  });

  test('a server that somebody has set decides', async (t) => {
    await ask(server.url, 'CONFIG', 'SET', 'jobboard.keep-complete', '7');
    t.after(async () => ask(server.url, 'CONFIG', 'SET', 'jobboard.keep-complete', '100000'));
    const board = nothing();
    await board.post({});
    await run(board, 30);
    assert.deepEqual((await kept(board))[1], { value: 7, source: 'module' });
  });

  test('a server that is full is worked for all the same, and the time is set when it has room', async (t) => {
    const board = nothing();
    await board.post({}, { id: 'a', retain: '1h' });
    const warnings: string[] = [];
    const ignored = (): void => undefined;
    await ask(server.url, 'CONFIG', 'SET', 'maxmemory', '1');
    t.after(async () => ask(server.url, 'CONFIG', 'SET', 'maxmemory', '0'));
    started(t, board, { queues: [], block: '20ms', listen: false, register: false, logger: { debug: ignored, info: ignored, error: ignored, warn: (text) => warnings.push(text) } });
    await until(async () => (await board.state('a')) === 'complete');
    await until(async () => Number(/cmdstat_job\.settings\|set:.*rejected_calls=(\d+)/.exec(String(await ask(server.url, 'INFO', 'commandstats')))?.[1] ?? 0) >= 3);
    assert.deepEqual((await kept(board))[0], { value: 0, source: 'default' });
    await ask(server.url, 'CONFIG', 'SET', 'maxmemory', '0');
    await until(async () => (await board.settingsGet(['retain-complete']))['retain-complete']?.value === 3_600_000);
    assert.equal(warnings.filter((text) => text.includes('how long completed jobs are kept')).length, 1, warnings.join('\n'));
  });

  test('what jobs say of their records counts for thousands of them', async () => {
    const board = server.board();
    const part = board.task<{ number: number }>('part', { retain: '1d' }).handle(({ number }) => number);
    const ids = await part.postMany(Array.from({ length: 1100 }, (_, number) => ({ number })));
    await run(board);
    let sum = 0;
    for (const id of ids) sum += await part.result(id);
    assert.equal(sum, (1100 * 1099) / 2);
  });

  test('anything else is refused', () => {
    for (const keep of [0, 1.5, 'no' as unknown as number]) assert.throws(() => new Worker(nothing(), { keep }), /^RangeError: keep is true, false, or how many completed jobs the board keeps, such as 5000, not /);
  });
});
