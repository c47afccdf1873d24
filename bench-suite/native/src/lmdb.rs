//! LMDB: a copy-on-write B-tree in a map. Values are read where they lie.

use std::io::Write;
use std::path::Path;

use bench_suite::store::contestant::{Contestant, Item, Listed};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvOpenOptions, WithTls};

/// Bytes of address space: a map cannot grow while it is used.
const MAP_BYTES: usize = 64 << 30;

struct Lmdb {
    env: Env<WithTls>,
    objects: Database<'static, Bytes, Bytes>,
}

/// A store in `dir`.
pub(crate) fn open(dir: &Path) -> Box<dyn Contestant> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES).max_readers(256);
    #[allow(unsafe_code, reason = "no other process writes to a folder that was just made")]
    let env = unsafe { options.open(dir) }.expect("LMDB opens");
    let batch = env.write_txn().expect("writing begins");
    let objects = env.create_databases_and_commit(batch, |databases, batch| {
        databases.create_database(batch, None).map(CommitOrAbort::<_, ()>::Commit)
    });
    let objects = objects.expect("the database opens").unwrap_commit();
    Box::new(Lmdb { env, objects })
}

impl Contestant for Lmdb {
    fn put_batch(&self, items: &[Item]) {
        let mut batch = self.env.write_txn().expect("writing begins");
        for (key, value) in items {
            self.objects.put(&mut batch, key.as_bytes(), value).expect("inserting works");
        }
        batch.commit().expect("committing works");
    }

    fn put_durable(&self, key: &str, value: &'static [u8]) {
        let mut batch = self.env.write_txn().expect("writing begins");
        self.objects.put(&mut batch, key.as_bytes(), value).expect("inserting works");
        batch.commit().expect("committing works");
    }

    fn put_streamed(
        &self,
        key: &str,
        len_bytes: usize,
        pieces: &mut dyn Iterator<Item = &'static [u8]>,
    ) {
        let mut batch = self.env.write_txn().expect("writing begins");
        self.objects
            .put_reserved(&mut batch, key.as_bytes(), len_bytes, |place| {
                for piece in &mut *pieces {
                    place.write_all(piece)?;
                }
                Ok(())
            })
            .expect("inserting works");
        batch.commit().expect("committing works");
    }

    fn sync(&self) {
        // Each commit has flushed.
    }

    fn get(&self, key: &str, see: &mut dyn FnMut(&[u8])) {
        let read = self.env.read_txn().expect("reading begins");
        let value = self.objects.get(&read, key.as_bytes()).expect("reading works");
        see(value.expect("the object is there"));
    }

    fn delete_batch(&self, keys: &[String]) {
        let mut batch = self.env.write_txn().expect("writing begins");
        for key in keys {
            let was_there = self.objects.delete(&mut batch, key.as_bytes());
            assert!(was_there.expect("removing works"), "{key} is there");
        }
        batch.commit().expect("committing works");
    }

    fn list(&self, prefix: &str) -> Listed {
        let read = self.env.read_txn().expect("reading begins");
        let mut listed = Listed::default();
        if prefix.is_empty() {
            for item in self.objects.iter(&read).expect("listing works") {
                listed.add(item.expect("listing works").0);
            }
        } else {
            let items = self.objects.prefix_iter(&read, prefix.as_bytes());
            for item in items.expect("listing works") {
                listed.add(item.expect("listing works").0);
            }
        }
        listed
    }
}
