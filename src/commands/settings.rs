//! `JOB.SETTINGS GET`, `SET` and `RESET`: settings of a board and of its queues.

use board::{clean, Configured, Setting, SPECS};

use super::{read, Command, KeyUse, Spec};
use crate::args::Args;
use crate::config::config;
use crate::fault::{syntax, Done, Fault};
use crate::server::call::Call;
use crate::turn::Turn;

/// The parent of the subcommands.
pub const PARENT: Spec = Spec {
    name: "job.settings",
    arity: -2,
    flags: "",
    summary: "Reads and changes the settings of a board and of its queues.",
    ..Spec::NONE
};

/// `JOB.SETTINGS GET board [QUEUE q] [name …]` → for each name value and source.
pub struct Get;

/// `JOB.SETTINGS SET board [QUEUE q] name value …` → OK. Replicates `Configured` for each.
pub struct Set;

/// `JOB.SETTINGS RESET board [QUEUE q] [name …]` → OK. Replicates `Configured` for each.
pub struct Reset;

fn scope<'a>(args: &mut Args<'a>) -> Result<Option<&'a [u8]>, Fault> {
    match args.take("QUEUE") {
        true => args.name("QUEUE").map(Some),
        false => Ok(None),
    }
}

fn named(name: &[u8], scope: Option<&[u8]>) -> Result<Setting, Fault> {
    match Setting::named(name) {
        Some(setting) if scope.is_some() && !setting.spec().queue => {
            syntax(format!("'{}' is a setting of the whole board", setting.spec().name))
        }
        Some(setting) => Ok(setting),
        None => syntax(format!("unknown setting '{}'", clean(name))),
    }
}

/// The value of a setting; that of one which is on or off also as a word.
fn value(args: &mut Args<'_>, spec: &board::Spec) -> Result<i64, Fault> {
    let switch = (spec.min, spec.max) == (0, 1);
    match switch && args.take("YES") {
        true => Ok(1),
        false if switch && args.take("NO") => Ok(0),
        false => args.int(spec.name, spec.min..=spec.max),
    }
}

fn names(args: &mut Args<'_>, scope: Option<&[u8]>) -> Result<Vec<Setting>, Fault> {
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

impl Command for Get {
    const SPEC: Spec = Spec {
        name: "job.settings",
        sub: Some("get"),
        arity: -3,
        flags: "readonly",
        key: Some(KeyUse::Read),
        summary: "Returns settings in force and where they come from.",
        complexity: "O(n) for n settings",
        syntax: "board [QUEUE queue] [name [name ...]]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let scope = scope(&mut call.args)?;
        let mut settings = names(&mut call.args, scope)?;
        if settings.is_empty() {
            let here = SPECS.iter().filter(|spec| scope.is_none() || spec.queue);
            settings = here.map(|spec| spec.setting).collect();
        }
        let reply = call.ctx.reply();
        read(call, |board| {
            reply.map(settings.len());
            for setting in &settings {
                let (value, source) = board.setting(scope, *setting, &config().rules);
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
        summary: "Sets settings of a board or of one of its queues.",
        complexity: "O(n) for n settings",
        syntax: "board [QUEUE queue] name value [name value ...]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let scope = scope(args)?;
        let mut values: Vec<(Setting, i64)> = Vec::new();
        while let Some(name) = args.next() {
            let setting = named(name, scope)?;
            let spec = setting.spec();
            let value = value(args, spec)?;
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
                turn.apply(Configured { queue: scope, setting, value: Some(value) })?;
            }
            Ok(())
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
        summary: "Takes back settings of a board or of one of its queues.",
        complexity: "O(n) for n settings",
        syntax: "board [QUEUE queue] [name [name ...]]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let scope = scope(&mut call.args)?;
        let asked = names(&mut call.args, scope)?;
        Turn::run(call.ctx, &call.key(), |turn| {
            for setting in turn.board().own_settings(scope) {
                if asked.is_empty() || asked.contains(&setting) {
                    turn.apply(Configured { queue: scope, setting, value: None })?;
                }
            }
            Ok(())
        })?;
        call.ctx.reply().ok();
        Ok(())
    }
}
