//! `JOB.UPDATE`: an operator changes jobs that have not ended.

use board::{Report, Update as Change, LONGEST, MOST};

use super::post::{delay, LATEST, START};
use super::selection::{distinct, ids, resolve, write};
use super::{Command, KeyUse, Spec};
use crate::args::{once, one_of, Args, Keyword};
use crate::fault::{syntax, unexpected, Done, Fault};
use crate::server::call::Call;
use crate::turn::Turn;

/// `JOB.UPDATE board n id… SET option…` → count, cursor, unknown ids. Replicates `Updated` for
/// each.
pub struct Update;

fn change<'a>(args: &mut Args<'a>) -> Result<Change<'a>, Fault> {
    let mut change = Change::default();
    let mut report = Report::default();
    let (mut start, mut meta) = (None, None);
    while let Some(word) = args.next() {
        match Keyword::of(word).text() {
            "PRIORITY" => {
                let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
                once(&mut change.priority, "PRIORITY", args.int("PRIORITY", range)? as i32)?;
            }
            "QUEUE" => once(&mut change.queue, "QUEUE", args.name("QUEUE")?)?,
            "DELAY" => one_of(&mut start, START, "DELAY", delay(args)?)?,
            "AT" => one_of(&mut start, START, "AT", args.int("AT", 0..=LATEST)?)?,
            "PAYLOAD" => once(&mut report.payload, "PAYLOAD", args.payload("PAYLOAD")?)?,
            "RETRIES" => once(&mut change.retries, "RETRIES", args.int("RETRIES", -1..=MOST)?)?,
            "LEASE" => once(&mut change.lease, "LEASE", args.int("LEASE", 1..=LONGEST)?)?,
            "META" => once(&mut meta, "META", args.meta()?)?,
            "LOG" => once(&mut report.log, "LOG", args.text("LOG")?)?,
            "PROGRESS" => once(&mut report.progress, "PROGRESS", args.percent("PROGRESS")?)?,
            _ => return unexpected(word),
        }
    }
    change.due = start.map(|(_, due)| due);
    report.meta = meta.unwrap_or_default();
    change.report = (report != Report::default()).then_some(report);
    match change == Change::default() {
        true => syntax("SET needs at least one option"),
        false => Ok(change),
    }
}

impl Command for Update {
    const SPEC: Spec = Spec {
        name: "job.update",
        arity: -4,
        flags: "write",
        key: Some(KeyUse::Update),
        summary: "Changes jobs that have not ended.",
        complexity: "O(n log N)",
        syntax: "board n id [id ...] SET [PRIORITY priority] [QUEUE queue] [DELAY ms|AT unix-ms] [PAYLOAD payload] \
            [RETRIES n] [LEASE ms] [META n field value [field value ...]] [LOG text] [PROGRESS percent]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let ids = ids(&mut call.args)?;
        if !call.args.take("SET") {
            return call.args.next().map_or_else(|| syntax("SET is missing"), unexpected);
        }
        let change = change(&mut call.args)?;
        let reply = call.ctx.reply();
        Turn::run(call.ctx, &call.key(), |turn| {
            let slots = resolve(turn, &ids, |turn, slot| turn.board().update(slot, &change))?;
            let known = distinct(&slots);
            if let Some(queue) = change.queue {
                turn.board().check_room(queue, &known)?;
            }
            for slot in &known {
                let effect = turn.board().update(*slot, &change)?;
                turn.apply(effect)?;
            }
            write(reply, known.len(), &ids, &slots);
            Ok(())
        })
    }
}
