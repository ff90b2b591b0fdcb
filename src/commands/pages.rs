//! What listings that are told page by page have in common: `[CURSOR c] [COUNT n]`, and the
//! cursor that comes with each page.

use crate::commands::args::{once, Args, Keyword};
use crate::redis::reply::Reply;
use crate::replies::errors::{unexpected, CommandError};
use crate::replies::fitting::fit_rows;

/// So many are given when COUNT does not say.
const COUNT: usize = 100;

/// Which page is asked for; `C` says where one begins.
pub struct Paging<C> {
    from: Option<Option<C>>,
    count: Option<usize>,
}

impl<C> Paging<C> {
    /// The first, of the usual length.
    pub const FIRST: Paging<C> = Paging { from: None, count: None };

    /// Takes an option if it is one of these; false when it is another.
    pub fn take<'a>(
        &mut self,
        option: &str,
        args: &mut Args<'a>,
        read: impl FnOnce(&'a [u8]) -> Option<C>,
    ) -> Result<bool, CommandError> {
        match option {
            "CURSOR" => once(&mut self.from, "CURSOR", args.cursor(read)?)?,
            "COUNT" => once(&mut self.count, "COUNT", args.length("COUNT", 1)?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes all that is left, where a listing has no other options.
    pub fn only<'a>(
        args: &mut Args<'a>,
        read: impl Fn(&'a [u8]) -> Option<C>,
    ) -> Result<Paging<C>, CommandError> {
        let mut page = Paging::FIRST;
        while let Some(word) = args.next() {
            if !page.take(Keyword::of(word).text(), args, &read)? {
                return unexpected(word);
            }
        }
        Ok(page)
    }

    /// Where it begins and how long it is.
    pub fn bounds(self) -> (Option<C>, usize) {
        (self.from.flatten(), self.count.unwrap_or(COUNT))
    }
}

/// Reads a cursor that names the last one given.
pub fn after(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b">")
}

/// Answers with a page of rows, as many of them as fit into one reply: the cursor first, which names
/// the last when `more` stand behind them. `name` is what a row is named by.
pub fn write<T>(
    reply: Reply,
    mut rows: Vec<T>,
    more: bool,
    name: impl Fn(&T) -> &[u8],
    write: impl Fn(Reply<'_>, &T),
) {
    let fits = fit_rows(&rows, &write);
    let more = more || fits < rows.len();
    rows.truncate(fits);
    begin(reply, rows.last().filter(|_| more).map(name));
    reply.array(rows.len());
    rows.iter().for_each(|row| write(reply, row));
}

/// Begins the reply: the cursor of what comes behind the last one, `0` when nothing does.
pub fn begin(reply: Reply, last: Option<&[u8]>) {
    reply.array(2);
    match last {
        Some(last) => reply.bytes(&[b">", last].concat()),
        None => reply.text("0"),
    }
}
