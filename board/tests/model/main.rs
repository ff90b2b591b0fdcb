//! The board against a naive model of it: random commands under random clocks, and after
//! every step the same jobs in the same states, the same answers, the same refusals, an equal
//! copy, and all invariants.
//!
//! `JOBBOARD_STEPS` sets how many steps are run in all, `PROPTEST_CASES` how many sequences.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod bounds;
mod children;
mod commands;
mod compare;
mod drawn;
mod drive;
mod explain;
mod family;
mod limits;
mod mirror;
mod naive;
mod named;
mod operators;
mod pauses;
mod rates;
mod room;
mod rounds;
mod schedules;
mod selections;
mod sessions;
mod signals;
mod stats;
mod verbs;
mod waits;
mod workers;
#[path = "../world/mod.rs"]
mod world;

use proptest::collection::vec;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestCaseError, TestError, TestRunner};

const LONGEST: usize = 400;
/// More with `JOBBOARD_STEPS`, as in CI.
const STEPS: u32 = 50_000;

/// How many runs there are, each in a thread of its own.
const RUNS: u32 = 2;

/// The strategy that draws commands is one value of all their options: it overflows a thread's usual 2 MiB.
const STACK: usize = 16 << 20;

#[test]
fn the_board_does_what_the_model_does() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u32>().ok());
    let steps = number("JOBBOARD_STEPS").unwrap_or(STEPS);
    let cases = number("PROPTEST_CASES").unwrap_or(steps / (LONGEST as u32 / 2) + 1);
    // Failed assertions inside a run count as failures of it, and are shrunk like any.
    std::panic::set_hook(Box::new(|_| {}));
    let spawn = |n| std::thread::Builder::new().stack_size(STACK).spawn(move || run(n, cases.div_ceil(RUNS)));
    let runs: Vec<_> = (0..RUNS).map(|n| spawn(n).unwrap()).collect();
    let outcomes: Vec<_> = runs.into_iter().map(|run| run.join()).collect();
    let _ = std::panic::take_hook();
    for outcome in outcomes {
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(TestError::Fail(reason, (seed, commands)))) => {
                let lines: Vec<String> = commands.iter().map(|c| format!("  {c:?}")).collect();
                panic!("{reason}\nseed {seed}, commands:\n{}", lines.join("\n"));
            }
            Ok(Err(other)) => panic!("{other}"),
            Err(_) => panic!("a run panicked outside of its cases"),
        }
    }
}

type Sequence = (u64, Vec<commands::Command>);

/// Runs that many sequences; with a fixed seed run `n` has others than the run before it.
fn run(n: u32, cases: u32) -> Result<(), TestError<Sequence>> {
    let mut config = Config {
        cases,
        max_shrink_iters: 1_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    };
    if let RngSeed::Fixed(seed) = config.rng_seed {
        config.rng_seed = RngSeed::Fixed(seed.wrapping_add(u64::from(n)));
    }
    let sequences = (0..u64::MAX, vec(drawn::command(), 1..LONGEST));
    TestRunner::new(config).run(&sequences, |(seed, commands)| {
        let mut pair = drive::Pair::seeded(seed);
        for (n, command) in commands.iter().enumerate() {
            pair.run(command).map_err(|e| TestCaseError::fail(format!("step {n}, {command:?}: {e}")))?;
        }
        pair.finish().map_err(TestCaseError::fail)
    })
}
