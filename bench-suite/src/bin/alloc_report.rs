//! Measures `alloc-core` beside its rivals in one run and prints what was
//! promised, what was measured and every figure.

use std::alloc::System;
use std::process::ExitCode;

use bench_suite::report::{Options, Part, Report};
use clap::{Parser, ValueEnum};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts heap bytes for the memory tables.
#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Measures alloc-core beside its rivals, in one run.
///
/// Prints Markdown: the bounds with "met" or "not met", then all figures. Times
/// are CPU times of the measuring thread, medians over rounds in which the rows
/// take turns. Exits with 1 when a bound is not met.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Parts to measure; all of them without one.
    #[arg(value_enum)]
    parts: Vec<PartName>,
    /// Print JSON instead of Markdown.
    #[arg(long)]
    json: bool,
    /// Fewer and shorter rounds; single operations at 1 M sectors only.
    #[arg(long)]
    quick: bool,
    /// Say nothing on stderr while measuring.
    #[arg(long)]
    silent: bool,
}

/// [`Part`] as a word on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PartName {
    /// Log-normal objects on a full device
    Churn,
    /// Searches that fail, devices with next to nothing free
    Overfull,
    /// Streams growing in turn
    Growth,
    /// FAT of a stream; table to free map and chains
    Tables,
    /// Heap bytes in bits a sector
    Memory,
    /// Every operation in every state beside every rival
    Operations,
}

impl From<PartName> for Part {
    fn from(name: PartName) -> Self {
        match name {
            PartName::Churn => Self::Churn,
            PartName::Overfull => Self::Overfull,
            PartName::Growth => Self::Growth,
            PartName::Tables => Self::Tables,
            PartName::Memory => Self::Memory,
            PartName::Operations => Self::Operations,
        }
    }
}

/// Bytes on the heap now.
fn live_bytes() -> usize {
    let stats = HEAP.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if cfg!(debug_assertions) {
        eprintln!("built without optimisation: the figures mean nothing; use --release");
    }
    let mut parts: Vec<Part> = arguments.parts.into_iter().map(Part::from).collect();
    if parts.is_empty() {
        parts = Part::ALL.to_vec();
    }
    let options = Options { quick: arguments.quick, live_bytes, progress: !arguments.silent };
    let report = Report::measure(&parts, options);
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report).expect("strings and numbers only"));
    } else {
        print!("{}", report.to_markdown());
    }
    if report.all_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
