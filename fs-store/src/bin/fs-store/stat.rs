//! `fs-store stat`: what is known of objects besides their bytes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use fs_store::{Item, Stat};
use serde::Serialize;

use crate::failure::{Context, Failure, print, report};
use crate::{Outcome, escape, show};

/// Tell length, version, times, checksum and metadata of objects
#[derive(clap::Args)]
#[command(after_help = "\
The version is another one for each object that a key ever has. The checksum is CRC-32C
of all bytes. In JSON, keys and values of metadata are escaped as in arguments.

Examples:
  fs-store stat store photos/1
  fs-store stat --json store photos/1 | jq .[0].version")]
pub(crate) struct Args {
    /// The store
    store: PathBuf,
    /// The keys
    #[arg(required = true)]
    key: Vec<OsString>,
    /// Print a JSON array of objects
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = crate::open(&args.store)?;
    let mut outcome = Outcome::Done;
    let mut rows = Vec::new();
    for typed in &args.key {
        let key = escape::bytes_of(typed);
        let doing = || format!("cannot look at {}", crate::shown(typed));
        if let Some(stat) = store.stat(&key).doing(doing)? {
            rows.push(Row::of(&key, &stat));
        } else {
            report(&fs_store::Error::NotFound { key });
            outcome = Outcome::Partial;
        }
    }
    print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &rows)?;
            return writeln!(out);
        }
        for (nth, row) in rows.iter().enumerate() {
            if nth > 0 {
                writeln!(out)?;
            }
            row.lines(out)?;
        }
        Ok(())
    })?;
    Ok(outcome)
}

/// One key in JSON.
#[derive(Serialize)]
pub(crate) struct Row {
    /// As the verbs take it.
    key: String,
    /// Set for keys that are listed as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_prefix: Option<bool>,
    #[serde(flatten)]
    object: Option<Object>,
}

#[derive(Serialize)]
struct Object {
    len: u64,
    version: u64,
    created: String,
    modified: String,
    crc32c: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
}

impl Row {
    pub(crate) fn of(key: &[u8], stat: &Stat) -> Self {
        let metadata = stat.metadata.iter();
        let metadata = metadata.map(|(name, value)| (name.clone(), escape::shown_value(value)));
        let object = Object {
            len: stat.len,
            version: stat.version,
            created: show::exact_time(stat.created),
            modified: show::exact_time(stat.modified),
            crc32c: format!("{:08x}", stat.checksum),
            metadata: metadata.collect(),
        };
        Self { key: escape::shown(key), is_prefix: None, object: Some(object) }
    }

    pub(crate) fn of_item(item: &Item) -> Self {
        match &item.stat {
            Some(stat) => Self::of(&item.key, stat),
            None => Self { key: escape::shown(&item.key), is_prefix: Some(true), object: None },
        }
    }

    fn lines(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "key       {}", self.key)?;
        let Some(object) = &self.object else { return Ok(()) };
        writeln!(out, "length    {}", show::count(object.len, "byte"))?;
        writeln!(out, "version   {}", object.version)?;
        writeln!(out, "created   {}", object.created)?;
        writeln!(out, "modified  {}", object.modified)?;
        writeln!(out, "crc-32c   {}", object.crc32c)?;
        for (name, value) in &object.metadata {
            writeln!(out, "metadata  {}={value}", escape::printable(name))?;
        }
        Ok(())
    }
}
