//! Zeros over what nothing refers to: free sectors and mini sectors, and what lies
//! behind the end of a stream in its last sector.

use alloc_core::{Chain, Run};

use crate::commit::{self, Cut};
use crate::dir_entry::EntryKind;
use crate::error::{Doing, Error};
use crate::node::Place;
use crate::shared::Shared;
use crate::space::Space;
use crate::storage::Storage;

/// Everybody else waits meanwhile.
///
/// What is free is free in the saved state too: what a save frees is given
/// out only after it. So a crash on the way costs nothing but the rest of the wipe.
pub(super) fn wipe<S: Storage>(shared: &Shared<S>) -> Result<(), Error> {
    commit::flush_again(shared, Cut::All)?;
    let mut state = shared.change_state()?;
    let nodes = state.open_nodes();
    let mut bodies = Vec::with_capacity(nodes.len());
    for node in &nodes {
        let mut body = node.body.write().expect("not poisoned");
        state.settle(node, &mut body);
        bodies.push(body);
    }
    let geometry = state.geometry;
    for place in [Place::Regular, Place::Mini] {
        for run in free_runs(state.make_spaces().of(place)) {
            let bytes = run.count().bytes(geometry.unit_bytes(place));
            shared.zero_chain(place, &Chain::from_runs([run]), 0, bytes)?;
        }
    }
    let slots: Vec<u32> = state.dir.slots().collect();
    for slot in slots {
        let entry = state.dir.entry(slot);
        if entry.kind != EntryKind::Stream {
            continue;
        }
        let len = entry.len_bytes;
        let found = state.find_stream(slot);
        let is_whole = found.damage.is_none() && found.broken.is_none();
        if is_whole && !state.has_shared(found.place, &found.chain) {
            let end = found.chain.sector_count().bytes(geometry.unit_bytes(found.place));
            shared.zero_chain(found.place, &found.chain, len, end)?;
        }
    }
    shared.pending.drain(shared.storage()).doing("clearing free space", 0)?;
    // For the sync, if there is to be one.
    drop((bodies, state));
    commit::flush_again(shared, Cut::All)
}

/// All that is free, what was held for new chains included.
fn free_runs(space: &mut Space) -> Vec<Run> {
    space.trim_ahead();
    space.map().free_runs().collect()
}
