//! `roaring`: a compressed bitmap of the free sectors, first fit by walking its
//! ranges.

use ::roaring::RoaringBitmap;

use super::{Exact, Facts, RawRun, Source};
use crate::fill::Fill;

/// The bitmap and the free count, which it would have to sum up.
#[derive(Clone, Debug)]
pub struct Roaring {
    free_set: RoaringBitmap,
    free: u32,
}

impl Roaring {
    /// Calls `visit` with (first, count) of each maximal run until it says
    /// stop. The crate's ranges end at its containers of 65,536 and are joined
    /// here.
    fn each_run(&self, mut visit: impl FnMut(u32, u32) -> bool) {
        let mut ranges = self.free_set.iter();
        let mut open: Option<(u32, u32)> = None;
        while let Some(range) = ranges.next_range() {
            let (start, count) = (*range.start(), range.end() - range.start() + 1);
            open = match open {
                Some((first, length)) if first + length == start => Some((first, length + count)),
                Some((first, length)) if visit(first, length) => return,
                _ => Some((start, count)),
            };
        }
        if let Some((first, length)) = open {
            visit(first, length);
        }
    }

    fn first_fit(&self, count: u32) -> Result<u32, u32> {
        let mut found = Err(0);
        self.each_run(|start, length| {
            if length >= count {
                found = Ok(start);
                return true;
            }
            found = found.map_err(|longest| length.max(longest));
            false
        });
        found
    }
}

impl Source for Roaring {
    const NAME: &'static str = "roaring 0.12";
    const FACTS: Facts = Facts { policy: "first fit", runs: true, frees_parts: true, linear: true };
    type Piece = RawRun;

    fn from_fill(_: &Fill, free_words: &[u64]) -> Option<Self> {
        let bytes: Vec<u8> = free_words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut free_set = RoaringBitmap::from_lsb0_bytes(0, &bytes);
        free_set.optimize();
        let free = free_words.iter().map(|word| word.count_ones()).sum();
        Some(Self { free_set, free })
    }

    fn take_run(&mut self, count: u32) -> Result<RawRun, u32> {
        if count == 1 {
            let start = self.free_set.min().ok_or(0_u32)?;
            self.free_set.remove(start);
            self.free -= 1;
            return Ok((start, 1));
        }
        let start = self.first_fit(count)?;
        self.free_set.remove_range(start..start + count);
        self.free -= count;
        Ok((start, count))
    }

    fn give(&mut self, (start, count): RawRun) {
        self.free_set.insert_range(start..start + count);
        self.free += count;
    }

    fn has_run(&mut self, count: u32) -> bool {
        self.first_fit(count).is_ok()
    }

    fn free_sectors(&self) -> u32 {
        self.free
    }

    fn free_runs(&self) -> Option<usize> {
        let mut runs = 0;
        self.each_run(|_, _| {
            runs += 1;
            false
        });
        Some(runs)
    }
}

impl Exact for Roaring {
    fn take_exact(&mut self, start: u32, count: u32) -> bool {
        let free = self.free_set.contains_range(start..start + count);
        if free {
            self.free_set.remove_range(start..start + count);
            self.free -= count;
        }
        free
    }
}
