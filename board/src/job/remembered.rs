//! What a job remembers while its work goes on: the steps that are done, and its output.
//!
//! Values by name, in the order in which they arrived. Names are found by binary search, and the
//! bytes are summed up as they change: a job has thousands of steps, and each edit of a record asks
//! for its bytes.

use serde::Deserializer;

use super::is_time;
use super::output::Output;
use crate::effect::is_name;
use crate::format::{Unreadable, Written};
use crate::structures::byte_string::ByteString;
use crate::structures::lazy::Part;

/// Bytes of a memo beside its name and its value: two pointers with lengths, a time, its place.
const MEMO: usize = 64;

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
    }
}

/// Memos, each of another name, in the order in which they arrived.
#[derive(Debug, Clone, Default)]
pub struct Memos {
    all: Vec<Memo>,
    /// Their places, in the order of their names.
    by_name: Vec<u32>,
    /// Bytes of names and values.
    size: usize,
}

written! {
    /// Part of [`super::Extras`]. See the module's comment.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Remembered {
        /// What the steps of the work came to.
        1 pub steps: Memos,
        /// What its worker has written.
        3 pub output: Option<Box<Output>>,
    }
}

impl Part for Remembered {
    const BLANK: &'static Self = &Remembered { steps: Memos::EMPTY, output: None };
}

impl Remembered {
    /// Whether a board could have come to every name and time in it.
    pub(crate) fn is_valid(&self) -> bool {
        self.steps.all.iter().all(|memo| is_name(&memo.name) && is_time(memo.at))
            && self.output.as_ref().is_none_or(|output| output.is_valid())
    }

    /// How many memos there are, and how many bytes their names and values have.
    pub fn size(&self) -> (usize, usize) {
        (self.steps.len(), self.steps.size)
    }

    /// About how many bytes it points to. O(1).
    pub fn bytes(&self) -> usize {
        self.steps.size + MEMO * self.steps.len() + self.output.as_ref().map_or(0, |output| output.bytes())
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
    pub fn set(&mut self, name: &[u8], value: &[u8], at: i64) {
        let found = self.find(name);
        let place = found.ok().and_then(|n| self.by_name.get(n)).map(|at| *at as usize);
        if let Some(memo) = place.and_then(|place| self.all.get_mut(place)) {
            self.size = (self.size + value.len()).saturating_sub(memo.value.len());
            (memo.value, memo.at) = (value.into(), at);
            return;
        }
        let Err(n) = found else { return };
        self.by_name.insert(n, self.all.len() as u32);
        self.all.push(Memo { name: name.into(), value: value.into(), at });
        self.size += name.len() + value.len();
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
                *size = size.saturating_sub(memo.name.len() + memo.value.len());
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
        let size = all.iter().map(|memo| memo.name.len() + memo.value.len()).sum();
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
                memos.set(&name, &value, at);
                if plain.insert(name.clone(), (value, at)).is_none() {
                    order.push(name);
                }
            }
            let all: Vec<&[u8]> = memos.iter().map(|memo| &*memo.name).collect();
            assert_eq!(all, order);
            for n in 0..64 {
                let name = format!("step {n}").into_bytes();
                let got = memos.get(&name).map(|memo| (memo.value.to_vec(), memo.at));
                assert_eq!(got.as_ref(), plain.get(&name));
            }
            let size: usize = plain.iter().map(|(name, (value, _))| name.len() + value.len()).sum();
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
        let memo = Memo { name: (&b"a"[..]).into(), value: (&b"x"[..]).into(), at: 1 };
        let mut bytes = Vec::new();
        vec![memo.clone(), memo].write(&mut bytes);
        assert!(Memos::read(&mut crate::format::Decoder::from_read_ref(&bytes[..])).is_err());
    }
}
