//! Finding the FAT: where the DIFAT says, and where that is wrong, by content.

use super::links::UNKNOWN;
use super::shape::TableShape;
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
            found.shape.can_be(part) && found.shape.zeros * 4 < found.shape.cells && own
        })
    };
    let doubtful: Vec<u32> = (0..)
        .zip(&parts)
        .filter(|(part, found)| !trusted(*part, found))
        .map(|(part, _)| part)
        .collect();
    if !doubtful.is_empty() {
        search(source, &mut parts, &doubtful)?;
    }

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
    Ok(Fat { cells, own, marked_count })
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
        let possible = |cell: &&u32| **cell >= FAT_SECTOR || **cell < source.sectors;
        if cells.iter().filter(possible).count() * 4 < cells.len() * 3 {
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

/// Looks through the file for the parts that the DIFAT does not give.
fn search<S: Storage + ?Sized>(
    source: &Source<'_, S>,
    parts: &mut [Option<Part>],
    doubtful: &[u32],
) -> Result<(), Error> {
    let per_sector = source.geometry.cells_per_sector();
    let tables = &source.scan()?.tables;
    let mut taken: Vec<bool> = vec![false; source.sectors as usize];
    let is_doubtful = {
        let mut flags = vec![false; parts.len()];
        for &part in doubtful {
            flags[part as usize] = true;
        }
        flags
    };
    let mut known: Vec<Option<Part>> = parts
        .iter()
        .zip(&is_doubtful)
        .map(|(found, doubtful)| found.filter(|_| !doubtful))
        .collect();
    for found in known.iter().flatten() {
        taken[found.sector as usize] = true;
    }

    // First those that mark themselves and speak for the part that has their own cell.
    for table in tables {
        let part = (table.sector / per_sector) as usize;
        let fits = table.shape.own_mark && table.shape.can_be(table.sector / per_sector);
        if fits && is_doubtful[part] && !taken[table.sector as usize] {
            let better = known[part].is_none_or(|known| known.shape.votes < table.shape.votes);
            if better {
                known[part] = Some(Part { sector: table.sector, shape: table.shape });
            }
        }
    }
    // What a part marks as the FAT's is the FAT's: by what its links speak for.
    let mut marked = vec![false; source.sectors as usize];
    let mut read = vec![false; parts.len()];
    loop {
        let mut fresh = false;
        for part in 0..known.len() {
            let Some(found) = known[part] else { continue };
            if std::mem::replace(&mut read[part], true) {
                continue;
            }
            fresh = true;
            taken[found.sector as usize] = true;
            let cells = source.cells(found.sector, "reading the FAT")?;
            for (sector, cell) in (part * per_sector as usize..).zip(cells) {
                if cell == FAT_SECTOR && sector < marked.len() {
                    marked[sector] = true;
                }
            }
        }
        if !fresh {
            break;
        }
        for table in tables {
            let (at, part) = (table.sector as usize, table.shape.part as usize);
            let votes = table.shape.votes >= 4 && part < known.len();
            if marked[at] && !taken[at] && votes && known[part].is_none() {
                known[part] = Some(Part { sector: table.sector, shape: table.shape });
            }
        }
    }
    // Then the DIFAT's word, where the content does not speak against it.
    let dirs = &source.scan()?.dirs;
    let is_dir = |at: u32| dirs.binary_search_by_key(&at, |dir| dir.sector).is_ok();
    for (part, found) in (0_u32..).zip(parts.iter()) {
        if let Some(found) = found
            && known[part as usize].is_none()
            && !taken[found.sector as usize]
            && !is_dir(found.sector)
        {
            known[part as usize] = Some(*found);
            taken[found.sector as usize] = true;
        }
    }
    // Links that speak for a part, in a sector whose own mark is lost. The MiniFAT
    // looks the same, but has no marks and does not chain the directory's sectors.
    for table in tables {
        let (at, part) = (table.sector as usize, table.shape.part as usize);
        let own_part = known.get(table.sector as usize / per_sector as usize).copied().flatten();
        let strong = table.shape.votes * 2 >= table.shape.cells - table.shape.free
            && table.shape.votes >= 4
            && own_part.is_none();
        if part >= known.len() || taken[at] || !strong || known[part].is_some() {
            continue;
        }
        // Most files end with a sector in use.
        let end = source.sectors - table.shape.part.saturating_mul(per_sector).min(source.sectors);
        let ends_with_file = end <= per_sector && table.shape.used == end;
        if table.shape.marks > 0 || ends_with_file || chains_directory(source, table)? {
            known[part] = Some(Part { sector: table.sector, shape: table.shape });
            taken[at] = true;
        }
    }
    // What is left of the marked ones, in the order of the file.
    let mut left = (0_u32..).zip(&marked).filter(|(at, m)| **m && !taken[*at as usize]);
    for slot in known.iter_mut().filter(|slot| slot.is_none()) {
        let Some((sector, _)) = left.next() else { break };
        let cells = source.cells(sector, "reading the FAT")?;
        let shape = TableShape::of(&cells, source.sectors.saturating_mul(2), sector);
        *slot = Some(Part { sector, shape });
    }
    parts.copy_from_slice(&known);
    Ok(())
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
    let mut links = here.filter(|&&cell| cell != FREE_SECTOR).peekable();
    Ok(links.peek().is_some() && links.all(|&cell| cell == END_OF_CHAIN || is_dir(cell)))
}
