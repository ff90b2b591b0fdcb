//! What a command names once and gives to each of several jobs: `max-shared` bounds all copies
//! together, so that a command cannot cost much more than the bytes it carries.

use board::Meta;

use crate::config::config;
use crate::replies::errors::{syntax, Done};

/// About how many bytes one edge to a job takes.
pub const EDGE: usize = 128;
/// About how many bytes a field of META or a tag takes beside its own.
pub const PIECE: usize = 32;

/// Refuses options that are too long for `n` jobs: each option with its bytes in one job. `jobs` is
/// the argument that names the jobs.
pub fn check(n: usize, jobs: &str, options: &[(&str, usize)]) -> Done {
    let each: usize = options.iter().map(|(_, bytes)| bytes).sum();
    let (all, most) = (n.saturating_mul(each), config().max_shared);
    if n < 2 || all as i64 <= most {
        return Ok(());
    }
    let (longest, _) = options.iter().max_by_key(|(_, bytes)| bytes).unwrap_or(&("", 0));
    syntax(format!(
        "{longest} for each of {n} jobs ({jobs}) is {all} bytes, more than max-shared ({most}): name fewer jobs"
    ))
}

/// The bytes of these fields.
pub fn fields(meta: &Meta<'_>) -> usize {
    meta.iter().map(|(field, value)| field.len() + value.len() + PIECE).sum()
}

/// The bytes of these, with what each takes beside its own.
pub fn pieces(all: &[&[u8]]) -> usize {
    all.iter().map(|piece| piece.len() + PIECE).sum()
}
