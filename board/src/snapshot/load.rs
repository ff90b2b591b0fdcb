//! Parts as a board, all of them hostile.

use std::io::Cursor;

use serde::de::{Deserialize, IgnoredAny};

use super::images::*;
use super::write::Writer;
use super::{Damage, Held, END, HEAD};
use crate::board::{Board, REVISIONS, TURNS};
use crate::dispatch::buckets::Refill;
use crate::dispatch::fair::{Fair, Round, PLAIN};
use crate::dispatch::groups::Group;
use crate::dispatch::limits::{is_list, Limit, List, LIMITS_MOST};
use crate::dispatch::pauses::Pause;
use crate::effect::is_name;
use crate::events::changes::Gone;
use crate::format::{next_tag, Decoder};
use crate::job::id::{self, Id};
use crate::job::{is_time, Job, State, U48};
use crate::places::labels::are_tags;
use crate::places::tombstones::Tombstone;
use crate::quotas::unique::Taken;
use crate::relations::dependencies::Tell;
use crate::relations::family::Parting;
use crate::schedules::Schedule;
use crate::settings::{Level, MOST};
use crate::statistics::days::DayImage;
use crate::structures::byte_string::ByteString;
use crate::verbs::{Owner, TOKENS};

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
    /// Nothing is refused.
    holds: bool,
    /// Something has been refused.
    held: bool,
}

pub(super) fn damaged<T>(what: &'static str) -> Result<T, Damage> {
    Err(Damage(what))
}

pub(super) fn need(holds: bool, what: &'static str) -> Result<(), Damage> {
    if holds {
        Ok(())
    } else {
        damaged(what)
    }
}

/// What stands in a part behind so many items, which have been read.
fn behind(part: &[u8], items: u64) -> &[u8] {
    let mut from = rmp_serde::Deserializer::new(Cursor::new(part));
    let passed = (0..2 * items).all(|_| IgnoredAny::deserialize(&mut from).is_ok());
    usize::try_from(from.position()).ok().filter(|_| passed).and_then(|at| part.get(at..)).unwrap_or_default()
}

impl Loader {
    /// One that refuses nothing: what this version cannot read is held.
    pub fn holding() -> Loader {
        Loader { holds: true, ..Loader::default() }
    }

    /// Takes the next part. A board that is broken may hold what cannot be: then it loads as
    /// one that is broken, and holds nothing.
    pub fn part(&mut self, part: &[u8]) -> Result<(), Damage> {
        if self.lost {
            return Ok(());
        }
        if self.held {
            self.board.hold(part);
            return Ok(());
        }
        let before = self.items;
        match self.take(part) {
            Err(damage) if self.holds => self.hold(damage, behind(part, self.items - before)),
            Err(_) if self.board.broken() => self.lost = true,
            taken => return taken,
        }
        Ok(())
    }

    /// Reads the items of a part, up to the first that cannot be read.
    fn take(&mut self, part: &[u8]) -> Result<(), Damage> {
        need(!part.is_empty(), "a part of nothing")?;
        let mut from = Decoder::from_read_ref(part);
        while let Some(tag) = next_tag(&mut from).or(damaged("a tag"))? {
            need(!self.ended, "something follows the end")?;
            need(self.headed != (tag == HEAD), "head")?;
            self.item(tag, &mut from)?;
            self.items += 1;
        }
        Ok(())
    }

    /// From here on the board is held. What was read before is written again: equal boards
    /// give equal bytes. If that should fail, nothing is held rather than something else.
    fn hold(&mut self, damage: Damage, rest: &[u8]) {
        let mut parts: Vec<ByteString> = Vec::new();
        let mut each = |part: &[u8]| parts.push(part.into());
        let before = self.items - u64::from(self.ended);
        let mut writer = match before {
            0 => Writer::default(),
            _ => self.board.write_items(&mut each),
        };
        let same = writer.items == before;
        if self.ended {
            writer.put(END, &EndImage { items: before });
        }
        writer.add(rest);
        writer.close(&mut each, 0);
        let whole = same && !parts.is_empty();
        let held = Held { why: damage.0, parts };
        self.board = self.board.unread(whole.then(|| Box::new(held)));
        self.held = true;
    }

    pub(super) fn head(&mut self, head: Head) -> Result<(), Damage> {
        self.headed = true;
        // Whatever else it says, it loads as one that is broken.
        self.board.broken = head.broken;
        need(head.token < TOKENS && head.revision <= REVISIONS, "head")?;
        need(head.unknown <= head.revision, "head")?;
        need(head.turns <= TURNS, "head")?;
        need(head.settings.sound(Level::Board), "settings")?;
        need(head.bucket.is_none_or(|bucket| bucket.is_sound()), "bucket")?;
        let board = &mut self.board;
        board.revision = head.revision;
        board.token = head.token;
        board.local.foreign = head.token;
        board.settings = head.settings;
        board.dispatch.turns = head.turns;
        board.dispatch.refill = Refill::set_by(&board.settings);
        board.dispatch.bucket = head.bucket;
        board.set_stats();
        board.removed.unknown = head.unknown;
        Ok(())
    }

    pub(super) fn tombstone(&mut self, tombstone: Tombstone) -> Result<(), Damage> {
        need(tombstone.id.borrowed().bytes().len() <= 255, "id")?;
        need(tombstone.token < TOKENS && is_time(tombstone.ended), "tombstone")?;
        let before = self.board.places.tombstones.iter().next_back().map_or(0, |t| t.version);
        need((before..=self.board.revision).contains(&tombstone.version), "tombstone")?;
        self.board.places.tombstones.restore(tombstone);
        Ok(())
    }

    pub(super) fn schedule(&mut self, schedule: Schedule) -> Result<(), Damage> {
        need(schedule.sound(), "schedule")?;
        need(self.board.schedules.get(&schedule.id).is_none(), "a schedule twice")?;
        self.board.schedules.put(schedule);
        Ok(())
    }

    pub(super) fn tell(&mut self, tell: Tell) -> Result<(), Damage> {
        need(is_time(tell.seq) && is_time(tell.from), "tell")?;
        self.board.relations.waits.tells.push_back(tell);
        Ok(())
    }

    pub(super) fn key(&mut self, taken: Taken) -> Result<(), Damage> {
        need(taken.sound(), "key")?;
        need(self.board.quotas.keys.get(&taken.key).is_none(), "a key twice")?;
        self.board.quotas.keys.put(taken);
        Ok(())
    }

    pub(super) fn worker(&mut self, image: WorkerImage) -> Result<(), Damage> {
        let WorkerImage { name, entry } = image;
        need(is_name(&name) && entry.sound(self.board.token), "worker")?;
        need(self.board.workers.registrations.iter().next_back().is_none_or(|(n, _)| *n < name), "order")?;
        self.board.set_entry(&name, entry).or(damaged("worker"))
    }

    pub(super) fn statistics(&mut self, image: DayImage) -> Result<(), Damage> {
        need(self.board.days.restore(image), "statistics")
    }

    pub(super) fn parting(&mut self, parting: Parting) -> Result<(), Damage> {
        need(is_time(parting.from), "parting")?;
        self.board.relations.families.partings.push_back(parting);
        Ok(())
    }

    pub(super) fn gone(&mut self, gone: Gone) -> Result<(), Damage> {
        let before = self.board.removed.ring.back().map_or(0, |gone| gone.version);
        need((1..=255).contains(&gone.id.borrowed().bytes().len()) && is_time(gone.at), "gone")?;
        need((before..=self.board.revision).contains(&gone.version), "gone")?;
        self.board.removed.ring.push_back(gone);
        Ok(())
    }

    pub(super) fn end(&mut self, end: EndImage) -> Result<(), Damage> {
        need(end.items == self.items, "some of it is missing")?;
        self.ended = true;
        Ok(())
    }

    pub(super) fn limit(&mut self, image: LimitImage) -> Result<(), Damage> {
        let LimitImage { number, name, settings, bucket } = image;
        need(is_name(&name) && self.board.dispatch.limits.len() < LIMITS_MOST, "limit")?;
        need(settings.sound(Level::Limit), "settings")?;
        need(bucket.is_none_or(|bucket| bucket.is_sound()), "bucket")?;
        let refill = Refill::set_by(&settings);
        let limit = Limit { name, settings, refill, bucket, ..Limit::default() };
        need(self.board.dispatch.limits.restore(number, limit), "a limit twice")
    }

    pub(super) fn queue(&mut self, image: QueueImage) -> Result<(), Damage> {
        let QueueImage { name, settings, bucket, limits } = image;
        need(is_name(&name) && settings.sound(Level::Queue), "queue")?;
        need(!settings.is_empty() || !limits.is_empty(), "a queue of nothing")?;
        let number = self.board.queue(&name);
        self.names(number, Owner::Queue, &limits)?;
        let holds = [!settings.is_empty(), !limits.is_empty()];
        let queue = self.board.queues.get_mut(number).ok_or(Damage("queue"))?;
        need(queue.settings.is_empty() && queue.limits.is_empty(), "a queue twice")?;
        queue.refill = Refill::set_by(&settings);
        need(bucket.is_none_or(|bucket| bucket.is_sound() && queue.refill.is_some()), "bucket")?;
        (queue.settings, queue.bucket, queue.limits) = (settings, bucket, limits.into());
        holds.into_iter().filter(|holds| *holds).for_each(|_| self.board.queues.hold(number));
        Ok(())
    }

    pub(super) fn pause(&mut self, image: PauseImage) -> Result<(), Damage> {
        let PauseImage { queue, group, until, release } = image;
        need(queue.is_some() || group.is_none(), "pause")?;
        need(queue.iter().chain(&group).all(|name| is_name(name)), "queue")?;
        let (time, seq) = release.unwrap_or_default();
        need(until > 0 && [until, time, seq].into_iter().all(is_time), "pause")?;
        let (place, pause) = (queue.map(|queue| (queue, group)), Some(Pause { until, release }));
        need(self.board.dispatch.pauses.iter().next_back().is_none_or(|(last, _)| *last < place), "order")?;
        match place {
            // Its group comes later, and knows of it.
            Some((_, Some(_))) => {
                self.board.dispatch.pauses.set(&place, pause);
                Ok(())
            }
            _ => self.board.set_pause(&place, pause).or(damaged("pause")),
        }
    }

    fn names(&mut self, queue: u32, owner: Owner, list: &[u32]) -> Result<(), Damage> {
        need(is_list(list), "limits")?;
        let mut numbers = list.iter();
        numbers.try_for_each(|number| self.board.count_list(queue, owner, *number, 1)).or(damaged("limits"))
    }

    pub(super) fn rounds(&mut self, image: RoundsImage) -> Result<(), Damage> {
        need(is_name(&image.queue), "queue")?;
        need(image.rounds.is_sorted_by(|a, b| a.level < b.level), "rounds out of order")?;
        let number = self.board.queue(&image.queue);
        let lane = self.board.queues.get_mut(number).ok_or(Damage("queue"))?;
        need(lane.fair.is_none(), "rounds twice")?;
        need(image.settings.sound(Level::Group), "settings")?;
        let rounds = image.rounds.into_iter();
        lane.fair = Some(Box::new(Fair {
            plain: image.plain.load(PLAIN)?,
            rounds: rounds.map(|round| (round.level, Round { time: round.time, groups: 0 })).collect(),
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
            self.board.dispatch.reviews.insert(image.queue);
        }
        // Until its jobs hold it: none of them is there yet.
        self.board.queues.hold(number);
        self.fair.push(number);
        Ok(())
    }

    pub(super) fn group(&mut self, image: GroupImage) -> Result<(), Damage> {
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
            self.board.dispatch.rests.insert((until, image.queue.clone(), image.number));
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

    pub(super) fn job(&mut self, image: JobImage<'_>) -> Result<(), Damage> {
        let board = &mut self.board;
        let revision = board.revision as i64;
        need(image.slot >= self.next_slot, "slots out of order")?;
        self.next_slot = image.slot.saturating_add(1);
        need((1..=255).contains(&image.id.len()), "id")?;
        need((1..=255).contains(&image.queue.len()) && image.name.len() <= 255, "name")?;
        let since = image.since.unwrap_or(image.posted);
        need([since, image.posted, image.at].into_iter().all(is_time), "time")?;
        let version = image.version.unwrap_or(image.seq);
        need((0..=revision).contains(&image.seq) && (0..=revision).contains(&version), "version")?;
        need(image.options.is_none_or(|o| o.sound()), "options")?;
        need(image.extras.as_ref().is_none_or(|r| sound_extras(r)), "record")?;
        if let Some(marks) = &image.marks {
            let tags = || marks.tags.iter().map(|tag| &**tag);
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
            let queue = board.store.classes.key(class).map_or(u32::MAX, |class| class.queue);
            let lane = board.queues.get_mut(queue);
            let fair = lane.and_then(|lane| lane.fair.as_deref_mut());
            fair.and_then(|fair| fair.groups.get_mut(at)).ok_or(Damage("group"))?.refs += 1;
        }
        let mut job = Job::new(id, image.payload, class, image.priority, image.group);
        if image.ageing > 0 {
            job.set_ageing(image.ageing);
        }
        job.since = U48::new(since);
        job.posted = U48::new(image.posted);
        job.at = U48::new(image.at);
        job.seq = U48::new(image.seq);
        job.version = U48::new(version);
        job.state = image.state;
        job.extras = image.extras.map(|r| Box::new(r.into_owned()));
        if let Some(claim) = image.claim {
            job.at = U48::new(i64::from(claim.load(board, image.slot)?));
        }
        board.add_record(image.slot, job).or(damaged("slot"))
    }

    /// Whether the end has come, or nothing else is read.
    pub fn is_whole(&self) -> bool {
        self.ended || self.lost || self.held
    }

    /// The board, when all parts have come.
    pub fn finish(mut self) -> Result<Board, Damage> {
        if self.held {
            return Ok(self.board);
        }
        match self.complete() {
            Ok(()) => Ok(self.board),
            Err(damage) if self.holds => {
                self.hold(damage, &[]);
                Ok(self.board)
            }
            Err(_) if self.board.broken() => Ok(self.board.unread(None)),
            Err(damage) => Err(damage),
        }
    }

    fn complete(&mut self) -> Result<(), Damage> {
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
        Ok(())
    }
}
