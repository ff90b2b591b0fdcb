//! The timeouts of parked clients. The server's own timeouts follow the machine's clock: a step
//! ahead would end all waits, and a step back would prolong them.

use std::collections::{BTreeSet, HashMap};

use crate::redis::cell::MainCell;
use crate::redis::clock;
use crate::redis::park::Handle;

#[derive(Default)]
struct Ends {
    /// The end in ms of [`clock::elapsed_ms`], and the client's number.
    order: BTreeSet<(i64, u64)>,
    of: HashMap<u64, End>,
}

struct End {
    at: i64,
    handle: Handle,
    /// As [`Parked::ends`](crate::redis::park::Parked::ends).
    ends: fn(u64) -> bool,
}

static ENDS: MainCell<Option<Ends>> = MainCell::new(None);

fn with<R>(work: impl FnOnce(&mut Ends) -> R) -> R {
    ENDS.with(|ends| work(ends.get_or_insert_with(Ends::default)))
}

/// Ends a client's wait after this many ms, if `ends` allows it then.
pub fn add(number: u64, after: i64, handle: Handle, ends: fn(u64) -> bool) {
    let at = clock::elapsed_ms().saturating_add(after);
    with(|all| {
        all.order.insert((at, number));
        all.of.insert(number, End { at, handle, ends });
    });
}

/// Forgets a client that no longer waits.
pub fn remove(number: u64) {
    with(|ends| ends.remove(number));
}

impl Ends {
    fn remove(&mut self, number: u64) -> Option<End> {
        let end = self.of.remove(&number)?;
        self.order.remove(&(end.at, number));
        Some(end)
    }

    fn pop_until(&mut self, now: i64) -> Option<(u64, End)> {
        let (_, number) = *self.order.first().filter(|(at, _)| *at <= now)?;
        Some((number, self.remove(number)?))
    }
}

/// When the first wait times out, in ms of [`clock::elapsed_ms`]; `i64::MAX` for never.
pub fn first() -> i64 {
    with(|ends| ends.order.first().map_or(i64::MAX, |(at, _)| *at))
}

/// Ends the waits that have timed out.
pub fn end_overdue() {
    let now = clock::elapsed_ms();
    // No state of ours is borrowed while their callbacks run.
    while let Some((number, end)) = with(|ends| ends.pop_until(now)) {
        if (end.ends)(number) {
            end.handle.unblock();
        }
    }
}
