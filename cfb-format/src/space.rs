//! Sectors that can be taken and given back: a table of links, and the free
//! map, windows and deferred frees of `alloc-core` over it.
//!
//! One `Space` manages the sectors of the file, another the mini sectors of
//! the mini stream. The table says at any time what the next save writes; a
//! sector that the saved file still uses is given out again only after that
//! save ([`Transaction`]), so what was saved stays readable until then.

use std::collections::HashMap;

use alloc_core::{
    Allocator, Chain, FreeMap, Run, SectorCount, SectorId, SectorSet, Transaction, Window,
};

use crate::error::Error;
use crate::layout::{END_OF_CHAIN, FREE_SECTOR};
use crate::table::Table;

/// Chains that begin with at most so many sectors begin behind one another.
const SMALL_SECTORS: u32 = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) table: Table,
    alloc: Allocator,
    changes: Transaction,
    /// Sectors that several chains of a damaged file claim, with the number
    /// of claims beyond the first. They are given back by the last of them.
    shared: HashMap<u32, u32>,
    /// The most sectors there may be.
    limit: u32,
    /// A sector that must never hold data; taken as soon as the space reaches it.
    pinned: Option<u32>,
    /// Where the first sectors of new chains come from while there are no
    /// holes to fill: they follow each other, and cost no search.
    ahead: Window,
    /// Where metadata goes next, so that what one save writes lies together.
    near: Option<SectorId>,
}

impl Space {
    /// A space of `total` sectors. `claims` are the runs of every chain; a
    /// sector is free when nobody claims it and the table says so, or does not
    /// cover it, or the sector is not before `end`: there cells describe
    /// nothing that exists.
    pub(crate) fn new(
        mut table: Table,
        total: u32,
        end: u32,
        limit: u32,
        pinned: Option<u32>,
        claims: impl Iterator<Item = Run>,
    ) -> Self {
        let mut claimed = SectorSet::new(SectorCount::new(total));
        let mut shared = HashMap::new();
        for run in claims {
            if claimed.first_common(run).is_none() {
                claimed.insert_run(run);
                continue;
            }
            for sector in run.start().get()..run.end().get() {
                let single = Run::single(SectorId::new(sector));
                if claimed.contains(single.start()) {
                    *shared.entry(sector).or_insert(0) += 1;
                }
                claimed.insert_run(single);
            }
        }
        let cells_count = u32::try_from(table.cells().len()).expect("cells are numbered by u32");
        for sector in end.min(total)..cells_count {
            if sector >= total || !claimed.contains(SectorId::new(sector)) {
                table.set(sector, FREE_SECTOR);
            }
        }
        if let Some(pinned) = pinned.filter(|&pinned| pinned < total) {
            claimed.insert_run(Run::single(SectorId::new(pinned)));
        }
        let words = free_words(&table, &claimed);
        let map = FreeMap::from_free_words(SectorCount::new(total), words);
        let mut space = Self {
            table,
            alloc: Allocator::new(map),
            changes: Transaction::new(),
            shared,
            limit,
            pinned,
            ahead: Window::doubling_within(SectorCount::new(64), SectorCount::new(1024)),
            near: None,
        };
        space.pin();
        space
    }

    /// Sectors that the space spans, free ones at its end included.
    pub(crate) fn total(&self) -> u32 {
        self.alloc.map().total().get()
    }

    /// One more than the last sector in use or to be freed at the next save.
    /// The pinned sector counts only when something lies behind it.
    pub(crate) fn used_end(&self) -> u32 {
        let map = self.alloc.map();
        let end = map.total().get() - map.trailing_free().get();
        match self.pinned {
            Some(pinned) if end == pinned + 1 => {
                let before = map.free_run_at(SectorId::new(pinned.saturating_sub(1)));
                before.map_or(pinned, |run| run.start().get())
            }
            _ => end,
        }
    }

    pub(crate) fn map(&self) -> &FreeMap {
        self.alloc.map()
    }

    fn pin(&mut self) {
        if let Some(pinned) = self.pinned
            && pinned < self.total()
        {
            let run = Run::single(SectorId::new(pinned));
            if self.alloc.map().is_free(run.start()) {
                self.alloc.take(run);
            }
            self.table.cover(pinned + 1);
            self.table.set(pinned, END_OF_CHAIN);
        }
    }

    /// By how many sectors the space must grow so that `count` can be had in
    /// one run; zero when they can be had already.
    fn missing(&mut self, count: u32) -> u32 {
        let behind = self.alloc.map().trailing_free().get();
        let there = behind >= count || self.alloc.find(SectorCount::new(count), None).is_some();
        if there { 0 } else { count - behind }
    }

    /// Grows the space by `count` sectors, or as many as its limit allows.
    pub(crate) fn grow(&mut self, count: u32) {
        if count == 0 {
            return;
        }
        let total = self.total();
        let mut want = total.saturating_add(count);
        if let Some(pinned) = self.pinned
            && (total..want).contains(&pinned)
        {
            // What is wanted in one run goes behind the pinned sector.
            want = (pinned + 1).saturating_add(count);
        }
        self.alloc.grow(SectorCount::new(want.min(self.limit)));
        self.pin();
    }

    /// By how many sectors the space must grow before
    /// [`extend`](Self::extend), so that it finds `count` sectors, and what its
    /// window is to hold, in one run.
    pub(crate) fn missing_for(&mut self, chain: &Chain, window: &Window, count: u32) -> u32 {
        let window = if self.follows_ahead(chain, count) { &self.ahead } else { window };
        if window.sector_count().get() >= count {
            return 0;
        }
        self.missing(count.saturating_add(window.size_for(chain.sector_count()).get()))
    }

    /// Takes `count` sectors as a new chain and links them: one run, for which
    /// the space grows where it has none.
    ///
    /// # Errors
    ///
    /// [`Error::FileFull`]; nothing is taken then.
    pub(crate) fn allocate(&mut self, count: u32) -> Result<Chain, Error> {
        let mut chain = Chain::default();
        self.lengthen(&mut chain, count)?;
        Ok(chain)
    }

    /// Adds `count` sectors to a chain that is not a stream's.
    ///
    /// # Errors
    ///
    /// [`Error::FileFull`]; the chain is unchanged then.
    pub(crate) fn lengthen(&mut self, chain: &mut Chain, count: u32) -> Result<(), Error> {
        let missing = self.missing(count);
        self.grow(missing);
        self.add(chain, &mut Window::none(), count)
    }

    /// Takes `count` sectors as low as one free run can hold them, linked as a chain; `None`
    /// when no free run before `before` holds them all.
    pub(crate) fn allocate_below(&mut self, count: u32, before: u32) -> Option<Chain> {
        let map = self.alloc.map();
        let run = map
            .free_runs()
            .take_while(|run| run.start().get() < before)
            .find(|run| run.count().get() >= count && run.start().get() + count <= before)?;
        Some(self.take_run(Run::new(run.start(), SectorCount::new(count))))
    }

    /// Takes a free run as a chain of its own.
    ///
    /// # Panics
    ///
    /// When a sector of it is not free.
    pub(crate) fn take_run(&mut self, run: Run) -> Chain {
        self.alloc.take(run);
        self.changes.note_taken(run);
        self.table.cover(run.end().get());
        self.table.link(None, std::iter::once(run));
        Chain::from_runs([run])
    }

    /// Adds `count` sectors to a chain and links them. Whoever calls has grown
    /// the space by what is [`missing`](Self::missing_for).
    ///
    /// # Errors
    ///
    /// [`Error::FileFull`]; the chain is unchanged then.
    pub(crate) fn extend(
        &mut self,
        chain: &mut Chain,
        window: &mut Window,
        count: u32,
    ) -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        if !self.follows_ahead(chain, count) {
            return self.add(chain, window, count);
        }
        let mut ahead = std::mem::replace(&mut self.ahead, Window::none());
        let added = self.add(chain, &mut ahead, count);
        self.ahead = ahead;
        added
    }

    /// Whether the next sectors of a chain come from those held for new
    /// chains: of one that begins, or that grew out of them last.
    fn follows_ahead(&self, chain: &Chain, count: u32) -> bool {
        match chain.end() {
            None => count <= SMALL_SECTORS && self.has_no_holes(),
            Some(end) => self.ahead.run().is_some_and(|run| run.start() == end),
        }
    }

    fn add(&mut self, chain: &mut Chain, window: &mut Window, count: u32) -> Result<(), Error> {
        let before = chain.sector_count();
        let last = chain.last();
        self.alloc.extend(chain, window, SectorCount::new(count)).map_err(|no_space| {
            Error::FileFull {
                wanted: no_space.wanted.get().into(),
                available: no_space.free.get().into(),
            }
        })?;
        let mut note = |run: Run| {
            self.table.cover(run.end().get());
            self.changes.note_taken(run);
        };
        let first_new = chain.locate(before).expect("sectors were added");
        if first_new.count().get() == count {
            note(first_new);
            self.table.link(last, std::iter::once(first_new));
        } else {
            let added = chain.slice(before, SectorCount::new(count));
            added.runs().for_each(&mut note);
            self.table.link(last, added.runs());
        }
        Ok(())
    }

    /// Whether all that is free lies at the end.
    fn has_no_holes(&self) -> bool {
        let map = self.alloc.map();
        map.run_count() <= 1 && map.trailing_free() == map.free_count()
    }

    /// Gives back what is held for new chains.
    pub(crate) fn trim_ahead(&mut self) {
        self.alloc.trim(&mut self.ahead);
    }

    /// Gives back what a window holds ahead of its chain.
    pub(crate) fn trim(&mut self, window: &mut Window) {
        self.alloc.trim(window);
    }

    /// Cuts a chain to its first `keep` sectors and gives the rest back.
    pub(crate) fn truncate(&mut self, chain: &mut Chain, keep: u32) {
        if keep >= chain.sector_count().get() {
            return;
        }
        let rest = chain.truncate(SectorCount::new(keep));
        if let Some(last) = chain.last() {
            self.table.set(last.get(), END_OF_CHAIN);
        }
        self.release(&rest);
    }

    /// Gives a chain's sectors back: at once those that the saved file does
    /// not use, the rest at the next save.
    pub(crate) fn release(&mut self, chain: &Chain) {
        for run in chain.runs() {
            if self.shared.is_empty() {
                self.release_run(run);
                continue;
            }
            for sector in run.start().get()..run.end().get() {
                match self.shared.get_mut(&sector) {
                    Some(1) => drop(self.shared.remove(&sector)),
                    Some(claims) => *claims -= 1,
                    None => self.release_run(Run::single(SectorId::new(sector))),
                }
            }
        }
    }

    fn release_run(&mut self, run: Run) {
        self.table.fill(run, FREE_SECTOR);
        self.changes.release(&mut self.alloc, run);
    }

    /// Whether several chains claim a sector of this run.
    pub(crate) fn is_shared(&self, run: Run) -> bool {
        !self.shared.is_empty()
            && (run.start().get()..run.end().get()).any(|sector| self.shared.contains_key(&sector))
    }

    /// Whether any sector is claimed by several chains.
    pub(crate) fn has_claims(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Whether a chain has a sector that another chain claims as well.
    pub(crate) fn has_shared(&self, chain: &Chain) -> bool {
        !self.shared.is_empty() && chain.runs().any(|run| self.is_shared(run))
    }

    /// Marks the sectors of FAT and DIFAT in the table.
    pub(crate) fn mark(&mut self, sector: SectorId, mark: u32) {
        self.table.cover(sector.get() + 1);
        self.table.set(sector.get(), mark);
    }

    /// Whether a sector was taken since the last save: nothing that was saved
    /// refers to it.
    pub(crate) fn is_fresh(&self, sector: SectorId) -> bool {
        self.changes.is_fresh(sector)
    }

    /// A run in pieces, each with whether it is fresh.
    pub(crate) fn split_fresh(&self, run: Run) -> impl Iterator<Item = (Run, bool)> + '_ {
        self.changes.split(run)
    }

    /// Of the sectors `first..end` of a chain those from the first to the last
    /// that are not fresh, as first and count.
    pub(crate) fn stale_in(&self, chain: &Chain, first: u32, end: u32) -> Option<(u32, u32)> {
        let piece = chain.slice(SectorCount::new(first), SectorCount::new(end - first));
        let mut at = first;
        let mut stale: Option<(u32, u32)> = None;
        for (run, fresh) in piece.runs().flat_map(|run| self.changes.split(run)) {
            let next = at + run.count().get();
            if !fresh {
                let start = stale.map_or(at, |(start, _)| start);
                stale = Some((start, next - start));
            }
            at = next;
        }
        stale
    }

    /// How many sectors of a chain from the `at`th on lie in one run, none of them fresh.
    pub(crate) fn stale_from(&self, chain: &Chain, at: u32) -> u32 {
        let Some(run) = chain.locate(SectorCount::new(at)) else { return 0 };
        match self.changes.split(run).next() {
            Some((piece, false)) => piece.count().get(),
            _ => 0,
        }
    }

    /// Takes `count` sectors as a chain of its own, from `goal` on if those are free.
    ///
    /// # Errors
    ///
    /// [`Error::FileFull`]; nothing is taken then.
    pub(crate) fn allocate_at(
        &mut self,
        count: u32,
        goal: Option<SectorId>,
    ) -> Result<Chain, Error> {
        let map = self.alloc.map();
        let free_from =
            |goal: SectorId| map.free_run_at(goal).map_or(0, |run| run.end().get() - goal.get());
        match goal.filter(|&goal| free_from(goal) >= count) {
            Some(goal) => Ok(self.take_run(Run::new(goal, SectorCount::new(count)))),
            None => self.allocate(count),
        }
    }

    /// Finds `count` free sectors in a row for what [`allocate_near`](Self::allocate_near)
    /// takes next; none for zero.
    pub(crate) fn aim(&mut self, count: u32) {
        self.near = None;
        if count > 0 {
            let missing = self.missing(count);
            self.grow(missing);
            let found = self.alloc.find(SectorCount::new(count), None);
            self.near = found.map(Run::start);
        }
    }

    /// Takes `count` sectors as a chain of its own, behind those that it took last
    /// if those are free.
    ///
    /// # Errors
    ///
    /// [`Error::FileFull`]; nothing is taken then.
    pub(crate) fn allocate_near(&mut self, count: u32) -> Result<Chain, Error> {
        let chain = self.allocate_at(count, self.near)?;
        self.near = chain.end();
        Ok(chain)
    }

    /// Nobody knows whether the file has been saved: what it used before and
    /// what it would use now are both kept.
    pub(crate) fn seal(&mut self) {
        self.changes.seal();
    }

    /// The file has been saved: what it no longer uses becomes free.
    pub(crate) fn saved(&mut self) {
        self.changes.commit(&mut self.alloc);
        self.table.saved();
    }

    /// Whether the pinned sector lies behind all that is in use.
    pub(crate) fn has_idle_pin(&self) -> bool {
        let end = self.used_end();
        self.pinned.is_some_and(|pinned| end <= pinned && pinned < self.total())
    }

    /// Cuts the free end off.
    pub(crate) fn shrink(&mut self) {
        self.trim_ahead();
        let end = self.used_end();
        if self.has_idle_pin() {
            let pinned = Run::single(SectorId::new(self.pinned.expect("just seen")));
            self.table.set(pinned.start().get(), FREE_SECTOR);
            self.alloc.release(pinned);
        }
        self.alloc.shrink(SectorCount::new(end)).expect("only free sectors are cut off");
    }

    /// Checks the allocator against the table.
    #[cfg(test)]
    pub(crate) fn verify(&self) -> Result<(), String> {
        self.alloc.verify().map_err(|error| error.to_string())?;
        let map = self.alloc.map();
        for run in map.free_runs() {
            for sector in run.start().get()..run.end().get() {
                if self.table.get(sector).is_some_and(|cell| cell != FREE_SECTOR) {
                    return Err(format!("sector {sector} is free in the map and not in the table"));
                }
            }
        }
        Ok(())
    }
}

/// The words of a free map: of all sectors that are free by the table, or that
/// it does not cover, those that nobody claims.
fn free_words(table: &Table, claimed: &SectorSet) -> Vec<u64> {
    let cells = table.cells();
    let covered = cells.len().min(claimed.total().get() as usize);
    let mut words = alloc_core::free_words(&cells[..covered], FREE_SECTOR);
    if let Some(last) = words.last_mut().filter(|_| !covered.is_multiple_of(64)) {
        *last |= !0 << (covered % 64);
    }
    words.resize(claimed.words().len(), !0);
    for (word, claimed) in words.iter_mut().zip(claimed.words()) {
        *word &= !claimed;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u32, count: u32) -> Run {
        Run::new(SectorId::new(start), SectorCount::new(count))
    }

    /// Ten sectors, one chain of three in them.
    fn space() -> (Space, Chain) {
        let mut table = Table::new(vec![FREE_SECTOR; 128], 128);
        table.link(None, [run(2, 3)].into_iter());
        let space = Space::new(table, 10, 10, 1000, None, [run(2, 3)].into_iter());
        (space, Chain::from_runs([run(2, 3)]))
    }

    #[test]
    fn what_the_saved_file_uses_is_free_only_after_the_save() {
        let (mut space, chain) = space();
        space.release(&chain);
        assert_eq!(space.map().free_count().get(), 7);
        let other = space.allocate(4).unwrap();
        assert!(!other.runs().any(|run| run.overlaps(chain.runs().next().unwrap())));
        space.saved();
        assert_eq!(space.map().free_count().get(), 6);
        space.verify().unwrap();
    }

    #[test]
    fn what_was_taken_since_the_save_is_free_at_once() {
        let (mut space, _) = space();
        let chain = space.allocate(5).unwrap();
        space.release(&chain);
        assert_eq!(space.map().free_count().get(), 7);
        space.verify().unwrap();
    }

    #[test]
    fn space_grows_rather_than_splitting_a_chain() {
        let (mut space, _) = space();
        let chain = space.allocate(6).unwrap();
        assert_eq!(chain.run_count(), 1);
        assert_eq!(space.total(), 11, "five sectors were free at the end");
        space.verify().unwrap();
    }

    #[test]
    fn chains_that_begin_small_lie_behind_one_another_and_grow_in_place() {
        let mut space = Space::new(Table::new(Vec::new(), 128), 0, 0, 1000, None, [].into_iter());
        let mut chains = [(); 3].map(|()| Chain::default());
        for chain in &mut chains {
            let mut window = Window::none();
            let missing = space.missing_for(chain, &window, 3);
            space.grow(missing);
            space.extend(chain, &mut window, 3).unwrap();
        }
        space.extend(&mut chains[2], &mut Window::none(), 2).unwrap();
        let runs: Vec<Run> = chains.iter().flat_map(Chain::runs).collect();
        assert_eq!(runs, [run(0, 3), run(3, 3), run(6, 5)]);
        space.shrink();
        assert_eq!((space.total(), space.used_end()), (11, 11), "nothing is held back");
        space.verify().unwrap();
    }

    #[test]
    fn full_space_says_how_much_is_missing_and_takes_nothing() {
        let (mut space, mut chain) = space();
        let missing = space.missing_for(&chain, &Window::none(), 1000);
        space.grow(missing);
        let error = space.extend(&mut chain, &mut Window::none(), 1000).unwrap_err();
        assert!(matches!(error, Error::FileFull { wanted: 1000, available: 997 }));
        assert_eq!(chain.sector_count().get(), 3);
        space.verify().unwrap();
    }

    #[test]
    fn sectors_are_free_that_neither_the_table_nor_a_chain_has() {
        // Tables of two sectors, of spaces that end within, at and behind them.
        for total in [1, 63, 64, 100, 255, 256, 300, 384] {
            let cells: Vec<u32> =
                (0..256).map(|i| if i % 7 < 3 { FREE_SECTOR } else { i + 1 }).collect();
            let claim = run(total / 2, total.div_ceil(8));
            let pinned = 250;
            let table = Table::new(cells.clone(), 128);
            let claims = [claim].into_iter();
            let space = Space::new(table, total, total, 1000, Some(pinned), claims);
            for sector in 0..total + 70 {
                let cell = cells.get(sector as usize).is_none_or(|&cell| cell == FREE_SECTOR);
                let taken = claim.contains(SectorId::new(sector)) || sector == pinned;
                let free = sector < total && cell && !taken;
                assert_eq!(space.map().is_free(SectorId::new(sector)), free, "{sector} of {total}");
            }
            space.verify().unwrap();
        }
    }

    #[test]
    fn shared_sector_is_given_back_by_the_last_chain_that_has_it() {
        let mut table = Table::new(vec![FREE_SECTOR; 128], 128);
        table.link(None, [run(0, 4)].into_iter());
        let claims = [run(0, 4), run(2, 2)];
        let mut space = Space::new(table, 4, 4, 1000, None, claims.into_iter());
        assert!(space.has_shared(&Chain::from_runs([run(3, 1)])));
        space.release(&Chain::from_runs([run(0, 4)]));
        space.saved();
        assert_eq!(space.map().free_count().get(), 2);
        assert!(!space.has_shared(&Chain::from_runs([run(2, 2)])));
        space.release(&Chain::from_runs([run(2, 2)]));
        space.saved();
        assert_eq!(space.map().free_count().get(), 4);
        space.verify().unwrap();
    }

    #[test]
    fn pinned_sector_never_holds_data_and_leaves_with_the_end() {
        let table = Table::new(Vec::new(), 128);
        let mut space = Space::new(table, 0, 0, 1000, Some(5), std::iter::empty());
        let chain = space.allocate(8).unwrap();
        assert!(!chain.runs().any(|run| run.contains(SectorId::new(5))));
        assert_eq!(space.table.get(5), Some(END_OF_CHAIN));
        assert_eq!(space.used_end(), 14);
        space.release(&chain);
        space.shrink();
        assert_eq!((space.total(), space.table.get(5)), (0, Some(FREE_SECTOR)));
        space.verify().unwrap();
    }
}
