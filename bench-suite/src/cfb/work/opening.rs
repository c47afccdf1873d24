//! Files opened, walked, searched by path; the first read of a stream.

use std::hint::black_box;

use super::{Of, Session, Start, Target, Workload, grouped, size, to_usize, write_streams};
use crate::cfb::base::Medium;
use crate::cfb::contestant::{Contestant, ENTRY_BYTES, Shape, Version};
use crate::cfb::names::{Names, Script};

/// Bytes of FAT, MiniFAT and directory of a file with these streams.
fn metadata_bytes(count: usize, each: u64, version: Version) -> u64 {
    let count = count as u64;
    let directory = count * ENTRY_BYTES as u64;
    let mini_fat = if each < 4_096 { count * each.div_ceil(64) * 4 } else { 0 };
    let data = count * if each < 4_096 { each.next_multiple_of(64) } else { each };
    let fat = (data + directory + mini_fat).div_ceil(version.sector_bytes()) * 4;
    directory + mini_fat + fat
}

/// What is done with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Open,
    Walk,
    LookUp,
    FirstRead,
}

/// A file is opened, or something is found in one that is open.
#[derive(Clone, Debug)]
pub struct Opening {
    what: What,
    names: Names,
    /// The order in which names are looked up.
    order: Names,
    script: Script,
    each: u64,
}

impl Opening {
    fn new(what: What, script: Script, count: usize, each: u64) -> Self {
        Self {
            what,
            names: Names::sorted(script, count),
            order: Names::shuffled(script, count),
            script,
            each,
        }
    }

    /// A file with `count` streams of `each` bytes.
    pub fn open(count: usize, each: u64) -> Self {
        Self::new(What::Open, Script::Ascii, count, each)
    }

    /// Every entry of an open file.
    pub fn walk(count: usize, each: u64) -> Self {
        Self::new(What::Walk, Script::Ascii, count, each)
    }

    /// Every name of an open file once, in random order.
    pub fn look_up(script: Script, count: usize) -> Self {
        Self::new(What::LookUp, script, count, 100)
    }

    /// 1 KiB of the first stream of a file that was just opened.
    pub fn first_read(count: usize, each: u64) -> Self {
        Self::new(What::FirstRead, Script::Ascii, count, each)
    }

    /// Of a first read.
    const READ_BYTES: usize = 1_024;
}

impl Workload for Opening {
    const PART: &'static str = "Opening";

    fn name(&self) -> String {
        let streams = format!("{} x {}", grouped(self.names.count()), size(self.each));
        match self.what {
            What::Open => format!("open {streams}"),
            What::Walk => format!("walk {streams}"),
            What::LookUp => {
                format!("look up {} paths, {}", grouped(self.names.count()), self.script.name())
            }
            What::FirstRead => format!("first read after open, {streams}"),
        }
    }

    fn unit(&self) -> &'static str {
        match self.what {
            What::Open if self.names.count() == 1 => "file",
            What::Open | What::Walk => "entry",
            What::LookUp => "look-up",
            What::FirstRead => "read",
        }
    }

    fn ops(&self) -> u64 {
        match self.what {
            What::Open | What::LookUp => self.names.count() as u64,
            What::Walk => self.names.count() as u64 + 1,
            What::FirstRead => 1,
        }
    }

    fn shape(&self, version: Version) -> Shape {
        let metadata = match self.what {
            What::Open => metadata_bytes(self.names.count(), self.each, version),
            _ => 0,
        };
        Shape { each: self.each.max(ENTRY_BYTES as u64), metadata, ..Shape::default() }
    }

    fn buffer_bytes(&self) -> usize {
        1 << 20
    }

    fn start(&self) -> Start {
        Start::SameFile
    }

    fn targets(&self, _: Medium, version: Version) -> Vec<Target> {
        let large = self.names.count() == 1;
        match self.what {
            What::Open if large && version == Version::V3 => {
                vec![Target::faster("open, one large V3 stream", 15.0)]
            }
            What::Open if large => vec![Target::faster("open", 6.0)],
            What::Open => vec![
                Target::faster("open", 6.0),
                Target { name: "open, ns an entry", of: Of::Nanoseconds, bound: 200.0 },
            ],
            What::LookUp => vec![Target::faster("look-ups", 4.0)],
            What::Walk | What::FirstRead => Vec::new(),
        }
    }

    fn set_up<C: Contestant>(&self, session: &mut Session<C>) {
        session.create();
        write_streams(session, &self.names, self.each, 1 << 20);
        session.close();
    }

    fn begin<C: Contestant>(&self, session: &mut Session<C>) {
        if self.what != What::Open {
            session.open();
        }
    }

    fn run<C: Contestant>(&self, session: &mut Session<C>) {
        match self.what {
            What::Open => session.open(),
            What::Walk => {
                let entries = self.names.count() + 1;
                let (count, bytes) = session.file().walk(entries);
                assert_eq!(count, entries, "every stream and the root");
                black_box(bytes);
            }
            What::LookUp => {
                let file = session.file();
                let found = self.order.keys().filter(|&key| file.exists(key)).count();
                assert_eq!(found, self.order.count(), "every path is there");
            }
            What::FirstRead => {
                let (file, _, buffer) = session.parts();
                let mut handle = file.open_stream(self.names.key(0));
                let count = to_usize(self.each).min(Self::READ_BYTES);
                file.read_next(&mut handle, &mut buffer[..count]);
                black_box(&buffer);
            }
        }
    }
}
