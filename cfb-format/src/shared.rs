//! What a file's handles share: the storage, the bytes on their way to it,
//! the metadata; and the way from a place in a chain to a place in the storage.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use alloc_core::{Chain, SectorId};

use crate::commit::{self, Cut};
use crate::error::{Doing, Error};
use crate::node::Place;
use crate::read_cache::ReadCache;
use crate::state::State;
use crate::storage::{Storage, append};
use crate::version::Geometry;
use crate::write_behind::WriteBehind;

/// Chains are copied in pieces of this many bytes.
const COPY_BYTES: u64 = 256 * 1024;

/// Zeros are written in pieces of at most this length.
pub(crate) static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// See the module.
pub(crate) struct Shared<S: Storage> {
    /// Taken out only when the file is closed.
    storage: Option<ReadCache<S>>,
    pub(crate) pending: WriteBehind,
    state: RwLock<State>,
    mini_stream: Arc<RwLock<Chain>>,
    pub(crate) geometry: Geometry,
    pub(crate) writable: bool,
    /// Byte offset from which on nothing was ever written: reads as zeros.
    physical_end: AtomicU64,
}

impl<S: Storage> Shared<S> {
    pub(crate) fn new(storage: ReadCache<S>, state: State, writable: bool) -> Self {
        Self {
            storage: Some(storage),
            pending: WriteBehind::new(),
            mini_stream: Arc::clone(&state.mini_stream),
            geometry: state.geometry,
            writable,
            physical_end: AtomicU64::new(state.file_len),
            state: RwLock::new(state),
        }
    }

    pub(crate) fn storage(&self) -> &ReadCache<S> {
        self.storage.as_ref().expect("the storage is there until the file is closed")
    }

    pub(crate) fn read_state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().expect("no panic while the state was held")
    }

    /// The state with every entry in its storage's tree.
    pub(crate) fn read_trees(&self) -> RwLockReadGuard<'_, State> {
        loop {
            let state = self.read_state();
            if state.dir.is_linked() {
                return state;
            }
            drop(state);
            self.write_state().dir.link_new();
        }
    }

    pub(crate) fn write_state(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().expect("no panic while the state was held")
    }

    /// The state to be changed, or the error that says why not.
    pub(crate) fn change_state(&self) -> Result<RwLockWriteGuard<'_, State>, Error> {
        if !self.writable {
            return Err(Error::ReadOnly);
        }
        let mut state = self.write_state();
        state.make_spaces();
        self.part_mini_stream(&mut state)?;
        Ok(state)
    }

    /// Copies the mini stream of a damaged file to sectors of its own, where
    /// it shares some: a write to a small stream would change something else.
    fn part_mini_stream(&self, state: &mut State) -> Result<(), Error> {
        if !state.has_shared_sectors() {
            return Ok(());
        }
        let Some(new) = state.part_mini_stream()? else { return Ok(()) };
        let old = self.mini_stream.read().expect("not poisoned").clone();
        let len_bytes = old.sector_count().bytes(self.geometry.sector_bytes());
        let (from, to) = ((Place::Regular, &old), (Place::Regular, &new));
        if let Err(error) = self.copy_chain(from, to, 0..len_bytes) {
            state.release(Place::Regular, &new);
            return Err(error);
        }
        state.move_mini_stream(new);
        Ok(())
    }

    /// The state, unless a panic happened while it was held: for `Drop`.
    pub(crate) fn state_for_drop(&self) -> Option<RwLockWriteGuard<'_, State>> {
        self.state.write().ok()
    }

    /// Hands the storage out. The caller has flushed.
    pub(crate) fn into_storage(mut self) -> S {
        let storage = self.storage.take();
        storage.expect("the storage is there until the file is closed").into_inner()
    }

    pub(crate) fn physical_end(&self) -> u64 {
        self.physical_end.load(Ordering::Acquire)
    }

    /// The storage now ends here.
    pub(crate) fn set_physical_end(&self, end: u64) {
        self.physical_end.store(end, Ordering::Release);
    }

    /// Bytes were written up to `end`.
    pub(crate) fn reaches(&self, end: u64) {
        // Most writes are not at the end, and a locked instruction waits for
        // every byte before it.
        if self.physical_end() < end {
            self.physical_end.fetch_max(end, Ordering::AcqRel);
        }
    }

    /// The next piece of a chain's bytes that is in one piece in the storage:
    /// byte offset there and length in bytes.
    pub(crate) fn piece(&self, place: Place, chain: &Chain, from: u64, to: u64) -> (u64, u64) {
        let origin = self.geometry.offset_of(SectorId::new(0)).get();
        let inside = "the chain holds the stream's bytes";
        let sector_bytes = self.geometry.sector_bytes();
        match place {
            Place::Regular => {
                let segment = chain.segments(from..to, sector_bytes).next().expect(inside);
                (origin + segment.offset.get(), segment.len_bytes)
            }
            Place::Mini => {
                let mini_bytes = self.geometry.mini_bytes();
                let mini = chain.segments(from..to, mini_bytes).next().expect(inside);
                let start = mini.offset.get();
                let mini_stream = self.mini_stream.read().expect("not poisoned");
                let range = start..start + mini.len_bytes;
                let segment = mini_stream.segments(range, sector_bytes).next().expect(inside);
                (origin + segment.offset.get(), segment.len_bytes)
            }
        }
    }

    /// Fills `buf` from the bytes of a chain at `offset`, which it has. What
    /// was allocated and never written reads as zeros.
    pub(crate) fn read_chain(
        &self,
        place: Place,
        chain: &Chain,
        offset: u64,
        mut buf: &mut [u8],
    ) -> Result<(), Error> {
        let end = offset + buf.len() as u64;
        let mut at = offset;
        while at < end {
            let (from, len) = self.piece(place, chain, at, end);
            let (now, later) = buf.split_at_mut(usize::try_from(len).expect("at most the buffer"));
            let read = match place {
                // A stream of its own sectors reads ahead where its handle does.
                Place::Regular => self.pending.read(self.storage(), now, from),
                Place::Mini => self.pending.read(&self.storage().ahead(), now, from),
            };
            let count = read.doing("reading stream data", from)?;
            now[count..].fill(0);
            buf = later;
            at += len;
        }
        Ok(())
    }

    /// Appends `count` bytes of a chain from `offset` on, which it has, to
    /// `to`; nothing after an error. What was never written reads as zeros.
    pub(crate) fn append_chain(
        &self,
        place: Place,
        chain: &Chain,
        offset: u64,
        count: usize,
        to: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let before = to.len();
        if self.storage().is_memory() && self.append_from_memory(place, chain, offset, count, to) {
            return Ok(());
        }
        to.resize(before + count, 0);
        let read = self.read_chain(place, chain, offset, &mut to[before..]);
        if read.is_err() {
            to.truncate(before);
        }
        read
    }

    /// As [`append_chain`](Self::append_chain) where the storage lends its
    /// bytes out, without clearing memory first. Nothing is gathered there.
    fn append_from_memory(
        &self,
        place: Place,
        chain: &Chain,
        offset: u64,
        count: usize,
        to: &mut Vec<u8>,
    ) -> bool {
        let (before, end) = (to.len(), offset + count as u64);
        to.reserve(count);
        let mut at = offset;
        while at < end {
            let (from, len) = self.piece(place, chain, at, end);
            let mut is_lent = false;
            self.storage().with_bytes(&mut |bytes| {
                is_lent = true;
                let bytes = usize::try_from(from).ok().and_then(|from| bytes.get(from..));
                let bytes = bytes.unwrap_or(&[]);
                let len = usize::try_from(len).unwrap_or(usize::MAX).min(bytes.len());
                append(to, &bytes[..len]);
            });
            if !is_lent {
                to.truncate(before);
                return false;
            }
            at += len;
            to.resize(before + usize::try_from(at - offset).expect("at most the count"), 0);
        }
        true
    }

    /// Writes bytes into a chain at `offset`, which it has.
    pub(crate) fn write_chain(
        &self,
        place: Place,
        chain: &Chain,
        offset: u64,
        mut bytes: &[u8],
    ) -> Result<(), Error> {
        let end = offset + bytes.len() as u64;
        let mut at = offset;
        while at < end {
            let (to, len) = self.piece(place, chain, at, end);
            let (now, later) = bytes.split_at(usize::try_from(len).expect("at most the bytes"));
            self.pending.write(self.storage(), now, to).doing("writing stream data", to)?;
            self.reaches(to + len);
            bytes = later;
            at += len;
        }
        Ok(())
    }

    /// Copies bytes of a chain to the same place in another.
    pub(crate) fn copy_chain(
        &self,
        from: (Place, &Chain),
        to: (Place, &Chain),
        range: Range<u64>,
    ) -> Result<(), Error> {
        self.copy_from(from, 0, to, range)
    }

    /// Copies the bytes `range` of a chain from another one, in which they are that
    /// many less `before`.
    pub(crate) fn copy_from(
        &self,
        (from_place, from): (Place, &Chain),
        before: u64,
        (to_place, to): (Place, &Chain),
        range: Range<u64>,
    ) -> Result<(), Error> {
        if range.start >= range.end {
            return Ok(());
        }
        let small = |bytes: u64| usize::try_from(bytes).expect("at most 256 KiB");
        let mut buffer = vec![0; small((range.end - range.start).min(COPY_BYTES))];
        let mut at = range.start;
        while at < range.end {
            let count = (range.end - at).min(COPY_BYTES);
            let piece = &mut buffer[..small(count)];
            self.read_chain(from_place, from, at - before, piece)?;
            self.write_chain(to_place, to, at, piece)?;
            at += count;
        }
        Ok(())
    }

    /// Makes a part of a chain read as zeros.
    pub(crate) fn zero_chain(
        &self,
        place: Place,
        chain: &Chain,
        mut at: u64,
        end: u64,
    ) -> Result<(), Error> {
        while at < end {
            let (to, len) = self.piece(place, chain, at, end);
            if to >= self.physical_end() {
                at += len;
                continue;
            }
            let len = len.min(ZEROS.len() as u64);
            let zeros = &ZEROS[..usize::try_from(len).expect("at most 64 KiB")];
            self.pending.write(self.storage(), zeros, to).doing("clearing stream data", to)?;
            self.reaches(to + len);
            at += len;
        }
        Ok(())
    }
}

impl<S: Storage> Drop for Shared<S> {
    /// Saves what was not saved. A program that wants to know whether that
    /// worked calls `flush` before.
    fn drop(&mut self) {
        if self.writable && self.storage.is_some() && !self.state.is_poisoned() {
            let _ = commit::flush_again(self, Cut::All);
        }
    }
}
