//! Microsoft compound files ([MS-CFB]), read and written at the speed of their bytes.
//!
//! # The house
//!
//! A compound file is a small file system in a file: storages (directories)
//! and streams (files), kept in sectors that a FAT chains together.
//!
//! ```text
//! CompoundFile  Stream  Entry  Walk            handles and snapshots
//!        \        |
//!         Shared: State behind a lock, Nodes (open streams), bytes on their way
//!           |
//!         State: header + Directory + two Spaces (FAT, MiniFAT)     decisions, no I/O
//!           |                                |
//!         load (bytes -> State)            alloc-core: free maps, chains, windows
//!         commit (State -> bytes)
//!           |
//!         WriteBehind -> ReadCache -> Storage: five positioned calls on a file, memory or a slice
//! ```
//!
//! * **Reading.** Opening reads the metadata, in a few large calls, and no
//!   stream. A stream's chain becomes a list of runs when the stream is
//!   opened; a read is one call of the storage for each run it touches.
//! * **Writing.** Data goes to its sectors as it comes, small pieces gathered
//!   to large ones. Names, lengths and links change in memory; a flush writes
//!   what changed of them: data first, then FAT, MiniFAT and directory, then
//!   the header. The cost of a write is the cost of its bytes.
//! * **Saving** is atomic. Nothing that the last saved state refers to is
//!   written over: what changes, of streams and of metadata, goes to free
//!   sectors, and the header's 512 bytes, written last, switch the file to
//!   them. A crash leaves the state before a flush or the one after it;
//!   [`CompoundFile::revert`] goes back to the one before. `flush` does that for a
//!   crash of the process, `sync` for one of the machine. To other programs such
//!   a file is like any other. [`CreateOptions::in_place`] gives it up for
//!   those who write over huge streams; storages in memory do without it.
//! * **Space.** `alloc-core` decides which sectors: a chain grows in place
//!   where it can, else in one run. Space of removed streams is used again
//!   after the flush that removes them (a [`Transaction`](alloc_core::Transaction)
//!   knows which sectors are fresh and which are still the saved state's); a
//!   free end is cut off the file.
//! * **Handles** are owned, belong to their entry, and keep the file open.
//!   Reads of different streams never wait for each other. One writer locks a
//!   file; a reader sees one state of it or is told that it has changed.
//! * **Damage** to one stream costs that stream. A tolerant open reads what
//!   can be read and lists what it overlooked as [`Finding`]s; a strict one
//!   refuses what breaks a MUST; [`CompoundFile::check`] looks at everything,
//!   and [`repair()`] saves what is left of a file into a new one.
//!   No number from a file is used before it is checked, every walk over a
//!   file is bounded by its size, and no memory is reserved on a file's word.
//!
//! # Example
//!
//! ```
//! use std::io::{Read, Write};
//! use cfb_format::{CompoundFile, MemStorage};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let file = CompoundFile::create_in(MemStorage::new())?;
//! file.create_storage("/letters")?;
//! let mut letter = file.create_stream("/letters/first")?;
//! letter.write_all(b"Dear reader")?;
//! drop(letter);
//! let memory = file.into_storage()?;
//!
//! let file = CompoundFile::from_storage(memory)?;
//! let mut text = String::new();
//! file.open_stream("/Letters/FIRST")?.read_to_string(&mut text)?;
//! assert_eq!(text, "Dear reader");
//! # Ok(())
//! # }
//! ```
//!
//! [MS-CFB]: https://learn.microsoft.com/openspecs/windows_protocols/ms-cfb

mod check;
mod commit;
mod compact;
mod compound_file;
mod copy;
mod dir_entry;
mod dir_tree;
mod directory;
mod entry;
mod error;
mod file_time;
mod finding;
mod header;
mod layout;
mod load;
mod msi_name;
mod name;
mod node;
mod options;
mod read_cache;
mod repair;
mod shared;
mod space;
mod state;
mod storage;
mod stream;
mod table;
mod upcase;
mod usage;
mod version;
mod walk;
mod write_behind;

pub use compact::{CompactOptions, Compacted};
pub use compound_file::CompoundFile;
pub use copy::Damaged;
pub use dir_entry::EntryKind;
pub use directory::EntryId;
pub use entry::{At, Entry};
pub use error::{Corruption, Error};
pub use file_time::FileTime;
pub use finding::{Finding, FindingCode, Severity};
pub use msi_name::{decode_msi_name, encode_msi_name};
pub use name::NameRule;
pub use options::{CreateOptions, OpenOptions, Strictness};
pub use repair::{Recovery, RepairOptions, RepairReport, RepairedStream, repair};
pub use storage::{MemStorage, ReadOnly, ReadWrite, Storage};
pub use stream::{Extent, Stream};
pub use usage::Usage;
pub use uuid::Uuid;
pub use version::Version;
pub use walk::Walk;

/// The examples of the README are compiled and run with the others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
