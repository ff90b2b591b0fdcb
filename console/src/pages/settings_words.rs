//! The settings as people think of them: in groups, each with its unit and meaning; commands.md says more.

pub struct Setting {
    pub name: &'static str,
    /// Empty for plain numbers and names.
    pub unit: &'static str,
    pub meaning: &'static str,
}

const fn setting(name: &'static str, unit: &'static str, meaning: &'static str) -> Setting {
    Setting { name, unit, meaning }
}

pub const GROUPS: [(&str, &[Setting]); 6] = [
    (
        "Leases and time",
        &[
            setting("lease", "ms", "how long a claim holds without a heartbeat"),
            setting("grace", "ms", "how much longer a worker keeps a job whose lease has ended"),
            setting(
                "cancel-grace",
                "ms",
                "how long a worker may continue after a request to cancel; -1: as long as its claim holds",
            ),
            setting("session-grace", "ms", "how long a worker whose connection has closed may come back"),
            setting("timeout", "ms", "how long one run may take; -1: no limit"),
            setting("expire", "ms", "how old a job may be and still be claimed; -1: no limit"),
        ],
    ),
    (
        "Retries",
        &[
            setting("retries", "", "failures that are followed by another try; -1: no limit"),
            setting("lapses", "", "lost leases that are followed by another try; -1: no limit"),
            setting(
                "lapse-delay",
                "ms",
                "the wait after a lost lease, doubled each time; 0: the job is ready at once",
            ),
            setting("backoff-base", "ms", "the wait before the first retry, doubled for each further one"),
            setting("backoff-max", "ms", "the longest wait before a retry"),
            setting("jitter", "%", "by how many percent that wait varies"),
            setting(
                "dead-queue",
                "",
                "the queue to which jobs move in place of failing for good; none when empty",
            ),
        ],
    ),
    (
        "Order, rates and limits",
        &[
            setting("concurrency", "", "how many jobs may run at once; -1: any number"),
            setting("rate", "", "permits in each rate-period; -1: no limit"),
            setting("rate-period", "ms", "the time in which `rate` permits arrive"),
            setting("burst", "", "at most this many permits are kept"),
            setting("limits", "", "its shared limits, with spaces between"),
            setting("weight", "", "turns of the group for each turn of a group with weight 1"),
            setting("ordered", "", "1: the group runs one job after the other"),
            setting("ageing", "ms", "ms of waiting that raise a job's priority by one; 0: never"),
        ],
    ),
    (
        "What is kept",
        &[
            setting("retain-complete", "ms", "how long a complete job without result is kept"),
            setting("retain-result", "ms", "how long a complete job with result is kept"),
            setting("retain-failed", "ms", "how long a failed job is kept"),
            setting("retain-trashed", "ms", "how long a trashed job is kept"),
            setting("retain-cancelled", "ms", "how long a cancelled job is kept"),
            setting("retain-output", "ms", "how long a job with output is kept at least"),
            setting("keep-complete", "", "how many complete jobs are kept"),
            setting("keep-failed", "", "how many failed jobs are kept"),
            setting("keep-trashed", "", "how many trashed jobs are kept"),
            setting("keep-cancelled", "", "how many cancelled jobs are kept"),
            setting("history-first", "", "first events of a job that are kept"),
            setting("history-last", "", "last events of a job that are kept"),
            setting("tombstones", "", "how many dropped jobs are remembered"),
            setting("tombstone-ttl", "ms", "how long dropped jobs are remembered"),
            setting("stats-days", "days", "days of statistics that are kept"),
        ],
    ),
    (
        "Bounds",
        &[
            setting("max-jobs", "", "how many jobs that have not ended there can be; -1: any number"),
            setting("max-bytes", "bytes", "how many bytes all records may have; -1: any number"),
            setting("max-queues", "", "how many queues there may be"),
            setting(
                "max-groups",
                "",
                "how many groups a queue has when no new one is set or paused any more",
            ),
            setting("max-schedules", "", "how many schedules there may be"),
            setting("max-keys", "", "how many unique keys may be taken at a time"),
            setting("max-steps", "", "how many steps a job may have"),
            setting("max-step-bytes", "bytes", "how many bytes the steps of a job may have"),
            setting("output-bytes", "bytes", "how many bytes of a job's output are kept; 0: no output"),
        ],
    ),
    (
        "Workers and events",
        &[
            setting("ownerless", "", "1: the worker `*` may end any job"),
            setting(
                "events",
                "",
                "which events are published: the sum of their bits, or names with commas between",
            ),
            setting("events-tracked", "", "1: only events of tracked jobs are published"),
        ],
    ),
];

/// What is known of a setting.
pub fn find(name: &str) -> Option<&'static Setting> {
    GROUPS.iter().flat_map(|(_, settings)| settings.iter()).find(|setting| setting.name == name)
}
