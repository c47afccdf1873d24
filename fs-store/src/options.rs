//! What callers can choose.

use std::path::Path;
use std::sync::Arc;

use crate::disk::{DirDisk, Disk};
use crate::engine::Condition;
use crate::error::{Doing, Error, Result};
use crate::layout::is_sector_size;
use crate::open;
use crate::store::Store;

/// How safe something is when the call that did it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It survives if the process dies. If the machine does, the store comes
    /// back as of some moment between the last flush and now.
    #[default]
    Buffered,
    /// It survives if the machine dies: the call returns when a flush that
    /// covers it is done. Callers at the same time share flushes.
    Group,
    /// As [`Durability::Group`], and the flush begins at once.
    Sync,
}

/// How a store is opened or created.
///
/// ```
/// use fs_store::{Durability, OpenOptions};
///
/// let dir = tempfile::tempdir()?;
/// let store = OpenOptions::new().create(true).durability(Durability::Group).open(dir.path())?;
/// store.put("a", b"kept")?;
/// assert_eq!(store.get("a")?.as_deref(), Some(&b"kept"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub(crate) create: bool,
    pub(crate) create_new: bool,
    pub(crate) read_only: bool,
    pub(crate) sector_bytes: u32,
    pub(crate) durability: Durability,
    pub(crate) cache_bytes: u64,
    pub(crate) journal_bytes: u64,
    pub(crate) block_file_bytes: u64,
    pub(crate) max_bytes: u64,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl OpenOptions {
    /// Opens a store that is there, for reading and writing.
    pub fn new() -> Self {
        Self {
            create: false,
            create_new: false,
            read_only: false,
            sector_bytes: 4096,
            durability: Durability::Buffered,
            cache_bytes: 16 << 20,
            journal_bytes: 16 << 20,
            block_file_bytes: 1 << 40,
            max_bytes: u64::MAX,
        }
    }

    /// Makes a new store if there is none.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Makes a new store, and fails if there is one.
    #[must_use]
    pub fn create_new(mut self, create_new: bool) -> Self {
        self.create_new = create_new;
        self
    }

    /// Opens for reading only: other processes may have the store open as well,
    /// one of them for writing. What is seen is the state of this moment, or of
    /// the last [`Store::refresh`].
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// The unit of allocation of a new store in bytes: a power of two from 512 to
    /// 65,536; 4,096 if nothing is said.
    #[must_use]
    pub fn sector_bytes(mut self, bytes: u32) -> Self {
        self.sector_bytes = bytes;
        self
    }

    /// What calls promise that say nothing else.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Memory for parts of the index, in bytes; 16 MiB if nothing is said.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// The journal is folded into the index when it is so long, in bytes, at the
    /// latest; 16 MiB if nothing is said. A small store has a shorter one.
    #[must_use]
    pub fn journal_bytes(mut self, bytes: u64) -> Self {
        self.journal_bytes = bytes;
        self
    }

    /// Another block file is begun when one of a new store is so large, in
    /// bytes; 1 TiB if nothing is said.
    #[must_use]
    pub fn block_file_bytes(mut self, bytes: u64) -> Self {
        self.block_file_bytes = bytes;
        self
    }

    /// The block files do not grow beyond so many bytes together.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Opens or creates the store in a directory.
    ///
    /// # Errors
    ///
    /// [`Error::NoStore`], [`Error::Exists`], [`Error::Locked`],
    /// [`Error::Version`], [`Error::Options`], [`Error::Damaged`], [`Error::Io`];
    /// for reading only, [`Error::ChangedUnderneath`] if a writer is so busy that
    /// no state of it could be read.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store> {
        let disk = if self.create || self.create_new {
            DirDisk::create(path).doing("making the directory", "", 0)?
        } else {
            DirDisk::new(path)
        };
        self.open_on(disk)
    }

    /// Opens or creates the store on a disk.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn open_on(&self, disk: impl Disk + 'static) -> Result<Store> {
        self.check()?;
        open::open(Arc::new(disk), self)
    }

    fn check(&self) -> Result<()> {
        if !is_sector_size(self.sector_bytes) {
            return Err(Error::Options("sectors have 512 to 65,536 bytes, a power of two"));
        }
        if self.read_only && (self.create || self.create_new) {
            return Err(Error::Options("a new store cannot be opened for reading only"));
        }
        if self.block_file_bytes < 4 << 20 {
            return Err(Error::Options("block files have room for 4 MiB at least"));
        }
        Ok(())
    }
}

/// How one object is put.
#[derive(Clone, Debug, Default)]
pub struct PutOptions {
    pub(crate) condition: Condition,
    pub(crate) durability: Option<Durability>,
    pub(crate) metadata: Vec<(String, Vec<u8>)>,
}

impl PutOptions {
    /// Puts in any case, with the durability of the store and without metadata.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only if the key has no object yet; else [`Error::AlreadyExists`].
    #[must_use]
    pub fn create_only(mut self) -> Self {
        self.condition = Condition::Absent;
        self
    }

    /// Only if the key has an object; else [`Error::NotFound`].
    #[must_use]
    pub fn replace_only(mut self) -> Self {
        self.condition = Condition::Present;
        self
    }

    /// Only if the object has this version, as [`Stat::version`](crate::Stat)
    /// gave it; 0 stands for no object. Else [`Error::Conflict`].
    #[must_use]
    pub fn if_version(mut self, version: u64) -> Self {
        self.condition = Condition::Version(version);
        self
    }

    /// What this call promises.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Something to be kept with the object, by name. A second value for a name
    /// takes the place of the first.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        let name = name.into();
        self.metadata.retain(|(other, _)| *other != name);
        self.metadata.push((name, value.into()));
        self
    }
}
