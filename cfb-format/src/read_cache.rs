//! A window of a storage's bytes: what was read when the file was opened, and
//! later what small streams are read from, a block at a time.
//!
//! A call of a storage that is not memory costs more than the bytes of a small
//! stream, and small streams lie close together. So a miss of one of them
//! reads a block around its bytes, and larger ones as long as each miss goes on
//! where the window ends.
//!
//! A letter to whoever changes this next. What is in the window is always what
//! the storage has. A write goes to the storage first, then counts itself and
//! drops the window if it touches it, both under the lock. A reader notes the
//! count before it asks the storage, and its bytes become the window only if
//! the count is still the same: bytes that a write may have overtaken are
//! given to the reader, who asked while it ran, and to nobody after that.
//!
//! No lock is held across a call to the storage, and a read whose bytes are
//! not in the window finds that out without a lock.

#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::error::Error;
use crate::layout::HEADER_BYTES;
use crate::storage::Storage;

/// Read in one call when a file is opened; the metadata of most files lies
/// within it, and copying it costs less than two more calls.
const HEAD_BYTES: usize = 128 << 10;

/// A block after a jump, and what blocks begin and end at multiples of: a
/// page of the system's cache.
const BLOCK_BYTES: usize = 4 << 10;

/// Blocks that follow each other double up to this many bytes.
const MAX_BLOCK_BYTES: usize = 64 << 10;

/// A storage, read through a window. Memory is passed straight through.
///
/// As a [`Storage`] it looks into the window and never moves it; reads of
/// [`ahead`](Self::ahead) move it.
pub(crate) struct ReadCache<S> {
    storage: S,
    window: RwLock<Window>,
    /// Where the window's bytes are, for a look without the lock. May be old.
    start: AtomicU64,
    end: AtomicU64,
    /// The header that the storage has to keep.
    watched: OnceLock<[u8; HEADER_BYTES]>,
}

/// Bytes as the storage has them.
#[derive(Debug, Default)]
struct Window {
    bytes: Vec<u8>,
    start: u64,
    /// Whether the storage ends where the bytes do: then it is known that
    /// nothing comes behind them.
    is_last: bool,
    /// Bytes of the next block if it begins where this one ends.
    next_bytes: usize,
    /// Counts the writes to the storage.
    version: u64,
}

/// A block that is to be read.
struct Block {
    range: Range<u64>,
    next_bytes: usize,
    /// Of the window before the storage is asked.
    version: u64,
    /// Memory to read into.
    bytes: Vec<u8>,
}

impl Window {
    /// Bytes up to here are known.
    fn end(&self) -> u64 {
        if self.is_last { u64::MAX } else { self.start + self.bytes.len() as u64 }
    }

    /// Copies to `buf`, if all that the storage has there is in the window.
    fn read(&self, buf: &mut [u8], offset: u64) -> Option<usize> {
        if offset < self.start || self.end().checked_sub(offset)? < buf.len() as u64 {
            return None;
        }
        let skip = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let bytes = self.bytes.get(skip..).unwrap_or(&[]);
        let count = bytes.len().min(buf.len());
        buf[..count].copy_from_slice(&bytes[..count]);
        Some(count)
    }

    /// The block to read for bytes that are not here. Takes the window's memory.
    fn next_block(&mut self, offset: u64, len: usize) -> Block {
        let (start, bytes) = (self.start, std::mem::take(&mut self.bytes));
        let goes_on = !bytes.is_empty() && (start..=start + bytes.len() as u64).contains(&offset);
        let block_bytes = BLOCK_BYTES as u64;
        let (start, ahead) = if goes_on {
            (offset, self.next_bytes)
        } else {
            (offset - offset % block_bytes, BLOCK_BYTES)
        };
        let end = (offset + len as u64).max(start + ahead as u64);
        let end = end.checked_next_multiple_of(block_bytes).unwrap_or(end);
        let next_bytes = (ahead * 2).min(MAX_BLOCK_BYTES);
        *self = Self { version: self.version, ..Self::default() };
        Block { range: start..end, next_bytes, version: self.version, bytes }
    }
}

impl<S> ReadCache<S> {
    /// Nothing is read yet.
    pub(crate) fn new(storage: S) -> Self {
        Self {
            storage,
            window: RwLock::default(),
            start: AtomicU64::new(u64::MAX),
            end: AtomicU64::new(0),
            watched: OnceLock::new(),
        }
    }

    /// From now on every read of the storage makes sure that the file still has
    /// this header, and fails with [`Error::ChangedUnderneath`] if it has not.
    ///
    /// A program that saves without writing over what was saved leaves the
    /// state that belongs to a header alone until it has written another one. So
    /// bytes that were read before a look at the header belong to it.
    pub(crate) fn watch(&self, header: &[u8; HEADER_BYTES]) {
        self.watched.set(*header).expect("a storage is watched once");
    }

    pub(crate) const fn inner(&self) -> &S {
        &self.storage
    }

    pub(crate) fn into_inner(self) -> S {
        self.storage
    }

    // Only memory is touched under the lock, and no step leaves half a change.
    fn look(&self) -> RwLockReadGuard<'_, Window> {
        self.window.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, Window> {
        self.window.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called under the lock, after each change of the window.
    fn note_bounds(&self, window: &Window) {
        let is_empty = window.bytes.is_empty() && !window.is_last;
        self.start.store(if is_empty { u64::MAX } else { window.start }, Ordering::Relaxed);
        self.end.store(if is_empty { 0 } else { window.end() }, Ordering::Relaxed);
    }

    fn read_window(&self, buf: &mut [u8], offset: u64) -> Option<usize> {
        let (start, end) = (self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        let may_have = start <= offset && end.saturating_sub(offset) >= buf.len() as u64;
        if may_have { self.look().read(buf, offset) } else { None }
    }

    /// Makes a block the window, unless something was written meanwhile.
    fn keep(&self, block: Block, is_last: bool) {
        let mut window = self.change();
        if window.version == block.version {
            *window = Window {
                bytes: block.bytes,
                start: block.range.start,
                is_last,
                next_bytes: block.next_bytes,
                version: block.version,
            };
            self.note_bounds(&window);
        }
    }

    /// Bytes of this range were written, or may have been.
    fn forget(&self, range: Range<u64>) {
        let mut window = self.change();
        window.version += 1;
        if range.start < window.end() && window.start < range.end {
            *window = Window { version: window.version, ..Window::default() };
            self.note_bounds(&window);
        }
    }
}

impl<S: Storage> ReadCache<S> {
    /// The header as it is now, unless the storage is memory or shorter.
    pub(crate) fn header(&self) -> io::Result<Option<[u8; HEADER_BYTES]>> {
        let mut header = [0; HEADER_BYTES];
        let is_file = !self.storage.is_memory();
        let whole = is_file && self.storage.read_at(&mut header, 0)? == HEADER_BYTES;
        Ok(whole.then_some(header))
    }

    fn read_storage(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.storage.read_at(buf, offset)?;
        match self.watched.get() {
            Some(header) if self.header()?.as_ref() != Some(header) => {
                Err(Error::ChangedUnderneath.into())
            }
            _ => Ok(count),
        }
    }

    /// Makes the first bytes of the storage, which is `len` bytes long, the window.
    ///
    /// # Errors
    ///
    /// Those of the storage.
    pub(crate) fn read_head(&self, len: u64) -> io::Result<()> {
        if self.storage.is_memory() {
            return Ok(());
        }
        let version = self.look().version;
        let head_bytes = usize::try_from(len).map_or(HEAD_BYTES, |len| len.min(HEAD_BYTES));
        let mut bytes = vec![0; head_bytes];
        let count = self.storage.read_at(&mut bytes, 0)?;
        bytes.truncate(count);
        let is_last = count < head_bytes || head_bytes as u64 == len;
        self.keep(Block { range: 0..len, next_bytes: BLOCK_BYTES, version, bytes }, is_last);
        Ok(())
    }

    /// The same storage; its reads move the window.
    pub(crate) const fn ahead(&self) -> Ahead<'_, S> {
        Ahead(self)
    }

    fn read_ahead(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.storage.is_memory() || buf.len() >= MAX_BLOCK_BYTES {
            return self.read_at(buf, offset);
        }
        if let Some(count) = self.read_window(buf, offset) {
            return Ok(count);
        }
        if offset.checked_add(2 * MAX_BLOCK_BYTES as u64).is_none() {
            return self.read_storage(buf, offset);
        }
        let mut block = {
            let mut window = self.change();
            let block = window.next_block(offset, buf.len());
            self.note_bounds(&window);
            block
        };
        let len = usize::try_from(block.range.end - block.range.start).expect("at most 72 KiB");
        block.bytes.resize(len, 0);
        let Ok(count) = self.read_storage(&mut block.bytes, block.range.start) else {
            // What cannot be read may be only what was not asked for.
            return self.read_storage(buf, offset);
        };
        block.bytes.truncate(count);
        let skip = usize::try_from(offset - block.range.start).expect("less than a block");
        let found = block.bytes.get(skip..).unwrap_or(&[]);
        let found = &found[..found.len().min(buf.len())];
        buf[..found.len()].copy_from_slice(found);
        let found = found.len();
        self.keep(block, count < len);
        Ok(found)
    }
}

impl<S: Storage> Storage for ReadCache<S> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.read_window(buf, offset) {
            Some(count) => Ok(count),
            None => self.read_storage(buf, offset),
        }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let written = self.storage.write_at(buf, offset);
        if !self.storage.is_memory() {
            self.forget(offset..offset.saturating_add(buf.len() as u64));
        }
        written
    }

    fn len(&self) -> io::Result<u64> {
        self.storage.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let set = self.storage.set_len(len);
        if !self.storage.is_memory() {
            self.forget(len..u64::MAX);
        }
        set
    }

    fn sync(&self) -> io::Result<()> {
        self.storage.sync()
    }

    fn as_slice(&self) -> Option<&[u8]> {
        self.storage.as_slice()
    }

    fn with_bytes(&self, look: &mut dyn FnMut(&[u8])) {
        self.storage.with_bytes(look);
    }

    fn is_memory(&self) -> bool {
        self.storage.is_memory()
    }
}

/// See [`ReadCache::ahead`].
pub(crate) struct Ahead<'a, S>(&'a ReadCache<S>);

impl<S: Storage> Storage for Ahead<'_, S> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_ahead(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}
