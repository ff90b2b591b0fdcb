//! The whole numbers in bytes of MessagePack, wherever they stand and whatever they mean.
#![allow(dead_code)]

use std::ops::Range;

/// Where each stands, in their order. Containers are walked through as what they hold; what
/// follows bytes that are no MessagePack is anything.
pub fn numbers(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(marker) = bytes.get(at).copied() {
        let lengths = |n: usize| {
            let length = bytes.get(at + 1..at + 1 + n).unwrap_or_default();
            n + length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))
        };
        let (is_number, more) = match marker {
            0x00..=0x7f | 0xe0..=0xff => (true, 0),
            0xcc..=0xd3 => (true, 1 << (marker & 3)),
            0xa0..=0xbf => (false, usize::from(marker & 0x1f)),
            0xc4..=0xc6 => (false, lengths(1 << (marker - 0xc4))),
            0xc7..=0xc9 => (false, 1 + lengths(1 << (marker - 0xc7))),
            0xca | 0xcb => (false, 4 << (marker - 0xca)),
            0xd4..=0xd8 => (false, 1 + (1 << (marker - 0xd4))),
            0xd9..=0xdb => (false, lengths(1 << (marker - 0xd9))),
            0xdc..=0xdf => (false, 2 << (marker & 1)),
            _ => (false, 0),
        };
        let end = at + 1 + more;
        if is_number && end <= bytes.len() {
            found.push(at..end);
        }
        at = end;
    }
    found
}

/// A number as it is written.
pub fn written(n: i64) -> Vec<u8> {
    let wide = n.to_be_bytes();
    match n {
        0..=0x7f => vec![wide[7]],
        0..=0xff => vec![0xcc, wide[7]],
        0..=0xffff => [&[0xcd], &wide[6..]].concat(),
        0..=0xffff_ffff => [&[0xce], &wide[4..]].concat(),
        0.. => [&[0xcf], &wide[..]].concat(),
        _ => [&[0xd3], &wide[..]].concat(),
    }
}

/// The same bytes with another number in that place.
pub fn with_number(bytes: &[u8], at: Range<usize>, to: i64) -> Vec<u8> {
    [&bytes[..at.start], &written(to), &bytes[at.end..]].concat()
}
