//! Files of a directory.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, DiskFile};

/// A directory of the file system.
#[derive(Clone, Debug)]
pub struct DirDisk {
    path: PathBuf,
}

impl DirDisk {
    /// The directory at `path`, which must be there.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned() }
    }

    /// The directory at `path`, made with those above it if it is not there.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        Ok(Self::new(path))
    }
}

impl Disk for DirDisk {
    fn open(&self, name: &str, create: bool, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(write).create_new(create);
        Ok(Arc::new(DirFile { file: options.open(self.path.join(name))? }))
    }

    fn sync(&self) -> io::Result<()> {
        if cfg!(unix) {
            File::open(&self.path)?.sync_all()?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct DirFile {
    file: File,
}

impl Drop for DirFile {
    fn drop(&mut self) {
        // A child that another thread has just forked has our descriptors until it
        // becomes another program. It must not keep a lock that we give up.
        let _ = self.file.unlock();
    }
}

/// Writes pieces of which the system has taken the first `done` bytes.
#[cfg(unix)]
fn write_rest(file: &File, pieces: &[IoSlice<'_>], offset: u64, done: usize) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let mut start = 0;
    for piece in pieces {
        let end = start + piece.len();
        if end > done {
            let skip = done.saturating_sub(start);
            file.write_all_at(&piece[skip..], offset + (start + skip) as u64)?;
        }
        start = end;
    }
    Ok(())
}

#[cfg(unix)]
impl DiskFile for DirFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        use std::os::unix::fs::FileExt;
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn read_onto(&self, buf: &mut Vec<u8>, len: usize, offset: u64) -> io::Result<()> {
        let start = buf.len();
        buf.reserve_exact(len);
        while buf.len() - start < len {
            let done = buf.len() - start;
            let room = rustix::buffer::spare_capacity(buf);
            // The vector may have room for more than was asked for.
            match rustix::io::pread(&self.file, room, offset + done as u64) {
                Ok(0) => break,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    buf.truncate(start);
                    return Err(error.into());
                }
            }
        }
        buf.truncate(start + len);
        Ok(())
    }

    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        /// What the system takes at once.
        const PIECES: usize = 1024;
        let mut offset = offset;
        for pieces in pieces.chunks(PIECES) {
            if let [piece] = pieces {
                self.file.write_all_at(piece, offset)?;
                offset += piece.len() as u64;
                continue;
            }
            let len: usize = pieces.iter().map(|piece| piece.len()).sum();
            let done = loop {
                match rustix::io::pwritev(&self.file, pieces, offset) {
                    Err(rustix::io::Errno::INTR) => {}
                    done => break done?,
                }
            };
            if done < len {
                write_rest(&self.file, pieces, offset, done)?;
            }
            offset += len as u64;
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let old = self.file.metadata()?.len();
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if len > old {
            use rustix::fs::{FallocateFlags, fallocate};
            match fallocate(&self.file, FallocateFlags::empty(), old, len - old) {
                Ok(()) => return Ok(()),
                // Not every file system can; then the space is there when it is written.
                Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
                Err(error) => {
                    // Part of it may be there: the length is what it was.
                    self.file.set_len(old)?;
                    return Err(error.into());
                }
            }
        }
        self.file.set_len(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            use rustix::fs::{FallocateFlags, fallocate};
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            match fallocate(&self.file, flags, offset, len) {
                Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let _ = (offset, len);
        Ok(())
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(self.file.metadata()?.blocks() * 512)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    #[cfg(feature = "mmap")]
    fn map(&self) -> io::Result<Option<super::Mapping>> {
        super::mapping::map(&self.file).map(Some)
    }

    fn try_lock(&self) -> io::Result<bool> {
        try_lock(&self.file)
    }
}

#[cfg(windows)]
impl DiskFile for DirFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        use std::os::windows::fs::FileExt;
        let mut done = 0;
        while done < buf.len() {
            match self.file.seek_read(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        use std::os::windows::fs::FileExt;
        let mut at = offset;
        for piece in pieces {
            let mut rest = &piece[..];
            while !rest.is_empty() {
                let count = self.file.seek_write(rest, at)?;
                if count == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                rest = &rest[count..];
                at += count as u64;
            }
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn punch(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    #[cfg(feature = "mmap")]
    fn map(&self) -> io::Result<Option<super::Mapping>> {
        super::mapping::map(&self.file).map(Some)
    }

    fn try_lock(&self) -> io::Result<bool> {
        try_lock(&self.file)
    }
}

fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_goes_with_its_file_whoever_has_a_copy_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = DirFile { file: File::create(dir.path().join("lock")).unwrap() };
        assert!(file.try_lock().unwrap());
        let other = DirDisk::new(dir.path()).open("lock", false, true).unwrap();
        assert!(!other.try_lock().unwrap());
        let copy = file.file.try_clone().unwrap();
        drop(file);
        assert!(other.try_lock().unwrap());
        drop(copy);
    }
}
