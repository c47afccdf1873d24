//! One file of sectors.

use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::disk::DiskFile;
use crate::error::{Doing, Error, Result};

/// A file of sectors, and whether anything of it waits for a flush.
pub(crate) struct BlockFile {
    pub(crate) name: String,
    file: Arc<dyn DiskFile>,
    is_dirty: AtomicBool,
    /// Held while it is flushed; why that has failed once.
    syncing: Mutex<Option<String>>,
    /// As much of the file as there was when somebody last wanted more.
    #[cfg(feature = "mmap")]
    mapping: Mutex<Option<crate::disk::Mapping>>,
}

impl BlockFile {
    pub(crate) fn new(name: String, file: Arc<dyn DiskFile>) -> Self {
        Self {
            name,
            file,
            is_dirty: AtomicBool::new(false),
            syncing: Mutex::default(),
            #[cfg(feature = "mmap")]
            mapping: Mutex::default(),
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
        let mut mapping = self.mapping.lock().unwrap_or_else(PoisonError::into_inner);
        let reaches = |mapping: &crate::disk::Mapping| (**mapping).as_ref().len() as u64 >= end;
        if !mapping.as_ref().is_some_and(reaches) {
            *mapping = self.file.map().doing("mapping", &self.name, 0)?;
        }
        Ok(mapping.clone().filter(reaches))
    }

    /// Writes all pieces, one behind the other.
    pub(crate) fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> Result<()> {
        let written = self.file.write_at(pieces, offset).doing("writing", &self.name, offset);
        // After the call: a flush that ran meanwhile has perhaps not seen it all, and
        // one that must cover it begins later.
        self.is_dirty.store(true, Ordering::Release);
        written
    }

    pub(crate) fn len(&self) -> Result<u64> {
        self.file.len().doing("asking for the length", &self.name, 0)
    }

    pub(crate) fn set_len(&self, len: u64) -> std::io::Result<()> {
        let set = self.file.set_len(len);
        self.is_dirty.store(true, Ordering::Release);
        set
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

    /// Brings what was written to the medium, if anything was. Returns when that is
    /// done, whoever does it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], and from then on [`Error::Broken`]: what the system could
    /// not write it forgets, and another call would succeed without it.
    pub(crate) fn sync(&self) -> Result<()> {
        let mut failed = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = &*failed {
            return Err(Error::Broken { why: why.clone() });
        }
        if !self.is_dirty.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = self.file.sync().doing("flushing", &self.name, 0);
        if let Err(error) = &synced {
            *failed = Some(error.to_string());
        }
        synced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::OnceLock;
    use std::sync::atomic::AtomicUsize;

    /// A file that is flushed in the middle of every write to it.
    #[derive(Default)]
    struct Busy {
        block_file: OnceLock<Arc<BlockFile>>,
        dirty: Mutex<bool>,
        syncs: AtomicUsize,
    }

    impl DiskFile for Busy {
        fn read_at(&self, _buf: &mut [u8], _offset: u64) -> io::Result<usize> {
            Ok(0)
        }

        fn write_at(&self, _pieces: &[IoSlice<'_>], _offset: u64) -> io::Result<()> {
            self.block_file.get().unwrap().sync().unwrap();
            *self.dirty.lock().unwrap() = true;
            Ok(())
        }

        fn len(&self) -> io::Result<u64> {
            Ok(0)
        }

        fn set_len(&self, _len: u64) -> io::Result<()> {
            Ok(())
        }

        fn punch(&self, _offset: u64, _len: u64) -> io::Result<()> {
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            self.syncs.fetch_add(1, Ordering::Relaxed);
            *self.dirty.lock().unwrap() = false;
            Ok(())
        }

        fn try_lock(&self) -> io::Result<bool> {
            Ok(true)
        }
    }

    /// A file of which every flush fails after the first, and takes its time.
    #[derive(Default)]
    struct Slow {
        started: AtomicUsize,
        ended: AtomicUsize,
    }

    impl DiskFile for Slow {
        fn read_at(&self, _buf: &mut [u8], _offset: u64) -> io::Result<usize> {
            Ok(0)
        }

        fn write_at(&self, _pieces: &[IoSlice<'_>], _offset: u64) -> io::Result<()> {
            Ok(())
        }

        fn len(&self) -> io::Result<u64> {
            Ok(0)
        }

        fn set_len(&self, _len: u64) -> io::Result<()> {
            Ok(())
        }

        fn punch(&self, _offset: u64, _len: u64) -> io::Result<()> {
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            let first = self.started.fetch_add(1, Ordering::SeqCst) == 0;
            std::thread::sleep(std::time::Duration::from_millis(50));
            self.ended.fetch_add(1, Ordering::SeqCst);
            if first { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
        }

        fn try_lock(&self) -> io::Result<bool> {
            Ok(true)
        }
    }

    #[test]
    fn nobody_goes_on_before_the_flush_that_another_has_begun_is_done() {
        let slow = Arc::new(Slow::default());
        let block_file = BlockFile::new("blocks".to_owned(), Arc::clone(&slow) as _);
        block_file.write_at(&[IoSlice::new(b"x")], 0).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| block_file.sync().unwrap());
            while slow.started.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            block_file.sync().unwrap();
            assert_eq!(slow.ended.load(Ordering::SeqCst), 1);
        });
        // A flush that fails is no flush, however often it is tried.
        block_file.write_at(&[IoSlice::new(b"x")], 0).unwrap();
        assert!(matches!(block_file.sync(), Err(Error::Io { .. })));
        assert!(matches!(block_file.sync(), Err(Error::Broken { .. })));
        assert_eq!(slow.started.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_write_that_a_flush_ran_through_is_flushed_again() {
        let busy = Arc::new(Busy::default());
        let file = Arc::clone(&busy) as Arc<dyn DiskFile>;
        let block_file = Arc::new(BlockFile::new("blocks".to_owned(), file));
        assert!(busy.block_file.set(Arc::clone(&block_file)).is_ok());
        for _ in 0..2 {
            block_file.write_at(&[IoSlice::new(b"x")], 0).unwrap();
            assert!(*busy.dirty.lock().unwrap());
            block_file.sync().unwrap();
            assert!(!*busy.dirty.lock().unwrap());
        }
        let syncs = busy.syncs.load(Ordering::Relaxed);
        block_file.sync().unwrap();
        assert_eq!(busy.syncs.load(Ordering::Relaxed), syncs, "nothing is left to flush");
    }
}
