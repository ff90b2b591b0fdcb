//! The records of a board, and finding them.

use std::collections::BTreeSet;

use crate::board::Board;
use crate::effect::ApplyError;
use crate::env::{mix, Env};
use crate::job::id::{self, Id};
use crate::job::order::TimeKey;
use crate::job::seeds::Seeds;
use crate::job::{Claim, Class, Job, KeptId, State, U48};
use crate::queue::Queue;
use crate::structures::allotted::allotted;
use crate::structures::ids::Ids;
use crate::structures::interner::{self, Interner};
use crate::structures::lazy::Lazy;
use crate::structures::slab::Slab;

/// Jobs and claims, by slot.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) jobs: Slab<Job>,
    pub(crate) claims: Slab<Claim>,
    pub(crate) ids: Ids,
    /// The classes, each with the label of its name.
    pub(crate) classes: Interner<Class, Option<u32>>,
    /// With what made ids follow from their records, see [`Store::id`]. Local, learned from ids.
    pub(crate) seeds: Lazy<Seeds>,
    /// What limits count of the records beside their structs.
    pub(crate) heap: usize,
    /// About how many bytes the allocator takes for them.
    pub(crate) allotted: usize,
}

impl Store {
    /// About how many bytes the records, their claims, ids and classes take. O(classes).
    pub(crate) fn bytes(&self) -> usize {
        let class = |class: &Class| {
            allotted(class.name.len())
                + class.own.as_ref().map_or(0, |own| allotted(std::mem::size_of_val(&**own)))
        };
        self.jobs.bytes()
            + self.claims.bytes()
            + self.allotted
            + self.ids.bytes()
            + self.seeds.allocated()
            + self.classes.bytes()
            + self.classes.all().map(|(_, own, _)| class(own)).sum::<usize>()
    }

    /// The id of the job in a slot. A made id that a seed of the board, the order and time of the post and
    /// the slot give is not kept: effects and snapshots carry all ids, and each copy of a board learns the
    /// seeds from them.
    pub(crate) fn id<'j>(&self, slot: u32, job: &'j Job) -> Id<&'j [u8]> {
        job.kept_id().unwrap_or_else(|| {
            let seed = job.seed().unwrap_or_default();
            Id::Made(made_id(slot, job.posted, job.seq, self.seeds.noise_of(seed, job.seq.get())))
        })
    }

    /// What a record keeps of its id.
    pub(crate) fn id_to_keep<'i>(
        &mut self,
        id: Id<&'i [u8]>,
        slot: u32,
        posted: U48,
        seq: U48,
    ) -> KeptId<'i> {
        let Id::Made(bytes) = id else { return KeptId::Whole(id) };
        let noise = id::noise(&bytes);
        if made_id(slot, posted, seq, noise) != bytes {
            return KeptId::Whole(id);
        }
        self.seeds.number(noise, seq.get()).map_or(KeptId::Whole(id), KeptId::Follows)
    }

    /// The key of a slot in `leases`.
    pub(crate) fn lease_key(&self, slot: u32) -> TimeKey {
        self.jobs
            .get(slot)
            .and_then(|job| Some(job.lease_key(self.claims.get(job.at.get() as u32)?)))
            .unwrap_or_default()
    }

    /// The key of a claim's number in its worker's `claims`.
    pub(crate) fn token(&self, number: u32) -> u64 {
        self.claims.get(number).map_or(0, |claim| claim.token)
    }

    /// The token of the claim of a job.
    pub(crate) fn claim_token(&self, slot: u32) -> u64 {
        self.jobs.get(slot).map_or(0, |job| self.token(job.at.get() as u32))
    }
}

/// The id that a post makes.
fn made_id(slot: u32, posted: U48, seq: U48, noise: u32) -> [u8; 16] {
    // The board's revision when the post was decided.
    let order = (seq.get() as u64).wrapping_sub(1);
    id::make(posted.get(), noise.into(), slot, order)
}

impl Board {
    /// An id for the next job, which no job has; nor one that is posted along with it, `others`.
    pub(crate) fn new_id(&self, env: &Env<'_>, slot: u32, n: u64, others: &BTreeSet<&[u8]>) -> [u8; 16] {
        let order = self.revision();
        // Jobs with made ids have other slots. Clients may choose what looks like one.
        let is_free = |id: &[u8; 16]| {
            (self.store.ids.is_empty() && others.is_empty())
                || Id::Made(*id).text(|text| self.find(text).is_none() && !others.contains(text))
        };
        let noise = self.store.seeds.noise(env.giver, env.draw(n), order as i64 + 1);
        let drawn = (0..).map(|again: u64| mix(env.draw(n) ^ mix(again)));
        let mut ids =
            std::iter::once(noise.into()).chain(drawn).map(|noise| id::make(env.now, noise, slot, order));
        ids.find(is_free).unwrap_or_default()
    }

    /// The id of the job in a slot.
    pub(crate) fn id(&self, slot: u32) -> Option<Id<&[u8]>> {
        Some(self.store.id(slot, self.store.jobs.get(slot)?))
    }

    /// The slot of the job of that id. O(1).
    pub fn find(&self, id: &[u8]) -> Option<u32> {
        self.find_made(id).or_else(|| self.find_chosen(id))
    }

    fn find_made(&self, id: &[u8]) -> Option<u32> {
        let (made, slot) = id::read_made(id)?;
        (self.id(slot) == Some(Id::Made(made))).then_some(slot)
    }

    fn find_chosen(&self, id: &[u8]) -> Option<u32> {
        self.store.ids.get(id, |slot| self.store.jobs.get(slot).map_or(&[], Job::chosen_id))
    }

    /// The slot of the job of that id, which mostly is the one that this worker holds under this token.
    /// Then its claim leads to it, and the index of ids is left alone: claims are few and near by in
    /// memory, ids many and far off. O(log n).
    pub(crate) fn find_held(&self, worker: &[u8], token: Option<u64>, id: &[u8]) -> Option<u32> {
        let held = || {
            let slot = self.held(worker, token?.checked_sub(1)?).next()?;
            (self.store.claim_token(slot) == token? && self.id(slot)? == Id::Named(id)).then_some(slot)
        };
        self.find_made(id).or_else(held).or_else(|| self.find_chosen(id))
    }

    pub(crate) fn job(&self, slot: u32) -> Result<&Job, ApplyError> {
        self.store.jobs.get(slot).ok_or(ApplyError)
    }

    pub(crate) fn job_mut(&mut self, slot: u32) -> Result<&mut Job, ApplyError> {
        self.store.jobs.get_mut(slot).ok_or(ApplyError)
    }

    pub(crate) fn claim_of(&self, job: &Job) -> Option<&Claim> {
        match job.state {
            State::Claimed => self.store.claims.get(job.at.get() as u32),
            _ => None,
        }
    }

    pub(crate) fn claim_mut(&mut self, slot: u32) -> Result<&mut Claim, ApplyError> {
        let job = self.store.jobs.get(slot).ok_or(ApplyError)?;
        if job.state != State::Claimed {
            return Err(ApplyError);
        }
        self.store.claims.get_mut(job.at.get() as u32).ok_or(ApplyError)
    }

    pub(crate) fn worker_name(&self, claim: &Claim) -> &[u8] {
        self.workers.names.key(claim.worker).map_or(&[], |name| name)
    }

    pub(crate) fn class_of(&self, job: &Job) -> Option<&Class> {
        self.store.classes.key(job.class)
    }

    /// The number of a job's queue. Each job has a class, which names one; a job without would be in
    /// [no queue](interner::NONE).
    pub(crate) fn queue_number(&self, job: &Job) -> u32 {
        self.class_of(job).map_or(interner::NONE, |class| class.queue)
    }

    /// The queue of a job.
    pub(crate) fn queue_of(&self, job: &Job) -> Option<&Queue> {
        self.queues.get(self.queue_number(job))
    }

    pub(crate) fn queue_name(&self, job: &Job) -> &[u8] {
        self.queues.key(self.queue_number(job)).map_or(&[], |name| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Rules;
    use crate::verbs::{Post, PostAnswer};

    fn post(board: &mut Board, random: u64, now: i64) -> u32 {
        let rules = Rules::default();
        let env = Env { now, random, token: 0, giver: 0, hold: 0, recovery: 0, rotation: 0, rules: &rules };
        let post = Post { payload: b"x", ..Post::default() };
        let Ok(PostAnswer::Do(posted)) = board.post(&env, &post, 0) else { panic!("a post is refused") };
        let (id, slot) = (posted.text(<[u8]>::to_vec), board.store.jobs.next_free());
        board.apply(&posted, now).unwrap();
        assert_eq!(board.id(slot).map(Id::to_vec), Some(id));
        slot
    }

    fn kept(board: &Board) -> Vec<bool> {
        board.store.jobs.iter().map(|(_, job)| job.kept_id().is_some()).collect()
    }

    #[test]
    fn a_made_id_takes_no_memory_while_it_follows_from_its_record() {
        let mut board = Board::default();
        let slots: Vec<u32> = (0..100).map(|n| post(&mut board, n * 7, n as i64)).collect();
        assert!(kept(&board).iter().all(|kept| !kept));
        let ids: Vec<_> = slots.iter().map(|slot| board.id(*slot).unwrap().owned()).collect();
        let weight = board.record_bytes();
        board.set_seq(5, 1_000).unwrap();
        assert_eq!(kept(&board).iter().filter(|kept| **kept).count(), 1, "that of a job with another order");
        assert_eq!(board.record_bytes(), weight);
        for (slot, id) in slots.iter().zip(&ids) {
            assert_eq!(board.id(*slot), Some(id.borrowed()));
            assert_eq!(id.borrowed().text(|text| board.find(text)), Some(*slot));
        }
    }

    #[test]
    fn a_copy_learns_the_seed_and_keeps_ids_that_follow_from_another() {
        let (mut board, mut other) = (Board::default(), Board::default());
        for n in 0..50 {
            post(&mut board, n * 7, n as i64);
            post(&mut other, n * 7 + 1, n as i64);
        }
        let copy = board.copy().unwrap();
        assert!(kept(&copy).iter().all(|kept| !kept));
        assert_eq!(copy.digest(), board.digest());
        let slot = post(&mut other, 0, 60);
        let id = other.id(slot).unwrap().owned();
        let id = id.borrowed();
        let seq = U48::new(other.revision() as i64);
        assert_eq!(board.store.id_to_keep(id, slot, U48::new(60), seq), KeptId::Follows(1));
        assert_eq!(other.store.id_to_keep(id, slot, U48::new(60), seq), KeptId::Follows(0));
        assert_eq!(other.store.id_to_keep(id, slot, U48::new(61), seq), KeptId::Whole(id));
    }
}
