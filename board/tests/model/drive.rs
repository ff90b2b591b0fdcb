//! Runs one command on the board and on the model, and compares what they say.

use board::*;

use crate::commands::{
    Act, Change, Command, Key, Named, Other, Part, Signals, Talk, Target, Token, Who, Written,
};
use crate::compare::{self, same};
use crate::mirror::{self, Mirror};
use crate::naive::{Bytes, Job, Model};
use crate::room::Taken;
use crate::schedules;
use crate::selections;
use crate::world::work::Waited;
use crate::world::{Done, World};

pub const QUEUES: [&[u8]; 5] = [b"default", b"mail", b"q\0\xff", b"slow", b"nobody posts here"];
pub const NAMES: [&[u8]; 4] = [b"", b"resize", b"\xf0%s", b"unused"];
pub const GROUPS: [&[u8]; 4] = [b"acme", b"g\0\xff", b"ann", b"nobody"];
pub const WORKERS: [&[u8]; 4] = [b"ann", b"bob", b"cy\xff\0", b"dan"];
pub const USERS: [&[u8]; 3] = [b"eve", b"fay\xff\0", b"gus"];
pub const LIMITS: [&[u8]; 3] = [b"api", b"l\0\xff", b"slots"];
const KEYS: [&[u8]; 3] = [b"k", b"l\xff\0", b"m"];
pub const CHOSEN: [&[u8]; 8] = [b"a", b"b", b"c", b"d", b"e\0\xff", b"f", b"g", b"h"];
pub const TAGS: [&[u8]; 5] = [b"red", b"blue", b"\0\xff", b"re", b"a longer tag"];
pub const KINDS: [&[u8]; 4] = [b"resize", b"\xf0%s", b"lapsed", b"timeout"];
pub const SIGNALS: [&[u8]; 4] = [b"approved", b"p\0\xff", b"fetch", b"x"];
const STEPS: [&[u8]; 4] = [b"fetch", b"charge", b"s\0\xff", b"a"];
const TEXTS: [&[u8]; 4] = [b"", b"x", b"some text", b"\x80\r\n%n"];

pub fn text(n: u8) -> &'static [u8] {
    TEXTS[n as usize % TEXTS.len()]
}

fn pairs(meta: &[(u8, u8)]) -> Meta<'static> {
    meta.iter().map(|(f, v)| pair(WORKERS[*f as usize], text(*v))).collect()
}

pub fn report(talk: &Talk) -> Report<'static> {
    Report {
        progress: talk.progress,
        stage: talk.stage.map(text),
        payload: talk.payload.map(text),
        meta: pairs(&talk.meta),
        log: talk.log.then_some(b"a line"),
    }
}

pub fn steps(numbers: &[u8]) -> Vec<&'static [u8]> {
    numbers.iter().map(|n| STEPS[*n as usize % STEPS.len()]).collect()
}

pub fn tags(numbers: &[u8]) -> Vec<&'static [u8]> {
    numbers.iter().map(|n| TAGS[*n as usize]).collect()
}

/// Where a requeued job goes: 4 is its origin.
pub fn to(queue: Option<u8>) -> To<'static> {
    match queue {
        None => To::Same,
        Some(4) => To::Origin,
        Some(queue) => To::Queue(QUEUES[queue as usize]),
    }
}

type Edges = Option<Vec<(Bytes, OnFailure)>>;

fn after(edges: &Edges, children: Option<OnFailure>, strict: bool) -> Option<After<'_>> {
    let jobs = edges.iter().flatten().map(|(id, on)| (&id[..], *on)).collect();
    (edges.is_some() || children.is_some()).then_some(After { jobs, strict, children })
}

fn gate(signals: &Signals) -> Gate {
    let Signals(names, any, within, on_timeout) = signals;
    let names = names.iter().map(|n| ByteString::from(SIGNALS[*n as usize])).collect();
    Gate { names, any: *any, within: *within, on_timeout: *on_timeout }
}

fn gated(signals: &Option<Signals>) -> Option<Box<Gate>> {
    signals.as_ref().map(|signals| Box::new(gate(signals)))
}

pub fn signal(name: u8, value: u8, sender: Option<u8>) -> Signal<'static> {
    let sender = sender.map(|n| USERS[n as usize]);
    Signal { name: SIGNALS[name as usize], value: text(value), sender }
}

fn take_key(key: &Key) -> TakeKey<'static> {
    TakeKey { key: KEYS[key.0 as usize], until: key.1, time: key.2, on_conflict: key.3 }
}

pub struct Pair {
    world: World,
    model: Model,
    ids: Vec<Bytes>,
    tokens: Vec<u64>,
    step: u64,
    /// What the last worker's verb was about, so that it can be sent again.
    said: Option<(Bytes, Bytes, Option<u64>)>,
    /// What one who follows the board knows.
    mirror: Mirror,
}

type Checked = Result<(), String>;

impl Pair {
    pub fn seeded(seed: u64) -> Pair {
        let mut world = World::seeded(seed);
        // The answers of a board do not depend on it.
        if seed % 2 == 1 {
            world.keep_candidates_above(seed as usize % 4);
        }
        let ids = CHOSEN.iter().map(|id| id.to_vec()).collect();
        let model = Model { now: world.now, latest: world.now, ..Model::default() };
        Pair { world, model, ids, tokens: vec![1], step: 0, said: None, mirror: Mirror::default() }
    }

    pub fn run(&mut self, command: &Command) -> Checked {
        self.step += 1;
        let token = self.world.board.token();
        self.world.board.watch(true);
        let taken = Taken::of(&mut self.world.board);
        let ears = Subscribers { events: ALL_EVENTS, workers: true, names: ALL_EVENTS, tracked: false };
        self.world.board.listen(ears);
        self.world.copy.listen(Subscribers { tracked: true, ..ears });
        let tracked = self.model.jobs.iter().filter(|job| job.tracked).map(|job| job.id.clone()).collect();
        self.command(command)?;
        // Groups whose tokens are there by now go on before anything else happens.
        self.world.settle_rests();
        self.model.tidy_buckets();
        self.model.tidy();
        self.model.close_rounds();
        taken.check(&mut self.world.board)?;
        self.mirror.follow(&mut self.world.board, &self.model)?;
        let messages = self.world.board.messages();
        mirror::hear_of_tracked(&messages, self.world.copy.messages(), tracked)?;
        self.mirror.hear(messages, self.world.board.take_kinds(), &self.model)?;
        if self.world.board.token() < token {
            return Err("the last token fell".into());
        }
        compare::boards(&self.world, &self.model)?;
        match self.step % 8 {
            0 => compare::copies(&self.world),
            4 => {
                self.world.relocate(self.step as u32 % 3);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub fn finish(&mut self) -> Checked {
        compare::copies(&self.world)?;
        self.world.reload();
        compare::boards(&self.world, &self.model)
    }

    fn pick(&self, target: &Target) -> Bytes {
        match target {
            Target::Any(n) => self.ids[*n as usize % self.ids.len()].clone(),
            Target::In(state, n) => {
                let those: Vec<&Job> = self.model.jobs.iter().filter(|j| j.state == *state).collect();
                match those.is_empty() {
                    true => self.pick(&Target::Any(*n)),
                    false => those[*n as usize % those.len()].id.clone(),
                }
            }
        }
    }

    fn worker(&self, who: &Who, id: &[u8]) -> Bytes {
        match who {
            Who::Named(n) => WORKERS[*n as usize].to_vec(),
            Who::Anybody => ANYBODY.to_vec(),
            Who::Holder => {
                let job = self.model.at(id).map(|at| &self.model.jobs[at]);
                let hold = job.and_then(|j| j.hold.as_ref().or(j.past.as_ref().map(|p| &p.hold)));
                hold.map_or(WORKERS[0].to_vec(), |h| h.worker.clone())
            }
        }
    }

    fn token(&self, token: &Token, id: &[u8]) -> Option<u64> {
        let job = self.model.at(id).map(|at| &self.model.jobs[at]);
        let hold = job.and_then(|j| j.hold.as_ref().or(j.past.as_ref().map(|p| &p.hold)));
        match token {
            Token::Absent => None,
            Token::Old(n) => Some(self.tokens[*n as usize % self.tokens.len()]),
            Token::Right => match hold {
                Some(hold) => Some(hold.token),
                None => self.model.tombs.iter().find(|t| t.id.as_deref() == Some(id)).map(|t| t.token),
            },
        }
    }

    /// Settles jobs on both sides until none is overdue: the end of one may be news to another
    /// that waits for it.
    fn settle_all<'i>(&mut self, ids: impl IntoIterator<Item = &'i Bytes> + Clone) -> Checked {
        loop {
            let revision = self.world.board.revision();
            for id in ids.clone() {
                self.settle(id)?;
            }
            if self.world.board.revision() == revision {
                return Ok(());
            }
        }
    }

    /// Settles a job on both sides.
    fn settle(&mut self, id: &[u8]) -> Checked {
        // One at a time: the model reads each drawn pause from the board before it is gone.
        for n in 0.. {
            let rules = self.world.rules.clone();
            let env = self.world.env(&rules);
            let slot = self.world.board.find(id);
            let effect = slot.and_then(|slot| self.world.board.overdue(slot, &env));
            let due = self.model.at(id).is_some_and(|at| self.model.overdue(&self.model.jobs[at]));
            same("overdue", effect.is_some(), due)?;
            let Some(effect) = effect else { return same("settled in three", n <= 3, true) };
            self.world.act(effect);
            let board = &self.world.board;
            self.model.settle_once(id, &|id| board.record_of(board.find(id)?)?.due());
        }
        Ok(())
    }

    /// Settles in the model a job that may wait for others now. The protocol has done so on the board:
    /// one of these may have ended without success.
    fn settle_again(&mut self, id: &[u8]) {
        for _ in 0..3 {
            if self.model.at(id).is_some_and(|at| self.model.overdue(&self.model.jobs[at])) {
                let board = &self.world.board;
                self.model.settle_once(id, &|id| board.record_of(board.find(id)?)?.due());
            }
        }
    }

    fn named(&mut self, target: &Target) -> Result<Bytes, String> {
        let id = self.pick(target);
        self.settle(&id)?;
        Ok(id)
    }

    /// Who says it, of which job, with which token.
    fn spoken(
        &mut self,
        who: &Who,
        id: &Target,
        token: &Token,
    ) -> Result<(Bytes, Bytes, Option<u64>), String> {
        let id = self.named(id)?;
        let said = (self.worker(who, &id), id.clone(), self.token(token, &id));
        let repeat = matches!((who, token), (Who::Named(3), Token::Right | Token::Absent));
        let said = match self.said.take() {
            Some(before) if repeat => before,
            _ => said,
        };
        self.settle(&said.1)?;
        self.said = Some(said.clone());
        Ok(said)
    }

    /// A chunk of output with a number near the next one.
    fn chunk(&self, id: &[u8], chunk: &Option<Written>) -> Option<Chunk<'static>> {
        let (off, n) = (*chunk)?;
        let next = self.model.at(id).map_or(1, |at| self.model.written(at) + 1);
        let number = (next as i64 + off).max(1) as u64;
        Some(Chunk { number, text: TEXTS[1 + n as usize % 3] })
    }

    /// Costs of those limits that exist.
    fn costs(&self, named: &Option<Named>) -> Option<Costs<'static>> {
        let known = |(limit, _): &(&[u8], i64)| self.model.is_limit(limit);
        let costs = named.as_ref()?.iter().map(|(n, cost)| (LIMITS[*n as usize], *cost));
        Some(costs.filter(known).collect::<Costs<'static>>()).filter(|costs| !costs.is_empty())
    }

    fn command(&mut self, command: &Command) -> Checked {
        match command {
            Command::Say(say, verb) => {
                let all =
                    |named: &Named| named.iter().map(|(n, cost)| (LIMITS[*n as usize], *cost)).collect();
                let pause = say.pause.map(|(limit, ms)| (LIMITS[limit as usize], ms));
                let spend = Spend { cost: say.cost, costs: say.costs.as_ref().map(all), pause };
                (self.world.spend, self.model.spend) = (spend.clone(), spend);
                let done = self.command(verb);
                (self.world.spend, self.model.spend) = Default::default();
                done
            }
            Command::Post { .. } => self.post(command),
            Command::Flow(parts) => self.flow(parts),
            Command::Claim { worker, queues, order, lease, count } => {
                let queues: Vec<&[u8]> = queues.iter().map(|q| QUEUES[*q as usize]).collect();
                let worker = WORKERS[*worker as usize];
                let claim = Claim { worker, queues: &queues, order: *order, lease: *lease };
                self.world.turn += 1;
                let turn = self.world.turn;
                let version = |job: &Job| Some((job.id.clone(), self.world.record(&job.id)?.version()));
                self.model.rounds.versions = self.model.jobs.iter().filter_map(version).collect();
                let got = self.world.claim(&claim, *count);
                let got: Vec<_> = got.into_iter().map(|g| (g.id, g.token)).collect();
                let chosen: Vec<Bytes> = got.iter().map(|(id, _)| id.clone()).collect();
                let want = self.model.claim(&claim, *count, turn, &chosen);
                self.tokens.extend(want.iter().map(|(_, token)| *token));
                same("claims", got, want)
            }
            Command::ClaimId { worker, id, lease } => {
                let id = self.named(id)?;
                let worker = self.worker(worker, &id);
                let claim = Claim { worker: &worker, lease: *lease, ..Claim::default() };
                let got = self.world.claim_id(&claim, &id).map(|g| (g.id, g.token));
                let want = self.model.claim_id(&claim, &id);
                self.tokens.extend(want.iter().map(|(_, token)| *token));
                same("claim by id", got, want)
            }
            Command::Heartbeat { who, id, token, lease, talk, chunk } => {
                let (worker, id, token) = self.spoken(who, id, token)?;
                let report = talk.as_ref().map(report);
                let beat = (
                    Speaker { worker: &worker, id: &id, token },
                    Heartbeat { lease: *lease, report, output: self.chunk(&id, chunk) },
                );
                same("heartbeat", self.world.heartbeat(&beat), self.model.heartbeat(&beat))
            }
            Command::Step { who, id, token, name, value, lease, replace, chunk } => {
                let (worker, id, token) = self.spoken(who, id, token)?;
                let [name] = steps(&[*name])[..] else { unreachable!() };
                let step = (
                    Speaker { worker: &worker, id: &id, token },
                    Step {
                        name,
                        value: text(*value),
                        lease: *lease,
                        replace: *replace,
                        output: self.chunk(&id, chunk),
                    },
                );
                same("step", self.world.step(&step), self.model.step(&step))
            }
            Command::Await { who, id, token, signals, children, step, payload } => {
                let (worker, id, token) = self.spoken(who, id, token)?;
                let step = step.map(|n| STEPS[n as usize]);
                let payload = payload.then_some(TEXTS[3]);
                let gate = signals.as_ref().map(gate).unwrap_or_default();
                let step = step.filter(|_| !gate.names.is_empty());
                let request = Await { gate, children: *children, step, payload };
                let wait = (Speaker { worker: &worker, id: &id, token }, request);
                let (got, want) = (self.world.await_signals(&wait), self.model.await_signals(&wait));
                if want == Ok(Waited::State(State::Blocked)) {
                    self.settle_again(&id);
                }
                same("await", got, want)
            }
            Command::Signal { id, name, value, sender } => {
                let id = self.named(id)?;
                let signal = signal(*name, *value, *sender);
                same("signal", self.world.signal(&id, &signal), self.model.signal(&id, &signal))
            }
            Command::Consume { who, id, token, result, retain, payload, force, chunk, extra } => {
                let (worker, id, token) = self.spoken(who, id, token)?;
                let result = result.then_some(TEXTS[2]);
                let payload = payload.then_some(TEXTS[3]);
                let consume = (
                    Speaker { worker: &worker, id: &id, token },
                    Consume {
                        result,
                        retain: *retain,
                        payload,
                        force: *force,
                        output: self.chunk(&id, chunk),
                        meta: pairs(&extra.meta),
                        only_in: extra.only_in.map(|n| QUEUES[n as usize]),
                    },
                );
                same("consume", self.world.work(&consume), self.model.consume(&consume))
            }
            Command::Advance {
                who,
                id,
                token,
                queue,
                name,
                delay,
                priority,
                payload,
                after: edges,
                children,
                chunk,
                signals,
                extra,
                price,
            } => {
                let (worker, id, token) = self.spoken(who, id, token)?;
                let edges: Edges =
                    edges.as_ref().map(|e| e.iter().map(|(id, on)| (self.pick(id), *on)).collect());
                let advance = (
                    Speaker { worker: &worker, id: &id, token },
                    Advance {
                        queue: QUEUES[*queue as usize],
                        name: name.map(|n| NAMES[n as usize]),
                        due: delay.map(|ms| self.world.now + ms),
                        priority: *priority,
                        payload: payload.then_some(TEXTS[3]),
                        after: after(&edges, *children, false),
                        output: self.chunk(&id, chunk),
                        gate: gated(signals),
                        meta: pairs(&extra.meta),
                        only_in: extra.only_in.map(|n| QUEUES[n as usize]),
                        cost: price.0,
                        costs: self.costs(&price.1),
                    },
                );
                let (got, want) = (self.world.work(&advance), self.model.advance(&advance));
                if want == Ok(Done::Did) {
                    self.settle_again(&id);
                }
                same("advance", got, want)
            }
            Command::Fail { who, id, token, kind, message, retry, payload, retain, extra } => {
                let (worker, id, token) = self.spoken(who, id, token)?;
                let message = if *message { TEXTS[2] } else { b"" };
                let payload = payload.then_some(TEXTS[3]);
                let kind = NAMES[1 + *kind as usize];
                let report = Report {
                    payload,
                    log: extra.only_in.map(|_| TEXTS[2]),
                    ..Report::of(pairs(&extra.meta))
                };
                let fail = (
                    Speaker { worker: &worker, id: &id, token },
                    Fail { kind, message, retry: *retry, retain: *retain, report },
                );
                let got = self.world.work(&fail);
                let board = &self.world.board;
                let want = self.model.fail(&fail, &|id| board.record_of(board.find(id)?)?.due());
                same("fail", got, want)
            }
            Command::Abandon { who, id, token, delay, reason, extra } => {
                let (worker, id, token) = self.spoken(who, id, token)?;
                let reason = reason.then_some(TEXTS[2]);
                let report = Report::of(pairs(&extra.meta));
                let abandon =
                    (Speaker { worker: &worker, id: &id, token }, Abandon { delay: *delay, reason, report });
                same("abandon", self.world.work(&abandon), self.model.abandon(&abandon))
            }
            Command::Trash { who, id, token, reason, extra } => {
                let (worker, id, token) = self.spoken(who, id, token)?;
                let reason = reason.then_some(TEXTS[2]);
                let report = Report::of(pairs(&extra.meta));
                let trash = (Speaker { worker: &worker, id: &id, token }, Trash { reason, report });
                same("trash", self.world.work(&trash), self.model.trash(&trash))
            }
            Command::Cancel { id, force, by } => {
                let id = self.named(id)?;
                let by = by.map(|user| USERS[user as usize]);
                let got = self.world.cancel_by(&id, *force, by);
                same("cancel", got, self.model.cancel(&id, *force, by))
            }
            Command::Release(id, front) => {
                let id = self.named(id)?;
                same("release", self.world.release_to(&id, *front), self.model.release_to(&id, *front))
            }
            Command::Requeue { id, queue, fresh, payload } => {
                let id = self.named(id)?;
                let to = to(*queue);
                if let To::Queue(queue) = to {
                    if !self.may_go_to(Some(queue))? {
                        return Ok(());
                    }
                }
                let requeue = Requeue { to, fresh: *fresh, payload: payload.then_some(b"mended") };
                same("requeue", self.world.requeue_with(&id, &requeue), self.model.requeue(&id, &requeue))
            }
            Command::Delete(id, all) => {
                let id = self.named(id)?;
                let ids = if *all { self.model.with_dependants(&id) } else { vec![id] };
                self.settle_all(&ids)?;
                let ids: Vec<&[u8]> = ids.iter().map(|id| &id[..]).collect();
                let want = self.model.delete(&ids);
                same("delete", self.world.delete_all(&ids), want)
            }
            Command::Depend { id, what, strict } => {
                let id = self.named(id)?;
                let named: Vec<(Bytes, OnFailure)> = match what {
                    Change::Add(edges) => edges.iter().map(|(id, on)| (self.pick(id), *on)).collect(),
                    Change::Remove(ids) => ids.iter().map(|id| (self.pick(id), OnFailure::Hold)).collect(),
                    _ => Vec::new(),
                };
                let depend = match what {
                    Change::Add(_) => Depend::Add(After {
                        jobs: named.iter().map(|(id, on)| (&id[..], *on)).collect(),
                        strict: *strict,
                        ..After::default()
                    }),
                    Change::AddChildren(on) => Depend::Add(After { children: Some(*on), ..After::default() }),
                    Change::Remove(_) => Depend::Remove(named.iter().map(|(id, _)| &id[..]).collect()),
                    Change::RemoveSignals => Depend::RemoveSignals,
                    Change::RemoveChildren => Depend::RemoveChildren,
                    Change::Clear => Depend::Clear,
                };
                let (got, want) = (self.world.depend(&id, &depend), self.model.depend(&id, &depend));
                self.settle_again(&id);
                same("depend", got, want)
            }
            Command::Label { id, tag, untag, track } => {
                let id = self.named(id)?;
                let label = Label { tag: tags(tag), untag: tags(untag), track: *track };
                same("label", self.world.label(&id, &label), self.model.label(&id, &label))
            }
            Command::Update { id, priority, queue, delay, retries, lease, talk, unstep } => {
                let id = self.named(id)?;
                let update = Update {
                    priority: *priority,
                    queue: queue.map(|q| QUEUES[q as usize]),
                    due: delay.map(|ms| self.world.now + ms),
                    retries: *retries,
                    lease: *lease,
                    report: talk.as_ref().map(report),
                    unstep: steps(unstep),
                };
                if !self.may_go_to(update.queue)? {
                    return Ok(());
                }
                same("update", self.world.update(&id, &update), self.model.update(&id, &update))
            }
            Command::Select { deed, list, count, bytes } => {
                let (Act::Requeue(queue, _) | Act::Update { queue, .. }) = deed else {
                    return selections::select(&mut self.world, &mut self.model, deed, list, *count, *bytes);
                };
                if !self.may_go_to(queue.map(|q| QUEUES[q as usize]))? {
                    return Ok(());
                }
                selections::select(&mut self.world, &mut self.model, deed, list, *count, *bytes)
            }
            Command::Configure { queue, setting, value } => {
                let queue = queue.map(|q| QUEUES[q as usize]);
                if value.is_some() && !self.may_go_to(queue)? {
                    return Ok(());
                }
                self.world.configure(queue, *setting, *value);
                self.model.configure(queue, *setting, *value);
                let in_force = queue
                    .map_or_else(|| self.model.board_rule(*setting), |q| self.model.queue_rule(q, *setting));
                same(
                    "setting",
                    self.world.board.setting(Scope::of_queue(queue), *setting, &self.world.rules).0,
                    in_force,
                )
            }
            Command::ConfigureGroup { queue, group, setting, value } => {
                let queue = QUEUES[*queue as usize];
                let group = group.map_or(ALL_GROUPS, |g| GROUPS[g as usize]);
                if value.is_some() && !self.may_have(queue, Some(group))? {
                    return Ok(());
                }
                self.world.configure_group(queue, group, *setting, *value);
                self.model.configure_group(queue, group, *setting, *value);
                let in_force = self.model.group_rule(queue, group, *setting);
                same(
                    "setting",
                    self.world.board.setting(Scope::Group(queue, group), *setting, &self.world.rules).0,
                    in_force,
                )
            }
            Command::ConfigureLimit { limit, setting, value } => {
                let limit = LIMITS[*limit as usize];
                self.world.configure_limit(limit, *setting, *value);
                self.model.configure_limit(limit, *setting, *value);
                Ok(())
            }
            Command::NameLimits { queue, group, limits } => {
                let queue = QUEUES[*queue as usize];
                let group = group.map(|group| group.map_or(ALL_GROUPS, |g| GROUPS[g as usize]));
                let known = |limits: &Vec<u8>| -> Vec<&[u8]> {
                    let names = limits.iter().map(|n| LIMITS[*n as usize]);
                    names.filter(|name| self.model.is_limit(name)).collect()
                };
                let limits = limits.as_ref().map(known);
                if limits.is_some() && !self.may_have(queue, group)? {
                    return Ok(());
                }
                self.world.name_limits(queue, group, limits.as_deref());
                let limits = limits.map(|limits| limits.iter().map(|name| name.to_vec()).collect());
                self.model.name_limits(queue, group, limits);
                Ok(())
            }
            Command::NameDeadQueue { queue, dead } => {
                let (queue, dead) = (QUEUES[*queue as usize], dead.map(|q| QUEUES[q as usize]));
                let dead = dead.filter(|dead| *dead != queue);
                if dead.is_some() && !self.may_have(queue, None)? {
                    return Ok(());
                }
                self.world.name_dead_queue(queue, dead);
                match dead {
                    Some(dead) => self.model.dead.insert(queue.to_vec(), dead.to_vec()),
                    None => self.model.dead.remove(queue),
                };
                Ok(())
            }
            Command::Pause { queue, group, limit, time, release, slice } => {
                let queue = queue.map(|q| QUEUES[q as usize]);
                let group = group.map(|g| GROUPS[g as usize]);
                let limit = limit.map(|n| LIMITS[n as usize]);
                if limit.is_some_and(|limit| !self.model.is_limit(limit)) {
                    return Ok(());
                }
                if !queue.map_or(Ok(true), |queue| self.may_have(queue, group))? {
                    return Ok(());
                }
                let halt = PauseRequest { queue, group, limit, time: *time, release: *release };
                self.world.pause(&halt, *slice);
                self.model.pause(&halt, *slice);
                Ok(())
            }
            Command::Resume(queue, group, limit) => {
                let queue = queue.map(|q| QUEUES[q as usize]);
                let group = group.map(|g| GROUPS[g as usize]);
                let limit = limit.map(|n| LIMITS[n as usize]).filter(|limit| self.model.is_limit(limit));
                let place = PauseRequest { queue, group, limit, ..PauseRequest::default() };
                same("resume", self.world.resume_place(&place), self.model.resume(&place))
            }
            Command::Register { worker, role, meta, time, session, anew, line } => {
                let worker = WORKERS[*worker as usize];
                let role = role.map(|n| NAMES[1 + n as usize]);
                let (meta, time) = (pairs(meta), *time);
                let register = Register { worker, role, meta, time, session: *session, anew: *anew };
                self.model.register(&register);
                same("register", self.world.register(&register), Ok(()))?;
                let Some(line) = *line else { return Ok(()) };
                same(
                    "attend",
                    self.world.board.attend_session(worker, line),
                    self.model.attend_session(worker, line),
                )
            }
            Command::Deregister { worker, slice } => {
                let worker = WORKERS[*worker as usize];
                let got = self.world.deregister(worker, *slice);
                let board = &self.world.board;
                let due = |id: &[u8]| board.record_of(board.find(id)?)?.due();
                same("deregister", got, self.model.deregister(worker, *slice, &due))
            }
            Command::Quiet(worker, quiet) => {
                let worker = WORKERS[*worker as usize];
                let got = self.world.quiet(worker, *quiet).is_ok();
                same("quiet", got, self.model.quiet(worker, *quiet))
            }
            Command::Bind(id, connection) => {
                let id = self.named(id)?;
                self.model.bind(&id, *connection);
                self.world.bind(&id, *connection);
                Ok(())
            }
            Command::Close(connection) => {
                same("close", self.world.board.close(*connection), self.model.close(*connection))
            }
            Command::Rule { setting, value } => {
                self.world.rule(*setting, *value);
                self.model.rules.set(*setting, *value);
                Ok(())
            }
            Command::Schedule { .. } => self.schedule(command),
            Command::Unschedule(id) => {
                let id = schedules::IDS[*id as usize];
                let known = self.model.schedules.iter().any(|s| s.id == id);
                self.model.schedules.retain(|s| s.id != id);
                same("unschedule", self.world.delete_schedule(id).is_ok(), known)
            }
            Command::PauseSchedule(id, paused) => {
                let id = schedules::IDS[*id as usize];
                let got = self.world.pause_schedule(id, *paused).is_ok();
                same("pause", got, self.model.pause_schedule(id, *paused))?;
                self.drawn()
            }
            Command::RunSchedule(id) => {
                let id = schedules::IDS[*id as usize];
                same("run", self.world.run_schedule(id).ok(), self.model.run_schedule(id))
            }
            Command::Pass(ms) => {
                self.world.now += ms;
                self.model.now = self.world.now;
                self.model.latest = self.model.latest.max(self.model.now);
                Ok(())
            }
            Command::Hold(ms) => {
                self.world.hold = self.world.hold.max(self.world.now + ms);
                let rules = self.world.rules.clone();
                let env = self.world.env(&rules);
                self.world.board.reckon(&env);
                self.model.hold = self.world.hold;
                Ok(())
            }
            Command::Turn { slices, n } => self.turn(*slices as usize, *n),
            Command::Drain => {
                self.turn(usize::MAX, 3)?;
                let rules = self.world.rules.clone();
                let env = self.world.env(&rules);
                let soonest = self.world.board.reckon(&env);
                let want = self.model.soonest();
                // A group that had its tokens before the clock was put back keeps its turn.
                let keeps_turn = self.model.now < self.model.latest && want == self.model.next_rest();
                if keeps_turn && soonest > want {
                    return Ok(());
                }
                same("next event", soonest, want)
            }
            Command::List { .. } => compare::listing(&self.world, &self.model, command),
            Command::Reload => {
                self.world.reload();
                self.model.foreign = self.model.token;
                self.model.forget_connections();
                Ok(())
            }
            Command::ReplayOld => {
                let sent = &self.world.sent;
                let Some(old) = sent.get(self.step as usize * 7 % sent.len().max(1)) else { return Ok(()) };
                same("an old batch", self.world.copy.replay(old), Applied::Skipped)
            }
            Command::Gap => self.gap(),
        }
    }

    /// Whether jobs or settings may come to a queue, as a command asks before all else.
    fn may_go_to(&self, queue: Option<&[u8]>) -> Result<bool, String> {
        let Some(queue) = queue else { return Ok(true) };
        let got = self.world.board.check_queue(queue).map_err(|refusal| refusal.to_string());
        let may = got.is_ok();
        same("room for a queue", got, self.model.check_queues(&[queue])).map(|()| may)
    }

    /// Whether a queue, or a group of it, may have settings or a pause.
    fn may_have(&self, queue: &[u8], group: Option<&[u8]>) -> Result<bool, String> {
        if !self.may_go_to(Some(queue))? {
            return Ok(false);
        }
        let Some(group) = group.filter(|group| *group != ALL_GROUPS) else { return Ok(true) };
        let got = self.world.board.check_new_group(queue, Some(group)).map_err(|refusal| refusal.to_string());
        let may = got.is_ok();
        same("room for a group", got, self.model.check_group(queue, group)).map(|()| may)
    }

    fn post(&mut self, command: &Command) -> Checked {
        let Command::Post { id, again, exists, queue, name, priority, delay, options, meta, .. } = command
        else {
            return Ok(());
        };
        let Command::Post {
            after: edges,
            children,
            strict,
            group,
            user,
            most_live,
            unique,
            tags: given,
            parent,
            share,
            signals,
            costs,
            ..
        } = command
        else {
            return Ok(());
        };
        let edges: Edges = edges.as_ref().map(|e| e.iter().map(|(id, on)| (self.pick(id), *on)).collect());
        let id = id.map(|n| match again {
            true => self.ids[n as usize % self.ids.len()].clone(),
            false => CHOSEN[n as usize % CHOSEN.len()].to_vec(),
        });
        let parent = parent.as_ref().map(|target| self.pick(target));
        let holder = unique.as_ref().and_then(|key| self.model.held(KEYS[key.0 as usize]));
        let holder = holder.map(|held| held.id.clone());
        self.settle_all(id.iter().chain(&holder).chain(&parent))?;
        let post = Post {
            id: id.as_deref(),
            exists: if id.is_some() { *exists } else { Exists::Refuse },
            payload: text(self.step as u8),
            name: name.map(|n| NAMES[n as usize]),
            queue: queue.map(|q| QUEUES[q as usize]),
            priority: *priority,
            due: delay.map(|ms| self.world.now + ms),
            options: *options,
            meta: pairs(meta),
            after: after(&edges, *children, *strict),
            group: group.map(|n| GROUPS[n as usize]),
            user: user.map(|user| USERS[user as usize]),
            tags: given.as_deref().map(tags),
            parent: parent.as_deref(),
            share: share.filter(|_| parent.is_some()),
            most_live: most_live.filter(|_| user.is_some()),
            unique: unique.as_ref().map(take_key),
            gate: gated(signals),
            costs: self.costs(costs),
            ..Post::default()
        };
        let got = self.world.post(&post);
        let made = got.clone().ok().flatten().unwrap_or_default();
        // The id of the job that holds the key is none that was made.
        let known = self.ids.contains(&made) || made.starts_with(b"@");
        let made = if known { Bytes::new() } else { made };
        if id.is_none() && !made.is_empty() {
            self.ids.push(made.clone());
        }
        let want = self.model.post(&post, &made);
        same("post", got.map(|id| id.is_some()), want)
    }

    fn flow(&mut self, parts: &[Part]) -> Checked {
        let labels: Vec<Bytes> = (0..parts.len()).map(|n| format!("node {n}").into_bytes()).collect();
        let name = |other: &Other| match other {
            Other::Node(n) => labels[*n as usize % labels.len()].clone(),
            Other::Job(target) => self.pick(target),
        };
        let named: Vec<_> = parts
            .iter()
            .map(|part| {
                let id = part.id.map(|n| CHOSEN[n as usize % CHOSEN.len()].to_vec());
                let after = part.after.as_ref();
                let after = after.map(|jobs| jobs.iter().map(|(o, on)| (name(o), *on)).collect::<Vec<_>>());
                (id, after, part.parent.as_ref().map(name))
            })
            .collect();
        self.settle_all(named.iter().flat_map(|(id, _, parent)| [id, parent]).flatten())?;
        let now = self.world.now;
        let nodes: Vec<Node<'_>> = parts
            .iter()
            .zip(&named)
            .zip(&labels)
            .map(|((part, (id, jobs, parent)), label)| {
                let post = Post {
                    id: id.as_deref(),
                    payload: text(self.step as u8),
                    queue: part.queue.map(|q| QUEUES[q as usize]),
                    due: part.delay.map(|ms| now + ms),
                    after: after(jobs, part.children, part.strict),
                    parent: parent.as_deref(),
                    share: part.share.filter(|_| parent.is_some()),
                    user: part.user.map(|user| USERS[user as usize]),
                    most_live: part.most_live.filter(|_| part.user.is_some()),
                    unique: part
                        .unique
                        .as_ref()
                        .map(|key| TakeKey { on_conflict: OnConflict::Reject, ..take_key(key) }),
                    gate: gated(&part.signals),
                    ..Post::default()
                };
                Node { label, post }
            })
            .collect();
        let got = self.world.flow(nodes.clone());
        let ids = match &got {
            Ok(ids) => ids.clone(),
            // None of these is ever seen.
            Err(_) => nodes
                .iter()
                .zip(&labels)
                .map(|(node, label)| node.post.id.map_or_else(|| label.clone(), <[u8]>::to_vec))
                .collect(),
        };
        for (id, node) in ids.iter().zip(&nodes) {
            if got.is_ok() && node.post.id.is_none() {
                self.ids.push(id.clone());
            }
        }
        let want = self.model.flow(&nodes, &ids);
        same("flow", got.map_err(|_| ()).is_ok(), want)
    }

    fn schedule(&mut self, command: &Command) -> Checked {
        let Command::Schedule { id, every, cron, start, end, max, backlog, overlap, .. } = command else {
            return Ok(());
        };
        let Command::Schedule {
            jitter,
            delay,
            queue,
            group,
            user,
            most_live,
            unique,
            tags: given,
            signals,
            costs,
            ..
        } = command
        else {
            return Ok(());
        };
        let id = schedules::IDS[*id as usize];
        let old = self.model.schedules.iter().find(|s| s.id == id);
        // A child for each missed time only where these are few: a step may take a day.
        let few = match (every, cron, old) {
            (Some(ms), ..) => *ms >= 1_000_000,
            (_, Some(n), _) => *n == 2,
            (.., old) => old.is_some_and(|s| s.every >= 1_000_000 || (s.every == 0 && s.cron == 2)),
        };
        // Behind the words: the last two, three or seven.
        let most_missed = backlog.filter(|n| few && *n > 2).map_or(0, |n| [2, 3, 7][n as usize - 3]);
        let backlog = backlog.and_then(|n| Backlog::try_from(n.min(2)).ok());
        let backlog =
            if few { backlog } else { backlog.filter(|b| *b != Backlog::All).or(Some(Backlog::One)) };
        let cron = cron.map(|n| When::Cron(schedules::CRONS[n as usize].0));
        let set = SetSchedule {
            id,
            when: every.map(When::Every).or(cron),
            start: start.map(|ms| self.world.now + ms),
            end: end.map(|ms| (ms >= 0).then_some(self.world.now + ms)),
            max: max.map(|n| (n > 0).then_some(n)),
            backlog,
            most_missed,
            overlap: overlap.and_then(|n| Overlap::try_from(n).ok()),
            jitter: *jitter,
            delay: *delay,
            child: Post {
                payload: text(self.step as u8),
                queue: queue.map(|q| QUEUES[q as usize]),
                group: group.map(|n| GROUPS[n as usize]),
                tags: given.as_deref().map(tags),
                user: user.map(|user| USERS[user as usize]),
                most_live: most_live.filter(|_| user.is_some()),
                unique: unique.as_ref().map(take_key),
                gate: gated(signals),
                costs: self.costs(costs),
                ..Post::default()
            },
            ..SetSchedule::default()
        };
        let got = self.world.set_schedule(&set).is_ok();
        same("schedule", got, self.model.set_schedule(&set))?;
        self.drawn()
    }

    /// What the jitter drew is read from the board, and must lie where it may.
    fn drawn(&mut self) -> Checked {
        for schedule in &mut self.model.schedules {
            let Some(at) = self.world.board.schedule(&schedule.id).map(|s| s.at) else { continue };
            let most = if schedule.next == NEVER { NEVER } else { schedule.next + schedule.jitter };
            same("jitter within its bounds", (schedule.next..=most).contains(&at), true)?;
            schedule.at = at;
        }
        Ok(())
    }

    fn turn(&mut self, slices: usize, n: u32) -> Checked {
        let rules = self.world.rules.clone();
        self.world.board.overfull(&rules);
        for _ in 0..slices {
            let some = self.world.slice(n);
            let board = &self.world.board;
            let want = self.model.slice(n, &|id| board.record_of(board.find(id)?)?.due());
            same("a slice of time does something", some, want)?;
            self.drawn()?;
            if !some {
                break;
            }
        }
        self.world.commit();
        Ok(())
    }

    /// A copy that misses a batch says so, and takes no more.
    fn gap(&mut self) -> Checked {
        let mut copy = self.world.board.copy().map_err(|e| e.0.to_string())?;
        let mut batch = Batch::default();
        batch.begin(copy.revision() + 1, self.world.now);
        batch.push(&Configured { scope: Scope::Board, setting: Setting::Lease, value: Some(1) });
        let gap = ReplayError::Gap(copy.revision(), copy.revision() + 1);
        same("a gap", copy.replay(batch.finish()), Applied::Broken(gap))?;
        same("broken", copy.broken(), true)?;
        batch.begin(copy.revision(), self.world.now);
        same("after a gap", copy.replay(batch.finish()), Applied::Broken(ReplayError::Before))
    }
}
