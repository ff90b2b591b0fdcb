//! An action as an address says it, and the command that it comes to.

pub mod runs;
pub mod update;

use std::collections::HashSet;

use redis::Cmd;

use crate::alike::Alike;
use crate::failure::Failure;
use crate::filters::Filters;
use crate::names::is_plain;
use crate::query::Query;

/// The words of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words(Vec<Vec<u8>>);

impl Words {
    pub fn of(words: &[&[u8]]) -> Self {
        Self::default().with(words)
    }

    fn add(&mut self, word: impl AsRef<[u8]>) -> &mut Self {
        self.0.push(word.as_ref().to_vec());
        self
    }

    pub fn command(&self) -> Cmd {
        let mut command = Cmd::new();
        for word in &self.0 {
            command.arg(word);
        }
        command
    }

    /// The same with more words behind.
    pub fn with(&self, more: &[&[u8]]) -> Words {
        Words(self.0.iter().cloned().chain(more.iter().map(|word| word.to_vec())).collect())
    }

    /// As one would type it into redis-cli.
    pub fn text(&self) -> String {
        self.0.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

fn quoted(word: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:@*/+{}".contains(byte);
    if !word.is_empty() && word.iter().all(plain) {
        return String::from_utf8_lossy(word).into_owned();
    }
    let mut text = String::from("\"");
    if is_plain(word) {
        for one in String::from_utf8_lossy(word).chars() {
            if one == '"' || one == '\\' {
                text.push('\\');
            }
            text.push(one);
        }
    } else {
        for byte in word {
            match byte {
                b'"' | b'\\' => text.push_str(&format!("\\{}", *byte as char)),
                b' '..=b'~' => text.push(*byte as char),
                _ => text.push_str(&format!("\\x{byte:02x}")),
            }
        }
    }
    text.push('"');
    text
}

/// What is done to jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JobVerb {
    Requeue,
    /// Sends dead jobs back to the queues in which they failed.
    Return,
    /// Ends the delay of scheduled jobs, and of those that wait for a retry.
    Now,
    Cancel,
    Release,
    Delete,
    Update,
}

impl JobVerb {
    fn word(self) -> &'static str {
        match self {
            Self::Requeue | Self::Return => "JOB.REQUEUE",
            Self::Cancel => "JOB.CANCEL",
            Self::Release => "JOB.RELEASE",
            Self::Delete => "JOB.DELETE",
            Self::Now | Self::Update => "JOB.UPDATE",
        }
    }

    /// What becomes of a job in this state, or why it is passed over.
    pub fn outcome(self, state: &str, force: bool) -> Result<&'static str, &'static str> {
        let ended = ["complete", "failed", "cancelled", "trashed"].contains(&state);
        match self {
            Self::Requeue if state == "complete" => Err("it is done"),
            Self::Requeue if ended => Ok("ready again"),
            Self::Requeue => Err("it has not ended"),
            Self::Return if state == "claimed" => Err("a worker holds it"),
            Self::Return if state == "complete" => Err("it is done"),
            Self::Return => Ok("ready in the queue where it failed"),
            Self::Now if state == "scheduled" => Ok("ready"),
            Self::Now if state == "claimed" => Err("a worker holds it"),
            Self::Now if state == "ready" => Err("it is ready already"),
            Self::Now if state == "blocked" => Err("it waits for other jobs or signals"),
            Self::Now => Err("it has ended"),
            Self::Cancel if state == "cancelled" => Err("it is cancelled already"),
            Self::Cancel if ended => Err("it has ended"),
            Self::Cancel if state == "claimed" && !force => Ok("its worker is asked to stop"),
            Self::Cancel if state == "claimed" => Ok("cancelled; its worker loses it"),
            Self::Cancel => Ok("cancelled"),
            Self::Release if state == "claimed" => Ok("ready; its worker loses it"),
            Self::Release => Err("no worker has it"),
            Self::Delete => Ok("deleted, with its history"),
            Self::Update if ended => Err("it has ended"),
            Self::Update => Ok("changed"),
        }
    }
}

/// What an address asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// These jobs.
    Jobs { verb: JobVerb, ids: Vec<Vec<u8>> },
    /// All that pass filters, slice by slice.
    Where { verb: JobVerb, filters: Filters },
    /// The newest failures of one kind and message.
    Alike { verb: JobVerb, alike: Alike },
    /// The console itself sets a failure aside, or ends that.
    Aside { alike: Alike, ends: bool },
    /// Something of the board, a queue, a group, a limit or a schedule, in one command.
    One(Words),
}

/// Jobs that one command names.
pub const MOST_IDS: usize = 1000;

impl Plan {
    pub fn read(board: &[u8], query: &Query) -> Result<Self, Failure> {
        let bad = |text: &str| Failure::BadRequest(text.into());
        let verb = match query.text("verb").unwrap_or_default() {
            "requeue" => JobVerb::Requeue,
            "return" => JobVerb::Return,
            "now" => JobVerb::Now,
            "cancel" => JobVerb::Cancel,
            "release" => JobVerb::Release,
            "delete" => JobVerb::Delete,
            "update" => JobVerb::Update,
            "pause" => return pause(board, query).map(Self::One),
            "resume" => return Ok(Self::One(resume(board, query))),
            "settings" => return settings(board, query).map(Self::One),
            "signal" => return signal(board, query).map(Self::One),
            verb @ ("worker-quiet" | "worker-resume") => {
                let worker = query.bytes("worker").ok_or_else(|| bad("No worker is named."))?;
                let verb = verb.trim_start_matches("worker-").to_uppercase();
                return Ok(Self::One(start("JOB.WORKER").with(&[verb.as_bytes(), board, worker])));
            }
            verb @ ("schedule-pause" | "schedule-resume" | "schedule-run" | "schedule-del") => {
                let id = query.bytes("schedule").ok_or_else(|| bad("No schedule is named."))?;
                let verb = verb.trim_start_matches("schedule-").to_uppercase();
                return Ok(Self::One(start("JOB.SCHEDULE").with(&[verb.as_bytes(), board, id])));
            }
            verb @ ("aside" | "aside-end") => {
                let named = query.bytes("kind").zip(query.any("alike"));
                let (kind, pattern) = named.ok_or_else(|| bad("No failure is named."))?;
                let pattern = Some(String::from_utf8_lossy(pattern).into_owned());
                return Ok(Self::Aside {
                    alike: Alike { kind: kind.to_vec(), pattern },
                    ends: verb == "aside-end",
                });
            }
            _ => return Err(bad("There is no such action.")),
        };
        if let (Some(kind), Some(pattern)) = (query.bytes("kind"), query.any("alike")) {
            if !matches!(verb, JobVerb::Requeue | JobVerb::Delete) {
                return Err(bad("Failures are requeued or deleted together."));
            }
            let pattern = Some(String::from_utf8_lossy(pattern).into_owned());
            return Ok(Self::Alike { verb, alike: Alike { kind: kind.to_vec(), pattern } });
        }
        if query.is_set("where") {
            if let Some(odd) = Filters::odd(query) {
                return Err(Failure::BadRequest(odd));
            }
            let mut filters = Filters::read(query);
            if filters.is_empty() {
                return Err(bad("No filter is named: that would be all jobs of the board."));
            }
            if filters.look_into_payloads() {
                return Err(bad(
                    "The server cannot choose jobs by a field of their payloads: choose them in the list.",
                ));
            }
            if verb == JobVerb::Now && !filters.only_scheduled() {
                return Err(bad("Run now is for scheduled jobs: these are in other states."));
            }
            return Ok(Self::Where { verb, filters });
        }
        Ok(Self::Jobs { verb, ids: ids(query)? })
    }
}

/// The jobs that an address or a form names.
pub fn ids(query: &Query) -> Result<Vec<Vec<u8>>, Failure> {
    let mut seen = HashSet::new();
    let named = query.all("id").filter(|id| !id.is_empty() && seen.insert(id.to_vec()));
    let ids: Vec<Vec<u8>> = named.map(<[u8]>::to_vec).collect();
    match ids.len() {
        0 => Err(Failure::BadRequest("No job is chosen.".into())),
        1..=MOST_IDS => Ok(ids),
        _ => Err(Failure::BadRequest("Too many jobs are named.".into())),
    }
}

fn start(word: &str) -> Words {
    let mut words = Words::default();
    words.add(word);
    words
}

/// The command for these jobs.
pub fn for_ids(board: &[u8], verb: JobVerb, ids: &[Vec<u8>], query: &Query) -> Result<Words, Failure> {
    let mut words = start(verb.word());
    words.add(board).add(ids.len().to_string());
    for id in ids {
        words.add(id);
    }
    if let (JobVerb::Requeue, Some(queue)) = (verb, query.bytes("to")) {
        words.add("QUEUE").add(queue);
    }
    changes(&mut words, verb, query)?;
    Ok(words)
}

/// The command for a slice of all that pass; `tail` is put before what is changed: a cursor, DRYRUN.
pub fn for_filters(
    board: &[u8],
    verb: JobVerb,
    filters: &Filters,
    query: &Query,
    tail: &[&[u8]],
) -> Result<Words, Failure> {
    let mut words = start(verb.word());
    words.add(board).add("WHERE");
    for word in filters.words() {
        words.add(word);
    }
    if let (JobVerb::Requeue, Some(queue)) = (verb, query.bytes("to")) {
        words.add("TO").add(queue);
    }
    words = words.with(tail);
    changes(&mut words, verb, query)?;
    Ok(words)
}

fn changes(words: &mut Words, verb: JobVerb, query: &Query) -> Result<(), Failure> {
    if verb == JobVerb::Cancel && query.is_set("force") {
        words.add("FORCE");
    }
    if verb == JobVerb::Return {
        words.add("ORIGIN");
    }
    if matches!(verb, JobVerb::Requeue | JobVerb::Return) && query.is_set("fresh") {
        words.add("FRESH");
    }
    if verb == JobVerb::Now {
        words.add("SET").add("DELAY").add("0");
    }
    if verb == JobVerb::Update {
        update::add(words, query)?;
    }
    Ok(())
}

fn place(words: &mut Words, query: &Query) {
    if let Some(limit) = query.bytes("limit") {
        words.add("LIMIT").add(limit);
        return;
    }
    if let Some(queue) = query.bytes("queue") {
        words.add("QUEUE").add(queue);
        if let Some(group) = query.bytes("group") {
            words.add("GROUP").add(group);
        }
    }
}

fn pause(board: &[u8], query: &Query) -> Result<Words, Failure> {
    let mut words = start("JOB.PAUSE");
    words.add(board);
    place(&mut words, query);
    if let Some(seconds) = query.text("for").filter(|text| !text.is_empty()) {
        let ms = seconds.parse::<f64>().ok().filter(|seconds| (0.001..=1e9).contains(seconds));
        let ms = ms.ok_or_else(|| Failure::BadRequest("The time must be a number of seconds.".into()))?;
        words.add("FOR").add(format!("{:.0}", ms * 1000.0));
    }
    if query.is_set("release") {
        words.add("RELEASE");
    }
    Ok(words)
}

/// `JOB.SIGNAL`, without its sender: an address does not say who that is.
fn signal(board: &[u8], query: &Query) -> Result<Words, Failure> {
    let name = query.bytes("signal").ok_or_else(|| Failure::BadRequest("No signal is named.".into()))?;
    let ids = ids(query)?;
    let mut words = start("JOB.SIGNAL");
    words.add(board).add(name).add(ids.len().to_string());
    for id in ids {
        words.add(id);
    }
    if let Some(value) = query.bytes("value") {
        words.add("VALUE").add(value);
    }
    Ok(words)
}

fn resume(board: &[u8], query: &Query) -> Words {
    let mut words = start("JOB.RESUME");
    words.add(board);
    place(&mut words, query);
    words
}

/// `JOB.SETTINGS SET` of the fields `s.<name>`, or `RESET` of the fields `r.<name>`.
fn settings(board: &[u8], query: &Query) -> Result<Words, Failure> {
    let reset: Vec<&str> = query.iter().filter_map(|(field, _)| field.strip_prefix("r.")).collect();
    let mut words = start("JOB.SETTINGS");
    words.add(if reset.is_empty() { "SET" } else { "RESET" }).add(board);
    place(&mut words, query);
    if !reset.is_empty() {
        for name in reset {
            words.add(name);
        }
        return Ok(words);
    }
    let mut any = false;
    for (field, value) in query.iter() {
        let Some(name) = field.strip_prefix("s.") else { continue };
        any = true;
        words.add(name);
        if name == "limits" {
            let text = String::from_utf8_lossy(value).into_owned();
            let names: Vec<&str> = text.split([',', ' ']).filter(|name| !name.is_empty()).collect();
            words.add(names.len().to_string());
            for name in names {
                words.add(name);
            }
        } else {
            words.add(value.trim_ascii());
        }
    }
    any.then_some(words)
        .ok_or_else(|| Failure::BadRequest("No setting has another value than before.".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> String {
        match Plan::read(b"board", &Query::read(text.as_bytes())).unwrap() {
            Plan::One(words) => words.text(),
            plan => panic!("{plan:?}"),
        }
    }

    #[test]
    fn commands_of_one_place() {
        assert_eq!(one("verb=pause"), "JOB.PAUSE board");
        assert_eq!(
            one("verb=pause&queue=a+b&group=g&for=1.5&release=1"),
            "JOB.PAUSE board QUEUE \"a b\" GROUP g FOR 1500 RELEASE"
        );
        assert_eq!(one("verb=resume&group=lost"), "JOB.RESUME board");
        assert_eq!(one("verb=pause&limit=api&for=30"), "JOB.PAUSE board LIMIT api FOR 30000");
        assert_eq!(one("verb=resume&limit=api"), "JOB.RESUME board LIMIT api");
        assert_eq!(
            one("verb=signal&signal=a+b&id=j&value=%FF%22"),
            "JOB.SIGNAL board \"a b\" 1 j VALUE \"\\xff\\\"\""
        );
        assert_eq!(one("verb=settings&s.lease=5&limit=api"), "JOB.SETTINGS SET board LIMIT api lease 5");
        assert_eq!(one("verb=settings&queue=q&s.limits=a,+b"), "JOB.SETTINGS SET board QUEUE q limits 2 a b");
        assert_eq!(one("verb=settings&r.lease=1"), "JOB.SETTINGS RESET board lease");
        assert_eq!(one("verb=worker-quiet&worker=a+b"), "JOB.WORKER QUIET board \"a b\"");
        assert_eq!(one("verb=worker-resume&worker=w"), "JOB.WORKER RESUME board w");
        assert_eq!(one("verb=schedule-run&schedule=%FF%22"), "JOB.SCHEDULE RUN board \"\\xff\\\"\"");
    }

    #[test]
    fn commands_of_jobs() {
        let query = Query::read(b"force=1&to=slow&priority=7");
        let ids = [b"a".to_vec(), b"b".to_vec()];
        let words = |verb| for_ids(b"board", verb, &ids, &query).unwrap().text();
        assert_eq!(words(JobVerb::Cancel), "JOB.CANCEL board 2 a b FORCE");
        assert_eq!(words(JobVerb::Requeue), "JOB.REQUEUE board 2 a b QUEUE slow");
        assert_eq!(words(JobVerb::Update), "JOB.UPDATE board 2 a b SET PRIORITY 7 QUEUE slow");
        assert_eq!(words(JobVerb::Now), "JOB.UPDATE board 2 a b SET DELAY 0");
        let filters = Filters::read(&Query::read(b"state=failed&kind=IOError&lapsed=1"));
        let words = for_filters(b"board", JobVerb::Requeue, &filters, &query, &[b"DRYRUN"]).unwrap();
        assert_eq!(words.text(), "JOB.REQUEUE board WHERE STATE failed KIND IOError LAPSED TO slow DRYRUN");
    }

    #[test]
    fn what_names_nothing_is_refused() {
        for text in [
            "",
            "verb=drop",
            "verb=worker-quiet",
            "verb=now&where=1&state=ready",
            "verb=cancel",
            "verb=cancel&where=1",
            "verb=settings",
            "verb=pause&for=soon",
        ] {
            assert!(Plan::read(b"board", &Query::read(text.as_bytes())).is_err(), "{text}");
        }
        assert!(for_ids(b"b", JobVerb::Update, &[b"a".to_vec()], &Query::default()).is_err());
    }
}
