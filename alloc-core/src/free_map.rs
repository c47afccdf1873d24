//! [`FreeMap`]: which sectors are free, and where a run of so many is.

use alloc::vec::Vec;

use crate::bitmap::Bitmap;
use crate::size_bins::{Fit, Limits, SizeBins};
use crate::stats::FreeStats;
use crate::words::{bit_of, word_of, words_for};
use crate::{MapError, Run, SectorCount, SectorId, VerifyError};

/// Which sectors of a device are free.
///
/// A bitmap is the truth. Two summary trees over it find the next free and the
/// next used sector over any distance; bins of free runs by length find a run
/// of so many sectors without a search. There is no handle per allocation:
/// any part of any run can be taken, and any part given back.
///
/// Taking, releasing and finding cost a few dependent memory reads each,
/// whatever the size of the device and however full it is. Memory is 1.033
/// bits a sector, and at most 0.2 more for the bins. The same calls give the
/// same layout on every machine.
///
/// # Example
///
/// ```
/// use alloc_core::{FreeMap, Run, SectorCount, SectorId};
///
/// let run = |start, count| Run::new(SectorId::new(start), SectorCount::new(count));
/// let mut map = FreeMap::new(SectorCount::new(100));
/// map.take(run(10, 5)); // sectors that have their place
/// let found = map.find(SectorCount::new(8), None).unwrap();
/// assert_eq!(found, run(0, 8)); // in the shorter of the two free runs
/// map.take(found);
/// map.release(run(2, 3));
/// assert_eq!(map.free_runs().collect::<Vec<_>>(), [run(2, 3), run(8, 2), run(15, 85)]);
/// ```
#[derive(Clone)]
pub struct FreeMap {
    bits: Bitmap,
    bins: SizeBins,
    free: u32,
    runs: u32,
}

impl FreeMap {
    /// A device of `total` sectors, all free.
    pub fn new(total: SectorCount) -> Self {
        Self::over(Bitmap::new(total.get(), true), None)
    }

    /// A device of `total` sectors, none free.
    pub fn full(total: SectorCount) -> Self {
        Self::over(Bitmap::new(total.get(), false), None)
    }

    /// A device of `total` sectors, all free but those in `used`.
    ///
    /// # Errors
    ///
    /// [`MapError::OutOfRange`] when a run reaches past the device,
    /// [`MapError::AlreadyUsed`] when a sector is in two runs.
    pub fn from_used_runs(
        total: SectorCount,
        used: impl IntoIterator<Item = Run>,
    ) -> Result<Self, MapError> {
        let mut bits = Bitmap::new(total.get(), true);
        for run in used {
            let (start, end) = bounds(run, total)?;
            let free = bits.next_used(start);
            if free < end {
                return Err(MapError::AlreadyUsed { at: SectorId::new(free) });
            }
            bits.set_used(start, end);
        }
        Ok(Self::over(bits, None))
    }

    /// A device of `total` sectors of which those are free whose bit is set:
    /// bit `i % 64` of word `i / 64`. Missing words say "used"; bits past the
    /// device say nothing.
    ///
    /// Costs the bitmap once at memory speed, and the runs that are filed:
    /// those of the commonest lengths only until their bins are full.
    pub fn from_free_words(total: SectorCount, words: Vec<u64>) -> Self {
        Self::over(Bitmap::from_words(total.get(), words), None)
    }

    /// A device of `total` sectors, of which the nth is used when the nth of
    /// `used` says so; sectors for which there is none are used.
    ///
    /// For tables of links there is [`free_words`](crate::free_words), which
    /// is several times as fast.
    pub fn from_used_cells(total: SectorCount, used: impl IntoIterator<Item = bool>) -> Self {
        let mut words = alloc::vec![0; words_for(total.get())];
        for (at, used) in (0..total.get()).zip(used) {
            if !used {
                words[word_of(at)] |= bit_of(at);
            }
        }
        Self::from_free_words(total, words)
    }

    /// A map whose bins hold so few candidates that they overflow all the
    /// time: for tests.
    #[doc(hidden)]
    pub fn with_tiny_bins(total: SectorCount, bytes: usize, bin: u16) -> Self {
        Self::over(Bitmap::new(total.get(), true), Some(Limits { bytes, bin: bin.max(1) }))
    }

    /// Whether the bins have all free runs, so that best fit is exact: for
    /// tests.
    #[doc(hidden)]
    pub fn bins_are_complete(&self) -> bool {
        self.bins.is_complete()
    }

    fn over(bits: Bitmap, limits: Option<Limits>) -> Self {
        let (free, runs) = (bits.count_free(0, bits.total()), bits.count_runs());
        Self { bins: SizeBins::new(&bits, limits), bits, free, runs }
    }

    /// The size of the device.
    pub fn total(&self) -> SectorCount {
        SectorCount::new(self.bits.total())
    }

    /// How many sectors are free. O(1).
    #[inline]
    pub fn free_count(&self) -> SectorCount {
        SectorCount::new(self.free)
    }

    /// How many sectors are used. O(1).
    pub fn used_count(&self) -> SectorCount {
        SectorCount::new(self.bits.total() - self.free)
    }

    /// How many maximal runs the free sectors make. O(1).
    pub fn run_count(&self) -> u32 {
        self.runs
    }

    /// Whether the sector is free; `false` past the end of the device.
    #[inline]
    pub fn is_free(&self, sector: SectorId) -> bool {
        self.bits.is_free(sector.get())
    }

    /// The whole free run that holds `sector`; `None` when it is used or past
    /// the end.
    pub fn free_run_at(&self, sector: SectorId) -> Option<Run> {
        let at = sector.get();
        self.bits.is_free(at).then(|| Run::span(self.bits.run_start(at), self.bits.next_used(at)))
    }

    /// The first free sector at or after `sector`.
    pub fn next_free(&self, sector: SectorId) -> Option<SectorId> {
        let at = self.bits.next_free(sector.get());
        (at < self.bits.total()).then_some(SectorId::new(at))
    }

    /// The first used sector at or after `sector`.
    pub fn next_used(&self, sector: SectorId) -> Option<SectorId> {
        let at = self.bits.next_used(sector.get());
        (at < self.bits.total()).then_some(SectorId::new(at))
    }

    /// How many sectors at the end of the device are free.
    pub fn trailing_free(&self) -> SectorCount {
        let total = self.bits.total();
        SectorCount::new(total - self.bits.run_start_before(total))
    }

    /// The longest free run, the first of equal ones. O(candidates of its
    /// length); O(total / 64) while the bins are not complete.
    pub fn largest_run(&self) -> Option<Run> {
        self.bins.longest_run(&self.bits).map(|(start, end)| Run::span(start, end))
    }

    /// All free runs, ascending.
    pub fn free_runs(&self) -> FreeRuns<'_> {
        FreeRuns { bits: &self.bits, at: 0 }
    }

    /// `count` free sectors in a row; `None` when there is no such run.
    ///
    /// When `goal` lies in a free run that has `count` sectors from it on, it
    /// is those. Else best fit: the first `count` sectors of the shortest free
    /// run that has so many. That is exact for runs below 512 sectors and
    /// within 1/64 of their length above; if the device has more free runs than the
    /// bins may hold, a somewhat longer run may be chosen. Among runs of one
    /// length, low addresses are preferred on a nearly full device; else the
    /// choice depends on what happened before, and on nothing else.
    ///
    /// Takes `&mut self` because wrong candidates met on the way are dropped;
    /// which sectors are free does not change.
    ///
    /// # Panics
    ///
    /// When `count` is zero.
    pub fn find(&mut self, count: SectorCount, goal: Option<SectorId>) -> Option<Run> {
        assert!(!count.is_zero(), "finding a run of no sectors");
        if let Some(run) = self.at_goal(count, goal) {
            return Some(run);
        }
        let fit = self.fit(count.get())?;
        self.bins.keep(fit, &self.bits);
        Some(Run::new(SectorId::new(fit.start), count))
    }

    /// The run that fits best.
    #[inline]
    fn fit(&mut self, count: u32) -> Option<Fit> {
        self.bins.note_free(self.free, self.bits.total());
        self.bins.fit(count, &self.bits)
    }

    /// The `count` sectors from the goal on, if they are free.
    fn at_goal(&self, count: SectorCount, goal: Option<SectorId>) -> Option<Run> {
        let start = goal?.get();
        let end = start.checked_add(count.get())?;
        (self.bits.next_used(start) >= end && end <= self.bits.total())
            .then(|| Run::span(start, end))
    }

    /// Finds and takes.
    #[inline]
    pub(crate) fn take_fit(&mut self, count: SectorCount, goal: Option<SectorId>) -> Option<Run> {
        if goal.is_some()
            && let Some(run) = self.at_goal(count, goal)
        {
            self.take_within(run.start().get(), run.end().get());
            return Some(run);
        }
        let fit = self.fit(count.get())?;
        Some(self.take_front(fit, count.get()))
    }

    /// Takes `count` sectors from the front of the run that fits best among
    /// those of at least `min_run`.
    pub(crate) fn take_part_of_fit(
        &mut self,
        count: SectorCount,
        min_run: SectorCount,
    ) -> Option<Run> {
        let fit = self.fit(count.max(min_run).get())?;
        Some(self.take_front(fit, count.get()))
    }

    /// Takes up to `count` sectors from the front of the longest run, if that
    /// has at least `min_run`.
    pub(crate) fn take_longest(&mut self, count: SectorCount, min_run: SectorCount) -> Option<Run> {
        self.bins.note_free(self.free, self.bits.total());
        let mut fit = self.bins.longest_fit(&self.bits)?;
        if fit.end - fit.start < min_run.get() {
            self.bins.keep(fit, &self.bits);
            // while bins are not complete, a longer one may be in none
            fit = self.fit(min_run.get())?;
        }
        Some(self.take_front(fit, count.get().min(fit.end - fit.start)))
    }

    /// Takes up to `count` free sectors that lie from `at` on.
    #[inline]
    pub(crate) fn take_from(&mut self, at: SectorId, count: u32) -> Option<Run> {
        let start = at.get();
        if !self.bits.is_free(start) {
            return None;
        }
        let before = self.bits.run_start_before(start);
        let end = self.bits.next_used(start);
        let taken = start + count.min(end - start);
        self.take_part(before, end, start, taken);
        Some(Run::span(start, taken))
    }

    /// Takes the front of a run that the bins have chosen.
    #[inline]
    fn take_front(&mut self, fit: Fit, count: u32) -> Run {
        let cut = fit.start + count;
        self.bits.set_used(fit.start, cut);
        self.free -= count;
        self.runs -= u32::from(cut == fit.end);
        self.bins.cut(fit, cut, &self.bits);
        Run::span(fit.start, cut)
    }

    /// Takes sectors that are known to be free.
    fn take_within(&mut self, start: u32, end: u32) {
        let (before, after) = (self.bits.run_start(start), self.bits.next_used(end - 1));
        self.take_part(before, after, start, end);
    }

    /// Takes `start..end` of the free run `before..after`.
    #[inline]
    fn take_part(&mut self, before: u32, after: u32, start: u32, end: u32) {
        self.bins.forget(before, after - before);
        self.bits.set_used(start, end);
        self.free -= end - start;
        self.runs -= 1;
        if before < start {
            self.runs += 1;
            self.bins.push(before, start - before, &self.bits);
        }
        if end < after {
            self.runs += 1;
            self.bins.push(end, after - end, &self.bits);
        }
    }

    /// Takes just these sectors: what [`FreeMap::find`] has found, or sectors
    /// that have their place.
    ///
    /// # Panics
    ///
    /// When one of them is used or past the end of the device.
    pub fn take(&mut self, run: Run) {
        if let Err(error) = self.try_take(run) {
            panic!("taking {run}: {error}");
        }
    }

    /// As [`FreeMap::take`], for runs that come from outside.
    ///
    /// # Errors
    ///
    /// [`MapError::OutOfRange`], or [`MapError::AlreadyUsed`] with the first
    /// used sector. Nothing is taken then.
    pub fn try_take(&mut self, run: Run) -> Result<(), MapError> {
        let (start, end) = bounds(run, self.total())?;
        let after = self.bits.next_used(start);
        if after < end {
            return Err(MapError::AlreadyUsed { at: SectorId::new(after) });
        }
        self.take_part(self.bits.run_start(start), after, start, end);
        Ok(())
    }

    /// Gives sectors back: a whole run taken before or any part of one.
    ///
    /// # Panics
    ///
    /// When one of them is free or past the end of the device.
    #[inline]
    pub fn release(&mut self, run: Run) {
        if let Err(error) = self.try_release(run) {
            panic!("releasing {run}: {error}");
        }
    }

    /// As [`FreeMap::release`], for runs that come from outside.
    ///
    /// # Errors
    ///
    /// [`MapError::OutOfRange`], or [`MapError::AlreadyFree`] with the first
    /// free sector. Nothing is released then.
    #[inline]
    pub fn try_release(&mut self, run: Run) -> Result<(), MapError> {
        let (start, end) = bounds(run, self.total())?;
        let freed = self.bits.give(start, end);
        let (before, after) =
            freed.map_err(|at| MapError::AlreadyFree { at: SectorId::new(at) })?;
        self.filed(before, after, start, end);
        Ok(())
    }

    /// Books that `start..end` has become free and has made one run of
    /// `before..after`.
    fn filed(&mut self, before: u32, after: u32, start: u32, end: u32) {
        self.free += end - start;
        // one run more, less the neighbours that are part of it now
        self.runs += 1;
        self.runs -= u32::from(before < start) + u32::from(end < after);
        self.bins.push(before, after - before, &self.bits);
    }

    /// Makes the device larger; the new sectors are free. Amortised
    /// O(sectors added / 64), also a sector at a time.
    ///
    /// # Panics
    ///
    /// When `total` is less than before.
    pub fn grow(&mut self, total: SectorCount) {
        let (old, new) = (self.bits.total(), total.get());
        assert!(old <= new, "growing {} to {total}", self.total());
        if old == new {
            return;
        }
        let before = self.bits.run_start_before(old);
        self.bits.grow(new);
        self.bins.resized(new);
        self.filed(before, new, old, new);
    }

    /// Cuts free sectors off at the end of the device.
    ///
    /// # Errors
    ///
    /// [`MapError::InUse`] when one of them is used. Nothing changes then.
    ///
    /// # Panics
    ///
    /// When `total` is more than before.
    pub fn shrink(&mut self, total: SectorCount) -> Result<(), MapError> {
        let (old, new) = (self.bits.total(), total.get());
        assert!(new <= old, "shrinking {} to {total}", self.total());
        let before = self.bits.run_start_before(old);
        if before > new {
            let last = SectorId::new(before - 1);
            return Err(MapError::InUse { last, wanted: total });
        }
        if old == new {
            return Ok(());
        }
        self.bins.forget(before, old - before);
        self.bits.shrink(new);
        self.bins.resized(new);
        self.free -= old - new;
        if before < new {
            self.bins.push(before, new - before, &self.bits);
        } else {
            self.runs -= 1;
        }
        Ok(())
    }

    /// The bitmap: bit `i % 64` of word `i / 64` is set when sector `i` is
    /// free. Bits past the device are clear.
    pub fn words(&self) -> &[u64] {
        self.bits.words()
    }

    /// Counts and the lengths of free runs. O(total / 64 + runs).
    pub fn stats(&self) -> FreeStats {
        FreeStats::of(self)
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.bits.heap_bytes() + self.bins.heap_bytes()
    }

    /// Checks the counts, both summary trees and the bins against the bitmap.
    /// O(total / 64 + runs), for tests.
    ///
    /// # Errors
    ///
    /// The first fact that does not hold.
    pub fn verify(&self) -> Result<(), VerifyError> {
        self.bits.verify()?;
        let count = |what, counted, kept| {
            let right = counted == kept;
            if right { Ok(()) } else { Err(VerifyError::Count { what, counted, kept }) }
        };
        count("free sectors", self.bits.count_free(0, self.bits.total()), self.free)?;
        count("free runs", self.bits.count_runs(), self.runs)?;
        self.bins.verify(&self.bits)
    }
}

/// Equal when the same sectors are free, however they came to be.
impl PartialEq for FreeMap {
    fn eq(&self, other: &Self) -> bool {
        self.total() == other.total() && self.words() == other.words()
    }
}

impl Eq for FreeMap {}

impl core::fmt::Debug for FreeMap {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FreeMap")
            .field("total", &self.total())
            .field("free", &self.free_count())
            .field("runs", &self.runs)
            .finish_non_exhaustive()
    }
}

/// The ends of a run, if it lies within the device.
#[inline]
fn bounds(run: Run, total: SectorCount) -> Result<(u32, u32), MapError> {
    let (start, end) = (run.start().get(), run.end().get());
    if end <= total.get() { Ok((start, end)) } else { Err(MapError::OutOfRange { run, total }) }
}

/// The free runs of a [`FreeMap`], from [`FreeMap::free_runs`].
#[derive(Clone)]
pub struct FreeRuns<'a> {
    bits: &'a Bitmap,
    at: u32,
}

impl Iterator for FreeRuns<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let start = self.bits.next_free(self.at);
        if start == self.bits.total() {
            return None;
        }
        self.at = self.bits.next_used(start);
        Some(Run::span(start, self.at))
    }
}

impl core::iter::FusedIterator for FreeRuns<'_> {}

impl core::fmt::Debug for FreeRuns<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}
