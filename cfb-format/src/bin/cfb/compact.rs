//! `cfb compact`: a file as small as its content.

use std::cell::RefCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use cfb_format::{CompactOptions, Compacted, EntryKind, Strictness};
use serde::Serialize;

use crate::failure::{Context, Failure, print};
use crate::progress::Progress;
use crate::staged::Staged;
use crate::{Outcome, show};

/// Make a compound file as small as its content, where it is or in a new file
#[derive(clap::Args)]
#[command(after_help = "\
Without --output the file itself is made shorter: what lies at its end moves into free
space below, a part at a time, and each part is saved safely. Whatever happens meanwhile,
the file has its content, and it needs no more room than it has. --wipe then clears what
is free, so that nothing that was deleted can be read from it.

With --output a new file is written: it has every stream in one piece, in the order of the tree, nothing free
between them, and zeros behind the end of each: nothing that was deleted is in it. Equal
content makes equal files. It appears under its name when it is complete; the old one
is only read.

In a new file a damaged stream is kept up to its damage; the exit code is 1 then.

Examples:
  cfb compact report.doc
  cfb compact --wipe report.doc
  cfb compact report.doc -o small.doc
  cfb compact --json report.doc -o small.doc | jq .won_bytes")]
pub(crate) struct Args {
    /// The compound file
    file: PathBuf,
    /// Write a new compound file, and leave the old one as it is
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the new file if it is there
    #[arg(short, long, requires = "output")]
    force: bool,
    /// Clear free space when done; a new file has none
    #[arg(long)]
    wipe: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, strictness: Strictness) -> Result<Outcome, Failure> {
    let (compacted, outcome) = match &args.output {
        Some(output) => rewrite(args, output, strictness)?,
        None => (in_place(args, strictness)?, Outcome::Done),
    };
    print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &Summary::of(&compacted))?;
            return writeln!(out);
        }
        writeln!(out, "{}", line(&compacted))
    })?;
    Ok(if compacted.damaged.is_empty() { outcome } else { Outcome::Partial })
}

fn in_place(args: &Args, strictness: Strictness) -> Result<Compacted, Failure> {
    let doing = || format!("cannot compact {}", show::path(&args.file));
    let file = crate::open_to_change(&args.file, strictness)?;
    // About as much moves as is free.
    let total = file.usage().doing(doing)?.free_bytes();
    let progress = RefCell::new(Progress::new("compacting", Some(total)));
    let advance = |bytes| progress.borrow_mut().advance(bytes);
    let options = CompactOptions::new().wipe(args.wipe).progress(&advance);
    options.compact(&file).doing(doing)
}

/// A new file; and whether the directory of the old one is whole.
fn rewrite(
    args: &Args,
    output: &Path,
    strictness: Strictness,
) -> Result<(Compacted, Outcome), Failure> {
    let doing = || format!("cannot make {}", show::path(output));
    if let (Ok(from), Ok(to)) = (fs::canonicalize(&args.file), fs::canonicalize(output))
        && from == to
    {
        return Err(Failure::because(doing(), "it is the file to be compacted"));
    }
    if !args.force && output.symlink_metadata().is_ok() {
        return Err(Failure::because(doing(), "it is there already; --force replaces it"));
    }
    let file = crate::open(&args.file, strictness)?;
    let outcome = crate::directory_damage(&file);
    let streams = file.walk().filter(|entry| entry.kind() == EntryKind::Stream);
    let total = streams.map(|entry| entry.len()).sum();

    let staged = Staged::beside(output);
    let mut target = File::options();
    let target = target.read(true).write(true).create_new(true).open(staged.path());
    let target = target.doing(doing)?;
    let progress = RefCell::new(Progress::new("compacting", Some(total)));
    let advance = |bytes| progress.borrow_mut().advance(bytes);
    let options = CompactOptions::new().progress(&advance);
    let compacted = options.compact_into(&file, &target).doing(doing)?;
    drop(target);
    staged.publish(args.force).doing(doing)?;

    let doing = |path: &str| format!("{path} of {} is damaged", show::path(&args.file));
    for damaged in &compacted.damaged {
        let failure = Failure::because(doing(&damaged.path), damaged.cause.clone());
        progress.borrow().report(&failure);
    }
    Ok((compacted, outcome))
}

fn line(compacted: &Compacted) -> String {
    format!(
        "{} won: {} before, {} after; {} moved",
        show::count(compacted.won_bytes(), "byte"),
        show::grouped(compacted.bytes_before),
        show::grouped(compacted.bytes_after),
        show::count(compacted.streams_moved, "stream"),
    )
}

/// The report in JSON.
#[derive(Serialize)]
struct Summary<'a> {
    bytes_before: u64,
    bytes_after: u64,
    won_bytes: u64,
    streams_moved: u64,
    moved_bytes: u64,
    damaged: Vec<&'a str>,
}

impl<'a> Summary<'a> {
    fn of(compacted: &'a Compacted) -> Self {
        Self {
            bytes_before: compacted.bytes_before,
            bytes_after: compacted.bytes_after,
            won_bytes: compacted.won_bytes(),
            streams_moved: compacted.streams_moved,
            moved_bytes: compacted.moved_bytes,
            damaged: compacted.damaged.iter().map(|damaged| damaged.path.as_str()).collect(),
        }
    }
}
