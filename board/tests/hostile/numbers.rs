//! The whole numbers in bytes of MessagePack, wherever they stand and whatever they mean.
#![allow(dead_code)]

use std::ops::Range;

use board::Board;

use crate::whole::load;

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
        0x80..=0xff => vec![0xcc, wide[7]],
        0x100..=0xffff => [&[0xcd], &wide[6..]].concat(),
        0x1_0000..=0xffff_ffff => [&[0xce], &wide[4..]].concat(),
        0x1_0000_0000.. => [&[0xcf], &wide[..]].concat(),
        _ => [&[0xd3], &wide[..]].concat(),
    }
}

/// The same bytes with another number in that place.
pub fn with_number(bytes: &[u8], at: Range<usize>, to: i64) -> Vec<u8> {
    [&bytes[..at.start], &written(to), &bytes[at.end..]].concat()
}

/// Where in a snapshot the number stands that a board tells once it has been loaded: with `to`
/// in its place `tells` holds.
pub fn number_that(bytes: &[u8], to: i64, tells: impl Fn(&Board) -> bool) -> Range<usize> {
    let holds = |at: &Range<usize>| load([&with_number(bytes, at.clone(), to)[..]]).is_ok_and(|b| tells(&b));
    numbers(bytes).into_iter().find(holds).expect("a number that a board tells")
}

/// Where its revision stands.
pub fn revision_in(bytes: &[u8], board: &Board) -> Range<usize> {
    let next = board.revision() + 1;
    number_that(bytes, next as i64, |loaded| loaded.revision() == next)
}

/// Where its last token stands.
pub fn token_in(bytes: &[u8], board: &Board) -> Range<usize> {
    let next = board.token() + 1;
    number_that(bytes, next as i64, |loaded| loaded.token() == next)
}
