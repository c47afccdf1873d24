//! The red-black tree that ties the entries of one storage together. [MS-CFB] 2.6.4
//!
//! A letter to whoever changes this next. The tree lives in the directory
//! entries themselves: two sibling links and a colour each, no parent link.
//! So every change walks down from the root; a removal remembers its way in
//! [`Path`], a fixed array. 64 steps are enough, for a legal tree of fewer than
//! 2^32 nodes is at most `2 * log2(2^32)` high.
//!
//! A node keeps its slot for life: handles and the rest of the file name it by
//! its slot. Removing a node with two children therefore relinks its successor
//! into its place and never copies content.
//!
//! Each `set_links` makes a directory sector dirty, so a slot is written only
//! when its links really change. (Two exceptions are left: the successor in a
//! removal, and the middle of two trees that are joined, may get their old links
//! back from the rotation that follows.)
//!
//! `insert_all`, `remove` and `build` trust the links they are given. Links that
//! come from a file are passed through [`walk::check`] first; a tree that fails is
//! rebuilt from [`walk::in_order`] with [`build`].

mod union;
pub(crate) mod walk;

pub(crate) use union::insert_all;

use std::cmp::Ordering;

/// The link that leads nowhere. [MS-CFB] 2.6.1
pub(crate) const NO_STREAM: u32 = 0xFFFF_FFFF;

/// Colour of a node. [MS-CFB] 2.6.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    /// A red node has no red child.
    Red,
    /// Every way from the root to a missing child meets equally many of these.
    Black,
}

/// One of the two links of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// What the tree knows of a node: two slots, [`NO_STREAM`] meaning none, and a
/// colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Links {
    /// Root of the subtree of smaller names.
    pub(crate) left: u32,
    /// Root of the subtree of greater names.
    pub(crate) right: u32,
    /// Colour of this node.
    pub(crate) color: Color,
}

impl Links {
    /// A node without children.
    pub(crate) const fn leaf(color: Color) -> Self {
        Self { left: NO_STREAM, right: NO_STREAM, color }
    }

    const fn child(&self, side: Side) -> u32 {
        match side {
            Side::Left => self.left,
            Side::Right => self.right,
        }
    }

    const fn set_child(&mut self, side: Side, child: u32) {
        match side {
            Side::Left => self.left = child,
            Side::Right => self.right = child,
        }
    }
}

/// The entries that the tree ties together, each named by its slot.
pub(crate) trait LinkTable {
    /// The links of the entry in `slot`.
    fn links(&self, slot: u32) -> Links;
    /// Replaces the links of the entry in `slot`. Called with a changed value only.
    fn set_links(&mut self, slot: u32, links: Links);
    /// Order of the names of two entries. [MS-CFB] 2.6.4
    fn compare(&self, a: u32, b: u32) -> Ordering;
}

/// Height of the highest legal tree of fewer than 2^32 nodes.
const MAX_HEIGHT: usize = 64;

/// The way from the root to a link: each node on it and the side taken there.
struct Path {
    steps: [(u32, Side); MAX_HEIGHT],
    len: usize,
}

impl Path {
    const fn new() -> Self {
        Self { steps: [(NO_STREAM, Side::Left); MAX_HEIGHT], len: 0 }
    }

    fn push(&mut self, slot: u32, side: Side) {
        assert!(self.len < MAX_HEIGHT, "the sibling tree is {MAX_HEIGHT} high, so it is not legal");
        self.steps[self.len] = (slot, side);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<(u32, Side)> {
        self.len = self.len.checked_sub(1)?;
        Some(self.steps[self.len])
    }
}

/// Writes `links` unless they are there already.
fn update<T: LinkTable + ?Sized>(table: &mut T, slot: u32, links: Links) {
    if table.links(slot) != links {
        table.set_links(slot, links);
    }
}

/// Makes the last link of `path` lead to `top`: a child link, or the root.
fn attach<T: LinkTable + ?Sized>(table: &mut T, path: &Path, root: &mut u32, top: u32) {
    match path.len.checked_sub(1) {
        None => *root = top,
        Some(last) => {
            let (parent, side) = path.steps[last];
            let mut links = table.links(parent);
            links.set_child(side, top);
            update(table, parent, links);
        }
    }
}

fn paint<T: LinkTable + ?Sized>(table: &mut T, slot: u32, color: Color) {
    update(table, slot, Links { color, ..table.links(slot) });
}

fn is_red<T: LinkTable + ?Sized>(table: &T, slot: u32) -> bool {
    slot != NO_STREAM && table.links(slot).color == Color::Red
}

/// Takes the entry in slot `target` out of the tree of `root` and gives the
/// new root, [`NO_STREAM`] after the last one.
///
/// The links of `target` itself stay as they were. Takes O(log n) comparisons
/// and writes a constant number of slots, averaged over many calls.
///
/// # Panics
///
/// If `target` is not in the tree, or the tree is not legal.
#[must_use]
pub(crate) fn remove<T: LinkTable + ?Sized>(table: &mut T, mut root: u32, target: u32) -> u32 {
    let mut path = Path::new();
    let mut at = root;
    while at != target {
        assert!(at != NO_STREAM, "slot {target} is not in the tree");
        let side = match table.compare(target, at) {
            Ordering::Less => Side::Left,
            Ordering::Greater => Side::Right,
            Ordering::Equal => panic!("slot {target} has the name of slot {at}"),
        };
        path.push(at, side);
        at = table.links(at).child(side);
    }

    // The place that goes away has one child at most: the target's own, or
    // that of its successor, which then moves up into the target's place.
    let links = table.links(target);
    let (color, child) = if links.left == NO_STREAM || links.right == NO_STREAM {
        (links.color, if links.left == NO_STREAM { links.right } else { links.left })
    } else {
        let place = path.len;
        path.push(target, Side::Right);
        let mut successor = links.right;
        let mut s = table.links(successor);
        while s.left != NO_STREAM {
            path.push(successor, Side::Left);
            successor = s.left;
            s = table.links(successor);
        }
        // If the successor is the target's own child, it links to itself for
        // the moment; the `attach` below puts its child there.
        update(table, successor, links);
        let below = std::mem::replace(&mut path.len, place);
        attach(table, &path, &mut root, successor);
        path.len = below;
        path.steps[place].0 = successor;
        (s.color, s.right)
    };
    attach(table, &path, &mut root, child);
    if child != NO_STREAM {
        // An only child is red and its parent was black: it takes that black.
        paint(table, child, Color::Black);
    } else if color == Color::Black {
        refill(table, &mut path, &mut root);
    }
    root
}

/// Restores the black height after the subtree at the last link of `path`
/// lost one black node.
fn refill<T: LinkTable + ?Sized>(table: &mut T, path: &mut Path, root: &mut u32) {
    while let Some((parent, side)) = path.pop() {
        let mut p = table.links(parent);
        let sibling = p.child(side.other());
        assert!(sibling != NO_STREAM, "slot {parent} lacks a child, so the tree is not legal");
        let mut s = table.links(sibling);
        if s.color == Color::Red {
            // Lift the red sibling: the new sibling is black, the parent red.
            p.set_child(side.other(), s.child(side));
            p.color = Color::Red;
            s.set_child(side, parent);
            s.color = Color::Black;
            update(table, parent, p);
            update(table, sibling, s);
            attach(table, path, root, sibling);
            path.push(sibling, side);
            path.push(parent, side);
            continue;
        }
        let (near, far) = (s.child(side), s.child(side.other()));
        if is_red(table, far) {
            p.set_child(side.other(), near);
            s.set_child(side, parent);
            s.color = std::mem::replace(&mut p.color, Color::Black);
            update(table, parent, p);
            update(table, sibling, s);
            paint(table, far, Color::Black);
            attach(table, path, root, sibling);
            return;
        }
        if is_red(table, near) {
            let mut n = table.links(near);
            p.set_child(side.other(), n.child(side));
            s.set_child(side, n.child(side.other()));
            n.set_child(side, parent);
            n.set_child(side.other(), sibling);
            n.color = std::mem::replace(&mut p.color, Color::Black);
            update(table, parent, p);
            update(table, sibling, s);
            update(table, near, n);
            attach(table, path, root, near);
            return;
        }
        s.color = Color::Red;
        update(table, sibling, s);
        if p.color == Color::Red {
            p.color = Color::Black;
            update(table, parent, p);
            return;
        }
    }
}

/// Ties the entries in `sorted` into one tree and gives its root.
///
/// The tree is as flat as can be: every level but the last is full. The nodes
/// of an unfilled last level are red, all others black. `sorted` is in
/// ascending order of names. O(n), no comparisons.
#[must_use]
pub(crate) fn build<T: LinkTable + ?Sized>(table: &mut T, sorted: &[u32]) -> u32 {
    let root_of = |range: &[u32]| range.get(range.len() / 2).copied().unwrap_or(NO_STREAM);
    let last_level = sorted.len().checked_ilog2().unwrap_or(0);
    let last_is_full = (sorted.len() + 1).is_power_of_two();
    let mut todo = vec![(sorted, 0_u32)];
    while let Some((range, level)) = todo.pop() {
        let Some(&slot) = range.get(range.len() / 2) else { continue };
        let (below, above) = (&range[..range.len() / 2], &range[range.len() / 2 + 1..]);
        let red = level == last_level && !last_is_full;
        let color = if red { Color::Red } else { Color::Black };
        update(table, slot, Links { left: root_of(below), right: root_of(above), color });
        todo.push((above, level + 1));
        todo.push((below, level + 1));
    }
    root_of(sorted)
}

#[cfg(test)]
mod tests;
