//! The sizes of directory, MiniFAT, FAT and DIFAT. The FAT describes itself and
//! the DIFAT, so that is a fixed point.

use alloc_core::{Chain, Run, SectorId};

use super::relocate;
use crate::error::Error;
use crate::layout::{DIFAT_SECTOR, END_OF_CHAIN, FAT_SECTOR, FREE_SECTOR, HEADER_DIFAT_LEN};
use crate::state::State;
use crate::version::{Geometry, Version};

/// Gives the chain of a table or the directory `want` sectors, and moves what
/// changes of it.
fn fit_chain(
    state: &mut State,
    chain: &mut Chain,
    changed: impl FnOnce(&State) -> Vec<(u32, u32)>,
    want: u32,
) -> Result<(), Error> {
    let changed = if state.atomic { changed(state) } else { Vec::new() };
    let fat = &mut state.make_spaces().fat;
    fat.truncate(chain, want);
    let more = want - chain.sector_count().get();
    relocate::chain(fat, chain, &changed, more)
}

pub(super) fn fit_directory(state: &mut State) -> Result<(), Error> {
    let per_sector = state.geometry.entries_per_sector();
    state.dir.link_new();
    if state.dir.is_changed() {
        state.dir.trim(per_sector);
        state.dir.pad(per_sector);
    }
    let want = state.dir.slots_count() / per_sector;
    let changed = |state: &State| state.dir.changed_sectors(per_sector);
    let mut chain = std::mem::take(&mut state.dir_chain);
    let fitted = fit_chain(state, &mut chain, changed, want);
    state.dir_chain = chain;
    fitted?;
    let count = if state.geometry.version == Version::V3 { 0 } else { want };
    state.header.dir_sectors_count = count;
    state.header.first_dir_sector = first(&state.dir_chain);
    Ok(())
}

pub(super) fn fit_mini_fat(state: &mut State) -> Result<(), Error> {
    let want = state.mini_fat().sectors_count();
    let changed = |state: &State| state.mini_fat().changed().ranges();
    let mut chain = std::mem::take(&mut state.mini_fat_chain);
    let fitted = fit_chain(state, &mut chain, changed, want);
    state.mini_fat_chain = chain;
    fitted?;
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

/// Gives the FAT and DIFAT the sectors they need, their own included, and those
/// of them that change sectors that may be written. Each round takes sectors
/// or is the last; sectors given back count as used until the save is done, and
/// none moves twice, so it never goes back and forth.
pub(super) fn fit_fat(state: &mut State) -> Result<(), Error> {
    let geometry = state.geometry;
    let cells = geometry.cells_per_sector();
    // What windows held is free again; the pinned sector goes with it.
    state.make_spaces().fat.shrink();
    for index in 0..state.fat_sectors.len() {
        if state.fat_sectors[index].is_none() {
            state.fat_sectors[index] = take(state, 1, FAT_SECTOR)?.first().copied();
            let index = u32::try_from(index).expect("FAT sectors are fewer than sectors");
            state.make_spaces().fat.table.touch(index);
            state.difat_changed = true;
        }
    }
    give_back_fat(state);
    loop {
        // What moves before what is new, so that they lie in their order.
        if relocate::fat(state)? {
            continue;
        }
        let end = state.make_spaces().fat.used_end();
        let want = end.div_ceil(cells) as usize;
        let have = state.fat_sectors.len();
        if have < want {
            let new = take(state, want - have, FAT_SECTOR)?;
            state.fat_sectors.extend(new.into_iter().map(Some));
            state.difat_changed = true;
            continue;
        }
        let want = difat_sectors_for(have, geometry);
        let have = state.difat_sectors.len();
        if have < want {
            let new = take(state, want - have, DIFAT_SECTOR)?;
            state.difat_sectors.extend(new);
            state.difat_changed = true;
            continue;
        }
        break;
    }
    let fat_count = u32::try_from(state.fat_sectors.len()).expect("few");
    state.make_spaces().fat.table.cover(fat_count * cells);
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
    let fat = &mut state.make_spaces().fat;
    let keep = fat.used_end().div_ceil(cells);
    if keep < fat.table.sectors_count() {
        fat.table.truncate(keep);
    }
}

/// Takes `count` sectors for the FAT or the DIFAT.
fn take(state: &mut State, count: usize, mark: u32) -> Result<Vec<SectorId>, Error> {
    let fat = &mut state.make_spaces().fat;
    let chain = fat.allocate(u32::try_from(count).expect("few"))?;
    let sectors: Vec<SectorId> = sectors_of(&chain).collect();
    for &sector in &sectors {
        fat.mark(sector, mark);
    }
    Ok(sectors)
}

fn give_one(state: &mut State, sector: SectorId) {
    let mut chain = Chain::default();
    chain.push(Run::single(sector));
    state.make_spaces().fat.release(&chain);
}

pub(super) fn sectors_of(chain: &Chain) -> impl Iterator<Item = SectorId> + '_ {
    chain.runs().flat_map(|run| (run.start().get()..run.end().get()).map(SectorId::new))
}
