//! Publishes what happens on boards: messages by pub/sub, and keyspace notifications.
//!
//! A message is sent when clients can see the change and its key is closed. Standalone, each server
//! sends its own clients what it applies; in a cluster only the primary publishes, since the server
//! carries messages to all nodes. Nothing is published of what is loaded or imported.

use board::{Board, Event, EventField, EventKind, Rules, Subscribers, ALL_EVENTS};

use crate::config::config;
use crate::redis::ctx::Ctx;
use crate::redis::notify::is_notified;
use crate::redis::strings::Key;
use crate::replies::json::Object;

/// What has happened on a board, to be published when its key is closed.
pub struct Outgoing {
    messages: Vec<Event>,
    happened: u32,
}

/// The kinds of events for which keyspace notifications are enabled.
fn notified() -> u32 {
    match is_notified() {
        true => ALL_EVENTS,
        false => 0,
    }
}

/// Sets which events a board collects, before it changes by a decision of this server.
pub fn listen(board: &mut Board, rules: &Rules) {
    let events = board.events(rules);
    let tracked = events != 0 && board.events_tracked(rules);
    board.listen(Subscribers { events, tracked, workers: true, names: notified() });
}

/// Sets which events a board collects, before it changes by effects from elsewhere: on a replica
/// what its own clients subscribe to, nothing of what is loaded or imported.
pub fn listen_to_replay(ctx: Ctx, board: &mut Board) {
    if ctx.is_primary() || ctx.is_loading() || !ctx.is_replay() {
        return board.listen(Subscribers::default());
    }
    let alone = !ctx.is_cluster();
    let rules = &config().rules;
    let events = if alone { board.events(rules) } else { 0 };
    let tracked = board.events_tracked(rules);
    board.listen(Subscribers { events, tracked, workers: alone, names: notified() });
}

impl Outgoing {
    /// What has happened on a board since [`listen`].
    pub fn of(board: &mut Board) -> Outgoing {
        Outgoing { messages: board.messages(), happened: board.take_kinds() }
    }

    /// Publishes it, in the order in which it happened. No board may be open.
    pub fn send(&self, ctx: Ctx, key: &Key) {
        if !self.messages.is_empty() {
            self.publish(ctx, key);
        }
        if self.happened == 0 {
            return;
        }
        for kind in EventKind::ALL.into_iter().filter(|kind| self.happened & kind.bit() != 0) {
            ctx.notify(&format!("job.{}", kind.name()), key);
        }
    }

    fn publish(&self, ctx: Ctx, key: &Key) {
        let board = key.bytes();
        let db = ctx.db();
        let events = ctx.string(&[b"job.events:", board].concat());
        for message in &self.messages {
            let text = ctx.string(text(message, db, board).as_bytes());
            if message.public {
                ctx.publish(&events, &text);
            }
            if let (true, Some(worker)) = (message.kind.for_worker(), &message.worker) {
                ctx.publish(&ctx.string(&[b"job.worker:", board, b":", worker].concat()), &text);
            }
        }
    }
}

fn text(message: &Event, db: i32, board: &[u8]) -> String {
    let mut object = Object::new();
    object.bytes("event", message.kind.name().as_bytes());
    object.number("db", db.into());
    object.bytes("board", board);
    if let Some(id) = &message.id {
        id.borrowed().text(|id| object.bytes("id", id));
    }
    object.number("version", message.version as i64);
    object.number("at", message.at);
    if message.tracked {
        object.plain("tracked", "true");
    }
    if let Some(worker) = &message.worker {
        object.bytes("worker", worker);
    }
    for field in &message.fields {
        match field {
            EventField::Text(name, text) => object.bytes(name, text),
            EventField::Word(name, word) => object.bytes(name, word.as_bytes()),
            EventField::Number(name, n) => object.number(name, *n),
            EventField::Percent(name, n) => object.plain(name, &(f64::from(*n) / 100.0).to_string()),
            EventField::Flag(name, yes) => object.plain(name, if *yes { "true" } else { "false" }),
            EventField::Null(name) => object.plain(name, "null"),
        }
    }
    object.finish()
}
