//! `cfb tree`: everything below a storage, drawn.

use std::path::PathBuf;

use cfb_format::{EntryKind, Strictness};

use crate::failure::{Failure, print};
use crate::listing::{self, Listing, Msi, Names, Totals};
use crate::{Outcome, lookup, show};

/// Draw the tree of storages and streams, with sizes
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cfb tree report.doc
  cfb tree setup.msi --msi never")]
pub(crate) struct Args {
    /// The compound file
    file: PathBuf,
    /// The storage to start from
    #[arg(default_value = "/")]
    path: String,
    /// Show names of installer databases decoded
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    msi: Msi,
}

pub(crate) fn run(args: &Args, strictness: Strictness) -> Result<Outcome, Failure> {
    let file = crate::open(&args.file, strictness)?;
    let start = lookup::find(&file, &args.path)?;
    let names = Names::for_file(&file, args.msi);
    if start.kind() == EntryKind::Stream {
        return Err(Failure::new(format!("{} is a stream", args.path)));
    }
    let items = || Listing::below(&file, &start, names, true);
    let mut totals = Totals::default();
    let depths: Vec<usize> = items()?
        .map(|item| {
            totals.add(&item.entry);
            item.depth
        })
        .collect();
    let last = last_of_storage(&depths);
    let title = match listing::path_of(&file, &start, names)? {
        path if path.is_empty() => show::path(&args.file),
        path => path,
    };
    let items = items()?;
    print(|out| {
        writeln!(out, "{title}")?;
        // For each level above the present one: whether its line ends here.
        let mut ended = Vec::new();
        for (item, &is_last) in items.zip(&last) {
            ended.truncate(item.depth - 1);
            for &ended in &ended {
                write!(out, "{}", if ended { "    " } else { "│   " })?;
            }
            ended.push(is_last);
            write!(out, "{}{}", if is_last { "└── " } else { "├── " }, item.name)?;
            match item.entry.kind() {
                EntryKind::Stream => writeln!(out, "  {}", show::grouped(item.entry.len()))?,
                _ => writeln!(out, "/")?,
            }
        }
        writeln!(
            out,
            "{}, {}, {}",
            show::count(totals.storages, "storage"),
            show::count(totals.streams, "stream"),
            show::count(totals.bytes, "byte"),
        )
    })?;
    Ok(crate::directory_damage(&file))
}

/// Of each item, given the depth of all in order, whether no other follows it in its storage.
fn last_of_storage(depths: &[usize]) -> Vec<bool> {
    let mut last = vec![false; depths.len()];
    // From the end: whether an item of each depth has been met in the present storage.
    let mut met: Vec<bool> = Vec::new();
    for (&depth, last) in depths.iter().zip(&mut last).rev() {
        met.resize(depth + 1, false);
        *last = !met[depth];
        met[depth] = true;
    }
    last
}
