//! `cfb mv`: renames and moves within a compound file.

use std::path::PathBuf;

use cfb_format::{Entry, EntryKind, Strictness};

use crate::failure::{Context, Failure};
use crate::{Compound, Outcome, lookup, show};

/// Rename or move an entry
#[derive(clap::Args)]
#[command(after_help = "\
If TO is a storage, the entry is moved into it under its own name.

Examples:
  cfb mv report.doc Data Data.old
  cfb mv report.doc Data.old Archive/")]
pub(crate) struct Args {
    /// The compound file
    file: PathBuf,
    /// The stream or storage
    from: String,
    /// Its new path, or a storage to put it in
    to: String,
    /// Replace a stream that is there
    #[arg(short, long)]
    force: bool,
}

pub(crate) fn run(args: &Args, strictness: Strictness) -> Result<Outcome, Failure> {
    let doing = || format!("cannot move {} to {}", args.from, args.to);
    let file = crate::open_to_change(&args.file, strictness)?;
    let entry = lookup::find(&file, &args.from)?;
    if entry.kind() == EntryKind::Root {
        return Err(Failure::new("the root cannot be moved"));
    }
    let (storage, name) = target(&file, &entry, &args.to)?;
    if is_within(&file, &storage, &entry).doing(doing)? {
        return Err(Failure::because(doing(), "it would be inside itself"));
    }
    let path = format!("{}/{name}", storage.path().trim_end_matches('/'));
    // The entry itself may be there: then only the case of its name changes.
    if let Some(there) = file.entry(path.as_str()).ok().filter(|there| there.id() != entry.id()) {
        if !args.force {
            return Err(Failure::because(doing(), "it is there already; --force replaces it"));
        }
        file.remove_stream(&there).doing(doing)?;
    }
    if entry.parent() == Some(storage.id()) {
        file.rename(&entry, &name).doing(doing)?;
    } else {
        file.move_to(&entry, &path).doing(doing)?;
    }
    file.flush().doing(|| format!("cannot change {}", show::path(&args.file)))?;
    Ok(Outcome::Done)
}

/// The storage to move into, and the name there.
fn target(file: &Compound, entry: &Entry, to: &str) -> Result<(Entry, String), Failure> {
    let there = lookup::find_if_there(file, to).filter(|there| there.id() != entry.id());
    if let Some(storage) = there.filter(|there| there.kind() != EntryKind::Stream) {
        let name = String::from_utf16(entry.name_utf16())
            .doing(|| "the name is no valid UTF-16, give a new one".to_owned())?;
        return Ok((storage, name));
    }
    if to.ends_with('/') {
        return Err(Failure::new(format!("no storage {to}")));
    }
    let (parent, name) = lookup::parent_and_name(to);
    let storage = lookup::find(file, parent)?;
    Ok((storage, lookup::new_path(name)?))
}

/// Whether `storage` is `entry` or below it.
fn is_within(file: &Compound, storage: &Entry, entry: &Entry) -> Result<bool, cfb_format::Error> {
    let mut at = storage.clone();
    loop {
        if at.id() == entry.id() {
            return Ok(true);
        }
        let Some(parent) = at.parent() else { return Ok(false) };
        at = file.entry(parent)?;
    }
}
