//! The command line, for every program that has contestants to bring.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use super::contestant::Entry;
use super::measure::Options;
use super::memory::{self, Task};
use super::report::StoreReport;

/// Measures stores of blobs beside each other and beside plain calls, in one run.
///
/// Prints Markdown: the bounds with "met" or "not met", then all figures, medians over rounds in
/// which all take turns. Exits with 1 when a bound is not met.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Print JSON instead of Markdown.
    #[arg(long)]
    json: bool,
    /// Three rounds, fewer and smaller objects.
    #[arg(long)]
    quick: bool,
    /// Rounds that count, after one that does not.
    #[arg(long, value_name = "COUNT")]
    rounds: Option<usize>,
    /// Only rows with this in their name, such as "durable" or "memory".
    #[arg(long, value_name = "SUBSTRING")]
    only: Option<String>,
    /// Only stores with one of these in their name; plain calls always take part.
    #[arg(long, value_name = "SUBSTRING", value_delimiter = ',')]
    stores: Vec<String>,
    /// Where stores are made; a new folder in `target` by default.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Say nothing on stderr while measuring.
    #[arg(long)]
    silent: bool,
    /// Do one task for the process that started this one: task, store, count, folder.
    #[arg(long, hide = true, num_args = 4)]
    child: Vec<String>,
}

/// Measures `entries` as the command line asks.
pub fn run(entries: Vec<Entry>) -> ExitCode {
    let arguments = Arguments::parse();
    if let [task, name, count, dir] = &*arguments.child {
        let task = <Task as clap::ValueEnum>::from_str(task, false).expect("a task of ours");
        let entry = entries.iter().find(|entry| entry.name == name).expect("a store of ours");
        memory::child(entry, task, count.parse().expect("a number of ours"), Path::new(dir));
        return ExitCode::SUCCESS;
    }
    if cfg!(debug_assertions) {
        eprintln!("built without optimisation: the figures mean nothing; use --release");
    }
    // The folder of this program is in `target`, on the disk where builds are.
    let program = std::env::current_exe().ok();
    let beside = program.as_deref().and_then(Path::parent);
    let above = arguments.dir.as_deref().or(beside).unwrap_or_else(|| Path::new("."));
    let folder = match tempfile::Builder::new().prefix("store-report-").tempdir_in(above) {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("cannot make a folder in {}: {error}", above.display());
            return ExitCode::FAILURE;
        }
    };
    let options = Options {
        rounds: arguments.rounds.unwrap_or(if arguments.quick { 3 } else { 5 }).max(1),
        quick: arguments.quick,
        dir: folder.path().to_owned(),
        only: arguments.only,
        progress: !arguments.silent,
    };
    let wanted = |entry: &Entry| {
        let name = entry.name.to_lowercase();
        let stores = &arguments.stores;
        stores.is_empty() || stores.iter().any(|part| name.contains(&part.to_lowercase()))
    };
    let entries: Vec<_> = entries.into_iter().filter(wanted).collect();
    let report = StoreReport::measure(&options, &entries);
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report).expect("strings and numbers only"));
    } else {
        print!("{}", report.to_markdown());
    }
    if report.all_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
