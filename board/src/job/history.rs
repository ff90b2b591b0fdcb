//! The history of a job: its first entries and its last, oldest first.

use super::is_time;
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
    Grace = 24,
}

impl HistoryKind {
    const ALL: [(HistoryKind, &'static str); 25] = [
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
        (HistoryKind::Grace, "grace"),
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
    Signalled, AwaitTimeout, Grace,
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
        /// Of a failure its kind, and the message behind it; otherwise what its [`Subject`] says.
        4 pub(crate) text: Option<ByteString>,
        /// How many bytes of the text are the kind of a failure.
        5 pub(crate) kind: u8,
        /// Whether no other try follows a failure.
        6 pub last: bool,
        /// How many signals are concerned besides the one that the text names.
        7 pub(crate) more: u8,
        /// How many children of the job had not ended.
        8 pub children: u32,
    }
}

/// What the text of an entry is, behind the kind of a failure.
enum Subject {
    /// A message, a reason, a line of log.
    Message,
    /// The queue to which the job moved.
    Queue,
    /// The first of the signals.
    Signal,
}

impl Entry {
    /// An entry; `Board::happened` gives it its time.
    pub(crate) fn of(event: HistoryKind, worker: Option<ByteString>, text: Option<&[u8]>) -> Entry {
        Entry {
            at: 0,
            event,
            worker,
            text: text.map(ByteString::from),
            kind: 0,
            last: false,
            more: 0,
            children: 0,
        }
    }

    /// The entry of a failure.
    pub(crate) fn failure(
        event: HistoryKind,
        worker: Option<ByteString>,
        kind: &[u8],
        message: &[u8],
    ) -> Entry {
        let kind = kind.get(..kind.len().min(255)).unwrap_or_default();
        let text = [kind, message].concat();
        Entry { kind: kind.len() as u8, ..Entry::of(event, worker, Some(&text)) }
    }

    /// An entry about signals.
    pub(crate) fn signals(event: HistoryKind, worker: Option<ByteString>, names: &[ByteString]) -> Entry {
        let more = names.len().saturating_sub(1).min(255) as u8;
        Entry { more, ..Entry::of(event, worker, names.first().map(|name| &**name)) }
    }

    fn subject(&self) -> Subject {
        use HistoryKind::*;
        match self.event {
            Advanced | Dead | Requeued | Updated => Subject::Queue,
            Awaiting | Signalled => Subject::Signal,
            AwaitTimeout if self.kind == 0 => Subject::Signal,
            _ => Subject::Message,
        }
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        let text = self.text.as_deref().unwrap_or_default();
        text.split_at_checked(self.kind.into()).unwrap_or((&[], text))
    }

    /// The kind of a failure.
    pub fn kind(&self) -> Option<&[u8]> {
        (self.kind > 0).then(|| self.parts().0)
    }

    /// A failure's message, a reason, a line of log.
    pub fn message(&self) -> Option<&[u8]> {
        let message = self.parts().1;
        let given = self.text.is_some() && (self.kind == 0 || !message.is_empty());
        (given && matches!(self.subject(), Subject::Message)).then_some(message)
    }

    /// The queue to which the job moved.
    pub fn queue(&self) -> Option<&[u8]> {
        self.text.as_deref().filter(|_| matches!(self.subject(), Subject::Queue))
    }

    /// The first of the signals that it is about, and how many there are.
    pub fn signal(&self) -> Option<(&[u8], usize)> {
        let first = self.text.as_deref().filter(|_| matches!(self.subject(), Subject::Signal))?;
        Some((first, 1 + usize::from(self.more)))
    }

    /// Whether a board could have come to it.
    pub(crate) fn is_valid(&self) -> bool {
        is_time(self.at) && usize::from(self.kind) <= self.text.as_ref().map_or(0, |text| text.len())
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
            history.push(Entry { at, ..Entry::of(HistoryKind::Log, None, None) }, 2, 3);
        }
        let times: Vec<i64> = history.entries().iter().map(|e| e.at).collect();
        assert_eq!(times, [0, 1, 7, 8, 9]);
    }

    #[test]
    fn an_entry_says_what_its_text_is() {
        let failed = Entry::failure(HistoryKind::Failed, None, b"net", b"no route");
        assert_eq!((failed.kind(), failed.message()), (Some(&b"net"[..]), Some(&b"no route"[..])));
        assert_eq!((failed.queue(), failed.signal()), (None, None));
        let silent = Entry::failure(HistoryKind::Lapsed, None, b"lapsed", b"");
        assert_eq!((silent.kind(), silent.message()), (Some(&b"lapsed"[..]), None));
        let moved = Entry::of(HistoryKind::Advanced, None, Some(b"print"));
        assert_eq!((moved.queue(), moved.message(), moved.kind()), (Some(&b"print"[..]), None, None));
        let names = [&b"a"[..], b"b", b"c"].map(ByteString::from);
        let awaiting = Entry::signals(HistoryKind::Awaiting, None, &names);
        assert_eq!((awaiting.signal(), awaiting.message()), (Some((&b"a"[..], 3)), None));
        let line = Entry::of(HistoryKind::Log, None, Some(b""));
        assert_eq!(line.message(), Some(&b""[..]));
        assert_eq!(std::mem::size_of::<Entry>(), 48);
    }

    #[test]
    fn events_keep_their_numbers() {
        for (i, (event, _)) in HistoryKind::ALL.iter().enumerate() {
            assert_eq!((*event as usize, HistoryKind::try_from(i as u8)), (i, Ok(*event)));
        }
    }
}
