//! `cfb cat`: one stream to standard output.

use std::io::{self, Write};
use std::path::PathBuf;

use cfb_format::{EntryKind, Strictness};

use crate::copying::Copier;
use crate::failure::{Context, Failure, report};
use crate::progress::Progress;
use crate::{Outcome, lookup};

/// Write streams to standard output
#[derive(clap::Args)]
#[command(after_help = "\
Of a damaged stream the intact part is written, and the exit code is 1.

Examples:
  cfb cat report.doc WordDocument > body.bin
  cfb cat report.doc %u0005SummaryInformation | xxd
  cfb cat setup.msi '!Property' | strings")]
pub(crate) struct Args {
    /// The compound file
    file: PathBuf,
    /// The streams, one after the other
    #[arg(required = true)]
    path: Vec<String>,
}

pub(crate) fn run(args: &Args, strictness: Strictness) -> Result<Outcome, Failure> {
    let file = crate::open(&args.file, strictness)?;
    // All are looked up before the first byte is written.
    let mut streams = Vec::new();
    for path in &args.path {
        let entry = lookup::find(&file, path)?;
        if entry.kind() != EntryKind::Stream {
            return Err(Failure::new(format!("{path} is a storage; extract takes those")));
        }
        streams.push((path, file.open_stream(&entry).doing(|| format!("cannot open {path}"))?));
    }
    let mut out = io::stdout().lock();
    let mut copier = Copier::new();
    let mut outcome = Outcome::Done;
    for (path, stream) in &streams {
        let damage =
            copier.copy_out(stream, &mut out, &mut Progress::silent()).map_err(Failure::stdout)?;
        if let Some(damage) = damage {
            out.flush().map_err(Failure::stdout)?;
            report(&Failure::because(format!("{path} is damaged"), damage));
            outcome = Outcome::Partial;
        }
    }
    out.flush().map_err(Failure::stdout)?;
    Ok(outcome)
}
