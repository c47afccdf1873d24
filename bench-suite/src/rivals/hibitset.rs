//! `hibitset`: four levels of 64 bits over the free sectors. Single sectors
//! only: it has no search for runs.

use ::hibitset::{BitSet, BitSetLike};

use super::{Facts, Source};
use crate::fill::{Fill, runs};

/// The set and the free count it does not keep.
#[derive(Clone, Debug)]
pub struct HiBitSet {
    free_set: BitSet,
    free: u32,
}

impl Source for HiBitSet {
    const NAME: &'static str = "hibitset 0.6";
    const FACTS: Facts =
        Facts { policy: "lowest sector", runs: false, frees_parts: false, linear: false };
    type Piece = u32;

    fn from_fill(fill: &Fill, free_words: &[u64]) -> Option<Self> {
        // It ends at 64^4 ids and panics there.
        let mut free_set = BitSet::with_capacity(fill.sectors.min((1 << 24) - 1));
        for (start, count) in runs(free_words) {
            for sector in start..start + count {
                free_set.add(sector);
            }
        }
        let free = free_words.iter().map(|word| word.count_ones()).sum();
        Some(Self { free_set, free })
    }

    fn take_run(&mut self, count: u32) -> Result<u32, u32> {
        if count > 1 {
            return Err(1);
        }
        let sector = (&self.free_set).iter().next().ok_or(0_u32)?;
        self.free_set.remove(sector);
        self.free -= 1;
        Ok(sector)
    }

    fn give(&mut self, sector: u32) {
        self.free_set.add(sector);
        self.free += 1;
    }

    fn has_run(&mut self, count: u32) -> bool {
        count == 1 && self.free > 0
    }

    fn free_sectors(&self) -> u32 {
        self.free
    }

    fn free_runs(&self) -> Option<usize> {
        None
    }
}
