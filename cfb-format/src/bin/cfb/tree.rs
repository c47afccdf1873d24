//! `cfb tree`: everything below a storage, drawn.

use std::path::PathBuf;

use cfb_format::{EntryKind, Strictness};

use crate::failure::{Failure, print};
use crate::listing::{self, Item, Msi, Names, Totals};
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
    let items = listing::below(&file, &start, names, true)?;
    let totals = Totals::of(&items);
    let last = last_of_storage(&items);
    let title = match listing::path_of(&file, &start, names)? {
        path if path.is_empty() => show::path(&args.file),
        path => path,
    };
    print(|out| {
        writeln!(out, "{title}")?;
        // For each level above the present one: whether its line ends here.
        let mut ended = Vec::new();
        for (item, &is_last) in items.iter().zip(&last) {
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

/// Of each item, whether no other follows it in its storage.
fn last_of_storage(items: &[Item]) -> Vec<bool> {
    let mut last = vec![false; items.len()];
    // From the end: whether an item of each depth has been met in the present storage.
    let mut met: Vec<bool> = Vec::new();
    for (item, last) in items.iter().zip(&mut last).rev() {
        met.resize(item.depth + 1, false);
        *last = !met[item.depth];
        met[item.depth] = true;
    }
    last
}
