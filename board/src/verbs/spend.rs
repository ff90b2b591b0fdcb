//! Spending: a worker says what its claim has cost, and that a limit needs a rest.
//!
//! Both come with a verb of the worker: what it costs is absolute, for this claim, so a report that
//! comes again settles nothing twice.

use crate::board::Board;
use crate::dispatch::costs::{sorted, Price};
use crate::effect::{ApplyError, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::costs::{are_costs, PackedCosts, Spending, COUNTING_MOST};
use crate::job::Costs;
use crate::settings::MOST;
use crate::structures::byte_string::ByteString;
use crate::verbs::pause::Paused;

/// What a worker says of its claim beside a verb.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spend<'a> {
    /// The permits that it has taken so far of everything that is not named.
    pub cost: Option<i64>,
    /// The permits that it has taken so far of single limits.
    pub costs: Option<Costs<'a>>,
    /// A limit of the job that gives no permits for this long, ms.
    pub pause: Option<(&'a [u8], i64)>,
}

/// The effects of what a worker says, to be applied in this order before that of its verb.
#[derive(Debug, Default, PartialEq)]
pub struct Spends<'a> {
    /// What the claim has cost.
    pub spent: Option<Spent>,
    /// The pause of a limit.
    pub paused: Option<Paused<'a>>,
}

impl Spend<'_> {
    /// Whether it says nothing.
    pub fn is_silent(&self) -> bool {
        self.cost.is_none() && self.costs.is_none() && self.pause.is_none()
    }
}

written! {
    /// A claim has cost this so far.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Spent {
        1 slot: u32,
        /// The permits of everything that is not named.
        2 cost: i64,
        /// The permits of single limits that count for the job, by name.
        3 costs: Vec<(ByteString, i64)>,
    }
}

impl Validate for Spent {
    fn is_valid(&self, _board: &Board) -> bool {
        (0..=MOST).contains(&self.cost) && are_costs(self.named(), COUNTING_MOST)
    }
}

impl Spent {
    fn named(&self) -> impl Iterator<Item = (&[u8], i64)> {
        self.costs.iter().map(|(limit, cost)| (&**limit, *cost))
    }

    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let (slot, token) = (self.slot, board.run_of(self.slot).0);
        let spending = Spending { token, cost: self.cost, costs: self.costs.clone() };
        let job = board.job(slot)?;
        let (cost, packed) = (job.cost(), job.costs().bytes().to_vec());
        let old = board.spent(slot, token).cloned();
        let before = match &old {
            Some(old) => Price::said(old),
            None => Price::estimate(cost, PackedCosts::of(&packed)),
        };
        board.settle_costs(slot, (before, old.is_none()), Price::said(&spending), now)?;
        board.count_spent(slot, before, Price::said(&spending), now);
        board.edit(slot, |job| {
            job.extras_mut().remembered.spending = Some(Box::new(spending));
            Ok(())
        })?;
        board.touch(slot)
    }
}

impl Board {
    /// Decides what a worker says of the current claim of the job in a slot, or of the last one. A
    /// limit that does not count for the job is ignored: an operator may have removed it. Without a
    /// claim there is nothing to settle. O(k log k).
    pub fn spend<'a>(&self, env: &Env<'_>, slot: u32, spend: &Spend<'a>) -> Result<Spends<'a>, Refusal> {
        let said = spend.costs.as_ref().map(sorted).transpose()?.unwrap_or_default();
        let paused = spend.pause.map(|pause| self.pause_limit_of(env, slot, pause)).transpose()?.flatten();
        let (token, _) = self.run_of(slot);
        if token == 0 || spend.cost.is_none() && spend.costs.is_none() {
            return Ok(Spends { spent: None, paused });
        }
        let job = self.job(slot).map_err(|_| Refusal::NoJob)?;
        let old = self.spent(slot, token);
        let before = old.map_or_else(|| Price::of_job(job), Price::said);
        let limits = self.limits_of(self.queue_number(job), job.group()).into_iter();
        let named = |limit: &[u8]| said.iter().find(|(name, _)| *name == limit).map(|(_, cost)| *cost);
        let cost = |number: u32| {
            let name = &self.dispatch.limits.get(number)?.name;
            Some((name.clone(), named(name).or_else(|| before.named(name))?))
        };
        let mut costs: Vec<(ByteString, i64)> = limits.filter_map(cost).collect();
        costs.sort_unstable();
        let spent = Spent { slot, cost: spend.cost.unwrap_or(before.plain), costs };
        let same = old.is_some_and(|old| old.cost == spent.cost && old.costs == spent.costs);
        Ok(Spends { spent: (!same).then_some(spent), paused })
    }
}
