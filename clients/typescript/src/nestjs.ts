/** NestJS: a board as a provider, handlers as methods of providers, and a worker that lives as long as the application. */
import 'reflect-metadata';

import { type DynamicModule, Inject, Module, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';

import { Board } from './board/board.js';
import type { Context } from './context.js';
import type { HandlerFunction, Which } from './handlers.js';
import { Task } from './tasks.js';
import type { WorkerOptions } from './worker/options.js';
import { Worker } from './worker/worker.js';

const HANDLERS = Symbol('jobboard handlers');

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type AnyTask = Task<any, any, any>;

/** A decorator of methods that take the payload of a task, and return its result. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type MethodOf<Output, Result> = <M extends (payload: Output, context: Context<any>) => Result | Promise<Result>>(prototype: object, method: string | symbol, descriptor: TypedPropertyDescriptor<M>) => void;

interface Found {
  readonly method: string;
  readonly which: string | Which | AnyTask;
}

/**
 * A method that does jobs: of a task, of a name, or of a queue.
 *
 *     @Handler(welcome) async send({ to }: { to: string }, context: Context) { … }
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export function Handler<Output, Result>(task: Task<any, Output, Result>): MethodOf<Output, Result>;
export function Handler(which: string | Which): MethodDecorator;
export function Handler(which: string | Which | AnyTask): MethodDecorator {
  return (prototype, method) => {
    const known = (Reflect.getMetadata(HANDLERS, prototype) ?? []) as readonly Found[];
    Reflect.defineMetadata(HANDLERS, [...known, { method: String(method), which }], prototype);
  };
}

/** What the module is told. `worker: false`: this application only posts. */
export interface JobboardModuleOptions {
  board: Board;
  worker?: WorkerOptions | false;
}

/** The worker of an application: it starts when all providers are there, and drains when the application closes. */
class Runner implements OnApplicationBootstrap, OnApplicationShutdown {
  #worker: Worker | undefined;
  #running: Promise<unknown> | undefined;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly options: JobboardModuleOptions,
  ) {}

  onApplicationBootstrap(): void {
    const { board, worker } = this.options;
    if (worker === false) return;
    for (const { instance } of this.discovery.getProviders() as { instance: unknown }[]) {
      if (typeof instance !== 'object' || instance === null) continue;
      for (const { method, which } of (Reflect.getMetadata(HANDLERS, instance) ?? []) as readonly Found[]) {
        const run = (instance as Record<string, HandlerFunction>)[method]?.bind(instance) as HandlerFunction;
        if (which instanceof Task) which.handle(run);
        else board.handler(which, run);
      }
    }
    this.#worker = new Worker(board, worker ?? {});
    // Nest heeds signals itself, by app.enableShutdownHooks().
    this.#running = this.#worker.run({ signals: false });
    this.#running.catch((error: unknown) => {
      this.#worker?.options.log.error(`the worker has ended: ${(error as Error).message}`);
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#worker?.stop();
    this.options.board.close();
  }
}

/**
 * `imports: [JobboardModule.forRoot({ board, worker: { concurrency: 4 } })]`; `Board` is what providers ask for. Call
 * `app.enableShutdownHooks()`, so that SIGTERM drains the worker.
 */
export class JobboardModule {
  static forRoot(options: JobboardModuleOptions): DynamicModule {
    return {
      module: JobboardModule,
      global: true,
      imports: [DiscoveryModule],
      providers: [
        { provide: Board, useValue: options.board },
        { provide: Runner, useFactory: (discovery: DiscoveryService) => new Runner(discovery, options), inject: [DiscoveryService] },
      ],
      exports: [Board],
    };
  }
}
Module({})(JobboardModule);

/** Injects the board, where the type of a parameter is not known. */
export const InjectBoard = (): ParameterDecorator & PropertyDecorator => Inject(Board);
