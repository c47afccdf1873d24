//! The sibling trees: what is linked, when new entries join, what a file's are worth.

use std::cmp::Ordering;

use super::Directory;
use crate::dir_tree::walk::{TreeFault, check};
use crate::dir_tree::{self, Color, LinkTable, Links};
use crate::layout::NO_STREAM;
use crate::name;

/// So many new entries in one storage are worth a look at how many it has.
const BULK_ENTRIES: usize = 16;

impl Directory {
    /// Whether every entry is in the tree of its storage.
    pub(crate) const fn is_linked(&self) -> bool {
        self.unlinked.is_empty()
    }

    /// Puts new entries into the trees of their storages.
    ///
    /// Where they are few beside what a storage holds, they are inserted and few
    /// sectors change; where they are many, the tree is built anew from the
    /// sorted entries.
    pub(crate) fn link_new(&mut self) {
        let new = std::mem::take(&mut self.unlinked);
        let mut new: Vec<(u32, u32)> =
            new.into_iter().map(|slot| (self.entry(slot).parent, slot)).collect();
        new.sort_by_key(|&(storage, _)| storage);
        for new in new.chunk_by(|a, b| a.0 == b.0) {
            let storage = new[0].0;
            self.make_legal(storage);
            let is_few = new.len() < BULK_ENTRIES || self.holds_at_least(storage, 4 * new.len());
            let mut slots: Vec<u32> = new.iter().map(|&(_, slot)| slot).collect();
            if is_few {
                self.sort(&mut slots);
                let root = dir_tree::insert_all(self, self.entry(storage).child, &slots);
                self.set_child(storage, root);
            } else {
                slots.extend(self.iter_linked(storage));
                self.build_tree(storage, slots);
            }
        }
    }

    /// Gives a storage a balanced tree of these entries.
    pub(super) fn build_tree(&mut self, storage: u32, mut entries: Vec<u32>) {
        self.sort(&mut entries);
        let root = dir_tree::build(self, &entries);
        self.set_child(storage, root);
    }

    /// Slots of a storage's entries, in the order of its tree. O(entries).
    ///
    /// # Panics
    ///
    /// When new entries are not linked yet.
    pub(crate) fn children(&self, storage: u32) -> Vec<u32> {
        assert!(self.is_linked(), "{} entries are in no tree", self.unlinked.len());
        self.linked_children(storage)
    }

    pub(super) fn linked_children(&self, storage: u32) -> Vec<u32> {
        self.iter_linked(storage).collect()
    }

    fn iter_linked(&self, storage: u32) -> impl Iterator<Item = u32> + '_ {
        let mut path = Vec::new();
        let mut next = self.entry(storage).child;
        std::iter::from_fn(move || {
            while next != NO_STREAM {
                path.push(next);
                next = self.entry(next).left;
            }
            let slot = path.pop()?;
            next = self.entry(slot).right;
            Some(slot)
        })
    }

    /// Whether so many entries or more are in a storage's tree, which is legal.
    /// O(count), and most often O(log entries).
    fn holds_at_least(&self, storage: u32, count: usize) -> bool {
        // With h black nodes on every way down there are at least 2^h - 1.
        let way = std::iter::successors(Some(self.entry(storage).child), |&slot| {
            (slot != NO_STREAM).then(|| self.entry(slot).left)
        });
        let is_black = |&slot: &u32| slot != NO_STREAM && self.entry(slot).color == Color::Black;
        let blacks = way.filter(is_black).count();
        blacks > count.ilog2() as usize || self.iter_linked(storage).take(count).count() == count
    }

    pub(super) fn set_child(&mut self, storage: u32, child: u32) {
        if self.entry(storage).child != child {
            self.entry_mut(storage).child = child;
        }
    }

    /// Builds a storage's tree anew if it is not a legal red-black tree in
    /// the specification's order, which insertion and removal rely on.
    pub(super) fn make_legal(&mut self, storage: u32) {
        if self.legal.contains(storage) {
            return;
        }
        let root = self.entry(storage).child;
        if check(self, root, self.slots_count()).is_err() {
            self.build_tree(storage, self.linked_children(storage));
        }
        self.legal.insert(storage);
    }

    /// What is wrong with the order and colours of a storage's tree as the
    /// file has it; broken links are found when the directory is read.
    pub(crate) fn tree_fault(&self, storage: u32) -> Option<TreeFault> {
        if self.rebuilt.contains(&storage) {
            return None;
        }
        check(self, self.entry(storage).child, self.slots_count()).err()
    }

    /// Sorts entries of one storage as siblings are ordered.
    ///
    /// Names that are many tend to begin alike, so the sort goes by length and
    /// by the units behind what all begin with; it looks at whole names, each
    /// somewhere else in memory, only where those are equal.
    fn sort(&self, entries: &mut [u32]) {
        let units = |slot: u32| self.entry(slot).name.units();
        let Some(&first) = entries.first() else { return };
        let mut common = units(first);
        for &slot in &*entries {
            common = &common[..name::common_len(common, units(slot))];
        }
        let mut keyed: Vec<(u128, u32)> =
            entries.iter().map(|&slot| (name::sort_key(units(slot), common.len()), slot)).collect();
        keyed.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.compare(a.1, b.1)));
        for (entry, (_, slot)) in entries.iter_mut().zip(keyed) {
            *entry = slot;
        }
    }
}

impl LinkTable for Directory {
    fn links(&self, slot: u32) -> Links {
        let entry = self.entry(slot);
        Links { left: entry.left, right: entry.right, color: entry.color }
    }

    fn set_links(&mut self, slot: u32, links: Links) {
        let entry = self.entry_mut(slot);
        entry.left = links.left;
        entry.right = links.right;
        entry.color = links.color;
    }

    /// By name; by slot where a damaged file has one name twice, so that the
    /// order stays total.
    fn compare(&self, a: u32, b: u32) -> Ordering {
        name::compare(self.entry(a).name.units(), self.entry(b).name.units()).then(a.cmp(&b))
    }
}
