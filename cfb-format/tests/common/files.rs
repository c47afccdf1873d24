//! Opening, saving and judging files in memory.

use std::sync::mpsc;
use std::time::Duration;

use cfb_format::{
    CompoundFile, CreateOptions, Error, MemStorage, OpenOptions, Strictness, Version,
};

use super::raw::{Account, inspect};

/// A compound file in memory.
pub(crate) type File = CompoundFile<MemStorage>;

pub(crate) const VERSIONS: [Version; 2] = [Version::V3, Version::V4];

/// A new, empty file.
pub(crate) fn create(version: Version) -> File {
    CreateOptions::new().version(version).create_storage(MemStorage::new()).unwrap()
}

/// Opens the bytes of a file for reading and writing, with leniency.
pub(crate) fn open(bytes: &[u8]) -> Result<File, Error> {
    OpenOptions::new().write(true).open_storage(MemStorage::from(bytes.to_vec()))
}

/// Opens the bytes of a file strictly.
pub(crate) fn open_strict(bytes: &[u8]) -> Result<File, Error> {
    let options = OpenOptions::new().write(true).strictness(Strictness::Strict);
    options.open_storage(MemStorage::from(bytes.to_vec()))
}

/// The file's bytes, after a flush.
pub(crate) fn saved(file: &File) -> Vec<u8> {
    file.flush().unwrap();
    file.storage().to_vec()
}

/// Flushes the file and has its bytes judged: by hand, by a strict open, and by the library's own check.
#[track_caller]
pub(crate) fn judged(file: &File) -> (Vec<u8>, Account) {
    let bytes = saved(file);
    let account = inspect(&bytes).expect_sound();
    let strict = open_strict(&bytes).expect("a sound file opens strict");
    assert_eq!(strict.check().unwrap(), [], "the library's own check agrees");
    (bytes, account)
}

/// Runs `work` in a thread of its own and panics if it takes longer than any sensible run could.
#[track_caller]
pub(crate) fn ends(what: &str, work: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        work();
        done.send(()).expect("the test waits");
    });
    let waited = wait.recv_timeout(Duration::from_mins(2));
    assert_ne!(waited, Err(mpsc::RecvTimeoutError::Timeout), "{what} does not end");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
