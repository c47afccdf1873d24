//! Streams removed, space used again.

use super::{Session, Target, Workload, grouped, size, to_usize, write_streams};
use crate::cfb::base::Medium;
use crate::cfb::contestant::{Contestant, Key, Shape, Version};
use crate::cfb::names::{Names, Script};

/// What is done with the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Every second one is removed.
    Half,
    /// Every second one was removed and is written again.
    AddAgain,
    /// All are removed.
    All,
}

/// Streams removed from a file, and a flush.
#[derive(Clone, Debug)]
pub struct Removes {
    names: Names,
    each: u64,
    removal: Removal,
    /// The rival gets no more than this.
    rival_count: usize,
}

impl Removes {
    /// Of `count` streams of `each` bytes; `rival_count` for the rival.
    pub fn new(count: usize, each: u64, removal: Removal, rival_count: usize) -> Self {
        Self { names: Names::shuffled(Script::Ascii, count), each, removal, rival_count }
    }

    fn remove_half<C: Contestant>(&self, session: &mut Session<C>) {
        for key in self.names.keys().step_by(2) {
            session.file().remove_stream(key);
        }
        let (file, handles, _) = session.parts();
        file.flush(handles);
    }
}

impl Workload for Removes {
    const PART: &'static str = "Removing";

    fn name(&self) -> String {
        let what = match self.removal {
            Removal::Half => "remove every second of",
            Removal::AddAgain => "add again every second of",
            Removal::All => "remove all of",
        };
        format!("{what} {} x {}", grouped(self.names.count()), size(self.each))
    }

    fn unit(&self) -> &'static str {
        "stream"
    }

    fn ops(&self) -> u64 {
        let count = self.names.count() as u64;
        if self.removal == Removal::All { count } else { count.div_ceil(2) }
    }

    fn shape(&self, _: Version) -> Shape {
        Shape { each: self.each, ..Shape::default() }
    }

    fn buffer_bytes(&self) -> usize {
        1 << 20
    }

    fn targets(&self, _: Medium, _: Version) -> Vec<Target> {
        Vec::new()
    }

    fn for_rival(&self) -> Self {
        let count = self.names.count().min(self.rival_count);
        Self { names: Names::shuffled(Script::Ascii, count), ..self.clone() }
    }

    fn begin<C: Contestant>(&self, session: &mut Session<C>) {
        session.create();
        write_streams(session, &self.names, self.each, 1 << 20);
        let (file, handles, _) = session.parts();
        file.flush(handles);
        if self.removal == Removal::AddAgain {
            self.remove_half(session);
        }
    }

    fn run<C: Contestant>(&self, session: &mut Session<C>) {
        match self.removal {
            Removal::Half => self.remove_half(session),
            Removal::All => {
                for key in self.names.keys() {
                    session.file().remove_stream(key);
                }
                let (file, handles, _) = session.parts();
                file.flush(handles);
            }
            Removal::AddAgain => {
                let (file, handles, data) = session.parts();
                for key in self.names.keys().step_by(2) {
                    let mut handle = file.create_stream(key);
                    file.append(&mut handle, &data[..to_usize(self.each)]);
                }
                file.flush(handles);
            }
        }
    }
}

/// Which space a stream is in, and what is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Written into space that a stream of the same length left.
    Write,
    /// Read from there.
    Read,
    /// Read from a file without holes, to compare.
    ReadFresh,
}

/// A stream in the space of a removed one.
#[derive(Clone, Debug)]
pub struct Rewrite {
    names: Names,
    bytes: u64,
    reuse: Reuse,
}

impl Rewrite {
    const CHUNK: usize = 1 << 20;

    /// A stream of `bytes`.
    pub fn new(bytes: u64, reuse: Reuse) -> Self {
        Self { names: Names::sorted(Script::Ascii, 3), bytes, reuse }
    }

    /// For raw calls there is only the first stream.
    fn key(names: &Names, index: usize) -> Key<'_> {
        Key { index: 0, ..names.key(index) }
    }

    fn write<C: Contestant>(session: &mut Session<C>, names: &Names, index: usize, bytes: u64) {
        let (file, _, data) = session.parts();
        let mut handle = file.create_stream(Self::key(names, index));
        let mut left = bytes;
        while left > 0 {
            let piece = to_usize(left.min(Self::CHUNK as u64));
            file.append(&mut handle, &data[..piece]);
            left -= piece as u64;
        }
    }
}

impl Workload for Rewrite {
    const PART: &'static str = "Removing";

    fn name(&self) -> String {
        let bytes = size(self.bytes);
        match self.reuse {
            Reuse::Write => format!("write {bytes} into freed space"),
            Reuse::Read => format!("read {bytes} back from freed space"),
            Reuse::ReadFresh => format!("read {bytes} back from a fresh file"),
        }
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
        Self::CHUNK
    }

    fn targets(&self, _: Medium, _: Version) -> Vec<Target> {
        Vec::new()
    }

    fn begin<C: Contestant>(&self, session: &mut Session<C>) {
        session.create();
        if self.reuse != Reuse::ReadFresh {
            Self::write(session, &self.names, 0, self.bytes);
            // Behind it, so that the file keeps its length.
            Self::write(session, &self.names, 1, 8_192);
            let (file, handles, _) = session.parts();
            file.flush(handles);
            session.file().remove_stream(Self::key(&self.names, 0));
            let (file, handles, _) = session.parts();
            file.flush(handles);
        }
        if self.reuse != Reuse::Write {
            Self::write(session, &self.names, 2, self.bytes);
            let (file, handles, _) = session.parts();
            file.flush(handles);
        }
    }

    fn run<C: Contestant>(&self, session: &mut Session<C>) {
        if self.reuse == Reuse::Write {
            Self::write(session, &self.names, 2, self.bytes);
            let (file, handles, _) = session.parts();
            file.flush(handles);
            return;
        }
        let (file, _, data) = session.parts();
        let mut handle = file.open_stream(Self::key(&self.names, 2));
        for _ in 0..self.bytes / Self::CHUNK as u64 {
            file.read_next(&mut handle, data);
            std::hint::black_box(&data);
        }
    }
}
