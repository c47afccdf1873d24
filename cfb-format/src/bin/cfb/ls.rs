//! `cfb ls`: the entries of a storage.

use std::io::{self, Write};
use std::iter;
use std::path::PathBuf;

use cfb_format::{Entry, EntryKind, Strictness};
use serde::{Serialize, Serializer};

use crate::failure::{Failure, print};
use crate::listing::{Item, Listing, Msi, Names};
use crate::{Outcome, lookup, show};

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
    let items = || -> Result<Box<dyn Iterator<Item = Item> + '_>, Failure> {
        Ok(if start.kind() == EntryKind::Stream {
            Box::new(iter::once(Item::itself(&file, start.clone(), names)?))
        } else {
            Box::new(Listing::below(&file, &start, names, args.recursive)?)
        })
    };
    let mut lines = items()?;
    if args.json {
        let decode = Names::for_file(&file, args.msi);
        print(|out| {
            let mut json = serde_json::Serializer::pretty(&mut *out);
            json.collect_seq(lines.map(|item| Row::of(item, decode)))?;
            writeln!(out)
        })?;
    } else if args.long {
        let width = size_width(lines.map(|item| item.entry));
        lines = items()?;
        print(|out| lines.try_for_each(|item| long(out, &item, width, args.recursive)))?;
    } else {
        print(|out| lines.try_for_each(|item| writeln!(out, "{}", label(&item, args.recursive))))?;
    }
    Ok(crate::directory_damage(&file))
}

fn label(item: &Item, by_path: bool) -> String {
    let text = if by_path { &item.path } else { &item.name };
    let slash = if item.entry.kind() == EntryKind::Stream { "" } else { "/" };
    format!("{text}{slash}")
}

/// One line with size, time of last change, name and class.
pub(crate) fn long(
    out: &mut dyn Write,
    item: &Item,
    width: usize,
    by_path: bool,
) -> io::Result<()> {
    let entry = &item.entry;
    let changed = show::time(entry.modified()).unwrap_or_else(|| "-".to_owned());
    write!(out, "{:>width$}  {changed:<19}  {}", size(entry), label(item, by_path))?;
    if !entry.clsid().is_nil() {
        write!(out, "  {{{}}}", entry.clsid())?;
    }
    writeln!(out)
}

/// The width of the column of sizes.
pub(crate) fn size_width(entries: impl Iterator<Item = Entry>) -> usize {
    entries.map(|entry| size(&entry).len()).max().unwrap_or(0)
}

fn size(entry: &Entry) -> String {
    match entry.kind() {
        EntryKind::Stream => entry.len().to_string(),
        _ => "-".to_owned(),
    }
}

/// One entry in JSON.
#[derive(Serialize)]
struct Row {
    /// As the other verbs take it.
    path: String,
    /// With U+FFFD where the units are no valid UTF-16.
    name: String,
    /// All units, where `name` cannot hold them.
    #[serde(skip_serializing_if = "Option::is_none")]
    name_utf16: Option<Vec<u16>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    msi_name: Option<String>,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clsid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_bits: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
}

impl Row {
    fn of(item: Item, decode: Names) -> Self {
        let entry = &item.entry;
        let units = entry.name_utf16();
        let shown = decode.units(entry);
        let is_stream = entry.kind() == EntryKind::Stream;
        Self {
            path: item.path,
            name: String::from_utf16_lossy(units),
            name_utf16: String::from_utf16(units).is_err().then(|| units.to_vec()),
            msi_name: (shown != units).then(|| String::from_utf16_lossy(&shown)),
            kind: if is_stream { "stream" } else { "storage" },
            size: is_stream.then(|| entry.len()),
            clsid: (!entry.clsid().is_nil()).then(|| entry.clsid().to_string()),
            state_bits: Some(entry.state_bits()).filter(|&bits| bits != 0),
            created: show::exact_time(entry.created()),
            modified: show::exact_time(entry.modified()),
        }
    }
}
