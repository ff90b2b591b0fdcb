//! What a snapshot holds of shared limits, queues, pauses and groups.

use std::collections::BTreeSet;

use crate::board::Board;
use crate::dispatch::buckets::{Bucket, Refill};
use crate::dispatch::fair::{place, Fair, Round, Seat, Tag, PLAIN};
use crate::dispatch::groups::Group;
use crate::dispatch::limits::{is_list, Limit, LIMITS_MOST};
use crate::dispatch::lists::Owner;
use crate::dispatch::pauses::{Pause, Place};
use crate::effect::is_name;
use crate::item::{damaged, need, Item, Loading, SnapshotError};
use crate::job::order::TimeKey;
use crate::job::{is_time, NEVER};
use crate::settings::{Level, Overrides};
use crate::structures::byte_string::ByteString;

written! {
    pub(crate) struct LimitImage {
        1 pub(crate) number: u32,
        2 pub(crate) name: ByteString,
        3 pub(crate) settings: Overrides,
        4 pub(crate) bucket: Option<Bucket>,
    }
}

impl<'a> Item<'a> for LimitImage {
    fn each(board: &'a Board, mut put: impl FnMut(&Self)) {
        for (number, limit) in board.dispatch.limits.iter() {
            let (name, settings) = (limit.name.clone(), limit.settings.clone());
            put(&LimitImage { number, name, settings, bucket: limit.bucket });
        }
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        let LimitImage { number, name, settings, bucket } = self;
        need(is_name(&name) && board.dispatch.limits.len() < LIMITS_MOST, "limit")?;
        need(settings.is_valid(Level::Limit), "settings")?;
        need(bucket.is_none_or(|bucket| bucket.is_valid()), "bucket")?;
        let refill = Refill::set_by(&settings);
        let limit = Limit { name, settings, refill, bucket, ..Limit::default() };
        need(board.dispatch.limits.restore(number, limit), "a limit twice")
    }
}

written! {
    /// A queue with settings, limits or a dead queue.
    pub(crate) struct QueueImage {
        1 pub(crate) name: ByteString,
        2 pub(crate) settings: Overrides,
        3 pub(crate) bucket: Option<Bucket>,
        4 pub(crate) limits: Vec<u32>,
        5 pub(crate) dead: Option<ByteString>,
    }
}

impl<'a> Item<'a> for QueueImage {
    fn each(board: &'a Board, put: impl FnMut(&Self)) {
        let own = board.queues.iter().filter(|(_, _, q)| q.is_configured());
        let images = own.map(|(_, name, q)| QueueImage {
            name: name.clone(),
            settings: q.settings.clone(),
            bucket: q.seldom.bucket.filter(|_| q.seldom.refill.is_some()),
            limits: q.seldom.limits.to_vec(),
            dead: q.seldom.dead.clone(),
        });
        let mut images: Vec<QueueImage> = images.collect();
        images.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        images.iter().for_each(put);
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        let QueueImage { name, settings, bucket, limits, dead } = self;
        need(is_name(&name) && settings.is_valid(Level::Queue), "queue")?;
        let holds = [!settings.is_empty(), !limits.is_empty(), dead.is_some()];
        need(holds.contains(&true), "a queue of nothing")?;
        need(dead.as_ref().is_none_or(|dead| is_name(dead) && *dead != name), "dead queue")?;
        let number = board.queue(&name);
        board.load_names(number, Owner::Queue, &limits)?;
        let queue = board.queues.get_mut(number).ok_or(SnapshotError("queue"))?;
        need(!queue.is_configured(), "a queue twice")?;
        queue.set_refill(Refill::set_by(&settings));
        need(bucket.is_none_or(|bucket| bucket.is_valid() && queue.seldom.refill.is_some()), "bucket")?;
        queue.settings = settings;
        if bucket.is_some() || !limits.is_empty() || dead.is_some() {
            let seldom = &mut *queue.seldom;
            (seldom.bucket, seldom.limits, seldom.dead) = (bucket, limits, dead);
        }
        holds.into_iter().filter(|holds| *holds).for_each(|_| board.queues.hold(number));
        Ok(())
    }
}

written! {
    pub(crate) struct PauseImage {
        1 pub(crate) queue: Option<ByteString>,
        2 pub(crate) group: Option<ByteString>,
        3 pub(crate) until: i64 = NEVER,
        4 pub(crate) release: Option<TimeKey>,
        /// The shared limit, in place of a queue.
        5 pub(crate) limit: Option<ByteString>,
    }
}

impl<'a> Item<'a> for PauseImage {
    fn each(board: &'a Board, mut put: impl FnMut(&Self)) {
        for (place, pause) in board.dispatch.pauses.iter() {
            let (queue, group, limit) = match place.clone() {
                Place::Board => (None, None, None),
                Place::Queue(queue, group) => (Some(queue), group, None),
                Place::Limit(limit) => (None, None, Some(limit)),
            };
            put(&PauseImage { queue, group, until: pause.until, release: pause.release, limit });
        }
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        let PauseImage { queue, group, until, release, limit } = self;
        need(queue.is_some() || group.is_none(), "pause")?;
        need(limit.is_none() || queue.is_none() && release.is_none(), "pause")?;
        need(queue.iter().chain(&group).all(|name| is_name(name)), "queue")?;
        let (time, seq) = release.unwrap_or_default();
        need(until > 0 && [until, time, seq].into_iter().all(is_time), "pause")?;
        let place = match (queue, limit) {
            (Some(queue), _) => Place::Queue(queue, group),
            (None, Some(limit)) => Place::Limit(limit),
            (None, None) => Place::Board,
        };
        let pause = Some(Pause { until, release });
        need(board.dispatch.pauses.iter().next_back().is_none_or(|(last, _)| *last < place), "order")?;
        match place {
            // The record of its group follows, and says so too.
            Place::Queue(_, Some(_)) => {
                board.dispatch.pauses.set(&place, pause);
                Ok(())
            }
            _ => board.set_pause(&place, pause).or(damaged("pause")),
        }
    }
}

written! {
    /// A tag at a level.
    pub(crate) struct TagImage {
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
    /// The place of a group in the rounds, or of the jobs without one.
    pub(crate) struct SeatImage {
        1 top: Option<TagImage>,
        2 parked: Vec<TagImage>,
        /// Whether it is in the rounds, at its top.
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
    pub(crate) fn load(self, at: u32) -> Result<Seat, SnapshotError> {
        need(self.parked.is_sorted_by(|a, b| a.level < b.level), "tags out of order")?;
        need(self.top.is_some() || !self.stands, "a place without a tag")?;
        let top = self.top.map(Into::into);
        let place = top.filter(|_| self.stands).map(|top| place(top, at));
        Ok(Seat { top, parked: self.parked.into_iter().map(Into::into).collect(), place })
    }
}

written! {
    /// A level, and the tag of its last turn.
    pub(crate) struct LevelImage {
        1 pub(crate) level: i32,
        2 pub(crate) time: u64,
    }
}

written! {
    /// A queue with groups.
    pub(crate) struct RoundsImage {
        1 pub(crate) queue: ByteString,
        2 pub(crate) plain: SeatImage,
        3 pub(crate) rounds: Vec<LevelImage>,
        4 pub(crate) settings: Overrides,
        5 pub(crate) review: Option<u32>,
        6 pub(crate) limits: Vec<u32>,
    }
}

/// The queues that have groups, with their groups, by name.
fn with_groups(board: &Board) -> Vec<(&ByteString, &Fair)> {
    let fair = board.queues.iter().filter_map(|(_, name, q)| Some((name, q.fair.as_deref()?)));
    let mut fair: Vec<(&ByteString, &Fair)> = fair.collect();
    fair.sort_unstable_by_key(|(name, _)| *name);
    fair
}

impl<'a> Item<'a> for RoundsImage {
    fn each(board: &'a Board, mut put: impl FnMut(&Self)) {
        for (queue, fair) in with_groups(board) {
            let rounds =
                fair.rounds.iter().map(|(level, round)| LevelImage { level: *level, time: round.time });
            put(&RoundsImage {
                queue: queue.clone(),
                plain: (&fair.plain).into(),
                rounds: rounds.collect(),
                settings: fair.settings.clone(),
                review: fair.review,
                limits: fair.limits.to_vec(),
            });
        }
    }

    fn load(self, board: &mut Board, loading: &mut Loading) -> Result<(), SnapshotError> {
        need(is_name(&self.queue), "queue")?;
        need(self.rounds.is_sorted_by(|a, b| a.level < b.level), "rounds out of order")?;
        let number = board.queue(&self.queue);
        let queue = board.queues.get_mut(number).ok_or(SnapshotError("queue"))?;
        need(queue.fair.is_none(), "rounds twice")?;
        need(self.settings.is_valid(Level::Group), "settings")?;
        let rounds = self.rounds.into_iter();
        queue.fair = Some(Box::new(Fair {
            plain: self.plain.load(PLAIN)?,
            rounds: rounds.map(|round| (round.level, Round { time: round.time, groups: 0 })).collect(),
            settings: self.settings,
            review: self.review,
            limits: self.limits.clone(),
            ..Fair::default()
        }));
        if !queue.fair.as_ref().is_none_or(|fair| fair.settings.is_empty()) {
            board.queues.hold(number);
        }
        if !self.limits.is_empty() {
            board.queues.hold(number);
        }
        board.load_names(number, Owner::Groups, &self.limits)?;
        if self.review.is_some() {
            board.dispatch.reviews.insert(self.queue);
        }
        // Keeps the queue until its jobs are loaded and hold it themselves.
        board.queues.hold(number);
        loading.with_groups.push(number);
        Ok(())
    }
}

written! {
    pub(crate) struct GroupImage {
        1 pub(crate) queue: ByteString,
        2 pub(crate) number: u32,
        3 pub(crate) name: ByteString,
        4 pub(crate) seat: SeatImage,
        5 pub(crate) settings: Overrides,
        6 pub(crate) paused: i64,
        7 pub(crate) bucket: Option<Bucket>,
        8 pub(crate) rest: Option<i64>,
        9 pub(crate) limits: Option<Vec<u32>>,
    }
}

impl<'a> Item<'a> for GroupImage {
    fn each(board: &'a Board, mut put: impl FnMut(&Self)) {
        for (queue, fair) in with_groups(board) {
            for (number, group) in fair.groups.iter() {
                put(&GroupImage {
                    queue: queue.clone(),
                    number,
                    name: group.name.clone(),
                    seat: (&group.seat).into(),
                    settings: group.settings.clone(),
                    paused: group.paused,
                    bucket: group.bucket,
                    rest: group.rest,
                    limits: group.limits.as_ref().map(|list| list.to_vec()),
                });
            }
        }
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        need(is_name(&self.name), "group")?;
        let number = board.queues.find(&*self.queue).ok_or(SnapshotError("queue"))?;
        let queue = board.queues.get_mut(number).ok_or(SnapshotError("queue"))?;
        let fair = queue.fair.as_deref_mut().ok_or(SnapshotError("a group without rounds"))?;
        need(fair.find(&self.name).is_none(), "a group twice")?;
        need(self.settings.is_valid(Level::Group) && is_time(self.paused), "group")?;
        let seat = self.seat.load(self.number)?;
        let named = self.limits.is_some();
        let holds = [!self.settings.is_empty(), self.paused > 0, self.rest.is_some(), named];
        need(self.bucket.is_none_or(|bucket| bucket.is_valid()), "bucket")?;
        need(self.rest.is_none_or(is_time), "rest")?;
        if let Some(until) = self.rest {
            board.dispatch.rests.insert((until, self.queue.clone(), self.number));
        }
        let group = Group {
            name: self.name.clone(),
            seat,
            settings: self.settings,
            paused: self.paused,
            bucket: self.bucket,
            rest: self.rest,
            limits: self.limits.clone(),
            ..Group::default()
        };
        need(fair.groups.insert_at(self.number, Box::new(group)), "group")?;
        fair.names.insert(&self.name, self.number);
        holds.into_iter().filter(|holds| *holds).for_each(|_| board.queues.hold(number));
        board.load_names(number, Owner::Group(self.number), &self.limits.unwrap_or_default())
    }
}

impl Board {
    fn load_names(&mut self, queue: u32, owner: Owner, list: &[u32]) -> Result<(), SnapshotError> {
        need(is_list(list), "limits")?;
        let mut numbers = list.iter();
        numbers.try_for_each(|number| self.count_list(queue, owner, *number, 1)).or(damaged("limits"))
    }

    /// Seats the groups of each queue from what the snapshot says of their places.
    pub(crate) fn load_rounds(&mut self) {
        let numbers: Vec<u32> = self.queues.iter().map(|(number, _, _)| number).collect();
        for number in numbers {
            let Some(fair) = self.queues.get_mut(number).and_then(|queue| queue.fair.as_deref_mut()) else {
                continue;
            };
            let Fair { groups, turns, own_limits, rounds, plain, .. } = fair;
            let seats = groups.iter().map(|(_, group)| (&group.seat, group.limits.is_some()));
            for (seat, alone) in seats.chain([(&*plain, true)]) {
                if alone { &mut *own_limits } else { &mut *turns }.extend(seat.place);
                for level in seat.parked.keys().copied().chain(seat.top.map(|(level, _)| level)) {
                    if let Some(round) = rounds.get_mut(&level) {
                        round.groups += 1;
                    }
                }
            }
        }
    }

    /// Derives which groups name a full limit.
    pub(crate) fn find_barred(&mut self) {
        let places = self.dispatch.limits.iter().flat_map(|(_, limit)| &limit.groups).cloned();
        for (name, at) in places.collect::<BTreeSet<(ByteString, u32)>>() {
            let queue = self.queues.find(&*name).and_then(|queue| self.queues.get_mut(queue));
            let fair = queue.and_then(|queue| queue.fair.as_deref_mut());
            if let Some(group) = fair.and_then(|fair| fair.groups.get_mut(at)) {
                let list = group.limits.as_deref().unwrap_or_default();
                group.barred = self.dispatch.limits.first_full(list).is_some();
            }
        }
    }

    /// Derives how many groups of each queue limit their live jobs.
    pub(crate) fn count_bounds(&mut self) {
        let numbers: Vec<u32> = self.queues.iter().map(|(number, _, _)| number).collect();
        for number in numbers {
            if let Some(fair) = self.queues.get_mut(number).and_then(|queue| queue.fair.as_deref_mut()) {
                fair.bounds = fair.count_bounds();
            }
        }
    }
}
