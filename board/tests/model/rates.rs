//! Tokens of the naive board: buckets as fractions, asked for each job.

use std::collections::BTreeMap;

use board::{Setting, State};

use crate::naive::{Bytes, Job, Model, NEVER};

/// The whole board's, a queue's, a group's.
pub type Place = (Option<Bytes>, Option<Bytes>);

/// Drops at a time, and how many drops a token had then.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    level: i128,
    at: i64,
    period: i128,
}

pub type Buckets = BTreeMap<Place, Bucket>;

/// Rate, period, burst.
type Pace = (i128, i128, i128);

impl Model {
    fn pace(&self, place: &Place) -> Option<Pace> {
        let value = |setting: Setting| match place {
            (Some(queue), Some(group)) => self.group_rule(queue, group, setting),
            (None, Some(limit)) => {
                self.limits.get(&(limit.clone(), setting)).copied().unwrap_or(setting.spec().default)
            }
            (queue, _) => self.own.get(&(queue.clone(), setting)).copied().unwrap_or(setting.spec().default),
        };
        let number = |setting| i128::from(value(setting));
        let pace = (number(Setting::Rate), number(Setting::RatePeriod), number(Setting::Burst));
        (pace.0 >= 0).then_some(pace)
    }

    /// When a bucket holds so many tokens, or all that it can.
    pub fn holds_at(&self, place: &Place, tokens: Option<i64>) -> i64 {
        let (Some((rate, period, burst)), Some(bucket)) = (self.pace(place), self.buckets.get(place)) else {
            return 0;
        };
        let whole = burst * period;
        let level = (bucket.level * period / bucket.period).min(whole);
        let lacks = tokens.map_or(whole, |n| i128::from(n).min(burst) * period) - level;
        match (lacks > 0, rate) {
            (false, _) => 0,
            (true, 0) => NEVER,
            (true, rate) => (i128::from(bucket.at) + (lacks + rate - 1) / rate).min(NEVER.into()) as i64,
        }
    }

    fn places(&self, job: &Job) -> Vec<Place> {
        let queue = Some(job.queue.clone());
        let group = job.group.clone().map(|group| (queue.clone(), Some(group)));
        let limits = self.limits_of(job).into_iter().map(|limit| (None, Some(limit)));
        [(None, None), (queue.clone(), None)].into_iter().chain(group).chain(limits).collect()
    }

    /// When a job may take its tokens everywhere.
    pub fn tokens_at(&self, job: &Job) -> i64 {
        let cost = job.options.cost.unwrap_or(1);
        self.places(job).iter().map(|place| self.holds_at(place, Some(cost))).max().unwrap_or(0)
    }

    /// Where a job lacks tokens.
    pub fn lacks_tokens(&self, job: &Job) -> Vec<&'static str> {
        let cost = Some(job.options.cost.unwrap_or(1));
        let level = |place: Place| match place {
            (None, None) => "board",
            (Some(_), None) => "queue",
            (Some(_), Some(_)) => "group",
            (None, Some(_)) => "limit",
        };
        let lacks = |place: &Place| self.holds_at(place, cost) > self.now;
        self.places(job).into_iter().filter(lacks).map(level).collect()
    }

    pub fn take_tokens(&mut self, at: usize) {
        let cost = i128::from(self.jobs[at].options.cost.unwrap_or(1));
        let now = self.now;
        for place in self.places(&self.jobs[at]) {
            let Some((rate, period, burst)) = self.pace(&place) else { continue };
            let whole = burst * period;
            let level = self.buckets.get(&place).map_or(whole, |bucket| {
                let start = (bucket.level * period / bucket.period).min(whole);
                (start + rate * i128::from((now - bucket.at).max(0))).min(whole)
            });
            let level = (level - cost.min(burst) * period).max(0);
            self.buckets.insert(place, Bucket { level, at: now, period });
        }
    }

    /// The job that a group would give if nothing kept it back.
    fn first_of(&self, queue: &[u8], group: &[u8]) -> Option<&Job> {
        let here = |j: &&Job| j.queue == queue && j.group.as_deref() == Some(group);
        let ready = self.jobs.iter().filter(|j| here(j) && j.state == State::Ready);
        let ordered = self.group_rule(queue, group, Setting::Ordered) > 0;
        let begun = |j: &Job| !j.state.ended() && j.attempt > 0;
        let any = self.of_group(queue, group).any(begun);
        ready.filter(|j| !(ordered && any) || begun(j)).min_by_key(|j| j.rank())
    }

    /// Whether the group of a job lacks tokens for the job that it would give.
    pub fn group_rests(&self, job: &Job) -> bool {
        let Some(group) = &job.group else { return false };
        let place = (Some(job.queue.clone()), Some(group.clone()));
        let own = self.list(&job.queue, Some(group));
        self.first_of(&job.queue, group).is_some_and(|job| {
            let cost = job.options.cost.unwrap_or(1);
            self.holds_at(&place, Some(cost)).max(self.list_opens_at(own, cost)) > self.now
        })
    }

    /// Whether a group has jobs, settings or a pause.
    fn known(&self, queue: &[u8], group: &[u8]) -> bool {
        let place = Some((queue.to_vec(), Some(group.to_vec())));
        self.of_group(queue, group).next().is_some()
            || self.group_own.keys().any(|(q, g, _)| q == queue && g == group)
            || self.pauses.contains_key(&place)
            || self.list(queue, Some(group)).is_some()
    }

    /// When the first group that lacks tokens has them, or is forgotten with its full bucket.
    pub fn next_rest(&self) -> i64 {
        let named = self.lists.keys().map(|(queue, group)| (Some(queue.clone()), group.clone()));
        let places: Vec<Place> = self.buckets.keys().cloned().chain(named).collect();
        let groups = places.iter().filter_map(|place| Some((place, place.0.as_ref()?, place.1.as_ref()?)));
        let until = groups.map(|(place, queue, group)| match self.first_of(queue, group) {
            Some(job) => {
                let cost = job.options.cost.unwrap_or(1);
                self.holds_at(place, Some(cost)).max(self.list_opens_at(self.list(queue, Some(group)), cost))
            }
            None if !self.known(queue, group) => self.holds_at(place, None),
            None => 0,
        });
        until.filter(|until| *until > self.now).min().unwrap_or(NEVER)
    }

    /// Forgets the buckets of groups that nothing needs.
    pub fn tidy_buckets(&mut self) {
        let gone = |place: &Place| match place {
            (Some(queue), Some(group)) => !self.known(queue, group) && self.holds_at(place, None) <= self.now,
            _ => false,
        };
        let gone: Vec<Place> = self.buckets.keys().filter(|place| gone(place)).cloned().collect();
        gone.iter().for_each(|place| _ = self.buckets.remove(place));
    }
}
