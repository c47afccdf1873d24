//! Streams written, overwritten, given a length; entries created.

use super::{Safety, Session, Start, Target, Workload, grouped, size, to_usize, write_streams};
use crate::cfb::base::Medium;
use crate::cfb::contestant::{Contestant, Shape, Version};
use crate::cfb::names::{Names, Script};

/// Streams shorter than this are in the mini stream.
pub const SMALL_BYTES: u64 = 4_096;

/// Streams from this length on are large.
pub const LARGE_BYTES: u64 = 1 << 20;

/// Bounds on rows that move the bytes of streams.
pub(super) fn targets_of_data(each: u64, medium: Medium, written: bool) -> Vec<Target> {
    let small = if written { "small streams, written" } else { "small streams, read" };
    let large = if written { "large streams, written" } else { "large streams, read" };
    match (each, medium) {
        (0..SMALL_BYTES, Medium::File) => {
            vec![Target::faster(small, 15.0), Target::near_raw(small, 3.0)]
        }
        (0..SMALL_BYTES, Medium::Memory) => vec![Target::faster(small, 8.0)],
        (LARGE_BYTES.., Medium::File) => vec![Target::near_raw(large, 1.15)],
        (LARGE_BYTES.., Medium::Memory) => vec![Target::near_raw(large, 1.05)],
        _ => Vec::new(),
    }
}

/// A new file with some streams, flushed and closed.
#[derive(Clone, Debug)]
pub struct WriteStreams {
    names: Names,
    each: u64,
    chunk: usize,
}

impl WriteStreams {
    /// `count` streams of `each` bytes, written in pieces of `chunk` bytes.
    pub fn new(count: usize, each: u64, chunk: usize) -> Self {
        Self { names: Names::sorted(Script::Ascii, count), each, chunk }
    }
}

/// "1,000 x 4 KiB", and the pieces if they are smaller.
pub(super) fn name_of_data(what: &str, count: usize, each: u64, chunk: usize) -> String {
    let name = format!("{what} {} x {}", grouped(count), size(each));
    if each <= chunk as u64 { name } else { format!("{name} in {}", size(chunk as u64)) }
}

/// Streams, or MiB of large ones.
pub(super) fn unit_of_data(each: u64) -> &'static str {
    if each > LARGE_BYTES { "MiB" } else { "stream" }
}

pub(super) fn ops_of_data(count: usize, each: u64) -> u64 {
    if each > LARGE_BYTES { count as u64 * (each >> 20) } else { count as u64 }
}

impl Workload for WriteStreams {
    const PART: &'static str = "Writing";

    fn name(&self) -> String {
        name_of_data("write", self.names.count(), self.each, self.chunk)
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
        self.chunk
    }

    fn targets(&self, medium: Medium, _: Version) -> Vec<Target> {
        targets_of_data(self.each, medium, true)
    }

    fn begin<C: Contestant>(&self, _: &mut Session<C>) {}

    fn run<C: Contestant>(&self, session: &mut Session<C>) {
        session.create();
        write_streams(session, &self.names, self.each, self.chunk);
        session.close();
    }
}

/// Small streams in a new file, with a flush after so many of them.
#[derive(Clone, Debug)]
pub struct Commits {
    names: Names,
    each: u64,
    every: usize,
}

impl Commits {
    /// `count` streams of `each` bytes, and a flush after each `every` of them.
    pub fn new(count: usize, each: u64, every: usize) -> Self {
        Self { names: Names::sorted(Script::Ascii, count), each, every }
    }
}

impl Workload for Commits {
    const PART: &'static str = "Writing";

    fn name(&self) -> String {
        let what = format!("{} x {}", grouped(self.names.count()), size(self.each));
        if self.every < self.names.count() {
            format!("write {what}, a flush every {}", grouped(self.every))
        } else {
            format!("write {what}, one flush")
        }
    }

    fn unit(&self) -> &'static str {
        "stream"
    }

    fn ops(&self) -> u64 {
        self.names.count() as u64
    }

    fn shape(&self, _: Version) -> Shape {
        Shape { each: self.each, ..Shape::default() }
    }

    fn buffer_bytes(&self) -> usize {
        1 << 10
    }

    fn targets(&self, _: Medium, _: Version) -> Vec<Target> {
        Vec::new()
    }

    fn begin<C: Contestant>(&self, _: &mut Session<C>) {}

    fn run<C: Contestant>(&self, session: &mut Session<C>) {
        session.create();
        let (file, handles, data) = session.parts();
        for key in self.names.keys() {
            let mut handle = file.create_stream(key);
            file.append(&mut handle, &data[..to_usize(self.each)]);
            drop(handle);
            if (key.index + 1).is_multiple_of(self.every) {
                file.flush(handles);
            }
        }
        session.close();
    }
}

/// The bytes of a stream written anew, and a flush.
#[derive(Clone, Debug)]
pub struct Overwrite {
    names: Names,
    bytes: u64,
    chunk: usize,
    safety: Safety,
}

impl Overwrite {
    /// One stream of `bytes`, in pieces of `chunk` bytes from start to end, where
    /// it is.
    pub fn in_place(bytes: u64, chunk: usize) -> Self {
        Self { names: Names::sorted(Script::Ascii, 1), bytes, chunk, safety: Safety::None }
    }

    /// The same without writing over what was saved, for who can. The others
    /// write in place.
    pub fn atomic(bytes: u64, chunk: usize) -> Self {
        Self { safety: Safety::Ours, ..Self::in_place(bytes, chunk) }
    }

    /// The same, safe against crashes for all compound files.
    pub fn safe(bytes: u64, chunk: usize) -> Self {
        Self { safety: Safety::Both, ..Self::in_place(bytes, chunk) }
    }
}

impl Workload for Overwrite {
    const PART: &'static str = "Writing";

    fn name(&self) -> String {
        let how = match self.safety {
            Safety::None => "",
            Safety::Ours => ", atomic",
            Safety::Both => ", both safe",
        };
        format!("overwrite {} in {}{how}", size(self.bytes), size(self.chunk as u64))
    }

    fn unit(&self) -> &'static str {
        "MiB"
    }

    fn ops(&self) -> u64 {
        self.bytes >> 20
    }

    fn shape(&self, _: Version) -> Shape {
        let in_place = Some(self.safety == Safety::None);
        Shape { each: self.bytes, in_place, ..Shape::default() }
    }

    fn buffer_bytes(&self) -> usize {
        1 << 20
    }

    fn start(&self) -> Start {
        Start::OwnFile
    }

    fn targets(&self, medium: Medium, _: Version) -> Vec<Target> {
        match self.safety {
            Safety::None => targets_of_data(self.bytes, medium, true),
            Safety::Ours | Safety::Both => Vec::new(),
        }
    }

    fn set_up<C: Contestant>(&self, session: &mut Session<C>) {
        session.create();
        write_streams(session, &self.names, self.bytes, 1 << 20);
        session.close();
    }

    fn begin<C: Contestant>(&self, session: &mut Session<C>) {
        session.open();
        if self.safety != Safety::Both {
            let handle = session.file().open_stream(self.names.key(0));
            session.handles.push(handle);
        }
    }

    fn run<C: Contestant>(&self, session: &mut Session<C>) {
        if self.safety == Safety::Both {
            session.file().begin_safe();
            let handle = session.file().open_stream(self.names.key(0));
            session.handles.push(handle);
        }
        let (file, handles, data) = session.parts();
        let mut at = 0;
        while at < self.bytes {
            let piece = to_usize((self.bytes - at).min(self.chunk as u64));
            file.write_at(&mut handles[0], &data[..piece], at);
            at += piece as u64;
        }
        file.flush(handles);
        if self.safety == Safety::Both {
            session.handles.clear();
            session.file().end_safe();
        }
    }
}

/// A stream that gets its length from nothing, and a flush; and loses it again, and a flush.
#[derive(Clone, Debug)]
pub struct SetLen {
    names: Names,
    bytes: u64,
}

impl SetLen {
    /// To `bytes` and back to nothing.
    pub fn new(bytes: u64) -> Self {
        Self { names: Names::sorted(Script::Ascii, 1), bytes }
    }
}

impl Workload for SetLen {
    const PART: &'static str = "Writing";

    fn name(&self) -> String {
        format!("set_len to {} and to 0", size(self.bytes))
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
        0
    }

    fn targets(&self, _: Medium, _: Version) -> Vec<Target> {
        Vec::new()
    }

    fn begin<C: Contestant>(&self, session: &mut Session<C>) {
        session.create();
        let handle = session.file().create_stream(self.names.key(0));
        session.handles.push(handle);
    }

    fn run<C: Contestant>(&self, session: &mut Session<C>) {
        let (file, handles, _) = session.parts();
        for len_bytes in [self.bytes, 0] {
            file.set_len(&mut handles[0], len_bytes);
            file.flush(handles);
        }
    }
}

/// Empty streams in one storage, flushed and closed.
#[derive(Clone, Debug)]
pub struct Creates {
    names: Names,
    name: String,
}

impl Creates {
    /// In the order of their names.
    pub fn sorted(count: usize) -> Self {
        let name = format!("create {}, sorted", grouped(count));
        Self { names: Names::sorted(Script::Ascii, count), name }
    }

    /// In random order.
    pub fn shuffled(script: Script, count: usize) -> Self {
        let name = format!("create {}, shuffled, {}", grouped(count), script.name());
        Self { names: Names::shuffled(script, count), name }
    }
}

impl Workload for Creates {
    const PART: &'static str = "Creating";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn unit(&self) -> &'static str {
        "stream"
    }

    fn ops(&self) -> u64 {
        self.names.count() as u64
    }

    fn shape(&self, _: Version) -> Shape {
        Shape::default()
    }

    fn buffer_bytes(&self) -> usize {
        0
    }

    fn targets(&self, _: Medium, _: Version) -> Vec<Target> {
        vec![Target::faster("creates", 4.0)]
    }

    fn begin<C: Contestant>(&self, _: &mut Session<C>) {}

    fn run<C: Contestant>(&self, session: &mut Session<C>) {
        session.create();
        write_streams(session, &self.names, 0, 1);
        session.close();
    }
}
