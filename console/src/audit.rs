//! What was done through this console: who sent which command to which board, and the outcome. The last entries
//! are in memory; with `--history DIR` each one is also a line of JSON in a file of its day, and a restart
//! reads them again.

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{json, Value};

use crate::access::sessions::lock;
use crate::format::{day_of, now};
use crate::names::{hex, short, unhex};

/// At most this many are in memory.
const KEPT: usize = 5000;

/// Files of this many days are kept.
pub const DAYS: i64 = 30;

const DAY: i64 = 86_400_000;

/// Characters of a command that are kept: payloads and lists of ids may be long.
const COMMAND: usize = 300;

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Unix ms.
    pub at: i64,
    pub user: String,
    pub board: Vec<u8>,
    pub command: String,
    /// The server's answer, or why it refused.
    pub outcome: String,
    pub refused: bool,
}

impl Entry {
    fn line(&self) -> String {
        let value = json!({
            "at": self.at, "user": self.user, "board": hex(&self.board), "command": self.command,
            "outcome": self.outcome, "refused": self.refused,
        });
        format!("{value}\n")
    }

    fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |field: &str| value.get(field)?.as_str().map(str::to_owned);
        Some(Self {
            at: value.get("at")?.as_i64()?,
            user: text("user")?,
            board: unhex(text("board")?.as_bytes())?,
            command: text("command")?,
            outcome: text("outcome")?,
            refused: value.get("refused")?.as_bool()?,
        })
    }
}

#[derive(Default)]
pub struct Audit {
    entries: Mutex<VecDeque<Entry>>,
    folder: Option<PathBuf>,
}

impl Audit {
    /// With a folder it reads what is there, and writes there.
    pub fn open(folder: Option<&Path>) -> Result<Self, String> {
        let audit = Self { entries: Mutex::default(), folder: folder.map(Path::to_owned) };
        let Some(folder) = folder else { return Ok(audit) };
        let fault = |error: std::io::Error| format!("--history {}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(fault)?;
        for days in (0..DAYS).rev() {
            let text = fs::read_to_string(file(folder, now() - days * DAY)).unwrap_or_default();
            text.lines().filter_map(Entry::read).for_each(|entry| audit.keep(entry));
        }
        // Says at the start, rather than at the first action, whether the file can be written.
        open(folder, now()).map_err(fault)?;
        delete_old(folder, now());
        Ok(audit)
    }

    pub fn is_on_disk(&self) -> bool {
        self.folder.is_some()
    }

    fn keep(&self, entry: Entry) {
        let mut entries = lock(&self.entries);
        if entries.len() >= KEPT {
            entries.pop_front();
        }
        entries.push_back(entry);
    }

    pub fn note(&self, user: &str, board: &[u8], command: &str, outcome: Result<&str, &str>) {
        let (Ok(text) | Err(text)) = outcome;
        let entry = Entry {
            at: now(),
            user: user.to_owned(),
            board: board.to_vec(),
            command: short(command.as_bytes(), COMMAND),
            outcome: short(text.as_bytes(), COMMAND),
            refused: outcome.is_err(),
        };
        if let Some(folder) = &self.folder {
            if let Err(error) = write(folder, &entry) {
                eprintln!("jobboard-console: --history: {error}");
            }
        }
        self.keep(entry);
    }

    /// The last ones of a board, newest first, and how many there are.
    pub fn of(&self, board: &[u8], most: usize) -> (Vec<Entry>, usize) {
        let entries = lock(&self.entries);
        let own = entries.iter().rev().filter(|entry| entry.board == board);
        (own.clone().take(most).cloned().collect(), own.count())
    }
}

fn file(folder: &Path, at: i64) -> PathBuf {
    folder.join(format!("audit-{}.jsonl", day_of(at)))
}

/// The file of a day. Commands carry payloads, so that others may not read it.
fn open(folder: &Path, at: i64) -> std::io::Result<fs::File> {
    fs::OpenOptions::new().create(true).append(true).mode(0o600).open(file(folder, at))
}

fn write(folder: &Path, entry: &Entry) -> std::io::Result<()> {
    let is_new = !file(folder, entry.at).exists();
    open(folder, entry.at)?.write_all(entry.line().as_bytes())?;
    if is_new {
        delete_old(folder, entry.at);
    }
    Ok(())
}

/// Deletes the files of the days before those that are kept, as far back as a console may have been stopped.
fn delete_old(folder: &Path, at: i64) {
    for days in DAYS..DAYS + 366 {
        let _ = fs::remove_file(file(folder, at - days * DAY));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_come_first_and_the_oldest_are_dropped() {
        let audit = Audit::default();
        audit.note("ann", b"other", "JOB.PAUSE other", Ok("done."));
        for number in 0..KEPT {
            audit.note("ann", b"b", &format!("JOB.CANCEL b 1 {number}"), Err("ENDED"));
        }
        let (last, all) = audit.of(b"b", 2);
        assert_eq!((last.len(), all), (2, KEPT));
        assert!(last[0].command.ends_with(&format!(" {}", KEPT - 1)) && last[0].refused);
        assert_eq!(audit.of(b"other", 2), (Vec::new(), 0));
    }

    #[test]
    fn a_line_is_read_again() {
        let entry = Entry {
            at: 7,
            user: "ann\n".into(),
            board: b"\xffb".to_vec(),
            command: "JOB.POST b \"<b>\"".into(),
            outcome: "é".into(),
            refused: true,
        };
        assert_eq!(entry.line().lines().count(), 1);
        assert_eq!(Entry::read(&entry.line()), Some(entry));
        for bad in ["", "{}", "[]", "{\"at\":1}", "\u{0}"] {
            assert_eq!(Entry::read(bad), None);
        }
    }
}
