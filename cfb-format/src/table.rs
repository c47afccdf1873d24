//! The FAT and the MiniFAT in memory: cells, and which sectors of them changed.

use alloc_core::{Chain, Run, SectorCount, SectorId};
use zerocopy::IntoBytes;

use crate::layout::{END_OF_CHAIN, FREE_SECTOR};

/// A table of links, one `u32` cell a sector (FAT) or mini sector (MiniFAT).
///
/// Invariants: the number of cells is a multiple of `per_sector`; a table
/// sector whose cells differ from the file's is in `changed`.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    cells: Vec<u32>,
    per_sector: u32,
    /// One bit a table sector.
    changed: BitSet,
}

impl Table {
    /// A table over cells as they stand in the file.
    pub(crate) fn new(cells: Vec<u32>, per_sector: u32) -> Self {
        assert_eq!(cells.len() % per_sector as usize, 0, "whole table sectors");
        Self { cells, per_sector, changed: BitSet::default() }
    }

    pub(crate) fn cells(&self) -> &[u32] {
        &self.cells
    }

    pub(crate) fn get(&self, sector: u32) -> Option<u32> {
        self.cells.get(sector as usize).copied()
    }

    /// Sectors that the table itself takes.
    pub(crate) fn sectors_count(&self) -> u32 {
        u32::try_from(self.cells.len()).expect("at most 2^32 cells") / self.per_sector
    }

    /// Grows the table so that it has a cell for each of `sectors_count` sectors.
    pub(crate) fn cover(&mut self, sectors_count: u32) {
        let have = self.sectors_count();
        let want = sectors_count.div_ceil(self.per_sector);
        if want > have {
            self.cells.resize(want as usize * self.per_sector as usize, FREE_SECTOR);
            self.changed.insert_range(have, want);
        }
    }

    /// Cuts the table to `table_sectors`.
    ///
    /// # Panics
    ///
    /// When a cell that is cut off is in use.
    pub(crate) fn truncate(&mut self, table_sectors: u32) {
        let keep = table_sectors as usize * self.per_sector as usize;
        debug_assert!(self.cells[keep..].iter().all(|&cell| cell == FREE_SECTOR));
        self.cells.truncate(keep);
        self.changed.truncate(table_sectors);
    }

    pub(crate) fn set(&mut self, sector: u32, value: u32) {
        if self.cells[sector as usize] != value {
            self.cells[sector as usize] = value;
            self.changed.insert(sector / self.per_sector);
        }
    }

    /// Sets every cell of a run to one value.
    pub(crate) fn fill(&mut self, run: Run, value: u32) {
        let (start, end) = (run.start().get(), run.end().get());
        self.cells[start as usize..end as usize].fill(value);
        self.mark(start, end);
    }

    /// Links `runs` in order behind the sector `after`, and ends the chain there.
    pub(crate) fn link(&mut self, after: Option<SectorId>, runs: impl Iterator<Item = Run>) {
        let mut last = after;
        for run in runs {
            let (start, end) = (run.start().get(), run.end().get());
            if let Some(last) = last {
                self.set(last.get(), start);
            }
            let cells = &mut self.cells[start as usize..end as usize];
            for (cell, next) in cells.iter_mut().zip(start + 1..) {
                *cell = next;
            }
            self.mark(start, end);
            last = Some(run.last());
        }
        if let Some(last) = last {
            self.set(last.get(), END_OF_CHAIN);
        }
    }

    /// Makes the sectors `first..first + count` of a chain, and the one before
    /// them, lead to those that follow them in the chain.
    pub(crate) fn relink(&mut self, chain: &Chain, first: u32, count: u32) {
        let total = chain.sector_count().get();
        let (from, end) = (first.saturating_sub(1), first.saturating_add(count).min(total));
        if from >= end {
            return;
        }
        // One more, which the last of them leads to.
        let until = (end + 1).min(total);
        let piece = chain.slice(SectorCount::new(from), SectorCount::new(until - from));
        let mut last: Option<SectorId> = None;
        for run in piece.runs() {
            if let Some(last) = last {
                self.set(last.get(), run.start().get());
            }
            self.link_run(run);
            last = Some(run.last());
        }
        if end == total
            && let Some(last) = last
        {
            self.set(last.get(), END_OF_CHAIN);
        }
    }

    /// Makes each sector of a run but the last lead to the next.
    fn link_run(&mut self, run: Run) {
        let (mut at, last) = (run.start().get(), run.last().get());
        while at < last {
            let table_sector = at / self.per_sector;
            let end = last.min((table_sector + 1) * self.per_sector);
            let mut differs = false;
            for (cell, next) in self.cells[at as usize..end as usize].iter_mut().zip(at + 1..) {
                differs |= *cell != next;
                *cell = next;
            }
            if differs {
                self.changed.insert(table_sector);
            }
            at = end;
        }
    }

    fn mark(&mut self, start: u32, end: u32) {
        self.changed.insert_range(start / self.per_sector, (end - 1) / self.per_sector + 1);
    }

    /// Marks a table sector as changed, such as one that moved.
    pub(crate) fn touch(&mut self, table_sector: u32) {
        self.changed.insert(table_sector);
    }

    pub(crate) fn touch_all(&mut self) {
        self.changed.insert_range(0, self.sectors_count());
    }

    pub(crate) fn changed(&self) -> &BitSet {
        &self.changed
    }

    pub(crate) fn saved(&mut self) {
        self.changed = BitSet::default();
    }

    /// Appends the bytes of `count` table sectors from `first` on.
    pub(crate) fn encode_to(&self, bytes: &mut Vec<u8>, first: u32, count: u32) {
        let per_sector = self.per_sector as usize;
        let from = first as usize * per_sector;
        let cells = &self.cells[from..from + count as usize * per_sector];
        if cfg!(target_endian = "little") {
            bytes.extend_from_slice(cells.as_bytes());
        } else {
            bytes.extend(cells.iter().flat_map(|cell| cell.to_le_bytes()));
        }
    }
}

/// Cells from a table sector's bytes.
pub(crate) fn decode_cells(bytes: &[u8], cells: &mut Vec<u32>) {
    cells.extend(
        bytes.chunks_exact(4).map(|cell| u32::from_le_bytes(cell.try_into().expect("four bytes"))),
    );
}

/// A growing set of small numbers: which sectors of a table or directory changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    pub(crate) fn insert(&mut self, bit: u32) {
        let word = bit as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (bit % 64);
    }

    pub(crate) fn insert_range(&mut self, from: u32, to: u32) {
        let (first, end) = (from as usize / 64, to.div_ceil(64) as usize);
        if from >= to {
            return;
        }
        if end > self.words.len() {
            self.words.resize(end, 0);
        }
        let mut mask = !0 << (from % 64);
        for (word, index) in self.words[first..end].iter_mut().zip(first + 1..) {
            if index == end && !to.is_multiple_of(64) {
                mask &= !(!0 << (to % 64));
            }
            *word |= mask;
            mask = !0;
        }
    }

    pub(crate) fn contains(&self, bit: u32) -> bool {
        self.words.get(bit as usize / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    pub(crate) fn truncate(&mut self, end: u32) {
        self.words.truncate(end.div_ceil(64) as usize);
        if let Some(last) = self.words.get_mut(end as usize / 64) {
            *last &= (1 << (end % 64)) - 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().zip(0_u32..).flat_map(|(&word, index)| {
            // The lowest bit goes, until none is left.
            let rest = std::iter::successors(Some(word), |&rest| Some(rest & rest.wrapping_sub(1)));
            rest.take_while(|&rest| rest != 0).map(move |rest| index * 64 + rest.trailing_zeros())
        })
    }

    /// The set as `(first, count)` of consecutive members, ascending.
    pub(crate) fn ranges(&self) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for bit in self.iter() {
            match ranges.last_mut() {
                Some((first, count)) if *first + *count == bit => *count += 1,
                _ => ranges.push((bit, 1)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use alloc_core::SectorCount;

    use super::*;

    fn run(start: u32, count: u32) -> Run {
        Run::new(SectorId::new(start), SectorCount::new(count))
    }

    #[test]
    fn linking_runs_writes_one_chain_and_marks_only_its_table_sectors() {
        let mut table = Table::new(vec![FREE_SECTOR; 512], 128);
        table.link(None, [run(3, 2), run(300, 1)].into_iter());
        assert_eq!(table.get(3), Some(4));
        assert_eq!(table.get(4), Some(300));
        assert_eq!(table.get(300), Some(END_OF_CHAIN));
        assert_eq!(table.changed().ranges(), [(0, 1), (2, 1)]);
        table.saved();
        table.link(Some(SectorId::new(300)), [run(301, 2)].into_iter());
        assert_eq!(table.get(300), Some(301));
        assert_eq!(table.get(302), Some(END_OF_CHAIN));
        assert_eq!(table.changed().ranges(), [(2, 1)]);
    }

    #[test]
    fn growing_a_table_marks_the_new_sectors() {
        let mut table = Table::new(vec![FREE_SECTOR; 128], 128);
        table.cover(129);
        assert_eq!(table.sectors_count(), 2);
        assert_eq!(table.changed().ranges(), [(1, 1)]);
        table.truncate(1);
        assert!(table.changed().is_empty());
    }

    #[test]
    fn bit_set_has_each_number_of_an_inserted_range_once() {
        for (from, to) in [(0, 0), (0, 1), (5, 64), (63, 65), (64, 128), (100, 300), (7, 7), (9, 3)]
        {
            let mut set = BitSet::default();
            set.insert_range(from, to);
            set.insert_range(from, to);
            assert!(set.iter().eq(from..to), "{from}..{to}");
            assert_eq!(set.is_empty(), from >= to);
        }
    }

    #[test]
    fn linking_again_what_is_linked_marks_nothing() {
        let mut table = Table::new(vec![FREE_SECTOR; 512], 128);
        let chain = Chain::from_runs([run(100, 100), run(300, 5)]);
        table.link(None, chain.runs());
        table.saved();
        table.relink(&chain, 0, 105);
        assert!(table.changed().is_empty());
        table.set(250, 7);
        table.set(150, 7);
        table.saved();
        table.relink(&chain, 40, 20);
        assert_eq!(table.changed().ranges(), [(1, 1)]);
        assert_eq!(table.get(150), Some(151));
    }

    #[test]
    fn bit_set_ranges_join_across_words() {
        let mut set = BitSet::default();
        set.insert_range(60, 70);
        set.insert(200);
        assert_eq!(set.ranges(), [(60, 10), (200, 1)]);
        assert!(set.contains(69) && !set.contains(70));
        set.truncate(65);
        assert_eq!(set.ranges(), [(60, 5)]);
    }
}
