//! [`Reader`]: one object, as it was when it was opened.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use crate::checksum::CHUNK_BYTES;
use crate::data::ObjectReader;
use crate::error::{Error, Result};
use crate::frame::Key;
use crate::object::{Body, Object, Placed};
use crate::space::{Pin, Space};
use crate::store::{Stat, read_error};
use crate::writer::Writer;

/// Sequential reads of a few bytes read so many ahead.
const AHEAD_BYTES: u64 = 64 << 10;

/// Reads an object. It stays as it was when the reader was made: its sectors are
/// not used again while the reader lives, even if the key is deleted.
///
/// Bytes are read with the chunks of 16 KiB that they lie in, and checked; what is
/// not what was put is an error ([`Error::Corrupt`]), never a wrong byte.
pub struct Reader {
    space: Arc<Space>,
    key: Key,
    object: Arc<Object>,
    _pin: Pin,
    position: u64,
    /// Chunks that were read last, from byte `window_start` on.
    window: Vec<u8>,
    window_start: u64,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("len", &self.object.len)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl Reader {
    pub(crate) fn new(space: Arc<Space>, key: Key, object: Arc<Object>, pin: Pin) -> Self {
        Self { space, key, object, _pin: pin, position: 0, window: Vec::new(), window_start: 0 }
    }

    /// Length of the object in bytes.
    pub fn len(&self) -> u64 {
        self.object.len
    }

    /// Whether the object has no bytes.
    pub fn is_empty(&self) -> bool {
        self.object.len == 0
    }

    /// What is known of the object besides its bytes.
    pub fn stat(&self) -> Stat {
        Stat::of(&self.object)
    }

    /// Fills `buf` from byte `offset` on, as far as there are bytes; how many.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`], [`Error::Io`]: nothing in `buf` is of use then.
    pub fn read_at(&mut self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.read_ahead_at(buf, offset, 0)
    }

    /// Fills `buf` from byte `offset` on.
    ///
    /// # Errors
    ///
    /// As [`Reader::read_at`]; [`Error::Io`] with
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if there are too few bytes.
    pub fn read_exact_at(&mut self, buf: &mut [u8], offset: u64) -> Result<()> {
        if self.read_at(buf, offset)? == buf.len() {
            return Ok(());
        }
        let source = io::ErrorKind::UnexpectedEof.into();
        Err(Error::Io { doing: "reading an object", file: String::new(), offset, source })
    }

    fn read_ahead_at(&mut self, buf: &mut [u8], offset: u64, ahead: u64) -> Result<usize> {
        let object = Arc::clone(&self.object);
        let end = offset.saturating_add(buf.len() as u64).min(object.len);
        if offset >= end {
            return Ok(0);
        }
        let count = index(end - offset);
        let buf = &mut buf[..count];
        match &object.body {
            Body::Inline(bytes) => buf.copy_from_slice(&bytes[index(offset)..index(end)]),
            Body::Sectors(placed) => {
                self.read_sectors(placed, buf, offset, ahead)?;
            }
        }
        Ok(count)
    }

    /// Whole chunks go straight to the caller; those of which only a part is
    /// wanted through the window.
    fn read_sectors(
        &mut self,
        placed: &Placed,
        buf: &mut [u8],
        offset: u64,
        ahead: u64,
    ) -> Result<()> {
        const CHUNK: u64 = CHUNK_BYTES as u64;
        let len = self.object.len;
        let mut at = offset;
        let mut rest = buf;
        while !rest.is_empty() {
            let window_end = self.window_start + self.window.len() as u64;
            if (self.window_start..window_end).contains(&at) {
                let from = index(at - self.window_start);
                let count = rest.len().min(self.window.len() - from);
                let (part, after) = rest.split_at_mut(count);
                part.copy_from_slice(&self.window[from..from + count]);
                at += count as u64;
                rest = after;
                continue;
            }
            let end = at + rest.len() as u64;
            let whole_end = if end == len { len } else { end - end % CHUNK };
            if at.is_multiple_of(CHUNK) && whole_end > at {
                let (part, after) = rest.split_at_mut(index(whole_end - at));
                let object = Arc::clone(&self.object);
                let filled = ObjectReader::new(&self.space, &object, placed).fill_chunks(at, part);
                filled.map_err(|error| read_error(error, &self.key))?;
                at = whole_end;
                rest = after;
                continue;
            }
            let start = at - at % CHUNK;
            // Both ends of a short range at once: one call.
            let wanted = end.next_multiple_of(CHUNK).min(start + 2 * CHUNK);
            let end = wanted.max(start.saturating_add(ahead)).min(len);
            self.window.clear();
            self.window_start = start;
            let object = Arc::clone(&self.object);
            let mut reader = ObjectReader::new(&self.space, &object, placed);
            let read = reader.read_chunks(start, end, &mut self.window);
            if let Err(error) = read {
                self.window.clear();
                return Err(read_error(error, &self.key));
            }
        }
        Ok(())
    }

    /// Copies everything to a writer, in long pieces.
    pub(crate) fn copy_to(&mut self, writer: &mut Writer) -> Result<()> {
        let mut piece = vec![0; 1 << 20];
        let mut at = 0;
        loop {
            let count = self.read_at(&mut piece, at)?;
            if count == 0 {
                return Ok(());
            }
            writer.append(&piece[..count])?;
            at += count as u64;
        }
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("within a buffer")
}

/// An error of this library as one of `std::io`.
pub(crate) fn io_error(error: Error) -> io::Error {
    let kind = match &error {
        Error::Io { source, .. } => source.kind(),
        Error::Corrupt { .. } | Error::Damaged { .. } => io::ErrorKind::InvalidData,
        Error::Full { .. } => io::ErrorKind::StorageFull,
        Error::NotFound { .. } => io::ErrorKind::NotFound,
        Error::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        Error::ReadOnly => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl Read for Reader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.read_ahead_at(buf, self.position, AHEAD_BYTES).map_err(io_error)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (base, by) = match to {
            SeekFrom::Start(position) => (position, 0),
            SeekFrom::End(by) => (self.object.len, by),
            SeekFrom::Current(by) => (self.position, by),
        };
        let position = base.checked_add_signed(by);
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
