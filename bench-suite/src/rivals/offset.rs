//! `offset-allocator`: 256 bins in floating-point steps, a node for every used
//! and free run. It can neither extend an allocation nor take back a part, and
//! its node table has a fixed size.

use offset_allocator::{Allocation, Allocator};

use super::{Facts, Source};
use crate::fill::{Fill, runs};

/// More runs than this, and the node table alone would take a hundred bytes a
/// sector of what is free.
const MAX_RUNS: usize = 1 << 20;

/// The crate's allocator; the free count comes from it.
#[derive(Debug)]
pub struct OffsetAlloc {
    inner: Allocator,
}

impl OffsetAlloc {
    /// Takes the next `count` sectors of a device whose first sectors are all
    /// used. The crate rounds a request up to a bin, so near the end of the
    /// device it takes several.
    fn take_next(&mut self, count: u32, handles: &mut Vec<Allocation>) {
        let mut missing = count;
        let mut attempt = count;
        while missing > 0 {
            if let Some(handle) = self.inner.allocate(attempt) {
                handles.push(handle);
                missing -= attempt;
                attempt = missing;
            } else {
                assert!(attempt > 1, "the node table is too small");
                attempt = attempt.div_ceil(2);
            }
        }
    }
}

impl Source for OffsetAlloc {
    const NAME: &'static str = "offset-allocator 0.2";
    const FACTS: Facts =
        Facts { policy: "good fit", runs: true, frees_parts: false, linear: false };
    type Piece = Allocation;

    fn from_fill(fill: &Fill, free_words: &[u64]) -> Option<Self> {
        let free_runs = runs(free_words).count();
        if free_runs > MAX_RUNS {
            return None;
        }
        // A node for each used and free run and for the objects that come, and one
        // for 32 sectors at least: as many as churn needs at 99 %.
        let nodes = (fill.sectors / 32).max(u32::try_from(free_runs).ok()? * 4 + 4_096);
        let mut rival = Self { inner: Allocator::with_max_allocs(fill.sectors, nodes) };
        let mut gaps = Vec::with_capacity(free_runs);
        let mut used = Vec::new();
        let mut at = 0;
        for (start, count) in runs(free_words).filter(|&(_, count)| count < fill.sectors) {
            rival.take_next(start - at, &mut used);
            rival.take_next(count, &mut gaps);
            at = start + count;
        }
        if at > 0 {
            rival.take_next(fill.sectors - at, &mut used);
        }
        for gap in gaps {
            rival.inner.free(gap);
        }
        Some(rival)
    }

    fn take_run(&mut self, count: u32) -> Result<Allocation, u32> {
        self.inner.allocate(count).ok_or_else(|| {
            // A bin's lower bound. One bin can hold both this request's
            // rounded-down length and a shorter run, hence the `min`.
            self.inner.storage_report().largest_free_region.min(count - 1)
        })
    }

    fn give(&mut self, piece: Allocation) {
        self.inner.free(piece);
    }

    fn has_run(&mut self, count: u32) -> bool {
        match self.inner.allocate(count) {
            Some(handle) => {
                self.inner.free(handle);
                true
            }
            None => false,
        }
    }

    fn free_sectors(&self) -> u32 {
        self.inner.storage_report().total_free_space
    }

    fn free_runs(&self) -> Option<usize> {
        let report = self.inner.storage_report_full();
        Some(report.free_regions.iter().map(|region| region.count as usize).sum())
    }
}
