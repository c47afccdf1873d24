//! `cfb extract`: entries into a folder of the host.
//!
//! Every file name comes from [`FileNames`], so it is one plain component; the
//! folders on the way are made here or are real folders already. Nothing is
//! written outside the target folder, whatever the file says.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use cfb_format::{Entry, EntryId, EntryKind, Strictness};

use crate::copying::Copier;
use crate::escape::FileNames;
use crate::failure::{Context, Failure};
use crate::listing::{Item, Listing, Msi, Names, Totals};
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
    let (total_bytes, taken) = survey(&file, &start, names, &args.to)?;
    if !args.force
        && let Some(first) = taken.first()
    {
        let first = show::path(first);
        let there = match taken.len() - 1 {
            0 => format!("{first} is"),
            more => format!("{first} and {more} more are"),
        };
        return Err(Failure::new(format!(
            "{there} there already, nothing is done; --force replaces what is there"
        )));
    }

    let doing = || format!("cannot make the folder {}", show::path(&args.to));
    fs::create_dir_all(&args.to).doing(doing)?;
    let mut progress = Progress::new("extracting", Some(total_bytes));
    let mut copier = Copier::new();
    let mut outcome = crate::directory_damage(&file);
    let mut targets = Targets::new(&start, &args.to, names);
    for item in items(&file, &start, names)? {
        let target = targets.of(&item.entry);
        if item.entry.kind() != EntryKind::Stream {
            make_folder(&target)?;
            continue;
        }
        let damage = write_stream(&file, &item, &target, args.force, &mut copier, &mut progress)?;
        if let Some(damage) = damage {
            progress.report(&Failure::because(format!("{} is damaged", item.path), damage));
            outcome = Outcome::Partial;
        }
    }
    Ok(outcome)
}

/// What is to be extracted. The root has no name and gives no folder of its own.
fn items<'a>(
    file: &'a Compound,
    start: &Entry,
    names: Names,
) -> Result<impl Iterator<Item = Item> + 'a, Failure> {
    let itself = match start.kind() {
        EntryKind::Root => None,
        _ => Some(Item::itself(file, start.clone(), names)?),
    };
    Ok(itself.into_iter().chain(Listing::below(file, start, names, true)?))
}

/// The bytes to extract, and the files that are in the way.
fn survey(
    file: &Compound,
    start: &Entry,
    names: Names,
    to: &Path,
) -> Result<(u64, Vec<PathBuf>), Failure> {
    let mut totals = Totals::default();
    let mut taken = Vec::new();
    let mut targets = Targets::new(start, to, names);
    let is_new = fs::symlink_metadata(to).is_err();
    for item in items(file, start, names)? {
        totals.add(&item.entry);
        if !is_new && item.entry.kind() == EntryKind::Stream {
            let target = targets.of(&item.entry);
            if fs::symlink_metadata(&target).is_ok() {
                taken.push(target);
            }
        } else {
            targets.of(&item.entry);
        }
    }
    Ok((totals.bytes, taken))
}

/// Where each entry of a walk goes.
struct Targets {
    names: Names,
    /// The folder of the storage reached last.
    folder: PathBuf,
    /// The storages on the way to it, and the names given out in each.
    above: Vec<(Option<EntryId>, FileNames)>,
}

impl Targets {
    fn new(start: &Entry, to: &Path, names: Names) -> Self {
        let first = if start.kind() == EntryKind::Root { Some(start.id()) } else { start.parent() };
        Self { names, folder: to.to_owned(), above: vec![(first, FileNames::default())] }
    }

    /// Entries come as a walk has them: each storage before its content.
    fn of(&mut self, entry: &Entry) -> PathBuf {
        while self.above.len() > 1 && self.above.last().map(|(id, _)| *id) != Some(entry.parent()) {
            self.above.pop();
            self.folder.pop();
        }
        let (_, given) = self.above.last_mut().expect("the first stays");
        let name = given.claim(&self.names.units(entry));
        let target = self.folder.join(&name);
        if entry.kind() != EntryKind::Stream {
            self.folder.push(name);
            self.above.push((Some(entry.id()), FileNames::default()));
        }
        target
    }
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
