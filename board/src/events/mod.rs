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
use crate::effect::Unfit;
use crate::events::changes::Recent;
use crate::job::id::Id;
use crate::job::{End, Job, U48};
use crate::settings::{Rules, Setting};
use crate::structures::byte_string::ByteString;

/// What kind of thing happened. The numbers are the bits of the setting `events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Topic {
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

impl Topic {
    /// Those that the setting `events` names, by number.
    pub const ALL: [Topic; 14] = [
        Topic::Posted,
        Topic::Ready,
        Topic::Claimed,
        Topic::Lost,
        Topic::Progress,
        Topic::Completed,
        Topic::Advanced,
        Topic::Failed,
        Topic::Retried,
        Topic::Abandoned,
        Topic::Cancelled,
        Topic::Trashed,
        Topic::Deleted,
        Topic::Settings,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Topic::Posted => "posted",
            Topic::Ready => "ready",
            Topic::Claimed => "claimed",
            Topic::Lost => "lost",
            Topic::Progress => "progress",
            Topic::Completed => "completed",
            Topic::Advanced => "advanced",
            Topic::Failed => "failed",
            Topic::Retried => "retried",
            Topic::Abandoned => "abandoned",
            Topic::Cancelled => "cancelled",
            Topic::Trashed => "trashed",
            Topic::Deleted => "deleted",
            Topic::Settings => "settings",
            Topic::Cancel => "cancel",
        }
    }

    /// Its bit in the setting `events`.
    pub const fn bit(self) -> u32 {
        1 << self as u8
    }

    /// Whether the worker that it is about is told in any case.
    pub fn for_worker(self) -> bool {
        matches!(self, Topic::Lost | Topic::Cancel)
    }
}

/// All topics of the setting `events`.
pub const ALL_TOPICS: u32 = (1 << Topic::ALL.len()) - 1;

/// What is listened to, as bits of topics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ears {
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
pub enum Fact {
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
pub struct Message {
    /// What kind of thing.
    pub topic: Topic,
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
    pub facts: Vec<Fact>,
}

/// What has happened since it was asked for, as far as somebody wants to know.
#[derive(Default)]
pub(crate) struct News {
    /// Whether anybody wants to know which records change.
    watched: bool,
    /// The latest changes, while somebody asks for them.
    pub(crate) recent: Option<Box<Recent>>,
    /// Ids of records that changed or went.
    changed: Vec<Id<ByteString>>,
    ears: Ears,
    /// Topics of which something happened.
    happened: u32,
    messages: Vec<Message>,
}

impl News {
    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        self.recent.as_ref().map_or(0, |recent| recent.bytes())
    }
}

/// Facts of a message, collected.
pub(crate) type Facts = Vec<Fact>;

impl Board {
    /// Whether it is noted from now on which records change or go; see [`Board::changed`].
    pub fn watch(&mut self, on: bool) {
        self.local.news.watched = on;
        self.local.news.changed.clear();
    }

    /// What is noted from now on of what happens; see [`Board::messages`].
    pub fn listen(&mut self, ears: Ears) {
        self.local.news.ears = ears;
        self.local.news.happened = 0;
        self.local.news.messages.clear();
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
    pub fn messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.local.news.messages)
    }

    /// The topics of which anything has happened since the last call, as bits.
    pub fn happened(&mut self) -> u32 {
        std::mem::take(&mut self.local.news.happened)
    }

    /// The ids of the records that have changed or gone since the last call, some more than
    /// once.
    pub fn changed(&mut self, mut each: impl FnMut(&Board, &[u8])) {
        for id in std::mem::take(&mut self.local.news.changed) {
            id.borrowed().text(|id| each(self, id));
        }
    }

    /// A record has got a new version, or goes.
    #[inline]
    pub(crate) fn note_change(&mut self, slot: u32) {
        if self.local.news.watched || self.local.news.recent.is_some() {
            self.note_slot(slot);
        }
    }

    #[cold]
    fn note_slot(&mut self, slot: u32) {
        let revision = self.revision;
        if self.local.news.recent.as_mut().is_some_and(|recent| !recent.push(revision, slot)) {
            self.local.news.recent = None;
        }
        if self.local.news.watched {
            self.note_id(slot);
        }
    }

    fn note_id(&mut self, slot: u32) {
        let Some(job) = self.store.jobs.get(slot) else { return };
        if self.local.news.changed.last().is_none_or(|last| last.borrowed() != job.id()) {
            self.local.news.changed.push(job.id().owned());
        }
    }

    /// Gives a record the version and the time of the effect that is applied.
    pub(crate) fn touch(&mut self, slot: u32) -> Result<(), Unfit> {
        let (revision, moment) = (self.revision() as i64, self.local.moment);
        let job = self.job_mut(slot)?;
        job.version = U48::new(revision);
        if let Some(extras) = &mut job.extras {
            extras.modified = moment;
        }
        self.note_change(slot);
        Ok(())
    }

    /// Tells that something happened to a job; `more` gives the worker that it is about and
    /// what there is to add, and is asked only when somebody listens.
    #[inline]
    pub(crate) fn tell_of(
        &mut self,
        topic: Topic,
        slot: u32,
        more: impl FnOnce(&Board, &Job) -> (Option<ByteString>, Facts),
    ) {
        if !self.hears(topic) {
            return;
        }
        let public = self.is_public(topic, slot);
        let heard = public || self.local.news.ears.workers && topic.for_worker();
        let job = self.store.jobs.get(slot).filter(|_| heard);
        let told = job.map(|job| (job.id().owned(), more(self, job)));
        if let Some((id, (worker, facts))) = told {
            self.send(topic, public, Some(id), worker, facts);
        }
    }

    /// Notes that it happened, and whether anybody wants to know more.
    #[inline]
    fn hears(&mut self, topic: Topic) -> bool {
        let ears = self.local.news.ears;
        self.local.news.happened |= topic.bit() & ears.names;
        ears.events & topic.bit() != 0 || ears.workers && topic.for_worker()
    }

    /// Whether all are told of it when it happens to that job.
    fn is_public(&self, topic: Topic, slot: u32) -> bool {
        let ears = self.local.news.ears;
        ears.events & topic.bit() != 0 && (!ears.tracked || self.places.labels.tracked(slot))
    }

    /// Tells that something happened to the board.
    #[inline]
    pub(crate) fn tell_of_board(&mut self, topic: Topic, facts: impl FnOnce() -> Facts) {
        if self.hears(topic) {
            self.send(topic, true, None, None, facts());
        }
    }

    #[cold]
    fn send(
        &mut self,
        topic: Topic,
        public: bool,
        id: Option<Id<ByteString>>,
        worker: Option<ByteString>,
        facts: Facts,
    ) {
        let (version, at) = (self.revision, self.local.moment);
        self.local.news.messages.push(Message { topic, public, id, version, at, worker, facts });
    }

    pub(crate) fn queue_fact(&self, job: &Job) -> Fact {
        Fact::Text("queue", self.queue_name(job).into())
    }

    /// Whether the record of a job that ends now stays for a while.
    pub(crate) fn keeps(&self, slot: u32, retain: i64) -> bool {
        retain != 0 || self.pinned(slot)
    }
}

pub(crate) fn token_fact(token: u64) -> Fact {
    Fact::Number("token", token as i64)
}

/// A text that a message has when it is there.
pub(crate) fn text_fact(facts: &mut Facts, name: &'static str, text: Option<&[u8]>) {
    facts.extend(text.filter(|text| !text.is_empty()).map(|text| Fact::Text(name, text.into())));
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
