//! An embedded store for blobs, in a few files of sectors.
//!
//! For programs that keep many values of any size under a key: content-addressed
//! blocks, caches, attachments, build artefacts, thumbnails. Values are streamed
//! in and out, read in ranges, checked on every read; changes to many keys are one
//! commit; a durable put costs one write and one flush; what is deleted can be
//! used again at once, without compaction.
//!
//! ```
//! use fs_store::{Batch, Durability, ListOptions, Store};
//!
//! let dir = tempfile::tempdir()?;
//! let store = Store::create(dir.path())?;
//! store.put("notes/1", b"first")?;
//! store.put_reader("video", std::io::repeat(7).take(1 << 20))?;
//!
//! // several changes, all or none, safe when the call returns
//! let mut batch = Batch::new();
//! batch.put("notes/2", "second").rename("notes/1", "notes/old/1");
//! store.commit_with(batch, Durability::Sync)?;
//!
//! let keys = store.list(&ListOptions::new().prefix("notes/"))?;
//! let keys: Vec<_> = keys.map(|item| item.map(|item| item.key)).collect::<Result<_, _>>()?;
//! assert_eq!(keys, ["notes/2", "notes/old/1"]);
//! assert_eq!(store.get_range("video", 1000..1004)?.as_deref(), Some(&[7; 4][..]));
//! store.close()?;
//! # use std::io::Read;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The model
//!
//! 1. A store is a directory with block files of sectors (4 KiB unless chosen
//!    otherwise) and a lock file. One process writes at a time, any others can
//!    read.
//! 2. A key is 1 to 4,096 bytes. It has one object, or none. An object is its
//!    bytes, their length and checksum, two times, a version and metadata. It is
//!    never changed: a put makes another one.
//! 3. Everything is a commit: a put, a delete, a rename, a [`Batch`] of them. It
//!    happens wholly or not at all. Commits are numbered; the number is the
//!    version of the objects that it puts.
//! 4. Durability is said, not guessed: [`Durability::Buffered`] survives the
//!    process, [`Durability::Group`] and [`Durability::Sync`] the machine.
//! 5. A [`Reader`] and a [`Snapshot`] see what was there when they were made.
//! 6. No wrong byte is given out: bytes are checked in chunks of 16 KiB, by
//!    CRC-32C, before anyone gets them.
//!
//! # Where a value goes
//!
//! | value | place | cost of a durable put |
//! |---|---|---|
//! | up to 512 B | its entry in the index | one write, one flush |
//! | up to 32 KiB, durable | the journal; sectors at the next fold | one write, one flush |
//! | everything else | sectors, at once, never twice | two writes, one flush |
//!
//! # How it is made
//!
//! ```text
//!   put ──► sectors (data)                    ┌─ get: live map ─► index ─► sectors
//!    │                                        │
//!    └───► journal (one frame a commit) ─fold─┴─► index, free map, superblock
//! ```
//!
//! Data goes straight to sectors that nothing refers to. A commit is a frame in
//! the journal that names them, with the checksums of the data and its own, so
//! that one flush makes both durable: a frame that was not known to be on the
//! medium counts only if all its checksums hold. What is in the journal is in
//! memory too, by key; when the journal is full, a fold brings it into the index,
//! which is a tree of nodes that are never changed, writes the pages of the free
//! map that differ, and names all of it in a superblock. Commits go on meanwhile.
//!
//! Sectors that a commit gives up are used again when the commit is durable and
//! nobody can see them any more. So nothing that a crash would bring back, and
//! nothing that a reader looks at, is ever overwritten.
//!
//! Opening reads the superblock, the free map and what is in the journal: not the
//! objects. A store that was closed has nothing in its journal.
//!
//! The bytes on disk, and what is assumed of it, are in `FORMAT.md`; why the
//! index is what it is, in `DESIGN.md`.
//!
//! # When something fails
//!
//! A call that gives an error has done nothing, but for two: after a failed write
//! of the journal or a failed flush nobody knows what is on the medium. The store
//! then says [`Error::Broken`] to whoever wants to write, can still be read, and
//! is whole again when it is opened anew. A full disk is [`Error::Full`] for puts;
//! reads and deletes go on, in room that is kept for them.
//!
//! # Costs
//!
//! Memory: the commits that are not folded yet (at most the journal's length,
//! 16 MiB unless chosen otherwise), a cache of the index (16 MiB), and 1.3 bits a
//! sector for the free map, twice. A get of a key that is in the caches is one read;
//! otherwise one more for a node of the index. A list reads the nodes it passes.
//! Deletes and renames touch no data.
//!
//! # Features
//!
//! - `cli`: the command `fs-store`.
//! - `mmap`: `Store::get_mapped`, which borrows bytes from a map of the file.

mod batch;
mod block_file;
mod checksum;
mod codec;
mod data;
mod disk;
mod engine;
mod error;
mod extent;
mod fold;
mod frame;
mod free_map;
mod journal;
mod key;
mod layout;
mod list;
mod live;
#[cfg(feature = "mmap")]
mod mapped;
mod object;
mod open;
mod options;
mod reader;
mod snapshot;
mod space;
mod store;
mod tree;
mod verify;
mod writer;

pub use batch::Batch;
pub use disk::{DirDisk, Disk, DiskFile, Mapping, MemDisk};
pub use error::{Error, Result};
pub use key::Key;
pub use list::{Item, List, ListOptions};
#[cfg(feature = "mmap")]
pub use mapped::Mapped;
pub use options::{Durability, OpenOptions, PutOptions};
pub use reader::Reader;
pub use snapshot::Snapshot;
pub use store::{MAX_KEY_BYTES, MAX_METADATA_BYTES, Stat, Store, Usage};
pub use verify::Report;
pub use writer::Writer;

/// The examples of the README are compiled and run with the others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
