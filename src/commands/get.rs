//! `JOB.GET` and `JOB.MGET`: records by id.

use board::{all_fields, Board, NEVER};

use super::{read, reference, selection, Command, KeyUse, Spec};
use crate::commands::args::{once, Args, Keyword};
use crate::commands::call::Call;
use crate::commands::shape::Asked;
use crate::redis::reply::Reply;
use crate::replies::errors::{unexpected, CommandError, Done};
use crate::replies::fitting::fit;
use crate::replies::records::{write_found, write_one, write_records, Shape};

/// `JOB.GET` → record or null; with CHILDREN record, cursor and records of children in the order of
/// their posts.
pub struct Get;

/// `JOB.MGET` → a record or null for each id.
pub struct MGet;

fn options(args: &mut Args<'_>) -> Result<Shape, CommandError> {
    let mut asked = Asked::default();
    while let Some(word) = args.next() {
        if !asked.take(Keyword::of(word).text(), args)? {
            return unexpected(word);
        }
    }
    Ok(asked.shape(all_fields))
}

/// Which of a job's children to return: from an order of posting on, and how many.
#[derive(Default)]
struct Children {
    from: Option<i64>,
    count: Option<usize>,
}

/// How many children are returned without COUNT.
const COUNT: usize = 100;

impl Children {
    /// Takes an option if it is one of these; otherwise returns false.
    fn take(&mut self, option: &str, args: &mut Args<'_>) -> Result<bool, CommandError> {
        match option {
            "CURSOR" => once(&mut self.from, "CURSOR", args.int("CURSOR", 0..=NEVER)?)?,
            "COUNT" => once(&mut self.count, "COUNT", args.length("COUNT", 1)?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Replies with a record, a cursor, and records of its children.
    fn write(&self, reply: Reply, board: &Board, slot: u32, shape: &Shape) {
        let children = || board.children_from(slot, self.from.unwrap_or(0));
        let mut page: Vec<u32> =
            children().take(self.count.unwrap_or(COUNT)).map(|(_, child)| child).collect();
        page.truncate(fit(board, &page, &shape.fields));
        reply.array(3);
        write_one(reply, board, slot, shape);
        reply.text(&children().nth(page.len()).map_or(0, |(seq, _)| seq).to_string());
        write_records(reply, board, &page, shape);
    }
}

impl Command for Get {
    const SPEC: Spec = reference::JOB_GET.with("readonly fast", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let id = args.name("id")?;
        let (mut asked, mut children) = (Asked::default(), None::<Children>);
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "CHILDREN" => once(&mut children, "CHILDREN", Children::default())?,
                other if asked.take(other, args)? => {}
                other => {
                    let taken = children.as_mut().map(|children| children.take(other, args)).transpose()?;
                    if taken != Some(true) {
                        return unexpected(word);
                    }
                }
            }
        }
        let shape = asked.shape(all_fields);
        let reply = call.ctx.reply();
        read(call, |board| {
            match (board.find(id), children) {
                (Some(slot), Some(children)) => children.write(reply, board, slot, &shape),
                (Some(slot), None) => write_one(reply, board, slot, &shape),
                (None, _) => reply.null(),
            }
            Ok(())
        })
    }
}

impl Command for MGet {
    const SPEC: Spec = reference::JOB_MGET.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let ids = selection::ids(&mut call.args)?;
        let shape = options(&mut call.args)?;
        let reply = call.ctx.reply();
        read(call, |board| write_found(reply, Some(board), ids.iter().copied(), &shape))
    }
}
