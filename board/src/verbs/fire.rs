//! Firing: a schedule posts a child, by time or by hand.

use crate::board::Board;
use crate::effect::{ApplyError, Effect, Validate};
use crate::env::{mix, Env};
use crate::error::Refusal;
use crate::job::unique_key::Unique;
use crate::job::DEFAULT_QUEUE;
use crate::job::{End, Options, State, NEVER};
use crate::quotas::Growth;
use crate::schedules::{child_id, Backlog, Overlap, Schedule, Template, NUMBERS};
use crate::settings::{Setting, LONGEST};
use crate::structures::byte_string::ByteString;
use crate::verbs::posted::{KeyTaken, More, Posted};
use crate::verbs::schedule::{are_times, ScheduleMoved};

/// With `BACKLOG skip` a time counts as missed when it is more than this late, ms, or the next one
/// has come.
pub const LATE: i64 = 60_000;

written! {
    /// A schedule posted a child.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Fired {
        1 id: ByteString,
        2 n: u64,
        3 slot: u32,
        4 intended: i64,
        5 next: i64,
        6 at: i64,
        7 expire: Option<i64>,
        /// Slot of the child that is cancelled first, and how long its record is retained, ms.
        8 replaces: Option<(u32, i64)>,
        /// When time should have posted it, Unix ms; `None` when an operator fired it.
        9 turn: Option<i64>,
        /// The last of the missed times that were counted, Unix ms.
        10 counted: Option<i64>,
    }
}

impl Validate for Fired {
    fn is_valid(&self, board: &Board) -> bool {
        let Some(schedule) = board.schedules.get(&self.id) else { return false };
        are_times(self.next, self.at)
            && (schedule.last + 1..NUMBERS).contains(&self.n)
            && (0..NEVER).contains(&self.intended)
            && (!schedule.paused || self.next == NEVER)
            && self.expire.is_none_or(|ms| (1..=LONGEST).contains(&ms))
            && self.turn.is_none_or(|at| (0..NEVER).contains(&at))
            && self.counted.is_none_or(|at| (0..NEVER).contains(&at))
            && board.find(&child_id(&self.id, self.n)).is_none()
            && self.slot == board.store.jobs.next_free()
    }
}

impl Fired {
    /// The id of the child.
    pub fn child(&self) -> Vec<u8> {
        child_id(&self.id, self.n)
    }

    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        if let Some((slot, retain)) = self.replaces {
            board.end_job(slot, State::Cancelled, End::Taken, Some(b"replaced"), retain, now)?;
        }
        let template = board.schedules.get(&self.id).ok_or(ApplyError)?.template.clone();
        let id = self.child();
        let due = template.delay.map_or(now, |ms| self.intended.saturating_add(ms)).min(NEVER);
        board.wake_at(self.at);
        board.schedules.change(&self.id, |schedule| {
            schedule.last = self.n;
            schedule.fired = schedule.fired.saturating_add(1).min(NUMBERS - 1);
            schedule.intended = Some(self.intended);
            schedule.counted = self.counted.unwrap_or(schedule.counted);
            (schedule.next, schedule.at) = (self.next, self.at);
        });
        let mut posted = self.posted(&template, &id, due);
        // A parent that has been removed or has ended since gets no child.
        let parent = template.parent.as_ref().and_then(|id| board.find(id));
        let tie = parent.map(|parent| (parent, template.share.unwrap_or(1)));
        if let Some(more) = &mut posted.more {
            more.parent = tie.filter(|tie| board.is_tie(self.slot, *tie));
        }
        posted.enter(board, now, Some((self.intended, self.turn)))
    }

    /// The post of the child, without its parent.
    fn posted<'a>(&self, template: &'a Template, id: &'a [u8], due: i64) -> Posted<'a> {
        let Template {
            payload,
            name,
            queue,
            priority,
            options,
            meta,
            group,
            user,
            tags,
            unique,
            gate,
            costs,
            ..
        } = template;
        Posted {
            slot: self.slot,
            replaces: false,
            made: None,
            id: id.into(),
            payload,
            queue: queue.as_deref(),
            name: name.as_deref(),
            group: group.as_deref(),
            priority: *priority,
            due: Some(due),
            options: Some(Options { expire: options.expire.or(self.expire), ..*options }),
            more: Some(Box::new(More {
                meta: meta.iter().map(|(field, value)| (&**field, &**value)).collect(),
                gate: gate.clone().map(Box::new),
                user: user.as_deref(),
                tags: Some(tags.iter().map(|tag| &**tag).collect()),
                unique: unique.as_ref().map(|unique| KeyTaken {
                    key: &unique.key,
                    until: unique.until,
                    time: unique.time,
                    keeps: false,
                }),
                costs: (!costs.is_empty())
                    .then(|| costs.iter().map(|(limit, cost)| (&**limit, *cost)).collect()),
                ..More::default()
            })),
        }
    }
}

impl Board {
    /// Decides a child by hand, whatever pause, END and MAX say; `None` when the last child is live
    /// and OVERLAP is skip.
    pub fn run_schedule(&self, env: &Env<'_>, id: &[u8]) -> Result<Option<Fired>, Refusal> {
        let schedule = self.schedules.get(id).ok_or(Refusal::NoSchedule)?;
        let live = self.live_child(schedule);
        if live.is_some() && schedule.overlap == Overlap::Skip {
            return Ok(None);
        }
        let over = schedule.full(schedule.fired + 1);
        let (next, at) = if over { (NEVER, NEVER) } else { (schedule.next, schedule.at) };
        let fired = self.fired(env, schedule, live, (env.now, next, at), None);
        self.check_fired(env, schedule, &fired)?;
        Ok(Some(fired))
    }

    /// Refuses a child whose number or key is taken, or that would exceed a limit.
    fn check_fired(&self, env: &Env<'_>, schedule: &Schedule, fired: &Fired) -> Result<(), Refusal> {
        if fired.n >= NUMBERS {
            return Err(Refusal::Limit("numbers"));
        }
        let template = &schedule.template;
        self.check_queue(template.queue.as_deref().unwrap_or(DEFAULT_QUEUE))?;
        let gone = fired.replaces.map(|(slot, _)| slot);
        if let Some(unique) = &template.unique {
            // The end of the replaced child frees its key, unless the key is taken for a time.
            let freed = gone.filter(|slot| self.unique(*slot).is_some_and(Unique::at_end));
            self.check_key(&unique.key, freed, env.now)?;
            self.check_new_keys(usize::from(self.is_new_key(&unique.key)))?;
        }
        if !self.is_limited() && template.most_live.is_none() {
            return Ok(());
        }
        let mut growth = Growth::default();
        let user = template.user.as_deref().filter(|_| template.most_live.is_some());
        if let Some(slot) = gone {
            growth.ends(self, slot, user);
        }
        let id = fired.child();
        growth.adds(self, &fired.posted(template, &id, 0).coming(self, user.is_some(), true));
        self.check_growth(&growth, user.zip(template.most_live))
    }

    /// The slot of the last child, if it has not ended.
    fn live_child(&self, schedule: &Schedule) -> Option<u32> {
        let slot = self.find(&child_id(&schedule.id, schedule.last))?;
        self.store.jobs.get(slot).filter(|job| !job.state.ended()).map(|_| slot)
    }

    fn fired(
        &self,
        env: &Env<'_>,
        schedule: &Schedule,
        live: Option<u32>,
        (intended, next, at): (i64, i64, i64),
        turn: Option<i64>,
    ) -> Fired {
        // A former schedule of this id may have left children: doubling steps find a free number
        // without a walk over them.
        let taken = |n: &u64| {
            let child = child_id(&schedule.id, *n);
            self.find(&child).is_some() || self.tombstone(&child, env.now).is_some()
        };
        let numbers = (0..53).map(|power| schedule.last + (1 << power));
        let n = numbers.clone().find(|n| *n >= NUMBERS || !taken(n)).unwrap_or(schedule.last + 1);
        let queue = schedule.template.queue.as_deref().unwrap_or(DEFAULT_QUEUE);
        let expire = self.queue_rule(Setting::Expire, self.queues.find(queue), env.rules);
        let replaces = live.filter(|_| schedule.overlap == Overlap::Replace);
        Fired {
            id: schedule.id.clone(),
            n,
            slot: self.store.jobs.next_free(),
            intended,
            next,
            at,
            expire: (expire > 0).then_some(expire),
            replaces: replaces.map(|slot| (slot, self.retention(State::Cancelled, env.rules))),
            turn,
            counted: None,
        }
    }

    /// What the first schedule that is due does; `None` when none is due. O(log n).
    pub(crate) fn due_schedule(&self, env: &Env<'_>) -> Option<Effect<'static>> {
        self.strike(env, self.schedules.first()?)
    }

    /// The next thing that time should have done with a schedule by now. The caller must apply it
    /// before it decides anything about that schedule. O(log n).
    pub fn overdue_schedule(&self, env: &Env<'_>, id: &[u8]) -> Option<Effect<'static>> {
        self.strike(env, self.schedules.get(id)?)
    }

    fn strike(&self, env: &Env<'_>, schedule: &Schedule) -> Option<Effect<'static>> {
        if schedule.at > env.now {
            return None;
        }
        // Later times are not missed yet: jitter may still hold them.
        let until = env.now.saturating_sub(schedule.jitter).max(schedule.next);
        let counts = schedule.most_missed > 0 && schedule.next > schedule.counted;
        let last = match schedule.backlog {
            Backlog::All if !counts => schedule.next,
            _ => schedule.last_until(until),
        };
        let counted = (counts && last > schedule.next).then_some(last);
        let intended = if counts { schedule.first_of_the_last(last) } else { last };
        let draw = mix(env.draw(0) ^ schedule.last);
        let missed = schedule.backlog == Backlog::Skip && until.saturating_sub(intended) > LATE;
        let live = self.live_child(schedule);
        let over = schedule.full(schedule.fired);
        let passes = |refused| {
            let next = if over { NEVER } else { schedule.first_from(until.max(intended) + 1) };
            let (id, at) = (schedule.id.clone(), schedule.posted_at(next, draw));
            Some(ScheduleMoved { id, paused: schedule.paused, next, at, refused }.into())
        };
        if missed || over || (live.is_some() && schedule.overlap == Overlap::Skip) {
            return passes(false);
        }
        let next = match schedule.full(schedule.fired + 1) {
            true => NEVER,
            false => schedule.first_from(intended + 1),
        };
        let at = schedule.posted_at(next, draw);
        let fired = self.fired(env, schedule, live, (intended, next, at), Some(schedule.at));
        let fired = Fired { counted, ..fired };
        match self.check_fired(env, schedule, &fired) {
            Ok(()) => Some(fired.into()),
            Err(_) => passes(true),
        }
    }
}
