//! `JOB.WORKER` and its subcommands: registrations of workers.

use board::{Board, Protocol, Register as Request, Registration, Subject, LONGEST, NEVER};

use super::claim::NO_CONNECTION;
use super::pages::{self, Paging};
use super::{read, reference, Command, Family, KeyUse, Spec};
use crate::commands::args::{flag, once, Keyword};
use crate::commands::call::Call;
use crate::redis::reply::Reply;
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::replies::fitting::fit_rows;
use crate::runtime::commit::Commit;
use crate::runtime::world;

/// The parent of the subcommands.
pub struct Parent;

impl Family for Parent {
    const SPEC: Spec = reference::JOB_WORKER;
}

/// `JOB.WORKER REGISTER` → until when, and whether it is quiet. Replicates `Registered`; with ANEW also a
/// first `Departed`; the timer does the rest.
pub struct Register;

/// `JOB.WORKER DEREGISTER` → 1, or 0 when it was not registered. Replicates `Deregistered` and a
/// first `Departed`; the timer does the rest.
pub struct Deregister;

/// `JOB.WORKER LIST` → cursor and maps, by name.
pub struct List;

/// `JOB.WORKER QUIET` → OK. Replicates `Quieted`.
pub struct Quiet;

/// `JOB.WORKER RESUME` → OK. Replicates `Quieted`.
pub struct Resume;

/// The most claims that DEREGISTER and REGISTER ANEW themselves end.
const ENDS: u32 = 64;
/// The most registrations that are looked at for one page of a role.
const LOOKS: usize = 1_000;

/// A time as replies give it: -1 for none.
fn shown(until: i64) -> i64 {
    match until {
        NEVER => -1,
        until => until,
    }
}

impl Command for Register {
    const SPEC: Spec = reference::JOB_WORKER_REGISTER.with("write", KeyUse::Insert);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut request = Request { worker: args.worker()?, ..Request::default() };
        let mut meta = None;
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "ROLE" => once(&mut request.role, "ROLE", args.name("ROLE")?)?,
                "META" => once(&mut meta, "META", args.meta()?)?,
                "FOR" => once(&mut request.time, "FOR", args.ms("FOR", 1..=LONGEST)?)?,
                "SESSION" => flag(&mut request.session, "SESSION")?,
                "ANEW" => flag(&mut request.anew, "ANEW")?,
                _ => return unexpected(word),
            }
        }
        if request.session && request.time.is_some() {
            return syntax("FOR and SESSION exclude each other");
        }
        let connection = call.ctx.connection();
        if request.session && connection.is_none() {
            return syntax(NO_CONNECTION);
        }
        request.meta = meta.unwrap_or_default();
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            // A registration that has lapsed by now begins again.
            let full = commit.ctx.is_full();
            let registered = commit.decide(Subject::Anything, |board, env| {
                // A worker renews its registration again and again, and must not lose it for lack of
                // memory.
                match full && !board.is_renewal(&request) {
                    true => Ok(None),
                    false => board.register(env, &request).map(Some),
                }
            })?;
            let registered = registered.ok_or(CommandError::Full)?;
            let until = registered.until;
            commit.apply(registered)?;
            if request.anew {
                end_some(commit)?;
            }
            if let Some(connection) = connection {
                commit.attend_session(request.worker, connection);
            }
            reply.map(2);
            reply.text("expires");
            reply.int(shown(until));
            reply.text("quiet");
            reply.int(commit.board().is_quiet(request.worker).into());
            Ok(())
        })
    }
}

impl Command for Deregister {
    const SPEC: Spec = reference::JOB_WORKER_DEREGISTER.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let worker = call.args.worker()?;
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            let known = commit.perform(Subject::Anything, |board, _| Ok(board.deregister(worker)))?;
            if known {
                end_some(commit)?;
            }
            reply.int(known.into());
            Ok(())
        })
    }
}

/// Ends up to [`ENDS`] claims of workers that have deregistered or started anew; the timer ends the rest.
fn end_some(commit: &mut Commit<'_>) -> Done {
    commit.perform(Subject::Timeless, |board, env| Ok(board.departs(env, ENDS))).map(drop)
}

/// Makes a worker quiet, or ends that.
fn set_quiet(call: &mut Call<'_>, quiet: bool) -> Done {
    let worker = call.args.worker()?;
    Commit::run(call.ctx, &call.key(), |commit| {
        commit.perform(Subject::Anything, |board, _| board.quiet(worker, quiet))
    })?;
    call.ctx.reply().ok();
    Ok(())
}

impl Command for Quiet {
    const SPEC: Spec = reference::JOB_WORKER_QUIET.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        set_quiet(call, true)
    }
}

impl Command for Resume {
    const SPEC: Spec = reference::JOB_WORKER_RESUME.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        set_quiet(call, false)
    }
}

fn write(reply: Reply, board: &Board, name: &[u8], worker: &Registration, now: i64) {
    let meta = !worker.meta.is_empty();
    let (claimed, seen) = board.activity(name);
    reply.map(8 + usize::from(worker.role.is_some()) + usize::from(meta));
    reply.text("worker");
    reply.bytes(name);
    if let Some(role) = &worker.role {
        reply.text("role");
        reply.bytes(role);
    }
    if meta {
        reply.text("meta");
        reply.map(worker.meta.len());
        for (field, value) in &worker.meta {
            reply.bytes(field);
            reply.bytes(value);
        }
    }
    let numbers = [
        ("registered", worker.registered),
        ("expires", shown(worker.until)),
        ("session", worker.session.into()),
        ("quiet", worker.quiet.into()),
        // A registration loaded from a file counts as a sign of life.
        ("active", (now - seen.max(worker.registered)).max(0)),
        ("claimed", claimed as i64),
        ("lapsed", worker.lapsed as i64),
    ];
    for (name, number) in numbers {
        reply.text(name);
        reply.int(number);
    }
}

impl Command for List {
    const SPEC: Spec = reference::JOB_WORKER_LIST.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let (mut role, mut paging) = (None, Paging::FIRST);
        let args = &mut call.args;
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "ROLE" => once(&mut role, "ROLE", args.name("ROLE")?)?,
                option if paging.take(option, args, pages::after)? => {}
                _ => return unexpected(word),
            }
        }
        let (from, count) = paging.bounds();
        let reply = call.ctx.reply();
        read(call, |board: &Board| {
            let (mut page, mut last) = (Vec::new(), None);
            let mut behind = board.registrations_after(from);
            for (name, worker) in behind.by_ref().take(LOOKS.max(count)) {
                last = Some(name);
                if role.is_none_or(|role| worker.role.as_deref() == Some(role)) {
                    page.push((name, worker));
                }
                if page.len() == count {
                    break;
                }
            }
            let now = world::now();
            let mut last = behind.next().and(last);
            let fits = fit_rows(&page, |reply, (name, worker)| write(reply, board, name, worker, now));
            if fits < page.len() {
                page.truncate(fits);
                last = page.last().map(|(name, _)| *name);
            }
            pages::begin(reply, last.map(|last| pages::behind(last)));
            reply.array(page.len());
            page.into_iter().for_each(|(name, worker)| write(reply, board, name, worker, now));
            Ok(())
        })
    }
}
