//! `JOB.DELETE`: an operator removes records in any state.

use board::{all_fields, Deleted, FieldList, Forgotten, Operation, Refusal};

use super::selection::{distinct, named, resolve, weight, write_named, Named, Where, BYTES};
use super::{fields, reference, Command, KeyUse, Spec};
use crate::commands::args::{flag, once, Args, Keyword};
use crate::commands::call::Call;
use crate::redis::reply::Reply;
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::replies::records::write_record;
use crate::runtime::commit::Commit;

/// `JOB.DELETE` → count, cursor, unknown ids, and with RETURN the records; with WHERE those held
/// back in place of unknown ids. Replicates `Deleted` for each record, and `Forgotten` for each
/// tombstone.
pub struct Delete;

/// A job to delete, with what identifies it: deleting one job may remove another record that was
/// only kept for it.
type Going = (u32, i64, Vec<u8>);

fn delete(commit: &mut Commit<'_>, slots: &[u32]) -> Result<(), CommandError> {
    let board = &*commit.board();
    let record = |slot: &u32| board.record_of(*slot).map(|r| (*slot, r.seq(), r.id().to_vec()));
    let going: Vec<Going> = slots.iter().filter_map(record).collect();
    for (slot, seq, id) in going {
        match commit.board().seq(slot) == seq {
            true => commit.apply(Deleted { slot })?,
            false => forget(commit, &id)?,
        }
    }
    Ok(())
}

fn forget(commit: &mut Commit<'_>, id: &[u8]) -> Result<(), CommandError> {
    let now = commit.env.now;
    match commit.board().tombstone(id, now) {
        Some(_) => commit.apply(Forgotten { id }),
        None => Ok(()),
    }
}

/// Replies for jobs named by id, and returns those to delete.
fn by_ids(
    commit: &mut Commit<'_>,
    reply: Reply,
    ids: &[&[u8]],
    returned: Option<&FieldList>,
) -> Result<Vec<u32>, CommandError> {
    let slots = resolve(commit, ids, |_, _| Ok(()))?;
    let known = distinct(&slots);
    commit.board().check_ties(&known)?;
    let among = commit.board().live_children_among(&known);
    for (id, slot) in ids.iter().zip(&slots) {
        if let Some(slot) = slot {
            commit.board().check_depended(*slot, &known).map_err(|refusal| refusal.of(id))?;
            commit.board().check_childless(*slot, &known, &among).map_err(|refusal| refusal.of(id))?;
        }
    }
    // An id that is named twice is returned twice.
    let written: Vec<u32> = slots.iter().flatten().copied().collect();
    if returned.is_some() && written.len() > 1 && weight(commit.board(), &written) > BYTES {
        return Err(Refusal::Limit("return").into());
    }
    for (id, _) in ids.iter().zip(&slots).filter(|(_, slot)| slot.is_none()) {
        forget(commit, id)?;
    }
    reply.array(3 + usize::from(returned.is_some()));
    write_named(reply, known.len(), ids, &slots);
    if let Some(fields) = returned {
        reply.array(ids.len());
        for slot in &slots {
            match slot {
                Some(slot) => write_record(reply, commit.board(), *slot, fields),
                None => reply.null(),
            }
        }
    }
    Ok(known)
}

/// Replies for a slice by filters, and returns those to delete.
fn by_filters(
    commit: &mut Commit<'_>,
    reply: Reply,
    chosen: &Where<'_>,
    returned: Option<&FieldList>,
) -> Result<Vec<u32>, CommandError> {
    let bytes = returned.map_or(usize::MAX, |_| BYTES);
    let slice = chosen.choose(commit, Operation::Delete, bytes)?;
    reply.array(3 + usize::from(returned.is_some()));
    slice.write(reply);
    if let Some(fields) = returned {
        reply.array(slice.slots.len());
        for slot in &slice.slots {
            write_record(reply, commit.board(), *slot, fields);
        }
    }
    Ok(if chosen.dry { Vec::new() } else { slice.slots })
}

/// Which jobs, and which of their fields to return.
fn read<'a>(args: &mut Args<'a>) -> Result<(Named<'a>, Option<FieldList>), CommandError> {
    let mut jobs = named(args)?;
    let (mut handed, mut asked) = (false, None);
    while let Some(word) = args.next() {
        match Keyword::of(word).text() {
            "RETURN" => flag(&mut handed, "RETURN")?,
            "FIELDS" => once(&mut asked, "FIELDS", fields(args)?)?,
            _ if jobs.take(args, word)? => {}
            _ => return unexpected(word),
        }
    }
    jobs.check()?;
    if asked.is_some() && !handed {
        return syntax("FIELDS needs RETURN");
    }
    Ok((jobs, handed.then(|| asked.unwrap_or_else(all_fields))))
}

impl Command for Delete {
    const SPEC: Spec = reference::JOB_DELETE.with("write getkeys-api", KeyUse::Delete);

    /// By ids, the reply says only which of them exist. Filters would reveal what is in records,
    /// and which jobs they hold back.
    fn reads(args: &mut Args<'_>) -> bool {
        !matches!(read(args), Ok((Named::Ids(_), None)) | Err(_))
    }

    fn run(call: &mut Call<'_>) -> Done {
        let (jobs, returned) = read(&mut call.args)?;
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            let going = match &jobs {
                Named::Ids(ids) => by_ids(commit, reply, ids, returned.as_ref())?,
                Named::Where(chosen) => by_filters(commit, reply, chosen, returned.as_ref())?,
            };
            // The reply contains the records, so it is written before they are deleted. Only a
            // board that breaks can refuse now, and that is logged.
            let _ = delete(commit, &going);
            Ok(())
        })
    }
}
