import assert from 'node:assert/strict';
import { test } from 'node:test';

import { serverOf } from './harness.js';

const server = await serverOf();

test('an option under the name of another library is refused with ours', async () => {
  const board = server.board();
  const given: Record<string, RegExp> = {
    attempts: /no option 'attempts': write retries, the tries after the first: attempts 3 are 'retries: 2'$/,
    jobId: /no option 'jobId': write 'id'$/,
    removeOnComplete: /no option 'removeOnComplete': write 'retain': how long the record stays/,
    countdown: /no option 'countdown': write delay: '10s'$/,
    eta: /no option 'eta': write 'at', a Date or Unix ms$/,
    time_limit: /no option 'time_limit': write timeout: '5m'$/,
  };
  for (const [name, says] of Object.entries(given)) {
    const options = { [name]: 3 } as never;
    await assert.rejects(board.post({}, options), says);
    await assert.rejects(board.postMany([{}], options), says);
    await assert.rejects(board.scheduleSet('s', {}, { every: '1h', ...(options as object) }), says);
    assert.throws(() => board.task('work', options), says);
  }
  await assert.rejects(board.post({}, { dealy: 1 } as never), /; there are .*delay.*\. Did you mean 'delay'\?$/);
});

test('a misspelt option of a call or a schedule is named, and a wrong value of a task where the task is made', async () => {
  const board = server.board();
  const task = board.task('mail');
  await assert.rejects(task.post({}, { dely: '5s' } as never), /no option 'dely'; .*Did you mean 'delay'\?$/);
  await assert.rejects(task.schedule({ evry: '1s' } as never, {}), /^TypeError: the schedule of 'mail' has no option 'evry'; .*Did you mean 'every'\?$/);
  assert.throws(() => board.task('t2', { backoff: 5 } as never), /^TypeError: backoff .*5/);
  board.task('t2', { backoff: '5s', unique: true, noretry: [TypeError] });
});
