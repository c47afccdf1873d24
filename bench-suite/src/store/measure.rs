//! A workload measured: stores and plain calls take turns, each figure is a median.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cpu_time::ProcessTime;
use serde::Serialize;

use super::contestant::{Contestant, Entry};
use super::work::{By, Spec, Start, Target, Workload};
use crate::clock::{Spent, median};

/// How to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rounds that count; one more goes before them.
    pub rounds: usize,
    /// Fewer and smaller objects.
    pub quick: bool,
    /// A folder on the disk to be measured.
    pub dir: PathBuf,
    /// Only rows that have this in their name.
    pub only: Option<String>,
    /// Says on stderr what is measured.
    pub progress: bool,
}

impl Options {
    /// Whether a row of this name is asked for.
    pub fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|part| name.to_lowercase().contains(&part.to_lowercase()))
    }

    /// Says what is being measured.
    pub fn say(&self, what: &str) {
        if self.progress {
            eprintln!("measuring: {what}");
        }
    }
}

/// Runs `work` once and says what it cost as `ops` operations. The CPU time is
/// that of all threads: some stores do their work in threads of their own.
pub fn time<T>(ops: usize, work: impl FnOnce() -> T) -> (T, Spent) {
    let wall = Instant::now();
    let cpu = ProcessTime::now();
    let result = work();
    let cpu_ns = cpu.elapsed().as_secs_f64() * 1e9;
    let wall_ns = wall.elapsed().as_secs_f64() * 1e9;
    (result, Spent { cpu_ns, wall_ns, ops: ops as u64 })
}

/// What one contestant needs for an operation of a row.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// As the report calls it.
    pub name: String,
    /// Wall time in nanoseconds.
    pub wall_ns: f64,
    /// CPU time of all threads in nanoseconds.
    pub cpu_ns: f64,
    /// Rounds behind the medians.
    pub rounds: usize,
    /// Whether it gives out bytes of a map instead of a copy.
    pub borrows: bool,
}

impl Figure {
    /// The time a row goes by.
    pub const fn by(&self, by: By) -> f64 {
        match by {
            By::Wall => self.wall_ns,
            By::Cpu => self.cpu_ns,
        }
    }
}

/// A row of the report.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Heading it is under.
    pub part: String,
    /// What is done.
    pub name: String,
    /// What an operation is.
    pub unit: String,
    /// How many were timed in a round.
    pub ops: u64,
    /// Which time counts.
    pub by: By,
    /// This workspace's store, if it took part.
    pub ours: Option<Figure>,
    /// The other stores.
    pub rivals: Vec<Figure>,
    /// Plain calls.
    pub raw: Vec<Figure>,
    /// What is asked of the row.
    #[serde(skip)]
    pub targets: Vec<Target>,
}

/// One store between rounds.
pub struct Seat {
    /// Which store.
    pub entry: Entry,
    dir: PathBuf,
    store: Option<Box<dyn Contestant>>,
}

impl Seat {
    /// A place for `entry` below `dir`; nothing is open yet.
    pub fn new(entry: Entry, dir: &Path) -> Self {
        let name = entry.name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        Self { entry, dir: dir.join(name), store: None }
    }

    /// Where the store is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A new store in an empty folder.
    ///
    /// # Panics
    ///
    /// When the folder cannot be made.
    pub fn fresh(&mut self) {
        self.clear();
        fs::create_dir_all(&self.dir).expect("creating a folder works");
        self.open();
    }

    /// The store that is there.
    pub fn open(&mut self) {
        self.close();
        self.store = Some((self.entry.open)(&self.dir));
    }

    /// Closes the store, if it is open.
    pub fn close(&mut self) {
        self.store = None;
    }

    /// Closes the store and removes it.
    pub fn clear(&mut self) {
        self.close();
        // The first time, there is nothing to remove.
        let _ = fs::remove_dir_all(&self.dir);
    }

    /// The open store.
    ///
    /// # Panics
    ///
    /// When none is open.
    pub fn store(&self) -> &dyn Contestant {
        &**self.store.as_ref().expect("the store is open")
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Times of one contestant: for each row of the workload, a round each.
struct Times(Vec<Vec<Spent>>);

impl Times {
    fn new(rows: usize) -> Self {
        Self(vec![Vec::new(); rows])
    }

    fn push(&mut self, spents: Vec<(usize, Spent)>) {
        for (row, spent) in spents {
            self.0[row].push(spent);
        }
    }

    fn figure(&self, row: usize, name: &str, borrows: bool) -> Option<Figure> {
        let times = &self.0[row];
        if times.is_empty() {
            return None;
        }
        let mut wall: Vec<_> = times.iter().map(Spent::wall_per_op).collect();
        let mut cpu: Vec<_> = times.iter().map(Spent::per_op).collect();
        Some(Figure {
            name: name.to_owned(),
            wall_ns: median(&mut wall),
            cpu_ns: median(&mut cpu),
            rounds: times.len(),
            borrows,
        })
    }
}

/// How many times slower than the fastest a store may be in the round that does
/// not count, and still take part in all that do. Others take part in one.
const PATIENCE: f64 = 5.0;

/// Measures the rows of one workload.
pub fn measure(options: &Options, entries: &[Entry], work: &dyn Workload) -> Vec<Row> {
    let specs = work.specs();
    if !specs.iter().any(|spec| options.wants(&spec.name)) {
        return Vec::new();
    }
    let mut seats: Vec<_> = entries
        .iter()
        .filter(|entry| work.takes(entry))
        .map(|&entry| (Seat::new(entry, &options.dir), Times::new(specs.len()), options.rounds))
        .collect();
    let mut plain: Vec<_> = work
        .raws(&options.dir)
        .into_iter()
        .map(|raw| (raw, Vec::with_capacity(options.rounds)))
        .collect();
    if work.start() == Start::Kept {
        for (seat, times, _) in &mut seats {
            options.say(&format!("{}: {} is filled", specs[0].name, seat.entry.name));
            seat.fresh();
            times.push(work.fill(seat));
        }
    }
    for round in 0..=options.rounds {
        options.say(&format!("{}: round {round} of {}", specs[0].name, options.rounds));
        let mut walls = Vec::new();
        for (seat, times, rounds) in &mut seats {
            if round > *rounds {
                continue;
            }
            if work.start() == Start::Empty {
                seat.fresh();
            }
            let spents = work.run(seat);
            work.check(seat, round == 0);
            if work.start() == Start::Empty {
                seat.clear();
            }
            walls.push(spents.iter().map(|(_, spent)| spent.wall_ns).sum::<f64>());
            if round > 0 {
                times.push(spents);
            }
        }
        for (raw, times) in &mut plain {
            let spent = (raw.round)();
            if round > 0 {
                times.push(spent);
            }
        }
        if round == 0 {
            let fastest = walls.iter().copied().fold(f64::INFINITY, f64::min);
            for ((seat, _, rounds), wall) in seats.iter_mut().zip(walls) {
                if wall > fastest * PATIENCE && !seat.entry.ours {
                    *rounds = 1;
                }
            }
        }
    }
    let mut rows = Vec::new();
    for (index, spec) in specs.into_iter().enumerate() {
        let Spec { name, unit, ops, by, targets } = spec;
        if !options.wants(&name) {
            continue;
        }
        let mut row = Row {
            part: work.part().to_owned(),
            name,
            unit: unit.to_owned(),
            ops: ops as u64,
            by,
            ours: None,
            rivals: Vec::new(),
            raw: Vec::new(),
            targets,
        };
        for (seat, times, _) in &seats {
            let figure = times.figure(index, seat.entry.name, seat.entry.borrows);
            if seat.entry.ours {
                row.ours = figure;
            } else {
                row.rivals.extend(figure);
            }
        }
        for (raw, times) in plain.iter().filter(|(raw, _)| raw.row == index) {
            row.raw.extend(Times(vec![times.clone()]).figure(0, raw.name, false));
        }
        rows.push(row);
    }
    rows
}
