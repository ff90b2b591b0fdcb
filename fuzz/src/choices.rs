//! The input, byte by byte: each byte is one choice. When it is at its end all choices are 0.

use crate::play::BEGIN;

/// What is left of the input.
pub struct Choices<'a>(pub &'a [u8]);

/// Numbers that programs trip over, and those around the ends of counters.
pub const NUMBERS: [i64; 34] = [
    0,
    1,
    2,
    3,
    5,
    10,
    64,
    65,
    100,
    1_000,
    10_000,
    60_000,
    3_600_000,
    86_400_000,
    -1,
    -2,
    255,
    i32::MAX as i64,
    i32::MIN as i64,
    1 << 40,
    1 << 47,
    (1 << 53) - 1,
    i64::MAX,
    i64::MIN,
    (1 << 30) - 1,
    u32::MAX as i64,
    (1 << 48) - 2,
    (1 << 48) - 1,
    (1 << 48) - (1 << 40) - 2,
    1 << 48,
    (1 << 53) - 40,
    1 << 53,
    i64::MAX - (1 << 40) - 2,
    NEAR_NOW,
];

/// A minute after the clock begins.
const NEAR_NOW: i64 = BEGIN + 60_000;

impl Choices<'_> {
    pub fn is_done(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// One of many.
    pub fn among(&mut self, n: usize) -> usize {
        (usize::from(self.byte()) | usize::from(self.byte()) << 8) % n.max(1)
    }

    /// One of `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    /// One of these.
    pub fn one<'t, T: ?Sized>(&mut self, all: &[&'t T]) -> &'t T {
        all[self.below(all.len())]
    }

    /// Some bytes as they are.
    pub fn raw(&mut self) -> Vec<u8> {
        let len = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes.to_vec()
    }

    /// A number: small ones first, then those that programs trip over, then any.
    pub fn number(&mut self) -> i64 {
        match self.byte() {
            n @ 0..=127 => i64::from(n % 8),
            n @ 128..=239 => NUMBERS[usize::from(n) % NUMBERS.len()],
            _ => (0..4).fold(0, |n, _| n << 8 | i64::from(self.byte())),
        }
    }
}
