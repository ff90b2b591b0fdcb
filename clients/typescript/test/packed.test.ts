import assert from 'node:assert/strict';
import { test } from 'node:test';

import { json, Job, raw } from '../src/index.js';
import { unpacked } from '../src/packed.js';
import { serverOf } from './harness.js';

const server = await serverOf();

const bytes = (...parts: (number | string)[]): Buffer => Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.of(part) : Buffer.from(part))));

test('every kind of MessagePack is read', () => {
  const given: [Buffer, unknown][] = [
    [bytes(0x7f), 127],
    [bytes(0xe0), -32],
    [bytes(0xc0), null],
    [bytes(0xc2), false],
    [bytes(0xc3), true],
    [bytes(0xcc, 0xff), 255],
    [bytes(0xcd, 0x01, 0x00), 256],
    [bytes(0xce, 0xff, 0xff, 0xff, 0xff), 4294967295],
    [bytes(0xcf, 0x00, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), 2 ** 53 - 1],
    [bytes(0xd0, 0xff), -1],
    [bytes(0xd1, 0xff, 0x00), -256],
    [bytes(0xd2, 0x80, 0, 0, 0), -(2 ** 31)],
    [bytes(0xd3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe), -2],
    [bytes(0xca, 0x3f, 0x80, 0, 0), 1],
    [bytes(0xcb, 0x40, 0x49, 0, 0, 0, 0, 0, 0), 50],
    [bytes(0xa2, 'id'), 'id'],
    [bytes(0xd9, 3, 'abc'), 'abc'],
    [bytes(0xda, 0, 2, 'é'), 'é'],
    [bytes(0xdb, 0, 0, 0, 1, 'x'), 'x'],
    [bytes(0xc4, 2, 'é'), 'é'],
    [bytes(0xc5, 0, 60, 'x'.repeat(60)), 'x'.repeat(60)],
    [bytes(0xc6, 0, 0, 0, 1, 'x'), 'x'],
    [bytes(0x92, 1, 0xc0), [1, null]],
    [bytes(0xdc, 0, 1, 7), [7]],
    [bytes(0xdd, 0, 0, 0, 1, 7), [7]],
    [bytes(0x81, 0xa1, 'k', 0x90), ['k', []]],
    [bytes(0xde, 0, 1, 0xa1, 'k', 3), ['k', 3]],
    [bytes(0xdf, 0, 0, 0, 1, 0xa1, 'k', 3), ['k', 3]],
    // what later versions may send
    [bytes(0x92, 0xd6, 0xff, 0, 0, 0, 1, 5), [null, 5]],
    [bytes(0x92, 0xc7, 2, 1, 0, 0, 5), [null, 5]],
  ];
  for (const [data, wanted] of given) assert.deepEqual(unpacked(data, false), wanted, data.toString('hex'));
  assert.deepEqual(unpacked(bytes(0x81, 0xa1, 'k', 0xc4, 1, 0xff), true), ['k', Buffer.of(0xff)]);
  assert.equal(unpacked(undefined, false), null);
  assert.deepEqual(unpacked([1], false), [1]);
});

test('what is cut off or too long is refused', () => {
  const whole = bytes(0x92, 0x81, 0xa2, 'id', 0xc4, 1, 'j', 0xcb, 0, 0, 0, 0, 0, 0, 0, 0);
  unpacked(whole, false);
  for (let length = 0; length < whole.length; length += 1) assert.throws(() => unpacked(whole.subarray(0, length), false), /ends early/);
  assert.throws(() => unpacked(Buffer.concat([whole, whole]), false), /bytes too many/);
  assert.throws(() => unpacked(bytes(0xdd, 0xff, 0xff, 0xff, 0xff), false), /ends early/);
  assert.throws(() => unpacked(bytes(0xc1), false), /MessagePack does not use/);
});

test('records are the same packed and not', async () => {
  const board = server.board();
  const id = await board.post({ to: 'ännä', n: 1.5 }, { meta: { a: 'ü' }, tags: ['x'], name: 'mail', group: 'g', user: 'eve', cost: 3, priority: -70000, parent: await board.post(1), share: 5 });
  await board.signal('go', id, { value: [1], sender: 'eve' });
  const held = await board.claim('w', { count: 2 });
  const [own] = held.filter((job) => job.id === id);
  assert.ok(own);
  await board.heartbeat('w', own, { progress: 12.5, stage: 'half' });
  await board.step('w', own, 'one', { done: true });
  const fields = ['id', 'state', 'steps', 'signals', 'meta', 'tags', 'progress', 'payload', 'token', 'posted', 'priority', 'cost', 'share'] as const;
  const plain = new Job(await board.send('JOB.GET', [id, 'FIELDS', String(fields.length), ...fields]), json);
  const packed = await board.get(id, fields);
  assert.ok(packed);
  assert.deepEqual(packed.toJSON(), plain.toJSON());
  assert.deepEqual([packed.progress, packed.priority, packed.steps['one']?.value, packed.signals['go']?.sender], [12.5, -70000, { done: true }, 'eve']);
  const everything = await board.get(id);
  assert.deepEqual(everything?.toJSON(), new Job(await board.send('JOB.GET', [id]), json).toJSON());
});

test('bytes stay bytes where the codec wants them', async () => {
  const board = server.board('bytes', { codec: 'raw' });
  const data = Buffer.from([0, 255, 10, 13, 128]);
  const id = await board.post(data, { name: 'blob', meta: { a: 'b' } });
  const [job] = await board.claim('w', { fields: ['id', 'token', 'name', 'payload', 'meta'] });
  assert.ok(job);
  assert.deepEqual([job.payload, job.name, job.id, job.meta], [data, 'blob', id, { a: 'b' }]);
  await board.consume('w', job, { result: Buffer.from('é') });
  assert.deepEqual(await board.result(id), Buffer.from('é'));
  assert.deepEqual(new Job(['payload', Buffer.from('x')], raw).payload, Buffer.from('x'));
});
