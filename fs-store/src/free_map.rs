//! The free map on disk: which sectors the index, its objects and the store itself
//! use, as of a fold. A page of bits a gibibyte (of 4 KiB sectors); only pages
//! that change are written, elsewhere, and a table says where all of them are.
//! FORMAT.md, "Free map".

use std::io::IoSlice;

use alloc_core::{FreeMap, SectorCount, SectorSet};

use crate::checksum::checksum;
use crate::codec::{Decoder, put_varint};
use crate::error::Result;
use crate::extent::Extent;
use crate::layout::{Blob, PAGE_BYTES, PAGE_SECTORS};
use crate::space::{Purpose, Space};
use crate::tree::read_blob;

/// The used sectors of all files as the last fold left them, and where that is recorded.
#[derive(Clone)]
pub(crate) struct UsedMap {
    files: Vec<FileMap>,
    table: Option<Blob>,
}

#[derive(Clone)]
struct FileMap {
    used: SectorSet,
    pages: Vec<Page>,
}

/// Where a page is recorded; nowhere if no sector of it is used.
#[derive(Clone, Copy, Default)]
struct Page {
    blob: Option<Blob>,
    is_changed: bool,
}

/// What writing a map has taken and left.
#[derive(Default)]
pub(crate) struct MapChange {
    pub(crate) taken: Vec<Extent>,
    pub(crate) left: Vec<Extent>,
}

impl UsedMap {
    /// No files.
    pub(crate) fn new() -> Self {
        Self { files: Vec::new(), table: None }
    }

    pub(crate) fn table(&self) -> Option<Blob> {
        self.table
    }

    /// Reads what a fold has recorded.
    pub(crate) fn load(space: &Space, table: Option<Blob>) -> Result<Self> {
        let mut map = Self { files: Vec::new(), table };
        let Some(blob) = table else { return Ok(map) };
        let bytes = read_blob(space, blob, "the table of the free map")?;
        let bad = || space.damaged("the table of the free map", blob.extent, 0, "it is not one");
        let mut from = Decoder::new(&bytes);
        for _ in 0..from.count(1).ok_or_else(bad)? {
            let count = from.count(1).ok_or_else(bad)?;
            let mut file = FileMap { used: SectorSet::new(SectorCount::new(0)), pages: Vec::new() };
            for _ in 0..count {
                let blob = match from.u8().ok_or_else(bad)? {
                    0 => None,
                    1 => Some(Blob::decode(&mut from, space.sector_bytes).ok_or_else(bad)?),
                    _ => return Err(bad()),
                };
                file.pages.push(Page { blob, is_changed: false });
            }
            map.files.push(file);
        }
        for file in &mut map.files {
            file.load_pages(space)?;
        }
        Ok(map)
    }

    /// Sectors that are not used any more.
    pub(crate) fn remove(&mut self, extents: &[Extent]) {
        for &extent in extents {
            let file = self.file(extent);
            file.used.remove_run(extent.run());
            file.touch(extent);
        }
    }

    /// Sectors that are used from now on.
    pub(crate) fn insert(&mut self, extents: &[Extent]) {
        for &extent in extents {
            let file = self.file(extent);
            file.used.insert_run(extent.run());
            file.touch(extent);
        }
    }

    /// The first of these that has a used sector.
    pub(crate) fn first_used(&self, extents: impl IntoIterator<Item = Extent>) -> Option<Extent> {
        extents.into_iter().find(|extent| {
            self.files.get(usize::from(extent.file)).is_some_and(|file| {
                let total = file.used.total().get();
                let end = (extent.start + extent.count).min(total);
                alloc_core::Run::between(extent.run().start(), alloc_core::SectorId::new(end))
                    .is_some_and(|run| file.used.first_common(run).is_some())
            })
        })
    }

    /// Whether all sectors of an extent are used.
    pub(crate) fn has(&self, extent: Extent) -> bool {
        self.files.get(usize::from(extent.file)).is_some_and(|file| {
            (extent.start..extent.start + extent.count)
                .all(|sector| file.used.contains(alloc_core::SectorId::new(sector)))
        })
    }

    /// Where the map itself is recorded.
    pub(crate) fn own_extents(&self) -> impl Iterator<Item = Extent> + '_ {
        let pages = self.files.iter().flat_map(|file| &file.pages).filter_map(|page| page.blob);
        pages.chain(self.table).map(|blob| blob.extent)
    }

    /// How many sectors are used.
    pub(crate) fn count(&self) -> u64 {
        self.files.iter().map(|file| u64::from(file.used.count().get())).sum()
    }

    /// The last used sector of a file, and one more.
    pub(crate) fn used_end(&self, file: u16) -> u32 {
        let runs = self.files.get(usize::from(file)).map(|file| file.used.runs());
        runs.and_then(Iterator::last).map_or(0, |run| run.end().get())
    }

    /// The map of a file of `total` sectors for an allocator. All that is used
    /// lies within.
    pub(crate) fn free_map(&self, file: u16, total: u32) -> FreeMap {
        let total = SectorCount::new(total);
        let Some(file) = self.files.get(usize::from(file)) else { return FreeMap::new(total) };
        let words = file.used.words().iter().map(|word| !word);
        let all = (total.get() as usize).div_ceil(64);
        let mut words: Vec<u64> = words.take(all).collect();
        words.resize(all, u64::MAX);
        if let Some(last) = words.last_mut()
            && !total.get().is_multiple_of(64)
        {
            *last &= (1 << (total.get() % 64)) - 1;
        }
        FreeMap::from_free_words(total, words)
    }

    fn file(&mut self, extent: Extent) -> &mut FileMap {
        let index = usize::from(extent.file);
        while self.files.len() <= index {
            let used = SectorSet::new(SectorCount::new(0));
            self.files.push(FileMap { used, pages: Vec::new() });
        }
        let file = &mut self.files[index];
        file.reach(extent.start + extent.count);
        file
    }

    /// Writes the pages that have changed, and the table.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Full`]; what was taken is in `change` then as well,
    /// and the map is of no more use.
    pub(crate) fn save(&mut self, space: &Space, change: &mut MapChange) -> Result<()> {
        let take = |bytes: usize| {
            let count = space.sectors_for(bytes as u64);
            space.allocate(count, Purpose::Own, None, &|| Ok(())).map(|taken| taken[0])
        };
        if let Some(table) = self.table.take() {
            self.leave(table.extent, change);
        }
        // What gets a place changes the page that the place is in, so this goes
        // on until all have one. No page gets two.
        let mut placed = Vec::new();
        let mut table: Option<(Extent, usize)> = None;
        loop {
            if let Some((file, index)) = self.next_to_place(&placed) {
                let extent = take(PAGE_BYTES)?;
                change.taken.push(extent);
                let page = &mut self.files[file].pages[index];
                let len = u32::try_from(PAGE_BYTES).expect("small");
                let old = page.blob.replace(Blob { extent, len, crc: 0 });
                placed.push((file, index));
                self.insert(&[extent]);
                if let Some(old) = old {
                    self.leave(old.extent, change);
                }
                continue;
            }
            let bytes = self.table_bytes();
            match table {
                Some((_, room)) if room >= bytes => break,
                Some((extent, _)) => {
                    // More pages have come to be than there is room for.
                    self.remove(&[extent]);
                    change.taken.retain(|taken| *taken != extent);
                    space.release([extent]);
                    table = None;
                }
                None => {
                    let extent = take(bytes)?;
                    change.taken.push(extent);
                    self.insert(&[extent]);
                    table = Some((extent, bytes));
                }
            }
        }
        for (file, index) in placed {
            let bytes = self.files[file].page_bytes(index);
            let page = &mut self.files[file].pages[index];
            let blob = page.blob.as_mut().expect("placed above");
            blob.crc = checksum(&bytes);
            space.write(&[blob.extent], 0, &[IoSlice::new(&bytes)])?;
        }
        for file in &mut self.files {
            for page in &mut file.pages {
                page.is_changed = false;
            }
        }
        let (extent, room) = table.expect("placed above");
        let bytes = self.encode_table(room);
        let len = u32::try_from(room).expect("a table is small");
        self.table = Some(Blob { extent, len, crc: checksum(&bytes) });
        space.write(&[extent], 0, &[IoSlice::new(&bytes)])
    }

    /// Something of the map's own that the new map does not have.
    fn leave(&mut self, extent: Extent, change: &mut MapChange) {
        self.remove(&[extent]);
        change.left.push(extent);
    }

    /// A page that has changed and has no new place yet. Those of which nothing
    /// is used need none.
    fn next_to_place(&self, placed: &[(usize, usize)]) -> Option<(usize, usize)> {
        let is_placed = |at: (usize, usize)| placed.contains(&at);
        let pages = self
            .files
            .iter()
            .enumerate()
            .flat_map(|(file, map)| (0..map.pages.len()).map(move |index| (file, index)));
        pages.into_iter().find(|&(file, index)| {
            self.files[file].pages[index].is_changed && !is_placed((file, index))
        })
    }

    /// Most bytes that the table can take.
    fn table_bytes(&self) -> usize {
        /// A page: a flag, and a blob with its five numbers.
        const PAGE: usize = 1 + 3 + 5 + 5 + 5 + 4;
        10 + self.files.iter().map(|file| 10 + file.pages.len() * PAGE).sum::<usize>()
    }

    /// The bytes of the table, with zeros up to `room`.
    fn encode_table(&self, room: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(room);
        put_varint(&mut out, self.files.len() as u64);
        for file in &self.files {
            put_varint(&mut out, file.pages.len() as u64);
            for page in &file.pages {
                out.push(page.blob.is_some().into());
                if let Some(blob) = page.blob {
                    blob.encode(&mut out);
                }
            }
        }
        out.resize(room, 0);
        out
    }
}

impl FileMap {
    /// Makes the map cover sectors below `end`.
    fn reach(&mut self, end: u32) {
        if self.used.total().get() < end {
            // In steps, so that growing sector by sector costs little.
            let total = end.checked_next_multiple_of(1 << 16).unwrap_or(u32::MAX);
            self.used.grow(SectorCount::new(total));
        }
        let pages = end.div_ceil(PAGE_SECTORS) as usize;
        if self.pages.len() < pages {
            self.pages.resize(pages, Page::default());
        }
    }

    fn touch(&mut self, extent: Extent) {
        let last = extent.start + extent.count - 1;
        for page in extent.start / PAGE_SECTORS..=last / PAGE_SECTORS {
            self.pages[page as usize].is_changed = true;
        }
    }

    /// The bits of a page.
    fn page_bytes(&self, index: usize) -> Vec<u8> {
        const WORDS: usize = PAGE_BYTES / 8;
        let words = self.used.words().iter().skip(index * WORDS).take(WORDS);
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(PAGE_BYTES, 0);
        bytes
    }

    fn load_pages(&mut self, space: &Space) -> Result<()> {
        for index in 0..self.pages.len() {
            let Some(blob) = self.pages[index].blob else { continue };
            let bytes = read_blob(space, blob, "a page of the free map")?;
            let why = "it has another size";
            let bad = || space.damaged("a page of the free map", blob.extent, 0, why);
            if bytes.len() != PAGE_BYTES {
                return Err(bad());
            }
            let first = u32::try_from(index).ok().and_then(|index| index.checked_mul(PAGE_SECTORS));
            let first =
                first.filter(|first| first.checked_add(PAGE_SECTORS).is_some()).ok_or_else(bad)?;
            let words = bytes
                .chunks_exact(8)
                .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
            for (nth, word) in (0..).zip(words) {
                insert_word(self, first + nth * 64, word);
            }
        }
        Ok(())
    }
}

/// Adds the sectors of a word of bits, a run at a time.
fn insert_word(map: &mut FileMap, first: u32, word: u64) {
    let mut left = word;
    while left != 0 {
        let start = left.trailing_zeros();
        let count = (left >> start).trailing_ones();
        let extent = Extent { file: 0, start: first + start, count };
        map.reach(extent.start + count);
        map.used.insert_run(extent.run());
        left &= u64::MAX.checked_shl(start + count).unwrap_or(0);
    }
}
