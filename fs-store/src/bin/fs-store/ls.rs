//! `fs-store ls`: keys in order.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use fs_store::{Item, List, ListOptions};
use serde::ser::{SerializeSeq, Serializer};

use crate::failure::{Context, Failure, print};
use crate::stat::Row;
use crate::{Outcome, escape, show};

/// List keys
#[derive(clap::Args)]
#[command(after_help = "\
Keys are listed in the order of their bytes. With a delimiter, keys that have it behind
the prefix are listed as one, up to the delimiter, as folders. Times are in UTC.

Examples:
  fs-store ls store
  fs-store ls -l store --prefix photos/ --delimiter /
  fs-store ls store --prefix log/ --reverse --limit 10
  fs-store ls store --json | jq -r '.[] | select(.len > 1000000) | .key'")]
pub(crate) struct Args {
    /// The store
    store: PathBuf,
    /// Show length and time of last change as well
    #[arg(short, long, conflicts_with = "json")]
    long: bool,
    #[command(flatten)]
    which: Which,
    /// From the last key to the first
    #[arg(short, long)]
    reverse: bool,
    /// Only keys behind this one, in the direction of the list
    #[arg(long, value_name = "KEY")]
    start_after: Option<OsString>,
    /// At most so many
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Print a JSON array of objects
    #[arg(long)]
    json: bool,
}

/// Which keys, and how they are grouped.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// Only keys that begin with this
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    pub(crate) prefix: OsString,
    /// List keys that have this character behind the prefix as one
    #[arg(short, long, value_name = "CHARACTER", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,
}

fn delimiter(text: &str) -> Result<u8, String> {
    match escape::bytes_of(text.as_ref())[..] {
        [byte] => Ok(byte),
        _ => Err("it must be one byte".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = crate::open(&args.store)?;
    let mut options = ListOptions::new().prefix(escape::bytes_of(&args.which.prefix));
    if let Some(delimiter) = args.which.delimiter {
        options = options.delimiter(delimiter);
    }
    if let Some(after) = &args.start_after {
        options = options.start_after(escape::bytes_of(after));
    }
    if let Some(limit) = args.limit {
        options = options.limit(limit);
    }
    if args.reverse {
        options = options.reverse();
    }
    if !args.long && !args.json {
        options = options.keys_only();
    }
    let doing = || format!("cannot list {}", show::path(&args.store));
    let list = store.list(&options).doing(doing)?;
    // What was found until then is printed before an error of the store is told.
    let mut broken = None;
    print(|out| {
        let items = Items { list, broken: &mut broken };
        if args.json {
            let mut serializer = serde_json::Serializer::pretty(&mut *out);
            let mut rows = serializer.serialize_seq(None)?;
            for item in items {
                rows.serialize_element(&Row::of_item(&item))?;
            }
            rows.end()?;
            return writeln!(out);
        }
        for item in items {
            if args.long {
                long(out, &item)?;
            } else {
                writeln!(out, "{}", escape::shown(&item.key))?;
            }
        }
        Ok(())
    })?;
    broken.map_or(Ok(Outcome::Done), |error| Err(Failure::because(doing(), error)))
}

/// Items until the end, or until an error.
struct Items<'a> {
    list: List,
    broken: &'a mut Option<fs_store::Error>,
}

impl Iterator for Items<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        match self.list.next()? {
            Ok(item) => Some(item),
            Err(error) => {
                *self.broken = Some(error);
                None
            }
        }
    }
}

/// One line with length, time of last change and key.
fn long(out: &mut dyn Write, item: &Item) -> io::Result<()> {
    let key = escape::shown(&item.key);
    match &item.stat {
        Some(stat) => writeln!(out, "{:>12}  {}  {key}", stat.len, show::time(stat.modified)),
        None => writeln!(out, "{:>12}  {:<19}  {key}", "-", "-"),
    }
}
