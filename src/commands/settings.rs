//! `JOB.SETTINGS GET`, `SET` and `RESET`: settings of a board, of its queues and their groups, and
//! of shared limits.

use board::{
    clean, Board, Configured, DeadQueueNamed, EventKind, Level, LimitsNamed, Scope, Setting, Source,
    ALL_EVENTS, LONGEST, NAMED_MOST, SPECS,
};

use super::{read, reference, Command, Family, KeyUse, Spec};
use crate::commands::args::Args;
use crate::commands::call::Call;
use crate::config::config;
use crate::integers::whole;
use crate::replies::errors::{syntax, unknown, CommandError, Done};
use crate::runtime::commit::Commit;

/// The parent of the subcommands.
pub struct Parent;

impl Family for Parent {
    const SPEC: Spec = reference::JOB_SETTINGS;
}

/// `JOB.SETTINGS GET` → for each name value and source.
pub struct Get;

/// `JOB.SETTINGS SET` → OK. Replicates `Configured` or `LimitsNamed` or
/// `DeadQueueNamed` for each.
pub struct Set;

/// `JOB.SETTINGS RESET` → OK. Replicates as `SET`.
pub struct Reset;

/// What can be set: a number, the shared limits that a queue or a group names, or the dead queue of a
/// queue.
#[derive(Clone, Copy, PartialEq)]
enum Name {
    One(Setting),
    Limits,
    DeadQueue,
}

impl Name {
    fn text(self) -> &'static str {
        match self {
            Name::One(setting) => setting.spec().name,
            Name::Limits => "limits",
            Name::DeadQueue => "dead-queue",
        }
    }
}

/// The value of a setting.
enum Value<'a> {
    Number(i64),
    Limits(Vec<&'a [u8]>),
    /// `None` for an empty name.
    DeadQueue(Option<&'a [u8]>),
}

/// The queue and the group, where shared limits can be named.
fn place(scope: Scope<'_>) -> Option<(&[u8], Option<&[u8]>)> {
    match scope {
        Scope::Queue(queue) => Some((queue, None)),
        Scope::Group(queue, group) => Some((queue, Some(group))),
        Scope::Board | Scope::Limit(_) => None,
    }
}

/// The queue, where a dead queue can be named.
fn queue_alone(scope: Scope<'_>) -> Option<&[u8]> {
    match scope {
        Scope::Queue(queue) => Some(queue),
        _ => None,
    }
}

/// The shared limits in force there, and where their list comes from.
fn limits_in_force<'b>(scope: Scope<'_>, board: &'b Board) -> (Vec<&'b [u8]>, Source) {
    let Some((queue, group)) = place(scope) else { return (Vec::new(), Source::Default) };
    let own = board.limits_named(queue, group);
    let groups = || board.limits_named(queue, Some(board::ALL_GROUPS));
    match (own, group) {
        (Some(own), None) => (own, Source::Queue),
        (Some(own), Some(board::ALL_GROUPS)) => (own, Source::Groups),
        (Some(own), Some(_)) => (own, Source::Group),
        (None, Some(_)) => match groups() {
            Some(names) => (names, Source::Groups),
            None => (Vec::new(), Source::Default),
        },
        (None, None) => (Vec::new(), Source::Default),
    }
}

/// What can be set there.
fn all(scope: Scope<'_>) -> Vec<Name> {
    let here = SPECS.iter().filter(|spec| spec.at(scope.level()));
    let limits = place(scope).map(|_| Name::Limits);
    let dead = queue_alone(scope).map(|_| Name::DeadQueue);
    here.map(|spec| Name::One(spec.setting)).chain(limits).chain(dead).collect()
}

fn own(scope: Scope<'_>, board: &Board) -> Vec<Name> {
    let named = place(scope).and_then(|(queue, group)| board.limits_named(queue, group));
    let dead = queue_alone(scope).and_then(|queue| board.dead_queue(queue));
    let lists = named.map(|_| Name::Limits).into_iter().chain(dead.map(|_| Name::DeadQueue));
    board.own_settings(scope).into_iter().map(Name::One).chain(lists).collect()
}

/// Refuses what the board has no room for, or does not know, before anything is set.
fn check(scope: Scope<'_>, board: &Board, values: &[(Name, Value<'_>)]) -> Result<(), CommandError> {
    match scope {
        Scope::Limit(limit) => board.check_new_limit(limit)?,
        Scope::Queue(queue) => board.check_queue(queue)?,
        Scope::Group(queue, group) => {
            board.check_queue(queue)?;
            board.check_new_group(queue, Some(group).filter(|group| *group != board::ALL_GROUPS))?;
        }
        Scope::Board => {}
    }
    for (_, value) in values {
        let (Value::Limits(names), Some((queue, group))) = (value, place(scope)) else { continue };
        if let Some(name) = names.iter().find(|name| board.limit(name).is_none()) {
            return syntax(format!("limits names '{}', which is not a limit of this board", clean(name)));
        }
        board.check_limits_named(queue, group, names)?;
    }
    Ok(())
}

fn set(
    scope: Scope<'_>,
    commit: &mut Commit<'_>,
    name: Name,
    value: Option<&Value<'_>>,
) -> Result<(), CommandError> {
    match (name, place(scope)) {
        (Name::One(setting), _) => {
            let value = value.and_then(|value| match value {
                Value::Number(number) => Some(*number),
                _ => None,
            });
            commit.apply(Configured { scope, setting, value })
        }
        (Name::Limits, Some((queue, group))) => {
            let names = value.and_then(|value| match value {
                Value::Limits(names) => Some(&names[..]),
                _ => None,
            });
            commit.apply(LimitsNamed::new(queue, group, names))
        }
        (Name::DeadQueue, Some((queue, None))) => {
            let dead = value.and_then(|value| match value {
                Value::DeadQueue(dead) => *dead,
                _ => None,
            });
            commit.apply(DeadQueueNamed::new(queue, dead))
        }
        (Name::Limits | Name::DeadQueue, _) => Ok(()),
    }
}

fn scope<'a>(args: &mut Args<'a>) -> Result<Scope<'a>, CommandError> {
    if args.take("LIMIT") {
        return Ok(Scope::Limit(args.name("LIMIT")?));
    }
    if !args.take("QUEUE") {
        return match args.take("GROUP") {
            true => syntax("GROUP needs QUEUE before it"),
            false => Ok(Scope::Board),
        };
    }
    let queue = args.name("QUEUE")?;
    match args.take("GROUP") {
        true => Ok(Scope::Group(queue, args.name("GROUP")?)),
        false => Ok(Scope::Queue(queue)),
    }
}

fn named(name: &[u8], scope: Scope<'_>) -> Result<Name, CommandError> {
    if name.eq_ignore_ascii_case(b"limits") {
        return match place(scope) {
            Some(_) => Ok(Name::Limits),
            None => syntax("'limits' is a setting of queues and groups"),
        };
    }
    if name.eq_ignore_ascii_case(b"dead-queue") {
        return match queue_alone(scope) {
            Some(_) => Ok(Name::DeadQueue),
            None => syntax("'dead-queue' is a setting of queues"),
        };
    }
    let Some(setting) = Setting::named(name) else {
        return unknown("setting", name, all(scope).iter().map(|name| name.text()));
    };
    let spec = setting.spec();
    match scope.level() {
        level if spec.at(level) => Ok(Name::One(setting)),
        Level::Group => syntax(format!("'{}' is not a setting of groups", spec.name)),
        Level::Limit => syntax(format!("'{}' is not a setting of limits", spec.name)),
        _ if spec.at(Level::Board) => syntax(format!("'{}' is a setting of the whole board", spec.name)),
        _ => syntax(format!("'{}' is a setting of groups", spec.name)),
    }
}

/// The command itself reviews at most this many groups after a setting of all groups has changed; the
/// timer reviews the rest.
const REVIEWS: u32 = 64;

fn review(commit: &mut Commit<'_>) -> Done {
    match commit.board().review(REVIEWS) {
        Some(reviewed) => commit.apply(reviewed),
        None => Ok(()),
    }
}

fn names(args: &mut Args<'_>, scope: Scope<'_>) -> Result<Vec<Name>, CommandError> {
    let mut settings = Vec::new();
    while let Some(name) = args.next() {
        let setting = named(name, scope)?;
        if settings.contains(&setting) {
            return syntax(format!("{} is given twice", setting.text()));
        }
        settings.push(setting);
    }
    Ok(settings)
}

/// The limits that a queue or a group is to name: how many, and these.
fn limits<'a>(args: &mut Args<'a>) -> Result<Vec<&'a [u8]>, CommandError> {
    let n = args.int("limits", 0..=NAMED_MOST as i64)? as usize;
    let names = args.many(n, "limits", |args| args.name("limits"))?;
    let twice = names.iter().enumerate().find(|(at, name)| names.iter().take(*at).any(|n| n == *name));
    match twice {
        Some((_, name)) => syntax(format!("limits names '{}' twice", clean(name))),
        None => Ok(names),
    }
}

/// The dead queue that a queue is to have: an empty name for none.
fn dead_queue<'a>(args: &mut Args<'a>, scope: Scope<'_>) -> Result<Option<&'a [u8]>, CommandError> {
    match args.peek() {
        Some(b"") => {
            args.next();
            Ok(None)
        }
        Some(dead) if queue_alone(scope) == Some(dead) => {
            syntax("dead-queue must be another queue: its dead jobs would die there again")
        }
        _ => args.name("dead-queue").map(Some),
    }
}

/// The value of a setting: a number; of one which is on or off, and of `events`, also words.
fn value(args: &mut Args<'_>, setting: Setting) -> Result<i64, CommandError> {
    let spec = setting.spec();
    let switch = (spec.min, spec.max) == (0, 1);
    match args.peek() {
        Some(words) if setting == Setting::Events && whole(words).is_none() => {
            args.next();
            events(words)
        }
        _ if switch && args.take("YES") => Ok(1),
        _ if switch && args.take("NO") => Ok(0),
        _ if spec.max == LONGEST => args.ms(spec.name, spec.min..=spec.max),
        _ => args.int(spec.name, spec.min..=spec.max),
    }
}

/// The bits that names of events, joined by commas, stand for.
fn events(words: &[u8]) -> Result<i64, CommandError> {
    let bits_of = |word: &[u8]| match word {
        _ if word.eq_ignore_ascii_case(b"all") => Some(ALL_EVENTS),
        _ if word.eq_ignore_ascii_case(b"none") => Some(0),
        _ => {
            let named = EventKind::ALL.into_iter().find(|t| word.eq_ignore_ascii_case(t.name().as_bytes()));
            named.map(EventKind::bit)
        }
    };
    let names = || EventKind::ALL.into_iter().map(EventKind::name).chain(["all", "none"]);
    let mut bits = 0;
    for word in words.split(|byte| *byte == b',') {
        bits |= match bits_of(word) {
            Some(more) => i64::from(more),
            None => unknown("event", word, names())?,
        };
    }
    Ok(bits)
}

impl Command for Get {
    const SPEC: Spec = reference::JOB_SETTINGS_GET.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let scope = scope(&mut call.args)?;
        let mut settings = names(&mut call.args, scope)?;
        if settings.is_empty() {
            settings = all(scope);
        }
        let reply = call.ctx.reply();
        read(call, |board| {
            reply.map(settings.len());
            for setting in &settings {
                reply.text(setting.text());
                reply.array(2);
                let source = match setting {
                    Name::One(setting) => {
                        let (value, source) = board.setting(scope, *setting, &config().rules);
                        reply.int(value);
                        source
                    }
                    Name::Limits => {
                        let (names, source) = limits_in_force(scope, board);
                        reply.array(names.len());
                        names.into_iter().for_each(|name| reply.bytes(name));
                        source
                    }
                    Name::DeadQueue => match queue_alone(scope).and_then(|queue| board.dead_queue(queue)) {
                        Some(dead) => {
                            reply.bytes(dead);
                            Source::Queue
                        }
                        None => {
                            reply.null();
                            Source::Default
                        }
                    },
                };
                reply.text(source.name());
            }
            Ok(())
        })
    }
}

impl Command for Set {
    const SPEC: Spec = reference::JOB_SETTINGS_SET.with("write deny-oom", KeyUse::Insert);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let scope = scope(args)?;
        let mut values: Vec<(Name, Value<'_>)> = Vec::new();
        while let Some(name) = args.next() {
            let name = named(name, scope)?;
            let value = match name {
                Name::One(setting) => Value::Number(value(args, setting)?),
                Name::Limits => Value::Limits(limits(args)?),
                Name::DeadQueue => Value::DeadQueue(dead_queue(args, scope)?),
            };
            if values.iter().any(|(other, _)| *other == name) {
                return syntax(format!("{} is given twice", name.text()));
            }
            values.push((name, value));
        }
        if values.is_empty() {
            return syntax("a name and a value are needed");
        }
        Commit::run(call.ctx, &call.key(), |commit| {
            check(scope, commit.board(), &values)?;
            for (name, value) in values {
                set(scope, commit, name, Some(&value))?;
            }
            review(commit)
        })?;
        call.ctx.reply().ok();
        Ok(())
    }
}

impl Command for Reset {
    const SPEC: Spec = reference::JOB_SETTINGS_RESET.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let scope = scope(&mut call.args)?;
        let asked = names(&mut call.args, scope)?;
        Commit::run(call.ctx, &call.key(), |commit| {
            for name in own(scope, commit.board()) {
                if asked.is_empty() || asked.contains(&name) {
                    set(scope, commit, name, None)?;
                }
            }
            review(commit)
        })?;
        call.ctx.reply().ok();
        Ok(())
    }
}
