//! Small writes, gathered in memory until they are worth a call.
//!
//! A letter to whoever changes this next. Bytes go through up to three places:
//! `pending`, where writes land; `in_flight`, which a drain is writing and
//! nobody changes; and the storage. A reader takes them in this order, under
//! one look at the first two, and asks the storage for the rest *afterwards*.
//! The other way round, a drain that ends in between would hide its bytes from
//! the reader.
//!
//! No lock that readers or writers need is held across a call to the storage.
//! `draining` is, so that there is one drain at a time; a writer waits for it
//! only when it has filled the memory that it may fill.
//!
//! A drain that fails puts back what it has not written, under the bytes that
//! came since. So nothing is lost, and the next drain tries again.

mod buffer;
mod extents;
#[cfg(test)]
mod tests;

use crate::storage::Storage;
use extents::Extents;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Sizes in bytes that decide what is gathered.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// See [`DIRECT_BYTES`].
    direct: usize,
    /// Memory for gathered bytes from which on they are written.
    drain: usize,
    /// Most bytes of one extent, and of one call of a drain. Twice `drain`, so
    /// that what was appended until a drain is one extent and goes out in one call.
    extent: usize,
}

/// A write from this size on is worth a call of its own.
pub(crate) const DIRECT_BYTES: usize = 64 << 10;

const LIMITS: Limits = Limits { direct: DIRECT_BYTES, drain: 1 << 20, extent: 2 << 20 };

/// Writes on their way to a storage.
///
/// All calls get the same storage. Writes to one place must not run at the same
/// time; everything else may.
#[derive(Debug)]
pub(crate) struct WriteBehind {
    state: RwLock<State>,
    /// Held by the one drain that runs.
    draining: Mutex<()>,
    /// False if nothing is pending or in flight. Changes under the lock of `state`.
    is_occupied: AtomicBool,
    limits: Limits,
}

#[derive(Debug, Default)]
struct State {
    pending: Extents,
    /// Older than `pending`. Empty unless a drain runs, or died of a panic in
    /// the storage.
    in_flight: Arc<Extents>,
    /// Memory that a drain has emptied, for what comes next: memory that was
    /// written to before costs no page fault. Given back when all is drained.
    spare: Vec<u8>,
}

impl State {
    fn end(&self) -> u64 {
        self.pending.end().max(self.in_flight.end())
    }

    fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.in_flight.is_empty()
    }

    /// Puts what is in flight back under what is pending.
    fn take_back(&mut self, limits: Limits) {
        if !self.in_flight.is_empty() {
            let older = Arc::unwrap_or_clone(std::mem::take(&mut self.in_flight));
            let newer = std::mem::replace(&mut self.pending, older);
            self.pending.put_all(newer, limits.extent);
        }
    }
}

impl WriteBehind {
    /// Nothing is gathered yet.
    pub(crate) fn new() -> Self {
        Self::with_limits(LIMITS)
    }

    fn with_limits(limits: Limits) -> Self {
        Self {
            state: RwLock::default(),
            draining: Mutex::default(),
            is_occupied: AtomicBool::new(false),
            limits,
        }
    }

    // Only memory is touched under these locks, and no step leaves half a change.
    fn look(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.draining.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anything is gathered.
    pub(crate) fn is_occupied(&self) -> bool {
        self.is_occupied.load(Ordering::Acquire)
    }

    fn note_occupied(&self, state: &State) {
        self.is_occupied.store(!state.is_empty(), Ordering::Release);
    }

    /// Writes `buf` from byte `offset` on, now or later.
    ///
    /// A large write goes to the storage at once unless it lies over gathered
    /// bytes, and so does any write to a storage in memory. Others are kept, and
    /// all that is kept is drained when it is more than a megabyte.
    ///
    /// # Errors
    ///
    /// Those of the storage. After an error of a small write its bytes are kept
    /// nevertheless, and readers see them.
    pub(crate) fn write<S: Storage + ?Sized>(
        &self,
        storage: &S,
        buf: &[u8],
        offset: u64,
    ) -> io::Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(buf.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        if (buf.len() >= self.limits.direct || storage.is_memory()) && !self.overlaps(offset..end) {
            return storage.write_at(buf, offset);
        }
        if self.gather(buf, offset) >= self.limits.drain {
            self.drain_from(storage, self.limits.drain)
        } else {
            Ok(())
        }
    }

    /// Keeps `buf` for byte `offset` until the next drain. Gives the memory that
    /// what is pending takes, in bytes.
    pub(crate) fn gather(&self, buf: &[u8], offset: u64) -> usize {
        let mut state = self.change();
        let State { pending, spare, .. } = &mut *state;
        pending.put(offset, buf, self.limits.extent, spare);
        self.is_occupied.store(true, Ordering::Release);
        state.pending.weight_bytes()
    }

    fn overlaps(&self, range: Range<u64>) -> bool {
        self.is_occupied() && {
            let state = self.look();
            state.pending.overlaps(&range) || state.in_flight.overlaps(&range)
        }
    }

    /// Reads from byte `offset` on, as [`Storage::read_at`] does, gathered bytes
    /// included. Never waits for a drain.
    ///
    /// Asks the storage once, for the smallest range that has all that is not
    /// gathered, or not at all.
    ///
    /// # Errors
    ///
    /// Those of the storage.
    pub(crate) fn read<S: Storage + ?Sized>(
        &self,
        storage: &S,
        buf: &mut [u8],
        offset: u64,
    ) -> io::Result<usize> {
        if !self.is_occupied() {
            return storage.read_at(buf, offset);
        }
        let len = usize::try_from(u64::MAX - offset).map_or(buf.len(), |len| len.min(buf.len()));
        let buf = &mut buf[..len];
        let end = offset + len as u64;
        let (gaps, known_end) = {
            let state = self.look();
            let gaps = state.pending.read(offset..end, buf, offset);
            let below = |gap| state.in_flight.read(gap, buf, offset);
            let gaps: Vec<Range<u64>> = gaps.into_iter().flat_map(below).collect();
            (gaps, state.end())
        };
        let (Some(first), Some(last)) = (gaps.first(), gaps.last()) else {
            return Ok(buf.len());
        };
        let span = first.start..last.end;
        let place = |range: &Range<u64>, base: u64| {
            let index = |at: u64| usize::try_from(at - base).expect("inside a buffer");
            index(range.start)..index(range.end)
        };
        let read = |target: &mut [u8]| -> io::Result<usize> {
            let count = storage.read_at(target, span.start)?;
            // Before gathered bytes, what the storage does not have yet is zero.
            target[count..].fill(0);
            Ok(count)
        };
        let count = if gaps.len() == 1 {
            read(&mut buf[place(&span, offset)])?
        } else {
            let mut whole = vec![0; place(&span, span.start).len()];
            let count = read(&mut whole)?;
            for gap in &gaps {
                buf[place(gap, offset)].copy_from_slice(&whole[place(gap, span.start)]);
            }
            count
        };
        let storage_end = span.start + count as u64;
        if storage_end == span.end {
            return Ok(buf.len());
        }
        // The storage ends here, what is gathered perhaps further on.
        let end = storage_end.max(known_end).clamp(offset, end);
        Ok(place(&(offset..end), offset).len())
    }

    /// Writes all that is gathered, in ascending order, touching pieces in one call.
    ///
    /// Waits for a drain that runs already. Writes that come meanwhile may or
    /// may not be included.
    ///
    /// # Errors
    ///
    /// The first one of the storage. What was not written then is gathered as
    /// before.
    pub(crate) fn drain<S: Storage + ?Sized>(&self, storage: &S) -> io::Result<()> {
        self.drain_from(storage, 0)
    }

    /// Forgets all that is gathered. Waits for a drain that runs.
    pub(crate) fn discard(&self) {
        let _one = self.one_at_a_time();
        let mut state = self.change();
        *state = State::default();
        self.note_occupied(&state);
    }

    /// Drains if what is pending weighs at least `weight_bytes` once no other drain runs.
    fn drain_from<S: Storage + ?Sized>(&self, storage: &S, weight_bytes: usize) -> io::Result<()> {
        let _one = self.one_at_a_time();
        let in_flight = {
            let mut state = self.change();
            state.take_back(self.limits);
            if weight_bytes == 0 {
                state.spare = Vec::new();
            }
            if state.is_empty() || state.pending.weight_bytes() < weight_bytes {
                return Ok(());
            }
            state.in_flight = Arc::new(std::mem::take(&mut state.pending));
            Arc::clone(&state.in_flight)
        };
        let (written, result) = in_flight.write_to(storage, self.limits.extent);
        drop(in_flight); // the only other owner, so that nothing is copied below
        let mut state = self.change();
        if result.is_ok() {
            let written = std::mem::take(&mut state.in_flight);
            if weight_bytes > 0 {
                state.spare = Arc::unwrap_or_clone(written).into_spare();
            }
        } else {
            Arc::make_mut(&mut state.in_flight).remove(0..written);
            state.take_back(self.limits);
        }
        self.note_occupied(&state);
        result
    }
}
