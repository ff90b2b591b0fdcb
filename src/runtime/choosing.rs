//! Claims for the clients that wait in line for jobs.

use crate::redis::park;
use crate::replies::errors::CommandError;
use crate::replies::fitting::Room;
use crate::runtime::blocked_claims::{chosen, look_at, with};
use crate::runtime::claim_queue::BoardKey;
use crate::runtime::commit::Commit;
use crate::runtime::connections;
use crate::runtime::latency;
use crate::runtime::offers::{Asked, Line};
use crate::runtime::touched::Touch;

/// How many looks at queues one commit takes for waiting clients, but for those of the last one. The
/// end of the turn does the rest.
const LOOKS: usize = 20_000;
/// What claims look at beside the queues that they name, by so many, takes as long as one look.
const WORK_OF_A_LOOK: usize = 5;
/// To ask a client, or to give it a job, takes as long as this many looks, beside those at the queues
/// that it names.
const CLIENT_LOOKS: usize = 16;
/// To offer a queue again in a later turn takes no longer than this many looks: a turn takes as many for
/// each queue, if that is more.
const LOOKS_AGAIN: usize = 16;

/// The clients in line for a board that a commit works on.
pub struct InLine<'c, 'k> {
    /// The commit.
    pub commit: &'c mut Commit<'k>,
    /// The board.
    pub place: &'c BoardKey,
    /// How many queues are offered.
    pub queues: usize,
}

impl Line for InLine<'_, '_> {
    fn first_naming(&self, queue: &[u8]) -> Option<u64> {
        with(|waiters| waiters.first_naming(self.place, queue))
    }

    fn first_for_any(&self) -> Option<u64> {
        with(|waiters| waiters.first_for_any(self.place))
    }

    fn gives(&mut self, queue: &[u8]) -> bool {
        let now = self.commit.env.now;
        self.commit.board().gives(&[queue], now)
    }

    fn any_gives(&mut self) -> bool {
        let now = self.commit.env.now;
        self.commit.board().gives(&[], now)
    }

    fn ask(&mut self, client: u64) -> Asked {
        if self.commit.looked >= LOOKS.max(LOOKS_AGAIN * self.queues) {
            return Asked::Enough;
        }
        match choose(self.commit, client) {
            Ok(true) => Asked::Left,
            _ => Asked::Nothing,
        }
    }
}

/// Claims for a waiting client. Returns false when there is nothing for it.
pub(super) fn choose(commit: &mut Commit<'_>, number: u64) -> Result<bool, CommandError> {
    let Some(waiter) = with(|waiters| waiters.remove(number)) else { return Ok(true) };
    if !park::is_permitted(commit.ctx, number, commit.key.bytes()) {
        chosen(number, waiter, Vec::new(), true);
        return Ok(true);
    }
    if commit.board().is_quiet(&waiter.wait.worker) {
        with(|waiters| waiters.set_aside(number, waiter));
        return Ok(true);
    }
    if connections::has_departed(&waiter.place, &waiter.wait.worker) {
        // It returns to its position in a later turn, if it still waits.
        look_at(waiter.place.clone(), Touch::All);
        with(|waiters| waiters.set_aside(number, waiter));
        return Ok(true);
    }
    let env = commit.env;
    let (mut claims, mut slots) = (Vec::new(), Vec::new());
    let mut room = Room::new(&waiter.wait.shape.fields);
    let done = waiter.wait.with_claim(|claim| {
        let count = waiter.wait.count.min(commit.board().most_for(claim));
        let looks = CLIENT_LOOKS + commit.board().looks_for(claim);
        commit.looked += looks;
        let begin = commit.board().claim_work();
        while claims.len() < count && !commit.board().has_worked_enough(begin) {
            let Ok(Some(claimed)) = commit.board().claim(&env, claim, claims.len() as u64) else { break };
            let slot = claimed.slot;
            claims.push((slot, claimed.token));
            commit.looked += looks;
            // Who waits for several jobs lets the first ones wait on purpose.
            if waiter.wait.batch.is_none() {
                let waited = commit.board().waited_for(slot, env.now);
                latency::with(|seen| seen.pickup.add(waited));
            }
            commit.apply(claimed)?;
            commit.carry(slot, waiter.wait.session)?;
            slots.push(slot);
            if count > 1 && !room.take(commit.board(), &slots) {
                break;
            }
        }
        let work = commit.board().claim_work().wrapping_sub(begin);
        commit.looked += usize::try_from(work).unwrap_or(LOOKS) / WORK_OF_A_LOOK;
        Ok(())
    });
    if claims.is_empty() {
        with(|waiters| waiters.add(number, waiter));
        return done.map(|()| false);
    }
    chosen(number, waiter, claims, false);
    done.map(|()| true)
}
