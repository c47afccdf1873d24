//! [`SectorSet`]: a plain set of sectors, one bit each.

use core::fmt;

use crate::bitmap::Bits;
use crate::words::{bit_of, count_ones, for_each_word, next_one, next_zero, word_of};
use crate::{Run, SectorCount, SectorId};

/// A set of sectors of a device, one bit each.
///
/// The memory of a walk over chains ("which sectors have I seen?"), or any
/// other set that only needs marking and asking. It has no index: searching
/// costs a word read per 64 sectors.
///
/// # Example
///
/// ```
/// use alloc_core::{Run, SectorCount, SectorId, SectorSet};
///
/// let run = |start, count| Run::new(SectorId::new(start), SectorCount::new(count));
/// let mut seen = SectorSet::new(SectorCount::new(100));
/// seen.insert_run(run(10, 5));
/// assert_eq!(seen.first_common(run(0, 100)), Some(SectorId::new(10)));
/// assert!(!seen.contains(SectorId::new(15)));
/// assert_eq!(seen.runs().collect::<Vec<_>>(), [run(10, 5)]);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SectorSet {
    bits: Bits,
    total: u32,
}

impl SectorSet {
    /// The empty set over a device of `total` sectors.
    pub fn new(total: SectorCount) -> Self {
        Self { bits: Bits::new(total.get(), false), total: total.get() }
    }

    /// The size of the device.
    pub fn total(&self) -> SectorCount {
        SectorCount::new(self.total)
    }

    /// Makes the device larger; the new sectors are not in the set.
    /// Amortised O(sectors added / 64).
    ///
    /// # Panics
    ///
    /// When `total` is less than before.
    pub fn grow(&mut self, total: SectorCount) {
        assert!(total.get() >= self.total, "growing {:?} to {total}", self.total());
        self.total = total.get();
        self.bits.resize(self.total);
    }

    /// Whether the sector is in the set; `false` beyond the device.
    pub fn contains(&self, sector: SectorId) -> bool {
        let word = self.bits.words().get(word_of(sector.get()));
        word.is_some_and(|word| word & bit_of(sector.get()) != 0)
    }

    /// Adds the sectors of `run`; some may be in the set already.
    ///
    /// # Panics
    ///
    /// When the run reaches past the device.
    pub fn insert_run(&mut self, run: Run) {
        let (start, end) = self.bounds(run);
        for_each_word(self.bits.words_mut(), start, end, |_, word, mask| *word |= mask);
    }

    /// Removes the sectors of `run`; some may not be in the set.
    ///
    /// # Panics
    ///
    /// When the run reaches past the device.
    pub fn remove_run(&mut self, run: Run) {
        let (start, end) = self.bounds(run);
        for_each_word(self.bits.words_mut(), start, end, |_, word, mask| *word &= !mask);
    }

    /// The first sector of `run` that is in the set.
    ///
    /// # Panics
    ///
    /// When the run reaches past the device.
    pub fn first_common(&self, run: Run) -> Option<SectorId> {
        let (start, end) = self.bounds(run);
        let words = &self.bits.words()[..=word_of(end - 1)];
        next_one(words, start).filter(|&at| at < end).map(SectorId::new)
    }

    /// How many sectors are in the set. O(device / 64).
    pub fn count(&self) -> SectorCount {
        SectorCount::new(count_ones(self.bits.words(), 0, self.total))
    }

    /// The maximal runs of the set, ascending.
    pub fn runs(&self) -> SetRuns<'_> {
        SetRuns { words: self.bits.words(), at: 0, total: self.total }
    }

    /// The set as words: sector `i` is bit `i % 64` of word `i / 64`. Bits past
    /// the device are clear.
    pub fn words(&self) -> &[u64] {
        self.bits.words()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.bits.heap_bytes()
    }

    fn bounds(&self, run: Run) -> (u32, u32) {
        let (start, end) = (run.start().get(), run.end().get());
        assert!(end <= self.total, "{run} of a device of {:?}", self.total());
        (start, end)
    }
}

impl fmt::Debug for SectorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.runs()).finish()
    }
}

/// The runs of a [`SectorSet`], from [`SectorSet::runs`].
#[derive(Clone, Debug)]
pub struct SetRuns<'a> {
    words: &'a [u64],
    at: u32,
    total: u32,
}

impl Iterator for SetRuns<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.at >= self.total {
            return None;
        }
        let start = next_one(self.words, self.at)?;
        // bits past the device are clear, but the device may fill its words
        let end = next_zero(self.words, start).unwrap_or(self.total);
        self.at = end;
        Some(Run::span(start, end))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn run(start: u32, count: u32) -> Run {
        Run::new(SectorId::new(start), SectorCount::new(count))
    }

    #[test]
    fn runs_merge_and_split_as_sets_do() {
        let mut set = SectorSet::new(SectorCount::new(192));
        set.insert_run(run(60, 68));
        set.insert_run(run(128, 64));
        assert_eq!(set.runs().collect::<Vec<_>>(), [run(60, 132)]);
        set.remove_run(run(64, 64));
        assert_eq!(set.runs().collect::<Vec<_>>(), [run(60, 4), run(128, 64)]);
        assert_eq!(set.count(), SectorCount::new(68));
    }

    #[test]
    fn nothing_in_common_just_before_a_member() {
        let mut set = SectorSet::new(SectorCount::new(130));
        set.insert_run(run(129, 1));
        assert_eq!(set.first_common(run(0, 129)), None);
        assert_eq!(set.first_common(run(128, 2)), Some(SectorId::new(129)));
        assert!(!set.contains(SectorId::new(u32::MAX)));
    }

    #[test]
    fn growing_adds_sectors_that_are_not_members() {
        let mut set = SectorSet::new(SectorCount::new(0));
        for total in 1..200 {
            set.grow(SectorCount::new(total));
            assert!(!set.contains(SectorId::new(total - 1)));
            set.insert_run(run(total - 1, 1));
        }
        assert_eq!(set.runs().collect::<Vec<_>>(), [run(0, 199)]);
    }

    #[test]
    #[should_panic(expected = "of a device of 8")]
    fn no_member_lies_past_the_device() {
        SectorSet::new(SectorCount::new(8)).insert_run(run(7, 2));
    }
}
