//! `JOB.UPDATE`: an operator changes jobs.

use board::{Label, Operation, Report, Update as Change, LONGEST, MOST};

use super::post::{delay, LATEST, START};
use super::selection::{distinct, named, resolve, write, Named, BYTES};
use super::shared::{self, pieces};
use super::{reference, Command, KeyUse, Spec};
use crate::commands::args::{once, one_of, Args, Keyword};
use crate::commands::call::Call;
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// `JOB.UPDATE` → count, cursor, unknown ids. Replicates `Updated`, or `UpdatedAll` for several,
/// and `Labelled` for each.
pub struct Update;

/// Refuses a change that is too long for `n` jobs: see [`shared`].
fn check_shared(n: usize, change: Option<&Change<'_>>, label: Option<&Label<'_>>) -> Done {
    let report = change.and_then(|change| change.report.as_ref());
    let options = [
        ("PAYLOAD", report.and_then(|report| report.payload).map_or(0, <[u8]>::len)),
        ("META", report.map_or(0, |report| shared::fields(&report.meta))),
        ("LOG", report.and_then(|report| report.log).map_or(0, <[u8]>::len)),
        ("TAG", label.map_or(0, |label| pieces(&label.tag))),
        ("UNTAG", label.map_or(0, |label| pieces(&label.untag))),
        ("UNSTEP", change.map_or(0, |change| pieces(&change.unstep))),
    ];
    shared::check(n, "n", &options)
}

/// The changes after SET: of jobs, and of their labels.
fn change<'a>(args: &mut Args<'a>) -> Result<(Option<Change<'a>>, Option<Label<'a>>), CommandError> {
    let mut change = Change::default();
    let (mut tag, mut untag, mut track) = (None, None, None);
    let mut report = Report::default();
    let (mut start, mut meta, mut unstep) = (None, None, None);
    while let Some(word) = args.next() {
        match Keyword::of(word).text() {
            "PRIORITY" => {
                let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
                once(&mut change.priority, "PRIORITY", args.int("PRIORITY", range)? as i32)?;
            }
            "QUEUE" => once(&mut change.queue, "QUEUE", args.name("QUEUE")?)?,
            "DELAY" => one_of(&mut start, START, "DELAY", delay(args)?)?,
            "AT" => one_of(&mut start, START, "AT", args.time("AT", 0..=LATEST)?)?,
            "PAYLOAD" => once(&mut report.payload, "PAYLOAD", args.payload("PAYLOAD")?)?,
            "RETRIES" => once(&mut change.retries, "RETRIES", args.int("RETRIES", -1..=MOST)?)?,
            "LEASE" => once(&mut change.lease, "LEASE", args.ms("LEASE", 1..=LONGEST)?)?,
            "META" => once(&mut meta, "META", args.meta()?)?,
            "LOG" => once(&mut report.log, "LOG", args.text("LOG")?)?,
            "PROGRESS" => once(&mut report.progress, "PROGRESS", args.percent("PROGRESS")?)?,
            "UNSTEP" => once(&mut unstep, "UNSTEP", args.names("UNSTEP", 1)?)?,
            "TAG" => once(&mut tag, "TAG", args.tags("TAG", 1)?)?,
            "UNTAG" => once(&mut untag, "UNTAG", args.tags("UNTAG", 1)?)?,
            "TRACK" => one_of(&mut track, "TRACK and UNTRACK", "TRACK", true)?,
            "UNTRACK" => one_of(&mut track, "TRACK and UNTRACK", "UNTRACK", false)?,
            _ => return unexpected(word),
        }
    }
    let label = Label {
        tag: tag.unwrap_or_default(),
        untag: untag.unwrap_or_default(),
        track: track.map(|(_, track)| track),
    };
    if let Some(both) = label.tag.iter().find(|tag| label.untag.contains(tag)) {
        return syntax(format!("TAG and UNTAG both name '{}'", board::clean(both)));
    }
    change.due = start.map(|(_, due)| due);
    change.unstep = unstep.unwrap_or_default();
    report.meta = meta.unwrap_or_default();
    change.report = (report != Report::default()).then_some(report);
    let change = (change != Change::default()).then_some(change);
    let label = (label != Label::default()).then_some(label);
    match (&change, &label) {
        (None, None) => syntax("SET needs at least one option"),
        _ => Ok((change, label)),
    }
}

impl Command for Update {
    const SPEC: Spec = Spec { arity: -4, ..reference::JOB_UPDATE.with("write deny-oom", KeyUse::Update) };

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut jobs = named(args)?;
        while !args.take("SET") {
            match args.next() {
                None => return syntax("SET is missing"),
                Some(word) if jobs.take(args, word)? => {}
                Some(word) => return unexpected(word),
            }
        }
        jobs.check()?;
        let (change, label) = change(args)?;
        if let Named::Ids(ids) = &jobs {
            check_shared(ids.len(), change.as_ref(), label.as_ref())?;
        }
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            if let Some(queue) = change.as_ref().and_then(|change| change.queue) {
                commit.board().check_queue(queue)?;
            }
            let ids = match &jobs {
                Named::Ids(ids) => ids,
                Named::Where(chosen) => {
                    let deed = match (&change, &label) {
                        (change, Some(label)) => Operation::Label(label, change.as_ref()),
                        (Some(change), None) => Operation::Update(change),
                        (None, None) => return Ok(()),
                    };
                    let slice = chosen.choose(commit, deed, BYTES)?;
                    if !chosen.dry {
                        update(commit, &slice.slots, change.as_ref(), label.as_ref())?;
                    }
                    reply.array(3);
                    slice.write(reply);
                    return Ok(());
                }
            };
            let slots = resolve(commit, ids, |commit, slot| {
                change.as_ref().map_or(Ok(()), |change| commit.board().check_update(slot, change))?;
                label.as_ref().map_or(Ok(()), |label| commit.board().label(slot, label).map(|_| ()))
            })?;
            let known = distinct(&slots);
            if let Some(queue) = change.as_ref().and_then(|change| change.queue) {
                commit.board().check_room(queue, &known)?;
                commit.board().check_limits(&known, Some(queue))?;
            }
            update(commit, &known, change.as_ref(), label.as_ref())?;
            write(reply, known.len(), ids, &slots);
            Ok(())
        })
    }
}

fn update(
    commit: &mut Commit<'_>,
    slots: &[u32],
    change: Option<&Change<'_>>,
    label: Option<&Label<'_>>,
) -> Result<(), CommandError> {
    match (change, slots) {
        (None, _) | (_, []) => {}
        (Some(change), [slot]) => {
            let effect = commit.board().update(*slot, change)?;
            commit.apply(effect)?;
        }
        (Some(change), _) => {
            let effect = commit.board().update_all(slots.to_vec(), change);
            commit.apply(effect)?;
        }
    }
    let Some(label) = label else { return Ok(()) };
    for slot in slots {
        if let Some(effect) = commit.board().label(*slot, label)? {
            commit.apply(effect)?;
        }
    }
    Ok(())
}
