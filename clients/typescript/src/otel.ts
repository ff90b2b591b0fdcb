/** OpenTelemetry: a span for each post and each run, joined by `traceparent` in the job's META. */
import { context as current, propagation, type Span, SpanKind, SpanStatusCode, trace, type TracerProvider } from '@opentelemetry/api';

import type { Context } from './context.js';
import type { Hook } from './hooks.js';
import { Abandon, Stopped } from './outcomes.js';

const SYSTEM = 'jobboard';

function failed(span: Span, error: unknown): void {
  span.recordException(error as Error);
  span.setAttribute('error.type', error instanceof Error ? error.constructor.name : typeof error);
  span.setStatus({ code: SpanStatusCode.ERROR, message: String(error) });
}

/**
 * Spans by `provider`, or by the global one: `new Board('mails', { hook: tracing() })`, with names and attributes of
 * OpenTelemetry's conventions for messaging: the destination is the board, the message the job. A run's span is a child
 * of the post's span. A run that was cancelled, lost or given back is no error. META makes a record about 600 bytes larger.
 */
export function tracing(provider?: TracerProvider): Hook {
  const tracer = (provider ?? trace).getTracer(SYSTEM);
  return {
    posting(board, name, count) {
      const span = tracer.startSpan(`post ${board}`, {
        kind: SpanKind.PRODUCER,
        attributes: {
          'messaging.system': SYSTEM,
          'messaging.destination.name': board,
          'messaging.operation.name': 'post',
          'messaging.operation.type': 'send',
          ...(name === undefined ? {} : { 'jobboard.job.name': name }),
          ...(count > 1 ? { 'messaging.batch.message_count': count } : {}),
        },
      });
      const meta: Record<string, string> = {};
      propagation.inject(trace.setSpan(current.active(), span), meta);
      return {
        meta,
        done: (error, posted) => {
          if (error !== undefined) failed(span, error);
          else if (typeof posted === 'string') span.setAttribute('messaging.message.id', posted);
          span.end();
        },
      };
    },
    async running<T>(context: Context, run: () => Promise<T>): Promise<T> {
      const { job } = context;
      const parent = propagation.extract(current.active(), { ...context.meta });
      const span = tracer.startSpan(
        `run ${context.board.name}`,
        {
          kind: SpanKind.CONSUMER,
          attributes: {
            'messaging.system': SYSTEM,
            'messaging.destination.name': context.board.name,
            'messaging.operation.name': 'run',
            'messaging.operation.type': 'process',
            'jobboard.job.queue': job.queue,
            'messaging.message.id': job.id,
            'jobboard.job.attempt': job.attempt,
            'jobboard.worker': context.worker,
            ...(job.name === undefined ? {} : { 'jobboard.job.name': job.name }),
          },
        },
        parent,
      );
      try {
        return await current.with(trace.setSpan(parent, span), run);
      } catch (error) {
        if (error instanceof Stopped || error instanceof Abandon || context.mustStop) {
          span.setAttribute('jobboard.stopped', (error as Error).name);
        } else {
          failed(span, error);
        }
        throw error;
      } finally {
        span.end();
      }
    },
  };
}
