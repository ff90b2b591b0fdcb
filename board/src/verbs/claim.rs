//! Claiming: a worker takes jobs, best first.

use crate::board::Board;
use crate::effect::{is_grace, is_lease, is_name, ApplyError, Validate};
use crate::env::{Env, GIVERS};
use crate::error::Refusal;
use crate::job::order::ReadyKey;
use crate::job::TOKENS;
use crate::job::{self, End, Job, State, NEVER, STALE_MOST};
use crate::places::happened::Happened;
use crate::settings::Setting;

/// The clock advances tokens by two to this power in each ms.
const IN_A_MS: u32 = 11;

/// The lowest token of a time, Unix ms.
pub fn token_at(ms: i64) -> u64 {
    (ms.clamp(0, NEVER) as u64) << IN_A_MS
}

/// How many looks at queues one command may take, for all its jobs together.
const LOOKS: usize = 20_000;

/// The order in which a claim asks several queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// The best job of all queues.
    #[default]
    Best,
    /// The first of the named queues that has a job.
    Listed,
    /// The queues in turn.
    Rotate,
}

/// A request for work.
#[derive(Debug, Clone, Default)]
pub struct Claim<'a> {
    /// The worker's name.
    pub worker: &'a [u8],
    /// The queues to ask; empty: every queue.
    pub queues: &'a [&'a [u8]],
    /// In which order.
    pub order: Order,
    /// The lease in place of the job's own, ms.
    pub lease: Option<i64>,
}

written! {
    /// A worker took a job.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Claimed<'a> {
        /// The job.
        1 pub slot: u32,
        /// Its new holder.
        2 pub worker: &'a [u8],
        /// The fencing token.
        3 pub token: u64,
        /// The lease, ms.
        4 pub lease: i64 = 30_000,
        /// The run's timeout, ms, or -1.
        5 pub timeout: i64 = -1,
        /// The grace after the lease, ms.
        6 pub grace: i64,
    }
}

impl Validate for Claimed<'_> {
    fn is_valid(&self, board: &Board) -> bool {
        is_name(self.worker)
            && is_lease(self.lease)
            && is_grace(self.grace)
            && self.token > board.token
            && self.token < TOKENS
    }
}

impl Claimed<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let job = board.job(self.slot)?;
        if job.state != State::Ready {
            return Err(ApplyError);
        }
        let priced = job.is_priced();
        board.charge(self.slot, now)?;
        if priced {
            board.count_cost(self.slot, now);
        }
        board.leave(self.slot)?;
        let mut attempt = 1;
        board.start_frees(self.slot);
        if board.job(self.slot)?.extras.is_some() {
            board.edit(self.slot, |job| {
                let extras = job.extras_mut();
                extras.attempt = extras.attempt.saturating_add(1);
                attempt = extras.attempt;
                if let Some(last) = extras.last_claim.take().filter(|last| last.end == End::Lapsed) {
                    if !extras.is_stale(&last.worker) && extras.retrying.stale.len() < STALE_MOST {
                        extras.retrying.stale.push(last.worker);
                    }
                }
                Ok(())
            })?;
        }
        let claim = job::Claim {
            slot: self.slot,
            worker: 0,
            token: self.token,
            attempt,
            cancel: false,
            in_history: false,
            in_grace: false,
            session: job::Session::None,
            claimed: now,
            lease: self.lease,
            lease_end: now.saturating_add(self.lease).clamp(0, NEVER),
            run_end: match self.timeout {
                ms if ms > 0 => now.saturating_add(ms).clamp(0, NEVER),
                _ => NEVER,
            },
            grace: self.grace,
            cancel_end: NEVER,
        };
        board.hand_over(self.slot, claim, self.worker)?;
        board.happened(self.slot, &Happened::Claimed)
    }
}

impl Board {
    /// The token of the next claim: higher than any before on this board or in this process, and
    /// also after a failover as long as the clocks agree. It is never one of the same giver as the
    /// last token that came from another server.
    fn next_token(&self, env: &Env<'_>) -> Result<u64, Refusal> {
        let last = self.token.max(env.token);
        let giver = (env.giver ^ u64::from((self.local.foreign ^ env.giver) % GIVERS == 0)) % GIVERS;
        let by_clock = token_at(env.now) | giver;
        let token = if by_clock > last { by_clock } else { last / GIVERS * GIVERS + GIVERS + giver };
        match token < TOKENS {
            true => Ok(token),
            false => Err(Refusal::Limit("tokens")),
        }
    }

    /// The job that a queue gives now, if it gives one. O(log groups).
    pub(crate) fn head(&self, queue: u32, now: i64) -> Option<(ReadyKey, u32)> {
        self.local.best_queue.look();
        let queue = self.queues.get(queue).filter(|queue| queue.paused <= now && !self.is_full(queue))?;
        let slot = self.next_of(queue, now)?;
        let job = self.store.jobs.get(slot)?;
        (self.tokens_at(queue, job) <= now).then(|| (job.plain_key(), slot))
    }

    fn best(&self, queues: impl Iterator<Item = u32>, now: i64) -> Option<u32> {
        queues.filter_map(|q| self.head(q, now)).min().map(|(_, slot)| slot)
    }

    fn pick(&self, claim: &Claim<'_>, turn: u64, now: i64) -> Option<u32> {
        if self.is_paused(now) || self.is_quiet(claim.worker) {
            return None;
        }
        if claim.queues.is_empty() {
            let best = self.best_candidate(now);
            return best.unwrap_or_else(|| self.best(self.busy().iter().copied(), now));
        }
        let mut named = claim.queues.iter().filter_map(|q| self.queues.find(*q));
        let head = |queue| self.head(queue, now).map(|(_, slot)| slot);
        match claim.order {
            Order::Best => self.best(named, now),
            Order::Listed => named.find_map(head),
            Order::Rotate => {
                let start = (turn % claim.queues.len() as u64) as usize;
                let (before, after) = claim.queues.split_at_checked(start)?;
                after.iter().chain(before).filter_map(|q| self.queues.find(*q)).find_map(head)
            }
        }
    }

    /// Whether there is a job for this claim. O(queues named), or O(log queues) when none is named.
    pub fn claimable(&self, claim: &Claim<'_>, now: i64) -> bool {
        self.pick(claim, 0, now).is_some()
    }

    /// Whether these queues, or any when none is named, give a job to clients that wait. When they do
    /// not, wakes these clients once the permits are there that the next job lacks.
    pub fn gives(&mut self, queues: &[&[u8]], now: i64) -> bool {
        let gives = self.claimable(&Claim { queues, ..Claim::default() }, now);
        if !gives {
            self.wait_for_permits(queues, now);
        }
        gives
    }

    /// How many ready jobs these queues have for claims, at most `most`; no queue stands for every
    /// queue. Of a queue that gives none now, none count, and no more than its `concurrency` leaves
    /// room for. O(queues named), or O(most log queues) when none is named.
    pub fn claimable_jobs(&self, queues: &[&[u8]], most: usize, now: i64) -> usize {
        if self.is_paused(now) {
            return 0;
        }
        let count = |queue: u32| {
            let queue = self.queues.get(queue).filter(|_| self.head(queue, now).is_some())?;
            let room = self.most(queue).map(|most| most.saturating_sub(queue.count(State::Claimed)));
            let room = room.and_then(|room| usize::try_from(room).ok());
            Some(room.map_or(queue.ready_len(), |room| room.min(queue.ready_len())))
        };
        if let Some(found) = queues.is_empty().then(|| self.count_candidate_jobs(most, now, count)).flatten()
        {
            return found;
        }
        let mut found = 0;
        let mut add = |queue| {
            found += count(queue).unwrap_or(0);
            found >= most
        };
        match queues.is_empty() {
            true => self.busy().iter().copied().any(&mut add),
            false => queues.iter().filter_map(|queue| self.queues.find(*queue)).any(&mut add),
        };
        found.min(most)
    }

    /// How many jobs one command may take for this claim, at least one: each job costs a look at
    /// each queue that is named, and all together should take about a millisecond. O(1).
    pub fn most_for(&self, claim: &Claim<'_>) -> usize {
        LOOKS.checked_div(self.looks_for(claim)).map_or(usize::MAX, |most| most.max(1))
    }

    /// How many looks at named queues each job of this claim takes, but for one. O(1).
    pub fn looks_for(&self, claim: &Claim<'_>) -> usize {
        claim.queues.len().saturating_sub(1)
    }

    /// Decides the next claim: the best ready job of those named queues that are neither paused nor
    /// full. Time events that are not settled yet do not count. `turn` counts the claims with
    /// `ORDER rotate`.
    pub fn claim<'a>(
        &self,
        env: &Env<'_>,
        claim: &Claim<'a>,
        turn: u64,
    ) -> Result<Option<Claimed<'a>>, Refusal> {
        let picked = self.pick(claim, env.rotation.wrapping_add(turn), env.now);
        let picked = picked.and_then(|slot| Some((slot, self.store.jobs.get(slot)?)));
        picked.map(|(slot, job)| self.claimed(env, slot, job, claim)).transpose()
    }

    fn claimed<'a>(
        &self,
        env: &Env<'_>,
        slot: u32,
        job: &Job,
        claim: &Claim<'a>,
    ) -> Result<Claimed<'a>, Refusal> {
        let rules = self.job_rules(job, env.rules);
        let lease = claim.lease.unwrap_or_else(|| rules.get(Setting::Lease));
        Ok(Claimed {
            slot,
            worker: claim.worker,
            token: self.next_token(env)?,
            lease: lease.max(1),
            timeout: rules.get(Setting::Timeout),
            grace: rules.get(Setting::Grace),
        })
    }

    /// Decides the claim of one job by its id.
    pub fn claim_id<'a>(&self, env: &Env<'_>, claim: &Claim<'a>, id: &[u8]) -> Result<Claimed<'a>, Refusal> {
        let slot = self.find(id).ok_or(Refusal::NoJob)?;
        let job = self.job(slot).map_err(|_| Refusal::NoJob)?;
        if let Some(held) = self.claim_of(job) {
            let holder = self.worker_name(held);
            return Err(match holder == claim.worker {
                true => Refusal::ClaimedYou,
                false => Refusal::Claimed(holder.into()),
            });
        }
        match job.state {
            State::Ready if self.paused(Some(self.queue_name(job)), env.now).is_some() => {
                Err(Refusal::Paused)
            }
            State::Ready if self.is_quiet(claim.worker) => Err(Refusal::Quiet),
            State::Ready => {
                self.check_concurrency(slot, true, env.now)?;
                self.check_tokens(job, env.now)?;
                self.claimed(env, slot, job, claim)
            }
            state if state.ended() => Err(Refusal::Ended(state)),
            state => Err(Refusal::NotReady(state)),
        }
    }

    /// The slots of the jobs that a worker holds with tokens above `above`, lowest token first.
    pub fn held(&self, worker: &[u8], above: u64) -> impl Iterator<Item = u32> + '_ {
        let line = self.workers.names.find(worker).and_then(|w| self.workers.names.get(w)).map(|w| &w.claims);
        let token = |number| self.store.token(number);
        let numbers = line.into_iter().flat_map(move |l| l.iter_from(Some(above.saturating_add(1)), token));
        numbers.filter_map(|number| Some(self.store.claims.get(number)?.slot))
    }
}
