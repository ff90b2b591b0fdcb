//! Records of jobs in replies.

use board::{Board, Fields, Record, Refusal, Rules};

use crate::config::config;
use crate::redis::reply::Reply;
use crate::replies::errors::Done;
use crate::replies::fitting;

/// Replies with records, in the form of a claim.
pub fn write_records(reply: Reply, board: &Board, slots: &[u32], fields: &[Fields]) {
    reply.array(slots.len());
    for slot in slots {
        write_record(reply, board, *slot, fields);
    }
}

/// Replies with a record or null for each id; without a board all are null. Refuses, and writes
/// nothing, when the records do not fit into one reply.
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

/// Replies with those of the requested fields that the record has.
pub fn write_record(reply: Reply, board: &Board, slot: u32, fields: &[Fields]) {
    let Some(record) = board.record_of(slot) else { return reply.null() };
    let present = record.present();
    let shown = || fields.iter().filter(|field| present.contains(**field));
    reply.map(shown().count());
    let rules = &config().rules;
    for field in shown() {
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
        Fields::STEPS => {
            reply.text("steps");
            let steps = record.steps();
            reply.map(steps.len());
            for (name, value, at) in steps {
                reply.bytes(name);
                reply.map(2);
                reply.text("value");
                reply.bytes(value);
                reply.text("at");
                reply.int(at);
            }
        }
        _ => {}
    }
}

/// Replies for one of several ids: code and detail of a refusal.
pub fn write_refusal(reply: Reply, refusal: &Refusal) {
    reply.array(2);
    reply.text(refusal.code());
    reply.text(&refusal.detail());
}
