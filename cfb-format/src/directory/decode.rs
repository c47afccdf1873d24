//! From the bytes of a directory to its entries.

use std::cmp::Reverse;

use zerocopy::FromBytes;

use super::{Directory, ROOT, Slot};
use crate::dir_entry::{DirEntry, EntryKind, is_blank};
use crate::dir_tree::walk::{SlotSet, TreeFault, Walk, in_order};
use crate::dir_tree::{Color, LinkTable, Links};
use crate::error::Corruption;
use crate::finding::{Finding, FindingCode};
use crate::layout::{DIR_ENTRY_BYTES, RawDirEntry, TYPE_ROOT, TYPE_UNUSED};
use crate::table::BitSet;
use crate::version::Geometry;

impl Directory {
    /// Reads the directory from the bytes of its sectors.
    ///
    /// Entries are decoded, and their names hashed, in the order of the file,
    /// which is the order of memory; only the walk over the links jumps about. It
    /// takes one step an entry: an entry reached twice is left out the second
    /// time, so loops end. Entries that no storage holds are kept as bytes.
    ///
    /// # Errors
    ///
    /// [`Corruption::NoRoot`] when the first entry is no root entry.
    pub(crate) fn decode(
        bytes: &[u8],
        geometry: Geometry,
        findings: &mut Vec<Finding>,
    ) -> Result<Self, Corruption> {
        let whole = bytes.len() - bytes.len() % DIR_ENTRY_BYTES;
        let raws = <[RawDirEntry]>::ref_from_bytes(&bytes[..whole]).expect("whole entries");
        let root = raws.first().map_or(0, |raw| raw.object_type);
        if root != TYPE_ROOT {
            return Err(Corruption::NoRoot { found: root });
        }
        let mut directory = Self::with_slots(Vec::with_capacity(raws.len()));
        // What is wrong with entries that no storage holds is not told.
        let mut told = Vec::new();
        let mut name_hashes = Vec::with_capacity(raws.len());
        for (slot, raw) in (0..).zip(raws) {
            let decoded = DirEntry::decode(raw, slot, geometry, &mut |f| told.push((slot, f)));
            let Some((entry, extra)) = decoded else {
                name_hashes.push(0);
                directory.slots.push(Slot::Free);
                continue;
            };
            directory.keep_extra(slot, extra);
            name_hashes.push(directory.index.hash_name(entry.name.units()));
            directory.slots.push(Slot::Entry(entry));
        }
        if directory.entry(ROOT).name.to_string_lossy() != "Root Entry" {
            findings.push(Finding::new(FindingCode::RootName).at_entry(ROOT));
        }

        let mut seen = SlotSet::new(directory.slots_count());
        seen.insert(ROOT);
        directory.entries_count = 1;
        directory.index.reserve(raws.len());
        let mut storages = vec![ROOT];
        while let Some(storage) = storages.pop() {
            let links = FileLinks { slots: &directory.slots, raws };
            let walk = in_order(&links, directory.entry(storage).child, &mut seen);
            directory.adopt(storage, walk, &name_hashes, findings, &mut storages);
        }
        findings.extend(told.into_iter().filter(|(slot, _)| seen.contains(*slot)).map(|(_, f)| f));
        directory.set_aside_unreached(raws, &seen, findings);
        Ok(directory)
    }

    /// Takes in the entries of one storage, in the order of its tree: of two
    /// with one name the index gets the first.
    fn adopt(
        &mut self,
        storage: u32,
        walk: Walk,
        name_hashes: &[u64],
        findings: &mut Vec<Finding>,
        storages: &mut Vec<u32>,
    ) {
        let mut broken = !walk.faults.is_empty();
        for fault in walk.faults {
            let finding = match fault {
                TreeFault::OutOfRange { slot, from } => {
                    Finding::new(FindingCode::DirLink).at_entry(from.unwrap_or(storage)).found(slot)
                }
                TreeFault::Shared { slot } => Finding::new(FindingCode::DirLoop).at_entry(slot),
                other => unreachable!("a walk looks at links only: {other:?}"),
            };
            findings.push(finding);
        }
        for &slot in &walk.slots {
            let Slot::Entry(entry) = &mut self.slots[slot as usize] else {
                findings.push(Finding::new(FindingCode::DirUnusedReached).at_entry(slot));
                broken = true;
                continue;
            };
            if entry.kind == EntryKind::Root {
                entry.kind = EntryKind::Storage;
                (entry.start_sector, entry.len_bytes) = (0, 0);
                findings.push(Finding::new(FindingCode::RootType).at_entry(slot));
            }
            if entry.kind == EntryKind::Storage {
                storages.push(slot);
            }
            entry.parent = storage;
            self.entries_count += 1;
            if !self.index.insert_if_new(&self.slots, name_hashes[slot as usize], slot) {
                findings.push(Finding::new(FindingCode::DirDuplicate).at_entry(slot));
                self.has_duplicates = true;
            }
        }
        if broken {
            let mut children = walk.slots;
            children.retain(|&slot| self.has_entry(slot));
            self.build_tree(storage, children);
            self.rebuilt.push(storage);
            // Nothing has changed yet as far as the file is concerned.
            self.changed = BitSet::default();
        }
    }

    /// What no storage holds is free, or kept as the bytes that it is.
    fn set_aside_unreached(
        &mut self,
        raws: &[RawDirEntry],
        seen: &SlotSet,
        findings: &mut Vec<Finding>,
    ) {
        for (slot, raw) in (0..).zip(raws) {
            let is_entry = matches!(self.slots[slot as usize], Slot::Entry(_));
            if is_entry && seen.contains(slot) {
                continue;
            }
            self.extras.remove(&slot);
            if raw.object_type == TYPE_UNUSED {
                if !is_blank(raw) {
                    findings.push(Finding::new(FindingCode::DirUnusedSlot).at_entry(slot));
                }
                self.free.push(Reverse(slot));
            } else {
                let code = if (1..=5).contains(&raw.object_type) {
                    FindingCode::DirOrphan
                } else {
                    FindingCode::DirUnusedSlot
                };
                findings.push(Finding::new(code).at_entry(slot));
                self.slots[slot as usize] = Slot::Kept;
                self.kept.insert(slot, Box::new(raw.clone()));
            }
        }
    }
}

/// The links of a directory as its bytes have them.
struct FileLinks<'a> {
    slots: &'a [Slot],
    raws: &'a [RawDirEntry],
}

impl LinkTable for FileLinks<'_> {
    fn links(&self, slot: u32) -> Links {
        let (left, right) = if let Slot::Entry(entry) = &self.slots[slot as usize] {
            (entry.left, entry.right)
        } else {
            let raw = &self.raws[slot as usize];
            (raw.left.get(), raw.right.get())
        };
        Links { left, right, color: Color::Black }
    }

    fn set_links(&mut self, slot: u32, _: Links) {
        unreachable!("slot {slot} of a file is only read");
    }

    fn compare(&self, a: u32, b: u32) -> std::cmp::Ordering {
        unreachable!("the order of {a} and {b} is not asked for");
    }
}
