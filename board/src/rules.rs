//! Which value of a setting counts for a job: its own, its queue's, its board's, the server's.

use crate::board::Board;
use crate::job::{Job, State};
use crate::settings::{Rules, Setting};

impl Board {
    /// A value that only boards have.
    pub(crate) fn own(&self, setting: Setting) -> i64 {
        self.settings.get(setting).unwrap_or(setting.spec().default)
    }

    /// A value for the jobs of a queue: the queue's own, the board's, the server's.
    pub(crate) fn rule(&self, setting: Setting, queue: u32, rules: &Rules) -> i64 {
        let own = self.queues.get(queue).and_then(|q| q.settings.get(setting));
        own.or_else(|| self.settings.get(setting)).unwrap_or_else(|| rules.get(setting))
    }

    /// Each time that a job of a queue has waited so many ms it is worth one step of priority
    /// more; 0: never.
    pub(crate) fn ageing(&self, queue: u32) -> i64 {
        let own = self.queues.get(queue).and_then(|q| q.settings.get(Setting::Ageing));
        own.unwrap_or_else(|| self.own(Setting::Ageing))
    }

    pub(crate) fn job_rule(&self, job: &Job, setting: Setting, rules: &Rules) -> i64 {
        let options = self.class_of(job).map(|c| c.options).unwrap_or_default();
        let own = match setting {
            Setting::Lease => options.lease,
            Setting::Retries => options.retries,
            Setting::Lapses => options.lapses,
            Setting::BackoffBase => options.backoff.map(|(base, _)| base),
            Setting::BackoffMax => options.backoff.map(|(_, max)| max),
            Setting::Jitter => options.jitter,
            Setting::Timeout => options.timeout,
            Setting::Expire => options.expire,
            Setting::RetainComplete | Setting::RetainResult => options.retain,
            _ => None,
        };
        own.unwrap_or_else(|| self.rule(setting, self.queue_number(job), rules))
    }

    /// How long the record of a job that ends in that state stays, ms.
    pub(crate) fn retention(&self, state: State, rules: &Rules) -> i64 {
        let setting = match state {
            State::Failed => Setting::RetainFailed,
            State::Trashed => Setting::RetainTrashed,
            State::Cancelled => Setting::RetainCancelled,
            _ => Setting::RetainComplete,
        };
        self.rule(setting, u32::MAX, rules)
    }
}
