//! Bytes out of objects, a buffer at a time.

use std::io::{self, Write};

use fs_store::{Error, Reader};

use crate::progress::Progress;

/// Bytes moved at a time: large enough that calls cost nothing beside the
/// bytes, small enough to stay in the cache.
const BUFFER_BYTES: usize = 1 << 20;

/// Moves bytes through one buffer.
pub(crate) struct Copier {
    buffer: Vec<u8>,
}

impl Copier {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES] }
    }

    /// Writes the bytes of an object from `start` to `end` to `target`.
    ///
    /// `Ok(Some(error))` when the object could not be read to there; what could be
    /// read has been written then.
    ///
    /// # Errors
    ///
    /// Those of `target`.
    pub(crate) fn copy(
        &mut self,
        reader: &mut Reader,
        start: u64,
        end: u64,
        target: &mut dyn Write,
        progress: &mut Progress,
    ) -> io::Result<Option<Error>> {
        let mut at = start;
        while at < end {
            let count = usize::try_from(end - at).unwrap_or(usize::MAX).min(self.buffer.len());
            match reader.read_at(&mut self.buffer[..count], at) {
                Ok(0) => break,
                Ok(count) => {
                    target.write_all(&self.buffer[..count])?;
                    at += count as u64;
                    progress.advance(count as u64);
                }
                Err(error) => return Ok(Some(error)),
            }
        }
        Ok(None)
    }
}
