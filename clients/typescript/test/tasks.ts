// tasks.ts
import { Board } from '../src/index.js';

export const board = new Board('mails');
export const welcome = board.task<{ to: string }>('welcome').handle(({ to }) => `Hello ${to}`);
