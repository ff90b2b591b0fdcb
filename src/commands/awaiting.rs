//! `JOB.AWAIT`: a worker needs signals, or the ends of children, before it can continue.

use board::{Await as Request, AwaitAnswer, Gate, OnFailure, Protocol, Speaker, Spend, State};

use super::after::on_failure;
use super::claim::ClaimRequest;
use super::consume::state_now;
use super::gate::GateOptions;
use super::{reference, spend, Command, KeyUse, Spec};
use crate::commands::args::{once, Keyword};
use crate::commands::call::Call;
use crate::commands::ending::end;
use crate::replies::endings::{Arrived, Ending, Kept};
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// `JOB.AWAIT` → a map with the state; while the worker keeps the job also the signals, the numbers
/// of children, its deadline and whether it is to stop. With a claim also its reply. Replicates `Awaiting`, or `Cancelled` when
/// the worker was asked to stop; when it keeps the job `Beaten`, before that `Revived` when it is
/// late; and `Claimed`.
pub struct Await;

/// Waits, or keeps the job when all is there.
fn wait(
    commit: &mut Commit<'_>,
    speaker: &Speaker<'_>,
    request: &Request<'_>,
    spend: &Spend<'_>,
) -> Result<Ending, CommandError> {
    Ok(match commit.await_signals(speaker, request, spend)? {
        AwaitAnswer::Kept { slot, timeout, .. } => {
            let board = commit.board();
            let (deadline, cancel) = board.hold_on(slot).unwrap_or_default();
            let arrived = if timeout { Vec::new() } else { board.signals_for(slot, &request.gate) };
            let signals = arrived.into_iter().map(Arrived::of).collect();
            let children = request.children.and_then(|_| board.record_of(slot)).map(|record| {
                let all = record.children().unwrap_or(0) as i64;
                [all, record.pending().into(), record.unsuccessful() as i64]
            });
            Ending::Kept(Kept { timeout, signals, children, deadline, cancel })
        }
        AwaitAnswer::Waits(_) => Ending::Awaits(state_now(commit, speaker.id)),
        AwaitAnswer::Cancels(_) => Ending::Awaits(State::Cancelled),
        AwaitAnswer::Again(state) => Ending::Awaits(state),
    })
}

impl Command for Await {
    const SPEC: Spec = reference::JOB_AWAIT.with("write blocking", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let (mut speaker, mut request, mut next) = (args.speaker()?, Request::default(), None);
        let (mut gate, mut spend) = (GateOptions::default(), Spend::default());
        let mut children = None::<Option<OnFailure>>;
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut speaker.token, "TOKEN", args.token("TOKEN")?)?,
                "STEP" => once(&mut request.step, "STEP", args.name("STEP")?)?,
                "PAYLOAD" => once(&mut request.payload, "PAYLOAD", args.payload("PAYLOAD")?)?,
                "CHILDREN" => once(&mut children, "CHILDREN", None)?,
                "ONFAILURE" => match &mut children {
                    None => return syntax("ONFAILURE must follow CHILDREN"),
                    Some(place) => once(place, "ONFAILURE", on_failure(args)?)?,
                },
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, speaker.worker)?),
                option if gate.take(option, "SIGNALS", args)? => {}
                option if spend::take(&spend::COST, option, args, &mut spend)? => {}
                _ => return unexpected(word),
            }
        }
        request.gate = match gate.finish("SIGNALS")? {
            Some(gate) => *gate,
            None if children.is_none() => return syntax("SIGNALS or CHILDREN must name what to wait for"),
            None if request.step.is_some() => return syntax("STEP needs SIGNALS"),
            None => Gate::default(),
        };
        request.children = children.map(Option::unwrap_or_default);
        end(call, next, |commit| wait(commit, &speaker, &request, &spend))
    }
}
