//! Parents and children on the naive board: sums are made anew from the list each time, but
//! for children whose record has gone.

use board::{After, Node, Post, State, GENERATIONS};

use crate::naive::{Bytes, Model};
use crate::verbs::shown;

/// Whose child a job is; the number is never that of another job.
#[derive(Debug, Clone)]
pub struct Tie {
    pub parent: u64,
    pub share: u32,
    /// In hundred-thousandths of a per cent.
    pub counts: u32,
    pub kept: bool,
}

/// What counts of children that have no record any more.
#[derive(Debug, Clone, Default)]
pub struct Gone {
    pub count: u64,
    pub shares: u64,
    pub done: u64,
    /// How many ended without success.
    pub unsuccessful: u64,
}

impl Model {
    pub fn numbered(&self, number: u64) -> Option<usize> {
        self.jobs.iter().position(|job| job.number == number)
    }

    pub fn parent(&self, id: &[u8]) -> Option<usize> {
        self.numbered(self.jobs[self.at(id)?].tie.as_ref()?.parent)
    }

    /// Children with a record, oldest first.
    pub fn children(&self, id: &[u8]) -> Vec<Bytes> {
        let Some(at) = self.at(id) else { return Vec::new() };
        let number = self.jobs[at].number;
        let mut children: Vec<_> =
            self.jobs.iter().filter(|job| job.tie.as_ref().is_some_and(|tie| tie.parent == number)).collect();
        children.sort_by_key(|job| job.order);
        children.into_iter().map(|job| job.id.clone()).collect()
    }

    pub fn live_children(&self, id: &[u8]) -> Vec<Bytes> {
        let mut children = self.children(id);
        children.retain(|child| !self.jobs[self.at(child).unwrap()].state.ended());
        children
    }

    /// Count, weights and weight times progress of all children.
    pub fn sums(&self, id: &[u8]) -> Gone {
        let mut sums = self.jobs[self.at(id).unwrap()].gone.clone();
        for child in self.children(id) {
            let tie = self.jobs[self.at(&child).unwrap()].tie.as_ref().unwrap();
            sums.count += 1;
            sums.shares += u64::from(tie.share);
            sums.done += u64::from(tie.share) * u64::from(tie.counts);
        }
        sums
    }

    /// Of a deletion: those that wait for a job, those that are its live children, and so on.
    pub fn with_dependants(&self, id: &[u8]) -> Vec<Bytes> {
        let mut all = vec![id.to_vec()];
        let mut at = 0;
        while let Some(next) = all.get(at).cloned() {
            for other in self.waiters(&next).into_iter().chain(self.live_children(&next)) {
                if !all.contains(&other) {
                    all.push(other);
                }
            }
            at += 1;
        }
        all
    }

    pub fn childless(&self, ids: &[&[u8]]) -> Result<(), String> {
        for id in ids {
            if let Some(child) = self.live_children(id).iter().find(|child| !ids.contains(&&child[..])) {
                return Err(format!("DEPENDED {}", shown(child)));
            }
        }
        Ok(())
    }

    /// What keeps the record of a job that has ended may have changed.
    pub fn repin(&mut self, id: &[u8]) {
        let Some(at) = self.at(id) else { return };
        let job = &self.jobs[at];
        let kept = job.tie.as_ref().is_some_and(|tie| tie.kept);
        let held = kept || !self.waiters(id).is_empty() || !self.live_children(id).is_empty();
        let job = &mut self.jobs[at];
        let before = std::mem::replace(&mut job.pinned, held && job.state.ended());
        if before && !job.pinned && job.state.ended() && job.drop_at <= self.now {
            self.drop_with_tombstone(at);
        }
    }

    /// Why a job of that id, which may be new, cannot have that parent.
    pub fn check_parent(&self, id: Option<&[u8]>, post: &Post<'_>) -> Result<(), String> {
        let Some(parent) = post.parent else { return Ok(()) };
        let fault = |text: &str| Err(format!("{text} {}", shown(parent)));
        let Some(at) = self.at(parent) else { return fault("NOJOB no such job") };
        let state = self.jobs[at].state;
        if state.ended() {
            return fault(&format!("ENDED {}", state.name()));
        }
        let own = id.and_then(|id| self.at(id)).map(|at| &self.jobs[at]);
        let mut least = own.map_or(0, |job| job.height) + 1;
        let mut above = Some(at);
        while let Some(at) = above {
            let ancestor = &self.jobs[at];
            if own.is_some_and(|own| own.number == ancestor.number) {
                return fault("CYCLE a job would be its own ancestor");
            }
            if ancestor.height >= least {
                break;
            }
            if least > GENERATIONS {
                return fault("LIMIT generations");
            }
            least += 1;
            above = self.parent(&ancestor.id);
        }
        Ok(())
    }

    /// `share` is what it counted for before, also of a parent that has gone since.
    pub fn adopt(&mut self, id: &[u8], post: &Post<'_>, share: Option<u32>) {
        let Some(parent) = post.parent else { return };
        let at = self.at(id).unwrap();
        let number = self.jobs[self.at(parent).unwrap()].number;
        let old = self.jobs[at].tie.clone();
        self.leave_parent(id);
        let at = self.at(id).unwrap();
        let mut least = self.jobs[at].height + 1;
        let mut above = self.at(parent);
        while let Some(at) = above.filter(|at| self.jobs[*at].height < least) {
            self.jobs[at].height = least;
            least += 1;
            above = self.parent(&self.jobs[at].id.clone());
        }
        let share = post.share.or(share).unwrap_or(1);
        let same = old.filter(|tie| tie.parent == number);
        let own = self.mean(id).unwrap_or(0).max(1_000 * u32::from(self.jobs[at].progress.unwrap_or(0)));
        let job = &mut self.jobs[at];
        let counts = same.map_or(own, |tie| tie.counts);
        job.tie = Some(Tie { parent: number, share, counts, kept: false });
        self.repin(parent);
        self.show_mean(self.at(parent), true);
    }

    pub fn leave_parent(&mut self, id: &[u8]) {
        let parent = self.parent(id).map(|at| self.jobs[at].id.clone());
        let at = self.at(id).unwrap();
        if self.jobs[at].tie.take().is_none() {
            return;
        }
        if let Some(parent) = parent {
            self.show_mean(self.at(&parent), true);
            self.repin(&parent);
            self.child_left(&parent);
        }
    }

    pub fn is_mean(&self, id: &[u8]) -> bool {
        self.sums(id).shares > 0
    }

    /// The mean of what counts of the children, to the nearest; all of it only when all are done.
    fn mean(&self, id: &[u8]) -> Option<u32> {
        let Gone { shares, done, .. } = self.sums(id);
        match shares {
            0 => None,
            _ if done == shares * 10_000_000 => Some(10_000_000),
            _ => Some(((2 * done + shares) / (2 * shares)).min(9_999_999) as u32),
        }
    }

    pub fn count_progress(&mut self, id: &[u8], progress: u32, back: bool) {
        let parent = self.parent(id);
        let at = self.at(id).unwrap();
        let Some(tie) = self.jobs[at].tie.as_mut().filter(|_| parent.is_some()) else { return };
        let counts = if back { progress } else { progress.max(tie.counts) };
        if std::mem::replace(&mut tie.counts, counts) != counts {
            self.show_mean(parent, back);
        }
    }

    pub fn show_mean(&mut self, at: Option<usize>, back: bool) {
        let Some(at) = at else { return };
        let id = self.jobs[at].id.clone();
        let Some(mean) = self.mean(&id).filter(|_| !self.jobs[at].state.ended()) else { return };
        let job = &mut self.jobs[at];
        let far = if back { mean } else { mean.max(1_000 * u32::from(job.progress.unwrap_or(0))) };
        // What 32 generations can have rounded does not show.
        let hundredths = if far == 10_000_000 { 10_000 } else { ((far + 32) / 1_000).min(9_999) };
        job.progress = Some(hundredths as u16);
        self.count_progress(&id, far, back);
    }

    pub fn end_in_family(&mut self, id: &[u8], kept: bool) {
        let parent = self.parent(id).map(|at| self.jobs[at].id.clone());
        if let Some(parent) = parent {
            let at = self.at(id).unwrap();
            if self.jobs[at].state == State::Complete {
                self.count_progress(id, 10_000_000, false);
            }
            let lives = !self.jobs[self.at(&parent).unwrap()].state.ended();
            self.jobs[at].tie.as_mut().unwrap().kept = kept && lives;
            self.repin(&parent);
            self.child_left(&parent);
        }
        self.part(id);
    }

    pub fn part(&mut self, id: &[u8]) {
        if !self.children(id).is_empty() {
            self.partings.push_back((self.jobs[self.at(id).unwrap()].number, 0));
        }
    }

    pub fn begin_in_family(&mut self, id: &[u8], ended: bool) {
        if ended {
            match self.parent(id).map(|at| self.jobs[at].id.clone()) {
                None => self.leave_parent(id),
                Some(parent) => {
                    let at = self.at(id).unwrap();
                    self.jobs[at].tie.as_mut().unwrap().kept = false;
                    self.repin(&parent);
                }
            }
        }
        self.show_mean(self.at(id), false);
    }

    pub fn let_go(&mut self, n: u32) {
        for _ in 0..n {
            let Some((number, from)) = self.partings.front().copied() else { return };
            let lives = self.numbered(number).is_some_and(|at| !self.jobs[at].state.ended());
            let those = self.jobs.iter().filter(|job| job.tie.as_ref().is_some_and(|t| t.parent == number));
            let next = those.filter(|job| job.order >= from).min_by_key(|job| job.order);
            let Some((order, id)) = next.filter(|_| !lives).map(|job| (job.order, job.id.clone())) else {
                self.partings.pop_front();
                continue;
            };
            self.partings[0].1 = order + 1;
            let at = self.at(&id).unwrap();
            if std::mem::take(&mut self.jobs[at].tie.as_mut().unwrap().kept) {
                self.repin(&id);
            }
        }
    }

    /// Tries a flow job by job, and takes everything back when one is refused.
    pub fn flow(&mut self, nodes: &[Node<'_>], ids: &[Bytes]) -> bool {
        let before = self.clone();
        let done = self.try_flow(nodes, ids).is_ok();
        if !done {
            *self = before;
        }
        done
    }

    fn try_flow(&mut self, nodes: &[Node<'_>], ids: &[Bytes]) -> Result<(), String> {
        // A label first, then the id of a node.
        let by_label = |name: &[u8]| nodes.iter().position(|node| node.label == name);
        let node_of =
            |name: &[u8]| by_label(name).or_else(|| nodes.iter().position(|n| n.post.id == Some(name)));
        let mut left: Vec<usize> = (0..nodes.len()).collect();
        while !left.is_empty() {
            let waits = |at: &usize| {
                let after = nodes[*at].post.after.as_ref();
                after.is_some_and(|after| {
                    after.jobs.iter().any(|(id, _)| node_of(id).is_some_and(|other| left.contains(&other)))
                })
            };
            let at = left.iter().copied().find(|at| !waits(at)).ok_or("a circle")?;
            left.retain(|other| *other != at);
            let post = &nodes[at].post;
            let after = post.after.as_ref().map(|after| After {
                jobs: after.jobs.iter().map(|(id, on)| (node_of(id).map_or(*id, |n| &ids[n]), *on)).collect(),
                ..after.clone()
            });
            // A child is adopted when all have come.
            let post = Post { after, parent: None, ..post.clone() };
            self.in_flow = true;
            let done = self.post(&post, &ids[at]);
            self.in_flow = false;
            done?;
        }
        for (node, id) in nodes.iter().zip(ids) {
            let parent = node.post.parent.map(|name| node_of(name).map_or(name, |n| &ids[n]));
            let post = Post { parent, ..node.post.clone() };
            self.check_parent(Some(id), &post)?;
            let waits = |at: &usize| self.jobs[*at].batch.is_some();
            let parent = parent.and_then(|id| self.at(id)).filter(waits).map(|at| &self.jobs[at].id);
            if parent.is_some_and(|parent| self.behind(parent, None).contains(id)) {
                return Err("a circle".into());
            }
            self.adopt(id, &post, None);
        }
        Ok(())
    }
}
