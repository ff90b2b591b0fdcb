import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { createClient, createCluster, createSentinel } from '@redis/client';
import { z } from 'zod';

import { Board, BoardError, collected, ConnectionLost, Flow, JobFailed, JobUnknown, NoModule, Refused, ResultDropped, type State, TimedOut, Worker } from '../src/index.js';
import { TestServer } from '../src/testing.js';
import { hintOf, optionsOfUrl } from '../src/urls.js';
import { ask, serverOf, until } from './harness.js';

const server = await serverOf();

describe('where the server is', () => {
  const make = (options: unknown) => () => new Board('x', options as never);

  test('an option that nobody reads is refused, with what to write', () => {
    const instead = String.raw`'redis://user:password@host:6379', or \{ socket: \{ host, port \} \}$`;
    const wrong: [unknown, string][] = [
      [{ host: 'db', port: 6380 }, `^a board has no option 'host'; there are server, codec, hook. Write ${instead}`],
      [{ connection: { host: 'db' } }, `^a board has no option 'connection'; there are server, codec, hook. Write ${instead}`],
      [{ server: { host: 'db', port: 6380 } }, `^a server has no option 'host'; there are url, socket, .* Write ${instead}`],
      [{ serverr: 'redis://db' }, "^a board has no option 'serverr'; there are server, codec, hook. Did you mean 'server'\\?"],
      [{ codec: 'raw', url: 'redis://db' }, "^a board has no option 'url'; .* What the server is told is an option of its own: \\{ server: \\{ url: … \\} \\}"],
      [{ url: 'redis://db', sokcet: {} }, "^a server has no option 'sokcet'; .* Did you mean 'socket'\\?"],
      [{ rootNodes: [], default: {} }, "^a cluster has no option 'default'; .* Did you mean 'defaults'\\?"],
      [{ name: 'jobs', sentinelRootNodes: [], nodeClientOption: {} }, "^a place of Sentinels has no option 'nodeClientOption'; "],
      [{ options: { host: 'db', port: 6380 }, sendCommand: () => undefined }, `^this is a client of ioredis or another package, and a board takes one of node-redis: write ${instead}`],
      [createCluster({ rootNodes: [{ url: 'redis://db' }] }), '^a client of a cluster or of Sentinels does not show where they are'],
      [createSentinel({ name: 'jobs', sentinelRootNodes: [{ host: 'db', port: 26_379 }] }), '^a client of a cluster or of Sentinels does not show where they are'],
      [{ socket: { prot: 1 } }, "^a socket has no option 'prot'; there are host, port, path, tls, .*. Did you mean 'port'\\?"],
      [{ rootNodes: [{ socket: { hots: 'db' } }] }, "^a socket has no option 'hots'; .* Did you mean 'host'\\?"],
      [null, '^a server is a URL, options of node-redis or a client of it, not null'],
      [6379, '^a server is a URL, .* not 6379'],
    ];
    for (const [options, text] of wrong) assert.throws(make(options), (error) => error instanceof TypeError && new RegExp(text).test(error.message), text);
    const board = server.board();
    assert.throws(() => {
      board.handler({ nam: 'count' } as never, () => 1);
    }, /^TypeError: a handler has no option 'nam'; there are name, queue, noretry. Did you mean 'name'\?/);
  });

  test('a client of node-redis says where, as whom and in which database', async (t) => {
    const clients = [
      createClient({ url: 'redis://ann:secret@db.example:7000/2' }),
      createClient({ username: 'ann', password: 'secret', database: 2, socket: { host: 'db.example', port: 7000 } }),
    ];
    for (const client of clients) {
      for (const options of [client, { server: client }, { server: client, codec: 'raw' }]) assert.match(String(make(options)()), /at db.example:7000, db 2$/);
      assert.equal(new Board('x', client as never).place.open().user, 'ann');
    }
    const client = createClient({ url: `${server.url}/1` });
    await client.connect();
    t.after(() => {
      client.destroy();
    });
    const board = new Board('of-a-client', client as never);
    t.after(() => {
      board.close();
    });
    await board.post(1, { id: 'a' });
    assert.equal(await client.sendCommand(['EXISTS', 'of-a-client']), 1);
    assert.equal(client.isOpen, true, 'it stays as it is');
  });

  test('a URL that is none says what to write, and whose it is', (t) => {
    const wrong: [string, string][] = [
      ['127.0.0.1:6379', "'127.0.0.1:6379', F, is no URL: write 'redis://127.0.0.1:6379'"],
      ['localhost:6379', "'localhost:6379', F, does not begin with redis:// or rediss://: write 'redis://localhost:6379'"],
      ['valkey://db:7000', "'valkey://db:7000', F, does not begin with redis:// or rediss://: write 'redis://db:7000'"],
      ['valkeys://ann:secret@db', "'valkeys://…@db', F, does not begin with redis:// or rediss://: write 'redis://user:password@host:6379/0', or rediss:// for TLS"],
      ['redis://db:1/x', "'redis://db:1/x', F, ends with no number of a database: write 'redis://host:6379/0'"],
      ['redis://db?ssl_ca_cert=x', "the URL of F has no option 'ssl_ca_cert'; .* Did you mean 'ssl_ca_certs'\\?"],
      ['redis://db?ssl_ca_certs=/nowhere', 'ssl_ca_certs in the URL of F is for TLS: the URL begins with rediss://'],
      ['rediss://db?ssl_ca_certs=/nowhere', 'ssl_ca_certs in the URL of F names a file that cannot be read: ENOENT'],
    ];
    const before = process.env['JOBBOARD_URL'];
    t.after(() => {
      if (before === undefined) delete process.env['JOBBOARD_URL'];
      else process.env['JOBBOARD_URL'] = before;
    });
    const says = (text: string, from: string) => new RegExp(`^TypeError: ${text.replace('F', from)}`);
    for (const [url, text] of wrong) {
      for (const options of [url, { url }, { server: url }]) assert.throws(make(options), says(text, 'the server of the board'));
      process.env['JOBBOARD_URL'] = url;
      assert.throws(make({}), says(text, '\\$JOBBOARD_URL'));
    }
    assert.throws(make(''), /^TypeError: '', the server of the board, is empty: write 'redis:.*without a server it is \$JOBBOARD_URL$/);
  });

  test('a URL names the files of TLS, as in Python', () => {
    const file = fileURLToPath(import.meta.url);
    const { url, socket } = optionsOfUrl(`rediss://db/1?ssl_ca_certs=${file}&ssl_certfile=${file}&ssl_keyfile=${file}&ssl_cert_reqs=none&socket_timeout=5`, 'x');
    const bytes = readFileSync(file);
    assert.deepEqual([url, socket], ['rediss://db/1', { ca: bytes, cert: bytes, key: bytes, rejectUnauthorized: false }]);
    assert.match(String(make(`rediss://db/1?ssl_ca_certs=${file}`)()), /at db:6379, db 1$/);
  });

  test('a connection that fails says what TLS may have to do with it', async (t) => {
    const resets = createServer((socket) => socket.on('error', () => undefined).resetAndDestroy());
    await new Promise<void>((resolve) => resets.listen(0, '127.0.0.1', resolve));
    t.after(() => resets.close());
    const { port } = resets.address() as AddressInfo;
    for (const [scheme, other] of [['redis', 'where the server speaks TLS, the URL begins with rediss://'], ['rediss', 'where the server does not speak TLS, the URL begins with redis://']] as const) {
      const board = new Board('x', `${scheme}://127.0.0.1:${String(port)}`);
      server.allow(board);
      const link = board.place.open();
      await assert.rejects(link.ask(['PING'], { patient: false }), (error) => error instanceof ConnectionLost && error.message.endsWith(other));
      link.close();
    }
    const hints: [string, RegExp][] = [
      ['self-signed certificate in certificate chain', /ssl_ca_certs/],
      ['unable to verify the first certificate', /socket: \{ ca:/],
      ["Hostname/IP does not match certificate's altnames: IP", /servername/],
      ['write EPROTO … ssl3_get_record:wrong version number', /begins with redis:/],
      ['tlsv13 alert certificate required, SSL alert number 116: tls alert', /ssl_certfile/],
    ];
    for (const [text, hint] of hints) assert.match(hintOf(text, true), hint);
    assert.equal(hintOf('ECONNRESET', undefined), '', 'a connection that was made');
  });

  test('the options stay as they were given', () => {
    const options = { url: 'redis://db.example:7000/2', socket: { noDelay: true } };
    assert.match(String(make(options)()), /db.example:7000, db 2$/);
    assert.deepEqual(options, { url: 'redis://db.example:7000/2', socket: { noDelay: true } });
  });

  test('without one it is $JOBBOARD_URL, else this machine', (t) => {
    const before = process.env['JOBBOARD_URL'];
    t.after(() => {
      if (before === undefined) delete process.env['JOBBOARD_URL'];
      else process.env['JOBBOARD_URL'] = before;
    });
    for (const [url, shown] of [
      ['redis://db.example:7000/2', 'db.example:7000, db 2'],
      ['', '127.0.0.1:6379'],
    ] as const) {
      process.env['JOBBOARD_URL'] = url;
      for (const none of [undefined, {}, { codec: 'raw' }, { server: undefined }, { server: {} }]) assert.match(String(make(none)()), new RegExp(`at ${shown}$`));
    }
    process.env['JOBBOARD_URL'] = 'redis://db.example:7000/2';
    assert.match(String(make({ socket: { host: 'other', port: 1 } })()), /at other:1$/);
  });
});

describe('posting', () => {
  test('a job is what was posted', async () => {
    const board = server.board();
    const id = await board.post({ to: 'ann' }, { name: 'welcome', queue: 'mails', priority: 5, delay: '1h', meta: { n: 1 }, tags: ['x'], retries: Infinity });
    const job = await board.get(id);
    assert.ok(job);
    assert.deepEqual(job.payload, { to: 'ann' });
    assert.deepEqual([job.state, job.name, job.queue, job.priority, job.left], ['scheduled', 'welcome', 'mails', 5, -1]);
    assert.deepEqual([job.meta, job.tags], [{ n: '1' }, ['x']]);
    assert.equal(job.due, (await server.now()) + 3_600_000);
    assert.equal(await board.get('nobody'), null);
    assert.deepEqual((JSON.parse(JSON.stringify(job)) as typeof job).payload, { to: 'ann' });
  });

  test('fields are named alone or as an option', async () => {
    const board = server.board();
    await board.post(1, { id: 'a' });
    for (const fields of [['state'], { fields: ['state'] }] as const) {
      assert.deepEqual(JSON.parse(JSON.stringify(await board.get('a', fields))), { state: 'ready' });
      assert.deepEqual(JSON.parse(JSON.stringify(await board.getMany(['a'], fields))), [{ state: 'ready' }]);
    }
    assert.equal((await board.get('a', {}))?.queue, 'default');
    assert.deepEqual([JSON.stringify(await board.get('a', ['result'])), await board.get('nobody', ['result'])], ['{}', null], 'a job without the field is none that is unknown');
    for (const wrong of ['state', { field: ['state'] }, { fields: 'state' }, [1], null]) {
      await assert.rejects(board.get('a', wrong as never), /^TypeError: fields is a list of texts, such as \{ fields: \['state', 'steps'\] \}, not /);
    }
  });

  test('an id is taken once', async () => {
    const board = server.board();
    assert.equal(await board.post(1, { id: 'a' }), 'a');
    await assert.rejects(board.post(2, { id: 'a' }), (error) => BoardError.is(error, 'EXISTS') && error.detail === 'a');
    assert.equal(await board.post(2, { id: 'a', nx: true }), null);
    assert.equal(await board.post(3, { id: 'a', replace: true }), 'a');
    assert.equal((await board.get('a'))?.payload, 3);
  });

  test('what the program does wrong is no lost connection', async () => {
    const board = server.board();
    await board.post(1, { id: 'a' });
    await assert.rejects(board.get(5 as never), TypeError);
    await assert.rejects(board.cancel([undefined as never]), TypeError);
    assert.equal(await board.state('a'), 'ready');
    const nowhere = new Board('x', { socket: { port: 99_999 } });
    server.allow(nowhere);
    await assert.rejects(nowhere.count(), RangeError);
    nowhere.close();
  });

  test('many jobs are posted in commands of a thousand', async () => {
    const board = server.board();
    const ids = await board.postMany(
      Array.from({ length: 2500 }, (_, n) => n),
      { queue: 'bulk' },
    );
    assert.equal(new Set(ids).size, 2500);
    assert.equal(await board.count({ queue: 'bulk', state: 'ready' }), 2500);
    assert.equal((await collected(board.list({ queue: 'bulk' }, { count: 700, fields: ['id'] }))).length, 2500);
    await assert.rejects(board.postMany([1, 2], { ids: ['a'] }), /2 payloads and 1 ids/);
  });

  test('a flow is posted whole', async () => {
    const board = server.board();
    const resize = board.task('resize', z.object({ width: z.number() }));
    const publish = board.task('publish');
    const flow = new Flow(board);
    const sizes = [100, 800].map((width) => flow.add(resize.job({ width })));
    const last = flow.add(publish.job({}), { after: sizes, onfailure: 'cancel' });
    flow.chain([resize.job({ width: 1 }), resize.job({ width: 2 })], { parent: last });
    const ids = await flow.post();
    assert.deepEqual((await board.getMany(ids, ['state'])).map((job) => job?.state), ['ready', 'ready', 'blocked', 'ready', 'blocked']);
    assert.deepEqual((await board.get(ids[2] ?? ''))?.after, ids.slice(0, 2));
    assert.equal((await board.get(ids[2] ?? ''))?.children, 2);
  });

  test('a tree has its children before it', async () => {
    const board = server.board();
    const flow = new Flow(board);
    flow.tree({ job: { name: 'top' }, onfailure: 'fail', children: [{ job: { name: 'left' } }, { job: { name: 'right' }, children: [{ job: { name: 'leaf' } }] }] });
    const [top = '', left = '', right = '', leaf = ''] = await flow.post();
    const jobs = await board.getMany([top, left, right, leaf]);
    assert.deepEqual(jobs.map((job) => [job?.name, job?.state]), [['top', 'blocked'], ['left', 'ready'], ['right', 'blocked'], ['leaf', 'ready']]);
    assert.deepEqual([jobs[0]?.after, jobs[2]?.after], [[left, right], [leaf]]);
    assert.deepEqual([jobs[1]?.parent, jobs[3]?.parent], [top, right]);
  });
});

describe('tasks', () => {
  test('a post checks the payload by the schema', async () => {
    const board = server.board();
    const welcome = board.task('welcome', z.object({ to: z.string(), at: z.coerce.date().optional() }), { queue: 'mails', retries: 3 });
    const id = await welcome.post({ to: 'ann' });
    const job = await board.get(id);
    assert.deepEqual([job?.name, job?.queue, job?.left, job?.payload], ['welcome', 'mails', 3, { to: 'ann' }]);
    // @ts-expect-error: the schema wants text
    await assert.rejects(welcome.post({ to: 5 }), { name: 'ArgumentError', message: /^welcome: to: / });
    await assert.rejects(board.post({ to: 5 }, { name: 'welcome' }), { name: 'ArgumentError' });
    await assert.rejects(board.post({}, { name: 'welcom' }), /did you mean 'welcome'\?/);
    assert.ok(await board.post({}, { name: 'welcom', elsewhere: true }));
    assert.throws(() => board.task('welcome'), /there is a task 'welcome' already/);
  });

  test('unique keys are those of the Python package', async () => {
    const board = server.board();
    const once = board.task<{ to: string; n?: number }>('once', { unique: true });
    const id = await once.post({ to: 'ann', n: 1 });
    assert.equal((await board.get(id))?.unique, 'once:{"n":1,"to":"ann"}');
    await assert.rejects(once.post({ n: 1, to: 'ann' }), /EXISTS/);
    assert.ok(await once.post({ to: 'ann', n: 1 }, { unique: false }));
    assert.equal((await board.get(await once.post({ to: 'ann', n: 2 }, { unique: ['to'] })))?.unique, 'once:{"to":"ann"}');
  });

  test('without its key a job has none of the words of a key', async () => {
    const board = server.board();
    const report = board.task<{ day: number }>('report', { unique: true, onconflict: 'return', until: 'start', for: '1h' });
    const id = await report.post({ day: 1 });
    assert.equal(await report.post({ day: 1 }), id);
    assert.notEqual(await report.post({ day: 1 }, { unique: false }), id);
    await assert.rejects(report.postMany([{ day: 1 }]), /have no keys of their own: give unique: false/);
    assert.equal((await report.postMany([{ day: 1 }, { day: 1 }], { unique: false })).length, 2);
    await assert.rejects(report.post({ day: 2 }, { unique: false, onconflict: 'return' }), /ONCONFLICT/);
  });

  test('a time takes the place of the delay of a task', async () => {
    const board = server.board();
    const later = board.task('later', { delay: '1h' });
    assert.equal((await board.get(await later.post({})))?.state, 'scheduled');
    assert.equal((await board.get(await later.post({}, { at: new Date(1) })))?.state, 'ready');
  });

  test('a key is made of fields that are there', async () => {
    const board = server.board();
    const mine = board.task<{ user?: string | null; x: number }>('mine', { unique: ['user'] });
    for (const x of [1, 2]) {
      await assert.rejects(mine.post({ x }), { name: 'ArgumentError', message: "mine: unique names 'user', which this payload does not have: give it (null is a value), or post with unique: false" });
      assert.ok(await mine.post({ x }, { unique: false }));
    }
    assert.equal((await board.get(await mine.post({ x: 3, user: null })))?.unique, 'mine:{"user":null}');
    const mail = board.task('mail', z.object({ to: z.string(), language: z.string().default('en') }), { unique: ['language', 'to'] });
    assert.equal((await board.get(await mail.post({ to: 'ann' })))?.unique, 'mail:{"language":"en","to":"ann"}');
    await assert.rejects(mail.post({ to: 'ann', language: 'en' }), /EXISTS/);
  });

  test('a key is the one that Python makes of the payload', async () => {
    const board = server.board();
    const task = board.task<{ of: unknown }>('t', { unique: true });
    for (const [of, key] of [
      [{ 10: 'a', 9: 'b', '-1': 'c', z: 'd' }, '{"-1":"c","10":"a","9":"b","z":"d"}'],
      [{ '\u{1f600}': 1, '\ue000': 2 }, '{"\ue000":2,"\u{1f600}":1}'],
      [[{ b: 1, a: [{ 2: 0, 10: null }] }], '[{"a":[{"10":null,"2":0}],"b":1}]'],
      [[0.00001, -1.5e-7, 0.0001, 2.5, 1e21], '[1e-05,-1.5e-07,0.0001,2.5,1e+21]'],
    ] as const) assert.equal((await board.get(await task.post({ of })))?.unique, `t:{"of":${key}}`);
  });

  test('an option that is undefined is not given', async () => {
    const board = server.board();
    const mail = board.task<{ to: string }>('mail', { queue: 'mails', priority: 3 });
    const id = await mail.post({ to: 'ann' }, { queue: undefined, priority: undefined, delay: undefined });
    const job = await board.get(id);
    assert.deepEqual([job?.queue, job?.priority], ['mails', 3]);
    await mail.schedule({ every: '1h', queue: undefined, tz: undefined }, { to: 'ann' });
    assert.equal((await board.scheduleGet('mail'))?.queue, 'mails');
    mail.handle(({ to }) => `to ${to}`);
    await board.settingsSet({ 'retain-complete': '0s', 'retain-result': '0s' });
    const worker = new Worker(board, { logger: null });
    const running = worker.run({ signals: false });
    assert.equal(await mail.call({ to: 'bob' }, { retain: undefined, within: '60s' }), 'to bob');
    await worker.stop();
    await running;
  });

  test('the type of a post says when it may be null', async () => {
    const board = server.board();
    const mail = board.task<{ to: string }>('mail');
    const id: string = await mail.post({ to: 'ann' }, { id: 'a', retries: 2 });
    // @ts-expect-error: a post with nx may be null
    const again: string = await mail.post({ to: 'ann' }, { id, nx: true });
    // @ts-expect-error: a post with xx may be null
    const other: string = await mail.post({ to: 'ann' }, { id: 'b', xx: true });
    assert.deepEqual([again, other], [null, null]);
  });

  test('a schedule has the fields of the reference', async () => {
    const board = server.board();
    const path = fileURLToPath(new URL('../../../../commands.md', import.meta.url));
    const rows = readFileSync(path, 'utf8').split('### JOB.SCHEDULE')[1]?.split('| field | meaning |')[1]?.split('\n\n')[0] ?? '';
    const named = new Set([...rows.matchAll(/^\| (.*?) \|/gm)].flatMap((row) => [...(row[1] ?? '').matchAll(/`([^`]+)`/g)].map((one) => one[1])));
    await board.settingsSet({ rate: 10 }, { limit: 'tokens' });
    await board.scheduleSet('all', { n: 1 }, { cron: '0 3 * * *', tz: 'Europe/Berlin', name: 'x', costs: { tokens: 2 }, meta: { a: 'b' }, tags: ['t'], backoff: ['1s', '2s'] });
    const found = await board.scheduleGet('all');
    assert.deepEqual([found?.cron, found?.costs, found?.meta, found?.tags, found?.['backoff-max']], ['0 3 * * *', { tokens: 2 }, { a: 'b' }, ['t'], 2000]);
    const declared = readFileSync(fileURLToPath(new URL('../../src/schedules.ts', import.meta.url)), 'utf8');
    for (const name of named) assert.match(declared, new RegExp(`readonly '?${String(name)}'?\\??:`), `Schedule has no field ${String(name)}`);
    assert.ok(named.size > 30);
  });

  test('a schedule posts at its times', async () => {
    const board = server.board();
    const tick = board.task<{ n: number }>('tick', { retries: 1 });
    await tick.schedule({ every: '1m', overlap: 'allow', backlog: 3 }, { n: 1 });
    await server.advance('1m');
    await server.advance('1m');
    assert.deepEqual((await board.getMany(['@tick@1', '@tick@2'])).map((job) => [job?.payload, job?.left]), [[{ n: 1 }, 1], [{ n: 1 }, 1]]);
    assert.equal((await board.scheduleGet('tick'))?.fired, 2);
    assert.equal((await board.scheduleGet('tick'))?.backlog, 3);
    assert.equal(await board.scheduleRun('tick'), '@tick@3');
    await board.schedulePause('tick');
    assert.deepEqual((await collected(board.scheduleList())).map((one) => one.state), ['paused']);
    await board.scheduleResume('tick');
    await board.scheduleDel('tick');
    assert.equal(await board.scheduleGet('tick'), null);
  });
});

describe('types and what arrives', () => {
  const kindsOf = (name: string): Map<string, string> => {
    const page = readFileSync(fileURLToPath(new URL('../../src/generated.ts', import.meta.url)), 'utf8');
    const body = page.split(`export interface ${name} {`)[1]?.split('\n}')[0] ?? '';
    return new Map([...body.matchAll(/^ {2}readonly '?([\w-]+)'?\??: (.*);$/gm)].map((row) => [row[1] ?? '', row[2] ?? '']));
  };
  const check = (name: string, row: object): void => {
    const kinds = kindsOf(name);
    for (const [key, found] of Object.entries(row)) {
      const kind = kinds.get(key);
      const is = Array.isArray(found) ? 'readonly string[]' : typeof found === 'object' ? (kind === 'Distribution' ? kind : `Readonly<Record<string, ${key === 'costs' ? 'number' : 'string'}>>`) : typeof found;
      assert.equal(kind, is, `${name}.${key}`);
    }
    for (const key of kinds.keys()) assert.ok(key in row, `${name}.${key} does not arrive`);
  };

  test('rows have the fields of their types', async () => {
    const board = server.board();
    await board.settingsSet({ rate: 10 }, { limit: 'api' });
    await board.post(1, { queue: 'mails', group: 'acme', tags: ['t'], costs: { api: 1 } });
    await board.workerRegister('w', { role: 'mailer', meta: { host: 'a' } });
    await board.claim('w', { queues: ['mails'] });
    const [queue] = await board.queues();
    const [worker] = await collected(board.workerList());
    const [group, limit, holder, tag] = [(await board.groups())[0], (await board.limits())[0], (await board.workers())[0], (await board.tags())[0]];
    const stats = await board.stats();
    assert.ok(queue && group && limit && worker && holder && tag);
    const numbers: readonly number[] = [queue.claimed, queue['arrival-rate'], group.weight, limit.debt, worker.lapsed, holder.claimed, tag.jobs, stats.posted, stats.wait.p99];
    assert.ok(numbers.every((one) => typeof one === 'number'));
    for (const [name, row] of Object.entries({ QueueRow: queue, GroupRow: group, LimitRow: limit, WorkerRow: worker, Statistics: stats, Distribution: stats.wait })) {
      if (name !== 'Distribution') check(name, row);
    }
    assert.deepEqual(Object.keys(stats.wait).sort(), [...kindsOf('Distribution').keys()].sort());
    assert.deepEqual([Object.keys(holder).sort(), Object.keys(tag).sort()], [['active', 'claimed', 'worker'], ['jobs', 'tag']]);
    const state: State | null = await board.state('nobody');
    const told: 'cancelled' | 'requested' | 'already' | null | undefined = (await board.cancel('nobody'))[0];
    assert.deepEqual([state, told], [null, null]);
    assert.equal((await board.settingsGet(['events'])).events?.value, 0);
  });

  test('what does not compile is refused when it runs', async () => {
    const board = server.board();
    await board.post(1, { id: 'a', meta: { a: 'b', n: 1 } });
    assert.deepEqual((await collected(board.list({ meta: { a: 'b', n: 1 } }, { fields: ['id'] }))).length, 1);
    assert.equal((await collected(board.list({ meta: ['a', 'c'] }))).length, 0);
    assert.equal((await collected(board.list({ not: { meta: { a: 'b' } } }))).length, 0);
    await board.settingsSet({ events: 'completed,failed' });
    for (const after of ['abc', 5, [5], { id: 'a' }]) await assert.rejects(board.post(1, { after } as never), /^TypeError: after is a list of ids, \{ ids, onfailure \} or \{ children: true \}, not /);
    assert.ok(await board.post(1, { after: ['a'] }));
    for (const codec of ['msgpack', 5, {}]) assert.throws(() => server.board('x', { codec } as never), /^TypeError: a codec is 'json', 'raw', or \{ encode, decode \}, not /);
    assert.throws(() => board.task('u', { attempts: 3 } as never), /^TypeError: the task 'u' has no option 'attempts': write retries, the tries after the first: attempts 3 are 'retries: 2'$/);
  });

  test('a schedule keeps the options that a later call leaves out', async () => {
    const board = server.board();
    const tick = board.task('tick');
    await tick.schedule({ cron: '0 3 * * *', tz: 'Europe/Berlin', max: 5 }, {});
    await tick.schedule({ cron: '0 3 * * *' }, {});
    assert.deepEqual([(await board.scheduleGet('tick'))?.tz, (await board.scheduleGet('tick'))?.max], ['Europe/Berlin', 5]);
    await board.scheduleDel('tick');
    await tick.schedule({ cron: '0 3 * * *' }, {});
    assert.equal((await board.scheduleGet('tick'))?.max, undefined);
  });

  test('each entry of the package is found without exports too', () => {
    const { exports, typesVersions } = JSON.parse(readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8')) as {
      exports: Record<string, { require?: { types: string } }>;
      typesVersions: { '*': Record<string, string[]> };
    };
    const entries = Object.entries(exports).filter(([name, found]) => name !== '.' && found.require !== undefined);
    assert.deepEqual(typesVersions['*'], Object.fromEntries(entries.map(([name, found]) => [name.slice(2), [found.require?.types]])));
  });
});

describe('working', () => {
  test('a job is claimed, kept and completed', async () => {
    const board = server.board();
    await board.post(4, { id: 'a' });
    const [job] = await board.claim('alice');
    assert.ok(job);
    assert.deepEqual([job.id, job.payload, job.attempt], ['a', 4, 1]);
    assert.equal((await board.heartbeat('alice', job, { progress: 50, stage: 'half', payload: 5 })).cancel, false);
    await assert.rejects(board.heartbeat('alice', { id: 'a', token: 7 }), (error) => BoardError.is(error, 'STALE'));
    await assert.rejects(board.claimId('bob', 'a'), (error) => BoardError.is(error, 'CLAIMED') && error.detail === 'alice');
    assert.deepEqual([(await board.get('a'))?.progress, (await board.get('a'))?.stage, (await board.get('a'))?.payload], [50, 'half', 5]);
    assert.deepEqual((await board.step('alice', job, 'fetch', { pages: 7 })).value, { pages: 7 });
    assert.deepEqual((await board.step('alice', job, 'fetch', { pages: 8 })).value, { pages: 7 });
    assert.deepEqual((await board.step('alice', job, 'fetch', 9, { replace: true })).value, 9);
    await board.post(1, { id: 'b' });
    const chained = await board.consume('alice', job, { result: { n: 8 }, claim: { fields: ['id', 'token'] } });
    assert.deepEqual([chained.ended, chained.jobs.map((one) => one.id)], ['complete', ['b']]);
    assert.deepEqual((await board.get('a'))?.result, { n: 8 });
    assert.deepEqual(await board.claim('alice'), []);
  });

  test('output is read while it is written', async () => {
    const board = server.board();
    await board.post(1, { id: 'j' });
    const [job] = await board.claim('alice');
    assert.ok(job);
    await board.heartbeat('alice', job, { output: [1, 'the '] });
    const read: string[] = [];
    for await (const chunk of board.output('j')) {
      read.push(chunk.text);
      if (chunk.next === 1) await board.step('alice', job, 'a', 1, { output: [2, 'sky '] });
      if (chunk.next === 2) await board.step('alice', job, 'b', 1, { output: [3, Buffer.from([0xff, 0, 0x41])] });
      if (chunk.next === 3) {
        assert.deepEqual(chunk.data, Buffer.from([0xff, 0, 0x41]));
        await board.consume('alice', job, { output: [4, 'is blue'] });
      }
    }
    assert.deepEqual(read, ['the ', 'sky ', '\ufffd\0A', 'is blue']);
    for await (const chunk of board.output('j', { since: 3, follow: false })) assert.equal(chunk.text, 'is blue');
    await assert.rejects(board.output('nobody').next(), JobUnknown);
  });

  test('a claim waits for a batch', async () => {
    const board = server.board();
    const waits = board.claim('alice', { count: 9, min: 3, block: '30s' });
    await board.postMany([1, 2, 3], { ids: ['a', 'b', 'c'] });
    assert.deepEqual((await waits).map((job) => job.id), ['a', 'b', 'c']);
    await board.post(4, { id: 'd' });
    const few = await board.claim('alice', { count: 9, min: 3, linger: '20ms', block: '30s' });
    assert.deepEqual(few.map((job) => job.id), ['d']);
  });

  test('a post waits for room', async () => {
    const board = server.board();
    await board.settingsSet({ 'max-jobs': 1 });
    await board.post(1, { id: 'old', block: '5s' });
    await assert.rejects(board.post(2, { block: '10ms' }), /max-jobs/);
    await assert.rejects(board.postMany([2, 3], { block: '10ms' }), /max-jobs/);
    const waits = board.post(2, { id: 'new', block: '30s' });
    while ((await board.info())?.['blocked-posts'] !== 1);
    await board.delete(['old']);
    assert.equal(await waits, 'new');
  });

  test('the forms for many tell of each', async () => {
    const board = server.board();
    await board.postMany([1, 2, 3, 4], { ids: ['a', 'b', 'c', 'd'] });
    const jobs = await board.claim('alice', { count: 4 });
    const beats = await board.mheartbeat('alice', [...jobs, { id: 'nobody', token: 1 }]);
    assert.ok(beats[4] instanceof Refused && beats[4].code === 'NOJOB');
    assert.equal((await board.mheartbeat('alice', 'all')).length, 4);
    assert.deepEqual(await board.mconsume('alice', jobs.slice(0, 1), { results: ['red'] }), ['complete']);
    assert.equal((await board.get('a'))?.result, 'red');
    const [failure] = await board.mfail('alice', jobs.slice(1, 2), 'Refused', 'off', { retry: '1m' });
    assert.ok(failure && 'state' in failure && failure.state === 'scheduled');
    assert.deepEqual(await board.mtrash('alice', jobs.slice(2, 3), { reason: 'bad' }), ['OK']);
    assert.deepEqual(await board.mabandon('alice', 'all'), [{ id: 'd', ended: 'OK' }]);
  });

  test('ends bring fields, a line and a condition', async () => {
    const board = server.board();
    await board.postMany([1, 2, 3], { ids: ['a', 'b', 'c'], retries: 0 });
    const [a, b, c] = await board.claim('alice', { count: 3 });
    assert.ok(a && b && c);
    const failed = await board.fail('alice', a, 'Down', 'x'.repeat(5000), { meta: { host: 'h' }, log: 'the trace', retain: '1m' });
    assert.deepEqual([failed.state, failed.left, failed.cut], ['failed', 0, 904]);
    const job = await board.get('a', ['meta', 'history', 'retries', 'lapses']);
    assert.deepEqual([job?.meta, job?.retries, job?.lapses], [{ host: 'h' }, 0, 0]);
    assert.deepEqual(job?.history?.slice(2).map((one) => [one.event, one.kind, one.final]), [['log', undefined, undefined], ['failed', 'Down', 1]]);
    await assert.rejects(board.fail('alice', b, 'lapsed', ''), /kind must not be one of the server's own/);
    await assert.rejects(board.consume('alice', b, { if: { queue: 'mails' } }), (error) => BoardError.is(error, 'WRONGQUEUE') && error.detail === 'default');
    assert.equal(await board.consume('alice', b, { if: { queue: 'default' }, meta: { x: 1 }, retain: '1m' }), 'complete');
    assert.deepEqual((await board.get('b'))?.meta, { x: '1' });
    assert.equal((await board.release('c', { front: true })).count, 1);
    assert.equal((await board.releaseWhere({ worker: 'alice' }, { front: true })).count, 0);
  });

  test('workers are registered', async () => {
    const board = server.board();
    assert.equal((await board.workerRegister('alice', { role: 'mailer', meta: { host: 'web' }, for: '1m' })).quiet, false);
    await board.workerQuiet('alice');
    assert.deepEqual((await collected(board.workerList({ role: 'mailer' }))).map((one) => [one.worker, one.quiet, one.meta]), [['alice', 1, { host: 'web' }]]);
    await board.workerResume('alice');
    assert.equal(await board.workerDeregister('alice'), true);
  });
});

describe('operating', () => {
  test('verbs by ids and by filters', async () => {
    const board = server.board();
    await board.postMany([1, 2, 3], { ids: ['a', 'b', 'c'], queue: 'old' });
    assert.deepEqual(await board.cancel(['a', 'zebra']), ['cancelled', null]);
    assert.equal((await board.requeue('a', { queue: 'new' })).count, 1);
    assert.equal((await board.updateWhere({ queue: 'old' }, { priority: 9, tag: ['x'] }, { count: 1 })).count, 2);
    assert.deepEqual((await collected(board.list({ tag: 'x' }))).map((job) => job.priority), [9, 9]);
    assert.equal((await board.cancelWhere({ tag: 'x' }, { dryrun: true })).count, 2);
    assert.equal((await board.deleteWhere({ tag: 'x' }, { fields: ['id'] })).jobs.length, 2);
    await assert.rejects(board.deleteWhere({}), /no filter is given/);
    await board.claim('alice', { queues: ['new'] });
    assert.equal((await board.release('a')).count, 1);
    await board.claim('alice', { queues: ['new'] });
    assert.equal((await board.releaseWhere({ worker: 'alice' })).count, 1);
    await board.cancel('a');
    assert.equal((await board.requeueWhere({ state: 'cancelled' }, { to: 'fast' })).count, 1);
    assert.equal((await board.delete('a', { return: true })).jobs[0]?.queue, 'fast');
  });

  test('dead jobs go back by filters, to where they failed', async () => {
    const board = server.board();
    await board.settingsSet({ 'dead-queue': 'unsent' }, { queue: 'mails' });
    await board.post(1, { id: 'a', queue: 'mails', retries: 0 });
    const [job] = await board.claim('alice', { queues: ['mails'] });
    assert.ok(job);
    await board.fail('alice', job, 'Refused', 'no such mailbox');
    assert.equal((await board.get('a'))?.queue, 'unsent');
    assert.equal((await board.requeueWhere({ queue: 'unsent' }, { origin: true, dryrun: true })).count, 1);
    assert.equal((await board.requeueWhere({ queue: 'unsent' }, { origin: true })).count, 1);
    assert.equal((await board.get('a'))?.queue, 'mails');
  });

  test('dependencies, pauses, settings', async () => {
    const board = server.board();
    await board.postMany([1, 2], { ids: ['a', 'b'] });
    assert.equal(await board.dependAdd('b', ['a'], { onfailure: 'run' }), 'blocked');
    assert.equal(await board.dependRemove('b', ['a']), 'ready');
    assert.equal(await board.dependClear('b'), 'ready');
    await board.pause({ queue: 'default', for: '5m' });
    assert.deepEqual(await board.claim('alice'), []);
    await board.resume({ queue: 'default' });
    await board.settingsSet({ lease: '1m', events: 'posted,failed', 'keep-failed': 5 });
    await board.settingsSet({ concurrency: 2, rate: 100, 'rate-period': '1m' }, { limit: 'api' });
    await board.settingsSet({ limits: ['api'] }, { queue: 'mails' });
    assert.deepEqual((await board.settingsGet(['lease', 'limits'], { queue: 'mails' })).limits, { value: ['api'], source: 'queue' });
    assert.deepEqual((await board.settingsGet(['lease'])).lease, { value: 60_000, source: 'board' });
    await board.settingsReset(['lease']);
    assert.equal((await board.settingsGet(['lease'])).lease?.source, 'default');
    assert.deepEqual((await board.limits()).map((one) => one.limit), ['api']);
    // @ts-expect-error: there is no such setting
    await assert.rejects(board.settingsSet({ leash: '1s' }), /there is no setting 'leash'/);
  });
});

describe('signals', () => {
  test('a job waits for them, and is told what they say', async () => {
    const board = server.board();
    await board.post(1, { id: 'a' });
    const [first] = await board.claim('w');
    assert.ok(first);
    assert.deepEqual(await board.awaitSignals('w', first, ['approved', 'paid'], { within: '1h' }), { state: 'blocked', timeout: false, signals: undefined });
    assert.deepEqual(await board.signal('approved', ['a', 'nobody'], { value: { by: 'eve' }, sender: 'eve' }), ['kept', null]);
    assert.deepEqual(await board.signal('paid', 'a'), ['woken']);
    const [again] = await board.claim('w');
    assert.ok(again);
    const { state, timeout, signals } = await board.awaitSignals('w', again, ['approved', 'paid'], { within: '1h' });
    assert.deepEqual([state, timeout, signals?.['approved']?.value, signals?.['approved']?.sender, signals?.['paid']?.value], ['claimed', false, { by: 'eve' }, 'eve', undefined]);
  });
});

describe('children', () => {
  test('a job waits for them, however many there are', async () => {
    const board = server.board();
    await board.post(1, { id: 'p' });
    const [first] = await board.claim('w');
    assert.ok(first);
    await board.postMany([1, 2], { ids: ['a', 'b'], parent: 'p' });
    assert.deepEqual(await board.awaitChildren('w', first, { onfailure: 'run' }), { state: 'blocked', children: undefined });
    const [a, b] = await board.claim('w', { count: 2 });
    assert.ok(a && b);
    await board.consume('w', a);
    await board.fail('w', b, 'ValueError', 'no number', { noretry: true });
    const [again] = await board.claim('w');
    assert.ok(again);
    assert.deepEqual(await board.awaitChildren('w', again, { onfailure: 'run' }), { state: 'claimed', children: { total: 2, pending: 0, unsuccessful: 1 } });
    assert.deepEqual(await board.awaitChildren('w', again, { onfailure: 'cancel' }), { state: 'cancelled', children: undefined });
  });

  test('signals and children in one wait, and what the claim has cost', async () => {
    const board = server.board();
    await board.settingsSet({ rate: 1000, 'rate-period': '1m', burst: 5000 }, { limit: 'tokens' });
    await board.settingsSet({ limits: ['tokens'] }, { queue: 'default' });
    await board.post(1, { id: 'p' });
    const [first] = await board.claim('w');
    assert.ok(first);
    await board.post(2, { id: 'c', parent: 'p', queue: 'other' });
    assert.equal((await board.awaitChildren('w', first, { cost: 3, costs: { tokens: 812 } })).state, 'blocked');
    assert.deepEqual((await board.get('p'))?.spent, { cost: 3, costs: { tokens: 812 } });
    await board.delete(['c']);
    const [second] = await board.claim('w');
    assert.ok(second);
    assert.equal((await board.awaitSignals('w', second, ['go'], { any: true, within: '1h', children: 'run', cost: 2 })).state, 'blocked');
    assert.deepEqual([(await board.get('p'))?.spent, (await board.get('p'))?.awaits?.children?.onfailure], [{ cost: 2 }, 'run']);
    await board.signal('go', 'p', { value: 5 });
    const [third] = await board.claim('w');
    assert.ok(third);
    const both = await board.awaitSignals('w', third, ['go'], { any: true, children: 'run' });
    assert.deepEqual([both.state, both.signals?.['go']?.value, both.children], ['claimed', 5, { total: 0, pending: 0, unsuccessful: 0 }]);
  });

  test('flows and operators', async () => {
    const board = server.board();
    const flow = new Flow(board);
    const sum = flow.add({ payload: 1, id: 'sum' }, { afterChildren: true, onfailure: 'cancel' });
    flow.add({ payload: 2, id: 'part' }, { parent: sum });
    await flow.post();
    assert.equal((await board.explain('sum'))?.reasons.at(0)?.reason, 'children');
    assert.equal(await board.dependRemove('sum', 'children'), 'ready');
    assert.equal(await board.dependAdd('sum', 'children', { onfailure: 'run' }), 'blocked');
    await board.post(3, { id: 'sum', replace: true, after: [{ ids: ['part'] }, { children: true }] });
    assert.deepEqual((await board.explain('sum'))?.reasons.map((one) => one.reason), ['dependencies', 'children']);
    assert.equal((await board.get('sum'))?.pending, 1);
  });
});

describe('reading', () => {
  test('reads', async () => {
    const board = server.board();
    await board.post(1, { id: 'p', name: 'top', group: 'acme', tags: ['x'] });
    await board.post(2, { id: 'c', parent: 'p' });
    assert.deepEqual((await collected(board.children('p'))).map((job) => job.id), ['c']);
    assert.deepEqual((await board.history('p'))?.map((one) => one.event), ['posted']);
    assert.equal((await board.explain('p'))?.reasons.at(0)?.reason, 'unclaimed');
    assert.equal((await board.queues())[0]?.ready, 2);
    assert.equal((await board.groups())[0]?.group, 'acme');
    assert.deepEqual(await board.tags(), [{ tag: 'x', jobs: 1 }]);
    const [job] = await board.claim('alice', { fields: ['id', 'token'] });
    assert.ok(job);
    await board.fail('alice', job, 'ValueError', 'no number', { noretry: true });
    assert.deepEqual(await board.kinds(), { ValueError: 1 });
    assert.deepEqual(await board.workers(), []);
    assert.equal((await board.stats()).posted, 2);
    assert.deepEqual((await board.stats()).costs, {});
    const info = await board.info({ digest: true });
    assert.equal(info?.jobs, 2);
    assert.match(await board.metrics(), /jobboard_jobs\{board="board"/);
    const changed = await board.listChanged(0);
    assert.deepEqual(changed.items.map((one) => one.id).sort(), ['c', 'p']);
    assert.equal((await board.listPage({ state: 'failed' })).items.length, 1);
    assert.equal(await board.state('nobody'), null);
  });
});

describe('waiting', () => {
  test('a result tells apart how a job ended', async () => {
    const board = server.board();
    await board.postMany([1, 2, 3], { ids: ['a', 'b', 'c'] });
    const [a, b, c] = await board.claim('alice', { count: 3 });
    assert.ok(a && b && c);
    await assert.rejects(board.result('a', { timeout: '10ms' }), TimedOut);
    await board.post(1, { id: 'waits' });
    await assert.rejects(board.result('waits', { timeout: '1ms' }), /^TimedOut: waits has not ended in time: it is ready, and no worker has claimed it$/);
    await board.cancel('waits');
    await assert.rejects(board.result('waits'), /^JobFailed: waits cancelled$/);
    const result = board.result('a', { timeout: '30s' });
    await board.consume('alice', a, { result: { sum: 4 } });
    assert.deepEqual(await result, { sum: 4 });
    await board.fail('alice', b, 'ValueError', 'no', { noretry: true });
    await assert.rejects(board.result('b'), (error) => error instanceof JobFailed && error.message === 'b failed: ValueError: no');
    await board.consume('alice', c);
    await assert.rejects(board.result('c'), ResultDropped);
    await assert.rejects(board.result('zebra'), JobUnknown);
    assert.equal(await board.waitFor('empty', { timeout: '1s' }), true);
    await assert.rejects(board.call(1, { within: '10ms', id: 'd' }), TimedOut);
    assert.equal(await board.state('d'), 'cancelled');
  });

  test('a watch shows what becomes of a job', async () => {
    const board = server.board();
    await board.post(1, { id: 'a' });
    const seen: string[] = [];
    for await (const job of board.watch('a', { timeout: '30s', fields: ['progress'] })) {
      seen.push(`${job.state} ${String(job.progress ?? '')}`.trim());
      if (seen.length === 1) await board.claim('alice');
      if (seen.length === 2) await board.heartbeat('alice', { id: 'a' }, { progress: 50 });
      if (seen.length === 3) await board.consume('alice', { id: 'a' });
    }
    assert.deepEqual(seen, ['ready', 'claimed', 'claimed 50', 'complete']);
  });

  for (const fields of [undefined, ['progress']] as const) {
    test(`a watch of ${fields?.join() ?? 'all fields'} shows no heartbeat that changes none of them`, async () => {
      const board = server.board();
      const send = board.sendWaiting.bind(board);
      let replies = 0;
      board.sendWaiting = async (...words) => {
        const reply = await send(...words);
        if (reply !== null) replies += 1;
        return reply;
      };
      await board.post(1, { id: 'a' });
      const seen: string[] = [];
      const watching = (async () => {
        for await (const job of board.watch('a', fields && { fields })) seen.push(`${job.state} ${String(job.progress ?? '')}`.trim());
      })();
      await until(() => seen.length === 1);
      await board.claim('alice');
      await until(() => seen.length === 2);
      for (const progress of [undefined, 50, 50, undefined]) {
        const before = replies;
        await server.advance('1s');
        await board.heartbeat('alice', { id: 'a' }, { progress });
        await until(() => replies > before);
      }
      await board.consume('alice', { id: 'a' });
      await watching;
      assert.deepEqual(seen, ['ready', 'claimed', 'claimed 50', 'complete']);
    });
  }

  test('a watch shows the version to who asks for it', async () => {
    const board = server.board();
    await board.post(1, { id: 'a' });
    let seen = 0;
    for await (const job of board.watch('a', { fields: ['version'] })) {
      seen += 1;
      if (seen === 1) await board.claim('alice');
      else if (seen === 2) await board.heartbeat('alice', { id: 'a' });
      else if (!job.isEnded) await board.consume('alice', { id: 'a' });
    }
    assert.equal(seen, 4);
  });

  test('events are heard', async () => {
    const board = server.board();
    await assert.rejects(board.events('posted'), /publishes no posted/);
    await board.settingsSet({ events: 'posted,completed' });
    const events = await board.events('posted');
    await board.post(1, { id: 'a' });
    const first = await events.next();
    assert.equal(first.done === true ? '' : first.value.id, 'a');
    const other = server.board('admin');
    await until(async () => {
      await other.info();
      return true;
    });
    events.close();
    assert.equal((await events.next()).done, true);
  });

  test('a wait is ended by its signal', async () => {
    const board = server.board();
    await board.post(1, { id: 'a' });
    await assert.rejects(board.result('a', { signal: AbortSignal.timeout(20) }), { name: 'TimeoutError' });
  });
});

test('a connection that is closed while it is made does not stay', async () => {
  const link = server.board().place.open('closed-early');
  const asked = link.ask(['PING'], { patient: false });
  link.close();
  await assert.rejects(asked, ConnectionLost);
  await until(async () => !String(await ask(server.url, 'CLIENT', 'LIST')).includes('name=closed-early'));
});

test('a server without the module, and none at all', async () => {
  const away = new Board('b', 'redis://127.0.0.1:1');
  server.allow(away);
  await assert.rejects(away.post(1), (error) => error instanceof ConnectionLost && error.message.includes('$JOBBOARD_URL'));
  await assert.rejects(TestServer.start({ module: '/nowhere.so' }), /has not started/);
  assert.equal(new NoModule('x').code, 'ERR');
});
