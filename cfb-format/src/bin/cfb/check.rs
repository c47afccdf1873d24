//! `cfb check`: every rule of the format over the whole file.

use std::path::PathBuf;

use cfb_format::{Finding, Severity, Strictness};
use serde::Serialize;

use crate::failure::{Context, Failure, print};
use crate::{Outcome, show};

/// Check a file against the rules of the format
#[derive(clap::Args)]
#[command(after_help = "\
A note is something unusual, a warning a broken rule that costs no content, an error
means that content is lost or in doubt. The exit code is 0 if there are at most notes, 1 if there are
warnings or errors, 2 if the file does not open.

Examples:
  cfb check report.doc
  cfb check --json report.doc | jq -r '.[].code' | sort | uniq -c
  for f in *.doc; do cfb check \"$f\" > /dev/null || echo \"$f\"; done")]
pub(crate) struct Args {
    /// The compound file
    file: PathBuf,
    /// Print a JSON array of objects
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, strictness: Strictness) -> Result<Outcome, Failure> {
    let file = crate::open(&args.file, strictness)?;
    let findings = file.check().doing(|| format!("cannot check {}", show::path(&args.file)))?;
    print(|out| {
        if args.json {
            let rows: Vec<Row<'_>> = findings.iter().map(Row::of).collect();
            serde_json::to_writer_pretty(&mut *out, &rows)?;
            return writeln!(out);
        }
        for finding in &findings {
            let severity = name(finding.severity());
            writeln!(out, "{severity:<7}  {}: {finding}", finding.code().as_str())?;
        }
        Ok(())
    })?;
    let clean = findings.iter().all(|finding| finding.severity() == Severity::Note);
    Ok(if clean { Outcome::Done } else { Outcome::Partial })
}

fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// One finding in JSON.
#[derive(Serialize)]
pub(crate) struct Row<'a> {
    severity: &'static str,
    code: &'static str,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sector: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
}

impl<'a> Row<'a> {
    pub(crate) fn of(finding: &'a Finding) -> Self {
        Self {
            severity: name(finding.severity()),
            code: finding.code().as_str(),
            text: finding.to_string(),
            offset: finding.offset(),
            sector: finding.sector(),
            entry: finding.entry(),
            path: finding.path(),
        }
    }
}
