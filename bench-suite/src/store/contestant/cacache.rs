//! cacache: content-addressed files and an index of one file a key.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use cacache::{RemoveOpts, SyncReader, SyncWriter};

use super::files::sync_file_system;
use super::{Contestant, Item, Listed};

struct Cacache {
    dir: PathBuf,
}

/// A store in `dir`.
pub(super) fn open(dir: &Path) -> Box<dyn Contestant> {
    Box::new(Cacache { dir: dir.to_owned() })
}

impl Contestant for Cacache {
    fn put_batch(&self, items: &[Item]) {
        for (key, value) in items {
            cacache::write_sync(&self.dir, key, value).expect("writing works");
        }
        self.sync();
    }

    fn put_durable(&self, _key: &str, _value: &'static [u8]) {
        unreachable!("cacache never flushes");
    }

    fn put_streamed(
        &self,
        key: &str,
        _len_bytes: usize,
        pieces: &mut dyn Iterator<Item = &'static [u8]>,
    ) {
        let mut writer = SyncWriter::create(&self.dir, key).expect("writing begins");
        for piece in pieces {
            writer.write_all(piece).expect("writing works");
        }
        writer.commit().expect("committing works");
    }

    fn sync(&self) {
        sync_file_system(&self.dir);
    }

    fn get(&self, key: &str, see: &mut dyn FnMut(&[u8])) {
        see(&cacache::read_sync(&self.dir, key).expect("the object is there"));
    }

    fn read_range(&self, key: &str, offset: u64, buf: &mut [u8]) {
        // The reader does not seek; what is before the range has to be read.
        let mut reader = SyncReader::open(&self.dir, key).expect("the object is there");
        std::io::copy(&mut reader.by_ref().take(offset), &mut std::io::sink()).expect("reading");
        reader.read_exact(buf).expect("reading works");
    }

    fn delete_batch(&self, keys: &[String]) {
        for key in keys {
            let fully = RemoveOpts::new().remove_fully(true);
            fully.remove_sync(&self.dir, key).expect("the object is there");
        }
        self.sync();
    }

    fn list(&self, prefix: &str) -> Listed {
        let mut listed = Listed::default();
        for object in cacache::list_sync(&self.dir) {
            // Of an empty store, not even the folder of the index is there.
            let Ok(object) = object else { continue };
            if object.key.starts_with(prefix) {
                listed.add(object.key.as_bytes());
            }
        }
        listed
    }
}
