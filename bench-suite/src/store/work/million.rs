//! Very many small objects: filling, opening, getting, listing.

use super::{By, Of, Seat, Spec, Start, Target, Workload, grouped};
use crate::clock::Spent;
use crate::store::contestant::{Contestant, Entry, FileCount, Item, Listed};
use crate::store::data::{prefix, prefixed_key, shuffled, value};
use crate::store::measure::time;

/// Bytes of an object.
pub const LEN: usize = 128;

/// Objects put in one batch.
const BATCH: usize = 10_000;

/// Objects that are read.
const GETS: usize = 100_000;

/// Rivals that opening and listing have to keep up with.
const TREES: &[&str] = &["redb", "LMDB"];

/// Puts `count` objects in random order, in durable batches; what that took.
pub fn fill(store: &dyn Contestant, count: usize) -> Spent {
    let mut sum = Spent::default();
    for indices in shuffled(count, 9).chunks(BATCH) {
        let items: Vec<Item> =
            indices.iter().map(|&index| (prefixed_key(index), value(index, LEN))).collect();
        let ((), spent) = time(items.len(), || store.put_batch(&items));
        sum.add(spent);
    }
    sum
}

/// A million objects of 128 B, a thousand to a prefix.
pub struct Many {
    count: usize,
    order: Vec<usize>,
}

impl Many {
    /// So many objects.
    ///
    /// # Panics
    ///
    /// When `count` is not a multiple of a thousand.
    pub fn new(count: usize) -> Self {
        assert!(count.is_multiple_of(1_000), "{count} objects, a thousand to a prefix");
        let mut order = shuffled(count, 13);
        order.truncate(GETS);
        Self { count, order }
    }
}

impl Workload for Many {
    fn part(&self) -> &'static str {
        "Very many objects"
    }

    fn specs(&self) -> Vec<Spec> {
        let count = grouped(self.count);
        let spec = |name: String, unit, ops, by, targets| Spec { name, unit, ops, by, targets };
        let keeps_up = vec![Target::new(Of::FastestOf(TREES), 1.0)];
        vec![
            spec(
                format!("load {count} x {LEN} B, durable batches of {}", grouped(BATCH)),
                "object",
                self.count,
                By::Wall,
                Vec::new(),
            ),
            spec(
                format!("open with {count} objects and get one"),
                "opening",
                1,
                By::Wall,
                keeps_up.clone(),
            ),
            spec(format!("get {LEN} B of {count}"), "get", self.order.len(), By::Cpu, Vec::new()),
            spec(format!("list {count}"), "key", self.count, By::Cpu, keeps_up.clone()),
            spec(format!("list a prefix of 1,000 in {count}"), "listing", 100, By::Cpu, keeps_up),
        ]
    }

    fn takes(&self, entry: &Entry) -> bool {
        entry.files == FileCount::Few
    }

    fn start(&self) -> Start {
        Start::Kept
    }

    fn fill(&self, seat: &mut Seat) -> Vec<(usize, Spent)> {
        vec![(0, fill(seat.store(), self.count))]
    }

    fn run(&self, seat: &mut Seat) -> Vec<(usize, Spent)> {
        seat.close();
        let first = self.order[0];
        let right = value(first, LEN);
        let key = prefixed_key(first);
        let ((), open) = time(1, || {
            seat.open();
            seat.store().get(&key, &mut |found| assert!(found == right, "{key}"));
        });
        let store = seat.store();
        let keys: Vec<_> = self.order.iter().map(|&index| prefixed_key(index)).collect();
        let ((), get) = time(keys.len(), || {
            for (key, &index) in keys.iter().zip(&self.order) {
                store.get(key, &mut |found| assert!(found == value(index, LEN), "{key}"));
            }
        });
        let key_bytes = |keys| keys * prefixed_key(0).len();
        let (listed, list) = time(self.count, || store.list(""));
        assert_eq!(listed, Listed { keys: self.count, key_bytes: key_bytes(self.count) });
        let prefixes: Vec<_> = (0..100).map(|at| prefix(at * (self.count / 1_000) / 100)).collect();
        let ((), part) = time(prefixes.len(), || {
            for prefix in &prefixes {
                let listed = store.list(prefix);
                assert_eq!(listed, Listed { keys: 1_000, key_bytes: key_bytes(1_000) });
            }
        });
        vec![(1, open), (2, get), (3, list), (4, part)]
    }

    fn check(&self, _seat: &Seat, _thorough: bool) {
        // Each round has compared every value and counted every key.
    }
}
