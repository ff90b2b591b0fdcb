//! A board as parts.

use std::borrow::Cow;

use super::images::*;
use super::*;
use crate::dispatch::fair::Fair;
use crate::format::Written;
use crate::job::id::Id;
use crate::job::{Job, Options, NEVER};
use crate::structures::byte_string::ByteString;

/// Encodes the parts of a snapshot one by one.
#[derive(Default)]
pub(super) struct Writer {
    part: Vec<u8>,
    /// How many items there have been.
    pub(super) items: u64,
}

impl Writer {
    pub(super) fn put<'a>(&mut self, tag: u8, value: &impl Written<'a>) {
        self.items += 1;
        self.part.push(tag);
        value.write(&mut self.part);
    }

    /// Adds bytes as they are.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.part.extend_from_slice(bytes);
    }

    /// Closes the part if it is longer than that.
    pub(super) fn close(&mut self, each: &mut impl FnMut(&[u8]), least: usize) {
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
        if let Some(held) = &self.held {
            return held.parts.iter().for_each(|part| each(part));
        }
        let mut writer = self.write_items(&mut each);
        let items = writer.items;
        writer.put(END, &EndImage { items });
        writer.close(&mut each, 0);
    }

    /// Gives all but the end and the part in which that will be.
    pub(super) fn write_items(&self, each: &mut impl FnMut(&[u8])) -> Writer {
        let mut writer = Writer::default();
        let head = Head {
            revision: self.revision,
            token: self.token,
            broken: self.broken(),
            settings: self.settings.clone(),
            turns: self.dispatch.turns,
            bucket: self.dispatch.bucket,
            unknown: self.removed.unknown,
        };
        writer.put(HEAD, &head);
        writer.close(each, PART);
        for (number, limit) in self.dispatch.limits.iter() {
            let (name, settings) = (limit.name.clone(), limit.settings.clone());
            writer.put(LIMITS, &LimitImage { number, name, settings, bucket: limit.bucket });
            writer.close(each, PART);
        }
        for image in self.queue_images() {
            writer.put(QUEUES, &image);
            writer.close(each, PART);
        }
        for (place, pause) in self.dispatch.pauses.iter() {
            let (queue, group) = place.clone().map_or((None, None), |(queue, group)| (Some(queue), group));
            let image = PauseImage { queue, group, until: pause.until, release: pause.release };
            writer.put(PAUSES, &image);
            writer.close(each, PART);
        }
        self.write_groups(&mut writer, each);
        for (slot, job) in self.store.jobs.iter() {
            writer.put(JOBS, &self.image(slot, job));
            writer.close(each, PART);
        }
        for tombstone in self.places.tombstones.iter() {
            writer.put(TOMBSTONES, tombstone);
            writer.close(each, PART);
        }
        for schedule in self.schedules.after(None) {
            writer.put(SCHEDULES, schedule);
            writer.close(each, PART);
        }
        for tell in &self.relations.waits.tells {
            writer.put(TELLS, tell);
            writer.close(each, PART);
        }
        for taken in self.quotas.keys.iter() {
            writer.put(KEYS, taken);
            writer.close(each, PART);
        }
        for (name, entry) in self.workers.registrations.iter() {
            writer.put(WORKERS, &WorkerImage { name: name.clone(), entry: entry.clone() });
            writer.close(each, PART);
        }
        for image in self.days.images() {
            writer.put(DAYS, &image);
            writer.close(each, PART);
        }
        for parting in &self.relations.families.partings {
            writer.put(PARTINGS, parting);
            writer.close(each, PART);
        }
        for gone in &self.removed.ring {
            writer.put(GONE, gone);
            writer.close(each, PART);
        }
        writer
    }

    /// The queues that have settings or limits, by name.
    fn queue_images(&self) -> Vec<QueueImage> {
        let own = self.queues.iter().filter(|(_, _, q)| !q.settings.is_empty() || !q.limits.is_empty());
        let images = own.map(|(_, name, q)| QueueImage {
            name: name.clone(),
            settings: q.settings.clone(),
            bucket: q.bucket.filter(|_| q.refill.is_some()),
            limits: q.limits.to_vec(),
        });
        let mut images: Vec<QueueImage> = images.collect();
        images.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        images
    }

    fn write_groups(&self, writer: &mut Writer, each: &mut impl FnMut(&[u8])) {
        let fair = self.queues.iter().filter_map(|(_, name, q)| Some((name, q.fair.as_deref()?)));
        let mut fair: Vec<(&ByteString, &Fair)> = fair.collect();
        fair.sort_unstable_by_key(|(name, _)| *name);
        for (queue, fair) in fair {
            let rounds =
                fair.rounds.iter().map(|(level, round)| LevelImage { level: *level, time: round.time });
            let image = RoundsImage {
                queue: queue.clone(),
                plain: (&fair.plain).into(),
                rounds: rounds.collect(),
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
            posted: job.posted.get(),
            since: (job.since != job.posted).then(|| job.since.get()),
            at: if claim.is_some() { NEVER } else { job.at.get() },
            seq: job.seq.get(),
            version: (job.version != job.seq).then(|| job.version.get()),
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
            extras: job.extras.as_deref().map(Cow::Borrowed),
            group: job.group(),
            ageing: job.ageing(),
            marks: self.marks_image(slot),
        }
    }

    fn marks_image(&self, slot: u32) -> Option<MarksImage<'_>> {
        let (tags, tracked) = (self.places.labels.tags(slot), self.places.labels.tracked(slot));
        let some = tracked || tags.len() > 0;
        some.then(|| MarksImage { tags: tags.collect(), tracked })
    }
}
