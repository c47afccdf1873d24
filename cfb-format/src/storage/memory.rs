//! A storage in memory.

use super::copying::copy;
use super::{Storage, append, copy_from};
use std::io;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bytes in memory that grow as they are written.
///
/// A clone is another handle to the same bytes, so that they can be looked at
/// while a compound file has them. Reads run side by side.
///
/// # Examples
///
/// ```
/// use cfb_format::{MemStorage, Storage};
///
/// let storage = MemStorage::new();
/// let same = storage.clone();
/// storage.write_at(b"ab", 2)?;
/// assert_eq!(same.to_vec(), b"\0\0ab");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemStorage {
    bytes: Arc<RwLock<Vec<u8>>>,
}

impl MemStorage {
    /// An empty storage.
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.read().clone()
    }

    /// The bytes themselves if this is the last handle, else a copy.
    pub fn into_vec(self) -> Vec<u8> {
        match Arc::try_unwrap(self.bytes) {
            Ok(bytes) => bytes.into_inner().unwrap_or_else(PoisonError::into_inner),
            Err(shared) => Self { bytes: shared }.to_vec(),
        }
    }

    // Nothing that runs under the lock can panic half-way through a change, so
    // a poisoned lock still guards whole bytes.
    fn read(&self) -> RwLockReadGuard<'_, Vec<u8>> {
        self.bytes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<u8>> {
        self.bytes.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the vector as it is, without a copy.
impl From<Vec<u8>> for MemStorage {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes: Arc::new(RwLock::new(bytes)) }
    }
}

/// Makes room for `more` bytes; without the memory that is an error, not an abort.
fn reserve(bytes: &mut Vec<u8>, more: usize) -> io::Result<()> {
    bytes.try_reserve(more).map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error))
}

impl Storage for MemStorage {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(copy_from(&self.read(), buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let end = start.checked_add(buf.len()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut bytes = self.write();
        if bytes.len() < end {
            // Room for all first, so that nothing changes on failure; zeros
            // only where `buf` does not go.
            let missing = end - bytes.len();
            reserve(&mut bytes, missing)?;
            if bytes.len() < start {
                bytes.resize(start, 0);
            }
        }
        let (inside, outside) = buf.split_at(buf.len().min(bytes.len() - start));
        copy(&mut bytes[start..start + inside.len()], inside);
        append(&mut bytes, outside);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.read().len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut bytes = self.write();
        let more = len.saturating_sub(bytes.len());
        reserve(&mut bytes, more)?;
        bytes.resize(len, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn with_bytes(&self, look: &mut dyn FnMut(&[u8])) {
        look(&self.read());
    }

    fn is_memory(&self) -> bool {
        true
    }
}
