//! A board with a clock, and a copy of it that gets every batch: what the tests act on.
//!
//! Verbs on named jobs first settle what time has left undone with them, as the server does.
#![allow(dead_code)]

use std::collections::BTreeSet;
use std::rc::Rc;

use board::*;

mod operators;
mod schedules;
pub mod work;

/// For how long nothing ends by itself after a load, ms.
pub const RECOVERY: i64 = 700;

/// Who gives tokens out, where nothing else is said.
pub const GIVER: u64 = 9;

pub type Bytes = Vec<u8>;

pub struct World {
    pub board: Board,
    pub copy: Board,
    pub now: i64,
    pub hold: i64,
    pub turn: u64,
    pub giver: u64,
    pub rules: Rc<Rules>,
    /// Every batch so far.
    pub sent: Vec<Bytes>,
    /// What workers say of their claims beside their verbs.
    pub spend: Spend<'static>,
    /// The tags of all effects so far.
    pub tags: BTreeSet<u8>,
    token: u64,
    pub draws: u64,
    /// With how many queues that have ready jobs the board keeps their candidates, if not as always.
    pub candidates_above: Option<usize>,
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
    pub next: Option<SelectionCursor>,
}

impl Default for World {
    fn default() -> Self {
        World {
            board: Board::default(),
            copy: Board::default(),
            now: 1_700_000_000_000,
            hold: 0,
            turn: 0,
            giver: GIVER,
            rules: Rc::default(),
            sent: Vec::new(),
            spend: Spend::default(),
            tags: BTreeSet::new(),
            token: 0,
            draws: 0,
            candidates_above: None,
            batch: Batch::default(),
            open: false,
        }
    }
}

impl World {
    pub fn seeded(seed: u64) -> World {
        World { draws: seed, ..World::default() }
    }

    /// The board keeps candidates as soon as more queues than this have ready jobs.
    pub fn keep_candidates_above(&mut self, queues: usize) {
        self.candidates_above = Some(queues);
        self.board.keep_candidates_above(queues);
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
            giver: self.giver,
            hold: self.hold,
            recovery: RECOVERY,
            rotation: self.turn,
            rules,
        }
    }

    /// Applies one effect as part of the command that runs.
    pub fn act(&mut self, effect: impl Apply) {
        if !self.open {
            self.batch.begin(self.board.revision(), self.now);
            self.open = true;
        }
        self.batch.push(&effect);
        let mut bytes = Vec::new();
        effect.encode(&mut bytes);
        self.tags.insert(bytes[0]);
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
        if let Some(queues) = self.candidates_above {
            self.board.keep_candidates_above(queues);
        }
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
        let Self { now, hold, turn, giver, .. } = *self;
        Env { now, random: 0, token: 0, giver, hold, recovery: RECOVERY, rotation: turn, rules: &self.rules }
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

/// The tests run commands by the protocol of the board.
impl Protocol for World {
    type Error = Refusal;

    fn board(&mut self) -> &mut Board {
        &mut self.board
    }

    fn now(&self) -> i64 {
        self.now
    }

    fn look<R>(&mut self, look: impl FnOnce(&Board, &Env<'_>) -> R) -> R {
        let rules = self.rules.clone();
        let env = self.env(&rules);
        look(&self.board, &env)
    }

    fn apply(&mut self, effect: impl Apply) -> Result<(), Refusal> {
        self.act(effect);
        Ok(())
    }

    fn settle_due(&mut self) -> Result<(), Refusal> {
        self.slice(SETTLES);
        Ok(())
    }

    fn kept(&mut self, _slot: u32) {}
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
