//! Stream bytes in and out, a buffer at a time.

use std::fs::File;
use std::io::{self, Read, Write};

use cfb_format::Stream;

use crate::failure::Failure;
use crate::progress::Progress;
use crate::show;

/// Bytes moved at a time: large enough that calls cost nothing beside the
/// bytes, small enough to stay in the cache.
const BUFFER_BYTES: usize = 1 << 20;

/// Moves streams through one buffer.
pub(crate) struct Copier {
    buffer: Vec<u8>,
}

impl Copier {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES] }
    }

    /// Writes a stream to `target`.
    ///
    /// `Ok(Some(damage))` when the stream could not be read to its end; what
    /// could be read has been written then.
    ///
    /// # Errors
    ///
    /// Those of `target`.
    pub(crate) fn copy_out(
        &mut self,
        stream: &Stream<File>,
        target: &mut dyn Write,
        progress: &mut Progress,
    ) -> io::Result<Option<Failure>> {
        let len = stream.len();
        let mut done = 0;
        while done < len {
            match stream.read_at(&mut self.buffer, done) {
                Ok(0) => {
                    let got = show::grouped(done);
                    return Ok(Some(Failure::new(format!(
                        "ends after {got} of {} bytes",
                        show::grouped(len)
                    ))));
                }
                Ok(count) => {
                    target.write_all(&self.buffer[..count])?;
                    done += count as u64;
                    progress.advance(count as u64);
                }
                Err(error) => {
                    return Ok(Some(Failure::because(
                        format!("read {} of {} bytes", show::grouped(done), show::grouped(len)),
                        error,
                    )));
                }
            }
        }
        Ok(None)
    }

    /// Writes all of `source` to the start of a stream. Gives back how many bytes that were.
    ///
    /// # Errors
    ///
    /// Those of either side; the stream holds what was written before.
    pub(crate) fn copy_in(
        &mut self,
        source: &mut dyn Read,
        stream: &Stream<File>,
        progress: &mut Progress,
    ) -> Result<u64, Failure> {
        let mut done = 0;
        loop {
            // A whole buffer, so that a pipe's small pieces become large writes.
            let mut filled = 0;
            while filled < self.buffer.len() {
                match source.read(&mut self.buffer[filled..]) {
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(Failure::because("cannot read", error)),
                }
            }
            if filled == 0 {
                return Ok(done);
            }
            stream
                .write_at(&self.buffer[..filled], done)
                .map_err(|error| Failure::because("cannot write the stream", error))?;
            done += filled as u64;
            progress.advance(filled as u64);
            if filled < self.buffer.len() {
                return Ok(done);
            }
        }
    }
}
