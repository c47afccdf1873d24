//! Where the bytes of a compound file are: five positioned calls, and what
//! implements them.

mod copying;
mod io_adapters;
mod memory;
#[cfg(test)]
mod tests;

pub use io_adapters::{ReadOnly, ReadWrite};
pub use memory::MemStorage;

pub(crate) use copying::append;
use copying::copy_cold;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// A row of bytes that is read and written by position.
///
/// There is no cursor, so any number of threads can use one storage. Writes of
/// one file do not overlap in time; reads may run beside them and then see
/// either the old or the new bytes.
///
/// [`File`], [`MemStorage`] and `[u8]` are storages, and so are references,
/// boxes and [`Arc`]s of storages, which makes `&[u8]`, `Box<[u8]>`, `Arc<[u8]>`
/// and `Box<dyn Storage>` storages too. [`ReadOnly`] and [`ReadWrite`] adapt
/// what has the traits of [`std::io`].
///
/// # Examples
///
/// ```
/// use cfb_format::Storage;
///
/// let mut buf = [0; 4];
/// let bytes: &[u8] = b"compound";
/// assert_eq!(bytes.read_at(&mut buf, 6)?, 2);
/// assert_eq!(&buf[..2], b"nd");
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Storage: Send + Sync {
    /// Reads from byte `offset` on until `buf` is full or the storage ends, and
    /// gives the number of bytes read: less than asked for at the end only, 0
    /// past it.
    ///
    /// # Errors
    ///
    /// What the system says. What `buf` then holds is unspecified.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `buf` from byte `offset` on. Writing past the end extends
    /// the storage, and a gap in between reads as zeros.
    ///
    /// # Errors
    ///
    /// What the system says; [`io::ErrorKind::ReadOnlyFilesystem`] from storages
    /// that only read. Some of the bytes may then be written.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;

    /// Length in bytes.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn len(&self) -> io::Result<u64>;

    /// Cuts the storage off at `len` bytes, or extends it with zeros.
    ///
    /// # Errors
    ///
    /// What the system says; [`io::ErrorKind::ReadOnlyFilesystem`] from storages
    /// that only read.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Returns once all that was written is on the medium.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn sync(&self) -> io::Result<()>;

    /// True if there is no byte.
    ///
    /// # Errors
    ///
    /// Those of [`len`](Self::len).
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// All bytes, if they lie in memory and nothing can change them. Readers
    /// then borrow and copy nothing.
    fn as_slice(&self) -> Option<&[u8]> {
        None
    }

    /// Calls `look` once with all bytes if they lie in memory; nothing changes
    /// them meanwhile. `look` must not use the storage.
    ///
    /// What lies on a disk never calls it.
    ///
    /// # Examples
    ///
    /// ```
    /// use cfb_format::{MemStorage, Storage};
    ///
    /// let storage = MemStorage::from(b"compound".to_vec());
    /// let mut len = 0;
    /// storage.with_bytes(&mut |bytes| len = bytes.len());
    /// assert_eq!(len, 8);
    /// ```
    fn with_bytes(&self, look: &mut dyn FnMut(&[u8])) {
        if let Some(bytes) = self.as_slice() {
            look(bytes);
        }
    }

    /// True if a small write costs no more than its bytes, so that gathering
    /// writes gains nothing.
    fn is_memory(&self) -> bool {
        false
    }
}

/// A file of the system, at its own risk if others write to it too.
impl Storage for File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        read_full(buf, offset, |buf, at| read_once(self, buf, at))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        write_all(buf, offset, |buf, at| write_once(self, buf, at))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn sync(&self) -> io::Result<()> {
        // The length is part of what this waits for, the times are not.
        self.sync_data()
    }
}

/// Calls `once` until `buf` is full or nothing more comes.
fn read_full(
    buf: &mut [u8],
    offset: u64,
    mut once: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        // Past what the system can address there is nothing to read.
        let Some(at) = addressable(offset, done) else { break };
        match once(&mut buf[done..], at) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Calls `once` until all of `buf` is written.
fn write_all(
    buf: &[u8],
    offset: u64,
    mut once: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut done = 0;
    while done < buf.len() {
        let at = addressable(offset, done).ok_or(io::ErrorKind::FileTooLarge)?;
        match once(&buf[done..], at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// `offset + done`, if systems with signed offsets can name it.
fn addressable(offset: u64, done: usize) -> Option<u64> {
    offset.checked_add(done as u64).filter(|&at| i64::try_from(at).is_ok())
}

#[cfg(unix)]
fn read_once(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buf, offset)
}

#[cfg(unix)]
fn write_once(file: &File, buf: &[u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, buf, offset)
}

// These move the file's cursor as well. Nothing here looks at it.
#[cfg(windows)]
fn read_once(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buf, offset)
}

#[cfg(windows)]
fn write_once(file: &File, buf: &[u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, buf, offset)
}

/// Borrowed bytes. They are only read.
impl Storage for [u8] {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(copy_from(self, buf, offset))
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(<[u8]>::len(self) as u64)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn is_memory(&self) -> bool {
        true
    }
}

/// Copies what `bytes` has from `offset` on, and gives how much that was.
fn copy_from(bytes: &[u8], buf: &mut [u8], offset: u64) -> usize {
    let start = usize::try_from(offset).map_or(bytes.len(), |start| start.min(bytes.len()));
    let count = buf.len().min(bytes.len() - start);
    copy_cold(buf, &bytes[start..start + count]);
    count
}

/// A storage behind a pointer is that storage.
macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<S: Storage + ?Sized> Storage for $pointer {
            fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
                (**self).read_at(buf, offset)
            }
            fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
                (**self).write_at(buf, offset)
            }
            fn len(&self) -> io::Result<u64> {
                Storage::len(&**self)
            }
            fn set_len(&self, len: u64) -> io::Result<()> {
                Storage::set_len(&**self, len)
            }
            fn sync(&self) -> io::Result<()> {
                (**self).sync()
            }
            fn is_empty(&self) -> io::Result<bool> {
                Storage::is_empty(&**self)
            }
            fn as_slice(&self) -> Option<&[u8]> {
                Storage::as_slice(&**self)
            }
            fn with_bytes(&self, look: &mut dyn FnMut(&[u8])) {
                (**self).with_bytes(look);
            }
            fn is_memory(&self) -> bool {
                (**self).is_memory()
            }
        }
    )*};
}

forward!(&S, Box<S>, Arc<S>);
