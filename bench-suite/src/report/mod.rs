//! Everything that is claimed of `alloc-core`, measured in one run: rows take
//! turns in each round, the figure is the median over the rounds, and a claim
//! is a ratio or a bound with "met" or "not met" behind it.

mod churning;
mod growing;
mod linking;
mod memory;
mod one_by_one;
mod overfull;
pub mod table;

use std::fmt::Write as _;

use serde::Serialize;

use self::table::{Bound, Table};
use crate::clock::Clock;

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Fewer rounds, shorter slices, no table of single operations.
    pub quick: bool,
    /// Bytes the process holds on the heap now, from a counting allocator.
    pub live_bytes: fn() -> usize,
    /// Says on stderr what is being measured.
    pub progress: bool,
}

/// What every section gets.
#[derive(Clone, Copy, Debug)]
struct Bench {
    options: Options,
    clock: Clock,
}

impl Bench {
    /// Rounds in which the rows take turns.
    const fn rounds(&self) -> usize {
        if self.options.quick { 3 } else { 9 }
    }

    fn say(&self, what: &str) {
        if self.options.progress {
            eprintln!("measuring: {what}");
        }
    }

    /// Heap bytes that go away with `value`.
    fn bytes_of<T>(&self, value: T) -> usize {
        let before = (self.options.live_bytes)();
        drop(value);
        before - (self.options.live_bytes)()
    }
}

/// The parts of the report, each of which can be had alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Log-normal objects on a full device.
    Churn,
    /// Devices with next to nothing free, and searches that fail.
    Overfull,
    /// Streams growing in turn.
    Growth,
    /// Next-pointer tables.
    Tables,
    /// Heap bytes in bits a sector.
    Memory,
    /// Every operation in every state beside every rival.
    Operations,
}

impl Part {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 6] =
        [Self::Churn, Self::Overfull, Self::Growth, Self::Tables, Self::Memory, Self::Operations];
}

/// Tables and what they have to show.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Processor, how many of them, and how busy they were at the start.
    pub machine: String,
    /// What was promised, what was measured.
    pub bounds: Vec<Bound>,
    /// All figures.
    pub tables: Vec<Table>,
}

impl Report {
    /// Measures `parts`. Takes one to five minutes for all of them, some seconds
    /// to a minute with [`Options::quick`].
    pub fn measure(parts: &[Part], options: Options) -> Self {
        let bench = Bench { options, clock: Clock::calibrated() };
        let mut report = Self { machine: machine(), ..Self::default() };
        for part in parts {
            match part {
                Part::Churn => churning::measure(&bench, &mut report),
                Part::Overfull => overfull::measure(&bench, &mut report),
                Part::Growth => growing::measure(&bench, &mut report),
                Part::Tables => linking::measure(&bench, &mut report),
                Part::Memory => memory::measure(&bench, &mut report),
                Part::Operations => one_by_one::measure(&bench, &mut report),
            }
        }
        report
    }

    /// Whether every bound is met.
    pub fn all_met(&self) -> bool {
        self.bounds.iter().all(Bound::met)
    }

    /// The report as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("Machine: {}\n\n", self.machine);
        if !self.bounds.is_empty() {
            text.push_str("### Bounds\n\n");
            text.push_str(&table::of_bounds(&self.bounds).to_markdown());
        }
        for table in &self.tables {
            let _ = write!(text, "\n### {}\n\n", table.title);
            if !table.note.is_empty() {
                let _ = write!(text, "{}\n\n", table.note);
            }
            text.push_str(&table.to_markdown());
        }
        text
    }
}

/// What the system tells of itself; parts it does not tell are left out.
pub(crate) fn machine() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let count = std::thread::available_parallelism().map(|count| format!("{count} processors"));
    let load = std::fs::read_to_string("/proc/loadavg").ok().and_then(|text| {
        let minute = text.split_whitespace().next()?;
        Some(format!("load {minute}"))
    });
    [processor, count.ok(), load].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
