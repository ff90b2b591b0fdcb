//! The jobs that many queues would hand out next, best first: for claims that name no queue.
//!
//! Each queue with ready jobs has a candidate, or two when it depends on a shared limit which of
//! two jobs is next. A candidate that something of its own queue keeps back is held, until a time
//! or until that changes. What queues share (shared limits, the rate of the board) is not asked
//! queue by queue: candidates with the same needs are peers, and peers open and close together. So
//! a limit that fills and frees with each job moves its peers, however many queues name it.
//!
//! An entry may be out of date in one direction only: its job is claimed no earlier, and has no
//! better key, than the entry says. A claim compares the first entry with its queue, and corrects it.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use crate::job::order::ReadyKey;
use crate::job::NEVER;
use crate::structures::slab::Slab;

/// A shared limit, by its number, and the permits that a job takes there.
pub(crate) type Cost = (u32, i64);

/// A candidate: the key of its job, and its queue. The lowest is next.
pub(crate) type Entry = (ReadyKey, u32);

/// What a candidate needs of what queues share.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Needs {
    /// Permits of the board, if it has a rate.
    pub board: Option<i64>,
    /// Shared limits that must be open.
    pub open: Vec<Cost>,
    /// Shared limits of which one must be closed, unless there are none: while all are open, another
    /// job of the queue is next.
    pub closed: Vec<Cost>,
}

impl Needs {
    fn is_nothing(&self) -> bool {
        self.board.is_none() && self.open.is_empty() && self.closed.is_empty()
    }
}

/// Numbers of peers by limit.
type ByLimit = BTreeMap<u32, BTreeSet<u32>>;

/// Candidates with the same needs.
struct Peers {
    needs: Needs,
    entries: BTreeSet<Entry>,
    /// Closed until this time, Unix ms, or until what they need changes; 0 when they may be open.
    closed: i64,
}

/// Where a candidate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spot {
    /// Held until this time, Unix ms, or until its queue changes.
    Held(i64),
    /// It needs nothing that queues share.
    Free(ReadyKey),
    /// Among the peers of this number.
    Among(u32, ReadyKey),
}

/// The candidates of one queue.
pub(crate) type Spots = [Option<Spot>; 2];

/// The first entry, and what it needs.
pub(crate) struct First<'c> {
    pub entry: Entry,
    /// The number of its peers, and their needs.
    pub peers: Option<(u32, &'c Needs)>,
}

/// See the module's comment.
#[derive(Default)]
pub(crate) struct Candidates {
    /// The first candidate of each queue with ready jobs.
    spots: HashMap<u32, Spot>,
    /// The second one, of the queues that have one.
    seconds: HashMap<u32, Spot>,
    /// Those that need nothing that queues share.
    free: BTreeSet<Entry>,
    /// Those that are held until a time, by that time.
    held: BTreeSet<(i64, u32)>,
    peers: Slab<Peers>,
    numbers: HashMap<Needs, u32>,
    /// The first entries of the peers that may be open.
    firsts: BTreeSet<(ReadyKey, u32)>,
    /// The peers that are closed until a time, by that time.
    closed: BTreeSet<(i64, u32)>,
    /// The peers that need a limit open.
    by_open: ByLimit,
    /// The peers that need a limit closed.
    by_closed: ByLimit,
    /// The peers that need permits of the board.
    by_board: BTreeSet<u32>,
}

impl Candidates {
    /// The place of a candidate with this key and these needs. O(needs).
    pub fn spot(&mut self, key: ReadyKey, needs: Needs) -> Spot {
        if needs.is_nothing() {
            return Spot::Free(key);
        }
        if let Some(number) = self.numbers.get(&needs) {
            return Spot::Among(*number, key);
        }
        let peers = Peers { needs: needs.clone(), entries: BTreeSet::new(), closed: 0 };
        let number = self.peers.insert(peers);
        for (costs, by_limit) in [(&needs.open, &mut self.by_open), (&needs.closed, &mut self.by_closed)] {
            for (limit, _) in costs {
                by_limit.entry(*limit).or_default().insert(number);
            }
        }
        if needs.board.is_some() {
            self.by_board.insert(number);
        }
        self.numbers.insert(needs, number);
        Spot::Among(number, key)
    }

    /// Puts the candidates of a queue in these places. Returns whether they were there already.
    /// O(log n).
    pub fn put(&mut self, queue: u32, spots: Spots) -> bool {
        let before = self.spots(queue);
        if before == spots {
            return true;
        }
        // First what is new, since peers go with their last entry.
        for new in spots.into_iter().flatten().filter(|new| !before.contains(&Some(*new))) {
            self.insert(queue, new);
        }
        for old in before.into_iter().flatten().filter(|old| !spots.contains(&Some(*old))) {
            self.remove(queue, old);
        }
        let [first, second] = spots;
        match first {
            Some(first) => _ = self.spots.insert(queue, first),
            None => _ = self.spots.remove(&queue),
        }
        match second {
            Some(second) => _ = self.seconds.insert(queue, second),
            None if self.seconds.is_empty() => {}
            None => _ = self.seconds.remove(&queue),
        }
        false
    }

    /// Where the candidates of a queue are. O(1).
    pub fn spots(&self, queue: u32) -> Spots {
        let second = if self.seconds.is_empty() { None } else { self.seconds.get(&queue).copied() };
        [self.spots.get(&queue).copied(), second]
    }

    fn insert(&mut self, queue: u32, spot: Spot) {
        match spot {
            Spot::Held(NEVER) => {}
            Spot::Held(until) => _ = self.held.insert((until, queue)),
            Spot::Free(key) => _ = self.free.insert((key, queue)),
            Spot::Among(number, key) => self.change(number, |entries| _ = entries.insert((key, queue))),
        }
    }

    fn remove(&mut self, queue: u32, spot: Spot) {
        match spot {
            Spot::Held(NEVER) => {}
            Spot::Held(until) => _ = self.held.remove(&(until, queue)),
            Spot::Free(key) => _ = self.free.remove(&(key, queue)),
            Spot::Among(number, key) => self.change(number, |entries| _ = entries.remove(&(key, queue))),
        }
    }

    /// Changes the entries of peers, who are dropped with the last one.
    fn change(&mut self, number: u32, change: impl FnOnce(&mut BTreeSet<Entry>)) {
        let Some(peers) = self.peers.get_mut(number) else { return };
        let before = peers.entries.first().map(|(key, _)| *key);
        change(&mut peers.entries);
        let after = peers.entries.first().map(|(key, _)| *key);
        if peers.closed == 0 && before != after {
            self.firsts.extend(after.map(|key| (key, number)));
            before.inspect(|key| _ = self.firsts.remove(&(*key, number)));
        }
        if after.is_none() {
            self.drop(number);
        }
    }

    fn drop(&mut self, number: u32) {
        let Some(peers) = self.peers.remove(number) else { return };
        self.closed.remove(&(peers.closed, number));
        self.numbers.remove(&peers.needs);
        self.by_board.remove(&number);
        let Needs { open, closed, .. } = &peers.needs;
        for (costs, by_limit) in [(open, &mut self.by_open), (closed, &mut self.by_closed)] {
            for (limit, _) in costs {
                let Some(of_limit) = by_limit.get_mut(limit) else { continue };
                of_limit.remove(&number);
                if of_limit.is_empty() {
                    by_limit.remove(limit);
                }
            }
        }
    }

    /// The first entry of all that may be open. O(log n).
    pub fn first(&self) -> Option<First<'_>> {
        let free = self.free.first().map(|entry| (*entry, None));
        let among = self.firsts.first().and_then(|(_, number)| {
            let peers = self.peers.get(*number)?;
            Some((*peers.entries.first()?, Some((*number, &peers.needs))))
        });
        let (entry, peers) = match (free, among) {
            (Some(free), Some(among)) if among.0 < free.0 => among,
            (free, among) => free.or(among)?,
        };
        Some(First { entry, peers })
    }

    /// Closes peers until a time, Unix ms, or until what they need changes. O(log n).
    pub fn close(&mut self, number: u32, until: i64) {
        let Some(peers) = self.peers.get_mut(number).filter(|peers| peers.closed == 0) else { return };
        peers.closed = until;
        if let Some((key, _)) = peers.entries.first() {
            self.firsts.remove(&(*key, number));
        }
        if until < NEVER {
            self.closed.insert((until, number));
        }
    }

    /// Peers may be open again. O(log n).
    fn open(&mut self, number: u32) {
        let Some(peers) = self.peers.get_mut(number).filter(|peers| peers.closed > 0) else { return };
        self.closed.remove(&(peers.closed, number));
        peers.closed = 0;
        self.firsts.extend(peers.entries.first().map(|(key, _)| (*key, number)));
    }

    /// Opens the peers that were closed until now. O(log n) for each.
    pub fn open_until(&mut self, now: i64) {
        while let Some((_, number)) = self.closed.first().copied().filter(|(until, _)| *until <= now) {
            self.open(number);
        }
    }

    /// A queue whose candidate was held until now. O(log n).
    pub fn held_until(&self, now: i64) -> Option<u32> {
        self.held.first().filter(|(until, _)| *until <= now).map(|(_, queue)| *queue)
    }

    /// A limit may have opened: so may the peers that need it open. O(these).
    pub fn limit_opened(&mut self, limit: u32) {
        let peers = self.by_open.get(&limit).into_iter().flatten().copied();
        for number in peers.collect::<Vec<_>>() {
            self.open(number);
        }
    }

    /// A limit may have closed: the peers that need it closed may be open. O(these).
    pub fn limit_closed(&mut self, limit: u32) {
        let peers = self.by_closed.get(&limit).into_iter().flatten().copied();
        for number in peers.collect::<Vec<_>>() {
            self.open(number);
        }
    }

    /// The board has got permits back. O(peers that need some).
    pub fn board_changed(&mut self) {
        for number in self.by_board.iter().copied().collect::<Vec<_>>() {
            self.open(number);
        }
    }

    /// When time lets the next candidate be claimed, Unix ms, and its queue. O(log n).
    pub fn next_opening(&self) -> Option<(i64, u32)> {
        let peers = self.closed.first().and_then(|(until, number)| {
            let (_, queue) = self.peers.get(*number)?.entries.first()?;
            Some((*until, *queue))
        });
        [self.held.first().copied(), peers].into_iter().flatten().min()
    }

    /// Until when peers are closed, Unix ms; 0 when they may be open. O(1).
    pub fn closed_until(&self, number: u32) -> i64 {
        self.peers.get(number).map_or(NEVER, |peers| peers.closed)
    }

    /// The entries that may be open, those of peers together with the number and the needs of these.
    pub fn may_be_open(&self) -> impl Iterator<Item = (Option<(u32, &Needs)>, &BTreeSet<Entry>)> {
        let among = self.firsts.iter().filter_map(|(_, number)| {
            let peers = self.peers.get(*number)?;
            Some((Some((*number, &peers.needs)), &peers.entries))
        });
        std::iter::once((None, &self.free)).chain(among)
    }

    /// About how many bytes it takes. O(peers).
    pub fn bytes(&self) -> usize {
        let peers = self.peers.iter().map(|(_, peers)| 256 + peers.entries.len() * 48);
        self.spots.allocation_size()
            + self.seconds.allocation_size()
            + self.free.len() * 48
            + self.held.len() * 24
            + peers.sum::<usize>()
    }
}
