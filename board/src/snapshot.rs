//! Whole boards as bytes: for RDB files, `DUMP`, the rewrite of append-only files, slot
//! migration, and digests.
//!
//! A snapshot is a sequence of parts: one head, then named limits in the order of their numbers,
//! then the queues that name any, then the queues that have groups, each with
//! its groups in the order of their numbers, then jobs in the order of their slots, then
//! tombstones, then schedules in the order of their ids, then ends that are still to be told,
//! then families whose children are still to be let go, then keys that are taken in their order,
//! then workers that registered or go, by name, then statistics by day and queue, then records
//! that have gone, then an end, which says how many came before it. Each part is a tag and a MessagePack value with fields by position.
//! The parts follow from the state alone, so equal boards give equal bytes.
//!
//! When loaded, every byte is taken for hostile: nothing is allocated on the word of a
//! length, every number is checked, and the finished board must pass [`Board::check`].

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;
use xxhash_rust::xxh3::Xxh3;

use crate::bin::Bin;
use crate::board::Board;
use crate::buckets::{Bucket, Refill};
use crate::days::DayImage;
use crate::effect::{is_grace, is_name};
use crate::family::Parting;
use crate::groups::{place, Fair, Group, Round, Seat, Tag, PLAIN};
use crate::id::{self, Id};
use crate::job::{Claim, Job, Options, Rare, Session, State, NEVER, STALE_MOST, U48};
use crate::keys::Taken;
use crate::labels::are_tags;
use crate::line::Line;
use crate::named::{is_list, Limit, List, LIMITS_MOST};
use crate::pauses::{Pause, Place};
use crate::registrations::Entry;
use crate::schedule::Schedule;
use crate::settings::{Level, Overrides, LONGEST, MOST};
use crate::since::Gone;
use crate::tombstones::Tombstone;
use crate::verbs::{Owner, TOKENS};
use crate::waits::{Tell, AFTER_MOST};

const FORMAT: u8 = 1;
/// A part is closed when it is this long.
const PART: usize = 32 * 1024;
const HEAD: u8 = 1;
const JOBS: u8 = 2;
const TOMBSTONES: u8 = 3;
const END: u8 = 4;
const SCHEDULES: u8 = 5;
const TELLS: u8 = 6;
const KEYS: u8 = 8;
const GONE: u8 = 9;
const GROUPS: u8 = 13;
const ROUNDS: u8 = 14;
const WORKERS: u8 = 10;
const DAYS: u8 = 11;
const PARTINGS: u8 = 12;
const LIMITS: u8 = 16;
const LISTS: u8 = 17;
/// No history that settings allow is longer.
const HISTORY_MOST: usize = 2_000;

/// Bytes that are no snapshot of ours: what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage(pub &'static str);

#[derive(Serialize, Deserialize)]
struct Head {
    format: u8,
    revision: u64,
    token: u64,
    broken: bool,
    settings: Overrides,
    queues: Vec<(Bin, Overrides)>,
    pauses: Vec<(Place, Pause)>,
    turns: u64,
    bucket: Option<Bucket>,
    /// Of the queues that have one, by name.
    buckets: Vec<(Bin, Bucket)>,
    unknown: u64,
}

/// Where a group stands in the rounds, or the jobs without one.
#[derive(Default, Serialize, Deserialize)]
struct SeatImage {
    top: Option<(i32, Tag)>,
    parked: Vec<(i32, Tag)>,
    /// Whether it stands at its top.
    stands: bool,
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
    fn load(self, at: u32) -> Result<Seat, Damage> {
        need(self.parked.is_sorted_by(|a, b| a.0 < b.0), "tags out of order")?;
        need(self.top.is_some() || !self.stands, "a place without a tag")?;
        let place = self.top.filter(|_| self.stands).map(|top| place(top, at));
        Ok(Seat { top: self.top, parked: self.parked.into_iter().collect(), place })
    }
}

#[derive(Serialize, Deserialize)]
struct RoundsImage {
    queue: Bin,
    plain: SeatImage,
    /// Levels, and the tag of the last turn of each.
    rounds: Vec<(i32, u64)>,
    settings: Overrides,
    review: Option<u32>,
    limits: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
struct LimitImage {
    number: u32,
    name: Bin,
    settings: Overrides,
    bucket: Option<Bucket>,
}

#[derive(Serialize, Deserialize)]
struct GroupImage {
    queue: Bin,
    number: u32,
    name: Bin,
    seat: SeatImage,
    settings: Overrides,
    paused: i64,
    bucket: Option<Bucket>,
    rest: Option<i64>,
    limits: Option<Vec<u32>>,
}

#[derive(Serialize, Deserialize)]
struct ClaimImage<'a> {
    #[serde(borrow, with = "serde_bytes")]
    worker: &'a [u8],
    token: u64,
    attempt: u32,
    cancel: bool,
    told: bool,
    claimed: i64,
    lease: i64,
    lease_end: i64,
    run_end: i64,
    grace: i64,
    cancel_end: i64,
    session: Session,
}

#[derive(Serialize, Deserialize)]
struct JobImage<'a> {
    slot: u32,
    made: bool,
    #[serde(borrow, with = "serde_bytes")]
    id: Cow<'a, [u8]>,
    #[serde(borrow, with = "serde_bytes")]
    payload: &'a [u8],
    #[serde(borrow, with = "serde_bytes")]
    queue: &'a [u8],
    #[serde(borrow, with = "serde_bytes")]
    name: &'a [u8],
    options: Option<Options>,
    priority: i32,
    state: State,
    since: i64,
    posted: i64,
    at: i64,
    seq: i64,
    version: i64,
    #[serde(borrow)]
    claim: Option<ClaimImage<'a>>,
    rare: Option<Cow<'a, Rare>>,
    /// The number of its group in its queue.
    group: Option<u32>,
    ageing: i64,
    #[serde(borrow)]
    marks: Option<MarksImage<'a>>,
}

#[derive(Serialize, Deserialize)]
struct MarksImage<'a> {
    #[serde(borrow)]
    tags: Vec<&'a Bytes>,
    tracked: bool,
}

/// Encodes the parts of a snapshot one by one.
#[derive(Default)]
pub struct Writer {
    part: Vec<u8>,
    items: u64,
}

impl Writer {
    fn put(&mut self, tag: u8, value: &impl Serialize) {
        self.items += 1;
        self.part.push(tag);
        // Writing to memory cannot fail, nor can any of our types.
        let _ = value.serialize(&mut rmp_serde::Serializer::new(&mut self.part));
    }

    fn close(&mut self, each: &mut impl FnMut(&[u8]), least: usize) {
        if self.part.len() > least {
            each(&self.part);
            self.part.clear();
        }
    }
}

impl Board {
    /// Gives the board as a sequence of byte strings, none much longer than a payload and
    /// [`PART`]. O(n).
    pub fn snapshot(&self, mut each: impl FnMut(&[u8])) {
        let mut queues: Vec<(Bin, Overrides)> = self
            .queues
            .iter()
            .filter(|(_, _, q)| !q.settings.is_empty())
            .map(|(_, name, q)| (name.clone(), q.settings.clone()))
            .collect();
        queues.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let buckets = self.queues.iter().filter(|(_, _, q)| q.refill.is_some());
        let buckets = buckets.filter_map(|(_, name, q)| Some((name.clone(), q.bucket?)));
        let mut buckets: Vec<(Bin, Bucket)> = buckets.collect();
        buckets.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut writer = Writer::default();
        let head = Head {
            format: FORMAT,
            revision: self.revision,
            token: self.token,
            broken: self.broken(),
            settings: self.settings.clone(),
            queues,
            pauses: self.pauses.iter().map(|(place, pause)| (place.clone(), pause.clone())).collect(),
            turns: self.turns,
            bucket: self.bucket,
            buckets,
            unknown: self.gone.unknown,
        };
        writer.put(HEAD, &head);
        writer.close(&mut each, PART);
        self.write_limits(&mut writer, &mut each);
        self.write_groups(&mut writer, &mut each);
        for (slot, job) in self.jobs.iter() {
            writer.put(JOBS, &self.image(slot, job));
            writer.close(&mut each, PART);
        }
        for tombstone in self.tombstones.iter() {
            writer.put(TOMBSTONES, tombstone);
            writer.close(&mut each, PART);
        }
        for schedule in self.schedules.after(None) {
            writer.put(SCHEDULES, schedule);
            writer.close(&mut each, PART);
        }
        for tell in &self.waits.tells {
            writer.put(TELLS, tell);
            writer.close(&mut each, PART);
        }
        for taken in self.keys.iter() {
            writer.put(KEYS, taken);
            writer.close(&mut each, PART);
        }
        for worker in self.registrations.iter() {
            writer.put(WORKERS, &worker);
            writer.close(&mut each, PART);
        }
        for image in self.days.images() {
            writer.put(DAYS, &image);
            writer.close(&mut each, PART);
        }
        for parting in &self.families.partings {
            writer.put(PARTINGS, parting);
            writer.close(&mut each, PART);
        }
        for gone in &self.gone.ring {
            writer.put(GONE, gone);
            writer.close(&mut each, PART);
        }
        let items = writer.items;
        writer.put(END, &items);
        writer.close(&mut each, 0);
    }

    fn write_limits(&self, writer: &mut Writer, each: &mut impl FnMut(&[u8])) {
        for (number, limit) in self.limits.iter() {
            let (name, settings) = (limit.name.clone(), limit.settings.clone());
            writer.put(LIMITS, &LimitImage { number, name, settings, bucket: limit.bucket });
            writer.close(each, PART);
        }
        let lanes = self.queues.iter().filter(|(_, _, lane)| !lane.limits.is_empty());
        let mut lists: Vec<(&Bin, &List)> = lanes.map(|(_, name, lane)| (name, &lane.limits)).collect();
        lists.sort_unstable();
        for list in lists {
            writer.put(LISTS, &list);
            writer.close(each, PART);
        }
    }

    fn write_groups(&self, writer: &mut Writer, each: &mut impl FnMut(&[u8])) {
        let fair = self.queues.iter().filter_map(|(_, name, q)| Some((name, q.fair.as_deref()?)));
        let mut fair: Vec<(&Bin, &Fair)> = fair.collect();
        fair.sort_unstable_by_key(|(name, _)| *name);
        for (queue, fair) in fair {
            let rounds = fair.rounds.iter().map(|(level, round)| (*level, round.time)).collect();
            let image = RoundsImage {
                queue: queue.clone(),
                plain: (&fair.plain).into(),
                rounds,
                settings: fair.settings.clone(),
                review: fair.review,
                limits: fair.limits.to_vec(),
            };
            writer.put(ROUNDS, &image);
            writer.close(each, PART);
            for (number, group) in fair.groups.iter() {
                let image = GroupImage {
                    queue: queue.clone(),
                    number,
                    name: group.name.clone(),
                    seat: (&group.seat).into(),
                    settings: group.settings.clone(),
                    paused: group.paused,
                    bucket: group.bucket,
                    rest: group.rest,
                    limits: group.limits.as_ref().map(|list| list.to_vec()),
                };
                writer.put(GROUPS, &image);
                writer.close(each, PART);
            }
        }
    }

    fn image<'a>(&'a self, slot: u32, job: &'a Job) -> JobImage<'a> {
        let claim = self.claim_of(job);
        let (made, id) = match job.id() {
            Id::Made(bytes) => (true, Cow::Owned(bytes.to_vec())),
            Id::Named(name) => (false, Cow::Borrowed(name)),
        };
        let class = self.class_of(job);
        JobImage {
            slot,
            made,
            id,
            payload: job.payload(),
            queue: self.queue_name(job),
            name: class.map_or(&[], |c| &c.name),
            options: class.map(|c| c.options).filter(|o| *o != Options::default()),
            priority: job.priority,
            state: job.state,
            since: job.since.get(),
            posted: job.posted.get(),
            at: if claim.is_some() { 0 } else { job.at.get() },
            seq: job.seq.get(),
            version: job.version.get(),
            claim: claim.map(|c| ClaimImage {
                worker: self.worker_name(c),
                token: c.token,
                attempt: c.attempt,
                cancel: c.cancel,
                told: c.told,
                claimed: c.claimed,
                lease: c.lease,
                lease_end: c.lease_end,
                run_end: c.run_end,
                grace: c.grace,
                cancel_end: c.cancel_end,
                session: c.session,
            }),
            rare: job.rare.as_deref().map(Cow::Borrowed),
            group: job.group(),
            ageing: job.ageing(),
            marks: self.marks_image(slot),
        }
    }

    fn marks_image(&self, slot: u32) -> Option<MarksImage<'_>> {
        let (tags, tracked) = (self.labels.tags(slot), self.labels.tracked(slot));
        let some = tracked || tags.len() > 0;
        some.then(|| MarksImage { tags: tags.map(Bytes::new).collect(), tracked })
    }

    /// A number that two boards share only if they are equal, but for chance. O(n).
    pub fn digest(&self) -> u128 {
        let mut hash = Xxh3::new();
        self.snapshot(|part| hash.update(part));
        hash.digest128()
    }

    /// A true copy. O(n).
    pub fn copy(&self) -> Result<Board, Damage> {
        let mut loader = Loader::default();
        let mut damage = None;
        self.snapshot(|part| {
            if let Err(found) = loader.part(part) {
                damage.get_or_insert(found);
            }
        });
        damage.map_or_else(|| loader.finish(), Err)
    }
}

/// Builds a board from the parts of a snapshot.
#[derive(Default)]
pub struct Loader {
    board: Board,
    headed: bool,
    ended: bool,
    items: u64,
    next_slot: u32,
    /// Queues with groups, held until all jobs are there.
    fair: Vec<u32>,
    /// The board is broken, and what is left of it cannot be read.
    lost: bool,
}

fn damaged<T>(what: &'static str) -> Result<T, Damage> {
    Err(Damage(what))
}

fn need(holds: bool, what: &'static str) -> Result<(), Damage> {
    if holds {
        Ok(())
    } else {
        damaged(what)
    }
}

fn is_time(time: i64) -> bool {
    (0..=NEVER).contains(&time)
}

impl Loader {
    /// Takes the next part. A board that is broken may hold what cannot be: then it loads as
    /// one that is broken, and holds nothing.
    pub fn part(&mut self, part: &[u8]) -> Result<(), Damage> {
        if self.lost {
            return Ok(());
        }
        let taken = self.take(part);
        self.lost = taken.is_err() && self.board.broken();
        if self.lost {
            Ok(())
        } else {
            taken
        }
    }

    fn take(&mut self, part: &[u8]) -> Result<(), Damage> {
        let mut from = rmp_serde::Deserializer::from_read_ref(part);
        let mut items = 0;
        loop {
            let tag = match u8::deserialize(&mut from) {
                Ok(tag) => tag,
                // The bytes end where a tag would begin; a part of no items is none.
                Err(rmp_serde::decode::Error::InvalidMarkerRead(_)) => {
                    return need(items > 0, "a part of nothing")
                }
                Err(_) => return damaged("tag"),
            };
            items += 1;
            need(!self.ended, "something follows the end")?;
            need(self.headed != (tag == HEAD), "head")?;
            match tag {
                HEAD => self.head(Head::deserialize(&mut from).or(damaged("head"))?)?,
                LIMITS => self.limit(LimitImage::deserialize(&mut from).or(damaged("limit"))?)?,
                LISTS => {
                    let (name, list) = <(Bin, Vec<u32>)>::deserialize(&mut from).or(damaged("limits"))?;
                    self.list(&name, list)?;
                }
                ROUNDS => self.rounds(RoundsImage::deserialize(&mut from).or(damaged("rounds"))?)?,
                GROUPS => self.group(GroupImage::deserialize(&mut from).or(damaged("group"))?)?,
                JOBS => self.job(JobImage::deserialize(&mut from).or(damaged("job"))?)?,
                TOMBSTONES => {
                    let tombstone = Tombstone::deserialize(&mut from).or(damaged("tombstone"))?;
                    need(tombstone.id.borrowed().bytes().len() <= 255, "id")?;
                    need(tombstone.token < TOKENS && is_time(tombstone.ended), "tombstone")?;
                    let before = self.board.tombstones.iter().next_back().map_or(0, |t| t.version);
                    need((before..=self.board.revision).contains(&tombstone.version), "tombstone")?;
                    self.board.tombstones.restore(tombstone);
                }
                SCHEDULES => {
                    let schedule = Schedule::deserialize(&mut from).or(damaged("schedule"))?;
                    need(schedule.sound(), "schedule")?;
                    need(self.board.schedules.get(&schedule.id).is_none(), "a schedule twice")?;
                    self.board.schedules.put(schedule);
                }
                TELLS => {
                    let tell = Tell::deserialize(&mut from).or(damaged("tell"))?;
                    need(is_time(tell.seq) && is_time(tell.from), "tell")?;
                    self.board.waits.tells.push_back(tell);
                }
                KEYS => {
                    let taken = Taken::deserialize(&mut from).or(damaged("key"))?;
                    need(taken.sound(), "key")?;
                    need(self.board.keys.get(&taken.key).is_none(), "a key twice")?;
                    self.board.keys.put(taken);
                }
                WORKERS => {
                    let (name, entry) = <(Bin, Entry)>::deserialize(&mut from).or(damaged("worker"))?;
                    need(is_name(&name) && entry.sound(self.board.token), "worker")?;
                    need(
                        self.board.registrations.iter().next_back().is_none_or(|(n, _)| *n < name),
                        "order",
                    )?;
                    self.board.set_entry(&name, entry).or(damaged("worker"))?;
                }
                DAYS => {
                    let image = DayImage::deserialize(&mut from).or(damaged("statistics"))?;
                    need(self.board.days.restore(image), "statistics")?;
                }
                PARTINGS => {
                    let parting = Parting::deserialize(&mut from).or(damaged("parting"))?;
                    need(is_time(parting.from), "parting")?;
                    self.board.families.partings.push_back(parting);
                }
                GONE => {
                    let gone = Gone::deserialize(&mut from).or(damaged("gone"))?;
                    let before = self.board.gone.ring.back().map_or(0, |gone| gone.version);
                    need((1..=255).contains(&gone.id.borrowed().bytes().len()) && is_time(gone.at), "gone")?;
                    need((before..=self.board.revision).contains(&gone.version), "gone")?;
                    self.board.gone.ring.push_back(gone);
                }
                END => {
                    let items = u64::deserialize(&mut from).or(damaged("end"))?;
                    need(items == self.items, "some of it is missing")?;
                    self.ended = true;
                }
                _ => return damaged("tag"),
            }
            self.items += 1;
        }
    }

    fn head(&mut self, head: Head) -> Result<(), Damage> {
        need(head.format == FORMAT, "a format of another version")?;
        need(head.token < TOKENS && head.revision <= NEVER as u64, "head")?;
        need(head.unknown <= head.revision, "head")?;
        need(head.turns <= u64::MAX >> 1, "head")?;
        need(head.settings.sound(Level::Board), "settings")?;
        self.headed = true;
        let board = &mut self.board;
        board.revision = head.revision;
        board.token = head.token;
        board.settings = head.settings;
        board.turns = head.turns;
        board.refill = Refill::set_by(&board.settings);
        need(head.bucket.is_none_or(|bucket| bucket.is_sound()), "bucket")?;
        board.bucket = head.bucket;
        board.set_stats();
        board.gone.unknown = head.unknown;
        if head.broken {
            board.set_broken();
        }
        for (name, settings) in head.queues {
            need((1..=255).contains(&name.len()), "queue")?;
            need(settings.sound(Level::Queue) && !settings.is_empty(), "settings")?;
            let number = board.queue(&name);
            let queue = board.queues.get_mut(number).ok_or(Damage("queue"))?;
            need(queue.settings.is_empty(), "a queue twice")?;
            queue.settings = settings;
            queue.refill = Refill::set_by(&queue.settings);
            board.queues.hold(number);
        }
        for (name, bucket) in head.buckets {
            let number = board.queues.find(&*name).ok_or(Damage("queue"))?;
            let queue = board.queues.get_mut(number).ok_or(Damage("queue"))?;
            need(bucket.is_sound() && queue.refill.is_some() && queue.bucket.is_none(), "bucket")?;
            queue.bucket = Some(bucket);
        }
        need(head.pauses.is_sorted_by(|a, b| a.0 < b.0), "pauses out of order")?;
        for (place, pause) in head.pauses {
            let (time, seq) = pause.release.unwrap_or_default();
            let names = place.iter().flat_map(|(queue, group)| std::iter::once(queue).chain(group));
            need(names.into_iter().all(|name| is_name(name)), "queue")?;
            need(pause.until > 0 && [pause.until, time, seq].into_iter().all(is_time), "pause")?;
            match place {
                // Its group comes later, and knows of it.
                Some((_, Some(_))) => _ = board.pauses.set(&place, Some(pause)),
                _ => board.set_pause(&place, Some(pause)).or(damaged("pause"))?,
            }
        }
        Ok(())
    }

    fn limit(&mut self, image: LimitImage) -> Result<(), Damage> {
        let LimitImage { number, name, settings, bucket } = image;
        need(is_name(&name) && self.board.limits.len() < LIMITS_MOST, "limit")?;
        need(settings.sound(Level::Limit), "settings")?;
        need(bucket.is_none_or(|bucket| bucket.is_sound()), "bucket")?;
        let refill = Refill::set_by(&settings);
        let limit = Limit { name, settings, refill, bucket, ..Limit::default() };
        need(self.board.limits.restore(number, limit), "a limit twice")
    }

    fn list(&mut self, name: &Bin, list: Vec<u32>) -> Result<(), Damage> {
        need(is_name(name) && is_list(&list) && !list.is_empty(), "limits")?;
        let number = self.board.queue(name);
        self.names(number, Owner::Queue, &list)?;
        let lane = self.board.queues.get_mut(number).ok_or(Damage("queue"))?;
        need(lane.limits.is_empty(), "limits twice")?;
        lane.limits = list.into();
        self.board.queues.hold(number);
        Ok(())
    }

    fn names(&mut self, queue: u32, owner: Owner, list: &[u32]) -> Result<(), Damage> {
        need(is_list(list), "limits")?;
        let mut numbers = list.iter();
        numbers.try_for_each(|number| self.board.count_list(queue, owner, *number, 1)).or(damaged("limits"))
    }

    fn rounds(&mut self, image: RoundsImage) -> Result<(), Damage> {
        need(is_name(&image.queue), "queue")?;
        need(image.rounds.is_sorted_by(|a, b| a.0 < b.0), "rounds out of order")?;
        let number = self.board.queue(&image.queue);
        let lane = self.board.queues.get_mut(number).ok_or(Damage("queue"))?;
        need(lane.fair.is_none(), "rounds twice")?;
        need(image.settings.sound(Level::Group), "settings")?;
        let rounds = image.rounds.into_iter();
        lane.fair = Some(Box::new(Fair {
            plain: image.plain.load(PLAIN)?,
            rounds: rounds.map(|(level, time)| (level, Round { time, groups: 0 })).collect(),
            settings: image.settings,
            review: image.review,
            limits: image.limits.clone().into(),
            ..Fair::default()
        }));
        if !lane.fair.as_ref().is_none_or(|fair| fair.settings.is_empty()) {
            self.board.queues.hold(number);
        }
        if !image.limits.is_empty() {
            self.board.queues.hold(number);
        }
        self.names(number, Owner::Groups, &image.limits)?;
        if image.review.is_some() {
            self.board.reviews.insert(image.queue);
        }
        // Until its jobs hold it: none of them is there yet.
        self.board.queues.hold(number);
        self.fair.push(number);
        Ok(())
    }

    fn group(&mut self, image: GroupImage) -> Result<(), Damage> {
        need(is_name(&image.name), "group")?;
        let number = self.board.queues.find(&*image.queue).ok_or(Damage("queue"))?;
        let lane = self.board.queues.get_mut(number).ok_or(Damage("queue"))?;
        let fair = lane.fair.as_deref_mut().ok_or(Damage("a group without rounds"))?;
        need(fair.find(&image.name).is_none(), "a group twice")?;
        need(image.settings.sound(Level::Group) && is_time(image.paused), "group")?;
        let seat = image.seat.load(image.number)?;
        let named = image.limits.is_some();
        let holds = [!image.settings.is_empty(), image.paused > 0, image.rest.is_some(), named];
        need(image.bucket.is_none_or(|bucket| bucket.is_sound()), "bucket")?;
        need(image.rest.is_none_or(is_time), "rest")?;
        if let Some(until) = image.rest {
            self.board.rests.insert((until, image.queue.clone(), image.number));
        }
        let group = Group {
            name: image.name.clone(),
            seat,
            settings: image.settings,
            paused: image.paused,
            bucket: image.bucket,
            rest: image.rest,
            limits: image.limits.clone().map(List::from),
            ..Group::default()
        };
        need(fair.groups.insert_at(image.number, Box::new(group)), "group")?;
        fair.names.insert(&image.name, image.number);
        holds.into_iter().filter(|holds| *holds).for_each(|_| self.board.queues.hold(number));
        self.names(number, Owner::Group(image.number), &image.limits.unwrap_or_default())
    }

    fn job(&mut self, image: JobImage<'_>) -> Result<(), Damage> {
        let board = &mut self.board;
        let revision = board.revision as i64;
        need(image.slot >= self.next_slot, "slots out of order")?;
        self.next_slot = image.slot.saturating_add(1);
        need((1..=255).contains(&image.id.len()), "id")?;
        need((1..=255).contains(&image.queue.len()) && image.name.len() <= 255, "name")?;
        need([image.since, image.posted, image.at].into_iter().all(is_time), "time")?;
        need((0..=revision).contains(&image.seq) && (0..=revision).contains(&image.version), "version")?;
        need(image.options.is_none_or(|o| o.sound()), "options")?;
        need(image.rare.as_ref().is_none_or(|r| sound_rare(r)), "record")?;
        if let Some(marks) = &image.marks {
            let tags = || marks.tags.iter().map(|tag| &***tag);
            need(are_tags(tags()) && (marks.tracked || !marks.tags.is_empty()), "tags")?;
            board.mark(image.slot, tags(), marks.tracked).or(damaged("slot"))?;
        }
        let id = match image.made {
            true => {
                let bytes: [u8; 16] = (*image.id).try_into().or(damaged("id"))?;
                need(id::slot_of(&bytes) == image.slot, "id")?;
                Id::Made(bytes)
            }
            false => {
                need(board.find(&image.id).is_none(), "an id twice")?;
                Id::Named(&*image.id)
            }
        };
        need((0..=MOST).contains(&image.ageing), "ageing")?;
        need(image.claim.is_some() == (image.state == State::Claimed), "claim")?;
        let options = image.options.unwrap_or_default();
        let class = board.hold_class(image.queue, image.name, options);
        if let Some(at) = image.group {
            let queue = board.classes.key(class).map_or(u32::MAX, |class| class.queue);
            let lane = board.queues.get_mut(queue);
            let fair = lane.and_then(|lane| lane.fair.as_deref_mut());
            fair.and_then(|fair| fair.groups.get_mut(at)).ok_or(Damage("group"))?.refs += 1;
        }
        let mut job = Job::new(id, image.payload, class, image.priority, image.group);
        if image.ageing > 0 {
            job.set_ageing(image.ageing);
        }
        job.since = U48::new(image.since);
        job.posted = U48::new(image.posted);
        job.at = U48::new(image.at);
        job.seq = U48::new(image.seq);
        job.version = U48::new(image.version);
        job.state = image.state;
        job.rare = image.rare.map(|r| Box::new(r.into_owned()));
        if let Some(claim) = image.claim {
            job.at = U48::new(i64::from(load_claim(board, image.slot, claim)?));
        }
        board.add_record(image.slot, job).or(damaged("slot"))
    }

    /// Whether the end has come.
    pub fn is_whole(&self) -> bool {
        self.ended || self.lost
    }

    /// The board, when all parts have come.
    pub fn finish(self) -> Result<Board, Damage> {
        let Board { revision, token, broken, .. } = self.board;
        match self.whole() {
            Err(_) if broken => Ok(Board { revision, token, broken, ..Board::default() }),
            loaded => loaded,
        }
    }

    fn whole(mut self) -> Result<Board, Damage> {
        need(!self.lost, "not to be read")?;
        need(self.ended, "the end is missing")?;
        for queue in std::mem::take(&mut self.fair) {
            self.board.queues.release(queue);
        }
        self.board.index()?;
        // One that is broken says so itself, and answers nothing else.
        if !self.board.broken() {
            self.board.check().or(damaged("a board that cannot be"))?;
        }
        Ok(self.board)
    }
}

fn load_claim(board: &mut Board, slot: u32, image: ClaimImage<'_>) -> Result<u32, Damage> {
    need((1..=255).contains(&image.worker.len()), "worker")?;
    need((1..=board.token).contains(&image.token) && image.attempt > 0, "claim")?;
    need((1..=LONGEST).contains(&image.lease), "lease")?;
    need(is_grace(image.grace) && (image.cancel || image.cancel_end == NEVER), "claim")?;
    let times = [image.claimed, image.lease_end, image.run_end, image.cancel_end];
    need(times.into_iter().all(is_time), "time")?;
    let worker = match board.workers.find(image.worker) {
        Some(number) => number,
        None => board.workers.add(image.worker.into()).0,
    };
    board.workers.hold(worker);
    Ok(board.claims.insert(Claim {
        slot,
        worker,
        token: image.token,
        attempt: image.attempt,
        cancel: image.cancel,
        told: image.told,
        claimed: image.claimed,
        lease: image.lease,
        lease_end: image.lease_end,
        run_end: image.run_end,
        grace: image.grace,
        cancel_end: image.cancel_end,
        session: image.session,
    }))
}

fn sound_rare(rare: &Rare) -> bool {
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

impl Board {
    /// Puts all records, of which none stands anywhere yet, into their places at once.
    fn index(&mut self) -> Result<(), Damage> {
        let mut by_state: [Vec<u32>; 8] = Default::default();
        let mut expiries = Vec::new();
        let mut drops = Vec::new();
        let mut kept: [Vec<u32>; 8] = Default::default();
        for (slot, job) in self.jobs.iter() {
            let pinned = job.state.ended() && job.rare.as_ref().is_some_and(|r| r.pins().any());
            let places = if pinned { &mut kept } else { &mut by_state };
            if let Some(slots) = places.get_mut(job.state as usize) {
                slots.push(slot);
            }
            match job.state {
                State::Ready if job.at.get() != NEVER => expiries.push(slot),
                state if state.ended() && job.at.get() != NEVER => drops.push(slot),
                _ => {}
            }
        }
        let [mut scheduled, mut blocked, mut ready, mut claimed, ended @ ..] = by_state;
        let [_, _, _, _, kept @ ..] = kept;
        self.load_waits(&blocked)?;
        self.load_families()?;
        self.load_asides();
        self.blocked = self.line_of(&mut blocked, Board::at_key);
        self.due = self.line_of(&mut scheduled, Board::at_key);
        self.expiries = self.line_of(&mut expiries, Board::at_key);
        self.drops = self.line_of(&mut drops, Board::at_key);
        for (at, (mut slots, mut kept)) in ended.into_iter().zip(kept).enumerate() {
            for slot in slots.iter().chain(&kept) {
                self.load_kind(*slot);
            }
            let line = self.line_of(&mut slots, Board::ended_key);
            let kept = self.line_of(&mut kept, Board::ended_key);
            if let (Some(place), Some(kept_place)) = (self.ended.get_mut(at), self.kept.get_mut(at)) {
                (*place, *kept_place) = (line, kept);
            }
        }
        let (jobs, claims) = (&self.jobs, &self.claims);
        let lease_key = |s: u32| Board::lease_key_of(jobs, claims, s);
        claimed.sort_unstable_by_key(|s| lease_key(*s));
        let leases = Line::from_sorted(&claimed, lease_key);
        let worker_of = |s: u32| jobs.get(s).and_then(|j| self.claim_of(j)).map_or(0, |c| c.worker);
        let token_of = |s: u32| Board::token_of(jobs, claims, s);
        claimed.sort_unstable_by_key(|s| (worker_of(*s), token_of(*s)));
        let mut held = Vec::new();
        for slots in claimed.chunk_by(|a, b| worker_of(*a) == worker_of(*b)) {
            if let Some(first) = slots.first() {
                let begins = slots.iter().filter_map(|s| self.claim_of(jobs.get(*s)?)).map(|c| c.claimed);
                let seen = begins.max().unwrap_or_default();
                held.push((worker_of(*first), Line::from_sorted(slots, token_of), seen));
            }
        }
        let queue_of = |s: u32| jobs.get(s).map_or(0, |j| self.queue_number(j));
        let ready_key = |s: u32| jobs.get(s).map(Board::ready_key).unwrap_or_default();
        ready.sort_unstable_by_key(|s| (queue_of(*s), ready_key(*s)));
        // Of each queue those without a group, then of each group, and all of groups again.
        let group_of = |s: u32| jobs.get(s).and_then(Job::group);
        let mut lanes = Vec::new();
        for slots in ready.chunk_by(|a, b| queue_of(*a) == queue_of(*b)) {
            let Some(queue) = slots.first().map(|first| queue_of(*first)) else { continue };
            let (mut grouped, plain): (Vec<u32>, Vec<u32>) =
                slots.iter().partition(|s| group_of(**s).is_some());
            let all = Line::from_sorted(&grouped, ready_key);
            grouped.sort_by_key(|s| group_of(*s));
            let groups = grouped.chunk_by(|a, b| group_of(*a) == group_of(*b));
            let begun = |s: &u32| jobs.get(*s).is_some_and(Job::has_begun);
            let lines = |slots: &[u32]| {
                let again = slots.iter().copied().filter(begun).map(|s| (ready_key(s), s)).collect();
                (Line::from_sorted(slots, ready_key), again)
            };
            let groups = groups.filter_map(|slots| Some((group_of(*slots.first()?)?, lines(slots))));
            lanes.push((queue, Line::from_sorted(&plain, ready_key), all, groups.collect::<Vec<_>>()));
        }
        self.leases = leases;
        for (number, claims, seen) in held {
            let worker = self.workers.get_mut(number).ok_or(Damage("worker"))?;
            (worker.claims, worker.seen) = (claims, seen);
        }
        for (number, line, all, groups) in lanes {
            let queue = self.queues.get_mut(number).ok_or(Damage("queue"))?;
            queue.ready = line;
            if let Some(fair) = queue.fair.as_deref_mut() {
                fair.all = all;
                for (at, line) in groups {
                    let group = fair.groups.get_mut(at).ok_or(Damage("group"))?;
                    (group.ready, group.again) = line;
                }
            }
            self.note_busy(number);
        }
        self.load_rounds();
        self.count_all();
        self.enlist_all()?;
        self.wake_at(0);
        Ok(())
    }

    fn line_of(&self, slots: &mut [u32], key: fn(&Job) -> (i64, i64)) -> Line<(i64, i64)> {
        let key_of = |s: u32| self.jobs.get(s).map(key).unwrap_or_default();
        slots.sort_unstable_by_key(|s| key_of(*s));
        Line::from_sorted(slots, key_of)
    }

    /// Finds out who waits for whom from what each blocked job waits for.
    fn load_waits(&mut self, blocked: &[u32]) -> Result<(), Damage> {
        for slot in blocked {
            let job = self.jobs.get(*slot).ok_or(Damage("slot"))?;
            for edge in job.rare.as_ref().map_or(&[][..], |rare| &rare.after) {
                need(self.waits.restore(edge.slot, job.seq.get(), *slot), "an order twice")?;
            }
        }
        Ok(())
    }

    /// Finds out the children of each family from whose child each job is.
    fn load_families(&mut self) -> Result<(), Damage> {
        let (jobs, families) = (&self.jobs, &mut self.families);
        for (slot, job) in jobs.iter() {
            if let Some(tie) = job.rare.as_ref().and_then(|rare| rare.family.as_ref()?.parent) {
                need(families.restore(tie.number, job.seq.get(), slot), "an order twice")?;
            }
        }
        Ok(())
    }

    fn load_kind(&mut self, slot: u32) {
        let failed = self.jobs.get(slot).filter(|job| job.state == State::Failed);
        if let Some(kind) = failed.and_then(|job| job.rare.as_ref()?.said.kind.clone()) {
            *self.kinds.entry(kind).or_default() += 1;
        }
    }

    /// Finds out who stands in the rounds of each queue from the places of its groups.
    fn load_rounds(&mut self) {
        let numbers: Vec<u32> = self.queues.iter().map(|(number, _, _)| number).collect();
        let lanes = numbers.into_iter();
        for number in lanes {
            let Some(fair) = self.queues.get_mut(number).and_then(|lane| lane.fair.as_deref_mut()) else {
                continue;
            };
            let Fair { groups, turns, apart, rounds, plain, .. } = fair;
            let seats = groups.iter().map(|(_, group)| (&group.seat, group.limits.is_some()));
            for (seat, alone) in seats.chain([(&*plain, true)]) {
                if alone { &mut *apart } else { &mut *turns }.extend(seat.place);
                for level in seat.parked.keys().copied().chain(seat.top.map(|(level, _)| level)) {
                    if let Some(round) = rounds.get_mut(&level) {
                        round.groups += 1;
                    }
                }
            }
        }
    }

    /// Puts all jobs into the lines of their labels, in the order of their posts.
    fn enlist_all(&mut self) -> Result<(), Damage> {
        let labelled = self.jobs.iter().filter(|(slot, _)| self.bears_labels(*slot));
        let mut order: Vec<(i64, u32)> = labelled.map(|(slot, job)| (job.seq.get(), slot)).collect();
        order.sort_unstable();
        order.into_iter().try_for_each(|(_, slot)| self.enlist(slot).or(damaged("label")))
    }

    fn count_all(&mut self) {
        let open = |job: &Job| job.state == State::Claimed || job.has_begun();
        let place = |job: &Job| (self.queue_number(job), job.group(), job.state, open(job));
        let places: Vec<_> = self.jobs.iter().map(|(_, job)| place(job)).collect();
        for (queue, group, state, open) in places {
            self.tally(queue, group, state, 1);
            if open {
                self.tally_open(queue, group, 1);
            }
        }
        let owned = |job: &Job| job.rare.as_ref().is_some_and(|rare| rare.user.is_some());
        let live = self.jobs.iter().filter(|(_, job)| !job.state.ended() && owned(job));
        for slot in live.map(|(slot, _)| slot).collect::<Vec<_>>() {
            self.owner_gains(slot);
        }
        self.count_bounds();
        self.find_bounds();
        self.find_barred();
    }

    /// Finds out which groups name a limit that is full.
    fn find_barred(&mut self) {
        let places = self.limits.iter().flat_map(|(_, limit)| &limit.groups).cloned();
        for (name, at) in places.collect::<BTreeSet<(Bin, u32)>>() {
            let lane = self.queues.find(&*name).and_then(|queue| self.queues.get_mut(queue));
            let fair = lane.and_then(|lane| lane.fair.as_deref_mut());
            if let Some(group) = fair.and_then(|fair| fair.groups.get_mut(at)) {
                let list = group.limits.as_deref().unwrap_or_default();
                group.barred = self.limits.first_full(list).is_some();
            }
        }
    }

    /// Finds out how many groups of each queue have a limit of live jobs.
    fn count_bounds(&mut self) {
        let numbers: Vec<u32> = self.queues.iter().map(|(number, _, _)| number).collect();
        for number in numbers {
            if let Some(fair) = self.queues.get_mut(number).and_then(|lane| lane.fair.as_deref_mut()) {
                fair.bounds = fair.count_bounds();
            }
        }
    }
}
