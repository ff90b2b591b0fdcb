// app.ts
import { Board, Worker } from 'jobboard';
import { z } from 'zod';

const board = new Board('mails'); // on the server of $JOBBOARD_URL, which `jobboard serve` prints

export const welcome = board
  .task('welcome', z.object({ to: z.string(), language: z.string().default('en') }), { retries: 3, backoff: ['10s', '1h'], timeout: '5m' })
  .handle(async ({ to }, context) => {
    context.progress(50, 'writing');
    await context.sleep('10ms');
    return `Hello ${to}`; // the job's result
  });

if (process.argv[2] === 'work') {
  await new Worker(board, { concurrency: 4, logger: console }).run(); // until SIGTERM or SIGINT; it says what it does
} else {
  const id = await welcome.post({ to: 'ann' });
  console.log(await welcome.result(id, { timeout: '30s' })); // Hello ann
  console.log((await board.get(id))?.state); // complete
}
