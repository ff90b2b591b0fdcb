//! What is paused on a board: its whole, queues of it, or groups of queues.
//!
//! The lane of a paused queue and a paused group know until when as well, so that a claim need
//! not look here.

use std::collections::{BTreeMap, BTreeSet};

use crate::board::Board;
use crate::effect::ApplyError;
use crate::job::order::TimeKey;
use crate::job::NEVER;
use crate::structures::byte_string::ByteString;

/// Where a pause is: the whole board, a queue, or a group of a queue.
pub(crate) type Place = Option<(ByteString, Option<ByteString>)>;

/// Nothing is claimed there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pause {
    /// Unix ms, or [`NEVER`] when only an operator ends it.
    pub until: i64,
    /// Running jobs are being taken back: of the claims by when they end, those before this
    /// one have been looked at.
    pub release: Option<TimeKey>,
}

/// See the module's comment.
#[derive(Default)]
pub(crate) struct Pauses {
    all: BTreeMap<Place, Pause>,
    /// Those that end by themselves, by when.
    ends: BTreeSet<(i64, Place)>,
    /// Where jobs are still to be taken back.
    releases: BTreeSet<Place>,
    /// Until when the whole board is paused, or 0.
    whole: i64,
}

impl Pauses {
    /// Until when the whole board is paused, or 0. O(1).
    pub fn whole(&self) -> i64 {
        self.whole
    }

    /// The pause there. O(log pauses).
    pub fn get(&self, place: &Place) -> Option<&Pause> {
        self.all.get(place)
    }

    /// All of them, the whole board's first, then by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Place, &Pause)> + DoubleEndedIterator {
        self.all.iter()
    }

    /// Puts a pause there, or with `None` takes it away. Whether there was one. O(log pauses).
    pub fn set(&mut self, place: &Place, pause: Option<Pause>) -> bool {
        let old = self.all.remove(place);
        if let Some(old) = &old {
            self.ends.remove(&(old.until, place.clone()));
            self.releases.remove(place);
        }
        if place.is_none() {
            self.whole = pause.as_ref().map_or(0, |p| p.until);
        }
        if let Some(pause) = pause {
            if pause.until != NEVER {
                self.ends.insert((pause.until, place.clone()));
            }
            if pause.release.is_some() {
                self.releases.insert(place.clone());
            }
            self.all.insert(place.clone(), pause);
        }
        old.is_some()
    }

    /// The pause that ends next by itself, and when. O(log pauses).
    pub fn next_end(&self) -> Option<&(i64, Place)> {
        self.ends.first()
    }

    /// The first place where jobs are still to be taken back. O(log pauses).
    pub fn next_release(&self) -> Option<&Place> {
        self.releases.first()
    }

    /// Whether the indexes follow from the pauses.
    pub fn is_valid(&self) -> bool {
        let ends = self.all.iter().filter(|(_, p)| p.until != NEVER).map(|(q, p)| (p.until, q.clone()));
        let releases = self.all.iter().filter(|(_, p)| p.release.is_some()).map(|(q, _)| q);
        ends.collect::<BTreeSet<_>>() == self.ends
            && releases.eq(self.releases.iter())
            && self.whole == self.all.get(&None).map_or(0, |p| p.until)
    }
}

impl Board {
    /// Puts a pause there, or takes it away. O(log pauses); to take that of the whole board
    /// away, O(queues that have ready jobs).
    pub(crate) fn set_pause(&mut self, place: &Place, pause: Option<Pause>) -> Result<(), ApplyError> {
        let until = pause.as_ref().map(|p| p.until);
        if let Some(pause) = &pause {
            self.wake_at(if pause.release.is_some() { 0 } else { pause.until });
        }
        let before = self.dispatch.pauses.set(place, pause);
        let Some((name, group)) = place else {
            if before && until.is_none() {
                self.wake_all();
            }
            return Ok(());
        };
        if !before && until.is_none() {
            return Ok(());
        }
        let queue = self.queue(name);
        if let Some(group) = group {
            let at = self.group_at(queue, group)?;
            let group = self.open_rounds(queue)?.groups.get_mut(at).ok_or(ApplyError)?;
            group.paused = until.unwrap_or(0);
            self.tidy_group(queue, at);
        } else {
            self.queues.get_mut(queue).ok_or(ApplyError)?.paused = until.unwrap_or(0);
        }
        match (before, until) {
            (false, Some(_)) => self.queues.hold(queue),
            (true, None) => {
                if group.is_none() {
                    self.wake_queue(queue);
                }
                self.queues.release(queue);
            }
            _ => {}
        }
        Ok(())
    }
}
