//! The commands. Each is a type with its [`Spec`] and its `run`.

use board::{Board, FieldList, Fields, Record, Refusal, Rules, NEVER};

use crate::args::Args;
use crate::config::config;
use crate::fault::{unknown, Done, Fault};
use crate::server::call::Call;
use crate::server::cell::MainCell;
use crate::server::register::Registrar;
use crate::server::reply::Reply;

mod abandon;
mod after;
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
mod fitting;
mod flow;
mod get;
mod groups;
mod heartbeat;
mod help;
mod history;
mod info;
mod internal;
mod limits;
mod list;
mod many;
mod metrics;
mod pages;
mod pause;
mod post;
mod release;
mod requeue;
mod schedule;
mod selection;
mod settings;
mod shared;
mod stats;
mod tables;
mod tags;
mod trash;
mod unique;
mod update;
mod wait;
mod worker;

pub use ending::{begin, Ending};
pub use fitting::{fit, Room};
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
    /// Takes from it; whether a call reads it as well is for [`Command::reads`] to say.
    Delete,
}

/// All that the server is told of a command.
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// Its name under a parent's.
    pub sub: Option<&'static str>,
    /// Words at least, or exactly when positive, the name included.
    pub arity: i32,
    /// The server's flags.
    pub flags: &'static str,
    /// What it does with its key, the first argument.
    pub key: Option<KeyUse>,
    /// All its arguments are keys, and there may be none.
    pub many_keys: bool,
    /// One line.
    pub summary: &'static str,
    /// What it costs.
    pub complexity: &'static str,
    /// Its arguments, as commands.md shows them.
    pub syntax: &'static str,
    /// Not for clients.
    pub internal: bool,
}

impl Spec {
    /// A spec of which nothing is said yet.
    pub const NONE: Spec = Spec {
        name: "",
        sub: None,
        arity: -2,
        flags: "",
        key: None,
        many_keys: false,
        summary: "",
        complexity: "O(1)",
        syntax: "",
        internal: false,
    };

    /// Which word of a call is the key, or would be.
    pub const fn key_at(&self) -> usize {
        1 + self.sub.is_some() as usize
    }

    /// Whether the server refuses, for the number of words, each call without the key.
    pub const fn key_is_there(&self) -> bool {
        self.key.is_none() || self.many_keys || self.arity.unsigned_abs() as usize > self.key_at()
    }
}

/// A command.
pub trait Command {
    /// What the server is told of it.
    const SPEC: Spec;
    /// Whether a call tells what is under its key. Asked of commands with [`KeyUse::Delete`]
    /// alone, whose calls differ: others say it once, by their [`KeyUse`].
    fn reads(_args: &mut Args<'_>) -> bool {
        true
    }
    /// Does it, and replies when it succeeds.
    fn run(call: &mut Call<'_>) -> Done;
}

/// Makes all commands known; `JOB.CLOCK` only where the clock is manual.
pub fn register(to: &mut Registrar, manual_clock: bool) {
    to.add::<post::Post>();
    to.add::<post::MPost>();
    to.add::<flow::Flow>();
    to.add::<claim::Claim>();
    to.add::<heartbeat::Heartbeat>();
    to.add::<heartbeat::MHeartbeat>();
    to.add::<consume::Consume>();
    to.add::<consume::MConsume>();
    to.add::<fail::Fail>();
    to.add::<abandon::Abandon>();
    to.add::<abandon::MAbandon>();
    to.add::<trash::Trash>();
    to.add::<cancel::Cancel>();
    to.add::<release::Release>();
    to.add::<requeue::Requeue>();
    to.add::<delete::Delete>();
    to.add::<update::Update>();
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

/// Reads a board; an absent one is read like an empty one.
pub fn read<R>(call: &Call<'_>, work: impl FnOnce(&Board) -> Result<R, Fault>) -> Result<R, Fault> {
    let key = call.key();
    let mut open = call.ctx.open(&key)?;
    match open.value() {
        None => EMPTY.with(|board| work(board.get_or_insert_with(Board::default))),
        Some(value) if value.is_broken() => Err(Refusal::Broken.into()),
        Some(value) => work(&value.board),
    }
}

/// Stands for every board that is absent.
static EMPTY: MainCell<Option<Board>> = MainCell::new(None);

/// A pause as replies tell it: until when, Unix ms; -1 without end, 0 for none.
pub fn pause_end(until: Option<i64>) -> i64 {
    match until {
        Some(NEVER) => -1,
        until => until.unwrap_or(0),
    }
}

/// Answers with records, as a claim does.
pub fn write_records(reply: Reply, board: &Board, slots: &[u32], fields: &[Fields]) {
    reply.array(slots.len());
    for slot in slots {
        write_record(reply, board, *slot, fields);
    }
}

/// Answers with records by id and nulls, in place; without a board all are null. Refused, and
/// nothing is written, when the records do not fit into one reply.
pub fn write_found<'a>(
    reply: Reply,
    board: Option<&Board>,
    ids: impl ExactSizeIterator<Item = &'a [u8]>,
    fields: &[Fields],
) -> Done {
    let slots: Vec<Option<u32>> = ids.map(|id| board?.find(id)).collect();
    if let Some(board) = board.filter(|_| slots.len() > 1) {
        let known: Vec<u32> = slots.iter().flatten().copied().collect();
        fitting::check_fit(board, &known, fields)?;
    }
    reply.array(slots.len());
    for slot in slots {
        match board.zip(slot) {
            Some((board, slot)) => write_record(reply, board, slot, fields),
            None => reply.null(),
        }
    }
    Ok(())
}

/// Answers with the asked fields of one record that it has.
pub fn write_record(reply: Reply, board: &Board, slot: u32, fields: &[Fields]) {
    let Some(record) = board.record_of(slot) else { return reply.null() };
    let present = record.present();
    let told = || fields.iter().filter(|field| present.contains(**field));
    reply.map(told().count());
    let rules = &config().rules;
    for field in told() {
        write_field(reply, &record, *field, rules);
    }
}

fn write_field(reply: Reply, record: &Record<'_>, field: Fields, rules: &Rules) {
    let bytes = |name: &str, value: Option<&[u8]>| {
        reply.text(name);
        reply.bytes(value.unwrap_or_default());
    };
    let int = |name: &str, value: Option<i64>| {
        reply.text(name);
        reply.int(value.unwrap_or_default());
    };
    match field {
        Fields::ID => {
            reply.text("id");
            record.id().text(|id| reply.bytes(id));
        }
        Fields::SEQ => int("seq", Some(record.seq())),
        Fields::STATE => bytes("state", Some(record.state().name().as_bytes())),
        Fields::QUEUE => bytes("queue", Some(record.queue())),
        Fields::NAME => bytes("name", record.name()),
        Fields::PAYLOAD => bytes("payload", Some(record.payload())),
        Fields::PRIORITY => int("priority", Some(record.priority().into())),
        Fields::ATTEMPT => int("attempt", Some(record.attempt().into())),
        Fields::LEFT => int("left", Some(record.left(rules))),
        Fields::TOKEN => int("token", record.token().map(|t| t as i64)),
        Fields::WORKER => bytes("worker", record.worker()),
        Fields::DEADLINE => int("deadline", record.deadline()),
        Fields::KIND => bytes("kind", record.kind()),
        Fields::MESSAGE => bytes("message", record.message()),
        Fields::STAGE => bytes("stage", record.stage()),
        Fields::PROGRESS => {
            reply.text("progress");
            reply.double(record.progress().unwrap_or_default());
        }
        Fields::POSTED => int("posted", Some(record.posted())),
        Fields::DUE => int("due", record.due()),
        Fields::CLAIMED => int("claimed", record.claimed()),
        Fields::ENDED => int("ended", record.ended()),
        Fields::MODIFIED => int("modified", Some(record.modified())),
        Fields::VERSION => int("version", Some(record.version())),
        Fields::RESULT => bytes("result", record.result()),
        Fields::META => {
            reply.text("meta");
            let meta = record.meta();
            reply.map(meta.len());
            for (field, value) in meta {
                reply.bytes(field);
                reply.bytes(value);
            }
        }
        Fields::PREVIOUS => bytes("previous", record.previous()),
        Fields::REASON => bytes("reason", record.reason()),
        Fields::AFTER => {
            reply.text("after");
            let after = record.after();
            reply.array(after.len());
            for id in after {
                id.text(|id| reply.bytes(id));
            }
        }
        Fields::TAGS => {
            reply.text("tags");
            let tags = record.tags();
            reply.array(tags.len());
            tags.for_each(|tag| reply.bytes(tag));
        }
        Fields::TRACKED => int("tracked", Some(1)),
        Fields::SESSION => int("session", Some(record.session().into())),
        Fields::INTENDED => int("intended", record.intended()),
        Fields::GROUP => bytes("group", record.group()),
        Fields::USER => bytes("user", record.user()),
        Fields::PARENT => {
            reply.text("parent");
            record.parent().map_or_else(|| reply.null(), |id| id.text(|id| reply.bytes(id)));
        }
        Fields::SHARE => int("share", record.share().map(i64::from)),
        Fields::CHILDREN => int("children", record.children().map(|n| n as i64)),
        Fields::COST => int("cost", record.cost()),
        Fields::UNIQUE => bytes("unique", record.unique()),
        _ => {}
    }
}

/// Answers for one id of several: the single command's reply, or code and detail.
pub fn write_refusal(reply: Reply, refusal: &Refusal) {
    reply.array(2);
    reply.text(refusal.code());
    reply.text(&refusal.detail());
}

/// The names after FIELDS, each once.
pub fn fields(args: &mut Args<'_>) -> Result<FieldList, Fault> {
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
