//! The events that several verbs emit.

use crate::board::Board;
use crate::dispatch::pauses::Place;
use crate::events::{text_field, token_field, EventField, EventFields, EventKind};
use crate::job::{Claim, NEVER};
use crate::scope::Scope;

impl Board {
    /// A job was posted.
    pub(crate) fn emit_post(&mut self, slot: u32, due: Option<i64>, more: impl FnOnce(&mut EventFields)) {
        self.emit_of(EventKind::Posted, slot, |board, job| {
            let mut fields = vec![board.queue_field(job)];
            text_field(&mut fields, "name", board.class_of(job).map(|class| &*class.name));
            fields.push(EventField::Number("priority", job.priority.into()));
            fields.extend(due.map(|due| EventField::Number("due", due)));
            more(&mut fields);
            (None, fields)
        });
    }

    /// A job can be claimed.
    pub(crate) fn emit_ready(&mut self, slot: u32) {
        self.emit_of(EventKind::Ready, slot, |board, job| (None, vec![board.queue_field(job)]));
    }

    /// A worker holds a job.
    pub(crate) fn emit_claim(&mut self, slot: u32) {
        self.emit_of(EventKind::Claimed, slot, |board, job| {
            let Some(claim) = board.claim_of(job) else { return (None, Vec::new()) };
            let fields = vec![
                token_field(claim.token),
                board.queue_field(job),
                EventField::Number("attempt", claim.attempt.into()),
                EventField::Number("deadline", claim.deadline()),
            ];
            (Some(board.worker_name(claim).into()), fields)
        });
    }

    /// A worker lost its claim.
    pub(crate) fn emit_lost(&mut self, slot: u32, claim: &Claim, reason: &'static str) {
        self.emit_of(EventKind::Lost, slot, |board, job| {
            let fields =
                vec![token_field(claim.token), board.queue_field(job), EventField::Word("reason", reason)];
            (Some(board.worker_name(claim).into()), fields)
        });
    }

    /// The lease of a claim has ended, and its worker keeps the job for the grace.
    pub(crate) fn emit_grace(&mut self, slot: u32) {
        self.emit_of(EventKind::Grace, slot, |board, job| {
            let Some(claim) = board.claim_of(job) else { return (None, Vec::new()) };
            let until = EventField::Number("until", claim.ends_at());
            let fields = vec![token_field(claim.token), board.queue_field(job), until];
            (Some(board.worker_name(claim).into()), fields)
        });
    }

    /// An operator changed a job: what, with commas between.
    pub(crate) fn emit_updated(&mut self, slot: u32, changed: impl FnOnce() -> Vec<&'static str>) {
        self.emit_of(EventKind::Updated, slot, |board, job| {
            let mut fields = vec![board.queue_field(job)];
            text_field(&mut fields, "changed", Some(changed().join(",").as_bytes()));
            (None, fields)
        });
    }

    /// A worker or an operator reported how far a job is.
    pub(crate) fn emit_progress(&mut self, slot: u32, worker: Option<&[u8]>) {
        self.emit_of(EventKind::Progress, slot, |board, job| {
            let mut fields = vec![board.queue_field(job)];
            if let Some(extras) = &job.extras {
                fields.extend(extras.progress.map(|progress| EventField::Percent("progress", progress)));
                text_field(&mut fields, "stage", extras.reports.stage.as_deref());
            }
            (worker.map(|worker| worker.into()), fields)
        });
    }

    /// A job, or one run of it, ended; the event names the worker that held it last.
    pub(crate) fn emit_end(&mut self, kind: EventKind, slot: u32, more: impl FnOnce(&mut EventFields)) {
        self.emit_of(kind, slot, |board, job| {
            let last = job.extras.as_ref().and_then(|extras| extras.last_claim.as_ref());
            let mut fields: EventFields = last.map(|last| token_field(last.token)).into_iter().collect();
            fields.push(board.queue_field(job));
            more(&mut fields);
            (last.map(|last| last.worker.clone()), fields)
        });
    }

    /// A signal arrived.
    pub(crate) fn emit_signal(&mut self, slot: u32, name: &[u8], sender: Option<&[u8]>) {
        self.emit_of(EventKind::Signalled, slot, |board, job| {
            let mut fields = vec![board.queue_field(job)];
            text_field(&mut fields, "signal", Some(name));
            text_field(&mut fields, "sender", sender);
            (None, fields)
        });
    }

    /// A record is about to be removed.
    pub(crate) fn emit_deleted(&mut self, slot: u32, by: &'static str) {
        self.emit_of(EventKind::Deleted, slot, |board, job| {
            let fields = vec![
                board.queue_field(job),
                EventField::Word("state", job.state.name()),
                EventField::Word("by", by),
            ];
            (None, fields)
        });
    }

    /// A queue or a group names this many shared limits from now on.
    pub(crate) fn emit_limits(&mut self, queue: &[u8], group: Option<&[u8]>, limits: Option<usize>) {
        self.emit_of_board(EventKind::Settings, || {
            let mut fields = vec![EventField::Word("setting", "limits")];
            text_field(&mut fields, "queue", Some(queue));
            text_field(&mut fields, "group", group);
            fields.push(
                limits.map_or(EventField::Null("value"), |count| EventField::Number("value", count as i64)),
            );
            fields
        });
    }

    /// A queue has another dead queue.
    pub(crate) fn emit_dead_queue(&mut self, queue: &[u8], dead: Option<&[u8]>) {
        self.emit_of_board(EventKind::Settings, || {
            let mut fields = vec![EventField::Word("setting", "dead-queue")];
            text_field(&mut fields, "queue", Some(queue));
            fields
                .push(dead.map_or(EventField::Null("value"), |dead| EventField::Text("value", dead.into())));
            fields
        });
    }

    /// The board, a queue, a group or a shared limit has another value of a setting.
    pub(crate) fn emit_setting(&mut self, name: &'static str, scope: Scope<'_>, value: Option<i64>) {
        let [queue, group, limit] = scope.names();
        self.emit_of_board(EventKind::Settings, || {
            let mut fields = vec![EventField::Word("setting", name)];
            text_field(&mut fields, "queue", queue);
            text_field(&mut fields, "group", group);
            text_field(&mut fields, "limit", limit);
            fields.push(value.map_or(EventField::Null("value"), |value| EventField::Number("value", value)));
            fields
        });
    }

    /// The place is paused until then, Unix ms; 0 when its pause has ended.
    pub(crate) fn emit_pause(&mut self, place: &Place, until: i64) {
        let scope = match place {
            Place::Board => Scope::Board,
            Place::Queue(queue, None) => Scope::Queue(queue),
            Place::Queue(queue, Some(group)) => Scope::Group(queue, group),
            Place::Limit(limit) => Scope::Limit(limit),
        };
        self.emit_setting("paused", scope, Some(if until == NEVER { -1 } else { until }));
    }
}
