//! What keeps a ready job from being handed out, for [`Board::explain`]: pauses, limits, permits,
//! the order of its group, and the jobs in line before it.

use crate::board::Board;
use crate::dispatch::buckets::{debt, ready_at, Bucket, Refill};
use crate::dispatch::costs::Price;
use crate::dispatch::fair::{ready_key_of, Fair, PLAIN};
use crate::dispatch::groups::Group;
use crate::error::clean;
use crate::job::{Job, State, NEVER};
use crate::queue::Queue;
use crate::reading::explain::{count, shown, time, up_to, Detail, Details, Reason};
use crate::settings::Setting;

/// The most claims that a reason names of those that fill a limit.
const HOLDERS: usize = 10;
/// The most claims or delayed jobs that a search looks at.
const LOOKS: usize = 1_000;
/// The most runs of a line that are counted from either end.
const RUNS: usize = 4_000;
/// The most turns that are counted.
const TURNS: usize = 1_000;

/// What a limit or a pause belongs to, in words.
enum Level<'b> {
    Board,
    Queue(&'b [u8]),
    Group(&'b [u8], &'b [u8]),
    /// A shared limit.
    Limit(&'b [u8]),
}

impl Level<'_> {
    fn word(&self) -> &'static str {
        match self {
            Level::Board => "board",
            Level::Queue(_) => "queue",
            Level::Group(..) => "group",
            Level::Limit(_) => "limit",
        }
    }

    /// The details that say which it is, unless the job says so.
    fn details(&self) -> Details {
        let word = ("level", Detail::Word(self.word()));
        match self {
            Level::Limit(name) => vec![word, ("name", Detail::Bytes(name.to_vec()))],
            _ => vec![word],
        }
    }

    fn its(&self) -> String {
        match self {
            Level::Board => "The whole board".into(),
            Level::Queue(queue) => format!("Its queue {}", clean(queue)),
            Level::Group(_, group) => format!("Its group {}", clean(group)),
            Level::Limit(name) => format!("The limit {}", clean(name)),
        }
    }

    /// The arguments of a command that name it.
    fn words(&self) -> String {
        match self {
            Level::Board => "board".into(),
            Level::Queue(queue) => format!("board QUEUE {}", clean(queue)),
            Level::Group(queue, group) => format!("board QUEUE {} GROUP {}", clean(queue), clean(group)),
            Level::Limit(name) => format!("board LIMIT {}", clean(name)),
        }
    }
}

fn group_of<'b>(job: &Job, queue: &'b Queue) -> Option<(&'b Fair, &'b Group)> {
    let fair = queue.fair.as_deref()?;
    Some((fair, fair.groups.get(job.group()?)?))
}

impl Board {
    /// What keeps a ready job from being claimed by its id. O(log n), and up to four times
    /// [`LOOKS`] for a limit or an ordered group.
    pub(crate) fn obstacles(&self, job: &Job, slot: u32, queue: &Queue, now: i64) -> Vec<Reason> {
        let mut all = self.pauses_of(job, now);
        all.extend(self.no_room(job, queue));
        let group = group_of(job, queue);
        all.extend(group.and_then(|(fair, group)| self.no_group_room(job, fair, group)));
        all.extend(self.no_named_room(job));
        all.extend(group.and_then(|(fair, group)| self.out_of_turn(job, slot, fair, group)));
        all.extend(self.lacks_permits(job, queue, now));
        all
    }

    /// The pauses of its board, its queue, its group and its limits that last beyond this time.
    pub(crate) fn pauses_of(&self, job: &Job, beyond: i64) -> Vec<Reason> {
        let name = self.queue_name(job);
        let queue = self.queue_of(job);
        let group = queue.and_then(|queue| group_of(job, queue)).map(|(_, group)| group);
        let all = [
            Some((Level::Board, self.dispatch.pauses.whole())),
            queue.map(|queue| (Level::Queue(name), queue.paused)),
            group.map(|group| (Level::Group(name, &group.name), group.paused)),
        ];
        let limits = self.limits_of(self.queue_number(job), job.group()).into_iter();
        let limits = limits.filter_map(|number| self.dispatch.limits.get(number));
        let limits = limits.map(|limit| (Level::Limit(&limit.name), limit.paused));
        let reason = |(level, until): (Level<'_>, i64)| {
            let mut details = level.details();
            details.push(("until", time(until)));
            let text =
                format!("{} is paused{}. JOB.RESUME {} ends that.", level.its(), up_to(until), level.words());
            Reason { code: "paused", details, text }
        };
        let all = all.into_iter().flatten().chain(limits);
        all.filter(|(_, until)| *until > beyond).map(reason).collect()
    }

    /// Of the claims that count there, those that end first, as far as the search finds them.
    fn holders(&self, counts: impl Fn(&Job) -> bool) -> Vec<Details> {
        let key_of = |s| self.store.lease_key(s);
        let row = |slot: u32| {
            let held = self.store.jobs.get(slot).filter(|held| counts(held))?;
            let claim = self.claim_of(held)?;
            Some(vec![
                ("worker", Detail::Bytes(self.worker_name(claim).to_vec())),
                ("id", Detail::Bytes(self.store.id(slot, held).to_vec())),
                ("until", time(claim.ends_at())),
            ])
        };
        self.places.leases.iter_from(None, key_of).take(LOOKS).filter_map(row).take(HOLDERS).collect()
    }

    fn full(&self, level: &Level<'_>, most: u64, runs: u64, counts: impl Fn(&Job) -> bool) -> Reason {
        let mut details = level.details();
        details.extend([
            ("limit", Detail::Number(most as i64)),
            ("running", Detail::Number(runs as i64)),
            ("holders", Detail::Rows(self.holders(counts))),
        ]);
        let text = format!(
            "{} runs {runs} of at most {most} jobs. One must end, or JOB.SETTINGS SET {} concurrency \
             raises the limit.",
            level.its(),
            level.words()
        );
        Reason { code: "concurrency", details, text }
    }

    /// The shared limits that count for a job and are full.
    fn no_named_room(&self, job: &Job) -> Vec<Reason> {
        let reason = |number: u32| {
            let limit = self.dispatch.limits.get(number).filter(|limit| limit.is_full())?;
            let counts = |held: &Job| self.limits_of(self.queue_number(held), held.group()).contains(&number);
            Some(self.full(&Level::Limit(&limit.name), limit.most()?, limit.runs, counts))
        };
        self.limits_of(self.queue_number(job), job.group()).into_iter().filter_map(reason).collect()
    }

    fn no_room(&self, job: &Job, queue: &Queue) -> Option<Reason> {
        let (most, runs) = (self.most(queue)?, queue.count(State::Claimed));
        let here = |held: &Job| self.queue_number(held) == self.queue_number(job);
        (runs >= most).then(|| self.full(&Level::Queue(self.queue_name(job)), most, runs, here))
    }

    fn no_group_room(&self, job: &Job, fair: &Fair, group: &Group) -> Option<Reason> {
        let most = u64::try_from(fair.value(group, Setting::Concurrency)).ok()?;
        let runs = group.count(State::Claimed);
        let level = Level::Group(self.queue_name(job), &group.name);
        let queue = self.queue_number(job);
        let here = |held: &Job| self.queue_number(held) == queue && held.group() == job.group();
        (runs >= most).then(|| self.full(&level, most, runs, here))
    }

    /// The job that must end before an ordered group gives this one, if the search finds it.
    fn before_it(&self, job: &Job, slot: u32, fair: &Fair, group: &Group) -> Option<u32> {
        let queue = self.queue_number(job);
        let meant = |at: &u32| {
            let other = self.store.jobs.get(*at)?;
            let begun = other.state == State::Claimed || other.has_begun();
            let same = begun && self.queue_number(other) == queue && other.group() == job.group();
            same.then_some(*at)
        };
        if group.count(State::Claimed) > 0 {
            let key_of = |s| self.store.lease_key(s);
            return self.places.leases.iter_from(None, key_of).take(LOOKS).find_map(|at| meant(&at));
        }
        if let Some(first) = fair.candidate(group).filter(|first| *first != slot) {
            return Some(first);
        }
        let key_of = |s| self.store.jobs.get(s).map(Job::at_key).unwrap_or_default();
        let lines = [&self.places.due, &self.places.seldom.blocked];
        lines.into_iter().find_map(|line| line.iter_from(None, key_of).take(LOOKS).find_map(|at| meant(&at)))
    }

    fn out_of_turn(&self, job: &Job, slot: u32, fair: &Fair, group: &Group) -> Option<Reason> {
        let runs = group.count(State::Claimed) > 0;
        if !fair.is_ordered(group) || !runs && fair.candidate(group) == Some(slot) {
            return None;
        }
        let mut details = Vec::new();
        let before = self.before_it(job, slot, fair, group);
        let other = match before.and_then(|before| Some((self.id(before)?, self.store.jobs.get(before)?))) {
            Some((id, other)) => {
                details.push(("id", Detail::Bytes(id.to_vec())));
                details.push(("state", Detail::Word(other.state.name())));
                format!("{} ({})", shown(id), other.state.name())
            }
            None => "an earlier job".into(),
        };
        let text = format!(
            "Its group {} is ordered: {other} must end first. JOB.SETTINGS SET {} ordered 0 changes that.",
            clean(&group.name),
            Level::Group(self.queue_name(job), &group.name).words()
        );
        Some(Reason { code: "ordered", details, text })
    }

    fn lacks_permits(&self, job: &Job, queue: &Queue, now: i64) -> Vec<Reason> {
        let (name, price) = (self.queue_name(job), Price::of_job(job));
        let group = group_of(job, queue);
        let named = self.limits_of(self.queue_number(job), job.group());
        let named = named.iter().filter_map(|number| {
            let limit = self.dispatch.limits.get(*number)?;
            Some((Level::Limit(&limit.name), &limit.bucket, limit.refill?))
        });
        let all: [Option<(Level<'_>, &Option<Bucket>, Refill)>; 3] = [
            self.dispatch.rate.refill.map(|refill| (Level::Board, &self.dispatch.rate.bucket, refill)),
            queue.seldom.refill.map(|refill| (Level::Queue(name), &queue.seldom.bucket, refill)),
            group.and_then(|(fair, group)| {
                Some((Level::Group(name, &group.name), &group.bucket, fair.refill(group)?))
            }),
        ];
        let reason = |(level, bucket, refill): (Level<'_>, &Option<Bucket>, Refill)| {
            let cost = match level {
                Level::Limit(limit) => price.of(limit),
                _ => price.plain,
            };
            let at = Some(ready_at(bucket, &refill, cost)).filter(|at| *at > now)?;
            let debt = debt(bucket, &refill, now);
            let Refill { rate, period, burst } = refill;
            let mut details = level.details();
            details.extend([
                ("at", time(at)),
                ("cost", Detail::Number(cost)),
                ("rate", Detail::Number(rate)),
                ("rate-period", Detail::Number(period)),
                ("burst", Detail::Number(burst)),
            ]);
            details.extend((debt > 0).then_some(("debt", Detail::Number(debt))));
            let owes = match debt {
                0 => String::new(),
                debt => format!(" It owes {debt}, because jobs have cost more than was expected."),
            };
            let when = match at >= NEVER {
                true => "at no time".into(),
                false => format!("at {at}"),
            };
            let text = format!(
                "{} gets {rate} permits in {period} ms, and has the {cost} that the job costs {when}.{owes} \
                 JOB.SETTINGS SET {} rate changes that.",
                level.its(),
                level.words()
            );
            Some(Reason { code: "rate", details, text })
        };
        all.into_iter().flatten().chain(named).filter_map(reason).collect()
    }

    /// How many jobs are before it in its line, and which groups have their turn before its group.
    pub(crate) fn in_line(&self, job: &Job, slot: u32, queue: &Queue) -> Reason {
        let group = group_of(job, queue).map(|(_, group)| group);
        let line = group.map_or(&queue.ready, |group| &group.ready);
        let (ahead, exact) =
            line.before(ready_key_of(&self.store.jobs, slot), RUNS, |s| ready_key_of(&self.store.jobs, s));
        let mut details = vec![("ahead", count(ahead))];
        if !exact {
            details.push(("more", Detail::Number(1)));
        }
        let least = if exact { "" } else { "At least " };
        let within = match (&queue.fair, group) {
            (None, _) => "of its queue",
            (_, Some(_)) => "of its group",
            (_, None) => "of its queue without a group",
        };
        let mut text = match ahead {
            0 => format!("It is the first ready job {within}."),
            n => {
                format!("{least}{n} ready jobs {within} come before it. A higher priority moves it forward.")
            }
        };
        if let Some(fair) = &queue.fair {
            details.push(("groups", count(fair.turns.len() + fair.own_limits.len())));
            let seat = fair.seat(job.group().unwrap_or(PLAIN)).and_then(|seat| seat.place);
            if let Some(place) = seat {
                let both = [&fair.turns, &fair.own_limits].into_iter();
                let turns = both.flat_map(|turns| turns.range(..place)).take(TURNS).count();
                details.push(("turn", count(turns)));
                text.push_str(&format!(" {turns} other turns come before its group's."));
            } else if let Some(until) = group.and_then(|group| group.rest) {
                details.push(("rest", time(until)));
                text.push_str(&format!(
                    " Its group has no turn{}, because its next job lacks permits.",
                    up_to(until)
                ));
            }
        }
        Reason { code: "line", details, text }
    }

    /// Nothing keeps the job back: no worker asks for it.
    pub(crate) fn nobody_claims(&self, job: &Job, queue: &Queue, next: bool) -> Reason {
        let name = clean(self.queue_name(job));
        let (mut details, since) = match queue.local.pace.claimed() {
            0 => (Vec::new(), "at all".to_string()),
            since => (vec![("since", time(since))], format!("since {since}")),
        };
        let which = if next { "The next claim takes it" } else { "Claims take it in its turn" };
        let mut text =
            format!("{which}. Nobody has claimed from queue {name} {since}, as far as this server knows.");
        let quiet = self.workers.registrations.quiet();
        if quiet > 0 {
            details.push(("quiet", count(quiet)));
            text.push_str(&format!(" {quiet} registered workers are quiet: JOB.WORKER RESUME ends that."));
        }
        Reason { code: "unclaimed", details, text }
    }
}
