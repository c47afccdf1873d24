//! The command `cfb` does what its help says, seen from outside: what it
//! prints, what it leaves on the disk, and how it exits.
#![cfg(feature = "cli")]

mod changing;
mod compacting;
mod hostile;
mod packing;
mod reading;
mod repairing;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The command, ready for its arguments.
fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cfb"))
}

/// Runs the command with nothing on standard input.
fn cfb<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Run {
    Run(command().args(args).stdin(Stdio::null()).output().expect("the command starts"))
}

/// Runs the command with `input` on standard input.
fn cfb_with_input<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>, input: &[u8]) -> Run {
    let mut child = command()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // A command that refuses may be gone before it has read anything.
    let _ = child.stdin.take().expect("it is piped").write_all(input);
    Run(child.wait_with_output().expect("the command ends"))
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

    /// Exit code 2, an error that says `why`, and nothing on standard output.
    #[track_caller]
    fn refused(&self, why: &str) {
        assert_eq!(self.code(), Some(2), "{}", self.err());
        assert!(self.err().contains(why), "{:?} lacks {why:?}", self.err());
        assert_eq!(self.out(), "");
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.out()).expect("JSON")
    }
}

/// A folder for one test, with a file `x.cfb` to be in it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder for the test") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes files into the folder `name`. A name that ends with a slash is a folder.
    fn fill(&self, name: &str, files: &[(&str, &[u8])]) -> PathBuf {
        let folder = self.path(name);
        fs::create_dir_all(&folder).expect("a folder");
        for (name, bytes) in files {
            let path = folder.join(name);
            if name.ends_with('/') {
                fs::create_dir_all(path).expect("a folder");
            } else {
                fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
                fs::write(path, bytes).expect("a file");
            }
        }
        folder
    }

    /// Packs files into `x.cfb`.
    fn packed(&self, files: &[(&str, &[u8])]) -> PathBuf {
        let (folder, file) = (self.fill("packed", files), self.path("x.cfb"));
        cfb([OsStr::new("pack"), folder.as_os_str(), file.as_os_str()]).done();
        file
    }
}

/// A verb and its arguments, the first of them a path.
fn args<'a>(verb: &'a str, path: &'a Path, rest: &'a [&'a str]) -> Vec<&'a OsStr> {
    [OsStr::new(verb), path.as_os_str()].into_iter().chain(rest.iter().map(OsStr::new)).collect()
}

/// Everything below a folder: files with their bytes, folders with `None`.
fn tree_of(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut tree = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(folder).expect("below the folder").to_owned();
            if path.is_dir() {
                tree.insert(name, None);
                pending.push(path);
            } else {
                tree.insert(name, Some(fs::read(path).expect("a file")));
            }
        }
    }
    tree
}

/// The names directly in a folder, in order.
fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a readable name"))
        .collect();
    names.sort_unstable();
    names
}

/// Bytes that differ from place to place, so that a sector in the wrong place shows.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 512 * 7 + at % 251).to_le_bytes()[0]).collect()
}
