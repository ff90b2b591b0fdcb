//! `JOB.COUNT`: how many jobs pass filters.

use board::{Filters, Page, Start};

use super::list::filter;
use super::{read, reference, Command, KeyUse, Spec};
use crate::commands::args::{once, Keyword, NO_CURSOR};
use crate::commands::call::Call;
use crate::replies::errors::{syntax, unexpected, Done};

/// `JOB.COUNT` → how many; without filters those that have not ended. With CURSOR → cursor, and how
/// many of the jobs looked at.
pub struct Count;

/// The most jobs that one call looks at.
const LOOKS: usize = 100_000;
/// The same when texts are searched, which takes longer than a look.
const LOOKS_WITH_TEXTS: usize = 25_000;

impl Command for Count {
    const SPEC: Spec = reference::JOB_COUNT.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let (mut filters, mut cursor) = (Filters::default(), None);
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "CURSOR" => once(&mut cursor, "CURSOR", args.cursor(Start::read)?)?,
                _ if filter(args, word, &mut filters)? => {}
                _ => return unexpected(word),
            }
        }
        let page = Page { filters, from: cursor.flatten(), ..Page::default() };
        if !page.fits() {
            return syntax(NO_CURSOR);
        }
        let reply = call.ctx.reply();
        let (most, why) = match page.filters.search() {
            true => (LOOKS_WITH_TEXTS, "searches too much text for one call".into()),
            false => (LOOKS, format!("looks at more than {LOOKS} jobs")),
        };
        read(call, |board| {
            let counted = match page.from {
                None => board.count_jobs(&page.filters, most),
                Some(_) => None,
            };
            match (counted, cursor) {
                (Some(n), None) => reply.int(n as i64),
                (None, None) => {
                    return syntax(format!("the count {why}: give CURSOR 0, then the returned cursor"))
                }
                (Some(n), Some(_)) => {
                    reply.array(2);
                    reply.text("0");
                    reply.int(n as i64);
                }
                (None, Some(_)) => {
                    let (slots, next) = board.list(&Page { count: LOOKS / 10, ..page });
                    reply.array(2);
                    reply.text(&next.map_or_else(|| "0".into(), |next| next.text()));
                    reply.int(slots.len() as i64);
                }
            }
            Ok(())
        })
    }
}
