//! What a board tells those who follow it: which records change, and what happens to jobs. All
//! of it is local: in no snapshot, no digest, and nothing is noted when nobody listens.
//!
//! | file | what it holds |
//! |---|---|
//! | `messages` | what the messages say |
//! | `changes` | what changed and went since a revision |
//!
//! Uses `dispatch`, `job` and `structures`.

pub(crate) mod changes;
pub(crate) mod messages;

use crate::board::Board;
use crate::effect::ApplyError;
use crate::events::changes::Recent;
use crate::job::id::Id;
use crate::job::{End, Job, U48};
use crate::settings::{Rules, Setting};
use crate::structures::byte_string::ByteString;

/// What kind of thing happened. The numbers are the bits of the setting `events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventKind {
    /// A job came, or took the place of one with its id.
    Posted = 0,
    /// It can be claimed.
    Ready = 1,
    /// A worker took it.
    Claimed = 2,
    /// A worker lost it, and not by a word of its own.
    Lost = 3,
    /// Somebody said how far it is.
    Progress = 4,
    /// It is complete.
    Completed = 5,
    /// It goes on in another queue.
    Advanced = 6,
    /// It has failed for good.
    Failed = 7,
    /// It will be tried again.
    Retried = 8,
    /// A worker gave it back.
    Abandoned = 9,
    /// It was called off.
    Cancelled = 10,
    /// A worker put it aside.
    Trashed = 11,
    /// Its record is gone.
    Deleted = 12,
    /// The board works by other rules.
    Settings = 13,
    /// A worker is asked to stop. Told to that worker alone.
    Cancel = 14,
}

impl EventKind {
    /// Those that the setting `events` names, by number.
    pub const ALL: [EventKind; 14] = [
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
    ];

    /// The word for it.
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
            EventKind::Cancel => "cancel",
        }
    }

    /// Its bit in the setting `events`.
    pub const fn bit(self) -> u32 {
        1 << self as u8
    }

    /// Whether the worker that it is about is told in any case.
    pub fn for_worker(self) -> bool {
        matches!(self, EventKind::Lost | EventKind::Cancel)
    }
}

/// All topics of the setting `events`.
pub const ALL_EVENTS: u32 = (1 << EventKind::ALL.len()) - 1;

/// What is listened to, as bits of topics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Subscribers {
    /// Told in full to all.
    pub events: u32,
    /// Of jobs, only tracked ones are told in full to all.
    pub tracked: bool,
    /// Whether workers are told in full what concerns them.
    pub workers: bool,
    /// Told by name alone, see [`Board::happened`].
    pub names: u32,
}

/// One thing that a message adds.
#[derive(Debug, Clone, PartialEq)]
pub enum EventField {
    /// Bytes of a client's.
    Text(&'static str, ByteString),
    /// A word of ours.
    Word(&'static str, &'static str),
    /// A whole number.
    Number(&'static str, i64),
    /// Hundredths of a per cent.
    Percent(&'static str, u16),
    /// Yes or no.
    Flag(&'static str, bool),
    /// Nothing.
    Null(&'static str),
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What kind of thing.
    pub topic: EventKind,
    /// Whether it is for all who listen, or for a worker alone.
    pub public: bool,
    /// The job that it happened to, none for the board's own.
    pub id: Option<Id<ByteString>>,
    /// The board's revision, which is the job's version unless it changes again at once.
    pub version: u64,
    /// When, Unix ms.
    pub at: i64,
    /// The worker that it is about.
    pub worker: Option<ByteString>,
    /// What there is to add.
    pub facts: Vec<EventField>,
}

/// What has happened since it was asked for, as far as somebody wants to know.
#[derive(Default)]
pub(crate) struct Events {
    /// Whether anybody wants to know which records change.
    watched: bool,
    /// The latest changes, while somebody asks for them.
    pub(crate) recent: Option<Box<Recent>>,
    /// Ids of records that changed or went.
    changed: Vec<Id<ByteString>>,
    subscribers: Subscribers,
    /// Topics of which something happened.
    happened: u32,
    messages: Vec<Event>,
}

impl Events {
    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        self.recent.as_ref().map_or(0, |recent| recent.bytes())
    }
}

/// Facts of a message, collected.
pub(crate) type EventFields = Vec<EventField>;

impl Board {
    /// Whether it is noted from now on which records change or go; see [`Board::changed`].
    pub fn watch(&mut self, on: bool) {
        self.local.events.watched = on;
        self.local.events.changed.clear();
    }

    /// What is noted from now on of what happens; see [`Board::messages`].
    pub fn listen(&mut self, subscribers: Subscribers) {
        self.local.events.subscribers = subscribers;
        self.local.events.happened = 0;
        self.local.events.messages.clear();
    }

    /// The topics that the setting `events` names, as bits.
    pub fn events(&self, rules: &Rules) -> u32 {
        self.rule(Setting::Events, u32::MAX, rules) as u32
    }

    /// Whether the setting `events-tracked` keeps events to tracked jobs.
    pub fn events_tracked(&self, rules: &Rules) -> bool {
        self.rule(Setting::EventsTracked, u32::MAX, rules) != 0
    }

    /// What has happened since the last call, in order.
    pub fn messages(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.local.events.messages)
    }

    /// The topics of which anything has happened since the last call, as bits.
    pub fn happened(&mut self) -> u32 {
        std::mem::take(&mut self.local.events.happened)
    }

    /// The ids of the records that have changed or gone since the last call, some more than
    /// once.
    pub fn changed(&mut self, mut each: impl FnMut(&Board, &[u8])) {
        for id in std::mem::take(&mut self.local.events.changed) {
            id.borrowed().text(|id| each(self, id));
        }
    }

    /// A record has got a new version, or goes.
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
        let Some(job) = self.store.jobs.get(slot) else { return };
        if self.local.events.changed.last().is_none_or(|last| last.borrowed() != job.id()) {
            self.local.events.changed.push(job.id().owned());
        }
    }

    /// Gives a record the version and the time of the effect that is applied.
    pub(crate) fn touch(&mut self, slot: u32) -> Result<(), ApplyError> {
        let (revision, moment) = (self.revision() as i64, self.local.moment);
        let job = self.job_mut(slot)?;
        job.version = U48::new(revision);
        if let Some(extras) = &mut job.extras {
            extras.modified = moment;
        }
        self.mark_changed(slot);
        Ok(())
    }

    /// Tells that something happened to a job; `more` gives the worker that it is about and
    /// what there is to add, and is asked only when somebody listens.
    #[inline]
    pub(crate) fn emit_of(
        &mut self,
        topic: EventKind,
        slot: u32,
        more: impl FnOnce(&Board, &Job) -> (Option<ByteString>, EventFields),
    ) {
        if !self.hears(topic) {
            return;
        }
        let public = self.is_public(topic, slot);
        let heard = public || self.local.events.subscribers.workers && topic.for_worker();
        let job = self.store.jobs.get(slot).filter(|_| heard);
        let told = job.map(|job| (job.id().owned(), more(self, job)));
        if let Some((id, (worker, facts))) = told {
            self.send(topic, public, Some(id), worker, facts);
        }
    }

    /// Notes that it happened, and whether anybody wants to know more.
    #[inline]
    fn hears(&mut self, topic: EventKind) -> bool {
        let subscribers = self.local.events.subscribers;
        self.local.events.happened |= topic.bit() & subscribers.names;
        subscribers.events & topic.bit() != 0 || subscribers.workers && topic.for_worker()
    }

    /// Whether all are told of it when it happens to that job.
    fn is_public(&self, topic: EventKind, slot: u32) -> bool {
        let subscribers = self.local.events.subscribers;
        subscribers.events & topic.bit() != 0 && (!subscribers.tracked || self.places.labels.tracked(slot))
    }

    /// Tells that something happened to the board.
    #[inline]
    pub(crate) fn emit_of_board(&mut self, topic: EventKind, facts: impl FnOnce() -> EventFields) {
        if self.hears(topic) {
            self.send(topic, true, None, None, facts());
        }
    }

    #[cold]
    fn send(
        &mut self,
        topic: EventKind,
        public: bool,
        id: Option<Id<ByteString>>,
        worker: Option<ByteString>,
        facts: EventFields,
    ) {
        let (version, at) = (self.revision, self.local.moment);
        self.local.events.messages.push(Event { topic, public, id, version, at, worker, facts });
    }

    pub(crate) fn queue_field(&self, job: &Job) -> EventField {
        EventField::Text("queue", self.queue_name(job).into())
    }

    /// Whether the record of a job that ends now stays for a while.
    pub(crate) fn keeps(&self, slot: u32, retain: i64) -> bool {
        retain != 0 || self.pinned(slot)
    }
}

pub(crate) fn token_field(token: u64) -> EventField {
    EventField::Number("token", token as i64)
}

/// A text that a message has when it is there.
pub(crate) fn text_field(facts: &mut EventFields, name: &'static str, text: Option<&[u8]>) {
    facts.extend(text.filter(|text| !text.is_empty()).map(|text| EventField::Text(name, text.into())));
}

impl End {
    /// How a worker lost a claim that ended so, unless it ended it itself.
    pub(crate) fn loss(self) -> Option<&'static str> {
        match self {
            End::Lapsed => Some("lapsed"),
            End::TimedOut => Some("timeout"),
            End::Taken => Some("released"),
            _ => None,
        }
    }
}
