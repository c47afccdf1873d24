//! Copy on write for metadata: what changes of directory, MiniFAT, FAT and DIFAT
//! goes to sectors that the saved state does not use.
//!
//! Moving a sector of the directory or the MiniFAT changes the FAT, where its
//! chain is. Moving a FAT sector changes the marks of the old and the new place
//! in the FAT, and the DIFAT, where it is listed. Moving a DIFAT sector changes
//! the one before it. The header, last in each row, is written last.

use alloc_core::{Chain, Run, SectorCount, SectorId};

use super::fit::sectors_of;
use crate::error::Error;
use crate::layout::{DIFAT_SECTOR, FAT_SECTOR, HEADER_DIFAT_LEN};
use crate::space::Space;
use crate::state::State;

/// Gives the chain of the directory or MiniFAT `count` sectors more, and those of
/// its sectors in `ranges`, each first and count and ascending, that the saved
/// state has, sectors taken for them: all in one run where there is one, so
/// that what is written whole lies together. O(runs + ranges).
///
/// # Errors
///
/// [`Error::FileFull`]; nothing has changed then.
pub(super) fn chain(
    space: &mut Space,
    chain: &mut Chain,
    ranges: &[(u32, u32)],
    more: u32,
) -> Result<(), Error> {
    let have = chain.sector_count().get();
    let mut stale = Vec::new();
    for &(first, count) in ranges {
        let mut at = first;
        let count = count.min(have.saturating_sub(first));
        for run in chain.slice(SectorCount::new(first.min(have)), SectorCount::new(count)).runs() {
            for (piece, fresh) in space.split_fresh(run) {
                if !fresh {
                    stale.push((at, piece));
                }
                at += piece.count().get();
            }
        }
    }
    let count: u32 = stale.iter().map(|(_, piece)| piece.count().get()).sum();
    if count == 0 {
        return if more > 0 { space.lengthen(chain, more) } else { Ok(()) };
    }
    let mut pool = space.allocate_near(count + more)?;
    let mut new = Chain::default();
    let mut at = 0;
    for &(first, piece) in &stale {
        new.append(chain.slice(SectorCount::new(at), SectorCount::new(first - at)));
        let rest = pool.split_off(piece.count());
        new.append(std::mem::replace(&mut pool, rest));
        at = first + piece.count().get();
    }
    new.append(chain.slice(SectorCount::new(at), SectorCount::new(have - at)));
    new.append(pool);
    for &(first, piece) in &stale {
        space.table.relink(&new, first, piece.count().get());
        space.release(&Chain::from_runs([piece]));
    }
    space.table.relink(&new, have, more);
    *chain = new;
    Ok(())
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
        .filter(|&index| {
            // Behind what is there the FAT is yet to grow.
            state.fat_sectors.get(index as usize).copied().flatten().is_some_and(is_stale)
        })
        .collect();
    let difat: Vec<usize> = (0..state.difat_sectors.len())
        .filter(|&index| state.difat_changed && is_stale(state.difat_sectors[index]))
        .collect();
    let count = u32::try_from(fat.len() + difat.len()).expect("fewer than sectors");
    if count == 0 {
        return Ok(false);
    }
    let new = state.make_spaces().fat.allocate_near(count)?;
    let mut new = sectors_of(&new);
    let mut left = Chain::default();
    for (&index, sector) in fat.iter().zip(&mut new) {
        state.make_spaces().fat.mark(sector, FAT_SECTOR);
        let old = state.fat_sectors[index as usize].replace(sector);
        left.push(Run::single(old.expect("just seen")));
        state.difat_changed |= index as usize >= HEADER_DIFAT_LEN;
    }
    for (&index, sector) in difat.iter().zip(&mut new) {
        state.make_spaces().fat.mark(sector, DIFAT_SECTOR);
        left.push(Run::single(std::mem::replace(&mut state.difat_sectors[index], sector)));
    }
    state.make_spaces().fat.release(&left);
    Ok(true)
}
