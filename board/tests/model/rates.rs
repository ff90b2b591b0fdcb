//! Tokens of the naive board: buckets as fractions, asked for each job.

use std::collections::BTreeMap;

use board::{Costs, Setting, Spend, State, MOST};

use crate::naive::{Bytes, Job, Model, NEVER};
use crate::verbs::shown;

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

/// What is named for a limit, or else the plain cost.
fn price(plain: i64, named: &BTreeMap<Bytes, i64>, place: &Place) -> i64 {
    match place {
        (None, Some(limit)) => named.get(limit).copied().unwrap_or(plain),
        _ => plain,
    }
}

impl Model {
    /// A queue without a rate has no permits.
    pub fn forget_permits(&mut self, queue: &[u8]) {
        let place = (Some(queue.to_vec()), None);
        if self.pace(&place).is_none() {
            self.buckets.remove(&place);
        }
    }

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
        if tokens == Some(0) {
            return 0;
        }
        let lacks = tokens.map_or(whole, |n| i128::from(n).min(burst) * period) - level;
        match (lacks > 0, rate) {
            (false, _) => 0,
            (true, 0) => NEVER,
            (true, rate) => (i128::from(bucket.at) + (lacks + rate - 1) / rate).min(NEVER.into()) as i64,
        }
    }

    /// What a job costs somewhere.
    fn cost_at(&self, place: &Place, job: &Job) -> i64 {
        price(job.options.cost.unwrap_or(1), &job.costs, place)
    }

    /// When a place lets a job go, as far as tokens and the pause of a limit say.
    pub fn place_opens_at(&self, place: &Place, job: &Job) -> i64 {
        let paused = match place {
            (None, Some(limit)) => self.limit_pauses.get(limit).copied().unwrap_or(0),
            _ => 0,
        };
        self.holds_at(place, Some(self.cost_at(place, job))).max(paused)
    }

    fn places(&self, job: &Job) -> Vec<Place> {
        let queue = Some(job.queue.clone());
        let group = job.group.clone().map(|group| (queue.clone(), Some(group)));
        let limits = self.limits_of(job).into_iter().map(|limit| (None, Some(limit)));
        [(None, None), (queue.clone(), None)].into_iter().chain(group).chain(limits).collect()
    }

    /// When a job may take its tokens everywhere.
    pub fn tokens_at(&self, job: &Job) -> i64 {
        self.places(job).iter().map(|place| self.place_opens_at(place, job)).max().unwrap_or(0)
    }

    pub fn has_paused_limit(&self, job: &Job) -> bool {
        let paused = |limit: &Bytes| self.limit_pauses.get(limit).is_some_and(|until| *until > self.now);
        self.limits_of(job).iter().any(paused)
    }

    /// Where a job lacks tokens.
    pub fn lacks_tokens(&self, job: &Job) -> Vec<&'static str> {
        let level = |place: Place| match place {
            (None, None) => "board",
            (Some(_), None) => "queue",
            (Some(_), Some(_)) => "group",
            (None, Some(_)) => "limit",
        };
        let lacks = |place: &Place| self.holds_at(place, Some(self.cost_at(place, job))) > self.now;
        self.places(job).into_iter().filter(lacks).map(level).collect()
    }

    pub fn take_tokens(&mut self, at: usize) {
        for place in self.places(&self.jobs[at]) {
            let cost = self.cost_at(&place, &self.jobs[at]);
            self.move_tokens(&place, |burst| i128::from(cost).min(burst));
        }
    }

    /// Takes tokens, or gives some back, by what a burst is.
    fn move_tokens(&mut self, place: &Place, tokens: impl Fn(i128) -> i128) {
        let Some((_, period, burst)) = self.pace(place) else { return };
        let level = self.level(place).unwrap_or_default() - tokens(burst) * period;
        let level = level.clamp(-self.lowest(place), burst * period);
        self.buckets.insert(place.clone(), Bucket { level, at: self.now, period });
    }

    /// Ten periods or ten bursts.
    fn lowest(&self, place: &Place) -> i128 {
        let most = i128::from(MOST);
        self.pace(place).map_or(0, |(rate, period, burst)| (10 * rate.max(burst) * period).min(most * most))
    }

    /// Drops in a bucket now.
    fn level(&self, place: &Place) -> Option<i128> {
        let (rate, period, burst) = self.pace(place)?;
        let whole = burst * period;
        Some(self.buckets.get(place).map_or(whole, |bucket| {
            let start = (bucket.level * period / bucket.period).min(whole);
            (start + rate * i128::from((self.now - bucket.at).max(0))).min(whole)
        }))
    }

    /// How many tokens a limit owes.
    pub fn debt(&self, limit: &[u8]) -> i64 {
        let place = (None, Some(limit.to_vec()));
        let Some((_, period, _)) = self.pace(&place) else { return 0 };
        let owed = (-self.level(&place).unwrap_or_default()).max(0);
        ((owed + period - 1) / period) as i64
    }

    /// Whether what a worker says beside its verb is refused.
    pub fn check_say(&self, at: usize) -> Result<(), String> {
        let Some((limit, _)) = self.spend.pause else { return Ok(()) };
        match self.limits_of(&self.jobs[at]).iter().any(|own| own == limit) {
            true => Ok(()),
            false => Err(format!(
                "ERR PAUSE names '{}', which is no limit of this job: JOB.EXPLAIN and JOB.QUEUES say which are",
                shown(limit)
            )),
        }
    }

    /// Does what a worker says of its claim.
    pub fn say(&mut self, at: usize) {
        let Spend { cost, costs, pause } = self.spend.clone();
        let token = self.jobs[at].run().0;
        if token > 0 && (cost.is_some() || costs.is_some()) {
            self.settle_costs(at, token, cost, &costs.unwrap_or_default());
        }
        if let Some((limit, ms)) = pause {
            self.pause_limit(limit, (self.now + ms).min(NEVER));
        }
    }

    fn settle_costs(&mut self, at: usize, token: u64, cost: Option<i64>, costs: &Costs<'_>) {
        let job = self.jobs[at].clone();
        let old = job.spent.clone().filter(|(under, ..)| *under == token);
        let (plain, named) = match &old {
            Some((_, plain, named)) => (*plain, named.clone()),
            None => (job.options.cost.unwrap_or(1), job.costs.clone()),
        };
        let said = |limit: &Bytes| costs.iter().find(|(name, _)| name == limit).map(|(_, cost)| *cost);
        let limits = self.limits_of(&job);
        let now = |limit: &Bytes| Some((limit.clone(), said(limit).or(named.get(limit).copied())?));
        let after: BTreeMap<Bytes, i64> = limits.iter().filter_map(now).collect();
        let cost = cost.unwrap_or(plain);
        if old == Some((token, cost, after.clone())) {
            return;
        }
        for place in self.places(&job) {
            let (new, before) = (price(cost, &after, &place), i128::from(price(plain, &named, &place)));
            let taken = |burst: i128| if old.is_none() { before.min(burst) } else { before };
            self.move_tokens(&place, |burst| i128::from(new) - taken(burst));
        }
        let more =
            after.iter().map(|(limit, cost)| (limit.clone(), cost - named.get(limit).copied().unwrap_or(0)));
        self.count_cost(&job.queue, cost - plain, more.collect());
        self.jobs[at].spent = Some((token, cost, after));
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
        self.first_of(&job.queue, group)
            .is_some_and(|job| self.place_opens_at(&place, job).max(self.list_opens_at(own, job)) > self.now)
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
                let own = self.list(queue, Some(group));
                self.place_opens_at(place, job).max(self.list_opens_at(own, job))
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
