// A worker on node-redis: a job's payload is the path of a file, its result the SHA-256 of that file.
//
//     npm ci && node checksum_worker.js --port 6379 --board checksums --name worker-1
//
// It does what ../checksum_worker.py does: ANEW at its start, BLOCK in each claim, SEEN after one without an answer,
// one heartbeat loop for all that it holds, the TOKEN in every verb. A job that is lost or called off stops its work.
// SIGTERM: it ends the file at hand and abandons the rest. What a broken connection leaves without an answer is sent
// again, which SEEN and TOKEN make safe.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createClient, ErrorReply } from 'redis';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '6379' },
    board: { type: 'string', default: 'checksums' },
    name: { type: 'string' }, // unique among the workers that live
    lease: { type: 'string', default: '30000' }, // milliseconds
    batch: { type: 'string', default: '8' }, // jobs taken by one claim
  },
});
const { board, name, lease, batch } = values;
if (!name) throw new Error('--name is missing');
const TRANSIENT = /^(LOADING|READONLY|MASTERDOWN|TRYAGAIN|BUSY|UNBLOCKED) /; // the server will come round
const GONE = /^(STALE|NOTOWNER|NOTCLAIMED|NOJOB|ENDED|CANCELLED) /; // the job is no longer ours
const held = new Map(); // id -> { id, token, payload, stop }
let stopBy = Infinity; // after SIGTERM: until when commands are sent again

async function connect() {
  // `send` waits by itself instead of an offline queue; a line that is silent for longer than pings take is dead.
  const socket = { port: Number(values.port), socketTimeout: 10000, reconnectStrategy: 200 };
  const client = createClient({ name, RESP: 3, disableOfflineQueue: true, pingInterval: 3000, socket });
  return client.on('error', (error) => console.error(`${name}: ${error.message}`)).connect();
}

// Sends a command until it is answered, from the second time on with `again`. Throws what is refused for good.
async function send(client, words, again = []) {
  for (let all = words; ; all = [...words, ...again]) {
    try {
      return await client.sendCommand(all.map(String));
    } catch (error) {
      const refused = error instanceof ErrorReply && !TRANSIENT.test(error.message);
      if (refused || Date.now() > stopBy) throw error;
      await sleep(200);
    }
  }
}

async function heartbeat(client) {
  for (;;) {
    await sleep(lease / 3, undefined, { ref: false });
    const jobs = [...held.values()];
    if (jobs.length === 0) continue;
    const [ids, tokens] = [jobs.map((job) => job.id), jobs.map((job) => job.token)];
    const words = [board, name, ids.length, ...ids, 'TOKENS', ids.length, ...tokens, 'LEASE', lease];
    const replies = await client.sendCommand(['JOB.MHEARTBEAT', ...words.map(String)]).catch(() => []);
    replies.forEach((reply, at) => {
      if (Array.isArray(reply)) jobs[at].stop.abort('lost'); // [code, detail]
      else if (reply.cancel) jobs[at].stop.abort('cancelled');
    });
  }
}

// The verb and its words that end the job; null when it is no longer ours.
async function work({ payload, stop: { signal } }) {
  try {
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(payload, { signal })) hash.update(chunk);
    return ['CONSUME', 'RESULT', hash.digest('hex')];
  } catch (error) {
    if (!signal.aborted) return ['FAIL', 'unreadable', error.message, 'NORETRY'];
    return signal.reason === 'cancelled' ? ['ABANDON', 'REASON', 'cancelled'] : null;
  }
}

async function end(client, job, [verb, ...words]) {
  const all = [`JOB.${verb}`, board, name, job.id, ...words, 'TOKEN', job.token];
  await send(client, all).catch((error) => {
    if (!GONE.test(error.message)) throw error;
    const cancelled = verb === 'CONSUME' && error.message.startsWith('CANCELLED');
    return cancelled && end(client, job, ['ABANDON', 'REASON', 'cancelled']);
  });
}

const [claims, verbs] = await Promise.all([connect(), connect()]); // a claim that waits holds up nothing else
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => (stopBy = Date.now() + Number(lease)));
heartbeat(verbs);
await send(verbs, ['JOB.WORKER', 'REGISTER', board, name, 'ANEW']); // what an earlier process of this name held lapses
while (stopBy === Infinity) {
  const words = ['JOB.CLAIM', board, name, 'COUNT', batch, 'LEASE', lease, 'BLOCK', 2000];
  const jobs = await send(claims, words, ['SEEN', 0]); // it holds nothing: what comes back is that of a lost reply
  for (const job of jobs ?? []) held.set(job.id, { ...job, stop: new AbortController() });
  for (const job of held.values()) {
    const outcome = stopBy === Infinity ? await work(job) : ['ABANDON', 'REASON', 'the worker stops'];
    if (outcome) await end(verbs, job, outcome);
    held.delete(job.id);
  }
}
await send(verbs, ['JOB.WORKER', 'DEREGISTER', board, name]);
for (const client of [claims, verbs]) client.destroy();
