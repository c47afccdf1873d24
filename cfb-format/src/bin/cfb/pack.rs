//! `cfb pack`: a folder into a new compound file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cfb_format::{CreateOptions, EntryKind, Strictness, Version};
use clap::ValueEnum;
use uuid::Uuid;

use crate::copying::Copier;
use crate::failure::{Context, Failure, print};
use crate::import::{Rules, Survey};
use crate::listing::{Listing, Names, Totals};
use crate::progress::Progress;
use crate::staged::Staged;
use crate::{Compound, Outcome, ls, show};

/// Make a compound file of a folder
#[derive(clap::Args)]
#[command(after_help = "\
Folders become storages, files become streams. Escapes in file names (%uXXXX) are
undone, so a folder made by extract becomes the same entries again. Equal folders
make equal files. The file appears under its name when it is complete; folders on
the way to it are made.

Names have at most 31 UTF-16 units and none of / \\ : !, and two in one folder must
differ by more than case. Files that break this stop the work, unless --skip.

Examples:
  cfb pack report report.doc
  cfb pack --version 4 --list assets assets.cfb
  cfb pack --clsid 000c1084-0000-0000-c000-000000000046 setup setup.msi")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// The folder to take in
    folder: PathBuf,
    /// The compound file to make
    file: PathBuf,
    /// Replace the file if it is there
    #[arg(short, long)]
    force: bool,
    /// Version of the format: 3 has sectors of 512 bytes, 4 of 4096
    #[arg(long, value_name = "3|4", default_value = "3")]
    version: VersionArg,
    /// The class of the root
    #[arg(long, value_name = "UUID")]
    clsid: Option<Uuid>,
    /// List the finished file, with sizes and throughput
    #[arg(short, long)]
    list: bool,
    /// Leave out what cannot be stored, instead of stopping
    #[arg(long)]
    skip: bool,
    /// Take file names as they are, without undoing escapes
    #[arg(long)]
    literal_names: bool,
}

/// The version as it is typed.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum VersionArg {
    #[value(name = "3")]
    V3,
    #[value(name = "4")]
    V4,
}

impl From<VersionArg> for Version {
    fn from(version: VersionArg) -> Self {
        match version {
            VersionArg::V3 => Self::V3,
            VersionArg::V4 => Self::V4,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let doing = || format!("cannot make {}", show::path(&args.file));
    if !args.force && args.file.symlink_metadata().is_ok() {
        return Err(Failure::because(doing(), "it is there already; --force replaces it"));
    }
    let rules = Rules { literal_names: args.literal_names, except: Some(&args.file) };
    let survey = Survey::of(&args.folder, rules)?;

    if let Some(parent) = args.file.parent() {
        fs::create_dir_all(parent).doing(doing)?;
    }
    let started = Instant::now();
    let staged = Staged::beside(&args.file);
    let version = args.version.into();
    // The file gets its name when it is whole: until then there is nothing to lose.
    let options = CreateOptions::new().version(version).in_place(true);
    let file = options.create_new(staged.path()).doing(doing)?;
    if let Some(clsid) = args.clsid {
        file.set_clsid("/", clsid).doing(doing)?;
    }
    let (outcome, bytes) = take_in(survey, &file, "", args.skip)?;
    file.into_storage().doing(doing)?;
    staged.publish(args.force).doing(doing)?;
    let packed = Speed { bytes, time: started.elapsed() };

    if args.list {
        list(&args.file, packed)?;
    }
    Ok(outcome)
}

/// Problems told when there are so many that nothing is done.
const EXAMPLES: usize = 20;

/// Makes the surveyed entries below `base` and fills them. Gives back the bytes taken in.
///
/// # Errors
///
/// When something cannot be stored, unless `skip`: then it is reported.
pub(crate) fn take_in(
    mut survey: Survey,
    file: &Compound,
    base: &str,
    skip: bool,
) -> Result<(Outcome, u64), Failure> {
    let mut progress = Progress::new("storing", Some(survey.bytes));
    let pending = survey.make_entries(file, base);
    let problems = survey.problems.len();
    // A reader who has to rename things wants examples; one who leaves things out, all.
    let told = if skip { problems } else { EXAMPLES };
    for problem in survey.problems.iter().take(told) {
        progress.report(problem);
    }
    if problems > 0 && !skip {
        let what = show::count(problems as u64, "item");
        return Err(Failure::new(format!(
            "{what} cannot be stored, nothing is done; --skip leaves them out"
        )));
    }
    let mut copier = Copier::new();
    for pending in pending {
        pending.fill(&mut copier, &mut progress)?;
    }
    let outcome = if problems == 0 { Outcome::Done } else { Outcome::Partial };
    Ok((outcome, progress.bytes()))
}

/// Bytes over a time.
#[derive(Clone, Copy)]
struct Speed {
    bytes: u64,
    time: Duration,
}

impl std::fmt::Display for Speed {
    #[expect(clippy::cast_precision_loss, reason = "a speed of 53 bits is exact enough")]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.time.as_secs_f64().max(1e-9);
        let rate = self.bytes as f64 / seconds / f64::from(1 << 20);
        let bytes = show::count(self.bytes, "byte");
        write!(f, "{bytes} in {:.1} ms, {rate:.0} MiB/s", seconds * 1e3)
    }
}

/// Reads the finished file back, whole, and prints what is in it.
fn list(path: &Path, packed: Speed) -> Result<(), Failure> {
    let started = Instant::now();
    let file = crate::open(path, Strictness::Strict)?;
    let root = file.root();
    let items = || Listing::below(&file, &root, Names::as_stored(), true);
    let mut totals = Totals::default();
    let width = ls::size_width(items()?.map(|item| item.entry).inspect(|entry| totals.add(entry)));
    let bytes = read_all(&file, items()?, totals.bytes)?;
    let read = Speed { bytes, time: started.elapsed() };

    let file_bytes = fs::metadata(path).map_or(0, |meta| meta.len());
    let mut lines = items()?;
    print(|out| {
        lines.try_for_each(|item| ls::long(out, &item, width, true))?;
        let storages = show::count(totals.storages, "storage");
        let streams = show::count(totals.streams, "stream");
        writeln!(out)?;
        writeln!(out, "{storages}, {streams}, file of {}", show::count(file_bytes, "byte"))?;
        writeln!(out, "packed  {packed}")?;
        writeln!(out, "read    {read}")
    })
}

fn read_all(file: &Compound, items: Listing<'_>, total_bytes: u64) -> Result<u64, Failure> {
    let mut copier = Copier::new();
    let mut progress = Progress::new("reading back", Some(total_bytes));
    for item in items.filter(|item| item.entry.kind() == EntryKind::Stream) {
        let doing = || format!("cannot read {} back", item.path);
        let stream = file.open_stream(&item.entry).doing(doing)?;
        let damage = copier.copy_out(&stream, &mut std::io::sink(), &mut progress).doing(doing)?;
        if let Some(damage) = damage {
            return Err(Failure::because(doing(), damage));
        }
    }
    Ok(progress.bytes())
}
