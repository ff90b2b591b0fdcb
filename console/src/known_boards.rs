//! The boards of a server, not looked for more often than the server bears.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as PlainMutex};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::access::sessions::lock;
use crate::connection::{Found, Link};
use crate::failure::Failure;

/// A search walks over all keys of the server. It is repeated after this at the soonest …
const PAUSE: Duration = Duration::from_secs(2);

/// … and takes one part in so many of the time at most.
const SHARE: u32 = 20;

/// What has been found with the rights of one user. Who asks while it is looked for waits for that.
#[derive(Default)]
pub struct Finder {
    last: Mutex<Last>,
}

#[derive(Default)]
enum Last {
    #[default]
    Nothing,
    Found(Found, Instant, Duration),
    /// The server did not answer: until then, who asked meanwhile waited as well.
    Silence(Instant, Failure),
}

impl Finder {
    pub async fn boards(&self, link: &Link) -> Result<Found, Failure> {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        match &*last {
            Last::Found(found, at, took) => {
                // Who was away may be back any moment.
                let share = if found.away.is_empty() { *took * SHARE } else { PAUSE };
                if at.elapsed() < share.max(PAUSE) {
                    return Ok(found.clone());
                }
            }
            Last::Silence(until, failure) if *until > asked => return Err(failure.clone()),
            _ => {}
        }
        *last = Last::Nothing;
        let began = Instant::now();
        let found = link.boards().await;
        *last = match &found {
            Ok(found) => Last::Found(found.clone(), Instant::now(), began.elapsed()),
            Err(failure @ Failure::Unreachable(_)) => Last::Silence(Instant::now(), failure.clone()),
            Err(_) => Last::Nothing,
        };
        found
    }
}

/// One for each user, however many sessions they have.
pub struct PerUser<T>(PlainMutex<HashMap<String, Arc<T>>>);

impl<T> Default for PerUser<T> {
    fn default() -> Self {
        Self(PlainMutex::default())
    }
}

impl<T: Default> PerUser<T> {
    pub fn of(&self, user: &str) -> Arc<T> {
        let mut known = lock(&self.0);
        known.retain(|_, one| Arc::strong_count(one) > 1);
        Arc::clone(known.entry(user.to_owned()).or_default())
    }
}
