//! `JOB.CONSUME` and `JOB.MCONSUME`: the work is done, or continues in the next queue.

use board::{
    Advance, Answer, Chunk, Consume as Request, Costs, Meta, Protocol, Speaker, Spend, State, LONGEST, MOST,
};

use super::after::Waits;
use super::claim::ClaimRequest;
use super::gate::GateOptions;
use super::many::{end_each, targets, tokens};
use super::post::delay;
use super::shared::{fields, EDGE};
use super::{reference, spend, Command, KeyUse, Spec};
use crate::commands::args::{flag, once, Args, Keyword};
use crate::commands::call::Call;
use crate::commands::ending::end;
use crate::replies::endings::Ending;
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// `JOB.CONSUME` → `complete`; with NEXT → the new state of the job. With CLAIM also the reply of
/// the claim. Replicates `Consumed` or `Advanced`, nothing for a repetition, and `Claimed`.
pub struct Consume;

/// `JOB.MCONSUME` → the same for many jobs.
pub struct MConsume;

/// The options of both.
#[derive(Default)]
struct Options<'a> {
    result: Option<&'a [u8]>,
    payload: Option<&'a [u8]>,
    retain: Option<i64>,
    force: bool,
    next: Option<&'a [u8]>,
    name: Option<&'a [u8]>,
    due: Option<i64>,
    priority: Option<i32>,
    waits: Waits<'a>,
    output: Option<Chunk<'a>>,
    gate: GateOptions<'a>,
    meta: Option<Meta<'a>>,
    only_in: Option<&'a [u8]>,
    next_cost: Option<i64>,
    next_costs: Option<Costs<'a>>,
    spend: Spend<'a>,
}

impl Default for Completion<'_> {
    fn default() -> Self {
        Completion::Done(Request::default())
    }
}

impl<'a> Options<'a> {
    /// Takes an option if it is one of these; otherwise returns false.
    fn take(&mut self, option: &str, args: &mut Args<'a>) -> Result<bool, CommandError> {
        match option {
            "RESULT" => once(&mut self.result, "RESULT", args.payload("RESULT")?)?,
            "RETAIN" => once(&mut self.retain, "RETAIN", args.ms("RETAIN", -1..=LONGEST)?)?,
            "FORCE" => flag(&mut self.force, "FORCE")?,
            "META" => once(&mut self.meta, "META", args.meta()?)?,
            "IF" => once(&mut self.only_in, "IF", args.only_in()?)?,
            "NEXT" => once(&mut self.next, "NEXT", args.name("NEXT")?)?,
            "NAME" => once(&mut self.name, "NAME", args.name("NAME")?)?,
            "DELAY" => once(&mut self.due, "DELAY", delay(args)?)?,
            "PRIORITY" => {
                let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
                once(&mut self.priority, "PRIORITY", args.int("PRIORITY", range)? as i32)?;
            }
            "NEXT-COST" => once(&mut self.next_cost, "NEXT-COST", args.int("NEXT-COST", 1..=MOST)?)?,
            "NEXT-COSTS" => once(&mut self.next_costs, "NEXT-COSTS", spend::costs(args, "NEXT-COSTS")?)?,
            _ if spend::take(&spend::COST, option, args, &mut self.spend)? => {}
            _ => return Ok(self.waits.take(option, args)? || self.gate.take(option, "AWAIT", args)?),
        }
        Ok(true)
    }

    /// What these options ask for, and what the claim has cost.
    fn finish(mut self) -> Result<(Completion<'a>, Spend<'a>), CommandError> {
        let spend = std::mem::take(&mut self.spend);
        Ok((self.completion()?, spend))
    }

    fn completion(self) -> Result<Completion<'a>, CommandError> {
        let (after, gate) = (self.waits.finish()?, self.gate.finish("AWAIT")?);
        let (meta, only_in) = (self.meta.unwrap_or_default(), self.only_in);
        match self.next {
            Some(_) if self.result.is_some() || self.retain.is_some() || self.force => {
                syntax("NEXT excludes RESULT, RETAIN and FORCE")
            }
            Some(queue) => {
                let Options { name, due, priority, payload, output, .. } = self;
                let (cost, costs) = (self.next_cost, self.next_costs);
                Ok(Completion::On(Advance {
                    queue,
                    name,
                    due,
                    priority,
                    payload,
                    after,
                    output,
                    gate,
                    cost,
                    costs,
                    meta,
                    only_in,
                }))
            }
            None if self.name.is_some()
                || self.due.is_some()
                || self.priority.is_some()
                || after.is_some()
                || self.next_cost.is_some()
                || self.next_costs.is_some()
                || gate.is_some() =>
            {
                syntax("NAME, DELAY, PRIORITY, AFTER, AWAIT, NEXT-COST and NEXT-COSTS need NEXT")
            }
            None => {
                let Options { result, retain, payload, force, output, .. } = self;
                Ok(Completion::Done(Request { result, retain, payload, force, output, meta, only_in }))
            }
        }
    }
}

/// How the work on a job ends.
// It is on the stack for one call; a box would cost an allocation for each.
#[allow(clippy::large_enum_variant)]
enum Completion<'a> {
    /// The job is complete.
    Done(Request<'a>),
    /// The job moves to another queue.
    On(Advance<'a>),
}

/// What a completion gives to each job: see [`shared`](super::shared).
fn shared<'n>(completion: &Completion<'_>) -> Vec<(&'n str, usize)> {
    match completion {
        Completion::Done(request) => {
            vec![("RESULT", request.result.map_or(0, <[u8]>::len)), ("META", fields(&request.meta))]
        }
        Completion::On(advance) => {
            let edges = advance.after.as_ref().map_or(0, |after| after.jobs.len() * EDGE);
            let name = advance.name.map_or(0, <[u8]>::len);
            let gate = GateOptions::weight(advance.gate.as_deref());
            let meta = fields(&advance.meta);
            let costs = spend::weight(advance.costs.as_ref());
            vec![
                ("AFTER", edges),
                ("AWAIT", gate),
                ("NEXT-COSTS", costs),
                ("NEXT", advance.queue.len()),
                ("NAME", name),
                ("META", meta),
            ]
        }
    }
}

/// Ends the work on one job, and returns the state that this leaves it in.
fn consume(
    commit: &mut Commit<'_>,
    speaker: &Speaker<'_>,
    completion: &Completion<'_>,
    spend: &Spend<'_>,
) -> Result<State, CommandError> {
    let advance = match completion {
        Completion::Done(request) => return commit.work(speaker, request, spend).and(Ok(State::Complete)),
        Completion::On(advance) => advance,
    };
    if let Answer::Again(state) = commit.work(speaker, advance, spend)? {
        return Ok(state);
    }
    Ok(state_now(commit, speaker.id))
}

/// The state of a job that has just moved on, whether it still has a record or not.
pub fn state_now(commit: &mut Commit<'_>, id: &[u8]) -> State {
    let (now, board) = (commit.env.now, commit.board());
    let gone = || board.tombstone(id, now).map(|tombstone| tombstone.state);
    board.state_of(id).or_else(gone).unwrap_or(State::Cancelled)
}

/// Reads the results after RESULTS.
fn results<'a>(args: &mut Args<'a>) -> Result<Vec<&'a [u8]>, CommandError> {
    let n = args.length("RESULTS", 1)?;
    args.many(n, "RESULTS", |args| args.payload("RESULTS"))
}

impl Command for Consume {
    const SPEC: Spec = reference::JOB_CONSUME.with("write blocking", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let (mut speaker, mut options, mut next) = (args.speaker()?, None, None);
        speaker.token = args.next_token()?;
        loop {
            if args.take("CLAIM") {
                next = Some(ClaimRequest::next(args, call.ctx, speaker.worker)?);
                break;
            }
            let Some(word) = args.next() else { break };
            let options: &mut Options<'_> = options.get_or_insert_default();
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut speaker.token, "TOKEN", args.token("TOKEN")?)?,
                "PAYLOAD" => once(&mut options.payload, "PAYLOAD", args.payload("PAYLOAD")?)?,
                "OUTPUT" => once(&mut options.output, "OUTPUT", args.chunk()?)?,
                option if options.take(option, args)? => {}
                _ => return unexpected(word),
            }
        }
        let (completion, spend) = options.map_or_else(|| Ok(Default::default()), Options::finish)?;
        end(call, next, |commit| consume(commit, &speaker, &completion, &spend).map(Ending::State))
    }
}

impl Command for MConsume {
    const SPEC: Spec = reference::JOB_MCONSUME.with("write blocking", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let worker = args.any_worker()?;
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
        targets.check_each("RESULTS", "results", &results)?;
        if results.is_some() && (options.result.is_some() || options.next.is_some()) {
            return syntax("RESULTS excludes RESULT and NEXT");
        }
        let (mut completion, spend) = options.finish()?;
        let mut shared = shared(&completion);
        shared.push(("COSTS", spend::weight(spend.costs.as_ref())));
        let mut results = results.into_iter().flatten();
        end_each(call, worker, (targets, given), next, &shared, |commit, speaker| {
            if let (Completion::Done(request), Some(result)) = (&mut completion, results.next()) {
                request.result = Some(result);
            }
            consume(commit, speaker, &completion, &spend).map(Ending::State)
        })
    }
}
