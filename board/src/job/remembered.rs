//! What a job remembers between its runs: the steps that are done, the signals that have
//! arrived, what it waits for, and its output.
//!
//! Values by name, in the order in which they arrived. Names are found by binary search, and the
//! bytes are summed up as they change: a job has thousands of steps, and each edit of a record asks
//! for its bytes.

use serde::Deserializer;

use super::costs::Spending;
use super::gate::{Gate, Waiting};
use super::output::Output;
use super::{is_time, NEVER};
use crate::effect::is_name;
use crate::format::{Unreadable, Written};
use crate::structures::byte_string::ByteString;
use crate::structures::lazy::Part;

/// Bytes of a memo beside its texts: three pointers with lengths, a time, its place.
const MEMO: usize = 80;

written! {
    /// What a job remembers under one name.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Memo {
        /// The name.
        1 pub name: ByteString,
        /// The value.
        2 pub value: ByteString,
        /// When the value arrived, Unix ms.
        3 pub at: i64,
        /// Who sent a signal.
        4 pub sender: Option<ByteString>,
    }
}

impl Memo {
    fn size(&self) -> usize {
        self.name.len() + self.value.len() + self.sender.as_ref().map_or(0, |sender| sender.len())
    }
}

/// Memos, each of another name, in the order in which they arrived.
#[derive(Debug, Clone, Default)]
pub struct Memos {
    all: Vec<Memo>,
    /// Their places, in the order of their names.
    by_name: Vec<u32>,
    /// Bytes of names, values and senders.
    size: usize,
}

written! {
    /// Part of [`super::Extras`]. See the module's comment.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Remembered {
        /// What the steps of the work came to.
        1 pub steps: Memos,
        /// The signals that have arrived: the first of each name.
        2 pub signals: Memos,
        /// What its worker has written.
        3 pub output: Option<Box<Output>>,
        /// The waits whose time was over, by name: a run that asks again does not wait again.
        4 pub timeouts: Memos,
        /// What must have arrived before it runs: named by its post, or by the step to this queue.
        5 pub gate: Option<Box<Gate>>,
        /// What it waits for now.
        6 pub waiting: Option<Box<Waiting>>,
        /// What its last claim has cost, as far as its worker has said it.
        7 pub spending: Option<Box<Spending>>,
    }
}

impl Part for Remembered {
    const BLANK: &'static Self = &Remembered {
        steps: Memos::EMPTY,
        signals: Memos::EMPTY,
        timeouts: Memos::EMPTY,
        gate: None,
        waiting: None,
        output: None,
        spending: None,
    };
}

/// About how many bytes a gate and the wait for it take.
pub(crate) fn gate_bytes(gate: &Gate) -> usize {
    std::mem::size_of::<Remembered>()
        + std::mem::size_of::<Gate>()
        + std::mem::size_of::<Waiting>()
        + 2 * gate.bytes()
}

impl Remembered {
    /// Whether a board could have come to every name and time in it.
    pub(crate) fn is_valid(&self) -> bool {
        let sent = |memo: &Memo| memo.sender.as_ref().is_none_or(|sender| is_name(sender));
        let valid = |memo: &Memo| is_name(&memo.name) && is_time(memo.at) && sent(memo);
        [&self.steps, &self.signals, &self.timeouts].into_iter().all(|memos| memos.all.iter().all(valid))
            && self.gate.as_ref().is_none_or(|gate| gate.is_valid())
            && self.waiting.as_ref().is_none_or(|waiting| waiting.is_valid())
            && self.output.as_ref().is_none_or(|output| output.is_valid())
            && self.spending.as_ref().is_none_or(|spending| spending.is_valid())
    }

    /// How many memos there are, and how many bytes their texts have.
    pub fn size(&self) -> (usize, usize) {
        let all = [&self.steps, &self.signals, &self.timeouts];
        all.into_iter().fold((0, 0), |(n, bytes), memos| (n + memos.len(), bytes + memos.size))
    }

    /// About how many bytes it points to. O(1).
    pub fn bytes(&self) -> usize {
        let (count, bytes) = self.size();
        let gate = self.gate.as_ref().map_or(0, |gate| std::mem::size_of::<Gate>() + gate.bytes());
        let wait = self.waiting.as_ref();
        let wait = wait.map_or(0, |waiting| std::mem::size_of::<Waiting>() + waiting.bytes());
        let output = self.output.as_ref().map_or(0, |output| output.bytes());
        let spending = self.spending.as_ref().map_or(0, |spending| spending.bytes());
        bytes + MEMO * count + gate + wait + output + spending
    }

    /// Whether what must arrive has arrived. O(n log m) for n names and m signals.
    pub fn opens(&self, gate: &Gate) -> bool {
        let mut arrived = gate.names.iter().map(|name| self.signals.get(name).is_some());
        match gate.any {
            true => arrived.any(|arrived| arrived),
            false => arrived.all(|arrived| arrived),
        }
    }

    /// The signals with which it has opened: with ANY the one that arrived first.
    pub fn opened(&self, gate: &Gate) -> Vec<&Memo> {
        let mut places: Vec<usize> = gate.names.iter().filter_map(|name| self.signals.place(name)).collect();
        places.sort_unstable();
        places.truncate(if gate.any { 1 } else { places.len() });
        places.into_iter().filter_map(|place| self.signals.all.get(place)).collect()
    }

    /// Whether the time of a wait of this name was over.
    pub fn has_timed_out(&self, name: &[u8]) -> bool {
        self.timeouts.get(name).is_some()
    }

    /// When the wait times out, Unix ms, or [`NEVER`].
    pub fn until(&self) -> i64 {
        self.waiting.as_ref().map_or(NEVER, |waiting| waiting.until())
    }
}

impl Memos {
    const EMPTY: Memos = Memos { all: Vec::new(), by_name: Vec::new(), size: 0 };

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// All of them, in the order in which they arrived.
    pub fn iter(&self) -> std::slice::Iter<'_, Memo> {
        self.all.iter()
    }

    fn find(&self, name: &[u8]) -> Result<usize, usize> {
        let named = |at: &u32| self.all.get(*at as usize).map_or(&[][..], |memo| &memo.name);
        self.by_name.binary_search_by(|at| named(at).cmp(name))
    }

    fn place(&self, name: &[u8]) -> Option<usize> {
        self.by_name.get(self.find(name).ok()?).map(|at| *at as usize)
    }

    /// That of this name. O(log n).
    pub fn get(&self, name: &[u8]) -> Option<&Memo> {
        self.all.get(self.place(name)?)
    }

    /// Sets a value; one that is there keeps its place. O(log n), and n small numbers move.
    pub fn set(&mut self, name: &[u8], value: &[u8], sender: Option<&[u8]>, at: i64) {
        let found = self.find(name);
        let place = found.ok().and_then(|n| self.by_name.get(n)).map(|at| *at as usize);
        if let Some(memo) = place.and_then(|place| self.all.get_mut(place)) {
            let before = memo.size();
            (memo.value, memo.sender, memo.at) = (value.into(), sender.map(ByteString::from), at);
            self.size = (self.size + memo.size()).saturating_sub(before);
            return;
        }
        let Err(n) = found else { return };
        self.by_name.insert(n, self.all.len() as u32);
        let memo = Memo { name: name.into(), value: value.into(), at, sender: sender.map(ByteString::from) };
        self.size += memo.size();
        self.all.push(memo);
    }

    /// Forgets those of these names that are there. O(n log n) for n names, plus the memos.
    pub fn remove(&mut self, names: &[&[u8]]) {
        let mut gone: Vec<u32> = names.iter().filter_map(|name| Some(self.place(name)? as u32)).collect();
        if gone.is_empty() {
            return;
        }
        gone.sort_unstable();
        gone.dedup();
        let before = |at: &u32| gone.partition_point(|gone| gone < at) as u32;
        self.by_name.retain(|at| gone.binary_search(at).is_err());
        self.by_name.iter_mut().for_each(|at| *at -= before(at));
        let mut at = 0;
        let size = &mut self.size;
        self.all.retain(|memo| {
            let stays = gone.binary_search(&at).is_err();
            at += 1;
            if !stays {
                *size = size.saturating_sub(memo.size());
            }
            stays
        });
    }

    pub(crate) fn parts_mut(&mut self) -> (&mut Vec<Memo>, &mut Vec<u32>) {
        (&mut self.all, &mut self.by_name)
    }
}

impl PartialEq for Memos {
    fn eq(&self, other: &Memos) -> bool {
        self.all == other.all
    }
}

/// Written as the list of all.
impl<'a> Written<'a> for Memos {
    fn blank() -> Self {
        Memos::EMPTY
    }

    fn is_blank(&self) -> bool {
        self.all.is_empty()
    }

    fn write(&self, to: &mut Vec<u8>) {
        self.all.write(to);
    }

    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        let all: Vec<Memo> = Written::read(from)?;
        let mut places: Vec<(&[u8], u32)> = (0..).zip(&all).map(|(at, memo)| (&*memo.name, at)).collect();
        places.sort_unstable();
        if places.windows(2).any(|two| matches!(two, [a, b] if a.0 == b.0)) {
            return Err(Unreadable.error());
        }
        let by_name = places.into_iter().map(|(_, at)| at).collect();
        let size = all.iter().map(Memo::size).sum();
        Ok(Memos { all, by_name, size })
    }

    #[cfg(test)]
    fn check_growth() {
        Vec::<Memo>::check_growth();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Against a plain map and a list of names.
    #[test]
    fn memos_are_found_replaced_and_forgotten() {
        let (mut memos, mut plain, mut order) = (Memos::default(), BTreeMap::new(), Vec::new());
        let mut random = 7_u64;
        for at in 0..3_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let name = format!("step {}", random >> 33 & 63).into_bytes();
            if random >> 40 & 3 == 0 {
                let other = format!("step {}", random >> 50 & 63).into_bytes();
                memos.remove(&[&name[..], &other[..], &name[..], b"not there"]);
                plain.remove(&name);
                plain.remove(&other);
                order.retain(|known| *known != name && *known != other);
            } else {
                let value = vec![b'x'; (random >> 45 & 15) as usize];
                let sender = (at % 3 == 0).then_some(&b"eve"[..]);
                memos.set(&name, &value, sender, at);
                if plain.insert(name.clone(), (value, at, sender)).is_none() {
                    order.push(name);
                }
            }
            let all: Vec<&[u8]> = memos.iter().map(|memo| &*memo.name).collect();
            assert_eq!(all, order);
            for n in 0..64 {
                let name = format!("step {n}").into_bytes();
                let got = memos.get(&name);
                let got = got.map(|memo| (memo.value.to_vec(), memo.at, memo.sender.as_deref()));
                assert_eq!(got.as_ref(), plain.get(&name));
            }
            let sent = |sender: &Option<&[u8]>| sender.map_or(0, <[u8]>::len);
            let size = |(name, (value, _, sender)): (&Vec<u8>, &(Vec<u8>, i64, _))| {
                name.len() + value.len() + sent(sender)
            };
            let size: usize = plain.iter().map(size).sum();
            assert_eq!((memos.len(), memos.size), (plain.len(), size));
        }
        let mut bytes = Vec::new();
        memos.write(&mut bytes);
        let mut from = crate::format::Decoder::from_read_ref(&bytes[..]);
        let again = Memos::read(&mut from).unwrap();
        assert_eq!((&again, &again.by_name, again.size), (&memos, &memos.by_name, memos.size));
    }

    #[test]
    fn two_of_one_name_are_not_read() {
        let memo = Memo { name: (&b"a"[..]).into(), value: (&b"x"[..]).into(), at: 1, sender: None };
        let mut bytes = Vec::new();
        vec![memo.clone(), memo].write(&mut bytes);
        assert!(Memos::read(&mut crate::format::Decoder::from_read_ref(&bytes[..])).is_err());
    }
}
