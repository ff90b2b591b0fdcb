//! A board as parts.

use std::borrow::Cow;

use serde::Serialize;
use serde_bytes::Bytes;

use super::images::{ClaimImage, GroupImage, Head, JobImage, LimitImage, MarksImage, RoundsImage};
use super::{
    DAYS, END, FORMAT, GONE, GROUPS, HEAD, JOBS, KEYS, LIMITS, LISTS, PART, PARTINGS, ROUNDS, SCHEDULES,
    TELLS, TOMBSTONES, WORKERS,
};
use crate::bin::Bin;
use crate::board::Board;
use crate::buckets::Bucket;
use crate::fair::Fair;
use crate::id::Id;
use crate::job::{Job, Options};
use crate::named::List;
use crate::settings::Overrides;

/// Encodes the parts of a snapshot one by one.
#[derive(Default)]
struct Writer {
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
}
