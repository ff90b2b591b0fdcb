//! `JOB.TAGS`: the tags of a board, most used first.

use super::pages::Paging;
use super::{read, reference, Command, KeyUse, Spec};
use crate::commands::call::Call;
use crate::integers::whole;
use crate::replies::errors::Done;

/// `JOB.TAGS` → cursor, and tags with the number of jobs that have them.
pub struct Tags;

/// How many jobs have the last tag of a page, and that tag, from the number, a dot, and the tag.
fn cursor(text: &[u8]) -> Option<(usize, &[u8])> {
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let borne = parts.next().and_then(whole).and_then(|n| usize::try_from(n).ok());
    borne.zip(parts.next())
}

impl Command for Tags {
    const SPEC: Spec = reference::JOB_TAGS.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let (from, count) = Paging::only(&mut call.args, cursor)?.bounds();
        let reply = call.ctx.reply();
        read(call, |board| {
            let mut behind = board.top_tags(from);
            let page: Vec<(&[u8], usize)> = behind.by_ref().take(count).collect();
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
