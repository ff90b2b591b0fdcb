//! Which value of a setting is in force: that of the job, its queue, its board or the server.

use crate::board::Board;
use crate::job::{Class, Job, State};
use crate::queue::Queue;
use crate::settings::{Rules, Setting};

/// The values in force for one job: its own, those of its queue, the board or the server.
pub(crate) struct JobRules<'a> {
    class: Option<&'a Class>,
    queue: Option<&'a Queue>,
    board: &'a Board,
    rules: &'a Rules,
}

impl JobRules<'_> {
    pub(crate) fn get(&self, setting: Setting) -> i64 {
        let own = self.class.and_then(|class| class.options().of(setting));
        let of_queue = || self.queue.and_then(|queue| queue.settings.get(setting));
        own.or_else(of_queue).unwrap_or_else(|| self.board.rule(setting, self.rules))
    }
}

impl Board {
    /// A setting that only boards have: its value, or the default.
    pub(crate) fn own(&self, setting: Setting) -> i64 {
        self.settings.get(setting).unwrap_or(setting.spec().default)
    }

    /// The value for the board: its own, or that of the server.
    pub(crate) fn rule(&self, setting: Setting, rules: &Rules) -> i64 {
        self.settings.get(setting).unwrap_or_else(|| rules.get(setting))
    }

    /// The value for the jobs of a queue, which need not exist: that of the queue, the board or the
    /// server.
    pub(crate) fn queue_rule(&self, setting: Setting, queue: impl Into<Option<u32>>, rules: &Rules) -> i64 {
        let own = queue.into().and_then(|queue| self.queues.get(queue)?.settings.get(setting));
        own.unwrap_or_else(|| self.rule(setting, rules))
    }

    /// After how many ms of waiting the priority of the queue's jobs rises by one, again and again; 0: never.
    pub(crate) fn ageing(&self, queue: u32) -> i64 {
        let own = self.queues.get(queue).and_then(|q| q.settings.get(Setting::Ageing));
        own.unwrap_or_else(|| self.own(Setting::Ageing))
    }

    pub(crate) fn job_rule(&self, job: &Job, setting: Setting, rules: &Rules) -> i64 {
        self.job_rules(job, rules).get(setting)
    }

    /// The values for a job, to ask for several.
    pub(crate) fn job_rules<'a>(&'a self, job: &Job, rules: &'a Rules) -> JobRules<'a> {
        let class = self.class_of(job);
        JobRules { class, queue: class.and_then(|class| self.queues.get(class.queue)), board: self, rules }
    }

    /// How long the record of a job that ends in this state is retained, ms.
    pub(crate) fn retention(&self, state: State, rules: &Rules) -> i64 {
        let setting = match state {
            State::Failed => Setting::RetainFailed,
            State::Trashed => Setting::RetainTrashed,
            State::Cancelled => Setting::RetainCancelled,
            _ => Setting::RetainComplete,
        };
        self.rule(setting, rules)
    }
}
