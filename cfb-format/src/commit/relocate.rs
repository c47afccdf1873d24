//! Copy on write for metadata: what changes of directory, MiniFAT, FAT and DIFAT
//! goes to sectors that the saved state does not use.
//!
//! Moving a sector of the directory or the MiniFAT changes the FAT, where its
//! chain is. Moving a FAT sector changes the marks of the old and the new place
//! in the FAT, and the DIFAT, where it is listed. Moving a DIFAT sector changes
//! the one before it. The header, last in each row, is written last.

use alloc_core::{Chain, SectorCount, SectorId};

use super::fit::{give_one, sectors_of};
use crate::error::Error;
use crate::layout::{DIFAT_SECTOR, FAT_SECTOR, HEADER_DIFAT_LEN};
use crate::space::Space;
use crate::state::State;

/// Moves the changed sectors of the directory.
///
/// # Errors
///
/// [`Error::FileFull`]; nothing has moved then.
pub(super) fn directory(state: &mut State) -> Result<(), Error> {
    if state.atomic {
        let ranges = state.dir.changed_sectors(state.geometry.entries_per_sector());
        let chain = state.dir_chain.clone();
        state.dir_chain = moved(&mut state.make_spaces().fat, chain, &ranges)?;
    }
    Ok(())
}

/// Moves the changed sectors of the MiniFAT.
///
/// # Errors
///
/// [`Error::FileFull`]; nothing has moved then.
pub(super) fn mini_fat(state: &mut State) -> Result<(), Error> {
    if state.atomic {
        let ranges = state.mini_fat().changed().ranges();
        let chain = state.mini_fat_chain.clone();
        state.mini_fat_chain = moved(&mut state.make_spaces().fat, chain, &ranges)?;
    }
    Ok(())
}

/// The chain with what is not fresh in `ranges`, each first and count and
/// ascending, in sectors taken for it. O(runs + ranges).
fn moved(space: &mut Space, chain: Chain, ranges: &[(u32, u32)]) -> Result<Chain, Error> {
    let mut stale = Vec::new();
    for &(first, count) in ranges {
        let mut at = first;
        for run in chain.slice(SectorCount::new(first), SectorCount::new(count)).runs() {
            for (piece, fresh) in space.split_fresh(run) {
                if !fresh {
                    stale.push((at, piece));
                }
                at += piece.count().get();
            }
        }
    }
    let count = stale.iter().map(|(_, piece)| piece.count().get()).sum();
    if count == 0 {
        return Ok(chain);
    }
    let mut pool = space.allocate(count)?;
    let mut new = Chain::default();
    let mut at = 0;
    for &(first, piece) in &stale {
        new.append(chain.slice(SectorCount::new(at), SectorCount::new(first - at)));
        let rest = pool.split_off(piece.count());
        new.append(std::mem::replace(&mut pool, rest));
        at = first + piece.count().get();
    }
    let left = chain.sector_count().get() - at;
    new.append(chain.slice(SectorCount::new(at), SectorCount::new(left)));
    for &(first, piece) in &stale {
        space.table.relink(&new, first, piece.count().get());
        space.release(&Chain::from_runs([piece]));
    }
    Ok(new)
}

/// Moves the changed sectors of FAT and DIFAT; says whether there were any.
///
/// # Errors
///
/// [`Error::FileFull`].
pub(super) fn fat(state: &mut State) -> Result<bool, Error> {
    if !state.atomic {
        return Ok(false);
    }
    let space = &state.spaces_ref().expect("made before a save").fat;
    let is_stale = |sector: SectorId| !space.is_fresh(sector);
    let fat: Vec<u32> = space
        .table
        .changed()
        .iter()
        .filter(|&index| state.fat_sectors[index as usize].is_some_and(is_stale))
        .collect();
    let difat: Vec<usize> = (0..state.difat_sectors.len())
        .filter(|&index| state.difat_changed && is_stale(state.difat_sectors[index]))
        .collect();
    let count = u32::try_from(fat.len() + difat.len()).expect("fewer than sectors");
    if count == 0 {
        return Ok(false);
    }
    let new = state.make_spaces().fat.allocate(count)?;
    let mut new = sectors_of(&new);
    for (&index, sector) in fat.iter().zip(&mut new) {
        state.make_spaces().fat.mark(sector, FAT_SECTOR);
        let old = state.fat_sectors[index as usize].replace(sector);
        give_one(state, old.expect("just seen"));
        state.difat_changed |= index as usize >= HEADER_DIFAT_LEN;
    }
    for (&index, sector) in difat.iter().zip(&mut new) {
        state.make_spaces().fat.mark(sector, DIFAT_SECTOR);
        let old = std::mem::replace(&mut state.difat_sectors[index], sector);
        give_one(state, old);
    }
    Ok(true)
}
