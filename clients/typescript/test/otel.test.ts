import assert from 'node:assert/strict';
import { test } from 'node:test';

import { context, propagation, type Span, trace } from '@opentelemetry/api';

import { hooks } from '../src/index.js';
import { tracing } from '../src/otel.js';
import { serverOf } from './harness.js';

const server = await serverOf();

/** A provider that keeps what it is told. */
function recorder() {
  const spans: { name: string; attributes: Record<string, unknown>; error?: string; ended: boolean; parent: unknown }[] = [];
  const tracer = {
    startSpan(name: string, options: { attributes: Record<string, unknown> }, parent = context.active()) {
      const span = { name, attributes: { ...options.attributes }, ended: false, parent: trace.getSpanContext(parent)?.spanId } as (typeof spans)[number];
      spans.push(span);
      return {
        spanContext: () => ({ traceId: '0af7651916cd43dd8448eb211c80319c', spanId: `b7ad6b716920333${String(spans.length)}`, traceFlags: 1 }),
        setAttribute: (key: string, value: unknown) => (span.attributes[key] = value),
        recordException: (error: Error) => (span.error = error.message),
        setStatus: () => undefined,
        end: () => (span.ended = true),
      } as unknown as Span;
    },
  };
  return { spans, provider: { getTracer: () => tracer } as never };
}

test('a run is a child of its post', async () => {
  propagation.setGlobalPropagator({
    inject: (from, carrier: Record<string, string>) => {
      const found = trace.getSpanContext(from);
      if (found) carrier['traceparent'] = `00-${found.traceId}-${found.spanId}-01`;
    },
    extract: (from, carrier: Record<string, string>) => {
      const [, traceId = '', spanId = ''] = (carrier['traceparent'] ?? '').split('-');
      return trace.setSpanContext(from, { traceId, spanId, traceFlags: 1, isRemote: true });
    },
    fields: () => ['traceparent'],
  });
  const { spans, provider } = recorder();
  const seen: string[] = [];
  const hook = hooks(tracing(provider), { posting: (board) => ({ meta: { from: board } }), running: async (running, run) => (seen.push(running.id), run()) });
  const board = server.board('board', { hook });
  const task = board.task<{ bad?: boolean }>('work', { retries: 0 }).handle(({ bad }) => {
    if (bad) throw new Error('broken');
    return 1;
  });
  const id = await task.post({}, { meta: { mine: 'x' } });
  await task.post({ bad: true });
  await server.work(board);
  assert.deepEqual((await board.get(id))?.meta, { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', from: 'board', mine: 'x' });
  assert.deepEqual(spans.map((span) => [span.name, span.error, span.ended]), [['post board', undefined, true], ['post board', undefined, true], ['run board', undefined, true], ['run board', 'broken', true]]);
  assert.equal(spans[2]?.parent, 'b7ad6b7169203331');
  const [post, , run, bad] = spans.map((span) => span.attributes);
  for (const same of ['messaging.system', 'messaging.destination.name', 'messaging.message.id']) assert.equal(post?.[same], run?.[same]);
  assert.equal(run?.['messaging.message.id'], id);
  assert.deepEqual([post?.['messaging.operation.name'], run['messaging.operation.name'], run['jobboard.job.name']], ['post', 'run', 'work']);
  assert.equal(bad?.['error.type'], 'Error');
  assert.equal(seen.length, 2);
});
