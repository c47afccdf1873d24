//! What can go wrong, said so that a program can act and a person can look.

use std::fmt;
use std::io;

/// Why an operation of a store failed.
///
/// Unless a variant says otherwise, a call that gives an error has changed
/// nothing, in memory or on disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused a call on a file.
    #[error("{doing} of `{file}` at byte {offset}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Name of the file within the store's directory; empty for the directory.
        file: String,
        /// Byte offset in the file.
        offset: u64,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// The directory has no store in it.
    #[error("there is no store here")]
    NoStore,
    /// A store is there already, and a new one was asked for.
    #[error("a store is here already")]
    Exists,
    /// Another handle, of this process or of another one, writes to the store.
    #[error("another process has the store open for writing")]
    Locked,
    /// The store was opened for reading only.
    #[error("the store is open for reading only")]
    ReadOnly,
    /// The store was written by a later version of this library.
    #[error("the store has format version {found}; this library knows up to {known}")]
    Version {
        /// The version in the superblock.
        found: u32,
        /// The newest one that can be read.
        known: u32,
    },
    /// An option that cannot be had.
    #[error("{0}")]
    Options(&'static str),
    /// A key that is empty or longer than [`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES).
    #[error("a key has 1 to {max} bytes, not {len}")]
    Key {
        /// Its length in bytes.
        len: usize,
        /// The most it may have.
        max: usize,
    },
    /// More metadata than [`MAX_METADATA_BYTES`](crate::MAX_METADATA_BYTES).
    #[error("{len} bytes of metadata, of at most {max}")]
    Metadata {
        /// Its names and values together, in bytes.
        len: usize,
        /// The most it may have.
        max: usize,
    },
    /// No object has this key.
    #[error("there is no object {}", Shown(.key))]
    NotFound {
        /// The key.
        key: Vec<u8>,
    },
    /// An object has this key already, and must not be replaced.
    #[error("there is an object {} already", Shown(.key))]
    AlreadyExists {
        /// The key.
        key: Vec<u8>,
    },
    /// The object is another one than the caller has seen.
    #[error("the object {} has version {found}, not {wanted}", Shown(.key))]
    Conflict {
        /// The key.
        key: Vec<u8>,
        /// The version that was asked for.
        wanted: u64,
        /// The version that is there; 0 if there is no object.
        found: u64,
    },
    /// Bytes of an object are not those that were written. No wrong byte was
    /// given out, and other objects are not concerned.
    #[error(
        "bytes {start} to {end} of the object {} do not match their checksum (`{file}` at {offset})",
        Shown(.key)
    )]
    Corrupt {
        /// The key.
        key: Vec<u8>,
        /// First byte of the object that is in doubt.
        start: u64,
        /// End of the doubtful range.
        end: u64,
        /// Name of the block file.
        file: String,
        /// Byte offset of the range in the block file.
        offset: u64,
    },
    /// Something that the store keeps of itself is damaged.
    #[error("{what} in `{file}` at byte {offset}: {why}")]
    Damaged {
        /// Which part of the store.
        what: &'static str,
        /// Name of the file.
        file: String,
        /// Byte offset in the file.
        offset: u64,
        /// The rule that does not hold.
        why: &'static str,
    },
    /// There is not enough room, and the files cannot grow.
    #[error("{wanted} bytes wanted, {free} free, and the files cannot grow{}", Because(.source))]
    Full {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes that are free in the block files.
        free: u64,
        /// What the system said when a file was to grow.
        #[source]
        source: Option<io::Error>,
    },
    /// An earlier write of the journal or flush failed. What it covered may or may not be there
    /// after the next open; until then the store can be read and takes no writes.
    #[error("an earlier write failed ({why}); the store can only be read until it is opened again")]
    Broken {
        /// What failed then.
        why: String,
    },
    /// The caller's reader failed while a value was read from it.
    #[error("the value could not be read: {0}")]
    Source(#[source] io::Error),
    /// A writer in another process has overwritten what this reader looked at.
    #[error("the store was changed by its writer; refresh and read again")]
    ChangedUnderneath,
}

/// A result of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn damaged(
        what: &'static str,
        file: impl Into<String>,
        offset: u64,
        why: &'static str,
    ) -> Self {
        Self::Damaged { what, file: file.into(), offset, why }
    }
}

/// Says where a call of the system failed.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str, file: &str, offset: u64) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, file: &str, offset: u64) -> Result<T> {
        self.map_err(|source| Error::Io { doing, file: file.to_owned(), offset, source })
    }
}

/// A key as people can read it.
struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

struct Because<'a>(&'a Option<io::Error>);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}
