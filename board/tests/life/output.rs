//! Output: what a worker writes while its job runs, and what its readers get.

use board::*;

use crate::site::*;
use crate::world::{Done, World};

/// The attempt, whether the chunks begin a run, how many are missing, and the text.
type Read = (u32, bool, u64, String);

fn chunk(number: u64, text: &str) -> Option<Chunk<'_>> {
    Some(Chunk { number, text: text.as_bytes() })
}

fn speaker<'a>(worker: &'a [u8], token: Option<u64>) -> Speaker<'a> {
    Speaker { worker, id: b"job", token }
}

impl World {
    fn writes(&mut self, token: u64, number: u64, text: &str) -> Result<(i64, bool), String> {
        let beat = Heartbeat { output: chunk(number, text), ..Heartbeat::default() };
        self.heartbeat(&(speaker(ANN, Some(token)), beat))
    }

    fn ends_with(&mut self, token: u64, number: u64, text: &str) -> Result<Done, String> {
        let output = chunk(number, text);
        self.work(&(speaker(ANN, Some(token)), Consume { output, ..Consume::default() }))
    }

    fn reads(&self, since: u64) -> Read {
        let unread = self.board.output_since(self.board.find(b"job").unwrap(), since, 100);
        let text = unread.chunks.concat();
        (unread.attempt, unread.anew, unread.missed, String::from_utf8(text).unwrap())
    }
}

fn read(attempt: u32, anew: bool, missed: u64, text: &str) -> Read {
    (attempt, anew, missed, text.into())
}

/// A job that ann holds, and has written two chunks of.
fn begun() -> (World, u64) {
    let mut w = World::default();
    w.put("job");
    let token = w.take_id(ANN, "job");
    w.writes(token, 1, "the ").unwrap();
    w.writes(token, 2, "sky ").unwrap();
    (w, token)
}

#[test]
fn a_reader_gets_what_it_has_not_read() {
    let (w, _) = begun();
    assert_eq!(w.reads(0), read(1, true, 0, "the sky "));
    assert_eq!(w.reads(1), read(1, false, 0, "sky "));
    assert_eq!(w.reads(2), read(1, false, 0, ""));
    let unread = w.board.output_since(w.board.find(b"job").unwrap(), 0, 1);
    assert_eq!((unread.next, unread.chunks), (1, vec![&b"the "[..]]));
}

#[test]
fn a_chunk_that_is_sent_again_is_ignored_and_one_out_of_order_refused() {
    let (mut w, token) = begun();
    w.now += 10;
    let (deadline, _) = w.writes(token, 2, "other").unwrap();
    assert_eq!(deadline, w.now + 30_000);
    w.writes(token, 1, "other").unwrap();
    let version = w.job("job").version();
    assert_eq!(w.writes(token, 4, "blue"), Err("GAP the next chunk of this run is 3".into()));
    assert_eq!((w.reads(0), w.job("job").version()), (read(1, true, 0, "the sky "), version));
}

#[test]
fn a_verb_that_is_refused_writes_nothing() {
    let (mut w, token) = begun();
    assert!(w.writes(token + 1, 3, "x").is_err());
    let stolen = Heartbeat { output: chunk(1, "x"), ..Heartbeat::default() };
    assert!(w.heartbeat(&(speaker(BOB, None), stolen)).is_err());
    assert!(w.ends_with(token, 9, "x").is_err());
    assert_eq!(w.job("job").state(), Claimed);
    assert_eq!(w.reads(0), read(1, true, 0, "the sky "));
}

#[test]
fn the_last_bytes_are_kept_and_who_is_late_learns_what_it_missed() {
    let (mut w, token) = begun();
    w.configure(None, Setting::OutputBytes, Some(9));
    assert_eq!(w.writes(token, 3, "0123456789"), Err("LIMIT output-bytes".into()));
    w.writes(token, 3, "is blue").unwrap();
    assert_eq!(w.reads(0), read(1, true, 2, "is blue"));
    assert_eq!(w.reads(1), read(1, false, 1, "is blue"));
    assert_eq!(w.reads(2), read(1, false, 0, "is blue"));
    w.configure(None, Setting::OutputBytes, Some(0));
    assert_eq!(w.writes(token, 4, "."), Err("LIMIT output-bytes".into()));
    assert!(w.beat(ANN, "job", Some(token)).is_ok());
}

#[test]
fn a_step_writes_too_whether_or_not_its_value_is_there() {
    let (mut w, token) = begun();
    for (number, text) in [(3, "is "), (4, "blue")] {
        let step = Step { name: b"a", value: b"1", output: chunk(number, text), ..Step::default() };
        w.step(&(speaker(ANN, Some(token)), step)).unwrap();
    }
    assert_eq!(w.reads(2), read(1, false, 0, "is blue"));
}

#[test]
fn the_output_of_a_run_stays_until_the_next_one_writes() {
    let (mut w, token) = begun();
    w.fails(ANN, "job", Some(token)).unwrap();
    assert_eq!(w.reads(0), read(1, true, 0, "the sky "));
    w.pass(100_000);
    let token = w.take_id(ANN, "job");
    assert_eq!(w.reads(2), read(1, false, 0, ""));
    w.writes(token, 1, "now ").unwrap();
    assert_eq!(w.reads(1), read(2, true, 0, "now "));
    assert_eq!(w.reads(2), read(2, true, 0, "now "));
    assert_eq!(w.reads(3), read(2, false, 0, ""));
}

#[test]
fn a_late_worker_goes_on_with_its_run() {
    let (mut w, token) = begun();
    w.pass(30_000);
    assert_eq!(w.job("job").state(), Ready);
    w.writes(token, 3, "is ").unwrap();
    w.pass(30_000);
    w.ends_with(token, 4, "blue").unwrap();
    assert_eq!(w.reads(0), read(1, true, 0, "the sky is blue"));
}

#[test]
fn a_job_with_output_is_kept_for_its_readers() {
    let (mut w, token) = begun();
    w.put("other");
    w.take_id(ANN, "other");
    w.done(ANN, "other", None).unwrap();
    assert!(w.board.find(b"other").is_none());
    w.ends_with(token, 3, "is blue").unwrap();
    assert_eq!(w.ends_with(token, 3, "is blue"), Ok(Done::Again(Complete)));
    assert_eq!((w.job("job").state(), w.reads(2)), (Complete, read(1, false, 0, "is blue")));
    w.pass(59_999);
    assert!(w.board.find(b"job").is_some());
    w.pass(1);
    assert!(w.board.find(b"job").is_none());
}

#[test]
fn an_output_alone_keeps_a_job_and_a_setting_ends_that() {
    for (keep, stays) in [(60_000, true), (0, false)] {
        let mut w = World::default();
        w.configure(None, Setting::RetainOutput, Some(keep));
        w.put("job");
        let token = w.take_id(ANN, "job");
        w.ends_with(token, 1, "blue").unwrap();
        assert_eq!(w.board.find(b"job").is_some(), stays);
    }
}

#[test]
fn a_stage_writes_anew_behind_the_one_before() {
    let (mut w, token) = begun();
    let advance = Advance { queue: b"next", output: chunk(3, "is blue"), ..Advance::default() };
    w.work(&(speaker(ANN, Some(token)), advance)).unwrap();
    assert_eq!(w.reads(2), read(1, false, 0, "is blue"));
    let token = w.take_id(ANN, "job");
    w.writes(token, 1, "checked").unwrap();
    assert_eq!(w.reads(3), read(1, true, 0, "checked"));
}

#[test]
fn another_job_of_the_id_has_no_output() {
    let (mut w, token) = begun();
    w.fails_with(ANN, "job", Some(token), Retry::No).unwrap();
    w.put_replacing("job", b"again");
    assert_eq!(w.reads(0), read(0, false, 0, ""));
    assert_eq!(w.reads(2), read(0, true, 0, ""));
}

#[test]
fn output_counts_in_the_bytes_of_the_records() {
    let (mut w, token) = begun();
    let before = w.job("job").weight();
    w.writes(token, 3, &"x".repeat(1_000)).unwrap();
    assert_eq!(w.job("job").weight(), before + 1_004);
    w.is_valid();
}

#[test]
fn anybody_may_end_a_job_that_never_ran_with_output() {
    let mut w = World::default();
    w.configure(None, Setting::Ownerless, Some(1));
    w.put("job");
    let output = chunk(1, "done elsewhere");
    w.work(&(speaker(ANYBODY, None), Consume { output, ..Consume::default() })).unwrap();
    assert_eq!(w.reads(0), read(0, true, 0, "done elsewhere"));
}
