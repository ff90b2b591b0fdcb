//! The effect of a post: a job is added to the board, or replaces another.

use std::borrow::Cow;

use crate::board::Board;
use crate::effect::{is_name, ApplyError, Meta, Validate};
use crate::job::awaited::{Edge, OnFailure};
use crate::job::costs::{are_costs, pack, PackedCosts};
use crate::job::gate::Gate;
use crate::job::id::{self, Id};
use crate::job::remembered::{gate_bytes, Remembered};
use crate::job::unique_key::{Unique, Until};
use crate::job::DEFAULT_QUEUE;
use crate::job::{Costs, End, Extras, Heads, Job, Options, State, COSTS_MOST, NEVER, U48};
use crate::places::happened::{Firing, Happened};
use crate::places::labels::are_tags;
use crate::quotas::{self, rare_bytes, RECORD};
use crate::relations::cycles::Coming;
use crate::structures::byte_string::ByteString;
use crate::structures::lazy::Lazy;

written! {
    /// A job was posted, or replaced the one with its id: options that the post does not name stay
    /// then, and everything else starts again.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Posted<'a> {
        1 pub(super) slot: u32,
        2 pub(super) replaces: bool,
        3 pub(super) made: Option<[u8; 16]>,
        4 pub(super) id: Cow<'a, [u8]>,
        5 pub(super) payload: &'a [u8],
        6 pub(super) queue: Option<&'a [u8]>,
        7 pub(super) name: Option<&'a [u8]>,
        8 pub(super) group: Option<&'a [u8]>,
        9 pub(super) priority: Option<i32>,
        10 pub(super) due: Option<i64>,
        11 pub(super) options: Option<Options>,
        /// Options that few posts have: most neither carry nor write them.
        12 pub(super) more: Option<Box<More<'a>>>,
    }
}

written! {
    /// The rare options of a post.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct More<'a> {
        1 pub(super) meta: Meta<'a>,
        2 pub(super) after: Option<Vec<Edge>>,
        3 pub(super) user: Option<&'a [u8]>,
        4 pub(super) tags: Option<Vec<&'a [u8]>>,
        5 pub(super) unique: Option<KeyTaken<'a>>,
        /// The slot of its parent, and its weight among the children.
        6 pub(super) parent: Option<(u32, u32)>,
        /// The signals that must arrive before it runs.
        7 pub(super) gate: Option<Box<Gate>>,
        /// What a claim takes from single limits, by name.
        8 pub(super) costs: Option<Costs<'a>>,
        /// It waits for its children.
        9 pub(super) children: Option<OnFailure>,
        /// Whether a flow may still add children to it.
        10 pub(super) open: bool,
    }
}

written! {
    /// The unique key that a post takes.
    #[derive(Debug, Clone, PartialEq)]
    pub struct KeyTaken<'a> {
        1 pub(super) key: &'a [u8],
        2 pub(super) until: Option<Until>,
        3 pub(super) time: Option<i64>,
        /// Whether it replaces the holder of the key, and the holder's due time and place in line
        /// stay.
        4 pub(super) keeps: bool,
    }
}

impl More<'_> {
    /// Whether it names something that stays in the job's own record.
    fn is_rare(&self) -> bool {
        !self.meta.is_empty() || self.user.is_some() || self.unique.is_some() || self.gate.is_some()
    }
}

impl KeyTaken<'_> {
    fn owned(&self) -> Unique {
        Unique::new(self.key, self.until, self.time)
    }
}

impl Validate for Posted<'_> {
    fn is_valid(&self, board: &Board) -> bool {
        let id = match &self.made {
            Some(bytes) => id::slot_of(bytes) == self.slot,
            None => is_name(&self.id),
        };
        let free = || self.text(|id| board.find(id).is_none());
        id && self.queue.is_none_or(is_name)
            && self.name.is_none_or(|name| name.len() <= 255)
            && self.options.is_none_or(|o| o.is_valid())
            && self.group.is_none_or(is_name)
            && (self.replaces || free() && self.slot == board.store.jobs.next_free())
            && self.more.as_ref().is_none_or(|more| {
                let More { meta: _, after, user, tags, unique, parent, gate, costs, children, open } =
                    &**more;
                let adopted = parent.map(|(slot, _)| slot);
                let coming = Coming { children: children.is_some(), parent: adopted };
                (children.is_some() || !open)
                    && (after.is_some() || children.is_none())
                    && parent.is_none_or(|tie| board.is_tie(self.slot, tie))
                    && (after.is_some() || !self.replaces || {
                        let kept = board.kept(self.slot, adopted);
                        board.is_acyclic(self.slot, board.edges(self.slot), kept)
                    })
                    && gate.as_ref().is_none_or(|gate| gate.is_valid())
                    && costs.as_ref().is_none_or(|costs| are_costs(costs.iter().copied(), COSTS_MOST))
                    && user.is_none_or(is_name)
                    && unique.as_ref().is_none_or(|k| k.owned().is_valid() && (self.replaces || !k.keeps))
                    && tags.as_ref().is_none_or(|tags| are_tags(tags.iter().map(|tag| &**tag)))
                    && after.as_ref().is_none_or(|edges| board.sound_edges(self.slot, &[], edges, coming))
            })
    }
}

impl Posted<'_> {
    /// The job that it replaces.
    pub fn replaced(&self) -> Option<u32> {
        self.replaces.then_some(self.slot)
    }

    /// Calls `f` with the job's id as clients see it.
    pub fn text<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        self.full_id().text(f)
    }

    fn unique(&self) -> Option<&KeyTaken<'_>> {
        self.more.as_ref()?.unique.as_ref()
    }

    fn costs(&self) -> Option<&Costs<'_>> {
        self.more.as_ref()?.costs.as_ref()
    }

    fn full_id(&self) -> Id<&[u8]> {
        match self.made {
            Some(bytes) => Id::Made(bytes),
            None => Id::Named(&self.id),
        }
    }

    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        self.enter(board, now, None)
    }

    /// The job comes in, or replaces the one with its id; `fired` when a schedule posts it.
    pub(super) fn enter(&self, board: &mut Board, now: i64, fired: Option<Firing>) -> Result<(), ApplyError> {
        let before = if self.replaces { board.job(self.slot)?.state } else { State::Ready };
        let kept = self.kept(board)?;
        match self.replaces {
            true => self.begin_afresh(board, now, kept.map(|(since, _)| since))?,
            false => self.begin(board, now)?,
        }
        let more = self.more.as_deref();
        if fired.is_some() || more.is_some_and(More::is_rare) {
            board.edit(self.slot, |job| {
                let extras = job.extras_mut();
                if let Some((at, _)) = fired {
                    (extras.intended, extras.modified) = (Some(at), now);
                }
                let Some(more) = more else { return Ok(()) };
                extras.set_meta(more.meta.iter().map(|(f, v)| (&**f, &**v)));
                extras.user = more.user.map(ByteString::from).or(extras.user.take());
                if let (Some(unique), None) = (&more.unique, kept) {
                    extras.unique = Some(Box::new(unique.owned()));
                }
                if more.gate.is_some() {
                    extras.remembered.gate = more.gate.clone();
                }
                Ok(())
            })?;
        }
        if let Some(tags) = more.and_then(|more| more.tags.as_ref()) {
            let tracked = board.places.labels.tracked(self.slot);
            board.mark(self.slot, tags.iter().map(|tag| &**tag), tracked)?;
        }
        board.index_labels(self.slot)?;
        if kept.is_none() && (self.replaces || more.is_some()) {
            board.take_key(self.slot, now)?;
        }
        if let Some(edges) = more.and_then(|more| more.after.as_ref()) {
            board.reattach(self.slot, edges, now)?;
            board.end_child_wait(self.slot, now)?;
        }
        if let Some(More { children: Some(on_failure), open, .. }) = more {
            board.ask_for_children(self.slot, *on_failure, (false, *open))?;
        }
        let due = kept.map_or(self.due, |(_, due)| due).filter(|due| *due > now);
        board.happened(self.slot, &Happened::Posted { due, replaces: self.replaces, fired })?;
        match self.replaces || more.is_some() {
            true => board.comes_in(self.slot, due.unwrap_or(now), before, true, now)?,
            false => board.make_due(self.slot, due.unwrap_or(now), now)?,
        }
        match more.and_then(|more| more.parent) {
            Some((parent, share)) => board.make_child(self.slot, parent, share, now),
            None => Ok(()),
        }
    }

    fn begin(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let queue = self.queue.unwrap_or(DEFAULT_QUEUE);
        let options = self.options.unwrap_or_default();
        let class = board.hold_class(queue, self.name.unwrap_or_default(), options);
        let group = self.group.map(|name| board.hold_group_of(class, name)).transpose()?;
        let queue = board.store.classes.key(class).ok_or(ApplyError)?.queue;
        let packed = self.costs().map(|costs| pack(costs));
        let costs = packed.as_deref().map(PackedCosts::of).unwrap_or_default();
        let heads = Heads { group, ageing: board.ageing(queue), cost: options.cost, costs };
        let (posted, seq) = (U48::new(now), U48::new(board.revision() as i64));
        let id = board.store.id_to_keep(self.full_id(), self.slot, posted, seq);
        let mut job = Job::new(id, self.payload, class, self.priority.unwrap_or(0), &heads);
        (job.posted, job.seq) = (posted, seq);
        board.add_record(self.slot, job)
    }

    /// What limits must allow; `bounded` when the live jobs of its user are bounded, `fired` when a
    /// schedule posts it.
    pub(super) fn coming<'p>(&'p self, board: &'p Board, bounded: bool, fired: bool) -> quotas::Coming<'p> {
        let old = board.store.jobs.get(self.slot).filter(|_| self.replaces);
        let more = self.more.as_deref();
        let meta = more.map_or(0, |more| more.meta.iter().map(|(f, v)| f.len() + v.len() + 32).sum());
        let user = more.and_then(|more| more.user);
        let bytes = match old {
            Some(job) => board.weight(job) - job.payload().len() + self.payload.len() + meta,
            None => {
                let key = self.unique().map_or(0, |unique| unique.owned().bytes());
                let edges = more.and_then(|more| more.after.as_deref()).map_or(0, std::mem::size_of_val);
                let gate = more.and_then(|more| more.gate.as_deref()).map_or(0, gate_bytes);
                let rare = meta + key + edges + gate + user.map_or(0, <[u8]>::len);
                let extras = if fired { std::mem::size_of::<Extras>() + rare } else { rare_bytes(rare) };
                let id = self.made.map_or(1 + self.id.len(), |id| id.len());
                let cost = self.options.is_some_and(|options| options.cost.is_some());
                let costs = self.costs().map_or(0, |costs| 2 + pack(costs).len());
                let heads = 4 * (usize::from(self.group.is_some()) + usize::from(cost)) + costs;
                RECORD + id + heads + self.payload.len() + extras
            }
        };
        let name = || self.name.or_else(|| Some(&*board.class_of(old?)?.name)).unwrap_or_default();
        quotas::Coming {
            old: old.map(|_| self.slot),
            queue: self.queue.unwrap_or_else(|| old.map_or(DEFAULT_QUEUE, |job| board.queue_name(job))),
            group: self.group.or_else(|| board.group_name(old?)),
            bytes,
            owner: user.filter(|_| bounded).map(|user| (user, name())),
        }
    }

    /// Place in line and due time of a replaced holder, if both stay.
    fn kept(&self, board: &Board) -> Result<Option<(U48, Option<i64>)>, ApplyError> {
        if !self.unique().is_some_and(|unique| unique.keeps) {
            return Ok(None);
        }
        let job = board.job(self.slot)?;
        match job.state {
            State::Ready => Ok(Some((job.since, None))),
            State::Scheduled | State::Blocked => Ok(Some((job.since, Some(job.at.get())))),
            _ => Err(ApplyError),
        }
    }

    /// `kept` is the place in line of a replaced holder of the key, if it stays.
    fn begin_afresh(&self, board: &mut Board, now: i64, kept: Option<U48>) -> Result<(), ApplyError> {
        let keeps = kept.is_some();
        if !keeps {
            board.free_key(self.slot);
        }
        if let Some(claim) = board.leave(self.slot)? {
            board.settle_claim(self.slot, &claim, End::Taken, "replaced", now)?;
        }
        // The waits that end here: that for signals begins anew.
        board.end_waiting(self.slot, now)?;
        if board.child_wait(self.slot).is_some_and(|wait| wait.run) {
            board.end_child_wait(self.slot, now)?;
        }
        board.unindex_labels(self.slot)?;
        board.edit(self.slot, |job| {
            job.set_payload(self.payload);
            if let Some(priority) = self.priority {
                job.priority = priority;
            }
            let extras = job.extras_mut();
            extras.change_family(|family| family.waived = false);
            let gate = extras.remembered.there().and_then(|remembered| remembered.gate.take());
            *extras = Extras {
                meta: std::mem::take(&mut extras.meta),
                history: std::mem::take(&mut extras.history),
                last_claim: extras.last_claim.take(),
                modified: now,
                after: std::mem::take(&mut extras.after),
                awaited: extras.awaited,
                user: extras.user.take(),
                family: extras.family.take(),
                unique: extras.unique.take(),
                retrying: if keeps { std::mem::take(&mut extras.retrying) } else { Lazy::default() },
                remembered: Lazy::from(Remembered { gate, ..Remembered::default() }),
                ..Extras::default()
            };
            if let Some(last) = &mut extras.last_claim {
                last.end = End::Taken;
            }
            if let Some(tried) = extras.retrying.there() {
                tried.stale = Vec::new();
            }
            Ok(())
        })?;
        let options = self.options.unwrap_or_default();
        board.reclass(self.slot, self.queue, self.name, options)?;
        if options.cost.is_some() || self.costs().is_some() {
            let packed = self.costs().map(|costs| pack(costs));
            board.edit(self.slot, |job| {
                job.set_costs(options.cost, packed.as_deref().map(PackedCosts::of));
                Ok(())
            })?;
        }
        if let Some(name) = self.group {
            board.regroup(self.slot, name)?;
        }
        board.set_seq(self.slot, board.revision() as i64)?;
        board.job_mut(self.slot)?.since = kept.unwrap_or(U48::new(NEVER));
        Ok(())
    }
}

impl Board {
    /// A job that is in no place comes in: it begins, begins anew, or goes on in another queue. It
    /// was in the state `before`; `armed` when it waits for the signals that its post named.
    pub(super) fn comes_in(
        &mut self,
        slot: u32,
        due: i64,
        before: State,
        armed: bool,
        now: i64,
    ) -> Result<(), ApplyError> {
        self.renew_ageing(slot)?;
        if armed {
            self.arm(slot, now)?;
        }
        self.make_due(slot, due, now)?;
        self.begin_in_family(slot, before, now)
    }
}
