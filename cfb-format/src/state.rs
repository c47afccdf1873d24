//! Everything a compound file is except its bytes: the metadata in memory,
//! and every decision about it. No I/O happens here.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};

use alloc_core::{Chain, LinkError, LinkRules, Run, SectorCount, SectorId, Window, chain_from};

use crate::commit::Durability;
use crate::dir_entry::EntryKind;
use crate::directory::{Directory, ROOT};
use crate::error::{Corruption, Error};
use crate::finding::Finding;
use crate::header::Header;
use crate::layout::{
    DIFAT_SECTOR, END_OF_CHAIN, FAT_SECTOR, FREE_SECTOR, HEADER_BYTES, MAX_REGULAR_SECTOR,
};
use crate::node::{Beside, Body, MAX_AHEAD_SECTORS, Node, Place, ahead_sectors};
use crate::space::Space;
use crate::table::Table;
use crate::version::{Geometry, Version};

/// The links of FAT and MiniFAT. [MS-CFB] 2.1
const RULES: LinkRules =
    LinkRules { end_of_chain: END_OF_CHAIN, free: FREE_SECTOR, first_special: MAX_REGULAR_SECTOR };

/// So many closed streams keep their nodes, those of them with no more runs
/// than this.
const MAX_CLOSED: usize = 128;
const MAX_CLOSED_RUNS: usize = 256;

/// The chain that starts at `start`, as far as it can be followed, and why
/// not further. A start that says "none" gives an empty chain.
pub(crate) fn chain_in(cells: &[u32], start: u32) -> (Chain, Option<Corruption>) {
    if start == END_OF_CHAIN || start == FREE_SECTOR {
        return (Chain::default(), None);
    }
    let sectors_count = u32::try_from(cells.len()).expect("cells are numbered by u32");
    match chain_from(cells, SectorId::new(start), SectorCount::new(sectors_count), RULES) {
        Ok(chain) => (chain, None),
        Err((mut chain, error)) => {
            let fault = match error {
                LinkError::OutOfRange { to, .. } => Corruption::OutOfRange {
                    from: chain.last().map(SectorId::get),
                    to: to.get(),
                    sectors_count,
                },
                LinkError::NotInAChain { at, found } => {
                    // The cell of a chain's last sector says only that
                    // nothing comes behind; writers have left it free.
                    if !matches!(found, FAT_SECTOR | DIFAT_SECTOR) {
                        chain.push(Run::single(at));
                    }
                    Corruption::NotInAChain { sector: at.get(), found }
                }
                LinkError::Cycle { at }
                | LinkError::CrossLink { at }
                | LinkError::TooLong { at, .. } => Corruption::Cycle { sector: at.get() },
                other => unreachable!("a link error without a meaning here: {other}"),
            };
            (chain, Some(fault))
        }
    }
}

/// What was read from a file.
pub(crate) struct Loaded {
    pub(crate) geometry: Geometry,
    pub(crate) header: Header,
    pub(crate) file_len: u64,
    pub(crate) file_sectors: u32,
    pub(crate) fat: Table,
    pub(crate) fat_sectors: Vec<Option<SectorId>>,
    pub(crate) difat_sectors: Vec<SectorId>,
    pub(crate) dir: Directory,
    pub(crate) dir_chain: Chain,
    pub(crate) mini_fat: Table,
    pub(crate) mini_fat_chain: Chain,
    pub(crate) mini_stream: Chain,
    pub(crate) findings: Vec<Finding>,
}

/// FAT and MiniFAT: for reading only tables; from the first change on with
/// free maps, which take a walk over every chain.
#[derive(Debug)]
enum Sectors {
    Tables { fat: Table, mini: Table },
    Spaces(Box<Spaces>),
}

/// The file's sectors and the mini stream's mini sectors.
#[derive(Debug)]
pub(crate) struct Spaces {
    pub(crate) fat: Space,
    pub(crate) mini: Space,
    /// The growth window of the mini stream.
    mini_window: Window,
}

impl Spaces {
    /// The space that streams of this place have their sectors from.
    pub(crate) fn of(&mut self, place: Place) -> &mut Space {
        match place {
            Place::Regular => &mut self.fat,
            Place::Mini => &mut self.mini,
        }
    }
}

/// A stream's sectors as found in the tables.
pub(crate) struct Found {
    pub(crate) place: Place,
    pub(crate) chain: Chain,
    /// Bytes that can be read.
    pub(crate) intact: u64,
    /// Why not all of them.
    pub(crate) damage: Option<Corruption>,
    /// Why the chain does not end as it should, be it with all bytes.
    pub(crate) broken: Option<Corruption>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) geometry: Geometry,
    /// Whether a save leaves everything as it is that the saved state refers
    /// to, until the header switches to the new one.
    pub(crate) atomic: bool,
    /// How the last save was asked for.
    pub(crate) durability: Durability,
    /// Whether the last try to sync the storage failed.
    pub(crate) sync_failed: bool,
    pub(crate) header: Header,
    /// Length in bytes and number of sectors of the file as opened.
    pub(crate) file_len: u64,
    file_sectors: u32,
    sectors: Sectors,
    pub(crate) fat_sectors: Vec<Option<SectorId>>,
    pub(crate) difat_sectors: Vec<SectorId>,
    /// Whether the list of FAT sectors differs from the file's.
    pub(crate) difat_changed: bool,
    pub(crate) dir: Directory,
    pub(crate) dir_chain: Chain,
    pub(crate) mini_fat_chain: Chain,
    /// The sectors of the mini stream; shared with readers of small streams.
    pub(crate) mini_stream: Arc<RwLock<Chain>>,
    /// Streams with open handles, and some that had some, by slot.
    open: hashbrown::HashMap<u32, Arc<Node>>,
    /// Slots of streams whose last handles were closed, about in that order, none
    /// twice: the latest keep their nodes, so that a stream which is opened again
    /// soon is not followed through the table again.
    closed: VecDeque<u32>,
    /// A node that nobody uses, to be used again.
    spare: Option<Arc<Node>>,
    pub(crate) findings: Vec<Finding>,
    /// How often the file was saved since it was opened.
    pub(crate) saves_count: u64,
    /// The header as the file has it, as far as it is known and understood.
    pub(crate) saved_header: Option<[u8; HEADER_BYTES]>,
}

impl State {
    /// A new file: only a root.
    pub(crate) fn new(version: Version) -> Self {
        let geometry = Geometry::new(version);
        let cells = geometry.cells_per_sector();
        let mut state = Self::loaded(Loaded {
            geometry,
            header: Header::empty(),
            file_len: 0,
            file_sectors: 0,
            fat: Table::new(Vec::new(), cells),
            fat_sectors: Vec::new(),
            difat_sectors: Vec::new(),
            dir: Directory::new(),
            dir_chain: Chain::default(),
            mini_fat: Table::new(Vec::new(), cells),
            mini_fat_chain: Chain::default(),
            mini_stream: Chain::default(),
            findings: Vec::new(),
        });
        state.make_spaces();
        state
    }

    pub(crate) fn loaded(loaded: Loaded) -> Self {
        let is_there = loaded.file_len > 0;
        let saved_header = is_there.then(|| loaded.header.encode(loaded.geometry));
        Self {
            geometry: loaded.geometry,
            atomic: true,
            sync_failed: false,
            durability: Durability::Process,
            header: loaded.header,
            file_len: loaded.file_len,
            file_sectors: loaded.file_sectors,
            sectors: Sectors::Tables { fat: loaded.fat, mini: loaded.mini_fat },
            fat_sectors: loaded.fat_sectors,
            difat_sectors: loaded.difat_sectors,
            difat_changed: false,
            dir: loaded.dir,
            dir_chain: loaded.dir_chain,
            mini_fat_chain: loaded.mini_fat_chain,
            mini_stream: Arc::new(RwLock::new(loaded.mini_stream)),
            open: hashbrown::HashMap::new(),
            closed: VecDeque::new(),
            spare: None,
            findings: loaded.findings,
            saves_count: 0,
            saved_header,
        }
    }

    /// Goes back to what was read from the file. Handles and ids of before are
    /// stale: a slot may have had another entry since.
    pub(crate) fn revert_to(&mut self, saved: Self) {
        for node in self.open.values() {
            node.body.write().expect("not poisoned").removed = true;
        }
        let mini_stream = Arc::clone(&self.mini_stream);
        let (atomic, sync_failed, durability) = (self.atomic, self.sync_failed, self.durability);
        let first_generation = self.dir.next_generation();
        *self = saved;
        (self.atomic, self.sync_failed, self.durability) = (atomic, sync_failed, durability);
        self.dir.number_from(first_generation);
        // Readers of small streams have this one.
        let new = std::mem::replace(&mut self.mini_stream, mini_stream);
        let new = std::mem::take(&mut *new.write().expect("not poisoned"));
        *self.mini_stream.write().expect("not poisoned") = new;
    }

    /// Everything is in the file now.
    pub(crate) fn saved(&mut self) {
        self.saves_count += 1;
        self.dir.saved();
        self.difat_changed = false;
        let spaces = self.make_spaces();
        spaces.fat.saved();
        spaces.mini.saved();
    }

    /// Whether the file has everything, but for bytes on their way and streams
    /// that are not settled.
    pub(crate) fn is_saved(&self) -> bool {
        self.saved_header.is_some()
            && self.dir.is_linked()
            && !self.dir.is_changed()
            && !self.difat_changed
            && self.fat().changed().is_empty()
            && self.mini_fat().changed().is_empty()
    }

    /// Nobody knows whether the file has the new state or still the old one.
    pub(crate) fn seal(&mut self) {
        self.saved_header = None;
        let spaces = self.make_spaces();
        spaces.fat.seal();
        spaces.mini.seal();
    }

    pub(crate) fn fat(&self) -> &Table {
        match &self.sectors {
            Sectors::Tables { fat, .. } => fat,
            Sectors::Spaces(spaces) => &spaces.fat.table,
        }
    }

    pub(crate) fn mini_fat(&self) -> &Table {
        match &self.sectors {
            Sectors::Tables { mini, .. } => mini,
            Sectors::Spaces(spaces) => &spaces.mini.table,
        }
    }

    /// Whether the file was made and not opened.
    pub(crate) const fn is_new(&self) -> bool {
        self.file_len == 0
    }

    /// Sectors that the file has, or will have once saved.
    pub(crate) fn sectors_count(&self) -> u32 {
        match &self.sectors {
            Sectors::Tables { .. } => self.file_sectors,
            Sectors::Spaces(spaces) => spaces.fat.total(),
        }
    }

    /// The range lock sector, when the file reaches it. [MS-CFB] 2.7
    pub(crate) fn range_lock(&self) -> Option<u32> {
        let sector = self.geometry.range_lock_sector();
        let reached = sector < self.sectors_count();
        (self.geometry.version == Version::V4 && reached).then_some(sector)
    }

    fn mini_sectors_count(&self) -> u32 {
        let sectors = self.mini_stream.read().expect("not poisoned").sector_count().get();
        sectors.saturating_mul(self.geometry.minis_per_sector())
    }

    /// The chain of a stream, and how many of its bytes can be read.
    pub(crate) fn find_stream(&self, slot: u32) -> Found {
        let entry = self.dir.entry(slot);
        if entry.len_bytes == 0 {
            let (place, chain) = (Place::Mini, Chain::default());
            return Found { place, chain, intact: 0, damage: None, broken: None };
        }
        let (place, cells, limit, unit) = if self.geometry.is_mini(entry.len_bytes) {
            let limit = self.mini_sectors_count();
            (Place::Mini, self.mini_fat().cells(), limit, self.geometry.mini_bytes())
        } else {
            let limit = self.sectors_count();
            (Place::Regular, self.fat().cells(), limit, self.geometry.sector_bytes())
        };
        let cells = &cells[..cells.len().min(limit as usize)];
        let (chain, broken) = chain_in(cells, entry.start_sector);
        let chain_bytes = chain.sector_count().bytes(unit);
        let mut intact = chain_bytes.min(entry.len_bytes);
        let mut damage = None;
        if intact < entry.len_bytes {
            damage = Some(
                broken
                    .clone()
                    .unwrap_or(Corruption::ShortChain { chain_bytes, len_bytes: entry.len_bytes }),
            );
        }
        if let Some(end) = self.end_of_file_in(place, &chain)
            && end < intact
        {
            intact = end;
            damage = Some(Corruption::FileEnds { sector: self.file_sectors - 1 });
        }
        Found { place, chain, intact, damage, broken }
    }

    /// Where in a stream the end of the file falls, if the file's last sector
    /// is cut short and the stream has it.
    fn end_of_file_in(&self, place: Place, chain: &Chain) -> Option<u64> {
        let sector_bytes = u64::from(self.geometry.sector_bytes());
        let there = self.file_len % sector_bytes;
        if there == 0 || self.file_sectors == 0 || matches!(self.sectors, Sectors::Spaces(_)) {
            return None;
        }
        let last = SectorId::new(self.file_sectors - 1);
        let position = |chain: &Chain, sector: SectorId| {
            let mut before = 0;
            for run in chain.runs() {
                if run.contains(sector) {
                    return Some(before + u64::from(sector.get() - run.start().get()));
                }
                before += u64::from(run.count().get());
            }
            None
        };
        match place {
            Place::Regular => Some(position(chain, last)? * sector_bytes + there),
            Place::Mini => {
                let mini_stream = self.mini_stream.read().expect("not poisoned");
                let end = position(&mini_stream, last)? * sector_bytes + there;
                let mini_bytes = u64::from(self.geometry.mini_bytes());
                // The first mini sector of the stream that reaches past the end.
                let mut before = 0;
                for run in chain.runs() {
                    let run_end = u64::from(run.end().get()) * mini_bytes;
                    if run_end > end {
                        let run_start = u64::from(run.start().get()) * mini_bytes;
                        return Some(before + end.saturating_sub(run_start));
                    }
                    before += u64::from(run.count().get()) * mini_bytes;
                }
                None
            }
        }
    }

    /// Where the directory's and MiniFAT's and FAT's own sectors are.
    pub(crate) fn metadata_runs(&self) -> impl Iterator<Item = Run> + '_ {
        let singles = self.fat_sectors.iter().flatten().chain(&self.difat_sectors);
        self.dir_chain
            .runs()
            .chain(self.mini_fat_chain.runs())
            .chain(singles.map(|&sector| Run::single(sector)))
    }

    /// The spaces, made at the first change: every chain is walked once to
    /// learn what is in use, and what two chains of a damaged file share.
    ///
    /// Broken chains are cut where they break, so that a sector taken later
    /// never becomes part of them.
    pub(crate) fn make_spaces(&mut self) -> &mut Spaces {
        if matches!(self.sectors, Sectors::Tables { .. }) {
            let (mut regular, mut mini) = (Vec::new(), Vec::new());
            let mut cuts: Vec<(Place, u32, Option<SectorId>)> = Vec::new();
            let slots: Vec<u32> = self.dir.slots().collect();
            for slot in slots {
                if self.dir.entry(slot).kind != EntryKind::Stream {
                    continue;
                }
                let found = self.find_stream(slot);
                // A link back into the chain leads to no sector that anything
                // else could get; its cell may be another stream's as well.
                if found.broken.is_some_and(|fault| !matches!(fault, Corruption::Cycle { .. })) {
                    cuts.push((found.place, slot, found.chain.last()));
                }
                match found.place {
                    Place::Regular => regular.push(found.chain),
                    Place::Mini => mini.push(found.chain),
                }
            }
            regular.push(self.mini_stream.read().expect("not poisoned").clone());
            let mini_total = self.mini_sectors_count();
            let mini_len = self.dir.entry(ROOT).len_bytes;
            let mini_end = u32::try_from(self.geometry.minis_for(mini_len)).unwrap_or(u32::MAX);
            let claims = regular.iter().flat_map(Chain::runs).chain(self.metadata_runs());
            let claims: Vec<Run> = claims.collect();
            let placeholder =
                Sectors::Tables { fat: Table::new(Vec::new(), 1), mini: Table::new(Vec::new(), 1) };
            let Sectors::Tables { fat, mini: mini_fat } =
                std::mem::replace(&mut self.sectors, placeholder)
            else {
                unreachable!("just seen")
            };
            let geometry = self.geometry;
            let pinned = (geometry.version == Version::V4).then(|| geometry.range_lock_sector());
            let mut fat = Space::new(
                fat,
                self.file_sectors,
                self.file_sectors,
                geometry.max_sectors().max(self.file_sectors),
                pinned,
                claims.into_iter(),
            );
            let mini_limit = MAX_REGULAR_SECTOR;
            let mini_runs: Vec<Run> = mini.iter().flat_map(Chain::runs).collect();
            let mut mini =
                Space::new(mini_fat, mini_total, mini_end, mini_limit, None, mini_runs.into_iter());
            for (place, slot, last) in cuts {
                match (last, place) {
                    (Some(last), Place::Regular) => fat.table.set(last.get(), END_OF_CHAIN),
                    (Some(last), Place::Mini) => mini.table.set(last.get(), END_OF_CHAIN),
                    (None, _) => self.dir.entry_mut(slot).start_sector = END_OF_CHAIN,
                }
            }
            self.dir.write_rebuilt();
            let spaces = Spaces { fat, mini, mini_window: Window::doubling() };
            self.sectors = Sectors::Spaces(Box::new(spaces));
            self.part_metadata();
        }
        self.spaces().expect("just made")
    }

    /// Gives metadata that shares sectors with something else in a damaged
    /// file sectors of its own: it is in memory, so it can be written anywhere.
    ///
    /// Where the limit of the file is reached, it stays where it is.
    fn part_metadata(&mut self) {
        let Sectors::Spaces(spaces) = &mut self.sectors else { unreachable!("made before") };
        let fat = &mut spaces.fat;
        for place in &mut self.fat_sectors {
            if let Some(sector) = *place
                && fat.is_shared(Run::single(sector))
            {
                fat.release(&Chain::from_runs([Run::single(sector)]));
                *place = None;
            }
        }
        let difat = Chain::from_runs(self.difat_sectors.iter().map(|&s| Run::single(s)));
        if fat.has_shared(&difat) {
            fat.release(&difat);
            self.difat_sectors.clear();
            self.difat_changed = true;
        }
        for (chain, is_directory) in
            [(&mut self.dir_chain, true), (&mut self.mini_fat_chain, false)]
        {
            if fat.has_shared(chain)
                && let Ok(new) = fat.allocate(chain.sector_count().get())
            {
                fat.release(chain);
                *chain = new;
                if is_directory {
                    self.dir.touch_all();
                } else {
                    spaces.mini.table.touch_all();
                }
            }
            // Where the chain broke in the file, it ends.
            fat.table.relink(chain, 0, chain.sector_count().get());
        }
        let mini_stream = self.mini_stream.read().expect("not poisoned");
        // One that shares sectors is moved before the first change; its last
        // cell may be another stream's until then.
        if !fat.has_shared(&mini_stream) {
            fat.table.relink(&mini_stream, 0, mini_stream.sector_count().get());
        }
        drop(mini_stream);
        for sector in self.fat_sectors.iter().flatten() {
            fat.mark(*sector, FAT_SECTOR);
        }
        for sector in &self.difat_sectors {
            fat.mark(*sector, DIFAT_SECTOR);
        }
    }

    /// Whether two chains of a damaged file claim one sector.
    pub(crate) fn has_shared_sectors(&self) -> bool {
        self.spaces_ref().is_some_and(|spaces| spaces.fat.has_claims())
    }

    /// Sectors of its own for a mini stream that shares some in a damaged
    /// file; its bytes have to be copied before
    /// [`move_mini_stream`](Self::move_mini_stream).
    pub(crate) fn part_mini_stream(&mut self) -> Result<Option<Chain>, Error> {
        let mini_stream = Arc::clone(&self.mini_stream);
        let chain = mini_stream.read().expect("not poisoned");
        let spaces = self.make_spaces();
        if !spaces.fat.has_shared(&chain) {
            return Ok(None);
        }
        spaces.fat.allocate(chain.sector_count().get()).map(Some)
    }

    pub(crate) fn move_mini_stream(&mut self, new: Chain) {
        let old = std::mem::replace(&mut *self.mini_stream.write().expect("not poisoned"), new);
        self.release(Place::Regular, &old);
    }

    /// The spaces, once something was changed.
    pub(crate) fn spaces(&mut self) -> Option<&mut Spaces> {
        match &mut self.sectors {
            Sectors::Tables { .. } => None,
            Sectors::Spaces(spaces) => Some(spaces),
        }
    }

    pub(crate) fn spaces_ref(&self) -> Option<&Spaces> {
        match &self.sectors {
            Sectors::Tables { .. } => None,
            Sectors::Spaces(spaces) => Some(spaces),
        }
    }

    /// Adds sectors to a chain until it holds `len_bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::FileFull`]; the chain is unchanged then.
    pub(crate) fn extend(
        &mut self,
        place: Place,
        chain: &mut Chain,
        len_bytes: u64,
    ) -> Result<(), Error> {
        let geometry = self.geometry;
        let want = geometry.units_for(place, len_bytes);
        let have = chain.sector_count().get();
        let missing = want.saturating_sub(u64::from(have));
        let count = u32::try_from(missing)
            .map_err(|_| Error::FileFull { wanted: missing, available: 0 })?;
        if count == 0 {
            return Ok(());
        }
        let mini_stream = Arc::clone(&self.mini_stream);
        let spaces = self.make_spaces();
        let window = &mut Window::none();
        match place {
            Place::Regular => {
                let missing = spaces.fat.missing_for(chain, window, count);
                spaces.fat.grow(missing);
                spaces.fat.extend(chain, window, count)
            }
            Place::Mini => {
                let missing = spaces.mini.missing_for(chain, window, count);
                if missing > 0 {
                    let sectors = missing.div_ceil(geometry.minis_per_sector());
                    let mut mini_stream = mini_stream.write().expect("not poisoned");
                    let missing =
                        spaces.fat.missing_for(&mini_stream, &spaces.mini_window, sectors);
                    spaces.fat.grow(missing);
                    spaces.fat.extend(&mut mini_stream, &mut spaces.mini_window, sectors)?;
                    spaces.mini.grow(sectors * geometry.minis_per_sector());
                }
                spaces.mini.extend(chain, window, count)
            }
        }
    }

    /// Adds sectors to a stream's chain until it holds `len_bytes`, and if any
    /// are needed, some ahead; the next time twice as many.
    ///
    /// # Errors
    ///
    /// [`Error::FileFull`]; the chain is unchanged then.
    pub(crate) fn extend_ahead(
        &mut self,
        chain: &mut Chain,
        len_bytes: u64,
        ahead_sectors: &mut u32,
    ) -> Result<(), Error> {
        if self.geometry.sectors_for(len_bytes) <= u64::from(chain.sector_count().get()) {
            return Ok(());
        }
        let ahead_bytes = u64::from(*ahead_sectors) * u64::from(self.geometry.sector_bytes());
        *ahead_sectors = (*ahead_sectors * 2).min(MAX_AHEAD_SECTORS);
        let with_ahead = len_bytes.saturating_add(ahead_bytes);
        self.extend(Place::Regular, chain, with_ahead)
            .or_else(|_| self.extend(Place::Regular, chain, len_bytes))
    }

    /// Sectors to take the place of those of a stream's chain that hold the
    /// bytes `range` and that the saved state refers to; and which of the
    /// chain's they replace first. `None` if there are none.
    ///
    /// Of a stream that is written over in a row, the body gets sectors for what
    /// comes next.
    ///
    /// # Errors
    ///
    /// [`Error::FileFull`]; nothing is taken then.
    pub(crate) fn replacement(
        &mut self,
        body: &mut Body,
        range: &Range<u64>,
    ) -> Result<Option<(u32, Chain)>, Error> {
        let place = body.place;
        let chain = &body.chain;
        if !self.atomic || range.is_empty() {
            return Ok(None);
        }
        let unit = u64::from(self.geometry.unit_bytes(place));
        let space = self.make_spaces().of(place);
        let sector = |at: u64| u32::try_from(at).expect("the chain has that many");
        let end = sector(range.end.div_ceil(unit)).min(chain.sector_count().get());
        let first = sector(range.start / unit);
        if first >= end {
            return Ok(None);
        }
        let Some((first, count)) = space.stale_in(chain, first, end) else { return Ok(None) };
        // Behind what was replaced last, so that a stream that is written over in
        // pieces lies in one run again.
        let before = first.checked_sub(1).and_then(|at| chain.locate(SectorCount::new(at)));
        let goal = before.map(|run| SectorId::new(run.start().get() + 1));
        let next = first + count;
        let ahead = if place == Place::Regular { space.stale_from(chain, next) } else { 0 };
        let ahead = body.sectors_beside(range.start, count).min(ahead);
        if ahead > 0
            && let Ok(mut new) = self.take(place, count + ahead, goal)
        {
            let rest = new.split_off(SectorCount::new(count));
            match rest.last_run() {
                Some(run) if rest.run_count() == 1 => {
                    body.beside = Some(Beside { first: next, run });
                }
                _ => self.release(place, &rest),
            }
            return Ok(Some((first, new)));
        }
        Ok(Some((first, self.take(place, count, goal)?)))
    }

    /// Gives back what was taken for a stream that is being written over.
    pub(crate) fn release_beside(&mut self, body: &mut Body) {
        if let Some(beside) = body.beside.take() {
            self.release(Place::Regular, &beside.run.into());
        }
    }

    /// Takes sectors as a chain of its own.
    fn take(&mut self, place: Place, count: u32, goal: Option<SectorId>) -> Result<Chain, Error> {
        if place == Place::Regular {
            return self.make_spaces().fat.allocate_at(count, goal);
        }
        let mut chain = Chain::default();
        let len_bytes = u64::from(count) * u64::from(self.geometry.mini_bytes());
        self.extend(place, &mut chain, len_bytes)?;
        Ok(chain)
    }

    /// Gives the sectors of a chain back.
    pub(crate) fn release(&mut self, place: Place, chain: &Chain) {
        self.make_spaces().of(place).release(chain);
    }

    /// Whether a chain has sectors that another stream of a damaged file has too.
    pub(crate) fn has_shared(&mut self, place: Place, chain: &Chain) -> bool {
        self.make_spaces().of(place).has_shared(chain)
    }

    /// The node of a stream for a new handle, made from its entry when there
    /// is none yet.
    pub(crate) fn node(&mut self, slot: u32) -> Arc<Node> {
        if let Some(node) = self.open.get(&slot) {
            node.add_handle();
            return Arc::clone(node);
        }
        let len = self.dir.entry(slot).len_bytes;
        let is_saved = !self.dir.is_slot_changed(slot);
        let new = Node::new(slot, len, self.find_stream(slot), is_saved, self.saves_count);
        let mut spare = self.spare.take();
        let node = match spare.as_mut().and_then(Arc::get_mut) {
            Some(node) => {
                *node = new;
                spare.expect("just seen")
            }
            None => Arc::new(new),
        };
        self.open.insert(slot, Arc::clone(&node));
        node.add_handle();
        node
    }

    /// Settles every stream that has handles.
    pub(crate) fn settle_all(&mut self) {
        for node in self.open_nodes() {
            let mut body = node.body.write().expect("not poisoned");
            self.settle(&node, &mut body);
        }
    }

    /// Streams with handles: those that may have changes of their own.
    pub(crate) fn open_nodes(&self) -> Vec<Arc<Node>> {
        self.open.values().filter(|node| node.has_handles()).cloned().collect()
    }

    /// Bytes of a stream: of the open node where there is one.
    pub(crate) fn stream_len(&self, slot: u32) -> u64 {
        self.open.get(&slot).map_or_else(|| self.dir.entry(slot).len_bytes, |node| node.len())
    }

    /// Brings the entry and the tables in line with an open stream: gives
    /// back what is no longer needed, notes start and length.
    pub(crate) fn settle(&mut self, node: &Node, body: &mut Body) {
        if self.atomic || self.sync_failed {
            // What is saved next is not to be written over, and nobody writes
            // while everything is written again.
            body.fresh = 0..0;
        }
        if !body.changed || body.removed {
            return;
        }
        self.release_beside(body);
        for (place, chain) in std::mem::take(&mut body.garbage) {
            self.release(place, &chain);
        }
        let geometry = self.geometry;
        let len = node.len();
        let keep = geometry.units_for(body.place, len);
        let space = self.make_spaces().of(body.place);
        for (first, count) in std::mem::take(&mut body.spliced) {
            space.table.relink(&body.chain, first, count);
        }
        if body.damage.is_none() {
            let keep = u32::try_from(keep).expect("the chain has that many");
            space.truncate(&mut body.chain, keep);
        }
        body.ahead_sectors = ahead_sectors(body.chain.sector_count().get());
        let start = body.chain.first().map_or(END_OF_CHAIN, SectorId::get);
        let entry = self.dir.entry(node.slot);
        if entry.start_sector != start || entry.len_bytes != len {
            let entry = self.dir.entry_mut(node.slot);
            entry.start_sector = start;
            entry.len_bytes = len;
        }
        body.note_settled(len, self.saves_count);
        body.changed = false;
    }

    /// Takes a handle's part in a stream away; the last one settles it.
    pub(crate) fn close(&mut self, node: &Arc<Node>) {
        if node.drop_handle() {
            return;
        }
        if !self.open.get(&node.slot).is_some_and(|open| Arc::ptr_eq(open, node)) {
            return; // the entry was removed
        }
        // A panic while the body was held leaves it as it is: this runs in
        // `Drop`, perhaps while that panic unwinds.
        let Ok(mut body) = node.body.write() else {
            self.open.remove(&node.slot);
            return;
        };
        self.settle(node, &mut body);
        if body.chain.run_count() > MAX_CLOSED_RUNS {
            self.open.remove(&node.slot);
            return;
        }
        if node.is_listed.swap(true, Ordering::Relaxed) {
            node.is_used_again.store(true, Ordering::Relaxed);
            return;
        }
        self.closed.push_back(node.slot);
        if self.closed.len() > MAX_CLOSED {
            self.forget_oldest();
        }
    }

    /// Lets the node go whose stream was closed first. Those that were closed again
    /// since go to the end of the list, those that are open now off it.
    fn forget_oldest(&mut self) {
        while let Some(slot) = self.closed.pop_front() {
            let Some(node) = self.open.get(&slot) else { return };
            if node.has_handles() {
                node.is_listed.store(false, Ordering::Relaxed);
                return;
            }
            if !node.is_used_again.swap(false, Ordering::Relaxed) {
                self.spare = self.open.remove(&slot);
                return;
            }
            self.closed.push_back(slot);
        }
    }

    /// Removes a stream, or a storage without entries.
    pub(crate) fn remove_entry(&mut self, slot: u32) {
        if self.dir.entry(slot).kind == EntryKind::Stream {
            self.make_spaces();
            let node = self.node(slot);
            let mut body = node.body.write().expect("not poisoned");
            self.release_beside(&mut body);
            for (place, chain) in std::mem::take(&mut body.garbage) {
                self.release(place, &chain);
            }
            let place = body.place;
            let chain = std::mem::take(&mut body.chain);
            self.release(place, &chain);
            body.removed = true;
            self.open.remove(&slot);
        }
        self.dir.remove(slot);
    }

    /// An entry and all below it, children before their storage.
    pub(crate) fn subtree(&mut self, slot: u32) -> Vec<u32> {
        self.dir.link_new();
        let mut order = vec![slot];
        let mut next = 0;
        while next < order.len() {
            if self.dir.entry(order[next]).kind != EntryKind::Stream {
                let children = self.dir.children(order[next]);
                order.extend(children);
            }
            next += 1;
        }
        order.reverse();
        order
    }

    /// The mini stream's length follows its last mini sector in use; sectors
    /// it no longer needs are given back.
    pub(crate) fn fit_mini_stream(&mut self) {
        let geometry = self.geometry;
        let mini_stream = Arc::clone(&self.mini_stream);
        let Some(spaces) = self.spaces() else { return };
        let Spaces { fat, mini, mini_window } = spaces;
        fat.trim(mini_window);
        fat.trim_ahead();
        mini.trim_ahead();
        let end = mini.used_end();
        let mut chain = mini_stream.write().expect("not poisoned");
        let keep = end.div_ceil(geometry.minis_per_sector());
        if keep < chain.sector_count().get() {
            fat.truncate(&mut chain, keep);
            mini.shrink();
            mini.grow(keep * geometry.minis_per_sector() - mini.total());
        }
        let table_sectors = end.div_ceil(geometry.cells_per_sector());
        if table_sectors < mini.table.sectors_count() {
            mini.table.truncate(table_sectors);
        }
        let start = chain.first().map_or(END_OF_CHAIN, SectorId::get);
        let len_bytes = u64::from(end) * u64::from(geometry.mini_bytes());
        drop(chain);
        let root = self.dir.entry(ROOT);
        // A file that rounds its mini stream's length otherwise may go on so
        // as long as nothing changes.
        let same_end = root.len_bytes.div_ceil(u64::from(geometry.mini_bytes())) == u64::from(end);
        if root.start_sector != start || !same_end {
            let root = self.dir.entry_mut(ROOT);
            root.start_sector = start;
            root.len_bytes = len_bytes;
        }
    }

    /// Metadata that was read when the file was opened, in sectors.
    pub(crate) fn metadata_sectors(&self) -> u32 {
        self.metadata_runs().map(|run| run.count().get()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_CLOSED, MAX_CLOSED_RUNS};
    use crate::{CompoundFile, MemStorage};
    use std::sync::Arc;

    #[test]
    fn closed_streams_keep_their_nodes_up_to_a_number() {
        let file = CompoundFile::create_in(MemStorage::new()).unwrap();
        let first = file.create_stream("first").unwrap();
        for i in 0..3 * MAX_CLOSED {
            file.write_stream(&i.to_string(), b"x").unwrap();
        }
        // The first is open; all others were closed.
        assert_eq!(file.shared().read_state().open.len(), MAX_CLOSED + 1);
        let second = first.clone();
        drop(first);
        assert!(file.shared().read_state().open_nodes().iter().any(|node| node.has_handles()));
        drop(second);
        let state = file.shared().read_state();
        assert_eq!(state.open_nodes().len(), 0);
        assert_eq!((state.open.len(), state.closed.len()), (MAX_CLOSED, MAX_CLOSED));
    }

    #[test]
    fn streams_that_are_opened_in_turn_keep_their_nodes() {
        let file = CompoundFile::create_in(MemStorage::new()).unwrap();
        let names: Vec<String> = (0..MAX_CLOSED).map(|i| i.to_string()).collect();
        for name in &names {
            file.write_stream(name, b"x").unwrap();
        }
        let nodes = || {
            let state = file.shared().read_state();
            let mut nodes: Vec<_> = state.open.values().map(Arc::as_ptr).collect();
            nodes.sort_unstable();
            nodes
        };
        let before = nodes();
        assert_eq!(before.len(), MAX_CLOSED);
        for name in names.iter().cycle().take(5 * MAX_CLOSED) {
            file.open_stream(name).unwrap();
            assert_eq!(nodes(), before);
        }
        // One more, which takes the place of the first in line.
        file.write_stream("more", b"x").unwrap();
        let (after, is_before) = (nodes(), |node| before.contains(node));
        assert_eq!(after.len(), MAX_CLOSED);
        assert!(after.iter().filter(|&node| is_before(node)).count() >= MAX_CLOSED - 1);
        assert_eq!(file.shared().read_state().closed.len(), MAX_CLOSED);
    }

    #[test]
    fn closed_stream_in_very_many_runs_is_forgotten() {
        let file = CompoundFile::create_in(MemStorage::new()).unwrap();
        let streams = ["a", "b"].map(|name| file.create_stream(name).unwrap());
        for turn in 0..4 * MAX_CLOSED_RUNS as u64 {
            for stream in &streams {
                stream.set_len(8192 + turn * 512).unwrap();
            }
        }
        assert!(streams[0].extents().unwrap().len() > MAX_CLOSED_RUNS);
        drop(streams);
        assert_eq!(file.shared().read_state().open.len(), 0);
    }

    #[test]
    fn slot_of_a_closed_stream_can_be_removed_and_used_again() {
        let file = CompoundFile::create_in(MemStorage::new()).unwrap();
        file.write_stream("a", b"one").unwrap();
        file.remove_stream("a").unwrap();
        file.write_stream("b", b"two").unwrap();
        assert_eq!(file.read_stream("b").unwrap(), b"two");
        assert_eq!(file.check().unwrap(), []);
    }
}
