//! Commands that are not for clients: effects from a primary or a log, parts of a snapshot from an
//! append-only file, and a check whether the server may write.

use board::{Applied, Board, Loader, Refusal};

use super::{reference, Command, KeyUse, Spec};
use crate::commands::call::Call;
use crate::config::config;
use crate::redis::ctx::Level;
use crate::replies::errors::{syntax, CommandError, Done};
use crate::runtime::blocked_claims;
use crate::runtime::blocked_posts;
use crate::runtime::blocked_waits;
use crate::runtime::board_value::BoardValue;
use crate::runtime::publish::{self, Outgoing};
use crate::runtime::timer;
use crate::runtime::world;

/// `JOB.APPLY` → OK.
pub struct Apply;

/// `JOB.LOAD` → OK.
pub struct Load;

/// `JOB.PROBE` → OK. Does nothing: the checks that the server makes before it are the point.
pub struct Probe;

fn from_elsewhere(call: &Call<'_>) -> Result<(), CommandError> {
    match call.ctx.is_replay() || config().foreign_effects {
        true => Ok(()),
        false => syntax("internal command: it is for replication and logs alone"),
    }
}

/// Why a batch or a part cannot be taken.
enum NotTaken {
    /// Nothing has changed.
    Refused(String),
    /// The copy misses something for good.
    Breaks(String),
}

/// Works on the board under the call's key, a new one if there is none, and replicates the command
/// as it is. No client gets the refusal of a replay: what cannot be taken breaks the copy. It is
/// kept as it is, for an operator to see, and every later command refuses.
fn change(call: &Call<'_>, work: impl FnOnce(&mut BoardValue) -> Result<(), NotTaken>) -> Done {
    let key = call.key();
    let mut open = call.ctx.open_writable(&key)?;
    let value = open.value_or_new();
    blocked_waits::listen(&mut value.board);
    publish::listen_to_replay(call.ctx, &mut value.board);
    // A board without all its parts is broken, but may still become whole.
    let before = value.board.broken() && value.loader.is_none();
    let replay = call.ctx.is_replay();
    let mut done: Done = Ok(());
    match work(value) {
        Ok(()) => {}
        Err(NotTaken::Refused(what)) if !replay => return syntax(what),
        Err(NotTaken::Refused(what) | NotTaken::Breaks(what)) => {
            value.board.set_broken();
            value.loader = None;
            if !before || !replay {
                let name = board::clean(key.bytes());
                call.ctx.log(Level::Warning, &format!("board {name} is broken from now on: {what}"));
            }
            if !replay {
                done = Err(Refusal::Broken.into());
            }
            blocked_waits::touch((call.ctx.db(), key.bytes().to_vec()));
        }
    }
    value.count_broken();
    open.keep();
    if let Some(value) = open.value() {
        let woken = blocked_waits::woken(&value.board);
        value.board.woken(|_, _| ());
        blocked_waits::notice(call.ctx, &key, &mut value.board, woken);
        world::saw_token(value.board.token(), world::now());
        timer::bring_forward(call.ctx, &key, value);
        blocked_claims::touch((call.ctx.db(), key.bytes().to_vec()));
        blocked_posts::touch((call.ctx.db(), key.bytes().to_vec()));
    }
    call.ctx.signal_modified(&key);
    call.ctx.replicate_verbatim();
    let outgoing = open.value().map(|value| Outgoing::of(&mut value.board));
    drop(open);
    if let Some(outgoing) = outgoing {
        outgoing.send(call.ctx, &key);
    }
    done?;
    call.ctx.reply().ok();
    Ok(())
}

/// Deletes a board that was deleted where the effects come from, without a word, and another was made: Redis
/// 7.0 tells nobody that it deletes the keys of a slot which another node has taken, and no server tells
/// that DEBUG RELOAD leaves expired keys out. What is left of its time to live goes with it.
fn let_go(call: &Call<'_>, batch: &[u8]) -> Done {
    let key = call.key();
    let mut open = call.ctx.open_writable(&key)?;
    if open.value().is_some_and(|value| value.board.is_succeeded_by(batch)) {
        let name = board::clean(key.bytes());
        call.ctx
            .log(Level::Warning, &format!("board {name} was deleted elsewhere, and another takes its place"));
        open.delete();
    }
    Ok(())
}

impl Command for Apply {
    const SPEC: Spec = reference::JOB_APPLY.with("write", KeyUse::Insert);

    fn run(call: &mut Call<'_>) -> Done {
        from_elsewhere(call)?;
        let batch = call.args.value("batch")?;
        if call.ctx.is_replay() && board::begins(batch) {
            let_go(call, batch)?;
        }
        change(call, |value| match value.board.replay(batch) {
            Applied::Done | Applied::Skipped => Ok(()),
            Applied::Malformed => Err(NotTaken::Refused("batch is not a batch of effects".into())),
            Applied::Broken(flaw) => Err(NotTaken::Breaks(flaw.to_string())),
        })
    }
}

impl Command for Load {
    const SPEC: Spec = reference::JOB_LOAD.with("write", KeyUse::Insert);

    fn run(call: &mut Call<'_>) -> Done {
        from_elsewhere(call)?;
        let part = call.args.value("part")?;
        let replay = call.ctx.is_replay();
        change(call, |value| {
            let new = || if replay { Loader::holding() } else { Loader::default() };
            // It was saved or sent on between two of its parts.
            if let Some(loader) = value.board.resumed(new()) {
                value.board = Board::default();
                value.board.set_broken();
                value.loader = Some(Box::new(loader));
            }
            if replay && value.board.why_held().is_some() {
                value.board.hold(part);
                return Ok(());
            }
            if value.loader.is_none() && (value.board.revision() > 0 || value.board.broken()) {
                return Err(NotTaken::Refused("there is a board already".into()));
            }
            let begins = value.loader.is_none();
            let mut loader = value.loader.take().unwrap_or_else(|| Box::new(new()));
            if let Err(damage) = loader.part(part) {
                let what = format!("part: {}", damage.0);
                return Err(if begins { NotTaken::Refused(what) } else { NotTaken::Breaks(what) });
            }
            if !loader.is_whole() {
                value.board.set_broken();
                value.loader = Some(loader);
                return Ok(());
            }
            value.board =
                loader.finish().map_err(|damage| NotTaken::Breaks(format!("part: {}", damage.0)))?;
            blocked_waits::touch((call.ctx.db(), call.key().bytes().to_vec()));
            match value.board.why_held() {
                Some(why) => Err(NotTaken::Breaks(format!("{why}, it is kept as it is"))),
                None => Ok(()),
            }
        })
    }
}

impl Command for Probe {
    const SPEC: Spec = reference::JOB_PROBE.with("write fast", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        call.ctx.reply().ok();
        Ok(())
    }
}
