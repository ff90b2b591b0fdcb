//! Failures that somebody has set aside: known, and not listed under "What needs you" until they grow. For all
//! users of this console, in memory; with `--history DIR` also in a file, which a restart reads again.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{json, Value};

use crate::access::sessions::lock;
use crate::alike::Alike;
use crate::format::now;
use crate::names::{hex, unhex};

/// At most this many; the oldest goes first.
const MOST: usize = 500;

/// One that nobody has set aside again for so long comes back, ms.
const LONGEST: i64 = 30 * 86_400_000;

/// It has grown when it fails this many times as often.
const GROWTH: f64 = 1.5;

/// A board, a kind of failure, and what its messages have in common.
type Key = (Vec<u8>, Vec<u8>, String);

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub user: String,
    /// Unix ms.
    pub at: i64,
    /// Failures in 15 minutes, when it was set aside.
    pub pace: f64,
    /// It has grown since, and so is listed again.
    pub grown: bool,
}

impl Entry {
    /// It comes back above this many failures in 15 minutes.
    pub fn limit(&self) -> f64 {
        (self.pace * GROWTH).floor()
    }
}

#[derive(Default)]
pub struct Aside {
    entries: Mutex<HashMap<Key, Entry>>,
    file: Option<PathBuf>,
}

impl Aside {
    /// With a folder it reads what is there, and writes there.
    pub fn open(folder: Option<&Path>) -> Self {
        let file = folder.map(|folder| folder.join("aside.jsonl"));
        let text = file.as_ref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        let aside = Self { entries: Mutex::new(text.lines().filter_map(read).collect()), file };
        lock(&aside.entries).retain(|_, entry| now() - entry.at < LONGEST);
        aside
    }

    /// Of this failure, if it is or was set aside.
    pub fn of(&self, board: &[u8], alike: &Alike) -> Option<Entry> {
        let entries = lock(&self.entries);
        entries.get(&key(board, alike)?).filter(|entry| now() - entry.at < LONGEST).cloned()
    }

    pub fn add(&self, board: &[u8], alike: &Alike, user: &str, pace: f64) {
        let Some(key) = key(board, alike) else { return };
        let mut entries = lock(&self.entries);
        if entries.len() >= MOST && !entries.contains_key(&key) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.at).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| entries.remove(&oldest));
        }
        entries.insert(key, Entry { user: user.to_owned(), at: now(), pace, grown: false });
        self.write(&entries);
    }

    /// It has grown: it is listed again, with the word of who had set it aside.
    pub fn grew(&self, board: &[u8], alike: &Alike) {
        let Some(key) = key(board, alike) else { return };
        let mut entries = lock(&self.entries);
        if entries.get_mut(&key).is_some_and(|entry| !std::mem::replace(&mut entry.grown, true)) {
            self.write(&entries);
        }
    }

    pub fn remove(&self, board: &[u8], alike: &Alike) {
        let Some(key) = key(board, alike) else { return };
        let mut entries = lock(&self.entries);
        if entries.remove(&key).is_some() {
            self.write(&entries);
        }
    }

    /// The whole file anew: there are few. Messages may hold what not everybody is to read.
    fn write(&self, entries: &HashMap<Key, Entry>) {
        let Some(file) = &self.file else { return };
        let text: String = entries.iter().map(|(key, entry)| line(key, entry)).collect();
        let fresh = file.with_extension("new");
        let written = fs::OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&fresh)
            .and_then(|mut open| open.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&fresh, file));
        if let Err(error) = written {
            eprintln!("jobboard-console: --history: {error}");
        }
    }
}

fn key(board: &[u8], alike: &Alike) -> Option<Key> {
    Some((board.to_vec(), alike.kind.clone(), alike.pattern.clone()?))
}

fn line((board, kind, pattern): &Key, entry: &Entry) -> String {
    let value = json!({
        "board": hex(board), "kind": hex(kind), "pattern": pattern,
        "user": entry.user, "at": entry.at, "pace": entry.pace, "grown": entry.grown,
    });
    format!("{value}\n")
}

fn read(line: &str) -> Option<(Key, Entry)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let text = |field: &str| value.get(field)?.as_str().map(str::to_owned);
    let bytes = |field: &str| unhex(text(field)?.as_bytes());
    let entry = Entry {
        user: text("user")?,
        at: value.get("at")?.as_i64()?,
        pace: value.get("pace")?.as_f64()?,
        grown: value.get("grown")?.as_bool()?,
    };
    Some(((bytes("board")?, bytes("kind")?, text("pattern")?), entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(pattern: &str) -> Alike {
        Alike { kind: b"\xffIOError".to_vec(), pattern: Some(pattern.to_owned()) }
    }

    #[test]
    fn a_line_is_read_again() {
        let entry = Entry { user: "ann\n".into(), at: 7, pace: 2.5, grown: true };
        let key = key(b"b", &alike("disk #")).unwrap();
        assert_eq!(read(&line(&key, &entry)), Some((key, entry)));
        for bad in ["", "{}", "[]", "{\"board\":\"00\"}", "\u{0}"] {
            assert_eq!(read(bad), None);
        }
    }

    #[test]
    fn it_is_one_failure_of_one_board_and_the_oldest_goes_first() {
        let aside = Aside::default();
        aside.add(b"b", &alike("a"), "ann", 4.0);
        assert_eq!(aside.of(b"b", &alike("a")).map(|entry| entry.limit()), Some(6.0));
        assert_eq!((aside.of(b"c", &alike("a")), aside.of(b"b", &alike("b"))), (None, None));
        lock(&aside.entries).values_mut().for_each(|entry| entry.at -= 1);
        for number in 0..MOST {
            aside.add(b"c", &alike(&number.to_string()), "ann", 1.0);
        }
        assert_eq!(lock(&aside.entries).len(), MOST);
        assert_eq!(aside.of(b"b", &alike("a")), None);
        aside.remove(b"c", &alike("7"));
        assert_eq!(aside.of(b"c", &alike("7")), None);
    }

    #[test]
    fn what_is_too_old_comes_back() {
        let aside = Aside::default();
        aside.add(b"b", &alike("a"), "ann", 4.0);
        lock(&aside.entries).values_mut().for_each(|entry| entry.at -= LONGEST);
        assert_eq!(aside.of(b"b", &alike("a")), None);
    }
}
