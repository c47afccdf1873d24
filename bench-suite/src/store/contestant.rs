//! What every workload asks of a store, and the stores that can do it.

#[cfg(feature = "store-cacache")]
mod cacache;
mod files;
#[cfg(feature = "store-fjall")]
mod fjall;
#[cfg(feature = "store-object-store")]
mod object_store;
mod ours;
#[cfg(feature = "store-redb")]
mod redb;
#[cfg(feature = "store-sqlite")]
mod sqlite;

use std::path::Path;

/// A key and its value.
pub type Item = (String, &'static [u8]);

/// An open store. Nothing here fails: a workload that meets an error measures nothing.
pub trait Contestant: Send + Sync {
    /// Stores all of `items`, at once if the store can; on the disk on return.
    fn put_batch(&self, items: &[Item]);
    /// Stores one object; on the disk on return.
    fn put_durable(&self, key: &str, value: &'static [u8]);
    /// Stores one object of `len_bytes` that comes in pieces; needs a [`Self::sync`].
    fn put_streamed(
        &self,
        key: &str,
        len_bytes: usize,
        pieces: &mut dyn Iterator<Item = &'static [u8]>,
    );
    /// Everything before this is on the disk on return.
    fn sync(&self);

    /// Shows the whole value to `see`.
    fn get(&self, key: &str, see: &mut dyn FnMut(&[u8]));
    /// Makes `buf` the whole value.
    fn get_into(&self, key: &str, buf: &mut Vec<u8>) {
        buf.clear();
        self.get(key, &mut |value| buf.extend_from_slice(value));
    }
    /// Fills `buf` from `offset` bytes into the value on.
    fn read_range(&self, key: &str, offset: u64, buf: &mut [u8]) {
        let offset = usize::try_from(offset).expect("values fit into memory");
        self.get(key, &mut |value| buf.copy_from_slice(&value[offset..][..buf.len()]));
    }

    /// Removes all of these, at once if the store can; on the disk on return.
    fn delete_batch(&self, keys: &[String]);
    /// Counts the keys that begin with `prefix`, and their bytes; visits each.
    fn list(&self, prefix: &str) -> Listed;
}

/// What was listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Number of keys.
    pub keys: usize,
    /// Bytes of all keys.
    pub key_bytes: usize,
}

impl Listed {
    /// One key more.
    pub const fn add(&mut self, key: &[u8]) {
        self.keys += 1;
        self.key_bytes += key.len();
    }
}

/// How many files a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileCount {
    /// However many objects there are.
    Few,
    /// A million of them take minutes and gigabytes.
    OneAnObject,
}

/// A store that can take part.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// As the report calls it.
    pub name: &'static str,
    /// Whether it is this workspace's.
    pub ours: bool,
    /// Whether it can flush one object by itself.
    pub durable: bool,
    /// Whether it gives out bytes of a map instead of a copy, unchecked.
    pub borrows: bool,
    /// How many files it has.
    pub files: FileCount,
    /// Creates a store in an empty folder, or opens the one that is there.
    pub open: fn(&Path) -> Box<dyn Contestant>,
}

impl Entry {
    /// A rival that flushes objects, copies values and keeps them in few files.
    pub const fn rival(name: &'static str, open: fn(&Path) -> Box<dyn Contestant>) -> Self {
        Self { name, ours: false, durable: true, borrows: false, files: FileCount::Few, open }
    }

    /// A rival with one file an object.
    const fn of_files(name: &'static str, open: fn(&Path) -> Box<dyn Contestant>) -> Self {
        Self { files: FileCount::OneAnObject, ..Self::rival(name, open) }
    }
}

/// Name of the row with one file an object, each flushed.
pub const FILES: &str = "files, fsync";

/// The stores this build has.
pub fn all() -> Vec<Entry> {
    vec![
        Entry { ours: true, ..Entry::rival("fs-store", ours::open) },
        Entry { durable: false, ..Entry::of_files("files", |dir| files::open(dir, false)) },
        Entry::of_files(FILES, |dir| files::open(dir, true)),
        #[cfg(feature = "store-object-store")]
        Entry {
            durable: false,
            ..Entry::of_files("object_store", |dir| object_store::open(dir, false))
        },
        #[cfg(feature = "store-object-store")]
        Entry::of_files("object_store, fsync", |dir| object_store::open(dir, true)),
        #[cfg(feature = "store-cacache")]
        Entry { durable: false, ..Entry::of_files("cacache", cacache::open) },
        #[cfg(feature = "store-redb")]
        Entry::rival("redb", redb::open),
        #[cfg(feature = "store-fjall")]
        Entry::rival("fjall", fjall::open),
        #[cfg(feature = "store-sqlite")]
        Entry::rival("SQLite", sqlite::open),
    ]
}

/// What every row relies on: bytes that went in come out, also after closing.
///
/// For the tests of whoever brings a contestant.
///
/// # Panics
///
/// When the store does not do what its trait says.
pub fn check(entry: &Entry, dir: &Path) {
    use super::data::{key, value};

    let store = (entry.open)(dir);
    let items: Vec<Item> = (0..20).map(|index| (key(index), value(index, 5_000))).collect();
    store.put_batch(&items);
    store.put_batch(&[(items[3].0.clone(), value(100, 70_000))]);
    if entry.durable {
        store.put_durable("other/one", value(200, 4_096));
    }
    let pieces: Vec<_> = (0..4).map(|index| value(300 + index, 64 << 10)).collect();
    store.put_streamed("other/streamed", 256 << 10, &mut pieces.iter().copied());
    store.sync();
    store.delete_batch(&[key(5), key(6)]);
    drop(store);

    let store = (entry.open)(dir);
    let whole = |key: &str| {
        let mut buf = vec![1; 10];
        store.get_into(key, &mut buf);
        let mut seen = Vec::new();
        store.get(key, &mut |value| seen.extend_from_slice(value));
        assert_eq!(buf, seen, "both ways of reading {key} in {}", entry.name);
        buf
    };
    for index in (0..20).filter(|index| ![3, 5, 6].contains(index)) {
        assert_eq!(whole(&key(index)), value(index, 5_000), "{}", entry.name);
    }
    assert_eq!(whole(&key(3)), value(100, 70_000), "{}", entry.name);
    assert_eq!(whole("other/streamed"), pieces.concat(), "{}", entry.name);
    let mut buf = [0; 1_000];
    store.read_range("other/streamed", (64 << 10) - 500, &mut buf);
    let around = [&pieces[0][(64 << 10) - 500..], &pieces[1][..500]].concat();
    assert_eq!(buf[..], around[..], "{}", entry.name);
    if entry.durable {
        assert_eq!(whole("other/one"), value(200, 4_096), "{}", entry.name);
    }
    let others = 1 + usize::from(entry.durable);
    let bytes = "other/streamed".len() + if entry.durable { "other/one".len() } else { 0 };
    assert_eq!(store.list("other/"), Listed { keys: others, key_bytes: bytes }, "{}", entry.name);
    assert_eq!(store.list("").keys, 18 + others, "{}", entry.name);
    assert_eq!(store.list("ns/").keys, 18, "{}", entry.name);
    assert_eq!(store.list("nothing/").keys, 0, "{}", entry.name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_gives_back_what_was_put() {
        for entry in all() {
            let dir = tempfile::tempdir().unwrap();
            check(&entry, dir.path());
        }
    }
}
