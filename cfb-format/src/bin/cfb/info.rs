//! `cfb info`: the file as a whole.

use std::fmt;
use std::path::PathBuf;

use cfb_format::{Finding, Severity, Strictness};
use serde::Serialize;

use crate::failure::{Context, Failure, print};
use crate::{Compound, Outcome, show};

/// Tell version, sizes, free space and fragmentation
#[derive(clap::Args)]
#[command(after_help = "\
Fragments are the runs of neighbouring sectors that hold the streams; a file whose
streams are all in one piece has as many fragments as streams with content.

Examples:
  cfb info report.doc
  cfb info --json report.doc")]
pub(crate) struct Args {
    /// The compound file
    file: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, strictness: Strictness) -> Result<Outcome, Failure> {
    let file = crate::open(&args.file, strictness)?;
    let info = Info::of(&file).doing(|| format!("cannot measure {}", show::path(&args.file)))?;
    print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &info)?;
            return writeln!(out);
        }
        for (name, value) in info.lines() {
            writeln!(out, "{name:<11}  {value}")?;
        }
        Ok(())
    })?;
    Ok(Outcome::Done)
}

/// The one size of a mini sector. [MS-CFB] 2.2
const MINI_SECTOR_BYTES: u64 = 64;

/// What is told, by its name in JSON.
#[derive(Serialize)]
struct Info {
    version: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    clsid: Option<String>,
    sector_bytes: u32,
    file_bytes: u64,
    storages: u64,
    streams: u64,
    damaged_streams: u64,
    stream_bytes: u64,
    fragments: u64,
    fragments_per_stream: f64,
    mini_stream_bytes: u64,
    mini_free_bytes: u64,
    metadata_bytes: u64,
    free_bytes: u64,
    free_runs: u64,
    unowned_bytes: u64,
    findings: Counts,
}

impl Info {
    fn of(file: &Compound) -> Result<Self, cfb_format::Error> {
        let usage = file.usage()?;
        let clsid = file.root().clsid();
        let sectors = |count: u32| u64::from(count) * u64::from(usage.sector_bytes);
        let mini_sectors = |count: u32| u64::from(count) * MINI_SECTOR_BYTES;
        Ok(Self {
            version: file.version().number(),
            clsid: (!clsid.is_nil()).then(|| clsid.to_string()),
            sector_bytes: usage.sector_bytes,
            file_bytes: usage.file_bytes,
            storages: u64::from(usage.storages),
            streams: u64::from(usage.streams),
            damaged_streams: u64::from(usage.damaged_streams),
            stream_bytes: usage.stream_bytes,
            fragments: usage.stream_runs,
            fragments_per_stream: (usage.runs_per_stream() * 100.0).round() / 100.0,
            mini_stream_bytes: mini_sectors(usage.mini_sectors),
            mini_free_bytes: mini_sectors(usage.free_mini_sectors),
            metadata_bytes: sectors(usage.metadata_sectors),
            free_bytes: usage.free_bytes(),
            free_runs: u64::from(usage.free_runs),
            unowned_bytes: sectors(usage.unowned_sectors),
            findings: Counts::of(&file.findings()),
        })
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let bytes = |count| show::count(count, "byte");
        let mini_free = show::grouped(self.mini_free_bytes);
        let free_runs = show::count(self.free_runs, "run");
        let mut lines = vec![
            ("version", format!("{}, sectors of {} bytes", self.version, self.sector_bytes)),
            ("file", bytes(self.file_bytes)),
            ("storages", show::grouped(self.storages)),
            ("streams", format!("{} of {}", show::grouped(self.streams), bytes(self.stream_bytes))),
            (
                "fragments",
                format!(
                    "{}, {} a stream",
                    show::grouped(self.fragments),
                    self.fragments_per_stream
                ),
            ),
            ("mini stream", format!("{}, {mini_free} free", bytes(self.mini_stream_bytes))),
            ("metadata", bytes(self.metadata_bytes)),
            ("free", format!("{} in {free_runs}", bytes(self.free_bytes))),
            ("findings", self.findings.to_string()),
        ];
        if self.damaged_streams > 0 {
            lines.push(("damaged", show::count(self.damaged_streams, "stream")));
        }
        if self.unowned_bytes > 0 {
            lines.push(("unowned", bytes(self.unowned_bytes)));
        }
        if let Some(clsid) = &self.clsid {
            lines.insert(1, ("class", format!("{{{clsid}}}")));
        }
        lines
    }
}

/// Departures from the format met so far, by weight.
#[derive(Serialize)]
struct Counts {
    notes: u64,
    warnings: u64,
    errors: u64,
}

impl Counts {
    fn of(findings: &[Finding]) -> Self {
        let count = |severity| findings.iter().filter(|f| f.severity() == severity).count() as u64;
        Self {
            notes: count(Severity::Note),
            warnings: count(Severity::Warning),
            errors: count(Severity::Error),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {}, {} when opened",
            show::count(self.notes, "note"),
            show::count(self.warnings, "warning"),
            show::count(self.errors, "error")
        )
    }
}
