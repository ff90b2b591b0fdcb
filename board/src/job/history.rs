//! The history of a job: its first entries and its last, oldest first.

use crate::structures::byte_string::ByteString;

/// The kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum HistoryKind {
    Posted = 0,
    Claimed = 1,
    Lapsed = 2,
    Timeout = 3,
    Failed = 4,
    Abandoned = 5,
    Released = 6,
    Revived = 7,
    Requeued = 8,
    Replaced = 9,
    Updated = 10,
    CancelRequested = 11,
    Cancelled = 12,
    Trashed = 13,
    Expired = 14,
    Complete = 15,
    Log = 16,
    Dependency = 17,
    Depends = 18,
    Advanced = 19,
    Dead = 20,
    Awaiting = 21,
    Signalled = 22,
    AwaitTimeout = 23,
}

impl HistoryKind {
    const ALL: [(HistoryKind, &'static str); 24] = [
        (HistoryKind::Posted, "posted"),
        (HistoryKind::Claimed, "claimed"),
        (HistoryKind::Lapsed, "lapsed"),
        (HistoryKind::Timeout, "timeout"),
        (HistoryKind::Failed, "failed"),
        (HistoryKind::Abandoned, "abandoned"),
        (HistoryKind::Released, "released"),
        (HistoryKind::Revived, "revived"),
        (HistoryKind::Requeued, "requeued"),
        (HistoryKind::Replaced, "replaced"),
        (HistoryKind::Updated, "updated"),
        (HistoryKind::CancelRequested, "cancel-requested"),
        (HistoryKind::Cancelled, "cancelled"),
        (HistoryKind::Trashed, "trashed"),
        (HistoryKind::Expired, "expired"),
        (HistoryKind::Complete, "complete"),
        (HistoryKind::Log, "log"),
        (HistoryKind::Dependency, "dependency"),
        (HistoryKind::Depends, "depends"),
        (HistoryKind::Advanced, "advanced"),
        (HistoryKind::Dead, "dead"),
        (HistoryKind::Awaiting, "awaiting"),
        (HistoryKind::Signalled, "signalled"),
        (HistoryKind::AwaitTimeout, "await-timeout"),
    ];

    /// Its name in replies.
    pub fn name(self) -> &'static str {
        Self::ALL.get(self as usize).map_or("", |(_, name)| name)
    }
}

#[rustfmt::skip]
numbered!(
    HistoryKind, "event": Posted, Claimed, Lapsed, Timeout, Failed, Abandoned, Released, Revived, Requeued, Replaced,
    Updated, CancelRequested, Cancelled, Trashed, Expired, Complete, Log, Dependency, Depends, Advanced, Dead, Awaiting,
    Signalled, AwaitTimeout,
);

/// The longest history that settings allow.
pub(crate) const HISTORY_MOST: usize = 2_000;

written! {
    /// One entry of a history.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Entry {
        /// When, Unix ms.
        1 pub at: i64,
        /// Its kind.
        2 pub event: HistoryKind,
        /// The worker that took part in it, or who sent a signal, if known.
        3 pub worker: Option<ByteString>,
        /// A text: a failure's kind and message, a reason, a line of log.
        4 pub text: Option<ByteString>,
    }
}

written! {
    /// The kept entries. Adding one is O(entries kept), which a setting bounds.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct History {
        1 entries: Vec<Entry>,
    }
}

impl History {
    /// Adds an entry; beyond `first + last` entries, drops the oldest of the last.
    pub fn push(&mut self, entry: Entry, first: usize, last: usize) {
        if self.entries.len() == self.entries.capacity() {
            // Most histories have two entries: a begin and an end.
            self.entries.reserve_exact(2 + self.entries.len() / 2);
        }
        self.entries.push(entry);
        while self.entries.len() > first.saturating_add(last) {
            let oldest = first.min(self.entries.len() - 1);
            self.entries.remove(oldest);
        }
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn entries_mut(&mut self) -> &mut Vec<Entry> {
        &mut self.entries
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let text = |t: &Option<ByteString>| t.as_ref().map_or(0, |t| t.len());
        self.entries.iter().map(|e| 48 + text(&e.worker) + text(&e.text)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_entries_are_kept() {
        let mut history = History::default();
        for at in 0..10 {
            history.push(Entry { at, event: HistoryKind::Log, worker: None, text: None }, 2, 3);
        }
        let times: Vec<i64> = history.entries().iter().map(|e| e.at).collect();
        assert_eq!(times, [0, 1, 7, 8, 9]);
    }

    #[test]
    fn events_keep_their_numbers() {
        for (i, (event, _)) in HistoryKind::ALL.iter().enumerate() {
            assert_eq!((*event as usize, HistoryKind::try_from(i as u8)), (i, Ok(*event)));
        }
    }
}
