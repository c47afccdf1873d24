//! Where a compound file's bytes are: memory or a file of the system. The
//! contestants take them as they need them, and give them back between rounds.

use std::fs::{self, File, OpenOptions};
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cfb_format::{MemStorage, Storage};

/// Bytes that a contestant can put a compound file in, and the plain calls
/// that read and write them without one.
pub trait Base: Sized + Send + 'static {
    /// Where the bytes stay while no contestant has them.
    type Home;
    /// As crate `cfb-format` takes them.
    type Storage: Storage + 'static;
    /// As crate `cfb` takes them.
    type Io: Read + Write + Seek + Send + Sync + 'static;
    /// Name of the medium in tables.
    const MEDIUM: Medium;

    /// A home for the bytes of `who`, below `dir` if they need a place.
    fn home(dir: &Path, who: &str) -> Self::Home;
    /// Makes `to` hold the same bytes as `from`, which are only read from then on.
    fn share(from: &Self::Home, to: &mut Self::Home);
    /// Removes what is at home, for good.
    fn clear(home: &mut Self::Home);
    /// Nothing yet; memory that was used before is kept for it.
    fn fresh(home: &mut Self::Home) -> Self;
    /// What was put back last.
    fn again(home: &mut Self::Home) -> Self;
    /// Back home.
    fn put_back(self, home: &mut Self::Home);

    /// For crate `cfb-format`.
    fn into_storage(self) -> Self::Storage;
    /// From crate `cfb-format`.
    fn from_storage(storage: Self::Storage) -> Self;
    /// For crate `cfb`.
    fn into_io(self) -> Self::Io;
    /// From crate `cfb`.
    fn from_io(io: Self::Io) -> Self;

    /// Adds bytes at the end.
    fn append(&mut self, bytes: &[u8]);
    /// Writes over bytes that are there.
    fn write_at(&mut self, bytes: &[u8], offset: u64);
    /// Fills `buf`.
    fn read_at(&self, buf: &mut [u8], offset: u64);
    /// Longer with zeros, or shorter.
    fn set_len(&mut self, len_bytes: u64);
    /// A copy beside the original, and how it takes its place.
    fn copy(&self) -> (Self, Swap);
    /// How many bytes there are.
    fn len(&self) -> u64;
    /// Whether there is no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How a copy takes the place of its original.
#[derive(Debug)]
pub enum Swap {
    /// It is used instead.
    Use,
    /// It is renamed over it.
    Rename {
        /// Where the copy is.
        from: PathBuf,
        /// Where the original is.
        to: PathBuf,
    },
}

impl Swap {
    /// From now on the copy is the original.
    pub fn done(self) {
        if let Self::Rename { from, to } = self {
            fs::rename(from, to).expect(FILE_WORKS);
        }
    }
}

/// Kind of [`Base`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// A vector.
    Memory,
    /// A file of the system, in its page cache.
    File,
}

impl std::fmt::Display for Medium {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Memory => "memory",
            Self::File => "file",
        })
    }
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("in memory")
}

impl Base for Vec<u8> {
    type Home = Self;
    type Storage = MemStorage;
    type Io = Cursor<Self>;
    const MEDIUM: Medium = Medium::Memory;

    fn home(_: &Path, _: &str) -> Self {
        Self::new()
    }

    fn share(from: &Self, to: &mut Self) {
        to.clone_from(from);
    }

    fn clear(home: &mut Self) {
        *home = Self::new();
    }

    fn fresh(home: &mut Self) -> Self {
        let mut bytes = std::mem::take(home);
        bytes.clear();
        bytes
    }

    fn again(home: &mut Self) -> Self {
        std::mem::take(home)
    }

    fn put_back(self, home: &mut Self) {
        *home = self;
    }

    fn into_storage(self) -> MemStorage {
        self.into()
    }

    fn from_storage(storage: MemStorage) -> Self {
        storage.into_vec()
    }

    fn into_io(self) -> Cursor<Self> {
        Cursor::new(self)
    }

    fn from_io(io: Cursor<Self>) -> Self {
        io.into_inner()
    }

    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) {
        self[index(offset)..][..bytes.len()].copy_from_slice(bytes);
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) {
        buf.copy_from_slice(&self[index(offset)..][..buf.len()]);
    }

    fn set_len(&mut self, len_bytes: u64) {
        self.resize(index(len_bytes), 0);
    }

    fn copy(&self) -> (Self, Swap) {
        (self.clone(), Swap::Use)
    }

    fn len(&self) -> u64 {
        Vec::len(self) as u64
    }
}

/// No disk fails here, or there is nothing to measure.
const FILE_WORKS: &str = "the file can be read and written";

impl Base for File {
    type Home = PathBuf;
    type Storage = Self;
    type Io = Self;
    const MEDIUM: Medium = Medium::File;

    fn home(dir: &Path, who: &str) -> PathBuf {
        dir.join(format!("{who}.cfb"))
    }

    fn share(from: &PathBuf, to: &mut PathBuf) {
        fs::hard_link(from, to).expect("links can be made");
    }

    fn clear(home: &mut PathBuf) {
        let _ = fs::remove_file(home);
    }

    fn fresh(home: &mut PathBuf) -> Self {
        Self::clear(home);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).open(home).expect(FILE_WORKS)
    }

    fn again(home: &mut PathBuf) -> Self {
        let mut file = OpenOptions::new().read(true).write(true).open(home).expect(FILE_WORKS);
        // Where `append` goes on.
        file.seek(SeekFrom::End(0)).expect(FILE_WORKS);
        file
    }

    fn put_back(self, _: &mut PathBuf) {}

    fn into_storage(self) -> Self {
        self
    }

    fn from_storage(storage: Self) -> Self {
        storage
    }

    fn into_io(self) -> Self {
        self
    }

    fn from_io(io: Self) -> Self {
        io
    }

    fn append(&mut self, bytes: &[u8]) {
        self.write_all(bytes).expect(FILE_WORKS);
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) {
        self.write_all_at(bytes, offset).expect(FILE_WORKS);
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) {
        self.read_exact_at(buf, offset).expect(FILE_WORKS);
    }

    fn set_len(&mut self, len_bytes: u64) {
        Self::set_len(self, len_bytes).expect(FILE_WORKS);
    }

    fn copy(&self) -> (Self, Swap) {
        // Whoever opens a file knows its path; this trait does not hand it down.
        let to = fs::read_link(format!("/proc/self/fd/{}", self.as_raw_fd())).expect(FILE_WORKS);
        let from = to.with_extension("new");
        // Inside the system, without a buffer here: the fastest way there is.
        fs::copy(&to, &from).expect(FILE_WORKS);
        let copy = OpenOptions::new().read(true).write(true).open(&from).expect(FILE_WORKS);
        (copy, Swap::Rename { from, to })
    }

    fn len(&self) -> u64 {
        self.metadata().expect(FILE_WORKS).len()
    }
}
