//! Storages for the tests: one that counts its calls, one that breaks on command, one that is mostly empty.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, RwLock};

use cfb_format::Storage;

use super::raw::RawSource;

/// Calls that reached a storage, and the bytes that they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) reads: u64,
    pub(crate) read_bytes: u64,
    pub(crate) writes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) set_lens: u64,
    pub(crate) syncs: u64,
}

/// Counts every call to the storage within. Clones share the counts.
#[derive(Clone, Debug)]
pub(crate) struct CountingStorage<S> {
    inner: S,
    counts: Arc<[AtomicU64; 6]>,
}

impl<S> CountingStorage<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, counts: Arc::default() }
    }

    /// The calls since the last time they were taken.
    pub(crate) fn take(&self) -> Counts {
        let [reads, read_bytes, writes, written_bytes, set_lens, syncs] =
            std::array::from_fn(|nth| self.counts[nth].swap(0, SeqCst));
        Counts { reads, read_bytes, writes, written_bytes, set_lens, syncs }
    }

    fn count(&self, field: usize, by: u64) {
        self.counts[field].fetch_add(by, SeqCst);
    }
}

impl<S: Storage> Storage for CountingStorage<S> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.inner.read_at(buf, offset)?;
        self.count(0, 1);
        self.count(1, count as u64);
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.count(2, 1);
        self.count(3, buf.len() as u64);
        self.inner.write_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.count(4, 1);
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.count(5, 1);
        self.inner.sync()
    }
}

/// Refuses to change anything while it is broken. Clones break and heal together.
#[derive(Clone, Debug)]
pub(crate) struct BreakingStorage<S> {
    inner: S,
    changes_left: Arc<AtomicU64>,
}

impl<S> BreakingStorage<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, changes_left: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    /// Lets this many changes pass and fails all later ones with [`io::ErrorKind::StorageFull`].
    pub(crate) fn break_after(&self, changes: u64) {
        self.changes_left.store(changes, SeqCst);
    }

    pub(crate) fn heal(&self) {
        self.changes_left.store(u64::MAX, SeqCst);
    }

    fn change(&self) -> io::Result<()> {
        let left = |left: u64| if left == u64::MAX { Some(left) } else { left.checked_sub(1) };
        match self.changes_left.fetch_update(SeqCst, SeqCst, left) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::new(io::ErrorKind::StorageFull, "the storage is broken")),
        }
    }
}

impl<S: Storage> Storage for BreakingStorage<S> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.change()?;
        self.inner.write_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change()?;
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.change()?;
        self.inner.sync()
    }
}

const PAGE_BYTES: usize = 1 << 16;

static ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// Bytes of any length of which only the pages that are not zero take memory. Clones share the bytes.
#[derive(Clone, Default)]
pub(crate) struct SparseStorage {
    bytes: Arc<RwLock<Sparse>>,
}

#[derive(Default)]
struct Sparse {
    len: u64,
    pages: HashMap<u64, Vec<u8>>,
}

/// The pages that `len_bytes` bytes from `offset` on touch: page, start within it, range within the bytes.
fn pieces(
    offset: u64,
    len_bytes: usize,
) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = usize::try_from(at % PAGE_BYTES as u64).unwrap();
        let count = (PAGE_BYTES - within).min(len_bytes - done);
        let range = done..done + count;
        done += count;
        (count > 0).then_some((at / PAGE_BYTES as u64, within, range))
    })
}

impl SparseStorage {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let bytes = self.bytes.read().unwrap();
        let there = usize::try_from(bytes.len.saturating_sub(offset)).unwrap();
        let count = buf.len().min(there);
        for (page, within, range) in pieces(offset, count) {
            let piece = &mut buf[range];
            match bytes.pages.get(&page) {
                Some(page) => piece.copy_from_slice(&page[within..within + piece.len()]),
                None => piece.fill(0),
            }
        }
        count
    }
}

impl Storage for SparseStorage {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(self.read(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = self.bytes.write().unwrap();
        for (page, within, range) in pieces(offset, buf.len()) {
            let piece = &buf[range];
            let zero = *piece == ZEROS[..piece.len()];
            if zero && (piece.len() == PAGE_BYTES || !bytes.pages.contains_key(&page)) {
                if piece.len() == PAGE_BYTES {
                    bytes.pages.remove(&page);
                }
                continue;
            }
            let page = bytes.pages.entry(page).or_insert_with(|| vec![0; PAGE_BYTES]);
            page[within..within + piece.len()].copy_from_slice(piece);
        }
        bytes.len = bytes.len.max(offset + buf.len() as u64);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.read().unwrap().len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut bytes = self.bytes.write().unwrap();
        bytes.len = len;
        let last = len / PAGE_BYTES as u64;
        bytes.pages.retain(|&page, _| page <= last);
        if let Some(page) = bytes.pages.get_mut(&last) {
            page[usize::try_from(len % PAGE_BYTES as u64).unwrap()..].fill(0);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl RawSource for SparseStorage {
    fn byte_len(&self) -> u64 {
        self.bytes.read().unwrap().len
    }

    fn load(&self, at: u64, buf: &mut [u8]) {
        let count = self.read(buf, at);
        buf[count..].fill(0);
    }
}
