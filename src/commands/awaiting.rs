//! `JOB.AWAIT`: a worker needs signals before it can continue.

use board::{Await as Request, AwaitAnswer, Speaker, Spend, State};

use super::claim::ClaimRequest;
use super::gate::GateOptions;
use super::{reference, spend, Command, KeyUse, Spec};
use crate::commands::args::{once, Keyword};
use crate::commands::call::Call;
use crate::commands::ending::end;
use crate::replies::endings::{Arrived, Ending, Kept};
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// `JOB.AWAIT` → a map with the state; while the worker keeps the job also the signals, its deadline
/// and whether it is to stop. With a claim also its reply. Replicates `Awaiting`, or `Cancelled` when
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
    commit.settle(speaker.id)?;
    let env = commit.env;
    let answer = commit.board().await_signals(&env, speaker, request)?;
    let slot = commit.board().find(speaker.id);
    let slot = slot.filter(|_| !matches!(answer, AwaitAnswer::Again(_)));
    slot.map_or(Ok(()), |slot| commit.spend(slot, spend))?;
    match answer {
        AwaitAnswer::Kept { slot, revived, beaten, timeout } => {
            if let Some(revived) = revived {
                commit.apply(revived)?;
            }
            commit.apply(beaten)?;
            commit.keep_session(slot);
            let board = commit.board();
            let (deadline, cancel) = board.hold_on(slot).unwrap_or_default();
            let arrived = if timeout { Vec::new() } else { board.signals_for(slot, &request.gate) };
            let signals = arrived.into_iter().map(Arrived::of).collect();
            Ok(Ending::Kept(Kept { timeout, signals, deadline, cancel }))
        }
        AwaitAnswer::Waits(awaiting) => commit.apply(awaiting).map(|()| Ending::Awaits(State::Blocked)),
        AwaitAnswer::Cancels(cancelled) => commit.apply(cancelled).map(|()| Ending::Awaits(State::Cancelled)),
        AwaitAnswer::Again(state) => Ok(Ending::Awaits(state)),
    }
}

impl Command for Await {
    const SPEC: Spec = reference::JOB_AWAIT.with("write blocking", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let (mut speaker, mut request, mut next) = (args.speaker()?, Request::default(), None);
        let (mut gate, mut spend) = (GateOptions::default(), Spend::default());
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut speaker.token, "TOKEN", args.token("TOKEN")?)?,
                "STEP" => once(&mut request.step, "STEP", args.name("STEP")?)?,
                "PAYLOAD" => once(&mut request.payload, "PAYLOAD", args.payload("PAYLOAD")?)?,
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, speaker.worker)?),
                option if gate.take(option, "SIGNALS", args)? => {}
                option if spend::take(&spend::COST, option, args, &mut spend)? => {}
                _ => return unexpected(word),
            }
        }
        request.gate = match gate.finish("SIGNALS")? {
            Some(gate) => *gate,
            None => return syntax("SIGNALS must name what to wait for"),
        };
        end(call, next, |commit| wait(commit, &speaker, &request, &spend))
    }
}
