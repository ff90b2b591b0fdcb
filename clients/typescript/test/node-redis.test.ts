import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createClient } from '../src/node-redis.js';

const commands = (client: object): unknown => (Object.getPrototypeOf(Object.getPrototypeOf(client)) as object).constructor;

test('a connection with another name needs no other class of all commands', () => {
  assert.equal(commands(createClient({ name: 'a' })), commands(createClient({ name: 'b', url: 'redis://127.0.0.1:1/2' })));
});

test('what a connection was given is its own', () => {
  const first = createClient({ name: 'a', database: 1 });
  const second = createClient({ url: 'redis://user:secret@127.0.0.1:7000/2' });
  assert.equal(first.options.name, 'a');
  assert.equal(first.options.database, 1);
  assert.equal(second.options.name, undefined);
  assert.equal(second.options.database, 2);
  assert.equal(second.options.username, 'user');
});
