//! The rules of a job's life, one by one, by behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod advances;
mod ageing;
mod by_queue;
mod cancels;
mod children;
mod concurrency;
mod costs;
mod dead;
mod dependencies;
mod ends;
mod explain;
mod failures;
mod family;
mod flows;
mod grace;
mod groups;
mod keys;
mod labels;
mod late;
mod limits;
mod many_children;
mod named;
mod news;
mod operators;
mod order;
mod output;
mod ownerless;
mod pauses;
mod rates;
mod reads;
mod relocations;
mod scattered;
mod schedules;
mod selections;
mod sessions;
mod settings;
mod signals;
mod since;
mod site;
mod stats;
mod steps;
mod tenants;
mod workers;
#[path = "../world/mod.rs"]
mod world;
