//! What a snapshot holds of a job.

use std::borrow::Cow;

use crate::board::Board;
use crate::effect::is_grace;
use crate::item::{damaged, need, Item, Loading, SnapshotError};
use crate::job::costs::{are_costs, pack, PackedCosts};
use crate::job::id::{self, Id};
use crate::job::{is_time, Claim, Extras, Heads, Job, Options, Session, State};
use crate::job::{COSTS_MOST, DEFAULT_QUEUE, NEVER, U48};
use crate::places::labels::are_tags;
use crate::settings::{LONGEST, MOST};

written! {
    pub(crate) struct ClaimImage<'a> {
        1 pub(crate) worker: &'a [u8],
        2 pub(crate) token: u64,
        3 pub(crate) attempt: u32 = 1,
        4 pub(crate) cancel: bool,
        5 pub(crate) in_history: bool,
        6 pub(crate) claimed: i64,
        7 pub(crate) lease: i64 = 30_000,
        8 pub(crate) lease_end: i64,
        9 pub(crate) run_end: i64 = NEVER,
        10 pub(crate) grace: i64,
        11 pub(crate) cancel_end: i64 = NEVER,
        12 pub(crate) session: Session,
        13 pub(crate) in_grace: bool,
    }
}

impl ClaimImage<'_> {
    /// Loads a claim; returns its number.
    pub(crate) fn load(self, board: &mut Board, slot: u32) -> Result<u32, SnapshotError> {
        need((1..=255).contains(&self.worker.len()), "worker")?;
        need((1..=board.token).contains(&self.token) && self.attempt > 0, "claim")?;
        need((1..=LONGEST).contains(&self.lease), "lease")?;
        need(self.grace > 0 || !self.in_grace, "grace")?;
        need(is_grace(self.grace) && (self.cancel || self.cancel_end == NEVER), "claim")?;
        let times = [self.claimed, self.lease_end, self.run_end, self.cancel_end];
        need(times.into_iter().all(is_time), "time")?;
        let worker = match board.workers.names.find(self.worker) {
            Some(number) => number,
            None => board.workers.names.add(self.worker.into()).0,
        };
        board.workers.names.hold(worker);
        Ok(board.store.claims.insert(Claim {
            slot,
            worker,
            token: self.token,
            attempt: self.attempt,
            cancel: self.cancel,
            in_history: self.in_history,
            in_grace: self.in_grace,
            claimed: self.claimed,
            lease: self.lease,
            lease_end: self.lease_end,
            run_end: self.run_end,
            grace: self.grace,
            cancel_end: self.cancel_end,
            session: self.session,
        }))
    }
}

written! {
    pub(crate) struct JobImage<'a> {
        1 pub(crate) slot: u32,
        2 pub(crate) made: bool,
        3 pub(crate) id: Cow<'a, [u8]>,
        4 pub(crate) payload: &'a [u8],
        5 pub(crate) queue: &'a [u8] = DEFAULT_QUEUE,
        6 pub(crate) name: &'a [u8],
        7 pub(crate) options: Option<Options>,
        8 pub(crate) priority: i32,
        9 pub(crate) state: State = State::Ready,
        10 pub(crate) posted: i64,
        /// Only if it is not the time of the post.
        11 pub(crate) since: Option<i64>,
        12 pub(crate) at: i64 = NEVER,
        13 pub(crate) seq: i64,
        /// Only if it is not the order of the post.
        14 pub(crate) version: Option<i64>,
        15 pub(crate) claim: Option<ClaimImage<'a>>,
        16 pub(crate) extras: Option<Cow<'a, Extras>>,
        /// The number of its group in its queue.
        17 pub(crate) group: Option<u32>,
        18 pub(crate) ageing: i64,
        19 pub(crate) marks: Option<MarksImage<'a>>,
        /// What a claim takes from single limits, by name. Its own cost is among the options.
        20 pub(crate) costs: Vec<(&'a [u8], i64)>,
    }
}

written! {
    pub(crate) struct MarksImage<'a> {
        1 pub(crate) tags: Vec<&'a [u8]>,
        2 pub(crate) tracked: bool,
    }
}

impl<'a> Item<'a> for JobImage<'a> {
    fn each(board: &'a Board, mut put: impl FnMut(&Self)) {
        board.store.jobs.iter().for_each(|(slot, job)| put(&board.image(slot, job)));
    }

    fn load(self, board: &mut Board, loading: &mut Loading) -> Result<(), SnapshotError> {
        let revision = board.revision as i64;
        need(self.slot >= loading.next_slot, "slots out of order")?;
        loading.next_slot = self.slot.saturating_add(1);
        need((1..=255).contains(&self.id.len()), "id")?;
        need((1..=255).contains(&self.queue.len()) && self.name.len() <= 255, "name")?;
        let since = self.since.unwrap_or(self.posted);
        need([since, self.posted, self.at].into_iter().all(is_time), "time")?;
        let version = self.version.unwrap_or(self.seq);
        need((0..=revision).contains(&self.seq) && (0..=revision).contains(&version), "version")?;
        need(self.options.is_none_or(|o| o.is_valid()), "options")?;
        need(self.extras.as_ref().is_none_or(|r| r.is_valid()), "record")?;
        if let Some(marks) = &self.marks {
            let tags = || marks.tags.iter().map(|tag| &**tag);
            need(are_tags(tags()) && (marks.tracked || !marks.tags.is_empty()), "tags")?;
            board.mark(self.slot, tags(), marks.tracked).or(damaged("slot"))?;
        }
        let id = match self.made {
            true => {
                let bytes: [u8; 16] = (*self.id).try_into().or(damaged("id"))?;
                need(id::slot_of(&bytes) == self.slot, "id")?;
                Id::Made(bytes)
            }
            false => {
                need(board.find(&self.id).is_none(), "an id twice")?;
                Id::Named(&*self.id)
            }
        };
        need((0..=MOST).contains(&self.ageing), "ageing")?;
        need(self.claim.is_some() == (self.state == State::Claimed), "claim")?;
        let options = self.options.unwrap_or_default();
        let class = board.hold_class(self.queue, self.name, options);
        if let Some(at) = self.group {
            let queue = board.store.classes.key(class).ok_or(SnapshotError("class"))?.queue;
            let queue = board.queues.get_mut(queue);
            let fair = queue.and_then(|queue| queue.fair.as_deref_mut());
            fair.and_then(|fair| fair.groups.get_mut(at)).ok_or(SnapshotError("group"))?.refs += 1;
        }
        need(are_costs(self.costs.iter().copied(), COSTS_MOST), "costs")?;
        let costs = pack(&self.costs);
        let (group, ageing, cost) = (self.group, self.ageing, options.cost);
        let heads = Heads { group, ageing, cost, costs: PackedCosts::of(&costs) };
        let (posted, seq) = (U48::new(self.posted), U48::new(self.seq));
        let id = board.store.id_to_keep(id, self.slot, posted, seq);
        let mut job = Job::new(id, self.payload, class, self.priority, &heads);
        job.since = U48::new(since);
        job.posted = posted;
        job.at = U48::new(self.at);
        job.seq = seq;
        job.version = U48::new(version);
        job.state = self.state;
        job.extras = self.extras.map(|r| Box::new(r.into_owned()));
        if let Some(claim) = self.claim {
            job.at = U48::new(i64::from(claim.load(board, self.slot)?));
        }
        board.add_record(self.slot, job).or(damaged("slot"))
    }
}

impl Board {
    fn image<'a>(&'a self, slot: u32, job: &'a Job) -> JobImage<'a> {
        let claim = self.claim_of(job);
        let (made, id) = match self.store.id(slot, job) {
            Id::Made(bytes) => (true, Cow::Owned(bytes.to_vec())),
            Id::Named(name) => (false, Cow::Borrowed(name)),
        };
        let class = self.class_of(job);
        JobImage {
            slot,
            made,
            id,
            payload: job.payload(),
            queue: self.queue_name(job),
            name: class.map_or(&[], |c| &c.name),
            options: class
                .map(|class| Options { cost: job.cost(), ..*class.options() })
                .filter(|options| *options != Options::default()),
            priority: job.priority,
            state: job.state,
            posted: job.posted.get(),
            since: (job.since != job.posted).then(|| job.since.get()),
            at: if claim.is_some() { NEVER } else { job.at.get() },
            seq: job.seq.get(),
            version: (job.version != job.seq).then(|| job.version.get()),
            claim: claim.map(|c| ClaimImage {
                worker: self.worker_name(c),
                token: c.token,
                attempt: c.attempt,
                cancel: c.cancel,
                in_history: c.in_history,
                in_grace: c.in_grace,
                claimed: c.claimed,
                lease: c.lease,
                lease_end: c.lease_end,
                run_end: c.run_end,
                grace: c.grace,
                cancel_end: c.cancel_end,
                session: c.session,
            }),
            extras: job.extras.as_deref().map(Cow::Borrowed),
            group: job.group(),
            ageing: job.ageing(),
            marks: self.marks_image(slot),
            costs: job.costs().collect(),
        }
    }

    fn marks_image(&self, slot: u32) -> Option<MarksImage<'_>> {
        let (tags, tracked) = (self.places.labels.tags(slot), self.places.labels.tracked(slot));
        let some = tracked || tags.len() > 0;
        some.then(|| MarksImage { tags: tags.collect(), tracked })
    }
}
