//! What can go wrong, and where.

use std::io;

use crate::finding::Finding;
use crate::name::NameRule;

/// Why a call on a compound file failed.
///
/// A call that fails leaves the file as it was before the call, unless its
/// documentation says otherwise. Conversion to [`io::Error`] keeps the whole
/// error as the source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The storage underneath failed.
    #[error("{doing} at byte {offset:#x}")]
    Io {
        /// What was being done, such as "reading the FAT".
        doing: &'static str,
        /// Byte offset in the storage.
        offset: u64,
        /// What the storage said.
        source: io::Error,
    },
    /// The bytes break a rule of the format so that the call cannot go on.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// [`repair`](crate::repair()) found nothing that looks like a compound file.
    #[error("nothing in {len_bytes} bytes looks like a part of a compound file")]
    NoCompoundFile {
        /// Length of the storage.
        len_bytes: u64,
    },
    /// A strict open met a broken rule.
    #[error("not a strictly valid compound file: {first} ({count} such in all)")]
    NotStrict {
        /// The first finding that strict mode refuses.
        first: Box<Finding>,
        /// How many there are.
        count: usize,
    },
    /// No entry has this path.
    #[error("no entry {path:?}")]
    NotFound {
        /// The path as given.
        path: String,
    },
    /// An entry with this name is there already.
    #[error("entry {path:?} exists already")]
    AlreadyExists {
        /// The path as given.
        path: String,
    },
    /// The entry is a storage.
    #[error("{path:?} is not a stream")]
    NotAStream {
        /// Path of the entry.
        path: String,
    },
    /// The entry is a stream.
    #[error("{path:?} is not a storage")]
    NotAStorage {
        /// Path of the entry.
        path: String,
    },
    /// The storage has entries; see [`CompoundFile::remove_all`](crate::CompoundFile::remove_all).
    #[error("storage {path:?} is not empty")]
    NotEmpty {
        /// Path of the entry.
        path: String,
    },
    /// The root can be neither removed nor moved nor renamed.
    #[error("the root entry cannot be removed, moved or renamed")]
    IsRoot,
    /// The name breaks a rule of [MS-CFB] 2.6.1.
    #[error("bad entry name {name:?}")]
    BadName {
        /// The name as given.
        name: String,
        /// The rule it breaks.
        #[source]
        rule: NameRule,
    },
    /// A storage cannot be moved or copied to a place below itself.
    #[error("{path:?} lies inside the entry to be moved or copied")]
    IntoItself {
        /// The target path.
        path: String,
    },
    /// The stream would be longer than the file's version allows.
    #[error("a stream of {len_bytes} bytes; this version allows {max_bytes}")]
    TooLong {
        /// The length asked for.
        len_bytes: u64,
        /// The longest stream.
        max_bytes: u64,
    },
    /// The file has as many sectors as its version allows.
    #[error("the file would need {wanted} more sectors; {available} are left")]
    FileFull {
        /// Sectors asked for.
        wanted: u64,
        /// Sectors that could still be had.
        available: u64,
    },
    /// The file was opened for reading only.
    #[error("the file was opened for reading only")]
    ReadOnly,
    /// Another writer has the file, in this process or in another.
    #[error("another writer has the file open")]
    Locked,
    /// The file was opened for reading, and somebody has saved it since: what is
    /// asked for may not be there any more. Opening it again shows the new state.
    #[error("the file has been saved by somebody else since it was opened")]
    ChangedUnderneath,
    /// The file is written in place: what was saved last is not there any more.
    /// See [`CreateOptions::in_place`](crate::CreateOptions::in_place).
    #[error("the file is written in place, so there is no saved state to go back to")]
    NotAtomic,
    /// The handle's or id's entry has been removed, or the file has been
    /// [reverted](crate::CompoundFile::revert).
    #[error("the entry has been removed")]
    Stale,
    /// The storage cannot be handed back while streams are open.
    #[error("{count} stream handles are still open")]
    StreamsOpen {
        /// How many.
        count: usize,
    },
}

/// A rule of [MS-CFB] that a file breaks so that something cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Corruption {
    /// Shorter than a header. 2.2
    #[error("{len_bytes} bytes are less than a compound file's header of 512")]
    TooShort {
        /// Length of the storage.
        len_bytes: u64,
    },
    /// The first eight bytes are something else's. 2.2
    #[error("not a compound file: it starts with {found:02x?}")]
    Signature {
        /// The first eight bytes.
        found: [u8; 8],
    },
    /// No such version exists, and the sector size says nothing either. 2.2
    #[error("major version {found} with a sector shift of {sector_shift}")]
    Version {
        /// The number at byte 0x1A.
        found: u16,
        /// The number at byte 0x1E.
        sector_shift: u16,
    },
    /// The directory cannot be found. 2.6
    #[error(
        "no directory at sector {start:#x}, where the header has it; {sectors_count} sectors in all"
    )]
    NoDirectory {
        /// The header's first directory sector.
        start: u32,
        /// Sectors of the file.
        sectors_count: u32,
    },
    /// The first directory entry is no root entry. 2.6.2
    #[error("the first directory entry has type {found}, not 5 (root)")]
    NoRoot {
        /// Its object type.
        found: u8,
    },
    /// A chain leaves the file. 2.3
    #[error("the chain {} sector {to:#x}, past the last of {sectors_count}", way(*.from))]
    OutOfRange {
        /// The sector whose cell has the link; `None` for a chain's start.
        from: Option<u32>,
        /// Where it points.
        to: u32,
        /// How many sectors there are.
        sectors_count: u32,
    },
    /// A chain runs into a sector that belongs to no stream. 2.3
    #[error("the chain enters sector {sector}, whose cell is {found:#x}")]
    NotInAChain {
        /// The sector.
        sector: u32,
        /// Its FAT or MiniFAT cell.
        found: u32,
    },
    /// A chain comes back to one of its own sectors. 2.3
    #[error("the chain comes back to sector {sector}")]
    Cycle {
        /// The sector met twice.
        sector: u32,
    },
    /// A chain ends before the stream does. 2.6.3
    #[error("the chain ends after {chain_bytes} of {len_bytes} bytes")]
    ShortChain {
        /// Bytes that the chain holds.
        chain_bytes: u64,
        /// Bytes that the entry promises.
        len_bytes: u64,
    },
    /// The file ends before the sector does. 2.1
    #[error("the file ends within or before sector {sector}")]
    FileEnds {
        /// The sector.
        sector: u32,
    },
}

/// How a chain comes to a sector.
fn way(from: Option<u32>) -> String {
    from.map_or_else(|| "starts at".to_owned(), |from| format!("goes from sector {from} to"))
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Io { source, .. } => source.kind(),
            Error::Corrupt(_) | Error::NotStrict { .. } | Error::NoCompoundFile { .. } => {
                io::ErrorKind::InvalidData
            }
            Error::NotFound { .. } | Error::Stale => io::ErrorKind::NotFound,
            Error::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
            Error::NotAStream { .. } => io::ErrorKind::IsADirectory,
            Error::NotAStorage { .. } => io::ErrorKind::NotADirectory,
            Error::NotEmpty { .. } => io::ErrorKind::DirectoryNotEmpty,
            Error::IsRoot | Error::BadName { .. } | Error::IntoItself { .. } => {
                io::ErrorKind::InvalidInput
            }
            Error::TooLong { .. } | Error::FileFull { .. } => io::ErrorKind::FileTooLarge,
            Error::ReadOnly => io::ErrorKind::PermissionDenied,
            Error::NotAtomic => io::ErrorKind::Unsupported,
            Error::ChangedUnderneath => io::ErrorKind::StaleNetworkFileHandle,
            Error::StreamsOpen { .. } | Error::Locked => io::ErrorKind::ResourceBusy,
        };
        Self::new(kind, error)
    }
}

/// Adds what was being done, and where, to an error of the storage.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str, offset: u64) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, offset: u64) -> Result<T, Error> {
        self.map_err(|source| match source.downcast::<Error>() {
            Ok(Error::ChangedUnderneath) => Error::ChangedUnderneath,
            Ok(other) => Error::Io { doing, offset, source: other.into() },
            Err(source) => Error::Io { doing, offset, source },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn io_error_keeps_the_typed_error_as_its_inner_error() {
        let error = io::Error::from(Error::Corrupt(Corruption::Cycle { sector: 7 }));
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let inner = error.get_ref().and_then(|e| e.downcast_ref::<Error>());
        assert!(matches!(inner, Some(Error::Corrupt(Corruption::Cycle { sector: 7 }))));
    }

    #[test]
    fn io_failure_names_the_place_and_keeps_its_source() {
        let failed: io::Result<()> = Err(io::ErrorKind::StorageFull.into());
        let error = failed.doing("writing the header", 0).unwrap_err();
        assert_eq!(error.to_string(), "writing the header at byte 0x0");
        assert!(error.source().is_some());
    }
}
