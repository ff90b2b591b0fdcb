//! `JOB.SCHEDULE`: recurring jobs.

use board::{
    is_schedule_id, Backlog, Board, Options, Overlap, Post, Protocol, Schedule, SetSchedule, Subject, When,
    BACKLOG_MOST, LONGEST, NEVER, SCHEDULE_ID_LONGEST,
};

use super::gate::GateOptions;
use super::pages::{self, Paging};
use super::post::{attribute, LATEST};
use super::unique::Key;
use super::{read, reference, Command, Family, KeyUse, Spec};
use crate::commands::args::{once, one_of, Args, Keyword};
use crate::commands::call::Call;
use crate::integers::whole;
use crate::redis::reply::Reply;
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// The parent of the subcommands.
pub struct Parent;

impl Family for Parent {
    const SPEC: Spec = reference::JOB_SCHEDULE;
}

/// The options for when a schedule fires.
const WHENS: &str = "EVERY and CRON";
/// The highest MAX.
const MANY: i64 = (1 << 53) - 1;

/// `JOB.SCHEDULE SET` → OK. Replicates `ScheduleSet`.
pub struct Set;

/// `JOB.SCHEDULE GET` → a map, or null.
pub struct Get;

/// `JOB.SCHEDULE LIST` → cursor and maps, by id.
pub struct List;

/// `JOB.SCHEDULE DEL` → OK. Replicates `ScheduleDeleted`.
pub struct Del;

/// `JOB.SCHEDULE PAUSE` → OK. Replicates `ScheduleMoved`.
pub struct Pause;

/// `JOB.SCHEDULE RESUME` → OK. Replicates `ScheduleMoved`.
pub struct Resume;

/// `JOB.SCHEDULE RUN` → the child's id, or null. Replicates `Fired`.
pub struct Run;

/// One of a few words.
fn word<T>(
    args: &mut Args<'_>,
    name: &str,
    all: &str,
    named: impl Fn(&[u8]) -> Option<T>,
) -> Result<T, CommandError> {
    named(args.value(name)?).map_or_else(|| syntax(format!("{name} must be {all}")), Ok)
}

/// What BACKLOG names: a word, or how many of the missed times.
fn backlog(text: &[u8]) -> Option<(Backlog, u32)> {
    match whole(text).map(u32::try_from) {
        Some(Ok(1)) => Some((Backlog::One, 0)),
        Some(Ok(most @ 2..=BACKLOG_MOST)) => Some((Backlog::All, most)),
        _ => Backlog::named(text).map(|backlog| (backlog, 0)),
    }
}

fn options<'a>(args: &mut Args<'a>, set: &mut SetSchedule<'a>) -> Result<(), CommandError> {
    let (mut when, mut key, mut gate) = (None, Key::default(), GateOptions::default());
    while let Some(text) = args.next() {
        match Keyword::of(text).text() {
            "EVERY" => one_of(&mut when, WHENS, "EVERY", When::Every(args.ms("EVERY", 1..=LONGEST)?))?,
            "CRON" => one_of(&mut when, WHENS, "CRON", When::Cron(args.upto("CRON", board::CRON_LONGEST)?))?,
            "TZ" => once(&mut set.zone, "TZ", args.upto("TZ", board::ZONE_LONGEST)?)?,
            "START" => once(&mut set.start, "START", args.time("START", 0..=LATEST)?)?,
            "END" => {
                let end = args.time("END", -1..=LATEST)?;
                once(&mut set.end, "END", (end >= 0).then_some(end))?;
            }
            "MAX" => match args.int("MAX", -1..=MANY)? {
                0 => return syntax(format!("MAX must be -1 or an integer from 1 to {MANY}")),
                max => once(&mut set.max, "MAX", u64::try_from(max).ok())?,
            },
            "BACKLOG" => {
                let all = format!("skip, one, all, or an integer from 1 to {BACKLOG_MOST}");
                let (backlog, most) = word(args, "BACKLOG", &all, backlog)?;
                once(&mut set.backlog, "BACKLOG", backlog)?;
                set.most_missed = most;
            }
            "OVERLAP" => {
                let all = "allow, skip or replace";
                once(&mut set.overlap, "OVERLAP", word(args, "OVERLAP", all, Overlap::named)?)?;
            }
            "JITTER" => once(&mut set.jitter, "JITTER", args.ms("JITTER", 0..=LONGEST)?)?,
            "DELAY" => once(&mut set.delay, "DELAY", args.ms("DELAY", 0..=LONGEST)?)?,
            "BACKOFF-JITTER" => {
                let percent = args.int("BACKOFF-JITTER", 0..=100)?;
                once(&mut set.child.options.jitter, "BACKOFF-JITTER", percent)?;
            }
            other if attribute(other, args, &mut set.child)? => {}
            other if key.take(other, args)? => {}
            other if gate.take(other, "AWAIT", args)? => {}
            _ => return unexpected(text),
        }
    }
    set.when = when.map(|(_, when)| when);
    set.child.unique = key.finish()?;
    set.child.gate = gate.finish("AWAIT")?;
    Ok(())
}

fn new_id<'a>(args: &mut Args<'a>) -> Result<&'a [u8], CommandError> {
    match args.value("id")? {
        id if is_schedule_id(id) => Ok(id),
        [b'@', ..] => syntax("id must not begin with '@'"),
        _ => syntax(format!("id must be 1 to {SCHEDULE_ID_LONGEST} bytes long")),
    }
}

/// The id of a schedule, and nothing after it.
fn id<'a>(args: &mut Args<'a>) -> Result<&'a [u8], CommandError> {
    let id = args.name("id")?;
    args.end()?;
    Ok(id)
}

/// The fields of a map, which is written when their number is known.
#[derive(Default)]
struct Row<'a>(Vec<(&'static str, Cell<'a>)>);

enum Cell<'a> {
    Int(i64),
    Bytes(&'a [u8]),
    Meta(&'a [(board::ByteString, board::ByteString)]),
    Tags(&'a [board::ByteString]),
    Costs(&'a [(board::ByteString, i64)]),
}

impl<'a> Row<'a> {
    fn int(&mut self, name: &'static str, value: Option<i64>) {
        self.0.extend(value.map(|n| (name, Cell::Int(n))));
    }

    fn bytes(&mut self, name: &'static str, value: Option<&'a [u8]>) {
        self.0.extend(value.map(|text| (name, Cell::Bytes(text))));
    }

    fn write(self, reply: Reply) {
        reply.map(self.0.len());
        for (name, cell) in self.0 {
            reply.text(name);
            match cell {
                Cell::Int(n) => reply.int(n),
                Cell::Bytes(text) => reply.bytes(text),
                Cell::Tags(tags) => {
                    reply.array(tags.len());
                    tags.iter().for_each(|tag| reply.bytes(tag));
                }
                Cell::Costs(costs) => {
                    reply.map(costs.len());
                    for (limit, cost) in costs {
                        reply.bytes(limit);
                        reply.int(*cost);
                    }
                }
                Cell::Meta(meta) => {
                    reply.map(meta.len());
                    for (field, value) in meta {
                        reply.bytes(field);
                        reply.bytes(value);
                    }
                }
            }
        }
    }
}

fn write(reply: Reply, schedule: &Schedule) {
    let some = |text: &'static str| Some(text.as_bytes());
    let time = |t: i64| (t != NEVER).then_some(t);
    let (template, mut row) = (&schedule.template, Row::default());
    let mut options = template.options;
    row.bytes("id", Some(&schedule.id));
    row.bytes("state", some(schedule.state()));
    row.int("every", (schedule.every > 0).then_some(schedule.every));
    row.bytes("cron", (schedule.every == 0).then_some(&*schedule.cron));
    row.bytes("tz", Some(&*schedule.zone).filter(|zone| !zone.is_empty()));
    row.int("start", schedule.start);
    row.int("end", schedule.end);
    row.int("max", schedule.max.map(|n| n as i64));
    match schedule.most_missed {
        0 => row.bytes("backlog", some(schedule.backlog.name())),
        most => row.int("backlog", Some(most.into())),
    }
    row.bytes("overlap", some(schedule.overlap.name()));
    row.int("jitter", Some(schedule.jitter));
    row.int("fired", Some(schedule.fired as i64));
    row.int("refused", (schedule.refused > 0).then_some(schedule.refused as i64));
    row.int("last", (schedule.last > 0).then_some(schedule.last as i64));
    row.int("intended", schedule.intended);
    row.int("next", time(schedule.next));
    row.int("due", time(schedule.at));
    row.bytes("payload", Some(&template.payload));
    row.bytes("name", template.name.as_deref());
    row.bytes("queue", Some(template.queue.as_deref().unwrap_or(board::DEFAULT_QUEUE)));
    row.bytes("group", template.group.as_deref());
    row.int("priority", Some(template.priority.unwrap_or(0).into()));
    row.int("delay", template.delay);
    row.bytes("parent", template.parent.as_deref());
    row.int("share", template.share.map(i64::from));
    for (name, field) in Options::NUMBERS {
        row.int(field, options.number(name).and_then(|option| *option.value));
    }
    row.int("backoff-base", options.backoff.map(|(base, _)| base));
    row.int("backoff-max", options.backoff.map(|(_, max)| max));
    row.bytes("user", template.user.as_deref());
    if !template.costs.is_empty() {
        row.0.push(("costs", Cell::Costs(&template.costs)));
    }
    row.int("maxlive", template.most_live);
    if let Some(unique) = &template.unique {
        row.bytes("unique", Some(&unique.key));
        row.bytes("until", unique.until.map(|until| until.name().as_bytes()));
        row.int("for", unique.time);
    }
    if let Some(gate) = &template.gate {
        row.0.push(("await", Cell::Tags(&gate.names)));
        row.int("any", gate.any.then_some(1));
        row.int("within", gate.within);
        row.bytes("ontimeout", gate.within.map(|_| gate.on_timeout.name().as_bytes()));
    }
    if !template.meta.is_empty() {
        row.0.push(("meta", Cell::Meta(&template.meta)));
    }
    if !template.tags.is_empty() {
        row.0.push(("tags", Cell::Tags(&template.tags)));
    }
    row.write(reply);
}

impl Command for Set {
    const SPEC: Spec = reference::JOB_SCHEDULE_SET.with("write deny-oom", KeyUse::Insert);

    fn run(call: &mut Call<'_>) -> Done {
        let id = new_id(&mut call.args)?;
        let child = Post { payload: call.args.payload("payload")?, ..Post::default() };
        let mut set = SetSchedule { id, child, ..SetSchedule::default() };
        options(&mut call.args, &mut set)?;
        Commit::run(call.ctx, &call.key(), |commit| {
            commit.perform(Subject::SetSchedule(&set), |board, env| board.set_schedule(env, &set).map(Some))
        })?;
        call.ctx.reply().ok();
        Ok(())
    }
}

impl Command for Get {
    const SPEC: Spec = reference::JOB_SCHEDULE_GET.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let id = id(&mut call.args)?;
        let reply = call.ctx.reply();
        read(call, |board| {
            match board.schedule(id) {
                Some(schedule) => write(reply, schedule),
                None => reply.null(),
            }
            Ok(())
        })
    }
}

impl Command for List {
    const SPEC: Spec = reference::JOB_SCHEDULE_LIST.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let (from, count) = Paging::only(&mut call.args, pages::after)?.bounds();
        let reply = call.ctx.reply();
        read(call, |board: &Board| {
            let mut behind = board.schedules_after(from);
            let page: Vec<&Schedule> = behind.by_ref().take(count).collect();
            let more = behind.next().is_some();
            pages::write(
                reply,
                page,
                more,
                |schedule| pages::behind(&schedule.id),
                |reply, schedule| write(reply, schedule),
            );
            Ok(())
        })
    }
}

impl Command for Del {
    const SPEC: Spec = reference::JOB_SCHEDULE_DEL.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let id = id(&mut call.args)?;
        Commit::run(call.ctx, &call.key(), |commit| {
            commit.perform(Subject::Schedule(id), |board, _| board.delete_schedule(id).map(Some))
        })?;
        call.ctx.reply().ok();
        Ok(())
    }
}

fn pause(call: &mut Call<'_>, paused: bool) -> Done {
    let id = id(&mut call.args)?;
    Commit::run(call.ctx, &call.key(), |commit| {
        commit.perform(Subject::Schedule(id), |board, env| board.pause_schedule(env, id, paused))
    })?;
    call.ctx.reply().ok();
    Ok(())
}

impl Command for Pause {
    const SPEC: Spec = reference::JOB_SCHEDULE_PAUSE.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        pause(call, true)
    }
}

impl Command for Resume {
    const SPEC: Spec = reference::JOB_SCHEDULE_RESUME.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        pause(call, false)
    }
}

impl Command for Run {
    const SPEC: Spec = reference::JOB_SCHEDULE_RUN.with("write deny-oom", KeyUse::Insert);

    fn run(call: &mut Call<'_>) -> Done {
        let id = id(&mut call.args)?;
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            match commit.decide(Subject::Schedule(id), |board, env| board.run_schedule(env, id))? {
                Some(fired) => {
                    reply.bytes(&fired.child());
                    commit.apply(fired)
                }
                None => {
                    reply.null();
                    Ok(())
                }
            }
        })
    }
}
