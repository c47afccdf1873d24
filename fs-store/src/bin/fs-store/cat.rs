//! `fs-store cat`: objects to standard output.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::copying::Copier;
use crate::failure::{Context, Failure, report};
use crate::progress::Progress;
use crate::{Outcome, escape};

/// Write objects to standard output
#[derive(clap::Args)]
#[command(after_help = "\
Nothing is written unless all keys have objects. Of a damaged object the part before
the damage is written, and the exit code is 1. A part of an object costs reading and
checking little more than that part.

Examples:
  fs-store cat store stamp
  fs-store cat store part-1 part-2 part-3 > whole
  fs-store cat store film --offset 1000000 --length 4096 | xxd")]
pub(crate) struct Args {
    /// The store
    store: PathBuf,
    /// The keys, one after the other
    #[arg(required = true)]
    key: Vec<OsString>,
    /// Leave out the first BYTES of each object
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    offset: u64,
    /// At most BYTES of each object
    #[arg(long, value_name = "BYTES")]
    length: Option<u64>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = crate::open(&args.store)?;
    // All are looked up before the first byte is written.
    let mut readers = Vec::new();
    for typed in &args.key {
        let key = escape::bytes_of(typed);
        let doing = || format!("cannot read {}", crate::shown(typed));
        let reader = store.reader(&key).doing(doing)?;
        let none = || Failure::because(doing(), fs_store::Error::NotFound { key: key.clone() });
        readers.push((typed, reader.ok_or_else(none)?));
    }
    let mut out = io::stdout().lock();
    let mut copier = Copier::new();
    let mut outcome = Outcome::Done;
    for (typed, reader) in &mut readers {
        let start = args.offset.min(reader.len());
        let end = start.saturating_add(args.length.unwrap_or(u64::MAX)).min(reader.len());
        let result = copier.copy(reader, start, end, &mut out, &mut Progress::silent());
        if let Some(damage) = result.map_err(Failure::stdout)? {
            out.flush().map_err(Failure::stdout)?;
            let (key, version) = (escape::bytes_of(typed), reader.stat().version);
            let damage = crate::explain(&args.store, &key, version, damage);
            let failure = Failure::because(format!("cannot read {}", crate::shown(typed)), damage);
            if failure.exit_code() != 1 {
                return Err(failure);
            }
            report(&failure);
            outcome = Outcome::Partial;
        }
    }
    out.flush().map_err(Failure::stdout)?;
    Ok(outcome)
}
