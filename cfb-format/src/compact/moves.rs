//! Moving what a file consists of to other sectors: bytes are copied, links follow
//! in memory, and the next save makes it count. Until then the old place is kept.

use alloc_core::{Chain, Run, SectorCount, SectorId};

use super::holes::Move;
use crate::dir_entry::EntryKind;
use crate::error::Error;
use crate::layout::{DIFAT_SECTOR, FAT_SECTOR, HEADER_DIFAT_LEN};
use crate::node::Place;
use crate::shared::{Shared, ZEROS};
use crate::space::Space;
use crate::state::State;
use crate::storage::Storage;

/// Whose sectors are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The stream of this slot.
    Stream(u32),
    MiniStream,
    Directory,
    MiniFat,
    /// One sector of the FAT, by its number there.
    Fat(u32),
    /// The same of the DIFAT.
    Difat(u32),
}

/// Moves pieces of a stream. Gives how many bytes that were; none of a stream that
/// is damaged, or has sectors that another has too.
pub(super) fn stream<S: Storage>(
    shared: &Shared<S>,
    state: &mut State,
    slot: u32,
    place: Place,
    pieces: &[Move],
) -> Result<u64, Error> {
    let node = state.node(slot);
    let mut body = node.body.write().expect("not poisoned");
    let mut moved = 0;
    let mut result = Ok(());
    let is_sound = body.place == place && body.damage.is_none();
    if is_sound && !state.has_shared(place, &body.chain) {
        let unit = state.geometry.unit_bytes(place);
        for piece in pieces {
            let count = piece.to.count();
            let from = SectorCount::new(piece.first).bytes(unit);
            let (end, len) = (from + count.bytes(unit), node.len());
            let new = state.make_spaces().of(place).take_run(piece.to);
            let old = body.chain.slice(SectorCount::new(piece.first), count);
            let filled = len.min(end) - from;
            result = copy(shared, place, &old, &new, filled, end - from);
            if result.is_err() {
                state.release(place, &new);
                break;
            }
            let old = body.chain.replace(SectorCount::new(piece.first), new);
            body.garbage.push((place, old));
            body.spliced.push((piece.first, count.get()));
            body.changed = true;
            moved += filled;
        }
        state.settle(&node, &mut body);
    }
    drop(body);
    state.close(&node);
    result.map(|()| moved)
}

/// Cuts chains that are longer than their streams, which other writers leave behind.
pub(super) fn cut_excess(state: &mut State) {
    let slots: Vec<u32> = state.dir.slots().collect();
    for slot in slots {
        if state.dir.entry(slot).kind != EntryKind::Stream {
            continue;
        }
        let found = state.find_stream(slot);
        let has_excess = found.chain.sector_count().get() > units(state, slot, found.place);
        if !has_excess || found.damage.is_some() || found.broken.is_some() {
            continue;
        }
        let node = state.node(slot);
        let mut body = node.body.write().expect("not poisoned");
        if body.damage.is_none() && !state.has_shared(body.place, &body.chain) {
            body.changed = true;
            state.settle(&node, &mut body);
        }
        drop(body);
        state.close(&node);
    }
}

/// Sectors or mini sectors that a stream needs, by its entry.
pub(super) fn units(state: &State, slot: u32, place: Place) -> u32 {
    let len = state.dir.entry(slot).len_bytes;
    let units = match place {
        Place::Regular => state.geometry.sectors_for(len),
        Place::Mini => state.geometry.minis_for(len),
    };
    u32::try_from(units).unwrap_or(u32::MAX)
}

/// Moves pieces of the mini stream.
pub(super) fn mini_stream<S: Storage>(
    shared: &Shared<S>,
    state: &mut State,
    pieces: &[Move],
) -> Result<u64, Error> {
    // Whoever reads or writes a small stream holds its body for that time.
    let nodes = state.open_nodes();
    let _bodies: Vec<_> =
        nodes.iter().map(|node| node.body.write().expect("not poisoned")).collect();
    let unit = state.geometry.sector_bytes();
    let mut chain = state.mini_stream.read().expect("not poisoned").clone();
    let mut moved = 0;
    let mut result = Ok(());
    for piece in pieces {
        let count = piece.to.count();
        let new = state.make_spaces().fat.take_run(piece.to);
        let old = chain.slice(SectorCount::new(piece.first), count);
        let bytes = count.bytes(unit);
        result = copy(shared, Place::Regular, &old, &new, bytes, bytes);
        if result.is_err() {
            state.release(Place::Regular, &new);
            break;
        }
        replace(&mut state.make_spaces().fat, &mut chain, piece.first, new);
        moved += bytes;
    }
    *state.mini_stream.write().expect("not poisoned") = chain;
    result.map(|()| moved)
}

/// Moves pieces of the directory, or of the MiniFAT, FAT or DIFAT: their bytes are in memory.
pub(super) fn metadata(state: &mut State, owner: Owner, pieces: &[Move]) {
    for piece in pieces {
        let (first, end) = (piece.first, piece.first + piece.to.count().get());
        let fat = &mut state.make_spaces().fat;
        let new = fat.take_run(piece.to);
        match owner {
            Owner::Directory => {
                let mut chain = std::mem::take(&mut state.dir_chain);
                replace(&mut state.make_spaces().fat, &mut chain, first, new);
                state.dir_chain = chain;
                let per_sector = state.geometry.entries_per_sector();
                state.dir.touch(first * per_sector..end * per_sector);
            }
            Owner::MiniFat => {
                let mut chain = std::mem::take(&mut state.mini_fat_chain);
                replace(&mut state.make_spaces().fat, &mut chain, first, new);
                state.mini_fat_chain = chain;
                let table = &mut state.make_spaces().mini.table;
                (first..end).for_each(|sector| table.touch(sector));
            }
            Owner::Fat(index) => {
                let sector = piece.to.start();
                fat.mark(sector, FAT_SECTOR);
                fat.table.touch(index);
                let old = state.fat_sectors[index as usize].replace(sector);
                release_one(state, old.expect("it had a place"));
                state.difat_changed |= index as usize >= HEADER_DIFAT_LEN;
            }
            Owner::Difat(index) => {
                let sector = piece.to.start();
                fat.mark(sector, DIFAT_SECTOR);
                let old = std::mem::replace(&mut state.difat_sectors[index as usize], sector);
                release_one(state, old);
                state.difat_changed = true;
            }
            Owner::Stream(_) | Owner::MiniStream => unreachable!("their bytes are not in memory"),
        }
    }
}

fn release_one(state: &mut State, sector: SectorId) {
    state.release(Place::Regular, &Chain::from_runs([Run::single(sector)]));
}

/// Puts `new` in the place of the sectors of a chain from `first` on, and gives those back.
fn replace(fat: &mut Space, chain: &mut Chain, first: u32, new: Chain) {
    let count = new.sector_count().get();
    let old = chain.replace(SectorCount::new(first), new);
    fat.release(&old);
    fat.table.relink(chain, first, count);
}

/// Copies `filled` bytes from chain to chain, and clears what follows up to `end`.
fn copy<S: Storage>(
    shared: &Shared<S>,
    place: Place,
    from: &Chain,
    to: &Chain,
    filled: u64,
    end: u64,
) -> Result<(), Error> {
    shared.copy_chain((place, from), (place, to), 0..filled)?;
    // Less than a sector: a settled chain has no more than the stream needs.
    shared.write_chain(place, to, filled, &ZEROS[..usize::try_from(end - filled).expect("small")])
}
