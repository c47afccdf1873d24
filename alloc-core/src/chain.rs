//! [`Chain`]: the sectors of one stream, in stream order.

use alloc::vec::Vec;
use core::fmt;
use core::iter::FusedIterator;
use core::ops::Range;

use smallvec::SmallVec;

use crate::{ByteOffset, ChainError, Run, SectorCount, SectorId};

/// A run within a chain. Its length is the difference to the `cum` before it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    /// One past the run's last sector.
    end: u32,
    /// Sectors of the chain up to here, this run included.
    cum: u32,
}

/// The sectors of one stream, in stream order, as maximal runs.
///
/// Runs that touch become one when they are pushed, so two chains are equal
/// when they list the same sectors in the same order. Eight bytes a run; the
/// first two need no heap. Beside each run stands the number of sectors up to
/// its end, so "where is the nth sector" is a binary search.
///
/// A chain does not know who else has its sectors: it is a list, not a claim.
/// It never checks that its sectors are distinct, except in
/// [`Chain::verify`].
///
/// # Example
///
/// ```
/// use alloc_core::{Chain, Run, SectorCount, SectorId};
///
/// let run = |start, count| Run::new(SectorId::new(start), SectorCount::new(count));
/// let chain = Chain::from_runs([run(4, 2), run(6, 2), run(1, 1)]);
/// assert_eq!(chain.run_count(), 2);
/// assert_eq!(chain.locate(SectorCount::new(3)), Some(run(7, 1)));
/// assert_eq!(format!("{chain:?}"), "[4..8, 1..2]");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Chain {
    parts: SmallVec<[Part; 2]>,
}

/// Consecutive bytes of a stream that are consecutive on the device too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where, from the first byte of sector 0.
    pub offset: ByteOffset,
    /// How many bytes, never zero.
    pub len_bytes: u64,
}

impl Chain {
    /// A chain of no sectors.
    pub fn new() -> Self {
        Self { parts: SmallVec::new() }
    }

    /// The sectors of `runs`, in that order.
    ///
    /// # Panics
    ///
    /// As [`Chain::push`].
    pub fn from_runs(runs: impl IntoIterator<Item = Run>) -> Self {
        let mut chain = Self::new();
        chain.extend(runs);
        chain
    }

    /// Puts `run` at the end. O(1).
    ///
    /// # Panics
    ///
    /// When the chain would have more than `u32::MAX` sectors.
    #[inline]
    pub fn push(&mut self, run: Run) {
        let count = run.count().get();
        let cum = self.sector_count().get().checked_add(count);
        let cum = cum.expect("a chain has at most u32::MAX sectors");
        let end = run.end().get();
        match self.parts.last_mut() {
            Some(last) if last.end == run.start().get() => *last = Part { end, cum },
            _ => self.parts.push(Part { end, cum }),
        }
    }

    /// Lengthens the last run by the `count` sectors from `at` on, if it ends
    /// there: `push` for the most frequent case.
    #[inline]
    pub(crate) fn lengthen(&mut self, at: u32, count: u32) -> bool {
        let Some(last) = self.parts.last_mut().filter(|last| last.end == at) else { return false };
        let Some(cum) = last.cum.checked_add(count) else { return false };
        *last = Part { end: at + count, cum };
        true
    }

    /// Puts the sectors of `tail` at the end. O(its runs).
    ///
    /// # Panics
    ///
    /// As [`Chain::push`].
    pub fn append(&mut self, tail: Self) {
        if self.is_empty() {
            *self = tail;
        } else {
            self.extend(tail.runs());
        }
    }

    /// The runs, in stream order. No two neighbours join.
    pub fn runs(&self) -> Runs<'_> {
        Runs { parts: &self.parts, before: 0 }
    }

    /// How many runs. O(1).
    pub fn run_count(&self) -> usize {
        self.parts.len()
    }

    /// How many sectors. O(1).
    #[inline]
    pub fn sector_count(&self) -> SectorCount {
        SectorCount::new(self.parts.last().map_or(0, |part| part.cum))
    }

    /// Whether the chain has no sectors.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The first sector.
    pub fn first(&self) -> Option<SectorId> {
        self.parts.first().map(|part| SectorId::new(part.end - part.cum))
    }

    /// The last sector.
    pub fn last(&self) -> Option<SectorId> {
        self.parts.last().map(|part| SectorId::new(part.end - 1))
    }

    /// The sector after the last one on the device: where the chain would grow
    /// in place. `None` for an empty chain.
    #[inline]
    pub fn end(&self) -> Option<SectorId> {
        self.parts.last().map(|part| SectorId::new(part.end))
    }

    /// The last run.
    pub fn last_run(&self) -> Option<Run> {
        self.runs().next_back()
    }

    /// The nth sector, counted from zero, with the rest of its run behind it;
    /// `None` at or past the end of the chain. O(log runs).
    pub fn locate(&self, nth: SectorCount) -> Option<Run> {
        let part = self.parts.get(self.part_of(nth.get()))?;
        Some(Run::span(part.end - (part.cum - nth.get()), part.end))
    }

    /// Cuts the chain to its first `len` sectors and gives what was cut off:
    /// nothing when it is no longer than that. O(log runs + runs cut off).
    #[must_use = "the sectors cut off are still taken"]
    pub fn truncate(&mut self, len: SectorCount) -> Self {
        self.split_off(len.min(self.sector_count()))
    }

    /// Cuts the chain in two before its `at`th sector and gives the second
    /// part. O(log runs + runs cut off).
    ///
    /// # Panics
    ///
    /// When `at` is past the end of the chain.
    #[must_use = "the sectors cut off are still taken"]
    pub fn split_off(&mut self, at: SectorCount) -> Self {
        let total = self.sector_count();
        assert!(at <= total, "cutting a chain of {total} at {at:?}");
        let at = at.get();
        if at == 0 {
            return core::mem::take(self);
        }
        let cut = self.part_of(at);
        let parts = self.parts[cut..].iter();
        let tail = Self { parts: parts.map(|p| Part { end: p.end, cum: p.cum - at }).collect() };
        let before = self.parts[..cut].last().map_or(0, |part| part.cum);
        if before == at {
            self.parts.truncate(cut);
        } else {
            self.parts.truncate(cut + 1);
            let part = &mut self.parts[cut];
            *part = Part { end: part.end - (part.cum - at), cum: at };
        }
        tail
    }

    /// A copy of `count` sectors from the `from`th on.
    /// O(log runs + runs copied).
    ///
    /// # Panics
    ///
    /// When the chain ends before that.
    #[must_use]
    pub fn slice(&self, from: SectorCount, count: SectorCount) -> Self {
        let total = self.sector_count();
        let to = from.checked_add(count).filter(|&to| to <= total);
        let to = to.unwrap_or_else(|| panic!("{count} from {from:?} on of a chain of {total}"));
        let mut slice = Self::new();
        let mut at = from.get();
        for part in &self.parts[self.part_of(at)..] {
            if at >= to.get() {
                break;
            }
            let start = part.end - (part.cum - at);
            let stop = part.cum.min(to.get());
            slice.push(Run::span(start, start + (stop - at)));
            at = stop;
        }
        slice
    }

    /// Puts `with` in place of as many sectors from the `at`th on, and gives
    /// those. O(runs behind `at` + runs of `with`); O(log runs) where `with` is one
    /// run that the one before goes on with, at the cost of a longer one behind.
    ///
    /// # Panics
    ///
    /// When the chain has fewer sectors from `at` on than `with` has.
    ///
    /// # Example
    ///
    /// ```
    /// use alloc_core::{Chain, Run, SectorCount, SectorId};
    ///
    /// let run = |start, count| Run::new(SectorId::new(start), SectorCount::new(count));
    /// let mut chain = Chain::from_runs([run(10, 4)]);
    /// let old = chain.replace(SectorCount::new(1), Chain::from_runs([run(30, 2)]));
    /// assert_eq!(old, Chain::from_runs([run(11, 2)]));
    /// assert_eq!(chain, Chain::from_runs([run(10, 1), run(30, 2), run(13, 1)]));
    /// ```
    #[must_use = "the sectors replaced are still taken"]
    pub fn replace(&mut self, at: SectorCount, with: Self) -> Self {
        let (total, count) = (self.sector_count(), with.sector_count());
        let end = at.checked_add(count).filter(|&end| end <= total);
        assert!(end.is_some(), "replacing {count} from {at:?} on of a chain of {total}");
        if let Some(old) = self.shift(at.get(), &with) {
            return old;
        }
        let mut old = self.split_off(at);
        let rest = old.split_off(count);
        self.append(with);
        self.append(rest);
        old
    }

    /// [`replace`](Self::replace) where nothing but the border between two runs moves.
    fn shift(&mut self, at: u32, with: &Self) -> Option<Self> {
        let [new] = with.parts[..] else { return None };
        let index = self.part_of(at);
        let (before, behind) = (*self.parts.get(index.checked_sub(1)?)?, *self.parts.get(index)?);
        let goes_on = before.cum == at && before.end == new.end - new.cum;
        let start = behind.end - (behind.cum - before.cum);
        let rest = start + new.cum;
        // Something of the run behind stays, and does not join.
        if !goes_on || rest >= behind.end || rest == new.end {
            return None;
        }
        self.parts[index - 1] = Part { end: new.end, cum: at + new.cum };
        Some(Run::span(start, rest).into())
    }

    /// Where the bytes `range` of the stream lie, in stream order, in maximal
    /// pieces. O(log runs), then O(1) a piece.
    ///
    /// # Panics
    ///
    /// When the range is reversed or ends after the chain's last byte, or when
    /// `sector_bytes` is zero.
    ///
    /// # Example
    ///
    /// ```
    /// use alloc_core::{ByteOffset, Chain, Run, SectorCount, SectorId, Segment};
    ///
    /// let run = |start, count| Run::new(SectorId::new(start), SectorCount::new(count));
    /// let chain = Chain::from_runs([run(10, 2), run(3, 1)]);
    /// let pieces: Vec<Segment> = chain.segments(600..1030, 512).collect();
    /// assert_eq!(pieces, [
    ///     Segment { offset: ByteOffset::new(10 * 512 + 600), len_bytes: 1024 - 600 },
    ///     Segment { offset: ByteOffset::new(3 * 512), len_bytes: 6 },
    /// ]);
    /// ```
    pub fn segments(&self, range: Range<u64>, sector_bytes: u32) -> Segments<'_> {
        assert!(sector_bytes > 0, "a sector has bytes");
        let len = self.sector_count().bytes(sector_bytes);
        assert!(
            range.start <= range.end && range.end <= len,
            "bytes {range:?} of a chain of {len} bytes"
        );
        let sector_bytes = u64::from(sector_bytes);
        // at most `len / sector_bytes`, which is a u32
        let nth = u32::try_from(range.start / sector_bytes).unwrap_or(u32::MAX);
        let parts = &self.parts[self.part_of(nth)..];
        Segments { parts, at: range.start, end: range.end, sector_bytes }
    }

    /// Checks what must hold of every chain that stands for sectors of its
    /// own: maximal runs, no sector twice. O(runs log runs).
    ///
    /// # Errors
    ///
    /// The first fact that does not hold.
    pub fn verify(&self) -> Result<(), ChainError> {
        let mut before = 0;
        for (index, part) in self.parts.iter().enumerate() {
            if part.cum <= before || part.end < part.cum - before {
                return Err(ChainError::Empty { index });
            }
            before = part.cum;
        }
        let mut runs: Vec<Run> = self.runs().collect();
        for pair in runs.windows(2) {
            if pair[0].joins(pair[1]) {
                return Err(ChainError::NotMerged { first: pair[0], second: pair[1] });
            }
        }
        runs.sort_unstable();
        for pair in runs.windows(2) {
            if pair[0].overlaps(pair[1]) {
                return Err(ChainError::Overlap { first: pair[0], second: pair[1] });
            }
        }
        Ok(())
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        if self.parts.spilled() { self.parts.capacity() * size_of::<Part>() } else { 0 }
    }

    /// Index of the part that holds the nth sector; the number of parts at the
    /// end.
    fn part_of(&self, nth: u32) -> usize {
        self.parts.partition_point(|part| part.cum <= nth)
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.runs()).finish()
    }
}

/// A chain of one run.
impl From<Run> for Chain {
    #[inline]
    fn from(run: Run) -> Self {
        let part = Part { end: run.end().get(), cum: run.count().get() };
        // the second place is not in use
        Self { parts: SmallVec::from_buf_and_len([part; 2], 1) }
    }
}

impl Extend<Run> for Chain {
    fn extend<I: IntoIterator<Item = Run>>(&mut self, runs: I) {
        runs.into_iter().for_each(|run| self.push(run));
    }
}

impl FromIterator<Run> for Chain {
    fn from_iter<I: IntoIterator<Item = Run>>(runs: I) -> Self {
        Self::from_runs(runs)
    }
}

/// The runs of a [`Chain`], from [`Chain::runs`].
#[derive(Clone)]
pub struct Runs<'a> {
    parts: &'a [Part],
    /// Sectors before the first of `parts`.
    before: u32,
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let (part, rest) = self.parts.split_first()?;
        let run = Run::span(part.end - (part.cum - self.before), part.end);
        (self.parts, self.before) = (rest, part.cum);
        Some(run)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.parts.len(), Some(self.parts.len()))
    }
}

impl DoubleEndedIterator for Runs<'_> {
    fn next_back(&mut self) -> Option<Run> {
        let (part, rest) = self.parts.split_last()?;
        let before = rest.last().map_or(self.before, |part| part.cum);
        self.parts = rest;
        Some(Run::span(part.end - (part.cum - before), part.end))
    }
}

impl ExactSizeIterator for Runs<'_> {}
impl FusedIterator for Runs<'_> {}

impl fmt::Debug for Runs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// The pieces of a byte range, from [`Chain::segments`].
#[derive(Clone)]
pub struct Segments<'a> {
    parts: &'a [Part],
    at: u64,
    end: u64,
    sector_bytes: u64,
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        if self.at == self.end {
            return None;
        }
        let (part, rest) = self.parts.split_first()?;
        // u32 * u32 fits in u64
        let part_end = u64::from(part.cum) * self.sector_bytes;
        let offset = u64::from(part.end) * self.sector_bytes - (part_end - self.at);
        let len_bytes = part_end.min(self.end) - self.at;
        self.at += len_bytes;
        self.parts = rest;
        Some(Segment { offset: ByteOffset::new(offset), len_bytes })
    }
}

impl FusedIterator for Segments<'_> {}

impl fmt::Debug for Segments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u32, count: u32) -> Run {
        Run::new(SectorId::new(start), SectorCount::new(count))
    }

    #[test]
    fn two_runs_need_no_heap() {
        assert_eq!(Chain::from_runs([run(1, 1), run(5, 9)]).heap_bytes(), 0);
        assert_eq!(size_of::<Chain>(), 24);
    }

    #[test]
    fn a_run_pushed_before_the_last_one_does_not_merge() {
        let chain = Chain::from_runs([run(5, 2), run(3, 2)]);
        assert_eq!(chain.run_count(), 2);
        assert_eq!(chain.verify(), Ok(()));
    }

    #[test]
    fn an_empty_chain_has_no_ends() {
        let chain = Chain::new();
        assert_eq!((chain.first(), chain.last(), chain.last_run()), (None, None, None));
        assert_eq!(chain.locate(SectorCount::ZERO), None);
        assert_eq!(chain.segments(0..0, 512).count(), 0);
    }

    #[test]
    fn cutting_between_runs_leaves_no_empty_run() {
        let mut chain = Chain::from_runs([run(10, 2), run(20, 3)]);
        let tail = chain.split_off(SectorCount::new(2));
        assert_eq!((chain, tail), (Chain::from_runs([run(10, 2)]), Chain::from_runs([run(20, 3)])));
    }

    #[test]
    fn a_sector_twice_fails_verification() {
        let chain = Chain::from_runs([run(10, 5), run(20, 1), run(12, 1)]);
        let twice = ChainError::Overlap { first: run(10, 5), second: run(12, 1) };
        assert_eq!(chain.verify(), Err(twice));
    }

    #[test]
    #[should_panic(expected = "bytes 0..513 of a chain of 512 bytes")]
    fn a_range_past_the_end_has_no_segments() {
        let _ = Chain::from_runs([run(10, 1)]).segments(0..513, 512);
    }

    #[test]
    fn segments_reach_past_four_gigabytes() {
        let chain = Chain::from_runs([run(u32::MAX - 2, 2)]);
        let all: Vec<Segment> = chain.segments(4096..8192, 4096).collect();
        let offset = ByteOffset::new(u64::from(u32::MAX - 1) * 4096);
        assert_eq!(all, [Segment { offset, len_bytes: 4096 }]);
    }
}
