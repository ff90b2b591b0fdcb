/** Why a job is not running: what `JOB.EXPLAIN` answers. */
import type { OnFailure } from '../children.js';
import type { State } from '../generated.js';
import { list, mapping, type Reply, type Row } from '../replies.js';

interface Other {
  readonly id: string;
  readonly state: State;
}

/** Whose pause or limit it is; `name` is that of a shared limit. */
interface Where {
  readonly level: 'board' | 'queue' | 'group' | 'limit';
  readonly name?: string;
}

/** What each reason has beside `reason` and `text`: see JOB.EXPLAIN in the reference. Times are Unix ms, -1 without end. */
export interface Reasons {
  dependencies: { readonly count: number; readonly jobs: readonly (Other & { readonly onfailure: OnFailure })[] };
  signals: {
    readonly signals: readonly { readonly name: string; readonly arrived: 0 | 1 }[];
    readonly any: 0 | 1;
    readonly since: number;
    readonly until: number;
    readonly ontimeout: 'run' | 'fail' | 'cancel';
  };
  children: {
    readonly children: number;
    readonly pending: number;
    readonly unsuccessful: number;
    readonly jobs: readonly Other[];
    readonly since: number;
    readonly onfailure: OnFailure;
  };
  delayed: { readonly due: number };
  retry: { readonly due: number; readonly failures: number; readonly left: number; readonly worker: string; readonly kind: string; readonly message?: string };
  lapse: { readonly due: number; readonly lapses: number; readonly worker: string };
  paused: Where & { readonly until: number };
  concurrency: Where & {
    readonly limit: number;
    readonly running: number;
    readonly holders: readonly { readonly worker: string; readonly id: string; readonly until: number }[];
  };
  ordered: Partial<Other>;
  rate: Where & {
    readonly at: number;
    readonly cost: number;
    readonly rate: number;
    readonly 'rate-period': number;
    readonly burst: number;
    readonly debt?: number;
  };
  line: { readonly ahead: number; readonly more?: 1; readonly groups?: number; readonly turn?: number; readonly rest?: number };
  unclaimed: { readonly since?: number; readonly quiet?: number };
  expires: { readonly at: number };
  claimed: {
    readonly worker: string;
    readonly attempt: number;
    readonly claimed: number;
    readonly deadline: number;
    readonly until: number;
    readonly session: 0 | 1;
    readonly grace: 0 | 1;
  };
  cancel: { readonly until: number };
  ended: { readonly ended: number; readonly kept: number; readonly kind?: string; readonly message?: string; readonly why?: string };
  dead: { readonly origin: string; readonly at: number; readonly attempts: number; readonly kind: string; readonly message?: string };
  gone: { readonly ended: number };
}

/** A reason, and `text`, a sentence that says what would change it. Later servers may have more of them. */
export type Reason = { [Name in keyof Reasons]: Readonly<{ reason: Name; text: string }> & Reasons[Name] }[keyof Reasons];

/** Why a job is not running; what must change first comes first. */
export interface Explanation {
  readonly id: string;
  readonly state: State;
  /** Absent when its record was removed. */
  readonly queue?: string;
  readonly group?: string;
  /** 1: a worker may claim it now. */
  readonly claimable: 0 | 1;
  /** How many claims of its queue wait on this server, unless it is claimed or has ended. */
  readonly waiting?: number;
  readonly reasons: readonly Reason[];
}

const rows = (reply: Reply): Row[] => list(reply).map((one) => mapping(one));
const reasons = (reply: Reply): Row[] => list(reply).map((one) => mapping(one, { jobs: rows, holders: rows, signals: rows }));

/** The explanation of a reply. */
export const explanationOf = (reply: Reply): Explanation => mapping(reply, { reasons }) as unknown as Explanation;
