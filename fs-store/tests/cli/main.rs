//! The command `fs-store` does what its help says, seen from outside: what it
//! prints, what it leaves on the disk, and how it exits.
#![cfg(feature = "cli")]

mod many_objects;
mod moving;
mod one_object;
mod the_command;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fs_store::{OpenOptions, Store};
use tempfile::TempDir;

/// The command, ready for its arguments.
fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fs-store"))
}

/// What came of one run.
struct Run(Output);

impl Run {
    fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    fn out(&self) -> &str {
        str::from_utf8(&self.0.stdout).expect("text")
    }

    fn err(&self) -> &str {
        str::from_utf8(&self.0.stderr).expect("text")
    }

    /// Exit code 0 and silence on standard error. Gives back the output.
    #[track_caller]
    fn done(&self) -> &str {
        assert_eq!((self.code(), self.err()), (Some(0), ""));
        self.out()
    }

    /// This exit code, an error that says `why`, and nothing on standard output.
    #[track_caller]
    fn refused(&self, code: i32, why: &str) {
        assert_eq!(self.code(), Some(code), "{}", self.err());
        assert!(self.err().contains(why), "{:?} lacks {why:?}", self.err());
        assert_eq!(self.out(), "");
    }

    #[track_caller]
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.out()).expect("JSON")
    }
}

/// A folder for one test, with a store `s` in it.
struct Place {
    folder: TempDir,
}

impl Place {
    /// A place where `s` has these objects.
    fn with(objects: &[(&str, &[u8])]) -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a folder for the test") };
        let store = Store::create(place.path("s")).expect("a store");
        for (key, value) in objects {
            store.put(key, value).expect("put");
        }
        store.close().expect("closed");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the command in the folder of the test with `input` on standard input.
    fn run_with<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>, input: &[u8]) -> Run {
        let mut child = command()
            .args(args)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        let input = input.to_vec();
        // Beside the reading of the output; a command that refuses may be gone
        // before it has read anything.
        let feeding = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().expect("the command ends");
        feeding.join().expect("fed");
        Run(output)
    }

    fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Run {
        self.run_with(args, b"")
    }

    fn store(&self) -> Store {
        Store::open(self.path("s")).expect("opens")
    }

    /// All keys and values of the store `name`.
    fn contents(&self, name: &str) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let store = OpenOptions::new().read_only(true).open(self.path(name)).expect("opens");
        let list = store.list(&fs_store::ListOptions::new()).expect("listed");
        let keys = list.map(|item| item.expect("an item").key);
        keys.map(|key| (key.to_vec(), store.get(&key).expect("read").expect("there").to_vec()))
            .collect()
    }
}

/// Bytes that differ from place to place.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 512 * 7 + at % 251).to_le_bytes()[0]).collect()
}

/// All files below a folder, with their bytes.
fn files_in(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).expect("below it").to_str().expect("text");
            files.insert(name.replace('\\', "/"), fs::read(&path).expect("a file"));
        }
    }
    files
}

/// Changes a byte of the one object that has `len` bytes of `pattern`.
fn damage(place: &Place, pattern: &[u8]) {
    let path = place.path("s").join("blocks-00000");
    let mut file = fs::read(&path).expect("a block file");
    let at = file.windows(64).position(|window| window == &pattern[..64]).expect("it is there");
    file[at] ^= 1;
    fs::write(&path, file).expect("written");
}
