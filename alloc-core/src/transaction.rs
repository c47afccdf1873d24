//! [`Transaction`]: what was taken and given back since the last commit.

use alloc::collections::BTreeMap;

use crate::{Allocator, FreeMap, Run, SectorCount, SectorId, VerifyError};

/// Disjoint runs in order, those that touch merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RunSet {
    /// Start to end.
    runs: BTreeMap<u32, u32>,
    sectors: u32,
}

impl RunSet {
    /// The first run of the set that ends after `at`.
    fn at_or_after(&self, at: u32) -> Option<(u32, u32)> {
        let before = self.runs.range(..=at).next_back().filter(|&(_, &end)| end > at);
        let run = before.or_else(|| self.runs.range(at..).next());
        run.map(|(&start, &end)| (start, end))
    }

    /// Adds a run that shares no sector with the set.
    fn insert(&mut self, run: Run) {
        let (mut start, mut end) = (run.start().get(), run.end().get());
        // The common case: what is taken follows what was taken last.
        if let Some(mut last) = self.runs.last_entry()
            && *last.get() == start
        {
            *last.get_mut() = end;
            self.sectors += end - start;
            return;
        }
        let clash = self.at_or_after(start).filter(|&(from, _)| from < end);
        assert!(clash.is_none(), "{run} is in the transaction already");
        self.sectors += end - start;
        if let Some((&before, &until)) = self.runs.range(..start).next_back()
            && until == start
        {
            start = before;
        }
        if let Some(until) = self.runs.remove(&end) {
            end = until;
        }
        self.runs.insert(start, end);
    }

    /// Removes a run, all of which is in one run of the set.
    fn remove(&mut self, run: Run) {
        let (start, end) = (run.start().get(), run.end().get());
        let (from, until) = self.at_or_after(start).expect("the run is in the set");
        debug_assert!(from <= start && end <= until, "the run is in one run of the set");
        if from < start {
            self.runs.insert(from, start);
        } else {
            self.runs.remove(&from);
        }
        if end < until {
            self.runs.insert(end, until);
        }
        self.sectors -= end - start;
    }

    fn iter(&self) -> impl Iterator<Item = Run> {
        self.runs.iter().map(|(&start, &end)| Run::span(start, end))
    }
}

/// The sectors taken and given back between two commits.
///
/// What was there at the last commit must not be overwritten before the next
/// one: a sector of that state that is given back becomes free only at the
/// commit. A sector taken since then is nobody's yet, and is free at once when
/// it is given back. After a rollback the map is as at the last commit.
///
/// O(log runs) a call; nothing is copied at a commit.
///
/// # Example
///
/// ```
/// use alloc_core::{Allocator, FreeMap, Run, SectorCount, SectorId, Transaction};
///
/// let run = |start, count| Run::new(SectorId::new(start), SectorCount::new(count));
/// let mut alloc = Allocator::new(FreeMap::new(SectorCount::new(100)));
/// let old = alloc.allocate(SectorCount::new(10), None)?;
///
/// let mut changes = Transaction::new();
/// let new = alloc.allocate(SectorCount::new(10), None)?;
/// new.runs().for_each(|run| changes.note_taken(run));
/// old.runs().for_each(|run| changes.release(&mut alloc, run));
/// assert_eq!(alloc.map().free_count(), SectorCount::new(80));
/// changes.commit(&mut alloc);
/// assert_eq!(alloc.map().free_count(), SectorCount::new(90));
/// # Ok::<(), alloc_core::NoSpace>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    taken: RunSet,
    deferred: RunSet,
}

impl Transaction {
    /// Nothing taken, nothing given back.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that `run` was taken after the last commit.
    ///
    /// # Panics
    ///
    /// When one of its sectors is noted already.
    pub fn note_taken(&mut self, run: Run) {
        self.taken.insert(run);
    }

    /// Whether the sector was taken after the last commit: it may be written
    /// in place, as nothing committed refers to it.
    pub fn is_fresh(&self, sector: SectorId) -> bool {
        self.fresh_run_at(sector).is_some()
    }

    /// The sectors around `sector` that were taken after the last commit.
    pub fn fresh_run_at(&self, sector: SectorId) -> Option<Run> {
        let (start, end) = self.taken.at_or_after(sector.get())?;
        (start <= sector.get()).then(|| Run::span(start, end))
    }

    /// `run` in pieces, each with whether it is fresh. O(log runs) a piece.
    ///
    /// # Example
    ///
    /// ```
    /// use alloc_core::{Run, SectorCount, SectorId, Transaction};
    ///
    /// let run = |start, count| Run::new(SectorId::new(start), SectorCount::new(count));
    /// let mut changes = Transaction::new();
    /// changes.note_taken(run(10, 2));
    /// let pieces: Vec<_> = changes.split(run(8, 6)).collect();
    /// assert_eq!(pieces, [(run(8, 2), false), (run(10, 2), true), (run(12, 2), false)]);
    /// ```
    pub fn split(&self, run: Run) -> impl Iterator<Item = (Run, bool)> {
        let (mut at, stop) = (run.start().get(), run.end().get());
        core::iter::from_fn(move || {
            if at == stop {
                return None;
            }
            let (start, fresh, until) = match self.taken.at_or_after(at) {
                Some((start, end)) if start <= at => (at, true, end.min(stop)),
                Some((start, _)) => (at, false, start.min(stop)),
                None => (at, false, stop),
            };
            at = until;
            Some((Run::span(start, until), fresh))
        })
    }

    /// Gives `run` back: what is fresh of it is free at once, the rest at the
    /// commit.
    ///
    /// # Panics
    ///
    /// When one of its sectors is free, or has been given back already.
    pub fn release(&mut self, alloc: &mut Allocator, run: Run) {
        let (mut at, stop) = (run.start(), run.end());
        while let Some(rest) = Run::between(at, stop) {
            let (piece, fresh) = self.split(rest).next().expect("a run has pieces");
            if fresh {
                self.taken.remove(piece);
                alloc.release(piece);
            } else {
                self.deferred.insert(piece);
            }
            at = piece.end();
        }
    }

    /// The state with all changes is the last committed one now: what was
    /// given back is free. To be called when the medium holds that state.
    pub fn commit(&mut self, alloc: &mut Allocator) {
        let done = core::mem::take(self);
        done.deferred.iter().for_each(|run| alloc.release(run));
    }

    /// The medium may hold the state with all changes, or still the last
    /// committed one: nobody knows, such as after a failed write. Both are kept
    /// from now on: what was taken is no longer fresh, and what was given back
    /// stays so until the next commit.
    ///
    /// # Example
    ///
    /// ```
    /// use alloc_core::{Allocator, FreeMap, SectorCount, Transaction};
    ///
    /// let mut alloc = Allocator::new(FreeMap::new(SectorCount::new(100)));
    /// let mut changes = Transaction::new();
    /// let chain = alloc.allocate(SectorCount::new(10), None)?;
    /// chain.runs().for_each(|run| changes.note_taken(run));
    /// changes.seal();
    /// assert!(!changes.is_fresh(chain.first().unwrap()));
    /// chain.runs().for_each(|run| changes.release(&mut alloc, run));
    /// assert_eq!(alloc.map().free_count(), SectorCount::new(90));
    /// # Ok::<(), alloc_core::NoSpace>(())
    /// ```
    pub fn seal(&mut self) {
        self.taken = RunSet::default();
    }

    /// Undoes all changes: what was taken is free, what was given back is not.
    /// What was taken before a [`seal`](Self::seal) stays.
    pub fn rollback(&mut self, alloc: &mut Allocator) {
        let undone = core::mem::take(self);
        undone.taken.iter().for_each(|run| alloc.release(run));
    }

    /// How many sectors were taken and are still held. O(1).
    pub fn taken_count(&self) -> SectorCount {
        SectorCount::new(self.taken.sectors)
    }

    /// How many sectors the commit will make free. O(1).
    pub fn deferred_count(&self) -> SectorCount {
        SectorCount::new(self.deferred.sectors)
    }

    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.taken.runs.is_empty() && self.deferred.runs.is_empty()
    }

    /// The runs taken since the last commit, ascending.
    pub fn taken(&self) -> impl Iterator<Item = Run> {
        self.taken.iter()
    }

    /// The runs the commit will make free, ascending.
    pub fn deferred(&self) -> impl Iterator<Item = Run> {
        self.deferred.iter()
    }

    /// Checks that all sectors of the transaction are used in the map, and
    /// none is both taken and given back.
    ///
    /// # Errors
    ///
    /// The first fact that does not hold.
    pub fn verify(&self, map: &FreeMap) -> Result<(), VerifyError> {
        for set in [&self.taken, &self.deferred] {
            let counted = set.iter().map(|run| run.count().get()).sum();
            if counted != set.sectors {
                let what = "sectors of a transaction";
                return Err(VerifyError::Count { what, counted, kept: set.sectors });
            }
            for run in set.iter() {
                let free = map.next_free(run.start());
                if run.end().get() > map.total().get() || free.is_some_and(|at| at < run.end()) {
                    return Err(VerifyError::NotHeld { run });
                }
            }
        }
        let both = |run: &Run| {
            self.deferred
                .at_or_after(run.start().get())
                .is_some_and(|(start, _)| start < run.end().get())
        };
        match self.taken.iter().find(both) {
            Some(run) => Err(VerifyError::TakenAndReleased { run }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u32, count: u32) -> Run {
        Run::new(SectorId::new(start), SectorCount::new(count))
    }

    fn device() -> Allocator {
        let mut alloc = Allocator::new(FreeMap::new(SectorCount::new(100)));
        alloc.take(run(0, 50));
        alloc
    }

    #[test]
    fn a_rollback_restores_the_map() {
        let mut alloc = device();
        let before = alloc.map().clone();
        let mut changes = Transaction::new();
        alloc.take(run(60, 10));
        changes.note_taken(run(60, 10));
        changes.release(&mut alloc, run(40, 10));
        changes.release(&mut alloc, run(62, 3));
        changes.verify(alloc.map()).unwrap();
        changes.rollback(&mut alloc);
        assert!(changes.is_empty());
        assert_eq!(alloc.map(), &before);
    }

    #[test]
    fn a_release_over_both_kinds_frees_the_fresh_part_at_once() {
        let mut alloc = device();
        let mut changes = Transaction::new();
        alloc.take(run(50, 4));
        changes.note_taken(run(50, 4));
        changes.release(&mut alloc, run(48, 4));
        assert_eq!((changes.taken_count().get(), changes.deferred_count().get()), (2, 2));
        assert!(alloc.map().is_free(SectorId::new(50)));
        assert!(!alloc.map().is_free(SectorId::new(49)));
        changes.commit(&mut alloc);
        assert_eq!(alloc.map().free_runs().next(), Some(run(48, 4)));
    }

    #[test]
    fn neighbours_taken_one_by_one_are_one_run() {
        let mut changes = Transaction::new();
        for at in [12, 10, 11, 14, 13] {
            changes.note_taken(run(at, 1));
        }
        assert_eq!(changes.taken().collect::<alloc::vec::Vec<_>>(), [run(10, 5)]);
        assert_eq!(changes.fresh_run_at(SectorId::new(14)), Some(run(10, 5)));
        assert!(!changes.is_fresh(SectorId::new(15)) && !changes.is_fresh(SectorId::new(9)));
    }

    #[test]
    #[should_panic(expected = "already")]
    fn nothing_is_given_back_twice() {
        let mut alloc = device();
        let mut changes = Transaction::new();
        changes.release(&mut alloc, run(10, 5));
        changes.release(&mut alloc, run(14, 1));
    }
}
