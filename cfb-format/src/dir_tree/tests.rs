//! The sibling tree stays a legal red-black tree of the names put in, whatever
//! is inserted and removed, and broken links are named.

use super::walk::{SlotSet, TreeFault, Walk, check, in_order};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Entries whose name is a number; counts the writes.
struct Numbers {
    names: Vec<u32>,
    links: Vec<Links>,
    writes_count: usize,
    /// The slots written and what they held before.
    written: BTreeMap<u32, Links>,
}

impl Numbers {
    fn new(names: impl IntoIterator<Item = u32>) -> Self {
        let names: Vec<u32> = names.into_iter().collect();
        // What a slot held before it joins a tree must not matter.
        let links = vec![Links { left: 77, right: 78, color: Color::Red }; names.len()];
        Self { names, links, writes_count: 0, written: BTreeMap::new() }
    }

    fn slots_count(&self) -> u32 {
        u32::try_from(self.names.len()).expect("few slots")
    }

    fn check(&self, root: u32) -> Result<(), TreeFault> {
        check(self, root, self.slots_count())
    }

    fn walk(&self, root: u32) -> Walk {
        in_order(self, root, &mut SlotSet::new(self.slots_count()))
    }

    fn height(&self, root: u32) -> u32 {
        if root == NO_STREAM {
            return 0;
        }
        let links = self.links[root as usize];
        1 + self.height(links.left).max(self.height(links.right))
    }
}

impl LinkTable for Numbers {
    fn links(&self, slot: u32) -> Links {
        self.links[slot as usize]
    }

    fn set_links(&mut self, slot: u32, links: Links) {
        assert_ne!(self.links[slot as usize], links, "slot {slot} is written for nothing");
        self.writes_count += 1;
        self.written.entry(slot).or_insert(self.links[slot as usize]);
        self.links[slot as usize] = links;
    }

    fn compare(&self, a: u32, b: u32) -> Ordering {
        self.names[a as usize].cmp(&self.names[b as usize])
    }
}

fn insert(table: &mut Numbers, root: u32, new: u32) -> u32 {
    insert_all(table, root, &[new])
}

/// A fixed shuffle of `0..count`.
fn shuffled(count: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    let mut state = 0x9E37_79B9_u64;
    for i in (1..order.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pick = usize::try_from(state >> 33).expect("31 bits") % (i + 1);
        order.swap(i, pick);
    }
    order
}

#[test]
fn ascending_inserts_then_random_removals_stay_legal() {
    let count = 10_000;
    let mut table = Numbers::new(0..count);
    let mut root = NO_STREAM;
    for slot in 0..count {
        root = insert(&mut table, root, slot);
        if slot % 97 == 0 || slot < 200 {
            assert_eq!(table.check(root), Ok(()), "after inserting {slot}");
        }
    }
    assert_eq!(table.check(root), Ok(()));
    assert_eq!(table.walk(root).slots, (0..count).collect::<Vec<_>>());
    assert!(table.height(root) <= 2 * (count + 1).ilog2() + 2);
    // The new slot, its parent, a turn of three, and two recolourings or so.
    assert!(table.writes_count < 8 * count as usize, "{} writes", table.writes_count);

    let mut left: BTreeSet<u32> = (0..count).collect();
    for (done, slot) in shuffled(count).into_iter().enumerate() {
        root = remove(&mut table, root, slot);
        left.remove(&slot);
        if done % 97 == 0 || left.len() < 200 {
            assert_eq!(table.check(root), Ok(()), "after removing {slot}");
            assert_eq!(table.walk(root).slots, left.iter().copied().collect::<Vec<_>>());
        }
    }
    assert_eq!(root, NO_STREAM);
}

#[test]
fn ascending_entries_in_batches_are_inserted_with_few_writes() {
    let (count, batch) = (20_000, 500);
    let mut table = Numbers::new(0..count);
    let mut root = NO_STREAM;
    let slots: Vec<u32> = (0..count).collect();
    for new in slots.chunks(batch) {
        let before = std::mem::take(&mut table.writes_count);
        assert!(before < batch + 100, "{before} writes");
        root = insert_all(&mut table, root, new);
        assert_eq!(table.check(root), Ok(()), "after {:?}", new.last());
    }
    assert_eq!(table.walk(root).slots, slots);
    assert!(table.height(root) <= 2 * (count + 1).ilog2() + 2);
}

#[test]
#[should_panic(expected = "slot 3 has the name of slot 0")]
fn inserting_a_name_twice_among_others_is_misuse() {
    let mut table = Numbers::new([5, 7, 1, 5]);
    let root = insert_all(&mut table, NO_STREAM, &[2, 0, 1]);
    let _ = insert_all(&mut table, root, &[3]);
}

#[test]
fn removal_writes_few_slots_and_leaves_its_own_alone() {
    let count = 5_000;
    let mut table = Numbers::new(0..count);
    let mut root = NO_STREAM;
    for slot in shuffled(count) {
        root = insert(&mut table, root, slot);
    }
    table.writes_count = 0;
    for slot in shuffled(count) {
        let before = table.links(slot);
        root = remove(&mut table, root, slot);
        assert_eq!(table.links(slot), before);
    }
    assert!(table.writes_count < 8 * count as usize, "{} writes", table.writes_count);
}

#[test]
fn built_trees_are_legal_and_as_flat_as_can_be() {
    for count in (0..130).chain([1_000, 4_095, 4_096, 4_097]) {
        let mut table = Numbers::new(0..count);
        let sorted: Vec<u32> = (0..count).collect();
        let root = build(&mut table, &sorted);
        assert_eq!(table.check(root), Ok(()), "{count} nodes");
        assert_eq!(table.walk(root).slots, sorted);
        assert_eq!(table.height(root), (count + 1).next_power_of_two().ilog2());
        let writes_count = std::mem::take(&mut table.writes_count);
        assert_eq!(writes_count, count as usize);
        assert_eq!(build(&mut table, &sorted), root);
        assert_eq!(table.writes_count, 0, "building the same tree again changes nothing");
    }
}

#[test]
fn built_trees_take_inserts_and_removals() {
    for count in 0..40_u32 {
        for chosen in 0..count {
            let mut table = Numbers::new(0..count);
            let without: Vec<u32> = (0..count).filter(|&slot| slot != chosen).collect();
            let root = build(&mut table, &without);
            let root = insert(&mut table, root, chosen);
            assert_eq!(table.check(root), Ok(()), "{count} nodes, inserted {chosen}");
            let all: Vec<u32> = (0..count).collect();
            let root = build(&mut table, &all);
            let root = remove(&mut table, root, chosen);
            assert_eq!(table.check(root), Ok(()), "{count} nodes, removed {chosen}");
            assert_eq!(table.walk(root).slots, without);
        }
    }
}

/// Slots 0..7 as a full tree of black nodes with root 3.
fn seven() -> (Numbers, u32) {
    let mut table = Numbers::new(0..7);
    let root = build(&mut table, &[0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(root, 3);
    (table, root)
}

#[test]
fn every_fault_is_named() {
    let (mut table, root) = seven();
    table.links[1].right = 7;
    let fault = TreeFault::OutOfRange { slot: 7, from: Some(1) };
    assert_eq!(table.check(root), Err(fault));
    assert_eq!(table.walk(root), Walk { slots: vec![0, 1, 3, 4, 5, 6], faults: vec![fault] });
    let fault = TreeFault::OutOfRange { slot: 9, from: None };
    assert_eq!(table.check(9), Err(fault));
    assert_eq!(table.walk(9).faults, [fault]);

    let (mut table, root) = seven();
    table.links[2].right = 3;
    assert_eq!(table.check(root), Err(TreeFault::Shared { slot: 3 }), "a loop");
    let walk = table.walk(root);
    assert_eq!(walk.slots, [0, 1, 2, 3, 4, 5, 6], "a loop costs no node");
    assert_eq!(walk.faults, [TreeFault::Shared { slot: 3 }]);

    let (mut table, root) = seven();
    table.links[2].left = 0;
    assert_eq!(table.check(root), Err(TreeFault::OutOfOrder { slot: 0 }), "two parents");
    assert_eq!(table.walk(root).faults, [TreeFault::Shared { slot: 0 }]);

    let (mut table, root) = seven();
    table.names[2] = 1;
    assert_eq!(table.check(root), Err(TreeFault::OutOfOrder { slot: 2 }), "equal names");

    let (mut table, root) = seven();
    table.links[1].color = Color::Red;
    assert_eq!(table.check(root), Err(TreeFault::BlackHeight { slot: 5 - 1 }));
    table.links[0].color = Color::Red;
    assert_eq!(table.check(root), Err(TreeFault::TwoReds { slot: 0 }));

    let (mut table, root) = seven();
    table.links[3].color = Color::Red;
    assert_eq!(table.check(root), Err(TreeFault::RedRoot { slot: 3 }));
    table.names[6] = 0;
    assert_eq!(table.check(root), Err(TreeFault::OutOfOrder { slot: 6 }), "order comes first");
}

#[test]
fn a_list_of_a_hundred_thousand_is_walked_and_refused() {
    let count = 100_000;
    let mut table = Numbers::new(0..count);
    for slot in 0..count {
        let right = if slot + 1 == count { NO_STREAM } else { slot + 1 };
        table.links[slot as usize] = Links { right, ..Links::leaf(Color::Black) };
    }
    assert_eq!(table.walk(0), Walk { slots: (0..count).collect(), faults: vec![] });
    assert!(matches!(table.check(0), Err(TreeFault::BlackHeight { .. })));
}

#[test]
fn a_node_of_two_storages_goes_to_the_first() {
    let (mut table, _) = seven();
    table.links[4] = Links { left: 2, ..Links::leaf(Color::Black) };
    let mut seen = SlotSet::new(7);
    assert_eq!(in_order(&table, 1, &mut seen).slots, [0, 1, 2]);
    let second = in_order(&table, 5, &mut seen);
    assert_eq!(second.slots, [4, 5, 6]);
    assert_eq!(second.faults, [TreeFault::Shared { slot: 2 }]);
    let left: Vec<u32> = (0..7).filter(|&slot| seen.insert(slot)).collect();
    assert_eq!(left, [3], "no link led to the old root");
}

#[test]
#[should_panic(expected = "has the name of slot")]
fn inserting_a_name_twice_is_misuse() {
    let (mut table, root) = seven();
    table.names.push(5);
    table.links.push(Links::leaf(Color::Red));
    let _ = insert(&mut table, root, 7);
}

#[test]
#[should_panic(expected = "is not in the tree")]
fn removing_what_is_not_there_is_misuse() {
    let (mut table, root) = seven();
    let root = remove(&mut table, root, 4);
    let _ = remove(&mut table, root, 4);
}

proptest! {
    #[test]
    fn batches_agree_with_a_sorted_set(batches in vec(vec(0_u32..2_000, 1..120), 1..12)) {
        let mut table = Numbers::new(0..2_000);
        let (mut root, mut model) = (NO_STREAM, BTreeSet::new());
        for batch in batches {
            let new: BTreeSet<u32> = batch.into_iter().filter(|name| !model.contains(name)).collect();
            root = insert_all(&mut table, root, &new.iter().copied().collect::<Vec<_>>());
            model.extend(new);
            prop_assert_eq!(table.check(root), Ok(()));
            prop_assert!(table.walk(root).slots.iter().eq(&model));
        }
        // They can be taken out again.
        for slot in model.iter().copied().step_by(3) {
            root = remove(&mut table, root, slot);
        }
        prop_assert_eq!(table.check(root), Ok(()));
    }

    #[test]
    fn tree_agrees_with_a_sorted_set(names in vec(any::<u32>(), 1..80), ops in vec(any::<u16>(), 1..300)) {
        let names: BTreeSet<u32> = names.into_iter().collect();
        let count = u32::try_from(names.len()).expect("few names");
        // Slots in another order than names.
        let names: Vec<u32> = names.into_iter().collect();
        let mut table = Numbers::new(shuffled(count).into_iter().map(|at| names[at as usize]));
        let mut root = NO_STREAM;
        let mut model: BTreeSet<(u32, u32)> = BTreeSet::new();
        for op in ops {
            let slot = u32::from(op) % count;
            let key = (table.names[slot as usize], slot);
            table.written.clear();
            if model.remove(&key) {
                root = remove(&mut table, root, slot);
            } else {
                model.insert(key);
                root = insert(&mut table, root, slot);
            }
            prop_assert_eq!(table.check(root), Ok(()));
            let taken_back = |(at, before): (&u32, &Links)| *at != slot && table.links(*at) == *before;
            let count = table.written.iter().filter(|&entry| taken_back(entry)).count();
            // The successor that changed places, or the middle of two trees joined.
            prop_assert!(count <= 1, "{} taken back", count);
            let expected: Vec<u32> = model.iter().map(|&(_, slot)| slot).collect();
            prop_assert_eq!(table.walk(root), Walk { slots: expected, faults: vec![] });
        }
    }

    #[test]
    fn any_links_end(links in vec((0_u32..14, 0_u32..14, any::<bool>()), 1..12), root in 0_u32..14) {
        let mut table = Numbers::new(0..u32::try_from(links.len()).expect("few"));
        let link = |to: u32| if to == 13 { NO_STREAM } else { to };
        for (slot, &(left, right, red)) in links.iter().enumerate() {
            let color = if red { Color::Red } else { Color::Black };
            table.links[slot] = Links { left: link(left), right: link(right), color };
        }
        let walk = table.walk(link(root));
        let distinct: BTreeSet<u32> = walk.slots.iter().copied().collect();
        prop_assert_eq!(distinct.len(), walk.slots.len());
        if table.check(link(root)).is_ok() {
            prop_assert!(walk.faults.is_empty() && walk.slots.is_sorted());
        }
    }
}
