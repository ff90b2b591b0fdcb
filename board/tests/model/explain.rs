//! Why a job of the naive board is not running.

use board::{Claim, Detail, Explanation, Setting, State};

use crate::compare::same;
use crate::naive::{Job, Model, Way, NEVER};
use crate::world::World;

impl Model {
    fn pauses_of(&self, job: &Job, beyond: i64) -> Vec<String> {
        let queue = Some((job.queue.clone(), None));
        let group = job.group.clone().map(|group| Some((job.queue.clone(), Some(group))));
        let places = [Some((None, "board")), Some((queue, "queue")), group.map(|place| (place, "group"))];
        let lasts = |place| self.pauses.get(place).is_some_and(|pause| pause.until > beyond);
        let paused = places.iter().flatten().filter(|(place, _)| lasts(place));
        let limits = self.limits_of(job).into_iter();
        let limits = limits.filter(|l| self.limit_pauses.get(l).is_some_and(|until| *until > beyond));
        let limits = limits.map(|_| "paused limit".to_string());
        paused.map(|(_, level)| format!("paused {level}")).chain(limits).collect()
    }

    fn delay_of(&self, job: &Job) -> String {
        let way = job.past.as_ref().map(|past| past.way);
        match way {
            Some(Way::Failed | Way::TimedOut) => "retry".into(),
            Some(Way::Lapsed) => "lapse".into(),
            _ => "delayed".into(),
        }
    }

    /// What keeps a ready job from being claimed by its id.
    fn obstacles(&self, job: &Job) -> Vec<String> {
        let mut all = self.pauses_of(job, self.now);
        if self.full_itself(&job.queue) {
            all.push("concurrency queue".into());
        }
        let full = self.limits_of(job).into_iter().filter(|limit| self.limit_full(limit)).count();
        let named = vec!["concurrency limit".to_string(); full];
        if let Some(group) = &job.group {
            let most = self.group_rule(&job.queue, group, Setting::Concurrency);
            let runs = self.of_group(&job.queue, group).filter(|j| j.state == State::Claimed).count() as i64;
            if most >= 0 && runs >= most {
                all.push("concurrency group".into());
            }
            all.extend(named);
            let ordered = self.group_rule(&job.queue, group, Setting::Ordered) > 0;
            if ordered && (runs > 0 || !self.is_next(job)) {
                all.push("ordered".into());
            }
        } else {
            all.extend(named);
        }
        let lacks = self.lacks_tokens(job);
        all.extend(lacks.into_iter().map(|level| format!("rate {level}")));
        if job.expires() <= self.now {
            all.push("expires".into());
        }
        all
    }

    /// The codes of the reasons, but for those that are told in line.
    fn causes(&self, job: &Job) -> Vec<String> {
        let beyond = job.due.max(self.now);
        match job.state {
            State::Ready => self.obstacles(job),
            State::Scheduled => {
                std::iter::once(self.delay_of(job)).chain(self.pauses_of(job, beyond)).collect()
            }
            State::Blocked => {
                let delay = (job.due > self.now).then(|| self.delay_of(job));
                let others = (!job.after.is_empty()).then(|| "dependencies".into());
                let signals = job.wait.as_ref().map(|_| "signals".into());
                let children = job.batch.as_ref().map(|_| "children".into());
                let first = others.into_iter().chain(signals).chain(children).chain(delay);
                first.chain(self.pauses_of(job, beyond)).collect()
            }
            State::Claimed => {
                let cancel = job.hold.as_ref().is_some_and(|hold| hold.cancel);
                std::iter::once("claimed".into()).chain(cancel.then(|| "cancel".into())).collect()
            }
            _ => vec!["ended".into()],
        }
    }

    /// Whether a claim by its id would take it, were it settled before.
    fn claimable(&self, job: &Job) -> bool {
        job.state == State::Ready
            && !self.overdue(job)
            && self.paused(Some(&job.queue)).is_none()
            && !self.full(&job.queue)
            && self.kept_back(job, true).is_none()
            && self.tokens_at(job) <= self.now
    }
}

fn detail<'e>(got: &'e Explanation, code: &str, name: &str) -> Option<&'e Detail> {
    let reason = got.reasons.iter().find(|reason| reason.code == code)?;
    reason.details.iter().find(|(n, _)| *n == name).map(|(_, detail)| detail)
}

fn code_of(reason: &board::Reason) -> String {
    match reason.details.first() {
        Some(("level", Detail::Word(level))) => format!("{} {level}", reason.code),
        _ => reason.code.into(),
    }
}

/// Whether the board explains a job as the model does.
pub fn explained(world: &World, model: &Model, job: &Job) -> Result<(), String> {
    let got = world.explain(&job.id).ok_or("it is not explained")?;
    let number = |n: usize| Some(Detail::Number(n as i64));
    let mut want = model.causes(job);
    same("claimable", got.claimable, model.claimable(job))?;
    if job.state == State::Blocked && !job.after.is_empty() {
        let edges = number(model.edges(job).len());
        same("what it waits for", detail(&got, "dependencies", "count"), edges.as_ref())?;
    }
    if job.batch.is_some() {
        let live = number(model.live_children(&job.id).len());
        same("its children", detail(&got, "children", "pending"), live.as_ref())?;
    }
    if job.state == State::Ready {
        let claim = Claim { worker: b"somebody", queues: &[&job.queue], ..Claim::default() };
        let given = world.board.claim(&world.peek(), &claim, 0).unwrap().map(|claimed| claimed.slot);
        let next = given.is_some() && given == world.board.find(&job.id);
        // One that has expired goes before anybody can claim it.
        let next = next && job.expires() > model.now;
        same("a reason", want.is_empty(), got.claimable)?;
        same("what a claim gives is claimable", next && !got.claimable, false)?;
        want.extend(match (got.claimable, next) {
            (false, _) => vec!["line".into()],
            (true, true) => vec!["unclaimed".into(), "line".into()],
            (true, false) => vec!["line".into(), "unclaimed".into()],
        });
        if job.expires() > model.now && job.expires() < NEVER {
            want.push("expires".into());
        }
        let line = |other: &&Job| (&other.queue, &other.group) == (&job.queue, &job.group);
        let ready = model.jobs.iter().filter(|other| other.state == State::Ready);
        let ahead = ready.filter(line).filter(|other| other.rank() < job.rank()).count();
        same("its place in line", detail(&got, "line", "ahead"), number(ahead).as_ref())?;
    }
    want.extend(job.origin.as_ref().map(|_| "dead".into()));
    if want.iter().any(|code| code == "ordered") {
        let Some(Detail::Bytes(id)) = detail(&got, "ordered", "id") else {
            return Err("nobody before it".into());
        };
        let other = &model.jobs[model.at(id).ok_or("an unknown job before it")?];
        same("the group of the one before it", (&other.queue, &other.group), (&job.queue, &job.group))?;
        let begun = other.state == State::Claimed || other.attempt > 0;
        let before = other.state == State::Ready && other.rank() < job.rank();
        same("the one before it", !other.state.ended() && other.id != job.id && (begun || before), true)?;
    }
    same("reasons", got.reasons.iter().map(code_of).collect::<Vec<_>>(), want)
}
