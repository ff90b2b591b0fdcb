//! What a decision may know of the world. Nothing else: no clock, no randomness.

use crate::settings::Rules;

/// The world as the caller sees it at one moment.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// Unix ms.
    pub now: i64,
    /// Fresh random bits.
    pub random: u64,
    /// The highest token that this process has seen on any board.
    pub token: u64,
    /// Which of so many ([`crate::GIVERS`]) this process is that give tokens out: others that do so
    /// for a copy of a board most likely are another.
    pub giver: u64,
    /// No claim ends by itself before this time: after loading or promotion live workers get
    /// the chance to go on.
    pub hold: i64,
    /// How long after loading or promotion that is, ms.
    pub recovery: i64,
    /// Where a claim with `ORDER rotate` begins.
    pub rotation: u64,
    /// The server's configuration.
    pub rules: &'a Rules,
}

impl Env<'_> {
    /// Other random bits for the `n`th use of one command's.
    pub fn draw(&self, n: u64) -> u64 {
        mix(self.random ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// Spreads the bits of a number over all of its bits (the finaliser of SplitMix64).
pub fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}
