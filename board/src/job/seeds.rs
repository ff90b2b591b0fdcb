//! What the random bits of made ids follow from.
//!
//! A record does not keep its made id while a seed and the order of its post give the id's random bits, see
//! [`crate::job::store::Store::id`]. Each server that posts to a board draws a seed of its own, which names it:
//! so two servers that take posts for copies of one board make different ids. A copy learns the seeds from the
//! ids that it is given. A board has few seeds at a time; jobs of others keep their ids.

use super::id;
use crate::env::{mix, GIVERS};
use crate::structures::lazy::Part;

/// The bits above this one of a seed say which giver drew it.
const GIVER: u32 = u32::BITS - GIVERS.ilog2();

/// How many seeds a board has at most: as many as a record's flags can tell apart.
const SEEDS: usize = 4;

#[derive(Clone, Copy, Default)]
struct Seed {
    bits: Option<u32>,
    /// How many jobs have ids that follow from it. Without any it may make way for another.
    jobs: u32,
}

/// See the module's comment.
#[derive(Default)]
pub(crate) struct Seeds([Seed; SEEDS]);

impl Part for Seeds {
    const BLANK: &'static Self = &Seeds([Seed { bits: None, jobs: 0 }; SEEDS]);
}

impl Seeds {
    /// The random bits of an id that follows from this seed.
    pub(crate) fn noise_of(&self, number: u8, seq: i64) -> u32 {
        self.0.get(usize::from(number)).and_then(|seed| seed.bits).unwrap_or(0) ^ spread(seq)
    }

    /// The random bits of the next id that a giver makes: from its seed, or from a new one.
    pub(crate) fn noise(&self, giver: u64, random: u64, seq: i64) -> u32 {
        let giver = (giver % GIVERS) as u32;
        let own = self.0.iter().filter_map(|seed| seed.bits).find(|bits| bits >> GIVER == giver);
        let drawn = || (random as u32 & !(u32::MAX << GIVER) | giver << GIVER) & id::NOISE;
        own.unwrap_or_else(drawn) ^ spread(seq)
    }

    /// The seed from which these random bits follow; one that is not known is learned if there is room.
    pub(crate) fn number(&mut self, noise: u32, seq: i64) -> Option<u8> {
        let bits = Some(noise ^ spread(seq));
        let known = self.0.iter().position(|seed| seed.bits == bits);
        let number = known.or_else(|| {
            let free = self.0.iter().position(|seed| seed.jobs == 0)?;
            *self.0.get_mut(free)? = Seed { bits, jobs: 0 };
            Some(free)
        });
        number.map(|number| number as u8)
    }

    /// A job whose id follows from this seed is added.
    pub(crate) fn add(&mut self, number: u8) {
        if let Some(seed) = self.0.get_mut(usize::from(number)) {
            seed.jobs = seed.jobs.saturating_add(1);
        }
    }

    /// It is removed, or keeps its id from now on.
    pub(crate) fn remove(&mut self, number: u8) {
        if let Some(seed) = self.0.get_mut(usize::from(number)) {
            seed.jobs = seed.jobs.saturating_sub(1);
        }
    }
}

/// Spreads a seed over the ids that follow from it.
fn spread(seq: i64) -> u32 {
    mix(seq as u64) as u32 & id::NOISE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn givers_make_different_ids_of_the_same_board() {
        let (mut seeds, other) = (Seeds::default(), Seeds::default());
        let noise = seeds.noise(1, 77, 5);
        assert_eq!(seeds.number(noise, 5), Some(0));
        seeds.add(0);
        for seq in 6..1_000 {
            assert_eq!(seeds.noise(1, seq as u64, seq), seeds.noise_of(0, seq));
            assert_ne!(seeds.noise(1, 0, seq), seeds.noise(2, 0, seq));
            assert_ne!(other.noise(1, seq as u64, seq), other.noise(2, seq as u64, seq));
        }
    }

    #[test]
    fn a_seed_without_jobs_makes_way() {
        let mut seeds = Seeds::default();
        let noise: Vec<u32> = (0..6).map(|giver| seeds.noise(giver, giver, 9)).collect();
        for (number, noise) in noise.iter().take(SEEDS).enumerate() {
            assert_eq!(seeds.number(*noise, 9), Some(number as u8));
            seeds.add(number as u8);
        }
        assert_eq!(seeds.number(noise[4], 9), None);
        seeds.remove(2);
        assert_eq!(seeds.number(noise[5], 9), Some(2));
        assert_eq!(seeds.noise_of(2, 9), noise[5]);
        assert_eq!(seeds.number(noise[2], 9), Some(2), "which still has no job");
    }
}
