// A shop: mail with back-off, a nightly report, an API with a rate, a pipeline of three steps, progress for the user,
// and a cancel from another process.
//
//     node shop.js work                        the worker
//     node shop.js order order-1 lamp desk     posts an order, and shows how far it is
//     node shop.js cancel order-1              from another terminal
import { Abandon, Board, Flow, NoRetry, Retry, Worker } from 'jobboard';
import { z } from 'zod';

export const shop = new Board('shop');

// Mail with back-off
export const mail = shop
  .task('mail', z.object({ to: z.string(), text: z.string() }), { queue: 'mails', retries: 5, backoff: ['1s', '10m'] })
  .handle(({ to, text }, context) => {
    if (!to.includes('@')) throw new NoRetry(`no address: ${to}`);
    if (context.attempt === 1 && text.includes('flaky')) throw new Retry('the mail server is busy', { delay: '10ms' });
    context.log(`sent to ${to}`);
    return `sent at try ${context.attempt}`;
  });

// Nightly
export const report = shop.task('report', { queue: 'reports', unique: true }).handle(async () => {
  const { posted, failed } = await shop.stats({ day: 1 });
  await mail.post({ to: 'boss@example.org', text: `${String(posted)} jobs, ${String(failed)} failed` });
});

// An API with a rate, which holds over all workers
export const rate = shop
  .task('rate', z.object({ currency: z.string().length(3) }), { queue: 'api', retain: '1h' })
  .handle(({ currency }) => (currency === 'EUR' ? 1 : 0.9));

// A pipeline: one job that goes from queue to queue
const order = z.object({ items: z.array(z.string()).min(1), paid: z.boolean().default(false) });

export const take = shop.task('take', order, { queue: 'orders' }).handle((input) => pack.next({ ...input, paid: true }));

export const pack = shop.task('pack', order, { queue: 'packing' }).handle(async (input, context) => {
  for (const [at, item] of input.items.entries()) {
    context.progress((100 * at) / input.items.length, `packs ${item}`);
    await context.sleep('20ms'); // throws when somebody has cancelled the job
  }
  return send.next(input);
});

export const send = shop.task('send', order, { queue: 'sending' }).handle(async ({ items }, context) => {
  if (context.goingHome) throw new Abandon('for the next worker');
  await mail.post({ to: 'ann@example.org', text: `your order ${context.id}` });
  return { sent: items.length };
});

// Parts that run at once, and what waits for them
export async function quarter(months: string[]): Promise<string[]> {
  const flow = new Flow(shop);
  const parts = months.map((month) => flow.add(mail.job({ to: 'boss@example.org', text: month })));
  flow.add(report.job({}), { after: parts, onfailure: 'cancel' });
  return flow.post();
}

export async function configure(): Promise<void> {
  await report.schedule({ cron: '0 3 * * *', tz: 'Europe/Berlin' }, {});
  await shop.settingsSet({ rate: 100, 'rate-period': '1m', burst: 10 }, { queue: 'api' });
  await shop.settingsSet({ 'retain-complete': '1h' });
}

async function main([command, id = '', ...items]: string[]): Promise<void> {
  switch (command) {
    case 'work':
      await configure();
      await new Worker(shop, { concurrency: 8, session: true }).run();
      break;
    case 'order':
      await take.post({ items }, { id });
      for await (const job of shop.watch(id)) console.log(job.queue, job.state, job.progress ?? 0, job.stage ?? '');
      break;
    case 'cancel':
      console.log(await shop.cancel(id));
      break;
    default:
      console.log('work, order ID ITEM... or cancel ID');
  }
}

if (process.argv[1]?.includes('shop')) await main(process.argv.slice(2));
