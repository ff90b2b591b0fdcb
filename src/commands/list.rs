//! `JOB.LIST`: jobs by filters, page by page.

use board::{all_fields, Board, Filter, Filters, Page, Start, State};

use super::pages::Paging;
use super::{read, reference, Command, KeyUse, Spec};
use crate::commands::args::{flag, Args, Keyword, NO_CURSOR};
use crate::commands::call::Call;
use crate::commands::shape::Asked;
use crate::integers::{duration, whole};
use crate::redis::reply::Reply;
use crate::replies::errors::{syntax, unexpected, unknown, CommandError, Done};
use crate::replies::fitting::fit;
use crate::replies::records::write_records;
use crate::runtime::world;

/// `JOB.LIST` → cursor and records; with SINCE also the ids of removed jobs, and the revision.
/// Looks at ten jobs for each that it may return, and at 10,000 at least. A page ends early where
/// its records would be longer than `max-reply`.
pub struct List;

/// The most filters: each is checked for each job that is looked at.
const FILTERS_MOST: usize = 100;

fn state(args: &mut Args<'_>) -> Result<State, CommandError> {
    let name = args.value("STATE")?;
    State::named(name).map_or_else(|| unknown("state", name, State::ALL.map(State::name)), Ok)
}

/// The first and the last time of a filter: Unix ms, a duration before now as `-2h`, or `-` and `+`
/// for no bound.
fn times(args: &mut Args<'_>, name: &str) -> Result<(i64, i64), CommandError> {
    let now = world::now();
    let mut time = |open: &[u8], bound| {
        let word = args.value(name)?;
        let time = match word {
            _ if word == open => Some(bound),
            [b'-', ago @ ..] => duration(ago).map(|ago| now.saturating_sub(ago)),
            _ => whole(word),
        };
        match time.filter(|time| (0..=board::NEVER).contains(time)) {
            Some(time) => Ok(time),
            None => syntax(format!(
                "{name} must be followed by two times: Unix milliseconds, -2h for two hours ago, - and + for no bound"
            )),
        }
    };
    let (first, last) = (time(b"-", 0)?, time(b"+", board::NEVER)?);
    match first > last {
        true => syntax(format!("{name} must name the earlier time first")),
        false => Ok((first, last)),
    }
}

/// How ids begin.
fn beginning<'a>(args: &mut Args<'a>) -> Result<&'a [u8], CommandError> {
    match args.name("ID")? {
        [beginning @ .., b'*'] => Ok(beginning),
        _ => syntax("ID must be how an id begins, with '*' behind it: JOB.MGET reads whole ids"),
    }
}

/// Reads one filter if the word begins one.
pub fn filter<'a>(args: &mut Args<'a>, word: &[u8], to: &mut Filters<'a>) -> Result<bool, CommandError> {
    let mut keyword = Keyword::of(word);
    let mut none = false;
    if keyword.text() == "NOT" {
        none = true;
        keyword = Keyword::of(args.next().unwrap_or_default());
    }
    let filter = match keyword.text() {
        "STATE" => Filter::State(state(args)?),
        "QUEUE" => Filter::Queue(args.name("QUEUE")?),
        "GROUP" => Filter::Group(args.name("GROUP")?),
        "WORKER" => Filter::Worker(args.name("WORKER")?),
        "NAME" => Filter::Name(args.name("NAME")?),
        "LAPSED" => Filter::Lapsed,
        "TAG" => Filter::Tag(args.name("TAG")?),
        "KIND" => Filter::Kind(args.name("KIND")?),
        "TRACKED" => Filter::Tracked,
        "USER" => Filter::User(args.name("USER")?),
        "POSTED" => times(args, "POSTED").map(|(from, to)| Filter::Posted(from, to))?,
        "ENDED" => times(args, "ENDED").map(|(from, to)| Filter::Ended(from, to))?,
        "PARENT" => Filter::Parent(args.name("PARENT")?),
        "AFTER" => Filter::After(args.name("AFTER")?),
        "AWAITS" => Filter::Awaits(args.name("AWAITS")?),
        "ID" => Filter::Id(beginning(args)?),
        "META" => {
            let field = args.name("META")?;
            if args.left() == 0 {
                return syntax("META must be followed by a field and its value, as in META plan pro");
            }
            Filter::Meta(field, args.text("META value")?)
        }
        "STAGE" => Filter::Stage(args.name("STAGE")?),
        "MESSAGE" => Filter::Message(args.name("MESSAGE")?),
        "CONTAINS" => Filter::Contains(args.name("CONTAINS")?),
        "SINCE" => Filter::Since(args.int("SINCE", 0..=board::NEVER)? as u64),
        _ if none => return syntax("NOT must be followed by a filter, as in NOT STATE ready"),
        _ => return Ok(false),
    };
    if to.len() == FILTERS_MOST {
        return syntax(format!("no more than {FILTERS_MOST} filters can be named"));
    }
    match none {
        true => to.exclude(filter),
        false => to.ask(filter),
    }
    Ok(true)
}

/// Adds the ids of removed jobs, to the first page, and the board's revision.
fn write_gone(reply: Reply, board: &Board, version: u64, first: bool) {
    match if first { board.gone_since(version) } else { Some(Vec::new()) } {
        Some(gone) => {
            reply.array(gone.len());
            gone.iter().for_each(|id| reply.bytes(id));
        }
        None => reply.null_array(),
    }
    reply.int(board.revision() as i64);
}

/// Makes the board remember changes for the next such call.
fn follow(call: &Call<'_>) {
    let key = call.key();
    let mut open = call.ctx.open(&key).ok();
    if let Some(value) = open.as_mut().and_then(|open| open.value()) {
        value.board.follow_changes();
    }
}

impl Command for List {
    const SPEC: Spec = reference::JOB_LIST.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut page = Page::default();
        let (mut paging, mut asked, mut justid) = (Paging::FIRST, Asked::default(), false);
        while let Some(word) = args.next() {
            if filter(args, word, &mut page.filters)? {
                continue;
            }
            match Keyword::of(word).text() {
                "REV" => flag(&mut page.reverse, "REV")?,
                "JUSTID" => flag(&mut justid, "JUSTID")?,
                other if asked.take(other, args)? => {}
                option if paging.take(option, args, Start::read)? => {}
                _ => return unexpected(word),
            }
        }
        if let (true, Some(given)) = (justid, asked.given()) {
            return syntax(format!("JUSTID and {given} exclude each other"));
        }
        (page.from, page.count) = paging.bounds();
        if !page.fits() {
            return syntax(NO_CURSOR);
        }
        let reply = call.ctx.reply();
        read(call, |board| {
            let (mut slots, mut next) = board.list(&page);
            let shape = asked.shape(all_fields);
            let fits = if justid { slots.len() } else { fit(board, &slots, &shape.fields) };
            if fits < slots.len() {
                page.count = fits;
                (slots, next) = board.list(&page);
            }
            let since = page.filters.since();
            reply.array(if since.is_some() { 4 } else { 2 });
            match next {
                Some(cursor) => reply.text(&cursor.text()),
                None => reply.text("0"),
            }
            if justid {
                reply.array(slots.len());
                for record in slots.iter().filter_map(|slot| board.record_of(*slot)) {
                    record.id().text(|id| reply.bytes(id));
                }
            } else {
                write_records(reply, board, &slots, &shape);
            }
            if let Some(version) = since {
                write_gone(reply, board, version, page.from.is_none());
            }
            Ok(())
        })?;
        if page.filters.since().is_some() {
            follow(call);
        }
        Ok(())
    }
}
