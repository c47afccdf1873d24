//! `fs-store get`: one object into a file.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;

use crate::copying::Copier;
use crate::failure::{Context, Failure};
use crate::progress::Progress;
use crate::staged::Staged;
use crate::{Outcome, escape, show};

/// Write an object to a file
#[derive(clap::Args)]
#[command(after_help = "\
The file appears when it is complete. Of a damaged object no file is made; cat gives
what is before the damage.

Examples:
  fs-store get store photos/1 picture.jpg
  fs-store get store photos/1 folder/")]
pub(crate) struct Args {
    /// The store
    store: PathBuf,
    /// The key of the object
    key: OsString,
    /// The file; in a folder it gets the last name of the key
    file: PathBuf,
    /// Replace the file if it is there
    #[arg(short, long)]
    force: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = crate::open(&args.store)?;
    let key = escape::bytes_of(&args.key);
    let doing = || format!("cannot get {}", crate::shown(&args.key));
    let reader = store.reader(&key).doing(doing)?;
    let mut reader = reader
        .ok_or_else(|| Failure::because(doing(), fs_store::Error::NotFound { key: key.clone() }))?;
    let target = if args.file.is_dir() {
        let last = key.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        args.file.join(escape::file_name(last))
    } else {
        args.file.clone()
    };
    let making = || format!("cannot make {}", show::path(&target));
    if !args.force && target.symlink_metadata().is_ok() {
        return Err(Failure::because(making(), "it is there already; --force replaces it"));
    }
    let staged = Staged::beside(&target);
    let mut file = File::create_new(staged.path()).doing(making)?;
    let len = reader.len();
    let mut progress = Progress::new("reading", Some(len));
    let damage = Copier::new().copy(&mut reader, 0, len, &mut file, &mut progress).doing(making)?;
    drop(progress);
    if let Some(damage) = damage {
        let damage = crate::explain(&args.store, &key, reader.stat().version, damage);
        return Err(Failure::because(doing(), damage));
    }
    drop(file);
    staged.publish(args.force).doing(making)?;
    Ok(Outcome::Done)
}
