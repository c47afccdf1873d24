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

/// One write of metadata: byte offset and bytes.
type Patch = (u64, Vec<u8>);

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

    let patches = join(metadata(state));
    shared.pending.drain(shared.storage()).doing("writing stream data", 0)?;
    let end = state.geometry.end_of(state.spaces().expect("made").fat.used_end());
    if shared.physical_end() < end {
        // Sectors that were taken and never written are part of the file.
        let last_patch = patches.iter().map(|(at, bytes)| at + bytes.len() as u64).max();
        if last_patch.is_none_or(|last| last < end) {
            shared.storage().set_len(end).doing("growing the file", end)?;
        }
    }
    for (offset, bytes) in &patches {
        shared.storage().write_at(bytes, *offset).doing("writing metadata", *offset)?;
    }
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

/// The changed sectors of directory, MiniFAT, FAT and DIFAT.
fn metadata(state: &mut State) -> Vec<Patch> {
    let geometry = state.geometry;
    let per_sector = geometry.entries_per_sector();
    let mut patches = Vec::new();
    let mut in_chain =
        |chain: &Chain, first: u32, count: u32, encode: &dyn Fn(u32, u32) -> Vec<u8>| {
            let mut done = 0;
            for run in chain.slice(SectorCount::new(first), SectorCount::new(count)).runs() {
                let bytes = encode(first + done, run.count().get());
                patches.push((geometry.offset_of(run.start()).get(), bytes));
                done += run.count().get();
            }
        };
    for (first, count) in state.dir.changed_sectors(per_sector) {
        in_chain(&state.dir_chain, first, count, &|first, count| {
            state.dir.encode(first * per_sector, count * per_sector)
        });
    }
    for (first, count) in state.mini_fat().changed().ranges() {
        in_chain(&state.mini_fat_chain, first, count, &|first, count| {
            state.mini_fat().encode(first, count)
        });
    }
    let fat = state.fat();
    for index in fat.changed().iter() {
        let sector = state.fat_sectors[index as usize].expect("holes are filled");
        patches.push((geometry.offset_of(sector).get(), fat.encode(index, 1)));
    }
    if state.difat_changed {
        let links = geometry.cells_per_sector() as usize - 1;
        let listed = state.fat_sectors.get(HEADER_DIFAT_LEN..).unwrap_or(&[]);
        let mut parts = listed.chunks(links);
        for (index, sector) in state.difat_sectors.iter().enumerate() {
            let part = parts.next().unwrap_or(&[]);
            let mut cells: Vec<u32> =
                part.iter().map(|sector| sector.expect("holes are filled").get()).collect();
            cells.resize(links, FREE_SECTOR);
            cells.push(state.difat_sectors.get(index + 1).map_or(END_OF_CHAIN, |s| s.get()));
            let bytes = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
            patches.push((geometry.offset_of(*sector).get(), bytes));
        }
    }
    patches
}

/// Sorts patches and joins those that touch.
fn join(mut patches: Vec<Patch>) -> Vec<Patch> {
    patches.sort_by_key(|(offset, _)| *offset);
    let mut joined: Vec<Patch> = Vec::new();
    for (offset, bytes) in patches {
        match joined.last_mut() {
            Some((at, last)) if *at + last.len() as u64 == offset && last.len() < JOIN_BYTES => {
                last.extend_from_slice(&bytes);
            }
            _ => joined.push((offset, bytes)),
        }
    }
    joined
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
            (state.dir_chain.clone(), Kind::Directory)
        } else if holds(&state.mini_fat_chain) {
            (state.mini_fat_chain.clone(), Kind::MiniFat)
        } else if holds(&fat_chain) {
            (fat_chain, Kind::Fat)
        } else if holds(&difat_chain) {
            (difat_chain, Kind::Difat)
        } else {
            break;
        };
        let fat = &mut state.make_spaces().fat;
        let count = old.sector_count().get();
        let Some(new) = fat.allocate_below(count, end) else { break };
        fat.release(&old);
        match kind {
            Kind::Directory => {
                state.dir_chain = new;
                state.dir.touch_all();
            }
            Kind::MiniFat => {
                state.mini_fat_chain = new;
                state.make_spaces().mini.table.touch_all();
            }
            Kind::Fat => {
                let sectors: Vec<SectorId> = sectors_of(&new).collect();
                for &sector in &sectors {
                    state.make_spaces().fat.mark(sector, FAT_SECTOR);
                }
                state.fat_sectors = sectors.into_iter().map(Some).collect();
                state.make_spaces().fat.table.touch_all();
                state.difat_changed = true;
            }
            Kind::Difat => {
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

/// What lies at the end of the file.
enum Kind {
    Directory,
    MiniFat,
    Fat,
    Difat,
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
