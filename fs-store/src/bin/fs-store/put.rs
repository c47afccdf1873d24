//! `fs-store put`: a file or standard input into a store.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fs_store::PutOptions;

use crate::failure::{Context, Failure, print};
use crate::progress::{Progress, Watched};
use crate::stat::Row;
use crate::{Outcome, escape, show};

/// Store a file or standard input
#[derive(clap::Args)]
#[command(after_help = "\
Bytes go to the store as they come, however many, and nobody sees the object before it
is complete. A key that has an object keeps it until then. If a condition does not hold,
nothing is changed and the exit code is 1.

Examples:
  fs-store put --create store photos/1 picture.jpg
  tar c folder | fs-store put store backup.tar
  fs-store put store page index.html --meta type=text/html --meta lang=en
  fs-store put store counter --if-version 17 < next")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct Args {
    /// The store
    store: PathBuf,
    /// The key that gets the object
    key: OsString,
    /// The file to store; - is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Make a new store if there is none
    #[arg(long)]
    create: bool,
    /// Only if the key has no object yet
    #[arg(long, conflicts_with_all = ["replace", "if_version"])]
    new: bool,
    /// Only if the key has an object
    #[arg(long, conflicts_with = "if_version")]
    replace: bool,
    /// Only if the object has this version, as `stat` gives it; 0 is no object
    #[arg(long, value_name = "VERSION")]
    if_version: Option<u64>,
    /// Keep something with the object
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    meta: Vec<(String, String)>,
    /// Print what `stat` would, as a JSON object
    #[arg(long)]
    json: bool,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').ok_or("there is no = in it")?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let doing = || format!("cannot put {}", crate::shown(&args.key));
    // Before the store is touched: a source that cannot be read.
    let (source, len) = open_source(&args.file)?;
    let store = crate::open_to_change(&args.store, args.create)?;
    let mut options = PutOptions::new();
    for (name, value) in &args.meta {
        options = options.metadata(name, value.as_bytes());
    }
    if args.new {
        options = options.create_only();
    }
    if args.replace {
        options = options.replace_only();
    }
    if let Some(version) = args.if_version {
        options = options.if_version(version);
    }
    let key = escape::bytes_of(&args.key);
    let mut progress = Progress::new("storing", len);
    let source = Watched { source, progress: &mut progress };
    let stat = store.put_reader_with(&key, source, &options).doing(doing)?;
    drop(progress);
    crate::close(store, &args.store)?;
    if args.json {
        print(|out| {
            serde_json::to_writer_pretty(&mut *out, &Row::of(&key, &stat))?;
            writeln!(out)
        })?;
    }
    Ok(Outcome::Done)
}

/// A file or standard input, and its length if that is known.
fn open_source(path: &Path) -> Result<(Box<dyn Read>, Option<u64>), Failure> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin().lock()), None));
    }
    let doing = || format!("cannot read {}", show::path(path));
    let file = File::open(path).doing(doing)?;
    let meta = file.metadata().doing(doing)?;
    if meta.is_dir() {
        return Err(Failure::because(doing(), "it is a folder; import takes those"));
    }
    let len = meta.is_file().then_some(meta.len());
    Ok((Box::new(file), len))
}
