//! What `JOB.POST` and `JOB.MPOST` do once their arguments are read: they post, or wait for room.
//!
//! A post that waits keeps its words. When there may be room, it reads them again and does all that
//! a post does that comes then: so `DELAY` counts from there, and ids, keys, parents and settings
//! are as they are by then.

use std::rc::Rc;

use board::{Growth, Lack, Post as Request, PostAnswer, Protocol, Refusal, Subject};

use crate::commands::call::Call;
use crate::replies::errors::{CommandError, Done};
use crate::replies::posted::Ids;
use crate::runtime::blocked_posts;
use crate::runtime::commit::Commit;

/// Jobs to post with one command.
pub trait Jobs {
    /// Posts them and writes the reply, or refuses all before anything changes.
    fn post(&self, commit: &mut Commit<'_>, ids: &mut impl Ids) -> Done;

    /// Sums up what the posts would add: [`Growth`] as it is, and as if they replaced nothing.
    fn growth(&self, commit: &mut Commit<'_>) -> Result<(Growth, Growth), CommandError>;

    /// The options that they share, and their number.
    fn shared(&self) -> (&Request<'_>, usize);
}

/// The job of a `JOB.POST`.
pub struct OneJob<'r> {
    /// The post.
    pub request: &'r Request<'r>,
}

/// The jobs of a `JOB.MPOST`.
pub struct SeveralJobs<'a> {
    /// What they have in common.
    pub request: Request<'a>,
    /// The payload of each.
    pub payloads: Vec<&'a [u8]>,
    /// The id of each, if they are named.
    pub ids: Vec<&'a [u8]>,
}

impl Jobs for OneJob<'_> {
    fn post(&self, commit: &mut Commit<'_>, ids: &mut impl Ids) -> Done {
        commit.settle(Subject::Post(self.request, &[]))?;
        let env = commit.env;
        match &commit.board().post(&env, self.request, 0) {
            Err(refusal) => return Err(refusal.clone().into()),
            Ok(PostAnswer::Skip) => ids.none(),
            Ok(PostAnswer::Holds(id)) => id.borrowed().text(|id| ids.id(id)),
            Ok(PostAnswer::Do(posted)) => {
                posted.text(|id| ids.id(id));
                commit.apply(posted)?;
            }
        }
        Ok(())
    }

    fn growth(&self, commit: &mut Commit<'_>) -> Result<(Growth, Growth), CommandError> {
        commit.settle(Subject::Post(self.request, &[]))?;
        let env = commit.env;
        let board = commit.board();
        let answer = board.post_unbounded(&env, self.request, 0)?;
        let (mut growth, mut whole) = Default::default();
        board.grow(&mut growth, self.request, &answer);
        board.grow_whole(&mut whole, self.request, &answer);
        Ok((growth, whole))
    }

    fn shared(&self) -> (&Request<'_>, usize) {
        (self.request, 1)
    }
}

impl<'a> SeveralJobs<'a> {
    fn requests(&self) -> impl Iterator<Item = (u64, Request<'a>)> + '_ {
        self.payloads.iter().enumerate().map(|(at, payload)| {
            let request = Request { id: self.ids.get(at).copied(), payload, ..self.request.clone() };
            (at as u64, request)
        })
    }
}

impl Jobs for SeveralJobs<'_> {
    fn post(&self, commit: &mut Commit<'_>, reply: &mut impl Ids) -> Done {
        commit.settle(Subject::Post(&self.request, &self.ids))?;
        commit.board().bound_looks();
        let SeveralJobs { payloads, ids, .. } = self;
        let (env, n) = (commit.env, payloads.len());
        let mut request = self.request.clone();
        // Whatever refuses one job refuses all, before anything changes.
        let bounded = commit.board().is_bounded(&request);
        let looks = if bounded { n } else { ids.len().max(1) };
        let (mut growth, mut replaced) = (Growth::default(), Vec::new());
        for (i, payload) in payloads.iter().enumerate().take(looks) {
            request.id = ids.get(i).copied();
            request.payload = payload;
            let answer = commit.board().post_unbounded(&env, &request, i as u64)?;
            if let PostAnswer::Do(posted) = &answer {
                replaced.extend(posted.replaced().filter(|_| n > 1));
            }
            if bounded {
                commit.board().grow(&mut growth, &request, &answer);
            }
        }
        commit.board().check_posts(&growth, &request, n)?;
        commit.board().check_own_keys(replaced)?;
        // What was allowed above is looked at once more. All ids were known: one may go with a job that is replaced.
        commit.board().unbound_looks();
        if let Some(after) = &mut request.after {
            after.strict = false;
        }
        reply.several(n);
        for (i, payload) in payloads.iter().enumerate() {
            request.id = ids.get(i).copied();
            request.payload = payload;
            match &commit.board().post_unbounded(&env, &request, i as u64) {
                Ok(PostAnswer::Do(posted)) => {
                    posted.text(|id| reply.id(id));
                    commit.apply(posted)?;
                }
                Ok(PostAnswer::Holds(id)) => id.borrowed().text(|id| reply.id(id)),
                _ => reply.none(),
            }
        }
        Ok(())
    }

    fn growth(&self, commit: &mut Commit<'_>) -> Result<(Growth, Growth), CommandError> {
        commit.settle(Subject::Post(&self.request, &self.ids))?;
        let env = commit.env;
        let board = commit.board();
        board.bound_looks();
        let (mut growth, mut whole) = Default::default();
        for (n, request) in self.requests() {
            let answer = board.post_unbounded(&env, &request, n)?;
            board.grow(&mut growth, &request, &answer);
            board.grow_whole(&mut whole, &request, &answer);
        }
        Ok((growth, whole))
    }

    fn shared(&self) -> (&Request<'_>, usize) {
        (&self.request, self.payloads.len())
    }
}

fn is_room(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Limit("max-jobs" | "max-bytes"))
}

/// Posts, unless the posts lack room that may become free. Then nothing changes.
pub fn post_if_room(
    commit: &mut Commit<'_>,
    jobs: &impl Jobs,
    ids: &mut impl Ids,
) -> Result<Option<Lack>, CommandError> {
    match jobs.post(commit, ids) {
        Err(CommandError::Refused(refusal)) if is_room(&refusal) => {
            let (growth, whole) = jobs.growth(commit)?;
            // When both agree, no other bound is to blame.
            commit.board().lack(&growth, &whole)?.map_or_else(|| Err(refusal.into()), |lack| Ok(Some(lack)))
        }
        done => done.map(|()| None),
    }
}

/// What keeps the posts back because others wait for the same room.
fn others_wait(commit: &mut Commit<'_>, jobs: &impl Jobs) -> Result<Option<Lack>, CommandError> {
    if blocked_posts::waiting().0 == 0 {
        return Ok(None);
    }
    let (growth, whole) = jobs.growth(commit)?;
    if growth.is_nothing() {
        return Ok(None);
    }
    let (queue, group) = growth.place();
    let Some(ahead) = blocked_posts::ahead_of(commit, &queue, group.as_deref()) else { return Ok(None) };
    let (request, n) = jobs.shared();
    match commit.board().check_posts(&growth, request, n) {
        Err(refusal) if !is_room(&refusal) => return Err(refusal.into()),
        _ => commit.board().lack(&growth, &whole)?,
    };
    Ok(Some(Lack { queue, group, ..ahead }))
}

/// Runs a post. With a time to wait it stands behind the posts that wait already; `keep` is what
/// waits then.
pub fn run<K: blocked_posts::Post + 'static>(
    call: &Call<'_>,
    jobs: &impl Jobs,
    block: Option<i64>,
    keep: impl FnOnce() -> K,
) -> Done {
    let mut reply = call.ctx.reply();
    let key = call.key();
    let Some(timeout) = block.filter(|_| !call.ctx.denies_blocking()) else {
        return Commit::run(call.ctx, &key, |commit| jobs.post(commit, &mut reply));
    };
    let lack = Commit::run(call.ctx, &key, |commit| match others_wait(commit, jobs)? {
        Some(lack) => Ok(Some(lack)),
        None => post_if_room(commit, jobs, &mut reply),
    })?;
    match lack {
        Some(lack) => blocked_posts::park(&call.client(), timeout, lack, Rc::new(keep())),
        None => Ok(()),
    }
}
