//! `JOB.POST` and `JOB.MPOST`: post jobs.

use board::{Exists, Growth, OnConflict, Post as Request, PostAnswer, LONGEST, MOST, SHARE_MOST};
use std::collections::HashSet;

use super::after::Waits;
use super::gate::GateOptions;
use super::shared::{self, pieces, EDGE, PIECE};
use super::unique::Key;
use super::{reference, Command, KeyUse, Spec};
use crate::commands::args::{once, one_of, Args, Keyword, MS};
use crate::commands::call::Call;
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::runtime::commit::Commit;
use crate::runtime::world;

/// `JOB.POST` → id, or null. Replicates `Posted`.
pub struct Post;

/// `JOB.MPOST` → ids. All or nothing.
pub struct MPost;

/// The options for an id that is taken.
const MODES: &str = "NX, XX and REPLACE";
/// The options for when a job may begin.
pub const START: &str = "DELAY and AT";
/// The latest time that `AT` takes, Unix ms.
pub const LATEST: i64 = 1 << 47;

/// What the options of a post belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One job.
    One,
    /// Several jobs.
    Many,
    /// A node of a flow: the options end at the next node, and the job is always new.
    Node,
}

/// Takes an attribute of jobs if the word begins one; otherwise returns false.
pub fn attribute<'a>(word: &str, args: &mut Args<'a>, post: &mut Request<'a>) -> Result<bool, CommandError> {
    let options = &mut post.options;
    match word {
        "NAME" => once(&mut post.name, "NAME", args.name("NAME")?)?,
        "QUEUE" => once(&mut post.queue, "QUEUE", args.name("QUEUE")?)?,
        "COST" => once(&mut options.cost, "COST", args.int("COST", 1..=MOST)?)?,
        "GROUP" => once(&mut post.group, "GROUP", args.group()?)?,
        "PRIORITY" => {
            let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
            once(&mut post.priority, "PRIORITY", args.int("PRIORITY", range)? as i32)?;
        }
        "PARENT" => once(&mut post.parent, "PARENT", args.name("PARENT")?)?,
        "SHARE" => once(&mut post.share, "SHARE", args.int("SHARE", 1..=SHARE_MOST)? as u32)?,
        "RETRIES" => once(&mut options.retries, "RETRIES", args.int("RETRIES", -1..=MOST)?)?,
        "LAPSES" => once(&mut options.lapses, "LAPSES", args.int("LAPSES", -1..=MOST)?)?,
        "BACKOFF" => once(&mut options.backoff, "BACKOFF", backoff(args)?)?,
        "LEASE" => once(&mut options.lease, "LEASE", args.ms("LEASE", 1..=LONGEST)?)?,
        "TIMEOUT" => once(&mut options.timeout, "TIMEOUT", unless_none(args, "TIMEOUT")?)?,
        "EXPIRE" => once(&mut options.expire, "EXPIRE", unless_none(args, "EXPIRE")?)?,
        "RETAIN" => once(&mut options.retain, "RETAIN", args.ms("RETAIN", -1..=LONGEST)?)?,
        "USER" => once(&mut post.user, "USER", args.name("USER")?)?,
        "MAXLIVE" => once(&mut post.most_live, "MAXLIVE", args.int("MAXLIVE", 1..=MOST)?)?,
        "META" if !post.meta.is_empty() => return syntax("META is given twice"),
        "META" => post.meta = args.meta()?,
        "TAGS" => once(&mut post.tags, "TAGS", args.tags("TAGS", 0)?)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Refuses common options that are too long for `n` jobs: see [`shared`].
fn check_shared(n: usize, post: &Request<'_>) -> Done {
    let len = |name: Option<&[u8]>| name.map_or(0, <[u8]>::len);
    let meta = post.meta.iter().map(|(field, value)| field.len() + value.len() + PIECE).sum();
    let options = [
        ("META", meta),
        ("TAGS", post.tags.as_deref().map_or(0, pieces)),
        ("AFTER", post.after.as_ref().map_or(0, |after| after.jobs.len() * EDGE)),
        ("AWAIT", GateOptions::weight(post.gate.as_deref())),
        ("NAME", len(post.name)),
        ("QUEUE", len(post.queue)),
        ("GROUP", len(post.group)),
        ("USER", len(post.user)),
    ];
    shared::check(n, "n", &options)
}

/// Reads options into the post, or into what several posts share, up to the end or the next node of
/// a flow. Returns the ids of several posts, if they are named.
pub fn options<'a>(
    args: &mut Args<'a>,
    form: Form,
    post: &mut Request<'a>,
) -> Result<Option<Vec<&'a [u8]>>, CommandError> {
    let many = form == Form::Many;
    let (mut ids, mut exists, mut start) = (None, None, None);
    let (mut waits, mut gate, mut key) = (Waits::default(), GateOptions::default(), Key::default());
    while let Some(word) = args.peek() {
        if form == Form::Node && word.eq_ignore_ascii_case(b"NODE") {
            break;
        }
        args.next();
        match Keyword::of(word).text() {
            "NX" | "XX" | "REPLACE" | "ONCONFLICT" if form == Form::Node => return unexpected(word),
            "ID" if !many => once(&mut post.id, "ID", args.new_id("ID")?)?,
            "IDS" if many => {
                let n = args.length("IDS", 1)?;
                once(&mut ids, "IDS", args.many(n, "IDS", |args| args.new_id("IDS"))?)?;
            }
            "NX" => one_of(&mut exists, MODES, "NX", Exists::Skip)?,
            "XX" => one_of(&mut exists, MODES, "XX", Exists::OnlyReplace)?,
            "REPLACE" => one_of(&mut exists, MODES, "REPLACE", Exists::Replace)?,
            "DELAY" => one_of(&mut start, START, "DELAY", delay(args)?)?,
            "AT" => one_of(&mut start, START, "AT", args.time("AT", 0..=LATEST)?)?,
            "JITTER" => once(&mut post.options.jitter, "JITTER", args.int("JITTER", 0..=100)?)?,
            other if attribute(other, args, post)? => {}
            other if waits.take(other, args)? => {}
            other if gate.take(other, "AWAIT", args)? => {}
            other if key.take(other, args)? => {}
            "ONCONFLICT" => key.on_conflict(args)?,
            _ => return unexpected(word),
        }
    }
    if exists.is_some() && post.id.is_none() && ids.is_none() {
        return syntax(format!("{MODES} need {}", if many { "IDS" } else { "ID" }));
    }
    if post.share.is_some() && post.parent.is_none() {
        return syntax("SHARE needs PARENT");
    }
    post.due = start.map(|(_, due)| due);
    post.exists = exists.map(|(_, mode)| mode).unwrap_or_default();
    post.after = waits.finish()?;
    post.gate = gate.finish("AWAIT")?;
    post.unique = key.finish()?;
    if post.most_live.is_some() && post.user.is_none() {
        return syntax("MAXLIVE needs USER");
    }
    if let (Some(key), true) = (&post.unique, matches!(post.exists, Exists::OnlyReplace | Exists::Replace)) {
        if matches!(key.on_conflict, OnConflict::Replace | OnConflict::Debounce) {
            return syntax("ONCONFLICT replace and debounce exclude XX and REPLACE");
        }
    }
    Ok(ids)
}

/// The time that is this many ms from now, Unix ms.
pub fn delay(args: &mut Args<'_>) -> Result<i64, CommandError> {
    Ok(world::now().saturating_add(args.ms("DELAY", 0..=LONGEST)?))
}

fn backoff(args: &mut Args<'_>) -> Result<(i64, i64), CommandError> {
    let kind = args.value("BACKOFF")?;
    match Keyword::of(kind).text() {
        "FIXED" => args.ms("BACKOFF FIXED", 0..=LONGEST).map(|ms| (ms, ms)),
        "EXPONENTIAL" => {
            let base = args.ms("BACKOFF EXPONENTIAL base", 0..=LONGEST)?;
            Ok((base, args.ms("BACKOFF EXPONENTIAL max", base..=LONGEST)?))
        }
        _ => syntax("BACKOFF must be FIXED or EXPONENTIAL"),
    }
}

/// A duration, ms, or -1 for none.
fn unless_none(args: &mut Args<'_>, name: &str) -> Result<i64, CommandError> {
    match args.ms(name, -1..=LONGEST)? {
        0 => syntax(format!("{name} must be -1 or an integer from 1 to {LONGEST}{MS}")),
        ms => Ok(ms),
    }
}

/// Settles the time of the key's holder and of the parent: either may have ended by now.
fn settle_others(commit: &mut Commit<'_>, request: &Request<'_>) -> Result<(), CommandError> {
    let now = commit.env.now;
    let holder = request.unique.as_ref().and_then(|key| commit.board().holder_of(key.key, now));
    let holder = holder.map(|(id, _)| id.borrowed().text(<[u8]>::to_vec));
    holder.as_deref().map_or(Ok(()), |id| commit.settle(id))?;
    request.parent.map_or(Ok(()), |id| commit.settle(id))
}

impl Command for Post {
    const SPEC: Spec = reference::JOB_POST.with("write deny-oom fast", KeyUse::Insert);

    fn run(call: &mut Call<'_>) -> Done {
        let mut request = Request { payload: call.args.payload("payload")?, ..Request::default() };
        options(&mut call.args, Form::One, &mut request)?;
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            if let Some(id) = request.id {
                commit.settle(id)?;
            }
            settle_others(commit, &request)?;
            let env = commit.env;
            match &commit.board().post(&env, &request, 0)? {
                PostAnswer::Skip => reply.null(),
                PostAnswer::Holds(id) => id.borrowed().text(|id| reply.bytes(id)),
                PostAnswer::Do(posted) => {
                    posted.text(|id| reply.bytes(id));
                    commit.apply(posted)?;
                }
            }
            Ok(())
        })
    }
}

impl Command for MPost {
    const SPEC: Spec = reference::JOB_MPOST.with("write deny-oom", KeyUse::Insert);

    fn run(call: &mut Call<'_>) -> Done {
        let n = call.args.length("n", 1)?;
        let payloads = call.args.many(n, "n", |args| args.payload("payload"))?;
        let mut request = Request::default();
        let ids = options(&mut call.args, Form::Many, &mut request)?;
        if let Some(ids) = &ids {
            if ids.len() != n {
                return syntax(format!("IDS must name {n} ids, one for each payload"));
            }
            let mut seen = HashSet::new();
            if let Some(twice) = ids.iter().find(|id| !seen.insert(**id)) {
                return syntax(format!("IDS names '{}' twice", board::clean(twice)));
            }
        }
        if request.unique.is_some() && n > 1 {
            return syntax("UNIQUE goes with a single payload");
        }
        check_shared(n, &request)?;
        let ids = ids.unwrap_or_default();
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            for id in &ids {
                commit.settle(id)?;
            }
            settle_others(commit, &request)?;
            let env = commit.env;
            // Whatever refuses one job refuses all, before anything changes.
            let bounded = commit.board().is_bounded(&request);
            let looks = if bounded { n } else { ids.len().max(1) };
            let mut growth = Growth::default();
            for (i, payload) in payloads.iter().enumerate().take(looks) {
                request.id = ids.get(i).copied();
                request.payload = payload;
                let answer = commit.board().post_unbounded(&env, &request, i as u64)?;
                if bounded {
                    commit.board().grow(&mut growth, &request, &answer);
                }
            }
            commit.board().check_posts(&growth, &request, n)?;
            reply.array(n);
            for (i, payload) in payloads.iter().enumerate() {
                request.id = ids.get(i).copied();
                request.payload = payload;
                match &commit.board().post_unbounded(&env, &request, i as u64) {
                    Ok(PostAnswer::Do(posted)) => {
                        posted.text(|id| reply.bytes(id));
                        commit.apply(posted)?;
                    }
                    Ok(PostAnswer::Holds(id)) => id.borrowed().text(|id| reply.bytes(id)),
                    _ => reply.null(),
                }
            }
            Ok(())
        })
    }
}
