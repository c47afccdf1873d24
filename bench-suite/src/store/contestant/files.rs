//! One file an object: written under another name, then renamed.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Contestant, Item, Listed};

/// A folder; keys are paths in it.
struct Files {
    dir: PathBuf,
    /// Flushes each file and its folder; else the file system once, in the end.
    fsync: bool,
    /// For names of files that are not finished.
    next: AtomicU64,
}

/// A store in `dir`.
pub(super) fn open(dir: &Path, fsync: bool) -> Box<dyn Contestant> {
    Box::new(Files { dir: dir.to_owned(), fsync, next: AtomicU64::new(0) })
}

/// Where files are until they are whole.
const UNFINISHED: &str = ".unfinished";

/// Flushes everything on the file system that `dir` is on.
pub(super) fn sync_file_system(dir: &Path) {
    let dir = File::open(dir).expect("the folder opens");
    rustix::fs::syncfs(&dir).expect("the file system flushes");
}

impl Files {
    fn path(&self, key: &str) -> PathBuf {
        self.dir.join(key)
    }

    fn put(&self, key: &str, pieces: &mut dyn Iterator<Item = &'static [u8]>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.dir.join(format!("{UNFINISHED}-{number}"));
        let mut file = File::create_new(&unfinished).expect("the file is new");
        for piece in pieces {
            file.write_all(piece).expect("writing works");
        }
        if self.fsync {
            file.sync_data().expect("flushing works");
        }
        let path = self.path(key);
        let folder = path.parent().expect("it is in the folder");
        match fs::rename(&unfinished, &path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(folder).expect("creating a folder works");
                fs::rename(&unfinished, &path).expect("renaming works");
                if self.fsync {
                    sync_folder(&self.dir);
                }
            }
            renamed => renamed.expect("renaming works"),
        }
        if self.fsync {
            sync_folder(folder);
        }
    }
}

/// Makes names in a folder durable.
fn sync_folder(folder: &Path) {
    File::open(folder).and_then(|folder| folder.sync_all()).expect("flushing works");
}

impl Contestant for Files {
    fn put_batch(&self, items: &[Item]) {
        for (key, value) in items {
            self.put(key, &mut std::iter::once(*value));
        }
        self.sync();
    }

    fn put_durable(&self, key: &str, value: &'static [u8]) {
        assert!(self.fsync, "without fsync nothing is durable alone");
        self.put(key, &mut std::iter::once(value));
    }

    fn put_streamed(
        &self,
        key: &str,
        _len_bytes: usize,
        pieces: &mut dyn Iterator<Item = &'static [u8]>,
    ) {
        self.put(key, pieces);
    }

    fn sync(&self) {
        if !self.fsync {
            sync_file_system(&self.dir);
        }
    }

    fn get(&self, key: &str, see: &mut dyn FnMut(&[u8])) {
        see(&fs::read(self.path(key)).expect("the object is there"));
    }

    fn get_into(&self, key: &str, buf: &mut Vec<u8>) {
        buf.clear();
        let mut file = File::open(self.path(key)).expect("the object is there");
        file.read_to_end(buf).expect("reading works");
    }

    fn read_range(&self, key: &str, offset: u64, buf: &mut [u8]) {
        let file = File::open(self.path(key)).expect("the object is there");
        file.read_exact_at(buf, offset).expect("reading works");
    }

    fn delete_batch(&self, keys: &[String]) {
        for key in keys {
            fs::remove_file(self.path(key)).expect("the object is there");
        }
        if self.fsync {
            let mut folders: Vec<_> =
                keys.iter().filter_map(|key| self.path(key).parent().map(Path::to_owned)).collect();
            folders.dedup();
            for folder in folders {
                sync_folder(&folder);
            }
        } else {
            self.sync();
        }
    }

    fn list(&self, prefix: &str) -> Listed {
        let mut listed = Listed::default();
        walk(&self.dir, "", prefix, &mut listed);
        listed
    }
}

/// Adds the files below `dir`, whose keys begin with `above`.
fn walk(dir: &Path, above: &str, prefix: &str, listed: &mut Listed) {
    for entry in fs::read_dir(dir).expect("the folder is there") {
        let entry = entry.expect("the folder is there");
        let name = entry.file_name();
        let name = name.to_str().expect("keys are UTF-8");
        if entry.file_type().expect("the kind is known").is_dir() {
            let below = format!("{above}{name}/");
            if below.starts_with(prefix) || prefix.starts_with(&below) {
                walk(&entry.path(), &below, prefix, listed);
            }
        } else {
            let key = format!("{above}{name}");
            if key.starts_with(prefix) && !name.starts_with(UNFINISHED) {
                listed.add(key.as_bytes());
            }
        }
    }
}
