//! Which sectors of metadata a save writes, and how they reach the storage.

use alloc_core::{Chain, SectorCount, SectorId};

use crate::error::{Doing, Error};
use crate::layout::{END_OF_CHAIN, FREE_SECTOR, HEADER_DIFAT_LEN};
use crate::shared::Shared;
use crate::state::State;
use crate::storage::Storage;
use crate::version::Geometry;

/// Writes that touch are joined up to this many bytes.
const JOIN_BYTES: usize = 4 << 20;

/// The same for a storage in memory: so few that they stay in the cache until
/// they are copied.
const JOIN_BYTES_IN_MEMORY: usize = 32 << 10;

/// Up to so many bytes of metadata go the way of stream data.
const GATHERED_BYTES: u64 = 64 << 10;

/// Consecutive sectors of metadata that are to be written.
#[derive(Clone, Copy)]
pub(super) struct Patch {
    /// Byte offset in the storage.
    pub(super) offset: u64,
    pub(super) part: Part,
    /// The first sector, counted in its part.
    pub(super) first: u32,
    /// How many, never zero.
    pub(super) count: u32,
}

impl Patch {
    /// Byte offset of its end.
    pub(super) fn end(&self, geometry: Geometry) -> u64 {
        self.offset + u64::from(self.count) * u64::from(geometry.sector_bytes())
    }
}

/// What metadata sectors belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Directory,
    MiniFat,
    Fat,
    Difat,
}

/// The changed sectors of directory, MiniFAT, FAT and DIFAT, by their offset.
pub(super) fn patches(state: &State) -> Vec<Patch> {
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

/// Writes stream data that waits, and patches in their order, those that touch
/// in one call.
pub(super) fn write_patches<S: Storage>(
    shared: &Shared<S>,
    state: &State,
    patches: &[Patch],
) -> Result<(), Error> {
    let storage = shared.storage();
    let sectors: u64 = patches.iter().map(|patch| u64::from(patch.count)).sum();
    let are_few = sectors * u64::from(state.geometry.sector_bytes()) <= GATHERED_BYTES;
    // Few of them join the stream data that waits for the same drain.
    let gathers = are_few && !storage.is_memory();
    if !gathers {
        shared.pending.drain(storage).doing("writing stream data", 0)?;
    }
    let write = |bytes: &[u8], offset: u64| {
        if bytes.is_empty() {
            return Ok(());
        }
        if gathers {
            shared.pending.gather(bytes, offset);
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
    write(&bytes, start)?;
    if gathers {
        shared.pending.drain(storage).doing("writing data and metadata", 0)?;
    }
    Ok(())
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
