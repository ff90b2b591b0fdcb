//! Ids of jobs: chosen by the client, or made by the server.
//!
//! A server-made id is a UUIDv7 whose last four bytes are the job's slot, so that a lookup needs no
//! index: it reads the slot from the id and compares the id with that of the record there.

use crate::format::{Unreadable, Written};
use crate::structures::allotted::allotted;
use crate::structures::byte_string::ByteString;
use serde::Deserializer;

/// An id; `B` holds the bytes of a chosen one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id<B> {
    /// Made by the server.
    Made([u8; 16]),
    /// Chosen by the client.
    Named(B),
}

/// Text of a made id.
pub type MadeText = [u8; 36];

impl Id<ByteString> {
    /// The id of these bytes, as effects and snapshots carry them.
    pub fn from_parts(made: bool, bytes: &[u8]) -> Option<Self> {
        match made {
            true => Some(Id::Made(bytes.try_into().ok()?)),
            false => Some(Id::Named(bytes.into())),
        }
    }

    /// The same id by reference.
    pub fn borrowed(&self) -> Id<&[u8]> {
        match self {
            Id::Made(bytes) => Id::Made(*bytes),
            Id::Named(name) => Id::Named(name),
        }
    }

    /// Bytes that the allocator takes for it.
    pub(crate) fn allotted(&self) -> usize {
        match self {
            Id::Made(_) => 0,
            Id::Named(name) => allotted(name.len()),
        }
    }

    /// Whether it is empty and names no job.
    pub fn is_blank(&self) -> bool {
        matches!(self, Id::Named(name) if name.is_empty())
    }
}

written! {
    /// An id in its written form.
    struct Image<'a> {
        1 made: bool,
        2 bytes: &'a [u8],
    }
}

impl<'a> Written<'a> for Id<ByteString> {
    fn blank() -> Self {
        Id::Named(ByteString::default())
    }

    fn is_blank(&self) -> bool {
        Id::is_blank(self)
    }

    fn write(&self, to: &mut Vec<u8>) {
        Image { made: matches!(self, Id::Made(_)), bytes: self.borrowed().bytes() }.write(to);
    }

    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        let image = Image::read(from)?;
        Id::from_parts(image.made, image.bytes).ok_or_else(|| Unreadable.error())
    }

    #[cfg(test)]
    fn check_growth() {
        Image::check_growth();
    }
}

impl Id<&[u8]> {
    /// The bytes as effects and snapshots carry them: 16 raw bytes for a made id.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Id::Made(bytes) => bytes,
            Id::Named(name) => name,
        }
    }

    /// The same id, owned.
    pub fn owned(self) -> Id<ByteString> {
        match self {
            Id::Made(bytes) => Id::Made(bytes),
            Id::Named(name) => Id::Named(name.into()),
        }
    }

    /// Calls `f` with the id as clients see it.
    pub fn text<R>(self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Id::Made(bytes) => f(&text_of(&bytes)),
            Id::Named(name) => f(name),
        }
    }

    /// The id as clients see it, owned.
    pub fn to_vec(self) -> Vec<u8> {
        self.text(<[u8]>::to_vec)
    }
}

/// Makes an id for the job that is put into `slot` at `now` (Unix ms). Within one millisecond ids
/// rise with `order`, of which 16 bits are kept; 26 bits are random.
pub fn make(now: i64, random: u64, slot: u32, order: u64) -> [u8; 16] {
    let time = (now.max(0) as u64) << 16;
    let order = order & 0xffff;
    let noise = u64::from((random as u32 & NOISE).swap_bytes());
    let (version, variant) = (0x7000, 1 << 63);
    let high = time | version | order >> 4;
    let low = variant | (order & 0xf) << 58 | noise << 32 | u64::from(slot);
    uuid::Uuid::from_u64_pair(high, low).into_bytes()
}

/// The random bits of a made id, as [`make`] takes them.
pub(crate) fn noise(id: &[u8; 16]) -> u32 {
    let [.., third, a, b, c, _, _, _, _] = *id;
    u32::from_le_bytes([third, a, b, c]) & NOISE
}

/// The random bits that [`make`] takes.
pub(crate) const NOISE: u32 = u32::from_le_bytes([0x3, 0xff, 0xff, 0xff]);

/// The hexadecimal digits of four bytes, the first in the lowest byte. All at once: byte by byte an
/// id takes three times the instructions.
fn digits(bytes: u32) -> u64 {
    let spread = u64::from(bytes.swap_bytes());
    let spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff;
    let spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff;
    let halves = (spread >> 4 | spread << 8) & 0x0f0f_0f0f_0f0f_0f0f;
    let letters = ((halves + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    halves + 0x3030_3030_3030_3030 + letters * 0x27
}

/// The four bytes whose [`digits`] these are; what is something else comes from none.
fn bytes_of(digits: u64) -> u32 {
    let letters = (digits >> 6) & 0x0101_0101_0101_0101;
    let halves = ((digits & 0x0f0f_0f0f_0f0f_0f0f) + letters * 9) & 0x0f0f_0f0f_0f0f_0f0f;
    let joined = (halves << 4 | halves >> 8) & 0x00ff_00ff_00ff_00ff;
    let joined = (joined | joined >> 8) & 0x0000_ffff_0000_ffff;
    ((joined | joined >> 16) as u32).swap_bytes()
}

/// The text of a made id: that of a UUID.
fn text_of(bytes: &[u8; 16]) -> MadeText {
    let number = u128::from_be_bytes(*bytes);
    let part = |n: u32| digits((number >> (96 - 32 * n)) as u32).to_le_bytes();
    let (second, third) = (part(1), part(2));
    let mut text: MadeText = [b'-'; 36];
    text[0..8].copy_from_slice(&part(0));
    text[9..13].copy_from_slice(&second[0..4]);
    text[14..18].copy_from_slice(&second[4..8]);
    text[19..23].copy_from_slice(&third[0..4]);
    text[24..28].copy_from_slice(&third[4..8]);
    text[28..36].copy_from_slice(&part(3));
    text
}

/// Reads a text that may be a made id: its bytes and its slot. Accepts only the exact text that
/// [`Id::text`] gives.
pub fn read_made(text: &[u8]) -> Option<([u8; 16], u32)> {
    let text: &MadeText = text.try_into().ok()?;
    let part = |first: &[u8], second: &[u8]| {
        let mut eight = [0; 8];
        eight[0..4].copy_from_slice(first);
        eight[4..8].copy_from_slice(second);
        u128::from(bytes_of(u64::from_le_bytes(eight)))
    };
    let number = part(&text[0..4], &text[4..8]) << 96
        | part(&text[9..13], &text[14..18]) << 64
        | part(&text[19..23], &text[24..28]) << 32
        | part(&text[28..32], &text[32..36]);
    let bytes = number.to_be_bytes();
    (text_of(&bytes) == *text).then(|| (bytes, slot_of(&bytes)))
}

/// The slot that a made id names.
pub fn slot_of(bytes: &[u8; 16]) -> u32 {
    let mut place = [0; 4];
    place.copy_from_slice(bytes.split_at(12).1);
    u32::from_be_bytes(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn made_ids_of_one_millisecond_rise_with_their_order() {
        let ids: Vec<Vec<u8>> =
            (0..0x1_0000).map(|n| Id::Made(make(1, n * 77_777_777, 9, n)).to_vec()).collect();
        assert!(ids.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn a_made_id_is_a_uuid_of_version_7_that_knows_its_slot() {
        let id = make(1_700_000_000_000, u64::MAX, 77, 5);
        let text = Id::Made(id).to_vec();
        assert_eq!(Uuid::from_bytes(id).get_version_num(), 7);
        assert_eq!(read_made(&text), Some((id, 77)));
        assert_eq!(noise(&id), NOISE);
        assert_eq!(make(1_700_000_000_000, noise(&id).into(), 77, 5), id);
        assert_eq!(read_made(&text.to_ascii_uppercase()), None);
        assert_eq!(read_made(b"0191f7c0-0000-7000-8000-00000000004"), None);
    }

    #[test]
    fn texts_of_made_ids_are_those_of_uuids_and_no_other_text_is_read() {
        let mut random = 1u64;
        for _ in 0..2_000 {
            random = crate::env::mix(random);
            let bytes = (u128::from(random) << 64 | u128::from(crate::env::mix(!random))).to_be_bytes();
            let text = Id::Made(bytes).to_vec();
            assert_eq!(text, Uuid::from_bytes(bytes).hyphenated().to_string().into_bytes());
            assert_eq!(read_made(&text), Some((bytes, slot_of(&bytes))));
            let at = (random % 36) as usize;
            for byte in 0..=255 {
                let mut other = text.clone();
                other[at] = byte;
                let uuid = Uuid::try_parse_ascii(&other).ok();
                let same = uuid.filter(|uuid| uuid.hyphenated().to_string().as_bytes() == other);
                let read = same.map(|uuid| (uuid.into_bytes(), slot_of(uuid.as_bytes())));
                assert_eq!(read_made(&other), read);
            }
        }
    }
}
