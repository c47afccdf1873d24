//! The disk below: a directory with a few files, as little of it as a store needs.
//!
//! A store of a program lies in a directory ([`DirDisk`]) or in memory
//! ([`MemDisk`]). Whoever wants to know what a store does to a disk, or what it
//! does when one fails, brings their own.

mod dir;
#[cfg(feature = "mmap")]
mod mapping;
mod memory;

pub use dir::DirDisk;
pub use memory::MemDisk;

use std::io::{self, IoSlice};
use std::sync::Arc;

/// The bytes of a file in memory.
pub type Mapping = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A place for the files of one store.
pub trait Disk: Send + Sync {
    /// Opens a file. With `create` it must not be there yet and is made; with
    /// `write` it can be changed.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`], [`io::ErrorKind::AlreadyExists`] and whatever
    /// else the system says.
    fn open(&self, name: &str, create: bool, write: bool) -> io::Result<Arc<dyn DiskFile>>;

    /// Makes the names of new files safe against a crash of the machine.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn sync(&self) -> io::Result<()>;
}

/// One file. All calls may be made from many threads at once.
pub trait DiskFile: Send + Sync {
    /// Fills `buf` from byte `offset` on, up to the end of the file; how many bytes that are.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Appends `len` bytes from byte `offset` on to `buf`, or as many as there are.
    ///
    /// # Errors
    ///
    /// Those of the system; `buf` is as before then.
    fn read_onto(&self, buf: &mut Vec<u8>, len: usize, offset: u64) -> io::Result<()> {
        let start = buf.len();
        buf.resize(start + len, 0);
        let read = self.read_at(&mut buf[start..], offset);
        buf.truncate(start + *read.as_ref().unwrap_or(&0));
        read.map(drop)
    }

    /// Writes all pieces, one behind the other, from byte `offset` on.
    ///
    /// # Errors
    ///
    /// Those of the system; any part may have been written then.
    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<()>;

    /// Length in bytes.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn len(&self) -> io::Result<u64>;

    /// Whether it has no bytes.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Makes the file `len` bytes long. New space is really there afterwards,
    /// where the system can promise that, and reads as zeros.
    ///
    /// # Errors
    ///
    /// Those of the system; the length is as before then.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Gives the space of a range back to the system, where it can take it; the
    /// range reads as zeros or as before.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Bytes that the file takes on the medium: less than its length if it has holes.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn allocated_bytes(&self) -> io::Result<u64> {
        self.len()
    }

    /// Waits until all that was written, and the length, is on the medium.
    ///
    /// # Errors
    ///
    /// Those of the system. What was written since the last call that
    /// succeeded may or may not be there then.
    fn sync(&self) -> io::Result<()>;

    /// The bytes of the file in memory, as far as there are any now, without copying
    /// them; `None` where that cannot be had. What is written to the file later
    /// shows in them.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn map(&self) -> io::Result<Option<Mapping>> {
        Ok(None)
    }

    /// Keeps other writers away while the file is open; false if there is one.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn try_lock(&self) -> io::Result<bool>;
}
