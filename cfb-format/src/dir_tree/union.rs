//! Many entries put into a tree at once.
//!
//! The tree is taken apart along the ways to where the new entries go, down to
//! gaps between neighbours; what goes into one gap becomes a tree of its own
//! ([`build`]); and on the way back the parts are joined. Entries whose names lie
//! together, as those of numbered names do, cost few comparisons, and nodes off
//! their ways are left alone. After Blelloch, Ferizovic and Sun, "Just Join for
//! Parallel Ordered Sets" (2016).

use std::cmp::Ordering;

use super::{Color, LinkTable, Links, NO_STREAM, Side, build, is_red, paint, update};

/// A legal tree, but for a root that may be red.
#[derive(Clone, Copy)]
struct Tree {
    root: u32,
    /// Black nodes on each way down, the root included.
    blacks: u32,
}

/// Adds the entries in `new`, ascending by name, to the tree of `root` and gives the
/// new root.
///
/// What their links were before does not matter. Takes O(m log(n / m + 1) log m)
/// comparisons for m new entries and n old ones.
///
/// # Panics
///
/// If a name is there twice, or the tree is not legal.
#[must_use]
pub(crate) fn insert_all<T: LinkTable + ?Sized>(table: &mut T, root: u32, new: &[u32]) -> u32 {
    let (mut at, mut blacks) = (root, 0);
    while at != NO_STREAM {
        blacks += u32::from(!is_red(table, at));
        at = table.links(at).left;
    }
    let root = union(table, Tree { root, blacks }, new).root;
    if is_red(table, root) {
        paint(table, root, Color::Black);
    }
    root
}

/// As deep as the tree is high.
fn union<T: LinkTable + ?Sized>(table: &mut T, tree: Tree, new: &[u32]) -> Tree {
    let root = tree.root;
    if new.is_empty() {
        return tree;
    }
    if root == NO_STREAM {
        // All levels of it are black, but for a last one that is not full.
        return Tree { root: build(table, new), blacks: (new.len() + 1).ilog2() };
    }
    let links = table.links(root);
    let is_less = |&slot: &u32| match table.compare(slot, root) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => panic!("slot {slot} has the name of slot {root}"),
    };
    let (before, behind) = new.split_at(new.partition_point(is_less));
    let below = tree.blacks - u32::from(links.color == Color::Black);
    let left = union(table, Tree { root: links.left, blacks: below }, before);
    let right = union(table, Tree { root: links.right, blacks: below }, behind);
    let is_alike = left.blacks == below && right.blacks == below;
    let has_red = is_red(table, left.root) || is_red(table, right.root);
    if is_alike && (links.color == Color::Black || !has_red) {
        update(table, root, Links { left: left.root, right: right.root, color: links.color });
        return tree;
    }
    join(table, left, root, right)
}

/// One tree of all of `left`, `middle` and all of `right`.
fn join<T: LinkTable + ?Sized>(table: &mut T, left: Tree, middle: u32, right: Tree) -> Tree {
    let (higher, lower, side) = match left.blacks.cmp(&right.blacks) {
        Ordering::Equal => {
            let has_red = is_red(table, left.root) || is_red(table, right.root);
            let color = if has_red { Color::Black } else { Color::Red };
            update(table, middle, Links { left: left.root, right: right.root, color });
            return Tree { root: middle, blacks: left.blacks + u32::from(has_red) };
        }
        Ordering::Greater => (left, right, Side::Right),
        Ordering::Less => (right, left, Side::Left),
    };
    let root = hang(table, higher, middle, lower, side);
    let two_reds = is_red(table, root) && is_red(table, table.links(root).child(side));
    if two_reds {
        paint(table, root, Color::Black);
    }
    Tree { root, blacks: higher.blacks + u32::from(two_reds) }
}

/// Hangs `lower` below the outermost nodes of a higher tree on one side, with `middle`
/// between them. The root that it gives may be red with a red child on that side.
fn hang<T: LinkTable + ?Sized>(
    table: &mut T,
    higher: Tree,
    middle: u32,
    lower: Tree,
    side: Side,
) -> u32 {
    let Tree { root, blacks } = higher;
    if blacks == lower.blacks && !is_red(table, root) {
        let mut links = Links::leaf(Color::Red);
        links.set_child(side, lower.root);
        links.set_child(side.other(), root);
        update(table, middle, links);
        return middle;
    }
    let mut top = table.links(root);
    let below = blacks - u32::from(top.color == Color::Black);
    let next = Tree { root: top.child(side), blacks: below };
    let child = hang(table, next, middle, lower, side);
    let mut c = table.links(child);
    if top.color == Color::Black && c.color == Color::Red && is_red(table, c.child(side)) {
        // The child moves up, red, above two black ones.
        paint(table, c.child(side), Color::Black);
        top.set_child(side, c.child(side.other()));
        update(table, root, top);
        c.set_child(side.other(), root);
        update(table, child, c);
        return child;
    }
    top.set_child(side, child);
    update(table, root, top);
    root
}
