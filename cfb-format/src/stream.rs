//! [`Stream`]: the bytes of one stream.

mod changing;

use std::fmt;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use self::changing::Keep;
use crate::commit::{self, Durability};
use crate::entry::Entry;
use crate::error::Error;
use crate::node::{Node, Place};
use crate::shared::Shared;
use crate::storage::Storage;

/// Reads ahead of a handle start with this many bytes, and double as long as
/// it reads on where it stopped.
const AHEAD_BYTES: usize = 4096;

/// Reads ahead go up to this many bytes; longer reads need none.
const MAX_AHEAD_BYTES: usize = 1024 * 1024;

/// After a jump, shorter reads than this are rounded up to it, and longer ones
/// read what they ask for.
const JUMP_BYTES: usize = 512;

/// Consecutive bytes of a stream that are consecutive in the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Byte offset in the storage.
    pub offset: u64,
    /// How many bytes, never zero.
    pub len_bytes: u64,
}

/// A handle to a stream.
///
/// Handles are owned and independent: any number may be open at once, to one
/// stream or to many, in any number of threads, and each has its own position.
/// What one handle writes the others read at once; it reaches the storage no
/// later than at the next [`CompoundFile::flush`](crate::CompoundFile::flush)
/// or when the last handle of the file is dropped. Handles keep the file open.
///
/// A handle belongs to its entry. After the entry was removed every call
/// fails with [`Error::Stale`]; it never touches another stream.
///
/// Reads of different streams never wait for each other.
///
/// # Damaged streams
///
/// Where a file is damaged, a stream reads up to the damage; then every read
/// fails with [`Error::Corrupt`] that says why.
///
/// # Example
///
/// ```
/// use std::io::{Read, Seek, SeekFrom, Write};
/// use cfb_format::{CompoundFile, MemStorage};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let file = CompoundFile::create_in(MemStorage::new())?;
/// let mut stream = file.create_stream("/greeting")?;
/// stream.write_all(b"hello, world")?;
/// stream.seek(SeekFrom::Start(7))?;
/// let mut rest = String::new();
/// stream.read_to_string(&mut rest)?;
/// assert_eq!(rest, "world");
/// # Ok(())
/// # }
/// ```
pub struct Stream<S: Storage = std::fs::File> {
    shared: Arc<Shared<S>>,
    node: Arc<Node>,
    position: u64,
    /// Where the last read ended: a read from there on is part of a row.
    last_end: u64,
    /// How much the next read of the row reads ahead, in bytes.
    ahead: usize,
    buffer: Vec<u8>,
    /// Where in the stream the buffer starts, and the version it was read at.
    buffer_start: u64,
    buffer_version: u64,
}

impl<S: Storage> Stream<S> {
    pub(crate) const fn new(shared: Arc<Shared<S>>, node: Arc<Node>) -> Self {
        Self {
            shared,
            node,
            position: 0,
            last_end: 0,
            ahead: AHEAD_BYTES,
            buffer: Vec::new(),
            buffer_start: 0,
            buffer_version: 0,
        }
    }

    /// Length in bytes. Free of locks and I/O.
    pub fn len(&self) -> u64 {
        self.node.len()
    }

    /// Whether the stream has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The stream's entry as it is now.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`] when it was removed.
    pub fn entry(&self) -> Result<Entry, Error> {
        let state = self.shared.read_state();
        self.node.body.read().expect("not poisoned").live()?;
        Ok(Entry::new(&state, self.node.slot))
    }

    /// Reads at a byte offset, without moving the position. Gives fewer bytes
    /// than `buf` holds only at the end of the stream or before a damage.
    ///
    /// Costs one read of the storage for each run of sectors touched, and
    /// reads no byte more than asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`]; [`Error::Io`]; [`Error::Corrupt`] at a damage.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, Error> {
        let body = self.node.body.read().expect("not poisoned");
        body.live()?;
        let len = self.node.len();
        if offset >= len || buf.is_empty() {
            return Ok(0);
        }
        let mut end = len;
        if let Some(damage) = &body.damage {
            if offset >= body.intact {
                return Err(damage.clone().into());
            }
            end = body.intact;
        }
        let count = usize::try_from(end - offset).unwrap_or(usize::MAX).min(buf.len());
        self.shared.read_chain(body.place, &body.chain, offset, &mut buf[..count])?;
        Ok(count)
    }

    /// The whole content.
    ///
    /// # Errors
    ///
    /// As [`Stream::read_at`]. Of a damaged stream,
    /// [`read_to_end`](Read::read_to_end) gives the intact part.
    pub fn read_to_vec(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.append_to(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Appends everything from `from` on; up to a damage, then the error.
    fn append_to(&self, bytes: &mut Vec<u8>, from: u64) -> Result<usize, Error> {
        let body = self.node.body.read().expect("not poisoned");
        body.live()?;
        let end = if body.damage.is_some() { body.intact } else { self.node.len() };
        let before = bytes.len();
        if from < end {
            // No more than the chain holds, whatever the entry says.
            let count = usize::try_from(end - from).expect("the chain is in the file");
            self.shared.append_chain(body.place, &body.chain, from, count, bytes)?;
        }
        match &body.damage {
            Some(damage) => Err(damage.clone().into()),
            None => Ok(bytes.len() - before),
        }
    }

    /// Writes all bytes at a byte offset, without moving the position; the
    /// stream grows as needed, and a gap reads as zeros.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`], [`Error::ReadOnly`], [`Error::TooLong`],
    /// [`Error::FileFull`]; [`Error::Corrupt`] for bytes behind a damage: the
    /// stream is unchanged then. After [`Error::Io`] the length is unchanged
    /// and the bytes written to are undefined.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        if !self.shared.writable {
            return Err(Error::ReadOnly);
        }
        let end = offset.saturating_add(bytes.len() as u64);
        {
            // Nothing to decide where sectors are there and nobody else's.
            let mut body = self.node.body.write().expect("not poisoned");
            body.live()?;
            let len = self.node.len();
            let has_room = || match body.place {
                Place::Regular => {
                    let held = body.chain.sector_count().bytes(self.shared.geometry.sector_bytes());
                    end <= held && !self.shared.geometry.is_mini(end)
                }
                Place::Mini => false,
            };
            if body.is_fresh(&(offset..end))
                && body.damage.is_none()
                && (end <= len || (offset <= len && has_room()))
            {
                self.shared.write_chain(body.place, &body.chain, offset, bytes)?;
                if end > len {
                    body.changed = true;
                    self.node.set_len(end);
                }
                self.node.content_changed();
                return Ok(());
            }
            if self.write_beside(&mut body, offset, bytes)? {
                return Ok(());
            }
        }
        self.change(end, offset, bytes, Keep::Longer)
    }

    /// Makes the stream `len_bytes` long; what is added reads as zeros. Costs
    /// no data I/O where the new bytes lie behind everything written so far.
    ///
    /// # Errors
    ///
    /// As [`Stream::write_at`].
    pub fn set_len(&self, len_bytes: u64) -> Result<(), Error> {
        self.change(len_bytes, len_bytes, &[], Keep::Exactly)
    }

    /// Replaces the whole content: either all of it is there afterwards, or the
    /// old content still is.
    pub(crate) fn replace(&self, bytes: &[u8]) -> Result<(), Error> {
        self.change(bytes.len() as u64, 0, bytes, Keep::Nothing)
    }

    /// Takes the sectors for a stream of `len_bytes`, in one run where there is
    /// one, before its first byte is written. They count for nothing until
    /// they are written to.
    pub(crate) fn reserve(&self, len_bytes: u64) -> Result<(), Error> {
        let mut state = self.shared.change_state()?;
        let mut body = self.node.body.write().expect("not poisoned");
        body.live()?;
        if body.chain.is_empty() && !self.shared.geometry.is_mini(len_bytes) {
            body.place = Place::Regular;
            body.changed = true;
            state.extend(Place::Regular, &mut body.chain, len_bytes)?;
            body.note_fresh(0..u64::MAX);
        }
        Ok(())
    }

    /// Bytes that can be read: the length, less what a damage costs.
    pub(crate) fn intact_len(&self) -> u64 {
        let body = self.node.body.read().expect("not poisoned");
        if body.damage.is_some() { body.intact } else { self.node.len() }
    }

    /// Where the stream's bytes lie in the storage, in stream order, as few
    /// pieces as there are. What was not flushed may not be there yet.
    ///
    /// With a storage in memory this gives access without a copy.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`]. Of a damaged stream the intact part is given.
    pub fn extents(&self) -> Result<Vec<Extent>, Error> {
        let body = self.node.body.read().expect("not poisoned");
        body.live()?;
        let end = if body.damage.is_some() { body.intact } else { self.node.len() };
        let mut extents: Vec<Extent> = Vec::new();
        let mut at = 0;
        while at < end {
            let (offset, len_bytes) = self.shared.piece(body.place, &body.chain, at, end);
            match extents.last_mut() {
                Some(last) if last.offset + last.len_bytes == offset => last.len_bytes += len_bytes,
                _ => extents.push(Extent { offset, len_bytes }),
            }
            at += len_bytes;
        }
        Ok(extents)
    }

    /// Bytes of the buffer from the position on.
    fn buffered(&self) -> &[u8] {
        if self.buffer_version != self.node.version() {
            return &[];
        }
        self.position
            .checked_sub(self.buffer_start)
            .and_then(|skip| self.buffer.get(usize::try_from(skip).ok()?..))
            .unwrap_or(&[])
    }

    /// How many bytes a read of `wanted` bytes at the position should fetch.
    ///
    /// A handle that reads on gets more and more ahead of it, where calls of
    /// the storage are dear; one that jumps gets little more than it asks for.
    fn fetch_bytes(&mut self, wanted: usize) -> usize {
        if self.position != self.last_end {
            self.ahead = AHEAD_BYTES;
            // What a long row of reads has grown is given back.
            self.buffer = Vec::new();
            return wanted.max(JUMP_BYTES);
        }
        let fetch = self.ahead.max(wanted);
        if !self.shared.storage().is_memory() {
            self.ahead = (fetch * 2).min(MAX_AHEAD_BYTES);
        }
        fetch
    }

    /// Reads `fetch` bytes from the position on into the buffer.
    fn refill(&mut self, fetch: usize) -> Result<(), Error> {
        let mut buffer = std::mem::take(&mut self.buffer);
        // Before the read: a change during it makes the buffer old at once.
        self.buffer_version = self.node.version();
        let left = self.len().saturating_sub(self.position);
        if left == 0 {
            // At the end of a row of reads the memory is given back.
            buffer = Vec::new();
        }
        buffer.resize(usize::try_from(left).unwrap_or(usize::MAX).min(fetch), 0);
        let read = self.read_at(&mut buffer, self.position);
        buffer.truncate(*read.as_ref().unwrap_or(&0));
        self.buffer = buffer;
        self.buffer_start = self.position;
        read.map(|_| ())
    }

    fn moved_to(&mut self, position: u64) {
        self.position = position;
        self.last_end = position;
    }
}

impl<S: Storage> Clone for Stream<S> {
    /// Another handle to the same stream, at the same position.
    fn clone(&self) -> Self {
        self.node.add_handle();
        let mut clone = Self::new(Arc::clone(&self.shared), Arc::clone(&self.node));
        clone.moved_to(self.position);
        clone
    }
}

impl<S: Storage> fmt::Debug for Stream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("slot", &self.node.slot)
            .field("len", &self.len())
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl<S: Storage> Drop for Stream<S> {
    /// Gives back what the stream reserved to grow into. Nothing is lost:
    /// what was written belongs to the file.
    fn drop(&mut self) {
        if let Some(mut state) = self.shared.state_for_drop() {
            state.close(&self.node);
        }
    }
}

impl<S: Storage> Read for Stream<S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.buffered().is_empty() {
            let fetch = self.fetch_bytes(buf.len());
            if fetch > buf.len() {
                self.refill(fetch)?;
            }
        }
        // Still empty: the read needs no buffer, or another handle changed
        // the stream since the refill and an end must not be reported.
        let buffered = self.buffered();
        let count = if buffered.is_empty() {
            self.read_at(buf, self.position)?
        } else {
            let count = buffered.len().min(buf.len());
            buf[..count].copy_from_slice(&buffered[..count]);
            count
        };
        self.moved_to(self.position + count as u64);
        Ok(count)
    }

    fn read_to_end(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        let before = bytes.len();
        let read = self.append_to(bytes, self.position);
        self.moved_to(self.position + (bytes.len() - before) as u64);
        Ok(read?)
    }
}

impl<S: Storage> BufRead for Stream<S> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.buffered().is_empty() {
            let fetch = self.fetch_bytes(AHEAD_BYTES);
            self.refill(fetch)?;
        }
        Ok(self.buffered())
    }

    /// Moves on by `count` bytes, at most to the end of what the last
    /// [`fill_buf`](BufRead::fill_buf) gave.
    fn consume(&mut self, count: usize) {
        let end = self.buffer_start + self.buffer.len() as u64;
        let position = self.position.saturating_add(count as u64);
        self.moved_to(position.min(end.max(self.position)));
    }
}

impl<S: Storage> Seek for Stream<S> {
    /// Positions past the end are allowed; reads there give no bytes, a write
    /// fills the gap with zeros.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.len().checked_add_signed(by),
        };
        self.position = position.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "a seek to before the start or past 2^64")
        })?;
        Ok(self.position)
    }
}

impl<S: Storage> Write for Stream<S> {
    /// Writes all of `bytes`.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_at(bytes, self.position)?;
        self.position += bytes.len() as u64;
        Ok(bytes.len())
    }

    /// Flushes the whole file, as [`CompoundFile::flush`](crate::CompoundFile::flush)
    /// does: without its metadata a stream's bytes could not be found again.
    fn flush(&mut self) -> io::Result<()> {
        if self.shared.writable {
            commit::flush(&self.shared, Durability::Process)?;
        }
        Ok(())
    }
}
