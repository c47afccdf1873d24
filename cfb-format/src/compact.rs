//! Making files as small as their content: a new file in the best order
//! ([`rewrite`]), or the file itself, in rounds with a save each ([`in_place`]).
//!
//! In place, [`holes`] says where a piece goes, [`moves`] brings it there, and [`wipe`]
//! clears what is free in the end.

mod holes;
mod in_place;
mod moves;
mod rewrite;
mod wipe;

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
#[derive(Clone, Copy)]
pub struct CompactOptions<'a> {
    wipe: bool,
    sync: bool,
    progress: Option<&'a dyn Fn(u64)>,
}

impl fmt::Debug for CompactOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactOptions")
            .field("wipe", &self.wipe)
            .field("sync", &self.sync)
            .finish_non_exhaustive()
    }
}

impl Default for CompactOptions<'_> {
    fn default() -> Self {
        Self { wipe: false, sync: true, progress: None }
    }
}

impl<'a> CompactOptions<'a> {
    /// No wipe; synced; nothing is told on the way.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether [`CompoundFile::compact`] clears in the end what is free: sectors and mini
    /// sectors that nothing refers to, what lies behind the end of each stream in its last
    /// sector, and unused entries of the directory. Nothing that was deleted can be read from
    /// the file then; what the medium keeps elsewhere is beyond its reach. Costs a
    /// write of all that is free, during which nobody else can use the file, and damaged
    /// streams are left as they are. A new file has nothing to be wiped.
    ///
    /// ```
    /// use cfb_format::{CompactOptions, CompoundFile, MemStorage};
    ///
    /// let memory = MemStorage::new();
    /// let file = CompoundFile::create_in(memory.clone())?;
    /// file.write_stream("secret", b"the password is swordfish")?;
    /// file.write_stream("rest", b"what may be read")?;
    /// file.remove_stream("secret")?;
    /// let has_secret = || memory.to_vec().windows(9).any(|window| window == b"swordfish");
    /// assert_eq!(has_secret(), true);
    /// CompactOptions::new().wipe(true).compact(&file)?;
    /// assert_eq!(has_secret(), false);
    /// # Ok::<(), cfb_format::Error>(())
    /// ```
    #[must_use]
    pub const fn wipe(mut self, wipe: bool) -> Self {
        self.wipe = wipe;
        self
    }

    /// Whether every save of [`CompoundFile::compact`] is [synced](CompoundFile::sync), as it is
    /// by default: then the content survives a crash of the machine at any moment.
    /// Without, it is as safe as the last save was.
    #[must_use]
    pub const fn sync(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }

    /// Is told of bytes that were moved, as they are: each time how many more.
    #[must_use]
    pub const fn progress(mut self, progress: &'a dyn Fn(u64)) -> Self {
        self.progress = Some(progress);
        self
    }

    /// As [`CompoundFile::compact`].
    ///
    /// # Errors
    ///
    /// As [`CompoundFile::compact`].
    pub fn compact<S: Storage>(&self, file: &CompoundFile<S>) -> Result<Compacted, Error> {
        in_place::compact(file, *self)
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
    /// Makes the file as short as it gets, where it is: what lies at its end moves into
    /// free sectors below, and the end is cut off.
    ///
    /// Works in rounds, each of which moves 4 MiB or a 64th of the file, and what is left of a
    /// piece of up to 64 MiB, and saves. So
    /// it needs no more room than the file has, and a crash or an error at any
    /// moment leaves a file with the same content: only where things lie changes. Changes
    /// that are not flushed yet are, first. Handles stay valid; other threads have their turn
    /// between rounds.
    ///
    /// Moves as few bytes as will do: what lies low stays, in the pieces it is in. A stream
    /// that moves goes to one free run where there is one of its length; the last gaps are
    /// filled with what comes from the end, in pieces. Who wants every stream in one run
    /// writes a [new file](Self::compact_into). The file
    /// ends up at most as much longer than a [new one](Self::compact_into) as its
    /// metadata is long: entries stay in their places, so the directory keeps what is free between them. Streams that are damaged stay where they are, as do
    /// sectors that are marked as used and that nothing has: those set a limit to what can
    /// be won.
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`]; those of [`flush`](Self::flush) and [`sync`](Self::sync): the
    /// rounds before it stay done.
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
    /// let compacted = file.compact()?;
    /// assert_eq!(compacted.won_bytes() > 49_000, true);
    /// assert_eq!(file.read_stream("letter")?, [2; 5000]);
    /// # Ok::<(), cfb_format::Error>(())
    /// ```
    pub fn compact(&self) -> Result<Compacted, Error> {
        CompactOptions::new().compact(self)
    }

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
