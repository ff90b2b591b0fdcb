//! Waiting for signals, on the naive board.

use board::{Await, Gate, OnTimeout, Setting, Signal, Speaker, State, Tally};

use crate::children::Batch;
use crate::naive::{Bytes, Job, Model, Way, NEVER};
use crate::verbs::Stand;
use crate::waits::Outcome;
use crate::world::work::Waited;

/// A signal that has arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrived {
    pub name: Bytes,
    pub value: Bytes,
    pub sender: Option<Bytes>,
    pub at: i64,
}

/// What a blocked job waits for, and under which name a run asked for it.
#[derive(Debug, Clone)]
pub struct Wait {
    pub gate: Gate,
    pub from: i64,
    pub step: Bytes,
}

impl Wait {
    pub fn until(&self) -> i64 {
        self.gate.within.map_or(NEVER, |ms| (self.from + ms).min(NEVER))
    }
}

impl Job {
    fn missing(&self, gate: &Gate) -> Vec<Bytes> {
        let arrived = |name: &[u8]| self.signals.iter().any(|signal| signal.name == name);
        gate.names.iter().filter(|name| !arrived(name)).map(|name| name.to_vec()).collect()
    }

    fn opens(&self, gate: &Gate) -> bool {
        let missing = self.missing(gate).len();
        if gate.any {
            missing < gate.names.len()
        } else {
            missing == 0
        }
    }

    pub fn awaits(&self, name: &[u8]) -> bool {
        self.wait.as_ref().is_some_and(|wait| self.missing(&wait.gate).iter().any(|other| other == name))
    }

    /// What it remembers: how many values, and of how many bytes.
    pub fn remembers(&self) -> (usize, usize) {
        let steps = self.steps.iter().map(|(name, value, _)| name.len() + value.len());
        let sent = |sender: &Option<Bytes>| sender.as_ref().map_or(0, |sender| sender.len());
        let signals = self.signals.iter().map(|s| s.name.len() + s.value.len() + sent(&s.sender));
        let all = steps.chain(signals).chain(self.timeouts.iter().map(|name| name.len()));
        all.fold((0, 0), |(n, bytes), more| (n + 1, bytes + more))
    }
}

fn first_of(names: &[Bytes]) -> Bytes {
    match names {
        [] => Bytes::new(),
        [one] => one.clone(),
        [first, more @ ..] => [&first[..], format!(" and {} more", more.len()).as_bytes()].concat(),
    }
}

impl Model {
    /// What a worker's verb may add to what a job remembers.
    pub fn has_memory(&self, job: &Job, count: usize, bytes: usize) -> Result<(), String> {
        let (n, size) = job.remembers();
        let most = |setting| self.board_rule(setting) as usize;
        if count > 0 && n + count > most(Setting::MaxSteps) {
            return Err("LIMIT max-steps".into());
        }
        if bytes > 0 && size + bytes > most(Setting::MaxStepBytes) {
            return Err("LIMIT max-step-bytes".into());
        }
        Ok(())
    }

    /// It waits for what its post named, unless that has arrived.
    pub fn arm(&mut self, at: usize) {
        let job = &self.jobs[at];
        if let Some(gate) = job.gate.clone().filter(|gate| !job.opens(gate)) {
            self.begins_to_wait(at, gate, Bytes::new());
        }
    }

    fn begins_to_wait(&mut self, at: usize, gate: Gate, step: Bytes) {
        self.note_at(at, Tally::Awaited);
        self.jobs[at].wait = Some(Wait { gate, from: self.now, step });
    }

    pub fn ends_wait(&mut self, at: usize) -> Option<Wait> {
        let wait = self.jobs[at].wait.take()?;
        self.count_await(at, wait.from);
        Some(wait)
    }

    pub fn gives_up_waiting(&mut self, at: usize) {
        if let Some(wait) = self.ends_wait(at).filter(|wait| !wait.step.is_empty()) {
            let timeouts = &mut self.jobs[at].timeouts;
            timeouts.retain(|name| *name != wait.step);
            timeouts.push(wait.step);
        }
    }

    /// The time of its wait is over.
    pub fn times_out(&mut self, at: usize) {
        let due = self.jobs[at].due;
        let gate = self.jobs[at].wait.as_ref().unwrap().gate.clone();
        let missing = first_of(&self.jobs[at].missing(&gate));
        self.note_at(at, Tally::AwaitTimeouts);
        match gate.on_timeout {
            OnTimeout::Run => {
                self.gives_up_waiting(at);
                self.wait(at, due);
            }
            OnTimeout::Fail => {
                self.jobs[at].kind = Some(b"signal".to_vec());
                self.jobs[at].message = Some(missing);
                self.end(at, State::Failed, self.retention(State::Failed));
            }
            OnTimeout::Cancel => {
                self.jobs[at].reason = Some([b"no signal ", &missing[..]].concat());
                self.end(at, State::Cancelled, self.retention(State::Cancelled));
            }
        }
    }

    pub fn signal(&mut self, id: &[u8], signal: &Signal<'_>) -> Option<Result<&'static str, String>> {
        let at = self.at(id)?;
        let job = &self.jobs[at];
        if job.state.ended() {
            return Some(Ok("ended"));
        }
        if job.signals.iter().any(|other| other.name == signal.name) {
            return Some(Ok("already"));
        }
        let bytes = signal.name.len() + signal.value.len() + signal.sender.map_or(0, <[u8]>::len);
        if let Err(refusal) = self.has_memory(job, 1, bytes) {
            return Some(Err(refusal));
        }
        self.note_at(at, Tally::Signalled);
        let (now, before) = (self.now, self.jobs[at].state);
        let job = &mut self.jobs[at];
        job.signals.push(Arrived {
            name: signal.name.to_vec(),
            value: signal.value.to_vec(),
            sender: signal.sender.map(<[u8]>::to_vec),
            at: now,
        });
        if job.wait.as_ref().is_some_and(|wait| job.opens(&wait.gate)) {
            let due = job.due;
            self.ends_wait(at);
            self.wait(at, due);
        }
        Some(Ok(if self.jobs[at].state == before { "kept" } else { "woken" }))
    }

    pub fn await_signals(&mut self, (speaker, request): &(Speaker<'_>, Await<'_>)) -> Result<Waited, String> {
        let stand = match self.stand(speaker.worker, speaker.id, speaker.token, Some(Way::Awaiting))? {
            Stand::Again(state) => return Ok(Waited::State(state)),
            stand => stand,
        };
        let (Stand::Holds(at, taken) | Stand::Late(at, taken)) = stand else { unreachable!() };
        let (gate, way) = (&request.gate, if taken { Way::Taken } else { Way::Awaiting });
        let step = request.step.or(gate.names.first().map(|name| &**name)).unwrap_or_default();
        let named = !gate.names.is_empty();
        let job = &self.jobs[at];
        let timeout = named && job.timeouts.iter().any(|name| name == step);
        let arrived = timeout || !named || job.opens(gate);
        let children = request.children.filter(|_| !job.waived);
        if arrived && children.is_none_or(|on| self.of_children(speaker.id, on) == Outcome::Met) {
            let late = matches!(stand, Stand::Late(..));
            let kept_back =
                || self.full(&self.jobs[at].queue) || self.kept_back(&self.jobs[at], false).is_some();
            if !(late && kept_back()) {
                self.check_say(at)?;
            }
            let at = self.back(stand)?;
            self.say(at);
            let (deadline, cancel) = self.beat(at, None);
            let job = &mut self.jobs[at];
            if let Some(payload) = request.payload {
                job.payload = payload.to_vec();
            }
            let named = |signal: &&Arrived| !timeout && gate.names.iter().any(|name| **name == *signal.name);
            let most = if gate.any { 1 } else { usize::MAX };
            let signals = job.signals.iter().filter(named).take(most);
            let signals =
                signals.map(|s| (s.name.clone(), s.value.clone(), s.sender.clone(), s.at)).collect();
            return Ok(Waited::Kept { timeout, signals, deadline, cancel });
        }
        let asked = self.jobs[at].hold.as_ref().is_some_and(|hold| hold.cancel);
        if !asked {
            self.no_circle(speaker.id, std::iter::empty(), children.is_some(), None)?;
        }
        if !asked && !arrived {
            self.has_memory(&self.jobs[at], 1, step.len())?;
        }
        self.check_say(at)?;
        self.say(at);
        if self.cancelled(at, way, None, &board::Report::default()) {
            return Ok(Waited::State(State::Cancelled));
        }
        self.count_run(at);
        self.end_claim(at, way);
        if let Some(payload) = request.payload {
            self.jobs[at].payload = payload.to_vec();
        }
        if !arrived {
            self.begins_to_wait(at, gate.clone(), step.to_vec());
        }
        if let Some(on_failure) = children {
            self.asks_for_children(at, Batch { run: true, ..Batch::new(on_failure) });
        }
        self.ready(at, self.now);
        Ok(Waited::State(State::Blocked))
    }
}
