//! `JOB.POST` and `JOB.MPOST`: post jobs.

use board::{Exists, Lack, Number, OnConflict, Post as Request, LONGEST, MOST, SHARE_MOST};
use std::collections::HashSet;

use super::after::Waits;
use super::gate::GateOptions;
use super::post_jobs::{post_if_room, run, OneJob, SeveralJobs};
use super::shared::{self, pieces, EDGE, PIECE};
use super::unique::Key;
use super::{reference, spend, Command, KeyUse, Spec};
use crate::commands::args::{once, one_of, Args, Keyword, MS};
use crate::commands::call::{Call, KeptCall};
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::replies::posted::KeptIds;
use crate::runtime::blocked_posts;
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
        "COSTS" => once(&mut post.costs, "COSTS", spend::costs(args, "COSTS")?)?,
        "GROUP" => once(&mut post.group, "GROUP", args.group()?)?,
        "PRIORITY" => {
            let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
            once(&mut post.priority, "PRIORITY", args.int("PRIORITY", range)? as i32)?;
        }
        "PARENT" => once(&mut post.parent, "PARENT", args.name("PARENT")?)?,
        "SHARE" => once(&mut post.share, "SHARE", args.int("SHARE", 1..=SHARE_MOST)? as u32)?,
        "BACKOFF" => once(&mut options.backoff, "BACKOFF", backoff(args)?)?,
        "USER" => once(&mut post.user, "USER", args.name("USER")?)?,
        "MAXLIVE" => once(&mut post.most_live, "MAXLIVE", args.int("MAXLIVE", 1..=MOST)?)?,
        "META" if !post.meta.is_empty() => return syntax("META is given twice"),
        "META" => post.meta = args.meta()?,
        "TAGS" => once(&mut post.tags, "TAGS", args.tags("TAGS", 0)?)?,
        _ => match options.number(word) {
            Some(option) => number(word, args, option)?,
            None => return Ok(false),
        },
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
        ("COSTS", spend::weight(post.costs.as_ref())),
        ("NAME", len(post.name)),
        ("QUEUE", len(post.queue)),
        ("GROUP", len(post.group)),
        ("USER", len(post.user)),
    ];
    shared::check(n, "n", &options)
}

/// What the options say beside the post.
#[derive(Default)]
pub struct Rest<'a> {
    /// The ids of several posts, if they are named.
    ids: Option<Vec<&'a [u8]>>,
    /// How long to wait for room, ms; 0 for ever.
    block: Option<i64>,
}

/// Reads options into the post, or into what several posts share, up to the end or the next node of
/// a flow.
pub fn options<'a>(
    args: &mut Args<'a>,
    form: Form,
    post: &mut Request<'a>,
) -> Result<Rest<'a>, CommandError> {
    if args.left() == 0 {
        return Ok(Rest::default());
    }
    let many = form == Form::Many;
    let (mut rest, mut exists, mut start) = (Rest::default(), None, None);
    let (mut waits, mut gate, mut key) = (Waits::default(), GateOptions::default(), Key::default());
    while let Some(word) = args.peek() {
        if form == Form::Node && word.eq_ignore_ascii_case(b"NODE") {
            break;
        }
        args.next();
        match Keyword::of(word).text() {
            "NX" | "XX" | "REPLACE" | "ONCONFLICT" | "BLOCK" if form == Form::Node => {
                return unexpected(word)
            }
            "ID" if !many => once(&mut post.id, "ID", args.new_id("ID")?)?,
            "IDS" if many => {
                let n = args.length("IDS", 1)?;
                once(&mut rest.ids, "IDS", args.many(n, "IDS", |args| args.new_id("IDS"))?)?;
            }
            "NX" => one_of(&mut exists, MODES, "NX", Exists::Skip)?,
            "XX" => one_of(&mut exists, MODES, "XX", Exists::OnlyReplace)?,
            "REPLACE" => one_of(&mut exists, MODES, "REPLACE", Exists::Replace)?,
            "DELAY" => one_of(&mut start, START, "DELAY", delay(args)?)?,
            "AT" => one_of(&mut start, START, "AT", args.time("AT", 0..=LATEST)?)?,
            other if attribute(other, args, post)? => {}
            other if waits.take(other, args)? => {}
            other if gate.take(other, "AWAIT", args)? => {}
            other if key.take(other, args)? => {}
            "BLOCK" => once(&mut rest.block, "BLOCK", args.ms("BLOCK", 0..=LONGEST)?)?,
            "ONCONFLICT" => key.on_conflict(args)?,
            _ => return unexpected(word),
        }
    }
    if exists.is_some() && post.id.is_none() && rest.ids.is_none() {
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
    Ok(rest)
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

/// Reads an option that is one number.
pub fn number(name: &str, args: &mut Args<'_>, option: Number<'_>) -> Done {
    let value = match option.time {
        true => args.ms(name, option.range)?,
        false => args.int(name, option.range)?,
    };
    if option.nonzero && value == 0 {
        return syntax(format!("{name} must be -1 or an integer from 1 to {LONGEST}{MS}"));
    }
    once(option.value, name, value)
}

impl Command for Post {
    const SPEC: Spec = reference::JOB_POST.with("write deny-oom fast blocking", KeyUse::Insert);

    fn run(call: &mut Call<'_>) -> Done {
        let mut request = Request::default();
        let block = one_job(&mut call.args, &mut request)?;
        run(call, &OneJob { request: &request }, block, || KeptPost { call: call.keep(), several: false })
    }
}

impl Command for MPost {
    const SPEC: Spec = reference::JOB_MPOST.with("write deny-oom blocking", KeyUse::Insert);

    fn run(call: &mut Call<'_>) -> Done {
        let (jobs, block) = several_jobs(&mut call.args)?;
        run(call, &jobs, block, || KeptPost { call: call.keep(), several: true })
    }
}

/// A post that waits for room.
struct KeptPost {
    call: KeptCall,
    several: bool,
}

impl blocked_posts::Post for KeptPost {
    fn post(&self, commit: &mut Commit<'_>, ids: &mut KeptIds) -> Result<Option<Lack>, CommandError> {
        self.call.read(commit.ctx, |args| {
            if self.several {
                return post_if_room(commit, &several_jobs(args)?.0, ids);
            }
            let mut request = Request::default();
            one_job(args, &mut request)?;
            post_if_room(commit, &OneJob { request: &request }, ids)
        })
    }

    fn bytes(&self) -> usize {
        self.call.bytes()
    }
}

/// Reads the job into `request`; returns how long to wait for room.
fn one_job<'a>(args: &mut Args<'a>, request: &mut Request<'a>) -> Result<Option<i64>, CommandError> {
    request.payload = args.payload("payload")?;
    Ok(options(args, Form::One, request)?.block)
}

fn several_jobs<'a>(args: &mut Args<'a>) -> Result<(SeveralJobs<'a>, Option<i64>), CommandError> {
    let n = args.length("n", 1)?;
    let payloads = args.many(n, "n", |args| args.payload("payload"))?;
    let mut request = Request::default();
    let Rest { ids, block } = options(args, Form::Many, &mut request)?;
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
    Ok((SeveralJobs { request, payloads, ids: ids.unwrap_or_default() }, block))
}
