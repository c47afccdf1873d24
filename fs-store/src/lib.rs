//! An embedded store for blobs in sector-allocated block files.
//!
//! (design text to come)

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
pub use disk::{DirDisk, Disk, DiskFile, MemDisk};
pub use error::{Error, Result};
pub use key::Key;
pub use list::{Item, List, ListOptions};
pub use options::{Durability, OpenOptions, PutOptions};
pub use reader::Reader;
pub use snapshot::Snapshot;
pub use store::{MAX_KEY_BYTES, MAX_METADATA_BYTES, Stat, Store, Usage};
pub use verify::Report;
pub use writer::Writer;
