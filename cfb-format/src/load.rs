//! From a storage's bytes to a [`State`]: header, DIFAT, FAT, directory, MiniFAT.
//!
//! Everything a file says is doubted here: each number is compared with the
//! file's length before it is used, each walk is bounded by the number of
//! sectors, and what can be lived with becomes a [`Finding`]. No stream data
//! and no stream's chain is read: damage to one stream costs that stream.

use std::borrow::Cow;

use alloc_core::{Chain, Run, SectorCount, SectorId, SectorSet};
use zerocopy::IntoBytes;

use crate::directory::{Directory, ROOT};
use crate::error::{Corruption, Doing, Error};
use crate::finding::{Finding, FindingCode};
use crate::header::Header;
use crate::layout::{
    DIFAT_SECTOR, END_OF_CHAIN, FAT_SECTOR, FREE_SECTOR, HEADER_BYTES, MAX_REGULAR_SECTOR,
};
use crate::read_cache::ReadCache;
use crate::state::{State, chain_in};
use crate::storage::Storage;
use crate::table::{Table, decode_cells};
use crate::version::{Geometry, Version};

/// Long tables are read in pieces of this many bytes: memory has to be cleared
/// before it is read into, and this much is then still in the processor's cache.
const PIECE_BYTES: usize = 512 << 10;
const PIECE_CELLS: usize = PIECE_BYTES / 4;

/// What is read from.
enum Reader<'a, S> {
    /// All bytes, and none of them copied before it is decoded.
    Bytes(&'a [u8]),
    Storage(&'a ReadCache<S>),
}

impl<'a, S: Storage> Reader<'a, S> {
    /// Fills `buf`, and gives how many bytes were there; what lies past the
    /// end of the file reads as zeros.
    fn read(&self, buf: &mut [u8], offset: u64, doing: &'static str) -> Result<usize, Error> {
        let count = match self {
            Self::Bytes(bytes) => bytes.read_at(buf, offset),
            Self::Storage(storage) => storage.read_at(buf, offset),
        };
        let count = count.doing(doing, offset)?;
        buf[count..].fill(0);
        Ok(count)
    }

    /// Bytes of the file as they lie there.
    fn bytes(&self, offset: u64, len: usize) -> Option<&'a [u8]> {
        let Self::Bytes(bytes) = self else { return None };
        let from = usize::try_from(offset).ok()?;
        bytes.get(from..from.checked_add(len)?)
    }

    /// The bytes of a chain.
    fn read_chain(
        &self,
        geometry: Geometry,
        chain: &Chain,
        doing: &'static str,
    ) -> Result<Cow<'a, [u8]>, Error> {
        let sector_bytes = geometry.sector_bytes() as usize;
        let len = chain.sector_count().get() as usize * sector_bytes;
        let first = chain.first().filter(|_| chain.run_count() == 1);
        if let Some(bytes) =
            first.and_then(|first| self.bytes(geometry.offset_of(first).get(), len))
        {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut bytes = Vec::with_capacity(len);
        for run in chain.runs() {
            let offset = geometry.offset_of(run.start()).get();
            let (from, len) = (bytes.len(), run.count().get() as usize * sector_bytes);
            if let Some(there) = self.bytes(offset, len) {
                bytes.extend_from_slice(there);
            } else {
                bytes.resize(from + len, 0);
                self.read(&mut bytes[from..], offset, doing)?;
            }
        }
        Ok(Cow::Owned(bytes))
    }

    /// Appends the cells of a run of table sectors.
    fn read_cells(
        &self,
        geometry: Geometry,
        run: Run,
        cells: &mut Vec<u32>,
        doing: &'static str,
    ) -> Result<(), Error> {
        let offset = geometry.offset_of(run.start()).get();
        let count = run.count().get() as usize * geometry.cells_per_sector() as usize;
        if let Some(bytes) = self.bytes(offset, count * 4) {
            decode_cells(bytes, cells);
            return Ok(());
        }
        for (piece, offset) in (0..count).step_by(PIECE_CELLS).zip((offset..).step_by(PIECE_BYTES))
        {
            let from = cells.len();
            cells.resize(from + PIECE_CELLS.min(count - piece), 0);
            let new = &mut cells[from..];
            self.read(new.as_mut_bytes(), offset, doing)?;
            if cfg!(target_endian = "big") {
                for cell in new {
                    *cell = cell.swap_bytes();
                }
            }
        }
        Ok(())
    }
}

/// Reads everything but stream data. What was read first stays in the storage's window.
///
/// # Errors
///
/// [`Error::Io`]; [`Error::Corrupt`] when there is no header or no directory.
pub(crate) fn load<S: Storage>(storage: &ReadCache<S>) -> Result<State, Error> {
    let mut loaded = None;
    storage.with_bytes(&mut |bytes| {
        loaded = Some(load_from(&Reader::<S>::Bytes(bytes), bytes.len() as u64));
    });
    if let Some(loaded) = loaded {
        return loaded;
    }
    let len = storage.len().doing("asking for the length of the storage", 0)?;
    storage.read_head(len).doing("reading the header", 0)?;
    load_from(&Reader::Storage(storage), len)
}

fn load_from<S: Storage>(reader: &Reader<'_, S>, len: u64) -> Result<State, Error> {
    let mut head = [0; HEADER_BYTES];
    let count = reader.read(&mut head, 0, "reading the header")?;
    let mut findings = Vec::new();
    if len < HEADER_BYTES as u64 || count < HEADER_BYTES {
        return Err(Corruption::TooShort { len_bytes: len.min(count as u64) }.into());
    }
    let (header, geometry) = Header::decode(&head, &mut findings)?;
    let sector_bytes = u64::from(geometry.sector_bytes());
    let sectors = len.saturating_sub(sector_bytes).div_ceil(sector_bytes);
    let file_sectors = u32::try_from(sectors).unwrap_or(u32::MAX).min(MAX_REGULAR_SECTOR);
    if len > sector_bytes && !len.is_multiple_of(sector_bytes) {
        findings.push(Finding::new(FindingCode::FilePartialSector).at_byte(len));
    }
    if sector_bytes > HEADER_BYTES as u64 {
        let mut rest = vec![0; geometry.sector_bytes() as usize - HEADER_BYTES];
        reader.read(&mut rest, HEADER_BYTES as u64, "reading the header")?;
        if rest.iter().any(|&byte| byte != 0) {
            findings.push(Finding::new(FindingCode::HeaderPadding).at_byte(HEADER_BYTES as u64));
        }
    }

    let places = read_difat(reader, geometry, &header, file_sectors, &mut findings)?;
    let fat = read_fat(reader, geometry, &places.fat, file_sectors, &mut findings)?;
    check_marks(&fat, &places, file_sectors, &mut findings);

    let limit = file_sectors.min(u32::try_from(fat.cells().len()).unwrap_or(u32::MAX));
    let walk = |start: u32| chain_in(&fat.cells()[..limit as usize], start);
    let (mut dir_chain, broken) = walk(header.first_dir_sector);
    if let Some(Corruption::NotInAChain { sector, .. }) = broken
        && dir_chain.is_empty()
        && !places.has(sector)
    {
        // The header names this sector; its cell says only what comes next.
        dir_chain.push(Run::single(SectorId::new(sector)));
    }
    if let Some(fault) = broken {
        if dir_chain.is_empty() {
            let start = header.first_dir_sector;
            return Err(Corruption::NoDirectory { start, sectors_count: file_sectors }.into());
        }
        findings.push(at_fault(Finding::new(FindingCode::DirChain), &fault));
    }
    if dir_chain.is_empty() {
        let start = header.first_dir_sector;
        return Err(Corruption::NoDirectory { start, sectors_count: file_sectors }.into());
    }
    let dir_sectors = dir_chain.sector_count().get();
    let expected = if geometry.version == Version::V3 { 0 } else { dir_sectors };
    count_finding(
        &mut findings,
        FindingCode::HeaderDirSectors,
        0x28,
        header.dir_sectors_count,
        expected,
    );
    let bytes = reader.read_chain(geometry, &dir_chain, "reading the directory")?;
    let dir = Directory::decode(&bytes, geometry, &mut findings)?;
    drop(bytes);

    let (mini_fat_chain, mini_fat) =
        read_mini_fat(reader, geometry, &header, &dir, &walk, &mut findings)?;
    let mini_stream = find_mini_stream(geometry, &dir, &walk, &mut findings);

    Ok(State::loaded(crate::state::Loaded {
        geometry,
        header,
        file_len: len,
        file_sectors,
        fat,
        fat_sectors: places.fat,
        difat_sectors: places.difat,
        dir,
        dir_chain,
        mini_fat,
        mini_fat_chain,
        mini_stream,
        findings,
    }))
}

/// A walk along a chain of the FAT from its start.
type WalkFat<'a> = dyn Fn(u32) -> (Chain, Option<Corruption>) + 'a;

/// Reads the MiniFAT, as far as its chain goes. [MS-CFB] 2.4
fn read_mini_fat<S: Storage>(
    reader: &Reader<'_, S>,
    geometry: Geometry,
    header: &Header,
    dir: &Directory,
    walk: &WalkFat<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(Chain, Table), Error> {
    // A start of zero with a count of zero is how some writers say "none".
    let none = header.mini_fat_sectors_count == 0 && dir.entry(ROOT).len_bytes == 0;
    let (chain, broken) = if none || is_absent(header.first_mini_fat_sector) {
        (Chain::default(), None)
    } else {
        walk(header.first_mini_fat_sector)
    };
    if let Some(fault) = broken {
        findings.push(at_fault(Finding::new(FindingCode::MiniFatChain), &fault));
    }
    let count = chain.sector_count().get() as usize * geometry.cells_per_sector() as usize;
    let mut cells = Vec::with_capacity(count);
    for run in chain.runs() {
        reader.read_cells(geometry, run, &mut cells, "reading the MiniFAT")?;
    }
    let (found, expected) = (header.mini_fat_sectors_count, chain.sector_count().get());
    count_finding(findings, FindingCode::HeaderMiniFatSectors, 0x40, found, expected);
    Ok((chain, Table::new(cells, geometry.cells_per_sector())))
}

/// The chain of the mini stream, as far as it goes. [MS-CFB] 2.6.2
fn find_mini_stream(
    geometry: Geometry,
    dir: &Directory,
    walk: &WalkFat<'_>,
    findings: &mut Vec<Finding>,
) -> Chain {
    let root = dir.entry(ROOT);
    if root.len_bytes == 0 {
        if !is_absent(root.start_sector) {
            findings.push(Finding::new(FindingCode::RootStart).at_entry(ROOT));
        }
        return Chain::default();
    }
    if !root.len_bytes.is_multiple_of(u64::from(geometry.mini_bytes())) {
        findings.push(Finding::new(FindingCode::RootLen).at_entry(ROOT).found(root.len_bytes));
    }
    let (chain, broken) = walk(root.start_sector);
    if let Some(fault) = broken {
        findings.push(at_fault(Finding::new(FindingCode::ChainEnd).at_entry(ROOT), &fault));
    }
    let have = chain.sector_count().bytes(geometry.sector_bytes());
    let code = if have < root.len_bytes {
        Some(FindingCode::MiniStreamShort)
    } else if have >= root.len_bytes.saturating_add(geometry.sector_bytes().into()) {
        Some(FindingCode::MiniStreamLong)
    } else {
        None
    };
    findings.extend(
        code.map(|code| Finding::new(code).at_entry(ROOT).found(have).expected(root.len_bytes)),
    );
    chain
}

/// Marks that say "nothing here" in a start field.
fn is_absent(start: u32) -> bool {
    start == END_OF_CHAIN || start == FREE_SECTOR
}

fn count_finding(
    findings: &mut Vec<Finding>,
    code: FindingCode,
    at: u64,
    found: u32,
    expected: u32,
) {
    if found != expected {
        findings.push(Finding::new(code).at_byte(at).found(found).expected(expected));
    }
}

/// Adds where a chain broke.
fn at_fault(finding: Finding, fault: &Corruption) -> Finding {
    match *fault {
        Corruption::OutOfRange { from: Some(from), to, .. } => finding.at_sector(from).found(to),
        Corruption::OutOfRange { from: None, to, .. } => finding.found(to),
        Corruption::NotInAChain { sector, found } => finding.at_sector(sector).found(found),
        Corruption::Cycle { sector } => finding.at_sector(sector),
        _ => finding,
    }
}

/// Where the FAT and the DIFAT are.
struct Places {
    /// The sector of each part of the FAT; `None` where the DIFAT names no
    /// sector of the file.
    fat: Vec<Option<SectorId>>,
    difat: Vec<SectorId>,
}

impl Places {
    /// Whether a sector is the FAT's or the DIFAT's.
    fn has(&self, sector: u32) -> bool {
        let mut own = self.fat.iter().flatten().chain(&self.difat);
        own.any(|own| own.get() == sector)
    }
}

/// Follows the header's 109 entries and the DIFAT chain. [MS-CFB] 2.5
///
/// Takes at most one step a sector of the file.
fn read_difat<S: Storage>(
    reader: &Reader<'_, S>,
    geometry: Geometry,
    header: &Header,
    file_sectors: u32,
    findings: &mut Vec<Finding>,
) -> Result<Places, Error> {
    let enough = file_sectors.div_ceil(geometry.cells_per_sector()) as usize;
    let sectors = Vec::with_capacity(enough.min(header.fat_sectors_count as usize));
    let mut fat = FatPlaces { sectors, seen: Seen::default(), file_sectors, enough };
    fat.extend(&header.difat, header.fat_sectors_count, findings);

    let mut difat: Vec<SectorId> = Vec::new();
    let mut cells = Vec::new();
    let mut seen = Seen::default();
    let mut next = header.first_difat_sector;
    // The header's count has done its part once that many sectors are read:
    // the last link of some writers is garbage.
    let complete = |fat: &FatPlaces, difat: &Vec<SectorId>| {
        difat.len() >= header.difat_sectors_count as usize
            && fat.sectors.len() >= header.fat_sectors_count as usize
    };
    while next < file_sectors {
        let sector = SectorId::new(next);
        if seen.contains(sector, &difat) || (next == 0 && complete(&fat, &difat)) {
            break;
        }
        if complete(&fat, &difat) && fat.has(sector) {
            break;
        }
        seen.insert(sector);
        difat.push(sector);
        cells.clear();
        reader.read_cells(geometry, Run::single(sector), &mut cells, "reading the DIFAT")?;
        next = cells.pop().expect("a DIFAT sector has cells");
        fat.extend(&cells, header.fat_sectors_count, findings);
    }
    if next != END_OF_CHAIN {
        let mut finding = Finding::new(FindingCode::DifatChain).found(next);
        if let Some(last) = difat.last() {
            finding = finding.at_sector(last.get());
        }
        // A chain without sectors may be marked free as well.
        if !(difat.is_empty() && next == FREE_SECTOR) {
            findings.push(finding);
        }
    }
    while fat.sectors.last().is_some_and(Option::is_none) {
        fat.sectors.pop();
    }
    let fat_count = u32::try_from(fat.sectors.len()).expect("at most a FAT sector a sector");
    count_finding(
        findings,
        FindingCode::HeaderFatSectors,
        0x2C,
        header.fat_sectors_count,
        fat_count,
    );
    let difat_count = u32::try_from(difat.len()).expect("at most a DIFAT sector a sector");
    count_finding(
        findings,
        FindingCode::HeaderDifatSectors,
        0x48,
        header.difat_sectors_count,
        difat_count,
    );
    Ok(Places { fat: fat.sectors, difat })
}

/// Whether a sector was met before, for sectors that are kept in a list.
///
/// They mostly come in ascending order: then each is a new one, and a set is
/// made only when some other comes.
#[derive(Default)]
struct Seen {
    /// Behind all of them.
    end: u32,
    set: Option<SectorSet>,
}

impl Seen {
    fn contains<'a>(
        &mut self,
        sector: SectorId,
        list: impl IntoIterator<Item = &'a SectorId>,
    ) -> bool {
        let end = self.end;
        let set_of_list = || {
            let mut set = SectorSet::new(SectorCount::new(end));
            list.into_iter().for_each(|&sector| set.insert_run(Run::single(sector)));
            set
        };
        sector.get() < end && self.set.get_or_insert_with(set_of_list).contains(sector)
    }

    fn insert(&mut self, sector: SectorId) {
        let end = sector.get() + 1;
        if let Some(set) = &mut self.set {
            set.grow(SectorCount::new(end).max(set.total()));
            set.insert_run(Run::single(sector));
        }
        self.end = self.end.max(end);
    }
}

/// Collects the FAT's sectors from DIFAT entries.
struct FatPlaces {
    sectors: Vec<Option<SectorId>>,
    seen: Seen,
    file_sectors: u32,
    /// FAT sectors that cover the file.
    enough: usize,
}

impl FatPlaces {
    fn has(&mut self, sector: SectorId) -> bool {
        self.seen.contains(sector, self.sectors.iter().flatten())
    }

    /// Takes the entries of the header or of one DIFAT sector.
    ///
    /// Entries within the header's count hold their place in the FAT even
    /// when they are broken; behind it, sectors not named before count as long
    /// as the FAT does not cover the file.
    fn extend(&mut self, entries: &[u32], promised: u32, findings: &mut Vec<Finding>) {
        let mut padding = None;
        for &entry in entries {
            let within = self.sectors.len() < promised as usize;
            let sector = SectorId::new(entry);
            if entry < self.file_sectors
                && !self.has(sector)
                && (within || self.sectors.len() < self.enough)
            {
                self.seen.insert(sector);
                self.sectors.push(Some(sector));
                continue;
            }
            if within {
                let code = if entry < self.file_sectors {
                    FindingCode::DifatRepeated
                } else {
                    FindingCode::DifatEntry
                };
                // Entries without end would cost memory without end.
                if self.sectors.len() <= self.file_sectors as usize {
                    self.sectors.push(None);
                }
                if entry != FREE_SECTOR {
                    findings.push(Finding::new(code).found(entry));
                }
            } else if entry != FREE_SECTOR {
                padding = padding.or(Some(entry));
            }
        }
        if let Some(entry) = padding {
            findings.push(Finding::new(FindingCode::DifatPadding).found(entry));
        }
    }
}

/// Reads the FAT; parts that are nowhere read as free.
fn read_fat<S: Storage>(
    reader: &Reader<'_, S>,
    geometry: Geometry,
    places: &[Option<SectorId>],
    file_sectors: u32,
    findings: &mut Vec<Finding>,
) -> Result<Table, Error> {
    let mut cells = Vec::with_capacity(places.len() * geometry.cells_per_sector() as usize);
    let mut rest = places;
    while let Some(first) = rest.first() {
        let Some(first) = first else {
            let sector = u32::try_from(places.len() - rest.len()).expect("few");
            findings.push(Finding::new(FindingCode::FatUnreadable).found(sector));
            cells.resize(cells.len() + geometry.cells_per_sector() as usize, FREE_SECTOR);
            rest = &rest[1..];
            continue;
        };
        let count = rest
            .iter()
            .zip(first.get()..)
            .take_while(|(place, want)| place.is_some_and(|place| place.get() == *want))
            .count();
        let run = Run::new(*first, SectorCount::new(u32::try_from(count).expect("few")));
        reader.read_cells(geometry, run, &mut cells, "reading the FAT")?;
        rest = &rest[count..];
    }
    let table = Table::new(cells, geometry.cells_per_sector());
    if (table.cells().len() as u64) < u64::from(file_sectors) {
        findings.push(
            Finding::new(FindingCode::FileTrailingData)
                .found(file_sectors)
                .expected(table.cells().len() as u64),
        );
    }
    let past_end = table.cells().get(file_sectors as usize..).unwrap_or(&[]);
    if let Some(at) = past_end.iter().position(|&cell| cell != FREE_SECTOR) {
        let sector = file_sectors + u32::try_from(at).expect("cells are numbered by u32");
        findings
            .push(Finding::new(FindingCode::FatCellPastEnd).at_sector(sector).found(past_end[at]));
    }
    Ok(table)
}

/// Whether the FAT marks its own sectors and the DIFAT's as such, and no others.
fn check_marks(fat: &Table, places: &Places, file_sectors: u32, findings: &mut Vec<Finding>) {
    let mut right = 0;
    let own = places.fat.iter().flatten().map(|&sector| (sector, FAT_SECTOR));
    for (sector, mark) in own.chain(places.difat.iter().map(|&sector| (sector, DIFAT_SECTOR))) {
        if fat.get(sector.get()) == Some(mark) {
            right += 1;
            continue;
        }
        let code = if mark == FAT_SECTOR {
            FindingCode::FatNotMarked
        } else {
            FindingCode::DifatNotMarked
        };
        findings.push(Finding::new(code).at_sector(sector.get()));
    }
    // Those that are right are different sectors; if they are all that have a
    // mark, no other has one.
    let cells = &fat.cells()[..fat.cells().len().min(file_sectors as usize)];
    let is_mark = |cell: u32| matches!(cell, FAT_SECTOR | DIFAT_SECTOR);
    let marks: u32 = cells.iter().map(|&cell| u32::from(is_mark(cell))).sum();
    if marks == right {
        return;
    }
    let mut own = SectorSet::new(SectorCount::new(file_sectors));
    for sector in places.fat.iter().flatten().chain(&places.difat) {
        own.insert_run(Run::single(*sector));
    }
    for (sector, &cell) in (0..file_sectors).zip(cells) {
        if is_mark(cell) && !own.contains(SectorId::new(sector)) {
            findings.push(Finding::new(FindingCode::FatMarkedWrongly).at_sector(sector));
        }
    }
}
