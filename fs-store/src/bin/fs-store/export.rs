//! `fs-store export`: objects into a folder or a tar stream.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fs_store::{Item, ListOptions, Reader, Snapshot, Stat};
use serde::Serialize;

use crate::copying::Copier;
use crate::failure::{Context, Failure, print};
use crate::progress::{Progress, Watched};
use crate::{Outcome, escape, show};

/// Write objects to a folder or a tar stream
#[derive(clap::Args)]
#[command(after_help = "\
Each object becomes a file below the folder, which must be new or empty; slashes in the
key make folders. No key leads out of the folder: a part that is `..` becomes `%2E.`,
one that is empty, as that before the first slash of `/a`, becomes `%_`, and what no file
can be called is written %XX. A file that would have the name of a folder gets `%_` behind
it. import undoes all of this. Files have the time of the object. Its metadata goes into
a tar stream only, as fields FSSTORE.metadata.NAME, which import takes and other programs
ignore, some with a warning. All is of one moment, whatever is written meanwhile.

A damaged object is left out of a folder: standard error says so, and the exit code is
1. It ends a tar stream with the exit code 1, as the stream has promised its length.

Examples:
  fs-store export store folder
  fs-store export store folder --prefix photos/
  fs-store export store - | gzip > store.tar.gz
  fs-store export old - | fs-store import --create new -")]
pub(crate) struct Args {
    /// The store
    store: PathBuf,
    /// The folder; - is a tar stream on standard output
    target: PathBuf,
    /// Only keys that begin with this; it is not part of the names
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    prefix: OsString,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let is_stream = args.target == Path::new("-");
    if is_stream && args.json {
        return Err(Failure::new("--json and a tar stream cannot both go to standard output"));
    }
    if is_stream && io::stdout().is_terminal() {
        return Err(Failure::new("a tar stream is not for a terminal"));
    }
    let doing = || format!("cannot export {}", show::path(&args.store));
    let store = crate::open(&args.store)?;
    let prefix = escape::bytes_of(&args.prefix);
    let total = store.usage().doing(doing)?.object_bytes;
    let mut export = Export {
        args,
        snapshot: store.snapshot(),
        progress: Progress::new("exporting", prefix.is_empty().then_some(total)),
        prefix,
        summary: Summary::default(),
    };
    if is_stream {
        export.stream(&doing)?;
    } else {
        export.folder(&args.target, &doing)?;
    }
    let Export { progress, summary, .. } = export;
    drop(progress);
    if !is_stream {
        print(|out| {
            if args.json {
                serde_json::to_writer_pretty(&mut *out, &summary)?;
                return writeln!(out);
            }
            let objects = show::count(summary.objects, "object");
            writeln!(out, "{objects}, {} exported", show::count(summary.bytes, "byte"))
        })?;
    }
    Ok(if summary.left_out == 0 { Outcome::Done } else { Outcome::Partial })
}

/// Fields of a tar stream that are metadata of objects.
pub(crate) const METADATA: &str = "FSSTORE.metadata.";

/// What was done, by its name in JSON.
#[derive(Default, Serialize)]
struct Summary {
    objects: u64,
    bytes: u64,
    left_out: u64,
}

struct Export<'a> {
    args: &'a Args,
    snapshot: Snapshot,
    prefix: Vec<u8>,
    progress: Progress,
    summary: Summary,
}

impl Export<'_> {
    fn items(&self) -> fs_store::Result<impl Iterator<Item = fs_store::Result<Item>> + use<>> {
        self.snapshot.list(&ListOptions::new().prefix(&self.prefix[..]))
    }

    /// The path of an object below the folder: names with slashes, none of
    /// which leads up or is empty.
    fn path(&self, key: &[u8]) -> fs_store::Result<String> {
        let below = &key[self.prefix.len()..];
        let names = below.split(|byte| *byte == b'/').map(escape::file_name);
        let mut path = names.collect::<Vec<_>>().join("/");
        let folder = [key, b"/"].concat();
        let has_below = ListOptions::new().prefix(folder).keys_only().limit(1);
        if self.snapshot.list(&has_below)?.next().is_some() {
            path.push_str("%_");
        }
        Ok(path)
    }

    fn reader(&self, key: &[u8]) -> fs_store::Result<Reader> {
        let reader = self.snapshot.reader(key)?;
        reader.ok_or_else(|| fs_store::Error::NotFound { key: key.to_vec() })
    }

    fn folder(&mut self, target: &Path, doing: &dyn Fn() -> String) -> Result<(), Failure> {
        let making = || format!("cannot make {}", show::path(target));
        fs::create_dir_all(target).doing(making)?;
        // Links that are there could lead anywhere.
        if fs::read_dir(target).doing(making)?.next().is_some() {
            return Err(Failure::because(making(), "it is there already, and not empty"));
        }
        let mut copier = Copier::new();
        let mut last_folder = PathBuf::new();
        for item in self.items().doing(doing)? {
            let item = item.doing(doing)?;
            let path = target.join(self.path(&item.key).doing(doing)?);
            let folder = path.parent().expect("below the target");
            let made = if last_folder == folder { Ok(()) } else { fs::create_dir_all(folder) };
            let made = made.and_then(|()| File::create_new(&path));
            folder.clone_into(&mut last_folder);
            let mut file = match made {
                Ok(file) => file,
                // Too long a name, or one that this file system takes for another.
                Err(error) if is_for_this_name(&error) => {
                    self.leave_out(&item.key, error);
                    continue;
                }
                Err(error) => {
                    return Err(error).doing(|| format!("cannot make {}", show::path(&path)));
                }
            };
            let mut reader = self.reader(&item.key).doing(doing)?;
            let len = reader.len();
            let damage = copier
                .copy(&mut reader, 0, len, &mut file, &mut self.progress)
                .doing(|| format!("cannot write {}", show::path(&path)))?;
            if let Some(damage) = damage {
                drop(file);
                fs::remove_file(&path).doing(|| format!("cannot remove {}", show::path(&path)))?;
                let version = reader.stat().version;
                let damage = crate::explain(&self.args.store, &item.key, version, damage);
                self.leave_out(&item.key, damage);
                continue;
            }
            if let Some(stat) = &item.stat {
                // A file without the right time is better than none.
                let _ = file.set_modified(time_of(stat));
            }
            self.summary.objects += 1;
            self.summary.bytes += len;
        }
        Ok(())
    }

    fn stream(&mut self, doing: &dyn Fn() -> String) -> Result<(), Failure> {
        /// What is read of an object and written to the stream at a time.
        const BUFFER_BYTES: usize = 1 << 20;
        let out = io::BufWriter::with_capacity(256 << 10, io::stdout().lock());
        let mut out = tar::Builder::new(out);
        for item in self.items().doing(doing)? {
            let item = item.doing(doing)?;
            let path = self.path(&item.key).doing(doing)?;
            let reader = self.reader(&item.key).doing(doing)?;
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Regular);
            header.set_mode(0o644);
            header.set_size(reader.len());
            let stat = reader.stat();
            header.set_mtime(stat.modified / 1_000_000_000);
            let metadata: Vec<_> = stat.metadata.iter().map(metadata_field).collect();
            if !metadata.is_empty() {
                let fields = metadata.iter().map(|(name, value)| (&name[..], value.as_bytes()));
                out.append_pax_extensions(fields).map_err(Failure::stdout)?;
            }
            let len = reader.len();
            let buffer = usize::try_from(len).unwrap_or(BUFFER_BYTES).clamp(1, BUFFER_BYTES);
            let mut why = None;
            let source = Watched { source: reader, progress: &mut self.progress };
            let source = BufReader::with_capacity(buffer, Noting { source, why: &mut why });
            let written = out.append_data(&mut header, path, source);
            if let Some(error) = why {
                let error = crate::explain(&self.args.store, &item.key, stat.version, error);
                return Err(Failure::because(
                    format!("the stream ends within {}", escape::shown(&item.key)),
                    error,
                ));
            }
            written.map_err(Failure::stdout)?;
            self.summary.objects += 1;
            self.summary.bytes += len;
        }
        out.into_inner().and_then(|mut out| out.flush()).map_err(Failure::stdout)
    }

    fn leave_out(&mut self, key: &[u8], why: impl Into<Box<dyn std::error::Error + Send + Sync>>) {
        self.summary.left_out += 1;
        let failure = Failure::because(format!("left out {}", escape::shown(key)), why);
        self.progress.report(&failure);
    }
}

/// Metadata as tar takes it: text without `=` in the name or an end of line.
fn metadata_field((name, value): &(String, Vec<u8>)) -> (String, String) {
    let name = escape::shown_value(name.as_bytes()).replace('=', "%3D");
    (format!("{METADATA}{name}"), escape::shown_value(value))
}

/// Whether another file could be made where this one could not.
fn is_for_this_name(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists
            | io::ErrorKind::InvalidFilename
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::NotADirectory
    )
}

fn time_of(stat: &Stat) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(stat.modified)
}

/// A source that keeps what went wrong, to tell it from what went wrong with the target.
struct Noting<'a, R> {
    source: R,
    why: &'a mut Option<fs_store::Error>,
}

impl<R: Read> Read for Noting<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.source.read(buf).map_err(|error| {
            let kind = error.kind();
            match error.downcast::<fs_store::Error>() {
                Ok(error) => {
                    *self.why = Some(error);
                    kind.into()
                }
                Err(error) => error,
            }
        })
    }
}
