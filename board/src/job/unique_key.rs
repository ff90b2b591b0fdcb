//! What a record keeps of the key that its job takes.

use crate::effect::is_name;
use crate::settings::LONGEST;
use crate::structures::byte_string::ByteString;

/// When a key is free again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// When the job ends.
    End = 0,
    /// When the job is claimed.
    Start = 1,
}

impl Until {
    /// The word for it in commands and replies.
    pub fn name(self) -> &'static str {
        match self {
            Until::End => "end",
            Until::Start => "start",
        }
    }
}

numbered!(Until, "until": End, Start);

written! {
    /// The key of a job, and how long it holds it. See the module's comment.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Unique {
        /// The key.
        1 pub key: ByteString,
        /// When it is free again; only after `time` when that is said alone.
        2 pub until: Option<Until>,
        /// Free after so many ms.
        3 pub time: Option<i64>,
        /// The job has been claimed since it took the key.
        4 pub(crate) begun: bool,
    }
}

impl Unique {
    /// A key to be taken.
    pub(crate) fn new(key: &[u8], until: Option<Until>, time: Option<i64>) -> Unique {
        Unique { key: key.into(), until, time, begun: false }
    }

    /// Whether it is one that a client may name.
    pub fn is_valid(&self) -> bool {
        is_name(&self.key) && self.time.is_none_or(|ms| (1..=LONGEST).contains(&ms))
    }

    pub(crate) fn at_start(&self) -> bool {
        self.until == Some(Until::Start)
    }

    /// Whether the claim of the job has freed it.
    pub(crate) fn over(&self) -> bool {
        self.at_start() && self.begun
    }

    /// Whether the end of the job frees it.
    pub(crate) fn at_end(&self) -> bool {
        self.until.is_some() || self.time.is_none()
    }

    pub(crate) fn bytes(&self) -> usize {
        std::mem::size_of::<Self>() + self.key.len()
    }
}
