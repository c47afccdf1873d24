//! Many objects at once, and one flush.

use std::path::Path;

use super::{By, Of, Seat, Spec, Start, Target, Workload, grouped, size};
use crate::clock::Spent;
use crate::store::contestant::Item;
use crate::store::data::{key, value};
use crate::store::measure::time;
use crate::store::raw::{Raw, SEQUENTIAL};

/// Bytes of a write of plain calls.
const PIECE: usize = 1 << 20;

/// Puts objects in one batch; on the disk in the end.
pub struct Batch {
    items: Vec<Item>,
    len: usize,
    of_raw: f64,
}

impl Batch {
    /// `count` objects of 4 KiB.
    pub fn small(count: usize) -> Self {
        Self::new(count, 4 << 10, 1.3)
    }

    /// `count` objects of 256 KiB.
    pub fn medium(count: usize) -> Self {
        Self::new(count, 256 << 10, 1.2)
    }

    fn new(count: usize, len: usize, of_raw: f64) -> Self {
        let items = (0..count).map(|index| (key(index), value(index, len))).collect();
        Self { items, len, of_raw }
    }
}

impl Workload for Batch {
    fn part(&self) -> &'static str {
        "Put in a batch, one sync"
    }

    fn specs(&self) -> Vec<Spec> {
        let count = self.items.len();
        vec![Spec {
            name: format!("put {} x {} and sync", grouped(count), size(self.len as u64)),
            unit: "object",
            ops: count,
            by: By::Wall,
            targets: vec![
                Target::new(Of::Raw(SEQUENTIAL), self.of_raw),
                Target::new(Of::Fastest, 0.6),
            ],
        }]
    }

    fn start(&self) -> Start {
        Start::Empty
    }

    fn run(&self, seat: &mut Seat) -> Vec<(usize, Spent)> {
        let ((), spent) = time(self.items.len(), || seat.store().put_batch(&self.items));
        vec![(0, spent)]
    }

    fn check(&self, seat: &Seat, thorough: bool) {
        assert_eq!(seat.store().list("").keys, self.items.len(), "{}", seat.entry.name);
        let step = if thorough { 1 } else { 97 };
        for (key, value) in self.items.iter().step_by(step) {
            seat.store().get(key, &mut |found| assert!(found == *value, "{key} is what was put"));
        }
    }

    fn raws(&self, dir: &Path) -> Vec<Raw> {
        vec![Raw::sequential(0, dir, self.items.len(), self.len, PIECE)]
    }
}
