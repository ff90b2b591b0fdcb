//! What the verbs cost: decide, write the effect down, apply. Run with
//! `cargo bench -p board --bench verbs -- [chosen] [uncounted] [groups|queues|scan] [jobs waiting]...`;
//! memory is what the process grew by. `uncounted` keeps no statistics; with `groups` the jobs are of
//! a thousand groups that take turns; with `queues` each job waits in a queue of its own, and claims
//! name none; `scan` is the same with a look at each queue, as if few had jobs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::hint::black_box;
use std::time::Instant;

use board::*;

const PAYLOAD: [u8; 100] = [b'x'; 100];
const ROUNDS: u64 = 200_000;
const GROUPS: u64 = 1_000;

struct Site {
    board: Board,
    batch: Batch,
    rules: Rules,
    now: i64,
    n: u64,
    sent: usize,
    grouped: bool,
    /// In how many queues the jobs are; 0: all in one, which claims name.
    queues: u64,
}

impl Site {
    fn new() -> Site {
        let (board, batch, rules) = (Board::default(), Batch::default(), Rules::default());
        Site { board, batch, rules, now: 1_700_000_000_000, n: 0, sent: 0, grouped: false, queues: 0 }
    }

    fn act<'e>(&mut self, effect: impl Into<Effect<'e>>) {
        let effect = effect.into();
        self.batch.begin(self.board.revision(), self.now);
        self.batch.push(&effect);
        self.sent += black_box(self.batch.finish()).len();
        self.board.apply(&effect, self.now).expect("it fits");
    }

    fn post(&mut self, id: Option<&[u8]>) {
        self.n += 1;
        // A thousand posts a second.
        self.now += 1;
        let rules = std::mem::take(&mut self.rules);
        let env = Env {
            now: self.now,
            random: self.n,
            token: 0,
            giver: 0,
            hold: 0,
            recovery: 0,
            rotation: 0,
            rules: &rules,
        };
        let group = self.grouped.then(|| format!("tenant-{}", self.n % GROUPS));
        let group = group.as_deref().map(str::as_bytes);
        let queue = self.n.checked_rem(self.queues).map(|n| format!("queue-{n}"));
        let queue = queue.as_deref().map(str::as_bytes);
        let post = Post { id, payload: &PAYLOAD, group, queue, ..Post::default() };
        match self.board.post(&env, &post, 0) {
            Ok(PostAnswer::Do(posted)) => self.act(posted),
            _ => panic!("a post is taken"),
        }
        self.rules = rules;
    }

    fn claim(&mut self, worker: &[u8]) -> (u32, u64) {
        let rules = std::mem::take(&mut self.rules);
        let env = Env {
            now: self.now,
            random: self.n,
            token: 0,
            giver: 0,
            hold: 0,
            recovery: 0,
            rotation: 0,
            rules: &rules,
        };
        let queues = if self.queues > 0 { &[][..] } else { &[DEFAULT_QUEUE] };
        let claim = Claim { worker, queues, ..Claim::default() };
        let claimed = self.board.claim(&env, &claim, 0).ok().flatten().expect("there is work");
        let got = (claimed.slot, claimed.token);
        self.act(claimed);
        self.rules = rules;
        got
    }

    fn heartbeat(&mut self, worker: &[u8], id: &[u8], token: u64) {
        let rules = std::mem::take(&mut self.rules);
        let env = Env {
            now: self.now,
            random: self.n,
            token: 0,
            giver: 0,
            hold: 0,
            recovery: 0,
            rotation: 0,
            rules: &rules,
        };
        let speaker = Speaker { worker, id, token: Some(token) };
        let kept = Heartbeat::default().decide(&self.board, &env, &speaker).expect("it holds the job");
        self.act(kept.beaten.expect("the lease is extended"));
        self.rules = rules;
    }

    fn consume(&mut self, worker: &[u8], id: &[u8], token: u64) {
        let rules = std::mem::take(&mut self.rules);
        let env = Env {
            now: self.now,
            random: self.n,
            token: 0,
            giver: 0,
            hold: 0,
            recovery: 0,
            rotation: 0,
            rules: &rules,
        };
        let speaker = Speaker { worker, id, token: Some(token) };
        match self.board.work(&env, &speaker, &Consume::default()) {
            Ok(Answer::Do(effect)) => self.act(effect),
            _ => panic!("it holds the job"),
        }
        self.rules = rules;
    }

    fn id(&self, slot: u32) -> Vec<u8> {
        self.board.record_of(slot).expect("it is there").id().to_vec()
    }
}

/// Laps are so many calls long.
const LAP: u64 = 1_000;

/// ns for one call: that of the median lap, which other processes disturb little.
fn each(n: u64, mut what: impl FnMut(u64)) -> f64 {
    let mut laps = Vec::new();
    for lap in (0..n).step_by(LAP as usize) {
        let end = n.min(lap + LAP);
        let start = Instant::now();
        (lap..end).for_each(&mut what);
        laps.push(start.elapsed().as_nanos() as f64 / (end - lap) as f64);
    }
    laps.sort_by(f64::total_cmp);
    laps[laps.len() / 2]
}

/// Time of this process on a processor, ns; of the clock where nobody tells.
fn busy(begin: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let told = told.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    told.unwrap_or_else(|| begin.elapsed().as_nanos() as f64)
}

/// ns of the processor for one of `n` that are done in one go.
fn whole(n: u64, what: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    let before = busy(begin);
    what();
    (busy(begin) - before) / n as f64
}

/// Bytes that the process has in memory; 0 where nobody tells.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0
}

fn run(waiting: u64, named: bool, counted: bool, grouped: bool, spread: bool, scan: bool) {
    let queues = if spread { waiting } else { 0 };
    let mut site = Site { grouped, queues, ..Site::new() };
    if scan {
        site.board.keep_candidates_above(usize::MAX);
    }
    if !counted {
        site.act(Configured { scope: Scope::Board, setting: Setting::StatsDays, value: Some(0) });
    }
    let name = |n: u64| format!("job:{n:012}");
    let worker = b"worker-1".as_slice();
    let put = |site: &mut Site| match named {
        true => site.post(Some(name(site.n).as_bytes())),
        false => site.post(None),
    };
    let before = resident();
    let fill = each(waiting, |_| put(&mut site));
    let grown = (resident() - before) / waiting as f64;
    let told = site.board.bytes() as f64 / waiting as f64;
    let mut verbs = [const { Vec::new() }; 4];
    let rounds = if scan { LAP } else { ROUNDS };
    for _ in 0..rounds / LAP {
        verbs[0].push(each(LAP, |_| put(&mut site)));
        let mut held = Vec::with_capacity(LAP as usize);
        verbs[1].push(each(LAP, |_| held.push(site.claim(worker))));
        let ids: Vec<(Vec<u8>, u64)> = held.iter().map(|(slot, token)| (site.id(*slot), *token)).collect();
        verbs[2].push(each(LAP, |n| site.heartbeat(worker, &ids[n as usize].0, ids[n as usize].1)));
        verbs[3].push(each(LAP, |n| site.consume(worker, &ids[n as usize].0, ids[n as usize].1)));
    }
    let [post, claim, beat, consume] = verbs.map(|mut laps| {
        laps.sort_by(f64::total_cmp);
        laps[laps.len() / 2]
    });
    let kind = match (named, counted, grouped) {
        _ if scan => "scan",
        _ if spread => "queues",
        (_, _, true) => "groups",
        (true, true, _) => "chosen ids",
        (false, true, _) => "made ids",
        (_, false, _) => "uncounted",
    };
    println!(
        "{waiting:>9} {kind:10} | fill {fill:4.0} post {post:4.0} claim {claim:4.0} heartbeat {beat:4.0} consume \
         {consume:4.0} ns, {:3} bytes of effects a job | {grown:4.0} bytes a job, {told:4.0} told",
        site.sent as u64 / site.n
    );
    if waiting >= 1_000_000 {
        image(&site.board);
    }
}

/// The snapshot, written and loaded.
fn image(board: &Board) {
    let n = board.len() as u64;
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let write = whole(n, || board.snapshot(|part| _ = black_box(part.len())));
    board.snapshot(|part| parts.push(part.to_vec()));
    let bytes: usize = parts.iter().map(Vec::len).sum();
    let mut loader = Loader::default();
    let read = whole(n, || parts.iter().for_each(|part| loader.part(part).expect("a part of ours")));
    let mut loaded = None;
    let finish = whole(n, || loaded = loader.finish().ok());
    let check = whole(n, || loaded.as_ref().expect("ours").check().expect("whole"));
    let digest = whole(n, || _ = black_box(board.digest()));
    println!(
        "          snapshot: write {:.2}, load {:.2} million jobs/s ({read:.0} ns read, {finish:.0} ns index \
         and check, of it {check:.0} check), digest {digest:.0} ns, {} bytes a job",
        1e3 / write,
        1e3 / (read + finish),
        bytes as u64 / n
    );
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let sizes: Vec<u64> = words.iter().filter_map(|n| n.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000, 1_000_000] } else { sizes };
    // Memory is told right only for the first size, and one kind of ids, of a process.
    let said = |word: &str| words.iter().any(|w| w == word);
    let (chosen, counted, groups) = (said("chosen"), !said("uncounted"), said("groups"));
    let (scan, queues) = (said("scan"), said("queues") || said("scan"));
    sizes.into_iter().for_each(|waiting| run(waiting, chosen, counted, groups, queues, scan));
}
