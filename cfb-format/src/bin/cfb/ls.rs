//! `cfb ls`: the entries of a storage.

use std::io::{self, Write};
use std::path::PathBuf;

use cfb_format::{Entry, EntryKind, Strictness};
use serde::Serialize;

use crate::failure::{Failure, print};
use crate::listing::{self, Item, Msi, Names};
use crate::{Compound, Outcome, escape, lookup, show};

/// List the entries of a storage
#[derive(clap::Args)]
#[command(after_help = "\
A storage has a slash after its name. Times are in UTC.

Examples:
  cfb ls report.doc
  cfb ls -l report.doc ObjectPool
  cfb ls -R report.doc
  cfb ls -R --json report.doc | jq -r '.[] | select(.size > 100000) | .path'")]
pub(crate) struct Args {
    /// The compound file
    file: PathBuf,
    /// The storage or stream to list
    #[arg(default_value = "/")]
    path: String,
    /// Show size, time of last change and class as well
    #[arg(short, long, conflicts_with = "json")]
    long: bool,
    /// List everything below, by path
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Print a JSON array of objects
    #[arg(long)]
    json: bool,
    /// Show names of installer databases decoded
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    msi: Msi,
}

pub(crate) fn run(args: &Args, strictness: Strictness) -> Result<Outcome, Failure> {
    let file = crate::open(&args.file, strictness)?;
    let start = lookup::find(&file, &args.path)?;
    // JSON is for programs: paths there are those of the file, and the
    // decoded name is a field of its own.
    let names = if args.json { Names::as_stored() } else { Names::for_file(&file, args.msi) };
    let items = if start.kind() == EntryKind::Stream {
        vec![itself(&file, start, names)?]
    } else {
        listing::below(&file, &start, names, args.recursive)?
    };
    print(|out| {
        if args.json {
            let decode = Names::for_file(&file, args.msi);
            let rows: Vec<Row<'_>> = items.iter().map(|item| Row::of(item, decode)).collect();
            serde_json::to_writer_pretty(&mut *out, &rows)?;
            writeln!(out)
        } else if args.long {
            long(out, &items, args.recursive)
        } else {
            items.iter().try_for_each(|item| writeln!(out, "{}", label(item, args.recursive)))
        }
    })?;
    Ok(crate::directory_damage(&file))
}

fn itself(file: &Compound, entry: Entry, names: Names) -> Result<Item, Failure> {
    let path = listing::path_of(file, &entry, names)?;
    Ok(Item { name: escape::shown(&names.units(&entry)), path, depth: 0, entry })
}

fn label(item: &Item, by_path: bool) -> String {
    let text = if by_path { &item.path } else { &item.name };
    let slash = if item.entry.kind() == EntryKind::Stream { "" } else { "/" };
    format!("{text}{slash}")
}

/// Size, time of last change and name in columns.
pub(crate) fn long(out: &mut dyn Write, items: &[Item], by_path: bool) -> io::Result<()> {
    let width = items.iter().map(|item| size(item).len()).max().unwrap_or(0);
    for item in items {
        let changed = show::time(item.entry.modified()).unwrap_or_else(|| "-".to_owned());
        write!(out, "{:>width$}  {changed:<19}  {}", size(item), label(item, by_path))?;
        if !item.entry.clsid().is_nil() {
            write!(out, "  {{{}}}", item.entry.clsid())?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn size(item: &Item) -> String {
    match item.entry.kind() {
        EntryKind::Stream => item.entry.len().to_string(),
        _ => "-".to_owned(),
    }
}

/// One entry in JSON.
#[derive(Serialize)]
struct Row<'a> {
    /// As the other verbs take it.
    path: &'a str,
    /// With U+FFFD where the units are no valid UTF-16.
    name: String,
    /// All units, where `name` cannot hold them.
    #[serde(skip_serializing_if = "Option::is_none")]
    name_utf16: Option<&'a [u16]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    msi_name: Option<String>,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clsid: Option<String>,
    #[serde(skip_serializing_if = "is_zero")]
    state_bits: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
}

impl<'a> Row<'a> {
    fn of(item: &'a Item, decode: Names) -> Self {
        let entry = &item.entry;
        let units = entry.name_utf16();
        let shown = decode.units(entry);
        let is_stream = entry.kind() == EntryKind::Stream;
        Self {
            path: if item.path.is_empty() { "/" } else { &item.path },
            name: String::from_utf16_lossy(units),
            name_utf16: String::from_utf16(units).is_err().then_some(units),
            msi_name: (shown != units).then(|| String::from_utf16_lossy(&shown)),
            kind: if is_stream { "stream" } else { "storage" },
            size: is_stream.then(|| entry.len()),
            clsid: (!entry.clsid().is_nil()).then(|| entry.clsid().to_string()),
            state_bits: entry.state_bits(),
            created: show::exact_time(entry.created()),
            modified: show::exact_time(entry.modified()),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(bits: &u32) -> bool {
    *bits == 0
}
