//! A board with a clock, and a copy of it that gets every batch: what the tests act on.
//!
//! Verbs on named jobs first settle what time has left undone with them, as the server does.
#![allow(dead_code)]

use std::collections::BTreeSet;
use std::rc::Rc;

use board::*;

/// For how long nothing ends by itself after a load, ms.
pub const RECOVERY: i64 = 700;

pub type Bytes = Vec<u8>;

pub struct World {
    pub board: Board,
    pub copy: Board,
    pub now: i64,
    pub hold: i64,
    pub turn: u64,
    pub rules: Rc<Rules>,
    /// Every batch so far.
    pub sent: Vec<Bytes>,
    /// The tags of all effects so far.
    pub tags: BTreeSet<u8>,
    token: u64,
    draws: u64,
    batch: Batch,
    open: bool,
}

/// What a worker's verb did: something, or it had been done before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    Did,
    Again(State),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Got {
    pub id: Bytes,
    pub token: u64,
}

/// What a slice of a selection came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    pub ids: Vec<Bytes>,
    pub held: Vec<Bytes>,
    pub next: Option<Reached>,
}

impl Default for World {
    fn default() -> Self {
        World {
            board: Board::default(),
            copy: Board::default(),
            now: 1_700_000_000_000,
            hold: 0,
            turn: 0,
            rules: Rc::default(),
            sent: Vec::new(),
            tags: BTreeSet::new(),
            token: 0,
            draws: 0,
            batch: Batch::default(),
            open: false,
        }
    }
}

impl World {
    pub fn seeded(seed: u64) -> World {
        World { draws: seed, ..World::default() }
    }

    /// Goes on with a board that came from elsewhere.
    pub fn on(board: Board) -> World {
        World { copy: board.copy().expect("a whole board"), board, ..World::default() }
    }

    pub fn env<'r>(&mut self, rules: &'r Rules) -> Env<'r> {
        self.draws = self.draws.wrapping_add(1);
        let random = mix(self.draws.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Env {
            now: self.now,
            random,
            token: self.token,
            hold: self.hold,
            recovery: RECOVERY,
            turn: self.turn,
            rules,
        }
    }

    /// Applies one effect as part of the command that runs.
    pub fn act<'e>(&mut self, effect: impl Into<Effect<'e>>) {
        let effect = effect.into();
        if !self.open {
            self.batch.begin(self.board.revision(), self.now);
            self.open = true;
        }
        self.batch.push(&effect);
        self.tags.insert(effect.tag());
        assert_eq!(self.board.apply(&effect, self.now), Ok(()), "{effect:?}");
        self.token = self.token.max(self.board.token());
    }

    /// Ends the command: the copy gets its batch.
    pub fn commit(&mut self) {
        if self.open {
            let batch = self.batch.finish();
            assert_eq!(self.copy.replay(batch), Applied::Done);
            self.sent.push(batch.to_vec());
            self.open = false;
        }
    }

    /// Does with one job what time should have done; gives how many things that were.
    pub fn settle(&mut self, id: &[u8]) -> usize {
        let rules = self.rules.clone();
        let mut done = 0;
        while let Some(effect) = {
            let env = self.env(&rules);
            self.board.find(id).and_then(|slot| self.board.overdue(slot, &env))
        } {
            self.act(effect);
            done += 1;
        }
        done
    }

    /// Lets groups go on that had to wait for tokens until now.
    pub fn settle_rests(&mut self) {
        let rules = self.rules.clone();
        while let Some(effect) = {
            let env = self.env(&rules);
            self.board.rest_over(&env, 2)
        } {
            self.act(effect);
        }
        self.commit();
    }

    /// One slice of a time turn, of at most `n` things; false when nothing was to be done.
    pub fn slice(&mut self, n: u32) -> bool {
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let effect = self.board.backlog(&env, n);
        let some = effect.is_some();
        if let Some(effect) = effect {
            self.act(effect);
        }
        some
    }

    /// Time passes, and everything due is done.
    pub fn pass(&mut self, ms: i64) {
        self.now += ms;
        let rules = self.rules.clone();
        self.board.overfull(&rules);
        while self.slice(7) {}
        self.commit();
        let env = self.env(&rules);
        assert!(self.board.reckon(&env) > self.now);
    }

    pub fn post(&mut self, post: &Post<'_>) -> Result<Option<Bytes>, String> {
        if let Some(id) = post.id {
            self.settle(id);
        }
        let holder = post.unique.as_ref().and_then(|key| self.board.holder_of(key.key, self.now));
        if let Some(id) = holder.map(|(id, _)| id.borrowed().to_vec()) {
            self.settle(&id);
        }
        if let Some(parent) = post.parent {
            self.settle(parent);
        }
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let answer = self.board.post(&env, post, 0).and_then(|answer| match answer {
            PostAnswer::Skip => Ok(Err(None)),
            PostAnswer::Holds(id) => Ok(Err(Some(id.borrowed().to_vec()))),
            PostAnswer::Do(posted) => self.board.adopt(post, &posted).map(|adopted| Ok((posted, adopted))),
        });
        let done = answer.map_err(|refusal| refusal.to_string()).map(|posted| {
            let (posted, adopted) = match posted {
                Ok(both) => both,
                Err(id) => return id,
            };
            let id = posted.text(<[u8]>::to_vec);
            self.act(posted);
            adopted.into_iter().for_each(|adopted| self.act(adopted));
            Some(id)
        });
        self.commit();
        done
    }

    /// Posts a flow; gives the ids of its jobs.
    pub fn flow(&mut self, nodes: Vec<Node<'_>>) -> Result<Vec<Bytes>, String> {
        for name in nodes.iter().flat_map(|node| [node.post.id, node.post.parent]).flatten() {
            self.settle(name);
        }
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let planned = self.board.plan_flow(&env, nodes).map_err(|refusal| refusal.to_string());
        let done = planned.map(|mut plan| {
            for at in plan.order().to_vec() {
                let post = plan.post(at).unwrap();
                let PostAnswer::Do(posted) = self.board.post(&env, &post, at as u64).unwrap() else {
                    panic!("a node of a flow was not posted");
                };
                let id = posted.text(<[u8]>::to_vec);
                self.act(posted);
                plan.came(at, id);
            }
            let adopted = plan.adopted(&self.board).unwrap();
            adopted.into_iter().for_each(|adopted| self.act(adopted));
            plan.ids().to_vec()
        });
        self.commit();
        done
    }

    fn got(&mut self, claimed: Claimed<'_>) -> Got {
        let (slot, token) = (claimed.slot, claimed.token);
        self.act(claimed);
        Got { id: self.board.record_of(slot).unwrap().id().to_vec(), token }
    }

    pub fn claim(&mut self, claim: &Claim<'_>, count: usize) -> Vec<Got> {
        let rules = self.rules.clone();
        let mut all = Vec::new();
        for n in 0..count {
            let env = self.env(&rules);
            let Some(claimed) = self.board.claim(&env, claim, n as u64) else { break };
            all.push(self.got(claimed));
        }
        self.commit();
        all
    }

    pub fn claim_id(&mut self, claim: &Claim<'_>, id: &[u8]) -> Result<Got, String> {
        self.settle(id);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let claimed = self.board.claim_id(&env, claim, id).map_err(|r| r.to_string());
        let got = claimed.map(|claimed| self.got(claimed));
        self.commit();
        got
    }

    fn hear(&mut self, worker: &[u8]) -> Result<(), String> {
        let heard = self.board.check_speaker(worker).map_err(|refusal| refusal.to_string());
        if heard.is_err() {
            self.commit();
        }
        heard
    }

    pub fn heartbeat(&mut self, beat: &Heartbeat<'_>) -> Result<(i64, bool), String> {
        self.hear(beat.worker)?;
        self.settle(beat.id);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.heartbeat(&env, beat).map_err(|r| r.to_string());
        let done = decided.map(|(revived, beaten)| {
            let slot = beaten.slot;
            if let Some(revived) = revived {
                self.act(revived);
            }
            self.act(beaten);
            self.board.hold_on(slot).unwrap()
        });
        self.commit();
        done
    }

    fn answered<'e, E: Into<Effect<'e>>>(
        &mut self,
        answer: Result<Answer<E>, Refusal>,
    ) -> Result<Done, String> {
        let done = match answer {
            Ok(Answer::Do(effect)) => {
                self.act(effect);
                Ok(Done::Did)
            }
            Ok(Answer::Again(state)) => Ok(Done::Again(state)),
            Err(refusal) => Err(refusal.to_string()),
        };
        self.commit();
        done
    }

    pub fn consume(&mut self, consume: &Consume<'_>) -> Result<Done, String> {
        self.hear(consume.worker)?;
        self.settle(consume.id);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let answer = self.board.consume(&env, consume);
        self.answered(answer)
    }

    pub fn advance(&mut self, advance: &Advance<'_>) -> Result<Done, String> {
        self.hear(advance.worker)?;
        self.settle(advance.id);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let answer = self.board.advance(&env, advance);
        self.answered(answer)
    }

    pub fn fail(&mut self, fail: &Fail<'_>) -> Result<Done, String> {
        self.hear(fail.worker)?;
        self.settle(fail.id);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let answer = self.board.fail(&env, fail);
        self.answered(answer)
    }

    pub fn abandon(&mut self, abandon: &Abandon<'_>) -> Result<Done, String> {
        self.hear(abandon.worker)?;
        self.settle(abandon.id);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let answer = self.board.abandon(&env, abandon);
        self.answered(answer)
    }

    pub fn trash(&mut self, trash: &Trash<'_>) -> Result<Done, String> {
        self.hear(trash.worker)?;
        self.settle(trash.id);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let answer = self.board.trash(&env, trash);
        self.answered(answer)
    }

    /// The slot of a job, time settled; `None` for an unknown id.
    fn named(&mut self, id: &[u8]) -> Option<u32> {
        self.settle(id);
        let slot = self.board.find(id);
        if slot.is_none() {
            self.commit();
        }
        slot
    }

    pub fn cancel(&mut self, id: &[u8], force: bool) -> Option<Result<&'static str, String>> {
        self.cancel_by(id, force, None)
    }

    pub fn cancel_by(
        &mut self,
        id: &[u8],
        force: bool,
        by: Option<&[u8]>,
    ) -> Option<Result<&'static str, String>> {
        let slot = self.named(id)?;
        if let Some(refusal) = by.and_then(|user| self.board.check_user(slot, user).err()) {
            self.commit();
            return Some(Err(refusal.to_string()));
        }
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.cancel(&env, slot, force).and_then(|answer| match answer {
            CancelAnswer::Already => Ok(answer),
            _ => self.board.check_depended(slot, &[slot]).map(|()| answer),
        });
        let done = match decided {
            Ok(CancelAnswer::Cancelled(effect)) => {
                self.act(effect);
                Ok("cancelled")
            }
            Ok(CancelAnswer::Requested(effect)) => {
                self.act(effect);
                Ok("requested")
            }
            Ok(CancelAnswer::Already) => Ok("already"),
            Err(refusal) => Err(refusal.to_string()),
        };
        self.commit();
        Some(done)
    }

    fn operated<'e>(&mut self, decided: Result<Effect<'e>, Refusal>) -> Option<Result<(), String>> {
        let done = decided.map(|effect| self.act(effect)).map_err(|r| r.to_string());
        self.commit();
        Some(done)
    }

    pub fn release(&mut self, id: &[u8]) -> Option<Result<(), String>> {
        let slot = self.named(id)?;
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.release(&env, slot);
        self.operated(decided)
    }

    pub fn requeue(&mut self, id: &[u8], queue: Option<&[u8]>) -> Option<Result<(), String>> {
        let slot = self.named(id)?;
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.requeue(&env, slot, queue).map(Effect::from);
        self.operated(decided)
    }

    pub fn delete(&mut self, id: &[u8]) -> bool {
        match self.delete_all(&[id]) {
            Ok(n) => n == 1,
            Err(refusal) => panic!("{refusal}"),
        }
    }

    /// Deletes a selection; how many there were.
    pub fn delete_all(&mut self, ids: &[&[u8]]) -> Result<usize, String> {
        let ids: Vec<&[u8]> = ids.iter().copied().filter(|id| self.named(id).is_some()).collect();
        let slots: Vec<u32> = ids.iter().filter_map(|id| self.board.find(id)).collect();
        let mut chosen = slots.clone();
        chosen.sort_unstable();
        let check = |slot: &u32| {
            let depended = self.board.check_depended(*slot, &chosen);
            depended.and_then(|()| self.board.check_childless(*slot, &chosen)).err()
        };
        let refused = chosen.iter().find_map(check);
        if refused.is_none() {
            for (id, slot) in ids.iter().zip(slots) {
                match self.board.record_of(slot).is_some() {
                    true => self.act(Deleted { slot }),
                    false => self.act(Forgotten { id }),
                }
            }
        }
        self.commit();
        refused.map_or(Ok(chosen.len()), |refusal| Err(refusal.to_string()))
    }

    /// The next slice of a selection by filters, and its deed unless it is dry. Gives the ids,
    /// in the order in which it was done, those held back, and where to go on.
    pub fn select(&mut self, selection: &Selection<'_>) -> Selected {
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let chosen = self.board.select(&env, selection);
        let id = |slot: &u32| self.board.record_of(*slot).unwrap().id().to_vec();
        let ids: Vec<Bytes> = chosen.slots.iter().map(id).collect();
        let held = chosen.held.iter().map(id).collect();
        let seqs: Vec<i64> = chosen.slots.iter().map(|slot| self.board.seq(*slot)).collect();
        let update = match selection.deed {
            Deed::Update(update) => Some(update),
            Deed::Label(_, update) => update,
            _ => None,
        };
        if let (Some(update), false) = (update, selection.dry || ids.is_empty()) {
            self.act(self.board.update_all(chosen.slots.clone(), update));
        }
        for (slot, seq) in chosen.slots.into_iter().zip(seqs).filter(|_| !selection.dry) {
            match selection.deed {
                Deed::Cancel { force } => match self.board.cancel(&env, slot, force).unwrap() {
                    CancelAnswer::Cancelled(effect) | CancelAnswer::Requested(effect) => self.act(effect),
                    CancelAnswer::Already => panic!("already cancelled"),
                },
                Deed::Release => self.act(self.board.release(&env, slot).unwrap()),
                Deed::Requeue(queue) => self.act(self.board.requeue(&env, slot, queue).unwrap()),
                // One that was kept for another alone has gone with it.
                Deed::Delete if self.board.seq(slot) != seq => {}
                Deed::Delete => self.act(Deleted { slot }),
                Deed::Update(_) => {}
                Deed::Label(label, _) => {
                    let labelled = self.board.label(slot, label).unwrap();
                    labelled.into_iter().for_each(|effect| self.act(effect));
                }
            }
        }
        self.commit();
        Selected { ids, held, next: chosen.next }
    }

    pub fn depend(&mut self, id: &[u8], depend: &Depend<'_>) -> Option<Result<(), String>> {
        let slot = self.named(id)?;
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.depend(&env, slot, depend).map(Effect::from);
        self.operated(decided)
    }

    pub fn label(&mut self, id: &[u8], label: &Label<'_>) -> Option<Result<(), String>> {
        let slot = self.named(id)?;
        let decided = self.board.label(slot, label);
        let done = decided.map(|effect| effect.into_iter().for_each(|e| self.act(e)));
        self.commit();
        Some(done.map_err(|refusal| refusal.to_string()))
    }

    pub fn update(&mut self, id: &[u8], update: &Update<'_>) -> Option<Result<(), String>> {
        let slot = self.named(id)?;
        let decided = self.board.update(slot, update).map(Effect::from);
        self.operated(decided)
    }

    /// Pauses; with `halt.release` the command itself takes back up to `slice` jobs.
    pub fn pause(&mut self, halt: &Halt<'_>, slice: u32) {
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let paused = self.board.pause(&env, halt);
        self.act(paused);
        if let Some(reclaimed) = self.board.reclaim(&env, slice) {
            self.act(reclaimed);
        }
        self.commit();
    }

    pub fn resume(&mut self, queue: Option<&[u8]>) -> bool {
        self.resume_group(queue, None)
    }

    pub fn resume_group(&mut self, queue: Option<&[u8]>, group: Option<&[u8]>) -> bool {
        let resumed = self.board.resume(queue, group);
        let some = resumed.is_some();
        if let Some(resumed) = resumed {
            self.act(resumed);
        }
        self.commit();
        some
    }

    /// Sets or resets a setting of a group, or of all, and looks at these.
    pub fn configure_group(&mut self, queue: &[u8], group: &[u8], setting: Setting, value: Option<i64>) {
        self.act(GroupConfigured { queue, group, setting, value });
        while let Some(reviewed) = self.board.review(2) {
            self.act(reviewed);
        }
        self.commit();
    }

    pub fn configure_limit(&mut self, limit: &[u8], setting: Setting, value: Option<i64>) {
        self.act(LimitConfigured { limit, setting, value });
        self.commit();
    }

    /// Gives a queue or a group a list of limits, which are there.
    pub fn name_limits(&mut self, queue: &[u8], group: Option<&[u8]>, limits: Option<&[&[u8]]>) {
        self.act(LimitsNamed::new(queue, group, limits));
        self.commit();
    }

    pub fn configure(&mut self, queue: Option<&[u8]>, setting: Setting, value: Option<i64>) {
        self.act(Configured { queue, setting, value });
        self.commit();
    }

    // --- workers ---

    pub fn register(&mut self, register: &Register<'_>) -> Result<(), String> {
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.register(&env, register).map_err(|r| r.to_string());
        let done = decided.map(|registered| self.act(registered));
        self.commit();
        done
    }

    /// Ends a registration; the command itself ends up to `slice` claims.
    pub fn deregister(&mut self, worker: &[u8], slice: u32) -> bool {
        let Some(deregistered) = self.board.deregister(worker) else { return false };
        self.act(deregistered);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        if let Some(departed) = self.board.departs(&env, slice) {
            self.act(departed);
        }
        self.commit();
        true
    }

    /// A worker registers over a connection.
    pub fn registers_over(&mut self, worker: &[u8], connection: u64) {
        self.register(&Register { worker, session: true, ..Register::default() }).unwrap();
        self.board.attend(worker, connection);
    }

    pub fn quiet(&mut self, worker: &[u8], quiet: bool) -> Result<(), String> {
        let decided = self.board.quiet(worker, quiet).map_err(|r| r.to_string())?;
        if let Some(quieted) = decided {
            self.act(quieted);
        }
        self.commit();
        Ok(())
    }

    /// A connection carries the claim of a job, if there is one.
    pub fn bind(&mut self, id: &[u8], connection: u64) {
        self.settle(id);
        let slot = self.board.find(id).filter(|s| self.board.record_of(*s).unwrap().token().is_some());
        if let Some(slot) = slot {
            if !self.board.is_session(slot) {
                self.act(Bound { slot });
            }
            self.board.carry(slot, connection);
        }
        self.commit();
    }

    // --- schedules ---

    fn settle_schedule(&mut self, id: &[u8]) {
        let rules = self.rules.clone();
        while let Some(effect) = {
            let env = self.env(&rules);
            self.board.overdue_schedule(&env, id)
        } {
            self.act(effect);
        }
    }

    /// Decides and applies without a look at what time has left undone.
    fn scheduled<'e, T>(
        &mut self,
        decide: impl FnOnce(&Board, &Env<'_>) -> Result<(T, Option<Effect<'e>>), Refusal>,
    ) -> Result<T, String> {
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = decide(&self.board, &env).map_err(|r| r.to_string());
        let done = decided.map(|(value, effect)| {
            if let Some(effect) = effect {
                self.act(effect);
            }
            value
        });
        self.commit();
        done
    }

    pub fn set_schedule(&mut self, set: &SetSchedule<'_>) -> Result<(), String> {
        self.scheduled(|board, env| Ok(((), Some(board.set_schedule(env, set)?.into()))))
    }

    pub fn delete_schedule(&mut self, id: &[u8]) -> Result<(), String> {
        self.scheduled(|board, _| Ok(((), Some(board.delete_schedule(id)?.into()))))
    }

    pub fn pause_schedule(&mut self, id: &[u8], paused: bool) -> Result<(), String> {
        self.scheduled(|board, env| Ok(((), board.pause_schedule(env, id, paused)?.map(Effect::from))))
    }

    pub fn run_schedule(&mut self, id: &[u8]) -> Result<Option<Bytes>, String> {
        self.scheduled(|board, env| {
            let fired = board.run_schedule(env, id)?;
            Ok((fired.as_ref().map(Fired::child), fired.map(Effect::from)))
        })
    }

    /// Does with one schedule what time should have done.
    pub fn catch_up(&mut self, id: &[u8]) {
        self.settle_schedule(id);
        self.commit();
    }

    /// Another value in the server's configuration.
    pub fn rule(&mut self, setting: Setting, value: i64) {
        Rc::make_mut(&mut self.rules).set(setting, value);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        self.board.reckon(&env);
    }

    /// The same board, by way of a snapshot.
    pub fn reload(&mut self) {
        let mut loader = Loader::default();
        self.board.snapshot(|part| loader.part(part).expect("a part of ours"));
        let loaded = loader.finish().expect("a snapshot of ours");
        assert_eq!(loaded.digest(), self.board.digest());
        self.board = loaded;
    }

    /// The same board, all that its jobs hold elsewhere. In slices of so many questions.
    pub fn relocate(&mut self, patience: u32) -> Moves {
        let digest = self.board.digest();
        let mut moves = Moves { patience, ..Moves::default() };
        let mut from = Some(0);
        while let Some(slot) = from {
            moves.asked = 0;
            moves.slices += 1;
            from = self.board.relocate(slot, &mut moves);
        }
        assert_eq!(self.board.digest(), digest);
        moves
    }

    // --- reading ---

    pub fn explain(&self, id: &[u8]) -> Option<Explanation> {
        self.board.explain(self.board.find(id)?, &self.peek())
    }

    /// The world for one who only looks.
    pub fn peek(&self) -> Env<'_> {
        let Self { now, hold, turn, .. } = *self;
        Env { now, random: 0, token: 0, hold, recovery: RECOVERY, turn, rules: &self.rules }
    }

    pub fn record(&self, id: &[u8]) -> Option<Record<'_>> {
        self.board.record_of(self.board.find(id)?)
    }

    /// The workers that hold jobs, by name, and how many.
    pub fn holders(&self) -> Vec<(&[u8], usize)> {
        self.board
            .worker_names()
            .into_iter()
            .map(|(name, held, _)| (name, held))
            .filter(|(_, n)| *n > 0)
            .collect()
    }

    pub fn state(&self, id: &[u8]) -> Option<State> {
        self.board.state_of(id)
    }
}

/// Moves everything that it is given, and counts it.
#[derive(Default)]
pub struct Moves {
    patience: u32,
    asked: u32,
    pub slices: usize,
    pub moved: usize,
    pub bytes: usize,
}

impl Mover for Moves {
    fn bytes(&mut self, bytes: Box<[u8]>) -> Box<[u8]> {
        self.values(bytes.into_vec()).into_boxed_slice()
    }

    fn value<T>(&mut self, value: Box<T>) -> Box<T> {
        self.moved += 1;
        Box::new(*value)
    }

    fn values<T>(&mut self, values: Vec<T>) -> Vec<T> {
        self.moved += 1;
        self.bytes += values.len() * size_of::<T>();
        let mut elsewhere = Vec::with_capacity(values.capacity());
        elsewhere.extend(values);
        elsewhere
    }

    fn is_tired(&mut self) -> bool {
        self.asked += 1;
        self.asked > self.patience
    }
}
