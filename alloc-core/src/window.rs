//! [`Window`]: sectors taken ahead of a growing chain, for it alone.

use crate::{Chain, Run, SectorCount, SectorId};

/// The run ahead of a growing chain that nobody else gets.
///
/// Chains that grow in turn, a few sectors at a time, would otherwise take
/// every other sector each. A window is used up from the front by
/// [`Allocator::extend`](crate::Allocator::extend), which takes a new one of
/// the chain's own length, within the window's least and most sectors: so the
/// windows double as the chain does. While a chain grows, up to half of what
/// it holds may be window.
///
/// A window belongs to one chain. Its sectors count as used in the map. Give
/// them back with [`Allocator::trim`](crate::Allocator::trim) when the chain
/// stops growing: a window that is dropped loses its sectors until the map is
/// rebuilt.
///
/// # Example
///
/// ```
/// use alloc_core::{Allocator, Chain, FreeMap, SectorCount, Window};
///
/// let mut alloc = Allocator::new(FreeMap::new(SectorCount::new(1000)));
/// let mut chains = [(); 2].map(|()| (Chain::new(), Window::doubling()));
/// for _ in 0..64 {
///     for (chain, window) in &mut chains {
///         alloc.extend(chain, window, SectorCount::ONE)?;
///     }
/// }
/// let [(a, wa), (b, wb)] = &mut chains;
/// assert_eq!((a.run_count(), b.run_count()), (4, 4)); // 8, 8, 16 and 32 sectors
/// alloc.trim(wa);
/// alloc.trim(wb);
/// assert_eq!(alloc.map().free_count(), SectorCount::new(1000 - 128));
/// # Ok::<(), alloc_core::NoSpace>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Window {
    start: u32,
    end: u32,
    min: u32,
    max: u32,
}

impl Window {
    /// No window: the chain takes just what it asks for. Right when the final
    /// size is known.
    pub const fn none() -> Self {
        Self { start: 0, end: 0, min: 0, max: 0 }
    }

    /// Windows of 8 to 1,024 sectors.
    pub const fn doubling() -> Self {
        Self::doubling_within(SectorCount::new(8), SectorCount::new(1024))
    }

    /// Windows of `min` to `max` sectors.
    ///
    /// # Panics
    ///
    /// When `min` is more than `max`.
    pub const fn doubling_within(min: SectorCount, max: SectorCount) -> Self {
        assert!(min.get() <= max.get(), "a window's least size is at most its greatest");
        Self { start: 0, end: 0, min: min.get(), max: max.get() }
    }

    /// The sectors in the window.
    pub fn run(&self) -> Option<Run> {
        Run::between(SectorId::new(self.start), SectorId::new(self.end))
    }

    /// How many sectors are in the window.
    pub fn sector_count(&self) -> SectorCount {
        SectorCount::new(self.end - self.start)
    }

    /// How large a window a chain of `len` sectors gets.
    #[inline]
    pub fn size_for(&self, len: SectorCount) -> SectorCount {
        SectorCount::new(len.get().clamp(self.min, self.max))
    }

    /// The least useful window.
    pub(crate) fn least(&self) -> u32 {
        self.min
    }

    /// Takes `count` sectors out of the front of the window, if it has them
    /// and `chain` ends where they begin, and lengthens the chain.
    #[inline]
    pub(crate) fn lengthen(&mut self, chain: &mut Chain, count: u32) -> bool {
        let fits = count <= self.end - self.start && chain.lengthen(self.start, count);
        if fits {
            self.start += count;
        }
        fits
    }

    /// Takes up to `count` sectors out of the front of the window.
    #[inline]
    pub(crate) fn use_up(&mut self, count: u32) -> Option<Run> {
        let start = self.start;
        let taken = count.min(self.end - start);
        if taken == 0 {
            return None;
        }
        self.start += taken;
        Some(Run::span(start, self.start))
    }

    /// Where the window begins, if it is not empty.
    #[inline]
    pub(crate) fn start(&self) -> Option<u32> {
        (self.start < self.end).then_some(self.start)
    }

    /// Puts sectors into an empty window.
    #[inline]
    pub(crate) fn fill(&mut self, run: Option<Run>) {
        debug_assert!(self.start == self.end, "a window is refilled when it is used up");
        if let Some(run) = run {
            (self.start, self.end) = (run.start().get(), run.end().get());
        }
    }

    /// Empties the window.
    pub(crate) fn take(&mut self) -> Option<Run> {
        let run = self.run();
        self.start = self.end;
        run
    }
}

/// No window.
impl Default for Window {
    fn default() -> Self {
        Self::none()
    }
}
