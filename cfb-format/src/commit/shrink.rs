//! Making the file smaller where that is worth a write of its metadata.

use alloc_core::{Chain, Run, SectorId};

use super::fit::sectors_of;
use super::patches::Part;
use crate::directory::ROOT;
use crate::error::{Doing, Error};
use crate::layout::{DIFAT_SECTOR, FAT_SECTOR};
use crate::shared::Shared;
use crate::state::State;
use crate::storage::Storage;

/// Whether another round would make the file clearly smaller, and if so
/// moves metadata out of its end.
///
/// A round writes all metadata that moves, so it has to win a quarter of the
/// file, or half of the FAT. Saves that write nothing over leave free as much as
/// they write and use it the next time; there a round has to win clearly more
/// than it moves, unless the file is closed or empty.
pub(super) fn shrink_is_worth_it(state: &mut State, cut: Cut) -> bool {
    let minis_per_sector = state.geometry.minis_per_sector();
    let mini_sectors =
        state.dir.entry(ROOT).len_bytes.div_ceil(state.geometry.sector_bytes().into());
    let spaces = state.spaces().expect("made by the first change");
    let end = spaces.fat.used_end();
    let behind = spaces.fat.total() - end;
    let free = spaces.fat.map().free_count().get().saturating_sub(behind);
    let mini_free =
        mini_sectors.saturating_sub(spaces.mini.used_end().div_ceil(minis_per_sector).into());
    if spaces.fat.has_idle_pin() {
        return true; // its mark has to go from the FAT
    }
    let fat_want = end.div_ceil(state.geometry.cells_per_sector()) as usize;
    let fat_free = state.fat_sectors.len().saturating_sub(fat_want) as u64;
    let winnable = u64::from(free) + mini_free + fat_free;
    let is_mostly_fat = fat_free > fat_want as u64;
    if winnable < u64::from(end / 4).max(1) && !is_mostly_fat {
        return false;
    }
    let for_good = cut == Cut::All || state.dir.entries_count() == 1;
    let is_next_turn = winnable <= u64::from(2 * state.metadata_sectors());
    if state.atomic && is_next_turn && !for_good {
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
        let fat_chain =
            Chain::from_runs(state.fat_sectors.iter().flatten().map(|&sector| Run::single(sector)));
        let difat_chain = Chain::from_runs(state.difat_sectors.iter().map(|&s| Run::single(s)));
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

/// When the free end of the file is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// When it is more than a quarter of the rest, or more than the FAT covers:
    /// what one save frees there the next one often needs.
    Large,
    /// Always: the file is closed.
    All,
}

/// Cuts the free end of the file off.
pub(super) fn cut_end<S: Storage>(
    shared: &Shared<S>,
    state: &mut State,
    cut: Cut,
) -> Result<(), Error> {
    let geometry = state.geometry;
    let covered = state.fat().sectors_count() * geometry.cells_per_sector();
    let fat = &mut state.make_spaces().fat;
    fat.shrink();
    let used = fat.used_end();
    let keep = match cut {
        Cut::All => used,
        Cut::Large => (used + used / 4).min(covered.max(used)),
    };
    let (end, there) = (geometry.end_of(used), shared.physical_end());
    // A crash may have left a part of a sector.
    let is_ragged = !there.is_multiple_of(geometry.sector_bytes().into());
    if there > geometry.end_of(keep) || (there > end && is_ragged) {
        shared.storage().set_len(end).doing("shrinking the file", end)?;
        shared.set_physical_end(end);
    }
    Ok(())
}
