//! What a sector's content says about what the sector is.

use super::source::decode_entries;
use crate::layout::{
    DIFAT_SECTOR, END_OF_CHAIN, FAT_SECTOR, FREE_SECTOR, NAME_UNITS, NO_STREAM, RawDirEntry,
    TYPE_ROOT, TYPE_STORAGE, TYPE_STREAM, TYPE_UNUSED,
};

/// A sector taken as part of a table of links.
///
/// Sectors of one stream mostly follow each other, so most cells of a table
/// hold the number of the next cell. Such a cell tells which part of the table
/// it stands in: it is a vote for that part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableShape {
    pub(super) cells: u32,
    /// Cells that hold no link into the file and no mark.
    pub(super) bad: u32,
    /// The part of the table that most cells speak for, and how many do.
    pub(super) part: u32,
    pub(super) votes: u32,
    /// Cells that mark FAT or DIFAT sectors.
    pub(super) marks: u32,
    /// Cells that end a chain.
    pub(super) ends: u32,
    /// Cells that hold zero: a link to the first sector, or overwritten.
    pub(super) zeros: u32,
    pub(super) free: u32,
    /// Cells up to the last that is not free.
    pub(super) used: u32,
    /// Whether the part of the FAT that has the sector's own cell would mark
    /// the sector as the FAT's, if this were that part.
    pub(super) own_mark: bool,
}

impl TableShape {
    /// Looks at the cells of `sector`; links below `limit` are possible.
    pub(super) fn of(cells: &[u32], limit: u32, sector: u32) -> Self {
        let cells_count = u32::try_from(cells.len()).expect("a sector's cells");
        let mut shape = Self { cells: cells_count, ..Self::default() };
        // Majority vote in one pass, counted in a second one.
        let vote = |at: u32, cell: u32| {
            let ahead = cell.checked_sub(at + 1)?;
            (cell < limit && ahead.is_multiple_of(cells_count)).then_some(ahead / cells_count)
        };
        let mut lead = 0_u32;
        for (at, &cell) in (0..).zip(cells) {
            if cell != FREE_SECTOR {
                shape.used = at + 1;
            }
            match cell {
                FREE_SECTOR => shape.free += 1,
                END_OF_CHAIN => shape.ends += 1,
                FAT_SECTOR | DIFAT_SECTOR => shape.marks += 1,
                _ if cell >= limit => shape.bad += 1,
                _ => {
                    shape.zeros += u32::from(cell == 0);
                    if let Some(part) = vote(at, cell) {
                        if lead == 0 {
                            shape.part = part;
                        }
                        lead = if part == shape.part { lead + 1 } else { lead - 1 };
                    }
                }
            }
        }
        let votes = (0..).zip(cells).filter(|&(at, &cell)| vote(at, cell) == Some(shape.part));
        shape.votes = u32::try_from(votes.count()).expect("a sector's cells");
        shape.own_mark = cells.get((sector % cells_count) as usize) == Some(&FAT_SECTOR);
        shape
    }

    /// Whether the cells can be those of a table, and say something.
    pub(super) fn is_table(&self) -> bool {
        self.bad * 4 <= self.cells
            && self.zeros * 4 <= self.cells
            && self.votes + self.ends + self.marks > 0
    }

    /// Whether nothing speaks against this being part `part` of the FAT.
    pub(super) fn can_be(&self, part: u32) -> bool {
        self.is_table() && (self.part == part || self.votes < 4)
    }
}

/// A sector taken as part of the directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DirShape {
    /// Entries that are sound in every field that can be judged alone.
    pub(super) good: u32,
    /// Entries of one of the three types.
    pub(super) typed: u32,
    pub(super) blank: u32,
    /// Slots without a type that hold something: many writers leave it there.
    pub(super) unused: u32,
    pub(super) slots: u32,
    /// Whether the first entry is a root entry.
    pub(super) root: bool,
}

impl DirShape {
    pub(super) fn of(bytes: &[u8], max_slots: u32) -> Self {
        // Most sectors of a file are none of the directory: the types say so.
        let types = || bytes.chunks_exact(size_of::<RawDirEntry>()).map(|entry| entry[0x42]);
        let strange = types().filter(|&kind| kind > TYPE_ROOT && kind != 0xFF).count();
        if strange * 4 > types().count() || types().all(|kind| kind == 0) {
            return Self::default();
        }
        Self::of_entries(&decode_entries(bytes), max_slots)
    }

    pub(super) fn of_entries(entries: &[RawDirEntry], max_slots: u32) -> Self {
        let mut shape = Self::default();
        for raw in entries {
            shape.slots += 1;
            if is_typed(raw) {
                shape.typed += 1;
            }
            if is_good(raw, max_slots) {
                shape.good += 1;
            } else if is_blank(raw) {
                shape.blank += 1;
            } else if raw.object_type == TYPE_UNUSED {
                shape.unused += 1;
            }
        }
        shape.root = entries.first().is_some_and(|raw| raw.object_type == TYPE_ROOT);
        shape
    }

    /// Whether the sector can hardly be anything else; some of it may be overwritten.
    pub(super) fn is_directory(&self) -> bool {
        let bad = self.slots - self.good - self.blank - self.unused;
        self.good > 0 && bad <= self.good && bad * 4 <= self.slots
    }

    /// Whether something of a directory is there.
    pub(super) fn has_some(&self) -> bool {
        self.typed > 0 || self.blank > 0
    }
}

/// Whether the type is one of the format's.
pub(super) fn is_typed(raw: &RawDirEntry) -> bool {
    matches!(raw.object_type, TYPE_ROOT | TYPE_STORAGE | TYPE_STREAM)
}

/// Whether an entry is sound in every field that can be judged alone.
pub(super) fn is_good(raw: &RawDirEntry, max_slots: u32) -> bool {
    let link = |link: u32| link == NO_STREAM || link < max_slots;
    is_typed(raw)
        && has_name(raw)
        && raw.color <= 1
        && [raw.left, raw.right, raw.child].iter().all(|field| link(field.get()))
        && (raw.object_type != TYPE_STREAM || raw.child.get() == NO_STREAM)
}

/// Whether the name and its length agree.
pub(super) fn has_name(raw: &RawDirEntry) -> bool {
    let units = usize::from(raw.name_len.get() / 2);
    raw.name_len.get().is_multiple_of(2)
        && (2..=NAME_UNITS).contains(&units)
        && raw.name[units - 1].get() == 0
        && raw.name[..units - 1].iter().all(|unit| unit.get() != 0)
}

/// Whether a slot holds nothing, in one of the ways that writers have.
pub(super) fn is_blank(raw: &RawDirEntry) -> bool {
    let link = |link: u32| link == NO_STREAM || link == 0;
    let filled = raw.object_type == 0xFF && raw.color == 0xFF && raw.name_len.get() == 0xFFFF;
    let none = raw.object_type == TYPE_UNUSED
        && raw.name_len.get() == 0
        && raw.stream_len.get() == 0
        && [raw.left, raw.right, raw.child].iter().all(|field| link(field.get()));
    filled || none
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_run_tell_which_part_of_the_table_they_are() {
        let mut cells: Vec<u32> = (0..128).map(|at| 5 * 128 + at + 1).collect();
        cells[17] = END_OF_CHAIN;
        cells[18] = FAT_SECTOR;
        let shape = TableShape::of(&cells, 10_000, 5 * 128 + 18);
        assert_eq!((shape.part, shape.votes, shape.marks, shape.bad), (5, 126, 1, 0));
        assert!(shape.own_mark && shape.is_table() && shape.can_be(5) && !shape.can_be(4));
    }

    #[test]
    fn zeros_ones_and_noise_are_no_table() {
        let noise = (1..=128_u32).map(|n| n.wrapping_mul(0x9E37_79B9)).collect();
        for cells in [vec![0; 128], vec![u32::MAX; 128], noise] {
            assert!(!TableShape::of(&cells, 10_000, 3).is_table());
        }
    }

    #[test]
    fn zeros_ones_and_noise_are_no_directory() {
        let noise = (0..512_u32).map(|n| (n.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect();
        for bytes in [vec![0; 512], vec![0xFF; 512], noise] {
            assert!(!DirShape::of(&bytes, 1000).is_directory());
        }
    }
}
