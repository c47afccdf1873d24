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

/// What is told, by its name in JSON.
#[derive(Serialize)]
struct Info {
    version: u16,
    sector_bytes: u32,
    file_bytes: u64,
    streams: u64,
    storages: u64,
    stream_bytes: u64,
    metadata_bytes: u64,
    free_bytes: u64,
    free_runs: u64,
    fragments: u64,
    mini_stream_bytes: u64,
    mini_free_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    clsid: Option<String>,
    findings: Counts,
}

impl Info {
    fn of(file: &Compound) -> Result<Self, cfb_format::Error> {
        let usage = file.usage()?;
        let clsid = file.root().clsid();
        Ok(Self {
            version: file.version().number(),
            sector_bytes: usage.sector_bytes,
            clsid: (!clsid.is_nil()).then(|| clsid.to_string()),
            storages: u64::from(usage.storages),
            streams: u64::from(usage.streams),
            fragments: usage.fragments,
            file_bytes: usage.file_bytes,
            stream_bytes: usage.stream_bytes,
            metadata_bytes: usage.metadata_bytes,
            free_bytes: usage.free_bytes,
            free_runs: u64::from(usage.free_runs),
            mini_stream_bytes: usage.mini_stream_bytes,
            mini_free_bytes: usage.mini_free_bytes,
            // Last, so that what measuring came across is counted.
            findings: Counts::of(&file.findings()),
        })
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let bytes = |count| show::count(count, "byte");
        let mut lines = vec![
            ("version", format!("{}, sectors of {} bytes", self.version, self.sector_bytes)),
            ("file", bytes(self.file_bytes)),
            ("storages", show::grouped(self.storages)),
            (
                "streams",
                format!(
                    "{} of {} in {}",
                    show::grouped(self.streams),
                    bytes(self.stream_bytes),
                    show::count(self.fragments, "fragment")
                ),
            ),
            (
                "mini stream",
                format!(
                    "{}, {} of them free",
                    bytes(self.mini_stream_bytes),
                    show::grouped(self.mini_free_bytes)
                ),
            ),
            ("metadata", bytes(self.metadata_bytes)),
            (
                "free",
                format!("{} in {}", bytes(self.free_bytes), show::count(self.free_runs, "run")),
            ),
            ("findings", self.findings.to_string()),
        ];
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
