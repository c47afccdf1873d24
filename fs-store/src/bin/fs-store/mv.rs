//! `fs-store mv`: another key for an object.

use std::ffi::OsString;
use std::path::PathBuf;

use fs_store::PutOptions;

use crate::failure::{Context, Failure};
use crate::{Outcome, escape};

/// Give an object another key
#[derive(clap::Args)]
#[command(after_help = "\
One step: nobody sees both or neither. The bytes stay where they are.

Examples:
  fs-store mv store upload/17 photos/1
  fs-store mv --new store upload/17 photos/1")]
pub(crate) struct Args {
    /// The store
    store: PathBuf,
    /// The key that has the object
    from: OsString,
    /// The key that gets it; what it has is deleted
    to: OsString,
    /// Only if TO has no object
    #[arg(long)]
    new: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = crate::open_to_change(&args.store, false)?;
    let options = PutOptions::new();
    let options = if args.new { options.create_only() } else { options };
    let (from, to) = (escape::bytes_of(&args.from), escape::bytes_of(&args.to));
    let moved = store.rename_with(from, to, &options);
    moved.doing(|| format!("cannot move {}", crate::shown(&args.from)))?;
    crate::close(store, &args.store)?;
    Ok(Outcome::Done)
}
