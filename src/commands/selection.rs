//! Selections: the jobs that an operator's verb is for, all or nothing.

use board::Refusal;

use crate::args::Args;
use crate::fault::Fault;
use crate::server::reply::Reply;
use crate::turn::Turn;

/// Reads `n id…`.
pub fn ids<'a>(args: &mut Args<'a>) -> Result<Vec<&'a [u8]>, Fault> {
    let n = args.length("n", 1)?;
    args.many(n, "n", |args| args.name("id"))
}

/// The slots of the ids, `None` for those that the board does not know. Time is settled for
/// each, and `check` must refuse none of them: then nothing has changed.
pub fn resolve<R>(
    turn: &mut Turn<'_>,
    ids: &[&[u8]],
    mut check: impl FnMut(&mut Turn<'_>, u32) -> Result<R, Refusal>,
) -> Result<Vec<Option<u32>>, Fault> {
    for id in ids {
        turn.settle(id)?;
    }
    let mut slots: Vec<Option<u32>> = Vec::with_capacity(ids.len());
    for id in ids {
        let slot = turn.board().find(id);
        if let Some(slot) = slot {
            check(turn, slot).map_err(|refusal| refusal.of(id))?;
        }
        slots.push(slot);
    }
    Ok(slots)
}

/// The known slots, each once.
pub fn distinct(slots: &[Option<u32>]) -> Vec<u32> {
    let mut known: Vec<u32> = slots.iter().flatten().copied().collect();
    known.sort_unstable();
    known.dedup();
    known
}

/// Answers with the count of jobs, the cursor of a finished selection, and the unknown ids.
pub fn write(reply: Reply, count: usize, ids: &[&[u8]], slots: &[Option<u32>]) {
    let unknown: Vec<&[u8]> =
        ids.iter().zip(slots).filter(|(_, slot)| slot.is_none()).map(|(id, _)| *id).collect();
    reply.array(3);
    reply.int(count as i64);
    reply.text("0");
    reply.array(unknown.len());
    for id in unknown {
        reply.bytes(id);
    }
}
