//! Finding the FAT: where the DIFAT says, and where that is wrong, by content.

use super::links::UNKNOWN;
use super::shape::{DirShape, TableShape};
use super::source::{Source, TableLike};
use crate::error::Error;
use crate::finding::{Finding, FindingCode};
use crate::header::Header;
use crate::layout::{DIFAT_SECTOR, END_OF_CHAIN, FAT_SECTOR, FREE_SECTOR, HEADER_DIFAT_LEN};
use crate::storage::Storage;

/// The FAT as far as it was found.
pub(super) struct Fat {
    /// One cell a sector; [`UNKNOWN`] where the file does not say.
    pub(super) cells: Vec<u32>,
    /// Sectors of the FAT and the DIFAT: nobody else's.
    pub(super) own: Vec<u32>,
    /// FAT sectors that mark themselves as such: evidence of a compound file.
    pub(super) marked_count: u32,
    /// Sectors for which another sector, which could be the same part, has
    /// another cell: one of the two is from an earlier state of the file.
    pub(super) contested: Vec<u32>,
}

/// One part of the FAT: a sector's worth of cells.
#[derive(Clone, Copy)]
struct Part {
    sector: u32,
    shape: TableShape,
}

/// Reads the FAT of a file whose header may be wrong.
///
/// The DIFAT is believed where the sectors that it names look like the FAT. For
/// the others the file is looked through: a FAT sector is one that marks itself
/// as such, or is marked so by a part that was found before, and whose links
/// speak for the part that is missing.
pub(super) fn find<S: Storage + ?Sized>(
    source: &Source<'_, S>,
    header: &Header,
    findings: &mut Vec<Finding>,
) -> Result<Fat, Error> {
    let per_sector = source.geometry.cells_per_sector();
    let enough = source.sectors.div_ceil(per_sector);
    let Difat { named, mut own, promised, .. } = read_difat(source, header, enough, findings)?;

    // A cut file has parts for sectors that are gone.
    let limit = (promised.max(enough)).saturating_mul(per_sector);
    let mut parts: Vec<Option<Part>> = Vec::new();
    for &sector in &named {
        parts.push(match sector {
            Some(sector) => {
                let cells = source.cells(sector, "reading the FAT")?;
                Some(Part { sector, shape: TableShape::of(&cells, limit, sector) })
            }
            None => None,
        });
    }
    // Behind the parts that the file needs, only what is one counts: the rest of a cut file.
    let needed = parts.len().min(enough as usize);
    let more = parts[needed..].iter();
    let more = more.take_while(|found| found.is_some_and(|found| found.shape.is_table())).count();
    parts.truncate(needed + more);
    parts.resize(parts.len().max(enough as usize), None);

    let trusted = |part: u32, found: &Option<Part>| {
        found.is_some_and(|found| {
            let own = found.sector / per_sector != part || found.shape.own_mark;
            // A header of zeros names the first sector, whatever is in it.
            found.shape.can_be(part) && own && header.fat_sectors_count > 0
        })
    };
    let doubtful: Vec<u32> = (0..)
        .zip(&parts)
        .filter(|(part, found)| !trusted(*part, found))
        .map(|(part, _)| part)
        .collect();
    let named = parts.clone();
    let rivals =
        if doubtful.is_empty() { Vec::new() } else { search(source, &mut parts, &doubtful)? };

    let mut cells = Vec::with_capacity(parts.len() * per_sector as usize);
    let mut marked_count = 0;
    for (part, found) in (0_u32..).zip(&parts) {
        let from = cells.len();
        if let Some(found) = found {
            own.push(found.sector);
            marked_count += u32::from(found.shape.own_mark && found.shape.can_be(part));
            cells.extend(source.cells(found.sector, "reading the FAT")?);
        } else {
            findings.push(Finding::new(FindingCode::FatUnreadable).found(part));
            cells.resize(from + per_sector as usize, UNKNOWN);
        }
    }
    let limit = u32::try_from(cells.len()).unwrap_or(u32::MAX);
    let mut bad = None;
    for (sector, cell) in (0_u32..).zip(&mut cells) {
        let mark = matches!(*cell, FREE_SECTOR | END_OF_CHAIN | FAT_SECTOR | DIFAT_SECTOR);
        if !mark && *cell >= limit {
            if *cell != UNKNOWN && sector < source.sectors {
                bad = bad.or(Some((sector, *cell)));
            }
            *cell = UNKNOWN;
        }
    }
    if let Some((sector, cell)) = bad {
        findings.push(Finding::new(FindingCode::FatBadCell).at_sector(sector).found(cell));
    }
    own.sort_unstable();
    own.dedup();
    let mut contested = Vec::new();
    for (part, sector) in rivals {
        // A sector that some chain goes through is the MiniFAT's.
        if !matches!(cells[sector as usize], FREE_SECTOR | FAT_SECTOR | UNKNOWN) {
            continue;
        }
        let theirs = source.cells(sector, "reading the FAT")?;
        let first = part * per_sector;
        let both = (first..).zip(theirs).zip(&cells[first as usize..]);
        contested.extend(both.filter(|((_, a), b)| a != *b).map(|((unit, _), _)| unit));
    }
    // Where a whole DIFAT names a sector that is overwritten, what was found in its
    // place is of an earlier state.
    let all_named = named.iter().flatten().count() == header.fat_sectors_count as usize;
    for (part, (named, found)) in (0..).zip(named.iter().zip(&parts)) {
        let other = named.is_some_and(|named| found.is_none_or(|it| it.sector != named.sector));
        if all_named && other {
            contested.extend(part * per_sector..(part + 1) * per_sector);
        }
    }
    Ok(Fat { cells, own, marked_count, contested })
}

/// What the header and the DIFAT sectors name.
struct Difat {
    /// The sector of each part of the FAT, as far as it is one of the file.
    named: Vec<Option<u32>>,
    /// Free entries behind those, which count if others follow.
    holes: usize,
    /// Sectors of the DIFAT.
    own: Vec<u32>,
    /// Parts that the DIFAT names in a row, in the file or past its end.
    promised: u32,
}

/// Follows the DIFAT as far as it makes sense. [MS-CFB] 2.5
fn read_difat<S: Storage + ?Sized>(
    source: &Source<'_, S>,
    header: &Header,
    enough: u32,
    findings: &mut Vec<Finding>,
) -> Result<Difat, Error> {
    let mut seen = vec![false; source.sectors as usize];
    let mut difat = Difat { named: Vec::new(), holes: 0, own: Vec::new(), promised: 0 };
    let promised = header.fat_sectors_count.max(enough) as usize;
    let mut take = |entries: &[u32], difat: &mut Difat, findings: &mut Vec<Finding>| {
        for &entry in entries {
            if difat.named.len() + difat.holes >= promised {
                break;
            }
            if entry == FREE_SECTOR {
                // Overwritten if others follow, else the end.
                difat.holes += 1;
                continue;
            }
            difat.named.resize(difat.named.len() + difat.holes, None);
            difat.holes = 0;
            let place = seen.get_mut(entry as usize);
            let is_new = place.as_deref() == Some(&false);
            if !is_new {
                let code = if place.is_some() {
                    FindingCode::DifatRepeated
                } else {
                    FindingCode::DifatEntry
                };
                findings.push(Finding::new(code).found(entry));
                difat.named.push(None);
                continue;
            }
            seen[entry as usize] = true;
            difat.named.push(Some(entry));
        }
    };
    take(&header.difat, &mut difat, findings);
    let mut next = header.first_difat_sector;
    let mut visited = vec![false; source.sectors as usize];
    while next < source.sectors && !std::mem::replace(&mut visited[next as usize], true) {
        if difat.named.len() >= promised {
            break;
        }
        let mut cells = source.cells(next, "reading the DIFAT")?;
        let link = cells.pop().expect("a DIFAT sector has cells");
        if !can_be_difat(&cells, source.sectors)
            || DirShape::of_entries(&source.entries(next)?, source.max_slots()).good > 0
        {
            break;
        }
        let before = HEADER_DIFAT_LEN + difat.own.len() * cells.len();
        difat.named.resize(difat.named.len().max(before.min(promised)), None);
        difat.holes = 0;
        difat.own.push(next);
        take(&cells, &mut difat, findings);
        next = link;
    }
    let complete = difat.named.len() >= enough as usize;
    if !complete {
        let finding = Finding::new(FindingCode::DifatChain).found(next);
        findings.push(match difat.own.last() {
            Some(&last) => finding.at_sector(last),
            None => finding,
        });
    }
    while difat.named.last().is_some_and(Option::is_none) && difat.named.len() > enough as usize {
        difat.named.pop();
    }
    difat.promised = u32::try_from(difat.named.len()).unwrap_or(u32::MAX);
    Ok(difat)
}

/// Whether a sector can be one of the DIFAT: sectors of the file, then padding.
fn can_be_difat(cells: &[u32], sectors: u32) -> bool {
    let named = cells.iter().filter(|&&cell| 0 < cell && cell < sectors).count();
    let padding = cells.iter().filter(|&&cell| cell >= FAT_SECTOR || cell == 0).count();
    named > 0 && (named + padding) * 4 >= cells.len() * 3
}

/// Looks through the file for the parts that the DIFAT does not give; gives
/// those for which there are several sectors, with the others.
fn search<S: Storage + ?Sized>(
    source: &Source<'_, S>,
    parts: &mut [Option<Part>],
    doubtful: &[u32],
) -> Result<Vec<(u32, u32)>, Error> {
    let mut search = Search {
        source,
        tables: &source.scan()?.tables,
        known: parts.to_vec(),
        taken: vec![false; source.sectors as usize],
        marked: vec![false; source.sectors as usize],
        read: vec![false; parts.len()],
        doubtful: vec![false; parts.len()],
        rivals: Vec::new(),
    };
    for &part in doubtful {
        search.known[part as usize] = None;
        search.doubtful[part as usize] = true;
    }
    for found in search.known.iter().flatten() {
        search.taken[found.sector as usize] = true;
    }
    search.add_self_marked()?;
    search.add_marked()?;
    search.add_named(parts)?;
    search.add_likely()?;
    search.add_marked()?;
    search.add_left()?;
    search.add_rivals();
    parts.copy_from_slice(&search.known);
    Ok(search.rivals)
}

/// Parts of the FAT that were found, by what speaks for them.
struct Search<'a, S: ?Sized> {
    source: &'a Source<'a, S>,
    tables: &'a [TableLike],
    known: Vec<Option<Part>>,
    /// Sectors that are one of the known parts.
    taken: Vec<bool>,
    /// Sectors that a known part marks as the FAT's.
    marked: Vec<bool>,
    /// Parts whose marks are in `marked`.
    read: Vec<bool>,
    /// Parts that the DIFAT does not give.
    doubtful: Vec<bool>,
    /// Parts and the sectors that could be them as well.
    rivals: Vec<(u32, u32)>,
}

impl<S: Storage + ?Sized> Search<'_, S> {
    /// Takes a table as one part, unless either is settled already.
    fn take(&mut self, sector: u32, part: u32, shape: TableShape) -> bool {
        let vacant = self.known.get(part as usize).is_some_and(Option::is_none)
            && !self.taken[sector as usize];
        if vacant {
            self.known[part as usize] = Some(Part { sector, shape });
            self.taken[sector as usize] = true;
        }
        vacant
    }

    /// Those that mark themselves and speak for the part that has their own cell.
    fn add_self_marked(&mut self) -> Result<(), Error> {
        let per_sector = self.source.geometry.cells_per_sector();
        let own = |table: &&TableLike| {
            table.shape.own_mark && table.shape.can_be(table.sector / per_sector)
        };
        let mut tables: Vec<_> = self.tables.iter().filter(own).collect();
        // What marks most of the FAT knows best which sectors those are.
        tables.sort_by_key(|table| std::cmp::Reverse((table.shape.marks, table.shape.votes)));
        let mut asked = 0;
        for table in tables {
            let part = table.sector / per_sector;
            if !self.marks_tables(table.sector, part)? {
                continue;
            }
            if self.take(table.sector, part, table.shape) {
                if table.shape.marks > 1 && asked < 8 {
                    asked += 1;
                    self.add_marked()?;
                }
            } else if !self.taken[table.sector as usize] && self.doubtful[part as usize] {
                self.rivals.push((part, table.sector));
            }
        }
        Ok(())
    }

    /// Whether a sector, taken as one part, marks what looks like the FAT. A part
    /// of nothing but marks would mark any place as its own.
    fn marks_tables(&self, sector: u32, part: u32) -> Result<bool, Error> {
        let cells = self.source.cells(sector, "reading the FAT")?;
        let first = part * self.source.geometry.cells_per_sector();
        let marked = (first..).zip(cells).filter(|&(_, cell)| cell == FAT_SECTOR);
        let (mut right, mut wrong) = (0, 0);
        for (at, _) in marked {
            match self.tables.binary_search_by_key(&at, |table| table.sector) {
                Ok(_) => right += 1,
                Err(_) => wrong += 1,
            }
        }
        Ok(right >= wrong)
    }

    /// Those that a known part marks, as the parts that their links speak for.
    fn add_marked(&mut self) -> Result<(), Error> {
        let per_sector = self.source.geometry.cells_per_sector() as usize;
        loop {
            for part in 0..self.known.len() {
                let Some(found) = self.known[part] else { continue };
                if std::mem::replace(&mut self.read[part], true) {
                    continue;
                }
                let cells = self.source.cells(found.sector, "reading the FAT")?;
                for (sector, cell) in (part * per_sector..).zip(cells) {
                    if cell == FAT_SECTOR && sector < self.marked.len() {
                        self.marked[sector] = true;
                    }
                }
            }
            let mut fresh = false;
            for table in self.tables {
                if self.marked[table.sector as usize] && table.shape.votes >= 4 {
                    fresh |= self.take(table.sector, table.shape.part, table.shape);
                }
            }
            if !fresh {
                return Ok(());
            }
        }
    }

    /// The DIFAT's word, where the content does not speak against it.
    fn add_named(&mut self, named: &[Option<Part>]) -> Result<(), Error> {
        let dirs = &self.source.scan()?.dirs;
        for (part, found) in (0..).zip(named) {
            if let Some(found) = found
                && dirs.binary_search_by_key(&found.sector, |dir| dir.sector).is_err()
            {
                self.take(found.sector, part, found.shape);
            }
        }
        Ok(())
    }

    /// Tables whose links speak for a part, and whose own mark is lost. The
    /// `MiniFAT` looks the same, but has no marks, does not chain the
    /// directory's sectors, and does not lie beside the part before or behind.
    fn add_likely(&mut self) -> Result<(), Error> {
        let per_sector = self.source.geometry.cells_per_sector();
        let tables = self.tables;
        let strong = |table: &TableLike| {
            table.shape.votes >= 4 && table.shape.votes * 2 >= table.shape.cells - table.shape.free
        };
        for table in tables {
            let own_part = (table.sector / per_sector) as usize;
            if !strong(table) || self.known.get(own_part).copied().flatten().is_some() {
                continue;
            }
            // Most files end with a sector in use.
            let before = table.shape.part.saturating_mul(per_sector).min(self.source.sectors);
            let end = self.source.sectors - before;
            let ends_with_file = end <= per_sector && table.shape.used == end;
            if table.shape.marks > 0 || ends_with_file || chains_directory(self.source, table)? {
                self.take(table.sector, table.shape.part, table.shape);
            }
        }
        let is_at = |search: &Self, part: Option<u32>, sector: Option<u32>| {
            let known = part.and_then(|part| search.known.get(part as usize).copied().flatten());
            known.is_some_and(|known| Some(known.sector) == sector)
        };
        for table in tables.iter().chain(tables.iter().rev()) {
            let TableLike { sector, shape } = table;
            let before = is_at(self, shape.part.checked_sub(1), sector.checked_sub(1));
            let behind = is_at(self, shape.part.checked_add(1), sector.checked_add(1));
            if strong(table) && (before || behind) {
                self.take(*sector, shape.part, *shape);
            }
        }
        Ok(())
    }

    /// Adds what is marked as the FAT's and is no part. Where some part has rivals,
    /// an earlier state is left in the file: then whatever speaks for a part is one.
    fn add_rivals(&mut self) {
        let speaks = |table: &&TableLike| {
            table.shape.votes >= 4
                && !self.taken[table.sector as usize]
                && self.doubtful.get(table.shape.part as usize) == Some(&true)
        };
        let tables: Vec<&TableLike> = self.tables.iter().filter(speaks).collect();
        let is_marked = |table: &&&TableLike| self.marked[table.sector as usize];
        if self.rivals.is_empty() && !tables.iter().any(|table| is_marked(&table)) {
            return;
        }
        self.rivals.extend(tables.iter().map(|table| (table.shape.part, table.sector)));
        self.rivals.sort_unstable();
        self.rivals.dedup();
    }

    /// What is left of the marked ones, in the order of the file.
    fn add_left(&mut self) -> Result<(), Error> {
        // Each may mark others, before or behind, but not without end.
        for _ in 0..8 {
            let left = (0_u32..).zip(&self.marked).zip(&self.taken);
            let left = left.filter(|((_, marked), taken)| **marked && !**taken);
            let left: Vec<u32> = left.map(|((sector, _), _)| sector).collect();
            let vacant = (0..).zip(&self.known).filter(|(_, known)| known.is_none());
            let vacant: Vec<u32> = vacant.map(|(part, _)| part).collect();
            if left.is_empty() || vacant.is_empty() {
                break;
            }
            for (&sector, &part) in left.iter().zip(&vacant) {
                let cells = self.source.cells(sector, "reading the FAT")?;
                let limit = self.source.sectors.saturating_mul(2);
                self.take(sector, part, TableShape::of(&cells, limit, sector));
            }
            self.add_marked()?;
        }
        Ok(())
    }
}

/// Whether a table, taken as the part of the FAT that it speaks for, chains
/// sectors of the directory to such, and to nothing else.
fn chains_directory<S: Storage + ?Sized>(
    source: &Source<'_, S>,
    table: &TableLike,
) -> Result<bool, Error> {
    let dirs = &source.scan()?.dirs;
    let is_dir = |at: u32| dirs.binary_search_by_key(&at, |dir| dir.sector).is_ok();
    let first = table.shape.part * table.shape.cells;
    let cells = source.cells(table.sector, "reading the FAT")?;
    let here = dirs.iter().filter_map(|dir| cells.get(dir.sector.checked_sub(first)? as usize));
    let links: Vec<u32> = here.copied().filter(|&cell| cell != FREE_SECTOR).collect();
    Ok(links.iter().any(|&cell| is_dir(cell))
        && links.iter().all(|&cell| cell == END_OF_CHAIN || is_dir(cell)))
}
