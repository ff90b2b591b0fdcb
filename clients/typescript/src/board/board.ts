/** A board, as a program uses it. */
import { type Events, eventsOf } from '../events.js';
import type { EventKind, PostOptions, ScheduleSetOptions } from '../generated.js';
import { type HandlerFunction, Handlers, nearest, type Which } from '../handlers.js';
import { refuseUnknown, refuseUnknownOfTask } from '../known.js';
import { isSchema, type Schema, validated } from '../schema.js';
import type { ScheduleOptions } from '../schedules.js';
import { shown } from '../shown.js';
import { Task, type TaskOptions } from '../tasks.js';
import type { Duration } from '../durations.js';
import { Waiting } from './waiting.js';

/** Another program has the task: a board that has tasks refuses names that none of them has otherwise. */
export interface Elsewhere {
  elsewhere?: boolean | undefined;
}

/**
 * A board on a server, with every command of the module, tasks and handlers.
 *
 *     const board = new Board('mails'); // on the server of $JOBBOARD_URL
 *     const id = await board.post({ to: 'ann' }, { name: 'welcome' });
 */
export class Board extends Waiting {
  /** What its workers run. */
  readonly handlers = new Handlers();
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly #tasks = new Map<string, Task<any, any, any>>();

  /**
   * A task: its name, the schema of its payload (of any library that keeps to Standard Schema), and options of its
   * jobs. `handle` says what does it.
   *
   *     const welcome = board.task('welcome', z.object({ to: z.string() }), { retries: 3 });
   *     await welcome.post({ to: 'ann' });
   */
  task<Input, Output, Result = unknown>(name: string, schema: Schema<Input, Output>, options?: TaskOptions<Input, Result>): Task<Input, Output, Result>;
  task<Input = unknown, Result = unknown>(name: string, options?: TaskOptions<Input, Result>): Task<Input, Input, Result>;
  task(name: string, ...rest: unknown[]): Task<unknown> {
    const schema = isSchema(rest[0]) ? rest[0] : undefined;
    const options = (schema ? rest[1] : rest[0]) as TaskOptions | undefined;
    if (typeof name !== 'string' || name === '') throw new TypeError("a task has a name: board.task('welcome')");
    if (this.#tasks.has(name)) throw new Error(`there is a task '${name}' already`);
    refuseUnknownOfTask(name, options ?? {});
    const task = new Task<unknown>(this, name, schema, options ?? {});
    this.#tasks.set(name, task);
    return task;
  }

  /**
   * A function for jobs that no task describes: those of a name, all of a queue (which goes before one of the name),
   * or all that no other does.
   *
   *     board.handler({ queue: 'bulk' }, async (payload, context) => { … })
   */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  handler<Payload = any>(which: Which | string, handler: HandlerFunction<Payload>): void {
    if (typeof which !== 'string') refuseUnknown('a handler', which, { name: true, queue: true, noretry: true });
    if (typeof handler !== 'function') throw new TypeError(`a handler is a function: board.handler('welcome', async (payload, context) => …), not ${shown(handler)}`);
    const { name, queue, noretry = [] } = typeof which === 'string' ? { name: which } : which;
    this.handlers.add(name, queue, { function: handler, noretry, queue: queue ?? 'default', schema: undefined });
  }

  override async post(payload: unknown, options: PostOptions & Elsewhere & { nx: true }): Promise<string | null>;
  override async post(payload: unknown, options: PostOptions & Elsewhere & { xx: true }): Promise<string | null>;
  override async post(payload?: unknown, options?: PostOptions & Elsewhere): Promise<string>;
  override async post(payload: unknown = {}, { elsewhere, ...options }: PostOptions & Elsewhere = {}): Promise<string> {
    return super.post(payload, await this.#checked([payload], options, elsewhere));
  }

  override async postMany(payloads: Iterable<unknown>, { elsewhere, ...options }: Parameters<Waiting['postMany']>[1] & Elsewhere = {}): Promise<(string | null)[]> {
    const all = [...payloads];
    return super.postMany(all, await this.#checked(all, options, elsewhere));
  }

  override async scheduleSet(id: string, payload: unknown, { elsewhere, ...options }: ScheduleOptions & Elsewhere): Promise<void> {
    return super.scheduleSet(id, payload, await this.#checked([payload ?? {}], options, elsewhere));
  }

  /**
   * What happens on the board, as it happens: all kinds, or these. It listens when the promise is fulfilled. The
   * setting `events` says what a board publishes; nothing by default.
   *
   *     for await (const event of await board.events('completed', 'failed')) console.log(event.id)
   */
  async events(...kinds: readonly EventKind[]): Promise<Events> {
    return eventsOf(this, kinds);
  }

  /** @internal Posts what a task has checked. */
  async rawPost(payload: unknown, options: PostOptions): Promise<string> {
    return super.post(payload, options); // null with `nx` or `xx`: the types of `Task.post` say so
  }

  /** @internal */
  async rawPostMany(payloads: unknown[], options: PostOptions): Promise<(string | null)[]> {
    return super.postMany(payloads, options);
  }

  /** @internal */
  async rawScheduleSet(id: string, payload: unknown, options: ScheduleSetOptions): Promise<void> {
    return super.scheduleSet(id, payload, options as ScheduleOptions);
  }

  /** @internal */
  async rawCall<R>(payload: unknown, options: PostOptions & { within?: Duration | undefined; signal?: AbortSignal | undefined }): Promise<R> {
    return this.call<R>(payload, { ...options, elsewhere: true } as Parameters<Waiting['call']>[1]);
  }

  /** Refuses what no task takes; the queue is that of the task. */
  async #checked<O extends { name?: string | undefined; queue?: string | undefined }>(payloads: readonly unknown[], options: O, elsewhere: boolean | undefined): Promise<O> {
    if (elsewhere === true || this.#tasks.size === 0 || options.name === undefined) return options;
    const task = this.#tasks.get(options.name);
    if (task === undefined) {
      try {
        this.handlers.find(options.name, options.queue ?? 'default');
        return options;
      } catch {
        const near = nearest(options.name, [...this.#tasks.keys()]);
        const hint = near === undefined ? `there are ${[...this.#tasks.keys()].join(', ')}.` : `did you mean '${near}'?`;
        throw new TypeError(`no task has the name '${options.name}'; ${hint} When another program has it, post with elsewhere: true`);
      }
    }
    for (const payload of payloads) await validated(task.schema, payload, task.name);
    return options.queue === undefined && task.options.queue !== undefined ? { ...options, queue: task.options.queue } : options;
  }
}
