//! What a record keeps of the unique key that its job takes.

use crate::effect::is_name;
use crate::settings::LONGEST;
use crate::structures::byte_string::ByteString;

/// What frees a unique key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The end of the job.
    End = 0,
    /// The claim of the job.
    Start = 1,
}

impl Until {
    /// Its name in commands and replies.
    pub fn name(self) -> &'static str {
        match self {
            Until::End => "end",
            Until::Start => "start",
        }
    }
}

numbered!(Until, "until": End, Start);

written! {
    /// The unique key of a job, and how long the job holds it. See the module's comment.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Unique {
        /// The key.
        1 pub key: ByteString,
        /// What frees it; `None` when only `time` does.
        2 pub until: Option<Until>,
        /// How long it is held at most, ms.
        3 pub time: Option<i64>,
        /// Whether the job has been claimed since it took the key.
        4 pub(crate) begun: bool,
    }
}

impl Unique {
    /// A key that a job takes.
    pub(crate) fn new(key: &[u8], until: Option<Until>, time: Option<i64>) -> Unique {
        Unique { key: key.into(), until, time, begun: false }
    }

    /// Whether a client may name it.
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
