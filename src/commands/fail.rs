//! `JOB.FAIL`: an attempt did not work.

use board::{Answer, Fail as Request, Retry, State, LONGEST};

use super::claim::{next_claim, ClaimRequest};
use super::{Command, KeyUse, Spec};
use crate::commands::args::{once, one_of, Keyword};
use crate::commands::call::Call;
use crate::commands::ending::end;
use crate::replies::endings::Ending;
use crate::replies::errors::{unexpected, Done};

/// `JOB.FAIL board worker id kind message [TOKEN t] [RETRY ms|NORETRY] [PAYLOAD p] [CLAIM …]` →
/// state, due, left; with a claim also its reply. Replicates `Failed`, or `Cancelled` when the
/// worker was asked to stop, and `Claimed`.
pub struct Fail;

/// The options for what follows a failure.
const RETRY: &str = "RETRY and NORETRY";

impl Command for Fail {
    const SPEC: Spec = Spec {
        name: "job.fail",
        arity: -6,
        flags: "write blocking",
        key: Some(KeyUse::Update),
        summary: "Reports a failed try: the job is retried or fails.",
        complexity: "O(log N), and that of the claim",
        syntax: concat!(
            "board worker id kind message [TOKEN token] [RETRY ms|NORETRY] [PAYLOAD payload] ",
            next_claim!()
        ),
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut speaker = args.speaker()?;
        let (kind, message) = (args.name("kind")?, args.text("message")?);
        let mut request = Request { kind, message, ..Request::default() };
        let (mut retry, mut next) = (None, None);
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut speaker.token, "TOKEN", args.token("TOKEN")?)?,
                "RETRY" => {
                    let ms = args.ms("RETRY", 0..=LONGEST)?;
                    one_of(&mut retry, RETRY, "RETRY", Retry::After(ms))?;
                }
                "NORETRY" => one_of(&mut retry, RETRY, "NORETRY", Retry::No)?,
                "PAYLOAD" => once(&mut request.payload, "PAYLOAD", args.payload("PAYLOAD")?)?,
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, speaker.worker)?),
                _ => return unexpected(word),
            }
        }
        request.retry = retry.map(|(_, retry)| retry).unwrap_or_default();
        end(call, next, |commit| {
            let ended = match commit.work(&speaker, &request)? {
                Answer::Again(state) => state,
                Answer::Cancel(_) => State::Cancelled,
                Answer::Do(_) => State::Failed,
            };
            let env = commit.env;
            Ok(Ending::Failed(commit.board().after_fail(&env, speaker.id, ended)))
        })
    }
}
