/** How long the jobs of a worker stay its own without a heartbeat. */
import type { Job } from '../jobs.js';
import type { Run } from './run.js';

/** The lease of jobs when nobody names one, ms: the server's setting, too. */
const LEASE = 30_000;
/** The longest lease that is relied on where a claim may have come back, ms: how much is left is not known. */
const UNCERTAIN = 1000;

/** The lease of the worker's options, or else that of each job. */
export class Leases {
  /** The shortest lease of what is held, and the longest, ms: at most, and at least, that of the options. */
  shortest: number;
  longest: number;
  /** How commands name it. */
  readonly words: readonly string[];

  constructor(private readonly given: number | undefined) {
    this.shortest = this.longest = given ?? LEASE;
    this.words = given === undefined ? [] : ['LEASE', String(given)];
  }

  /** The lease of a job that was claimed, ms. Not `isNew`: the claim may be an older one that has come back. */
  of(job: Job, isNew: boolean): number {
    if (this.given !== undefined) return this.given;
    const lease = (job.deadline ?? 0) - (job.claimed ?? 0);
    return Math.max(isNew ? lease : Math.min(lease, UNCERTAIN), 1);
  }

  /** Counts the lease of one more; whether heartbeats and the registration have to follow it. */
  add(lease: number): boolean {
    const other = lease < this.shortest || lease > this.longest;
    this.shortest = Math.min(this.shortest, lease);
    this.longest = Math.max(this.longest, lease);
    return other;
  }

  /** Sees which leases are held now. */
  look(held: Iterable<Run>): void {
    if (this.given !== undefined) return;
    this.shortest = this.longest = LEASE;
    for (const { lease } of held) this.add(lease);
  }
}
