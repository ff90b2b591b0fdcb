//! Refusals: why a command changes nothing. Their texts are written here and nowhere else.

use std::fmt;

use crate::job::id::Id;
use crate::job::State;
use crate::structures::byte_string::ByteString;

/// Why a command is refused. `Display` writes code and detail as clients see them; names from
/// clients are made printable.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The board does not know the id.
    NoJob,
    /// Nobody holds the job.
    NotClaimed(State),
    /// Another worker holds it.
    NotOwner(ByteString),
    /// A worker holds a job that should be free.
    Claimed(ByteString),
    /// The caller already holds it.
    ClaimedYou,
    /// The token is that of an earlier claim, or is missing where one is needed.
    Stale(u64),
    /// It cannot be claimed now.
    NotReady(State),
    /// It cannot be claimed now: its board, queue or group is paused.
    Paused,
    /// It cannot be claimed by this worker, which is quiet.
    Quiet,
    /// No worker of this name is registered on the board.
    NoWorker,
    /// It cannot run now: its group is ordered, and it is not the next.
    Ordered,
    /// It has ended.
    Ended(State),
    /// It is cancelled, or its worker is asked to stop.
    Cancelled(State),
    /// The id is taken.
    Exists(ByteString),
    /// It has not ended.
    NotEnded(State),
    /// Another job waits for it.
    Depended(ByteString),
    /// Jobs would wait for each other.
    Cycle,
    /// A job would be among its own ancestors.
    Ancestor,
    /// The board does not know the schedule.
    NoSchedule,
    /// It is in this queue, and not in the one that was named.
    WrongQueue(ByteString),
    /// A chunk of output is not the next one of its run, which has this number.
    Gap(u64),
    /// An argument is invalid.
    Argument(String),
    /// A bound is reached.
    Limit(&'static str),
    /// The copy of the board missed an effect, or what it loaded is invalid.
    Broken,
    /// One job of several causes the refusal.
    Of(ByteString, Box<Refusal>),
    /// One node of a flow causes the refusal: its label.
    InNode(ByteString, Box<Refusal>),
}

impl Refusal {
    /// The error code, the first word of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::NoJob => "NOJOB",
            Refusal::NotClaimed(_) => "NOTCLAIMED",
            Refusal::NotOwner(_) => "NOTOWNER",
            Refusal::Claimed(_) | Refusal::ClaimedYou => "CLAIMED",
            Refusal::Stale(_) => "STALE",
            Refusal::NotReady(_) | Refusal::Paused | Refusal::Quiet | Refusal::Ordered => "NOTREADY",
            Refusal::Ended(_) => "ENDED",
            Refusal::Cancelled(_) => "CANCELLED",
            Refusal::Exists(_) => "EXISTS",
            Refusal::NotEnded(_) => "NOTENDED",
            Refusal::Depended(_) => "DEPENDED",
            Refusal::Cycle | Refusal::Ancestor => "CYCLE",
            Refusal::NoSchedule => "NOSCHEDULE",
            Refusal::NoWorker => "NOWORKER",
            Refusal::WrongQueue(_) => "WRONGQUEUE",
            Refusal::Gap(_) => "GAP",
            Refusal::Argument(_) => "ERR",
            Refusal::Limit(_) => "LIMIT",
            Refusal::Broken => "BROKEN",
            Refusal::Of(_, inner) | Refusal::InNode(_, inner) => inner.code(),
        }
    }

    /// What follows the code.
    pub fn detail(&self) -> String {
        match self {
            Refusal::NoJob => "no such job".into(),
            Refusal::NotClaimed(s) | Refusal::NotReady(s) | Refusal::Ended(s) | Refusal::NotEnded(s) => {
                s.name().into()
            }
            Refusal::NotOwner(name)
            | Refusal::Claimed(name)
            | Refusal::WrongQueue(name)
            | Refusal::Exists(name)
            | Refusal::Depended(name) => clean(name),
            Refusal::Paused => "paused".into(),
            Refusal::Quiet => "quiet".into(),
            Refusal::Ordered => "ordered".into(),
            Refusal::ClaimedYou => "you".into(),
            Refusal::Stale(0) => "an earlier claim of yours lapsed: give the token".into(),
            Refusal::Stale(token) => format!("token {token} is not the current one"),
            Refusal::Cancelled(State::Cancelled) => "the job was cancelled".into(),
            Refusal::Cancelled(_) => "cancel was requested".into(),
            Refusal::Cycle => "a job would wait for itself".into(),
            Refusal::Ancestor => "a job would be its own ancestor".into(),
            Refusal::NoSchedule => "no such schedule".into(),
            Refusal::NoWorker => "no such worker is registered".into(),
            Refusal::Gap(next) => format!("the next chunk of this run is {next}"),
            Refusal::Argument(what) => what.clone(),
            Refusal::Limit(which) => (*which).into(),
            Refusal::Broken => "this copy of the board is incomplete: restore it from a whole one".into(),
            Refusal::Of(id, inner) => format!("{} {}", inner.detail(), clean(id)),
            Refusal::InNode(label, inner) => format!("{} in node '{}'", inner.detail(), clean(label)),
        }
    }

    /// A job of this id exists already.
    pub(crate) fn exists(id: &Id<ByteString>) -> Refusal {
        Refusal::Exists(id.borrowed().text(|id| id.into()))
    }

    /// The same refusal with the id of the job that causes it.
    pub fn of(self, id: &[u8]) -> Refusal {
        Refusal::Of(id.into(), Box::new(self))
    }

    /// The same refusal with the label of the node that causes it.
    pub fn in_node(self, label: &[u8]) -> Refusal {
        Refusal::InNode(label.into(), Box::new(self))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code(), self.detail())
    }
}

impl std::error::Error for Refusal {}

/// Bytes from a client as a part of one line of text, cut at the length of a name.
pub fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..255).unwrap_or(bytes));
    one_line(&text)
}

/// The text without control characters and characters that change the direction of writing: safe in
/// a terminal.
pub fn one_line(text: &str) -> String {
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if c.is_control() || turns(c) { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line_whatever_the_names() {
        let refusal = Refusal::NotOwner(ByteString::from(&b"a\r\n-b\0\xff"[..]));
        assert_eq!(refusal.to_string(), "NOTOWNER a??-b?\u{fffd}");
        assert_eq!(one_line("\u{1b}\u{7f}\u{9b}\u{202e}é\u{2028}"), "????é?");
        assert_eq!(Refusal::Ended(State::Complete).of(b"j1").to_string(), "ENDED complete j1");
    }
}
