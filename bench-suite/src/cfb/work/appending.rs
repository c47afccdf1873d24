//! Streams that grow in turn, and small writes that are flushed one by one.

use super::reading::read_streams;
use super::{Safety, Session, Start, Target, Workload, grouped, size};
use crate::cfb::base::Medium;
use crate::cfb::contestant::{Contestant, Shape, Version};
use crate::cfb::names::{Names, Script};

/// Bytes of each turn.
const PIECE: usize = 4_096;

/// How a stream gets its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is opened for it; one flush at the very end.
    Reopened,
    /// Its handle is kept; a flush after each round.
    Kept,
    /// Not any more: all are read, one after the other.
    Read,
}

/// Streams get 4 KiB each in turn.
#[derive(Clone, Debug)]
pub struct Appends {
    names: Names,
    turns: usize,
    turn: Turn,
}

impl Appends {
    /// `streams` streams, `turns` times 4 KiB each.
    pub fn new(streams: usize, turns: usize, turn: Turn) -> Self {
        Self { names: Names::sorted(Script::Ascii, streams), turns, turn }
    }

    fn append_kept<C: Contestant>(&self, session: &mut Session<C>) {
        for key in self.names.keys() {
            let handle = session.file().create_stream(key);
            session.handles.push(handle);
        }
        let (file, handles, data) = session.parts();
        for _ in 0..self.turns {
            for handle in handles.iter_mut() {
                file.append(handle, &data[..PIECE]);
            }
            file.flush(handles);
        }
    }

    fn append_reopened<C: Contestant>(&self, session: &mut Session<C>) {
        let (file, _, data) = session.parts();
        for turn in 0..self.turns {
            for key in self.names.keys() {
                let mut handle =
                    if turn == 0 { file.create_stream(key) } else { file.open_stream(key) };
                file.append(&mut handle, &data[..PIECE]);
            }
        }
    }
}

impl Workload for Appends {
    const PART: &'static str = "Appending";

    fn name(&self) -> String {
        let total = size((self.names.count() * self.turns * PIECE) as u64);
        match self.turn {
            Turn::Reopened => format!("{} streams in turn, reopened, {total}", self.names.count()),
            Turn::Kept => format!("{} streams in turn, flushes, {total}", self.names.count()),
            Turn::Read => format!("read {} streams that grew in turn", self.names.count()),
        }
    }

    fn unit(&self) -> &'static str {
        if self.turn == Turn::Read { "MiB" } else { "append" }
    }

    fn ops(&self) -> u64 {
        let appends = (self.names.count() * self.turns) as u64;
        if self.turn == Turn::Read { (appends * PIECE as u64) >> 20 } else { appends }
    }

    fn shape(&self, _: Version) -> Shape {
        Shape { each: (self.turns * PIECE) as u64, ..Shape::default() }
    }

    fn buffer_bytes(&self) -> usize {
        1 << 16
    }

    fn start(&self) -> Start {
        if self.turn == Turn::Read { Start::OwnFile } else { Start::Empty }
    }

    fn targets(&self, _: Medium, _: Version) -> Vec<Target> {
        vec![Target::near_raw("appends in turn", 2.0)]
    }

    fn set_up<C: Contestant>(&self, session: &mut Session<C>) {
        session.create();
        self.append_kept(session);
        session.close();
    }

    fn begin<C: Contestant>(&self, session: &mut Session<C>) {
        if self.turn == Turn::Read {
            session.open();
        }
    }

    fn run<C: Contestant>(&self, session: &mut Session<C>) {
        match self.turn {
            Turn::Read => {
                let each = session.shape.each;
                read_streams(session, &self.names, each, 1 << 16);
            }
            Turn::Kept | Turn::Reopened => {
                session.create();
                if self.turn == Turn::Kept {
                    self.append_kept(session);
                } else {
                    self.append_reopened(session);
                }
                session.close();
            }
        }
    }
}

/// A few bytes at the end of a stream and a flush, again and again.
#[derive(Clone, Debug)]
pub struct SmallFlushes {
    names: Names,
    count: usize,
    first: u64,
    /// As it comes if `None`.
    safety: Option<Safety>,
}

impl SmallFlushes {
    /// Bytes of each write.
    pub const PIECE: usize = 100;

    /// `count` writes of 100 bytes, to a stream that has `first` bytes.
    pub fn new(count: usize, first: u64) -> Self {
        Self { names: Names::sorted(Script::Ascii, 1), count, first, safety: None }
    }

    /// The same, with this safety.
    #[must_use]
    pub fn with(self, safety: Safety) -> Self {
        Self { safety: Some(safety), ..self }
    }
}

impl Workload for SmallFlushes {
    const PART: &'static str = "Appending";

    fn name(&self) -> String {
        let count = grouped(self.count);
        let how = match self.safety {
            None => "",
            Some(Safety::None) => " in place",
            Some(Safety::Ours) => ", atomic",
            Some(Safety::Both) => ", both safe",
        };
        format!("{count} x 100 B and a flush{how}, after {}", size(self.first))
    }

    fn unit(&self) -> &'static str {
        "write"
    }

    fn ops(&self) -> u64 {
        self.count as u64
    }

    fn shape(&self, _: Version) -> Shape {
        let in_place = self.safety.map(|safety| safety == Safety::None);
        Shape { each: self.first, in_place, ..Shape::default() }
    }

    fn buffer_bytes(&self) -> usize {
        1 << 20
    }

    fn targets(&self, _: Medium, _: Version) -> Vec<Target> {
        Vec::new()
    }

    fn begin<C: Contestant>(&self, session: &mut Session<C>) {
        session.create();
        super::write_streams(session, &self.names, self.first, 1 << 20);
        let handle = session.file().open_stream(self.names.key(0));
        session.handles.push(handle);
        let (file, handles, _) = session.parts();
        file.flush(handles);
    }

    fn run<C: Contestant>(&self, session: &mut Session<C>) {
        if self.safety == Some(Safety::Both) {
            for _ in 0..self.count {
                session.handles.clear();
                session.file().begin_safe();
                let handle = session.file().open_stream(self.names.key(0));
                session.handles.push(handle);
                let (file, handles, data) = session.parts();
                file.append(&mut handles[0], &data[..Self::PIECE]);
                file.flush(handles);
                session.handles.clear();
                session.file().end_safe();
            }
            return;
        }
        let (file, handles, data) = session.parts();
        for _ in 0..self.count {
            file.append(&mut handles[0], &data[..Self::PIECE]);
            file.flush(handles);
        }
    }
}
