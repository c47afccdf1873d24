//! `fs-store`, as it comes.

use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use fs_store::{Batch, Durability, ListOptions, OpenOptions, PutOptions, Store};

use super::{Contestant, Item, Listed};

/// The store, until it is closed.
struct Ours(Option<Store>);

/// A store in `dir`.
pub(super) fn open(dir: &Path) -> Box<dyn Contestant> {
    Box::new(Ours(Some(OpenOptions::new().create(true).open(dir).expect("the store opens"))))
}

impl Ours {
    fn store(&self) -> &Store {
        self.0.as_ref().expect("it is open until it is dropped")
    }

    fn commit(&self, batch: Batch) {
        self.store().commit_with(batch, Durability::Group).expect("committing works");
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        if let Some(store) = self.0.take() {
            store.close().expect("closing works");
        }
    }
}

impl Contestant for Ours {
    fn put_batch(&self, items: &[Item]) {
        let mut batch = Batch::new();
        for (key, value) in items {
            batch.put(&**key, Bytes::from_static(value));
        }
        self.commit(batch);
    }

    fn put_durable(&self, key: &str, value: &'static [u8]) {
        let durable = PutOptions::new().durability(Durability::Group);
        self.store().put_with(key, value, &durable).expect("putting works");
    }

    fn put_streamed(
        &self,
        key: &str,
        _len_bytes: usize,
        pieces: &mut dyn Iterator<Item = &'static [u8]>,
    ) {
        let mut writer = self.store().writer(key).expect("writing begins");
        for piece in pieces {
            writer.write_all(piece).expect("writing works");
        }
        writer.commit().expect("committing works");
    }

    fn sync(&self) {
        self.store().sync().expect("flushing works");
    }

    fn get(&self, key: &str, see: &mut dyn FnMut(&[u8])) {
        see(&self.store().get(key).expect("reading works").expect("the object is there"));
    }

    fn get_into(&self, key: &str, buf: &mut Vec<u8>) {
        assert!(self.store().get_into(key, buf).expect("reading works"), "{key} is there");
    }

    fn read_range(&self, key: &str, offset: u64, buf: &mut [u8]) {
        let reader = self.store().reader(key).expect("reading works");
        let mut reader = reader.expect("the object is there");
        reader.read_exact_at(buf, offset).expect("reading works");
    }

    fn delete_batch(&self, keys: &[String]) {
        let mut batch = Batch::new();
        for key in keys {
            batch.delete(&**key);
        }
        self.commit(batch);
    }

    fn list(&self, prefix: &str) -> Listed {
        let mut listed = Listed::default();
        let options = ListOptions::new().prefix(prefix).keys_only();
        for item in self.store().list(&options).expect("listing begins") {
            listed.add(&item.expect("listing works").key);
        }
        listed
    }
}
