//! Selections: the jobs that an operator's verb is for, by id or by filter.
//!
//! A selection by id (`n id…`) is all or nothing. A selection by filter takes one slice after the
//! other: `WHERE filter… [COUNT n] [CURSOR c] [DRYRUN]`, with the filters of `JOB.LIST`.

use board::{Board, Filters, Operation, Protocol, Refusal, Selection, SelectionCursor, Subject};

use super::list::filter;
use crate::commands::args::{flag, once, Args, Keyword};
use crate::redis::reply::Reply;
use crate::replies::errors::{syntax, CommandError};
use crate::runtime::commit::Commit;

/// How many jobs a slice chooses without COUNT.
const COUNT: usize = 1000;

/// A slice ends when the records that it returns, or what it writes into its jobs, have this many
/// bytes together.
pub const BYTES: usize = 16 << 20;

/// How an operator names jobs.
pub enum Named<'a> {
    /// By id.
    Ids(Vec<&'a [u8]>),
    /// By filter.
    Where(Where<'a>),
}

/// What follows WHERE.
#[derive(Default)]
pub struct Where<'a> {
    filters: Filters<'a>,
    count: Option<usize>,
    cursor: Option<Option<SelectionCursor>>,
    /// Whether nothing is to be changed.
    pub dry: bool,
}

/// Reads `n id…`.
pub fn ids<'a>(args: &mut Args<'a>) -> Result<Vec<&'a [u8]>, CommandError> {
    let n = args.length("n", 1)?;
    args.many(n, "n", |args| args.name("id"))
}

/// Reads `n id…` or `WHERE`.
pub fn named<'a>(args: &mut Args<'a>) -> Result<Named<'a>, CommandError> {
    match args.take("WHERE") {
        true => Ok(Named::Where(Where::default())),
        false => Ok(Named::Ids(ids(args)?)),
    }
}

impl<'a> Named<'a> {
    /// Reads the options of WHERE if the word begins them.
    pub fn take(&mut self, args: &mut Args<'a>, word: &[u8]) -> Result<bool, CommandError> {
        let Named::Where(chosen) = self else { return Ok(false) };
        if filter(args, word, &mut chosen.filters)? {
            return Ok(true);
        }
        match Keyword::of(word).text() {
            "COUNT" => once(&mut chosen.count, "COUNT", args.length("COUNT", 1)?)?,
            "CURSOR" => once(&mut chosen.cursor, "CURSOR", args.cursor(SelectionCursor::read)?)?,
            "DRYRUN" => flag(&mut chosen.dry, "DRYRUN")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether jobs are named by id.
    pub fn by_id(&self) -> bool {
        matches!(self, Named::Ids(_))
    }

    /// Whether one job is named.
    pub fn is_one(&self) -> bool {
        matches!(self, Named::Ids(ids) if ids.len() == 1)
    }

    /// Refuses a selection without any filter.
    pub fn check(&self) -> Result<(), CommandError> {
        match self {
            Named::Where(chosen) if chosen.filters.is_empty() => syntax("WHERE needs a filter"),
            _ => Ok(()),
        }
    }
}

/// A slice of a selection by filter: its jobs, and what the reply says.
pub struct Slice {
    /// The jobs, in the order in which the operation must take them.
    pub slots: Vec<u32>,
    held: Vec<Vec<u8>>,
    next: Option<SelectionCursor>,
}

impl Where<'_> {
    /// Chooses the next slice; `bytes` bounds it as [`Selection::bytes`] says.
    pub fn choose(
        &self,
        commit: &mut Commit<'_>,
        deed: Operation<'_>,
        bytes: usize,
    ) -> Result<Slice, CommandError> {
        let selection = Selection {
            deed,
            filters: self.filters.clone(),
            from: self.cursor.flatten(),
            count: self.count.unwrap_or(COUNT),
            bytes,
            dry: self.dry,
        };
        let chosen = commit.decide(Subject::Anything, |board, env| Ok(board.select(env, &selection)))?;
        let id = |slot: &u32| commit.board().record_of(*slot).map(|record| record.id().to_vec());
        let held = chosen.held.iter().filter_map(id).collect();
        Ok(Slice { slots: chosen.slots, held, next: chosen.next })
    }

    /// Chooses the next slice as [`Where::choose`] does, and replies. Unless this is a dry run, calls `each` for
    /// every job of the slice first.
    pub fn run(
        &self,
        commit: &mut Commit<'_>,
        reply: Reply,
        deed: Operation<'_>,
        bytes: usize,
        mut each: impl FnMut(&mut Commit<'_>, u32) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let slice = self.choose(commit, deed, bytes)?;
        if !self.dry {
            slice.slots.iter().try_for_each(|slot| each(commit, *slot))?;
        }
        reply.array(3);
        slice.write(reply);
        Ok(())
    }
}

impl Slice {
    /// Replies with three things: the count of jobs, the cursor, and the ids of the jobs held back.
    pub fn write(&self, reply: Reply) {
        reply.int(self.slots.len() as i64);
        match &self.next {
            Some(reached) => reply.text(&reached.text()),
            None => reply.text("0"),
        }
        reply.array(self.held.len());
        self.held.iter().for_each(|id| reply.bytes(id));
    }
}

/// The slots of the ids, `None` for unknown ones. Settles the time of each job, and calls `check`
/// for each; if that refuses one, nothing has changed.
pub fn resolve<R>(
    commit: &mut Commit<'_>,
    ids: &[&[u8]],
    mut check: impl FnMut(&mut Commit<'_>, u32) -> Result<R, Refusal>,
) -> Result<Vec<Option<u32>>, CommandError> {
    let slots = commit.find_all(ids)?;
    for (id, slot) in ids.iter().zip(&slots) {
        if let Some(slot) = slot {
            check(commit, *slot).map_err(|refusal| refusal.of(id))?;
        }
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

/// Replies with the count of jobs, the cursor of a finished selection, and the unknown ids.
pub fn write(reply: Reply, count: usize, ids: &[&[u8]], slots: &[Option<u32>]) {
    reply.array(3);
    write_named(reply, count, ids, slots);
}

/// The three things of [`write()`], without the array around them.
pub fn write_named(reply: Reply, count: usize, ids: &[&[u8]], slots: &[Option<u32>]) {
    let unknown: Vec<&[u8]> =
        ids.iter().zip(slots).filter(|(_, slot)| slot.is_none()).map(|(id, _)| *id).collect();
    reply.int(count as i64);
    reply.text("0");
    reply.array(unknown.len());
    for id in unknown {
        reply.bytes(id);
    }
}

/// About how many bytes these records have together.
pub fn weight(board: &Board, slots: &[u32]) -> usize {
    slots.iter().filter_map(|slot| board.record_of(*slot)).map(|record| record.weight()).sum()
}
