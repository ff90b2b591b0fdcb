//! The rules of a job's life, one by one, by behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

#[path = "life/advances.rs"]
mod advances;
#[path = "life/ageing.rs"]
mod ageing;
#[path = "life/asides.rs"]
mod asides;
#[path = "life/cancels.rs"]
mod cancels;
#[path = "life/concurrency.rs"]
mod concurrency;
#[path = "life/dependencies.rs"]
mod dependencies;
#[path = "life/ends.rs"]
mod ends;
#[path = "life/explain.rs"]
mod explain;
#[path = "life/failures.rs"]
mod failures;
#[path = "life/family.rs"]
mod family;
#[path = "life/flows.rs"]
mod flows;
#[path = "life/grace.rs"]
mod grace;
#[path = "life/groups.rs"]
mod groups;
#[path = "life/keys.rs"]
mod keys;
#[path = "life/labels.rs"]
mod labels;
#[path = "life/late.rs"]
mod late;
#[path = "life/limits.rs"]
mod limits;
#[path = "life/named.rs"]
mod named;
#[path = "life/news.rs"]
mod news;
#[path = "life/operators.rs"]
mod operators;
#[path = "life/order.rs"]
mod order;
#[path = "life/ownerless.rs"]
mod ownerless;
#[path = "life/pauses.rs"]
mod pauses;
#[path = "life/rates.rs"]
mod rates;
#[path = "life/reads.rs"]
mod reads;
#[path = "life/relocations.rs"]
mod relocations;
#[path = "life/schedules.rs"]
mod schedules;
#[path = "life/selections.rs"]
mod selections;
#[path = "life/sessions.rs"]
mod sessions;
#[path = "life/settings.rs"]
mod settings;
#[path = "life/since.rs"]
mod since;
#[path = "life/site.rs"]
mod site;
#[path = "life/stats.rs"]
mod stats;
#[path = "life/tenants.rs"]
mod tenants;
#[path = "life/workers.rs"]
mod workers;
mod world;
