//! How many queues, groups, schedules and keys the naive board may have, all counted anew.

use std::collections::BTreeSet;

use board::Setting;

use crate::naive::Model;

type Names<'a> = BTreeSet<&'a [u8]>;

impl Model {
    fn most(&self, setting: Setting) -> usize {
        self.board_rule(setting) as usize
    }

    fn bound(&self, setting: Setting, known: &Names<'_>, named: &Names<'_>) -> Result<(), String> {
        let fresh = named.difference(known).count();
        match fresh > 0 && known.len() + fresh > self.most(setting) {
            true => Err(format!("LIMIT {}", setting.spec().name)),
            false => Ok(()),
        }
    }

    /// Queues with jobs, settings or a pause, their own or a group's; or a group that waits for
    /// tokens.
    fn queues_known(&self) -> Names<'_> {
        let jobs = self.jobs.iter().map(|job| &job.queue[..]);
        let own = self.own.keys().filter_map(|(queue, _)| queue.as_deref());
        let groups = self.group_own.keys().map(|(queue, ..)| &queue[..]);
        let lists = self.lists.keys().map(|(queue, _)| &queue[..]);
        let pauses = self.pauses.keys().flatten().map(|(queue, _)| &queue[..]);
        let rests = self.buckets.keys().filter_map(|(queue, group)| group.as_ref().and(queue.as_deref()));
        let dead = self.dead.keys().map(|queue| &queue[..]);
        jobs.chain(own).chain(dead).chain(groups).chain(lists).chain(pauses).chain(rests).collect()
    }

    pub fn check_queues(&self, named: &[&[u8]]) -> Result<(), String> {
        self.bound(Setting::MaxQueues, &self.queues_known(), &named.iter().copied().collect())
    }

    /// Whether a queue may keep settings or a pause of that group.
    pub fn check_group(&self, queue: &[u8], group: &[u8]) -> Result<(), String> {
        let here = |place: &[u8]| place == queue;
        let jobs = self.jobs.iter().filter(|job| here(&job.queue)).filter_map(|job| job.group.as_deref());
        let own = self.group_own.keys().filter(|(queue, ..)| here(queue)).map(|(_, group, _)| &group[..]);
        let lists = self.lists.keys().filter(|(queue, _)| here(queue)).filter_map(|(_, g)| g.as_deref());
        let pauses = self.pauses.keys().flatten().filter(|(q, _)| here(q)).filter_map(|(_, g)| g.as_deref());
        let rests = self.buckets.keys().filter(|(queue, _)| queue.as_deref().is_some_and(here));
        let rests = rests.filter_map(|(_, group)| group.as_deref());
        let mut known: Names<'_> = jobs.chain(own).chain(lists).chain(pauses).chain(rests).collect();
        known.remove(board::ALL_GROUPS);
        self.bound(Setting::MaxGroups, &known, &Some(group).into_iter().collect())
    }

    pub fn check_schedule(&self, id: &[u8]) -> Result<(), String> {
        let known = self.schedules.iter().map(|schedule| &schedule.id[..]).collect();
        self.bound(Setting::MaxSchedules, &known, &Some(id).into_iter().collect())
    }

    pub fn check_new_key(&self, key: &[u8]) -> Result<(), String> {
        let known = self.keys.keys().map(|key| &key[..]).collect();
        self.bound(Setting::MaxKeys, &known, &Some(key).into_iter().collect())
    }

    /// Whether a day may have statistics of one queue more.
    pub fn check_day(&self, day: i64) -> bool {
        self.days.keys().filter(|(of, _)| *of == day).count() < self.most(Setting::MaxQueues)
    }
}
