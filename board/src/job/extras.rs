//! What few jobs have.

use super::{is_time, End, LastClaim, NEVER, TOKENS};
use crate::effect::is_name;
use crate::job::awaited::{Edge, AFTER_MOST};
use crate::job::history::{Entry, History, HISTORY_MOST};
use crate::job::kin::{ChildWait, Family};
use crate::job::remembered::{Memos, Remembered};
use crate::job::unique_key::Unique;
use crate::settings::LONGEST;
use crate::structures::byte_string::ByteString;
use crate::structures::lazy::{Lazy, Part};

/// The most workers that are remembered because their lease on a job lapsed; when there are more,
/// every worker counts as one of them.
pub const STALE_MOST: usize = 16;

/// The most fields of its user's that a job has.
pub const META_MOST: usize = 64;

written! {
    /// What few jobs have. See the module's comment.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Extras {
        /// How often it has been claimed, while nobody holds it.
        1 pub attempt: u32,
        /// Failures counted against its retries.
        2 pub fails: u32,
        /// Lost leases counted against its lapses.
        3 pub lapses: u32,
        /// What is kept when an attempt was not the last.
        4 pub retrying: Lazy<Retrying>,
        /// The last claim, while nobody holds it.
        5 pub last_claim: Option<Box<LastClaim>>,
        /// What workers have reported.
        6 pub reports: Lazy<Reports>,
        /// Its progress, in hundredths of a per cent.
        7 pub progress: Option<u16>,
        /// The user's own fields.
        8 pub meta: Vec<(ByteString, ByteString)>,
        /// Its history.
        9 pub history: History,
        /// When it ended, Unix ms.
        10 pub ended: i64,
        /// When anything in here last changed, Unix ms.
        11 pub modified: i64,
        /// What a blocked job waits for, by slot.
        12 pub after: Vec<Edge>,
        /// How many jobs wait for it.
        13 pub awaited: u32,
        /// When the record of an ended job is removed, once nothing keeps it, Unix ms.
        14 pub drop_at: i64,
        /// The time of its schedule for which it was posted, Unix ms.
        15 pub intended: Option<i64>,
        /// The board's revision when an operator last updated it.
        16 pub updated: i64,
        /// On whose behalf it was posted.
        17 pub user: Option<ByteString>,
        /// Its parent and its children.
        18 pub family: Option<Box<Family>>,
        /// The board's revision when it last ended.
        19 pub closed: i64,
        /// The worker that last advanced it to another queue, and the token of that claim.
        20 pub advanced: Option<Box<(ByteString, u64)>>,
        /// The unique key that it took.
        21 pub unique: Option<Box<Unique>>,
        /// What it remembers between its runs.
        22 pub remembered: Lazy<Remembered>,
        /// Where a dead job came from.
        23 pub origin: Option<Box<Origin>>,
    }
}

written! {
    /// Where a job was before it moved to the dead queue.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Origin {
        /// Its queue.
        1 pub queue: ByteString,
        /// How often it had been claimed.
        2 pub attempts: u32,
        /// When it moved, Unix ms.
        3 pub at: i64,
    }
}

written! {
    /// Part of [`Extras`]: a job that came back after an attempt.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Retrying {
        /// Time in back-off, which does not count towards its expiry, ms.
        1 pub idle: i64,
        /// When the current back-off began, Unix ms, or [`NEVER`].
        2 pub idle_from: i64 = NEVER,
        /// When it became ready again after it first was, Unix ms, or [`NEVER`].
        3 pub ready: i64 = NEVER,
        /// Workers whose lease on it lapsed before the last claim.
        4 pub stale: Vec<ByteString>,
    }
}

impl Default for Retrying {
    fn default() -> Self {
        Retrying::BLANK.clone()
    }
}

impl Part for Retrying {
    const BLANK: &'static Self = &Retrying { idle: 0, idle_from: NEVER, ready: NEVER, stale: Vec::new() };
}

written! {
    /// Part of [`Extras`]: texts of workers.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Reports {
        /// Class of the last failure.
        1 pub kind: Option<ByteString>,
        /// Text of the last failure.
        2 pub message: Option<ByteString>,
        /// The worker's own words on how far it is.
        3 pub stage: Option<ByteString>,
        /// Why it was abandoned or trashed.
        4 pub reason: Option<ByteString>,
        /// What it completed with.
        5 pub result: Option<ByteString>,
    }
}

impl Part for Reports {
    const BLANK: &'static Self =
        &Reports { kind: None, message: None, stage: None, reason: None, result: None };
}

impl Reports {
    /// All texts that are set.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut ByteString> {
        let texts = [&mut self.kind, &mut self.message, &mut self.stage, &mut self.reason, &mut self.result];
        texts.into_iter().flatten()
    }

    fn bytes(&self) -> usize {
        let texts = [&self.kind, &self.message, &self.stage, &self.reason, &self.result];
        texts.into_iter().flatten().map(|text| text.len()).sum()
    }
}

impl Extras {
    /// Whether a board could have come to every number and name in it.
    pub(crate) fn is_valid(&self) -> bool {
        let times = [
            self.retrying.idle,
            self.retrying.idle_from,
            self.ended,
            self.modified,
            self.drop_at,
            self.retrying.ready,
            self.updated,
            self.closed,
        ];
        times.into_iter().chain(self.intended).all(is_time)
            && self.progress.is_none_or(|p| p <= 10_000)
            && self.user.as_ref().is_none_or(|user| is_name(user))
            && self.unique.as_ref().is_none_or(|unique| unique.is_valid())
            && self.remembered.is_valid()
            && self.origin.as_ref().is_none_or(|origin| is_name(&origin.queue) && is_time(origin.at))
            && self.retrying.stale.len() <= STALE_MOST
            && self.after.len() <= AFTER_MOST
            && self.after.is_sorted_by(|a, b| a.slot < b.slot)
            && self.family.as_ref().is_none_or(|family| family.is_valid())
            && self.history.entries().len() <= HISTORY_MOST
            && self.history.entries().iter().all(Entry::is_valid)
            && self.advanced.as_ref().is_none_or(|advanced| is_name(&advanced.0) && advanced.1 < TOKENS)
            && self.last_claim.as_ref().is_none_or(|l| {
                l.token < TOKENS
                    && (1..=LONGEST).contains(&l.lease)
                    && is_time(l.claimed)
                    && is_time(l.run_end)
            })
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        std::mem::size_of::<Self>()
            + self.reports.part_bytes()
            + Reports::bytes(&self.reports)
            + self.retrying.part_bytes()
            + self.retrying.stale.iter().map(|w| w.len() + 16).sum::<usize>()
            + self.user.as_ref().map_or(0, |user| user.len())
            + self.unique.as_ref().map_or(0, |unique| unique.bytes())
            + self.origin.as_ref().map_or(0, |origin| origin.queue.len() + std::mem::size_of::<Origin>())
            + self.last_claim.as_ref().map_or(0, |l| l.worker.len() + std::mem::size_of::<LastClaim>())
            + self.advanced.as_ref().map_or(0, |advanced| advanced.0.len() + 24)
            + self.meta.iter().map(|(f, v)| f.len() + v.len() + 32).sum::<usize>()
            + self.history.bytes()
            + self.remembered.part_bytes()
            + Remembered::bytes(&self.remembered)
            + std::mem::size_of_val(&*self.after)
            + self.family.as_ref().map_or(0, |_| std::mem::size_of::<Family>())
    }

    /// Forgets the outcomes of all attempts so far, and who made them. Who held the job before may
    /// no longer report on it, unless its claim ended like `answered`.
    pub fn begin_attempts_afresh(&mut self, answered: Option<End>) {
        if let Some(last) = self.last_claim.as_mut().filter(|last| Some(last.end) != answered) {
            last.end = End::Taken;
        }
        self.advanced = None;
        self.attempt = 0;
        self.fails = 0;
        self.lapses = 0;
        self.retrying = Lazy::default();
        self.progress = None;
        if let Some(said) = self.reports.there() {
            said.stage = None;
        }
    }

    /// Forgets what the steps of its work came to, which of its waits timed out, and that an
    /// operator ended its wait for its children.
    pub fn forget_steps(&mut self) {
        if let Some(remembered) = self.remembered.there() {
            (remembered.steps, remembered.timeouts) = (Memos::default(), Memos::default());
        }
        self.forget_waiver();
    }

    /// Whether its job waits: for other jobs, for signals or for its children.
    pub(crate) fn waits(&self) -> bool {
        self.waits_for_others() || self.child_wait().is_some()
    }

    /// Whether its job waits for other jobs than its children, or for signals.
    pub(crate) fn waits_for_others(&self) -> bool {
        !self.after.is_empty() || self.remembered.waiting.is_some()
    }

    /// The wait of its job for its children.
    pub(crate) fn child_wait(&self) -> Option<&ChildWait> {
        self.family.as_ref()?.wait.as_ref()
    }

    /// Its job waits for its children when a later run asks for it, whatever an operator decided
    /// before.
    pub(crate) fn forget_waiver(&mut self) {
        self.change_family(|family| family.waived = false);
    }

    /// Changes what it says of parent and children, if it says anything.
    pub(crate) fn change_family(&mut self, change: impl FnOnce(&mut Family)) {
        if let Some(family) = &mut self.family {
            change(family);
        }
        self.family.take_if(|family| family.is_blank());
    }

    /// Ends the back-off.
    pub fn end_idle(&mut self, now: i64) {
        let Some(tried) = self.retrying.there() else { return };
        let from = std::mem::replace(&mut tried.idle_from, NEVER);
        if from == NEVER {
            return;
        }
        let idle = tried.idle.saturating_add(now.saturating_sub(from).max(0));
        tried.idle = idle.min(NEVER);
    }

    /// Whether an earlier claim by this worker lapsed, so that it may speak of that claim.
    pub fn is_stale(&self, worker: &[u8]) -> bool {
        self.retrying.stale.len() >= STALE_MOST || self.retrying.stale.iter().any(|w| **w == *worker)
    }

    /// How many fields there would be with these set as well.
    pub fn meta_with<'a>(&'a self, fields: impl Iterator<Item = &'a [u8]>) -> usize {
        let mut names: Vec<&[u8]> = self.meta.iter().map(|(f, _)| &**f).chain(fields).collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    }

    /// Sets these fields of the user's and keeps the others.
    pub fn set_meta<'a>(&mut self, fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
        for (field, value) in fields {
            match self.meta.iter_mut().find(|(f, _)| **f == *field) {
                Some((_, old)) => *old = value.into(),
                None => {
                    // There are few fields, and seldom more later: no spare room.
                    self.meta.reserve_exact(1);
                    self.meta.push((field.into(), value.into()));
                }
            }
        }
    }
}
