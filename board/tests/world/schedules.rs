//! Schedules in a world.

use board::*;

use super::{Bytes, World};

impl World {
    fn settle_schedule(&mut self, id: &[u8]) {
        let rules = self.rules.clone();
        while let Some(effect) = {
            let env = self.env(&rules);
            self.board.overdue_schedule(&env, id)
        } {
            self.act(effect);
        }
    }

    /// Decides and applies without a look at what time has left undone.
    fn scheduled<'e, T>(
        &mut self,
        decide: impl FnOnce(&Board, &Env<'_>) -> Result<(T, Option<Effect<'e>>), Refusal>,
    ) -> Result<T, String> {
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = decide(&self.board, &env).map_err(|r| r.to_string());
        let done = decided.map(|(value, effect)| {
            if let Some(effect) = effect {
                self.act(effect);
            }
            value
        });
        self.commit();
        done
    }

    pub fn set_schedule(&mut self, set: &SetSchedule<'_>) -> Result<(), String> {
        self.scheduled(|board, env| Ok(((), Some(board.set_schedule(env, set)?.into()))))
    }

    pub fn delete_schedule(&mut self, id: &[u8]) -> Result<(), String> {
        self.scheduled(|board, _| Ok(((), Some(board.delete_schedule(id)?.into()))))
    }

    pub fn pause_schedule(&mut self, id: &[u8], paused: bool) -> Result<(), String> {
        self.scheduled(|board, env| Ok(((), board.pause_schedule(env, id, paused)?.map(Effect::from))))
    }

    pub fn run_schedule(&mut self, id: &[u8]) -> Result<Option<Bytes>, String> {
        self.scheduled(|board, env| {
            let fired = board.run_schedule(env, id)?;
            Ok((fired.as_ref().map(Fired::child), fired.map(Effect::from)))
        })
    }

    /// Does with one schedule what time should have done.
    pub fn catch_up(&mut self, id: &[u8]) {
        self.settle_schedule(id);
        self.commit();
    }
}
