//! fjall: a log-structured merge tree whose values lie in blob files.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};

use super::{Contestant, Item, Listed};

/// Bytes of the cache: no workload reads more than this again and again.
const CACHE_BYTES: u64 = 512 << 20;

struct Fjall {
    db: Database,
    objects: Keyspace,
}

/// A store in `dir`.
pub(super) fn open(dir: &Path) -> Box<dyn Contestant> {
    let db = Database::builder(dir).cache_size(CACHE_BYTES).open().expect("fjall opens");
    let separated = || {
        KeyspaceCreateOptions::default().with_kv_separation(Some(KvSeparationOptions::default()))
    };
    let objects = db.keyspace("objects", separated).expect("the keyspace opens");
    Box::new(Fjall { db, objects })
}

impl Contestant for Fjall {
    fn put_batch(&self, items: &[Item]) {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        for (key, value) in items {
            batch.insert(&self.objects, &**key, *value);
        }
        batch.commit().expect("committing works");
    }

    fn put_durable(&self, key: &str, value: &'static [u8]) {
        self.objects.insert(key, value).expect("inserting works");
        self.sync();
    }

    fn put_streamed(
        &self,
        key: &str,
        len_bytes: usize,
        pieces: &mut dyn Iterator<Item = &'static [u8]>,
    ) {
        let mut value = Vec::with_capacity(len_bytes);
        pieces.for_each(|piece| value.extend_from_slice(piece));
        self.objects.insert(key, value).expect("inserting works");
    }

    fn sync(&self) {
        self.db.persist(PersistMode::SyncData).expect("flushing works");
    }

    fn get(&self, key: &str, see: &mut dyn FnMut(&[u8])) {
        see(&self.objects.get(key).expect("reading works").expect("the object is there"));
    }

    fn delete_batch(&self, keys: &[String]) {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        for key in keys {
            batch.remove(&self.objects, &**key);
        }
        batch.commit().expect("committing works");
    }

    fn list(&self, prefix: &str) -> Listed {
        let mut listed = Listed::default();
        for item in self.objects.prefix(prefix) {
            listed.add(&item.key().expect("listing works"));
        }
        listed
    }
}
