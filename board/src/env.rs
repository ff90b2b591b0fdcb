//! What a decision may know of the world: neither a clock nor randomness beside this.

use crate::settings::Rules;

/// The low bits of a token say which of this many givers gave it out: two primaries of one board
/// that cannot reach each other give different ones. Tokens count in steps of this.
pub const GIVERS: u64 = 32;

/// The world as the caller sees it at one moment.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The time, Unix ms.
    pub now: i64,
    /// Fresh random bits.
    pub random: u64,
    /// The highest fencing token that this process has seen on any board.
    pub token: u64,
    /// Which of [`crate::GIVERS`] token givers this process is: a process that gives out tokens for
    /// a copy of a board most likely is another one.
    pub giver: u64,
    /// No claim ends by itself before this time, Unix ms: after loading or promotion live workers
    /// get the chance to continue.
    pub hold: i64,
    /// How long after loading or promotion claims are held, ms.
    pub recovery: i64,
    /// The queue with which a claim with `ORDER rotate` begins.
    pub rotation: u64,
    /// The server's configuration.
    pub rules: &'a Rules,
}

impl Env<'_> {
    /// Random bits for the `n`th use within one command.
    pub fn draw(&self, n: u64) -> u64 {
        mix(self.random ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// Mixes the bits of a number (the finaliser of SplitMix64).
pub fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}
