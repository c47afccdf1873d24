//! Reading what lies in memory of the system: whole objects and parts of them.

use std::hint::black_box;
use std::path::Path;

use super::{By, Of, Seat, Spec, Start, Target, Workload, streams};
use crate::clock::Spent;
use crate::rng::Rng;
use crate::store::contestant::{Contestant, Item};
use crate::store::data::{key, shuffled, value};
use crate::store::measure::time;
use crate::store::raw::{CHUNK, PREAD, PREAD_CHUNK, PREAD_CRC, PREAD_NEW, Preads, Raw};

/// Bytes of a range.
const RANGE: usize = 4 << 10;

/// Whether a value is the right one, without reading it all while it is timed.
fn looks_right(found: &[u8], right: &[u8]) -> bool {
    found.len() == right.len() && found[..16] == right[..16]
}

fn fill(seat: &Seat, count: usize, len: usize) {
    let items: Vec<Item> = (0..count).map(|index| (key(index), value(index, len))).collect();
    for items in items.chunks(1_000) {
        seat.store().put_batch(items);
    }
}

/// Plain calls that read as much as [`read`] does.
fn whole_raws(dir: &Path, ops: usize, len_bytes: usize) -> Vec<Raw> {
    let of = |name| Preads { name, file_bytes: ops * len_bytes, len_bytes, ops };
    let mut raws = vec![Raw::preads(0, dir, of(PREAD_NEW))];
    for row in 0..2 {
        raws.push(Raw::preads(row, dir, of(PREAD)));
        raws.push(Raw::preads(row, dir, of(PREAD_CRC)));
        raws.push(Raw::memcpy(row, ops, len_bytes));
    }
    raws
}

/// Reads all objects in random order, in both ways.
fn read(store: &dyn Contestant, keys: &[(usize, String)], len: usize) -> Vec<(usize, Spent)> {
    let ((), whole) = time(keys.len(), || {
        for (index, key) in keys {
            store.get(key, &mut |found| assert!(looks_right(found, value(*index, len)), "{key}"));
        }
    });
    let mut buf = Vec::with_capacity(len);
    let ((), into) = time(keys.len(), || {
        for (index, key) in keys {
            store.get_into(key, &mut buf);
            assert!(looks_right(&buf, value(*index, len)), "{key}");
        }
    });
    vec![(0, whole), (1, into)]
}

fn check(store: &dyn Contestant, keys: &[(usize, String)], len: usize, thorough: bool) {
    if thorough {
        for (index, key) in keys {
            store.get(key, &mut |found| assert!(found == value(*index, len), "{key}"));
        }
    }
}

fn keys(count: usize) -> Vec<(usize, String)> {
    shuffled(count, 3).into_iter().map(|index| (index, key(index))).collect()
}

fn spec(name: &str, unit: &'static str, ops: usize, targets: Vec<Target>) -> Spec {
    Spec { name: name.to_owned(), unit, ops, by: By::Cpu, targets }
}

/// Objects of 4 KiB.
pub struct Small {
    keys: Vec<(usize, String)>,
}

impl Small {
    const LEN: usize = 4 << 10;

    /// So many objects.
    pub fn new(count: usize) -> Self {
        Self { keys: keys(count) }
    }
}

impl Workload for Small {
    fn part(&self) -> &'static str {
        "Get, warm"
    }

    fn specs(&self) -> Vec<Spec> {
        let count = self.keys.len();
        let whole =
            vec![Target::new(Of::FastestThatCopies, 1.0), Target::new(Of::Raw(PREAD_CRC), 1.5)];
        let into = vec![Target::new(Of::Raw(PREAD_CRC), 1.2)];
        vec![
            spec("get 4 KiB", "get", count, whole),
            spec("get 4 KiB into the caller's memory", "get", count, into),
        ]
    }

    fn start(&self) -> Start {
        Start::Kept
    }

    fn fill(&self, seat: &mut Seat) -> Vec<(usize, Spent)> {
        fill(seat, self.keys.len(), Self::LEN);
        Vec::new()
    }

    fn run(&self, seat: &mut Seat) -> Vec<(usize, Spent)> {
        read(seat.store(), &self.keys, Self::LEN)
    }

    fn check(&self, seat: &Seat, thorough: bool) {
        check(seat.store(), &self.keys, Self::LEN, thorough);
    }

    fn raws(&self, dir: &Path) -> Vec<Raw> {
        whole_raws(dir, self.keys.len(), Self::LEN)
    }
}

/// Objects of 256 KiB.
pub struct Medium {
    keys: Vec<(usize, String)>,
}

impl Medium {
    const LEN: usize = 256 << 10;

    /// So many objects.
    pub fn new(count: usize) -> Self {
        Self { keys: keys(count) }
    }
}

impl Workload for Medium {
    fn part(&self) -> &'static str {
        "Get, warm"
    }

    fn specs(&self) -> Vec<Spec> {
        let count = self.keys.len();
        // A value in new memory against `pread` into new memory.
        let (whole, into) = (Of::Raw(PREAD_NEW), Of::Raw(PREAD));
        vec![
            spec("get 256 KiB", "get", count, vec![Target::new(whole, 1.2)]),
            spec(
                "get 256 KiB into the caller's memory",
                "get",
                count,
                vec![Target::new(into, 1.2)],
            ),
        ]
    }

    fn start(&self) -> Start {
        Start::Kept
    }

    fn fill(&self, seat: &mut Seat) -> Vec<(usize, Spent)> {
        fill(seat, self.keys.len(), Self::LEN);
        Vec::new()
    }

    fn run(&self, seat: &mut Seat) -> Vec<(usize, Spent)> {
        read(seat.store(), &self.keys, Self::LEN)
    }

    fn check(&self, seat: &Seat, thorough: bool) {
        check(seat.store(), &self.keys, Self::LEN, thorough);
    }

    fn raws(&self, dir: &Path) -> Vec<Raw> {
        whole_raws(dir, self.keys.len(), Self::LEN)
    }
}

/// Parts of objects of 64 MiB.
pub struct Ranges {
    count: usize,
    /// Object, its key and the offset.
    places: Vec<(usize, String, usize)>,
}

impl Ranges {
    /// `reads` of 4 KiB in `count` objects, not on multiples of anything.
    pub fn new(count: usize, reads: usize) -> Self {
        let mut rng = Rng::new(5);
        let place = |_| {
            let index = rng.below(count);
            (index, key(index), rng.below(streams::OBJECT - RANGE))
        };
        Self { count, places: (0..reads).map(place).collect() }
    }
}

impl Workload for Ranges {
    fn part(&self) -> &'static str {
        "Get, warm"
    }

    fn specs(&self) -> Vec<Spec> {
        let targets = vec![Target::new(Of::Raw(PREAD_CHUNK), 1.5)];
        vec![spec("read 4 KiB out of 64 MiB", "read", self.places.len(), targets)]
    }

    fn start(&self) -> Start {
        Start::Kept
    }

    fn fill(&self, seat: &mut Seat) -> Vec<(usize, Spent)> {
        for index in 0..self.count {
            streams::put(seat.store(), index);
        }
        seat.store().sync();
        Vec::new()
    }

    fn run(&self, seat: &mut Seat) -> Vec<(usize, Spent)> {
        let store = seat.store();
        let mut buf = vec![0; RANGE];
        let ((), spent) = time(self.places.len(), || {
            for (_, key, offset) in &self.places {
                store.read_range(key, *offset as u64, &mut buf);
                black_box(&buf[0]);
            }
        });
        vec![(0, spent)]
    }

    fn check(&self, seat: &Seat, thorough: bool) {
        let mut buf = vec![0; RANGE];
        for (index, key, offset) in self.places.iter().take(if thorough { 50 } else { 5 }) {
            seat.store().read_range(key, *offset as u64, &mut buf);
            let (number, within) = (offset / streams::PIECE, offset % streams::PIECE);
            let first = &streams::piece(*index, number)[within..];
            let first = &first[..first.len().min(RANGE)];
            assert!(buf[..first.len()] == *first, "{offset} bytes into {key}");
            let rest = RANGE - first.len();
            if rest > 0 {
                let next = &streams::piece(*index, number + 1)[..rest];
                assert!(buf[first.len()..] == *next, "{offset} bytes into {key}");
            }
        }
    }

    fn raws(&self, dir: &Path) -> Vec<Raw> {
        let file_bytes = self.count * streams::OBJECT;
        let of = |name, len_bytes| Preads { name, file_bytes, len_bytes, ops: self.places.len() };
        vec![Raw::preads(0, dir, of(PREAD, RANGE)), Raw::preads(0, dir, of(PREAD_CHUNK, CHUNK))]
    }
}
