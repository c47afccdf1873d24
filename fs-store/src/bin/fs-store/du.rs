//! `fs-store du`: what takes how much space.

use std::io::{self, Write};
use std::path::PathBuf;

use fs_store::{ListOptions, Usage};
use serde::Serialize;

use crate::failure::{Context, Failure, print};
use crate::ls::Which;
use crate::{Outcome, escape, show};

/// Tell how much space keys and the store take
#[derive(clap::Args)]
#[command(after_help = "\
Bytes and objects are summed up by what is in front of the first delimiter behind the
prefix; keys without one are summed up as one. The figures of the store are those of
its files: `files` is their length, `on disk` what they take of the medium, `free` is
used before they grow, `waiting` becomes free at the next flush or when the last reader
of it is gone.

Examples:
  fs-store du store
  fs-store du store --prefix photos/
  fs-store du --json store | jq '.store.file_bytes'")]
pub(crate) struct Args {
    /// The store
    store: PathBuf,
    #[command(flatten)]
    which: Which,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Keys that are summed up.
#[derive(Serialize)]
struct Group {
    /// Up to the delimiter; the prefix itself for keys without.
    prefix: String,
    objects: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Summary {
    groups: Vec<Group>,
    objects: u64,
    bytes: u64,
    store: Figures,
}

#[derive(Serialize)]
struct Figures {
    objects: u64,
    object_bytes: u64,
    files: u64,
    file_bytes: u64,
    allocated_bytes: u64,
    free_bytes: u64,
    waiting_bytes: u64,
    journal_bytes: u64,
}

impl Figures {
    fn of(usage: &Usage) -> Self {
        Self {
            objects: usage.objects,
            object_bytes: usage.object_bytes,
            files: usage.files,
            file_bytes: usage.file_bytes,
            allocated_bytes: usage.allocated_bytes,
            free_bytes: usage.free_bytes,
            waiting_bytes: usage.waiting_bytes,
            journal_bytes: usage.journal_bytes,
        }
    }

    fn lines(&self, out: &mut dyn Write) -> io::Result<()> {
        let files = format!("in {}", show::count(self.files, "block file"));
        let objects = format!("in {}", show::count(self.objects, "object"));
        let lines = [
            ("objects", self.object_bytes, &objects[..]),
            ("files", self.file_bytes, &files[..]),
            ("on disk", self.allocated_bytes, ""),
            ("free", self.free_bytes, ""),
            ("waiting", self.waiting_bytes, ""),
            ("journal", self.journal_bytes, ""),
        ];
        for (name, bytes, more) in lines {
            let line = format!("{name:<8} {:>20} {more}", show::grouped(bytes));
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let doing = || format!("cannot measure {}", show::path(&args.store));
    let store = crate::open(&args.store)?;
    let prefix = escape::bytes_of(&args.which.prefix);
    let delimiter = args.which.delimiter.unwrap_or(b'/');
    let mut groups: Vec<(Vec<u8>, Group)> = Vec::new();
    let mut direct = Group { prefix: escape::shown(&prefix), objects: 0, bytes: 0 };
    let options = ListOptions::new().prefix(&prefix[..]);
    for item in store.list(&options).doing(doing)? {
        let item = item.doing(doing)?;
        let bytes = item.stat.map_or(0, |stat| stat.len);
        let rest = &item.key[prefix.len()..];
        let group = match rest.iter().position(|byte| *byte == delimiter) {
            None => &mut direct,
            Some(at) => {
                let name = &item.key[..=prefix.len() + at];
                // Keys of one group follow one another.
                if groups.last().is_none_or(|(last, _)| last != name) {
                    let group = Group { prefix: escape::shown(name), objects: 0, bytes: 0 };
                    groups.push((name.to_vec(), group));
                }
                &mut groups.last_mut().expect("just pushed").1
            }
        };
        group.objects += 1;
        group.bytes += bytes;
    }
    let has_direct = direct.objects > 0;
    let groups: Vec<Group> = has_direct
        .then_some(direct)
        .into_iter()
        .chain(groups.into_iter().map(|(_, group)| group))
        .collect();
    let summary = Summary {
        objects: groups.iter().map(|group| group.objects).sum(),
        bytes: groups.iter().map(|group| group.bytes).sum(),
        groups,
        store: Figures::of(&store.usage().doing(doing)?),
    };
    print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &summary)?;
            return writeln!(out);
        }
        for (nth, group) in summary.groups.iter().enumerate() {
            let name = if nth == 0 && has_direct { "(in no group)" } else { &group.prefix };
            line(out, group.bytes, group.objects, name)?;
        }
        line(out, summary.bytes, summary.objects, "in total")?;
        writeln!(out)?;
        summary.store.lines(out)
    })?;
    Ok(Outcome::Done)
}

fn line(out: &mut dyn Write, bytes: u64, objects: u64, name: &str) -> io::Result<()> {
    writeln!(out, "{:>20}  {:>16}  {name}", show::grouped(bytes), show::count(objects, "object"))
}
