//! Streams read: whole, here and there, through [`std::io::copy`].

use std::hint::black_box;
use std::io::{self, Write};

use super::writing::{name_of_data, ops_of_data, targets_of_data, unit_of_data};
use super::{Session, Start, Target, Workload, grouped, size, to_usize, write_streams};
use crate::cfb::base::Medium;
use crate::cfb::contestant::{Contestant, Shape, Version};
use crate::cfb::names::{Names, Script};
use crate::rng::Rng;

/// Every stream of an open file opened and read to its end.
#[derive(Clone, Debug)]
pub struct ReadStreams {
    names: Names,
    each: u64,
    chunk: usize,
}

impl ReadStreams {
    /// `count` streams of `each` bytes, read in pieces of `chunk` bytes.
    pub fn new(count: usize, each: u64, chunk: usize) -> Self {
        Self { names: Names::sorted(Script::Ascii, count), each, chunk }
    }
}

/// Reads every stream in pieces.
pub(super) fn read_streams<C: Contestant>(
    session: &mut Session<C>,
    names: &Names,
    each: u64,
    chunk: usize,
) {
    let (file, _, buffer) = session.parts();
    for key in names.keys() {
        let mut handle = file.open_stream(key);
        let mut left = each;
        while left > 0 {
            let piece = to_usize(left.min(chunk as u64));
            file.read_next(&mut handle, &mut buffer[..piece]);
            black_box(&buffer);
            left -= piece as u64;
        }
    }
}

impl Workload for ReadStreams {
    const PART: &'static str = "Reading";

    fn name(&self) -> String {
        name_of_data("read", self.names.count(), self.each, self.chunk)
    }

    fn unit(&self) -> &'static str {
        unit_of_data(self.each)
    }

    fn ops(&self) -> u64 {
        ops_of_data(self.names.count(), self.each)
    }

    fn shape(&self, _: Version) -> Shape {
        Shape { each: self.each, ..Shape::default() }
    }

    fn buffer_bytes(&self) -> usize {
        self.chunk.max(1 << 20)
    }

    fn start(&self) -> Start {
        Start::OwnFile
    }

    fn targets(&self, medium: Medium, _: Version) -> Vec<Target> {
        targets_of_data(self.each, medium, false)
    }

    fn set_up<C: Contestant>(&self, session: &mut Session<C>) {
        session.create();
        write_streams(session, &self.names, self.each, 1 << 20);
        session.close();
    }

    fn begin<C: Contestant>(&self, session: &mut Session<C>) {
        session.open();
    }

    fn run<C: Contestant>(&self, session: &mut Session<C>) {
        read_streams(session, &self.names, self.each, self.chunk);
    }
}

/// Seek and read, at random places of one open stream.
#[derive(Clone, Debug)]
pub struct RandomReads {
    names: Names,
    bytes: u64,
    offsets: Vec<u64>,
    piece: usize,
}

impl RandomReads {
    /// `count` reads of `piece` bytes in a stream of `bytes`.
    pub fn new(bytes: u64, count: usize, piece: usize) -> Self {
        let mut rng = Rng::new(17);
        let span = to_usize(bytes) - piece;
        let offsets = (0..count).map(|_| rng.below(span) as u64).collect();
        Self { names: Names::sorted(Script::Ascii, 1), bytes, offsets, piece }
    }
}

impl Workload for RandomReads {
    const PART: &'static str = "Reading";

    fn name(&self) -> String {
        let (count, piece) = (grouped(self.offsets.len()), size(self.piece as u64));
        format!("{count} random reads of {piece} in {}", size(self.bytes))
    }

    fn unit(&self) -> &'static str {
        "read"
    }

    fn ops(&self) -> u64 {
        self.offsets.len() as u64
    }

    fn shape(&self, _: Version) -> Shape {
        Shape { each: self.bytes, ..Shape::default() }
    }

    fn buffer_bytes(&self) -> usize {
        1 << 20
    }

    fn start(&self) -> Start {
        Start::OwnFile
    }

    fn targets(&self, medium: Medium, _: Version) -> Vec<Target> {
        match medium {
            Medium::File => vec![Target::near_raw("random reads", 1.3)],
            // The bytes of a short read cost less than any call.
            Medium::Memory if self.piece < 4_096 => Vec::new(),
            Medium::Memory => vec![Target::near_raw("random reads", 2.0)],
        }
    }

    fn set_up<C: Contestant>(&self, session: &mut Session<C>) {
        session.create();
        write_streams(session, &self.names, self.bytes, 1 << 20);
        session.close();
    }

    fn begin<C: Contestant>(&self, session: &mut Session<C>) {
        session.open();
        let handle = session.file().open_stream(self.names.key(0));
        session.handles.push(handle);
    }

    fn run<C: Contestant>(&self, session: &mut Session<C>) {
        let (file, handles, buffer) = session.parts();
        for &offset in &self.offsets {
            file.read_at(&mut handles[0], &mut buffer[..self.piece], offset);
            black_box(&buffer);
        }
    }
}

/// [`std::io::copy`] of one stream to nowhere.
#[derive(Clone, Debug)]
pub struct CopyOut {
    names: Names,
    bytes: u64,
}

impl CopyOut {
    /// Of a stream of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self { names: Names::sorted(Script::Ascii, 1), bytes }
    }
}

/// Takes everything, and keeps the compiler from seeing that it is lost.
struct Nowhere;

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(black_box(bytes).len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Workload for CopyOut {
    const PART: &'static str = "Reading";

    fn name(&self) -> String {
        format!("io::copy of {}", size(self.bytes))
    }

    fn unit(&self) -> &'static str {
        "MiB"
    }

    fn ops(&self) -> u64 {
        self.bytes >> 20
    }

    fn shape(&self, _: Version) -> Shape {
        Shape { each: self.bytes, ..Shape::default() }
    }

    fn buffer_bytes(&self) -> usize {
        1 << 20
    }

    fn start(&self) -> Start {
        Start::OwnFile
    }

    fn targets(&self, medium: Medium, _: Version) -> Vec<Target> {
        targets_of_data(self.bytes, medium, false)
    }

    fn set_up<C: Contestant>(&self, session: &mut Session<C>) {
        session.create();
        write_streams(session, &self.names, self.bytes, 1 << 20);
        session.close();
    }

    fn begin<C: Contestant>(&self, session: &mut Session<C>) {
        session.open();
        let handle = session.file().open_stream(self.names.key(0));
        session.handles.push(handle);
    }

    fn run<C: Contestant>(&self, session: &mut Session<C>) {
        let (file, handles, _) = session.parts();
        let copied = file.copy_out(&mut handles[0], &mut Nowhere);
        assert_eq!(copied, self.bytes, "the whole stream");
    }
}
