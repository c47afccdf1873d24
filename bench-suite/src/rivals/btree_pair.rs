//! Two trees over the free runs, one by first sector and one by length: the
//! model of XFS and of Ceph's AVL allocator. Exact best fit, lowest address
//! among equals.

use std::collections::{BTreeMap, BTreeSet};

use super::{Exact, Facts, RawRun, Source};
use crate::fill::{Fill, runs};

/// `BTreeMap` by first sector, `BTreeSet` by length.
#[derive(Clone, Debug)]
pub struct BTreePair {
    by_start: BTreeMap<u32, u32>,
    by_size: BTreeSet<(u32, u32)>,
    free: u32,
}

impl BTreePair {
    fn insert(&mut self, start: u32, count: u32) {
        self.by_start.insert(start, count);
        self.by_size.insert((count, start));
    }

    fn remove(&mut self, start: u32, count: u32) {
        self.by_start.remove(&start);
        self.by_size.remove(&(count, start));
    }

    /// Takes `count` sectors from `at` on out of the free run `run`.
    fn carve(&mut self, (start, length): RawRun, at: u32, count: u32) {
        self.remove(start, length);
        if at > start {
            self.insert(start, at - start);
        }
        if at + count < start + length {
            self.insert(at + count, start + length - at - count);
        }
        self.free -= count;
    }
}

impl Source for BTreePair {
    const NAME: &'static str = "BTreeMap pair";
    const FACTS: Facts = Facts { policy: "best fit", runs: true, frees_parts: true, linear: false };
    type Piece = RawRun;

    fn from_fill(_: &Fill, free_words: &[u64]) -> Option<Self> {
        // `collect` builds both trees in bulk.
        let by_start: BTreeMap<_, _> = runs(free_words).collect();
        let by_size = by_start.iter().map(|(&start, &count)| (count, start)).collect();
        let free = free_words.iter().map(|word| word.count_ones()).sum();
        Some(Self { by_start, by_size, free })
    }

    fn take_run(&mut self, count: u32) -> Result<RawRun, u32> {
        let Some(&(length, start)) = self.by_size.range((count, 0)..).next() else {
            return Err(self.by_size.last().map_or(0, |&(length, _)| length));
        };
        self.carve((start, length), start, count);
        Ok((start, count))
    }

    fn give(&mut self, (mut start, mut count): RawRun) {
        self.free += count;
        if let Some((&before, &length)) = self.by_start.range(..start).next_back()
            && before + length == start
        {
            self.remove(before, length);
            start = before;
            count += length;
        }
        if let Some(&length) = self.by_start.get(&(start + count)) {
            self.remove(start + count, length);
            count += length;
        }
        self.insert(start, count);
    }

    fn has_run(&mut self, count: u32) -> bool {
        self.by_size.range((count, 0)..).next().is_some()
    }

    fn free_sectors(&self) -> u32 {
        self.free
    }

    fn free_runs(&self) -> Option<usize> {
        Some(self.by_start.len())
    }
}

impl Exact for BTreePair {
    fn take_exact(&mut self, start: u32, count: u32) -> bool {
        let Some((&first, &length)) = self.by_start.range(..=start).next_back() else {
            return false;
        };
        let free = start + count <= first + length;
        if free {
            self.carve((first, length), start, count);
        }
        free
    }
}
