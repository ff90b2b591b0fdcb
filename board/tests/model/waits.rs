//! Who waits for whom, on the naive board.

use board::{After, OnFailure, State};

use crate::children::Batch;
use crate::naive::{Bytes, Job, Model, Way};

type Edge = (Bytes, OnFailure);

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    Waits,
    Met,
    Ends(State),
}

impl Model {
    /// Those who wait for a job, oldest first.
    pub fn waiters(&self, id: &[u8]) -> Vec<Bytes> {
        let waits = |job: &&Job| job.after.iter().any(|edge| edge.0 == id);
        let mut waiters: Vec<&Job> = self.jobs.iter().filter(waits).collect();
        waiters.sort_by_key(|job| job.order);
        waiters.into_iter().map(|job| job.id.clone()).collect()
    }

    /// A job and all that wait for it, near and far.
    pub fn with_waiters(&self, id: &[u8]) -> Vec<Bytes> {
        let mut all = vec![id.to_vec()];
        let mut at = 0;
        while let Some(next) = all.get(at).cloned() {
            let fresh = self.waiters(&next).into_iter().filter(|waiter| !all.contains(waiter));
            all.extend(fresh.collect::<Vec<_>>());
            at += 1;
        }
        all
    }

    /// What a job waits for, oldest first.
    pub fn edges(&self, job: &Job) -> Vec<Edge> {
        let mut edges = job.after.clone();
        edges.sort_by_key(|edge| self.jobs[self.at(&edge.0).unwrap()].order);
        edges
    }

    /// How a job has ended for those who wait for it.
    fn verdict(&self, id: &[u8]) -> State {
        let verdict = |job: &Job| match job.origin.is_some() && !job.state.ended() {
            true => State::Failed,
            false => job.state,
        };
        self.at(id).map_or(State::Complete, |at| verdict(&self.jobs[at]))
    }

    fn outcome(&self, edge: &Edge) -> Outcome {
        match (self.verdict(&edge.0), edge.1) {
            (State::Complete, _) => Outcome::Met,
            (state, _) if !state.ended() => Outcome::Waits,
            (_, OnFailure::Hold) => Outcome::Waits,
            (_, OnFailure::Run) => Outcome::Met,
            (_, OnFailure::Cancel) => Outcome::Ends(State::Cancelled),
            (_, OnFailure::Fail) => Outcome::Ends(State::Failed),
        }
    }

    /// What a job is to wait for, oldest first; `named`: the id that its post gives it.
    pub fn decide(
        &self,
        id: &[u8],
        named: Option<&[u8]>,
        after: &After<'_>,
        parent: Option<&[u8]>,
    ) -> Result<Vec<Edge>, String> {
        let mut edges: Vec<Edge> = Vec::new();
        let cycle = || Err("CYCLE a job would wait for itself".to_string());
        for (other, on_failure) in &after.jobs {
            if named == Some(*other) {
                return cycle();
            }
            if self.at(other).is_some() {
                edges.retain(|edge| edge.0 != *other);
                edges.push((other.to_vec(), *on_failure));
            } else if after.strict && self.tomb(other).is_none_or(|t| t.state != State::Complete) {
                return Err(format!("NOJOB no such job {}", crate::verbs::shown(other)));
            }
        }
        self.no_circle(id, edges.iter().map(|edge| &edge.0), after.children.is_some(), parent)?;
        edges.sort_by_key(|edge| self.jobs[self.at(&edge.0).unwrap()].order);
        Ok(edges)
    }

    pub fn attach(&mut self, id: &[u8], edge: Edge) {
        let outcome = self.outcome(&edge);
        if outcome == Outcome::Met {
            return self.detach(id, &edge.0);
        }
        let at = self.at(id).unwrap();
        let order = self.jobs[at].order;
        self.jobs[at].after.retain(|old| old.0 != edge.0);
        self.jobs[at].after.push(edge.clone());
        let other = self.at(&edge.0).unwrap();
        let other = &mut self.jobs[other];
        other.pinned = other.state.ended();
        if let Outcome::Ends(_) = outcome {
            self.resolutions.push_back((edge.0, other.order, Some(order)));
        }
    }

    pub fn reattach(&mut self, id: &[u8], edges: &[Edge]) {
        let old = self.edges(&self.jobs[self.at(id).unwrap()]);
        edges.iter().for_each(|edge| self.attach(id, edge.clone()));
        for edge in old {
            if !edges.iter().any(|e| e.0 == edge.0) {
                self.detach(id, &edge.0);
            }
        }
    }

    pub fn detach(&mut self, id: &[u8], other: &[u8]) {
        let at = self.at(id).unwrap();
        let before = self.jobs[at].after.len();
        self.jobs[at].after.retain(|edge| edge.0 != other);
        if self.jobs[at].after.len() < before {
            self.repin(other);
        }
    }

    pub fn detach_all(&mut self, id: &[u8]) {
        for edge in self.edges(&self.jobs[self.at(id).unwrap()]) {
            self.detach(id, &edge.0);
        }
    }

    pub fn unblock(&mut self, id: &[u8]) {
        let at = self.at(id).unwrap();
        let job = &self.jobs[at];
        let children = |batch: &Batch| batch.open || self.of_children(id, batch.on_failure) != Outcome::Met;
        let waits = job.waits_for_others() || job.batch.as_ref().is_some_and(children);
        if job.state == State::Blocked && !waits {
            self.wait(at, job.due);
        }
    }

    /// Why these may not be taken away.
    pub fn depended(&self, ids: &[&[u8]]) -> Result<(), String> {
        let known: Vec<&[u8]> = self.by_slot(ids);
        for id in known {
            if let Some(outside) = self.waiters(id).iter().find(|waiter| !ids.contains(&&waiter[..])) {
                return Err(format!("DEPENDED {}", crate::verbs::shown(outside)));
            }
        }
        Ok(())
    }

    fn by_slot<'a>(&self, ids: &[&'a [u8]]) -> Vec<&'a [u8]> {
        ids.iter().copied().filter(|id| self.at(id).is_some()).collect()
    }

    pub fn tell(&mut self, n: u32) {
        for _ in 0..n {
            let Some((id, order, from)) = self.resolutions.front().cloned() else { return };
            let job = self.at(&id).map(|at| &self.jobs[at]);
            let Some(from) = from else {
                let stands = job.is_some_and(|job| job.order == order);
                self.resolutions.pop_front();
                if stands {
                    self.resolve_children(&id);
                }
                continue;
            };
            let stands = job.is_some_and(|job| job.order == order) && self.verdict(&id).ended();
            let waiters = if stands { self.waiters(&id) } else { Vec::new() };
            let next = waiters.iter().map(|w| self.at(w).unwrap()).find(|at| self.jobs[*at].order >= from);
            let Some(at) = next else {
                self.resolutions.pop_front();
                continue;
            };
            let job = &self.jobs[at];
            self.resolutions[0].2 = Some(job.order + 1);
            let (waiter, edge) = (job.id.clone(), job.after.iter().find(|edge| edge.0 == id).unwrap());
            match self.outcome(edge) {
                Outcome::Waits => {}
                Outcome::Met => {
                    self.detach(&waiter, &id);
                    self.unblock(&waiter);
                }
                Outcome::Ends(state) => self.end_waiter(&waiter, &id, state),
            }
        }
    }

    pub fn untold(&self, job: &Job) -> bool {
        let edges = job.after.iter().any(|edge| self.outcome(edge) != Outcome::Waits);
        !self.resolutions.is_empty() && (edges || self.children_due(job))
    }

    pub fn resolve_one(&mut self, at: usize) {
        let id = self.jobs[at].id.clone();
        let edges = self.edges(&self.jobs[at]);
        for state in [State::Failed, State::Cancelled] {
            if let Some(first) = edges.iter().find(|edge| self.outcome(edge) == Outcome::Ends(state)) {
                return self.end_waiter(&id, &first.0, state);
            }
            let batch = self.jobs[at].batch.as_ref();
            if batch.is_some_and(|b| self.of_children(&id, b.on_failure) == Outcome::Ends(state)) {
                return self.end_for_children(&id, state);
            }
        }
        for edge in edges {
            if self.outcome(&edge) == Outcome::Met {
                self.detach(&id, &edge.0);
            }
        }
        self.resolve_children(&id);
    }

    fn end_waiter(&mut self, id: &[u8], cause: &[u8], state: State) {
        let other = self.verdict(cause).name();
        let text = [cause, b" ", other.as_bytes()].concat();
        let at = self.at(id).unwrap();
        if state == State::Cancelled {
            return self.call_off(at, Way::Taken, Some(&text));
        }
        self.jobs[at].kind = Some(b"dependency".to_vec());
        self.jobs[at].message = Some(text);
        self.end(at, State::Failed, self.retention(State::Failed));
    }
}
