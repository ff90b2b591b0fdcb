//! What a job's worker writes while it runs: the last chunks, in a ring of bounded size.
//!
//! Chunks are counted over the life of the record, so that one number tells a reader's next call where to begin. The
//! ring has those of one run: the first chunk of another run takes the place of all.

use serde::Deserializer;

use crate::format::Written;
use crate::job::TOKENS;

written! {
    /// Part of [`super::remembered::Remembered`]. See the module's comment.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Output {
        /// The token of the claim whose run wrote the chunks.
        1 token: u64,
        /// Which attempt that is.
        2 attempt: u32,
        /// How many chunks were written before this run.
        3 begin: u64,
        /// How many were written before the first one that is kept.
        4 first: u64,
        5 chunks: Chunks,
    }
}

/// The chunks that a reader has not read yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Unread<'a> {
    /// The number of the last chunk of this answer: `SINCE` of the reader's next call.
    pub next: u64,
    /// How many chunks of the run are no longer there.
    pub missed: u64,
    /// Whether these begin a run, or the record is another one: what was read before is over.
    pub anew: bool,
    /// The attempt that wrote them; 0 for none.
    pub attempt: u32,
    /// The chunks.
    pub chunks: Vec<&'a [u8]>,
}

impl Output {
    /// Whether a board could have come to every number in it.
    pub(crate) fn is_valid(&self) -> bool {
        self.token < TOKENS && self.begin <= self.first && self.first < 1 << 53
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        std::mem::size_of::<Self>() + self.chunks.size() + 4 * self.chunks.len()
    }

    /// How many chunks were written in all.
    pub fn end(&self) -> u64 {
        self.first.saturating_add(self.chunks.len() as u64)
    }

    /// How many chunks the run under this token has written.
    pub fn written_by(&self, token: u64) -> u64 {
        match self.token == token {
            true => self.end().saturating_sub(self.begin),
            false => 0,
        }
    }

    /// Adds a chunk of a run, and keeps at most this many bytes. Amortized O(chunk).
    pub fn add(&mut self, token: u64, attempt: u32, chunk: &[u8], most: usize) {
        if self.token != token {
            let end = self.end();
            *self = Output { token, attempt, begin: end, first: end, chunks: Chunks::default() };
        }
        self.chunks.push(chunk);
        self.first += self.chunks.shorten(most);
    }

    /// Up to `most` chunks behind the first `since`.
    pub fn since(&self, since: u64, most: usize) -> Unread<'_> {
        let anew = since > self.end() || since <= self.begin;
        let from = if anew { self.begin } else { since };
        let start = from.max(self.first);
        let chunks: Vec<&[u8]> = self.chunks.from((start - self.first) as usize).take(most).collect();
        let next = start + chunks.len() as u64;
        Unread { next, missed: start - from, anew, attempt: self.attempt, chunks }
    }

    pub(crate) fn parts_mut(&mut self) -> (&mut Vec<u8>, &mut Vec<u32>) {
        (&mut self.chunks.bytes, &mut self.chunks.ends)
    }
}

/// Chunks, one behind the other. Those at the front go first; their bytes go when they are half of
/// all.
#[derive(Debug, Clone, Default)]
pub struct Chunks {
    bytes: Vec<u8>,
    /// Where each ends, those that have gone included.
    ends: Vec<u32>,
    /// How many have gone.
    gone: usize,
}

impl Chunks {
    /// How many there are.
    fn len(&self) -> usize {
        self.ends.len() - self.gone
    }

    /// Where a chunk begins in `bytes`, which may still hold dropped ones. `at` counts these too.
    fn start(&self, at: usize) -> usize {
        at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize)
    }

    /// Bytes of all.
    fn size(&self) -> usize {
        self.bytes.len() - self.start(self.gone)
    }

    fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        self.ends.push(self.bytes.len() as u32);
    }

    /// Removes the first ones until the others fit into this many bytes. Returns how many.
    fn shorten(&mut self, most: usize) -> u64 {
        let before = self.gone;
        while self.size() > most && self.gone < self.ends.len() {
            self.gone += 1;
        }
        let (start, gone) = (self.start(self.gone), (self.gone - before) as u64);
        if start * 2 > self.bytes.len() {
            self.bytes.drain(..start);
            self.ends.drain(..self.gone);
            self.ends.iter_mut().for_each(|end| *end -= start as u32);
            self.gone = 0;
        }
        gone
    }

    /// All from this one on.
    fn from(&self, at: usize) -> impl Iterator<Item = &[u8]> {
        let from = self.gone + at;
        let ends = self.ends.get(from..).unwrap_or_default();
        let begins = std::iter::once(self.start(from)).chain(ends.iter().map(|end| *end as usize));
        begins.zip(ends).filter_map(|(begin, end)| self.bytes.get(begin..*end as usize))
    }
}

impl PartialEq for Chunks {
    fn eq(&self, other: &Chunks) -> bool {
        self.from(0).eq(other.from(0))
    }
}

/// Written as the list of all.
impl<'a> Written<'a> for Chunks {
    fn blank() -> Self {
        Chunks::default()
    }

    fn is_blank(&self) -> bool {
        self.len() == 0
    }

    fn write(&self, to: &mut Vec<u8>) {
        self.from(0).collect::<Vec<&[u8]>>().write(to);
    }

    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        let mut chunks = Chunks::default();
        Vec::<&[u8]>::read(from)?.into_iter().for_each(|chunk| chunks.push(chunk));
        Ok(chunks)
    }

    #[cfg(test)]
    fn check_growth() {
        Vec::<&[u8]>::check_growth();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Against a plain queue of chunks.
    #[test]
    fn the_last_chunks_are_kept() {
        let (mut output, mut plain) = (Output::default(), VecDeque::new());
        let (mut random, mut first) = (7_u64, 0);
        for written in 1..=5_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let chunk = vec![written as u8; 1 + (random >> 33) as usize % 20];
            let most = 40 + (random >> 50) as usize % 60;
            output.add(3, 1, &chunk, most);
            plain.push_back(chunk);
            while plain.iter().map(Vec::len).sum::<usize>() > most {
                plain.pop_front();
                first += 1;
            }
            assert_eq!((output.end(), output.first, output.written_by(3)), (written, first, written));
            let since = first.saturating_sub(2) + random % 4;
            let unread = output.since(since, 3);
            let want: Vec<&[u8]> = plain
                .iter()
                .skip(since.saturating_sub(first) as usize)
                .take(3)
                .map(|chunk| &chunk[..])
                .collect();
            assert_eq!(unread.chunks, want);
            assert_eq!(unread.missed, first.saturating_sub(since));
            assert!(output.chunks.bytes.len() <= 220);
        }
        let mut bytes = Vec::new();
        Written::write(&output, &mut bytes);
        let again = Output::read(&mut crate::format::Decoder::from_read_ref(&bytes[..])).unwrap();
        assert_eq!((&again, again.bytes()), (&output, output.bytes()));
    }

    #[test]
    fn another_run_begins_anew_and_counts_on() {
        let mut output = Output::default();
        output.add(3, 1, b"a", 9);
        output.add(3, 1, b"b", 9);
        assert_eq!(output.since(0, 9).chunks, [b"a", b"b"]);
        assert!(output.since(0, 9).anew && !output.since(1, 9).anew && !output.since(2, 9).anew);
        output.add(4, 2, b"c", 9);
        let unread = output.since(2, 9);
        let Unread { next, missed, anew, attempt, .. } = unread;
        assert_eq!((next, missed, anew, attempt), (3, 0, true, 2));
        assert_eq!(unread.chunks, [b"c"]);
        assert_eq!((output.written_by(3), output.written_by(4)), (0, 1));
        // The count of another record, which had more.
        assert!(output.since(7, 9).anew);
    }
}
