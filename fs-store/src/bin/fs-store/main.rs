//! The command `fs-store`: looks into stores of blobs and changes them.
//!
//! One file a verb. Around them: [`escape`] (keys for terminals and file
//! systems), [`copying`] (bytes in and out), [`staged`] (files that appear whole
//! or not at all), [`progress`], [`show`] and [`failure`].
//!
//! Standard output carries the result and nothing else. Everything said about
//! the work goes to standard error.

mod cat;
mod copying;
mod du;
mod escape;
mod export;
mod failure;
mod get;
mod import;
mod ls;
mod mv;
mod progress;
mod put;
mod rm;
mod show;
mod staged;
mod stat;
mod trim;
mod verify;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fs_store::{Error, OpenOptions, Store};

use crate::failure::{Context, Failure, report};

/// Looks into and changes stores of blobs.
#[derive(Parser)]
#[command(name = "fs-store", version, after_help = HELP)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const HELP: &str = "\
A store is a directory. When a verb that changes it ends with 0, what it did is on the
medium; one program at a time can change a store, others can read it meanwhile. Reading
while much is changed can end with an error that another try does not have.

Keys:
  A key is any bytes. What a terminal cannot carry is written %XX, one byte each, and a
  % that could be taken for that is %25. Keys in arguments are given in the same form.

Exit codes:
  0  done
  1  not there, not as asked for, or something is damaged or was left out: standard
     error says what
  2  not done, or the command line is wrong

Examples:
  fs-store put --create store photos/1 picture.jpg
  date | fs-store put store stamp
  fs-store cat store stamp
  fs-store ls -l store --prefix photos/
  fs-store import --create store folder
  fs-store export store - | gzip > store.tar.gz
  fs-store verify store";

#[derive(Subcommand)]
enum Verb {
    Put(put::Args),
    Get(get::Args),
    Cat(cat::Args),
    Ls(ls::Args),
    Rm(rm::Args),
    Mv(mv::Args),
    Stat(stat::Args),
    Du(du::Args),
    Verify(verify::Args),
    Trim(trim::Args),
    Import(import::Args),
    Export(export::Args),
}

/// How a verb ended, when it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// All of it is done.
    Done,
    /// Something was not there, damaged or left out, and has been reported.
    Partial,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Partial) => ExitCode::from(1),
        // Whoever read our output has seen enough: `fs-store ls x | head -1`.
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(cli: Cli) -> Result<Outcome, Failure> {
    match cli.verb {
        Verb::Put(args) => put::run(&args),
        Verb::Get(args) => get::run(&args),
        Verb::Cat(args) => cat::run(&args),
        Verb::Ls(args) => ls::run(&args),
        Verb::Rm(args) => rm::run(&args),
        Verb::Mv(args) => mv::run(&args),
        Verb::Stat(args) => stat::run(&args),
        Verb::Du(args) => du::run(&args),
        Verb::Verify(args) => verify::run(&args),
        Verb::Trim(args) => trim::run(&args),
        Verb::Import(args) => import::run(&args),
        Verb::Export(args) => export::run(&args),
    }
}

/// Opens a store to read it.
fn open(path: &Path) -> Result<Store, Failure> {
    let options = OpenOptions::new().read_only(true);
    options.open(path).doing(|| format!("cannot open {}", show::path(path)))
}

/// What looks like damage to version `version` of an object, in a store that is open
/// for reading: its writer may have put something else there since.
fn explain(path: &Path, key: &[u8], version: u64, damage: Error) -> Error {
    let now = OpenOptions::new().read_only(true).open(path).and_then(|store| store.stat(key));
    match now {
        Ok(stat) if stat.as_ref().map(|stat| stat.version) != Some(version) => {
            Error::ChangedUnderneath
        }
        _ => damage,
    }
}

/// Opens a store to change it.
fn open_to_change(path: &Path, create: bool) -> Result<Store, Failure> {
    let options = OpenOptions::new().create(create);
    options.open(path).doing(|| format!("cannot open {} for writing", show::path(path)))
}

/// Brings what was done to the medium.
fn close(store: Store, path: &Path) -> Result<(), Failure> {
    store.close().doing(|| format!("cannot save {}", show::path(path)))
}

/// A key as it was typed, for messages.
fn shown(key: &OsString) -> String {
    escape::printable(&key.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_that_of_the_version_that_is_still_there() {
        let dir = tempfile::tempdir().expect("a folder for the test");
        let store = Store::create(dir.path()).expect("a store");
        let old = store.put("a", b"1").expect("put").version;
        let damage = |version| {
            let (key, file) = (b"a".to_vec(), String::new());
            let damage = Error::Corrupt { key, start: 0, end: 1, file, offset: 0 };
            explain(dir.path(), b"a", version, damage)
        };
        assert!(matches!(damage(old), Error::Corrupt { .. }));
        let new = store.put("a", b"2").expect("put").version;
        assert!(matches!(damage(old), Error::ChangedUnderneath));
        assert!(matches!(damage(new), Error::Corrupt { .. }));
        store.delete("a").expect("deleted");
        assert!(matches!(damage(new), Error::ChangedUnderneath));
    }
}
