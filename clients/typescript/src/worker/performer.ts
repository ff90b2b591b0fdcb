/** Calls a handler, and says what its return or its error means. */
import { types } from 'node:util';

import type { Board } from '../board/board.js';
import { encoded } from '../codecs.js';
import type { Context } from '../context.js';
import { toMs } from '../durations.js';
import { ArgumentError, PayloadError } from '../errors.js';
import { type Handler, NoHandler } from '../handlers.js';
import { Abandon, allowedKind, CancelRequested, Complete, GoHome, Killed, Lost, Next, NoRetry, RateLimited, Retry, shortened, Trash } from '../outcomes.js';
import { validated } from '../schema.js';
import { shown } from '../shown.js';
import { advanced, completed, failed, givenBack, NOTHING, type Outcome, trashed } from './run.js';

const STACK = 3500;

/** A `Next` without a name would lead to the handler that returned it, in this worker, for ever. */
class SameHandler extends Error {
  override readonly name = 'SameHandler';
}

/** Runs the handler of a job; how the run ends. `queues`: those that the worker claims from, all when empty. */
export async function perform(board: Board, context: Context, stacks: boolean, queues: readonly string[]): Promise<Outcome> {
  let handler: Handler | undefined;
  try {
    const found = (handler = board.handlers.find(context.job.name, context.job.queue));
    context.check();
    const payload = found.schema === undefined ? context.job.payload : await validated(found.schema, context.job.payload, context.job.name ?? 'the payload');
    const value: unknown = await (board.hook.running === undefined ? found.function(payload, context) : board.hook.running(context, async () => await found.function(payload, context)));
    return context.givenUp ? NOTHING : ended(board, context, found, value, queues);
  } catch (error) {
    return failure(error, context, handler, stacks);
  }
}

function ended(board: Board, context: Context, handler: Handler, value: unknown, queues: readonly string[]): Outcome {
  if (value instanceof Next) {
    if (value.options.name === undefined && (queues.length === 0 || queues.includes(value.queue)) && leadsBack(board, context, handler, value.queue)) {
      throw new SameHandler(
        `Next('${value.queue}') would lead to this handler again: name the next step, new Next('${value.queue}', payload, { name: … }), or give the queue a handler of its own`,
      );
    }
    return advanced(value, value.payload === undefined ? null : encoded(board.codec, value.payload, 'the next payload'));
  }
  const [result, options] = value instanceof Complete ? [value.result, value.options] : [value, {}];
  return completed(result === undefined || result === null ? null : encoded(board.codec, result, 'the result'), result, options);
}

function leadsBack(board: Board, context: Context, handler: Handler, queue: string): boolean {
  try {
    return board.handlers.find(context.job.name, queue) === handler;
  } catch {
    return false;
  }
}

function failure(error: unknown, context: Context, handler: Handler | undefined, stacks: boolean): Outcome {
  if (context.lost || context.givenUp || error instanceof Lost || error instanceof Killed) return NOTHING;
  if (context.cancelled || error instanceof CancelRequested) return givenBack('cancelled');
  if (error instanceof GoHome) return givenBack('the worker stops');
  if (error instanceof NoHandler) return { ...NOTHING, kind: 'unhandled', value: error.message };
  if (error instanceof Abandon) return givenBack(error.message, error.delay === undefined ? undefined : toMs(error.delay));
  if (error instanceof RateLimited) return givenBack(error.message, undefined, [error.limit, toMs(error.time)]);
  if (error instanceof Trash) return trashed(error.message);
  if (error instanceof Retry) {
    const stack = error.cause === undefined ? undefined : stackOf(error);
    if (stacks) tell(stack, context);
    return failed(error.kind, error.message, { ...(error.delay === undefined ? {} : { delay: toMs(error.delay) }), error, stack });
  }
  if (error instanceof NoRetry) {
    const stack = error.cause === undefined ? undefined : stackOf(error);
    if (stacks) tell(stack, context);
    return failed(error.kind, error.message, { noretry: true, error, stack });
  }
  const known = error instanceof PayloadError || error instanceof SameHandler || error instanceof ArgumentError;
  const stack = known ? undefined : stackOf(error);
  if (stacks) tell(stack, context);
  const noretry = known || (handler?.noretry.some((kind) => error instanceof kind) ?? false);
  const [kind, message] = wordsOf(error);
  return failed(allowedKind(kind), message, { noretry, error, stack });
}

/** Kind and message of what was thrown, which may be anything. */
function wordsOf(thrown: unknown): [kind: string, message: string] {
  if (isError(thrown)) {
    const [name, message] = [thrown.name, thrown.message] as unknown[]; // programs set these to anything
    return [typeof name === 'string' && name !== 'Error' ? name : thrown.constructor.name, typeof message === 'string' ? message : shown(message)];
  }
  if (typeof thrown === 'string' && thrown !== '') return ['Error', thrown];
  return ['Error', `the handler threw ${shown(thrown)}, which is no Error`];
}

/** Also one of another realm, such as those of test runners. */
const isError = (thrown: unknown): thrown is Error => thrown instanceof Error || types.isNativeError(thrown);

/** Where an error comes from, and its cause. */
function stackOf(error: unknown): string | undefined {
  if (!isError(error) || error.stack === undefined) return undefined;
  const cause = isError(error.cause) ? `\ncaused by ${error.cause.stack ?? ''}` : '';
  return `${error.stack}${cause}`;
}

function tell(stack: string | undefined, context: Context): void {
  if (stack !== undefined) context.stackOf(shortened(stack, STACK));
}
