//! Whole numbers and durations as clients and configurations write them.

/// A whole number without a plus sign, blanks or anything else around it.
pub fn whole(word: &[u8]) -> Option<i64> {
    // Too few digits to overflow: most commands carry a token or a number of jobs.
    if (1..=18).contains(&word.len()) {
        let digits = |n: i64, byte: &u8| byte.is_ascii_digit().then(|| n * 10 + i64::from(byte - b'0'));
        if let Some(n) = word.iter().try_fold(0, digits) {
            return Some(n);
        }
    }
    match word {
        [] | [b'+', ..] => None,
        _ => std::str::from_utf8(word).ok()?.parse().ok(),
    }
}

/// The units of a duration, the longest first, and their milliseconds.
const UNITS: [(&[u8], i64); 5] =
    [(b"d", 86_400_000), (b"h", 3_600_000), (b"m", 60_000), (b"s", 1_000), (b"ms", 1)];

/// The milliseconds of a duration with units: `500ms`, `5s`, `1h30m`. The longest unit stands
/// first, and each at most once.
pub fn duration(word: &[u8]) -> Option<i64> {
    let (mut rest, mut units, mut sum) = (word, UNITS.iter(), 0_i64);
    while !rest.is_empty() {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.iter().take_while(|byte| !byte.is_ascii_digit()).count();
        let (unit, tail) = tail.split_at(letters);
        // The search goes on behind the unit before: that keeps their order.
        let (_, ms) = units.find(|(name, _)| *name == unit)?;
        sum = sum.checked_add(whole(number)?.checked_mul(*ms)?)?;
        rest = tail;
    }
    (!word.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn a_duration_is_the_sum_of_its_units() {
        let day = 86_400_000;
        for (text, ms) in [
            ("0s", 0),
            ("500ms", 500),
            ("5s", 5_000),
            ("90m", 5_400_000),
            ("1h30m", 5_400_000),
            ("7d", 7 * day),
            ("1d2h3m4s5ms", day + 7_384_005),
            ("106751991167d", 106_751_991_167 * day),
        ] {
            assert_eq!(duration(text.as_bytes()), Some(ms), "{text}");
        }
    }

    #[test]
    fn anything_else_is_none() {
        let long = format!("{}s", "9".repeat(40));
        for text in [
            "",
            "s",
            "5",
            "5S",
            "5 s",
            " 5s",
            "5s ",
            "-5s",
            "+5s",
            "1.5s",
            "5sec",
            "1m1h",
            "1s1s",
            "1h30",
            "106751991168d",
            "9223372036854775807s",
            "1sm",
            "5\0s",
            long.as_str(),
        ] {
            assert_eq!(duration(text.as_bytes()), None, "{text}");
        }
    }
}
