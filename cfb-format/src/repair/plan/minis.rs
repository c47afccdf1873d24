//! The mini stream: its table, its own chain, and the streams in it.

use std::collections::HashSet;

use super::Work;
use crate::error::Error;
use crate::finding::{Finding, FindingCode};
use crate::header::Header;
use crate::layout::{END_OF_CHAIN, FREE_SECTOR};
use crate::repair::body::Body;
use crate::repair::links::{Links, UNKNOWN, Want};
use crate::repair::shape::TableShape;
use crate::storage::Storage;

/// Sectors tried as the first of the `MiniFAT` when the header's is wrong.
const MINI_FAT_TRIES: usize = 64;

/// The mini stream and the chains in it.
pub(super) struct Minis {
    pub(super) links: Links,
    pub(super) body: Body,
    /// For each slot, the number of its stream.
    pub(super) wants: Vec<Option<usize>>,
    /// Whether no other sectors could be the `MiniFAT` as well.
    pub(super) is_sure: bool,
}

impl<S: Storage + ?Sized> Work<'_, S> {
    /// The sectors of the `MiniFAT` by the header's word, if they look like it.
    pub(super) fn named_mini_fat(&self, header: &Header) -> Result<Option<Vec<u32>>, Error> {
        if header.first_mini_fat_sector == 0 && header.mini_fat_sectors_count == 0 {
            return Ok(None);
        }
        let mut sectors = self.chain(header.first_mini_fat_sector);
        self.extend_mini_fat(&mut sectors, header.mini_fat_sectors_count as usize)?;
        let mut seen = false;
        for &sector in &sectors {
            let shape = self.mini_shape(sector)?;
            // Overwritten by zeros or ones it is still in its place.
            if shape.bad * 4 > shape.cells || shape.marks > 0 {
                return Ok(None);
            }
            seen |= shape.is_table();
        }
        Ok(seen.then_some(sectors))
    }

    pub(super) fn mini_shape(&self, sector: u32) -> Result<TableShape, Error> {
        let cells = self.source.cells(sector, "reading the MiniFAT")?;
        let minis = self.source.sectors.saturating_mul(self.source.geometry.minis_per_sector());
        Ok(TableShape::of(&cells, minis, sector))
    }

    /// The sectors that a chain leads to, as far as nobody has them.
    pub(super) fn chain(&self, first: u32) -> Vec<u32> {
        let mut sectors = Vec::new();
        let mut seen = HashSet::new();
        let mut at = first;
        while at < self.source.sectors && self.links.is_free(at) && seen.insert(at) {
            sectors.push(at);
            at = self.links.cell(at).unwrap_or(END_OF_CHAIN);
        }
        sectors
    }

    /// Serves the mini stream; by its whole chain, which may go beyond its length.
    pub(super) fn add_mini_stream(&mut self) -> Option<usize> {
        let root = self.directory.root()?;
        let start = root.start_sector.get();
        let wanted = self.source.geometry.sectors_for(self.stream_len(root));
        if wanted == 0 || wanted > u64::from(self.links.len()) || !self.links.is_free(start) {
            return None;
        }
        let units = self.links.chain_len(start).filter(|&units| units >= wanted).unwrap_or(wanted);
        Some(self.links.add(Want { start, units }, true))
    }

    /// Reads the `MiniFAT` and the streams in the mini stream.
    pub(super) fn read_minis(
        &mut self,
        header: &Header,
        named: Option<Vec<u32>>,
        mini_stream: Option<usize>,
        orphans: &HashSet<usize>,
    ) -> Result<Minis, Error> {
        let geometry = self.source.geometry;
        let mini_bytes = u64::from(geometry.mini_bytes());
        let wants_some = |work: &Self| {
            let streams = work.streams(true, false).into_iter().chain(work.streams(true, true));
            streams
                .filter(|&(_, _, len)| len > 0)
                .map(|(_, start, len)| Want { start, units: geometry.minis_for(len) })
        };
        let streams: Vec<Want> = wants_some(self).collect();

        let mut is_sure = true;
        let mut sectors = named.unwrap_or_default();
        if sectors.is_empty() && !streams.is_empty() {
            (sectors, is_sure) = self.search_mini_fat(header, &streams)?;
            for &sector in &sectors {
                self.links.take_metadata(sector);
            }
            if sectors.is_empty() {
                self.findings.push(Finding::new(FindingCode::MiniFatChain));
            }
        }
        let mut cells = Vec::new();
        for &sector in &sectors {
            cells.extend(self.source.cells(sector, "reading the MiniFAT")?);
        }

        // The mini stream: by the root entry, else by the length that the cells in use ask for.
        let last_used = cells.iter().rposition(|&cell| cell != FREE_SECTOR && cell != 0);
        let used = last_used.map_or(0, |last| last as u64 + 1);
        let wanted = streams.iter().map(|want| u64::from(want.start) + want.units);
        let wanted = wanted.filter(|&end| end <= cells.len() as u64).max().unwrap_or(0);
        let mut id = mini_stream;
        if id.is_none() && (!streams.is_empty() || self.directory.damaged) {
            let units = geometry.sectors_for(used.max(wanted) * mini_bytes);
            let start = self.directory.root().map_or(UNKNOWN, |root| root.start_sector.get());
            if units > 0 {
                id = Some(self.links.add(Want { start, units }, false));
            }
        }
        let trusted = !self.directory.damaged;
        self.links.settle(|id| !trusted || !orphans.contains(&id));
        self.links.doubt(&self.contested);
        let mut body = id.map_or_else(Body::default, |id| {
            let units = self.links.units_wanted(id);
            let len = units.saturating_mul(u64::from(geometry.sector_bytes()));
            Body::in_sectors(self.links.found(id), len, geometry, self.source.len)
        });

        // No table is made for what a forged length promises.
        body.cut_lost_end();
        let minis = u32::try_from(body.len / mini_bytes).unwrap_or(u32::MAX);
        cells.resize(cells.len().max(minis as usize), UNKNOWN);
        let limit = u32::try_from(cells.len()).unwrap_or(u32::MAX);
        for cell in &mut cells {
            if *cell >= limit && *cell != FREE_SECTOR && *cell != END_OF_CHAIN {
                *cell = UNKNOWN;
            }
        }
        let mut links = Links::new(cells, minis);
        let mut wants = vec![None; self.directory.slots.len()];
        for orphans in [false, true] {
            for (slot, start, len) in self.streams(true, orphans) {
                let units = geometry.minis_for(len);
                wants[slot as usize] = Some(links.add(Want { start, units }, !orphans));
            }
        }
        let orphans: HashSet<usize> =
            self.streams(true, true).iter().filter_map(|row| wants[row.0 as usize]).collect();
        links.settle(|id| !trusted || !orphans.contains(&id));
        Ok(Minis { links, body, wants, is_sure })
    }

    /// Finds the `MiniFAT` by content: the table whose chains fit most small
    /// streams. Says whether there is only one such.
    pub(super) fn search_mini_fat(
        &mut self,
        header: &Header,
        streams: &[Want],
    ) -> Result<(Vec<u32>, bool), Error> {
        let mut firsts = vec![header.first_mini_fat_sector];
        let linked = self.links.linked_to();
        let tables = self.source.scan()?.tables.iter();
        firsts.extend(
            tables
                .filter(|table| {
                    let at = table.sector;
                    let shape = table.shape;
                    self.links.is_free(at)
                        && self.links.cell(at) != Some(FREE_SECTOR)
                        && !linked[at as usize]
                        && shape.marks == 0
                        && shape.can_be(0)
                })
                .map(|table| table.sector)
                .take(MINI_FAT_TRIES),
        );
        let mut best = (0, Vec::new());
        let mut is_sure = false;
        for first in firsts {
            let mut sectors = self.chain(first);
            // The mini stream is larger than its table, so a longer chain is none.
            sectors.truncate(self.source.sectors as usize / 16 + 1);
            self.extend_mini_fat(&mut sectors, 0)?;
            let mut cells = Vec::new();
            for &sector in &sectors {
                cells.extend(self.source.cells(sector, "reading the MiniFAT")?);
            }
            let present = u32::try_from(cells.len()).unwrap_or(u32::MAX);
            let mut links = Links::new(cells, present);
            let ids: Vec<usize> = streams.iter().map(|&want| links.add(want, false)).collect();
            let fits = ids.into_iter().filter(|&id| links.is_exact(id)).count();
            if sectors.is_empty() {
                continue;
            }
            if fits == best.0 && !best.1.is_empty() {
                is_sure = false;
            } else if fits > best.0 || best.1.is_empty() {
                is_sure = fits > 0;
                best = (fits, sectors);
            }
        }
        Ok((best.1, is_sure))
    }

    /// Goes on behind a chain's last sector while the next ones are the next parts of the table.
    ///
    /// Up to `promised` sectors they need not speak for their part.
    pub(super) fn extend_mini_fat(
        &self,
        sectors: &mut Vec<u32>,
        promised: usize,
    ) -> Result<(), Error> {
        while let Some(&last) = sectors.last() {
            let behind = last + 1;
            let lost = !matches!(self.links.cell(last), Some(END_OF_CHAIN));
            if !lost || behind >= self.source.sectors || !self.links.is_free(behind) {
                break;
            }
            let shape = self.mini_shape(behind)?;
            let part = u32::try_from(sectors.len()).unwrap_or(u32::MAX);
            let speaks = shape.is_table() && shape.votes > 0 && shape.part == part;
            let may_be = sectors.len() < promised && shape.bad == 0 && shape.marks == 0;
            if !speaks && !may_be {
                break;
            }
            sectors.push(behind);
        }
        Ok(())
    }
}
