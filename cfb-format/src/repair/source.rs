//! The damaged bytes, read by sector, and one look at all of them.

use std::cell::OnceCell;

use alloc_core::SectorId;
use zerocopy::FromBytes;

use super::shape::{DirShape, TableShape};
use crate::error::{Doing, Error};
use crate::layout::{MAX_REGULAR_SECTOR, RawDirEntry};
use crate::storage::Storage;
use crate::table::decode_cells;
use crate::version::Geometry;

/// Bytes read in one call while the whole file is looked through.
const PIECE_BYTES: usize = 1 << 20;

/// A storage that is only read, taken as sectors of one size.
pub(super) struct Source<'a, S: ?Sized> {
    storage: &'a S,
    pub(super) len: u64,
    pub(super) geometry: Geometry,
    /// Sectors of which at least one byte is there.
    pub(super) sectors: u32,
    scan: OnceCell<Scan>,
}

/// A sector that could be one of the FAT or the `MiniFAT`.
pub(super) struct TableLike {
    pub(super) sector: u32,
    pub(super) shape: TableShape,
}

/// A sector that could be one of the directory.
pub(super) struct DirLike {
    pub(super) sector: u32,
    pub(super) shape: DirShape,
}

/// What every sector of the file looks like; only what looks like metadata is kept.
pub(super) struct Scan {
    pub(super) tables: Vec<TableLike>,
    pub(super) dirs: Vec<DirLike>,
}

impl<'a, S: Storage + ?Sized> Source<'a, S> {
    pub(super) fn new(storage: &'a S, len: u64, geometry: Geometry) -> Self {
        let sector_bytes = u64::from(geometry.sector_bytes());
        let sectors = len.saturating_sub(sector_bytes).div_ceil(sector_bytes);
        let sectors = u32::try_from(sectors).unwrap_or(u32::MAX).min(MAX_REGULAR_SECTOR);
        Self { storage, len, geometry, sectors, scan: OnceCell::new() }
    }

    /// Fills `buf` from `offset` on; what is past the end reads as zeros.
    pub(super) fn read(
        &self,
        buf: &mut [u8],
        offset: u64,
        doing: &'static str,
    ) -> Result<(), Error> {
        let count = self.storage.read_at(buf, offset).doing(doing, offset)?;
        buf[count..].fill(0);
        Ok(())
    }

    /// The bytes of a sector; zeros where the file has ended.
    pub(super) fn sector(&self, sector: u32, doing: &'static str) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.geometry.sector_bytes() as usize];
        self.read(&mut bytes, self.geometry.offset_of(SectorId::new(sector)).get(), doing)?;
        Ok(bytes)
    }

    /// A sector as cells of a table.
    pub(super) fn cells(&self, sector: u32, doing: &'static str) -> Result<Vec<u32>, Error> {
        let bytes = self.sector(sector, doing)?;
        let mut cells = Vec::with_capacity(bytes.len() / 4);
        decode_cells(&bytes, &mut cells);
        Ok(cells)
    }

    /// A sector as directory entries.
    pub(super) fn entries(&self, sector: u32) -> Result<Vec<RawDirEntry>, Error> {
        Ok(decode_entries(&self.sector(sector, "reading the directory")?))
    }

    /// The most slots that a directory of this file can have.
    pub(super) fn max_slots(&self) -> u32 {
        u32::try_from(self.len / 128).unwrap_or(u32::MAX)
    }

    /// Looks through the whole file, once.
    pub(super) fn scan(&self) -> Result<&Scan, Error> {
        if let Some(scan) = self.scan.get() {
            return Ok(scan);
        }
        let sector_bytes = self.geometry.sector_bytes() as usize;
        let mut scan = Scan { tables: Vec::new(), dirs: Vec::new() };
        // A cut file has links past its end.
        let limit = self.sectors.saturating_mul(2).max(self.geometry.cells_per_sector());
        let max_slots = self.max_slots();
        let mut piece = vec![0; PIECE_BYTES / sector_bytes * sector_bytes];
        let mut cells = Vec::with_capacity(sector_bytes / 4);
        let mut sector = 0;
        while sector < self.sectors {
            let offset = self.geometry.offset_of(SectorId::new(sector)).get();
            self.read(&mut piece, offset, "looking for metadata")?;
            for bytes in piece.chunks_exact(sector_bytes).take((self.sectors - sector) as usize) {
                let shape = DirShape::of(bytes, max_slots);
                if shape.is_directory() {
                    scan.dirs.push(DirLike { sector, shape });
                } else {
                    cells.clear();
                    decode_cells(bytes, &mut cells);
                    let shape = TableShape::of(&cells, limit, sector);
                    if shape.is_table() {
                        scan.tables.push(TableLike { sector, shape });
                    }
                }
                sector += 1;
            }
        }
        Ok(self.scan.get_or_init(|| scan))
    }
}

/// Directory entries from a sector's bytes.
pub(super) fn decode_entries(bytes: &[u8]) -> Vec<RawDirEntry> {
    bytes
        .chunks_exact(size_of::<RawDirEntry>())
        .map(|chunk| RawDirEntry::read_from_bytes(chunk).expect("128 bytes"))
        .collect()
}
