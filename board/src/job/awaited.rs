//! What a record keeps of the jobs that its job waits for.

/// The most jobs that a job may wait for.
pub const AFTER_MOST: usize = 10_000;

/// What happens to a job when one that it waits for ends without success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum OnFailure {
    /// It keeps waiting: the other may be requeued.
    #[default]
    Hold = 0,
    /// It is cancelled.
    Cancel = 1,
    /// It fails, with kind `dependency`.
    Fail = 2,
    /// It runs all the same.
    Run = 3,
}

numbered!(OnFailure, "on failure": Hold, Cancel, Fail, Run);

written! {
    /// A job that another waits for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Edge {
        /// Its slot.
        1 pub slot: u32,
        /// What to do if it does not succeed.
        2 pub on_failure: OnFailure,
    }
}
