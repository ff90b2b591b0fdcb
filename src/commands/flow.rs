//! `JOB.FLOW`: posts several jobs that wait for each other, or are children of each other, in one
//! command.

use board::{Flow as Plan, Node, Post, PostAnswer, Protocol, Refusal, Subject};

use super::post::{options, Form};
use super::shared::EDGE;
use super::{reference, Command, KeyUse, Spec};
use crate::commands::call::Call;
use crate::config::config;
use crate::replies::errors::{syntax, CommandError, Done};
use crate::runtime::commit::Commit;

/// `JOB.FLOW` → ids. All or nothing. Replicates `Posted` for each node, then `Adopted` for each
/// that has a parent.
pub struct Flow;

fn node<'a>(call: &mut Call<'a>) -> Result<Node<'a>, CommandError> {
    let args = &mut call.args;
    if !args.take("NODE") {
        return syntax("NODE must stand before each label");
    }
    let label = args.name("label")?;
    let read = || {
        let mut post = Post { payload: args.payload("payload")?, ..Post::default() };
        options(args, Form::Node, &mut post)?;
        Ok(Node { label, post })
    };
    let within = |text| format!("{text} in node '{}'", board::clean(label));
    let mut read = read;
    read().map_err(|fault| match fault {
        CommandError::Syntax(text) => CommandError::Syntax(within(text)),
        CommandError::Unexpected(word, place) => CommandError::Unexpected(word, within(place)),
        other => other,
    })
}

/// Posts a flow that the board has accepted.
fn post(commit: &mut Commit<'_>, mut plan: Plan<'_>) -> Result<Vec<Vec<u8>>, CommandError> {
    let env = commit.env;
    for at in plan.order().to_vec() {
        let post = plan.post(at).ok_or(Refusal::NoJob)?;
        let answer = commit.board().post_unbounded(&env, &post, at as u64)?;
        let PostAnswer::Do(posted) = answer else { continue };
        let id = posted.text(<[u8]>::to_vec);
        commit.apply(posted)?;
        plan.came(at, id);
    }
    for adopted in plan.adopted(commit.board())? {
        commit.apply(adopted)?;
    }
    Ok(plan.ids().to_vec())
}

impl Command for Flow {
    const SPEC: Spec = reference::JOB_FLOW.with("write deny-oom", KeyUse::Insert);

    fn run(call: &mut Call<'_>) -> Done {
        let n = call.args.length("n", 1)?;
        let mut nodes = Vec::with_capacity(n.min(call.args.left()));
        for _ in 0..n {
            if call.args.left() == 0 {
                return syntax(format!("n names {n} but fewer follow"));
            }
            nodes.push(node(call)?);
        }
        call.args.end()?;
        let edges: usize = nodes.iter().flat_map(|node| &node.post.after).map(|after| after.jobs.len()).sum();
        if edges as i64 > config().max_shared / EDGE as i64 {
            return syntax(format!(
                "AFTER of all nodes (n) names {edges} jobs, more than {}, which max-shared ({}) allows: send several flows",
                config().max_shared / EDGE as i64,
                config().max_shared
            ));
        }
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            commit.settle(Subject::Flow(&nodes))?;
            let plan = commit.look(|board, env| board.plan_flow(env, nodes))?;
            let ids = post(commit, plan)?;
            reply.array(ids.len());
            ids.iter().for_each(|id| reply.bytes(id));
            Ok(())
        })
    }
}
