//! `fs-store trim`: free space back to the file system.

use std::path::PathBuf;

use crate::failure::{Context, Failure, print};
use crate::{Outcome, show};

/// Give free space back to the file system
#[derive(clap::Args)]
#[command(after_help = "\
The journal is worked into the index, free ends of the files are cut off, and holes are
made where sectors are free, if the file system can.

Examples:
  fs-store trim store
  fs-store trim --json store | jq .won_bytes")]
pub(crate) struct Args {
    /// The store
    store: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let doing = || format!("cannot trim {}", show::path(&args.store));
    let store = crate::open_to_change(&args.store, false)?;
    let won = store.trim().doing(doing)?;
    let usage = store.usage().doing(doing)?;
    crate::close(store, &args.store)?;
    print(|out| {
        if args.json {
            let summary = serde_json::json!({
                "won_bytes": won,
                "file_bytes": usage.file_bytes,
                "allocated_bytes": usage.allocated_bytes,
            });
            return writeln!(out, "{summary:#}");
        }
        let left = show::grouped(usage.allocated_bytes);
        writeln!(out, "{} given back, {left} left", show::count(won, "byte"))
    })?;
    Ok(Outcome::Done)
}
