//! `JOB.CLOCK GET`, `SET` and `ADVANCE`: the only source of time in a module loaded with `clock
//! manual`, for tests. What becomes due is done before the reply is sent.

use super::{Command, Family, Spec};
use crate::commands::call::Call;
use crate::replies::errors::Done;
use crate::runtime::world;

/// The parent of the subcommands.
pub struct Parent;

impl Family for Parent {
    const SPEC: Spec = Spec {
        name: "job.clock",
        arity: -2,
        flags: "",
        summary: "Moves the manual clock, for tests.",
        ..Spec::NONE
    };
}

/// `JOB.CLOCK GET` → Unix ms.
pub struct Get;

/// `JOB.CLOCK SET unix-ms` → OK. Moves the clock forwards or backwards.
pub struct Set;

/// `JOB.CLOCK ADVANCE ms` → Unix ms.
pub struct Advance;

impl Command for Get {
    const SPEC: Spec = Spec {
        name: "job.clock",
        sub: Some("get"),
        arity: 2,
        flags: "readonly fast",
        summary: "Returns the time of the manual clock.",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        call.ctx.reply().int(world::now());
        Ok(())
    }
}

impl Command for Set {
    const SPEC: Spec = Spec {
        name: "job.clock",
        sub: Some("set"),
        arity: 3,
        flags: "fast",
        summary: "Sets the manual clock.",
        syntax: "unix-ms",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        world::set_clock(call.args.time("unix-ms", 0..=world::LATEST)?);
        call.ctx.reply().ok();
        Ok(())
    }
}

impl Command for Advance {
    const SPEC: Spec = Spec {
        name: "job.clock",
        sub: Some("advance"),
        arity: 3,
        flags: "fast",
        summary: "Moves the manual clock, backwards by a negative number.",
        syntax: "ms",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let now = world::now();
        let ms = call.args.ms("ms", -now..=world::LATEST - now)?;
        world::set_clock(now + ms);
        call.ctx.reply().int(now + ms);
        Ok(())
    }
}
