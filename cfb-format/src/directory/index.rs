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
    /// The hash of a name, to be told from others of its kind by [`in_storage`].
    pub(super) fn hash_name(&self, units: &[u16]) -> u64 {
        hash_name(&self.hasher, units)
    }

    /// The hash of a name in a storage.
    pub(super) fn hash(&self, parent: u32, units: &[u16]) -> u64 {
        in_storage(self.hash_name(units), parent)
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
        let hash_slot = |&slot: &u32| hash_of(hasher, entry(entries, slot));
        if self.slots.len() == self.slots.capacity() {
            // By four rather than two: each growth hashes all names.
            self.slots.reserve(3 * self.slots.len(), hash_slot);
        }
        self.slots.insert_unique(hash, slot, hash_slot);
    }

    /// Adds the entry in `slot`, whose name has this hash, unless its storage has
    /// one of its name already; says whether it did.
    pub(super) fn insert_if_new(&mut self, entries: &[Slot], name_hash: u64, slot: u32) -> bool {
        let hasher = &self.hasher;
        let new = entry(entries, slot);
        let is_same = |&slot: &u32| is_named(entry(entries, slot), new.parent, new.name.units());
        let hash_slot = |&slot: &u32| hash_of(hasher, entry(entries, slot));
        match self.slots.entry(in_storage(name_hash, new.parent), is_same, hash_slot) {
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
        found.map(hash_table::OccupiedEntry::remove).is_ok()
    }

    /// Makes room in an empty index.
    pub(super) fn reserve(&mut self, count: usize) {
        self.slots.reserve(count, |_| unreachable!("the index is empty"));
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
    in_storage(hash_name(hasher, entry.name.units()), entry.parent)
}

fn hash_name(hasher: &DefaultHashBuilder, units: &[u16]) -> u64 {
    let mut hasher = hasher.build_hasher();
    name::fold_hash(units, &mut hasher);
    hasher.finish()
}

/// The multiplier is odd and its bits are spread, so the same name in other
/// storages gets other hashes, in their high and in their low bits.
const fn in_storage(name_hash: u64, parent: u32) -> u64 {
    name_hash ^ (parent as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
