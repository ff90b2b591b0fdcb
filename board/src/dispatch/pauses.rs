//! Pauses: of the whole board, of queues, of groups, and of shared limits.
//!
//! What is paused also knows until when it is, so that a claim need not look here.

use std::collections::{BTreeMap, BTreeSet};

use crate::board::Board;
use crate::effect::ApplyError;
use crate::job::order::TimeKey;
use crate::job::NEVER;
use crate::structures::byte_string::ByteString;
use crate::structures::lazy::Part;

/// What is paused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The whole board.
    Board,
    /// A queue, or a group of it.
    Queue(ByteString, Option<ByteString>),
    /// The jobs that count against a shared limit.
    Limit(ByteString),
}

/// A pause: nothing is claimed meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pause {
    /// When it ends, Unix ms, or [`NEVER`] when only an operator ends it.
    pub until: i64,
    /// Set while running jobs are being taken back: in the order in which claims end, those before
    /// this key have been looked at.
    pub release: Option<TimeKey>,
}

/// All pauses. See the module's comment.
#[derive(Default)]
pub(crate) struct Pauses {
    all: BTreeMap<Place, Pause>,
    /// The pauses that end by themselves, by when.
    ends: BTreeSet<(i64, Place)>,
    /// The places whose running jobs are still to be taken back.
    releases: BTreeSet<Place>,
    /// Until when the whole board is paused, Unix ms; 0 when it is not.
    whole: i64,
}

impl Part for Pauses {
    const BLANK: &'static Self =
        &Pauses { all: BTreeMap::new(), ends: BTreeSet::new(), releases: BTreeSet::new(), whole: 0 };
}

impl Pauses {
    /// Until when the whole board is paused, Unix ms; 0 when it is not. O(1).
    pub fn whole(&self) -> i64 {
        self.whole
    }

    /// The pause of this place. O(log pauses).
    pub fn get(&self, place: &Place) -> Option<&Pause> {
        self.all.get(place)
    }

    /// All pauses: the whole board's first, then by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Place, &Pause)> + DoubleEndedIterator {
        self.all.iter()
    }

    /// Sets a pause, or with `None` removes it. Returns whether there was one. O(log pauses).
    pub fn set(&mut self, place: &Place, pause: Option<Pause>) -> bool {
        let old = self.all.remove(place);
        if let Some(old) = &old {
            self.ends.remove(&(old.until, place.clone()));
            self.releases.remove(place);
        }
        if *place == Place::Board {
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

    /// The pause that ends next by itself, and when, Unix ms. O(log pauses).
    pub fn next_end(&self) -> Option<&(i64, Place)> {
        self.ends.first()
    }

    /// The first place whose running jobs are still to be taken back. O(log pauses).
    pub fn next_release(&self) -> Option<&Place> {
        self.releases.first()
    }

    /// Whether the indexes follow from the pauses.
    pub fn is_valid(&self) -> bool {
        let ends = self.all.iter().filter(|(_, p)| p.until != NEVER).map(|(q, p)| (p.until, q.clone()));
        let releases = self.all.iter().filter(|(_, p)| p.release.is_some()).map(|(q, _)| q);
        ends.collect::<BTreeSet<_>>() == self.ends
            && releases.eq(self.releases.iter())
            && self.whole == self.all.get(&Place::Board).map_or(0, |p| p.until)
    }
}

impl Board {
    /// Sets a pause, or with `None` removes it. O(log pauses); removing that of the whole board
    /// takes O(queues that have ready jobs).
    pub(crate) fn set_pause(&mut self, place: &Place, pause: Option<Pause>) -> Result<(), ApplyError> {
        let until = pause.as_ref().map(|p| p.until);
        if let Some(pause) = &pause {
            self.wake_at(if pause.release.is_some() { 0 } else { pause.until });
        }
        let before = self.dispatch.pauses.set(place, pause);
        if !before && until.is_none() {
            return Ok(());
        }
        let (queue, group) = match place {
            Place::Board => {
                if until.is_none() {
                    self.wake_all();
                }
                return Ok(());
            }
            Place::Limit(name) => return self.set_limit_pause(name, until),
            Place::Queue(name, group) => (self.queue(name), group),
        };
        if let Some(group) = group {
            let at = self.group_at(queue, group)?;
            let group = self.open_rounds(queue)?.groups.get_mut(at).ok_or(ApplyError)?;
            group.paused = until.unwrap_or(0);
            self.tidy_group(queue, at);
        } else {
            self.queues.get_mut(queue).ok_or(ApplyError)?.paused = until.unwrap_or(0);
            self.review_candidates(queue);
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

    fn set_limit_pause(&mut self, name: &[u8], until: Option<i64>) -> Result<(), ApplyError> {
        let number = self.dispatch.limits.find(name).ok_or(ApplyError)?;
        self.dispatch.limits.get_mut(number).ok_or(ApplyError)?.paused = until.unwrap_or(0);
        self.wake_limited(number);
        self.dispatch.limits.tidy(number);
        Ok(())
    }
}
