//! `fs-store verify`: everything against its checksums.

use std::path::PathBuf;

use fs_store::Error;
use serde::Serialize;

use crate::failure::{Context, Failure, print};
use crate::progress::Progress;
use crate::{Outcome, escape, show};

/// Read everything against its checksums
#[derive(clap::Args)]
#[command(after_help = "\
Also checks that every sector has one owner or is free. The store must not be open for
writing elsewhere, and a journal that was left by a crash is worked off first; with
--read-only nothing is written, and free space is not checked. The exit code is 0 if
nothing is wrong, 1 if something is, 2 if the store does not open.

Examples:
  fs-store verify store
  fs-store verify --read-only --json store | jq -r '.findings[].text'")]
pub(crate) struct Args {
    /// The store
    store: PathBuf,
    /// Write nothing, not even a journal into the index
    #[arg(long)]
    read_only: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let doing = || format!("cannot check {}", show::path(&args.store));
    let store = if args.read_only {
        crate::open(&args.store)?
    } else {
        crate::open_to_change(&args.store, false)?
    };
    let mut progress = Progress::new("checking", None);
    let report = store.verify(|done, total| progress.reach(done, total)).doing(doing)?;
    drop(progress);
    print(|out| {
        if args.json {
            let findings = report.findings.iter().map(Finding::of).collect();
            let summary = Summary { objects: report.objects, bytes: report.bytes, findings };
            serde_json::to_writer_pretty(&mut *out, &summary)?;
            return writeln!(out);
        }
        for finding in &report.findings {
            writeln!(out, "{}", escape::printable(&finding.to_string()))?;
        }
        let objects = show::count(report.objects, "object");
        let bytes = show::count(report.bytes, "byte");
        let findings = match report.findings.len() as u64 {
            0 => "nothing is wrong".to_owned(),
            number => show::count(number, "finding"),
        };
        writeln!(out, "{objects}, {bytes}: {findings}")
    })?;
    Ok(if report.is_sound() { Outcome::Done } else { Outcome::Partial })
}

#[derive(Serialize)]
struct Summary {
    objects: u64,
    bytes: u64,
    findings: Vec<Finding>,
}

/// One finding in JSON.
#[derive(Serialize)]
struct Finding {
    /// The object that is concerned, as the verbs take it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Bytes of the object that are in doubt.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<u64>,
    /// Where that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    text: String,
}

impl Finding {
    fn of(error: &Error) -> Self {
        let mut finding = Self {
            key: None,
            start: None,
            end: None,
            file: None,
            offset: None,
            text: error.to_string(),
        };
        match error {
            Error::Corrupt { key, start, end, file, offset } => {
                (finding.start, finding.end) = (Some(*start), Some(*end));
                finding.key = Some(escape::shown(key));
                (finding.file, finding.offset) = (Some(file.clone()), Some(*offset));
            }
            Error::Damaged { file, offset, .. } => {
                (finding.file, finding.offset) = (Some(file.clone()), Some(*offset));
            }
            _ => {}
        }
        finding
    }
}
