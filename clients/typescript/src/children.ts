/** Children of a job, as those who wait for them count them. */
import type { Row } from './replies.js';

/** How many children a job has. */
export interface Children {
  readonly total: number;
  /** Have not ended. */
  readonly pending: number;
  /** Failed, were cancelled or were trashed. */
  readonly unsuccessful: number;
}

/** What becomes of a job when a child of it ends without success: it waits on, ends too, or runs all the same. */
export type OnFailure = 'hold' | 'cancel' | 'fail' | 'run';

/** The counts in the answer to a wait; undefined when it was not for children, or the job was given up. */
export function childrenOf({ children: total, pending = 0, unsuccessful = 0 }: Row): Children | undefined {
  return total === undefined ? undefined : ({ total, pending, unsuccessful } as Children);
}
