//! How a file is opened or created.

use std::fs::{File, OpenOptions as FsOptions, TryLockError};
use std::io;
use std::path::Path;

use crate::check;
use crate::compound_file::CompoundFile;
use crate::error::{Doing, Error};
use crate::finding::Severity;
use crate::load::load;
use crate::read_cache::ReadCache;
use crate::state::State;
use crate::storage::Storage;
use crate::version::Version;

/// So often a file is read anew at most when somebody saves it while it is opened.
const LOADS: usize = 16;

/// How much an open forgives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// Reads everything that can be read, and lists what it overlooked as
    /// [findings](CompoundFile::findings).
    #[default]
    Tolerant,
    /// Verifies the whole file and refuses it when any MUST of [MS-CFB] is broken.
    Strict,
}

/// Options for opening a compound file.
///
/// ```
/// use cfb_format::{CompoundFile, MemStorage, OpenOptions, Strictness};
///
/// let memory = MemStorage::new();
/// CompoundFile::create_in(memory.clone())?.write_stream("a", b"1")?;
/// let options = OpenOptions::new().strictness(Strictness::Strict);
/// let file = options.open_storage(memory)?;
/// assert_eq!(file.read_stream("a")?, b"1");
/// # Ok::<(), cfb_format::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    strictness: Strictness,
    write: bool,
    in_place: Option<bool>,
    watch: Option<bool>,
}

impl OpenOptions {
    /// Tolerant and for reading only.
    pub fn new() -> Self {
        Self::default()
    }

    /// How much to forgive.
    #[must_use]
    pub const fn strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Whether the file may be changed.
    #[must_use]
    pub const fn write(mut self, write: bool) -> Self {
        self.write = write;
        self
    }

    /// Whether saved bytes are written over, as [`CreateOptions::in_place`] says.
    #[must_use]
    pub const fn in_place(mut self, in_place: bool) -> Self {
        self.in_place = Some(in_place);
        self
    }

    /// Whether a file that is opened for reading only is watched: it shows one
    /// state for as long as it is open, whatever others save meanwhile. Reads
    /// give the bytes of that state or fail with [`Error::ChangedUnderneath`].
    /// That costs a read of the header's 512 bytes with each read of the file. Who
    /// writes in place is not noticed.
    ///
    /// The default is `true` for [files by path](Self::open) and `false` for
    /// [other storages](Self::open_storage).
    #[must_use]
    pub const fn watch(mut self, watch: bool) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Opens a file by path.
    ///
    /// Reads the header, FAT, directory and MiniFAT and no stream data: 0.1 to
    /// 0.2 microseconds and some 90 bytes an entry, four bytes a sector.
    ///
    /// A file that may be changed is locked against other writers as long as
    /// it is open, where the file system knows locks. Programs that do not ask
    /// for the lock are not kept out.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Corrupt`] where there is no compound file;
    /// [`Error::NotStrict`]; [`Error::Locked`]; [`Error::ChangedUnderneath`] when
    /// others save the file faster than it can be read.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<CompoundFile<File>, Error> {
        let file = FsOptions::new().read(true).write(self.write).open(path);
        let file = file.doing("opening the file", 0)?;
        if self.write {
            lock(&file)?;
        }
        let watch = self.watch.or(Some(true));
        Self { watch, ..self.clone() }.open_storage(file)
    }

    /// Opens what a storage holds. See [`OpenOptions::open`].
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn open_storage<S: Storage>(&self, storage: S) -> Result<CompoundFile<S>, Error> {
        let storage = ReadCache::new(storage);
        let watch = self.watch.unwrap_or(false) && !self.write;
        let state = if watch { load_to_read(&storage)? } else { load(&storage)? };
        if self.strictness == Strictness::Strict {
            let mut findings = check::verify(&state);
            findings.retain(|finding| finding.severity() > Severity::Note);
            let count = findings.len();
            if let Some(first) = findings.into_iter().next() {
                return Err(Error::NotStrict { first: Box::new(first), count });
            }
        }
        Ok(CompoundFile::with_state(storage, state, self.write, self.in_place))
    }
}

/// Loads a file that others may save meanwhile: all of one state, and watched
/// from then on.
fn load_to_read<S: Storage>(storage: &ReadCache<S>) -> Result<State, Error> {
    for _ in 0..LOADS {
        let before = storage.header().doing("reading the header", 0)?;
        let loaded = load(storage);
        if before == storage.header().doing("reading the header", 0)? {
            if let (Some(header), Ok(_)) = (&before, &loaded) {
                storage.watch(header);
            }
            return loaded;
        }
    }
    Err(Error::ChangedUnderneath)
}

/// Takes the lock that only one writer of a file can have.
fn lock(file: &File) -> Result<(), Error> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::Locked),
        // Some file systems have no locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(error)) => Err(error).doing("locking the file", 0),
    }
}

/// Options for creating a compound file.
///
/// ```
/// use cfb_format::{CreateOptions, MemStorage, Version};
///
/// let file = CreateOptions::new().version(Version::V4).create_storage(MemStorage::new())?;
/// assert_eq!(file.version(), Version::V4);
/// # Ok::<(), cfb_format::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    version: Version,
    in_place: Option<bool>,
}

impl CreateOptions {
    /// Version 3, which every reader knows.
    pub fn new() -> Self {
        Self::default()
    }

    /// The version: [`Version::V4`] for files of more than 2 GiB.
    #[must_use]
    pub const fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Whether saved bytes are written over.
    ///
    /// By default, and with `false`, nothing that was saved is written over: what
    /// changes goes to free sectors, and the header, written last, switches the
    /// file to them. So a crash leaves the file as it was before the flush or as
    /// it is after it, [`revert`](CompoundFile::revert) can go back, and a file
    /// needs room for what one flush changes.
    ///
    /// With `true` bytes of streams, directory and tables are written where they
    /// are. That saves the room and the copies for those who write over large
    /// streams again and again. A crash inside a write or a flush can then
    /// cost streams, or all of the file.
    ///
    /// A storage in memory ([`Storage::is_memory`]) does not outlive a crash: there
    /// `true` is the default.
    #[must_use]
    pub const fn in_place(mut self, in_place: bool) -> Self {
        self.in_place = Some(in_place);
        self
    }

    /// Creates a file, or empties the one that is there: what that had is gone
    /// at once. It is locked as [`OpenOptions::open`] says.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Locked`]: the file is as it was.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<CompoundFile<File>, Error> {
        // Emptied only once it is ours.
        self.create_with(FsOptions::new().create(true).truncate(false), path)
    }

    /// Creates a file where none is.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], with [`AlreadyExists`](std::io::ErrorKind::AlreadyExists)
    /// as its kind when something has this path.
    pub fn create_new(&self, path: impl AsRef<Path>) -> Result<CompoundFile<File>, Error> {
        self.create_with(FsOptions::new().create_new(true), path)
    }

    fn create_with(
        &self,
        options: &mut FsOptions,
        path: impl AsRef<Path>,
    ) -> Result<CompoundFile<File>, Error> {
        let file = options.read(true).write(true).open(path).doing("creating the file", 0)?;
        lock(&file)?;
        self.create_storage(file)
    }

    /// Creates a compound file in a storage, whose content is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn create_storage<S: Storage>(&self, storage: S) -> Result<CompoundFile<S>, Error> {
        if storage.len().doing("asking for the length of the storage", 0)? > 0 {
            storage.set_len(0).doing("emptying the storage", 0)?;
        }
        let (storage, state) = (ReadCache::new(storage), State::new(self.version));
        let file = CompoundFile::with_state(storage, state, true, self.in_place);
        file.flush()?;
        Ok(file)
    }
}
