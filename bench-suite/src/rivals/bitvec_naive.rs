//! `bitvec` through its bit interface: search with `first_one` and
//! `leading_ones`, change with `fill`.

use bitvec::prelude::{BitSlice, BitVec, Lsb0};

use super::words::one_after_the_other;
use super::{Exact, Facts, Pieces, RawRun, Source};
use crate::fill::Fill;

/// A bit vector, 1 = free, first fit.
#[derive(Clone, Debug)]
pub struct BitvecNaive {
    bits: BitVec<u64, Lsb0>,
    free: u32,
}

impl BitvecNaive {
    /// The first run of `count`, or the longest there is.
    fn first_fit(&self, count: u32) -> Result<u32, u32> {
        let (mut at, mut longest) = (0, 0);
        while let Some(skipped) = self.bits[at..].first_one() {
            at += skipped;
            // Measures no further than it has to.
            let window = &self.bits[at..(at + count as usize).min(self.bits.len())];
            let length = window.leading_ones();
            if length == count as usize {
                return Ok(u32::try_from(at).expect("fits"));
            }
            longest = longest.max(length);
            at += length;
        }
        Err(u32::try_from(longest).expect("shorter than `count`"))
    }

    fn slice(&mut self, start: u32, count: u32) -> &mut BitSlice<u64, Lsb0> {
        &mut self.bits[start as usize..(start + count) as usize]
    }
}

impl Source for BitvecNaive {
    const NAME: &'static str = "bitvec, bit interface";
    const FACTS: Facts = Facts { policy: "first fit", runs: true, frees_parts: true, linear: true };
    type Piece = RawRun;

    fn from_fill(_: &Fill, free_words: &[u64]) -> Option<Self> {
        let free = free_words.iter().map(|word| word.count_ones()).sum();
        Some(Self { bits: BitVec::from_slice(free_words), free })
    }

    fn take_run(&mut self, count: u32) -> Result<RawRun, u32> {
        let start = self.first_fit(count)?;
        self.slice(start, count).fill(false);
        self.free -= count;
        Ok((start, count))
    }

    fn give(&mut self, (start, count): RawRun) {
        self.slice(start, count).fill(true);
        self.free += count;
    }

    fn has_run(&mut self, count: u32) -> bool {
        self.first_fit(count).is_ok()
    }

    fn free_sectors(&self) -> u32 {
        self.free
    }

    fn free_runs(&self) -> Option<usize> {
        let (mut at, mut runs) = (0, 0);
        while let Some(skipped) = self.bits[at..].first_one() {
            at += skipped;
            at += self.bits[at..].leading_ones();
            runs += 1;
        }
        Some(runs)
    }

    /// Without a search for each: that alone would take minutes.
    fn laid_out(sectors: u32, counts: &[u32]) -> Option<(Self, Vec<Pieces<RawRun>>)> {
        let fill = Fill::empty(sectors);
        let mut source = Self::from_fill(&fill, &fill.free_words())?;
        let objects = one_after_the_other(&mut source, counts)?;
        Some((source, objects))
    }
}

impl Exact for BitvecNaive {
    fn take_exact(&mut self, start: u32, count: u32) -> bool {
        let free = (start + count) as usize <= self.bits.len() && self.slice(start, count).all();
        if free {
            self.slice(start, count).fill(false);
            self.free -= count;
        }
        free
    }
}
