//! The M-forms of a worker's verbs: many jobs in one command, with a reply for each.

use std::borrow::Cow;

use board::{Speaker, ANYBODY};

use super::claim::ClaimRequest;
use super::ending::end;
use super::shared;
use crate::commands::args::Args;
use crate::commands::call::Call;
use crate::replies::endings::Ending;
use crate::replies::errors::{syntax, CommandError, Done};
use crate::runtime::commit::Commit;

/// Which jobs a worker names.
pub enum Targets<'a> {
    /// All that it holds.
    All,
    /// These.
    Ids(Vec<&'a [u8]>),
}

/// A job and the token that the worker passes for it.
pub type Target<'a> = (Cow<'a, [u8]>, Option<u64>);

/// Reads `n id…` or `ALL`.
pub fn targets<'a>(args: &mut Args<'a>) -> Result<Targets<'a>, CommandError> {
    if args.take("ALL") {
        return Ok(Targets::All);
    }
    let n = args.length("n", 1)?;
    Ok(Targets::Ids(args.many(n, "n", |args| args.name("id"))?))
}

/// Reads the tokens after TOKENS.
pub fn tokens(args: &mut Args<'_>) -> Result<Vec<u64>, CommandError> {
    let n = args.length("TOKENS", 1)?;
    args.many(n, "TOKENS", |args| args.token("TOKENS"))
}

impl<'a> Targets<'a> {
    /// Whether the worker and these tokens fit: one token for each id, none with ALL.
    pub fn check(&self, worker: &[u8], tokens: &Option<Vec<u64>>) -> Result<(), CommandError> {
        if self.is_all() && worker == ANYBODY {
            return syntax("worker must not be '*' with ALL");
        }
        self.check_each("TOKENS", "tokens", tokens)
    }

    /// Whether an option has a value for each id; none with ALL.
    pub fn check_each<T>(
        &self,
        option: &str,
        values: &str,
        given: &Option<Vec<T>>,
    ) -> Result<(), CommandError> {
        match (self, given) {
            (Targets::All, Some(_)) => syntax(format!("ALL excludes {option}")),
            (Targets::Ids(ids), Some(given)) if ids.len() != given.len() => {
                syntax(format!("{option} must name {} {values}, one for each id", ids.len()))
            }
            _ => Ok(()),
        }
    }

    /// Whether these are all that the worker holds.
    pub fn is_all(&self) -> bool {
        matches!(self, Targets::All)
    }

    /// Each job with its token; for ALL the jobs that the worker holds, with the tokens of their
    /// claims. Refuses a worker that the board does not take.
    pub fn paired(
        self,
        tokens: Option<Vec<u64>>,
        worker: &[u8],
        commit: &mut Commit<'_>,
    ) -> Result<Vec<Target<'a>>, CommandError> {
        let board = &*commit.board();
        board.check_speaker(worker)?;
        let Targets::Ids(ids) = self else {
            let held = board.held(worker, 0).filter_map(|slot| board.record_of(slot));
            return Ok(held.map(|record| (Cow::Owned(record.id().to_vec()), record.token())).collect());
        };
        let mut tokens = tokens.unwrap_or_default().into_iter();
        Ok(ids.into_iter().map(|id| (Cow::Borrowed(id), tokens.next())).collect())
    }
}

/// Ends the work on each of several jobs and replies; claims the next jobs if a claim follows. With
/// `ALL` each reply contains the job's id. `shared` is what the command gives to each job.
pub fn end_each(
    call: &Call<'_>,
    worker: &[u8],
    (targets, tokens): (Targets<'_>, Option<Vec<u64>>),
    next: Option<ClaimRequest<'_>>,
    shared: &[(&str, usize)],
    mut each: impl FnMut(&mut Commit<'_>, &Speaker<'_>) -> Result<Ending, CommandError>,
) -> Done {
    targets.check(worker, &tokens)?;
    let all = targets.is_all();
    end(call, next, |commit| {
        let targets = targets.paired(tokens, worker, commit)?;
        shared::check(targets.len(), if all { "ALL" } else { "n" }, shared)?;
        commit.board().bound_looks();
        let mut answers = Vec::with_capacity(targets.len());
        for (id, token) in &targets {
            answers.push(match each(commit, &Speaker { worker, id, token: *token }) {
                Err(CommandError::Refused(refusal)) => Err(refusal),
                answer => Ok(answer?),
            });
        }
        let ids = targets.into_iter().filter(|_| all);
        Ok(Ending::Each { ids: ids.map(|(id, _)| id.into_owned()).collect(), answers })
    })
}
