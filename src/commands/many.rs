//! The M-forms of a worker's verbs: many jobs in one command, with a reply for each.

use std::borrow::Cow;

use board::ANYBODY;

use crate::commands::args::Args;
use crate::replies::endings::Ending;
use crate::replies::errors::{syntax, CommandError};
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
    /// claims.
    pub fn paired(self, tokens: Option<Vec<u64>>, worker: &[u8], commit: &mut Commit<'_>) -> Vec<Target<'a>> {
        let Targets::Ids(ids) = self else {
            let board = &*commit.board();
            let held = board.held(worker, 0).filter_map(|slot| board.record_of(slot));
            return held.map(|record| (Cow::Owned(record.id().to_vec()), record.token())).collect();
        };
        let mut tokens = tokens.unwrap_or_default().into_iter();
        ids.into_iter().map(|id| (Cow::Borrowed(id), tokens.next())).collect()
    }
}

/// Ends the work on each target with `each`, which replies for one job. With ALL each reply
/// contains the job's id.
pub fn for_each(
    commit: &mut Commit<'_>,
    targets: Vec<Target<'_>>,
    all: bool,
    mut each: impl FnMut(&mut Commit<'_>, &[u8], Option<u64>) -> Result<Ending, CommandError>,
) -> Result<Ending, CommandError> {
    let mut answers = Vec::with_capacity(targets.len());
    for (id, token) in &targets {
        answers.push(match each(commit, id, *token) {
            Err(CommandError::Refused(refusal)) => Err(refusal),
            answer => Ok(answer?),
        });
    }
    let told = targets.into_iter().filter(|_| all);
    Ok(Ending::Each { ids: told.map(|(id, _)| id.into_owned()).collect(), answers })
}
