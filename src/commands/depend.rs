//! `JOB.DEPEND ADD`, `REMOVE` and `CLEAR`: what a job waits for.

use board::{After, Depend, Protocol};

use super::after::on_failure;
use super::{reference, Command, Family, KeyUse, Spec};
use crate::commands::args::{flag, once, Args, Keyword};
use crate::commands::call::Call;
use crate::replies::errors::{unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// The parent of the subcommands.
pub struct Parent;

impl Family for Parent {
    const SPEC: Spec = reference::JOB_DEPEND;
}

/// `JOB.DEPEND ADD` → state. Replicates `Depended`.
pub struct Add;

/// `JOB.DEPEND REMOVE` → state. Replicates `Depended`.
pub struct Remove;

/// `JOB.DEPEND CLEAR` → state. Replicates `Depended`.
pub struct Clear;

fn change(call: &Call<'_>, id: &[u8], depend: &Depend<'_>) -> Done {
    let reply = call.ctx.reply();
    Commit::run(call.ctx, &call.key(), |commit| {
        commit.depend(id, depend)?;
        let now = commit.env.now;
        match commit.board().state_of(id).or_else(|| commit.board().tombstone(id, now).map(|t| t.state)) {
            Some(state) => reply.text(state.name()),
            None => reply.null(),
        }
        Ok(())
    })
}

fn others<'a>(args: &mut Args<'a>) -> Result<Vec<&'a [u8]>, CommandError> {
    let n = args.length("n", 1)?;
    args.many(n, "n", |args| args.name("other"))
}

impl Command for Add {
    const SPEC: Spec = reference::JOB_DEPEND_ADD.with("write deny-oom", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let id = args.name("id")?;
        let children = args.take("CHILDREN");
        let others = if children { Vec::new() } else { others(args)? };
        let (mut named, mut strict) = (None, false);
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "ONFAILURE" => once(&mut named, "ONFAILURE", on_failure(args)?)?,
                "STRICT" => flag(&mut strict, "STRICT")?,
                _ => return unexpected(word),
            }
        }
        let on_failure = named.unwrap_or_default();
        let jobs = others.into_iter().map(|other| (other, on_failure)).collect();
        let children = children.then_some(on_failure);
        change(call, id, &Depend::Add(After { jobs, strict, children }))
    }
}

impl Command for Remove {
    const SPEC: Spec = reference::JOB_DEPEND_REMOVE.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let id = call.args.name("id")?;
        let depend = match () {
            () if call.args.take("SIGNALS") => Depend::RemoveSignals,
            () if call.args.take("CHILDREN") => Depend::RemoveChildren,
            () => Depend::Remove(others(&mut call.args)?),
        };
        call.args.end()?;
        change(call, id, &depend)
    }
}

impl Command for Clear {
    const SPEC: Spec = reference::JOB_DEPEND_CLEAR.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let id = call.args.name("id")?;
        change(call, id, &Depend::Clear)
    }
}
