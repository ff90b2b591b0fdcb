//! Which queues have ready jobs, and which have just got some.

use crate::board::Board;
use crate::job::NEVER;
use crate::local::Local;

/// No more queues than this are remembered as emptied: a copy that was a primary asks for none.
const EMPTIED_MOST: usize = 1_000;

impl Board {
    /// The queues that have ready jobs, by number.
    pub(crate) fn busy(&self) -> &[u32] {
        &self.local.busy
    }

    /// Marks that a queue has ready jobs.
    pub(crate) fn mark_busy(&mut self, number: u32) {
        let Some(queue) = self.queues.get_mut(number) else { return };
        if queue.local.busy_at.is_none() {
            queue.local.busy_at = Some(self.local.busy.len() as u32);
            self.local.busy.push(number);
            self.count_candidates();
        }
        self.review_candidates(number);
        self.mark_woken(number);
    }

    /// Marks a queue with ready jobs as one that may give one again.
    fn mark_woken(&mut self, number: u32) {
        let Some(queue) = self.queues.get_mut(number).filter(|queue| !queue.local.woken) else { return };
        queue.local.woken = true;
        self.local.woken.push(number);
    }

    /// A queue has no ready job any more.
    pub(crate) fn idle_queue(&mut self, queue: u32) {
        let Some(at) = self.queues.get_mut(queue).and_then(|q| q.local.busy_at.take()) else { return };
        if self.local.linger_end.0 < NEVER && self.local.emptied.len() < EMPTIED_MOST {
            let name = self.queue_named(queue).to_vec();
            self.local.emptied.push(name);
        }
        if at as usize >= self.local.busy.len() {
            return;
        }
        self.local.busy.swap_remove(at as usize);
        if let Some(moved) = self.local.busy.get(at as usize).copied() {
            if let Some(queue) = self.queues.get_mut(moved) {
                queue.local.busy_at = Some(at);
            }
        }
        self.review_candidates(queue);
        self.count_candidates();
    }

    /// Calls `each` with the number of each queue that has got ready jobs since the last call.
    pub fn woken(&mut self, mut each: impl FnMut(&mut Board, u32)) {
        while let Some(queue) = self.local.woken.pop() {
            if let Some(queue) = self.queues.get_mut(queue) {
                queue.local.woken = false;
            }
            each(self, queue);
        }
    }

    /// Whether an operator has ended a claim since the last call.
    pub fn taken(&mut self) -> bool {
        std::mem::take(&mut self.local.taken)
    }

    /// Whether a worker has stopped being quiet since the last call: it may wait for work.
    pub fn roused(&mut self) -> bool {
        std::mem::take(&mut self.local.roused)
    }

    /// Marks a queue with ready jobs as one that has just got them. O(1).
    pub(crate) fn wake_queue(&mut self, queue: u32) {
        if self.queues.get(queue).is_some_and(|queue| !queue.is_idle()) {
            self.mark_busy(queue);
        }
    }

    /// Marks the queue of this name, if it has ready jobs, as one that has just got them. O(1).
    pub fn wake_named(&mut self, name: &[u8]) {
        if let Some(queue) = self.queues.find(name) {
            self.wake_queue(queue);
        }
    }

    /// Marks queues that have waited for something that they share. O(queues), and O(1) while no
    /// client waits for work.
    pub(crate) fn wake_shared(&mut self, queues: impl FnOnce(&Board) -> Vec<u32>) {
        if self.local.unattended {
            return;
        }
        for queue in queues(self) {
            self.local.best_queue.look();
            if self.queues.get(queue).is_some_and(|queue| !queue.is_idle()) {
                self.mark_woken(queue);
            }
        }
    }

    /// Marks every queue with ready jobs as one that has just got them: clients may wait.
    pub fn wake_all(&mut self) {
        self.local.unattended = false;
        for queue in self.local.busy.clone() {
            self.mark_woken(queue);
        }
    }

    /// The same as [`Board::nobody_waits`], and no marks for what queues share are needed until a
    /// client does wait: see [`Board::wait_for_permits`].
    pub fn leave_unattended(&mut self) {
        self.nobody_waits();
        self.local.waits_for_next = false;
        self.local.unattended = true;
    }

    /// Drops these marks: no client waits for a claim.
    pub fn nobody_waits(&mut self) {
        self.local.roused = false;
        self.local.lingered = false;
        self.local.emptied.clear();
        self.woken(|_, _| ());
    }

    /// The queues that have lost their last ready job since the last call, while a client lingered.
    pub fn emptied(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.local.emptied)
    }

    /// Whether a client that waits for a batch has lingered long enough since the last call.
    pub fn lingered(&mut self) -> bool {
        std::mem::take(&mut self.local.lingered)
    }

    /// Whether any queue has got ready jobs since [`Board::woken`], any worker has stopped being
    /// quiet since [`Board::roused`], or [`Board::lingered`] or [`Board::emptied`] has an answer.
    pub fn has_woken(&self) -> bool {
        let Local { roused, lingered, woken, emptied, .. } = &self.local;
        *roused || *lingered || !woken.is_empty() || !emptied.is_empty()
    }

    /// The names of the queues that have got ready jobs since [`Board::woken`].
    pub fn woken_names(&self) -> impl Iterator<Item = &[u8]> {
        self.local.woken.iter().map(|queue| self.queue_named(*queue))
    }

    /// The names of the queues that have ready jobs.
    pub fn busy_names(&self) -> impl Iterator<Item = &[u8]> {
        self.local.busy.iter().map(|queue| self.queue_named(*queue))
    }

    /// The name of a queue.
    pub fn queue_named(&self, number: u32) -> &[u8] {
        self.queues.key(number).map_or(&[], |name| name)
    }
}
