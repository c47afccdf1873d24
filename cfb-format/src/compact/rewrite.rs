//! A new file of the same content: what it looks like depends on the content alone.
//!
//! The entries are made in walk order, so the directory has them in that order.
//! Then every stream gets its sectors, one behind the other; the mini
//! stream follows the last of them. Nothing is free on the way, so nothing is
//! ever chosen. Last comes the metadata, by an ordinary save.

use alloc_core::{Chain, SectorId};

use super::{CompactOptions, Compacted};
use crate::commit::{self, Cut};
use crate::compound_file::{CompoundFile, set_extra};
use crate::copy::{Damaged, legal_name};
use crate::dir_entry::{EntryKind, Extra};
use crate::directory::{EntryId, ROOT};
use crate::error::{Corruption, Doing, Error};
use crate::name::{self, Name};
use crate::node::Place;
use crate::read_cache::ReadCache;
use crate::shared::Shared;
use crate::state::State;
use crate::storage::Storage;
use crate::stream::Stream;

/// Bytes are copied in pieces of this size.
const PIECE_BYTES: u64 = 1 << 20;

/// An entry of the source, behind the storage that holds it.
struct Item {
    id: EntryId,
    kind: EntryKind,
    name: Name,
    extra: Extra,
    /// Index of the item that holds it.
    parent: usize,
}

/// A stream on its way.
struct Body {
    from: EntryId,
    /// Bytes that can be read.
    len: u64,
    place: Place,
    chain: Chain,
}

pub(super) fn rewrite<S: Storage, T: Storage>(
    file: &CompoundFile<S>,
    target: T,
    options: CompactOptions<'_>,
) -> Result<Compacted, Error> {
    let bytes_before = match file.storage().len() {
        Ok(len) => len.max(file.shared().physical_end()),
        Err(error) => return Err(error).doing("asking for the length of the storage", 0),
    };
    if target.len().doing("asking for the length of the storage", 0)? > 0 {
        target.set_len(0).doing("emptying the storage", 0)?;
    }
    let mut state = State::new(file.version());
    state.atomic = false;
    let mut report = Compacted { bytes_before, ..Compacted::default() };
    let bodies = plan(file, &mut state)?;
    let shared = Shared::new(ReadCache::new(target), state, true);
    let written = bodies
        .iter()
        .try_for_each(|body| copy(file, body, &shared, options, &mut report))
        .and_then(|()| commit::flush_again(&shared, Cut::All));
    // Before the error is told: what is dropped would be flushed once more.
    let target = shared.into_storage();
    written?;
    report.bytes_after = target.len().doing("asking for the length of the storage", 0)?;
    Ok(report)
}

/// Makes the entries and gives every stream its sectors.
fn plan<S: Storage>(file: &CompoundFile<S>, state: &mut State) -> Result<Vec<Body>, Error> {
    let items = items(file);
    let mut slots: Vec<u32> = Vec::with_capacity(items.len());
    let mut bodies = Vec::new();
    for item in &items {
        let slot = if item.kind == EntryKind::Root {
            ROOT
        } else {
            let parent = slots[item.parent];
            let (vacancy, name) = match state.dir.find_units(parent, item.name.units()) {
                Err(vacancy) => (vacancy, item.name.clone()),
                Ok(_) => legal_name(state, parent, &item.name),
            };
            state.dir.insert(vacancy, item.kind, name)
        };
        slots.push(slot);
        if item.kind == EntryKind::Stream {
            bodies.push((item.id, slot, file.open_stream(item.id)?.intact_len()));
        } else {
            let mut extra = item.extra.clone();
            if slot == ROOT {
                extra.created = 0;
            }
            set_extra(state, slot, |target| *target = extra);
        }
    }
    place(state, bodies)
}

/// Every entry in walk order, siblings in the order of the specification.
fn items<S: Storage>(file: &CompoundFile<S>) -> Vec<Item> {
    let state = file.shared().read_trees();
    let mut slots = vec![(ROOT, 0)];
    let mut items: Vec<Item> = Vec::new();
    while let Some((slot, parent)) = slots.pop() {
        let entry = state.dir.entry(slot);
        if entry.kind != EntryKind::Stream {
            let mut children = state.dir.children(slot);
            let units = |slot: u32| state.dir.entry(slot).name.units();
            children.sort_by(|&a, &b| name::compare(units(a), units(b)));
            slots.extend(children.into_iter().rev().map(|slot| (slot, items.len())));
        }
        items.push(Item {
            id: state.dir.id(slot),
            kind: entry.kind,
            name: entry.name.clone(),
            extra: state.dir.extra(slot),
            parent,
        });
    }
    items
}

/// Takes the sectors of the streams, and tells their entries.
fn place(state: &mut State, streams: Vec<(EntryId, u32, u64)>) -> Result<Vec<Body>, Error> {
    let geometry = state.geometry;
    let full = |units: u64| Error::FileFull { wanted: units, available: 0 };
    let count = |units: u64| u32::try_from(units).map_err(|_| full(units));
    let is_small = |len: u64| geometry.is_mini(len);
    let minis = streams.iter().filter(|stream| is_small(stream.2));
    let minis = count(minis.map(|stream| geometry.minis_for(stream.2)).sum())?;
    let mut bodies = Vec::with_capacity(streams.len());
    let mut chains = Vec::with_capacity(streams.len());
    for &(_, _, len) in &streams {
        let sectors = if is_small(len) { 0 } else { count(geometry.sectors_for(len))? };
        chains.push(if sectors == 0 {
            Chain::default()
        } else {
            state.make_spaces().fat.allocate(sectors)?
        });
    }
    if minis > 0 {
        let sectors = minis.div_ceil(geometry.minis_per_sector());
        let spaces = state.make_spaces();
        let chain = spaces.fat.allocate(sectors)?;
        spaces.mini.grow(sectors * geometry.minis_per_sector());
        *state.mini_stream.write().expect("not poisoned") = chain;
    }
    let mut next = 0;
    for ((from, slot, len), mut chain) in streams.into_iter().zip(chains) {
        let place = if is_small(len) { Place::Mini } else { Place::Regular };
        if place == Place::Mini && len > 0 {
            let minis = count(geometry.minis_for(len))?;
            chain = state.make_spaces().mini.allocate_at(minis, Some(SectorId::new(next)))?;
            next += minis;
        }
        if let Some(first) = chain.first() {
            let entry = state.dir.entry_mut(slot);
            entry.start_sector = first.get();
            entry.len_bytes = len;
        }
        bodies.push(Body { from, len, place, chain });
    }
    Ok(bodies)
}

/// Copies a stream's bytes, and notes why not all, if so.
fn copy<S: Storage, T: Storage>(
    file: &CompoundFile<S>,
    body: &Body,
    to: &Shared<T>,
    options: CompactOptions<'_>,
    report: &mut Compacted,
) -> Result<(), Error> {
    let from = file.open_stream(body.from)?;
    if let Some(cause) = damage(&from)? {
        let path = from.entry()?.path().to_owned();
        report.damaged.push(Damaged { path, copied_bytes: body.len, cause });
    }
    if body.len == 0 {
        return Ok(());
    }
    let mut buffer = vec![0; usize::try_from(body.len.min(PIECE_BYTES)).expect("at most 1 MiB")];
    let mut at = 0;
    while at < body.len {
        let piece = usize::try_from((body.len - at).min(PIECE_BYTES)).expect("at most 1 MiB");
        let count = from.read_at(&mut buffer[..piece], at)?;
        if count == 0 {
            break; // it was made shorter meanwhile
        }
        to.write_chain(body.place, &body.chain, at, &buffer[..count])?;
        options.tell(count as u64);
        at += count as u64;
    }
    report.streams_moved += 1;
    report.moved_bytes += at;
    Ok(())
}

/// Why a stream cannot be read to its end, if so.
fn damage<S: Storage>(from: &Stream<S>) -> Result<Option<Corruption>, Error> {
    let end = from.intact_len();
    if end == from.len() {
        return Ok(None);
    }
    match from.read_at(&mut [0], end) {
        Err(Error::Corrupt(cause)) => Ok(Some(cause)),
        Err(error) => Err(error),
        Ok(_) => Ok(None),
    }
}
