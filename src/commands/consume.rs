//! `JOB.CONSUME` and `JOB.MCONSUME`: the work is done, or goes on in the next queue.

use board::{Advance, Answer, Consume as Request, State, LONGEST};

use super::after::Waits;
use super::claim::{next_claim, ClaimRequest};
use super::many::{for_each, targets, tokens};
use super::post::delay;
use super::shared::{self, EDGE};
use super::{Command, KeyUse, Spec};
use crate::commands::args::{flag, once, Args, Keyword};
use crate::commands::call::Call;
use crate::commands::ending::end;
use crate::replies::endings::Ending;
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// `JOB.CONSUME board worker id [TOKEN t] [RESULT r] [RETAIN ms] [PAYLOAD p] [FORCE]` →
/// `complete`; with `NEXT queue [DELAY ms] [PRIORITY p] [AFTER …]` → the state in which the
/// job goes on. With `CLAIM …` also what that gives. Replicates `Consumed` or `Advanced`,
/// nothing when it is a repetition, and `Claimed`.
pub struct Consume;

/// `JOB.MCONSUME board worker n id… [TOKENS n t…] [RESULT r|RESULTS n r…] [RETAIN ms] [FORCE]`,
/// or `ALL`, or with `NEXT …`; last `CLAIM …`.
pub struct MConsume;

/// The options of both.
#[derive(Default)]
struct Options<'a> {
    result: Option<&'a [u8]>,
    retain: Option<i64>,
    force: bool,
    next: Option<&'a [u8]>,
    name: Option<&'a [u8]>,
    due: Option<i64>,
    priority: Option<i32>,
    waits: Waits<'a>,
}

impl<'a> Options<'a> {
    /// Takes an option if it is one of these; false when it is another.
    fn take(&mut self, option: &str, args: &mut Args<'a>) -> Result<bool, CommandError> {
        match option {
            "RESULT" => once(&mut self.result, "RESULT", args.payload("RESULT")?)?,
            "RETAIN" => once(&mut self.retain, "RETAIN", args.ms("RETAIN", -1..=LONGEST)?)?,
            "FORCE" => flag(&mut self.force, "FORCE")?,
            "NEXT" => once(&mut self.next, "NEXT", args.name("NEXT")?)?,
            "NAME" => once(&mut self.name, "NAME", args.name("NAME")?)?,
            "DELAY" => once(&mut self.due, "DELAY", delay(args)?)?,
            "PRIORITY" => {
                let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
                once(&mut self.priority, "PRIORITY", args.int("PRIORITY", range)? as i32)?;
            }
            _ => return self.waits.take(option, args),
        }
        Ok(true)
    }

    /// How the work ends: all that was said, but worker, id, token and payload.
    fn finish(self) -> Result<Way<'a>, CommandError> {
        let after = self.waits.finish()?;
        match self.next {
            Some(_) if self.result.is_some() || self.retain.is_some() || self.force => {
                syntax("NEXT excludes RESULT, RETAIN and FORCE")
            }
            Some(queue) => {
                let (name, due, priority) = (self.name, self.due, self.priority);
                Ok(Way::On(Advance { queue, name, due, priority, after, ..Advance::default() }))
            }
            None if self.name.is_some()
                || self.due.is_some()
                || self.priority.is_some()
                || after.is_some() =>
            {
                syntax("NAME, DELAY, PRIORITY and AFTER need NEXT")
            }
            None => {
                let (result, retain, force) = (self.result, self.retain, self.force);
                Ok(Way::Done(Request { result, retain, force, ..Request::default() }))
            }
        }
    }
}

/// How the work on a job ends.
// It lives on the stack for one call; a box would cost an allocation for each.
#[allow(clippy::large_enum_variant)]
enum Way<'a> {
    /// It is complete.
    Done(Request<'a>),
    /// It goes on in another queue.
    On(Advance<'a>),
}

/// Refuses that so many jobs end in the same way when that is too long: see [`shared`].
fn check_shared(n: usize, jobs: &str, way: &Way<'_>) -> Done {
    match way {
        Way::Done(request) => shared::check(n, jobs, &[("RESULT", request.result.map_or(0, <[u8]>::len))]),
        Way::On(advance) => {
            let edges = advance.after.as_ref().map_or(0, |after| after.jobs.len() * EDGE);
            let name = advance.name.map_or(0, <[u8]>::len);
            shared::check(n, jobs, &[("AFTER", edges), ("NEXT", advance.queue.len()), ("NAME", name)])
        }
    }
}

/// Who speaks of which job.
#[derive(Clone, Copy)]
struct Said<'a> {
    worker: &'a [u8],
    id: &'a [u8],
    token: Option<u64>,
    payload: Option<&'a [u8]>,
    /// Its own; of several jobs that do not have one in common.
    result: Option<&'a [u8]>,
}

/// Ends the work on one job, and says in which state that leaves it.
fn consume(commit: &mut Commit<'_>, said: Said<'_>, way: &Way<'_>) -> Result<State, CommandError> {
    let env = commit.env;
    let Said { worker, id, token, payload, result } = said;
    match way {
        Way::Done(request) => {
            let result = result.or(request.result);
            let request = Request { worker, id, token, payload, result, ..request.clone() };
            if let Answer::Do(effect) = commit.board().consume(&env, &request)? {
                commit.apply(&effect)?;
            }
            Ok(State::Complete)
        }
        Way::On(advance) => {
            let advance = Advance { worker, id, token, payload, ..advance.clone() };
            match commit.board().advance(&env, &advance)? {
                Answer::Again(state) => return Ok(state),
                Answer::Do(effect) => commit.apply(&effect)?,
            }
            // What it waits for from now on may have ended without success.
            commit.settle(id)?;
            let board = commit.board();
            let gone = || board.tombstone(id, env.now).map(|tombstone| tombstone.state);
            Ok(board.state_of(id).or_else(gone).unwrap_or(State::Cancelled))
        }
    }
}

/// Reads the results after RESULTS.
fn results<'a>(args: &mut Args<'a>) -> Result<Vec<&'a [u8]>, CommandError> {
    let n = args.length("RESULTS", 1)?;
    args.many(n, "RESULTS", |args| args.payload("RESULTS"))
}

impl Command for Consume {
    const SPEC: Spec = Spec {
        name: "job.consume",
        arity: -4,
        flags: "write blocking",
        key: Some(KeyUse::Update),
        summary: "Completes a job, or moves it to its next queue.",
        complexity: "O(log N), and that of the claim",
        syntax: concat!(
            "board worker id [TOKEN token] [PAYLOAD payload] [[RESULT result] [RETAIN ms] [FORCE]|NEXT queue \
            [NAME name] [DELAY ms] [PRIORITY priority] [AFTER n other [other ...] [ONFAILURE <hold|cancel|fail|run>]] [STRICT]] ",
            next_claim!()
        ),
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let (worker, id) = (args.speaker()?, args.name("id")?);
        let (mut token, mut payload, mut next) = (None, None, None);
        let mut options = Options::default();
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut token, "TOKEN", args.token("TOKEN")?)?,
                "PAYLOAD" => once(&mut payload, "PAYLOAD", args.payload("PAYLOAD")?)?,
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, worker)?),
                option if options.take(option, args)? => {}
                _ => return unexpected(word),
            }
        }
        let way = options.finish()?;
        end(call, next, |commit| {
            commit.check_worker_name(worker)?;
            commit.settle(id)?;
            consume(commit, Said { worker, id, token, payload, result: None }, &way).map(Ending::State)
        })
    }
}

impl Command for MConsume {
    const SPEC: Spec = Spec {
        name: "job.mconsume",
        arity: -4,
        flags: "write blocking",
        key: Some(KeyUse::Update),
        summary: "Completes several jobs, or all of a worker.",
        complexity: "O(n log N), and that of the claim",
        syntax: concat!(
            "board worker <n id [id ...] [TOKENS n token [token ...]]|ALL> [[RESULT result|RESULTS n result [result ...]] \
            [RETAIN ms] [FORCE]|NEXT queue \
            [NAME name] [DELAY ms] [PRIORITY priority] [AFTER n other [other ...] [ONFAILURE <hold|cancel|fail|run>]] [STRICT]] ",
            next_claim!()
        ),
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let worker = args.speaker()?;
        let targets = targets(args)?;
        let (mut given, mut results, mut next) = (None, None, None);
        let mut options = Options::default();
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKENS" => once(&mut given, "TOKENS", tokens(args)?)?,
                "RESULTS" => once(&mut results, "RESULTS", self::results(args)?)?,
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, worker)?),
                option if options.take(option, args)? => {}
                _ => return unexpected(word),
            }
        }
        targets.check(worker, &given)?;
        targets.check_each("RESULTS", "results", &results)?;
        if results.is_some() && (options.result.is_some() || options.next.is_some()) {
            return syntax("RESULTS excludes RESULT and NEXT");
        }
        let way = options.finish()?;
        let all = targets.is_all();
        end(call, next, |commit| {
            commit.check_worker_name(worker)?;
            let targets = targets.paired(given, worker, commit);
            check_shared(targets.len(), if all { "ALL" } else { "n" }, &way)?;
            let mut results = results.into_iter().flatten();
            for_each(commit, targets, all, |commit, id, token| {
                let said = Said { worker, id, token, payload: None, result: results.next() };
                consume(commit, said, &way).map(Ending::State)
            })
        })
    }
}
