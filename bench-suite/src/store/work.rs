//! Workloads: each gives one row of the report or more, for any store.

pub mod batches;
pub mod durable;
pub mod million;
pub mod reads;
pub mod streams;

use std::path::Path;

use serde::Serialize;

use super::contestant::Entry;
use super::measure::Seat;
use super::raw::Raw;
pub use crate::cfb::work::{grouped, size};
use crate::clock::Spent;

/// With what each round starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// An empty store.
    Empty,
    /// The store that [`Workload::fill`] has filled once.
    Kept,
}

/// The time that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Where the disk is waited for.
    Wall,
    /// Where it is not; other processes do not show.
    Cpu,
}

/// A row.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What is done.
    pub name: String,
    /// What an operation is.
    pub unit: &'static str,
    /// How many a round has.
    pub ops: usize,
    /// Which time counts.
    pub by: By,
    /// What is asked.
    pub targets: Vec<Target>,
}

/// A bound: ours is at most so many times the other.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The other.
    pub of: Of,
    /// How many times.
    pub bound: f64,
}

/// With what ours is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The fastest rival.
    Fastest,
    /// The fastest rival that copies values.
    FastestThatCopies,
    /// The fastest of these rivals.
    FastestOf(&'static [&'static str]),
    /// Plain calls, by name.
    Raw(&'static str),
}

impl Target {
    /// At most `bound` times `of`.
    pub const fn new(of: Of, bound: f64) -> Self {
        Self { of, bound }
    }
}

/// What is done in the rows of the report.
pub trait Workload {
    /// Heading in the report.
    fn part(&self) -> &'static str;
    /// The rows it gives.
    fn specs(&self) -> Vec<Spec>;
    /// Whether this store can do it.
    fn takes(&self, _entry: &Entry) -> bool {
        true
    }
    /// With what each round starts.
    fn start(&self) -> Start;
    /// Fills a store that is kept; what is timed of that, with the row it is for.
    fn fill(&self, _seat: &mut Seat) -> Vec<(usize, Spent)> {
        Vec::new()
    }
    /// One round; what was timed, with the row it is for.
    fn run(&self, seat: &mut Seat) -> Vec<(usize, Spent)>;
    /// Whether the store is as it should be; all of it if `thorough`, else some.
    ///
    /// # Panics
    ///
    /// When it is not.
    fn check(&self, seat: &Seat, thorough: bool);
    /// Plain calls to compare with; files are made in `dir`.
    fn raws(&self, _dir: &Path) -> Vec<Raw> {
        Vec::new()
    }
}

/// How large things are.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Objects of 4 KiB.
    pub small: usize,
    /// Durable puts one at a time.
    pub durable: usize,
    /// Durable puts by many threads.
    pub threaded: usize,
    /// Objects of 256 KiB.
    pub medium: usize,
    /// Objects of 64 MiB.
    pub large: usize,
    /// Reads of parts of those.
    pub ranges: usize,
    /// Keys of the largest store.
    pub many: usize,
    /// Objects that come and go.
    pub churned: usize,
}

impl Sizes {
    /// As the figures are published.
    pub const FULL: Self = Self {
        small: 10_000,
        durable: 500,
        threaded: 4_096,
        medium: 1_000,
        large: 20,
        ranges: 500,
        many: 1_000_000,
        churned: 20_000,
    };
    /// For a look in between.
    pub const QUICK: Self = Self {
        small: 10_000,
        durable: 200,
        threaded: 1_024,
        medium: 200,
        large: 4,
        ranges: 100,
        many: 100_000,
        churned: 4_000,
    };
}

/// Threads that put at once.
pub const THREADS: [usize; 4] = [1, 4, 16, 64];

/// All workloads.
pub fn all(sizes: Sizes) -> Vec<Box<dyn Workload>> {
    let Sizes { small, durable, threaded, medium, large, ranges, many, .. } = sizes;
    let mut all: Vec<Box<dyn Workload>> = vec![
        Box::new(batches::Batch::small(small)),
        Box::new(batches::Batch::medium(medium)),
        Box::new(streams::Streams::new(large)),
        Box::new(durable::OneByOne::small(durable)),
        Box::new(durable::OneByOne::medium(durable / 5)),
    ];
    for threads in THREADS {
        all.push(Box::new(durable::Threads::new(threads, threaded)));
    }
    all.push(Box::new(reads::Small::new(small)));
    all.push(Box::new(reads::Medium::new(medium.min(400))));
    all.push(Box::new(reads::Ranges::new(large.min(4), ranges)));
    all.push(Box::new(million::Many::new(many)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::contestant;
    use crate::store::measure::{Options, measure};

    #[test]
    fn every_workload_finds_in_every_store_what_was_put() {
        let sizes = Sizes {
            small: 300,
            durable: 10,
            threaded: 64,
            medium: 5,
            large: 1,
            ranges: 5,
            many: 1_000,
            churned: 100,
        };
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            rounds: 1,
            quick: true,
            dir: dir.path().to_owned(),
            only: None,
            progress: false,
        };
        let entries = contestant::all();
        let mut rows = Vec::new();
        for work in all(sizes) {
            rows.extend(measure(&options, &entries, &*work));
        }
        assert_eq!(rows.len(), 19);
        for row in &rows {
            let ours = row.ours.as_ref().unwrap_or_else(|| panic!("{}: ours", row.name));
            assert!(ours.wall_ns > 0.0 && ours.rounds == 1, "{}: {ours:?}", row.name);
            for target in &row.targets {
                if let Of::Raw(name) = target.of {
                    assert!(row.raw.iter().any(|raw| raw.name == name), "{}: {name}", row.name);
                }
            }
        }
        drop(rows);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
    }
}
