//! The invariants of a board, checked from the records up: for tests, and for boards from files or
//! other servers.

use std::collections::BTreeMap;

use crate::board::Board;
use crate::dispatch::fair::PLAIN;
use crate::dispatch::pauses::{Pause, Place};
use crate::job::{Job, State, NEVER};
use crate::relations::dependencies::Outcome;
use crate::structures::sorted::SortedSlots;

impl Board {
    /// Checks every invariant; returns the first fault. O(n log n).
    pub fn check(&self) -> Result<(), String> {
        let mut counts = [0u64; 8];
        let mut places = Places::default();
        let mut tokens = Vec::new();
        let mut seqs = Vec::with_capacity(self.store.jobs.len());
        let mut heap = 0;
        let mut weights: BTreeMap<u32, usize> = BTreeMap::new();
        for (slot, job) in self.store.jobs.iter() {
            let fail = |what: &str| Err(format!("slot {slot}, {}: {what}", job.state.name()));
            if let Some(n) = counts.get_mut(job.state as usize) {
                *n += 1;
            }
            let found = self.store.id(slot, job).text(|id| self.find(id));
            if found != Some(slot) {
                return fail("its id leads elsewhere");
            }
            heap += job.heap();
            *weights.entry(self.queue_number(job)).or_default() += self.weight(job);
            seqs.push(job.seq.get());
            if self.class_of(job).is_none() {
                return fail("no class");
            }
            if job.seq.get() > self.revision as i64 || job.version.get() > self.revision as i64 {
                return fail("younger than its board");
            }
            self.check_edges(slot, job).or_else(fail)?;
            let timed = job.at.get() != NEVER;
            match job.state {
                State::Scheduled => places.due += 1,
                State::Blocked => {
                    places.blocked += 1;
                    places.waits += usize::from(job.wait_until() != NEVER);
                }
                State::Ready => {
                    places.ready += 1;
                    places.expiries += usize::from(timed);
                    if job.since.get() == NEVER {
                        return fail("never became ready");
                    }
                }
                State::Claimed => {
                    let Some(claim) = self.claim_of(job) else { return fail("no claim") };
                    if claim.slot != slot || claim.token > self.token || claim.attempt == 0 {
                        return fail("a claim that cannot be");
                    }
                    if !self.held(self.worker_name(claim), claim.token - 1).any(|s| s == slot) {
                        return fail("its worker does not know");
                    }
                    places.claims += 1;
                    tokens.push(claim.token);
                }
                _ => {
                    places.ended += 1;
                    places.drops += usize::from(timed);
                    if job.extras.as_ref().is_none_or(|r| r.ended == 0 && r.modified != 0) {
                        return fail("no time of its end");
                    }
                }
            }
        }
        if heap != self.store.heap {
            return Err(format!("records weigh {heap}, not {}", self.store.heap));
        }
        if self.queues.iter().any(|(n, _, queue)| queue.bytes != weights.get(&n).copied().unwrap_or(0)) {
            return Err("records of a queue do not weigh what it says".into());
        }
        tokens.sort_unstable();
        if tokens.windows(2).any(|w| matches!(w, [a, b] if a == b)) {
            return Err("two claims under one token".into());
        }
        seqs.sort_unstable();
        if seqs.windows(2).any(|w| matches!(w, [a, b] if a == b)) {
            return Err("two jobs of one place in the order".into());
        }
        if counts != self.places.counts {
            return Err(format!("counts are {:?}, not {counts:?}", self.places.counts));
        }
        let ready = self.queues.iter().map(|(_, _, q)| q.ready_len()).sum();
        let held = self.workers.names.iter().map(|(_, _, w)| w.claims.len()).sum::<usize>();
        let here = Places {
            due: self.places.due.len(),
            blocked: self.places.seldom.blocked.len(),
            waits: self.places.seldom.waits.len(),
            ready,
            expiries: self.places.seldom.expiries.len(),
            claims: self.store.claims.len(),
            ended: self.places.ended.lines().map(SortedSlots::len).sum(),
            drops: self.places.seldom.drops.len(),
        };
        if here != places || self.places.leases.len() != held || held != places.claims {
            return Err(format!(
                "places hold {here:?}, leases {}, workers {held}, not {places:?}",
                self.places.leases.len()
            ));
        }
        if self.store.classes.iter().any(|(_, class, _)| class.options().cost.is_some()) {
            return Err("a class has a cost".into());
        }
        self.check_waits()?;
        self.check_child_waits()?;
        self.check_labels()?;
        self.check_families()?;
        self.check_pauses()?;
        self.check_groups()?;
        self.check_named_limits()?;
        self.check_registrations()?;
        self.days.check()?;
        self.check_owners()?;
        self.check_by_queue()?;
        self.check_keys()?;
        self.schedules.check()?;
        self.check_order()
    }

    fn check_edges(&self, slot: u32, job: &Job) -> Result<(), &'static str> {
        let Some(extras) = &job.extras else {
            return if job.state == State::Blocked { Err("it waits for nothing") } else { Ok(()) };
        };
        if extras.waits() != (job.state == State::Blocked) {
            return Err("it waits, or does not, against its state");
        }
        if extras.remembered.waiting.as_ref().is_some_and(|waiting| extras.remembered.opens(&waiting.gate)) {
            return Err("it waits for what has arrived");
        }
        for edge in &extras.after {
            if edge.slot == slot || self.store.jobs.get(edge.slot).is_none() {
                return Err("it waits for what is not there");
            }
            if self.relations.waits.of(edge.slot, job.seq.get()).next() != Some((job.seq.get(), slot)) {
                return Err("what it waits for does not know");
            }
        }
        if self.relations.waits.of(slot, 0).count() != extras.awaited as usize {
            return Err("others wait for it, or do not, against its count");
        }
        if extras.updated.max(extras.closed) > self.revision as i64 {
            return Err("it was updated in the future");
        }
        let pinned = job.state.ended() && extras.pins().any();
        if pinned && job.at.get() != NEVER || !pinned && extras.drop_at != 0 {
            return Err("its time to go does not fit those who wait");
        }
        Ok(())
    }

    /// Checks that there is no cycle, that both sides know each edge, and that each edge to an
    /// ended job will be resolved.
    fn check_waits(&self) -> Result<(), String> {
        let blocked = |job: &Job| job.extras.as_ref().is_some_and(|extras| !extras.after.is_empty());
        let waiting = || self.store.jobs.iter().filter(|(_, job)| blocked(job));
        let edges = waiting().map(|(slot, _)| self.edges(slot).len()).sum::<usize>();
        if edges != self.relations.waits.len() {
            return Err(format!("{edges} edges, not {}", self.relations.waits.len()));
        }
        let mut left: BTreeMap<u32, usize> = waiting().map(|(s, _)| (s, self.edges(s).len())).collect();
        let mut free: Vec<u32> =
            self.store.jobs.iter().map(|(slot, _)| slot).filter(|slot| !left.contains_key(slot)).collect();
        while let Some(slot) = free.pop() {
            for (_, waiter) in self.relations.waits.of(slot, 0) {
                if let Some(n) = left.get_mut(&waiter) {
                    *n -= 1;
                    if *n == 0 {
                        left.remove(&waiter);
                        free.push(waiter);
                    }
                }
            }
        }
        if let Some(slot) = left.keys().next() {
            return Err(format!("slot {slot} waits in a circle"));
        }
        let mut informed: BTreeMap<(u32, i64), i64> = BTreeMap::new();
        for tell in self.relations.waits.resolutions.iter().filter(|tell| !tell.children) {
            let from = informed.entry((tell.slot, tell.seq)).or_insert(i64::MAX);
            *from = tell.from.min(*from);
        }
        for (slot, job) in waiting() {
            for edge in self.edges(slot).iter().filter(|edge| self.outcome(edge) != Outcome::Waits) {
                let seq = self.store.jobs.get(edge.slot).map_or(0, |other| other.seq.get());
                if informed.get(&(edge.slot, seq)).is_none_or(|from| *from > job.seq.get()) {
                    return Err(format!("slot {slot} is never informed of the end of {}", edge.slot));
                }
            }
        }
        Ok(())
    }

    fn check_pauses(&self) -> Result<(), String> {
        let queues = self.queues.iter().filter(|(_, _, queue)| queue.paused > 0).count();
        let groups = self.queues.iter().filter_map(|(_, _, queue)| queue.fair.as_deref());
        let groups = groups.flat_map(|fair| fair.groups.iter()).filter(|(_, g)| g.paused > 0).count();
        let limits = self.dispatch.limits.iter().filter(|(_, limit)| limit.paused > 0).count();
        let known = |(place, pause): (&Place, &Pause)| match place {
            Place::Board => true,
            Place::Queue(name, group) => {
                let queue = self.queues.find(&**name).and_then(|q| self.queues.get(q));
                queue.is_some_and(|queue| match group {
                    None => queue.paused == pause.until,
                    Some(group) => queue.group_named(group).is_some_and(|group| group.paused == pause.until),
                })
            }
            Place::Limit(name) => {
                let limit = self.dispatch.limits.find(name).and_then(|n| self.dispatch.limits.get(n));
                limit.is_some_and(|limit| limit.paused == pause.until) && pause.release.is_none()
            }
        };
        let parts = self.dispatch.pauses.iter().filter(|(place, _)| **place != Place::Board).count();
        let all = parts == queues + groups + limits;
        match self.dispatch.pauses.is_valid() && all && self.dispatch.pauses.iter().all(known) {
            true => Ok(()),
            false => Err("a pause that what it stops does not know, or the reverse".into()),
        }
    }

    /// Checks that every group knows its jobs, and has the place that its jobs and state demand.
    fn check_groups(&self) -> Result<(), String> {
        let mut known: BTreeMap<(u32, u32), [u32; 9]> = BTreeMap::new();
        let mut opened: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut rests = 0;
        for (_, job) in self.store.jobs.iter() {
            let Some(at) = job.group() else { continue };
            if job.state == State::Claimed || job.has_begun() {
                *opened.entry((self.queue_number(job), at)).or_default() += 1;
            }
            let counts = known.entry((self.queue_number(job), at)).or_default();
            for place in [job.state as usize, 8] {
                if let Some(n) = counts.get_mut(place) {
                    *n += 1;
                }
            }
        }
        for (number, name, queue) in self.queues.iter() {
            let fail = |what: &str| Err(format!("queue {name:?}: {what}"));
            let Some(fair) = &queue.fair else { continue };
            if fair.is_unused() || fair.review.is_some() != self.dispatch.reviews.contains(name) {
                return fail("rounds without groups");
            }
            if fair.bounds != fair.count_bounds() || fair.bounds > 0 && !self.local.bounded {
                return fail("limits of groups that nobody looks at");
            }
            let mut rounds: BTreeMap<i32, u32> = BTreeMap::new();
            let mut turns = 0;
            let groups = fair.groups.iter().map(|(at, group)| (at, &group.ready));
            for (at, line) in groups.chain([(PLAIN, &queue.ready)]) {
                let seat = fair.seat(at).ok_or("a group without a seat")?;
                fair.check_seat(at, line, &self.store.jobs, self.dispatch.turns).or_else(fail)?;
                turns += usize::from(seat.place.is_some());
                for level in seat.parked.keys().copied().chain(seat.top.map(|(level, _)| level)) {
                    *rounds.entry(level).or_default() += 1;
                }
            }
            if turns != fair.turns.len() + fair.own_limits.len()
                || !rounds.iter().eq(fair.rounds.iter().map(|(l, r)| (l, &r.groups)))
            {
                return fail("rounds of nobody");
            }
            let mut ready = 0;
            for (at, group) in fair.groups.iter() {
                let counts = known.remove(&(number, at)).unwrap_or_default();
                let [counts @ .., refs] = counts;
                if (group.counts, group.refs) != (counts, refs) || fair.find(&group.name) != Some(at) {
                    return fail("a group does not know its jobs");
                }
                let open = |slot: &u32| self.store.jobs.get(*slot).is_some_and(Job::has_begun);
                let lines = group.ready.iter_from(None, |_| Default::default());
                if lines.filter(open).count() != group.again.len()
                    || !group.again.iter().all(|(key, slot)| {
                        open(slot) && self.store.jobs.get(*slot).map(Job::ready_key) == Some(*key)
                    })
                    || group.open != opened.get(&(number, at)).copied().unwrap_or(0)
                {
                    return fail("a group does not know what it has begun");
                }
                let listed = group.rest.map(|until| (until, name.clone(), at));
                let paced = |limit: &u32| {
                    let limit = self.dispatch.limits.get(*limit);
                    limit.is_some_and(|limit| limit.refill.is_some() || limit.paused > 0)
                };
                let named = group.limits.as_ref().is_some_and(|list| list.iter().any(paced));
                if group.rest.is_some() && fair.refill(group).is_none() && !named
                    || listed.as_ref().is_some_and(|rest| !self.dispatch.rests.contains(rest))
                {
                    return fail("a group rests for nothing, or unknown to the clock");
                }
                rests += usize::from(listed.is_some());
                let here = |slot| self.store.jobs.get(slot).is_some_and(|job| job.group() == Some(at));
                if group.ready.len() as u64 != group.count(State::Ready)
                    || !group.ready.iter_from(None, |_| Default::default()).all(here)
                {
                    return fail("a line of a group holds others");
                }
                ready += group.ready.len();
            }
            let plain = |slot| self.store.jobs.get(slot).is_some_and(|job| job.group().is_none());
            if ready != fair.all.len() || !queue.ready.iter_from(None, |_| Default::default()).all(plain) {
                return fail("groups and their queue disagree");
            }
        }
        if rests != self.dispatch.rests.len() {
            return Err("a rest of no group".into());
        }
        match known.keys().next() {
            Some(at) => Err(format!("a job of a group that is not there: {at:?}")),
            None => Ok(()),
        }
    }

    fn check_order(&self) -> Result<(), String> {
        let at = |s: u32| self.store.jobs.get(s).map(Job::at_key);
        let ended = |s: u32| self.store.jobs.get(s).map(Job::ended_key);
        let lease = |s: u32| Some(self.store.lease_key(s));
        sorted("due", &self.places.due, at)?;
        sorted("expiries", &self.places.seldom.expiries, at)?;
        sorted("drops", &self.places.seldom.drops, at)?;
        sorted("leases", &self.places.leases, lease)?;
        sorted("blocked", &self.places.seldom.blocked, at)?;
        sorted("waits", &self.places.seldom.waits, |s| self.store.jobs.get(s).map(Job::wait_key))?;
        for line in self.places.ended.lines() {
            sorted("ended", line, ended)?;
        }
        for (_, _, queue) in self.queues.iter() {
            let groups = queue.fair.iter().flat_map(|fair| fair.groups.iter());
            for line in queue.ready_lines().chain(groups.map(|(_, group)| &group.ready)) {
                sorted("ready", line, |s| self.store.jobs.get(s).map(Job::ready_key))?;
            }
        }
        for (number, _, queue) in self.queues.iter() {
            let at = queue.local.busy_at.and_then(|at| self.busy().get(at as usize));
            if (at == Some(&number)) == queue.is_idle() {
                return Err("a queue is busy without ready jobs, or the reverse".into());
            }
        }
        self.check_candidates()?;
        Ok(())
    }
}

fn sorted<K: Ord + Copy + Default + 'static>(
    name: &str,
    line: &SortedSlots<K>,
    key_of: impl Fn(u32) -> Option<K>,
) -> Result<(), String> {
    let keys: Vec<Option<K>> = line.iter_from(None, |_| K::default()).map(&key_of).collect();
    match keys.windows(2).all(|w| matches!(w, [Some(a), Some(b)] if a < b)) {
        true => Ok(()),
        false => Err(format!("{name} is out of order")),
    }
}

#[derive(Debug, Default, PartialEq)]
struct Places {
    due: usize,
    blocked: usize,
    waits: usize,
    ready: usize,
    expiries: usize,
    claims: usize,
    ended: usize,
    drops: usize,
}
