//! All workloads with their sizes.

use super::names::Script;
use super::work::appending::{Appends, SmallFlushes, Turn};
use super::work::opening::Opening;
use super::work::reading::{CopyOut, RandomReads, ReadStreams};
use super::work::removing::{Removal, Removes, Reuse, Rewrite};
use super::work::writing::{Commits, Creates, Overwrite, SetLen, WriteStreams};
use super::work::{Safety, Workload};

/// Takes every workload in turn.
pub trait Visitor {
    /// The next one.
    fn visit<W: Workload>(&mut self, work: &W);
}

/// Pieces in which large streams are written and read.
const CHUNKS: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];

/// How large things are.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Small streams in a file.
    pub small: usize,
    /// Entries in a large directory.
    pub many: usize,
    /// Bytes of the large stream.
    pub large: u64,
    /// Bytes of the largest stream.
    pub huge: u64,
    /// Turns of each stream that grows in turn.
    pub turns: usize,
}

impl Sizes {
    /// As the figures are published.
    pub const FULL: Self =
        Self { small: 1_000, many: 100_000, large: 256 << 20, huge: 1 << 30, turns: 256 };
    /// For a look in between.
    pub const QUICK: Self =
        Self { small: 1_000, many: 20_000, large: 64 << 20, huge: 128 << 20, turns: 64 };

    /// Count and length of the streams in the rows that write and read many.
    fn streams(self) -> [(usize, u64); 8] {
        [
            (self.small * 10, 0),
            (self.small, 64),
            (self.small, 1_024),
            (self.small, 4_095),
            (self.small, 4_096),
            (self.small, 8_192),
            (self.small, 100 << 10),
            (usize::try_from(self.large >> 20).expect("some hundred"), 1 << 20),
        ]
    }
}

/// Shows every workload to `visitor`.
pub fn visit_all(sizes: Sizes, visitor: &mut impl Visitor) {
    let Sizes { small, many, large, huge, turns } = sizes;
    for (count, each) in sizes.streams() {
        visitor.visit(&WriteStreams::new(count, each, 1 << 20));
    }
    for chunk in CHUNKS {
        visitor.visit(&WriteStreams::new(1, large, chunk));
    }
    for chunk in [4 << 10, 64 << 10] {
        visitor.visit(&Overwrite::in_place(large / 4, chunk));
        visitor.visit(&Overwrite::atomic(large / 4, chunk));
        visitor.visit(&Overwrite::safe(large / 4, chunk));
    }
    visitor.visit(&SetLen::new(large / 4));
    for every in [small, small * 20] {
        visitor.visit(&Commits::new(small * 20, 200, every));
    }

    for (count, each) in sizes.streams() {
        visitor.visit(&ReadStreams::new(count, each, 1 << 20));
    }
    for chunk in CHUNKS {
        visitor.visit(&ReadStreams::new(1, large, chunk));
    }
    visitor.visit(&RandomReads::new(large, 2_000, 4_096));
    visitor.visit(&RandomReads::new(large, 1_000, 16));
    visitor.visit(&CopyOut::new(large));

    visitor.visit(&Opening::open(many / 10, 100));
    visitor.visit(&Opening::open(many, 100));
    visitor.visit(&Opening::open(1, huge));
    visitor.visit(&Opening::first_read(1, huge));
    visitor.visit(&Opening::first_read(many, 100));
    visitor.visit(&Opening::walk(many, 100));
    for script in Script::ALL {
        visitor.visit(&Opening::look_up(script, many));
    }

    for turn in [Turn::Reopened, Turn::Kept, Turn::Read] {
        visitor.visit(&Appends::new(64, turns, turn));
    }
    for first in [0, 8_192] {
        let flushes = SmallFlushes::new(1_000, first);
        visitor.visit(&flushes);
        visitor.visit(&flushes.clone().with(Safety::None));
        visitor.visit(&flushes.with(Safety::Both));
    }

    for (count, each) in [(small * 4, 1_000), (small, 8_192)] {
        for removal in [Removal::Half, Removal::AddAgain, Removal::All] {
            visitor.visit(&Removes::new(count, each, removal, small * 4));
        }
    }
    visitor.visit(&Removes::new(small * 40, 1_000, Removal::All, small * 4));
    for reuse in [Reuse::Write, Reuse::Read, Reuse::ReadFresh] {
        visitor.visit(&Rewrite::new(large / 4, reuse));
    }

    visitor.visit(&Creates::sorted(many));
    for script in Script::ALL {
        visitor.visit(&Creates::shuffled(script, many));
    }
}
