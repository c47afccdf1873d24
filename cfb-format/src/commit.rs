//! How a new state reaches the file: what is written, and in which order.
//!
//! 1. Every open stream is settled: entry and tables say what it has.
//! 2. The mini stream, directory, MiniFAT, FAT and DIFAT get as many sectors as
//!    they need; the FAT describes itself, so that is a fixed point.
//! 3. Stream data that is still gathered is written.
//! 4. Changed sectors of directory, MiniFAT, FAT and DIFAT are written, those
//!    that touch in one call.
//! 5. The header is written last.
//! 6. What the file used before and no longer uses becomes free; a free end is
//!    cut off.
//!
//! A call that fails leaves the changes marked as unsaved, so the next flush
//! writes them again.

use alloc_core::{Chain, SectorCount, SectorId};

use crate::directory::ROOT;
use crate::error::{Doing, Error};
use crate::layout::{DIFAT_SECTOR, END_OF_CHAIN, FAT_SECTOR, FREE_SECTOR, HEADER_DIFAT_LEN};
use crate::shared::Shared;
use crate::state::State;
use crate::storage::Storage;
use crate::version::{Geometry, Version};

/// Writes that touch are joined up to this many bytes.
const JOIN_BYTES: usize = 4 << 20;

/// Rounds of shrinking in one flush: each halves what is left to win, or so.
const SHRINK_ROUNDS: usize = 16;

/// The same for a storage in memory: so few that they stay in the cache until
/// they are copied.
const JOIN_BYTES_IN_MEMORY: usize = 32 << 10;

/// Consecutive sectors of metadata that are to be written.
#[derive(Clone, Copy)]
struct Patch {
    /// Byte offset in the storage.
    offset: u64,
    part: Part,
    /// The first sector, counted in its part.
    first: u32,
    /// How many, never zero.
    count: u32,
}

/// What metadata sectors belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Directory,
    MiniFat,
    Fat,
    Difat,
}

/// Brings every change to the storage.
///
/// # Errors
///
/// [`Error::Io`], [`Error::FileFull`]: everything stays unsaved in memory, and the next
/// call tries again.
pub(crate) fn flush<S: Storage>(shared: &Shared<S>) -> Result<(), Error> {
    let mut state = shared.write_state();
    let state = &mut *state;
    if state.spaces_ref().is_none() {
        return Ok(());
    }
    save(shared, state)?;
    // Each round gives back what the one before it freed; a move of metadata
    // out of a free end is worth a second one only when much is won.
    for _ in 0..SHRINK_ROUNDS {
        if !shrink_is_worth_it(state) {
            break;
        }
        save(shared, state)?;
    }
    cut_end(shared, state)
}

/// One round of the steps above.
fn save<S: Storage>(shared: &Shared<S>, state: &mut State) -> Result<(), Error> {
    for node in state.open_nodes() {
        let mut body = node.body.write().expect("not poisoned");
        state.settle(&node, &mut body);
    }
    state.fit_mini_stream();
    fit_directory(state)?;
    fit_mini_fat(state)?;
    fit_fat(state)?;

    let patches = patches(state);
    shared.pending.drain(shared.storage()).doing("writing stream data", 0)?;
    let end = state.geometry.end_of(state.spaces().expect("made").fat.used_end());
    if shared.physical_end() < end {
        // Sectors that were taken and never written are part of the file.
        let sector_bytes = u64::from(state.geometry.sector_bytes());
        let patches_end = |last: &Patch| last.offset + u64::from(last.count) * sector_bytes;
        if patches.last().is_none_or(|last| patches_end(last) < end) {
            shared.storage().set_len(end).doing("growing the file", end)?;
        }
    }
    write_patches(shared.storage(), state, &patches)?;
    let header = state.header.encode(state.geometry);
    if state.saved_header.as_ref() != Some(&header) {
        let mut sector = header.to_vec();
        if state.saved_header.is_none() && shared.physical_end() == 0 {
            // A new file: the header has a sector to itself.
            sector.resize(state.geometry.sector_bytes() as usize, 0);
        }
        shared.storage().write_at(&sector, 0).doing("writing the header", 0)?;
        state.saved_header = Some(header);
    }
    shared.set_physical_end(shared.physical_end().max(end));
    state.saved();
    Ok(())
}

/// Gives the chain of a table or the directory `want` sectors.
fn fit_chain(state: &mut State, mut chain: Chain, want: u32) -> Result<Chain, Error> {
    let have = chain.sector_count().get();
    let fat = &mut state.make_spaces().fat;
    if want < have {
        fat.truncate(&mut chain, want);
    } else if want > have {
        fat.lengthen(&mut chain, want - have)?;
    }
    Ok(chain)
}

fn fit_directory(state: &mut State) -> Result<(), Error> {
    let per_sector = state.geometry.entries_per_sector();
    state.dir.link_new();
    if state.dir.is_changed() {
        state.dir.trim(per_sector);
        state.dir.pad(per_sector);
    }
    let want = state.dir.slots_count() / per_sector;
    if want != state.dir_chain.sector_count().get() {
        let chain = state.dir_chain.clone();
        state.dir_chain = fit_chain(state, chain, want)?;
    }
    let count = if state.geometry.version == Version::V3 { 0 } else { want };
    state.header.dir_sectors_count = count;
    state.header.first_dir_sector = first(&state.dir_chain);
    Ok(())
}

fn fit_mini_fat(state: &mut State) -> Result<(), Error> {
    let want = state.mini_fat().sectors_count();
    if want != state.mini_fat_chain.sector_count().get() {
        let chain = state.mini_fat_chain.clone();
        state.mini_fat_chain = fit_chain(state, chain, want)?;
    }
    state.header.mini_fat_sectors_count = want;
    state.header.first_mini_fat_sector = first(&state.mini_fat_chain);
    Ok(())
}

fn first(chain: &Chain) -> u32 {
    chain.first().map_or(END_OF_CHAIN, SectorId::get)
}

/// DIFAT sectors for a FAT of so many sectors. [MS-CFB] 2.5
fn difat_sectors_for(fat_sectors: usize, geometry: Geometry) -> usize {
    let links = geometry.cells_per_sector() as usize - 1;
    fat_sectors.saturating_sub(HEADER_DIFAT_LEN).div_ceil(links)
}

/// Gives the FAT and DIFAT the sectors they need, their own included. Each
/// round takes more sectors or is the last; sectors given back count as used
/// until the save is done, so it never goes back and forth.
fn fit_fat(state: &mut State) -> Result<(), Error> {
    let geometry = state.geometry;
    let cells = geometry.cells_per_sector();
    // What windows held is free again; the pinned sector goes with it.
    state.make_spaces().fat.shrink();
    for index in 0..state.fat_sectors.len() {
        if state.fat_sectors[index].is_none() {
            let sector = take_one(state, FAT_SECTOR)?;
            state.fat_sectors[index] = Some(sector);
            let index = u32::try_from(index).expect("FAT sectors are fewer than sectors");
            state.make_spaces().fat.table.touch(index);
            state.difat_changed = true;
        }
    }
    loop {
        let end = state.make_spaces().fat.used_end();
        let want = end.div_ceil(cells) as usize;
        let have = state.fat_sectors.len();
        if have < want {
            let count = u32::try_from(want - have).expect("few");
            let chain = state.make_spaces().fat.allocate(count)?;
            for sector in sectors_of(&chain) {
                state.make_spaces().fat.mark(sector, FAT_SECTOR);
                state.fat_sectors.push(Some(sector));
            }
            state.difat_changed = true;
            continue;
        }
        let want = difat_sectors_for(have, geometry);
        let have = state.difat_sectors.len();
        if have < want {
            let count = u32::try_from(want - have).expect("few");
            let chain = state.make_spaces().fat.allocate(count)?;
            for sector in sectors_of(&chain) {
                state.make_spaces().fat.mark(sector, DIFAT_SECTOR);
                state.difat_sectors.push(sector);
            }
            state.difat_changed = true;
            continue;
        }
        break;
    }
    give_back_fat(state);
    let fat = &mut state.make_spaces().fat;
    let have = fat.table.sectors_count();
    let fat_count = u32::try_from(state.fat_sectors.len()).expect("few");
    if have < fat_count {
        state.make_spaces().fat.table.cover(fat_count * cells);
    }
    let difat_count = u32::try_from(state.difat_sectors.len()).expect("few");
    let header = &mut state.header;
    header.fat_sectors_count = fat_count;
    header.difat_sectors_count = difat_count;
    header.first_difat_sector = state.difat_sectors.first().map_or(END_OF_CHAIN, |s| s.get());
    header.difat = [FREE_SECTOR; HEADER_DIFAT_LEN];
    for (entry, sector) in header.difat.iter_mut().zip(state.fat_sectors.iter().flatten()) {
        *entry = sector.get();
    }
    Ok(())
}

/// Gives FAT and DIFAT sectors at the end back that describe nothing.
fn give_back_fat(state: &mut State) {
    let geometry = state.geometry;
    let cells = geometry.cells_per_sector();
    loop {
        let fat = &mut state.make_spaces().fat;
        let want = fat.used_end().div_ceil(cells) as usize;
        if state.fat_sectors.len() <= want {
            break;
        }
        if let Some(Some(sector)) = state.fat_sectors.pop() {
            give_one(state, sector);
        }
        state.difat_changed = true;
    }
    while state.difat_sectors.len() > difat_sectors_for(state.fat_sectors.len(), geometry) {
        let sector = state.difat_sectors.pop().expect("just counted");
        give_one(state, sector);
        state.difat_changed = true;
    }
    let keep = u32::try_from(state.fat_sectors.len()).expect("few");
    let table = &mut state.make_spaces().fat.table;
    if keep < table.sectors_count() {
        table.truncate(keep);
    }
}

fn take_one(state: &mut State, mark: u32) -> Result<SectorId, Error> {
    let fat = &mut state.make_spaces().fat;
    let sector = fat.allocate(1)?.first().expect("one sector");
    fat.mark(sector, mark);
    Ok(sector)
}

fn give_one(state: &mut State, sector: SectorId) {
    let mut chain = Chain::default();
    chain.push(alloc_core::Run::single(sector));
    state.make_spaces().fat.release(&chain);
}

fn sectors_of(chain: &Chain) -> impl Iterator<Item = SectorId> + '_ {
    chain.runs().flat_map(|run| (run.start().get()..run.end().get()).map(SectorId::new))
}

/// The changed sectors of directory, MiniFAT, FAT and DIFAT, by their offset.
fn patches(state: &State) -> Vec<Patch> {
    let geometry = state.geometry;
    let mut patches = Vec::new();
    let mut in_chain = |chain: &Chain, part: Part, (first, count): (u32, u32)| {
        let mut first = first;
        for run in chain.slice(SectorCount::new(first), SectorCount::new(count)).runs() {
            let offset = geometry.offset_of(run.start()).get();
            patches.push(Patch { offset, part, first, count: run.count().get() });
            first += run.count().get();
        }
    };
    for range in state.dir.changed_sectors(geometry.entries_per_sector()) {
        in_chain(&state.dir_chain, Part::Directory, range);
    }
    for range in state.mini_fat().changed().ranges() {
        in_chain(&state.mini_fat_chain, Part::MiniFat, range);
    }
    let mut single = |sector: SectorId, part: Part, first: u32| {
        patches.push(Patch { offset: geometry.offset_of(sector).get(), part, first, count: 1 });
    };
    for index in state.fat().changed().iter() {
        let sector = state.fat_sectors[index as usize].expect("holes are filled");
        single(sector, Part::Fat, index);
    }
    if state.difat_changed {
        for (&sector, index) in state.difat_sectors.iter().zip(0..) {
            single(sector, Part::Difat, index);
        }
    }
    patches.sort_unstable_by_key(|patch| patch.offset);
    patches
}

/// Writes patches in their order, those that touch in one call.
fn write_patches<S: Storage>(storage: &S, state: &State, patches: &[Patch]) -> Result<(), Error> {
    let write = |bytes: &[u8], offset: u64| {
        if bytes.is_empty() {
            return Ok(());
        }
        storage.write_at(bytes, offset).doing("writing metadata", offset)
    };
    let sector_bytes = state.geometry.sector_bytes();
    let full = if storage.is_memory() { JOIN_BYTES_IN_MEMORY } else { JOIN_BYTES };
    let per_call = u32::try_from(full).expect("a few MiB") / sector_bytes;
    let (mut start, mut bytes) = (0, Vec::new());
    for patch in patches {
        let mut done = 0;
        while done < patch.count {
            let offset = patch.offset + u64::from(done) * u64::from(sector_bytes);
            if start + bytes.len() as u64 != offset || bytes.len() >= full {
                write(&bytes, start)?;
                bytes.clear();
                start = offset;
            }
            let held = u32::try_from(bytes.len()).expect("at most full") / sector_bytes;
            let count = (patch.count - done).min(per_call - held);
            encode(state, patch.part, patch.first + done, count, &mut bytes);
            done += count;
        }
    }
    write(&bytes, start)
}

/// Appends the bytes of some sectors of metadata.
fn encode(state: &State, part: Part, first: u32, count: u32, bytes: &mut Vec<u8>) {
    let per_sector = state.geometry.entries_per_sector();
    match part {
        Part::Directory => state.dir.encode_to(bytes, first * per_sector, count * per_sector),
        Part::MiniFat => state.mini_fat().encode_to(bytes, first, count),
        Part::Fat => state.fat().encode_to(bytes, first, count),
        Part::Difat => {
            for index in first..first + count {
                encode_difat_sector(state, index as usize, bytes);
            }
        }
    }
}

/// FAT sectors that the header does not list, and the next DIFAT sector.
fn encode_difat_sector(state: &State, index: usize, bytes: &mut Vec<u8>) {
    let links = state.geometry.cells_per_sector() as usize - 1;
    let listed = state.fat_sectors.iter().skip(HEADER_DIFAT_LEN + index * links).take(links);
    let listed = listed.map(|sector| sector.expect("holes are filled").get());
    let next = state.difat_sectors.get(index + 1).map_or(END_OF_CHAIN, |sector| sector.get());
    let padded = listed.chain(std::iter::repeat(FREE_SECTOR)).take(links);
    for cell in padded.chain([next]) {
        bytes.extend_from_slice(&cell.to_le_bytes());
    }
}

/// Whether another round would make the file clearly smaller, and if so
/// moves metadata out of its end.
///
/// A round writes all metadata that moves, so it has to win a quarter of the file.
fn shrink_is_worth_it(state: &mut State) -> bool {
    let minis_per_sector = state.geometry.minis_per_sector();
    let mini_sectors =
        state.dir.entry(ROOT).len_bytes.div_ceil(state.geometry.sector_bytes().into());
    let spaces = state.spaces().expect("made by the first change");
    let end = spaces.fat.used_end();
    let behind = spaces.fat.total() - end;
    let free = spaces.fat.map().free_count().get().saturating_sub(behind);
    let mini_free =
        mini_sectors.saturating_sub(spaces.mini.used_end().div_ceil(minis_per_sector).into());
    let fat_want = end.div_ceil(state.geometry.cells_per_sector()) as usize;
    let fat_free = state.fat_sectors.len().saturating_sub(fat_want) as u64;
    let winnable = u64::from(free) + mini_free + fat_free;
    if winnable < u64::from(end / 4).max(1) {
        return false;
    }
    // What the last save freed in the mini stream and the FAT, a round cuts off.
    mini_free + fat_free > 0 || move_metadata_down(state, end)
}

/// Moves the directory, MiniFAT, FAT and DIFAT out of the end of the file
/// into free sectors before it. Says whether anything moved.
fn move_metadata_down(state: &mut State, end: u32) -> bool {
    let mut moved = false;
    let mut end = end;
    // Each kind moves at most once a round: what moved down is not at the end.
    for _ in 0..4 {
        let last = end.checked_sub(1).map(SectorId::new);
        let holds =
            |chain: &Chain| last.is_some_and(|last| chain.runs().any(|run| run.contains(last)));
        let fat_chain = Chain::from_runs(
            state.fat_sectors.iter().flatten().map(|&sector| alloc_core::Run::single(sector)),
        );
        let difat_chain =
            Chain::from_runs(state.difat_sectors.iter().map(|&s| alloc_core::Run::single(s)));
        let (old, kind) = if holds(&state.dir_chain) {
            (state.dir_chain.clone(), Part::Directory)
        } else if holds(&state.mini_fat_chain) {
            (state.mini_fat_chain.clone(), Part::MiniFat)
        } else if holds(&fat_chain) {
            (fat_chain, Part::Fat)
        } else if holds(&difat_chain) {
            (difat_chain, Part::Difat)
        } else {
            break;
        };
        let fat = &mut state.make_spaces().fat;
        let count = old.sector_count().get();
        let Some(new) = fat.allocate_below(count, end) else { break };
        fat.release(&old);
        match kind {
            Part::Directory => {
                state.dir_chain = new;
                state.dir.touch_all();
            }
            Part::MiniFat => {
                state.mini_fat_chain = new;
                state.make_spaces().mini.table.touch_all();
            }
            Part::Fat => {
                let sectors: Vec<SectorId> = sectors_of(&new).collect();
                for &sector in &sectors {
                    state.make_spaces().fat.mark(sector, FAT_SECTOR);
                }
                state.fat_sectors = sectors.into_iter().map(Some).collect();
                state.make_spaces().fat.table.touch_all();
                state.difat_changed = true;
            }
            Part::Difat => {
                let sectors: Vec<SectorId> = sectors_of(&new).collect();
                for &sector in &sectors {
                    state.make_spaces().fat.mark(sector, DIFAT_SECTOR);
                }
                state.difat_sectors = sectors;
                state.difat_changed = true;
            }
        }
        moved = true;
        // What moved is used until the save; the next kind is looked for
        // before it.
        end = old.runs().map(|run| run.start().get()).min().unwrap_or(end);
    }
    moved
}

/// Cuts the free end of the file off.
fn cut_end<S: Storage>(shared: &Shared<S>, state: &mut State) -> Result<(), Error> {
    let geometry = state.geometry;
    let fat = &mut state.make_spaces().fat;
    fat.shrink();
    let end = geometry.end_of(fat.used_end());
    if shared.physical_end() > end {
        shared.storage().set_len(end).doing("shrinking the file", end)?;
        shared.set_physical_end(end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use crate::{CompoundFile, CreateOptions, MemStorage, Storage, Version};

    /// Remembers where writes went.
    #[derive(Default)]
    struct Recorder {
        memory: MemStorage,
        writes: Mutex<Vec<(u64, usize)>>,
    }

    impl Recorder {
        fn take(&self) -> Vec<(u64, usize)> {
            std::mem::take(&mut self.writes.lock().unwrap())
        }
    }

    impl Storage for Recorder {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            self.memory.read_at(buf, offset)
        }

        fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
            self.writes.lock().unwrap().push((offset, buf.len()));
            self.memory.write_at(buf, offset)
        }

        fn len(&self) -> io::Result<u64> {
            self.memory.len()
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.memory.set_len(len)
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn header_is_written_last_and_only_when_it_changes() {
        let file = CompoundFile::create_in(Recorder::default()).unwrap();
        file.storage().take();
        file.write_stream("a", &[1; 5000]).unwrap();
        file.write_stream("b", &[2; 50]).unwrap();
        file.flush().unwrap();
        let writes = file.storage().take();
        assert_eq!(writes.last(), Some(&(0, 512)));
        file.open_stream("b").unwrap().write_at(&[3], 7).unwrap();
        file.flush().unwrap();
        assert_eq!(file.storage().take().len(), 1, "only the byte");
        file.flush().unwrap();
        assert_eq!(file.storage().take(), [], "nothing has changed");
    }

    #[test]
    fn file_with_nothing_left_in_it_is_as_short_as_a_new_one() {
        for version in [Version::V3, Version::V4] {
            let options = CreateOptions::new().version(version);
            let file = options.create_storage(MemStorage::new()).unwrap();
            let new = file.storage().to_vec().len();
            for round in 0..3 {
                for i in 0..200_u8 {
                    let len = usize::from(i) * (round * 200 + 7);
                    file.write_stream(&format!("{i}"), &vec![i; len]).unwrap();
                }
                file.flush().unwrap();
                file.remove_all("/").unwrap();
                file.flush().unwrap();
                assert_eq!(file.storage().to_vec().len(), new, "{version}, round {round}");
                assert_eq!(file.check().unwrap(), []);
            }
        }
    }

    #[test]
    fn fat_beyond_the_header_is_listed_in_difat_sectors() {
        // 109 FAT sectors of 128 cells cover 7,143,424 bytes.
        let file = CompoundFile::create_in(MemStorage::new()).unwrap();
        let bytes: Vec<u8> = (0..8_000_000_u32).map(|i| i.to_le_bytes()[0]).collect();
        file.write_stream("long", &bytes).unwrap();
        assert_eq!(file.check().unwrap(), []);
        let memory = file.into_storage().unwrap().to_vec();
        assert_eq!(memory[0x48], 1, "one DIFAT sector");
        let file = CompoundFile::from_storage(&memory[..]).unwrap();
        assert_eq!(file.read_stream("long").unwrap(), bytes);
    }

    #[test]
    fn freed_space_is_used_again_after_the_flush() {
        let file = CompoundFile::create_in(MemStorage::new()).unwrap();
        for i in 0..8 {
            file.write_stream(&format!("{i}"), &vec![i; 100_000]).unwrap();
        }
        file.flush().unwrap();
        let len = file.storage().to_vec().len();
        file.remove_stream("3").unwrap();
        file.flush().unwrap();
        file.write_stream("new", &vec![9; 100_000]).unwrap();
        file.flush().unwrap();
        assert_eq!(file.storage().to_vec().len(), len);
        assert_eq!(file.open_stream("new").unwrap().extents().unwrap().len(), 1);
    }
}
