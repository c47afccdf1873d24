//! `object_store` on a local folder: one file an object. Without a runtime it
//! does its work on the calling thread, which is the fastest way to call it.

use std::path::{Path, PathBuf};

use futures::StreamExt;
use futures::executor::block_on;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

use super::files::sync_file_system;
use super::{Contestant, Item, Listed};

struct Local {
    store: LocalFileSystem,
    dir: PathBuf,
    fsync: bool,
}

/// A store in `dir`.
pub(super) fn open(dir: &Path, fsync: bool) -> Box<dyn Contestant> {
    let store = LocalFileSystem::new_with_prefix(dir).expect("the folder is there");
    Box::new(Local { store: store.with_fsync(fsync), dir: dir.to_owned(), fsync })
}

impl Local {
    fn put(&self, key: &str, value: &'static [u8]) {
        let key = Key::from(key);
        let put = self.store.put(&key, PutPayload::from_static(value));
        block_on(put).expect("writing works");
    }
}

impl Contestant for Local {
    fn put_batch(&self, items: &[Item]) {
        for (key, value) in items {
            self.put(key, value);
        }
        self.sync();
    }

    fn put_durable(&self, key: &str, value: &'static [u8]) {
        assert!(self.fsync, "without fsync nothing is durable alone");
        self.put(key, value);
    }

    fn put_streamed(
        &self,
        key: &str,
        _len_bytes: usize,
        pieces: &mut dyn Iterator<Item = &'static [u8]>,
    ) {
        block_on(async {
            let key = Key::from(key);
            let mut upload = self.store.put_multipart(&key).await.expect("writing begins");
            for piece in pieces {
                upload.put_part(PutPayload::from_static(piece)).await.expect("writing works");
            }
            upload.complete().await.expect("renaming works");
        });
    }

    fn sync(&self) {
        if !self.fsync {
            sync_file_system(&self.dir);
        }
    }

    fn get(&self, key: &str, see: &mut dyn FnMut(&[u8])) {
        let value = block_on(async {
            let found = self.store.get(&Key::from(key)).await.expect("the object is there");
            found.bytes().await.expect("reading works")
        });
        see(&value);
    }

    fn read_range(&self, key: &str, offset: u64, buf: &mut [u8]) {
        let range = offset..offset + buf.len() as u64;
        let value = block_on(self.store.get_range(&Key::from(key), range));
        buf.copy_from_slice(&value.expect("the object is there"));
    }

    fn delete_batch(&self, keys: &[String]) {
        let keys: Vec<_> = keys.iter().map(|key| Ok(Key::from(&**key))).collect();
        let deleted = self.store.delete_stream(futures::stream::iter(keys).boxed());
        block_on(deleted.for_each(|key| {
            key.expect("the object is there");
            std::future::ready(())
        }));
        // Deletes are not flushed by the crate.
        sync_file_system(&self.dir);
    }

    fn list(&self, prefix: &str) -> Listed {
        let folder = (!prefix.is_empty()).then(|| Key::from(prefix));
        let mut listed = Listed::default();
        block_on(self.store.list(folder.as_ref()).for_each(|object| {
            listed.add(object.expect("listing works").location.as_ref().as_bytes());
            std::future::ready(())
        }));
        listed
    }
}
