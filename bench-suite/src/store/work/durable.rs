//! Objects that are on the disk each before the next, by one thread and by many.

use std::path::Path;

use super::{By, Of, Seat, Spec, Start, Target, Workload, grouped, size};
use crate::clock::Spent;
use crate::store::contestant::{Entry, Item};
use crate::store::data::{key, value};
use crate::store::measure::time;
use crate::store::raw::{FLUSH, Raw, each};

fn items(count: usize, len: usize) -> Vec<Item> {
    (0..count).map(|index| (key(index), value(index, len))).collect()
}

fn check(items: &[Item], seat: &Seat) {
    assert_eq!(seat.store().list("").keys, items.len(), "{}", seat.entry.name);
    for (key, value) in items {
        seat.store().get(key, &mut |found| assert!(found == *value, "{key} is what was put"));
    }
}

/// One at a time; the figure is the middle one.
pub struct OneByOne {
    items: Vec<Item>,
    len: usize,
    targets: Vec<Target>,
}

impl OneByOne {
    /// `count` objects of 4 KiB.
    pub fn small(count: usize) -> Self {
        let len = 4 << 10;
        let targets = vec![Target::new(Of::Raw(FLUSH), 1.15), Target::new(Of::Fastest, 1.0)];
        Self { items: items(count, len), len, targets }
    }

    /// `count` objects of 256 KiB.
    pub fn medium(count: usize) -> Self {
        let len = 256 << 10;
        Self { items: items(count, len), len, targets: vec![Target::new(Of::Fastest, 0.7)] }
    }
}

impl Workload for OneByOne {
    fn part(&self) -> &'static str {
        "Durable puts"
    }

    fn specs(&self) -> Vec<Spec> {
        let (count, len) = (grouped(self.items.len()), size(self.len as u64));
        vec![Spec {
            name: format!("durable put of {len}, median of {count}"),
            unit: "put",
            ops: 1,
            by: By::Wall,
            targets: self.targets.clone(),
        }]
    }

    fn takes(&self, entry: &Entry) -> bool {
        entry.durable
    }

    fn start(&self) -> Start {
        Start::Empty
    }

    fn run(&self, seat: &mut Seat) -> Vec<(usize, Spent)> {
        let store = seat.store();
        let spent = each(self.items.len(), |index| {
            let (key, value) = &self.items[index];
            store.put_durable(key, value);
        });
        vec![(0, spent)]
    }

    fn check(&self, seat: &Seat, _thorough: bool) {
        check(&self.items, seat);
    }

    fn raws(&self, dir: &Path) -> Vec<Raw> {
        vec![Raw::flushes(0, dir, self.items.len(), self.len)]
    }
}

/// Several threads at once: those that wait for a flush can share it.
pub struct Threads {
    items: Vec<Item>,
    threads: usize,
}

impl Threads {
    /// `count` objects of 4 KiB in all.
    pub fn new(threads: usize, count: usize) -> Self {
        // One thread has nobody to share with, and need not wait as long to show it.
        let count = if threads == 1 { count / 4 } else { count };
        Self { items: items(count, 4 << 10), threads }
    }

    /// Name of the row of so many threads.
    pub fn name(threads: usize) -> String {
        format!("durable puts of 4 KiB, {threads} thread{}", if threads == 1 { "" } else { "s" })
    }
}

impl Workload for Threads {
    fn part(&self) -> &'static str {
        "Durable puts"
    }

    fn specs(&self) -> Vec<Spec> {
        let targets = match self.threads {
            1 => Vec::new(),
            _ => vec![Target::new(Of::FastestOf(&["RocksDB"]), 1.0)],
        };
        let ops = self.items.len();
        vec![Spec { name: Self::name(self.threads), unit: "put", ops, by: By::Wall, targets }]
    }

    fn takes(&self, entry: &Entry) -> bool {
        entry.durable
    }

    fn start(&self) -> Start {
        Start::Empty
    }

    fn run(&self, seat: &mut Seat) -> Vec<(usize, Spent)> {
        let store = seat.store();
        let ((), spent) = time(self.items.len(), || {
            std::thread::scope(|scope| {
                for share in self.items.chunks(self.items.len().div_ceil(self.threads)) {
                    scope.spawn(move || {
                        for (key, value) in share {
                            store.put_durable(key, value);
                        }
                    });
                }
            });
        });
        vec![(0, spent)]
    }

    fn check(&self, seat: &Seat, _thorough: bool) {
        check(&self.items, seat);
    }
}
