//! One file of sectors.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::DiskFile;
use crate::error::{Doing, Result};

/// A file of sectors, and whether anything of it waits for a flush.
pub(crate) struct BlockFile {
    pub(crate) name: String,
    file: Arc<dyn DiskFile>,
    is_dirty: AtomicBool,
    /// As much of the file as there was when somebody last wanted more.
    #[cfg(feature = "mmap")]
    mapping: std::sync::Mutex<Option<crate::disk::Mapping>>,
}

impl BlockFile {
    pub(crate) fn new(name: String, file: Arc<dyn DiskFile>) -> Self {
        Self {
            name,
            file,
            is_dirty: AtomicBool::new(false),
            #[cfg(feature = "mmap")]
            mapping: std::sync::Mutex::default(),
        }
    }

    /// Fills `buf` from byte `offset` on; how many bytes there were.
    pub(crate) fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buf, offset).doing("reading", &self.name, offset)
    }

    /// Appends up to `len` bytes from byte `offset` on.
    pub(crate) fn read_onto(&self, buf: &mut Vec<u8>, len: usize, offset: u64) -> Result<()> {
        self.file.read_onto(buf, len, offset).doing("reading", &self.name, offset)
    }

    /// The file in memory, at least its first `end` bytes; none if that cannot be had.
    #[cfg(feature = "mmap")]
    pub(crate) fn mapped(&self, end: u64) -> Result<Option<crate::disk::Mapping>> {
        let mut mapping = self.mapping.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let reaches = |mapping: &crate::disk::Mapping| (**mapping).as_ref().len() as u64 >= end;
        if !mapping.as_ref().is_some_and(reaches) {
            *mapping = self.file.map().doing("mapping", &self.name, 0)?;
        }
        Ok(mapping.clone().filter(reaches))
    }

    /// Writes all pieces, one behind the other.
    pub(crate) fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> Result<()> {
        // Before the call, so that no flush can miss what it writes.
        self.is_dirty.store(true, Ordering::Release);
        self.file.write_at(pieces, offset).doing("writing", &self.name, offset)
    }

    pub(crate) fn len(&self) -> Result<u64> {
        self.file.len().doing("asking for the length", &self.name, 0)
    }

    pub(crate) fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.is_dirty.store(true, Ordering::Release);
        self.file.set_len(len)
    }

    pub(crate) fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.file.punch(offset, len).doing("giving space back", &self.name, offset)
    }

    pub(crate) fn allocated_bytes(&self) -> Result<u64> {
        self.file.allocated_bytes().doing("asking for the size", &self.name, 0)
    }

    /// Somebody else has written to it, and perhaps not flushed.
    pub(crate) fn mark_dirty(&self) {
        self.is_dirty.store(true, Ordering::Release);
    }

    /// Brings what was written to the medium, if anything was.
    pub(crate) fn sync(&self) -> Result<()> {
        if !self.is_dirty.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = self.file.sync().doing("flushing", &self.name, 0);
        if synced.is_err() {
            self.is_dirty.store(true, Ordering::Release);
        }
        synced
    }
}
