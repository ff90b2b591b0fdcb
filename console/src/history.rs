//! A day of samples of every board, with `--history DIR`: one a minute, by the user in --redis. Written as a
//! line of JSON each, so that a restart loses none; files of earlier days are deleted.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{json, Value};

use crate::access::sessions::lock;
use crate::app::App;
use crate::connection::board_command;
use crate::connection::reply::Record;
use crate::failure::Failure;
use crate::format::{day_of, now};
use crate::names::{hex, unhex};

/// Samples are kept for so long, ms.
const SPAN: i64 = 86_400_000;

/// Points further apart are not joined, ms.
const GAP: i64 = 150_000;

/// No more boards are sampled.
const MOST: usize = 500;

#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub at: i64,
    pub ready: i64,
    pub claimed: i64,
    /// Since the day began.
    done: i64,
    failed: i64,
}

/// A sample, and the jobs that were done and failed a minute before it; `None` after a gap.
pub struct Seen {
    pub sample: Sample,
    pub paces: Option<(f64, f64)>,
}

pub struct History {
    folder: PathBuf,
    boards: Mutex<HashMap<Vec<u8>, VecDeque<Sample>>>,
}

impl History {
    /// Reads what is there.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let fault = |error: std::io::Error| format!("--history {}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(fault)?;
        let history = Self { folder: folder.to_owned(), boards: Mutex::default() };
        for day in [now() - SPAN, now()] {
            let text = fs::read_to_string(history.file(day)).unwrap_or_default();
            for (board, sample) in text.lines().filter_map(read) {
                history.keep(&board, sample);
            }
        }
        // Says at the start whether the file can be written, rather than by a chart that stays empty.
        fs::OpenOptions::new().create(true).append(true).open(history.file(now())).map_err(fault)?;
        Ok(history)
    }

    fn file(&self, at: i64) -> PathBuf {
        self.folder.join(format!("jobboard-{}.jsonl", day_of(at)))
    }

    fn keep(&self, board: &[u8], sample: Sample) {
        let mut boards = lock(&self.boards);
        if boards.len() >= MOST && !boards.contains_key(board) {
            return;
        }
        let samples = boards.entry(board.to_vec()).or_default();
        while samples.front().is_some_and(|first| sample.at - first.at > SPAN) {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// What is known of a board.
    pub fn of(&self, board: &[u8]) -> Vec<Seen> {
        let boards = lock(&self.boards);
        let Some(samples) = boards.get(board) else { return Vec::new() };
        let mut found: Vec<Seen> = Vec::new();
        for sample in samples {
            let paces = found.last().and_then(|last| paces(&last.sample, sample));
            found.push(Seen { sample: sample.clone(), paces });
        }
        found
    }

    fn write(&self, lines: &str) -> std::io::Result<()> {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.file(now()))?;
        file.write_all(lines.as_bytes())?;
        for days in 2..10 {
            let _ = fs::remove_file(self.file(now() - days * SPAN));
        }
        Ok(())
    }
}

/// `None` when nobody looked in between.
fn paces(last: &Sample, sample: &Sample) -> Option<(f64, f64)> {
    let ms = sample.at - last.at;
    if ms <= 0 || ms > GAP {
        return None;
    }
    // A new day has begun at nothing.
    let gained = |now: i64, before: i64| if now < before { now } else { now - before };
    let pace = |gained: i64| gained as f64 * 60_000.0 / ms as f64;
    Some((pace(gained(sample.done, last.done)), pace(gained(sample.failed, last.failed))))
}

fn read(line: &str) -> Option<(Vec<u8>, Sample)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let number = |field: &str| value.get(field)?.as_i64();
    let board = unhex(value.get("board")?.as_str()?.as_bytes())?;
    let sample = Sample {
        at: number("at")?,
        ready: number("ready")?,
        claimed: number("running")?,
        done: number("done")?,
        failed: number("failed")?,
    };
    Some((board, sample))
}

fn line(board: &[u8], sample: &Sample) -> String {
    let value = json!({
        "at": sample.at, "board": hex(board), "ready": sample.ready, "running": sample.claimed,
        "done": sample.done, "failed": sample.failed,
    });
    format!("{value}\n")
}

/// Samples every board again and again.
pub async fn sample(app: Arc<App>) {
    let Some(history) = &app.history else { return };
    loop {
        match look(&app, history).await {
            Ok(lines) => {
                if let Err(error) = history.write(&lines) {
                    eprintln!("jobboard-console: --history: {error}");
                }
            }
            Err(failure) => eprintln!("jobboard-console: --history: {}", failure.text()),
        }
        tokio::time::sleep(Duration::from_secs(app.options.history_pace)).await;
    }
}

async fn look(app: &App, history: &History) -> Result<String, Failure> {
    let (link, boards) = app.metrics.boards(app).await?;
    let mut lines = String::new();
    for board in boards.iter().take(MOST) {
        let asked = async {
            let info = Record::read(link.ask(board, board_command("INFO", board)).await?);
            let stats = Record::read(link.ask(board, board_command("STATS", board)).await?);
            Ok(info.zip(stats))
        };
        match asked.await {
            Ok(Some((info, stats))) => {
                let sample = Sample {
                    at: now(),
                    ready: info.int("ready"),
                    claimed: info.int("claimed"),
                    done: stats.int("completed"),
                    failed: stats.int("failed") + stats.int("retried"),
                };
                lines.push_str(&line(board, &sample));
                history.keep(board, sample);
            }
            Ok(None) | Err(Failure::NotAllowed(_) | Failure::NotFound(_) | Failure::Server(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: i64, done: i64) -> Sample {
        Sample { at, ready: 1, claimed: 2, done, failed: 0 }
    }

    #[test]
    fn a_line_is_read_again() {
        let one = sample(7, 3);
        assert_eq!(read(&line(b"\xffb", &one)), Some((b"\xffb".to_vec(), one)));
        for bad in ["", "{}", "[]", "{\"at\":1}", "\u{0}"] {
            assert_eq!(read(bad), None);
        }
    }

    #[test]
    fn paces_are_none_over_a_gap() {
        assert_eq!(paces(&sample(0, 10), &sample(60_000, 40)), Some((30.0, 0.0)));
        assert_eq!(paces(&sample(0, 10), &sample(60_000, 4)), Some((4.0, 0.0)));
        assert_eq!(paces(&sample(0, 10), &sample(GAP + 1, 40)), None);
    }
}
