//! Time: timers fire, and waits end, in their order, when the clock is moved.

use redis_module::raw;
use std::os::raw::{c_int, c_longlong, c_void};

use crate::ctx::Ctx;
use crate::server::{server, Server};

/// One that is set.
#[derive(Clone, Copy)]
pub struct Timer {
    callback: raw::RedisModuleTimerProc,
    data: *mut c_void,
}

/// So many things at most happen one by one on the way to a time.
const STEPS: u32 = 100;
/// Later than all that is ever waited for.
const FAR: i64 = 1 << 50;

impl Server {
    /// Moves the clock. False when it was too far for all to happen in its time: what was left
    /// then has happened late, or is still to come.
    pub fn advance(&self, ms: i64) -> bool {
        let target = self.now.get() + ms;
        for _ in 0..STEPS {
            match self.next_event().filter(|at| *at <= target) {
                None => {
                    self.now.set(target);
                    return true;
                }
                Some(at) => self.step(at),
            }
        }
        self.now.set(target);
        for _ in 0..STEPS {
            match self.next_event().filter(|at| *at <= target) {
                None => break,
                Some(at) => self.step(at),
            }
        }
        false
    }

    /// Whether a timer or the end of a wait is due.
    pub fn is_due(&self) -> bool {
        self.next_event().is_some_and(|at| at <= self.now.get())
    }

    fn next_event(&self) -> Option<i64> {
        let timer = self.timers.borrow().keys().next().map(|(at, _)| *at);
        timer.into_iter().chain(self.next_wait()).min()
    }

    fn step(&self, at: i64) {
        self.now.set(at.max(self.now.get()));
        self.end_waits();
        let due = self.timers.borrow().first_key_value().map(|(key, timer)| (*key, *timer));
        if let Some((key, timer)) = due.filter(|((at, _), _)| *at <= self.now.get()) {
            self.timers.borrow_mut().remove(&key);
            self.fire(timer);
        }
        self.turn();
    }

    fn fire(&self, timer: Timer) {
        let ctx = Ctx::silent(0);
        let before = self.strings.0.get();
        // SAFETY: the context lives during the call, the data is what the module gave.
        unsafe { timer.callback.expect("a callback")(ctx.raw(), timer.data) };
        assert_eq!(self.strings.0.get(), before, "strings were made and not freed");
        self.nothing_open("a timer's end");
        self.propagate();
        self.tell_arrivals();
    }

    /// Lets timers fire that are about nothing any more, whenever that was to be.
    pub(crate) fn run_dry(&self) {
        let now = self.now.replace(FAR);
        for _ in 0..STEPS {
            let Some((_, timer)) = self.timers.borrow_mut().pop_first() else { break };
            self.fire(timer);
            self.turn();
        }
        assert!(self.timers.borrow().is_empty(), "a timer without boards goes on");
        self.now.set(now);
    }
}

pub unsafe extern "C" fn milliseconds() -> c_longlong {
    server().now.get()
}

/// No step of the clock: it goes with the time that is told.
pub unsafe extern "C" fn monotonic() -> u64 {
    server().now.get() as u64 * 1_000
}

pub unsafe extern "C" fn create(
    _ctx: *mut raw::RedisModuleCtx,
    period: raw::mstime_t,
    callback: raw::RedisModuleTimerProc,
    data: *mut c_void,
) -> raw::RedisModuleTimerID {
    let server = server();
    let number = server.next_number();
    // A server counts the wait in an `int` of µs.
    assert!((0..=i64::from(i32::MAX) / 1000).contains(&period), "a timer of {period} ms");
    server.timers.borrow_mut().insert((server.now.get() + period, number), Timer { callback, data });
    number
}

pub unsafe extern "C" fn stop(
    _ctx: *mut raw::RedisModuleCtx,
    id: raw::RedisModuleTimerID,
    data: *mut *mut c_void,
) -> c_int {
    assert!(data.is_null());
    let mut timers = server().timers.borrow_mut();
    let before = timers.len();
    timers.retain(|(_, number), _| *number != id);
    assert_eq!(timers.len() + 1, before, "a timer is stopped that is not set");
    0
}
