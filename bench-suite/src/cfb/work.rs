//! Workloads: each is one row of the report, for any contestant.

pub mod appending;
pub mod opening;
pub mod reading;
pub mod removing;
pub mod writing;

use super::base::Medium;
use super::contestant::{Contestant, Shape, Version};

/// Bytes of a page of memory.
const PAGE_BYTES: usize = 4_096;

/// What a contestant has between the steps of a workload.
pub struct Session<C: Contestant> {
    /// The bytes, while no file has them.
    pub base: Option<C::Base>,
    /// The open file.
    pub file: Option<C>,
    /// Its open streams.
    pub handles: Vec<C::Handle>,
    /// For data that is written or read, from `at_page` on.
    buffer: Vec<u8>,
    /// Where a page starts in `buffer`. How fast bytes are copied depends on
    /// how they lie, so they lie alike for all contestants.
    at_page: usize,
    /// Version of files to be created.
    pub version: Version,
    /// What raw calls have to know.
    pub shape: Shape,
}

impl<C: Contestant> Session<C> {
    /// Nothing is open; `buffer_bytes` of data are at hand.
    pub fn new(version: Version, shape: Shape, buffer_bytes: usize) -> Self {
        // No zeros: nothing is to be special about the data.
        let buffer: Vec<u8> = (1..=251).cycle().take(buffer_bytes + PAGE_BYTES).collect();
        let at_page = buffer.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        let shape = Shape { header: version.sector_bytes(), ..shape };
        Self { base: None, file: None, handles: Vec::new(), buffer, at_page, version, shape }
    }

    fn take_base(&mut self) -> C::Base {
        self.base.take().expect("no file has the bytes")
    }

    /// A new file in the base.
    pub fn create(&mut self) {
        let base = self.take_base();
        self.file = Some(C::create(base, self.version, self.shape));
    }

    /// The file that is in the base.
    pub fn open(&mut self) {
        let base = self.take_base();
        self.file = Some(C::open(base, self.shape));
    }

    /// Drops the streams and closes the file, if there is one.
    pub fn close(&mut self) {
        self.handles.clear();
        if let Some(file) = self.file.take() {
            self.base = Some(file.close());
        }
    }

    /// The open file.
    ///
    /// # Panics
    ///
    /// When none is open.
    pub fn file(&mut self) -> &mut C {
        self.file.as_mut().expect("a file is open")
    }

    /// The file, its streams and the data.
    ///
    /// # Panics
    ///
    /// When no file is open.
    pub fn parts(&mut self) -> (&mut C, &mut [C::Handle], &mut [u8]) {
        let file = self.file.as_mut().expect("a file is open");
        let len = self.buffer.len() - PAGE_BYTES;
        (file, &mut self.handles, &mut self.buffer[self.at_page..][..len])
    }
}

/// With which bytes each round starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// None.
    Empty,
    /// Those that each contestant has set up once.
    OwnFile,
    /// Those that `cfb-format` has set up once, for all three. They are only read.
    SameFile,
}

/// Whom a crash leaves either the state before or the one after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// Nobody: all write in place.
    None,
    /// Crate `cfb-format`.
    Ours,
    /// Crate `cfb` too, which works on a copy for it that then takes the place of
    /// the original.
    Both,
}

/// A bound on one figure of a row.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Targets of one name are one line of the report.
    pub name: &'static str,
    /// What is bounded.
    pub of: Of,
    /// The bound.
    pub bound: f64,
}

/// What is bounded, by CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Rival through ours is at least this.
    RivalToOurs,
    /// Ours through raw is at most this.
    OursToRaw,
    /// Nanoseconds an operation of ours are at most this.
    Nanoseconds,
}

impl Target {
    /// At least so many times faster than the rival.
    pub const fn faster(name: &'static str, bound: f64) -> Self {
        Self { name, of: Of::RivalToOurs, bound }
    }

    /// At most so many times the cost of plain calls.
    pub const fn near_raw(name: &'static str, bound: f64) -> Self {
        Self { name, of: Of::OursToRaw, bound }
    }
}

/// One row: something that is done in a compound file.
pub trait Workload: Clone {
    /// Part of the report.
    const PART: &'static str;
    /// What is done.
    fn name(&self) -> String;
    /// What an operation is.
    fn unit(&self) -> &'static str;
    /// How many are timed.
    fn ops(&self) -> u64;
    /// How streams lie for raw calls.
    fn shape(&self, version: Version) -> Shape;
    /// Bytes of data that have to be at hand.
    fn buffer_bytes(&self) -> usize;
    /// With what a round starts.
    fn start(&self) -> Start {
        Start::Empty
    }
    /// The bounds on this row.
    fn targets(&self, medium: Medium, version: Version) -> Vec<Target>;
    /// The same with less to do, if the rival takes too long.
    #[must_use]
    fn for_rival(&self) -> Self {
        self.clone()
    }

    /// Makes the file that rounds start with. Not timed, once.
    fn set_up<C: Contestant>(&self, session: &mut Session<C>) {
        let _ = session;
    }
    /// Before the clock runs.
    fn begin<C: Contestant>(&self, session: &mut Session<C>);
    /// While it runs.
    fn run<C: Contestant>(&self, session: &mut Session<C>);
}

/// Bytes for sizes that are in memory anyway.
fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).expect("in memory")
}

/// "4 KiB", "95 B".
pub fn size(bytes: u64) -> String {
    match bytes {
        0 => "0 B".to_owned(),
        _ if bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{} B", grouped(bytes)),
    }
}

/// "100,000".
pub fn grouped(number: impl std::fmt::Display) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Writes `count` streams of `each` bytes, in pieces of the buffer's length.
fn write_streams<C: Contestant>(
    session: &mut Session<C>,
    names: &super::names::Names,
    each: u64,
    chunk: usize,
) {
    let (file, _, data) = session.parts();
    for key in names.keys() {
        let mut handle = file.create_stream(key);
        let mut left = each;
        while left > 0 {
            let piece = to_usize(left.min(chunk as u64));
            file.append(&mut handle, &data[..piece]);
            left -= piece as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_largest_whole_unit() {
        let shown: Vec<_> = [0, 64, 4_095, 4_096, 100 << 10, 256 << 20, 1 << 30].map(size).into();
        assert_eq!(shown, ["0 B", "64 B", "4,095 B", "4 KiB", "100 KiB", "256 MiB", "1 GiB"]);
    }
}
