//! `cfb rm`: entries out of a compound file.

use std::collections::HashSet;
use std::path::PathBuf;

use cfb_format::{Entry, EntryId, EntryKind, Strictness};

use crate::failure::{Context, Failure};
use crate::{Compound, Outcome, lookup, show};

/// Remove streams and storages
#[derive(clap::Args)]
#[command(after_help = "\
If one of the entries cannot be removed as asked, none is.

Examples:
  cfb rm report.doc Thumbnail
  cfb rm -r report.doc Macros")]
pub(crate) struct Args {
    /// The compound file
    file: PathBuf,
    /// The entries
    #[arg(required = true)]
    path: Vec<String>,
    /// Remove storages too, with everything below
    #[arg(short, long)]
    recursive: bool,
}

pub(crate) fn run(args: &Args, strictness: Strictness) -> Result<Outcome, Failure> {
    let doing = || format!("cannot change {}", show::path(&args.file));
    let file = crate::open_to_change(&args.file, strictness)?;
    let mut entries = Vec::new();
    for path in &args.path {
        let entry = lookup::find(&file, path)?;
        match entry.kind() {
            EntryKind::Root => return Err(Failure::new("the root cannot be removed")),
            EntryKind::Storage if !args.recursive => {
                return Err(Failure::new(format!("{path} is a storage; -r removes those")));
            }
            EntryKind::Storage | EntryKind::Stream => entries.push((path, entry)),
        }
    }

    // What is named twice, or below another that goes, goes once.
    let chosen: HashSet<EntryId> = entries.iter().map(|(_, entry)| entry.id()).collect();
    let mut seen = HashSet::new();
    let mut to_remove = Vec::new();
    for (path, entry) in entries {
        if seen.insert(entry.id()) && !is_below_any(&file, &entry, &chosen).doing(doing)? {
            to_remove.push((path, entry));
        }
    }
    for (path, entry) in to_remove {
        file.remove_all(&entry).doing(|| format!("cannot remove {path}"))?;
    }
    file.flush().doing(doing)?;
    Ok(Outcome::Done)
}

fn is_below_any(
    file: &Compound,
    entry: &Entry,
    chosen: &HashSet<EntryId>,
) -> Result<bool, cfb_format::Error> {
    let mut above = entry.parent();
    while let Some(id) = above {
        if chosen.contains(&id) {
            return Ok(true);
        }
        above = file.entry(id)?.parent();
    }
    Ok(false)
}
