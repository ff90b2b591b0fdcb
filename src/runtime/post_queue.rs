//! Posts that wait for room: who is next.
//!
//! On each board the posts to one group, or to a queue whose groups are not bounded, stand in a
//! line. The lines of a queue, and the queues of the board, are ordered by the number of their first
//! post, and numbers rise in the order of arrival. So the first post of a board is found in
//! O(log posts), and whatever lacks room keeps back only what stands behind it:
//!
//! | what the first post lacks | what waits with it |
//! |---|---|
//! | room in its group | its line |
//! | room in its queue | its queue |
//! | room on the board | all posts to the board |
//!
//! A line or queue that waits is left out until room there becomes free.

use std::collections::{BTreeSet, HashMap};

use board::{Freed, Lack, RoomLevel};

use crate::runtime::claim_queue::BoardKey;

type Name = Vec<u8>;

/// One post that waits.
pub struct Waiter<W> {
    /// The board.
    pub place: BoardKey,
    /// What it lacks, as far as it is known.
    pub lack: Lack,
    /// How many bytes are kept for it.
    pub bytes: usize,
    /// What to do for it.
    pub work: W,
}

#[derive(Default)]
struct Line {
    numbers: BTreeSet<u64>,
    waits: bool,
}

impl Line {
    fn first(&self) -> Option<u64> {
        self.numbers.first().copied()
    }
}

#[derive(Default)]
struct Queue {
    lines: HashMap<Option<Name>, Line>,
    /// The lines that do not wait, by their first post.
    firsts: BTreeSet<(u64, Option<Name>)>,
    waits: bool,
}

impl Queue {
    fn first(&self) -> Option<u64> {
        self.firsts.first().map(|(number, _)| *number)
    }
}

/// The posts that wait for one board.
#[derive(Default)]
struct Posts {
    queues: HashMap<Name, Queue>,
    /// The queues that do not wait, by their first post.
    firsts: BTreeSet<(u64, Name)>,
    bytes: usize,
    count: usize,
}

impl Posts {
    /// Changes a queue and one of its lines, and orders both anew. O(log posts).
    fn change(&mut self, name: &[u8], group: Option<&[u8]>, work: impl FnOnce(&mut Queue, &mut Line)) {
        let queue = self.queues.entry(name.to_vec()).or_default();
        let first = queue.first();
        let before = first.filter(|_| !queue.waits);
        let group = group.map(<[u8]>::to_vec);
        let mut line = queue.lines.remove(&group).unwrap_or_default();
        if let Some(first) = line.first().filter(|_| !line.waits) {
            queue.firsts.remove(&(first, group.clone()));
        }
        work(queue, &mut line);
        if let Some(first) = line.first() {
            if !line.waits {
                queue.firsts.insert((first, group.clone()));
            }
            queue.lines.insert(group, line);
        }
        if queue.first().is_some_and(|after| first.is_none_or(|first| after < first)) {
            // One that came earlier may need less room than the one for which the queue waits.
            queue.waits = false;
        }
        let after = queue.first().filter(|_| !queue.waits);
        if queue.lines.is_empty() {
            self.queues.remove(name);
        }
        if before != after {
            before.map(|first| self.firsts.remove(&(first, name.to_vec())));
            self.firsts.extend(after.map(|first| (first, name.to_vec())));
        }
    }

    /// A queue waits for room for this post, if it is the first of the queue.
    fn hold_queue(&mut self, name: &[u8], number: u64) {
        let Some(queue) = self.queues.get_mut(name) else { return };
        if queue.first() == Some(number) && !queue.waits {
            queue.waits = true;
            self.firsts.remove(&(number, name.to_vec()));
        }
    }

    fn free_group(&mut self, queue: &[u8], group: Option<&[u8]>) {
        let line = |queue: &Queue| queue.lines.get(&group.map(<[u8]>::to_vec)).is_some_and(|line| line.waits);
        if self.queues.get(queue).is_some_and(line) {
            self.change(queue, group, |_, line| line.waits = false);
        }
    }

    fn free_queue(&mut self, name: &[u8]) {
        if let Some(queue) = self.queues.get_mut(name).filter(|queue| queue.waits) {
            queue.waits = false;
            self.firsts.extend(queue.first().map(|first| (first, name.to_vec())));
        }
    }

    fn free_all(&mut self) {
        let lines = |(name, queue): (&Name, &Queue)| {
            let waiting = queue.lines.iter().filter(|(_, line)| line.waits).map(|(group, _)| group.clone());
            (name.clone(), waiting.collect::<Vec<_>>())
        };
        for (name, groups) in self.queues.iter().map(lines).collect::<Vec<_>>() {
            groups.iter().for_each(|group| self.free_group(&name, group.as_deref()));
            self.free_queue(&name);
        }
    }
}

/// All posts that wait, of all boards.
pub struct WaitingPosts<W> {
    waiters: HashMap<u64, Waiter<W>>,
    boards: HashMap<BoardKey, Posts>,
    bytes: usize,
}

impl<W> Default for WaitingPosts<W> {
    fn default() -> Self {
        WaitingPosts { waiters: HashMap::new(), boards: HashMap::new(), bytes: 0 }
    }
}

impl<W> WaitingPosts<W> {
    /// How many posts wait.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// How many bytes are kept for them.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many posts wait for a board, and how many bytes are kept for them.
    pub fn at(&self, place: &BoardKey) -> (usize, usize) {
        self.boards.get(place).map_or((0, 0), |posts| (posts.count, posts.bytes))
    }

    /// The boards for which posts wait.
    pub fn places(&self) -> impl Iterator<Item = &BoardKey> {
        self.boards.keys()
    }

    /// Adds a post under a number of its own.
    pub fn add(&mut self, number: u64, waiter: Waiter<W>) {
        let posts = self.boards.entry(waiter.place.clone()).or_default();
        posts.count += 1;
        posts.bytes += waiter.bytes;
        self.bytes += waiter.bytes;
        posts.change(&waiter.lack.queue, waiter.lack.group.as_deref(), |_, line| {
            line.numbers.insert(number);
        });
        self.waiters.insert(number, waiter);
    }

    /// Removes a post. What it kept back no longer waits for it.
    pub fn remove(&mut self, number: u64) -> Option<Waiter<W>> {
        let waiter = self.waiters.remove(&number)?;
        self.bytes -= waiter.bytes;
        if let Some(posts) = self.boards.get_mut(&waiter.place) {
            posts.count -= 1;
            posts.bytes -= waiter.bytes;
            take(posts, number, &waiter.lack);
            if posts.count == 0 {
                self.boards.remove(&waiter.place);
            }
        }
        Some(waiter)
    }

    /// Removes and returns all posts to a board, in the order of arrival.
    pub fn all_at(&mut self, place: &BoardKey) -> Vec<(u64, Waiter<W>)> {
        let lines = |posts: &Posts| {
            let lines = posts.queues.values().flat_map(|queue| queue.lines.values());
            lines.flat_map(|line| line.numbers.iter().copied()).collect::<BTreeSet<u64>>()
        };
        let numbers = self.boards.get(place).map(lines).unwrap_or_default();
        numbers.into_iter().filter_map(|number| Some((number, self.remove(number)?))).collect()
    }

    /// The first post to a board that may have room, and what to do for it.
    pub fn first(&self, place: &BoardKey) -> Option<(u64, &W)> {
        let (_, name) = self.boards.get(place)?.firsts.first()?;
        let number = self.boards.get(place)?.queues.get(name)?.first()?;
        Some((number, &self.waiters.get(&number)?.work))
    }

    /// The first post still lacks room: what it lacks keeps it and others back.
    pub fn lacks(&mut self, number: u64, lack: Lack) {
        let Some(waiter) = self.waiters.get_mut(&number) else { return };
        let Some(posts) = self.boards.get_mut(&waiter.place) else { return };
        if (&lack.queue, &lack.group) != (&waiter.lack.queue, &waiter.lack.group) {
            take(posts, number, &waiter.lack);
        }
        posts.change(&lack.queue, lack.group.as_deref(), |_, line| {
            line.numbers.insert(number);
            // Only the first keeps others back.
            line.waits = lack.level == RoomLevel::Group && line.first() == Some(number);
        });
        if lack.level == RoomLevel::Queue {
            posts.hold_queue(&lack.queue, number);
        }
        waiter.lack = lack;
    }

    /// What keeps back a new post to this queue and group: that of the post behind which it stands.
    pub fn ahead_of(&self, place: &BoardKey, name: &[u8], group: Option<&[u8]>) -> Option<&Lack> {
        let posts = self.boards.get(place)?;
        let queue = posts.queues.get(name);
        let line = queue.and_then(|queue| queue.lines.get(&group.map(<[u8]>::to_vec))?.first());
        let queue = queue.filter(|queue| queue.waits).and_then(Queue::first);
        let board = posts.firsts.first().map(|(number, _)| *number);
        let number = line.into_iter().chain(queue).chain(board).min()?;
        self.waiters.get(&number).map(|waiter| &waiter.lack)
    }

    /// Room may have become free.
    pub fn freed(&mut self, place: &BoardKey, freed: &Freed) {
        let Some(posts) = self.boards.get_mut(place) else { return };
        if freed.anywhere {
            return posts.free_all();
        }
        for queue in &freed.queues {
            posts.free_queue(queue);
        }
        for (queue, group) in &freed.groups {
            posts.free_group(queue, Some(group));
        }
    }
}

/// Takes a post out of its line. If it was the first of its line or its queue, these no longer wait.
fn take(posts: &mut Posts, number: u64, at: &Lack) {
    posts.change(&at.queue, at.group.as_deref(), |queue, line| {
        if line.first() == Some(number) {
            // Its line is not in the order of the queue now.
            queue.waits &= queue.first().is_some_and(|other| other < number);
            line.waits = false;
        }
        line.numbers.remove(&number);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use board::ByteString;

    fn lack(level: RoomLevel, queue: &[u8], group: Option<&[u8]>) -> Lack {
        Lack { level, bound: "max-jobs", queue: queue.into(), group: group.map(ByteString::from) }
    }

    fn place() -> BoardKey {
        (0, b"board".to_vec())
    }

    /// Posts that wait: their queues and groups, in the order of arrival.
    fn waiting(posts: &[(&[u8], Option<&[u8]>)]) -> WaitingPosts<()> {
        let mut all = WaitingPosts::default();
        for (number, (queue, group)) in posts.iter().enumerate() {
            let lack = lack(RoomLevel::Board, queue, *group);
            all.add(number as u64, Waiter { place: place(), lack, bytes: 10, work: () });
        }
        all
    }

    fn first(all: &WaitingPosts<()>) -> Option<u64> {
        all.first(&place()).map(|(number, ())| number)
    }

    fn freed(queues: &[&[u8]], groups: &[(&[u8], &[u8])]) -> Freed {
        let queues = queues.iter().map(|name| ByteString::from(*name)).collect();
        let groups = groups.iter().map(|(queue, group)| ((*queue).into(), (*group).into())).collect();
        Freed { anywhere: false, queues, groups }
    }

    #[test]
    fn a_full_queue_keeps_back_its_own_posts_alone() {
        let mut all = waiting(&[(b"a", None), (b"b", None), (b"a", None)]);
        assert_eq!(first(&all), Some(0));
        all.lacks(0, lack(RoomLevel::Queue, b"a", None));
        assert_eq!(first(&all), Some(1));
        all.remove(1);
        assert_eq!(first(&all), None);
        assert!(all.ahead_of(&place(), b"a", None).is_some());
        assert!(all.ahead_of(&place(), b"b", None).is_none());
        all.freed(&place(), &freed(&[b"b"], &[]));
        assert_eq!(first(&all), None);
        all.freed(&place(), &freed(&[b"a"], &[]));
        assert_eq!(first(&all), Some(0));
    }

    #[test]
    fn a_full_group_keeps_back_its_own_posts_alone() {
        let mut all = waiting(&[(b"q", Some(b"a")), (b"q", Some(b"b")), (b"q", Some(b"a"))]);
        all.lacks(0, lack(RoomLevel::Group, b"q", Some(b"a")));
        assert_eq!(first(&all), Some(1));
        all.lacks(1, lack(RoomLevel::Queue, b"q", Some(b"b")));
        assert_eq!(first(&all), None);
        // The first of the group came before the one for which the queue waits.
        all.freed(&place(), &freed(&[], &[(b"q", b"a")]));
        assert_eq!(first(&all), Some(0));
        all.remove(0);
        assert_eq!(first(&all), Some(1));
    }

    #[test]
    fn what_a_post_kept_back_no_longer_waits_when_it_goes() {
        let mut all = waiting(&[(b"a", None), (b"a", None), (b"b", None)]);
        all.lacks(0, lack(RoomLevel::Queue, b"a", None));
        all.remove(0);
        assert_eq!(first(&all), Some(1));
        all.lacks(1, lack(RoomLevel::Queue, b"a", None));
        assert_eq!(first(&all), Some(2));
        all.remove(2);
        all.remove(1);
        assert_eq!((all.len(), all.bytes(), all.boards.len()), (0, 0, 0));
    }

    #[test]
    fn a_post_that_lacks_room_elsewhere_by_now_stands_there() {
        let mut all = waiting(&[(b"a", None), (b"b", None)]);
        all.lacks(0, lack(RoomLevel::Queue, b"b", None));
        assert_eq!(first(&all), None);
        assert!(all.ahead_of(&place(), b"a", None).is_none());
        all.freed(&place(), &freed(&[b"b"], &[]));
        assert_eq!(first(&all), Some(0));
    }

    #[test]
    fn a_wake_looks_at_few_however_many_wait() {
        let queues: Vec<Vec<u8>> = (0..1_000u32).map(|n| format!("q{n}").into_bytes()).collect();
        let posts: Vec<(&[u8], Option<&[u8]>)> =
            (0..10).flat_map(|_| queues.iter().map(|queue| (&queue[..], None))).collect();
        let mut all = waiting(&posts);
        // Each queue is full: its first post finds that out, and the others stand behind it.
        let mut looks = 0;
        while let Some(number) = first(&all) {
            let queue = posts[number as usize].0;
            all.lacks(number, lack(RoomLevel::Queue, queue, None));
            looks += 1;
        }
        assert_eq!((looks, all.len()), (1_000, 10_000));
        all.freed(&place(), &freed(&[b"q7"], &[]));
        assert_eq!(first(&all), Some(7));
        all.remove(7);
        assert_eq!(first(&all), Some(1_007));
        all.lacks(1_007, lack(RoomLevel::Queue, b"q7", None));
        assert_eq!(first(&all), None);
        all.freed(&place(), &Freed { anywhere: true, ..Freed::default() });
        assert_eq!(first(&all), Some(0));
        assert_eq!(all.all_at(&place()).len(), 9_999);
    }
}
