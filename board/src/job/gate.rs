//! Which signals a job waits for, and until when.

use std::collections::BTreeSet;

use super::is_time;
use crate::effect::is_name;
use crate::settings::LONGEST;
use crate::structures::byte_string::ByteString;

/// The most signals that a job waits for at once.
pub const SIGNALS_MOST: usize = 64;

/// What happens to a job when the time of its wait is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum OnTimeout {
    /// Its handler runs, and learns that nobody answered.
    #[default]
    Run = 0,
    /// It fails, with kind `signal`.
    Fail = 1,
    /// It is cancelled.
    Cancel = 2,
}

numbered!(OnTimeout, "on timeout": Run, Fail, Cancel);

impl OnTimeout {
    /// Its name in replies.
    pub fn name(self) -> &'static str {
        match self {
            OnTimeout::Run => "run",
            OnTimeout::Fail => "fail",
            OnTimeout::Cancel => "cancel",
        }
    }
}

written! {
    /// What must have arrived before a job runs.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Gate {
        /// The names of the signals, each once.
        1 pub names: Vec<ByteString>,
        /// Whether any of them is enough.
        2 pub any: bool,
        /// How long a wait for them lasts at most, ms.
        3 pub within: Option<i64>,
        /// What happens then.
        4 pub on_timeout: OnTimeout,
    }
}

written! {
    /// The wait of a blocked job.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Waiting {
        /// What it waits for.
        1 pub gate: Gate,
        /// When the wait began, Unix ms.
        2 pub from: i64,
        /// The name under which it is remembered that the time was over; empty when that is of no
        /// concern to a run.
        3 pub step: ByteString,
    }
}

impl Gate {
    /// Whether a client could have named it.
    pub(crate) fn is_valid(&self) -> bool {
        let mut seen = BTreeSet::new();
        (1..=SIGNALS_MOST).contains(&self.names.len())
            && self.names.iter().all(|name| is_name(name) && seen.insert(name))
            && self.within.is_none_or(|ms| (1..=LONGEST).contains(&ms))
    }

    /// Whether it names this signal.
    pub fn names(&self, name: &[u8]) -> bool {
        self.names.iter().any(|own| **own == *name)
    }

    /// About how many bytes it points to.
    pub fn bytes(&self) -> usize {
        self.names.iter().map(|name| name.len() + std::mem::size_of::<ByteString>()).sum()
    }
}

impl Waiting {
    /// Whether a board could have come to it.
    pub(crate) fn is_valid(&self) -> bool {
        self.gate.is_valid() && is_time(self.from) && self.step.len() <= 255
    }

    /// When it times out, Unix ms, or [`NEVER`](super::NEVER).
    pub fn until(&self) -> i64 {
        crate::board::after(self.from, self.gate.within.unwrap_or(-1))
    }

    /// About how many bytes it points to.
    pub fn bytes(&self) -> usize {
        self.gate.bytes() + self.step.len()
    }
}

/// Names as one line: the first, and how many more.
pub(crate) fn named_first<'n>(mut names: impl ExactSizeIterator<Item = &'n [u8]>) -> Vec<u8> {
    let more = names.len().saturating_sub(1);
    let mut text = names.next().unwrap_or_default().to_vec();
    if more > 0 {
        text.extend_from_slice(format!(" and {more} more").as_bytes());
    }
    text
}
