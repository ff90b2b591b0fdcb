/** Where tracing hangs: around posts and around runs of handlers. */
import type { Context } from './context.js';

/** What a board calls around its work. `tracing()` of `jobboard/otel` makes spans. */
export interface Hook {
  /**
   * Before a post: fields to put into the jobs' META, and what to call when it was answered, with the error or what was
   * posted: an id, several, or null.
   */
  posting?(board: string, name: string | undefined, count: number): { meta?: Record<string, string>; done?: (error?: unknown, posted?: unknown) => void };
  /** Around a run of a handler: it calls `run` and returns what that does. */
  running?<T>(context: Context, run: () => Promise<T>): Promise<T>;
}

export const NO_HOOK: Hook = {};

/** Several hooks as one, the first outermost. */
export function hooks(...all: readonly Hook[]): Hook {
  return {
    posting(board, name, count) {
      const found = all.map((hook) => hook.posting?.(board, name, count) ?? {});
      return {
        meta: Object.assign({}, ...found.map((one) => one.meta)) as Record<string, string>,
        done: (error, posted) => {
          for (const one of found.reverse()) one.done?.(error, posted);
        },
      };
    },
    running(context, run) {
      return all.reduceRight((inner, hook) => (hook.running ? () => (hook.running as NonNullable<Hook['running']>)(context, inner) : inner), run)();
    },
  };
}
