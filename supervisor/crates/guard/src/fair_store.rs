//! A bounded store in which no owner can crowd out another.
//!
//! Each entry has an owner. When the store is full, the owner that takes up most of it loses its oldest
//! entry. An owner that floods the store evicts its own entries; others keep theirs as long as they use less
//! than an equal share.

use std::collections::{BTreeMap, HashMap};

/// What an entry costs beyond its own bytes: keys, table entries and counters, roughly. Without it a store of
/// empty entries would have no bound.
pub(crate) const OVERHEAD: usize = 256;

/// A store bounded by bytes and count. Keys are unique across all owners.
#[derive(Debug)]
pub(crate) struct FairStore<V> {
    max_bytes: usize,
    max_count: usize,
    bytes: usize,
    /// How many entries were ever inserted, which orders them by age.
    insertions: u64,
    entries: HashMap<String, Entry<V>>,
    owners: HashMap<String, Owner>,
}

#[derive(Debug)]
struct Entry<V> {
    owner: String,
    sequence: u64,
    bytes: usize,
    value: V,
}

#[derive(Debug, Default)]
struct Owner {
    bytes: usize,
    /// The keys of its entries, oldest first.
    keys: BTreeMap<u64, String>,
}

impl<V> FairStore<V> {
    pub(crate) fn new(max_bytes: usize, max_count: usize) -> Self {
        Self {
            max_bytes,
            max_count,
            bytes: 0,
            insertions: 0,
            entries: HashMap::new(),
            owners: HashMap::new(),
        }
    }

    /// Inserts an entry, and replaces one with the same key. Returns false if it is too large to ever fit.
    pub(crate) fn insert(&mut self, owner: &str, key: &str, bytes: usize, value: V) -> bool {
        self.remove(key);
        let bytes = bytes.saturating_add(OVERHEAD + owner.len() + key.len());
        if bytes > self.max_bytes || self.max_count == 0 {
            return false;
        }
        // Insert first, so that the owner's share includes the new entry. It is the newest, so it is evicted
        // last.
        self.bytes += bytes;
        self.insertions += 1;
        let put = self.insertions;
        let mine = self.owners.entry(owner.to_owned()).or_default();
        mine.bytes += bytes;
        mine.keys.insert(put, key.to_owned());
        self.entries.insert(key.to_owned(), Entry { owner: owner.to_owned(), sequence: put, bytes, value });
        while self.bytes > self.max_bytes || self.entries.len() > self.max_count {
            let Some(oldest) = self.eviction_candidate() else { break };
            self.remove(&oldest);
        }
        true
    }

    pub(crate) fn get(&self, key: &str) -> Option<(&str, &V)> {
        self.entries.get(key).map(|thing| (thing.owner.as_str(), &thing.value))
    }

    /// All entries, the newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &V> {
        let mut things: Vec<&Entry<V>> = self.entries.values().collect();
        things.sort_by_key(|thing| std::cmp::Reverse(thing.sequence));
        things.into_iter().map(|thing| &thing.value)
    }

    /// Removes all entries for which `keep` is false.
    pub(crate) fn retain(&mut self, keep: impl Fn(&V) -> bool) {
        let gone: Vec<String> = self
            .entries
            .iter()
            .filter(|(_, thing)| !keep(&thing.value))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            self.remove(&key);
        }
    }

    pub(crate) fn remove(&mut self, key: &str) {
        let Some(thing) = self.entries.remove(key) else { return };
        self.bytes -= thing.bytes;
        let Some(owner) = self.owners.get_mut(&thing.owner) else { return };
        owner.bytes -= thing.bytes;
        owner.keys.remove(&thing.sequence);
        if owner.keys.is_empty() {
            self.owners.remove(&thing.owner);
        }
    }

    fn eviction_candidate(&self) -> Option<String> {
        // By bytes, or by count if that is the limit that was exceeded.
        let largest = if self.bytes > self.max_bytes {
            self.owners.values().max_by_key(|owner| owner.bytes)
        } else {
            self.owners.values().max_by_key(|owner| owner.keys.len())
        };
        largest?.keys.first_key_value().map(|(_, key)| key.clone())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn room_for(things: usize, bytes: usize) -> usize {
        // Owners and keys of one character each.
        things * (bytes + OVERHEAD + 2)
    }

    #[test]
    fn who_floods_it_pushes_out_his_own() {
        let mut shelf = FairStore::new(room_for(4, 100), 100);
        assert!(shelf.insert("a", "x", 100, 1));
        for (key, value) in ["1", "2", "3", "4", "5"].into_iter().zip(0..) {
            assert!(shelf.insert("b", key, 100, value));
        }
        assert!(shelf.get("x").is_some());
        assert!(shelf.get("2").is_none() && shelf.get("3").is_some() && shelf.get("5").is_some());
    }

    #[test]
    fn many_small_things_count_too() {
        let mut shelf = FairStore::new(usize::MAX, 3);
        shelf.insert("a", "x", 1_000_000, 1);
        for key in ["1", "2", "3", "4"] {
            shelf.insert("b", key, 0, 0);
        }
        assert!(shelf.get("x").is_some() && shelf.get("4").is_some() && shelf.get("2").is_none());
    }

    #[test]
    fn what_never_fits_pushes_nothing_out() {
        let mut shelf = FairStore::new(room_for(2, 10), 100);
        shelf.insert("a", "x", 10, 1);
        assert!(!shelf.insert("b", "y", 10_000, 1));
        assert!(!shelf.insert("b", "z", usize::MAX, 1));
        assert!(shelf.get("x").is_some());
    }

    #[test]
    fn a_thing_of_the_same_key_takes_its_place() {
        let mut shelf = FairStore::new(room_for(2, 10), 100);
        shelf.insert("a", "x", 10, 1);
        shelf.insert("b", "x", 10, 2);
        assert_eq!(shelf.get("x"), Some(("b", &2)));
        assert_eq!(shelf.bytes, room_for(1, 10));
    }

    proptest! {
        #[test]
        fn the_books_are_right(puts in proptest::collection::vec((0..4u8, 0..20u8, 0..2000usize), 0..60)) {
            let mut shelf = FairStore::new(8000, 10);
            for (owner, key, bytes) in puts {
                shelf.insert(&owner.to_string(), &key.to_string(), bytes, ());
                prop_assert!(shelf.bytes <= 8000 && shelf.entries.len() <= 10);
                prop_assert_eq!(shelf.bytes, shelf.entries.values().map(|thing| thing.bytes).sum::<usize>());
                prop_assert_eq!(shelf.bytes, shelf.owners.values().map(|owner| owner.bytes).sum::<usize>());
                let keys = shelf.owners.values().map(|owner| owner.keys.len()).sum::<usize>();
                prop_assert_eq!(shelf.entries.len(), keys);
            }
        }
    }
}
