//! Ids of jobs: chosen by the client, or made by the server.
//!
//! A server-made id is a UUIDv7 whose last four bytes are the job's slot, so that a lookup needs no
//! index: it reads the slot from the id and compares the id with that of the record there.

use serde::Deserializer;
use uuid::Uuid;

use crate::format::{Unreadable, Written};
use crate::structures::allotted::allotted;
use crate::structures::byte_string::ByteString;

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
            Id::Made(bytes) => {
                let mut text: MadeText = [0; 36];
                f(Uuid::from_bytes(bytes).hyphenated().encode_lower(&mut text).as_bytes())
            }
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
    let [.., order_high, order_low] = order.to_be_bytes();
    let [noise, noise_a, noise_b, noise_c, ..] = random.to_le_bytes();
    let [a, b, c, d] = slot.to_be_bytes();
    let first = order_high >> 4;
    let second = order_high << 4 | order_low >> 4;
    let third = (order_low & 0xf) << 2 | noise & 0x3;
    let tail = [first, second, third, noise_a, noise_b, noise_c, a, b, c, d];
    uuid::Builder::from_unix_timestamp_millis(now.max(0) as u64, &tail).into_uuid().into_bytes()
}

/// The random bits of a made id, as [`make`] takes them.
pub(crate) fn noise(id: &[u8; 16]) -> u32 {
    let [.., third, a, b, c, _, _, _, _] = *id;
    u32::from_le_bytes([third, a, b, c]) & NOISE
}

/// The random bits that [`make`] takes.
pub(crate) const NOISE: u32 = u32::from_le_bytes([0x3, 0xff, 0xff, 0xff]);

/// Reads a text that may be a made id: its bytes and its slot. Accepts only the exact text that
/// [`Id::text`] gives.
pub fn read_made(text: &[u8]) -> Option<([u8; 16], u32)> {
    // Only capital letters have the one bit without the other. Without a branch for each byte this
    // takes a handful of instructions.
    let capitals = |text: &[u8]| text.iter().fold(0, |found, byte| found | (byte & !(byte << 1) & 0x40)) != 0;
    if text.len() != 36 || capitals(text) {
        return None;
    }
    let bytes = Uuid::try_parse_ascii(text).ok()?.into_bytes();
    Some((bytes, slot_of(&bytes)))
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
}
