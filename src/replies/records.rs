//! Records of jobs in replies: as elements of the reply, or packed as MessagePack into one string.

use board::{Board, Entry, FieldList, Fields, Record, Refusal, Rules, Waiting, NEVER};

use crate::config::config;
use crate::redis::reply::Reply;
use crate::replies::errors::Done;
use crate::replies::fitting;
use crate::replies::packing::{packed, Writes};

/// What a reply shows of records, and how.
#[derive(Clone)]
pub struct Shape {
    /// The fields, in this order.
    pub fields: FieldList,
    /// Whether all records are one string.
    pub packed: bool,
}

/// Replies with records, in the form of a claim.
pub fn write_records(mut reply: Reply, board: &Board, slots: &[u32], shape: &Shape) {
    match shape.packed {
        true => packed(reply, |pack| write_all(pack, board, slots, &shape.fields)),
        false => write_all(&mut reply, board, slots, &shape.fields),
    }
}

fn write_all(to: &mut impl Writes, board: &Board, slots: &[u32], fields: &[Fields]) {
    to.array(slots.len());
    for slot in slots {
        write_to(to, board, *slot, fields);
    }
}

/// Replies with a record or null for each id; without a board all are null. Refuses, and writes
/// nothing, when the records do not fit into one reply.
pub fn write_found<'a>(
    mut reply: Reply,
    board: Option<&Board>,
    ids: impl ExactSizeIterator<Item = &'a [u8]>,
    shape: &Shape,
) -> Done {
    let fields = &shape.fields;
    let slots: Vec<Option<u32>> = ids.map(|id| board?.find(id)).collect();
    if let Some(board) = board.filter(|_| slots.len() > 1) {
        let known: Vec<u32> = slots.iter().flatten().copied().collect();
        fitting::check_fit(board, &known, fields)?;
    }
    match shape.packed {
        true => packed(reply, |pack| write_each(pack, board, &slots, fields)),
        false => write_each(&mut reply, board, &slots, fields),
    }
    Ok(())
}

fn write_each(to: &mut impl Writes, board: Option<&Board>, slots: &[Option<u32>], fields: &[Fields]) {
    to.array(slots.len());
    for slot in slots {
        match board.zip(*slot) {
            Some((board, slot)) => write_to(to, board, slot, fields),
            None => to.null(),
        }
    }
}

/// Replies with one record.
pub fn write_one(reply: Reply, board: &Board, slot: u32, shape: &Shape) {
    match shape.packed {
        true => packed(reply, |pack| write_to(pack, board, slot, &shape.fields)),
        false => write_record(reply, board, slot, &shape.fields),
    }
}

/// Replies with those of the requested fields that the record has.
pub fn write_record(mut reply: Reply, board: &Board, slot: u32, fields: &[Fields]) {
    write_to(&mut reply, board, slot, fields);
}

fn write_to(to: &mut impl Writes, board: &Board, slot: u32, fields: &[Fields]) {
    let Some(record) = board.record_of(slot) else { return to.null() };
    let present = record.present();
    let shown = || fields.iter().filter(|field| present.contains(**field));
    to.map(shown().count());
    let rules = &config().rules;
    for field in shown() {
        write_field(to, &record, *field, rules);
    }
}

fn write_field<W: Writes>(to: &mut W, record: &Record<'_>, field: Fields, rules: &Rules) {
    fn bytes(to: &mut impl Writes, name: &str, value: Option<&[u8]>) {
        to.text(name);
        to.bytes(value.unwrap_or_default());
    }
    fn int(to: &mut impl Writes, name: &str, value: Option<i64>) {
        to.text(name);
        to.int(value.unwrap_or_default());
    }
    match field {
        Fields::ID => {
            to.text("id");
            record.id().text(|id| to.bytes(id));
        }
        Fields::SEQ => int(to, "seq", Some(record.seq())),
        Fields::STATE => bytes(to, "state", Some(record.state().name().as_bytes())),
        Fields::QUEUE => bytes(to, "queue", Some(record.queue())),
        Fields::NAME => bytes(to, "name", record.name()),
        Fields::PAYLOAD => bytes(to, "payload", Some(record.payload())),
        Fields::PRIORITY => int(to, "priority", Some(record.priority().into())),
        Fields::ATTEMPT => int(to, "attempt", Some(record.attempt().into())),
        Fields::LEFT => int(to, "left", Some(record.left(rules))),
        Fields::TOKEN => int(to, "token", record.token().map(|t| t as i64)),
        Fields::WORKER => bytes(to, "worker", record.worker()),
        Fields::DEADLINE => int(to, "deadline", record.deadline()),
        Fields::KIND => bytes(to, "kind", record.kind()),
        Fields::MESSAGE => bytes(to, "message", record.message()),
        Fields::STAGE => bytes(to, "stage", record.stage()),
        Fields::PROGRESS => {
            to.text("progress");
            to.double(record.progress().unwrap_or_default());
        }
        Fields::POSTED => int(to, "posted", Some(record.posted())),
        Fields::DUE => int(to, "due", record.due()),
        Fields::CLAIMED => int(to, "claimed", record.claimed()),
        Fields::ENDED => int(to, "ended", record.ended()),
        Fields::MODIFIED => int(to, "modified", Some(record.modified())),
        Fields::VERSION => int(to, "version", Some(record.version())),
        Fields::RESULT => bytes(to, "result", record.result()),
        Fields::META => {
            to.text("meta");
            let meta = record.meta();
            to.map(meta.len());
            for (field, value) in meta {
                to.bytes(field);
                to.bytes(value);
            }
        }
        Fields::PREVIOUS => bytes(to, "previous", record.previous()),
        Fields::REASON => bytes(to, "reason", record.reason()),
        Fields::AFTER => {
            to.text("after");
            let after = record.after();
            to.array(after.len());
            for id in after {
                id.text(|id| to.bytes(id));
            }
        }
        Fields::TAGS => {
            to.text("tags");
            let tags = record.tags();
            to.array(tags.len());
            tags.for_each(|tag| to.bytes(tag));
        }
        Fields::TRACKED => int(to, "tracked", Some(1)),
        Fields::SESSION => int(to, "session", Some(record.session().into())),
        Fields::INTENDED => int(to, "intended", record.intended()),
        Fields::GROUP => bytes(to, "group", record.group()),
        Fields::USER => bytes(to, "user", record.user()),
        Fields::PARENT => {
            to.text("parent");
            match record.parent() {
                Some(id) => id.text(|id| to.bytes(id)),
                None => to.null(),
            }
        }
        Fields::SHARE => int(to, "share", record.share().map(i64::from)),
        Fields::CHILDREN => int(to, "children", record.children().map(|n| n as i64)),
        Fields::PENDING => int(to, "pending", Some(record.pending().into())),
        Fields::UNSUCCESSFUL => int(to, "unsuccessful", Some(record.unsuccessful() as i64)),
        Fields::COST => int(to, "cost", record.cost()),
        Fields::COSTS => {
            to.text("costs");
            to.map(record.costs().len());
            for (limit, cost) in record.costs() {
                to.bytes(limit);
                to.int(cost);
            }
        }
        Fields::SPENT => {
            to.text("spent");
            let Some(spent) = record.spent() else { return to.null() };
            to.map(1 + usize::from(!spent.costs.is_empty()));
            int(to, "cost", Some(spent.cost));
            if !spent.costs.is_empty() {
                to.text("costs");
                to.map(spent.costs.len());
                for (limit, cost) in &spent.costs {
                    to.bytes(limit);
                    to.int(*cost);
                }
            }
        }
        Fields::UNIQUE => bytes(to, "unique", record.unique()),
        Fields::STEPS => {
            to.text("steps");
            let steps = record.steps();
            to.map(steps.len());
            for (name, value, at) in steps {
                to.bytes(name);
                to.map(2);
                to.text("value");
                to.bytes(value);
                to.text("at");
                to.int(at);
            }
        }
        Fields::SIGNALS => {
            to.text("signals");
            let signals = record.signals();
            to.map(signals.len());
            for signal in signals {
                to.bytes(&signal.name);
                to.map(2 + usize::from(signal.sender.is_some()));
                bytes(to, "value", Some(&signal.value));
                int(to, "at", Some(signal.at));
                if let Some(sender) = &signal.sender {
                    bytes(to, "sender", Some(sender));
                }
            }
        }
        Fields::AWAITS => {
            to.text("awaits");
            write_awaits(to, record);
        }
        Fields::UNTIL => int(to, "until", record.until()),
        Fields::RETRIES => int(to, "retries", Some(record.retries(rules))),
        Fields::LAPSES => int(to, "lapses", Some(record.lapses().into())),
        Fields::HISTORY => {
            to.text("history");
            write_entries(to, &record.history());
        }
        Fields::ORIGIN => {
            to.text("origin");
            let Some(origin) = record.origin() else { return to.null() };
            to.map(3);
            to.text("queue");
            to.bytes(&origin.queue);
            to.text("attempts");
            to.int(origin.attempts.into());
            to.text("at");
            to.int(origin.at);
        }
        _ => {}
    }
}

/// The signals and the children that a job waits for.
fn write_awaits(to: &mut impl Writes, record: &Record<'_>) {
    let (waiting, children) = (record.waiting(), record.child_wait());
    let until = waiting.map(Waiting::until).filter(|until| *until != NEVER);
    let any = waiting.is_some_and(|waiting| waiting.gate.any);
    let of_signals = 3 + usize::from(any) + 2 * usize::from(until.is_some());
    to.map(waiting.map_or(0, |_| of_signals) + usize::from(children.is_some()));
    if let Some(waiting) = waiting {
        let gate = &waiting.gate;
        to.text("signals");
        to.array(gate.names.len());
        gate.names.iter().for_each(|name| to.bytes(name));
        to.text("missing");
        let missing: Vec<&[u8]> =
            gate.names.iter().map(|name| &**name).filter(|name| record.awaits(name)).collect();
        to.array(missing.len());
        missing.into_iter().for_each(|name| to.bytes(name));
        to.text("since");
        to.int(waiting.from);
        if any {
            to.text("any");
            to.int(1);
        }
        if let Some(until) = until {
            to.text("until");
            to.int(until);
            to.text("ontimeout");
            to.bytes(gate.on_timeout.name().as_bytes());
        }
    }
    if let Some(wait) = children {
        to.text("children");
        to.map(2);
        to.text("since");
        to.int(wait.from);
        to.text("onfailure");
        to.bytes(wait.on_failure.name().as_bytes());
    }
}

/// Replies with the history of a job.
pub fn write_history(mut reply: Reply, entries: &[Entry]) {
    write_entries(&mut reply, entries);
}

fn write_entries(to: &mut impl Writes, entries: &[Entry]) {
    to.array(entries.len());
    for entry in entries {
        let signal = entry.signal();
        let several = signal.map(|(_, n)| n as i64).filter(|n| *n > 1);
        let texts = [
            ("worker", entry.worker.as_deref()),
            ("kind", entry.kind()),
            ("message", entry.message()),
            ("queue", entry.queue()),
            ("signal", signal.map(|(first, _)| first)),
        ];
        let given = texts.iter().filter(|(_, text)| text.is_some()).count();
        let children = i64::from(entry.children);
        let numbers = usize::from(several.is_some()) + usize::from(children > 0) + usize::from(entry.last);
        to.map(2 + given + numbers);
        to.text("at");
        to.int(entry.at);
        to.text("event");
        to.bytes(entry.event.name().as_bytes());
        for (name, text) in texts {
            if let Some(text) = text {
                to.text(name);
                to.bytes(text);
            }
        }
        if let Some(n) = several {
            to.text("signals");
            to.int(n);
        }
        if children > 0 {
            to.text("children");
            to.int(children);
        }
        if entry.last {
            to.text("final");
            to.int(1);
        }
    }
}

/// Replies for one of several ids: code and detail of a refusal.
pub fn write_refusal(reply: Reply, refusal: &Refusal) {
    reply.array(2);
    reply.text(refusal.code());
    reply.text(&refusal.detail());
}
