//! `JOB.SETTINGS GET`, `SET` and `RESET`: settings of a board, of its queues and their groups.

use board::{clean, Board, Configured, GroupConfigured, Level, Setting, Source, Topic, ALL_TOPICS, SPECS};

use super::{read, Command, KeyUse, Spec};
use crate::args::{whole, Args};
use crate::config::config;
use crate::fault::{syntax, Done, Fault};
use crate::server::call::Call;
use crate::turn::Turn;

/// The parent of the subcommands.
pub const PARENT: Spec = Spec {
    name: "job.settings",
    arity: -2,
    flags: "",
    summary: "Reads and changes the settings of a board, of its queues and their groups.",
    ..Spec::NONE
};

/// `JOB.SETTINGS GET board [QUEUE q [GROUP g|*]] [name …]` → for each name value and source.
pub struct Get;

/// `JOB.SETTINGS SET board [QUEUE q [GROUP g|*]] name value …` → OK. Replicates `Configured` or
/// `GroupConfigured` for each.
pub struct Set;

/// `JOB.SETTINGS RESET board [QUEUE q [GROUP g|*]] [name …]` → OK. Replicates `Configured` or
/// `GroupConfigured` for each.
pub struct Reset;

/// Whose settings.
#[derive(Clone, Copy)]
enum Scope<'a> {
    Board,
    Queue(&'a [u8]),
    /// A group, or [`board::ALL_GROUPS`] of a queue.
    Group(&'a [u8], &'a [u8]),
}

impl Scope<'_> {
    fn level(self) -> Level {
        match self {
            Scope::Board => Level::Board,
            Scope::Queue(_) => Level::Queue,
            Scope::Group(..) => Level::Group,
        }
    }

    /// A value in force, and where it comes from.
    fn value(self, board: &Board, setting: Setting) -> (i64, Source) {
        let rules = &config().rules;
        match self {
            Scope::Board => board.setting(None, setting, rules),
            Scope::Queue(queue) => board.setting(Some(queue), setting, rules),
            Scope::Group(queue, group) => board.group_setting(queue, group, setting),
        }
    }

    fn own(self, board: &Board) -> Vec<Setting> {
        match self {
            Scope::Board => board.own_settings(None),
            Scope::Queue(queue) => board.own_settings(Some(queue)),
            Scope::Group(queue, group) => board.own_group_settings(queue, group),
        }
    }

    fn apply(self, turn: &mut Turn<'_>, setting: Setting, value: Option<i64>) -> Result<(), Fault> {
        match self {
            Scope::Board => turn.apply(Configured { queue: None, setting, value }),
            Scope::Queue(queue) => turn.apply(Configured { queue: Some(queue), setting, value }),
            Scope::Group(queue, group) => turn.apply(GroupConfigured { queue, group, setting, value }),
        }
    }
}

fn scope<'a>(args: &mut Args<'a>) -> Result<Scope<'a>, Fault> {
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

fn named(name: &[u8], scope: Scope<'_>) -> Result<Setting, Fault> {
    let Some(setting) = Setting::named(name) else {
        return syntax(format!("unknown setting '{}'", clean(name)));
    };
    let spec = setting.spec();
    match scope.level() {
        level if spec.at(level) => Ok(setting),
        Level::Group => syntax(format!("'{}' is not a setting of groups", spec.name)),
        _ if spec.at(Level::Board) => syntax(format!("'{}' is a setting of the whole board", spec.name)),
        _ => syntax(format!("'{}' is a setting of groups", spec.name)),
    }
}

/// So many groups at most are looked at by the command itself when what counts for all of them
/// has changed; the timer does the rest.
const REVIEWS: u32 = 64;

fn review(turn: &mut Turn<'_>) -> Done {
    match turn.board().review(REVIEWS) {
        Some(reviewed) => turn.apply(reviewed),
        None => Ok(()),
    }
}

fn names(args: &mut Args<'_>, scope: Scope<'_>) -> Result<Vec<Setting>, Fault> {
    let mut settings = Vec::new();
    while let Some(name) = args.next() {
        let setting = named(name, scope)?;
        if settings.contains(&setting) {
            return syntax(format!("{} is given twice", setting.spec().name));
        }
        settings.push(setting);
    }
    Ok(settings)
}

/// The value of a setting: a number; of one which is on or off, and of `events`, also words.
fn value(args: &mut Args<'_>, setting: Setting) -> Result<i64, Fault> {
    let spec = setting.spec();
    let switch = (spec.min, spec.max) == (0, 1);
    match args.peek() {
        Some(words) if setting == Setting::Events && whole(words).is_none() => {
            args.next();
            events(words)
        }
        _ if switch && args.take("YES") => Ok(1),
        _ if switch && args.take("NO") => Ok(0),
        _ => args.int(spec.name, spec.min..=spec.max),
    }
}

/// The bits that names of events, joined by commas, stand for.
fn events(words: &[u8]) -> Result<i64, Fault> {
    let bits_of = |word: &[u8]| match word {
        _ if word.eq_ignore_ascii_case(b"all") => Some(ALL_TOPICS),
        _ if word.eq_ignore_ascii_case(b"none") => Some(0),
        _ => {
            let named = Topic::ALL.into_iter().find(|t| word.eq_ignore_ascii_case(t.name().as_bytes()));
            named.map(Topic::bit)
        }
    };
    let mut bits = 0;
    for word in words.split(|byte| *byte == b',') {
        match bits_of(word) {
            Some(more) => bits |= i64::from(more),
            None => {
                return syntax(format!(
                    "events must be an integer from 0 to {ALL_TOPICS} or names of events, not '{}'",
                    clean(word)
                ))
            }
        }
    }
    Ok(bits)
}

impl Command for Get {
    const SPEC: Spec = Spec {
        name: "job.settings",
        sub: Some("get"),
        arity: -3,
        flags: "readonly",
        key: Some(KeyUse::Read),
        summary: "Returns settings in force and where they come from.",
        complexity: "O(n) for n settings",
        syntax: "board [QUEUE queue [GROUP <group|*>]] [name [name ...]]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let scope = scope(&mut call.args)?;
        let mut settings = names(&mut call.args, scope)?;
        if settings.is_empty() {
            let here = SPECS.iter().filter(|spec| spec.at(scope.level()));
            settings = here.map(|spec| spec.setting).collect();
        }
        let reply = call.ctx.reply();
        read(call, |board| {
            reply.map(settings.len());
            for setting in &settings {
                let (value, source) = scope.value(board, *setting);
                reply.text(setting.spec().name);
                reply.array(2);
                reply.int(value);
                reply.text(source.name());
            }
            Ok(())
        })
    }
}

impl Command for Set {
    const SPEC: Spec = Spec {
        name: "job.settings",
        sub: Some("set"),
        arity: -5,
        flags: "write deny-oom",
        key: Some(KeyUse::Insert),
        summary: "Sets settings of a board, of one of its queues or of groups.",
        complexity: "O(n) for n settings",
        syntax: "board [QUEUE queue [GROUP <group|*>]] name value [name value ...]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let scope = scope(args)?;
        let mut values: Vec<(Setting, i64)> = Vec::new();
        while let Some(name) = args.next() {
            let setting = named(name, scope)?;
            let spec = setting.spec();
            let value = value(args, setting)?;
            if values.iter().any(|(other, _)| *other == setting) {
                return syntax(format!("{} is given twice", spec.name));
            }
            values.push((setting, value));
        }
        if values.is_empty() {
            return syntax("a name and a value are needed");
        }
        Turn::run(call.ctx, &call.key(), |turn| {
            for (setting, value) in values {
                scope.apply(turn, setting, Some(value))?;
            }
            review(turn)
        })?;
        call.ctx.reply().ok();
        Ok(())
    }
}

impl Command for Reset {
    const SPEC: Spec = Spec {
        name: "job.settings",
        sub: Some("reset"),
        arity: -3,
        flags: "write",
        key: Some(KeyUse::Update),
        summary: "Takes back settings of a board, of one of its queues or of groups.",
        complexity: "O(n) for n settings",
        syntax: "board [QUEUE queue [GROUP <group|*>]] [name [name ...]]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let scope = scope(&mut call.args)?;
        let asked = names(&mut call.args, scope)?;
        Turn::run(call.ctx, &call.key(), |turn| {
            for setting in scope.own(turn.board()) {
                if asked.is_empty() || asked.contains(&setting) {
                    scope.apply(turn, setting, None)?;
                }
            }
            review(turn)
        })?;
        call.ctx.reply().ok();
        Ok(())
    }
}
