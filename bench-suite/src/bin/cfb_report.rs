//! Measures `cfb-format` beside crate `cfb` and plain calls in one run and
//! prints what is asked, what was measured and every figure.

use std::alloc::System;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_suite::cfb::measure::{Heap, Options};
use bench_suite::cfb::report::CfbReport;
use clap::Parser;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts heap bytes for the memory table.
#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Measures cfb-format beside crate cfb 0.16 and beside plain calls, in one run.
///
/// Prints Markdown: the bounds with "met" or "not met", the rows that miss
/// one, then all figures. Times are CPU times of the measuring thread, medians
/// over rounds in which the three take turns, with wall times beside them.
/// Exits with 1 when a bound is not met.
///
/// With `CFB_CORPUS` in the environment, the files below that folder are read too.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Print JSON instead of Markdown.
    #[arg(long)]
    json: bool,
    /// Three rounds, smaller files.
    #[arg(long)]
    quick: bool,
    /// Rounds that count, after one that does not.
    #[arg(long, value_name = "COUNT")]
    rounds: Option<usize>,
    /// Only rows with this in their name, medium or version, such as "file V3".
    #[arg(long, value_name = "SUBSTRING")]
    only: Option<String>,
    /// Where files are made; a new folder in `target` by default.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Say nothing on stderr while measuring.
    #[arg(long)]
    silent: bool,
}

fn heap() -> Heap {
    let stats = HEAP.stats();
    Heap {
        live_bytes: stats.bytes_allocated - stats.bytes_deallocated,
        allocations: stats.allocations + stats.reallocations,
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if cfg!(debug_assertions) {
        eprintln!("built without optimisation: the figures mean nothing; use --release");
    }
    // The folder of this program is in `target`, on the disk where builds are.
    let program = std::env::current_exe().ok();
    let beside = program.as_deref().and_then(std::path::Path::parent);
    let above = arguments.dir.as_deref().or(beside).unwrap_or_else(|| std::path::Path::new("."));
    let folder = match tempfile::Builder::new().prefix("cfb-report-").tempdir_in(above) {
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
        heap,
        progress: !arguments.silent,
    };
    let corpus = std::env::var_os("CFB_CORPUS").map(PathBuf::from);
    let report = CfbReport::measure(&options, corpus.as_deref());
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report).expect("strings and numbers only"));
    } else {
        print!("{}", report.to_markdown());
    }
    if report.all_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
