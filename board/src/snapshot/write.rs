//! Writes a board as parts.

use super::*;

/// Encodes the parts of a snapshot one by one.
#[derive(Default)]
pub(super) struct Writer {
    part: Vec<u8>,
    /// How many items have been written.
    pub(super) items: u64,
}

impl Writer {
    pub(super) fn put<'a>(&mut self, tag: u8, value: &impl Written<'a>) {
        self.items += 1;
        self.part.push(tag);
        value.write(&mut self.part);
    }

    /// Adds bytes unchanged.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.part.extend_from_slice(bytes);
    }

    /// Closes the part if it has at least `least` bytes.
    pub(super) fn close(&mut self, each: &mut impl FnMut(&[u8]), least: usize) {
        if self.part.len() > least {
            each(&self.part);
            self.part.clear();
        }
    }
}

impl Board {
    /// Calls `each` with the parts of the board, none much longer than a payload and [`PART`].
    /// O(n).
    pub fn snapshot(&self, mut each: impl FnMut(&[u8])) {
        if let Some(held) = &self.held {
            return held.parts.iter().for_each(|part| each(part));
        }
        let mut writer = self.write_items(&mut each);
        let items = writer.items;
        writer.put(END, &EndImage { items });
        writer.close(&mut each, 0);
    }
}
