//! `JOB.CLOCK GET`, `SET` and `ADVANCE`: the only source of time in a module loaded with `clock
//! manual`, for tests. What becomes due is done before the reply is sent.

use super::{reference, Command, Family, Spec};
use crate::commands::call::Call;
use crate::replies::errors::Done;
use crate::runtime::world;

/// The parent of the subcommands.
pub struct Parent;

impl Family for Parent {
    const SPEC: Spec = reference::JOB_CLOCK;
}

/// `JOB.CLOCK GET` → Unix ms.
pub struct Get;

/// `JOB.CLOCK SET` → OK. Moves the clock forwards or backwards.
pub struct Set;

/// `JOB.CLOCK ADVANCE` → Unix ms.
pub struct Advance;

impl Command for Get {
    const SPEC: Spec = Spec { flags: "readonly fast", ..reference::JOB_CLOCK_GET };

    fn run(call: &mut Call<'_>) -> Done {
        call.ctx.reply().int(world::now());
        Ok(())
    }
}

impl Command for Set {
    const SPEC: Spec = Spec { flags: "fast", ..reference::JOB_CLOCK_SET };

    fn run(call: &mut Call<'_>) -> Done {
        world::set_clock(call.args.time("unix-ms", 0..=world::LATEST)?);
        call.ctx.reply().ok();
        Ok(())
    }
}

impl Command for Advance {
    const SPEC: Spec = Spec { flags: "fast", ..reference::JOB_CLOCK_ADVANCE };

    fn run(call: &mut Call<'_>) -> Done {
        let now = world::now();
        let ms = call.args.ms("ms", -now..=world::LATEST - now)?;
        world::set_clock(now + ms);
        call.ctx.reply().int(now + ms);
        Ok(())
    }
}
