//! Clients that wait for something to happen on a board, without taking work: for each board an
//! index by condition. A change costs O(log waiters) beside the clients that it wakes.

use std::collections::{BTreeSet, HashMap};

use crate::replies::records::Shape;
use crate::runtime::claim_queue::BoardKey;

/// The condition for which a client waits.
#[derive(Clone)]
pub enum Want {
    /// A condition of these jobs.
    Jobs {
        /// Their ids, as in the reply.
        ids: Vec<Vec<u8>>,
        /// Which condition.
        until: Until,
        /// What to return of each job.
        shape: Shape,
    },
    /// A claim over these queues, empty for every queue, would get a job.
    Claimable(Vec<Vec<u8>>),
    /// A job has output behind what was read, or will have none any more.
    Output {
        /// Its id.
        id: Vec<u8>,
        /// How many chunks were read.
        since: u64,
        /// The most chunks to return.
        count: usize,
    },
    /// There is a job that has not ended.
    Present,
    /// Every job has ended.
    Empty,
}

impl Want {
    /// The jobs that it is about.
    pub fn ids(&self) -> &[Vec<u8>] {
        match self {
            Want::Jobs { ids, .. } => ids,
            Want::Output { id, .. } => std::slice::from_ref(id),
            Want::Claimable(_) | Want::Present | Want::Empty => &[],
        }
    }
}

/// Conditions of several jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Until {
    /// All have ended.
    #[default]
    All,
    /// One has ended.
    Any,
    /// One has a version above this, or has been removed.
    Changed(i64),
}

/// One waiting client.
pub struct Watcher<H> {
    /// The server's handle of the blocked client.
    pub handle: H,
    /// The board.
    pub place: BoardKey,
    /// Its condition.
    pub want: Want,
    /// When all its jobs must end: how many have not.
    left: usize,
}

/// What is known of one job; `None` when it has no record.
pub type Sight = Option<Seen>;

/// What is known of a job that has a record.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// Whether it has ended.
    pub ended: bool,
    /// Its version.
    pub version: i64,
    /// How many chunks of output it has had.
    pub written: u64,
}

/// The clients that wait for one job.
#[derive(Default)]
struct Followers {
    /// Whether the job had ended when it was last looked at.
    ended: bool,
    /// The clients that wait for its end.
    ends: BTreeSet<u64>,
    /// The clients that wait for a version above this.
    versions: BTreeSet<(i64, u64)>,
    /// The clients that have read so many chunks of its output.
    readers: BTreeSet<(u64, u64)>,
}

impl Followers {
    fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.versions.is_empty() && self.readers.is_empty()
    }

    fn all(&self) -> impl Iterator<Item = u64> + '_ {
        let numbers = self.versions.iter().map(|(_, number)| *number);
        numbers.chain(self.readers.iter().map(|(_, number)| *number)).chain(self.ends.iter().copied())
    }
}

/// The clients that wait for one board.
#[derive(Default)]
struct Here {
    jobs: HashMap<Vec<u8>, Followers>,
    queues: HashMap<Vec<u8>, BTreeSet<u64>>,
    any_queue: BTreeSet<u64>,
    present: BTreeSet<u64>,
    empty: BTreeSet<u64>,
}

impl Here {
    fn is_empty(&self) -> bool {
        let boards = [&self.any_queue, &self.present, &self.empty];
        self.jobs.is_empty() && self.queues.is_empty() && boards.into_iter().all(BTreeSet::is_empty)
    }
}

/// All clients. Numbers rise in the order of arrival.
pub struct Watchers<H> {
    watchers: HashMap<u64, Watcher<H>>,
    places: HashMap<BoardKey, Here>,
    /// How many clients wait for jobs.
    following: usize,
}

impl<H> Default for Watchers<H> {
    fn default() -> Self {
        Watchers { watchers: HashMap::new(), places: HashMap::new(), following: 0 }
    }
}

impl<H> Watchers<H> {
    /// How many clients wait.
    pub fn len(&self) -> usize {
        self.watchers.len()
    }

    /// Whether any client waits for jobs.
    pub fn any_follows(&self) -> bool {
        self.following > 0
    }

    /// Whether any client waits for this board.
    pub fn waits_at(&self, place: &BoardKey) -> bool {
        self.places.contains_key(place)
    }

    /// The boards for which clients wait.
    pub fn places(&self) -> impl Iterator<Item = &BoardKey> {
        self.places.keys()
    }

    /// Adds a client whose condition is not met yet. `sight` returns what is known of a job; those who wait for it
    /// already have seen it so: see [`Watchers::saw_job`].
    pub fn add(
        &mut self,
        number: u64,
        handle: H,
        place: BoardKey,
        want: Want,
        sight: impl Fn(&[u8]) -> Sight,
    ) {
        let here = self.places.entry(place.clone()).or_default();
        let mut left = 0;
        match &want {
            Want::Jobs { ids, until, .. } => {
                self.following += 1;
                for id in ids {
                    let ended = sight(id).is_none_or(|seen| seen.ended);
                    let followers = here.jobs.entry(id.clone()).or_default();
                    followers.ended = ended;
                    let fresh = match until {
                        Until::Changed(version) => followers.versions.insert((*version, number)),
                        _ => followers.ends.insert(number),
                    };
                    left += usize::from(fresh && !ended);
                }
            }
            Want::Output { id, since, .. } => {
                self.following += 1;
                let seen = sight(id);
                let followers = here.jobs.entry(id.clone()).or_default();
                followers.ended = seen.is_none_or(|seen| seen.ended);
                followers.readers.insert((*since, number));
            }
            Want::Claimable(queues) if queues.is_empty() => {
                here.any_queue.insert(number);
            }
            Want::Claimable(queues) => {
                for queue in queues {
                    here.queues.entry(queue.clone()).or_default().insert(number);
                }
            }
            Want::Present => {
                here.present.insert(number);
            }
            Want::Empty => {
                here.empty.insert(number);
            }
        }
        self.watchers.insert(number, Watcher { handle, place, want, left });
    }

    /// Removes a client, if it still waits.
    pub fn remove(&mut self, number: u64) -> Option<Watcher<H>> {
        let watcher = self.watchers.remove(&number)?;
        let here = self.places.get_mut(&watcher.place)?;
        match &watcher.want {
            Want::Jobs { ids, until, .. } => {
                self.following -= 1;
                for id in ids {
                    let Some(followers) = here.jobs.get_mut(id) else { continue };
                    match until {
                        Until::Changed(version) => followers.versions.remove(&(*version, number)),
                        _ => followers.ends.remove(&number),
                    };
                    if followers.is_empty() {
                        here.jobs.remove(id);
                    }
                }
            }
            Want::Output { id, since, .. } => {
                self.following -= 1;
                if let Some(followers) = here.jobs.get_mut(id) {
                    followers.readers.remove(&(*since, number));
                    if followers.is_empty() {
                        here.jobs.remove(id);
                    }
                }
            }
            Want::Claimable(queues) => {
                here.any_queue.remove(&number);
                for queue in queues {
                    let Some(numbers) = here.queues.get_mut(queue) else { continue };
                    numbers.remove(&number);
                    if numbers.is_empty() {
                        here.queues.remove(queue);
                    }
                }
            }
            Want::Present => {
                here.present.remove(&number);
            }
            Want::Empty => {
                here.empty.remove(&number);
            }
        }
        if here.is_empty() {
            self.places.remove(&watcher.place);
        }
        Some(watcher)
    }

    /// A job has changed, or may have: adds the clients whose condition is met to `met`.
    pub fn saw_job(&mut self, place: &BoardKey, id: &[u8], sight: Sight, met: &mut BTreeSet<u64>) {
        let Some(followers) = self.places.get_mut(place).and_then(|here| here.jobs.get_mut(id)) else {
            return;
        };
        let gone = Seen { ended: true, version: i64::MAX, written: 0 };
        let Seen { ended, version, written } = sight.unwrap_or(gone);
        met.extend(followers.versions.range(..(version, 0)).map(|(_, number)| *number));
        if !followers.readers.is_empty() {
            let behind = followers.readers.range(..(written, 0));
            let beyond = followers.readers.range((written + 1, 0)..);
            let ends = followers.readers.iter().filter(|_| ended);
            met.extend(behind.chain(beyond).chain(ends).map(|(_, number)| *number));
        }
        if std::mem::replace(&mut followers.ended, ended) == ended {
            return;
        }
        for number in &followers.ends {
            let Some(watcher) = self.watchers.get_mut(number) else { continue };
            watcher.left = if ended { watcher.left.saturating_sub(1) } else { watcher.left + 1 };
            let all = matches!(watcher.want, Want::Jobs { until: Until::All, .. });
            if ended && (watcher.left == 0 || !all) {
                met.insert(*number);
            }
        }
    }

    /// The ids of the jobs of a board for which clients wait.
    pub fn jobs_at(&self, place: &BoardKey) -> Vec<Vec<u8>> {
        self.places.get(place).map_or(Vec::new(), |here| here.jobs.keys().cloned().collect())
    }

    /// All clients that wait for a board.
    pub fn all_at(&self, place: &BoardKey) -> BTreeSet<u64> {
        let Some(here) = self.places.get(place) else { return BTreeSet::new() };
        let mut all: BTreeSet<u64> = [&here.any_queue, &here.present, &here.empty]
            .into_iter()
            .chain(here.queues.values())
            .flatten()
            .copied()
            .collect();
        for followers in here.jobs.values() {
            all.extend(followers.all());
        }
        all
    }

    /// A queue has a job to claim: adds the clients that waited for that to `met`.
    pub fn saw_work(&self, place: &BoardKey, queue: &[u8], met: &mut BTreeSet<u64>) {
        let Some(here) = self.places.get(place) else { return };
        met.extend(&here.any_queue);
        met.extend(here.queues.get(queue).into_iter().flatten());
    }

    /// Whether any client waits for a job to claim from any queue of this board.
    pub fn waits_for_any_work(&self, place: &BoardKey) -> bool {
        self.places.get(place).is_some_and(|here| !here.any_queue.is_empty())
    }

    /// Some queue has a job to claim: adds the clients that waited for any to `met`.
    pub fn saw_any_work(&self, place: &BoardKey, met: &mut BTreeSet<u64>) {
        met.extend(self.places.get(place).into_iter().flat_map(|here| &here.any_queue));
    }

    /// A board has this many jobs that have not ended: adds the clients that waited for that to
    /// `met`.
    pub fn saw_jobs(&self, place: &BoardKey, live: u64, met: &mut BTreeSet<u64>) {
        let Some(here) = self.places.get(place) else { return };
        met.extend(if live > 0 { &here.present } else { &here.empty });
    }

    /// Whether any client waits for a job to claim on this board.
    pub fn waits_for_work(&self, place: &BoardKey) -> bool {
        self.places.get(place).is_some_and(|here| !here.any_queue.is_empty() || !here.queues.is_empty())
    }
}
