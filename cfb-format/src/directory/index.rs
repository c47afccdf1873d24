//! Names by hash: from a storage and a name to the entry's slot.
//!
//! The table holds slots and nothing else, so that the one of 100,000 entries
//! stays in a processor's second-level cache; what a look-up then waits for is
//! the entry itself. Growing the table hashes every name again, which reads
//! entries in any order but waits for none.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable, hash_table};

use super::Slot;
use crate::dir_entry::DirEntry;
use crate::name;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct NameIndex {
    slots: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl NameIndex {
    pub(super) fn hash(&self, parent: u32, units: &[u16]) -> u64 {
        hash(&self.hasher, parent, units)
    }

    /// The slot with this name in a storage.
    ///
    /// # Errors
    ///
    /// The hash to [`insert`](Self::insert) it with.
    pub(super) fn find(&self, entries: &[Slot], parent: u32, units: &[u16]) -> Result<u32, u64> {
        let hash = self.hash(parent, units);
        let found = self.slots.find(hash, |&slot| is_named(entry(entries, slot), parent, units));
        found.copied().ok_or(hash)
    }

    /// Adds the entry in `slot`, whose name and storage have this hash.
    pub(super) fn insert(&mut self, entries: &[Slot], hash: u64, slot: u32) {
        let hasher = &self.hasher;
        self.slots.insert_unique(hash, slot, |&slot| hash_of(hasher, entry(entries, slot)));
    }

    /// Adds the entry in `slot` unless its storage has one of its name already.
    pub(super) fn insert_if_new(&mut self, entries: &[Slot], slot: u32) -> bool {
        let hasher = &self.hasher;
        let new = entry(entries, slot);
        let is_same = |&slot: &u32| is_named(entry(entries, slot), new.parent, new.name.units());
        let hash_slot = |&slot: &u32| hash_of(hasher, entry(entries, slot));
        match self.slots.entry(hash_of(hasher, new), is_same, hash_slot) {
            hash_table::Entry::Occupied(_) => false,
            hash_table::Entry::Vacant(vacant) => {
                vacant.insert(slot);
                true
            }
        }
    }

    /// Takes out a slot; false if it is not there, as the second of two
    /// entries with one name is not.
    pub(super) fn remove(&mut self, hash: u64, slot: u32) -> bool {
        let found = self.slots.find_entry(hash, |&other| other == slot);
        found.map(|found| found.remove()).is_ok()
    }

    /// Makes room in an empty index.
    pub(super) fn reserve(&mut self, count: usize) {
        self.slots.reserve(count, |_| unreachable!("the index is empty"));
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
    }
}

fn entry(entries: &[Slot], slot: u32) -> &DirEntry {
    let Slot::Entry(entry) = &entries[slot as usize] else {
        unreachable!("slot {slot} is in the index and has no entry")
    };
    entry
}

fn is_named(entry: &DirEntry, parent: u32, units: &[u16]) -> bool {
    entry.parent == parent && name::eq_folded(entry.name.units(), units)
}

fn hash_of(hasher: &DefaultHashBuilder, entry: &DirEntry) -> u64 {
    hash(hasher, entry.parent, entry.name.units())
}

fn hash(hasher: &DefaultHashBuilder, parent: u32, units: &[u16]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write_u32(parent);
    name::fold_hash(units, &mut hasher);
    hasher.finish()
}
