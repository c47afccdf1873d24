//! A disk in memory.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::{Disk, DiskFile};

/// A disk in memory: for tests, and for stores that need not last. Clones are
/// the same disk.
///
/// ```
/// use fs_store::{MemDisk, OpenOptions};
///
/// let disk = MemDisk::new();
/// let store = OpenOptions::new().create(true).open_on(disk.clone())?;
/// store.put("a", b"one")?;
/// store.close()?;
/// let store = OpenOptions::new().open_on(disk)?;
/// assert_eq!(store.get("a")?.as_deref(), Some(&b"one"[..]));
/// # Ok::<(), fs_store::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemDisk {
    files: Arc<Mutex<HashMap<String, Arc<File>>>>,
}

impl MemDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes of each file, for a look at them.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = |file: &File| file.bytes.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut files: Vec<_> =
            files.iter().map(|(name, file)| (name.clone(), bytes(file))).collect();
        files.sort();
        files
    }

    /// A disk with these files.
    pub fn from_files(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let file = |bytes| Arc::new(File { bytes: RwLock::new(bytes), locked: Arc::default() });
        let files = files.into_iter().map(|(name, bytes)| (name, file(bytes))).collect();
        Self { files: Arc::new(Mutex::new(files)) }
    }
}

#[derive(Debug)]
struct File {
    bytes: RwLock<Vec<u8>>,
    locked: Arc<AtomicBool>,
}

/// A file that somebody has open, with its lock if it has it.
#[derive(Debug)]
struct Handle {
    file: Arc<File>,
    locks: AtomicBool,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if *self.locks.get_mut() {
            self.file.locked.store(false, Ordering::Release);
        }
    }
}

impl Disk for MemDisk {
    fn open(&self, name: &str, create: bool, _write: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match (files.get(name), create) {
            (Some(_), true) => return Err(io::ErrorKind::AlreadyExists.into()),
            (None, false) => return Err(io::ErrorKind::NotFound.into()),
            (Some(file), false) => Arc::clone(file),
            (None, true) => {
                let file = Arc::new(File { bytes: RwLock::default(), locked: Arc::default() });
                files.insert(name.to_owned(), Arc::clone(&file));
                file
            }
        };
        Ok(Arc::new(Handle { file, locks: AtomicBool::new(false) }))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for Handle {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.file.bytes.read().unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = buf.len().min(bytes.len() - start);
        buf[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        let mut bytes = self.file.bytes.write().unwrap_or_else(PoisonError::into_inner);
        let mut at = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        for piece in pieces {
            let end = at + piece.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[at..end].copy_from_slice(piece);
            at = end;
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.bytes.read().unwrap_or_else(PoisonError::into_inner).len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut bytes = self.file.bytes.write().unwrap_or_else(PoisonError::into_inner);
        bytes.resize(len, 0);
        bytes.shrink_to_fit();
        Ok(())
    }

    fn punch(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        let free = !self.file.locked.swap(true, Ordering::AcqRel);
        if free {
            self.locks.store(true, Ordering::Release);
        }
        Ok(free)
    }
}
