//! The work of one command, or one tick of the timer, on one board: decisions become effects, and
//! effects are applied and collected. At the end they are replicated once if anybody listens,
//! waiting clients are served, and the timer gets its hint.

use board::{Apply, Batch, Board, Bound, Env, Protocol, Refusal, SETTLES};

use crate::config::config;
use crate::redis::cell::MainCell;
use crate::redis::ctx::{Ctx, Level, Origin};
use crate::redis::strings::Key;
use crate::replies::errors::CommandError;
use crate::runtime::blocked_claims;
use crate::runtime::blocked_posts;
use crate::runtime::blocked_waits;
use crate::runtime::board_value::OpenKey;
use crate::runtime::connections;
use crate::runtime::latency;
use crate::runtime::listeners;
use crate::runtime::publish::{self, Outgoing};
use crate::runtime::timer;
use crate::runtime::world;

/// A commit on one board. See the module's comment.
pub struct Commit<'k> {
    /// The call.
    pub ctx: Ctx<'k>,
    /// The board's key.
    pub key: &'k Key<'k>,
    /// The world when the commit began.
    pub env: Env<'static>,
    open: OpenKey<'k>,
    /// The effects; only their number when nobody reads them.
    batch: Batch,
    /// Whether nobody listens to the effects.
    unheard: bool,
    /// Whether edges were still to be resolved when the commit began: the timer is at it.
    telling: bool,
    /// Whether there was no board under the key when the commit began.
    pub new: bool,
    /// The queues that have got work, for clients that wait without taking it.
    woken: Vec<Vec<u8>>,
    /// How many looks at queues it has taken for clients that wait for jobs.
    pub looked: usize,
}

/// The buffer of the last batch, to be reused.
static BATCH: MainCell<Option<Batch>> = MainCell::new(None);
/// A longer buffer is not kept: one large command would hold its memory for ever.
const KEPT: usize = 1 << 16;

/// Whether effects are encoded. With debug assertions also those that nobody listens to are, so that
/// every test covers the encoding.
fn is_read(unheard: bool) -> bool {
    !unheard || cfg!(debug_assertions)
}

impl<'k> Commit<'k> {
    /// Works on the board under a key, for a command; an absent board is like an empty one, and is
    /// created with its first effect. What `work` has done is replicated also when it fails: time
    /// that was settled stays settled.
    pub fn run<R>(
        ctx: Ctx<'k>,
        key: &'k Key<'k>,
        work: impl FnOnce(&mut Commit<'k>) -> Result<R, CommandError>,
    ) -> Result<R, CommandError> {
        let unheard = listeners::is_nobody(ctx);
        // Where nobody listens, the server has no primary and does not load.
        if !unheard {
            match ctx.origin() {
                Origin::Client => {}
                Origin::Replay => return Err(refuse_replay(ctx, key)),
                // Also where `replica-read-only no` lets the command in: the revision that it would make is that
                // of a change of the primary's, which the copy would then pass over.
                Origin::ClientOfReplica => return Err(CommandError::Replica),
            }
        }
        Commit::on(ctx, key, unheard, work)
    }

    /// Works on the board under a key outside of a command. See [`Commit::run`].
    pub fn outside<R>(
        ctx: Ctx<'k>,
        key: &'k Key<'k>,
        work: impl FnOnce(&mut Commit<'k>) -> Result<R, CommandError>,
    ) -> Result<R, CommandError> {
        // There is no command that the server could count for its save points, so effects are sent
        // whoever listens.
        Commit::on(ctx, key, false, work)
    }

    fn on<R>(
        ctx: Ctx<'k>,
        key: &'k Key<'k>,
        unheard: bool,
        work: impl FnOnce(&mut Commit<'k>) -> Result<R, CommandError>,
    ) -> Result<R, CommandError> {
        let mut open = ctx.open_writable(key)?;
        let value = open.value_or_new();
        if value.is_broken() {
            return Err(Refusal::Broken.into());
        }
        value.board.check_headroom()?;
        value.board.unbound_looks();
        let env = world::env(config());
        let mut batch = Batch::default();
        if is_read(unheard) {
            batch = BATCH.with(Option::take).unwrap_or_default();
            batch.begin(value.board.revision(), env.now);
        }
        let telling = value.board.is_resolving();
        let new = value.board.revision() == 0;
        blocked_waits::listen(&mut value.board);
        blocked_posts::listen(&mut value.board);
        publish::listen(&mut value.board, env.rules);
        let mut commit =
            Commit { ctx, key, env, open, batch, unheard, telling, new, woken: Vec::new(), looked: 0 };
        let done = work(&mut commit);
        commit.finish();
        done
    }

    /// The board.
    pub fn board(&mut self) -> &mut Board {
        &mut self.open.value_or_new().board
    }

    /// Applies an effect.
    pub fn apply(&mut self, effect: impl Apply) -> Result<(), CommandError> {
        match is_read(self.unheard) {
            true => self.batch.push(&effect),
            false => self.batch.count(),
        }
        let now = self.env.now;
        if self.board().apply(&effect, now).is_ok() {
            return Ok(());
        }
        self.board().set_broken();
        self.open.value_or_new().count_broken();
        let line = format!("an effect does not fit its board, which is broken from now on: {effect:?}");
        self.ctx.log(Level::Warning, &line.chars().take(500).collect::<String>());
        Err(Refusal::Broken.into())
    }

    /// A client has claimed a job, or has got one that it holds: its claim is bound to the connection
    /// that carries its session claims, if it names one.
    pub fn carry(&mut self, slot: u32, session: Option<u64>) -> Result<(), CommandError> {
        let Some(connection) = session else {
            self.kept(slot);
            return Ok(());
        };
        if !self.board().is_session(slot) {
            self.apply(Bound { slot })?;
        }
        self.carry_session(slot, connection);
        Ok(())
    }

    /// A connection carries the registration of a worker from now on, if it is for a session.
    pub fn attend_session(&mut self, worker: &[u8], connection: u64) {
        if self.board().attend_session(worker, connection) {
            connections::note(connection, self.ctx.db(), self.key.bytes());
        }
    }

    fn carry_session(&mut self, slot: u32, connection: u64) {
        self.board().carry_session(slot, connection);
        connections::note(connection, self.ctx.db(), self.key.bytes());
    }

    /// Does what is due, and serves waiting clients with what this commit has made ready so far: they
    /// come before the client that takes a job next. In a transaction they are served after it.
    pub fn serve_first(&mut self) -> Result<(), CommandError> {
        self.settle_due()?;
        self.hand_out();
        match self.board().broken() {
            true => Err(Refusal::Broken.into()),
            false => Ok(()),
        }
    }

    /// Does up to `n` things that time should have done by now. Returns false when there were none.
    pub fn settle_some(&mut self, n: u32) -> Result<bool, CommandError> {
        let env = self.env;
        if self.board().wake() > env.now {
            return Ok(false);
        }
        self.board().wake_clients(env.now);
        match self.board().backlog(&env, n) {
            Some(effect) => self.apply(effect).map(|()| true),
            None => {
                self.board().reckon(&env);
                Ok(false)
            }
        }
    }

    /// Resolves the edges to jobs that this commit has ended, up to the bound of a claim, so that
    /// jobs which become ready can be served at once.
    fn tell(&mut self) {
        if self.telling || !self.board().is_resolving() || self.board().broken() {
            return;
        }
        let env = self.env;
        let resolved = self.board().to_resolve(&env, SETTLES);
        // A refusal means that the board broke: nothing more is done on it.
        if resolved.is_some_and(|resolved| self.apply(resolved).is_ok()) {
            self.board().reckon(&env);
        }
    }

    fn hand_out(&mut self) {
        self.tell();
        if self.board().has_freed() {
            blocked_posts::serve(self);
        }
        if !self.batch.is_empty() {
            // Before anybody is served, since clients may get their reply from the key at once.
            self.open.keep();
        }
        // Clients that waited outside the line of a deleted board join the line again, also without jobs.
        let is_created = self.new && !self.batch.is_empty();
        if self.board().has_woken() || is_created {
            let woken = blocked_waits::woken(self.board());
            self.woken.extend(woken);
            blocked_claims::serve(self);
        }
    }

    fn finish(mut self) {
        self.hand_out();
        // Nothing is reported of a board that was deleted in the notification of its creation.
        let changed = !self.batch.is_empty() && !self.open.is_gone();
        if changed {
            match self.unheard {
                // The server drops the command, and counts it for its save points.
                true => self.ctx.replicate_verbatim(),
                false => self.ctx.replicate(self.key, self.batch.finish()),
            }
            self.ctx.signal_modified(self.key);
            let (rules, now) = (self.env.rules, self.env.now);
            self.board().overfull(rules);
            latency::saw(self.board());
            world::saw_token(self.board().token(), now);
        }
        // Permits that time has added wake queues without a change.
        if changed || !self.woken.is_empty() {
            let (ctx, key) = (self.ctx, self.key);
            let woken = std::mem::take(&mut self.woken);
            blocked_waits::notice(ctx, key, self.board(), woken);
        }
        if let Some(value) = self.open.value() {
            timer::bring_forward(self.ctx, self.key, value);
        }
        let outgoing = self.board().has_news().then(|| Outgoing::of(self.board()));
        let Commit { ctx, key, open, batch, unheard, .. } = self;
        if is_read(unheard) && batch.capacity() <= KEPT {
            BATCH.with(|place| *place = Some(batch));
        }
        drop(open);
        if let Some(outgoing) = outgoing {
            outgoing.send(ctx, key);
        }
    }
}

impl Protocol for Commit<'_> {
    type Error = CommandError;

    fn board(&mut self) -> &mut Board {
        Commit::board(self)
    }

    fn now(&self) -> i64 {
        self.env.now
    }

    fn look<R>(&mut self, look: impl FnOnce(&Board, &Env<'_>) -> R) -> R {
        let env = self.env;
        look(self.board(), &env)
    }

    fn apply(&mut self, effect: impl Apply) -> Result<(), CommandError> {
        Commit::apply(self, effect)
    }

    fn settle_due(&mut self) -> Result<(), CommandError> {
        self.settle_some(SETTLES).map(drop)
    }

    /// The client of this call carries the claim from now on, if it is a session claim.
    fn kept(&mut self, slot: u32) {
        if self.board().is_session(slot) {
            if let Some(connection) = self.ctx.connection() {
                self.carry_session(slot, connection);
            }
        }
    }
}

/// A client's command has come from a primary or a file, which only have effects: whoever sent it
/// took nobody to listen. It would decide something else here, so the copy has missed something for
/// good.
#[cold]
fn refuse_replay(ctx: Ctx, key: &Key) -> CommandError {
    let mut open = match ctx.open_writable(key) {
        Ok(open) => open,
        Err(wrong) => return wrong.into(),
    };
    let value = open.value_or_new();
    let known = value.is_broken() && value.loader.is_none();
    value.board.set_broken();
    value.loader = None;
    value.count_broken();
    if !known {
        let name = board::clean(key.bytes());
        let what = "a client's command came in place of its effects";
        ctx.log(Level::Warning, &format!("board {name} is broken from now on: {what}"));
    }
    open.keep();
    blocked_waits::touch((ctx.db(), key.bytes().to_vec()));
    ctx.signal_modified(key);
    ctx.replicate_verbatim();
    Refusal::Broken.into()
}
