//! Reads a board from parts, none of which it trusts.

use std::io::Cursor;

use serde::de::{Deserialize, IgnoredAny};

use super::write::Writer;
use super::{EndImage, Held, END, HEAD};
use crate::board::Board;
use crate::format::{next_tag, Decoder};
use crate::item::{damaged, need, Loading, SnapshotError};
use crate::structures::byte_string::ByteString;

/// Why a snapshot is held whose last parts are not there.
const UNENDED: &str = "the end is missing";

/// Builds a board from the parts of a snapshot.
#[derive(Default)]
pub struct Loader {
    pub(super) board: Board,
    pub(super) headed: bool,
    ended: bool,
    items: u64,
    pub(super) loading: Loading,
    /// The board is broken, and the rest of it cannot be read.
    lost: bool,
    /// Whether what cannot be read is held and not refused.
    holds: bool,
    /// Whether something is held.
    held: bool,
}

/// The bytes of a part behind this many items, which have been read.
fn behind(part: &[u8], items: u64) -> &[u8] {
    let mut from = rmp_serde::Deserializer::new(Cursor::new(part));
    let passed = (0..2 * items).all(|_| IgnoredAny::deserialize(&mut from).is_ok());
    usize::try_from(from.position()).ok().filter(|_| passed).and_then(|at| part.get(at..)).unwrap_or_default()
}

impl Loader {
    /// A loader that refuses nothing: it holds what this version cannot read.
    pub fn holding() -> Loader {
        Loader { holds: true, ..Loader::default() }
    }

    /// Takes the next part. The parts of a broken board may be invalid: it then loads as a broken
    /// board, and holds nothing.
    pub fn part(&mut self, part: &[u8]) -> Result<(), SnapshotError> {
        if self.lost {
            return Ok(());
        }
        if self.held {
            self.board.hold(part);
            return Ok(());
        }
        let before = self.items;
        match self.take(part) {
            Err(damage) if self.holds => self.hold(damage, behind(part, self.items - before)),
            Err(_) if self.board.broken() => self.lost = true,
            taken => return taken,
        }
        Ok(())
    }

    /// Reads the items of a part, up to the first that cannot be read.
    fn take(&mut self, part: &[u8]) -> Result<(), SnapshotError> {
        need(!part.is_empty(), "a part of nothing")?;
        let mut from = Decoder::from_read_ref(part);
        while let Some(tag) = next_tag(&mut from).or(damaged("a tag"))? {
            need(!self.ended, "something follows the end")?;
            need(self.headed != (tag == HEAD), "head")?;
            self.headed = true;
            self.item(tag, &mut from)?;
            self.items += 1;
        }
        Ok(())
    }

    /// Holds the board from here on. What was read before is written again: equal boards give equal
    /// bytes. If that fails, the board holds nothing, not something else.
    fn hold(&mut self, damage: SnapshotError, rest: &[u8]) {
        let mut parts: Vec<ByteString> = Vec::new();
        let mut each = |part: &[u8]| parts.push(part.into());
        let before = self.items - u64::from(self.ended);
        let mut writer = match before {
            0 => Writer::default(),
            _ => self.board.write_items(&mut each),
        };
        let same = writer.items == before;
        if self.ended {
            writer.put(END, &EndImage { items: before });
        }
        writer.add(rest);
        writer.close(&mut each, 0);
        let whole = same && !parts.is_empty();
        let held = Held { why: damage.0, parts };
        self.board = self.board.unread(whole.then(|| Box::new(held)));
        self.held = true;
    }

    pub(super) fn end(&mut self, end: EndImage) -> Result<(), SnapshotError> {
        need(end.items == self.items, "some of it is missing")?;
        self.ended = true;
        Ok(())
    }

    /// Whether the end was read, or nothing more will be read.
    pub fn is_whole(&self) -> bool {
        self.ended || self.lost || self.held
    }

    /// What it has read so far. It has no indexes yet.
    pub fn arrived(&self) -> &Board {
        &self.board
    }

    /// Calls `each` with what it has read so far, as parts after which the others may follow: equal boards
    /// give equal bytes. O(n).
    pub fn snapshot(&self, mut each: impl FnMut(&[u8])) {
        match self.held || self.lost {
            true => self.board.snapshot(each),
            false => self.board.write_items(&mut each).close(&mut each, 0),
        }
    }

    /// The board, after the last part.
    pub fn finish(mut self) -> Result<Board, SnapshotError> {
        if self.held {
            return Ok(self.board);
        }
        match self.complete() {
            Ok(()) => Ok(self.board),
            Err(damage) if self.holds => {
                self.hold(damage, &[]);
                Ok(self.board)
            }
            Err(_) if self.board.broken() => Ok(self.board.unread(None)),
            Err(damage) => Err(damage),
        }
    }

    fn complete(&mut self) -> Result<(), SnapshotError> {
        need(!self.lost, "not to be read")?;
        need(self.ended, UNENDED)?;
        for queue in std::mem::take(&mut self.loading.with_groups) {
            self.board.queues.release(queue);
        }
        self.board.index()?;
        // A broken board reports that itself, and refuses everything else.
        if !self.board.broken() {
            self.board.check().or(damaged("a board that cannot be"))?;
        }
        Ok(())
    }
}

impl Board {
    /// Has a new loader read the parts that this board holds, if they are a snapshot whose last parts may
    /// still follow. `None` when they are not.
    pub fn resumed(&self, mut loader: Loader) -> Option<Loader> {
        let held = self.held.as_ref().filter(|held| held.why == UNENDED)?;
        let read = held.parts.iter().all(|part| loader.part(part).is_ok());
        (read && !loader.is_whole()).then_some(loader)
    }
}
