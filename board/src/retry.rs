//! How long a failed job waits before its next attempt.
//!
//! After the `n`th failure a job waits `base * 2^(n-1)` ms, at most `max`; a fixed pause has `base`
//! equal to `max`. Jitter of `p` per cent spreads the pause evenly within `p` per cent either way.

use crate::job::NEVER;

/// What follows a failure.
pub(crate) enum Next {
    Retry { due: i64 },
    End { retain: i64 },
}

/// The pause after the `fails`th failure, ms.
pub fn pause(fails: u32, base: i64, max: i64, jitter: i64, random: u64) -> i64 {
    let doublings = fails.saturating_sub(1).min(62);
    let plain = base.saturating_mul(1i64 << doublings).min(max).clamp(0, NEVER);
    let span = (i128::from(plain) * i128::from(jitter.clamp(0, 100)) / 100) as i64;
    if span == 0 {
        return plain;
    }
    let offset = (random % (2 * span as u64 + 1)) as i64 - span;
    plain.saturating_add(offset).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_its_maximum() {
        let pauses: Vec<i64> = (1..6).map(|n| pause(n, 5_000, 30_000, 0, 0)).collect();
        assert_eq!(pauses, [5_000, 10_000, 20_000, 30_000, 30_000]);
        assert_eq!(pause(u32::MAX, 5_000, 30_000, 0, 0), 30_000);
        assert_eq!(pause(9, 700, 700, 0, 0), 700);
        assert_eq!(
            pause(3, i64::MAX / 2, i64::MAX, 100, u64::MAX),
            pause(3, i64::MAX / 2, i64::MAX, 100, u64::MAX)
        );
    }

    #[test]
    fn jitter_stays_within_its_per_cent() {
        let pauses: Vec<i64> = (0..10_000).map(|r| pause(1, 1_000, 1_000, 10, r)).collect();
        assert_eq!(pauses.iter().min(), Some(&900));
        assert_eq!(pauses.iter().max(), Some(&1_100));
    }
}
