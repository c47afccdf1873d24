//! How what is in the journal gets into the index, so that the journal can begin
//! anew: a fold.
//!
//! 1. The journal goes on in another segment; what it held until then is frozen.
//! 2. Values that came along in the journal get sectors.
//! 3. A new index and the pages of the free map that change are written, next to
//!    the old ones.
//! 4. One flush brings all of it to the medium; then a superblock names it, and
//!    another flush does the same for that.
//! 5. Readers get the new index, and what only the old one used is given up.
//!
//! Commits go on meanwhile, into the other segment. A fold that fails before
//! step 4 has changed nothing but that; the next one begins at step 2, with all
//! that has come since. If there is no space for a whole new index, the changes
//! come into it a few at a time, each time giving up what the index before had,
//! and the journal begins anew with the last of them.

use std::io::IoSlice;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::data::write_values;
use crate::engine::{Counts, Engine};
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::frame::{Key, frame_bytes};
use crate::free_map::{MapChange, UsedMap};
use crate::journal::{BLOCK_BYTES, Replay};
use crate::layout::{JournalHead, PAGE_BYTES, Superblock};
use crate::object::{Body, INLINE_BYTES, Object};
use crate::space::Purpose;
use crate::tree::{Change, Folded, NODE_BYTES, Root, fold};

/// A segment of the journal has at least so many bytes.
const LEAST_SEGMENT_BYTES: u64 = 512 << 10;

/// How long segments of the journal are at first, if they may become `limit` bytes long.
pub(crate) fn least_segment_bytes(limit: u64) -> u64 {
    LEAST_SEGMENT_BYTES.min(limit.max(4 * BLOCK_BYTES))
}

/// What is used by the part of the store that is in the index.
const SEGMENT_PART: u64 = 256;

/// A journal that fills up faster than this gets larger segments.
const BUSY: Duration = Duration::from_secs(1);

/// What folds keep between them.
pub(crate) struct FoldState {
    /// The last one that was written.
    pub(crate) superblock: Superblock,
    /// What that state uses.
    pub(crate) used: UsedMap,
    /// Segments from the head of the superblock on, but for the one in use.
    pub(crate) segments: Vec<Extent>,
    /// A segment that is not in use.
    pub(crate) spare: Option<Extent>,
    /// A fold that was begun and has failed so far: where the journal went on.
    pub(crate) begun: Option<JournalHead>,
    pub(crate) last: Option<Instant>,
}

/// A value that got sectors: key, what it was, what it is.
struct Moved {
    key: Key,
    old: Option<Arc<Object>>,
    new: Option<Arc<Object>>,
}

/// All that a new superblock names.
struct Made {
    superblock: Superblock,
    used: UsedMap,
    moved: Vec<Moved>,
    /// What only the old one names.
    left: Vec<Extent>,
    /// What was taken for the new one.
    taken: Vec<Extent>,
}

impl Engine {
    // A fold that a panic has cut short has published nothing.
    pub(crate) fn lock_fold(&self) -> MutexGuard<'_, FoldState> {
        self.fold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room in the journal for a frame with so long a payload.
    pub(crate) fn make_room(&self, payload: usize) -> Result<()> {
        let journal = self.journal()?;
        let mut state = self.lock_fold();
        // An older fold that failed comes first, and makes no room itself.
        for _ in 0..2 {
            journal.check()?;
            if journal.has_room(payload) && !self.is_heavy(&self.lock_commit()) {
                return Ok(());
            }
            let room = frame_bytes(payload) + 3 * BLOCK_BYTES;
            if !self.go_on_elsewhere(&mut state, room)? {
                self.fold_with(&mut state, room)?;
            }
        }
        Ok(())
    }

    /// Lets the journal go on in another segment without a fold, if there is
    /// nothing to fold: a commit is too long for a segment that is nearly unused.
    fn go_on_elsewhere(&self, state: &mut FoldState, room: u64) -> Result<bool> {
        let journal = self.journal()?;
        let has_changes = {
            let commit = self.lock_commit();
            !commit.recent.is_empty() || !commit.active.is_empty()
        };
        if has_changes || state.begun.is_some() {
            return Ok(false);
        }
        let segment = self.next_segment(state, room)?;
        // Commits that came meanwhile are in the old segment, which is kept until
        // the next fold.
        let _commit = self.lock_commit();
        state.segments.push(journal.segment().0);
        journal.rotate(segment);
        Ok(true)
    }

    /// Brings everything into the index.
    pub(crate) fn fold_all(&self) -> Result<()> {
        let mut state = self.lock_fold();
        if state.begun.is_some() {
            self.fold_with(&mut state, 0)?;
        }
        let is_empty = {
            let commit = self.lock_commit();
            commit.recent.is_empty() && commit.active.is_empty()
        };
        if is_empty { Ok(()) } else { self.fold_with(&mut state, 0) }
    }

    /// Folds what was found in the journal when the store was opened.
    pub(crate) fn fold_replayed(&self, found: Replay) -> Result<()> {
        let mut state = self.lock_fold();
        let segment = self.next_segment(&mut state, 0)?;
        let head = self.journal()?.restart(segment, found.epoch + 1);
        state.segments = found.segments;
        let mut commit = self.lock_commit();
        commit.frozen = std::mem::take(&mut commit.active);
        state.begun = Some(head);
        drop(commit);
        self.fold_with(&mut state, 0)
    }

    /// One fold. The next segment has room for at least `room` bytes.
    fn fold_with(&self, state: &mut FoldState, room: u64) -> Result<()> {
        let journal = self.journal()?;
        journal.check()?;
        let segment = match state.begun {
            None => Some(self.next_segment(state, room)?),
            Some(_) => None,
        };
        if let Some(segment) = segment {
            // Under the lock, so that no frame comes between.
            let _commit = self.lock_commit();
            state.segments.push(journal.segment().0);
            let (_, head) = journal.rotate(segment);
            state.begun = Some(head);
        }
        let (mut most, mut has_flushed) = (usize::MAX, false);
        loop {
            match self.fold_some(state, most) {
                Ok(Some(count)) => most = count.saturating_mul(2),
                Ok(None) => return Ok(()),
                Err((Error::Full { .. }, _)) if !has_flushed => {
                    // What these commits give up is free once they are flushed.
                    self.flush_all()?;
                    has_flushed = true;
                }
                Err((Error::Full { .. }, Some(fewer))) => most = fewer,
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// Brings about so many changes into the index. How many, if not all: then
    /// the journal still begins where it did, as doing a change again when it is
    /// read does no harm. An error tells how many to try next, if fewer will do.
    ///
    /// Those that replace an object in sectors go first and together: such sectors
    /// may have been used again, and an index that names them as well as what lies
    /// there now would not know later which of the two to give up.
    fn fold_some(
        &self,
        state: &mut FoldState,
        most: usize,
    ) -> Result<Option<usize>, (Error, Option<usize>)> {
        let (frozen, counts, pin) = {
            let mut commit = self.lock_commit();
            commit.sort_recent();
            // What has come since the journal went on comes along.
            let newer = std::mem::take(&mut commit.active);
            commit.weight = 0;
            if commit.frozen.is_empty() {
                commit.frozen = newer;
            } else {
                commit.frozen.extend(newer);
            }
            // What the new index will name must not be used for its nodes, even if
            // a commit gives it up meanwhile.
            (commit.frozen.clone(), commit.counts, self.space.pin())
        };
        let mut part: Vec<Change> = Vec::with_capacity(frozen.len().min(most));
        let mut first = 0;
        if frozen.len() <= most {
            part.extend(frozen.iter().map(|(key, object)| (Arc::clone(key), object.clone())));
        } else {
            let mut others = Vec::new();
            for (key, object) in &frozen {
                let old = self.nodes.find(&self.root(), key).map_err(|error| (error, None))?;
                let change = (Arc::clone(key), object.clone());
                let is_first = old.is_some_and(|old| old.extents().next().is_some());
                if is_first { part.push(change) } else { others.push(change) }
            }
            first = part.len();
            part.extend(others.into_iter().take(most.saturating_sub(first)));
            part.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        }
        let is_all = part.len() == frozen.len();
        let fewer = (part.len() > first.max(1)).then_some(part.len() / 2);
        let failed = |error| (error, fewer);
        let (head, counts) = if is_all {
            (state.begun, counts)
        } else {
            (None, self.counts_after(&state.superblock, &part).map_err(failed)?)
        };
        let made = self.make_state(state, head, counts, &part).map_err(failed)?;
        if let Err(error) = self.write_superblock(&made.superblock) {
            // It may be there or not: what it names must stay as it is.
            self.journal().map_err(failed)?.break_off(&error);
            return Err(failed(error));
        }
        self.publish(state, made, is_all);
        drop(pin);
        Ok((!is_all).then_some(part.len()))
    }

    /// How many objects the index has after some changes.
    fn counts_after(&self, superblock: &Superblock, changes: &[Change]) -> Result<Counts> {
        let root = self.root();
        let mut counts = Counts { objects: superblock.objects, bytes: superblock.object_bytes };
        for (key, object) in changes {
            counts.replace(self.nodes.find(&root, key)?.as_ref(), object.as_deref());
        }
        Ok(counts)
    }

    /// Steps 2 to 3: all that the new superblock names.
    fn make_state(
        &self,
        state: &FoldState,
        head: Option<JournalHead>,
        counts: Counts,
        frozen: &[Change],
    ) -> Result<Made> {
        let mut taken: Vec<Extent> = Vec::new();
        let made = self.make_parts(state, head, counts, frozen, &mut taken);
        match made {
            Ok((superblock, used, moved, left)) => {
                Ok(Made { superblock, used, moved, left, taken })
            }
            Err(error) => {
                self.space.release(taken);
                Err(error)
            }
        }
    }

    fn make_parts(
        &self,
        state: &FoldState,
        head: Option<JournalHead>,
        counts: Counts,
        frozen: &[Change],
        taken: &mut Vec<Extent>,
    ) -> Result<(Superblock, UsedMap, Vec<Moved>, Vec<Extent>)> {
        // Pages of the map need long runs: nodes must not take the last of them.
        let pages = self.hold_pages(&state.superblock);
        let made = self.move_values(frozen, taken).and_then(|moved| {
            let change = |moved: &Moved| (Arc::clone(&moved.key), moved.new.clone());
            let changes: Vec<Change> = moved.iter().map(change).collect();
            let folded = fold(&self.nodes, &self.root(), &changes)?;
            Ok((moved, changes, folded))
        });
        self.space.release(pages);
        let (moved, changes, folded) = made?;
        let Folded { blob, levels, taken: nodes, mut left, dropped } = folded;
        taken.extend(&nodes);

        let mut used = state.used.clone();
        used.remove(&left);
        used.remove(&dropped);
        used.insert(&nodes);
        if let Some(head) = head {
            used.remove(&state.segments);
            used.insert(&[head.segment]);
        }
        for (_, object) in &changes {
            let extents: Vec<Extent> = object.iter().flat_map(|object| object.extents()).collect();
            used.insert(&extents);
        }
        let mut change = MapChange::default();
        let saved = used.save(&self.space, &mut change);
        taken.append(&mut change.taken);
        saved?;
        left.append(&mut change.left);
        let superblock = Superblock {
            generation: state.superblock.generation + 1,
            journal: head.unwrap_or(state.superblock.journal),
            root: blob,
            levels,
            map_table: used.table(),
            files: u16::try_from(self.space.files().len()).expect("few files"),
            objects: counts.objects,
            object_bytes: counts.bytes,
            ..state.superblock.clone()
        };
        // Everything that it names, and the journal until its head.
        self.flush_all()?;
        if let Err(error) = self.space.sync() {
            self.journal()?.break_off(&error);
            return Err(error);
        }
        Ok((superblock, used, moved, left))
    }

    /// Room for the pages of a few files and the table, if there is any.
    fn hold_pages(&self, superblock: &Superblock) -> Vec<Extent> {
        let count = self.space.sectors_for(PAGE_BYTES as u64);
        let take = |_| self.space.allocate(count, Purpose::Own, None, &|| Ok(())).ok();
        (0..=superblock.files.min(4)).map_while(take).flatten().collect()
    }

    /// Gives values sectors that have come along in the journal and are too long
    /// to stay in the index.
    fn move_values(&self, frozen: &[Change], taken: &mut Vec<Extent>) -> Result<Vec<Moved>> {
        let long: Vec<&[u8]> =
            frozen.iter().filter_map(|(_, object)| long_value(object.as_ref())).collect();
        let written = match write_values(&self.space, &long, &|| Ok(())) {
            // They stay where they are, which is in the index then: less than a sector each.
            Err(Error::Full { .. }) => None,
            written => Some(written?),
        };
        let is_placed = written.is_some();
        let written = written.unwrap_or_default();
        taken.extend(written.iter().flat_map(|written| written.body.extents()));
        let mut bodies = written.into_iter().map(|written| written.body);
        Ok(frozen
            .iter()
            .map(|(key, old)| {
                let new = match old {
                    Some(object) if is_placed && long_value(old.as_ref()).is_some() => {
                        let body = bodies.next().expect("one for each");
                        Some(Arc::new(Object { body, ..(**object).clone() }))
                    }
                    _ => old.clone(),
                };
                Moved { key: Arc::clone(key), old: old.clone(), new }
            })
            .collect())
    }

    /// Writes a superblock, twice, so that one that is damaged later is no loss.
    pub(crate) fn write_superblock(&self, superblock: &Superblock) -> Result<()> {
        let bytes = superblock.encode();
        let files = self.files();
        for offset in Superblock::offsets(superblock.generation) {
            files[0].write_at(&[IoSlice::new(&bytes)], offset)?;
        }
        self.space.sync()
    }

    /// Step 5.
    fn publish(&self, state: &mut FoldState, made: Made, is_all: bool) {
        let Made { superblock, used, moved, left, taken } = made;
        let mut commit = self.lock_commit();
        let generation = self.root().generation + 1;
        self.set_root(Root { blob: superblock.root, levels: superblock.levels, generation });
        if is_all {
            commit.frozen = crate::engine::Overlay::new();
        } else {
            for moved in &moved {
                commit.frozen.remove(&moved.key);
            }
        }
        let mut given_up = Vec::new();
        for Moved { key, old, new } in &moved {
            let is_current = self.live().folded(key, old.as_ref(), new.as_ref());
            let was_moved = match (old, new) {
                (Some(old), Some(new)) => !Arc::ptr_eq(old, new),
                _ => false,
            };
            if was_moved && !is_current {
                // The key has got another object meanwhile, which knew nothing of these sectors.
                given_up.extend(new.iter().flat_map(|new| new.extents()));
            }
        }
        let seq = self.journal().map_or(0, crate::journal::Journal::seq);
        self.space.settle(taken);
        self.space.give_up(given_up, seq);
        self.space.give_up(left, 0);
        if is_all {
            // The longest serves again.
            let mut segments = std::mem::take(&mut state.segments);
            segments.extend(state.spare.take());
            segments.sort_unstable_by_key(|segment| segment.count);
            state.spare = segments.pop();
            self.space.give_up(segments, 0);
            state.begun = None;
        }
        self.space.tick();
        drop(commit);
        self.space.set_reserve(self.reserve_sectors(&superblock));
        (state.superblock, state.used) = (superblock, used);
        state.last = Some(Instant::now());
    }

    /// What a fold may need although nothing is put: nodes, pages of the free
    /// map, and values that the journal can hold.
    pub(crate) fn reserve_sectors(&self, superblock: &Superblock) -> u64 {
        let segment = u64::from(superblock.journal.segment.count);
        let levels = u64::from(superblock.levels) + 2;
        let nodes = self.space.sectors_for(16 * levels * NODE_BYTES as u64).max(8 * levels);
        let pages = (u64::from(superblock.files) + 3) * self.space.sectors_for(PAGE_BYTES as u64);
        segment + nodes + pages
    }

    /// A segment for the journal to go on in: the spare one if it has the right size.
    fn next_segment(&self, state: &mut FoldState, room: u64) -> Result<Extent> {
        let bytes = |extent: Extent| u64::from(extent.count) * u64::from(self.space.sector_bytes);
        let usage = self.space.usage();
        let in_use = (usage.total - usage.free) * u64::from(self.space.sector_bytes);
        let current = bytes(self.journal()?.segment().0);
        let is_busy = state.last.is_some_and(|last| last.elapsed() < BUSY);
        let by_size = in_use / SEGMENT_PART;
        let by_load = if is_busy && room > 0 { (current * 2).min(2 * by_size) } else { 0 };
        let least = least_segment_bytes(self.segment_limit);
        let usual = by_load.max(by_size).clamp(least, self.segment_limit.max(least));
        let want = usual.max(room);
        if let Some(spare) = state.spare.take() {
            if bytes(spare) >= want && bytes(spare) <= want * 4 {
                return Ok(spare);
            }
            // Nobody refers to it.
            self.space.give_up([spare], 0);
            self.space.tick();
        }
        let take = |bytes| {
            let count = self.space.sectors_for(bytes);
            self.space.allocate(count, Purpose::Own, None, &|| self.flush_all())
        };
        let taken = match take(want) {
            // Nearly full: as little as will do.
            Err(Error::Full { .. }) if want > room.max(4 * BLOCK_BYTES) => {
                take(room.max(4 * BLOCK_BYTES))?
            }
            taken => taken?,
        };
        let segment = taken[0];
        // A flush of what was written before is faster than one of space that was
        // never used. One for a long commit is full soon anyway.
        if room <= usual
            && let Err(error) = self.space.clear(segment)
        {
            self.space.release(taken);
            return Err(error);
        }
        self.space.settle([segment]);
        Ok(segment)
    }
}

/// The bytes of a value that is too long for the index.
fn long_value(object: Option<&Arc<Object>>) -> Option<&[u8]> {
    match &object?.body {
        Body::Inline(bytes) if bytes.len() > INLINE_BYTES => Some(bytes),
        _ => None,
    }
}
