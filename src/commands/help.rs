//! `HELP` of each command with subcommands.

use std::marker::PhantomData;

use super::{Command, Spec};
use crate::commands::call::Call;
use crate::commands::registered;
use crate::replies::errors::Done;

/// A command with subcommands.
pub trait Family {
    /// How the command itself is registered.
    const SPEC: Spec;
}

/// `HELP` of a family → lines, in the form of the server's own commands.
pub struct Help<F>(PhantomData<F>);

impl<F: Family> Command for Help<F> {
    const SPEC: Spec = Spec {
        sub: Some("help"),
        arity: 2,
        flags: "fast",
        summary: "Lists the subcommands.",
        complexity: "O(1)",
        ..F::SPEC
    };

    fn run(call: &mut Call<'_>) -> Done {
        let name = F::SPEC.name.to_ascii_uppercase();
        let mut lines = vec![format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
        let others = registered().filter(|spec| spec.name == F::SPEC.name && spec.sub != Self::SPEC.sub);
        for spec in others.chain([&Self::SPEC]) {
            let Some(sub) = spec.sub else { continue };
            lines.push(format!("{} {}", sub.to_ascii_uppercase(), spec.syntax).trim_end().to_string());
            lines.push(format!("    {}", spec.summary));
        }
        let reply = call.ctx.reply();
        reply.array(lines.len());
        lines.iter().for_each(|line| reply.status(line));
        Ok(())
    }
}
