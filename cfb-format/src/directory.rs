//! The directory in memory: entries by slot, who holds whom, names by hash.
//!
//! Three views of one set are kept together here: the sibling trees as the
//! file has them (links between slots), each entry's parent, and an index
//! from (parent, name) to slot. Look-ups use the index alone, because trees
//! in real files are often ordered by another rule than the specification's;
//! the trees are what is written.
//!
//! Removal relinks nodes and never moves an entry to another slot, so a slot
//! and its generation name an entry for as long as it lives.
//!
//! A new entry is in the index at once and joins its storage's tree when the
//! tree is next looked at ([`Directory::link_new`]): many new entries are then
//! sorted and linked together, for a fraction of the cost of one by one.

mod decode;
mod index;
mod trees;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use hashbrown::HashMap;
use zerocopy::IntoBytes;

use self::index::NameIndex;
use crate::dir_entry::{DirEntry, EntryKind, Extra, unused_entry};
use crate::dir_tree;
use crate::layout::{DIR_ENTRY_BYTES, NO_STREAM, RawDirEntry};
use crate::name::{self, Name};
use crate::table::BitSet;

/// The slot of the root entry.
pub(crate) const ROOT: u32 = 0;

/// An entry for as long as it lives: its slot, and how many entries the slot
/// had before.
///
/// Ids of one file mean nothing in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// One place of the directory: a cache line, since look-ups touch them in any order.
#[derive(Clone, Debug)]
#[repr(align(64))]
enum Slot {
    /// Nothing; may be given to a new entry.
    Free,
    Entry(DirEntry),
    /// Bytes that belong to no storage and are not blank: kept as they are.
    Kept,
}

const _: () = assert!(size_of::<Slot>() == 64);

/// A name that a storage does not have yet.
#[derive(Clone, Copy)]
pub(crate) struct Vacancy {
    parent: u32,
    hash: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Directory {
    slots: Vec<Slot>,
    /// The bytes of kept slots.
    kept: HashMap<u32, Box<RawDirEntry>>,
    /// The rarely used fields of those entries that have any.
    extras: HashMap<u32, Extra>,
    /// Only slots that were freed have an entry.
    generations: HashMap<u32, u32>,
    /// The generation of all other slots.
    first_generation: u32,
    free: BinaryHeap<Reverse<u32>>,
    index: NameIndex,
    /// Slots that differ from the file.
    changed: BitSet,
    /// Entries that are not yet in the tree of their storage.
    unlinked: Vec<u32>,
    /// Storages whose tree is known to be a legal red-black tree.
    legal: BitSet,
    /// Storages whose tree in the file is broken, and was built anew in memory.
    rebuilt: Vec<u32>,
    entries_count: u32,
    /// Whether a storage of the damaged file has two entries of one name; the
    /// index has the first of them.
    has_duplicates: bool,
}

impl Directory {
    /// A directory with only a root.
    pub(crate) fn new() -> Self {
        let root = Name::new("Root Entry").expect("a legal name");
        let mut directory = Self::with_slots(Vec::new());
        directory.slots.push(Slot::Entry(DirEntry::new(EntryKind::Root, root, ROOT)));
        directory.entries_count = 1;
        directory.changed.insert(ROOT);
        directory.legal.insert(ROOT);
        directory
    }

    fn with_slots(slots: Vec<Slot>) -> Self {
        Self {
            slots,
            kept: HashMap::new(),
            extras: HashMap::new(),
            generations: HashMap::new(),
            first_generation: 0,
            free: BinaryHeap::new(),
            index: NameIndex::default(),
            changed: BitSet::default(),
            unlinked: Vec::new(),
            legal: BitSet::default(),
            rebuilt: Vec::new(),
            entries_count: 0,
            has_duplicates: false,
        }
    }

    /// Makes the trees that were broken in the file part of the next save:
    /// to be called before the first change.
    pub(crate) fn write_rebuilt(&mut self) {
        for storage in std::mem::take(&mut self.rebuilt) {
            self.changed.insert(storage);
            for slot in self.linked_children(storage) {
                self.changed.insert(slot);
            }
            self.legal.insert(storage);
        }
    }

    pub(crate) fn slots_count(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("slots are numbered by u32")
    }

    pub(crate) const fn entries_count(&self) -> u32 {
        self.entries_count
    }

    /// # Panics
    ///
    /// When the slot has no entry.
    pub(crate) fn entry(&self, slot: u32) -> &DirEntry {
        match &self.slots[slot as usize] {
            Slot::Entry(entry) => entry,
            other => panic!("slot {slot} has no entry but {other:?}"),
        }
    }

    /// The entry, to be changed: its slot will be written.
    pub(crate) fn entry_mut(&mut self, slot: u32) -> &mut DirEntry {
        self.changed.insert(slot);
        match &mut self.slots[slot as usize] {
            Slot::Entry(entry) => entry,
            other => panic!("slot {slot} has no entry but {other:?}"),
        }
    }

    /// The rarely used fields of an entry.
    pub(crate) fn extra(&self, slot: u32) -> Extra {
        self.extras.get(&slot).cloned().unwrap_or_default()
    }

    /// Sets the rarely used fields of an entry: its slot will be written.
    pub(crate) fn set_extra(&mut self, slot: u32, extra: Extra) {
        self.keep_extra(slot, extra);
        self.changed.insert(slot);
    }

    fn keep_extra(&mut self, slot: u32, extra: Extra) {
        if extra == Extra::default() {
            self.extras.remove(&slot);
        } else {
            self.extras.insert(slot, extra);
        }
    }

    pub(crate) fn id(&self, slot: u32) -> EntryId {
        EntryId {
            slot,
            generation: self.generations.get(&slot).copied().unwrap_or(self.first_generation),
        }
    }

    /// A generation that no slot has had.
    pub(crate) fn next_generation(&self) -> u32 {
        self.generations.values().copied().max().unwrap_or(self.first_generation) + 1
    }

    /// Gives all slots another generation than any before.
    pub(crate) fn number_from(&mut self, first_generation: u32) {
        self.first_generation = first_generation;
        self.generations.clear();
    }

    /// The slot of an entry that still lives.
    pub(crate) fn resolve(&self, id: EntryId) -> Option<u32> {
        (self.has_entry(id.slot) && self.id(id.slot) == id).then_some(id.slot)
    }

    /// Slots of all entries, ascending.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.slots).filter(|(_, slot)| matches!(slot, Slot::Entry(_))).map(|(i, _)| i)
    }

    /// Path of an entry, names joined by '/'; the root is "/".
    pub(crate) fn path(&self, slot: u32) -> String {
        if slot == ROOT {
            return "/".to_owned();
        }
        let mut slots = vec![slot];
        while let Some(&last) = slots.last() {
            let parent = self.entry(last).parent;
            if parent == ROOT {
                break;
            }
            slots.push(parent);
        }
        slots.iter().rev().fold(String::new(), |mut path, &slot| {
            path.push('/');
            self.entry(slot).name.append_to(&mut path);
            path
        })
    }

    /// Whether `slot` is `storage` or lies below it.
    pub(crate) fn is_within(&self, slot: u32, storage: u32) -> bool {
        let mut at = slot;
        loop {
            if at == storage {
                return true;
            }
            if at == ROOT {
                return false;
            }
            at = self.entry(at).parent;
        }
    }

    /// The entry of this name in a storage, compared as the specification
    /// says, or what it takes to [`insert`](Self::insert) one.
    ///
    /// # Errors
    ///
    /// The vacancy.
    pub(crate) fn find_units(&self, parent: u32, units: &[u16]) -> Result<u32, Vacancy> {
        let found = self.index.find(&self.slots, parent, units);
        found.map_err(|hash| Vacancy { parent, hash })
    }

    /// The entry of this name in a storage.
    pub(crate) fn find(&self, parent: u32, name: &str) -> Option<u32> {
        self.find_units(parent, name::encode(name, &mut [0; 32])?).ok()
    }

    fn index_remove(&mut self, slot: u32) {
        let entry = self.entry(slot);
        let (parent, name) = (entry.parent, entry.name.clone());
        let hash = self.index.hash(parent, name.units());
        if self.index.remove(hash, slot) && self.has_duplicates {
            // Another entry of this name can be found from now on.
            let twin = self.linked_children(parent).into_iter().find(|&other| {
                other != slot && name::eq_folded(self.entry(other).name.units(), name.units())
            });
            if let Some(twin) = twin {
                self.index.insert(&self.slots, hash, twin);
            }
        }
    }

    /// Adds an entry of the name that was looked for to the storage that has none.
    pub(crate) fn insert(&mut self, vacancy: Vacancy, kind: EntryKind, name: Name) -> u32 {
        let Vacancy { parent, hash } = vacancy;
        let entry = DirEntry::new(kind, name, parent);
        let slot = if let Some(Reverse(slot)) = self.free.pop() {
            self.slots[slot as usize] = Slot::Entry(entry);
            slot
        } else {
            let slot = self.slots_count();
            self.slots.push(Slot::Entry(entry));
            slot
        };
        self.changed.insert(slot);
        self.legal.insert(slot);
        self.entries_count += 1;
        self.index.insert(&self.slots, hash, slot);
        self.unlinked.push(slot);
        slot
    }

    /// Removes an entry without children from its storage and frees its slot.
    pub(crate) fn remove(&mut self, slot: u32) {
        assert_ne!(slot, ROOT, "the root stays");
        assert!(self.has_no_children(slot), "children first");
        self.detach(slot);
        self.slots[slot as usize] = Slot::Free;
        self.extras.remove(&slot);
        *self.generations.entry(slot).or_insert(self.first_generation) += 1;
        self.changed.insert(slot);
        self.free.push(Reverse(slot));
        self.entries_count -= 1;
    }

    /// Gives an entry another name and storage; what it holds comes along.
    pub(crate) fn relocate(&mut self, slot: u32, parent: u32, name: Name) {
        self.detach(slot);
        let hash = self.index.hash(parent, name.units());
        let entry = self.entry_mut(slot);
        entry.parent = parent;
        entry.name = name;
        self.index.insert(&self.slots, hash, slot);
        self.unlinked.push(slot);
    }

    /// Whether a storage holds nothing.
    pub(crate) fn has_no_children(&self, storage: u32) -> bool {
        self.entry(storage).child == NO_STREAM
            && !self.unlinked.iter().any(|&slot| self.entry(slot).parent == storage)
    }

    fn detach(&mut self, slot: u32) {
        self.link_new();
        let parent = self.entry(slot).parent;
        self.make_legal(parent);
        self.index_remove(slot);
        let root = dir_tree::remove(self, self.entry(parent).child, slot);
        self.set_child(parent, root);
        let entry = self.entry_mut(slot);
        (entry.left, entry.right) = (NO_STREAM, NO_STREAM);
    }

    /// Whether the slot has an entry.
    pub(crate) fn has_entry(&self, slot: u32) -> bool {
        matches!(self.slots.get(slot as usize), Some(Slot::Entry(_)))
    }

    /// Gives the free slots at the end back. The root stays.
    pub(crate) fn trim(&mut self, entries_per_sector: u32) {
        let mut end = self.slots.len();
        while matches!(self.slots[end - 1], Slot::Free) {
            end -= 1;
        }
        let keep = end.next_multiple_of(entries_per_sector as usize);
        if keep < self.slots.len() {
            self.slots.truncate(keep);
            let end = self.slots_count();
            self.free.retain(|&Reverse(slot)| slot < end);
            self.changed.truncate(end);
        }
    }

    /// Adds free slots so that the directory fills whole sectors.
    pub(crate) fn pad(&mut self, entries_per_sector: u32) {
        while !self.slots_count().is_multiple_of(entries_per_sector) {
            let slot = self.slots_count();
            self.slots.push(Slot::Free);
            self.free.push(Reverse(slot));
            self.changed.insert(slot);
        }
    }

    /// Sectors of the directory that differ from the file, as `(first, count)`.
    pub(crate) fn changed_sectors(&self, entries_per_sector: u32) -> Vec<(u32, u32)> {
        let mut sectors = BitSet::default();
        for slot in self.changed.iter() {
            sectors.insert(slot / entries_per_sector);
        }
        sectors.ranges()
    }

    pub(crate) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Whether the slot may differ from the file's.
    pub(crate) fn is_slot_changed(&self, slot: u32) -> bool {
        self.changed.contains(slot)
    }

    /// Marks the slots of `sectors` as changed, such as after a move.
    pub(crate) fn touch_all(&mut self) {
        self.changed.insert_range(0, self.slots_count());
    }

    /// Marks some slots as changed, such as after a move of their sectors.
    pub(crate) fn touch(&mut self, slots: Range<u32>) {
        self.changed.insert_range(slots.start, slots.end.min(self.slots_count()));
    }

    pub(crate) fn saved(&mut self) {
        self.changed = BitSet::default();
    }

    /// Appends the bytes of the slots `first..first + count`.
    pub(crate) fn encode_to(&self, bytes: &mut Vec<u8>, first: u32, count: u32) {
        let slots = &self.slots[first as usize..(first + count) as usize];
        bytes.reserve(slots.len() * DIR_ENTRY_BYTES);
        let unused = unused_entry();
        for (slot, number) in slots.iter().zip(first..) {
            match slot {
                Slot::Free => bytes.extend_from_slice(unused.as_bytes()),
                Slot::Entry(entry) => {
                    bytes.extend_from_slice(entry.encode(&self.extra(number)).as_bytes());
                }
                Slot::Kept => bytes.extend_from_slice(self.kept[&number].as_bytes()),
            }
        }
    }

    #[cfg(test)]
    fn encode(&self, first: u32, count: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode_to(&mut bytes, first, count);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Finding, FindingCode};
    use crate::version::{Geometry, Version};

    fn insert(directory: &mut Directory, parent: u32, kind: EntryKind, name: &str) -> u32 {
        let name = Name::new(name).unwrap();
        let Err(vacancy) = directory.find_units(parent, name.units()) else { panic!("a new name") };
        directory.insert(vacancy, kind, name)
    }

    fn filled(count: u32) -> Directory {
        let mut directory = Directory::new();
        let storage = insert(&mut directory, ROOT, EntryKind::Storage, "storage");
        for i in 0..count {
            insert(&mut directory, storage, EntryKind::Stream, &format!("stream {i}"));
        }
        directory.link_new();
        directory.pad(4);
        directory
    }

    fn decoded(directory: &Directory) -> (Directory, Vec<Finding>) {
        let bytes = directory.encode(0, directory.slots_count());
        let mut findings = Vec::new();
        let geometry = Geometry::new(Version::V3);
        (Directory::decode(&bytes, geometry, &mut findings).unwrap(), findings)
    }

    #[test]
    fn an_encoded_directory_decodes_to_the_same_tree() {
        let directory = filled(100);
        let (again, findings) = decoded(&directory);
        assert_eq!(findings, []);
        assert_eq!(again.entries_count(), 102);
        let storage = again.find(ROOT, "STORAGE").unwrap();
        assert_eq!(again.children(storage), directory.children(storage));
        assert_eq!(again.tree_fault(storage), None);
        assert_eq!(again.path(again.find(storage, "Stream 7").unwrap()), "/storage/stream 7");
    }

    #[test]
    fn slot_of_a_removed_entry_is_given_out_again_under_another_id() {
        let mut directory = filled(3);
        let storage = directory.find(ROOT, "storage").unwrap();
        let slot = directory.find(storage, "stream 1").unwrap();
        let old = directory.id(slot);
        directory.remove(slot);
        assert_eq!(directory.resolve(old), None);
        let new = insert(&mut directory, ROOT, EntryKind::Stream, "new");
        assert_eq!(new, slot, "the lowest free slot");
        assert_eq!(directory.resolve(old), None);
        assert_eq!(directory.resolve(directory.id(new)), Some(new));
    }

    #[test]
    fn one_change_touches_few_sectors_of_a_large_directory() {
        let mut directory = filled(1000);
        directory.saved();
        insert(&mut directory, ROOT, EntryKind::Stream, "new");
        directory.link_new();
        directory.pad(4);
        let sectors: u32 = directory.changed_sectors(4).iter().map(|(_, count)| count).sum();
        assert!(sectors <= 4, "{sectors} of {}", directory.slots_count() / 4);
    }

    #[test]
    fn entries_linked_together_make_the_same_tree_order_as_one_by_one() {
        let names: Vec<String> = (0..200).map(|i| format!("{}", i * 7919 % 1000)).collect();
        let (mut together, mut singly) = (Directory::new(), Directory::new());
        for name in &names {
            for directory in [&mut together, &mut singly] {
                insert(directory, ROOT, EntryKind::Stream, name);
            }
            singly.link_new();
        }
        together.link_new();
        assert_eq!(together.children(ROOT), singly.children(ROOT));
        assert_eq!((together.tree_fault(ROOT), singly.tree_fault(ROOT)), (None, None));
        assert_eq!(together.children(ROOT).len(), names.len());
    }

    #[test]
    fn a_loop_between_siblings_costs_no_entry() {
        let directory = filled(10);
        let mut bytes = directory.encode(0, directory.slots_count());
        let storage = directory.find(ROOT, "storage").unwrap();
        let child = directory.entry(storage).child as usize;
        // The right link of the tree's root leads back to it.
        let right = child * DIR_ENTRY_BYTES + 0x48;
        let lost = u32::from_le_bytes(bytes[right..right + 4].try_into().unwrap());
        let child_link = u32::try_from(child).unwrap().to_le_bytes();
        bytes[right..right + 4].copy_from_slice(&child_link);
        let mut findings = Vec::new();
        let geometry = Geometry::new(Version::V3);
        let mut broken = Directory::decode(&bytes, geometry, &mut findings).unwrap();
        let codes: Vec<_> = findings.iter().map(Finding::code).collect();
        assert!(codes.contains(&FindingCode::DirLoop) && codes.contains(&FindingCode::DirOrphan));
        assert!(!broken.has_entry(lost));
        // What is left is a legal tree, and is written with the first change.
        let children = broken.children(storage);
        assert!(children.contains(&u32::try_from(child).unwrap()));
        broken.write_rebuilt();
        assert!(broken.is_changed());
        assert_eq!(broken.tree_fault(storage), None);
    }

    #[test]
    fn twin_of_a_removed_entry_can_be_found() {
        let directory = filled(3);
        let storage = directory.find(ROOT, "storage").unwrap();
        let mut bytes = directory.encode(0, directory.slots_count());
        let (from, to) = ("stream 1", "stream 2");
        let from = directory.find(storage, from).unwrap() as usize * DIR_ENTRY_BYTES;
        let to = directory.find(storage, to).unwrap() as usize * DIR_ENTRY_BYTES;
        bytes.copy_within(from..from + 64, to);
        let mut findings = Vec::new();
        let mut twins =
            Directory::decode(&bytes, Geometry::new(Version::V3), &mut findings).unwrap();
        assert!(findings.iter().any(|finding| finding.code() == FindingCode::DirDuplicate));
        let first = twins.find(storage, "stream 1").unwrap();
        twins.remove(first);
        let second = twins.find(storage, "stream 1").unwrap();
        assert_ne!(first, second);
        twins.remove(second);
        assert_eq!(twins.find(storage, "stream 1"), None);
    }

    #[test]
    fn free_slots_at_the_end_are_given_back() {
        let mut directory = filled(40);
        let storage = directory.find(ROOT, "storage").unwrap();
        for slot in directory.children(storage) {
            directory.remove(slot);
        }
        directory.trim(4);
        assert_eq!(directory.slots_count(), 4);
        let new = insert(&mut directory, ROOT, EntryKind::Stream, "new");
        assert!(new < 4);
    }
}
