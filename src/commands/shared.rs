//! What a command names once and gives to each of several jobs: all copies together are
//! bounded by `max-shared`, so that a command costs no more than what it carries and that.

use crate::config::config;
use crate::replies::errors::{syntax, Done};

/// Bytes that waiting for one job takes, about.
pub const EDGE: usize = 128;
/// Bytes that a field of META or a tag takes beside itself, about.
pub const PIECE: usize = 32;

/// Refuses options that are too long for so many jobs: each with its bytes, in one of them.
/// `jobs` is the argument that names these.
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

/// Bytes of these and what each takes beside itself.
pub fn pieces(all: &[&[u8]]) -> usize {
    all.iter().map(|piece| piece.len() + PIECE).sum()
}
