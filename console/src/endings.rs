//! How jobs ended in the last quarter of an hour, by their names.
//!
//! The server counts by queue, not by name. So the console reads the jobs that have ended since its last look,
//! while somebody has the page of types open, and keeps counts and times, by the minute. What one user has seen
//! no other is shown.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;

use crate::access::sessions::lock;

/// Older minutes go, ms.
pub const SPAN: i64 = 15 * MINUTE;

pub const MINUTE: i64 = 60_000;

/// How many boards, each for one user, are remembered; those looked at longest ago go.
const MOST: usize = 50;

/// Names of one board that are kept apart. Jobs with further ones are counted as seen, and no more.
const NAMES: usize = 1000;

/// A job that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    pub id: Vec<u8>,
    pub name: Vec<u8>,
    pub ended: i64,
    /// From when it could run first to its first claim, and from its last claim to its end; ms.
    pub wait: Option<i64>,
    pub run: Option<i64>,
}

/// What one look read of the jobs that are done, or that failed: the newest first, and whether these are all
/// since the look before.
pub struct Read {
    pub rows: Vec<Ending>,
    pub whole: bool,
}

/// How many jobs the server counted as done today, by answers that it gave before and after it was asked for the
/// done jobs of a look. Each may be unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Completed {
    pub before: Option<i64>,
    pub after: Option<i64>,
}

/// Times in ms, each rounded down to six binary digits: percentiles are exact to 3 %.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times(BTreeMap<i64, i64>);

impl Times {
    fn add(&mut self, ms: i64) {
        let shift = (63 - ms.max(1).leading_zeros()).saturating_sub(5);
        *self.0.entry(ms >> shift << shift).or_default() += 1;
    }

    fn join(&mut self, other: &Self) {
        for (ms, count) in &other.0 {
            *self.0.entry(*ms).or_default() += count;
        }
    }

    /// So many percent are no longer.
    pub fn percentile(&self, percent: i64) -> Option<i64> {
        let wanted = (self.0.values().sum::<i64>() * percent + 99) / 100;
        let mut passed = 0;
        self.0
            .iter()
            .find(|(_, count)| {
                passed += **count;
                passed >= wanted
            })
            .map(|(ms, _)| *ms)
    }
}

/// What was seen of one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    pub done: i64,
    pub failed: i64,
    pub wait: Times,
    pub run: Times,
    /// Done and failed, minute by minute, from the first minute of the summary to its last.
    pub course: Vec<(i64, i64)>,
}

impl Tally {
    fn add(&mut self, row: &Ending, is_done: bool) {
        match is_done {
            true => self.done += 1,
            false => self.failed += 1,
        }
        row.wait.into_iter().for_each(|ms| self.wait.add(ms));
        row.run.into_iter().for_each(|ms| self.run.add(ms));
    }
}

/// How far the looks at one state reach.
#[derive(Default)]
struct Reach {
    /// When the first job that the first look read had ended, or when that look was; `None` before it.
    since: Option<i64>,
    /// The latest end that was read, and who ended then.
    last: i64,
    then: HashSet<Vec<u8>>,
    /// Times of which jobs may be missing.
    gaps: Vec<(i64, i64)>,
    /// Jobs that were seen since the first look.
    seen: i64,
}

impl Reach {
    /// Those of the rows that are new.
    fn take(&mut self, at: i64, read: Read) -> Vec<Ending> {
        let is_first = self.since.is_none();
        let oldest = read.rows.last().map_or(at, |row| row.ended);
        if is_first {
            self.since = Some(oldest);
        } else if !read.whole && oldest > self.last {
            self.gaps.push((self.last, oldest));
        }
        let is_new =
            |row: &Ending| row.ended > self.last || row.ended == self.last && !self.then.contains(&row.id);
        let rows: Vec<Ending> = read.rows.into_iter().filter(is_new).collect();
        if let Some(newest) = rows.iter().map(|row| row.ended).max() {
            if newest > self.last {
                (self.last, self.then) = (newest, HashSet::new());
            }
            self.then.extend(rows.iter().filter(|row| row.ended == newest).map(|row| row.id.clone()));
        }
        self.seen += rows.len() as i64;
        rows
    }

    /// How much of the time from `from` to `to` was read, ms.
    fn covered(&self, from: i64, to: i64) -> i64 {
        let from = from.max(self.since.unwrap_or(to));
        let gaps = self.gaps.iter().map(|(start, end)| ((*end).min(to) - (*start).max(from)).max(0));
        (to - from - gaps.sum::<i64>()).max(0)
    }
}

#[derive(Default)]
struct Board {
    looked: i64,
    minutes: BTreeMap<i64, HashMap<Vec<u8>, Tally>>,
    names: HashSet<Vec<u8>>,
    done: Reach,
    failed: Reach,
    /// What the server had counted as done today at the first look, and when that was.
    base: Option<(i64, i64)>,
    /// What it had counted before the last look of which that is known, and the jobs that were seen up to then.
    compared: Option<(i64, i64)>,
}

/// What was seen of a board.
pub struct Summary {
    pub types: HashMap<Vec<u8>, Tally>,
    /// Of each minute of the span whether done and failed jobs of it were read, or of a part of it.
    pub known: Vec<(bool, bool)>,
    /// The time that the counts of done and of failed jobs cover, ms.
    pub covered: (i64, i64),
    /// Since when the server's own count is compared, the jobs done since then, and how many of these were seen.
    pub done: Option<(i64, i64, i64)>,
}

/// User and board.
type Key = (String, Vec<u8>);

#[derive(Default)]
pub struct Endings {
    known: Mutex<HashMap<Key, Board>>,
}

impl Endings {
    /// From when on done and failed jobs are to be read; `None` at the first look.
    pub fn from(&self, key: &Key) -> (Option<i64>, Option<i64>) {
        let known = lock(&self.known);
        let from =
            |reach: fn(&Board) -> &Reach| known.get(key).map(|board| reach(board).last).filter(|at| *at > 0);
        (from(|board| &board.done), from(|board| &board.failed))
    }

    /// What the server had counted as done when the comparison with it began.
    pub fn base(&self, key: &Key) -> Option<i64> {
        lock(&self.known).get(key)?.base.map(|(_, count)| count)
    }

    /// Adds the jobs that were read at `at`, with the number of done jobs that the server counts for today.
    pub fn note(&self, key: Key, at: i64, done: Read, failed: Read, completed: Completed) -> Summary {
        let mut known = lock(&self.known);
        if known.len() >= MOST && !known.contains_key(&key) {
            let oldest = known.iter().min_by_key(|(_, board)| board.looked).map(|(key, _)| key.clone());
            oldest.map(|key| known.remove(&key));
        }
        let board = known.entry(key).or_default();
        board.add(at, done, failed, completed);
        board.summary(at)
    }
}

impl Board {
    fn add(&mut self, at: i64, done: Read, failed: Read, completed: Completed) {
        self.looked = self.looked.max(at);
        let is_new_day = |(_, before): &(i64, i64)| completed.before.is_some_and(|count| count < *before);
        let is_first = self.base.as_ref().is_none_or(is_new_day);
        let rows = self.done.take(at, done);
        // A count that is compared has no job that could not be seen yet: it is from before the look, and the count
        // at the beginning from behind the first look.
        if is_first {
            (self.base, self.compared) = (completed.after.map(|count| (at, count)), None);
            self.done.seen = 0;
        } else if let Some(count) = completed.before {
            self.compared = Some((count, self.done.seen));
        }
        let rows = rows.into_iter().map(|row| (row, true));
        let rows: Vec<(Ending, bool)> =
            rows.chain(self.failed.take(at, failed).into_iter().map(|row| (row, false))).collect();
        for (row, is_done) in &rows {
            if self.names.len() >= NAMES && !self.names.contains(&row.name) {
                continue;
            }
            self.names.insert(row.name.clone());
            let minute = self.minutes.entry(row.ended.div_euclid(MINUTE)).or_default();
            minute.entry(row.name.clone()).or_default().add(row, *is_done);
        }
        let first = first_minute(at);
        if self.minutes.first_key_value().is_some_and(|(minute, _)| *minute < first) {
            self.minutes = self.minutes.split_off(&first);
            self.names = self.minutes.values().flat_map(HashMap::keys).cloned().collect();
            for reach in [&mut self.done, &mut self.failed] {
                reach.gaps.retain(|(_, end)| *end > first * MINUTE);
            }
        }
    }

    fn summary(&self, at: i64) -> Summary {
        let first = first_minute(at);
        let last = at.div_euclid(MINUTE);
        let mut types: HashMap<Vec<u8>, Tally> = HashMap::new();
        for (minute, names) in self.minutes.range(first..) {
            for (name, tally) in names {
                let sum = types.entry(name.clone()).or_default();
                (sum.done, sum.failed) = (sum.done + tally.done, sum.failed + tally.failed);
                sum.wait.join(&tally.wait);
                sum.run.join(&tally.run);
                sum.course.resize((last - first + 1).max(1) as usize, (0, 0));
                // A server's clock that is ahead of ours.
                let place = (minute - first).min(last - first).max(0) as usize;
                let (done, failed) = &mut sum.course[place];
                (*done, *failed) = (*done + tally.done, *failed + tally.failed);
            }
        }
        let covered = |reach: &Reach| reach.covered(first * MINUTE, at);
        let known = |minute: i64| {
            let (from, to) = (minute * MINUTE, at.min((minute + 1) * MINUTE));
            [&self.done, &self.failed].map(|reach| reach.covered(from, to) > 0).into()
        };
        Summary {
            types,
            known: (first..=last).map(known).collect(),
            covered: (covered(&self.done), covered(&self.failed)),
            done: self
                .base
                .zip(self.compared)
                .map(|((since, base), (count, seen))| (since, count - base, seen)),
        }
    }
}

/// The first minute that is within the span as a whole.
fn first_minute(at: i64) -> i64 {
    (at - SPAN).div_euclid(MINUTE) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_000 * MINUTE;

    fn ending(id: &str, ended: i64, run: i64) -> Ending {
        Ending { id: id.into(), name: b"mail".to_vec(), ended, wait: Some(1), run: Some(run) }
    }

    fn read(rows: &[(&str, i64)], whole: bool) -> Read {
        let mut rows: Vec<Ending> = rows.iter().map(|(id, at)| ending(id, START + at, 10)).collect();
        rows.reverse();
        Read { rows, whole }
    }

    fn none() -> Read {
        Read { rows: Vec::new(), whole: true }
    }

    /// What the server has counted by answers before and after it was asked for the done jobs.
    fn counted(before: i64, after: i64) -> Completed {
        Completed { before: Some(before), after: Some(after) }
    }

    #[test]
    fn each_end_counts_once_and_a_second_end_again() {
        let mut board = Board::default();
        board.add(START + 5, read(&[("a", 1), ("b", 5)], true), none(), counted(2, 2));
        board.add(START + 9, read(&[("b", 5), ("c", 5), ("d", 6)], true), none(), counted(4, 4));
        board.add(START + 9, read(&[("b", 5), ("c", 5), ("d", 6)], true), none(), counted(4, 4));
        board.add(START + 20, read(&[("d", 6), ("a", 15)], true), read(&[("e", 3)], true), counted(5, 5));
        let seen = board.summary(START + 20);
        let mail = &seen.types[&b"mail"[..]];
        assert_eq!((mail.done, mail.failed), (5, 1));
        assert_eq!(seen.done, Some((START + 5, 3, 3)));
        assert_eq!(mail.course.last(), Some(&(5, 1)));
    }

    #[test]
    fn a_first_look_at_nothing_is_a_first_look() {
        let mut board = Board::default();
        board.add(START, none(), none(), counted(7, 7));
        assert_eq!(board.summary(START).done, None);
        board.add(START + 5, read(&[("a", 3)], true), none(), counted(9, 9));
        let seen = board.summary(START + 5);
        assert_eq!((seen.done, seen.covered), (Some((START, 2, 1)), (5, 5)));
    }

    #[test]
    fn a_count_that_is_younger_than_the_look_is_not_compared() {
        let mut board = Board::default();
        // Between the look and the count behind it the job a is done.
        board.add(START, none(), none(), counted(7, 8));
        board.add(
            START + 5,
            read(&[("a", 3), ("b", 4)], true),
            none(),
            Completed { before: None, after: Some(99) },
        );
        assert_eq!(board.summary(START + 5).done, None);
        board.add(START + 6, read(&[("b", 4)], true), none(), counted(9, 99));
        assert_eq!(board.summary(START + 6).done, Some((START, 1, 2)));
        // At a new day the server counts anew.
        board.add(START + 7, read(&[("c", 7)], true), none(), counted(1, 1));
        board.add(START + 9, read(&[("d", 8)], true), none(), counted(3, 3));
        assert_eq!(board.summary(START + 9).done, Some((START + 7, 2, 1)));
    }

    #[test]
    fn what_was_not_read_is_no_time_that_is_covered() {
        let mut board = Board::default();
        board.add(START, read(&[("a", 0)], true), none(), Completed::default());
        board.add(START + 10_000, read(&[("b", 8_000), ("c", 9_000)], false), none(), Completed::default());
        assert_eq!(board.summary(START + 10_000).covered, (2_000, 10_000));
        // A minute of which a part was read has a number; before the first look nobody read.
        let known = board.summary(START + 10_000).known;
        assert_eq!(known.last(), Some(&(true, true)));
        assert_eq!(known[..known.len() - 1], [(false, false); 14]);
        let later = START + SPAN + MINUTE;
        board.add(later, none(), none(), Completed::default());
        let seen = board.summary(later);
        assert!(seen.types.is_empty() && board.done.gaps.is_empty() && board.names.is_empty());
        assert_eq!(seen.covered.0, later - first_minute(later) * MINUTE);
    }

    #[test]
    fn names_are_bounded() {
        let mut board = Board::default();
        let rows =
            (0..NAMES + 9).map(|number| Ending { name: number.to_string().into(), ..ending("x", START, 1) });
        let rows = rows.enumerate().map(|(at, row)| Ending { id: at.to_string().into(), ..row }).collect();
        board.add(START, Read { rows, whole: true }, none(), Completed::default());
        assert_eq!(board.summary(START).types.len(), NAMES);
    }

    #[test]
    fn percentiles_are_near() {
        let mut times = Times::default();
        assert_eq!(times.percentile(50), None);
        for ms in [0, 1, 31, 1000, 123_456] {
            times.add(ms);
        }
        assert_eq!([20, 40, 60].map(|percent| times.percentile(percent).unwrap()), [0, 1, 31]);
        for (percent, exact) in [(80, 1000), (100, 123_456)] {
            let near = times.percentile(percent).unwrap();
            assert!(near <= exact && (exact - near) as f64 <= exact as f64 * 0.035, "{near}");
        }
    }
}
