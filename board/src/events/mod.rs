//! What a board reports to those who follow it: which records change, and what happens to jobs. All
//! of it is local: it is in no snapshot and no digest, and costs nothing when nobody subscribes.
//!
//! | file | what it holds |
//! |---|---|
//! | `messages` | the fields of each event |
//! | `changes` | what was changed or removed since a revision |
//!
//! Uses `dispatch`, `job` and `structures`.

pub(crate) mod changes;
pub(crate) mod messages;

use crate::board::Board;
use crate::effect::ApplyError;
use crate::events::changes::Recent;
use crate::job::id::Id;
use crate::job::{Job, U48};
use crate::settings::{Rules, Setting};
use crate::structures::byte_string::ByteString;

/// The kinds of events. The numbers are the bits of the setting `events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventKind {
    /// A job was posted, or replaced the one with its id.
    Posted = 0,
    /// It can be claimed.
    Ready = 1,
    /// A worker took it.
    Claimed = 2,
    /// A worker lost it without giving it up.
    Lost = 3,
    /// Its worker or an operator reported how far it is.
    Progress = 4,
    /// It is complete.
    Completed = 5,
    /// It was moved to another queue.
    Advanced = 6,
    /// It has failed for good.
    Failed = 7,
    /// It will be tried again.
    Retried = 8,
    /// A worker gave it back.
    Abandoned = 9,
    /// It was cancelled.
    Cancelled = 10,
    /// A worker trashed it.
    Trashed = 11,
    /// Its record was removed.
    Deleted = 12,
    /// A setting of the board changed.
    Settings = 13,
    /// It has failed for good, and moved to the dead queue.
    Dead = 14,
    /// It waits for signals.
    Awaiting = 15,
    /// A signal arrived.
    Signalled = 16,
    /// The lease of a claim has ended, and its grace has begun.
    Grace = 17,
    /// An operator changed it.
    Updated = 18,
    /// A worker is asked to stop. Sent to that worker alone.
    Cancel = 19,
}

impl EventKind {
    /// The kinds that the setting `events` names, by number.
    pub const ALL: [EventKind; 19] = [
        EventKind::Posted,
        EventKind::Ready,
        EventKind::Claimed,
        EventKind::Lost,
        EventKind::Progress,
        EventKind::Completed,
        EventKind::Advanced,
        EventKind::Failed,
        EventKind::Retried,
        EventKind::Abandoned,
        EventKind::Cancelled,
        EventKind::Trashed,
        EventKind::Deleted,
        EventKind::Settings,
        EventKind::Dead,
        EventKind::Awaiting,
        EventKind::Signalled,
        EventKind::Grace,
        EventKind::Updated,
    ];

    /// Its name in messages and settings.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Posted => "posted",
            EventKind::Ready => "ready",
            EventKind::Claimed => "claimed",
            EventKind::Lost => "lost",
            EventKind::Progress => "progress",
            EventKind::Completed => "completed",
            EventKind::Advanced => "advanced",
            EventKind::Failed => "failed",
            EventKind::Retried => "retried",
            EventKind::Abandoned => "abandoned",
            EventKind::Cancelled => "cancelled",
            EventKind::Trashed => "trashed",
            EventKind::Deleted => "deleted",
            EventKind::Settings => "settings",
            EventKind::Dead => "dead",
            EventKind::Awaiting => "awaiting",
            EventKind::Signalled => "signalled",
            EventKind::Grace => "grace",
            EventKind::Updated => "updated",
            EventKind::Cancel => "cancel",
        }
    }

    /// Its bit in the setting `events`.
    pub const fn bit(self) -> u32 {
        1 << self as u8
    }

    /// Whether the worker that it concerns always gets it.
    pub fn for_worker(self) -> bool {
        matches!(self, EventKind::Lost | EventKind::Grace | EventKind::Cancel)
    }
}

/// All kinds of the setting `events`, as bits.
pub const ALL_EVENTS: u32 = (1 << EventKind::ALL.len()) - 1;

/// What is subscribed to, as bits of kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Subscribers {
    /// Kinds of which every subscriber gets whole events.
    pub events: u32,
    /// Whether only tracked jobs have such events.
    pub tracked: bool,
    /// Whether workers get the events that concern them.
    pub workers: bool,
    /// Kinds that are reported by name alone, see [`Board::take_kinds`].
    pub names: u32,
}

/// One field of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum EventField {
    /// Bytes from a client.
    Text(&'static str, ByteString),
    /// A fixed word.
    Word(&'static str, &'static str),
    /// A whole number.
    Number(&'static str, i64),
    /// A percentage, in hundredths of a per cent.
    Percent(&'static str, u16),
    /// Yes or no.
    Flag(&'static str, bool),
    /// Nothing.
    Null(&'static str),
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its kind.
    pub kind: EventKind,
    /// Whether every subscriber gets it, or a worker alone.
    pub public: bool,
    /// The job that it happened to; `None` for the board itself.
    pub id: Option<Id<ByteString>>,
    /// The board's revision, which is the job's version unless the same command changes it again.
    pub version: u64,
    /// When, Unix ms.
    pub at: i64,
    /// Whether the job is tracked.
    pub tracked: bool,
    /// The worker that it concerns.
    pub worker: Option<ByteString>,
    /// Its other fields.
    pub fields: Vec<EventField>,
}

/// What subscribers have not yet collected.
#[derive(Default)]
pub(crate) struct Events {
    /// Whether somebody asks which records change.
    watched: bool,
    /// The latest changes, while somebody asks for them.
    recent: Option<Box<Recent>>,
    /// Ids of records that were changed or removed.
    changed: Vec<Id<ByteString>>,
    subscribers: Subscribers,
    /// Kinds that have happened, as bits.
    happened: u32,
    messages: Vec<Event>,
}

impl Events {
    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.recent.as_ref().map_or(0, |recent| recent.bytes())
    }
}

/// The fields of an event, while they are collected.
pub(crate) type EventFields = Vec<EventField>;

impl Board {
    /// Sets whether the ids of changed and removed records are collected; see [`Board::changed`].
    pub fn watch(&mut self, on: bool) {
        self.local.events.watched = on;
        self.local.events.changed.clear();
    }

    /// Sets which events are collected; see [`Board::messages`].
    pub fn listen(&mut self, subscribers: Subscribers) {
        self.local.events.subscribers = subscribers;
        self.local.events.happened = 0;
        self.local.events.messages.clear();
    }

    /// The kinds that the setting `events` names, as bits.
    pub fn events(&self, rules: &Rules) -> u32 {
        self.rule(Setting::Events, rules) as u32
    }

    /// Whether the setting `events-tracked` limits events to tracked jobs.
    pub fn events_tracked(&self, rules: &Rules) -> bool {
        self.rule(Setting::EventsTracked, rules) != 0
    }

    /// Whether [`Board::messages`] or [`Board::take_kinds`] has an answer.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.local.events.happened != 0 || !self.local.events.messages.is_empty()
    }

    /// The events since the last call, in order.
    pub fn messages(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.local.events.messages)
    }

    /// The kinds of which anything has happened since the last call, as bits.
    pub fn take_kinds(&mut self) -> u32 {
        std::mem::take(&mut self.local.events.happened)
    }

    /// Calls `each` with the ids of the records that were changed or removed since the last call,
    /// some more than once.
    pub fn changed(&mut self, mut each: impl FnMut(&Board, &[u8])) {
        for id in std::mem::take(&mut self.local.events.changed) {
            id.borrowed().text(|id| each(self, id));
        }
    }

    /// Collects that a record has a new version or is about to be removed.
    #[inline]
    pub(crate) fn mark_changed(&mut self, slot: u32) {
        if self.local.events.watched || self.local.events.recent.is_some() {
            self.mark_slot(slot);
        }
    }

    #[cold]
    fn mark_slot(&mut self, slot: u32) {
        let revision = self.revision;
        if self.local.events.recent.as_mut().is_some_and(|recent| !recent.push(revision, slot)) {
            self.local.events.recent = None;
        }
        if self.local.events.watched {
            self.mark_id(slot);
        }
    }

    fn mark_id(&mut self, slot: u32) {
        let Some(id) = self.id(slot) else { return };
        if self.local.events.changed.last().is_none_or(|last| last.borrowed() != id) {
            let id = id.owned();
            self.local.events.changed.push(id);
        }
    }

    /// Gives a record the version and the time of the effect that is being applied.
    pub(crate) fn touch(&mut self, slot: u32) -> Result<(), ApplyError> {
        let moment = self.local.moment;
        if let Some(extras) = &mut self.job_mut(slot)?.extras {
            extras.modified = moment;
        }
        self.renew(slot)
    }

    /// Gives a record the version of the effect that is being applied.
    pub(crate) fn renew(&mut self, slot: u32) -> Result<(), ApplyError> {
        let revision = self.revision() as i64;
        self.job_mut(slot)?.version = U48::new(revision);
        self.mark_changed(slot);
        Ok(())
    }

    /// Emits an event of a job. `more` adds its worker and its other fields, and is called only
    /// when somebody subscribes.
    #[inline]
    pub(crate) fn emit_of(
        &mut self,
        kind: EventKind,
        slot: u32,
        more: impl FnOnce(&Board, &Job) -> (Option<ByteString>, EventFields),
    ) {
        if !self.hears(kind) {
            return;
        }
        let public = self.is_public(kind, slot);
        let heard = public || self.local.events.subscribers.workers && kind.for_worker();
        let job = self.store.jobs.get(slot).filter(|_| heard);
        let event = job.map(|job| (self.store.id(slot, job).owned(), more(self, job)));
        if let Some((id, (worker, fields))) = event {
            let tracked = self.places.labels.tracked(slot);
            self.send(kind, public, Some((id, tracked)), worker, fields);
        }
    }

    /// Marks the kind as happened, and returns whether anybody wants the whole event.
    #[inline]
    fn hears(&mut self, kind: EventKind) -> bool {
        let subscribers = self.local.events.subscribers;
        self.local.events.happened |= kind.bit() & subscribers.names;
        subscribers.events & kind.bit() != 0 || subscribers.workers && kind.for_worker()
    }

    /// Whether every subscriber gets an event of this kind of this job.
    fn is_public(&self, kind: EventKind, slot: u32) -> bool {
        let subscribers = self.local.events.subscribers;
        subscribers.events & kind.bit() != 0 && (!subscribers.tracked || self.places.labels.tracked(slot))
    }

    /// Emits an event of the board.
    #[inline]
    pub(crate) fn emit_of_board(&mut self, kind: EventKind, fields: impl FnOnce() -> EventFields) {
        if self.hears(kind) {
            self.send(kind, true, None, None, fields());
        }
    }

    #[cold]
    fn send(
        &mut self,
        kind: EventKind,
        public: bool,
        job: Option<(Id<ByteString>, bool)>,
        worker: Option<ByteString>,
        fields: EventFields,
    ) {
        let (version, at) = (self.revision, self.local.moment);
        let tracked = job.as_ref().is_some_and(|(_, tracked)| *tracked);
        let id = job.map(|(id, _)| id);
        self.local.events.messages.push(Event { kind, public, id, version, at, tracked, worker, fields });
    }
}

/// A text field of an event, if there is any text.
pub(crate) fn text<'t>(name: &'static str, text: impl Into<Option<&'t [u8]>>) -> Option<EventField> {
    let text = text.into().filter(|text| !text.is_empty());
    text.map(|text| EventField::Text(name, text.into()))
}

/// A number as a field of an event, if there is one.
pub(crate) fn number(name: &'static str, number: impl Into<Option<i64>>) -> Option<EventField> {
    number.into().map(|number| EventField::Number(name, number))
}

/// A fixed word as a field of an event.
pub(crate) fn word(name: &'static str, word: &'static str) -> Option<EventField> {
    Some(EventField::Word(name, word))
}

/// Yes or no as a field of an event.
pub(crate) fn flag(name: &'static str, flag: bool) -> Option<EventField> {
    Some(EventField::Flag(name, flag))
}
