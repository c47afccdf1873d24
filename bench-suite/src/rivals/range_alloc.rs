//! `range-alloc`: a sorted vector of free ranges, best fit by walking all of
//! it. It can take back parts, and cannot extend.

use ::range_alloc::RangeAllocator;

use super::{Facts, RawRun, Source};
use crate::fill::{Fill, runs};

/// More free ranges than this, and loading takes seconds: freeing a range walks
/// the vector, too.
const MAX_RUNS: usize = 1 << 16;

/// The crate's allocator, and the free count it does not keep.
#[derive(Debug)]
pub struct RangeAlloc {
    inner: RangeAllocator<u32>,
    free: u32,
    sectors: u32,
}

impl Source for RangeAlloc {
    const NAME: &'static str = "range-alloc 0.1.5";
    const FACTS: Facts = Facts { policy: "best fit", runs: true, frees_parts: true, linear: true };
    type Piece = RawRun;

    fn from_fill(fill: &Fill, free_words: &[u64]) -> Option<Self> {
        if runs(free_words).count() > MAX_RUNS {
            return None;
        }
        let mut inner = RangeAllocator::new(0..fill.sectors);
        let free = free_words.iter().map(|word| word.count_ones()).sum();
        if free < fill.sectors {
            inner.allocate_range(fill.sectors).expect("the device is empty");
            for (start, count) in runs(free_words) {
                inner.free_range(start..start + count);
            }
        }
        Some(Self { inner, free, sectors: fill.sectors })
    }

    fn take_run(&mut self, count: u32) -> Result<RawRun, u32> {
        match self.inner.allocate_range(count) {
            Ok(range) => {
                self.free -= count;
                Ok((range.start, count))
            }
            // It tells the sum of what is free and not the longest range.
            Err(_) => Err(count / 2),
        }
    }

    fn give(&mut self, (start, count): RawRun) {
        self.inner.free_range(start..start + count);
        self.free += count;
    }

    fn has_run(&mut self, count: u32) -> bool {
        match self.inner.allocate_range(count) {
            Ok(range) => {
                self.inner.free_range(range);
                true
            }
            Err(_) => false,
        }
    }

    fn free_sectors(&self) -> u32 {
        self.free
    }

    fn free_runs(&self) -> Option<usize> {
        // It lists what is allocated; the free ranges lie between.
        let (mut at, mut gaps) = (0, 0);
        for used in self.inner.allocated_ranges() {
            gaps += usize::from(used.start > at);
            at = used.end;
        }
        Some(gaps + usize::from(at < self.sectors))
    }
}
