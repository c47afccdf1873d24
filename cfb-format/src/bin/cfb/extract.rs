//! `cfb extract`: entries into a folder of the host.
//!
//! Every file name comes from [`FileNames`], so it is one plain component; the
//! folders on the way are made here or are real folders already. Nothing is
//! written outside the target folder, whatever the file says.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use cfb_format::{Entry, EntryId, EntryKind, Strictness};

use crate::copying::Copier;
use crate::escape::FileNames;
use crate::failure::{Context, Failure};
use crate::listing::{self, Item, Msi, Names, Totals};
use crate::progress::Progress;
use crate::staged::Staged;
use crate::{Compound, Outcome, lookup, show};

/// Write streams and storages into a folder
#[derive(clap::Args)]
#[command(after_help = "\
A storage becomes a folder, a stream a file of the same name. What some file system
cannot carry in a name is escaped (%uXXXX); pack undoes that. Of a damaged stream
the intact part is written, the damage is reported, and the exit code is 1.

Examples:
  cfb extract report.doc --to report
  cfb extract report.doc ObjectPool --to parts
  cfb extract setup.msi --to setup --msi always")]
pub(crate) struct Args {
    /// The compound file
    file: PathBuf,
    /// The stream or storage; without one, everything
    #[arg(default_value = "/")]
    path: String,
    /// The folder to write into; it is made if it is not there
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    to: PathBuf,
    /// Replace files that are there
    #[arg(short, long)]
    force: bool,
    /// Name files by the decoded names of installer databases, which pack does not undo
    #[arg(long, value_name = "WHEN", default_value = "never")]
    msi: Msi,
}

pub(crate) fn run(args: &Args, strictness: Strictness) -> Result<Outcome, Failure> {
    let file = crate::open(&args.file, strictness)?;
    let start = lookup::find(&file, &args.path)?;
    let names = Names::for_file(&file, args.msi);
    let mut items = listing::below(&file, &start, names, true)?;
    if start.kind() != EntryKind::Root {
        items.insert(0, start_item(&file, start, names)?);
    }
    let planned = plan(&items, &args.to, names);
    if !args.force {
        refuse_to_replace(&planned)?;
    }

    let doing = || format!("cannot make the folder {}", show::path(&args.to));
    fs::create_dir_all(&args.to).doing(doing)?;
    let mut progress = Progress::new("extracting", Some(Totals::of(&items).bytes));
    let mut copier = Copier::new();
    let mut outcome = crate::directory_damage(&file);
    for (item, target) in &planned {
        if item.entry.kind() != EntryKind::Stream {
            make_folder(target)?;
            continue;
        }
        let damage = write_stream(&file, item, target, args.force, &mut copier, &mut progress)?;
        if let Some(damage) = damage {
            progress.report(&Failure::because(format!("{} is damaged", item.path), damage));
            outcome = Outcome::Partial;
        }
    }
    Ok(outcome)
}

fn start_item(file: &Compound, entry: Entry, names: Names) -> Result<Item, Failure> {
    let path = listing::path_of(file, &entry, names)?;
    Ok(Item { name: String::new(), path, depth: 0, entry })
}

/// Where each item goes.
fn plan<'a>(items: &'a [Item], to: &Path, names: Names) -> Vec<(&'a Item, PathBuf)> {
    let mut folders: HashMap<EntryId, PathBuf> = HashMap::new();
    let mut given: HashMap<Option<EntryId>, FileNames> = HashMap::new();
    let mut planned = Vec::with_capacity(items.len());
    for item in items {
        // The parent of the first is outside the listing: it stands in `to`.
        let parent = item.entry.parent();
        let folder = parent.and_then(|parent| folders.get(&parent)).map_or(to, PathBuf::as_path);
        let name = given.entry(parent).or_default().claim(&names.units(&item.entry));
        let target = folder.join(name);
        if item.entry.kind() != EntryKind::Stream {
            folders.insert(item.entry.id(), target.clone());
        }
        planned.push((item, target));
    }
    planned
}

fn refuse_to_replace(planned: &[(&Item, PathBuf)]) -> Result<(), Failure> {
    let there = |target: &Path| fs::symlink_metadata(target).is_ok();
    let mut taken = planned
        .iter()
        .filter(|(item, target)| item.entry.kind() == EntryKind::Stream && there(target));
    let Some((_, first)) = taken.next() else { return Ok(()) };
    let more = match taken.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first = show::path(first);
    Err(Failure::new(format!("{first}{more} there already, nothing is done; --force replaces")))
}

/// Makes a folder, or takes one that is there, but not a link to one elsewhere.
fn make_folder(path: &Path) -> Result<(), Failure> {
    let doing = || format!("cannot make the folder {}", show::path(path));
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let meta = fs::symlink_metadata(path).doing(doing)?;
            if meta.is_dir() {
                Ok(())
            } else {
                Err(Failure::because(doing(), "something else has its name"))
            }
        }
        made => made.doing(doing),
    }
}

/// Writes one stream to `target`. Gives back what was damaged, if anything was.
fn write_stream(
    file: &Compound,
    item: &Item,
    target: &Path,
    force: bool,
    copier: &mut Copier,
    progress: &mut Progress,
) -> Result<Option<Failure>, Failure> {
    let doing = || format!("cannot write {}", show::path(target));
    let stream = match file.open_stream(&item.entry) {
        Ok(stream) => stream,
        Err(error) => return Ok(Some(Failure::because("cannot open it", error))),
    };
    if force {
        let staged = Staged::beside(target);
        let damage = File::create_new(staged.path())
            .and_then(|mut out| copier.copy_out(&stream, &mut out, progress))
            .doing(doing)?;
        staged.publish(true).doing(doing)?;
        return Ok(damage);
    }
    let mut out = File::create_new(target).doing(doing)?;
    copier.copy_out(&stream, &mut out, progress).doing(|| {
        // Half a file that nobody asked for; the error to tell is the first one.
        let _ = fs::remove_file(target);
        doing()
    })
}
