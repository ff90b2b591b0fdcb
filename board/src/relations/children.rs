//! Waiting for children: a job is blocked while a child of it has not ended, whenever that was added.
//!
//! The parent counts its children as they come and end ([`Children`]), so whether its wait is over is
//! known in O(1). While something else keeps the job blocked as well, later children count too; once
//! nothing does and no child is left, the wait is over for good.
//!
//! | of its children | means |
//! |---|---|
//! | one has not ended | wait |
//! | all are complete, or there are none | met |
//! | one failed, was cancelled or trashed | what the wait's [`OnFailure`] says; with `run` once all have ended |
//!
//! When the end of a child ends the wait, a [`Resolution`] is queued as for the edges of jobs.

use crate::board::Board;
use crate::effect::ApplyError;
use crate::job::awaited::OnFailure;
use crate::job::history::HistoryKind;
use crate::job::kin::{ChildWait, Children};
use crate::job::State;
use crate::places::happened::Happened;
use crate::relations::dependencies::Outcome;
use crate::relations::resolutions::Resolution;
use crate::settings::Rules;

impl Board {
    /// The wait of a job for its children. O(1).
    pub(crate) fn child_wait(&self, slot: u32) -> Option<&ChildWait> {
        self.extras(slot)?.child_wait()
    }

    /// What its children mean for a job that waits for them. O(1).
    pub(crate) fn outcome_of_children(&self, slot: u32, on_failure: OnFailure) -> Outcome {
        let Children { live, unsuccessful, .. } = self.children(slot).copied().unwrap_or_default();
        match (unsuccessful > 0, on_failure) {
            (true, OnFailure::Hold) => Outcome::Waits,
            (true, OnFailure::Cancel) => Outcome::Ends(State::Cancelled),
            (true, OnFailure::Fail) => Outcome::Ends(State::Failed),
            _ if live > 0 => Outcome::Waits,
            _ => Outcome::Met,
        }
    }

    /// Whether an operator has decided that a job waits for its children no more. O(1).
    pub(crate) fn has_waived(&self, slot: u32) -> bool {
        self.extras(slot).and_then(|extras| extras.family.as_ref()).is_some_and(|family| family.waived)
    }

    fn waits_for_others(&self, slot: u32) -> bool {
        self.extras(slot).is_some_and(|extras| extras.waits_for_others())
    }

    /// Whether the wait of a blocked job for its children changes something that is still to be
    /// done. O(1).
    pub(crate) fn children_due(&self, slot: u32) -> bool {
        self.child_wait(slot).is_some_and(|wait| match self.outcome_of_children(slot, wait.on_failure) {
            Outcome::Ends(_) => true,
            Outcome::Met => wait.open || !self.waits_for_others(slot),
            Outcome::Waits => wait.open,
        })
    }

    /// A job that is in no place waits for its children from now on, as far as there are any when
    /// it gets its place. In a flow that is `open`, this is known when the flow is complete.
    pub(crate) fn ask_for_children(
        &mut self,
        slot: u32,
        on_failure: OnFailure,
        (run, open): (bool, bool),
    ) -> Result<(), ApplyError> {
        self.edit(slot, |job| {
            let family = job.extras_mut().family.get_or_insert_with(Box::default);
            family.wait = Some(ChildWait { on_failure, from: 0, run, open });
            family.waived = false;
            Ok(())
        })?;
        if open {
            self.resolve_children_of(slot)?;
        }
        Ok(())
    }

    /// Ends the wait of a job for its children; it may go on to wait for something else.
    pub(crate) fn end_child_wait(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        let Some(wait) = self.child_wait(slot).copied() else { return Ok(()) };
        self.edit(slot, |job| {
            let extras = job.extras_mut();
            extras.modified = now;
            extras.change_family(|family| family.wait = None);
            Ok(())
        })?;
        if wait.from > 0 {
            self.count_await(slot, wait.from, now);
        }
        Ok(())
    }

    /// An operator has decided that a job that is in no place waits for its children no more, also
    /// when a later run asks for it.
    pub(crate) fn waive_children(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        self.end_child_wait(slot, now)?;
        self.edit(slot, |job| {
            job.extras_mut().family.get_or_insert_with(Box::default).waived = true;
            Ok(())
        })
    }

    /// Whether a job that is in no place waits. A wait for children that nothing keeps up is over;
    /// another one begins, unless it did before.
    pub(crate) fn still_waits(&mut self, slot: u32, now: i64) -> Result<bool, ApplyError> {
        let Some(wait) = self.child_wait(slot).copied() else { return Ok(self.waits(slot)) };
        if wait.open {
            return Ok(true);
        }
        let outcome = self.outcome_of_children(slot, wait.on_failure);
        if outcome == Outcome::Met && !self.waits_for_others(slot) {
            return self.end_child_wait(slot, now).and(Ok(false));
        }
        if wait.from == 0 {
            self.begin_child_wait(slot, now)?;
        }
        if let Outcome::Ends(_) = outcome {
            self.resolve_children_of(slot)?;
        }
        Ok(true)
    }

    fn begin_child_wait(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        let mut run = false;
        self.edit(slot, |job| {
            let extras = job.extras_mut();
            extras.modified = now;
            let wait = extras.family.as_mut().and_then(|family| family.wait.as_mut()).ok_or(ApplyError)?;
            (wait.from, wait.open) = (now.max(1), false);
            run = wait.run;
            Ok(())
        })?;
        let live = self.children(slot).map_or(0, |children| children.live);
        self.happened(slot, &Happened::AwaitingChildren { live, run })
    }

    /// A child of a job has ended, or is its child no more.
    pub(crate) fn child_left(&mut self, parent: u32) -> Result<(), ApplyError> {
        let blocked = self.store.jobs.get(parent).is_some_and(|job| job.state == State::Blocked);
        match blocked && self.children_due(parent) {
            true => self.resolve_children_of(parent),
            false => Ok(()),
        }
    }

    /// Queues the wait of a job for its children to be looked at.
    fn resolve_children_of(&mut self, slot: u32) -> Result<(), ApplyError> {
        let seq = self.job(slot)?.seq.get();
        self.relations.waits.resolutions.push_back(Resolution { slot, seq, from: 0, children: true });
        self.wake_at(0);
        Ok(())
    }

    /// Does what the children of a blocked job mean for it.
    pub(crate) fn resolve_children(&mut self, slot: u32, now: i64, rules: &Rules) -> Result<(), ApplyError> {
        if self.job(slot)?.state != State::Blocked {
            return Ok(());
        }
        let Some(wait) = self.child_wait(slot).copied() else { return self.unblock(slot, now) };
        let outcome = self.outcome_of_children(slot, wait.on_failure);
        if let Outcome::Ends(state) = outcome {
            return self.end_for_children(slot, state, rules);
        }
        if wait.open {
            if outcome == Outcome::Waits || self.waits_for_others(slot) {
                self.begin_child_wait(slot, now)?;
                return self.touch(slot);
            }
            self.edit(slot, |job| {
                job.extras_mut().change_family(|family| family.wait = None);
                Ok(())
            })?;
        }
        self.unblock(slot, now)
    }

    /// Ends a job because of the ends of its children.
    pub(crate) fn end_for_children(
        &mut self,
        slot: u32,
        state: State,
        rules: &Rules,
    ) -> Result<(), ApplyError> {
        let Children { count, unsuccessful, .. } = *self.children(slot).ok_or(ApplyError)?;
        let text = format!("{unsuccessful} of {count} children unsuccessful");
        self.give_up(slot, state, HistoryKind::Dependency, text.as_bytes(), rules)
    }

    /// Checks that each wait for children which is over will be looked at.
    pub(crate) fn check_child_waits(&self) -> Result<(), String> {
        let queued = self.relations.waits.resolutions.iter().filter(|tell| tell.children);
        let queued: std::collections::BTreeSet<_> = queued.map(|tell| (tell.slot, tell.seq)).collect();
        for (slot, job) in self.store.jobs.iter() {
            if self.children_due(slot) && !queued.contains(&(slot, job.seq.get())) {
                return Err(format!("slot {slot} is never informed of its children"));
            }
        }
        Ok(())
    }
}
