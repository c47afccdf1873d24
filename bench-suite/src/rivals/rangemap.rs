//! `rangemap`: a `RangeSet` of the free sectors, which merges neighbours by
//! itself; first fit by walking it.

use ::rangemap::RangeSet;

use super::{Exact, Facts, RawRun, Source};
use crate::fill::{Fill, runs};

/// The set and the free count it does not keep.
#[derive(Clone, Debug)]
pub struct RangeMap {
    free_set: RangeSet<u32>,
    free: u32,
}

impl RangeMap {
    fn first_fit(&self, count: u32) -> Result<u32, u32> {
        let mut longest = 0;
        for range in self.free_set.iter() {
            let length = range.end - range.start;
            if length >= count {
                return Ok(range.start);
            }
            longest = longest.max(length);
        }
        Err(longest)
    }
}

impl Source for RangeMap {
    const NAME: &'static str = "rangemap 1.8";
    const FACTS: Facts = Facts { policy: "first fit", runs: true, frees_parts: true, linear: true };
    type Piece = RawRun;

    fn from_fill(_: &Fill, free_words: &[u64]) -> Option<Self> {
        let free_set = runs(free_words).map(|(start, count)| start..start + count).collect();
        let free = free_words.iter().map(|word| word.count_ones()).sum();
        Some(Self { free_set, free })
    }

    fn take_run(&mut self, count: u32) -> Result<RawRun, u32> {
        let start = self.first_fit(count)?;
        self.free_set.remove(start..start + count);
        self.free -= count;
        Ok((start, count))
    }

    fn give(&mut self, (start, count): RawRun) {
        self.free_set.insert(start..start + count);
        self.free += count;
    }

    fn has_run(&mut self, count: u32) -> bool {
        self.first_fit(count).is_ok()
    }

    fn free_sectors(&self) -> u32 {
        self.free
    }

    fn free_runs(&self) -> Option<usize> {
        Some(self.free_set.len())
    }
}

impl Exact for RangeMap {
    fn take_exact(&mut self, start: u32, count: u32) -> bool {
        let free = self.free_set.get(&start).is_some_and(|range| start + count <= range.end);
        if free {
            self.free_set.remove(start..start + count);
            self.free -= count;
        }
        free
    }
}
