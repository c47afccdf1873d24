//! `fs-store rm`: objects out of a store.

use std::ffi::OsString;
use std::path::PathBuf;

use fs_store::{Batch, ListOptions, PutOptions};

use crate::failure::{Context, Failure, print};
use crate::{Outcome, escape, show};

/// Deletions in one commit, when all with a prefix go.
const BATCH_KEYS: usize = 10_000;

/// Delete objects
#[derive(clap::Args)]
#[command(after_help = "\
Keys that are named go together or not at all: if one of them has no object, none is
deleted and the exit code is 1. Those with a prefix go in steps of 10,000.

Examples:
  fs-store rm store photos/1 photos/2
  fs-store rm store --prefix tmp/")]
pub(crate) struct Args {
    /// The store
    store: PathBuf,
    /// The keys
    #[arg(required_unless_present = "prefix")]
    key: Vec<OsString>,
    /// Delete everything that begins with this
    #[arg(short, long, value_name = "TEXT", conflicts_with = "key")]
    prefix: Option<OsString>,
    /// Do not mind keys that have no object
    #[arg(short, long)]
    force: bool,
    /// Print how many were deleted, as a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let doing = || format!("cannot delete from {}", show::path(&args.store));
    let store = crate::open_to_change(&args.store, false)?;
    let before = store.usage().doing(doing)?.objects;
    if let Some(prefix) = &args.prefix {
        let options = ListOptions::new().prefix(escape::bytes_of(prefix)).keys_only();
        let mut batch = Batch::new();
        for item in store.list(&options).doing(doing)? {
            batch.delete(item.doing(doing)?.key);
            if batch.len() == BATCH_KEYS {
                store.commit(std::mem::take(&mut batch)).doing(doing)?;
            }
        }
        store.commit(batch).doing(doing)?;
    } else {
        let mut keys: Vec<Vec<u8>> = args.key.iter().map(|key| escape::bytes_of(key)).collect();
        // What is named twice goes once.
        keys.sort_unstable();
        keys.dedup();
        let mut batch = Batch::new();
        for key in keys {
            let options = PutOptions::new();
            batch.delete_with(key, &if args.force { options } else { options.replace_only() });
        }
        store.commit(batch).doing(doing)?;
    }
    let after = store.usage().doing(doing)?.objects;
    crate::close(store, &args.store)?;
    if args.json {
        print(|out| writeln!(out, "{}", serde_json::json!({ "deleted": before - after })))?;
    }
    Ok(Outcome::Done)
}
