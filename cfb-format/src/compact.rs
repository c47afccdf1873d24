//! Making files as small as their content: a new file in the best order
//! ([`rewrite`]).

mod rewrite;

use std::fmt;

use crate::compound_file::CompoundFile;
use crate::copy::Damaged;
use crate::error::Error;
use crate::storage::Storage;

/// What compaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Length of the storage before; of a new file, that of the old one.
    pub bytes_before: u64,
    /// Length of the storage after, or of the new one.
    pub bytes_after: u64,
    /// Streams of which bytes were moved; of a new file, all that have bytes.
    pub streams_moved: u64,
    /// Bytes of streams that were moved.
    pub moved_bytes: u64,
    /// Streams that can be read only up to a damage. In a new file they end there.
    pub damaged: Vec<Damaged>,
}

impl Compacted {
    /// Bytes that the file is shorter now.
    pub fn won_bytes(&self) -> u64 {
        self.bytes_before.saturating_sub(self.bytes_after)
    }
}

/// How a file is compacted.
///
/// ```
/// use std::cell::Cell;
/// use cfb_format::{CompactOptions, CompoundFile, MemStorage};
///
/// let file = CompoundFile::create_in(MemStorage::new())?;
/// file.write_stream("a", &[1; 10_000])?;
/// let copied = Cell::new(0);
/// let count = |bytes| copied.set(copied.get() + bytes);
/// CompactOptions::new().progress(&count).compact_into(&file, MemStorage::new())?;
/// assert_eq!(copied.get(), 10_000);
/// # Ok::<(), cfb_format::Error>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct CompactOptions<'a> {
    progress: Option<&'a dyn Fn(u64)>,
}

impl fmt::Debug for CompactOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactOptions").finish_non_exhaustive()
    }
}

impl<'a> CompactOptions<'a> {
    /// Nothing is told on the way.
    pub fn new() -> Self {
        Self::default()
    }

    /// Is told of bytes that were moved, as they are: each time how many more.
    #[must_use]
    pub const fn progress(mut self, progress: &'a dyn Fn(u64)) -> Self {
        self.progress = Some(progress);
        self
    }

    /// As [`CompoundFile::compact_into`].
    ///
    /// # Errors
    ///
    /// As [`CompoundFile::compact_into`].
    pub fn compact_into<S: Storage, T: Storage>(
        &self,
        file: &CompoundFile<S>,
        target: T,
    ) -> Result<Compacted, Error> {
        rewrite::rewrite(file, target, *self)
    }

    fn tell(&self, bytes: u64) {
        if let Some(progress) = self.progress {
            progress(bytes);
        }
    }
}

impl<S: Storage> CompoundFile<S> {
    /// Writes the content of this file into `target` as a new file, of the same
    /// version, in the best order: streams in the order of a [walk](Self::walk), each
    /// in one run, small ones behind one another in the mini stream, no free
    /// sectors, and zeros behind the end of every stream. What `target` had is dropped.
    ///
    /// Equal content makes equal files, byte for byte, whatever the files went
    /// through: equal are names, bytes, CLSIDs, state bits and times. What a
    /// program changes meanwhile may or may not be in the new file.
    ///
    /// Names that the format forbids, which files from the wild have, stay as
    /// they are; of two equal names in one storage the second gets a number. Files of
    /// more than 2 GiB have one free gap at most, before the sector that the format
    /// keeps free for locks there.
    ///
    /// Costs one read and one write of every stream. A damaged stream is copied up
    /// to its damage and listed in what is returned. The target is not synced.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] of either storage, [`Error::FileFull`]: the target holds no
    /// complete file then.
    ///
    /// # Example
    ///
    /// ```
    /// use cfb_format::{CompoundFile, MemStorage};
    ///
    /// let file = CompoundFile::create_in(MemStorage::new())?;
    /// file.write_stream("draft", &[1; 50_000])?;
    /// file.write_stream("letter", &[2; 5000])?;
    /// file.remove_stream("draft")?;
    /// let target = MemStorage::new();
    /// let compacted = file.compact_into(target.clone())?;
    /// assert_eq!(compacted.bytes_after, target.to_vec().len() as u64);
    ///
    /// let new = CompoundFile::from_storage(target)?;
    /// assert_eq!(new.read_stream("letter")?, [2; 5000]);
    /// assert_eq!(new.usage()?.free_sectors, 0);
    /// # Ok::<(), cfb_format::Error>(())
    /// ```
    pub fn compact_into<T: Storage>(&self, target: T) -> Result<Compacted, Error> {
        CompactOptions::new().compact_into(self, target)
    }
}
