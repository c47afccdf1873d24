//! Next-pointer tables as the FAT of a compound file has them: a table from
//! runs, its bytes, and from a table back to a free map and to chains.

use alloc_core::{Chain, LinkRules, Run, SectorCount, SectorId};

use crate::fill::{Fill, runs};
use crate::rng::Rng;

/// Cell of a chain's last sector. [MS-CFB] 2.1
pub const END_OF_CHAIN: u32 = 0xFFFF_FFFE;
/// Cell of a free sector. [MS-CFB] 2.1
pub const FREE: u32 = 0xFFFF_FFFF;
/// The rules of the compound file's FAT: links are at most 0xFFFFFFFA.
pub const RULES: LinkRules =
    LinkRules { end_of_chain: END_OF_CHAIN, free: FREE, first_special: 0xFFFF_FFFB };

/// A table's bytes as they lie in the file: little-endian cells.
///
/// # Panics
///
/// When `bytes` is not four times as long as `cells`.
///
/// ```
/// let mut bytes = [0; 8];
/// bench_suite::tables::encode(&[1, 0xFFFF_FFFE], &mut bytes);
/// assert_eq!(bytes, [1, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF]);
/// ```
pub fn encode(cells: &[u32], bytes: &mut [u8]) {
    assert_eq!(bytes.len(), cells.len() * 4, "four bytes a cell");
    let (chunks, _) = bytes.as_chunks_mut::<4>();
    for (chunk, cell) in chunks.iter_mut().zip(cells) {
        *chunk = cell.to_le_bytes();
    }
}

/// A table and the chains in it.
#[derive(Clone, Debug)]
pub struct Table {
    /// One cell a sector.
    pub cells: Vec<u32>,
    /// First sector and sectors of each chain.
    pub heads: Vec<(SectorId, SectorCount)>,
    /// Runs of all chains.
    pub runs: usize,
}

impl Table {
    /// The table of a device in state `fill`: every used run is cut at
    /// `longest` sectors, and each `runs_each` of the pieces, drawn at random
    /// from all over the device, form a chain.
    ///
    /// # Panics
    ///
    /// When `longest` or `runs_each` is 0.
    pub fn of(fill: &Fill, free_words: &[u64], longest: u32, runs_each: usize) -> Self {
        assert!(longest > 0 && runs_each > 0, "chains of no sectors");
        let used: Vec<u64> = free_words.iter().map(|word| !word).collect();
        let mut pieces = Vec::new();
        for (start, count) in runs(&used) {
            let mut at = start;
            while at < start + count {
                let here = longest.min(start + count - at);
                pieces.push(Run::new(SectorId::new(at), SectorCount::new(here)));
                at += here;
            }
        }
        Rng::new(17).shuffle(&mut pieces);
        let mut table =
            Self { cells: vec![FREE; fill.sectors as usize], heads: Vec::new(), runs: 0 };
        for group in pieces.chunks(runs_each) {
            let chain = Chain::from_runs(group.iter().copied());
            alloc_core::write_chain(&mut table.cells, &chain, END_OF_CHAIN);
            table.heads.push((group[0].start(), chain.sector_count()));
            table.runs += chain.run_count();
        }
        table
    }

    /// Sectors in chains.
    pub fn chained(&self) -> u64 {
        self.heads.iter().map(|(_, count)| u64::from(count.get())).sum()
    }

    /// Walks every chain and gives the sectors met.
    ///
    /// # Panics
    ///
    /// When a chain is damaged: `of` made them whole.
    pub fn walk(&self) -> u64 {
        let limit = SectorCount::new(u32::try_from(self.cells.len()).expect("a cell a sector"));
        let mut met = 0;
        for &(head, _) in &self.heads {
            let chain = alloc_core::chain_from(&self.cells, head, limit, RULES).expect("whole");
            met += u64::from(std::hint::black_box(chain).sector_count().get());
        }
        met
    }
}

impl Table {
    /// The same without a test for runs: each link is followed and each sector
    /// pushed.
    ///
    /// # Panics
    ///
    /// When a link leaves the table: `of` made them whole.
    pub fn walk_link_by_link(&self) -> u64 {
        let mut met = 0;
        for &(head, _) in &self.heads {
            let mut chain = Chain::new();
            let mut at = head.get();
            while at != END_OF_CHAIN {
                chain.push(Run::single(SectorId::new(at)));
                at = self.cells[at as usize];
            }
            met += u64::from(std::hint::black_box(chain).sector_count().get());
        }
        met
    }
}

/// Reads every cell once and nothing more: what memory allows.
pub fn read_through(cells: &[u32]) -> u32 {
    cells.iter().fold(0, |mix, cell| mix ^ cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_used_sector_is_in_one_chain() {
        let fill = Fill::clustered(1 << 16, 9_000);
        let words = fill.free_words();
        let free: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
        let table = Table::of(&fill, &words, 64, 5);
        assert_eq!(table.chained(), (1 << 16) - free);
        assert_eq!(table.walk(), table.chained());
        assert_eq!(table.walk_link_by_link(), table.chained());
        let marked = table.cells.iter().filter(|&&cell| cell == FREE).count() as u64;
        assert_eq!(marked, free);
    }

    #[test]
    fn free_words_of_a_table_are_the_words_it_was_made_from() {
        let fill = Fill::random(1 << 16, 5_000);
        let words = fill.free_words();
        let table = Table::of(&fill, &words, 64, 5);
        assert_eq!(alloc_core::free_words(&table.cells, FREE), words);
    }
}
