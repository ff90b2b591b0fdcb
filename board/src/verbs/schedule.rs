//! Schedules: setting, deleting, pausing.

use crate::board::Board;
use crate::effect::{is_name, ApplyError, Validate};
use crate::env::Env;
use crate::error::{clean, Refusal};
use crate::job::unique_key::Unique;
use crate::job::{is_time, META_MOST, NEVER};
use crate::schedules::cron::{check_cron, CronFault};
use crate::schedules::{Backlog, Overlap, Schedule, Template, NUMBERS};
use crate::structures::byte_string::ByteString;
use crate::verbs::post::Post;

/// When a schedule fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When<'a> {
    /// Each time this many ms have passed.
    Every(i64),
    /// By a cron expression.
    Cron(&'a [u8]),
}

/// A request to add a schedule, or to change the named parts of one.
#[derive(Debug, Clone, Default)]
pub struct SetSchedule<'a> {
    /// Its id.
    pub id: &'a [u8],
    /// When it fires; a new schedule needs this.
    pub when: Option<When<'a>>,
    /// The zone of the expression; empty for UTC.
    pub zone: Option<&'a [u8]>,
    /// No time is before this, Unix ms.
    pub start: Option<i64>,
    /// No time is after this, Unix ms; `Some(None)` for no end.
    pub end: Option<Option<i64>>,
    /// The most children; `Some(None)` for any number.
    pub max: Option<Option<u64>>,
    /// What it does about missed times.
    pub backlog: Option<Backlog>,
    /// With [`Backlog::All`]: of missed times only this many, the last ones; 0 for each.
    pub most_missed: u32,
    /// What it does at a time while its last child is live.
    pub overlap: Option<Overlap>,
    /// By how much a child may be late on purpose, ms.
    pub jitter: Option<i64>,
    /// How long after the intended time its children become ready, ms.
    pub delay: Option<i64>,
    /// What its children are posted with. Id, AFTER, due time, and what to do when the key is taken
    /// are ignored.
    pub child: Post<'a>,
}

written! {
    /// A schedule was added or changed.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ScheduleSet {
        1 schedule: Schedule,
    }
}

impl Validate for ScheduleSet {
    fn is_valid(&self, board: &Board) -> bool {
        let before = board.schedules.get(&self.schedule.id).map_or(0, |s| s.last);
        self.schedule.is_valid() && self.schedule.last >= before
    }
}

impl ScheduleSet {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        board.wake_at(self.schedule.at);
        board.schedules.put(self.schedule.clone());
        Ok(())
    }
}

written! {
    /// A schedule was deleted. Its children stay.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ScheduleDeleted {
        1 id: ByteString,
    }
}

impl Validate for ScheduleDeleted {}

impl ScheduleDeleted {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        board.schedules.remove(&self.id).then_some(()).ok_or(ApplyError)
    }
}

written! {
    /// A schedule got another next time: it was paused or resumed, or it passed over times.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ScheduleMoved {
        1 pub(super) id: ByteString,
        2 pub(super) paused: bool,
        3 pub(super) next: i64,
        4 pub(super) at: i64,
        /// Whether the board would have refused a child.
        5 pub(super) refused: bool,
    }
}

pub(super) fn are_times(next: i64, at: i64) -> bool {
    is_time(next) && (next..=NEVER).contains(&at) && (next == NEVER) == (at == NEVER)
}

impl Validate for ScheduleMoved {
    fn is_valid(&self, _board: &Board) -> bool {
        are_times(self.next, self.at) && (!self.paused || self.next == NEVER)
    }
}

impl ScheduleMoved {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        board.wake_at(self.at);
        let found = board.schedules.change(&self.id, |schedule| {
            (schedule.paused, schedule.next, schedule.at) = (self.paused, self.next, self.at);
            let refused = schedule.refused.saturating_add(u64::from(self.refused));
            schedule.refused = refused.min(NUMBERS - 1);
        });
        found.then_some(()).ok_or(ApplyError)
    }
}

fn refuse<T>(text: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Argument(text.into()))
}

fn readable(expression: &[u8], zone: &[u8], now: i64) -> Result<(), Refusal> {
    match check_cron(expression, zone, now) {
        Ok(()) => Ok(()),
        Err(CronFault::Expression(why)) => refuse(format!("CRON is not a cron expression: {why}")),
        Err(CronFault::Zone) => refuse(format!("TZ names no time zone: '{}'", clean(zone))),
        Err(CronFault::NoTime) => refuse("CRON names no time that ever comes"),
    }
}

impl Schedule {
    /// When a child with this intended time is posted, Unix ms.
    pub(super) fn posted_at(&self, next: i64, draw: u64) -> i64 {
        match next {
            NEVER => NEVER,
            _ => next.saturating_add((draw % (self.jitter.max(0) as u64 + 1)) as i64).min(NEVER - 1),
        }
    }

    pub(super) fn full(&self, fired: u64) -> bool {
        self.max.is_some_and(|max| fired >= max)
    }

    /// The first time from now on at which it fires unless paused; never a time that has had its
    /// child.
    fn next_from(&self, now: i64) -> i64 {
        match self.full(self.fired) {
            true => NEVER,
            false => self.first_from(now.max(self.intended.map_or(0, |t| t.saturating_add(1)))),
        }
    }

    /// Takes over what the request names. Returns whether its times have changed.
    fn take(&mut self, set: &SetSchedule<'_>, now: i64) -> bool {
        let before = (self.every, self.cron.clone(), self.zone.clone(), self.start);
        match set.when {
            Some(When::Every(ms)) => {
                (self.every, self.cron, self.zone) = (ms, ByteString::default(), ByteString::default())
            }
            Some(When::Cron(text)) => (self.every, self.cron) = (0, text.into()),
            None => {}
        }
        self.zone = set.zone.map_or_else(|| std::mem::take(&mut self.zone), ByteString::from);
        self.start = set.start.or(self.start);
        self.end = set.end.unwrap_or(self.end);
        self.max = set.max.unwrap_or(self.max);
        if let Some(backlog) = set.backlog {
            (self.backlog, self.most_missed) = (backlog, set.most_missed);
        }
        self.overlap = set.overlap.unwrap_or(self.overlap);
        self.jitter = set.jitter.unwrap_or(self.jitter);
        self.template.take(&set.child);
        self.template.delay = set.delay.or(self.template.delay);
        let changed = before != (self.every, self.cron.clone(), self.zone.clone(), self.start);
        if changed {
            // With a START the same request gives the same times, whatever they were before.
            self.anchor = self.start.unwrap_or_else(|| now.saturating_add(self.every));
        }
        changed
    }
}

impl Template {
    /// Takes over what a post names.
    fn take(&mut self, post: &Post<'_>) {
        let text = |new: Option<&[u8]>, old: &mut Option<ByteString>| {
            new.map(ByteString::from).or_else(|| old.take())
        };
        self.payload = post.payload.into();
        self.name = text(post.name, &mut self.name);
        self.queue = text(post.queue, &mut self.queue);
        self.priority = post.priority.or(self.priority);
        self.options = post.options.or(self.options);
        self.group = text(post.group, &mut self.group);
        self.user = text(post.user, &mut self.user);
        if let Some(tags) = &post.tags {
            self.tags = tags.iter().map(|tag| ByteString::from(*tag)).collect();
        }
        self.parent = text(post.parent, &mut self.parent);
        self.share = post.share.or(self.share);
        self.most_live = post.most_live.or(self.most_live);
        let unique = post.unique.map(|u| Unique::new(u.key, u.until, u.time));
        self.unique = unique.or_else(|| self.unique.take());
        if let Some(costs) = &post.costs {
            let costs = costs.iter().map(|(limit, cost)| (ByteString::from(*limit), *cost));
            self.costs = costs.collect();
            self.costs.sort_unstable();
        }
        self.gate = post.gate.as_deref().cloned().or_else(|| self.gate.take());
        for (field, value) in &post.meta {
            match self.meta.iter_mut().find(|(f, _)| **f == **field) {
                Some((_, old)) => *old = (&**value).into(),
                None => self.meta.push(((&**field).into(), (&**value).into())),
            }
        }
    }
}

impl Board {
    /// The schedule of this id.
    pub fn schedule(&self, id: &[u8]) -> Option<&Schedule> {
        self.schedules.get(id)
    }

    /// How many schedules there are.
    pub fn schedule_count(&self) -> usize {
        self.schedules.len()
    }

    /// The schedules behind `after`, by id. O(log n + those taken).
    pub fn schedules_after(&self, after: Option<&[u8]>) -> impl Iterator<Item = &Schedule> {
        self.schedules.after(after)
    }

    /// Decides to add or change a schedule. O(log n).
    pub fn set_schedule(&self, env: &Env<'_>, set: &SetSchedule<'_>) -> Result<ScheduleSet, Refusal> {
        let old = self.schedules.get(set.id);
        if old.is_none() && set.when.is_none() {
            return refuse("EVERY or CRON is needed for a new schedule");
        }
        if old.is_none() {
            self.check_new_schedule()?;
        }
        let fresh = || Schedule { id: set.id.into(), next: NEVER, at: NEVER, ..Schedule::default() };
        let mut schedule = old.cloned().unwrap_or_else(fresh);
        let changed = schedule.take(set, env.now);
        if let Some(id) = set.child.parent {
            let parent = self.find(id).ok_or_else(|| Refusal::NoJob.of(id))?;
            self.check_parent(self.store.jobs.next_free(), parent).map_err(|refusal| refusal.of(id))?;
        }
        set.child.costs.as_ref().map_or(Ok(()), |costs| self.check_costs(costs))?;
        if schedule.template.share.is_some() && schedule.template.parent.is_none() {
            return refuse("SHARE needs PARENT");
        }
        if schedule.every > 0 && set.zone.is_some() {
            return refuse("TZ goes with CRON");
        }
        if schedule.every == 0 && (set.when.is_some() || set.zone.is_some()) {
            readable(&schedule.cron, &schedule.zone, env.now)?;
        }
        if schedule.start.zip(schedule.end).is_some_and(|(start, end)| end < start) {
            return refuse(match set.end {
                Some(_) => "END must not be before START",
                None => "START must not be after END: give END too, or END -1 for none",
            });
        }
        if schedule.template.most_live.is_some() && schedule.template.user.is_none() {
            return refuse("MAXLIVE needs USER");
        }
        if schedule.template.meta.len() > META_MOST {
            return Err(Refusal::Limit("meta fields"));
        }
        let stands = schedule.next == NEVER || schedule.full(schedule.fired);
        let ends = schedule.next > schedule.end.unwrap_or(NEVER);
        if changed || stands || ends {
            schedule.next = if schedule.paused { NEVER } else { schedule.next_from(env.now) };
        }
        if changed || stands || ends || set.jitter.is_some() {
            schedule.at = schedule.posted_at(schedule.next, env.draw(0));
        }
        Ok(ScheduleSet { schedule })
    }

    /// Decides to delete a schedule.
    pub fn delete_schedule(&self, id: &[u8]) -> Result<ScheduleDeleted, Refusal> {
        self.schedules.get(id).map(|s| ScheduleDeleted { id: s.id.clone() }).ok_or(Refusal::NoSchedule)
    }

    /// Decides that a schedule is paused, or resumed with its first time from now on; `None` when
    /// nothing would change.
    pub fn pause_schedule(
        &self,
        env: &Env<'_>,
        id: &[u8],
        paused: bool,
    ) -> Result<Option<ScheduleMoved>, Refusal> {
        let schedule = self.schedules.get(id).ok_or(Refusal::NoSchedule)?;
        if schedule.paused == paused {
            return Ok(None);
        }
        let next = if paused { NEVER } else { schedule.next_from(env.now) };
        let at = schedule.posted_at(next, env.draw(0));
        Ok(Some(ScheduleMoved { id: schedule.id.clone(), paused, next, at, refused: false }))
    }
}

/// Whether bytes can be the id of a schedule.
pub fn is_schedule_id(id: &[u8]) -> bool {
    is_name(id) && id.len() <= crate::schedules::SCHEDULE_ID_LONGEST && !id.starts_with(b"@")
}
