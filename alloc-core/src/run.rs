//! [`Run`]: consecutive sectors, never empty.

use core::fmt;
use core::num::NonZeroU32;

use crate::{SectorCount, SectorId};

/// Consecutive sectors, at least one.
///
/// Eight bytes. `start + count` is at most `u32::MAX`, so [`Run::end`] always
/// exists. Prints as the half-open range it is: `10..14`.
///
/// # Example
///
/// ```
/// use alloc_core::{Run, SectorCount, SectorId};
///
/// let run = Run::new(SectorId::new(10), SectorCount::new(4));
/// assert_eq!(run.last(), SectorId::new(13));
/// assert_eq!(format!("{run:?}"), "10..14");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run {
    start: u32,
    count: NonZeroU32,
}

impl Run {
    /// `count` sectors from `start` on.
    ///
    /// # Panics
    ///
    /// When `count` is zero, or the run ends past `u32::MAX`.
    pub const fn new(start: SectorId, count: SectorCount) -> Self {
        assert!(start.get().checked_add(count.get()).is_some(), "a run ends at u32::MAX or before");
        match NonZeroU32::new(count.get()) {
            Some(count) => Self { start: start.get(), count },
            None => panic!("a run has at least one sector"),
        }
    }

    /// Just this sector.
    ///
    /// # Panics
    ///
    /// When the sector is `u32::MAX`, which no device has.
    pub const fn single(sector: SectorId) -> Self {
        Self::new(sector, SectorCount::ONE)
    }

    /// The sectors from `start` up to, not including, `end`; `None` when there
    /// are none.
    pub const fn between(start: SectorId, end: SectorId) -> Option<Self> {
        match end.distance_from(start) {
            Some(SectorCount::ZERO) | None => None,
            Some(count) => Some(Self::new(start, count)),
        }
    }

    /// `between` for numbers known to be in order.
    pub(crate) const fn span(start: u32, end: u32) -> Self {
        Self::new(SectorId::new(start), SectorCount::new(end - start))
    }

    /// The first sector.
    pub const fn start(self) -> SectorId {
        SectorId::new(self.start)
    }

    /// How many sectors.
    pub const fn count(self) -> SectorCount {
        SectorCount::new(self.count.get())
    }

    /// One past the last sector.
    pub const fn end(self) -> SectorId {
        // `new` has checked the sum
        SectorId::new(self.start + self.count.get())
    }

    /// The last sector.
    pub const fn last(self) -> SectorId {
        SectorId::new(self.start + (self.count.get() - 1))
    }

    /// Whether the sector is in this run.
    pub const fn contains(self, sector: SectorId) -> bool {
        sector.get() >= self.start && sector.get() < self.end().get()
    }

    /// Whether some sector is in both runs.
    pub const fn overlaps(self, other: Self) -> bool {
        self.start < other.end().get() && other.start < self.end().get()
    }

    /// Whether `next` begins just where this run ends, so that the two are one
    /// longer run.
    pub const fn joins(self, next: Self) -> bool {
        self.end().get() == next.start
    }

    /// Whether the two are neighbours, in either order, with no gap and no
    /// overlap.
    pub const fn touches(self, other: Self) -> bool {
        self.joins(other) || other.joins(self)
    }

    /// The sectors that both runs have.
    pub fn intersection(self, other: Self) -> Option<Self> {
        Self::between(self.start().max(other.start()), self.end().min(other.end()))
    }

    /// The first `count` sectors and the rest; `None` for a side that is empty.
    ///
    /// # Example
    ///
    /// ```
    /// use alloc_core::{Run, SectorCount, SectorId};
    ///
    /// let run = Run::new(SectorId::new(10), SectorCount::new(4));
    /// let (front, rest) = run.split_at(SectorCount::new(1));
    /// assert_eq!(front, Some(Run::single(SectorId::new(10))));
    /// assert_eq!(rest, Some(Run::new(SectorId::new(11), SectorCount::new(3))));
    /// assert_eq!(run.split_at(SectorCount::new(9)), (Some(run), None));
    /// ```
    pub fn split_at(self, count: SectorCount) -> (Option<Self>, Option<Self>) {
        let cut = SectorId::new(self.start + count.get().min(self.count.get()));
        (Self::between(self.start(), cut), Self::between(cut, self.end()))
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end().get())
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count.get() == 1 {
            write!(f, "sector {}", self.start)
        } else {
            write!(f, "sectors {} to {}", self.start, self.last().get())
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn run(start: u32, count: u32) -> Run {
        Run::new(SectorId::new(start), SectorCount::new(count))
    }

    #[test]
    fn a_run_and_an_optional_run_take_eight_bytes() {
        assert_eq!((size_of::<Run>(), size_of::<Option<Run>>()), (8, 8));
    }

    #[test]
    #[should_panic(expected = "at least one")]
    fn no_run_is_empty() {
        let _ = run(3, 0);
    }

    #[test]
    #[should_panic(expected = "u32::MAX or before")]
    fn no_run_ends_past_the_last_index() {
        let _ = run(u32::MAX, 1);
    }

    #[test]
    fn the_longest_run_has_an_end() {
        assert_eq!(run(0, u32::MAX).end(), SectorId::new(u32::MAX));
    }

    #[test]
    fn neighbours_touch_and_do_not_overlap() {
        assert!(run(3, 2).joins(run(5, 1)) && !run(5, 1).joins(run(3, 2)));
        assert!(run(5, 1).touches(run(3, 2)) && !run(3, 2).overlaps(run(5, 1)));
        assert!(run(3, 3).overlaps(run(5, 1)) && !run(3, 3).touches(run(5, 1)));
        assert_eq!(run(3, 3).intersection(run(5, 4)), Some(run(5, 1)));
        assert_eq!(run(3, 2).intersection(run(5, 4)), None);
    }

    #[test]
    fn splitting_at_an_edge_leaves_one_side_empty() {
        assert_eq!(run(3, 2).split_at(SectorCount::ZERO), (None, Some(run(3, 2))));
        assert_eq!(run(3, 2).split_at(SectorCount::new(2)), (Some(run(3, 2)), None));
        assert_eq!(run(3, 2).split_at(SectorCount::MAX), (Some(run(3, 2)), None));
    }

    #[test]
    fn words_for_people() {
        assert_eq!(format!("{} / {}", run(3, 1), run(3, 2)), "sector 3 / sectors 3 to 4");
    }
}
