//! A compound file laid out flat: every entry with its path and what can be read of it.

use std::collections::HashMap;

use cfb_format::{CompoundFile, Entry, EntryId, Storage};
use sha2::{Digest, Sha256};

use super::golden::{Components, Name};

/// The content of a stream, or of as much as could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// Bytes that could be read.
    pub(crate) len: u64,
    /// First 16 hex digits of their SHA-256.
    pub(crate) hash: String,
    /// Why the rest could not.
    pub(crate) error: Option<String>,
}

impl Content {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            len: bytes.len() as u64,
            hash: short_hash(Sha256::new_with_prefix(bytes)),
            error: None,
        }
    }
}

/// An entry, its path from below the root, and what a stream holds.
pub(crate) struct Item {
    pub(crate) path: Components,
    pub(crate) entry: Entry,
    /// `None` for a storage.
    pub(crate) content: Option<Content>,
}

/// All entries but the root, depth first, every stream read to its end.
pub(crate) fn contents<S: Storage>(file: &CompoundFile<S>) -> Vec<Item> {
    let mut paths: HashMap<EntryId, Components> = HashMap::new();
    let mut items = Vec::new();
    for entry in file.walk() {
        let path = match entry.parent() {
            None => Components::new(),
            Some(parent) => {
                let mut path = paths[&parent].clone();
                path.push(Name(entry.name_utf16().to_vec()));
                path
            }
        };
        paths.insert(entry.id(), path.clone());
        if !entry.is_root() {
            let content = entry.is_stream().then(|| read(file, &entry));
            items.push(Item { path, entry, content });
        }
    }
    items
}

/// Reads a stream in pieces: a forged length must cost nothing.
fn read<S: Storage>(file: &CompoundFile<S>, entry: &Entry) -> Content {
    read_up_to(file, entry, u64::MAX)
}

/// The first `limit` bytes of a stream, or less where it ends or is damaged.
pub(crate) fn read_up_to<S: Storage>(file: &CompoundFile<S>, entry: &Entry, limit: u64) -> Content {
    let mut hash = Sha256::new();
    let mut len = 0;
    let stream = match file.open_stream(entry) {
        Ok(stream) => stream,
        Err(error) => {
            return Content { len, hash: short_hash(hash), error: Some(error.to_string()) };
        }
    };
    let mut buf = vec![0; 64 << 10];
    loop {
        let want = limit.saturating_sub(len).min(buf.len() as u64) as usize;
        match stream.read_at(&mut buf[..want], len) {
            Ok(0) => return Content { len, hash: short_hash(hash), error: None },
            Ok(read) => {
                hash.update(&buf[..read]);
                len += read as u64;
            }
            Err(error) => {
                return Content { len, hash: short_hash(hash), error: Some(error.to_string()) };
            }
        }
    }
}

fn short_hash(hash: Sha256) -> String {
    use std::fmt::Write;
    let digest = hash.finalize();
    digest[..8].iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}
