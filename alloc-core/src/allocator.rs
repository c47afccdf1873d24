//! [`Allocator`]: the policy. Which of the free sectors a request gets.

use crate::stats::FreeStats;
use crate::{Chain, FreeMap, MapError, NoSpace, Run, SectorCount, SectorId, VerifyError, Window};

/// Hands out sectors of a [`FreeMap`] so that streams stay in few runs.
///
/// A chain that grows gets, in this order, what is left of its window, the
/// free sectors right behind its last one, one run that holds the rest, and
/// else the fewest large pieces. A request is met wholly or not at all.
///
/// # Example
///
/// ```
/// use alloc_core::{Allocator, Chain, FreeMap, NoSpace, SectorCount, Window};
///
/// let mut alloc = Allocator::new(FreeMap::new(SectorCount::new(64)));
/// let mut chain = alloc.allocate(SectorCount::new(10), None)?;
/// alloc.extend(&mut chain, &mut Window::none(), SectorCount::new(20))?;
/// assert_eq!(chain.run_count(), 1);
/// let too_much = alloc.allocate(SectorCount::new(50), None).unwrap_err();
/// assert_eq!(too_much, NoSpace { wanted: SectorCount::new(50), free: SectorCount::new(34) });
/// alloc.release_chain(chain);
/// assert_eq!(alloc.map().free_count(), SectorCount::new(64));
/// # Ok::<(), NoSpace>(())
/// ```
#[derive(Clone, Debug)]
pub struct Allocator {
    map: FreeMap,
    reserved: u32,
}

/// Sectors promised to whoever holds this, wherever they will be.
///
/// Use it up with [`Allocator::allocate_reserved`] and hand the rest to
/// [`Allocator::cancel`]: if it is dropped, its sectors stay promised.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a dropped reservation stays in force; `cancel` ends it"]
pub struct Reservation {
    left: u32,
}

impl Reservation {
    /// How many sectors are still promised.
    pub const fn sector_count(&self) -> SectorCount {
        SectorCount::new(self.left)
    }
}

impl Allocator {
    /// An allocator of the map's free sectors.
    pub const fn new(map: FreeMap) -> Self {
        Self { map, reserved: 0 }
    }

    /// Which sectors are free. Sectors in windows count as used, reserved ones
    /// as free.
    pub const fn map(&self) -> &FreeMap {
        &self.map
    }

    /// `count` free sectors in a row, or `None`: see [`FreeMap::find`]. Nothing
    /// is taken, and sectors that are reserved count as free.
    ///
    /// # Panics
    ///
    /// When `count` is zero.
    ///
    /// # Example
    ///
    /// ```
    /// use alloc_core::{Allocator, FreeMap, SectorCount};
    ///
    /// let mut alloc = Allocator::new(FreeMap::new(SectorCount::new(10)));
    /// assert!(alloc.find(SectorCount::new(10), None).is_some());
    /// assert!(alloc.find(SectorCount::new(11), None).is_none());
    /// ```
    pub fn find(&mut self, count: SectorCount, goal: Option<SectorId>) -> Option<Run> {
        self.map.find(count, goal)
    }

    /// The map, without the policy. Reservations are forgotten.
    pub fn into_map(self) -> FreeMap {
        self.map
    }

    /// How many sectors can be had: free and not reserved.
    #[inline]
    pub fn available(&self) -> SectorCount {
        SectorCount::new(self.map.free_count().get().saturating_sub(self.reserved))
    }

    /// How many sectors are promised.
    pub const fn reserved(&self) -> SectorCount {
        SectorCount::new(self.reserved)
    }

    #[inline]
    fn check(&self, wanted: SectorCount) -> Result<(), NoSpace> {
        let free = self.available();
        if wanted <= free { Ok(()) } else { Err(NoSpace { wanted, free }) }
    }

    /// `count` sectors: from `goal` on if those are free, else one run that
    /// fits best, else the fewest large pieces, the longest first.
    ///
    /// # Errors
    ///
    /// [`NoSpace`] when fewer than `count` sectors are free and not reserved.
    /// Nothing is taken then.
    pub fn allocate(
        &mut self,
        count: SectorCount,
        goal: Option<SectorId>,
    ) -> Result<Chain, NoSpace> {
        self.check(count)?;
        if !count.is_zero()
            && let Some(run) = self.map.take_fit(count, goal)
        {
            return Ok(Chain::from(run));
        }
        let mut chain = Chain::new();
        self.append_elsewhere(&mut chain, count.get(), goal);
        Ok(chain)
    }

    /// As [`Allocator::allocate`], with sectors out of a reservation.
    ///
    /// # Panics
    ///
    /// When the reservation is for fewer sectors.
    pub fn allocate_reserved(
        &mut self,
        from: &mut Reservation,
        count: SectorCount,
        goal: Option<SectorId>,
    ) -> Chain {
        assert!(count <= from.sector_count(), "{count} out of {} reserved", from.sector_count());
        from.left -= count.get();
        self.reserved -= count.get();
        let mut chain = Chain::new();
        self.append_elsewhere(&mut chain, count.get(), goal);
        chain
    }

    /// At most `count` sectors out of free runs of at least `min_piece`, the
    /// longest first; less, and even none, when there are not so many. For
    /// callers that can do with part of what they want, or that would rather
    /// have the device grow than use small pieces.
    ///
    /// Every piece has at least `min_piece` sectors, except the one that
    /// completes `count`. Pieces that come to lie next to each other are one
    /// run of the chain.
    pub fn allocate_pieces(&mut self, count: SectorCount, min_piece: SectorCount) -> Chain {
        let mut chain = Chain::new();
        let mut left = count.min(self.available());
        let min_piece = min_piece.max(SectorCount::ONE);
        while !left.is_zero() {
            let piece = self.map.take_part_of_fit(left, min_piece);
            let piece = piece.or_else(|| self.map.take_longest(left, min_piece));
            let Some(piece) = piece else { break };
            left -= piece.count();
            chain.push(piece);
        }
        chain
    }

    /// Adds `count` sectors to the end of the chain: what is left of the
    /// window, then free sectors right behind the chain, then one run that
    /// fits best, then the fewest large pieces. When the window is used up and
    /// more is needed, a new one is taken behind, of the size [`Window`] says,
    /// if there is room for it.
    ///
    /// A window that does not begin where the chain ends is of no use to it;
    /// it is given back first.
    ///
    /// # Errors
    ///
    /// [`NoSpace`] when fewer than `count` sectors are in the window, or free
    /// and not reserved. Chain, window and map are as before then.
    #[inline]
    pub fn extend(
        &mut self,
        chain: &mut Chain,
        window: &mut Window,
        count: SectorCount,
    ) -> Result<(), NoSpace> {
        if window.lengthen(chain, count.get()) {
            return Ok(());
        }
        self.extend_slowly(chain, window, count)
    }

    /// `extend` where the window does not hold it all.
    fn extend_slowly(
        &mut self,
        chain: &mut Chain,
        window: &mut Window,
        count: SectorCount,
    ) -> Result<(), NoSpace> {
        let mut left = count.get();
        let free = self.available().saturating_add(window.sector_count());
        if count > free {
            return Err(NoSpace { wanted: count, free });
        }
        if let Some(start) = window.start()
            && chain.end().is_some_and(|end| end.get() != start)
        {
            self.trim(window);
        }
        if let Some(run) = window.use_up(left) {
            left -= run.count().get();
            chain.push(run);
        }
        if left > 0 {
            self.extend_beyond(chain, window, left);
        }
        Ok(())
    }

    /// The part of `extend` after the window is used up. `left` sectors are
    /// free and not reserved.
    fn extend_beyond(&mut self, chain: &mut Chain, window: &mut Window, mut left: u32) {
        // what may be taken beyond the request
        let spare = self.available().get() - left;
        let ahead = window.size_for(chain.sector_count()).get().min(spare);
        let ahead = if ahead < window.least() { 0 } else { ahead };
        if let Some(end) = chain.end() {
            // left + ahead <= available, a u32
            if let Some(run) = self.map.take_from(end, left + ahead) {
                left = share_out(chain, window, run, left);
            }
        }
        if left == 0 {
            return;
        }
        let mut ahead = ahead;
        while ahead > 0 && ahead >= window.least() {
            if let Some(run) = self.map.take_fit(SectorCount::new(left + ahead), None) {
                share_out(chain, window, run, left);
                return;
            }
            ahead /= 2;
        }
        self.append_elsewhere(chain, left, None);
    }

    /// Adds `left` free sectors to the chain: one run, else large pieces.
    fn append_elsewhere(&mut self, chain: &mut Chain, mut left: u32, goal: Option<SectorId>) {
        while left > 0 {
            let wanted = SectorCount::new(left);
            let run = self.map.take_fit(wanted, goal);
            let run = run.or_else(|| self.map.take_longest(wanted, SectorCount::ONE));
            let run = run.expect("the caller has checked that so many sectors are free");
            left -= run.count().get();
            chain.push(run);
        }
    }

    /// Gives back what is left of a window. The window can be used again.
    pub fn trim(&mut self, window: &mut Window) {
        if let Some(run) = window.take() {
            self.map.release(run);
        }
    }

    /// Gives sectors back.
    ///
    /// # Panics
    ///
    /// When one of them is free or past the end of the device.
    pub fn release(&mut self, run: Run) {
        self.map.release(run);
    }

    /// Gives all sectors of a chain back.
    ///
    /// # Panics
    ///
    /// When one of them is free or past the end of the device.
    #[expect(clippy::needless_pass_by_value, reason = "the sectors are no longer the caller's")]
    pub fn release_chain(&mut self, chain: Chain) {
        for run in chain.runs() {
            self.map.release(run);
        }
    }

    /// Takes just these sectors.
    ///
    /// # Panics
    ///
    /// When one of them is used or past the end of the device, or when so many
    /// sectors are reserved that not enough would be left.
    pub fn take(&mut self, run: Run) {
        assert!(
            run.count() <= self.available() || self.map.free_run_at(run.start()).is_none(),
            "taking {run} with {} free and {} reserved",
            self.map.free_count(),
            self.reserved(),
        );
        self.map.take(run);
    }

    /// Makes the device larger; the new sectors are free. Amortised
    /// O(sectors added / 64), also a sector at a time.
    ///
    /// # Panics
    ///
    /// When `total` is less than before.
    pub fn grow(&mut self, total: SectorCount) {
        self.map.grow(total);
    }

    /// Cuts free sectors off at the end of the device.
    ///
    /// # Errors
    ///
    /// [`MapError::InUse`] when one of them is used, [`MapError::Reserved`]
    /// when fewer than the reserved sectors would remain free. Nothing changes
    /// then.
    ///
    /// # Panics
    ///
    /// When `total` is more than before.
    pub fn shrink(&mut self, total: SectorCount) -> Result<(), MapError> {
        let cut = self.map.total() - total;
        let free = self.map.free_count().saturating_sub(cut);
        if free < self.reserved() && cut <= self.map.trailing_free() {
            return Err(MapError::Reserved { reserved: self.reserved(), free });
        }
        self.map.shrink(total)
    }

    /// Cuts all free sectors off at the end of the device, but for as many as
    /// are reserved, and gives its new size.
    pub fn shrink_to_fit(&mut self) -> SectorCount {
        let cut = self.map.trailing_free().min(self.available());
        let total = self.map.total() - cut;
        self.map.shrink(total).expect("the sectors at the end are free");
        total
    }

    /// Promises `count` sectors, wherever they will be. Costs a counter.
    ///
    /// # Errors
    ///
    /// [`NoSpace`] when fewer are free and not yet reserved.
    ///
    /// # Example
    ///
    /// ```
    /// use alloc_core::{Allocator, FreeMap, SectorCount};
    ///
    /// let mut alloc = Allocator::new(FreeMap::new(SectorCount::new(10)));
    /// let mut promise = alloc.reserve(SectorCount::new(8))?;
    /// assert!(alloc.allocate(SectorCount::new(3), None).is_err());
    /// let chain = alloc.allocate_reserved(&mut promise, SectorCount::new(5), None);
    /// alloc.cancel(promise);
    /// assert_eq!(alloc.available(), SectorCount::new(5));
    /// # Ok::<(), alloc_core::NoSpace>(())
    /// ```
    pub fn reserve(&mut self, count: SectorCount) -> Result<Reservation, NoSpace> {
        self.check(count)?;
        self.reserved += count.get();
        Ok(Reservation { left: count.get() })
    }

    /// Ends a reservation: what is left of it can be had by all again.
    ///
    /// # Panics
    ///
    /// When more is handed back than was reserved here.
    #[expect(clippy::needless_pass_by_value, reason = "the reservation ends here")]
    pub fn cancel(&mut self, reservation: Reservation) {
        let left = self.reserved.checked_sub(reservation.left);
        self.reserved = left.expect("a reservation is handed back where it was made");
    }

    /// Counts and the lengths of free runs. O(total / 64 + runs).
    pub fn stats(&self) -> FreeStats {
        FreeStats { reserved: self.reserved(), ..self.map.stats() }
    }

    /// Checks the map, and that what is promised is there.
    ///
    /// # Errors
    ///
    /// The first fact that does not hold.
    pub fn verify(&self) -> Result<(), VerifyError> {
        let (reserved, free) = (self.reserved(), self.map.free_count());
        if reserved > free {
            return Err(VerifyError::Reserved { reserved, free });
        }
        self.map.verify()
    }
}

/// Gives the chain the first `left` sectors of `run`, and the rest to the
/// window. How many the chain still lacks.
#[inline]
fn share_out(chain: &mut Chain, window: &mut Window, run: Run, left: u32) -> u32 {
    let (used, rest) = run.split_at(SectorCount::new(left));
    if let Some(used) = used {
        chain.push(used);
    }
    window.fill(rest);
    left.saturating_sub(run.count().get())
}
