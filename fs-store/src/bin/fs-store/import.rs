//! `fs-store import`: a folder or a tar stream into a store.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fs_store::{Batch, MAX_KEY_BYTES, PutOptions, Store};
use serde::Serialize;

use crate::export::METADATA;
use crate::failure::{Context, Failure, print};
use crate::progress::{Progress, Watched};
use crate::{Outcome, escape, show};

/// Files up to so many bytes are gathered into commits of many.
const SMALL_BYTES: usize = 256 << 10;

/// A commit is made when it has so many bytes, or so many files.
const BATCH_BYTES: usize = 8 << 20;
const BATCH_FILES: usize = 4096;

/// Store a folder or a tar stream
#[derive(clap::Args)]
#[command(after_help = "\
Each file becomes an object; its key is the prefix and the path below the folder, with
slashes. Names that export has escaped are undone, unless --literal is given. What is
no file (links, devices) is left out: standard error says so, and the exit code is 1.
Objects that are there are replaced. Files are committed as they come, small ones many
at a time: if it is interrupted, those stay that were committed.

Examples:
  fs-store import --create store folder
  fs-store import store folder --prefix photos/
  curl -s https://example.org/x.tar | fs-store import store -
  zcat x.tar.gz | fs-store import store - --prefix x/")]
pub(crate) struct Args {
    /// The store
    store: PathBuf,
    /// The folder; - is a tar stream on standard input
    source: PathBuf,
    /// Put this before every key
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    prefix: OsString,
    /// Make a new store if there is none
    #[arg(long)]
    create: bool,
    /// Take names as they are, escapes and all
    #[arg(long)]
    literal: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let is_stream = args.source == Path::new("-");
    let (files, total) = if is_stream { (Vec::new(), None) } else { survey(args)? };
    let store = crate::open_to_change(&args.store, args.create)?;
    let mut import = Import {
        args,
        prefix: escape::bytes_of(&args.prefix),
        store,
        batch: Batch::new(),
        batch_bytes: 0,
        progress: Progress::new("importing", total),
        summary: Summary::default(),
    };
    let result = if is_stream { import.stream() } else { import.files(&files) };
    // What came before a failure is kept, and said.
    let committed = import.commit();
    let result = result.and(committed);
    let Import { store, progress, summary, .. } = import;
    drop(progress);
    let closed = crate::close(store, &args.store);
    let text = format!(
        "{}, {} imported",
        show::count(summary.objects, "object"),
        show::count(summary.bytes, "byte")
    );
    if let Err(failure) = result {
        return Err(Failure::because(format!("stopped after {text}"), failure));
    }
    closed?;
    print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &summary)?;
            return writeln!(out);
        }
        writeln!(out, "{text}")
    })?;
    Ok(if summary.left_out == 0 { Outcome::Done } else { Outcome::Partial })
}

/// All that is below the folder, in order, and how many bytes that are.
fn survey(args: &Args) -> Result<(Vec<PathBuf>, Option<u64>), Failure> {
    let doing = |path: &Path| format!("cannot read {}", show::path(path));
    let (mut found, mut total) = (Vec::new(), 0);
    let own = fs::canonicalize(&args.store).ok();
    let mut folders = vec![args.source.clone()];
    while let Some(folder) = folders.pop() {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&folder).doing(|| doing(&folder))? {
            entries.push(entry.doing(|| doing(&folder))?);
        }
        entries.sort_unstable_by_key(fs::DirEntry::file_name);
        let mut below = Vec::new();
        for entry in entries {
            let path = entry.path();
            let kind = entry.file_type().doing(|| doing(&path))?;
            if !kind.is_dir() {
                if kind.is_file() {
                    total += entry.metadata().map_or(0, |meta| meta.len());
                }
                found.push(path);
            } else if own.is_none() || fs::canonicalize(&path).ok() != own {
                below.push(path);
            }
        }
        folders.extend(below.into_iter().rev());
    }
    Ok((found, Some(total)))
}

/// What was done, by its name in JSON.
#[derive(Default, Serialize)]
struct Summary {
    objects: u64,
    bytes: u64,
    left_out: u64,
}

struct Import<'a> {
    args: &'a Args,
    prefix: Vec<u8>,
    store: Store,
    batch: Batch,
    batch_bytes: usize,
    progress: Progress,
    summary: Summary,
}

impl Import<'_> {
    fn files(&mut self, files: &[PathBuf]) -> Result<(), Failure> {
        for path in files {
            let shown = show::path(path);
            let is_file = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
            if !is_file {
                self.leave_out(&shown, "it is no file");
                continue;
            }
            let below = path.strip_prefix(&self.args.source).expect("found below it");
            let names = below.iter().map(|name| self.name(name));
            let key = names.collect::<Vec<_>>().join(&b'/');
            match File::open(path) {
                Ok(mut file) => self.add(&key, &mut file, &PutOptions::new(), &shown)?,
                Err(error) => self.leave_out(&shown, error),
            }
        }
        Ok(())
    }

    fn stream(&mut self) -> Result<(), Failure> {
        let doing = || "cannot read the tar stream".to_owned();
        let mut archive = tar::Archive::new(io::stdin().lock());
        for entry in archive.entries().doing(doing)? {
            let mut entry = entry.doing(doing)?;
            let path = entry.path_bytes().into_owned();
            let shown = escape::shown(&path);
            let kind = entry.header().entry_type();
            if kind.is_dir() || kind.is_pax_global_extensions() {
                continue;
            }
            if !(kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse()) {
                self.leave_out(&shown, "it is no file");
                continue;
            }
            // As tar itself takes a path: `./a` is `a`.
            let path = path.strip_prefix(b"./").unwrap_or(&path);
            let names = path
                .split(|byte| *byte == b'/')
                .map(|name| if self.args.literal { name.to_vec() } else { escape::undone(name) });
            let key = names.collect::<Vec<_>>().join(&b'/');
            let options = metadata_of(&mut entry);
            let left = entry.size();
            self.add(&key, &mut Exact { source: &mut entry, left }, &options, &shown)?;
        }
        Ok(())
    }

    /// A part of a key from the name of a file or folder.
    fn name(&self, name: &std::ffi::OsStr) -> Vec<u8> {
        if self.args.literal { name.as_encoded_bytes().to_vec() } else { escape::bytes_of(name) }
    }

    /// Stores what a reader has.
    fn add(
        &mut self,
        below: &[u8],
        source: &mut dyn Read,
        options: &PutOptions,
        shown: &str,
    ) -> Result<(), Failure> {
        let key = [&self.prefix[..], below].concat();
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            self.leave_out(shown, fs_store::Error::Key { len: key.len(), max: MAX_KEY_BYTES });
            return Ok(());
        }
        let doing = || format!("cannot store {shown}");
        let mut start = Vec::new();
        // One more, to see whether there is more.
        Read::take(&mut *source, SMALL_BYTES as u64 + 1).read_to_end(&mut start).doing(doing)?;
        if start.len() <= SMALL_BYTES {
            self.progress.advance(start.len() as u64);
            self.batch_bytes += start.len();
            self.batch.put_with(key, start, options);
            if self.batch_bytes >= BATCH_BYTES || self.batch.len() >= BATCH_FILES {
                self.commit()?;
            }
            return Ok(());
        }
        // In their order: a key may come twice, and the last one counts.
        self.commit()?;
        let source = Watched { source: (&start[..]).chain(source), progress: &mut self.progress };
        let len = self.store.put_reader_with(key, source, options).doing(doing)?.len;
        self.summary.objects += 1;
        self.summary.bytes += len;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        let batch = std::mem::take(&mut self.batch);
        let (objects, bytes) = (batch.len() as u64, std::mem::take(&mut self.batch_bytes) as u64);
        self.store.commit(batch).doing(|| "cannot store files".to_owned())?;
        self.summary.objects += objects;
        self.summary.bytes += bytes;
        Ok(())
    }

    fn leave_out(&mut self, shown: &str, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) {
        self.summary.left_out += 1;
        self.progress.report(&Failure::because(format!("left out {shown}"), why));
    }
}

/// Metadata that export has put into the stream.
fn metadata_of(entry: &mut tar::Entry<'_, impl Read>) -> PutOptions {
    let fields = entry.pax_extensions().ok().flatten();
    // What others have put there may be anything.
    fields.into_iter().flatten().flatten().fold(PutOptions::new(), |options, field| {
        match field.key().ok().and_then(|key| key.strip_prefix(METADATA)) {
            None => options,
            Some(name) => {
                let name = String::from_utf8_lossy(&escape::undone(name.as_bytes())).into_owned();
                options.metadata(name, escape::undone(field.value_bytes()))
            }
        }
    })
}

/// A source that must have so many bytes: a stream that is cut off is no short file.
struct Exact<R> {
    source: R,
    left: u64,
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buf)?;
        if count == 0 && !buf.is_empty() && self.left > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the stream is cut off"));
        }
        self.left = self.left.saturating_sub(count as u64);
        Ok(count)
    }
}
