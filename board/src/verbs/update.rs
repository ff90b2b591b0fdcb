//! Updating: an operator changes a job that has not ended.

use crate::board::Board;
use crate::effect::{is_name, ApplyError, Validate};
use crate::error::Refusal;
use crate::job::{Options, State};
use crate::places::happened::Happened;
use crate::verbs::heartbeat::Report;

written! {
    /// The changes, each only if it is named.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Update<'a> {
        /// A new priority; the job keeps its age.
        1 pub priority: Option<i32>,
        /// A new queue.
        2 pub queue: Option<&'a [u8]>,
        /// The job is not ready before this time, Unix ms.
        3 pub due: Option<i64>,
        /// How many failures are followed by another attempt, counted from the post.
        4 pub retries: Option<i64>,
        /// The lease of the next claim, ms.
        5 pub lease: Option<i64>,
        /// Everything else: progress may fall.
        6 pub report: Option<Report<'a>>,
        /// Steps to forget, and timeouts of waits.
        7 pub unstep: Vec<&'a [u8]>,
    }
}

written! {
    /// An operator changed a job.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Updated<'a> {
        1 slot: u32,
        2 update: Update<'a>,
    }
}

impl Validate for Updated<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        self.update.is_valid()
    }
}

impl Updated<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        self.update.apply(board, self.slot, now)
    }
}

written! {
    /// An operator changed several jobs alike: the change is written once.
    #[derive(Debug, Clone, PartialEq)]
    pub struct UpdatedAll<'a> {
        1 slots: Vec<u32>,
        2 update: Update<'a>,
    }
}

impl Validate for UpdatedAll<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        self.update.is_valid()
    }
}

impl UpdatedAll<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        self.slots.iter().try_for_each(|slot| self.update.apply(board, *slot, now))
    }
}

impl Update<'_> {
    /// About how many bytes it writes into each job.
    pub(crate) fn weight(&self) -> usize {
        let report = self.report.as_ref();
        report.map_or(0, |r| {
            let text = |t: Option<&[u8]>| t.map_or(0, <[u8]>::len);
            let meta: usize = r.meta.iter().map(|(f, v)| f.len() + v.len()).sum();
            text(r.payload) + text(r.stage) + text(r.log) + meta
        })
    }

    /// Whether it also changes jobs that have ended.
    pub(crate) fn is_of_any_state(&self) -> bool {
        let Update { priority, queue, due, retries, lease, report, unstep: _ } = self;
        let report = report.as_ref().is_none_or(|r| {
            let Report { progress, stage, payload, meta: _, log: _ } = r;
            progress.is_none() && stage.is_none() && payload.is_none()
        });
        (priority, queue, due, retries, lease) == (&None, &None, &None, &None, &None) && report
    }

    fn is_valid(&self) -> bool {
        let Update { queue, retries, lease, report, .. } = self;
        let options = Options { retries: *retries, lease: *lease, ..Options::default() };
        queue.is_none_or(is_name) && options.is_valid() && report.as_ref().is_none_or(Report::is_valid)
    }

    fn apply(&self, board: &mut Board, slot: u32, now: i64) -> Result<(), ApplyError> {
        let update = self;
        let job = board.job(slot)?;
        let state = job.state;
        let at = job.at.get();
        if state.ended() && !self.is_of_any_state() {
            return Err(ApplyError);
        }
        let moves = update.priority.is_some() || update.queue.is_some() || update.due.is_some();
        let carrier = if moves { board.carrier(slot) } else { None };
        let claim = if moves { board.leave(slot)? } else { None };
        if let Some(priority) = update.priority {
            board.job_mut(slot)?.priority = priority;
        }
        let options = Options { retries: update.retries, lease: update.lease, ..Options::default() };
        let before = board.queue_number(board.job(slot)?);
        if update.queue.is_some() || options != Options::default() {
            board.reclass(slot, update.queue, None, options)?;
        }
        match (moves, claim) {
            (false, _) => {}
            (true, Some(claim)) => {
                let worker = board.worker_name(&claim).to_vec();
                board.hand_over(slot, claim, &worker)?;
                if let Some(carrier) = carrier {
                    board.keep_session(slot, carrier);
                }
            }
            (true, None) => match update.due {
                Some(due) if due > now => board.make_scheduled(slot, due, now)?,
                Some(_) => board.make_ready(slot, now)?,
                None => {
                    board.enter(slot, state, at)?;
                    if state == State::Ready && update.queue.is_some() {
                        board.happened(slot, &Happened::Ready)?;
                    }
                }
            },
        }
        let report = update.report.clone().unwrap_or_default();
        report.apply(board, slot, None, true, now)?;
        if !update.unstep.is_empty() {
            board.edit(slot, |job| {
                let remembered = job.extras_mut().remembered.there();
                if let Some(remembered) = remembered {
                    remembered.steps.remove(&update.unstep);
                    remembered.timeouts.remove(&update.unstep);
                }
                Ok(())
            })?;
        }
        let revision = board.revision() as i64;
        board.job_mut(slot)?.extras_mut().updated = revision;
        let moved = board.queue_number(board.job(slot)?) != before;
        let (changed, to) = (&|| self.named(), update.queue.filter(|_| moved));
        board.happened(slot, &Happened::Updated { changed, to, logged: report.log.is_some() })?;
        board.touch(slot)
    }

    /// What it changes, in the words of the command.
    fn named(&self) -> Vec<&'static str> {
        let Update { priority, queue, due, retries, lease, report, unstep } = self;
        let report = report.as_ref();
        let said = |has: fn(&Report<'_>) -> bool| report.is_some_and(has);
        let all = [
            ("priority", priority.is_some()),
            ("queue", queue.is_some()),
            ("delay", due.is_some()),
            ("payload", said(|r| r.payload.is_some())),
            ("retries", retries.is_some()),
            ("lease", lease.is_some()),
            ("meta", said(|r| !r.meta.is_empty())),
            ("log", said(|r| r.log.is_some())),
            ("progress", said(|r| r.progress.is_some())),
            ("unstep", !unstep.is_empty()),
        ];
        all.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect()
    }
}

impl Board {
    /// Decides an update of one job. O(log n).
    pub fn update<'a>(&self, slot: u32, update: &Update<'a>) -> Result<Updated<'a>, Refusal> {
        self.check_update(slot, update)?;
        Ok(Updated { slot, update: update.clone() })
    }

    /// The same update of several jobs, each of which the caller has checked.
    pub fn update_all<'a>(&self, slots: Vec<u32>, update: &Update<'a>) -> UpdatedAll<'a> {
        UpdatedAll { slots, update: update.clone() }
    }

    /// Refuses an update that a job cannot take. O(log n).
    pub fn check_update(&self, slot: u32, update: &Update<'_>) -> Result<(), Refusal> {
        let job = self.job(slot).map_err(|_| Refusal::NoJob)?;
        if let Some(report) = &update.report {
            self.check_meta(slot, &report.meta)?;
        }
        match (job.state, self.claim_of(job)) {
            (state, _) if state.ended() && !update.is_of_any_state() => Err(Refusal::Ended(state)),
            (State::Claimed, Some(claim)) if update.due.is_some() => {
                Err(Refusal::Claimed(self.worker_name(claim).into()))
            }
            _ => {
                update.queue.map_or(Ok(()), |queue| self.check_room(queue, &[slot]))?;
                update.queue.map_or(Ok(()), |queue| self.check_limits(&[slot], Some(queue)))
            }
        }
    }
}
