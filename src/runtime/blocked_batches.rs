//! Serving clients that wait for several jobs at once: when their queues have as many, or when they
//! have lingered long enough. Nothing is reserved for them: the other clients come before them.

use crate::runtime::batch_queue::Batches;
use crate::runtime::blocked_claims::{choose, with};
use crate::runtime::claim_queue::BoardKey;
use crate::runtime::commit::Commit;

fn with_batches<R>(place: &BoardKey, work: impl FnOnce(&mut Batches) -> R) -> Option<R> {
    with(|waiters| waiters.batches(place).map(work))
}

/// Clients that have seen jobs in queues which are empty by now linger anew with the next job.
pub fn notice_emptied(commit: &mut Commit<'_>, place: &BoardKey) {
    let emptied = commit.board().emptied();
    if emptied.is_empty() {
        return;
    }
    let now = commit.env.now;
    for class in with_batches(place, |all| all.that_saw(&emptied)).unwrap_or_default() {
        let Some(queues) = with_batches(place, |all| all.queues_of(class)).flatten() else { continue };
        let names: Vec<&[u8]> = queues.iter().map(|queue| &queue[..]).collect();
        if commit.board().claimable_jobs(&names, 1, now) == 0 {
            with_batches(place, |all| all.saw(class, None));
        }
    }
}

/// Serves the clients for whom these queues, which may have got jobs, have enough, and those that
/// take what there is by now, in the order of their arrival.
pub fn serve(commit: &mut Commit<'_>, place: &BoardKey, queues: &[Vec<u8>]) {
    let now = commit.env.now;
    let mut heads = with_batches(place, |all| all.candidates(queues, now)).unwrap_or_default();
    // Jobs only become fewer here, so a class is looked at again only after it was served.
    while let Some((_, class)) = heads.pop_first() {
        let Some(head) = with_batches(place, |all| all.head(class, now)).flatten() else { continue };
        let names: Vec<&[u8]> = head.queues.iter().map(|queue| &queue[..]).collect();
        let found = commit.board().claimable_jobs(&names, head.least, now);
        let enough = found >= head.least || (found > 0 && head.is_due);
        if enough && matches!(choose(commit, head.number), Ok(true)) {
            let next = with_batches(place, |all| all.first(class)).flatten();
            heads.extend(next.map(|next| (next, class)));
            continue;
        }
        let sees = (found > 0 && !head.is_due).then_some(now);
        with_batches(place, |all| all.saw(class, sees));
        commit.board().wait_for_permits(&names, now);
    }
    if let Some(end) = with_batches(place, |all| all.next_end()).flatten() {
        commit.board().linger_until(end);
    }
}
