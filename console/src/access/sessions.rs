//! Who is signed in. A session is a random number in a cookie, and here a link with the user's rights.
//! Both know the password: the link to connect again, the session to ask whether the server still takes it.
//! Nothing is written anywhere.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use crate::actions::runs::Runs;
use crate::connection::shared::Answers;
use crate::connection::Link;
use crate::known_boards::{Finder, PerUser};
use crate::names::hex;

/// A session that nobody uses for so long ends.
const IDLE: Duration = Duration::from_secs(8 * 3600);

/// Of all sessions one user has one part in so many at most.
const SHARE: usize = 10;

/// How many pages of one session may refresh themselves.
const MOST_LIVE: usize = 20;

pub const COOKIE: &str = "jobboard-console";

/// A user, and the password where the server asked for one.
pub type Credentials = (String, Option<String>);

pub struct Session {
    pub user: String,
    /// None where the server asked for none.
    password: Option<String>,
    pub link: Link,
    pub runs: Runs,
    pub finder: Arc<Finder>,
    /// What its user's open pages have asked.
    pub answers: Arc<Answers>,
    /// Its pages that refresh themselves.
    pub live: Arc<Semaphore>,
    csrf: String,
    message: Mutex<Option<String>>,
}

impl Session {
    /// Whether the server asked for no password: then there is nothing to sign out of.
    pub fn is_open(&self) -> bool {
        self.password.is_none()
    }

    fn credentials(&self) -> Credentials {
        (self.user.clone(), self.password.clone())
    }

    pub fn csrf(&self) -> &str {
        &self.csrf
    }

    /// Whether a form was made for this session.
    pub fn owns(&self, csrf: &[u8]) -> bool {
        self.csrf.as_bytes().ct_eq(csrf).into()
    }

    /// Leaves a message for the next page.
    pub fn say(&self, message: String) {
        *lock(&self.message) = Some(message);
    }

    pub fn message(&self) -> Option<String> {
        lock(&self.message).take()
    }
}

/// A session that has not ended. Its runs end with it, although open pages may still hold it.
struct Alive(Arc<Session>);

impl Deref for Alive {
    type Target = Arc<Session>;

    fn deref(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.runs.end();
    }
}

pub struct Sessions {
    known: Mutex<HashMap<String, (Alive, Instant)>>,
    finders: PerUser<Finder>,
    answers: PerUser<Answers>,
    most: usize,
}

impl Sessions {
    /// At most this many sessions with a password, and as many without.
    pub fn new(most: usize) -> Self {
        Self { known: Mutex::default(), finders: PerUser::default(), answers: PerUser::default(), most }
    }

    /// Begins a session and gives its id. Where there is no room, the one that the user used longest ago
    /// ends; `None` when the user has none: no session ends for that of another.
    pub fn begin(
        &self,
        user: String,
        password: Option<String>,
        link: Link,
    ) -> Option<(String, Arc<Session>)> {
        let mut known = lock(&self.known);
        known.retain(|_, (_, used)| used.elapsed() < IDLE);
        let is_open = password.is_none();
        let alike = known.iter().filter(|(_, (other, _))| other.is_open() == is_open);
        let own = alike.clone().filter(|(_, (other, _))| other.user == user);
        // Those without a password all have one user.
        let most_own = if is_open { self.most } else { (self.most / SHARE).max(1) };
        if alike.count() >= self.most || own.clone().count() >= most_own {
            let oldest = own.min_by_key(|(_, (_, used))| *used).map(|(id, _)| id.clone())?;
            known.remove(&oldest);
        }
        let session = Arc::new(Session {
            finder: self.finders.of(&user),
            answers: self.answers.of(&user),
            user,
            password,
            link,
            runs: Runs::default(),
            live: Arc::new(Semaphore::new(MOST_LIVE)),
            csrf: random(),
            message: Mutex::default(),
        });
        let id = random();
        known.insert(id.clone(), (Alive(Arc::clone(&session)), Instant::now()));
        Some((id, session))
    }

    pub fn get(&self, id: &str) -> Option<Arc<Session>> {
        let mut known = lock(&self.known);
        let (session, used) = known.get_mut(id)?;
        if used.elapsed() >= IDLE {
            known.remove(id);
            return None;
        }
        *used = Instant::now();
        Some(Arc::clone(session))
    }

    /// Whether a session has not ended. Who has a page of it open uses it.
    pub fn is_used(&self, session: &Arc<Session>) -> bool {
        let mut known = lock(&self.known);
        let own = known.values_mut().find(|(other, _)| Arc::ptr_eq(other, session));
        let Some((_, used)) = own.filter(|(_, used)| used.elapsed() < IDLE) else { return false };
        *used = Instant::now();
        true
    }

    /// What the sessions began with that have not ended by now, and a link of one that began so.
    pub fn credentials(&self) -> HashMap<Credentials, Link> {
        let mut known = lock(&self.known);
        known.retain(|_, (_, used)| used.elapsed() < IDLE);
        known.values().map(|(session, _)| (session.credentials(), session.link.clone())).collect()
    }

    /// Ends all sessions that began with these.
    pub fn end_all(&self, credentials: &Credentials) {
        lock(&self.known).retain(|_, (session, _)| session.credentials() != *credentials);
    }

    pub fn end(&self, id: &str) {
        lock(&self.known).remove(id);
    }

    /// Ends a session wherever it is known.
    pub fn end_session(&self, session: &Arc<Session>) {
        lock(&self.known).retain(|_, (other, _)| !Arc::ptr_eq(other, session));
    }
}

/// 256 random bits of the operating system, in hexadecimal.
pub fn random() -> String {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).expect("the operating system gives random numbers");
    hex(&bytes)
}

/// A lock whose holder never panics.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread;

    use redis::cmd;

    use super::*;
    use crate::actions::runs::Run;
    use crate::connection::place::Place;

    /// A server that says of each slice that one job is done and more are left.
    fn server() -> Place {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let serve = |stream: std::net::TcpStream| {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let mut stream = stream;
            while let Some(head) = lines.next() {
                let count = head[1..].parse().unwrap();
                let words: Vec<String> = lines.by_ref().skip(1).step_by(2).take(count).collect();
                let reply: &[u8] = match words[0].as_str() {
                    "HELLO" => b"%1\r\n+role\r\n+master\r\n",
                    _ => b"*2\r\n:1\r\n+1\r\n",
                };
                stream.write_all(reply).unwrap();
            }
        };
        thread::spawn(move || {
            listener.incoming().flatten().for_each(|one| drop(thread::spawn(move || serve(one))))
        });
        Place::read(&url, None).unwrap().0
    }

    /// Waits for what a run does.
    async fn see(run: &Run, what: fn(&Run) -> bool) {
        for _ in 0..500 {
            if what(run) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", run.progress());
    }

    #[tokio::test]
    async fn work_stops_when_its_session_ends_although_a_page_is_open() {
        let link = Link::open(&server(), None).await.unwrap();
        let begin = |session: &Session| {
            let slice = |_: &[u8]| cmd("JOB.DELETE");
            session.runs.begin(session.link.clone(), b"b".into(), String::new(), String::new(), slice)
        };
        let ways: [fn(&Sessions, &str, &Arc<Session>); 4] = [
            |sessions, id, _| sessions.end(id),
            |sessions, _, session| sessions.end_session(session),
            |sessions, _, session| sessions.end_all(&session.credentials()),
            |sessions, _, session| {
                drop(sessions.begin("ann".into(), Some("x".into()), session.link.clone()));
            },
        ];
        for end in ways {
            let sessions = Sessions::new(2);
            let begun = |user: &str| sessions.begin(user.into(), Some("x".into()), link.clone()).unwrap();
            let ((id, page), (_, other)) = (begun("ann"), begun("bob"));
            let (run, others) = (begin(&page), begin(&other));
            see(&run, |run| run.progress().done > 0).await;
            end(&sessions, &id, &page);
            see(&run, |run| run.progress().stopped).await;
            // What a request begins that was under way does nothing.
            let late = begin(&page);
            see(&late, |run| run.progress().stopped).await;
            assert_eq!(late.progress().done, 0);
            assert!(!others.progress().ended);
            others.stop();
        }
    }

    #[test]
    fn ids_are_long_and_never_the_same() {
        assert_eq!(random().len(), 64);
        assert_ne!(random(), random());
    }
}
