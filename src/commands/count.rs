//! `JOB.COUNT`: how many jobs pass filters.

use board::Filters;

use super::list::filter;
use super::{read, Command, KeyUse, Spec};
use crate::fault::{unexpected, Done};
use crate::server::call::Call;

/// `JOB.COUNT board [filter…]` → how many; without filters those that have not ended.
pub struct Count;

impl Command for Count {
    const SPEC: Spec = Spec {
        name: "job.count",
        arity: -2,
        flags: "readonly",
        key: Some(KeyUse::Read),
        summary: "Counts jobs by filters; without any, those that have not ended.",
        complexity: "O(1) by states and queues, or by names, kinds, users, one tag or TRACKED alone, O(Q) by groups for Q queues; \
            else O(n) for n jobs of the smallest set named",
        syntax: "board [[NOT] STATE state] [[NOT] QUEUE queue] [[NOT] GROUP group] [[NOT] WORKER worker] [[NOT] NAME name] \
            [[NOT] TAG tag] [[NOT] KIND kind] [[NOT] TRACKED] [[NOT] USER user] [[NOT] LAPSED] [[NOT] SINCE version]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let mut filters = Filters::default();
        while let Some(word) = call.args.next() {
            if !filter(&mut call.args, word, &mut filters)? {
                return unexpected(word);
            }
        }
        let reply = call.ctx.reply();
        read(call, |board| {
            reply.int(board.count_jobs(&filters) as i64);
            Ok(())
        })
    }
}
