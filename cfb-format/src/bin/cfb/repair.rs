//! `cfb repair`: from a damaged file to a new one.

use std::fs::{self, File};
use std::ops::Range;
use std::path::PathBuf;

use cfb_format::{Recovery, RepairOptions, RepairReport, RepairedStream, Strictness, repair};
use serde::Serialize;

use crate::check::Row;
use crate::failure::{Context, Failure, print};
use crate::pack::VersionArg;
use crate::staged::Staged;
use crate::{Outcome, escape, show};

/// Save what is left of a damaged file into a new one
#[derive(clap::Args)]
#[command(after_help = "\
The damaged file is only read. The new one keeps every rule of the format, whatever
the damage, and appears under its name when it is complete.

Of each stream it is told whether it is whole, in part (missing bytes read as zeros),
guessed (bytes that no link leads to, or that two streams lay claim to) or lost. What
no storage is known to have held goes to a storage of its own. The exit code is 0 if
every stream is whole and in its place, 1 if not, 2 if nothing could be saved.

Examples:
  cfb repair report.doc -o saved.doc
  cfb repair --json report.doc -o saved.doc | jq '.streams[] | select(.recovery != \"whole\")'")]
pub(crate) struct Args {
    /// The damaged compound file
    file: PathBuf,
    /// The new compound file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the new file if it is there
    #[arg(short, long)]
    force: bool,
    /// Version of the new file, in place of the damaged one's
    #[arg(long, value_name = "3|4")]
    version: Option<VersionArg>,
    /// Name of the storage for what no storage is known to have held
    #[arg(long, value_name = "NAME", default_value = "Recovered")]
    orphans: String,
    /// List the whole streams too
    #[arg(short, long)]
    list: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let doing = || format!("cannot repair {}", show::path(&args.file));
    let damaged = File::open(&args.file).doing(doing)?;
    let output = || format!("cannot make {}", show::path(&args.output));
    if let (Ok(from), Ok(to)) = (fs::canonicalize(&args.file), fs::canonicalize(&args.output))
        && from == to
    {
        return Err(Failure::because(output(), "it is the damaged file"));
    }
    if !args.force && args.output.symlink_metadata().is_ok() {
        return Err(Failure::because(output(), "it is there already; --force replaces it"));
    }

    let staged = Staged::beside(&args.output);
    let mut target = File::options();
    let target = target.read(true).write(true).create_new(true).open(staged.path());
    let mut options = RepairOptions::new().orphanage(&args.orphans);
    if let Some(version) = args.version {
        options = options.version(version.into());
    }
    let target = target.doing(output)?;
    let report = repair(&damaged, &target, &options).doing(doing)?;
    drop(target);
    // The last word is the strict reader's.
    crate::open(staged.path(), Strictness::Strict)?;
    staged.publish(args.force).doing(output)?;

    print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &Summary::of(&report))?;
            return writeln!(out);
        }
        for finding in report.findings() {
            writeln!(out, "{:<7}  {}: {finding}", "found", finding.code().as_str())?;
        }
        let told = |stream: &&RepairedStream| {
            args.list || stream.recovery() != Recovery::Whole || stream.is_orphan()
        };
        for stream in report.streams().iter().filter(told) {
            writeln!(out, "{}", line(stream))?;
        }
        writeln!(out, "{}", totals(&report))
    })?;
    Ok(if report.is_whole() { Outcome::Done } else { Outcome::Partial })
}

/// Ranges of a kind that are told in one line.
const RANGES: usize = 4;

fn line(stream: &RepairedStream) -> String {
    let names = stream.path().split('/').skip(1);
    let names = names.map(|name| escape::shown(&name.encode_utf16().collect::<Vec<u16>>()));
    let path = names.fold(String::new(), |path, name| path + "/" + &name);
    let (got, promised) = (stream.recovered_bytes(), stream.promised_len());
    let bytes = if got == promised {
        show::count(got, "byte")
    } else {
        format!("{} of {}", show::grouped(got), show::count(promised, "byte"))
    };
    let mut parts = vec![format!("{:<7}  {path}  {bytes}", stream.recovery().as_str())];
    for (what, ranges) in [
        ("missing", stream.missing()),
        ("guessed", stream.guessed()),
        ("doubtful", stream.doubtful()),
    ] {
        if !ranges.is_empty() {
            let some = ranges.iter().take(RANGES);
            let some: Vec<String> = some.map(|r| format!("{}..{}", r.start, r.end)).collect();
            let more = if ranges.len() > RANGES { " and more" } else { "" };
            parts.push(format!("{what} {}{more}", some.join(" ")));
        }
    }
    parts.join(", ")
}

fn totals(report: &RepairReport) -> String {
    let count = |recovery| show::grouped(report.count(recovery));
    format!(
        "{}: {} whole, {} guessed, {} in part, {} lost; {} recovered",
        show::count(report.streams().len() as u64, "stream"),
        count(Recovery::Whole),
        count(Recovery::Guessed),
        count(Recovery::Partial),
        count(Recovery::Lost),
        show::count(report.recovered_bytes(), "byte"),
    )
}

/// The report in JSON.
#[derive(Serialize)]
struct Summary<'a> {
    version: u16,
    sector_bytes: u32,
    whole: u64,
    guessed: u64,
    partial: u64,
    lost: u64,
    recovered_bytes: u64,
    storages: u64,
    renamed: u64,
    findings: Vec<Row<'a>>,
    streams: Vec<StreamRow<'a>>,
}

impl<'a> Summary<'a> {
    fn of(report: &'a RepairReport) -> Self {
        Self {
            version: report.version().number(),
            sector_bytes: report.sector_bytes(),
            whole: report.count(Recovery::Whole),
            guessed: report.count(Recovery::Guessed),
            partial: report.count(Recovery::Partial),
            lost: report.count(Recovery::Lost),
            recovered_bytes: report.recovered_bytes(),
            storages: report.storages_count(),
            renamed: report.renamed_count(),
            findings: report.findings().iter().map(Row::of).collect(),
            streams: report.streams().iter().map(StreamRow::of).collect(),
        }
    }
}

/// One stream in JSON. Ranges are pairs of first byte and the one behind the last.
#[derive(Serialize)]
struct StreamRow<'a> {
    path: &'a str,
    recovery: &'static str,
    bytes: u64,
    promised_bytes: u64,
    recovered_bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<[u64; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    guessed: Vec<[u64; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    doubtful: Vec<[u64; 2]>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    orphan: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    nameless: bool,
}

impl<'a> StreamRow<'a> {
    fn of(stream: &'a RepairedStream) -> Self {
        let pairs = |ranges: &[Range<u64>]| ranges.iter().map(|r| [r.start, r.end]).collect();
        Self {
            path: stream.path(),
            recovery: stream.recovery().as_str(),
            bytes: stream.len(),
            promised_bytes: stream.promised_len(),
            recovered_bytes: stream.recovered_bytes(),
            missing: pairs(stream.missing()),
            guessed: pairs(stream.guessed()),
            doubtful: pairs(stream.doubtful()),
            orphan: stream.is_orphan(),
            nameless: stream.is_nameless(),
        }
    }
}
