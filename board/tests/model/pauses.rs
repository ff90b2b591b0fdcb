//! Pauses of the naive board.

use board::{PauseRequest, State};

use crate::naive::*;

fn place(queue: Option<&[u8]>, group: Option<&[u8]>) -> Place {
    queue.map(|queue| (queue.to_vec(), group.map(<[u8]>::to_vec)))
}

fn is_of(place: &Place, job: &Job) -> bool {
    place.as_ref().is_none_or(|(queue, group)| {
        *queue == job.queue && group.as_ref().is_none_or(|group| job.group.as_ref() == Some(group))
    })
}

impl Model {
    /// A pause only gets longer.
    pub fn pause(&mut self, halt: &PauseRequest<'_>, slice: u32) {
        let until = halt.time.map_or(NEVER, |ms| (self.now + ms).min(NEVER));
        if let Some(limit) = halt.limit {
            self.pause_limit(limit, until);
            self.reclaim(slice as usize);
            return;
        }
        let place = place(halt.queue, halt.group);
        let before = self.pauses.get(&place).and_then(|p| p.release);
        let release = before.or(halt.release.then_some((0, 0)));
        let until = self.pauses.get(&place).map_or(until, |pause| pause.until.max(until));
        self.pauses.insert(place, Pause { until, release });
        self.reclaim(slice as usize);
    }

    pub fn pause_limit(&mut self, limit: &[u8], until: i64) {
        let pause = self.limit_pauses.entry(limit.to_vec()).or_default();
        *pause = until.max(*pause);
    }

    pub fn resume(&mut self, request: &PauseRequest<'_>) -> bool {
        let Some(limit) = request.limit else {
            return self.pauses.remove(&place(request.queue, request.group)).is_some();
        };
        let some = self.limit_pauses.remove(limit).is_some();
        self.tidy_limits();
        some
    }

    /// Until when nothing is claimed from a queue.
    pub fn paused(&self, queue: Option<&[u8]>) -> Option<i64> {
        let places = [None, place(queue, None)];
        let until = places.iter().filter_map(|place| self.pauses.get(place)).map(|p| p.until).max();
        until.filter(|until| *until > self.now)
    }

    /// Ends the first pauses that are to end by now.
    pub fn lift(&mut self, n: usize) -> bool {
        let ended = self.pauses.iter().filter(|(_, p)| p.until <= self.now);
        let limits = self.limit_pauses.iter().filter(|(_, until)| **until <= self.now);
        let limits = limits.map(|(limit, until)| (*until, true, None, Some(limit.clone())));
        let ended = ended.map(|(place, p)| (p.until, false, place.clone(), None));
        let mut ended: Vec<_> = ended.chain(limits).collect();
        ended.sort();
        for (.., place, limit) in ended.iter().take(n) {
            match limit {
                Some(limit) => _ = self.limit_pauses.remove(limit),
                None => _ = self.pauses.remove(place),
            }
        }
        self.tidy_limits();
        !ended.is_empty()
    }

    /// Takes some jobs back where the first pause that does so is: in the order of the ends
    /// of claims, 16 looked at for each.
    pub fn reclaim(&mut self, n: usize) -> bool {
        let first = self.pauses.iter().find_map(|(place, p)| Some((place.clone(), p.release?)));
        let Some((place, from)) = first else { return false };
        let running = self.jobs.iter().filter(|j| j.state == State::Claimed);
        let mut after: Vec<_> = running.map(|j| ((j.claim_next(), j.order), j.id.clone())).collect();
        after.retain(|(key, _)| *key >= from);
        after.sort();
        let (mut taken, mut next) = (0, (0, 0));
        for (looked, (key, id)) in after.into_iter().enumerate() {
            let job = self.at(&id).unwrap();
            let here = is_of(&place, &self.jobs[job]);
            if looked == 16 * n || here && taken == n {
                next = key;
                break;
            }
            if here {
                self.release(&id).unwrap().unwrap();
                taken += 1;
            }
        }
        let here = |j: &&Job| j.state == State::Claimed && is_of(&place, j);
        let done = !self.jobs.iter().any(|j| here(&j));
        if let Some(pause) = self.pauses.get_mut(&place) {
            pause.release = (!done).then_some(next);
        }
        true
    }
}
