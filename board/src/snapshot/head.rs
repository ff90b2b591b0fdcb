//! What a snapshot holds of the board itself.

use crate::board::{Board, REVISIONS, TURNS};
use crate::dispatch::buckets::{Bucket, Refill};
use crate::dispatch::Dispatch;
use crate::events::changes::Removed;
use crate::item::{need, Item, Loading, SnapshotError};
use crate::job::store::Store;
use crate::job::{NEVER, TOKENS};
use crate::places::Places;
use crate::quotas::Quotas;
use crate::relations::Relations;
use crate::settings::{Level, Overrides};
use crate::workers::Workers;

written! {
    pub(super) struct Head {
        1 revision: u64,
        2 token: u64,
        3 broken: bool,
        4 settings: Overrides,
        5 turns: u64,
        6 bucket: Option<Bucket>,
        7 unknown: u64,
        8 created: i64,
    }
}

impl<'a> Item<'a> for Head {
    fn each(board: &'a Board, mut put: impl FnMut(&Self)) {
        // This names every field of a board: a new field must be put into one of these groups.
        let Board {
            // Written in this item.
            revision,
            created,
            token,
            broken,
            settings,
            dispatch: Dispatch { turns, rate, pauses: _, limits: _, rests: _, reviews: _ },
            removed: Removed { unknown, ring: _, heap: _ },
            // Written in items of their own.
            store: Store { jobs: _, claims: _, ids: _, classes: _, seeds: _, heap: _, allotted: _ },
            queues: _,
            schedules: _,
            days: _,
            quotas: Quotas { keys: _, owners: _ },
            relations: Relations { waits: _, families: _ },
            workers: Workers { registrations: _, names: _ },
            places:
                Places { labels: _, tombstones: _, counts: _, kinds: _, due: _, leases: _, seldom: _, ended: _ },
            // A board with held parts is written as those parts alone.
            held: _,
            // Written in no snapshot.
            local: _,
        } = board;
        put(&Head {
            revision: *revision,
            token: *token,
            broken: *broken,
            settings: settings.clone(),
            turns: *turns,
            bucket: rate.bucket,
            unknown: *unknown,
            created: *created,
        });
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        // A broken board loads as a broken board, whatever else it says.
        board.broken = self.broken;
        need(self.token < TOKENS && self.revision <= REVISIONS, "head")?;
        need(self.unknown <= self.revision && self.turns <= TURNS, "head")?;
        need((0..NEVER).contains(&self.created), "head")?;
        need(self.settings.is_valid(Level::Board), "settings")?;
        need(self.bucket.is_none_or(|bucket| bucket.is_valid()), "bucket")?;
        board.revision = self.revision;
        board.created = self.created;
        board.token = self.token;
        board.local.foreign = self.token;
        board.settings = self.settings;
        board.dispatch.turns = self.turns;
        board.dispatch.set_refill(Refill::set_by(&board.settings));
        if self.bucket.is_some() {
            board.dispatch.rate.bucket = self.bucket;
        }
        board.set_stats();
        board.removed.unknown = self.unknown;
        Ok(())
    }
}
