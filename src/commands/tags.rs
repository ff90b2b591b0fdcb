//! `JOB.TAGS`: the tags of a board, most used first.

use super::list::NO_CURSOR;
use super::{page, read, Command, KeyUse, Spec};
use crate::args::{whole, Args};
use crate::fault::{syntax, Done, Fault};
use crate::server::call::Call;

/// `JOB.TAGS board [COUNT n] [CURSOR c]` → cursor, and tags with the number of jobs that bear
/// them.
pub struct Tags;

/// So many are given when COUNT does not say.
const COUNT: usize = 100;

/// `0`, or how many jobs bear the tag that was given last, a dot, and that tag.
fn cursor<'a>(args: &mut Args<'a>) -> Result<Option<(usize, &'a [u8])>, Fault> {
    let text = args.value("CURSOR")?;
    if text == b"0" {
        return Ok(None);
    }
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let borne = parts.next().and_then(whole).and_then(|n| usize::try_from(n).ok());
    match (borne, parts.next()) {
        (Some(borne), Some(tag)) => Ok(Some((borne, tag))),
        _ => syntax(NO_CURSOR),
    }
}

impl Command for Tags {
    const SPEC: Spec = Spec {
        name: "job.tags",
        arity: -2,
        flags: "readonly",
        key: Some(KeyUse::Read),
        summary: "Lists tags with the number of jobs that have them, most used first.",
        complexity: "O(log T + n) for n tags given out of T",
        syntax: "board [CURSOR cursor] [COUNT n]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let (from, count) = page(&mut call.args, cursor)?;
        let reply = call.ctx.reply();
        read(call, |board| {
            let mut behind = board.top_tags(from.flatten());
            let page: Vec<(&[u8], usize)> = behind.by_ref().take(count.unwrap_or(COUNT)).collect();
            reply.array(2);
            match (behind.next(), page.last()) {
                (Some(_), Some((tag, jobs))) => {
                    reply.bytes(&[jobs.to_string().as_bytes(), b".", tag].concat())
                }
                _ => reply.text("0"),
            }
            reply.array(page.len());
            for (tag, jobs) in page {
                reply.map(2);
                reply.text("tag");
                reply.bytes(tag);
                reply.text("jobs");
                reply.int(jobs as i64);
            }
            Ok(())
        })
    }
}
