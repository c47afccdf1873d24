//! How a new state reaches the file: what is written, and in which order.
//!
//! 1. Every open stream is settled: entry and tables say what it has.
//! 2. The mini stream, directory, MiniFAT, FAT and DIFAT get as many sectors as
//!    they need ([`fit`]), and what changes of them moves to sectors that the
//!    saved state does not use ([`relocate`]).
//! 3. Stream data that is still gathered is written.
//! 4. Changed sectors of directory, MiniFAT, FAT and DIFAT are written, those
//!    that touch in one call ([`patches`]).
//! 5. The header is written last: it switches the file to the new state.
//! 6. What the file used before and no longer uses becomes free; a free end is
//!    cut off ([`shrink`]).
//!
//! Nothing that the saved state refers to is written over on the way, neither
//! here nor by streams, so a crash before step 5 leaves it as it was. What a
//! sector has behind the end of its stream is referred to by nobody: streams
//! grow into it. Files that are written in place go without the moves.
//!
//! A call that fails leaves the changes marked as unsaved, so the next flush
//! writes them again.

mod fit;
mod patches;
mod relocate;
mod shrink;

use self::fit::{fit_directory, fit_fat, fit_mini_fat};
use self::patches::{patches, write_patches};
pub(crate) use self::shrink::Cut;
use self::shrink::{cut_end, shrink_is_worth_it};
use crate::error::{Doing, Error};
use crate::shared::Shared;
use crate::state::State;
use crate::storage::Storage;

/// Rounds of shrinking in one flush: each halves what is left to win, or so.
const SHRINK_ROUNDS: usize = 16;

/// A storage is written again in pieces of so many bytes.
const PIECE_BYTES: usize = 1 << 20;

/// Whether a save is to be on the medium before it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Enough for a crash of the process: calls in the right order.
    Process,
    /// Enough for a crash of the machine: synced before the header and after it.
    Machine,
}

/// Brings every change to the storage.
///
/// # Errors
///
/// [`Error::Io`], [`Error::FileFull`]: everything stays unsaved in memory, and the next
/// call tries again.
pub(crate) fn flush<S: Storage>(shared: &Shared<S>, durability: Durability) -> Result<(), Error> {
    let mut state = shared.write_state();
    state.durability = durability;
    save_all(shared, &mut state, durability, Cut::Large)
}

/// [`flush`] for the library's own purposes: as durable as the last one that was
/// asked for, so that it puts nothing at risk that was synced.
///
/// # Errors
///
/// As [`flush`].
pub(crate) fn flush_again<S: Storage>(shared: &Shared<S>, cut: Cut) -> Result<(), Error> {
    let mut state = shared.write_state();
    let durability = state.durability;
    save_all(shared, &mut state, durability, cut)
}

fn save_all<S: Storage>(
    shared: &Shared<S>,
    state: &mut State,
    durability: Durability,
    cut: Cut,
) -> Result<(), Error> {
    if state.spaces_ref().is_none() {
        return sync(shared, state, durability);
    }
    state.settle_all();
    let is_saved = state.is_saved() && !shared.pending.is_occupied();
    if is_saved {
        sync(shared, state, durability)?;
    } else {
        save(shared, state, durability)?;
    }
    let rounds = if is_saved && cut == Cut::Large { 0 } else { SHRINK_ROUNDS };
    // Each round gives back what the one before it freed; a move of metadata
    // out of a free end is worth a second one only when much is won.
    for _ in 0..rounds {
        if !shrink_is_worth_it(state, cut) {
            break;
        }
        save(shared, state, durability)?;
    }
    cut_end(shared, state, cut)
}

/// Waits until the storage has everything for good, if that is wanted.
///
/// After a failure systems forget which bytes they could not bring to the medium,
/// and the next call succeeds without them. So all is written again before it.
fn sync<S: Storage>(
    shared: &Shared<S>,
    state: &mut State,
    durability: Durability,
) -> Result<(), Error> {
    if durability == Durability::Process {
        return Ok(());
    }
    let storage = shared.storage();
    if state.sync_failed {
        write_again(storage)?;
    }
    let synced = storage.sync().doing("syncing the storage", 0);
    state.sync_failed = synced.is_err();
    synced
}

/// Writes every byte of a storage to where it is. All streams are settled and the
/// state is held, so nobody writes anything else meanwhile.
fn write_again<S: Storage>(storage: &S) -> Result<(), Error> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    loop {
        let count = storage.read_at(&mut piece, at).doing("reading to write again", at)?;
        if count == 0 {
            return Ok(());
        }
        storage.write_at(&piece[..count], at).doing("writing again", at)?;
        at += count as u64;
    }
}

/// One round of the steps above, once all streams are settled.
fn save<S: Storage>(
    shared: &Shared<S>,
    state: &mut State,
    durability: Durability,
) -> Result<(), Error> {
    state.fit_mini_stream();
    aim(state);
    fit_directory(state)?;
    fit_mini_fat(state)?;
    fit_fat(state)?;

    let patches = patches(state);
    let end = state.geometry.end_of(state.spaces().expect("made").fat.used_end());
    let patches_end = patches.last().map_or(0, |last| last.end(state.geometry));
    if shared.physical_end() < end && patches_end < end {
        // Sectors that were taken and never written are part of the file.
        shared.storage().set_len(end).doing("growing the file", end)?;
    }
    shared.reaches(patches_end);
    write_patches(shared, state, &patches)?;
    write_header(shared, state, durability, !patches.is_empty())?;
    shared.reaches(end);
    state.saved();
    Ok(())
}

/// Most sectors that are sought a place for together.
const MAX_TOGETHER_SECTORS: u32 = 64;

/// Finds a place for all that moves, if it is little, so that it is written in one call.
fn aim(state: &mut State) {
    if !state.atomic {
        return;
    }
    state.dir.link_new();
    let count = |ranges: Vec<(u32, u32)>| ranges.iter().map(|&(_, count)| count).sum::<u32>();
    let directory = count(state.dir.changed_sectors(state.geometry.entries_per_sector()));
    let mini_fat = count(state.mini_fat().changed().ranges());
    // What moves changes the FAT where it was and where it goes: most often one sector.
    let fat = count(state.fat().changed().ranges()).max(1);
    let together = directory + mini_fat + fat;
    state.make_spaces().fat.aim(if together <= MAX_TOGETHER_SECTORS { together } else { 0 });
}

/// Switches the file to the new state, if it is one.
fn write_header<S: Storage>(
    shared: &Shared<S>,
    state: &mut State,
    durability: Durability,
    is_new: bool,
) -> Result<(), Error> {
    if state.atomic && is_new {
        let signature = &mut state.header.transaction_signature;
        *signature = signature.wrapping_add(1);
    }
    let header = state.header.encode(state.geometry);
    if state.saved_header.as_ref() == Some(&header) {
        return sync(shared, state, durability);
    }
    sync(shared, state, durability)?;
    let mut sector = header.to_vec();
    if state.saved_header.is_none() && state.is_new() {
        // A new file: the header has a sector to itself.
        sector.resize(state.geometry.sector_bytes() as usize, 0);
    }
    let written = shared.storage().write_at(&sector, 0).doing("writing the header", 0);
    if let Err(error) = written.and_then(|()| sync(shared, state, durability)) {
        // It may be there, or may come to be there.
        state.seal();
        return Err(error);
    }
    state.saved_header = Some(header);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

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
    fn header_is_written_last_and_only_when_something_changes() {
        let file = CompoundFile::create_in(Recorder::default()).unwrap();
        file.storage().take();
        for i in 0..3 {
            file.write_stream("a", &[i; 5000]).unwrap();
            file.flush().unwrap();
            let writes = file.storage().take();
            assert_eq!(writes.last(), Some(&(0, 512)));
            let end = |&(at, len): &(u64, usize)| at + len as u64;
            assert!(writes.iter().all(|write| *write == (0, 512) || write.0 >= 512));
            assert!(writes.iter().map(end).max() <= Some(30_000), "old sectors are used again");
            file.flush().unwrap();
            assert_eq!(file.storage().take(), [], "nothing has changed");
        }
    }

    #[test]
    fn in_place_only_what_changed_is_written() {
        let options = CreateOptions::new().in_place(true);
        let file = options.create_storage(Recorder::default()).unwrap();
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

    /// A system that forgets what it could not sync.
    #[derive(Default)]
    struct Forgetful {
        cache: MemStorage,
        medium: MemStorage,
        dirty: Mutex<Vec<(u64, usize)>>,
        fails: AtomicBool,
    }

    impl Storage for Forgetful {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            self.cache.read_at(buf, offset)
        }

        fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
            self.dirty.lock().unwrap().push((offset, buf.len()));
            self.cache.write_at(buf, offset)
        }

        fn len(&self) -> io::Result<u64> {
            self.cache.len()
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.cache.set_len(len)
        }

        fn sync(&self) -> io::Result<()> {
            let dirty = std::mem::take(&mut *self.dirty.lock().unwrap());
            if self.fails.swap(false, Ordering::Relaxed) {
                return Err(io::Error::other("lost"));
            }
            for (at, len) in dirty {
                let mut bytes = vec![0; len];
                let count = self.cache.read_at(&mut bytes, at)?;
                self.medium.write_at(&bytes[..count], at)?;
            }
            self.medium.set_len(self.cache.len()?)
        }
    }

    #[test]
    fn after_a_failed_sync_everything_is_written_again() {
        for flushed in [false, true] {
            let file = CompoundFile::create_in(Forgetful::default()).unwrap();
            file.sync().unwrap();
            file.write_stream("a", &[7; 10_000]).unwrap();
            if flushed {
                file.flush().unwrap();
            }
            file.storage().fails.store(true, Ordering::Relaxed);
            file.sync().unwrap_err();
            file.sync().unwrap();
            let medium = file.storage().medium.to_vec();
            let saved = CompoundFile::from_storage(&medium[..]).unwrap();
            assert_eq!(saved.read_stream("a").unwrap(), [7; 10_000]);
            assert_eq!(saved.check().unwrap(), []);
        }
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
