//! What stands in the parts of a snapshot.

use std::borrow::Cow;

use super::load::need;
use super::{Damage, HISTORY_MOST};
use crate::board::Board;
use crate::dispatch::buckets::Bucket;
use crate::dispatch::fair::{place, Seat, Tag};
use crate::effect::{is_grace, is_name};
use crate::job::order::TimeKey;
use crate::job::{is_time, Claim, Extras, Options, Session, State, NEVER, STALE_MOST};
use crate::relations::dependencies::AFTER_MOST;
use crate::settings::{Overrides, LONGEST};
use crate::structures::byte_string::ByteString;
use crate::verbs::{DEFAULT_QUEUE, TOKENS};
use crate::workers::registrations::Entry;

written! {
    pub(super) struct Head {
        1 pub(super) revision: u64,
        2 pub(super) token: u64,
        3 pub(super) broken: bool,
        4 pub(super) settings: Overrides,
        5 pub(super) turns: u64,
        6 pub(super) bucket: Option<Bucket>,
        7 pub(super) unknown: u64,
    }
}

written! {
    pub(super) struct LimitImage {
        1 pub(super) number: u32,
        2 pub(super) name: ByteString,
        3 pub(super) settings: Overrides,
        4 pub(super) bucket: Option<Bucket>,
    }
}

written! {
    /// A queue with settings or limits.
    pub(super) struct QueueImage {
        1 pub(super) name: ByteString,
        2 pub(super) settings: Overrides,
        3 pub(super) bucket: Option<Bucket>,
        4 pub(super) limits: Vec<u32>,
    }
}

written! {
    pub(super) struct PauseImage {
        1 pub(super) queue: Option<ByteString>,
        2 pub(super) group: Option<ByteString>,
        3 pub(super) until: i64 = NEVER,
        4 pub(super) release: Option<TimeKey>,
    }
}

written! {
    /// A tag at a level.
    pub(super) struct TagImage {
        1 level: i32,
        2 tag: u64,
        3 order: u64,
    }
}

impl From<(i32, Tag)> for TagImage {
    fn from((level, (tag, order)): (i32, Tag)) -> Self {
        TagImage { level, tag, order }
    }
}

impl From<TagImage> for (i32, Tag) {
    fn from(image: TagImage) -> Self {
        (image.level, (image.tag, image.order))
    }
}

written! {
    /// Where a group stands in the rounds, or the jobs without one.
    pub(super) struct SeatImage {
        1 top: Option<TagImage>,
        2 parked: Vec<TagImage>,
        /// Whether it stands at its top.
        3 stands: bool,
    }
}

impl From<&Seat> for SeatImage {
    fn from(seat: &Seat) -> Self {
        SeatImage {
            top: seat.top.map(TagImage::from),
            parked: seat.parked.iter().map(|(level, tag)| (*level, *tag).into()).collect(),
            stands: seat.place.is_some(),
        }
    }
}

impl SeatImage {
    pub(super) fn load(self, at: u32) -> Result<Seat, Damage> {
        need(self.parked.is_sorted_by(|a, b| a.level < b.level), "tags out of order")?;
        need(self.top.is_some() || !self.stands, "a place without a tag")?;
        let top = self.top.map(Into::into);
        let place = top.filter(|_| self.stands).map(|top| place(top, at));
        Ok(Seat { top, parked: self.parked.into_iter().map(Into::into).collect(), place })
    }
}

written! {
    /// A level, and the tag of the last turn of it.
    pub(super) struct LevelImage {
        1 pub(super) level: i32,
        2 pub(super) time: u64,
    }
}

written! {
    /// A queue with groups.
    pub(super) struct RoundsImage {
        1 pub(super) queue: ByteString,
        2 pub(super) plain: SeatImage,
        3 pub(super) rounds: Vec<LevelImage>,
        4 pub(super) settings: Overrides,
        5 pub(super) review: Option<u32>,
        6 pub(super) limits: Vec<u32>,
    }
}

written! {
    pub(super) struct GroupImage {
        1 pub(super) queue: ByteString,
        2 pub(super) number: u32,
        3 pub(super) name: ByteString,
        4 pub(super) seat: SeatImage,
        5 pub(super) settings: Overrides,
        6 pub(super) paused: i64,
        7 pub(super) bucket: Option<Bucket>,
        8 pub(super) rest: Option<i64>,
        9 pub(super) limits: Option<Vec<u32>>,
    }
}

written! {
    pub(super) struct ClaimImage<'a> {
        1 pub(super) worker: &'a [u8],
        2 pub(super) token: u64,
        3 pub(super) attempt: u32 = 1,
        4 pub(super) cancel: bool,
        5 pub(super) told: bool,
        6 pub(super) claimed: i64,
        7 pub(super) lease: i64 = 30_000,
        8 pub(super) lease_end: i64,
        9 pub(super) run_end: i64 = NEVER,
        10 pub(super) grace: i64,
        11 pub(super) cancel_end: i64 = NEVER,
        12 pub(super) session: Session,
    }
}

impl ClaimImage<'_> {
    /// The number of the claim.
    pub(super) fn load(self, board: &mut Board, slot: u32) -> Result<u32, Damage> {
        need((1..=255).contains(&self.worker.len()), "worker")?;
        need((1..=board.token).contains(&self.token) && self.attempt > 0, "claim")?;
        need((1..=LONGEST).contains(&self.lease), "lease")?;
        need(is_grace(self.grace) && (self.cancel || self.cancel_end == NEVER), "claim")?;
        let times = [self.claimed, self.lease_end, self.run_end, self.cancel_end];
        need(times.into_iter().all(is_time), "time")?;
        let worker = match board.workers.names.find(self.worker) {
            Some(number) => number,
            None => board.workers.names.add(self.worker.into()).0,
        };
        board.workers.names.hold(worker);
        Ok(board.store.claims.insert(Claim {
            slot,
            worker,
            token: self.token,
            attempt: self.attempt,
            cancel: self.cancel,
            told: self.told,
            claimed: self.claimed,
            lease: self.lease,
            lease_end: self.lease_end,
            run_end: self.run_end,
            grace: self.grace,
            cancel_end: self.cancel_end,
            session: self.session,
        }))
    }
}

written! {
    pub(super) struct JobImage<'a> {
        1 pub(super) slot: u32,
        2 pub(super) made: bool,
        3 pub(super) id: Cow<'a, [u8]>,
        4 pub(super) payload: &'a [u8],
        5 pub(super) queue: &'a [u8] = DEFAULT_QUEUE,
        6 pub(super) name: &'a [u8],
        7 pub(super) options: Option<Options>,
        8 pub(super) priority: i32,
        9 pub(super) state: State = State::Ready,
        10 pub(super) posted: i64,
        /// Where it is not the time of the post.
        11 pub(super) since: Option<i64>,
        12 pub(super) at: i64 = NEVER,
        13 pub(super) seq: i64,
        /// Where it is not the order of the post.
        14 pub(super) version: Option<i64>,
        15 pub(super) claim: Option<ClaimImage<'a>>,
        16 pub(super) extras: Option<Cow<'a, Extras>>,
        /// The number of its group in its queue.
        17 pub(super) group: Option<u32>,
        18 pub(super) ageing: i64,
        19 pub(super) marks: Option<MarksImage<'a>>,
    }
}

written! {
    pub(super) struct MarksImage<'a> {
        1 pub(super) tags: Vec<&'a [u8]>,
        2 pub(super) tracked: bool,
    }
}

written! {
    /// A worker's registration, the end of one before, or both.
    pub(super) struct WorkerImage {
        1 pub(super) name: ByteString,
        2 pub(super) entry: Entry,
    }
}

written! {
    pub(super) struct EndImage {
        /// How many came before.
        1 pub(super) items: u64,
    }
}

/// Whether every number and name in it is one that could have come about.
pub(super) fn sound_extras(extras: &Extras) -> bool {
    let times = [
        extras.tried.idle,
        extras.tried.idle_from,
        extras.ended,
        extras.modified,
        extras.drop_at,
        extras.tried.ready,
        extras.updated,
        extras.closed,
    ];
    times.into_iter().chain(extras.intended).all(is_time)
        && extras.progress.is_none_or(|p| p <= 10_000)
        && extras.user.as_ref().is_none_or(|user| is_name(user))
        && extras.unique.as_ref().is_none_or(|unique| unique.sound())
        && extras.tried.stale.len() <= STALE_MOST
        && extras.after.len() <= AFTER_MOST
        && extras.after.is_sorted_by(|a, b| a.slot < b.slot)
        && extras.family.as_ref().is_none_or(|family| family.sound())
        && extras.history.entries().len() <= HISTORY_MOST
        && extras.history.entries().iter().all(|e| is_time(e.at))
        && extras.advanced.as_ref().is_none_or(|advanced| is_name(&advanced.0) && advanced.1 < TOKENS)
        && extras.last.as_ref().is_none_or(|l| {
            l.token < TOKENS && (1..=LONGEST).contains(&l.lease) && is_time(l.claimed) && is_time(l.run_end)
        })
}
