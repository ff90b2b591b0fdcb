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
  await assert.rejects(board.post({}, { dealy: 1 } as never), /; there are .*delay/);
});
