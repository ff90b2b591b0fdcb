//! `JOB.CONSUME` and `JOB.MCONSUME`: the work is done.

use board::{Answer, Consume as Request, State, LONGEST};

use super::many::{for_each, targets, tokens};
use super::{Command, KeyUse, Spec};
use crate::args::{flag, once, Keyword};
use crate::fault::{unexpected, Done, Fault};
use crate::server::call::Call;
use crate::turn::Turn;

/// `JOB.CONSUME board worker id [TOKEN t] [RESULT r] [RETAIN ms] [PAYLOAD p] [FORCE]` →
/// `complete`. Replicates `Consumed`; nothing when it is a repetition.
pub struct Consume;

/// `JOB.MCONSUME board worker n id… [TOKENS n t…] [RESULT r] [RETAIN ms] [FORCE]`, or `ALL`.
pub struct MConsume;

fn consume(turn: &mut Turn<'_>, request: &Request<'_>) -> Result<(), Fault> {
    let env = turn.env;
    match turn.board().consume(&env, request)? {
        Answer::Do(effect) => turn.apply(effect),
        Answer::Again(_) => Ok(()),
    }
}

impl Command for Consume {
    const SPEC: Spec = Spec {
        name: "job.consume",
        arity: -4,
        flags: "write fast",
        key: Some(KeyUse::Update),
        summary: "Completes a job.",
        complexity: "O(log N)",
        syntax: "board worker id [TOKEN token] [RESULT result] [RETAIN ms] [PAYLOAD payload] [FORCE]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut request = Request { worker: args.speaker()?, id: args.name("id")?, ..Request::default() };
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut request.token, "TOKEN", args.token("TOKEN")?)?,
                "RESULT" => once(&mut request.result, "RESULT", args.payload("RESULT")?)?,
                "RETAIN" => once(&mut request.retain, "RETAIN", args.int("RETAIN", -1..=LONGEST)?)?,
                "PAYLOAD" => once(&mut request.payload, "PAYLOAD", args.payload("PAYLOAD")?)?,
                "FORCE" => flag(&mut request.force, "FORCE")?,
                _ => return unexpected(word),
            }
        }
        let reply = call.ctx.reply();
        Turn::run(call.ctx, &call.key(), |turn| {
            turn.hear(request.worker)?;
            turn.settle(request.id)?;
            consume(turn, &request)?;
            reply.text(State::Complete.name());
            Ok(())
        })
    }
}

impl Command for MConsume {
    const SPEC: Spec = Spec {
        name: "job.mconsume",
        arity: -4,
        flags: "write",
        key: Some(KeyUse::Update),
        summary: "Completes several jobs, or all that a worker holds.",
        complexity: "O(n log N)",
        syntax: "board worker <n id [id ...] [TOKENS n token [token ...]]|ALL> [RESULT result] [RETAIN ms] [FORCE]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut request = Request { worker: args.speaker()?, ..Request::default() };
        let targets = targets(args)?;
        let mut given = None;
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKENS" => once(&mut given, "TOKENS", tokens(args)?)?,
                "RESULT" => once(&mut request.result, "RESULT", args.payload("RESULT")?)?,
                "RETAIN" => once(&mut request.retain, "RETAIN", args.int("RETAIN", -1..=LONGEST)?)?,
                "FORCE" => flag(&mut request.force, "FORCE")?,
                _ => return unexpected(word),
            }
        }
        targets.check(request.worker, &given)?;
        let all = targets.is_all();
        let reply = call.ctx.reply();
        Turn::run(call.ctx, &call.key(), |turn| {
            turn.hear(request.worker)?;
            let targets = targets.paired(given, request.worker, turn);
            for_each(turn, reply, &targets, all, |turn, id, token| {
                consume(turn, &Request { id, token, ..request.clone() })?;
                reply.text(State::Complete.name());
                Ok(())
            })
        })
    }
}
