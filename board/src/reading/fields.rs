//! The fields of records, and lists of them.

use bitflags::bitflags;
use std::borrow::Cow;
use std::sync::LazyLock;

bitflags! {
    /// The fields of a record, in the order in which replies give them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Fields: u64 {
        /// The id.
        const ID = 1 << 0;
        /// Its order of posting.
        const SEQ = 1 << 1;
        /// Name of the state.
        const STATE = 1 << 2;
        /// The name of its queue.
        const QUEUE = 1 << 3;
        /// Its name, the type of the job.
        const NAME = 1 << 4;
        /// Its payload.
        const PAYLOAD = 1 << 5;
        /// Its priority; higher ones are claimed first.
        const PRIORITY = 1 << 6;
        /// How often it has been claimed.
        const ATTEMPT = 1 << 7;
        /// Retries left, -1 without end.
        const LEFT = 1 << 8;
        /// Fencing token of its claim.
        const TOKEN = 1 << 9;
        /// The worker that holds it.
        const WORKER = 1 << 10;
        /// When the claim ends by itself, Unix ms.
        const DEADLINE = 1 << 11;
        /// Class of the last failure.
        const KIND = 1 << 12;
        /// Text of the last failure.
        const MESSAGE = 1 << 13;
        /// How far it is, in the worker's words.
        const STAGE = 1 << 14;
        /// How far it is, per cent.
        const PROGRESS = 1 << 15;
        /// When it was posted, Unix ms.
        const POSTED = 1 << 16;
        /// When it becomes ready, Unix ms.
        const DUE = 1 << 17;
        /// When the last claim began, Unix ms.
        const CLAIMED = 1 << 18;
        /// When it ended, Unix ms.
        const ENDED = 1 << 19;
        /// When it last changed, Unix ms.
        const MODIFIED = 1 << 20;
        /// The board's revision when it last changed.
        const VERSION = 1 << 21;
        /// Its result.
        const RESULT = 1 << 22;
        /// The user's own fields.
        const META = 1 << 23;
        /// The worker that held it last.
        const PREVIOUS = 1 << 24;
        /// Why it was abandoned, trashed or cancelled.
        const REASON = 1 << 25;
        /// The time of its schedule for which it was posted, Unix ms.
        const INTENDED = 1 << 26;
        /// The jobs that it waits for.
        const AFTER = 1 << 27;
        /// Its tags.
        const TAGS = 1 << 28;
        /// Whether it is tracked.
        const TRACKED = 1 << 29;
        /// On whose behalf it was posted.
        const USER = 1 << 30;
        /// Its unique key.
        const UNIQUE = 1 << 31;
        /// Its parent.
        const PARENT = 1 << 33;
        /// Its weight among the children of its parent.
        const SHARE = 1 << 34;
        /// How many children it has had.
        const CHILDREN = 1 << 35;
        /// Its group.
        const GROUP = 1 << 36;
        /// Permits that a claim of it takes.
        const COST = 1 << 37;
        /// 1 when its claim ends when a connection closes.
        const SESSION = 1 << 38;
        /// What the steps of its work came to.
        const STEPS = 1 << 39;
        /// Where it was before it moved to the dead queue.
        const ORIGIN = 1 << 40;
        /// The signals that have arrived.
        const SIGNALS = 1 << 41;
        /// The signals and children that it waits for.
        const AWAITS = 1 << 42;
        /// Permits that a claim of it takes of single limits.
        const COSTS = 1 << 43;
        /// What its claim, or the last one, has cost so far.
        const SPENT = 1 << 44;
        /// How many failures are followed by another try, -1 without end.
        const RETRIES = 1 << 45;
        /// How many leases on it were lost.
        const LAPSES = 1 << 46;
        /// What happened to it.
        const HISTORY = 1 << 47;
        /// Until when its worker keeps it if no heartbeat comes, Unix ms.
        const UNTIL = 1 << 48;
        /// How many of its children have not ended.
        const PENDING = 1 << 49;
        /// How many of its children ended without success.
        const UNSUCCESSFUL = 1 << 50;
    }
}

impl Fields {
    /// The field of this name.
    pub fn named(name: &[u8]) -> Option<Fields> {
        let mut all = Fields::all().iter_names();
        all.find(|(n, _)| name.eq_ignore_ascii_case(n.as_bytes())).map(|(_, field)| field)
    }
}

/// Which fields of a job to return, in which order.
pub type FieldList = Cow<'static, [Fields]>;

/// What a claim returns when the client asks for nothing else.
pub const CLAIM_FIELDS: FieldList = Cow::Borrowed(&[
    Fields::ID,
    Fields::TOKEN,
    Fields::ATTEMPT,
    Fields::DEADLINE,
    Fields::NAME,
    Fields::QUEUE,
    Fields::PAYLOAD,
]);

static ALL_FIELDS: LazyLock<Vec<Fields>> =
    LazyLock::new(|| Fields::all().difference(ON_REQUEST).iter().collect());

/// Fields that are returned only when the client asks for them: they may be long.
const ON_REQUEST: Fields = Fields::STEPS.union(Fields::SIGNALS).union(Fields::HISTORY);

/// Every field but those on request. The list is made once: making it took half the instructions of
/// JOB.GET.
pub fn all_fields() -> FieldList {
    Cow::Borrowed(&ALL_FIELDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name_and_groups_are_not() {
        assert_eq!(Fields::named(b"payload"), Some(Fields::PAYLOAD));
        assert_eq!(Fields::named(b"ToKeN"), Some(Fields::TOKEN));
        assert_eq!(Fields::named(b"claim"), None);
        assert_eq!(all_fields().len(), 47);
        assert_eq!(Fields::named(b"claimed"), Some(Fields::CLAIMED));
    }
}
