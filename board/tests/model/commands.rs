//! The words of random commands. They name jobs, workers and tokens by how they stand to the
//! board, so that most of them do something whatever came before and shrinking keeps their sense.

use board::{Exists, OnConflict, OnFailure, OnTimeout, Options, Order, Retry, Setting, State, Until};

#[derive(Debug, Clone)]
pub enum Target {
    /// One of all ids ever used.
    Any(u8),
    /// One of the jobs in that state, if there is any.
    In(State, u8),
}

#[derive(Debug, Clone)]
pub enum Who {
    /// Who holds the job, or did last.
    Holder,
    /// Whoever holds it, or nobody.
    Anybody,
    Named(u8),
}

#[derive(Debug, Clone)]
pub enum Token {
    /// That of the claim, or of the last.
    Right,
    Absent,
    /// One given out before.
    Old(u8),
}

#[derive(Debug, Clone)]
pub struct Talk {
    pub progress: Option<u16>,
    pub stage: Option<u8>,
    pub payload: Option<u8>,
    pub meta: Vec<(u8, u8)>,
    pub log: bool,
}

/// Who a node of a flow names: another node, or any job.
#[derive(Debug, Clone)]
pub enum Other {
    Node(u8),
    Job(Target),
}

#[derive(Debug, Clone)]
pub struct Part {
    pub id: Option<u8>,
    pub queue: Option<u8>,
    pub delay: Option<i64>,
    pub after: Option<Vec<(Other, OnFailure)>>,
    pub children: Option<OnFailure>,
    pub strict: bool,
    pub parent: Option<Other>,
    pub share: Option<u32>,
    pub user: Option<u8>,
    pub most_live: Option<i64>,
    pub unique: Option<Key>,
    pub signals: Option<Signals>,
}

#[derive(Debug, Clone)]
pub enum Change {
    Add(Vec<(Target, OnFailure)>),
    Remove(Vec<Target>),
    AddChildren(OnFailure),
    RemoveSignals,
    RemoveChildren,
    Clear,
}

/// Which key, until when, for how long, and what on a conflict.
#[derive(Debug, Clone)]
pub struct Key(pub u8, pub Option<Until>, pub Option<i64>, pub OnConflict);

/// Which signals, whether any of them, within which time, and what then.
#[derive(Debug, Clone)]
pub struct Signals(pub Vec<u8>, pub bool, pub Option<i64>, pub OnTimeout);

/// A filter of a listing, for which a number chooses the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum More {
    Posted,
    Ended,
    Parent,
    After,
    Awaits,
    Id,
    Meta,
    Stage,
    Message,
    Contains,
}

#[derive(Debug, Clone)]
pub enum Act {
    Cancel(bool),
    Release,
    Requeue(Option<u8>, bool),
    Delete,
    Label(Vec<u8>, Vec<u8>, Option<bool>),
    Signal(u8, u8, Option<u8>),
    Update {
        priority: Option<i32>,
        queue: Option<u8>,
        delay: Option<i64>,
        talk: Option<Talk>,
        tag: Option<Vec<u8>>,
        unstep: Vec<u8>,
    },
}

/// What may come with the end of a claim.
#[derive(Debug, Clone)]
pub struct Extra {
    pub meta: Vec<(u8, u8)>,
    /// The queue in which the job must be.
    pub only_in: Option<u8>,
}

/// Limits and what each costs.
pub type Named = Vec<(u8, i64)>;

/// What a worker says of its claim beside a verb.
#[derive(Debug, Clone)]
pub struct Say {
    pub cost: Option<i64>,
    pub costs: Option<Named>,
    pub pause: Option<(u8, i64)>,
}

/// A chunk of output: how far its number is from the next one, and what it says.
pub type Written = (i64, u8);

#[derive(Debug, Clone)]
pub enum Command {
    Post {
        id: Option<u8>,
        again: bool,
        exists: Exists,
        queue: Option<u8>,
        name: Option<u8>,
        priority: Option<i32>,
        delay: Option<i64>,
        options: Options,
        meta: Vec<(u8, u8)>,
        after: Option<Vec<(Target, OnFailure)>>,
        children: Option<OnFailure>,
        strict: bool,
        group: Option<u8>,
        user: Option<u8>,
        tags: Option<Vec<u8>>,
        parent: Option<Target>,
        share: Option<u32>,
        most_live: Option<i64>,
        unique: Option<Key>,
        signals: Option<Signals>,
        costs: Option<Named>,
    },
    /// A verb of a worker, and what it says of its claim.
    Say(Say, Box<Command>),
    Label {
        id: Target,
        tag: Vec<u8>,
        untag: Vec<u8>,
        track: Option<bool>,
    },
    Flow(Vec<Part>),
    Depend {
        id: Target,
        what: Change,
        strict: bool,
    },
    Claim {
        worker: u8,
        queues: Vec<u8>,
        order: Order,
        lease: Option<i64>,
        count: usize,
    },
    ClaimId {
        worker: Who,
        id: Target,
        lease: Option<i64>,
    },
    Heartbeat {
        who: Who,
        id: Target,
        token: Token,
        lease: Option<i64>,
        talk: Option<Talk>,
        chunk: Option<Written>,
    },
    Step {
        who: Who,
        id: Target,
        token: Token,
        name: u8,
        value: u8,
        lease: Option<i64>,
        replace: bool,
        chunk: Option<Written>,
    },
    Await {
        who: Who,
        id: Target,
        token: Token,
        signals: Option<Signals>,
        children: Option<OnFailure>,
        step: Option<u8>,
        payload: bool,
    },
    Signal {
        id: Target,
        name: u8,
        value: u8,
        sender: Option<u8>,
    },
    Consume {
        who: Who,
        id: Target,
        token: Token,
        result: bool,
        retain: Option<i64>,
        payload: bool,
        force: bool,
        chunk: Option<Written>,
        extra: Extra,
    },
    Advance {
        who: Who,
        id: Target,
        token: Token,
        queue: u8,
        name: Option<u8>,
        delay: Option<i64>,
        priority: Option<i32>,
        payload: bool,
        after: Option<Vec<(Target, OnFailure)>>,
        children: Option<OnFailure>,
        chunk: Option<Written>,
        signals: Option<Signals>,
        extra: Extra,
        price: (Option<i64>, Option<Named>),
    },
    Fail {
        who: Who,
        id: Target,
        token: Token,
        kind: u8,
        message: bool,
        retry: Retry,
        payload: bool,
        retain: Option<i64>,
        extra: Extra,
    },
    Abandon {
        who: Who,
        id: Target,
        token: Token,
        delay: Option<i64>,
        reason: bool,
        extra: Extra,
    },
    Trash {
        who: Who,
        id: Target,
        token: Token,
        reason: bool,
        extra: Extra,
    },
    Cancel {
        id: Target,
        force: bool,
        by: Option<u8>,
    },
    Release(Target, bool),
    Requeue {
        id: Target,
        queue: Option<u8>,
        fresh: bool,
        payload: bool,
    },
    /// With all that wait for it, or alone.
    Delete(Target, bool),
    Update {
        id: Target,
        priority: Option<i32>,
        queue: Option<u8>,
        delay: Option<i64>,
        retries: Option<i64>,
        lease: Option<i64>,
        talk: Option<Talk>,
        unstep: Vec<u8>,
    },
    /// An operator's verb on a selection by the filters of a listing, slice by slice.
    Select {
        deed: Act,
        list: Box<Command>,
        count: usize,
        bytes: usize,
    },
    Configure {
        queue: Option<u8>,
        setting: Setting,
        value: Option<i64>,
    },
    /// A group, or all.
    ConfigureGroup {
        queue: u8,
        group: Option<u8>,
        setting: Setting,
        value: Option<i64>,
    },
    ConfigureLimit {
        limit: u8,
        setting: Setting,
        value: Option<i64>,
    },
    /// A queue, or a group of it, or all.
    NameDeadQueue {
        queue: u8,
        dead: Option<u8>,
    },
    NameLimits {
        queue: u8,
        group: Option<Option<u8>>,
        limits: Option<Vec<u8>>,
    },
    Pause {
        queue: Option<u8>,
        group: Option<u8>,
        limit: Option<u8>,
        time: Option<i64>,
        release: bool,
        slice: u32,
    },
    /// Of a queue, a group of it, or a limit.
    Resume(Option<u8>, Option<u8>, Option<u8>),
    Register {
        worker: u8,
        role: Option<u8>,
        meta: Vec<(u8, u8)>,
        time: Option<i64>,
        session: bool,
        anew: bool,
        line: Option<u64>,
    },
    Deregister {
        worker: u8,
        slice: u32,
    },
    Quiet(u8, bool),
    /// A connection carries the claim of a job.
    Bind(Target, u64),
    Close(u64),
    Rule {
        setting: Setting,
        value: i64,
    },
    Schedule {
        id: u8,
        every: Option<i64>,
        cron: Option<u8>,
        start: Option<i64>,
        end: Option<i64>,
        max: Option<u64>,
        backlog: Option<u8>,
        overlap: Option<u8>,
        jitter: Option<i64>,
        delay: Option<i64>,
        queue: Option<u8>,
        group: Option<u8>,
        tags: Option<Vec<u8>>,
        user: Option<u8>,
        most_live: Option<i64>,
        unique: Option<Key>,
        signals: Option<Signals>,
        costs: Option<Named>,
    },
    Unschedule(u8),
    PauseSchedule(u8, bool),
    RunSchedule(u8),
    Pass(i64),
    /// A recovery, for so many ms.
    Hold(i64),
    /// A time turn: so many slices of at most `n`.
    Turn {
        slices: u8,
        n: u32,
    },
    Drain,
    List {
        state: Vec<State>,
        queue: Vec<u8>,
        group: Vec<u8>,
        worker: Vec<u8>,
        name: Vec<u8>,
        lapsed: bool,
        tag: Vec<u8>,
        kind: Vec<u8>,
        tracked: bool,
        user: Vec<u8>,
        /// Filters that name no place and no label.
        more: Vec<(More, u8)>,
        /// Which of the filters stand behind NOT, a bit for each.
        not: u16,
        page: usize,
        reverse: bool,
    },
    Reload,
    ReplayOld,
    Gap,
}
