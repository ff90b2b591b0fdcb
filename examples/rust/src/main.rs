//! A worker on redis-rs: a job's payload is the path of a file, its result the SHA-256 of that file.
//!
//!     cargo run --release -- --port 6379 --board checksums --name worker-1
//!
//! It does what ../../checksum_worker.py does: ANEW at its start, BLOCK in each claim, SEEN after one without an
//! answer, one heartbeat loop for all that it holds, the TOKEN in every verb. A job that is lost or called off stops
//! its work. SIGTERM: it ends the file at hand and abandons the rest. What a broken connection leaves without an answer
//! is sent again, which SEEN and TOKEN make safe.

use redis::{from_redis_value, Client, Cmd, Connection, FromRedisValue, RedisResult, Value};
use sha2::{Digest, Sha256};
use std::sync::{atomic::AtomicBool, atomic::Ordering::Relaxed, Arc, Mutex};
use std::{collections::HashMap, fs::File, io, io::Read, thread, time::Duration};

/// The codes of errors after which the same command may succeed.
const TRANSIENT: [&str; 6] = ["LOADING", "READONLY", "MASTERDOWN", "TRYAGAIN", "BUSY", "UNBLOCKED"];

/// The jobs of the last claim.
static HELD: Mutex<Vec<Arc<Job>>> = Mutex::new(Vec::new());

struct Job {
    record: HashMap<String, String>, // id, token, payload and so on
    over: AtomicBool,                // ended, lost or called off
}

/// A connection that is made anew when it has broken. Each thread has its own.
struct Link(Client, Option<Connection>);

impl Link {
    fn try_send<T: FromRedisValue>(&mut self, words: &[&str]) -> RedisResult<T> {
        if self.1.is_none() {
            let connection = self.0.get_connection_with_timeout(Duration::from_secs(5))?;
            connection.set_read_timeout(Some(Duration::from_secs(5)))?; // more than BLOCK
            self.1 = Some(connection);
        }
        Cmd::new().arg(words).query(self.1.as_mut().unwrap())
    }

    /// Sends a command until it is answered, for two minutes at least; from the second time on with `again`.
    fn send<T: FromRedisValue>(&mut self, words: &[&str], again: &[&str]) -> RedisResult<T> {
        let mut answer = self.try_send(words);
        for _ in 0..600 {
            match answer {
                Err(error) if error.code().is_none_or(|code| TRANSIENT.contains(&code)) => self.1 = None,
                answer => return answer,
            }
            thread::sleep(Duration::from_millis(200));
            answer = self.try_send(&[words, again].concat());
        }
        answer
    }
}

/// Keeps the leases of the jobs in hand, three times within each lease, and notes which ones are not ours any more.
fn heartbeat(mut link: Link, board: &str, name: &str, lease: &str, pause: Duration) {
    loop {
        thread::sleep(pause);
        let mut jobs = HELD.lock().unwrap().clone();
        jobs.retain(|job| !job.over.load(Relaxed));
        let field = |name| jobs.iter().map(|job| job.record[name].as_str()).collect::<Vec<_>>();
        let (ids, tokens, count) = (field("id"), field("token"), jobs.len().to_string());
        let head = ["JOB.MHEARTBEAT", board, name, &count];
        let words = [&head, &ids[..], &["TOKENS", &count], &tokens, &["LEASE", lease]].concat();
        let replies: Vec<Value> =
            if jobs.is_empty() { vec![] } else { link.send(&words, &[]).unwrap_or_default() };
        for (job, reply) in jobs.iter().zip(replies) {
            let answer: HashMap<String, i64> = from_redis_value(reply).unwrap_or_default(); // not [code, detail]
            job.over.fetch_or(answer.get("cancel") != Some(&0), Relaxed);
        }
    }
}

/// The digest of the file; None as soon as the job is lost or called off.
fn checksum(job: &Job) -> io::Result<Option<String>> {
    let (mut file, mut hash, mut chunk) = (File::open(&job.record["payload"])?, Sha256::new(), [0; 1 << 16]);
    while !job.over.load(Relaxed) {
        match file.read(&mut chunk)? {
            0 => return Ok(Some(format!("{:x}", hash.finalize()))),
            length => hash.update(&chunk[..length]),
        }
    }
    Ok(None)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut flags = pico_args::Arguments::from_env();
    let mut flag =
        |name| flags.opt_value_from_str::<_, String>(name).map(|value| value.map(|text| &*text.leak()));
    let (port, board) = (flag("--port")?.unwrap_or("6379"), flag("--board")?.unwrap_or("checksums"));
    let (name, lease) = (flag("--name")?.ok_or("--name is missing")?, flag("--lease")?.unwrap_or("30000"));
    let stopping = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, stopping.clone())?;
    let client = Client::open(format!("redis://127.0.0.1:{port}/?protocol=resp3"))?;
    let (mut link, beats, pause) =
        (Link(client.clone(), None), Link(client, None), lease.parse::<u64>()? / 3);
    thread::spawn(move || heartbeat(beats, board, name, lease, Duration::from_millis(pause)));
    // What an earlier process of this name held lapses.
    link.send::<Value>(&["JOB.WORKER", "REGISTER", board, name, "ANEW"], &[])?;
    while !stopping.load(Relaxed) {
        let words = ["JOB.CLAIM", board, name, "COUNT", "8", "LEASE", lease, "BLOCK", "2000"];
        // It holds nothing: what comes back is that of a lost reply.
        let records: Option<Vec<_>> = link.send(&words, &["SEEN", "0"])?;
        let jobs = records.unwrap_or_default().into_iter().map(|record| Job { record, over: false.into() });
        let jobs: Vec<_> = jobs.map(Arc::new).collect();
        HELD.lock().unwrap().clone_from(&jobs);
        for job in jobs {
            let (id, token) = (&job.record["id"], &job.record["token"]);
            let mut end = |verb, words: &[&str]| {
                link.send::<Value>(&[&[verb, board, name, id], words, &["TOKEN", token]].concat(), &[])
            };
            let ended = match if stopping.load(Relaxed) { Ok(None) } else { checksum(&job) } {
                Ok(Some(digest)) => end("JOB.CONSUME", &["RESULT", &digest]),
                Ok(None) => end("JOB.ABANDON", &["REASON", "stopped, lost or called off"]),
                Err(error) => end("JOB.FAIL", &["unreadable", &error.to_string(), "NORETRY"]),
            };
            match ended {
                Err(error) if error.code() == Some("CANCELLED") => drop(end("JOB.ABANDON", &[])),
                Err(error) => eprintln!("{name}: {id}: {error}"), // it is somebody else's
                Ok(_) => {}
            }
            job.over.store(true, Relaxed);
        }
    }
    Ok(link.send(&["JOB.WORKER", "DEREGISTER", board, name], &[])?)
}
