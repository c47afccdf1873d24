//! Links as they come from a file: following them whatever they are, and
//! checking that they are a legal tree.

use super::{Color, LinkTable, MAX_HEIGHT, NO_STREAM};
use std::cmp::Ordering;

/// What makes the links of a file no red-black tree. Each names a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeFault {
    /// A link of `from` (of the storage itself if `None`) leads to `slot`,
    /// which the directory does not have.
    OutOfRange { slot: u32, from: Option<u32> },
    /// A second link leads to this slot: a loop, or a node in two trees.
    Shared { slot: u32 },
    /// The name in this slot is on the wrong side of an ancestor's, or equal to it.
    OutOfOrder { slot: u32 },
    /// This slot is red and so is its parent.
    TwoReds { slot: u32 },
    /// A child is missing here at another number of black nodes than elsewhere.
    BlackHeight { slot: u32 },
    /// The root is red.
    RedRoot { slot: u32 },
}

impl TreeFault {
    /// Kinds of faults, the worst first.
    const fn rank(&self) -> u8 {
        match self {
            Self::OutOfRange { .. } => 0,
            Self::Shared { .. } => 1,
            Self::OutOfOrder { .. } => 2,
            Self::TwoReds { .. } => 3,
            Self::BlackHeight { .. } => 4,
            Self::RedRoot { .. } => 5,
        }
    }
}

/// A set of slots, one bit each.
#[derive(Clone, Debug)]
pub(crate) struct SlotSet {
    words: Vec<u64>,
    slots_count: u32,
}

impl SlotSet {
    /// The empty set over slots `0..slots_count`.
    pub(crate) fn new(slots_count: u32) -> Self {
        Self { words: vec![0; slots_count.div_ceil(64) as usize], slots_count }
    }

    /// Adds `slot`; false if it was there already.
    ///
    /// # Panics
    ///
    /// If `slot` is past the end.
    pub(crate) fn insert(&mut self, slot: u32) -> bool {
        assert!(slot < self.slots_count, "slot {slot} of {}", self.slots_count);
        let (word, bit) = (&mut self.words[slot as usize / 64], 1 << (slot % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// # Panics
    ///
    /// If `slot` is past the end.
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.words[slot as usize / 64] >> (slot % 64) & 1 == 1
    }
}

/// What [`in_order`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Every slot that can be reached, once, in the order of the links.
    pub(crate) slots: Vec<u32>,
    /// The links that were not followed: [`TreeFault::OutOfRange`] and
    /// [`TreeFault::Shared`].
    pub(crate) faults: Vec<TreeFault>,
}

/// Follows any links at all, from left to right.
///
/// Names and colours play no part. `seen` bounds the slots and stops at each
/// that it holds already; it grows by what is found. Passing one set to the
/// walks of all storages of a file finds nodes that two of them share, in
/// O(nodes found) each.
pub(crate) fn in_order<T: LinkTable + ?Sized>(table: &T, root: u32, seen: &mut SlotSet) -> Walk {
    let mut walk = Walk::default();
    // Ancestors whose left side is done or on its way; a file may make this deep.
    let mut above: Vec<(u32, u32)> = Vec::new();
    let (mut at, mut from) = (root, None);
    loop {
        if at == NO_STREAM {
            let Some((slot, right)) = above.pop() else { return walk };
            walk.slots.push(slot);
            (at, from) = (right, Some(slot));
        } else if at >= seen.slots_count {
            walk.faults.push(TreeFault::OutOfRange { slot: at, from });
            at = NO_STREAM;
        } else if !seen.insert(at) {
            walk.faults.push(TreeFault::Shared { slot: at });
            at = NO_STREAM;
        } else {
            let links = table.links(at);
            above.push((at, links.right));
            (at, from) = (links.left, Some(at));
        }
    }
}

/// One node still to be checked.
struct Visit {
    slot: u32,
    from: Option<u32>,
    /// Its name lies between the names of these two, both excluded.
    low: u32,
    high: u32,
    /// Black nodes above.
    blacks_count: u32,
    under_red: bool,
}

/// Checks that the links under `root` are a legal red-black tree of slots
/// below `slots_count`; see [`faults`].
///
/// # Errors
///
/// The worst fault: one that keeps a search from finding a node, else two reds,
/// else another one of colour.
pub(crate) fn check<T: LinkTable + ?Sized>(
    table: &T,
    root: u32,
    slots_count: u32,
) -> Result<(), TreeFault> {
    faults(table, root, slots_count).into_iter().min_by_key(TreeFault::rank).map_or(Ok(()), Err)
}

/// What keeps the links under `root` from being a legal red-black tree of slots
/// below `slots_count`: the first fault of each kind.
///
/// Takes at most two comparisons a node and memory for the height only. It ends on
/// any links: every node whose links are followed lies between its ancestors in
/// order, so no node can pass twice.
pub(crate) fn faults<T: LinkTable + ?Sized>(
    table: &T,
    root: u32,
    slots_count: u32,
) -> Vec<TreeFault> {
    let mut faults: Vec<TreeFault> = Vec::new();
    let mut tell = |fault: TreeFault| {
        if faults.iter().all(|told| told.rank() != fault.rank()) {
            faults.push(fault);
        }
    };
    let mut height = None;
    let (low, high) = (NO_STREAM, NO_STREAM);
    let mut todo = Vec::with_capacity(MAX_HEIGHT);
    todo.push(Visit { slot: root, from: None, low, high, blacks_count: 0, under_red: false });
    while let Some(Visit { slot, from, low, high, blacks_count, under_red }) = todo.pop() {
        if slot == NO_STREAM {
            if *height.get_or_insert(blacks_count) != blacks_count
                && let Some(slot) = from
            {
                // An empty root link has nothing to compare with, so `from` is there.
                tell(TreeFault::BlackHeight { slot });
            }
            continue;
        }
        if slot >= slots_count {
            tell(TreeFault::OutOfRange { slot, from });
            continue;
        }
        // A link back to one of the two nearest bounds is certainly shared;
        // other repeats show as a name in the wrong place.
        if slot == low || slot == high {
            tell(TreeFault::Shared { slot });
            continue;
        }
        let above_low = low == NO_STREAM || table.compare(low, slot) == Ordering::Less;
        let below_high = high == NO_STREAM || table.compare(slot, high) == Ordering::Less;
        if !(above_low && below_high) {
            tell(TreeFault::OutOfOrder { slot });
            continue;
        }
        let links = table.links(slot);
        let red = links.color == Color::Red;
        if red && under_red {
            tell(TreeFault::TwoReds { slot });
        }
        if red && from.is_none() {
            tell(TreeFault::RedRoot { slot });
        }
        let below = |child, low, high| Visit {
            slot: child,
            from: Some(slot),
            low,
            high,
            blacks_count: blacks_count + u32::from(!red),
            under_red: red,
        };
        todo.push(below(links.right, slot, high));
        todo.push(below(links.left, low, slot));
    }
    faults
}
