//! A flat bitmap in `u64` words, first fit from the first word: what a program
//! writes that wants no structure at all.

use super::{Exact, Facts, Pieces, RawRun, Source};
use crate::fill::{Fill, fill, runs};

/// Raw words, 1 = free.
#[derive(Clone, Debug)]
pub struct Words {
    words: Vec<u64>,
    free: u32,
}

impl Words {
    /// The first run of `count`, or the longest there is.
    fn first_fit(&self, count: u32) -> Result<u32, u32> {
        if count == 1 {
            // The common case of its own: no run has to be measured.
            let index = self.words.iter().position(|&word| word != 0).ok_or(0_u32)?;
            let bit = self.words[index].trailing_zeros();
            return Ok(u32::try_from(index * 64).expect("fits") + bit);
        }
        let mut longest = 0;
        for (start, length) in runs(&self.words) {
            if length >= count {
                return Ok(start);
            }
            longest = longest.max(length);
        }
        Err(longest)
    }
}

impl Source for Words {
    const NAME: &'static str = "raw u64 words";
    const FACTS: Facts = Facts { policy: "first fit", runs: true, frees_parts: true, linear: true };
    type Piece = RawRun;

    fn from_fill(_: &Fill, free_words: &[u64]) -> Option<Self> {
        let free = free_words.iter().map(|word| word.count_ones()).sum();
        Some(Self { words: free_words.to_vec(), free })
    }

    fn take_run(&mut self, count: u32) -> Result<RawRun, u32> {
        let start = self.first_fit(count)?;
        fill(&mut self.words, start, count, false);
        self.free -= count;
        Ok((start, count))
    }

    fn give(&mut self, (start, count): RawRun) {
        fill(&mut self.words, start, count, true);
        self.free += count;
    }

    fn has_run(&mut self, count: u32) -> bool {
        self.first_fit(count).is_ok()
    }

    fn free_sectors(&self) -> u32 {
        self.free
    }

    fn free_runs(&self) -> Option<usize> {
        Some(runs(&self.words).count())
    }

    /// Without a search for each: that alone would take half a minute.
    fn laid_out(sectors: u32, counts: &[u32]) -> Option<(Self, Vec<Pieces<RawRun>>)> {
        let fill = Fill::empty(sectors);
        let mut source = Self::from_fill(&fill, &fill.free_words())?;
        let objects = one_after_the_other(&mut source, counts)?;
        Some((source, objects))
    }
}

impl Exact for Words {
    fn take_exact(&mut self, start: u32, count: u32) -> bool {
        let (mut at, end) = (start, start + count);
        if end as usize > self.words.len() * 64 {
            return false;
        }
        while at < end {
            let here = (64 - at % 64).min(end - at);
            let mask = (u64::MAX >> (64 - here)) << (at % 64);
            if self.words[at as usize / 64] & mask != mask {
                return false;
            }
            at += here;
        }
        fill(&mut self.words, start, count, false);
        self.free -= count;
        true
    }
}

/// Takes runs of these sizes from sector 0 on, without a search.
pub(super) fn one_after_the_other<S: Exact>(
    source: &mut S,
    counts: &[u32],
) -> Option<Vec<Pieces<RawRun>>> {
    let mut start = 0;
    let mut objects = Vec::with_capacity(counts.len());
    for &count in counts {
        if !source.take_exact(start, count) {
            return None;
        }
        objects.push(Pieces::from_slice(&[(start, count)]));
        start += count;
    }
    Some(objects)
}
