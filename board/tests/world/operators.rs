//! What operators do in a world, and what workers say of themselves.

use board::*;

use super::{Bytes, Selected, World};

impl World {
    /// The slot of a job, time settled; `None` for an unknown id.
    fn named(&mut self, id: &[u8]) -> Option<u32> {
        self.settle(id);
        let slot = self.board.find(id);
        if slot.is_none() {
            self.commit();
        }
        slot
    }

    pub fn cancel(&mut self, id: &[u8], force: bool) -> Option<Result<&'static str, String>> {
        self.cancel_by(id, force, None)
    }

    pub fn cancel_by(
        &mut self,
        id: &[u8],
        force: bool,
        by: Option<&[u8]>,
    ) -> Option<Result<&'static str, String>> {
        let slot = self.named(id)?;
        if let Some(refusal) = by.and_then(|user| self.board.check_user(slot, user).err()) {
            self.commit();
            return Some(Err(refusal.to_string()));
        }
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.cancel(&env, slot, force).and_then(|answer| match answer {
            CancelAnswer::Already => Ok(answer),
            _ => self.board.check_depended(slot, &[slot]).map(|()| answer),
        });
        let done = match decided {
            Ok(CancelAnswer::Cancelled(effect)) => {
                self.act(effect);
                Ok("cancelled")
            }
            Ok(CancelAnswer::Requested(effect)) => {
                self.act(effect);
                Ok("requested")
            }
            Ok(CancelAnswer::Already) => Ok("already"),
            Err(refusal) => Err(refusal.to_string()),
        };
        self.commit();
        Some(done)
    }

    fn operated<'e>(&mut self, decided: Result<Effect<'e>, Refusal>) -> Option<Result<(), String>> {
        let done = decided.map(|effect| self.act(effect)).map_err(|r| r.to_string());
        self.commit();
        Some(done)
    }

    pub fn release(&mut self, id: &[u8]) -> Option<Result<(), String>> {
        self.release_to(id, false)
    }

    /// Releases a job, perhaps to the front of its priority.
    pub fn release_to(&mut self, id: &[u8], front: bool) -> Option<Result<(), String>> {
        let slot = self.named(id)?;
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.release(&env, slot, front);
        self.operated(decided)
    }

    pub fn requeue(&mut self, id: &[u8], to: To<'_>) -> Option<Result<(), String>> {
        self.requeue_with(id, &Requeue { to, ..Requeue::default() })
    }

    pub fn requeue_with(&mut self, id: &[u8], requeue: &Requeue<'_>) -> Option<Result<(), String>> {
        let slot = self.named(id)?;
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.requeue(&env, slot, requeue).map(Effect::from);
        self.operated(decided)
    }

    pub fn delete(&mut self, id: &[u8]) -> bool {
        match self.delete_all(&[id]) {
            Ok(n) => n == 1,
            Err(refusal) => panic!("{refusal}"),
        }
    }

    /// Deletes a selection; how many there were.
    pub fn delete_all(&mut self, ids: &[&[u8]]) -> Result<usize, String> {
        let ids: Vec<&[u8]> = ids.iter().copied().filter(|id| self.named(id).is_some()).collect();
        let slots: Vec<u32> = ids.iter().filter_map(|id| self.board.find(id)).collect();
        let mut chosen = slots.clone();
        chosen.sort_unstable();
        let among = self.board.live_children_among(&chosen);
        let check = |slot: &u32| {
            let depended = self.board.check_depended(*slot, &chosen);
            depended.and_then(|()| self.board.check_childless(*slot, &chosen, &among)).err()
        };
        let refused = chosen.iter().find_map(check);
        if refused.is_none() {
            for (id, slot) in ids.iter().zip(slots) {
                match self.board.record_of(slot).is_some() {
                    true => self.act(Deleted { slot }),
                    false => self.act(Forgotten { id }),
                }
            }
        }
        self.commit();
        refused.map_or(Ok(chosen.len()), |refusal| Err(refusal.to_string()))
    }

    /// The next slice of a selection by filters, and its deed unless it is dry. Gives the ids,
    /// in the order in which it was done, those held back, and where to go on.
    pub fn select(&mut self, selection: &Selection<'_>) -> Selected {
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let chosen = self.board.select(&env, selection);
        let id = |slot: &u32| self.board.record_of(*slot).unwrap().id().to_vec();
        let ids: Vec<Bytes> = chosen.slots.iter().map(id).collect();
        let held = chosen.held.iter().map(id).collect();
        let seqs: Vec<i64> = chosen.slots.iter().map(|slot| self.board.seq(*slot)).collect();
        let update = match selection.deed {
            Operation::Update(update) => Some(update),
            Operation::Label(_, update) => update,
            _ => None,
        };
        if let (Some(update), false) = (update, selection.dry || ids.is_empty()) {
            self.act(self.board.update_all(chosen.slots.clone(), update));
        }
        for (slot, seq) in chosen.slots.into_iter().zip(seqs).filter(|_| !selection.dry) {
            match selection.deed {
                Operation::Cancel { force } => match self.board.cancel(&env, slot, force).unwrap() {
                    CancelAnswer::Cancelled(effect) | CancelAnswer::Requested(effect) => self.act(effect),
                    CancelAnswer::Already => panic!("already cancelled"),
                },
                Operation::Release => self.act(self.board.release(&env, slot, false).unwrap()),
                Operation::Requeue(requeue) => self.act(self.board.requeue(&env, slot, &requeue).unwrap()),
                // One that was kept for another alone has gone with it.
                Operation::Delete if self.board.seq(slot) != seq => {}
                Operation::Delete => self.act(Deleted { slot }),
                Operation::Update(_) => {}
                Operation::Signal(signal) => match self.board.send_signal(slot, signal).unwrap() {
                    SignalAnswer::Wakes(effect) | SignalAnswer::Kept(effect) => self.act(effect),
                    other => panic!("a signal for nothing: {other:?}"),
                },
                Operation::Label(label, _) => {
                    let labelled = self.board.label(slot, label).unwrap();
                    labelled.into_iter().for_each(|effect| self.act(effect));
                }
            }
        }
        self.commit();
        Selected { ids, held, next: chosen.next }
    }

    pub fn depend(&mut self, id: &[u8], depend: &Depend<'_>) -> Option<Result<(), String>> {
        self.named(id)?;
        let done = Protocol::depend(self, id, depend).map_err(|r| r.to_string());
        self.commit();
        Some(done)
    }

    pub fn signal(&mut self, id: &[u8], signal: &Signal<'_>) -> Option<Result<&'static str, String>> {
        let slot = self.named(id)?;
        let done = match self.board.send_signal(slot, signal) {
            Ok(SignalAnswer::Wakes(signalled)) => {
                self.act(signalled);
                Ok("woken")
            }
            Ok(SignalAnswer::Kept(signalled)) => {
                self.act(signalled);
                Ok("kept")
            }
            Ok(SignalAnswer::Already) => Ok("already"),
            Ok(SignalAnswer::Ended) => Ok("ended"),
            Err(refusal) => Err(refusal.to_string()),
        };
        self.commit();
        Some(done)
    }

    pub fn label(&mut self, id: &[u8], label: &Label<'_>) -> Option<Result<(), String>> {
        let slot = self.named(id)?;
        let decided = self.board.label(slot, label);
        let done = decided.map(|effect| effect.into_iter().for_each(|e| self.act(e)));
        self.commit();
        Some(done.map_err(|refusal| refusal.to_string()))
    }

    pub fn update(&mut self, id: &[u8], update: &Update<'_>) -> Option<Result<(), String>> {
        let slot = self.named(id)?;
        let decided = self.board.update(slot, update).map(Effect::from);
        self.operated(decided)
    }

    /// Pauses; with `halt.release` the command itself takes back up to `slice` jobs.
    pub fn pause(&mut self, halt: &PauseRequest<'_>, slice: u32) {
        let rules = self.rules.clone();
        let env = self.env(&rules);
        if let Some(paused) = self.board.pause(&env, halt).unwrap() {
            self.act(paused);
        }
        if let Some(reclaimed) = self.board.reclaim(&env, slice) {
            self.act(reclaimed);
        }
        self.commit();
    }

    pub fn resume(&mut self, queue: Option<&[u8]>) -> bool {
        self.resume_group(queue, None)
    }

    pub fn resume_group(&mut self, queue: Option<&[u8]>, group: Option<&[u8]>) -> bool {
        self.resume_place(&PauseRequest { queue, group, ..PauseRequest::default() })
    }

    pub fn resume_place(&mut self, place: &PauseRequest<'_>) -> bool {
        let resumed = self.board.resume(place).unwrap();
        let some = resumed.is_some();
        if let Some(resumed) = resumed {
            self.act(resumed);
        }
        self.commit();
        some
    }

    /// Sets or resets a setting of a group, or of all, and looks at these.
    pub fn configure_group(&mut self, queue: &[u8], group: &[u8], setting: Setting, value: Option<i64>) {
        self.act(Configured { scope: Scope::Group(queue, group), setting, value });
        while let Some(reviewed) = self.board.review(2) {
            self.act(reviewed);
        }
        self.commit();
    }

    pub fn configure_limit(&mut self, limit: &[u8], setting: Setting, value: Option<i64>) {
        self.act(Configured { scope: Scope::Limit(limit), setting, value });
        self.commit();
    }

    /// Gives a queue or a group a list of limits, which are there.
    pub fn name_limits(&mut self, queue: &[u8], group: Option<&[u8]>, limits: Option<&[&[u8]]>) {
        self.act(LimitsNamed::new(queue, group, limits));
        self.commit();
    }

    /// Gives a queue a dead queue, or none.
    pub fn name_dead_queue(&mut self, queue: &[u8], dead: Option<&[u8]>) {
        self.act(DeadQueueNamed::new(queue, dead));
        self.commit();
    }

    pub fn configure(&mut self, queue: Option<&[u8]>, setting: Setting, value: Option<i64>) {
        self.act(Configured { scope: Scope::of_queue(queue), setting, value });
        self.commit();
    }

    // --- workers ---

    pub fn register(&mut self, register: &Register<'_>) -> Result<(), String> {
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.register(&env, register).map_err(|r| r.to_string());
        let done = decided.map(|registered| self.act(registered));
        self.commit();
        done
    }

    /// Ends a registration; the command itself ends up to `slice` claims.
    pub fn deregister(&mut self, worker: &[u8], slice: u32) -> bool {
        let Some(deregistered) = self.board.deregister(worker) else { return false };
        self.act(deregistered);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        if let Some(departed) = self.board.departs(&env, slice) {
            self.act(departed);
        }
        self.commit();
        true
    }

    /// A worker registers over a connection.
    pub fn registers_over(&mut self, worker: &[u8], connection: u64) {
        self.register(&Register { worker, session: true, ..Register::default() }).unwrap();
        self.board.attend_session(worker, connection);
    }

    pub fn quiet(&mut self, worker: &[u8], quiet: bool) -> Result<(), String> {
        let decided = self.board.quiet(worker, quiet).map_err(|r| r.to_string())?;
        if let Some(quieted) = decided {
            self.act(quieted);
        }
        self.commit();
        Ok(())
    }

    /// A connection carries the claim of a job, if there is one.
    pub fn bind(&mut self, id: &[u8], connection: u64) {
        self.settle(id);
        let slot = self.board.find(id).filter(|s| self.board.record_of(*s).unwrap().token().is_some());
        if let Some(slot) = slot {
            if !self.board.is_session(slot) {
                self.act(Bound { slot });
            }
            self.board.carry_session(slot, connection);
        }
        self.commit();
    }
}
