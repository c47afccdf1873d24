//! A file made smaller where it is, in rounds: each moves a bounded part of what lies
//! at the end into what is free below, and saves. So it needs no more room than it
//! has, and each save is a state with the same content.
//!
//! First the mini stream, sector by mini sector, which gives its sectors back; then the
//! sectors. The state is held for a round; between rounds others have their turn.
//!
//! Every round moves the end of the file down, or else it is one of a few
//! that may not: saves move metadata too, and where they put it is seen afterwards.
//! When those are used up, that is the end.

use std::collections::HashSet;

use alloc_core::{Chain, Run, SectorCount};

use super::holes::Holes;
use super::moves::{self, Owner};
use super::{CompactOptions, Compacted, wipe};
use crate::commit::{self, Cut, Durability};
use crate::compound_file::CompoundFile;
use crate::dir_entry::EntryKind;
use crate::error::{Doing, Error};
use crate::node::Place;
use crate::shared::Shared;
use crate::state::State;
use crate::storage::Storage;

/// Bytes that a round moves at most; of large files a part.
const ROUND_BYTES: u64 = 4 << 20;
const ROUND_PART: u64 = 64;

/// A piece of a stream up to this length, in bytes, is not divided between rounds.
const AT_ONCE_BYTES: u64 = 64 << 20;

/// Rounds in a row that may end without the end of the file having moved down.
const IDLE_ROUNDS: u32 = 4;

pub(super) fn compact<S: Storage>(
    file: &CompoundFile<S>,
    options: CompactOptions<'_>,
) -> Result<Compacted, Error> {
    let shared = file.shared();
    {
        let mut state = shared.change_state()?;
        if options.sync {
            state.durability = Durability::Machine;
        }
        let (per_sector, slots) = (state.geometry.entries_per_sector(), state.dir.slots_count());
        state.dir.trim(per_sector);
        if state.dir.slots_count() < slots {
            state.dir.touch(0..1);
        }
        moves::cut_excess(&mut state);
        if options.wipe {
            // Free slots may have names in them.
            state.dir.touch_all();
        }
    }
    let len = || shared.storage().len().doing("asking for the length of the storage", 0);
    let bytes_before = len()?.max(shared.physical_end());
    let mut report = Compacted { bytes_before, ..Compacted::default() };
    let mut moved = HashSet::new();
    for place in [Place::Mini, Place::Regular] {
        let (mut lowest, mut idle) = (u32::MAX, 0);
        loop {
            commit::flush_again(shared, Cut::All)?;
            let mut state = shared.change_state()?;
            let (end, target) = bounds(&mut state, place);
            if end < lowest {
                (lowest, idle) = (end, 0);
            } else {
                idle += 1;
            }
            // Not where a save has just moved metadata up, if that can be helped.
            let is_enough = idle > IDLE_ROUNDS && (end <= lowest || idle > 2 * IDLE_ROUNDS);
            if target == end || is_enough {
                break;
            }
            let before = report.moved_bytes;
            let is_moving = round(shared, &mut state, (place, target), &mut moved, &mut report)?;
            drop(state);
            options.tell(report.moved_bytes - before);
            if !is_moving {
                break;
            }
        }
    }
    report.streams_moved = moved.len() as u64;
    if options.wipe {
        wipe::wipe(shared)?;
    }
    report.bytes_after = len()?;
    Ok(report)
}

/// One more than the last sector in use, and what that is at best.
fn bounds(state: &mut State, place: Place) -> (u32, u32) {
    let space = state.make_spaces().of(place);
    space.trim_ahead();
    let end = space.used_end();
    let runs = space.map().free_runs();
    let free: u32 = runs
        .take_while(|run| run.start().get() < end)
        .map(|run| run.end().get().min(end) - run.start().get())
        .sum();
    (end, end - free)
}

/// Moves some of what lies at or behind the target. Says whether there was any.
fn round<S: Storage>(
    shared: &Shared<S>,
    state: &mut State,
    (place, target): (Place, u32),
    moved: &mut HashSet<u32>,
    report: &mut Compacted,
) -> Result<bool, Error> {
    state.settle_all();
    let unit = u64::from(state.geometry.unit_bytes(place));
    let bytes = ROUND_BYTES.max(shared.physical_end() / ROUND_PART);
    let mut budget = u32::try_from(bytes / unit).unwrap_or(u32::MAX);
    let mut owners = owners(state, place, target);
    // From the end of the file down.
    owners.sort_by_key(|(_, chain)| std::cmp::Reverse(end_of(chain)));
    let space = state.make_spaces().of(place);
    let at_once = u32::try_from(AT_ONCE_BYTES / unit).expect("fits");
    let mut holes = Holes::below(space.map(), target, at_once);
    let mut is_moving = false;
    for (owner, chain) in owners {
        let pieces = holes.place(&chain, target, &mut budget);
        if pieces.is_empty() {
            break;
        }
        is_moving = true;
        report.moved_bytes += match owner {
            Owner::Stream(slot) => {
                let bytes = moves::stream(shared, state, slot, place, &pieces)?;
                if bytes > 0 {
                    moved.insert(slot);
                }
                bytes
            }
            Owner::MiniStream => moves::mini_stream(shared, state, &pieces)?,
            metadata => {
                moves::metadata(state, metadata, &pieces);
                0
            }
        };
    }
    Ok(is_moving)
}

fn end_of(chain: &Chain) -> u32 {
    chain.runs().map(|run| run.end().get()).max().unwrap_or(0)
}

/// What has sectors at or behind the target, and all its sectors.
fn owners(state: &State, place: Place, target: u32) -> Vec<(Owner, Chain)> {
    let mut owners = Vec::new();
    let mut add = |owner: Owner, chain: Chain| {
        if end_of(&chain) > target {
            owners.push((owner, chain));
        }
    };
    let cutoff = |slot: u32| state.geometry.is_mini(state.dir.entry(slot).len_bytes);
    for slot in state.dir.slots() {
        let is_stream = state.dir.entry(slot).kind == EntryKind::Stream;
        if is_stream && cutoff(slot) == (place == Place::Mini) {
            let mut found = state.find_stream(slot);
            drop(found.chain.truncate(SectorCount::new(moves::units(state, slot, place))));
            // What is damaged stays where it is.
            if found.damage.is_none() && found.broken.is_none() {
                add(Owner::Stream(slot), found.chain);
            }
        }
    }
    if place == Place::Mini {
        return owners;
    }
    add(Owner::MiniStream, state.mini_stream.read().expect("not poisoned").clone());
    add(Owner::Directory, state.dir_chain.clone());
    add(Owner::MiniFat, state.mini_fat_chain.clone());
    let single = |sector| Chain::from_runs([Run::single(sector)]);
    for (index, &sector) in (0..).zip(state.fat_sectors.iter().flatten()) {
        add(Owner::Fat(index), single(sector));
    }
    for (index, &sector) in (0..).zip(&state.difat_sectors) {
        add(Owner::Difat(index), single(sector));
    }
    owners
}
