//! Reading arguments: all checks whose errors name an argument are here.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use board::{Chunk, Speaker, OWN_KINDS};

use crate::config::config;
use crate::integers::{duration, whole};
use crate::redis::words::Words;
use crate::replies::errors::{syntax, unexpected, CommandError};

/// The arguments of a call, read from left to right.
pub struct Args<'a> {
    words: Words<'a>,
    at: usize,
}

/// The queues that a command names, and the option that names them.
pub type Queues<'a> = (&'static str, Vec<&'a [u8]>);

/// The error for an invalid cursor, or one of a listing in another order.
pub const NO_CURSOR: &str = "CURSOR must be 0 or the cursor that the last call returned";

/// The most queues that a claim or a wait names.
const QUEUES_MOST: i64 = 1_000;

/// The longest option word.
const LONGEST_WORD: usize = 16;

/// An option word in capitals.
pub struct Keyword([u8; LONGEST_WORD], usize);

impl Keyword {
    /// A word in capitals; a word that is too long matches no option.
    pub fn of(word: &[u8]) -> Keyword {
        let mut capitals = [0; LONGEST_WORD];
        let len = match capitals.get_mut(..word.len()) {
            Some(place) => {
                place.copy_from_slice(word);
                place.make_ascii_uppercase();
                word.len()
            }
            None => 0,
        };
        Keyword(capitals, len)
    }

    /// The word as text to match on.
    pub fn text(&self) -> &str {
        self.0.get(..self.1).and_then(|word| std::str::from_utf8(word).ok()).unwrap_or("")
    }
}

/// What a duration is counted in, for errors.
pub const MS: &str = " milliseconds, or a duration such as 30s or 1h30m";

#[inline]
fn within(n: Option<i64>, name: &str, range: RangeInclusive<i64>, unit: &str) -> Result<i64, CommandError> {
    match n.filter(|n| range.contains(n)) {
        Some(n) => Ok(n),
        None => out_of_range(name, range, unit),
    }
}

#[cold]
fn out_of_range(name: &str, range: RangeInclusive<i64>, unit: &str) -> Result<i64, CommandError> {
    let (least, most) = (range.start(), range.end());
    syntax(format!("{name} must be an integer from {least} to {most}{unit}"))
}

/// Keeps an option's value, unless the option is given twice.
pub fn once<T>(place: &mut Option<T>, name: &str, value: T) -> Result<(), CommandError> {
    match place.replace(value) {
        Some(_) => syntax(format!("{name} is given twice")),
        None => Ok(()),
    }
}

/// Keeps which of several options that exclude each other is given.
pub fn one_of<T>(
    place: &mut Option<(&'static str, T)>,
    all: &str,
    name: &'static str,
    value: T,
) -> Result<(), CommandError> {
    match place.replace((name, value)) {
        Some((before, _)) if before != name => syntax(format!("{all} exclude each other")),
        Some(_) => syntax(format!("{name} is given twice")),
        None => Ok(()),
    }
}

/// Keeps an option without value, unless it is given twice.
pub fn flag(place: &mut bool, name: &str) -> Result<(), CommandError> {
    match std::mem::replace(place, true) {
        true => syntax(format!("{name} is given twice")),
        false => Ok(()),
    }
}

impl<'a> Args<'a> {
    /// Reads from word number `at` on.
    pub fn new(words: Words<'a>, at: usize) -> Self {
        Args { words, at }
    }

    /// The next word, if there is one.
    pub fn next(&mut self) -> Option<&'a [u8]> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    /// The next word, without taking it.
    pub fn peek(&self) -> Option<&'a [u8]> {
        self.words.get(self.at)
    }

    /// Takes the next word if it is this keyword.
    pub fn take(&mut self, keyword: &str) -> bool {
        let is = self.peek().is_some_and(|word| word.eq_ignore_ascii_case(keyword.as_bytes()));
        self.at += usize::from(is);
        is
    }

    /// The words before the last one taken.
    pub fn before(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        (0..self.at.saturating_sub(1)).filter_map(|at| self.words.get(at))
    }

    /// How many words are left.
    pub fn left(&self) -> usize {
        self.words.len().saturating_sub(self.at)
    }

    /// Refuses any further word.
    pub fn end(&mut self) -> Result<(), CommandError> {
        match self.next() {
            Some(word) => unexpected(word),
            None => Ok(()),
        }
    }

    /// The value of an option.
    pub fn value(&mut self, name: &str) -> Result<&'a [u8], CommandError> {
        self.next().map_or_else(|| syntax(format!("{name} needs a value")), Ok)
    }

    /// Where a listing continues: `None` for `0`, otherwise what `read` makes of the last call's
    /// cursor.
    pub fn cursor<T>(&mut self, read: impl FnOnce(&'a [u8]) -> Option<T>) -> Result<Option<T>, CommandError> {
        match self.value("CURSOR")? {
            b"0" => Ok(None),
            text => read(text).map_or_else(|| syntax(NO_CURSOR), |from| Ok(Some(from))),
        }
    }

    /// A whole number.
    pub fn int(&mut self, name: &str, range: RangeInclusive<i64>) -> Result<i64, CommandError> {
        within(whole(self.value(name)?), name, range, "")
    }

    /// A duration, in ms or with units.
    pub fn ms(&mut self, name: &str, range: RangeInclusive<i64>) -> Result<i64, CommandError> {
        let word = self.value(name)?;
        within(whole(word).or_else(|| duration(word)), name, range, MS)
    }

    /// A time, Unix ms.
    pub fn time(&mut self, name: &str, range: RangeInclusive<i64>) -> Result<i64, CommandError> {
        within(whole(self.value(name)?), name, range, " Unix milliseconds")
    }

    /// A name: 1 to 255 bytes.
    pub fn name(&mut self, name: &str) -> Result<&'a [u8], CommandError> {
        let word = self.value(name)?;
        match word.len() {
            1..=255 => Ok(word),
            _ => syntax(format!("{name} must be 1 to 255 bytes long")),
        }
    }

    /// A group's name.
    pub fn group(&mut self) -> Result<&'a [u8], CommandError> {
        match self.name("GROUP")? {
            b"*" => syntax("GROUP must not be '*'"),
            group => Ok(group),
        }
    }

    /// A worker's name, or `*` for any holder, and the job's id.
    pub fn speaker(&mut self) -> Result<Speaker<'a>, CommandError> {
        Ok(Speaker { worker: self.any_worker()?, id: self.name("id")?, token: None })
    }

    /// A worker's name, or `*`.
    pub fn any_worker(&mut self) -> Result<&'a [u8], CommandError> {
        self.name("worker")
    }

    /// A worker's name.
    pub fn worker(&mut self) -> Result<&'a [u8], CommandError> {
        match self.name("worker")? {
            b"*" => syntax("worker must not be '*'"),
            worker => Ok(worker),
        }
    }

    /// An id for a new job.
    pub fn new_id(&mut self, name: &str) -> Result<&'a [u8], CommandError> {
        match self.name(name)? {
            [b'@', ..] => syntax(format!("{name} must not begin with '@'")),
            id => Ok(id),
        }
    }

    fn bounded(&mut self, name: &str, most: i64) -> Result<&'a [u8], CommandError> {
        let word = self.value(name)?;
        match word.len() as i64 > most {
            true => syntax(format!("{name} is longer than {most} bytes")),
            false => Ok(word),
        }
    }

    /// The bytes of an option, at most `most` of them.
    pub fn upto(&mut self, name: &str, most: usize) -> Result<&'a [u8], CommandError> {
        self.bounded(name, most as i64)
    }

    /// A short text from a user.
    pub fn text(&mut self, name: &str) -> Result<&'a [u8], CommandError> {
        self.bounded(name, config().max_text)
    }

    /// The kind of a failure: a name that the server does not use itself.
    pub fn kind(&mut self) -> Result<&'a [u8], CommandError> {
        let kind = self.name("kind")?;
        match OWN_KINDS.iter().any(|own| own.as_bytes() == kind) {
            true => syntax(format!("kind must not be one of the server's own: {}", OWN_KINDS.join(", "))),
            false => Ok(kind),
        }
    }

    /// The message of a failure. One that is too long is cut, at the end of a character where it is
    /// UTF-8: a failure must not get lost over it. Returns how many bytes were cut, too.
    pub fn message(&mut self) -> Result<(&'a [u8], usize), CommandError> {
        let word = self.value("message")?;
        let most = usize::try_from(config().max_text).unwrap_or(usize::MAX);
        if word.len() <= most {
            return Ok((word, 0));
        }
        let continues = |at: usize| word.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
        let end = (most.saturating_sub(3)..=most).rev().find(|at| !continues(*at)).unwrap_or(most);
        Ok((word.get(..end).unwrap_or(word), word.len() - end))
    }

    /// The queue after IF QUEUE.
    pub fn only_in(&mut self) -> Result<&'a [u8], CommandError> {
        match self.value("IF")?.eq_ignore_ascii_case(b"QUEUE") {
            true => self.name("IF QUEUE"),
            false => syntax("IF must be followed by QUEUE and a name"),
        }
    }

    /// A payload or result.
    pub fn payload(&mut self, name: &str) -> Result<&'a [u8], CommandError> {
        self.bounded(name, config().max_payload)
    }

    /// A chunk of a worker's output: its number, and what it says.
    pub fn chunk(&mut self) -> Result<Chunk<'a>, CommandError> {
        let number = self.int("OUTPUT", 1..=1 << 52)? as u64;
        match self.payload("OUTPUT")? {
            [] => syntax("OUTPUT needs a chunk of at least one byte"),
            text => Ok(Chunk { number, text }),
        }
    }

    /// The length of a list.
    pub fn length(&mut self, name: &str, least: i64) -> Result<usize, CommandError> {
        Ok(self.int(name, least..=config().max_batch)? as usize)
    }

    /// `n` words, each read by `read`.
    pub fn many<T>(
        &mut self,
        n: usize,
        name: &str,
        mut read: impl FnMut(&mut Self) -> Result<T, CommandError>,
    ) -> Result<Vec<T>, CommandError> {
        if self.left() < n {
            return syntax(format!("{name} names {n} but fewer follow"));
        }
        (0..n).map(|_| read(self)).collect()
    }

    /// A list of names, preceded by its length.
    pub fn names(&mut self, name: &str, least: i64) -> Result<Vec<&'a [u8]>, CommandError> {
        let n = self.length(name, least)?;
        self.many(n, name, |args| args.name(name))
    }

    /// Takes QUEUE or QUEUES if the word is one of them; otherwise returns false.
    pub fn queues(&mut self, word: &str, place: &mut Option<Queues<'a>>) -> Result<bool, CommandError> {
        const EITHER: &str = "QUEUE and QUEUES";
        match word {
            "QUEUE" => one_of(place, EITHER, "QUEUE", vec![self.name("QUEUE")?])?,
            "QUEUES" => one_of(place, EITHER, "QUEUES", self.several_queues()?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The queues of a client that may wait: when it is served, it is removed from the line of
    /// each.
    fn several_queues(&mut self) -> Result<Vec<&'a [u8]>, CommandError> {
        let n = self.int("QUEUES", 0..=config().max_batch.min(QUEUES_MOST))? as usize;
        self.many(n, "QUEUES", |args| args.name("QUEUES"))
    }

    /// TOKEN and its value, if they come next: in most calls they follow the job's id.
    pub fn next_token(&mut self) -> Result<Option<u64>, CommandError> {
        match self.take("TOKEN") {
            true => self.token("TOKEN").map(Some),
            false => Ok(None),
        }
    }

    /// A fencing token.
    pub fn token(&mut self, name: &str) -> Result<u64, CommandError> {
        Ok(self.int(name, 0..=(1 << 53) - 1)? as u64)
    }

    /// A percentage, in hundredths of a per cent.
    pub fn percent(&mut self, name: &str) -> Result<u16, CommandError> {
        let word = self.value(name)?;
        let number = std::str::from_utf8(word).ok().and_then(|text| text.parse::<f64>().ok());
        match number.filter(|n| (0.0..=100.0).contains(n)) {
            Some(percent) => Ok((percent * 100.0).round() as u16),
            None => syntax(format!("{name} must be a number from 0 to 100")),
        }
    }

    /// A list of tags, each once.
    pub fn tags(&mut self, name: &str, least: i64) -> Result<Vec<&'a [u8]>, CommandError> {
        let n = self.int(name, least..=board::TAGS_MOST as i64)? as usize;
        let tags = self.many(n, name, |args| args.name(name))?;
        let mut seen = HashSet::new();
        match tags.iter().find(|tag| !seen.insert(**tag)) {
            Some(twice) => syntax(format!("{name} names '{}' twice", board::clean(twice))),
            None => Ok(tags),
        }
    }

    /// Fields and values of a META option.
    pub fn meta(&mut self) -> Result<board::Meta<'a>, CommandError> {
        let n = self.int("META", 1..=64)? as usize;
        if self.left() < 2 * n {
            return syntax(format!("META names {n} pairs but fewer follow"));
        }
        let mut meta = board::Meta::with_capacity(n);
        for _ in 0..n {
            let field = self.name("META field")?;
            let value = self.text("META value")?;
            meta.push(board::pair(field, value));
        }
        Ok(meta)
    }
}
