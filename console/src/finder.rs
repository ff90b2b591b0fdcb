//! The boards of a server, not looked for more often than the server bears.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::link::{Found, Link};
use crate::sessions::lock;

/// A search walks over all keys of the server. It is repeated after this at the soonest …
const PAUSE: Duration = Duration::from_secs(2);

/// … and takes one part in so many of the time at most.
const SHARE: u32 = 20;

#[derive(Default)]
pub struct Finder {
    last: Mutex<Option<(Found, Instant, Duration)>>,
}

impl Finder {
    pub async fn boards(&self, link: &Link) -> Result<Found, Failure> {
        if let Some((found, at, took)) = &*lock(&self.last) {
            if at.elapsed() < (*took * SHARE).max(PAUSE) {
                return Ok(found.clone());
            }
        }
        let began = Instant::now();
        let found = link.boards().await?;
        *lock(&self.last) = Some((found.clone(), Instant::now(), began.elapsed()));
        Ok(found)
    }
}
