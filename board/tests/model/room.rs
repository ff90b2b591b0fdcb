//! Where room becomes free: whatever fewer jobs or bytes take than before has been reported.

use std::collections::BTreeMap;

use board::{Board, State};

use crate::drive::{GROUPS, QUEUES};

type Name = &'static [u8];

/// Live jobs and bytes by queue, and by queue and group.
#[derive(Default)]
pub struct Taken(BTreeMap<(Name, Option<Name>), (u64, u64)>);

fn live(count: impl Fn(State) -> u64) -> u64 {
    State::ALL.into_iter().filter(|state| !state.ended()).map(count).sum()
}

impl Taken {
    /// What is taken now; room that becomes free is reported from now on.
    pub fn of(board: &mut Board) -> Taken {
        board.watch_room(true);
        board.freed();
        let mut all = BTreeMap::new();
        for queue in QUEUES {
            let jobs = live(|state| board.count_in(queue, state));
            all.insert((queue, None), (jobs, board.record_bytes_in(queue)));
            for group in GROUPS {
                let jobs = live(|state| board.count_group(queue, group, state));
                all.insert((queue, Some(group)), (jobs, 0));
            }
        }
        Taken(all)
    }

    /// Everything of which less is taken than before is reported.
    pub fn check(&self, board: &mut Board) -> Result<(), String> {
        let freed = board.freed();
        let now = Taken::of(board);
        for ((place, before), after) in self.0.iter().zip(now.0.values()) {
            let reported = match place {
                (queue, None) => freed.queues.contains(*queue),
                (queue, Some(group)) => freed.groups.contains(&((*queue).into(), (*group).into())),
            };
            if (after.0 < before.0 || after.1 < before.1) && !reported && !freed.anywhere {
                return Err(format!("{place:?} had {before:?}, has {after:?}, and is not reported"));
            }
        }
        Ok(())
    }
}
