//! Serving clients that wait for several jobs at once: when their queues have as many, or when they
//! have lingered long enough. Nothing is reserved for them: the other clients come before them.
//!
//! A commit takes one turn, of bounded length. What it leaves, the timer goes on with at once.

use crate::runtime::batch_queue::Batches;
use crate::runtime::blocked_claims::with;
use crate::runtime::choosing::choose;
use crate::runtime::claim_queue::BoardKey;
use crate::runtime::commit::Commit;

fn with_batches<R>(place: &BoardKey, work: impl FnOnce(&mut Batches) -> R) -> Option<R> {
    with(|waiters| waiters.batches(place).map(work))
}

/// Clients that have seen jobs in queues which are empty by now linger anew with the next job.
pub fn notice_emptied(commit: &mut Commit<'_>, place: &BoardKey) {
    let emptied = commit.board().emptied();
    if !emptied.is_empty() {
        let all = commit.board().busy_names().next().is_none();
        with_batches(place, |batches| batches.emptied(&emptied, all));
    }
}

/// Serves clients for whom these queues, which may have got jobs, have enough, and those that take
/// what there is by now; in the order of their arrival, as far as one turn goes.
pub fn serve(commit: &mut Commit<'_>, place: &BoardKey, queues: &[Vec<u8>]) {
    let now = commit.env.now;
    let board = commit.board();
    let heads = with_batches(place, |batches| {
        batches.woke(queues, now);
        batches.turn(now, |names, most| board.claimable_jobs(names, most, now))
    });
    let mut heads = heads.unwrap_or_default();
    // A look ends with its class served, or with marks that its queues do not reach: nothing is
    // looked at twice.
    while let Some((_, class)) = heads.pop_first() {
        let Some(terms) = with_batches(place, |batches| batches.terms(class)).flatten() else { continue };
        let board = commit.board();
        let counts = terms.counts(|names, most| board.claimable_jobs(names, most, now));
        let served = with_batches(place, |batches| batches.look(class, &counts, now)).flatten();
        if served.is_some_and(|client| matches!(choose(commit, client), Ok(true))) {
            let next = with_batches(place, |batches| batches.first(class)).flatten();
            heads.extend(next.map(|next| (next, class)));
            continue;
        }
        with_batches(place, |batches| batches.wait_on(class, &counts, now));
        commit.board().wait_for_permits(&terms.names(), now);
    }
    if with_batches(place, |batches| batches.waits_for_every()).unwrap_or(false) {
        commit.board().wait_for_permits(&[], now);
    }
    let rest = with_batches(place, |batches| match batches.is_pending() {
        true => Some(now),
        false => batches.next_end(),
    });
    if let Some(at) = rest.flatten() {
        commit.board().linger_until(at);
    }
}
