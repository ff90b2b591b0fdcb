//! What a worker says of its claim beside a verb: `COST`, `COSTS` and `PAUSE`.

use board::{Costs, Spend, COSTS_MOST, LONGEST, MOST};

use crate::commands::args::{once, Args};
use crate::replies::errors::{syntax, CommandError};

/// About how many bytes each cost takes in a record beside the name of its limit.
const EACH: usize = 32;

/// What the claim has cost, and that a limit needs a rest.
pub const ALL: [&str; 3] = ["COST", "COSTS", "PAUSE"];
/// What the claim has cost.
pub const COST: [&str; 2] = ["COST", "COSTS"];

/// Reads `n limit cost…` behind an option of this name. Refuses a limit that is named twice.
pub fn costs<'a>(args: &mut Args<'a>, name: &str) -> Result<Costs<'a>, CommandError> {
    let n = args.int(name, 1..=COSTS_MOST as i64)? as usize;
    if args.left() < 2 * n {
        return syntax(format!("{name} names {n} pairs but fewer follow"));
    }
    let mut costs = Costs::with_capacity(n);
    for _ in 0..n {
        let limit = args.name(&format!("{name} limit"))?;
        if costs.iter().any(|(named, _)| *named == limit) {
            return syntax(format!("{name} names '{}' twice", board::clean(limit)));
        }
        costs.push((limit, args.int(&format!("{name} cost"), 0..=MOST)?));
    }
    Ok(costs)
}

/// About how many bytes costs take in each record.
pub fn weight(costs: Option<&Costs<'_>>) -> usize {
    costs.map_or(0, |costs| costs.iter().map(|(limit, _)| limit.len() + EACH).sum())
}

/// Takes an option if it is one of `these`; otherwise returns false.
pub fn take<'a>(
    these: &[&str],
    option: &str,
    args: &mut Args<'a>,
    spend: &mut Spend<'a>,
) -> Result<bool, CommandError> {
    if !these.contains(&option) {
        return Ok(false);
    }
    match option {
        "COST" => once(&mut spend.cost, "COST", args.int("COST", 0..=MOST)?)?,
        "COSTS" => once(&mut spend.costs, "COSTS", costs(args, "COSTS")?)?,
        _ => {
            let limit = args.name("PAUSE")?;
            once(&mut spend.pause, "PAUSE", (limit, args.ms("PAUSE", 1..=LONGEST)?))?;
        }
    }
    Ok(true)
}
