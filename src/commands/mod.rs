//! The commands, a file for each family. Each is a type with its [`Spec`] and its `run`, which all
//! do the same: read the arguments, decide, apply, reply. Its comment says what it replies and
//! replicates; the syntax stands in commands.md, from which `build.rs` makes [`reference`].
//!
//! `args` reads arguments, `call` is one call, `hint` suggests the option that a misspelt word
//! meant, `shape` reads what a client wants to see of records.
//!
//! Uses `redis`, `replies` and `runtime`.

use std::sync::OnceLock;

use board::{Board, FieldList, Fields, Refusal, NEVER};

use crate::commands::args::Args;
use crate::commands::call::Call;
use crate::redis::cell::MainCell;
use crate::replies::errors::{unknown, CommandError, Done};

mod abandon;
mod after;
pub mod args;
mod awaiting;
pub mod call;
mod cancel;
mod claim;
mod clock;
mod consume;
mod count;
mod delete;
mod depend;
mod ending;
mod explain;
mod fail;
mod flow;
mod gate;
mod get;
mod groups;
mod heartbeat;
mod help;
pub mod hint;
mod history;
mod info;
mod internal;
mod limits;
mod list;
mod many;
mod metrics;
mod output;
mod pages;
mod pause;
mod post;
mod post_jobs;
mod release;
mod requeue;
mod schedule;
mod selection;
mod settings;
mod shape;
mod shared;
mod signal;
mod spend;
mod stats;
mod step;
mod tables;
mod tags;
mod trash;
mod unique;
mod update;
mod wait;
mod worker;

pub use help::{Family, Help};

/// What a command does with its key.
#[derive(Clone, Copy)]
pub enum KeyUse {
    /// Only reads it.
    Read,
    /// Adds to it, and may create it.
    Insert,
    /// Reads and changes it.
    Update,
    /// Removes something from it; [`Command::reads`] says whether a call also reads it.
    Delete,
}

/// What commands.md says of each command, as build.rs reads it.
mod reference {
    use super::Spec;

    include!(concat!(env!("OUT_DIR"), "/reference.rs"));
}

/// How a command is registered with the server.
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// Its name as a subcommand, behind that of its parent.
    pub sub: Option<&'static str>,
    /// The number of words, the name included; negative for a minimum.
    pub arity: i32,
    /// The server's flags.
    pub flags: &'static str,
    /// What it does with its key, the first argument.
    pub key: Option<KeyUse>,
    /// Whether all its arguments are keys, and there may be none.
    pub many_keys: bool,
    /// A summary in one line.
    pub summary: &'static str,
    /// Its complexity.
    pub complexity: &'static str,
    /// The version that introduced it.
    pub since: &'static str,
    /// Its arguments, as commands.md shows them.
    pub syntax: &'static str,
    /// Whether it is not for clients.
    pub internal: bool,
}

impl Spec {
    /// A spec with every value left out.
    const NONE: Spec = Spec {
        name: "",
        sub: None,
        arity: 0,
        flags: "",
        key: None,
        many_keys: false,
        summary: "",
        complexity: "",
        since: "",
        syntax: "",
        internal: false,
    };

    /// The spec of a command with a key.
    const fn with(self, flags: &'static str, key: KeyUse) -> Spec {
        Spec { flags, key: Some(key), ..self }
    }

    /// Which word of a call is its key, if it has one.
    pub const fn key_at(&self) -> usize {
        1 + self.sub.is_some() as usize
    }

    /// Whether the server refuses each call without the key, by the number of words.
    pub const fn key_is_there(&self) -> bool {
        self.key.is_none() || self.many_keys || self.arity.unsigned_abs() as usize > self.key_at()
    }
}

/// A command.
pub trait Command {
    /// How it is registered with the server.
    const SPEC: Spec;
    /// Whether a call reveals what is under its key. Only asked of commands with
    /// [`KeyUse::Delete`], whose calls differ; for the others their [`KeyUse`] says it.
    fn reads(_args: &mut Args<'_>) -> bool {
        true
    }
    /// Runs the command, and replies when it succeeds.
    fn run(call: &mut Call<'_>) -> Done;
}

/// Registers commands one by one.
pub trait Registers {
    /// Registers a command.
    fn add<C: Command>(&mut self);
    /// Registers the parent of subcommands and its HELP; the subcommands follow.
    fn family<F: Family>(&mut self);
}

static SPECS: OnceLock<Vec<Spec>> = OnceLock::new();

/// All commands, in the order of their registration.
pub fn registered() -> impl Iterator<Item = &'static Spec> {
    SPECS.get().into_iter().flatten()
}

/// Sets the list of all commands.
pub fn set_registered(specs: Vec<Spec>) {
    SPECS.get_or_init(|| specs);
}

/// Registers all commands; `JOB.CLOCK` only with the manual clock.
pub fn register(to: &mut impl Registers, manual_clock: bool) {
    to.add::<post::Post>();
    to.add::<post::MPost>();
    to.add::<flow::Flow>();
    to.add::<claim::Claim>();
    to.add::<heartbeat::Heartbeat>();
    to.add::<heartbeat::MHeartbeat>();
    to.add::<step::Step>();
    to.add::<awaiting::Await>();
    to.add::<consume::Consume>();
    to.add::<consume::MConsume>();
    to.add::<fail::Fail>();
    to.add::<fail::MFail>();
    to.add::<abandon::Abandon>();
    to.add::<abandon::MAbandon>();
    to.add::<trash::Trash>();
    to.add::<trash::MTrash>();
    to.add::<cancel::Cancel>();
    to.add::<release::Release>();
    to.add::<requeue::Requeue>();
    to.add::<delete::Delete>();
    to.add::<update::Update>();
    to.add::<signal::Signal>();
    to.family::<depend::Parent>();
    to.add::<depend::Add>();
    to.add::<depend::Remove>();
    to.add::<depend::Clear>();
    to.add::<pause::Pause>();
    to.add::<pause::Resume>();
    to.add::<get::Get>();
    to.add::<get::MGet>();
    to.add::<list::List>();
    to.add::<count::Count>();
    to.add::<wait::Wait>();
    to.add::<output::Output>();
    to.add::<history::History>();
    to.add::<explain::Explain>();
    to.add::<tables::Queues>();
    to.add::<groups::Groups>();
    to.add::<limits::Limits>();
    to.add::<tables::Workers>();
    to.add::<tables::Kinds>();
    to.add::<tags::Tags>();
    to.add::<info::Info>();
    to.add::<stats::Stats>();
    to.add::<metrics::Metrics>();
    to.family::<settings::Parent>();
    to.add::<settings::Get>();
    to.add::<settings::Set>();
    to.add::<settings::Reset>();
    to.family::<schedule::Parent>();
    to.add::<schedule::Set>();
    to.add::<schedule::Get>();
    to.add::<schedule::List>();
    to.add::<schedule::Del>();
    to.add::<schedule::Pause>();
    to.add::<schedule::Resume>();
    to.add::<schedule::Run>();
    to.family::<worker::Parent>();
    to.add::<worker::Register>();
    to.add::<worker::Deregister>();
    to.add::<worker::List>();
    to.add::<worker::Quiet>();
    to.add::<worker::Resume>();
    to.add::<internal::Apply>();
    to.add::<internal::Load>();
    to.add::<internal::Probe>();
    if manual_clock {
        to.family::<clock::Parent>();
        to.add::<clock::Get>();
        to.add::<clock::Set>();
        to.add::<clock::Advance>();
    }
}

/// Reads a board; an absent board reads as an empty one.
pub fn read<R>(
    call: &Call<'_>,
    work: impl FnOnce(&Board) -> Result<R, CommandError>,
) -> Result<R, CommandError> {
    let key = call.key();
    let mut open = call.ctx.open(&key)?;
    match open.value() {
        None => EMPTY.with(|board| work(board.get_or_insert_with(Board::default))),
        Some(value) if value.is_broken() => Err(Refusal::Broken.into()),
        Some(value) => work(&value.board),
    }
}

/// Read in place of any absent board.
static EMPTY: MainCell<Option<Board>> = MainCell::new(None);

/// A pause as replies give it: until when, Unix ms; -1 without end, 0 for none.
pub fn pause_end(until: Option<i64>) -> i64 {
    match until {
        Some(NEVER) => -1,
        until => until.unwrap_or(0),
    }
}

/// The names after FIELDS, each once.
pub fn fields(args: &mut Args<'_>) -> Result<FieldList, CommandError> {
    let mut fields = Vec::new();
    for name in args.names("FIELDS", 1)? {
        match Fields::named(name) {
            Some(field) if fields.contains(&field) => {}
            Some(field) => fields.push(field),
            None => return unknown("field", name, Fields::all().iter_names().map(|(name, _)| name)),
        }
    }
    Ok(fields.into())
}
