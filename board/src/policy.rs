//! The settings that effects of time carry.
//!
//! A replica's configuration may differ from its primary's. So the primary sends the values that
//! applying the effect uses, except those that have their default value.

use crate::format::Written;
use crate::settings::{Rules, Setting};

const DAY: i64 = 86_400_000;

written! {
    /// Values for one effect. See the module's comment.
    #[derive(Debug, Clone, PartialEq)]
    pub(crate) struct Policy {
        1 retries: i64 = 10,
        2 backoff_base: i64 = 5_000,
        3 backoff_max: i64 = 3_600_000,
        4 jitter: i64 = 10,
        5 lapses: i64 = 5,
        6 retain_failed: i64 = 30 * DAY,
        7 retain_cancelled: i64 = DAY,
        8 lapse_delay: i64,
    }
}

impl Policy {
    /// The values for jobs that wait for an ended job.
    pub fn of_ends(rules: &Rules) -> Policy {
        Policy {
            retain_failed: rules.get(Setting::RetainFailed),
            retain_cancelled: rules.get(Setting::RetainCancelled),
            ..Policy::blank()
        }
    }

    /// These values, and those for claims that end.
    pub fn of_claims(rules: &Rules) -> Policy {
        Policy {
            retries: rules.get(Setting::Retries),
            backoff_base: rules.get(Setting::BackoffBase),
            backoff_max: rules.get(Setting::BackoffMax),
            jitter: rules.get(Setting::Jitter),
            lapses: rules.get(Setting::Lapses),
            lapse_delay: rules.get(Setting::LapseDelay),
            ..Policy::of_ends(rules)
        }
    }

    fn values(&self) -> [(Setting, i64); 8] {
        [
            (Setting::Retries, self.retries),
            (Setting::BackoffBase, self.backoff_base),
            (Setting::BackoffMax, self.backoff_max),
            (Setting::Jitter, self.jitter),
            (Setting::Lapses, self.lapses),
            (Setting::RetainFailed, self.retain_failed),
            (Setting::RetainCancelled, self.retain_cancelled),
            (Setting::LapseDelay, self.lapse_delay),
        ]
    }

    /// Rules with these values: effects of time use no others.
    pub fn rules(&self) -> Rules {
        let mut rules = Rules::default();
        self.values().into_iter().for_each(|(setting, value)| rules.set(setting, value));
        rules
    }

    /// Whether the table of settings allows every value.
    pub fn is_valid(&self) -> bool {
        self.values().iter().all(|(setting, value)| {
            let spec = setting.spec();
            (spec.min..=spec.max).contains(value)
        })
    }
}
