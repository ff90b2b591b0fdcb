//! What stands in the parts of a snapshot. Fields by position: they are added to at the end.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;

use super::load::{is_time, need};
use super::{Damage, HISTORY_MOST};
use crate::bin::Bin;
use crate::board::Board;
use crate::buckets::Bucket;
use crate::effect::{is_grace, is_name};
use crate::fair::{place, Seat, Tag};
use crate::job::{Claim, Options, Rare, Session, State, NEVER, STALE_MOST};
use crate::pauses::{Pause, Place};
use crate::settings::{Overrides, LONGEST};
use crate::verbs::TOKENS;
use crate::waits::AFTER_MOST;

#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) format: u8,
    pub(super) revision: u64,
    pub(super) token: u64,
    pub(super) broken: bool,
    pub(super) settings: Overrides,
    pub(super) queues: Vec<(Bin, Overrides)>,
    pub(super) pauses: Vec<(Place, Pause)>,
    pub(super) turns: u64,
    pub(super) bucket: Option<Bucket>,
    /// Of the queues that have one, by name.
    pub(super) buckets: Vec<(Bin, Bucket)>,
    pub(super) unknown: u64,
}

/// Where a group stands in the rounds, or the jobs without one.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct SeatImage {
    pub(super) top: Option<(i32, Tag)>,
    pub(super) parked: Vec<(i32, Tag)>,
    /// Whether it stands at its top.
    pub(super) stands: bool,
}

impl From<&Seat> for SeatImage {
    fn from(seat: &Seat) -> Self {
        SeatImage {
            top: seat.top,
            parked: seat.parked.iter().map(|(level, tag)| (*level, *tag)).collect(),
            stands: seat.place.is_some(),
        }
    }
}

impl SeatImage {
    pub(super) fn load(self, at: u32) -> Result<Seat, Damage> {
        need(self.parked.is_sorted_by(|a, b| a.0 < b.0), "tags out of order")?;
        need(self.top.is_some() || !self.stands, "a place without a tag")?;
        let place = self.top.filter(|_| self.stands).map(|top| place(top, at));
        Ok(Seat { top: self.top, parked: self.parked.into_iter().collect(), place })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct RoundsImage {
    pub(super) queue: Bin,
    pub(super) plain: SeatImage,
    /// Levels, and the tag of the last turn of each.
    pub(super) rounds: Vec<(i32, u64)>,
    pub(super) settings: Overrides,
    pub(super) review: Option<u32>,
    pub(super) limits: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct LimitImage {
    pub(super) number: u32,
    pub(super) name: Bin,
    pub(super) settings: Overrides,
    pub(super) bucket: Option<Bucket>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct GroupImage {
    pub(super) queue: Bin,
    pub(super) number: u32,
    pub(super) name: Bin,
    pub(super) seat: SeatImage,
    pub(super) settings: Overrides,
    pub(super) paused: i64,
    pub(super) bucket: Option<Bucket>,
    pub(super) rest: Option<i64>,
    pub(super) limits: Option<Vec<u32>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ClaimImage<'a> {
    #[serde(borrow, with = "serde_bytes")]
    pub(super) worker: &'a [u8],
    pub(super) token: u64,
    pub(super) attempt: u32,
    pub(super) cancel: bool,
    pub(super) told: bool,
    pub(super) claimed: i64,
    pub(super) lease: i64,
    pub(super) lease_end: i64,
    pub(super) run_end: i64,
    pub(super) grace: i64,
    pub(super) cancel_end: i64,
    pub(super) session: Session,
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
        let worker = match board.workers.find(self.worker) {
            Some(number) => number,
            None => board.workers.add(self.worker.into()).0,
        };
        board.workers.hold(worker);
        Ok(board.claims.insert(Claim {
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

#[derive(Serialize, Deserialize)]
pub(super) struct JobImage<'a> {
    pub(super) slot: u32,
    pub(super) made: bool,
    #[serde(borrow, with = "serde_bytes")]
    pub(super) id: Cow<'a, [u8]>,
    #[serde(borrow, with = "serde_bytes")]
    pub(super) payload: &'a [u8],
    #[serde(borrow, with = "serde_bytes")]
    pub(super) queue: &'a [u8],
    #[serde(borrow, with = "serde_bytes")]
    pub(super) name: &'a [u8],
    pub(super) options: Option<Options>,
    pub(super) priority: i32,
    pub(super) state: State,
    pub(super) since: i64,
    pub(super) posted: i64,
    pub(super) at: i64,
    pub(super) seq: i64,
    pub(super) version: i64,
    #[serde(borrow)]
    pub(super) claim: Option<ClaimImage<'a>>,
    pub(super) rare: Option<Cow<'a, Rare>>,
    /// The number of its group in its queue.
    pub(super) group: Option<u32>,
    pub(super) ageing: i64,
    #[serde(borrow)]
    pub(super) marks: Option<MarksImage<'a>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct MarksImage<'a> {
    #[serde(borrow)]
    pub(super) tags: Vec<&'a Bytes>,
    pub(super) tracked: bool,
}

/// Whether every number and name in it is one that could have come about.
pub(super) fn sound_rare(rare: &Rare) -> bool {
    let times = [
        rare.tried.idle,
        rare.tried.idle_from,
        rare.ended,
        rare.modified,
        rare.drop_at,
        rare.tried.ready,
        rare.updated,
        rare.closed,
    ];
    times.into_iter().chain(rare.intended).all(is_time)
        && rare.progress.is_none_or(|p| p <= 10_000)
        && rare.user.as_ref().is_none_or(|user| is_name(user))
        && rare.unique.as_ref().is_none_or(|unique| unique.sound())
        && rare.tried.stale.len() <= STALE_MOST
        && rare.after.len() <= AFTER_MOST
        && rare.after.is_sorted_by(|a, b| a.slot < b.slot)
        && rare.family.as_ref().is_none_or(|family| family.sound())
        && rare.history.entries().len() <= HISTORY_MOST
        && rare.history.entries().iter().all(|e| is_time(e.at))
        && rare.advanced.as_ref().is_none_or(|advanced| is_name(&advanced.0) && advanced.1 < TOKENS)
        && rare.last.as_ref().is_none_or(|l| {
            l.token < TOKENS && (1..=LONGEST).contains(&l.lease) && is_time(l.claimed) && is_time(l.run_end)
        })
}
