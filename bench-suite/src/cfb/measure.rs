//! A row measured: contestants take turns, each figure is a median.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::base::{Base, Medium};
use super::contestant::{Contestant, Ours, Raw, Rival, Version};
use super::work::{Session, Start, Target, Workload, grouped};
use crate::clock::{Clock, Spent, median};

/// How to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rounds that count; one more goes before them.
    pub rounds: usize,
    /// Smaller files.
    pub quick: bool,
    /// A folder on the disk to be measured.
    pub dir: PathBuf,
    /// Only rows that have this in their name, medium and version.
    pub only: Option<String>,
    /// Bytes on the heap and allocations so far, from a counting allocator.
    pub heap: fn() -> Heap,
    /// Says on stderr what is measured.
    pub progress: bool,
}

/// State of the heap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap {
    /// Bytes that are allocated now.
    pub live_bytes: usize,
    /// Allocations made so far.
    pub allocations: usize,
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

/// What one contestant needs for an operation of a row.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figure {
    /// CPU time of the thread in nanoseconds.
    pub cpu_ns: f64,
    /// The same of the fastest round: for comparing rows that did not take turns.
    pub fastest_cpu_ns: f64,
    /// Wall time in nanoseconds.
    pub wall_ns: f64,
}

/// Times of one contestant, a round each.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<Spent>);

impl Times {
    /// One round more.
    pub fn push(&mut self, spent: Spent) {
        self.0.push(spent);
    }

    /// Medians over the rounds.
    pub fn figure(&self) -> Figure {
        let mut cpu: Vec<_> = self.0.iter().map(Spent::per_op).collect();
        let mut wall: Vec<_> = self.0.iter().map(Spent::wall_per_op).collect();
        let fastest_cpu_ns = cpu.iter().copied().fold(f64::INFINITY, f64::min);
        Figure { cpu_ns: median(&mut cpu), fastest_cpu_ns, wall_ns: median(&mut wall) }
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
    /// How many were timed.
    pub ops: u64,
    /// Where the bytes are.
    pub medium: Medium,
    /// Version of the format; none where files of both are read.
    pub version: Option<Version>,
    /// `cfb-format`.
    pub ours: Figure,
    /// Crate `cfb`.
    pub rival: Figure,
    /// Plain calls.
    pub raw: Figure,
    /// Where the rival did less than the others.
    pub note: Option<String>,
    /// What is asked of the row.
    #[serde(skip)]
    pub targets: Vec<Target>,
}

impl Row {
    /// How many times faster than the rival, by CPU time.
    pub fn rival_to_ours(&self) -> f64 {
        self.rival.cpu_ns / self.ours.cpu_ns
    }

    /// How many times the cost of plain calls, by CPU time.
    pub fn ours_to_raw(&self) -> f64 {
        self.ours.cpu_ns / self.raw.cpu_ns
    }

    /// Name, medium and version: tells rows apart.
    pub fn full_name(&self) -> String {
        full_name(&self.name, self.medium, self.version)
    }
}

fn full_name(name: &str, medium: Medium, version: Option<Version>) -> String {
    match version {
        Some(version) => format!("{name}, {medium} {version:?}"),
        None => format!("{name}, {medium}"),
    }
}

/// One contestant between rounds.
struct Seat<C: Contestant, W> {
    work: W,
    home: <C::Base as Base>::Home,
    session: Session<C>,
    times: Times,
}

impl<C: Contestant, W: Workload> Seat<C, W> {
    fn new(work: W, dir: &Path, who: &str, version: Version) -> Self {
        let session = Session::new(version, work.shape(version), work.buffer_bytes());
        let mut home = C::Base::home(dir, who);
        C::Base::clear(&mut home);
        Self { work, home, session, times: Times::default() }
    }

    fn set_up(&mut self) {
        self.session.base = Some(C::Base::fresh(&mut self.home));
        self.work.set_up(&mut self.session);
        self.put_back();
    }

    fn put_back(&mut self) {
        self.session.close();
        let base = self.session.base.take().expect("the file is closed");
        base.put_back(&mut self.home);
    }

    /// One round, of which the middle is timed.
    fn round(&mut self, clock: &Clock) -> Spent {
        self.session.base = Some(match self.work.start() {
            Start::Empty => C::Base::fresh(&mut self.home),
            Start::OwnFile | Start::SameFile => C::Base::again(&mut self.home),
        });
        self.work.begin(&mut self.session);
        let ((), spent) = clock.time(self.work.ops(), || self.work.run(&mut self.session));
        self.put_back();
        spent
    }
}

impl<C: Contestant, W> Drop for Seat<C, W> {
    fn drop(&mut self) {
        C::Base::clear(&mut self.home);
    }
}

/// Measures one row in files of one version, with the bytes in `B`.
pub fn measure<B: Base, W: Workload>(
    options: &Options,
    clock: &Clock,
    work: &W,
    version: Version,
) -> Option<Row> {
    let full_name = full_name(&work.name(), B::MEDIUM, Some(version));
    if !options.wants(&full_name) {
        return None;
    }
    options.say(&full_name);
    let dir = &options.dir;
    let mut ours = Seat::<Ours<B>, W>::new(work.clone(), dir, "ours", version);
    let mut rival = Seat::<Rival<B>, W>::new(work.for_rival(), dir, "rival", version);
    let mut raw = Seat::<Raw<B>, W>::new(work.clone(), dir, "raw", version);
    match work.start() {
        Start::Empty => {}
        Start::OwnFile => {
            ours.set_up();
            rival.set_up();
            raw.set_up();
        }
        Start::SameFile => {
            ours.set_up();
            B::share(&ours.home, &mut rival.home);
            B::share(&ours.home, &mut raw.home);
        }
    }
    for round in 0..=options.rounds {
        let (a, b, c) = (ours.round(clock), rival.round(clock), raw.round(clock));
        if round > 0 {
            ours.times.push(a);
            rival.times.push(b);
            raw.times.push(c);
        }
    }
    let (count, less) = (ours.work.ops(), rival.work.ops());
    let note = (less < count).then(|| {
        let unit = work.unit();
        format!(
            "crate cfb did {} of {} {unit}s: its time grows with the square",
            grouped(less),
            grouped(count)
        )
    });
    Some(Row {
        part: W::PART.to_owned(),
        name: work.name(),
        unit: work.unit().to_owned(),
        ops: count,
        medium: B::MEDIUM,
        version: Some(version),
        ours: ours.times.figure(),
        rival: rival.times.figure(),
        raw: raw.times.figure(),
        note,
        targets: work.targets(B::MEDIUM, version),
    })
}
