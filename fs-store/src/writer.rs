//! [`Writer`]: an object of any length, from a stream of bytes.

use std::io::{self, IoSlice, Read, Write};

use bytes::Bytes;

use crate::checksum::{CHUNK_BYTES, checksum, whole};
use crate::data::place_sums;
use crate::engine::Draft;
use crate::error::{Error, Result};
use crate::extent::{Extents, cut, push, sectors_in};
use crate::frame::Key;
use crate::object::{Body, INLINE_BYTES, Placed};
use crate::options::{Durability, PutOptions};
use crate::reader::io_error;
use crate::space::Purpose;
use crate::store::{RIDING_BYTES, Stat, Store};

/// Bytes are gathered until there are so many, and written in one call.
const PIECE_BYTES: usize = 1 << 20;

/// Sectors are taken ahead of the bytes, as many as there are already, but no
/// more than this many bytes.
const MOST_AHEAD_BYTES: u64 = 32 << 20;

/// Puts an object from a stream of bytes. Takes a megabyte of memory, and four
/// bytes for each 16 KiB written.
///
/// Nothing of it can be seen before [`Writer::commit`]. A writer that is dropped
/// gives its sectors back. After an error it is of no more use.
pub struct Writer {
    store: Store,
    key: Key,
    metadata: Bytes,
    options: PutOptions,
    /// Bytes that are not written yet: less than a piece.
    buffer: Vec<u8>,
    /// Bytes that are.
    written: u64,
    /// Sectors that were taken, of which the first have bytes.
    extents: Extents,
    sums: Vec<u32>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Writer {
    pub(crate) fn new(store: Store, key: Key, metadata: Bytes, options: PutOptions) -> Self {
        Self {
            store,
            key,
            metadata,
            options,
            buffer: Vec::new(),
            written: 0,
            extents: Extents::new(),
            sums: Vec::new(),
        }
    }

    /// Bytes so far.
    pub fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Whether there are none so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Full`], [`Error::Io`].
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.buffer.is_empty() && rest.len() >= PIECE_BYTES {
                // No need to gather what is long already.
                let (piece, after) = rest.split_at(rest.len() - rest.len() % PIECE_BYTES);
                self.write_pieces(piece)?;
                rest = after;
                continue;
            }
            if self.buffer.capacity() == 0 {
                self.buffer.reserve_exact(if rest.len() < RIDING_BYTES {
                    RIDING_BYTES
                } else {
                    PIECE_BYTES
                });
            }
            let room = PIECE_BYTES - self.buffer.len();
            let (part, after) = rest.split_at(rest.len().min(room));
            self.buffer.extend_from_slice(part);
            rest = after;
            self.write_if_full()?;
        }
        Ok(())
    }

    fn write_if_full(&mut self) -> Result<()> {
        if self.buffer.len() < PIECE_BYTES {
            return Ok(());
        }
        let buffer = std::mem::take(&mut self.buffer);
        let result = self.write_pieces(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        result
    }

    /// Appends all that a reader has.
    ///
    /// # Errors
    ///
    /// [`Error::Source`] if it fails; those of [`Writer::append`].
    pub fn fill_from(&mut self, source: &mut dyn Read) -> Result<u64> {
        let before = self.len();
        loop {
            let start = self.buffer.len();
            let room = if start < RIDING_BYTES && self.written == 0 {
                2 * RIDING_BYTES
            } else {
                PIECE_BYTES
            };
            self.buffer.resize(room, 0);
            let read = source.read(&mut self.buffer[start..]);
            self.buffer.truncate(start + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Ok(self.len() - before),
                Ok(_) => self.write_if_full()?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Source(error)),
            }
        }
    }

    /// Writes bytes behind those that are written; they begin at a chunk.
    fn write_pieces(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(PIECE_BYTES) {
            let space = &self.store.engine().space;
            let end = self.written + piece.len() as u64;
            let have = sectors_in(&self.extents);
            let needed = space.sectors_for(end);
            if needed > have {
                let ahead = space.sectors_for(self.written.min(MOST_AHEAD_BYTES));
                self.take(needed - have, ahead)?;
            }
            self.sums.extend(piece.chunks(CHUNK_BYTES).map(checksum));
            let space = &self.store.engine().space;
            space.write(&self.extents, self.written, &[IoSlice::new(piece)])?;
            self.written = end;
        }
        Ok(())
    }

    /// Takes sectors, and some ahead if there are.
    fn take(&mut self, count: u64, ahead: u64) -> Result<()> {
        let engine = self.store.engine();
        let goal = self.extents.last().copied();
        let flush = || engine.flush_all();
        let taken = match engine.space.allocate(count + ahead, Purpose::Object, goal, &flush) {
            Err(Error::Full { .. }) if ahead > 0 => {
                engine.space.allocate(count, Purpose::Object, goal, &flush)?
            }
            taken => taken?,
        };
        for extent in taken {
            push(&mut self.extents, extent);
        }
        Ok(())
    }

    /// Puts the object: everybody sees it from now on.
    ///
    /// # Errors
    ///
    /// As [`Store::put_with`]. The object is not there then.
    pub fn commit(mut self) -> Result<Stat> {
        let durability = self.options.durability.unwrap_or(self.store.engine().durability);
        let rides = self.written == 0
            && (self.buffer.len() <= INLINE_BYTES
                || (durability != Durability::Buffered && self.buffer.len() <= RIDING_BYTES));
        let (len, metadata) = (self.len(), std::mem::take(&mut self.metadata));
        let draft = if rides {
            let body = Body::Inline(Bytes::copy_from_slice(&self.buffer));
            Draft { len, crc: checksum(&self.buffer), body, metadata }
        } else {
            let buffer = std::mem::take(&mut self.buffer);
            self.write_pieces(&buffer)?;
            self.give_back_rest();
            let crc = whole(&self.sums, len);
            let engine = self.store.engine();
            let sums = std::mem::take(&mut self.sums);
            let sums = place_sums(&engine.space, sums, len, &|| engine.flush_all())?;
            let extents = std::mem::take(&mut self.extents);
            Draft { len, crc, body: Body::Sectors(Placed { extents, sums }), metadata }
        };
        // What becomes of the sectors of the draft is now decided there.
        self.store.put_draft(self.key.clone(), draft, self.options.condition, durability)
    }

    /// Gives back the sectors that were taken ahead.
    fn give_back_rest(&mut self) {
        let space = &self.store.engine().space;
        let kept = cut(&mut self.extents, space.sectors_for(self.written));
        let rest = std::mem::replace(&mut self.extents, kept);
        space.release(rest);
    }
}

impl Write for Writer {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.append(buf).map_err(io_error)?;
        Ok(buf.len())
    }

    /// Does nothing: bytes count when the writer commits.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.store.engine().space.release(self.extents.drain(..));
    }
}
