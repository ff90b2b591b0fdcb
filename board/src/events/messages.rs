//! The messages that several verbs send.

use crate::board::Board;
use crate::dispatch::pauses::Place;
use crate::events::{text_fact, token_fact, Fact, Facts, Topic};
use crate::job::{Claim, NEVER};

impl Board {
    /// A job came.
    pub(crate) fn tell_post(&mut self, slot: u32, due: Option<i64>, more: impl FnOnce(&mut Facts)) {
        self.tell_of(Topic::Posted, slot, |board, job| {
            let mut facts = vec![board.queue_fact(job)];
            text_fact(&mut facts, "name", board.class_of(job).map(|class| &*class.name));
            facts.push(Fact::Number("priority", job.priority.into()));
            facts.extend(due.map(|due| Fact::Number("due", due)));
            more(&mut facts);
            (None, facts)
        });
    }

    /// A job can be claimed.
    pub(crate) fn tell_ready(&mut self, slot: u32) {
        self.tell_of(Topic::Ready, slot, |board, job| (None, vec![board.queue_fact(job)]));
    }

    /// A worker holds a job.
    pub(crate) fn tell_claim(&mut self, slot: u32) {
        self.tell_of(Topic::Claimed, slot, |board, job| {
            let Some(claim) = board.claim_of(job) else { return (None, Vec::new()) };
            let facts = vec![
                token_fact(claim.token),
                board.queue_fact(job),
                Fact::Number("attempt", claim.attempt.into()),
                Fact::Number("deadline", claim.deadline()),
            ];
            (Some(board.worker_name(claim).into()), facts)
        });
    }

    /// A worker lost its claim.
    pub(crate) fn tell_lost(&mut self, slot: u32, claim: &Claim, reason: &'static str) {
        self.tell_of(Topic::Lost, slot, |board, job| {
            let facts = vec![token_fact(claim.token), board.queue_fact(job), Fact::Word("reason", reason)];
            (Some(board.worker_name(claim).into()), facts)
        });
    }

    /// Somebody said how far a job is: its worker, or an operator.
    pub(crate) fn tell_progress(&mut self, slot: u32, worker: Option<&[u8]>) {
        self.tell_of(Topic::Progress, slot, |board, job| {
            let mut facts = vec![board.queue_fact(job)];
            if let Some(extras) = &job.extras {
                facts.extend(extras.progress.map(|progress| Fact::Percent("progress", progress)));
                text_fact(&mut facts, "stage", extras.said.stage.as_deref());
            }
            (worker.map(|worker| worker.into()), facts)
        });
    }

    /// A job, or one run of it, ended; the worker is the one who held it last.
    pub(crate) fn tell_end(&mut self, topic: Topic, slot: u32, more: impl FnOnce(&mut Facts)) {
        self.tell_of(topic, slot, |board, job| {
            let last = job.extras.as_ref().and_then(|extras| extras.last.as_ref());
            let mut facts: Facts = last.map(|last| token_fact(last.token)).into_iter().collect();
            facts.push(board.queue_fact(job));
            more(&mut facts);
            (last.map(|last| last.worker.clone()), facts)
        });
    }

    /// A record is about to go.
    pub(crate) fn tell_deleted(&mut self, slot: u32, by: &'static str) {
        self.tell_of(Topic::Deleted, slot, |board, job| {
            let facts =
                vec![board.queue_fact(job), Fact::Word("state", job.state.name()), Fact::Word("by", by)];
            (None, facts)
        });
    }

    /// A named limit works by another value.
    pub(crate) fn tell_limit(&mut self, name: &'static str, limit: &[u8], value: Option<i64>) {
        self.tell_of_board(Topic::Settings, || {
            let mut facts = vec![Fact::Word("setting", name)];
            text_fact(&mut facts, "limit", Some(limit));
            facts.push(value.map_or(Fact::Null("value"), |value| Fact::Number("value", value)));
            facts
        });
    }

    /// A queue or a group names so many limits from now on.
    pub(crate) fn tell_limits(&mut self, queue: &[u8], group: Option<&[u8]>, limits: Option<usize>) {
        self.tell_of_board(Topic::Settings, || {
            let mut facts = vec![Fact::Word("setting", "limits")];
            text_fact(&mut facts, "queue", Some(queue));
            text_fact(&mut facts, "group", group);
            facts.push(limits.map_or(Fact::Null("value"), |count| Fact::Number("value", count as i64)));
            facts
        });
    }

    /// The board, a queue or a group of it works by another value.
    pub(crate) fn tell_setting(
        &mut self,
        name: &'static str,
        queue: Option<&[u8]>,
        group: Option<&[u8]>,
        value: Option<i64>,
    ) {
        self.tell_of_board(Topic::Settings, || {
            let mut facts = vec![Fact::Word("setting", name)];
            text_fact(&mut facts, "queue", queue);
            text_fact(&mut facts, "group", group);
            facts.push(value.map_or(Fact::Null("value"), |value| Fact::Number("value", value)));
            facts
        });
    }

    /// Nothing is claimed there until then; 0: it is again.
    pub(crate) fn tell_pause(&mut self, place: &Place, until: i64) {
        let (queue, group) = place.as_ref().map_or((None, None), |(q, g)| (Some(&**q), g.as_deref()));
        self.tell_setting("paused", queue, group, Some(if until == NEVER { -1 } else { until }));
    }
}
