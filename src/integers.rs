//! Whole numbers as clients and configurations write them.

/// A whole number without a plus sign, blanks or anything else around it.
pub fn whole(word: &[u8]) -> Option<i64> {
    match word {
        // Too few digits to overflow: most commands carry a token or a number of jobs.
        [_, ..] if word.len() <= 18 && word.iter().all(u8::is_ascii_digit) => {
            Some(word.iter().fold(0, |n, digit| n * 10 + i64::from(digit - b'0')))
        }
        [] | [b'+', ..] => None,
        _ => std::str::from_utf8(word).ok()?.parse().ok(),
    }
}
