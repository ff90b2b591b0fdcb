//! The verbs of producers and workers on the naive board. What time has left undone with the job is
//! settled before.

use board::{
    Advance, Claim, Consume, Exists, Fail, Heartbeat, OnConflict, Order, Post, Report, Retry, Setting,
    Speaker, State, Step, Tally, GIVERS,
};

use crate::children::Batch;
use crate::limits::Unique;
use crate::naive::*;
use crate::world::work::Stored;
use crate::world::{Done, GIVER};

pub enum Stand {
    /// And whether somebody else may say it.
    Holds(usize, bool),
    Late(usize, bool),
    Again(State),
}

impl Model {
    pub fn post(&mut self, post: &Post<'_>, made: &[u8]) -> Result<bool, String> {
        let id = post.id.unwrap_or(made);
        let at = self.at(id);
        let known = at.is_some() || self.tomb(id).is_some();
        match post.exists {
            Exists::Refuse if known => return Err(format!("EXISTS {}", shown(id))),
            Exists::Skip if known => return Ok(false),
            Exists::OnlyReplace if at.is_none() => return Ok(false),
            _ => {}
        }
        let (mut id, mut at, mut keeps) = (id.to_vec(), at, false);
        if let Some(key) = &post.unique {
            if !self.unbounded {
                self.check_new_key(key.key)?;
            }
            if let (Err(refusal), Some(held)) = (self.key_is_free(key.key, at), self.held(key.key)) {
                let holder = self.at(&held.id).filter(|_| held.there);
                let holder = holder.filter(|at| self.jobs[*at].state < State::Claimed);
                match (key.on_conflict, holder) {
                    (OnConflict::Return, _) => return Ok(true),
                    (OnConflict::Replace | OnConflict::Debounce, Some(_)) if at.is_none() => {
                        (id, at, keeps) = (held.id.clone(), holder, key.on_conflict == OnConflict::Replace);
                    }
                    _ => return Err(refusal),
                }
            }
        } else if let Some(unique) = at.and_then(|at| self.jobs[at].unique.as_ref()) {
            self.key_is_free(&unique.key, at)?;
            self.check_new_key(&unique.key)?;
        }
        let id = &id[..];
        let edges =
            post.after.as_ref().map(|after| self.decide(id, post.id, after, post.parent)).transpose()?;
        if let (None, Some(at), Some(parent)) = (&edges, at, post.parent) {
            let job = &self.jobs[at];
            let children = job.batch.as_ref().is_some_and(|batch| !batch.run);
            self.no_circle(id, job.after.iter().map(|edge| &edge.0), children, Some(parent))?;
        }
        let queue = post
            .queue
            .map_or_else(|| at.map_or(b"default".to_vec(), |at| self.jobs[at].queue.clone()), |q| q.to_vec());
        if !self.unbounded {
            self.check_queues(&[&queue])?;
        }
        let name =
            post.name.map_or_else(|| at.map_or(Vec::new(), |at| self.jobs[at].name.clone()), |n| n.to_vec());
        self.check_parent(at.and(Some(id)), post)?;
        if let (Some(user), Some(most)) = (post.user, post.most_live) {
            if self.live_of(user, &name, at) >= most {
                return Err("LIMIT maxlive".into());
            }
        }
        let group = post.group.or_else(|| self.jobs[at?].group.as_deref());
        self.has_room(&queue, group, at)?;
        if let Some(at) = at.filter(|_| !keeps) {
            self.free_key(at);
        }
        if let Some(at) = at {
            self.ends_wait(at);
            if self.jobs[at].batch.as_ref().is_some_and(|batch| batch.run) {
                self.ends_batch(at);
            }
        }
        let old = at.map(|at| self.jobs.remove(at));
        let before = old.as_ref().map(|old| old.state);
        let mut past = old.as_ref().and_then(|j| j.past.clone());
        if let Some(hold) = old.as_ref().and_then(|j| j.hold.clone()) {
            past = Some(Past { hold, way: Way::Taken });
        }
        if let Some(past) = past.as_mut() {
            past.way = Way::Taken;
        }
        self.posts += 1;
        let mut job = Job {
            id: id.to_vec(),
            order: self.posts,
            state: State::Ready,
            queue,
            name,
            payload: post.payload.to_vec(),
            priority: post.priority.unwrap_or_else(|| old.as_ref().map_or(0, |j| j.priority)),
            options: post.options.or(old.as_ref().map(|j| j.options).unwrap_or_default()),
            meta: old.as_ref().map(|j| j.meta.clone()).unwrap_or_default(),
            posted: old.as_ref().map_or(self.now, |j| j.posted),
            since: old.as_ref().filter(|_| keeps).and_then(|j| j.since),
            due: 0,
            idle: old.as_ref().filter(|_| keeps).map_or(0, |j| j.idle),
            idle_from: old.as_ref().filter(|_| keeps).and_then(|j| j.idle_from),
            attempt: 0,
            fails: 0,
            lapses: 0,
            hold: None,
            past,
            ghosts: Vec::new(),
            kind: None,
            message: None,
            stage: None,
            reason: None,
            result: None,
            progress: None,
            ended: 0,
            drop_at: NEVER,
            after: old.as_ref().map(|j| j.after.clone()).unwrap_or_default(),
            pinned: false,
            intended: None,
            sent_on: None,
            group: post.group.map(<[u8]>::to_vec).or_else(|| old.as_ref().and_then(|j| j.group.clone())),
            steps: Vec::new(),
            output: None,
            signals: Vec::new(),
            timeouts: Vec::new(),
            gate: post.gate.as_deref().cloned().or_else(|| old.as_ref().and_then(|j| j.gate.clone())),
            wait: None,
            batch: old.as_ref().and_then(|j| j.batch.clone()).filter(|batch| !batch.run),
            waived: false,
            unique: match (&post.unique, keeps) {
                (Some(key), false) => Some(Unique::of(key)),
                _ => old.as_ref().and_then(|j| j.unique.clone()),
            },
            user: post.user.map(<[u8]>::to_vec).or(old.as_ref().and_then(|j| j.user.clone())),
            tags: old.as_ref().map(|j| j.tags.clone()).unwrap_or_default(),
            tracked: old.as_ref().is_some_and(|j| j.tracked),
            ageing: 0,
            ready: match old.as_ref().filter(|_| keeps) {
                Some(old) if old.state == State::Ready => old.ready,
                _ => self.now,
            },
            number: old.as_ref().map_or(self.posts, |j| j.number),
            tie: old.as_ref().and_then(|j| j.tie.clone()),
            gone: old.as_ref().map(|j| j.gone.clone()).unwrap_or_default(),
            height: old.as_ref().map_or(0, |j| j.height),
            origin: None,
            costs: old.as_ref().map(|j| j.costs.clone()).unwrap_or_default(),
            spent: None,
        };
        if let Some(costs) = &post.costs {
            job.costs = costs.iter().map(|(limit, cost)| (limit.to_vec(), *cost)).collect();
        }
        if let Some(tags) = &post.tags {
            job.tags = tags.iter().map(|tag| tag.to_vec()).collect();
        }
        job.ageing = self.queue_rule(&job.queue, Setting::Ageing);
        if old.is_none() && job.options.expire.is_none() {
            let expire = self.queue_rule(&job.queue, Setting::Expire);
            job.options.expire = Some(expire).filter(|ms| *ms > 0);
        }
        set_meta(&mut job, &post.meta);
        self.note(&job.queue, if old.is_some() { Tally::Replaced } else { Tally::Posted });
        self.jobs.push(job);
        if !keeps {
            self.take_key(self.jobs.len() - 1);
        }
        if let Some(edges) = edges {
            self.reattach(id, &edges);
            let at = self.at(id).unwrap();
            self.ends_batch(at);
            if let Some(on_failure) = post.after.as_ref().and_then(|after| after.children) {
                self.asks_for_children(at, Batch { open: self.in_flow, ..Batch::new(on_failure) });
            }
        }
        let due = match old.filter(|_| keeps) {
            Some(old) if old.state != State::Ready => old.due,
            Some(_) => self.now,
            None => post.due.unwrap_or(self.now),
        };
        self.arm(self.at(id).unwrap());
        self.wait(self.at(id).unwrap(), due);
        let share = self.jobs[self.at(id).unwrap()].tie.as_ref().map(|tie| tie.share);
        if at.is_some() {
            self.begin_in_family(id, before.is_some_and(State::ended));
        }
        self.adopt(id, post, share);
        Ok(true)
    }

    fn hand(&mut self, at: usize, claim: &Claim<'_>) -> (Bytes, u64) {
        self.count_claim(at);
        let job = &self.jobs[at];
        let lease = claim.lease.unwrap_or_else(|| self.job_rule(job, job.options.lease, Setting::Lease));
        let timeout = self.job_rule(job, job.options.timeout, Setting::Timeout);
        let giver = if self.foreign % GIVERS == GIVER { GIVER ^ 1 } else { GIVER };
        let next = self.token - self.token % GIVERS + GIVERS + giver;
        let by_clock = ((self.now as u64) << 11) + giver;
        self.token = if by_clock > self.token { by_clock } else { next };
        let hold = Hold {
            worker: claim.worker.to_vec(),
            token: self.token,
            cancel: false,
            claimed: self.now,
            lease,
            lease_end: self.now + lease,
            run_end: if timeout > 0 { self.now + timeout } else { NEVER },
            grace: self.queue_rule(&job.queue, Setting::Grace),
            cancel_end: NEVER,
            in_grace: false,
            session: 0,
            connection: None,
        };
        self.frees_at_start(at);
        let job = &mut self.jobs[at];
        job.state = State::Claimed;
        job.attempt += 1;
        if let Some(past) = job.past.take().filter(|p| p.way == Way::Lapsed) {
            // Sixteen are remembered; from then on everybody counts.
            if job.ghosts.len() < 16 && !job.ghosts.contains(&past.hold.worker) {
                job.ghosts.push(past.hold.worker);
            }
        }
        job.hold = Some(hold);
        (job.id.clone(), self.token)
    }

    /// The queues in which any job is.
    fn queues(&self) -> Vec<Bytes> {
        let mut queues: Vec<Bytes> = self.jobs.iter().map(|j| j.queue.clone()).collect();
        queues.sort();
        queues.dedup();
        queues
    }

    /// Claims; of groups whose turn it may be, those that were chosen.
    pub fn claim(
        &mut self,
        claim: &Claim<'_>,
        count: usize,
        turn: u64,
        chosen: &[Bytes],
    ) -> Vec<(Bytes, u64)> {
        let mut got = Vec::new();
        for n in 0..count {
            if self.workers.quiet(claim.worker) {
                break;
            }
            let chosen = chosen.get(n);
            let mut queues: Vec<Bytes> = claim.queues.iter().map(|q| q.to_vec()).collect();
            let each = |queues: &[Bytes]| queues.iter().find_map(|q| self.next_of(q, chosen));
            let best = |queues: &[Bytes]| {
                let heads = queues.iter().filter_map(|q| self.next_of(q, chosen));
                heads.min_by_key(|at| self.jobs[*at].plain_rank())
            };
            let at = match claim.order {
                _ if queues.is_empty() => best(&self.queues()),
                Order::Listed => each(&queues),
                Order::Rotate => {
                    let by = (turn + n as u64) % queues.len() as u64;
                    queues.rotate_left(by as usize);
                    each(&queues)
                }
                Order::Best => best(&queues),
            };
            let Some(at) = at else { break };
            self.turn(at);
            self.take_tokens(at);
            got.push(self.hand(at, claim));
        }
        got
    }

    pub fn claim_id(&mut self, claim: &Claim<'_>, id: &[u8]) -> Result<(Bytes, u64), String> {
        let at = self.at(id).ok_or("NOJOB no such job")?;
        let job = &self.jobs[at];
        match (&job.hold, job.state) {
            (Some(hold), _) if hold.worker == claim.worker => Err("CLAIMED you".into()),
            (Some(hold), _) => Err(format!("CLAIMED {}", shown(&hold.worker))),
            (_, State::Ready) if self.paused(Some(&job.queue)).is_some() => Err("NOTREADY paused".into()),
            (_, State::Ready) if self.workers.quiet(claim.worker) => Err("NOTREADY quiet".into()),
            (_, State::Ready) if self.full(&job.queue) => Err("LIMIT concurrency".into()),
            (_, State::Ready) if self.kept_back(job, true).is_some() => {
                Err(self.kept_back(job, true).unwrap().into())
            }
            (_, State::Ready) if self.has_paused_limit(job) => Err("NOTREADY paused".into()),
            (_, State::Ready) if self.tokens_at(job) > self.now => Err("LIMIT rate".into()),
            (_, State::Ready) => {
                self.take_tokens(at);
                self.had_turn(at);
                Ok(self.hand(at, claim))
            }
            (_, state) if state.ended() => Err(format!("ENDED {}", state.name())),
            (_, state) => Err(format!("NOTREADY {}", state.name())),
        }
    }

    pub fn stand(
        &self,
        worker: &[u8],
        id: &[u8],
        token: Option<u64>,
        way: Option<Way>,
    ) -> Result<Stand, String> {
        let anybody = worker == b"*";
        let ownerless = self.board_rule(Setting::Ownerless) == 1;
        if anybody && !ownerless {
            return Err("ERR worker must not be '*' on a board that is not ownerless".into());
        }
        let Some(at) = self.at(id) else {
            let same = |t: &Tomb| match t.state {
                State::Complete => way == Some(Way::Consumed),
                State::Failed => way == Some(Way::Failed),
                State::Trashed => way == Some(Way::Trashed),
                _ => false,
            };
            return match self.tomb(id) {
                Some(t) if t.token > 0 && token == Some(t.token) && same(t) => Ok(Stand::Again(t.state)),
                Some(t) if ownerless && t.state == State::Cancelled => {
                    Err("CANCELLED the job was cancelled".into())
                }
                Some(t) if ownerless => Err(format!("ENDED {}", t.state.name())),
                _ => Err("NOJOB no such job".into()),
            };
        };
        let job = &self.jobs[at];
        if way == Some(Way::Advanced) {
            let sent = job.sent_on.as_ref().filter(|(by, _)| anybody || by == worker);
            if sent.is_some_and(|(_, under)| token == Some(*under)) {
                return Ok(Stand::Again(job.state));
            }
        }
        let ghost = job.ghosts.len() >= 16 || job.ghosts.iter().any(|w| w == worker);
        let check = |current: u64| match token {
            Some(t) if t != current => Err(format!("STALE token {t} is not the current one")),
            None if ghost && !anybody => {
                Err("STALE an earlier claim of yours lapsed: give the token".to_string())
            }
            _ => Ok(()),
        };
        if let Some(hold) = &job.hold {
            if hold.worker != worker && !anybody {
                return Err(format!("NOTOWNER {}", shown(&hold.worker)));
            }
            return check(hold.token).map(|()| Stand::Holds(at, anybody && token.is_none()));
        }
        if let Some(past) = job.past.as_ref().filter(|p| anybody || p.hold.worker == worker) {
            if token == Some(past.hold.token) && way == Some(past.way) && way != Some(Way::Advanced) {
                return Ok(Stand::Again(job.state));
            }
            if past.way == Way::Lapsed && !job.state.ended() {
                if anybody && way.is_some() && way != Some(Way::Awaiting) {
                    return Ok(Stand::Late(at, token != Some(past.hold.token)));
                }
                return check(past.hold.token).map(|()| Stand::Late(at, false));
            }
        }
        let ends = [Way::Consumed, Way::Failed, Way::Trashed].map(Some);
        if anybody && !job.state.ended() && ends.contains(&way) {
            return Ok(Stand::Late(at, true));
        }
        Err(match job.state {
            State::Cancelled => "CANCELLED the job was cancelled".into(),
            state if state.ended() => format!("ENDED {}", state.name()),
            state => format!("NOTCLAIMED {}", state.name()),
        })
    }

    /// The holder's job, or the late worker's that gets it back; refused when its place is taken.
    pub fn back(&mut self, stand: Stand) -> Result<usize, String> {
        let at = match stand {
            Stand::Holds(at, _) => return Ok(at),
            Stand::Late(at, _) => at,
            Stand::Again(_) => unreachable!(),
        };
        if self.full(&self.jobs[at].queue) {
            return Err("LIMIT concurrency".into());
        }
        if let Some(refusal) = self.kept_back(&self.jobs[at], false) {
            return Err(refusal.into());
        }
        self.note_at(at, Tally::Revived);
        let now = self.now;
        let grace = self.queue_rule(&self.jobs[at].queue, Setting::Grace);
        let job = &mut self.jobs[at];
        if let Some(from) = job.idle_from.take() {
            job.idle += (now - from).max(0);
        }
        job.state = State::Claimed;
        job.hold =
            job.past.take().map(|p| Hold { grace, in_grace: false, session: 0, connection: None, ..p.hold });
        Ok(at)
    }

    /// The lease begins again. Gives the end of the claim, and whether a cancel was requested.
    pub fn beat(&mut self, at: usize, lease: Option<i64>) -> (i64, bool) {
        let job = &mut self.jobs[at];
        let hold = job.hold.as_mut().unwrap();
        hold.lease = lease.unwrap_or(hold.lease);
        hold.lease_end = self.now + hold.lease;
        hold.in_grace = false;
        hold.session = hold.session.min(1);
        let cancel = hold.cancel;
        (job.deadline(), cancel)
    }

    pub fn step(&mut self, (speaker, step): &(Speaker<'_>, Step<'_>)) -> Result<Stored, String> {
        let stand = self.stand(speaker.worker, speaker.id, speaker.token, None)?;
        let (Stand::Holds(at, _) | Stand::Late(at, _)) = stand else { unreachable!() };
        let steps = &self.jobs[at].steps;
        let known = steps.iter().position(|(name, ..)| name == step.name);
        if known.is_none() || step.replace {
            let mut after = steps.clone();
            match known {
                Some(n) => (after[n].1, after[n].2) = (step.value.to_vec(), self.now),
                None => after.push((step.name.to_vec(), step.value.to_vec(), self.now)),
            }
            let size = |steps: &[(Bytes, Bytes, i64)]| -> usize {
                steps.iter().map(|(name, value, _)| name.len() + value.len()).sum()
            };
            let more = size(&after).saturating_sub(size(steps));
            self.has_memory(&self.jobs[at], usize::from(known.is_none()), more)?;
            let text = self.to_write(at, &step.output)?;
            self.check_say(at)?;
            self.write(at, text);
            self.jobs[at].steps = after;
        }
        let stored = known.is_none() || step.replace;
        let text = if stored { None } else { self.to_write(at, &step.output)? };
        self.check_say(at)?;
        self.say(at);
        let (deadline, cancel) = match self.back(stand) {
            Ok(at) => {
                self.write(at, text);
                self.beat(at, step.lease)
            }
            Err(_) => (0, false),
        };
        let stored = self.jobs[at].steps.iter().find(|(name, ..)| name == step.name).unwrap();
        Ok((deadline, cancel, stored.1.clone()))
    }

    pub fn heartbeat(
        &mut self,
        (speaker, beat): &(Speaker<'_>, Heartbeat<'_>),
    ) -> Result<(i64, bool), String> {
        let stand = self.stand(speaker.worker, speaker.id, speaker.token, None)?;
        let (Stand::Holds(at, _) | Stand::Late(at, _)) = stand else { unreachable!() };
        let written = self.to_write(at, &beat.output);
        let kept_back = || self.full(&self.jobs[at].queue) || self.kept_back(&self.jobs[at], false).is_some();
        let text = match written {
            Err(_) if matches!(stand, Stand::Late(..)) && kept_back() => None,
            written => written?,
        };
        if !(matches!(stand, Stand::Late(..)) && kept_back()) {
            self.check_say(at)?;
        }
        let at = self.back(stand)?;
        self.say(at);
        self.write(at, text);
        let answer = self.beat(at, beat.lease);
        if let Some(report) = &beat.report {
            self.report(speaker.id, report, false);
        }
        Ok(answer)
    }

    pub fn consume(&mut self, (speaker, consume): &(Speaker<'_>, Consume<'_>)) -> Result<Done, String> {
        let (at, way) = match self.stand(speaker.worker, speaker.id, speaker.token, Some(Way::Consumed))? {
            Stand::Again(state) => return Ok(Done::Again(state)),
            Stand::Holds(at, taken) | Stand::Late(at, taken) => {
                (at, if taken { Way::Taken } else { Way::Consumed })
            }
        };
        if self.jobs[at].hold.as_ref().is_some_and(|h| h.cancel) && !consume.force {
            return Err("CANCELLED cancel was requested".into());
        }
        let setting = match consume.result {
            Some(_) => Setting::RetainResult,
            None => Setting::RetainComplete,
        };
        let retain = self.jobs[at].options.retain.unwrap_or_else(|| self.board_rule(setting));
        let retain = consume.retain.unwrap_or(retain);
        self.is_in(at, consume.only_in)?;
        let text = self.to_write(at, &consume.output)?;
        self.check_say(at)?;
        self.say(at);
        self.write(at, text);
        self.count_run(at);
        self.end_claim(at, way);
        let job = &mut self.jobs[at];
        job.result = consume.result.map(<[u8]>::to_vec);
        if let Some(payload) = consume.payload {
            job.payload = payload.to_vec();
        }
        set_meta(job, &consume.meta);
        self.end(at, State::Complete, retain);
        Ok(Done::Did)
    }

    pub fn advance(&mut self, (speaker, advance): &(Speaker<'_>, Advance<'_>)) -> Result<Done, String> {
        let (at, taken) = match self.stand(speaker.worker, speaker.id, speaker.token, Some(Way::Advanced))? {
            Stand::Again(state) => return Ok(Done::Again(state)),
            Stand::Holds(at, taken) | Stand::Late(at, taken) => (at, taken),
        };
        if self.jobs[at].hold.as_ref().is_some_and(|h| h.cancel) {
            return Err("CANCELLED cancel was requested".into());
        }
        self.is_in(at, advance.only_in)?;
        self.check_queues(&[advance.queue])?;
        let returns = self.jobs[at].origin.is_some();
        if let Some(unique) = self.jobs[at].unique.clone().filter(|_| returns) {
            self.key_is_free(&unique.key, Some(at))?;
            self.check_new_key(&unique.key)?;
        }
        let edges = match &advance.after {
            Some(after) => self.decide(speaker.id, None, after, None)?,
            None => Vec::new(),
        };
        let text = self.to_write(at, &advance.output)?;
        self.check_say(at)?;
        self.say(at);
        self.write(at, text);
        self.count_run(at);
        self.end_claim(at, if taken { Way::Taken } else { Way::Advanced });
        let ageing = self.queue_rule(advance.queue, Setting::Ageing);
        let job = &mut self.jobs[at];
        job.queue = advance.queue.to_vec();
        job.name = advance.name.map_or(job.name.clone(), <[u8]>::to_vec);
        job.priority = advance.priority.unwrap_or(job.priority);
        job.payload = advance.payload.map_or(job.payload.clone(), <[u8]>::to_vec);
        set_meta(job, &advance.meta);
        (job.attempt, job.fails, job.lapses, job.idle, job.idle_from) = (0, 0, 0, 0, None);
        (job.kind, job.message, job.stage, job.reason, job.progress) = (None, None, None, None, None);
        job.steps.clear();
        job.timeouts.clear();
        job.waived = false;
        job.gate = advance.gate.as_deref().cloned();
        job.options.cost = advance.cost.or(job.options.cost);
        if let Some(costs) = &advance.costs {
            job.costs = costs.iter().map(|(limit, cost)| (limit.to_vec(), *cost)).collect();
        }
        job.since = None;
        job.ghosts.clear();
        job.ageing = ageing;
        job.origin = None;
        let past = job.past.as_ref().map(|past| (past.hold.worker.clone(), past.hold.token));
        job.sent_on = past.filter(|_| !taken);
        if returns {
            self.take_key(at);
        }
        for edge in edges {
            self.attach(speaker.id, edge);
        }
        if let Some(on_failure) = advance.after.as_ref().and_then(|after| after.children) {
            self.asks_for_children(self.at(speaker.id).unwrap(), Batch::new(on_failure));
        }
        self.arm(self.at(speaker.id).unwrap());
        self.wait(self.at(speaker.id).unwrap(), advance.due.unwrap_or(self.now));
        self.begin_in_family(speaker.id, false);
        Ok(Done::Did)
    }

    fn is_in(&self, at: usize, queue: Option<&[u8]>) -> Result<(), String> {
        match queue {
            Some(queue) if self.jobs[at].queue != queue => {
                Err(format!("WRONGQUEUE {}", shown(&self.jobs[at].queue)))
            }
            _ => Ok(()),
        }
    }

    /// A claim whose holder was asked to stop ends in a cancel.
    pub fn cancelled(&mut self, at: usize, way: Way, reason: Option<&[u8]>, report: &Report<'_>) -> bool {
        let asked = self.jobs[at].hold.as_ref().is_some_and(|h| h.cancel);
        if asked {
            told(&mut self.jobs[at], report, false);
            self.call_off(at, way, reason);
        }
        asked
    }

    pub fn call_off(&mut self, at: usize, way: Way, reason: Option<&[u8]>) {
        if way != Way::Taken {
            self.count_run(at);
        }
        if self.jobs[at].hold.is_some() {
            self.end_claim(at, way);
        }
        self.jobs[at].reason = reason.map(<[u8]>::to_vec);
        self.end(at, State::Cancelled, self.retention(State::Cancelled));
    }

    pub fn fail(&mut self, (speaker, fail): &(Speaker<'_>, Fail<'_>), draw: Draw) -> Result<Done, String> {
        let (at, way) = match self.stand(speaker.worker, speaker.id, speaker.token, Some(Way::Failed))? {
            Stand::Again(state) => return Ok(Done::Again(state)),
            Stand::Holds(at, taken) | Stand::Late(at, taken) => {
                (at, if taken { Way::Taken } else { Way::Failed })
            }
        };
        self.check_say(at)?;
        self.say(at);
        if self.cancelled(at, way, Some(fail.message), &fail.report) {
            return Ok(Done::Did);
        }
        self.count_run(at);
        self.end_claim(at, way);
        told(&mut self.jobs[at], &fail.report, false);
        let retry = match fail.retry {
            Retry::Policy => None,
            Retry::After(ms) => Some(Some(ms)),
            Retry::No => Some(None),
        };
        self.failure(at, fail.kind, fail.message, retry, fail.retain, draw);
        Ok(Done::Did)
    }

    pub fn abandon(
        &mut self,
        (speaker, abandon): &(Speaker<'_>, board::Abandon<'_>),
    ) -> Result<Done, String> {
        let (at, way) = match self.stand(speaker.worker, speaker.id, speaker.token, Some(Way::Abandoned))? {
            Stand::Again(state) => return Ok(Done::Again(state)),
            Stand::Holds(at, taken) | Stand::Late(at, taken) => {
                (at, if taken { Way::Taken } else { Way::Abandoned })
            }
        };
        self.check_say(at)?;
        self.say(at);
        if self.cancelled(at, way, abandon.reason, &abandon.report) {
            return Ok(Done::Did);
        }
        self.count_run(at);
        self.note_at(at, Tally::Abandoned);
        self.end_claim(at, way);
        self.jobs[at].reason = abandon.reason.map(<[u8]>::to_vec);
        told(&mut self.jobs[at], &abandon.report, false);
        self.wait(at, self.now + abandon.delay.unwrap_or(0));
        Ok(Done::Did)
    }

    pub fn trash(&mut self, (speaker, trash): &(Speaker<'_>, board::Trash<'_>)) -> Result<Done, String> {
        let (at, way) = match self.stand(speaker.worker, speaker.id, speaker.token, Some(Way::Trashed))? {
            Stand::Again(state) => return Ok(Done::Again(state)),
            Stand::Holds(at, taken) | Stand::Late(at, taken) => {
                (at, if taken { Way::Taken } else { Way::Trashed })
            }
        };
        self.check_say(at)?;
        self.say(at);
        if self.cancelled(at, way, trash.reason, &trash.report) {
            return Ok(Done::Did);
        }
        self.count_run(at);
        self.end_claim(at, way);
        self.jobs[at].reason = trash.reason.map(<[u8]>::to_vec);
        told(&mut self.jobs[at], &trash.report, false);
        self.end(at, State::Trashed, self.retention(State::Trashed));
        Ok(Done::Did)
    }

    /// Progress of one that has children follows from them, unless an operator names it.
    pub fn report(&mut self, id: &[u8], report: &Report<'_>, back: bool) {
        let progress = report.progress.filter(|_| back || !self.is_mean(id));
        let at = self.at(id).unwrap();
        told(&mut self.jobs[at], &Report { progress, ..report.clone() }, back);
        if let Some(progress) = progress {
            self.count_progress(id, 1_000 * u32::from(progress), back);
        }
    }
}

fn set_meta(job: &mut Job, meta: &board::Meta<'_>) {
    for (field, value) in meta {
        match job.meta.iter_mut().find(|(f, _)| f[..] == field[..]) {
            Some(found) => found.1 = value.to_vec(),
            None => job.meta.push((field.to_vec(), value.to_vec())),
        }
    }
}

fn told(job: &mut Job, report: &Report<'_>, back: bool) {
    if let Some(progress) = report.progress {
        let old = job.progress.filter(|_| !back);
        job.progress = Some(progress.max(old.unwrap_or(0)));
    }
    job.stage = report.stage.map(<[u8]>::to_vec).or(job.stage.take());
    job.payload = report.payload.map_or(job.payload.clone(), <[u8]>::to_vec);
    set_meta(job, &report.meta);
}

/// Bytes as one line of text.
pub fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(|c: char| c.is_control(), "?")
}
