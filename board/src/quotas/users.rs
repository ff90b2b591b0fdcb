//! How many live jobs each user has of each name: what `MAXLIVE` bounds.
//!
//! A job with a user counts while it is in a place of a live state ([`Board::enter`],
//! [`Board::leave`]), under its user and its name at that time. The counts are the references of an
//! interner, so that no allocation is needed when a user's last job ends and the next is posted.

use std::collections::BTreeMap;

use crate::board::Board;
use crate::structures::byte_string::ByteString;

/// The key of a count: the length of the user, the user, the name.
struct Key([u8; 1 + 255 + 255], usize);

impl Key {
    fn of(user: &[u8], name: &[u8]) -> Key {
        let mut key = Key([0; 511], 0);
        for part in [&[user.len().min(255) as u8][..], user, name] {
            if let Some(place) = key.0.get_mut(key.1..key.1 + part.len()) {
                place.copy_from_slice(part);
                key.1 += part.len();
            }
        }
        key
    }

    fn bytes(&self) -> &[u8] {
        self.0.get(..self.1).unwrap_or_default()
    }
}

impl Board {
    /// How many live jobs of this user and name there are. O(1).
    pub fn live_of(&self, user: &[u8], name: &[u8]) -> u64 {
        let Some(owners) = &self.quotas.owners else { return 0 };
        owners.find(Key::of(user, name).bytes()).map_or(0, |number| owners.refs(number))
    }

    fn owner_of(&self, slot: u32) -> Option<Key> {
        let job = self.store.jobs.get(slot)?;
        let user = job.extras.as_ref()?.user.as_ref()?;
        Some(Key::of(user, &self.class_of(job)?.name))
    }

    /// A job has got a place of a live state; without a user it does not count.
    pub(crate) fn owner_gains(&mut self, slot: u32) {
        if let Some(key) = self.owner_of(slot) {
            let owners = self.quotas.owners.get_or_insert_default();
            let number = match owners.find(key.bytes()) {
                Some(number) => number,
                None => owners.add(key.bytes().into()).0,
            };
            owners.hold(number);
        }
    }

    /// A job has left a place of a live state.
    pub(crate) fn owner_loses(&mut self, slot: u32) {
        let Some(key) = self.owner_of(slot) else { return };
        let Some(owners) = &mut self.quotas.owners else { return };
        if let Some(number) = owners.find(key.bytes()) {
            owners.release(number);
        }
    }

    /// Checks that the counts follow from the records.
    pub(crate) fn check_owners(&self) -> Result<(), String> {
        let mut live: BTreeMap<ByteString, u64> = BTreeMap::new();
        for (slot, _) in self.store.jobs.iter().filter(|(_, job)| !job.state.ended()) {
            if let Some(key) = self.owner_of(slot) {
                *live.entry(key.bytes().into()).or_default() += 1;
            }
        }
        let owners = self.quotas.owners.iter();
        let counts = owners
            .flat_map(|owners| owners.iter().map(|(number, key, _)| (key.clone(), owners.refs(number))));
        match counts.collect::<BTreeMap<_, _>>() == live {
            true => Ok(()),
            false => Err("live jobs of a user are not as many as counted".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_names_do_not_run_into_each_other() {
        let keys = [(&b"ab"[..], &b"c"[..]), (b"a", b"bc"), (b"abc", b""), (&[255; 255], &[255; 255])];
        let all: Vec<Vec<u8>> = keys.iter().map(|(u, n)| Key::of(u, n).bytes().to_vec()).collect();
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 4, 511]);
        assert!(all.windows(2).all(|w| w[0] != w[1]));
    }
}
