//! What all paged listings have in common: `[CURSOR c] [COUNT n]`, and the cursor with each page.

use crate::commands::args::{once, Args, Keyword};
use crate::redis::reply::Reply;
use crate::replies::errors::{unexpected, CommandError};
use crate::replies::fitting::fit_rows;

/// How many rows a page has without COUNT.
const COUNT: usize = 100;

/// Which page a client asks for; `C` is where it begins.
pub struct Paging<C> {
    from: Option<Option<C>>,
    count: Option<usize>,
}

impl<C> Paging<C> {
    /// The first page, of the usual length.
    pub const FIRST: Paging<C> = Paging { from: None, count: None };

    /// Takes an option if it is one of these; otherwise returns false.
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

    /// Takes all remaining words, for a listing without other options.
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

    /// Where the page begins, and how many rows it has.
    pub fn bounds(self) -> (Option<C>, usize) {
        (self.from.flatten(), self.count.unwrap_or(COUNT))
    }
}

/// Reads a cursor that contains the last row.
pub fn after(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b">")
}

/// The cursor of a page that ends with the row of this name.
pub fn behind(name: &[u8]) -> Vec<u8> {
    [b">", name].concat()
}

/// Replies with a page of rows, as many as fit into one reply: first the cursor, that of the last
/// row if `more` rows follow. `cursor` is the cursor of a page that ends with a row.
pub fn write<T>(
    reply: Reply,
    mut rows: Vec<T>,
    more: bool,
    cursor: impl Fn(&T) -> Vec<u8>,
    write: impl Fn(Reply<'_>, &T),
) {
    let fits = fit_rows(&rows, &write);
    let more = more || fits < rows.len();
    rows.truncate(fits);
    begin(reply, rows.last().filter(|_| more).map(cursor));
    reply.array(rows.len());
    rows.iter().for_each(|row| write(reply, row));
}

/// Begins the reply: this cursor, or `0` when nothing follows.
pub fn begin(reply: Reply, cursor: Option<Vec<u8>>) {
    reply.array(2);
    match cursor {
        Some(cursor) => reply.bytes(&cursor),
        None => reply.text("0"),
    }
}
