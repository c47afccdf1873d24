//! `cfb add`: a file, a folder or standard input into a compound file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cfb_format::{Entry, EntryKind, Strictness};

use crate::copying::Copier;
use crate::failure::{Context, Failure};
use crate::import::{Rules, Survey, entry_name};
use crate::progress::Progress;
use crate::{Compound, Outcome, lookup, pack, show};

/// Store a file, a folder or standard input in a compound file
#[derive(clap::Args)]
#[command(after_help = "\
If PATH is a storage, the entry is made in it under the name of SOURCE. A stream
that is replaced keeps its old content until the new one is complete.

Examples:
  cfb add report.doc body.bin WordDocument --force
  cfb add report.doc picture.png Pictures/ --parents
  date | cfb add report.doc - Stamp")]
pub(crate) struct Args {
    /// The compound file
    file: PathBuf,
    /// The file or folder to store; - is standard input
    source: PathBuf,
    /// Where it goes
    path: String,
    /// Replace the stream if it is there
    #[arg(short, long)]
    force: bool,
    /// Make the storages on the way
    #[arg(short, long)]
    parents: bool,
    /// Leave out what a folder has that cannot be stored, instead of stopping
    #[arg(long)]
    skip: bool,
}

pub(crate) fn run(args: &Args, strictness: Strictness) -> Result<Outcome, Failure> {
    let doing = || format!("cannot change {}", show::path(&args.file));
    // Before the compound file is touched: a source that cannot be read.
    let source = Source::open(&args.source)?;
    let file = crate::open_to_change(&args.file, strictness)?;
    let path = target_path(args, &file)?;
    let (parent, _) = lookup::parent_and_name(&path);
    if args.parents && !parent.is_empty() {
        file.create_storage_all(parent).doing(|| format!("cannot make the storage {parent}"))?;
    }
    let outcome = match source {
        Source::Folder => {
            let rules = Rules { literal_names: false, except: Some(&args.file) };
            let survey = Survey::of(&args.source, rules)?;
            file.create_storage(path.as_str()).doing(|| format!("cannot make {path}"))?;
            let taken = pack::take_in(survey, &file, &path, args.skip);
            if taken.is_err() {
                file.remove_all(path.as_str()).doing(doing)?;
            }
            taken?.0
        }
        Source::Bytes { mut reader, len } => {
            let mut progress = Progress::new("storing", len);
            store(&file, &path, &mut reader, args.force, &mut progress)?;
            Outcome::Done
        }
    };
    file.flush().doing(doing)?;
    Ok(outcome)
}

/// What is to be stored.
enum Source {
    Folder,
    Bytes { reader: Box<dyn Read>, len: Option<u64> },
}

impl Source {
    fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Bytes { reader: Box::new(io::stdin().lock()), len: None });
        }
        let doing = || format!("cannot read {}", show::path(path));
        let file = File::open(path).doing(doing)?;
        let meta = file.metadata().doing(doing)?;
        if meta.is_dir() {
            return Ok(Self::Folder);
        }
        let len = meta.is_file().then_some(meta.len());
        Ok(Self::Bytes { reader: Box::new(file), len })
    }
}

/// Where the new entry goes, as the library takes it.
fn target_path(args: &Args, file: &Compound) -> Result<String, Failure> {
    let there = lookup::find_if_there(file, &args.path);
    let into_storage =
        args.path.ends_with('/') || there.is_some_and(|entry| entry.kind() != EntryKind::Stream);
    if !into_storage {
        return lookup::new_path(&args.path);
    }
    let name = entry_name(&args.source, false).filter(|_| args.source != Path::new("-"));
    let name = name.ok_or_else(|| {
        Failure::new(format!("{} is a storage: give the name of the entry too", args.path))
    })?;
    match args.path.trim_matches('/') {
        "" => Ok(name),
        storage => Ok(format!("{}/{name}", lookup::new_path(storage)?)),
    }
}

/// Stores a stream. One that is there stays until the new one is complete.
fn store(
    file: &Compound,
    path: &str,
    source: &mut dyn Read,
    force: bool,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let doing = || format!("cannot store {path}");
    let old = match file.entry(path) {
        Ok(entry) if entry.kind() != EntryKind::Stream => {
            return Err(Failure::because(doing(), "a storage has that name"));
        }
        Ok(_) if !force => {
            return Err(Failure::because(doing(), "it is there already; --force replaces it"));
        }
        Ok(entry) => Some(entry),
        Err(_) => None,
    };
    let new = match old {
        None => path.to_owned(),
        Some(_) => free_name_beside(file, path),
    };
    let stream = file.create_new_stream(new.as_str()).doing(doing)?;
    if let Err(failure) = Copier::new().copy_in(source, &stream, progress) {
        file.remove_stream(new.as_str()).doing(doing)?;
        return Err(Failure::because(doing(), failure));
    }
    if let Some(old) = old {
        replace(file, &old, &new).doing(doing)?;
    }
    Ok(())
}

/// Puts the stream at `new` in the place of `old`, under the name as `old` had it.
fn replace(file: &Compound, old: &Entry, new: &str) -> Result<(), cfb_format::Error> {
    file.remove_stream(old)?;
    file.rename(new, &old.name())
}

fn free_name_beside(file: &Compound, path: &str) -> String {
    let (parent, _) = lookup::parent_and_name(path);
    (0..=u32::MAX)
        .map(|attempt| format!("{parent}/cfb-add-{attempt}.part"))
        .find(|path| !file.exists(path.as_str()))
        .expect("some name is free")
}
