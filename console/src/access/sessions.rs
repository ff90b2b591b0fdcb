//! Who is signed in. A session is a random number in a cookie, and here a link with the user's rights.
//! The password is known to that link alone, which needs it to connect again; nothing is written anywhere.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use crate::actions::runs::Runs;
use crate::connection::Link;
use crate::known_boards::{Finder, Finders};
use crate::names::hex;

/// A session that nobody uses for so long ends.
const IDLE: Duration = Duration::from_secs(8 * 3600);

/// When there are so many, the one that was used longest ago ends.
const MOST: usize = 1000;

/// So many pages of one session are told anew by themselves.
const MOST_LIVE: usize = 20;

pub const COOKIE: &str = "jobboard-console";

pub struct Session {
    pub user: String,
    /// Whether the server asked for no password: then there is nothing to sign out of.
    pub open: bool,
    pub link: Link,
    pub runs: Runs,
    pub finder: Arc<Finder>,
    /// Its pages that are told anew by themselves.
    pub live: Arc<Semaphore>,
    csrf: String,
    message: Mutex<Option<String>>,
}

impl Session {
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

#[derive(Default)]
pub struct Sessions {
    known: Mutex<HashMap<String, (Arc<Session>, Instant)>>,
    finders: Finders,
}

impl Sessions {
    /// Begins a session and gives its id.
    pub fn begin(&self, user: String, open: bool, link: Link) -> (String, Arc<Session>) {
        let session = Arc::new(Session {
            finder: self.finders.of(&user),
            user,
            open,
            link,
            runs: Runs::default(),
            live: Arc::new(Semaphore::new(MOST_LIVE)),
            csrf: random(),
            message: Mutex::default(),
        });
        let id = random();
        let mut known = lock(&self.known);
        known.retain(|_, (_, used)| used.elapsed() < IDLE);
        if known.len() >= MOST {
            let oldest = known.iter().min_by_key(|(_, (_, used))| *used).map(|(id, _)| id.clone());
            known.remove(&oldest.unwrap_or_default());
        }
        known.insert(id.clone(), (Arc::clone(&session), Instant::now()));
        (id, session)
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
    use super::*;

    #[test]
    fn ids_are_long_and_never_the_same() {
        assert_eq!(random().len(), 64);
        assert_ne!(random(), random());
    }
}
