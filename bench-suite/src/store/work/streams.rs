//! Large objects that come in pieces.

use std::path::Path;

use super::{By, Of, Seat, Spec, Start, Target, Workload, size};
use crate::clock::Spent;
use crate::store::contestant::{Contestant, FILES};
use crate::store::data::{key, value};
use crate::store::measure::time;
use crate::store::raw::Raw;

/// Bytes of an object.
pub const OBJECT: usize = 64 << 20;

/// Bytes that come at once.
pub const PIECE: usize = 64 << 10;

/// Pieces of an object.
const PIECES: usize = OBJECT / PIECE;

/// Piece number `piece` of the object `index`.
pub fn piece(index: usize, piece: usize) -> &'static [u8] {
    value(index * PIECES + piece, PIECE)
}

/// Puts the object `index` piece by piece.
pub fn put(store: &dyn Contestant, index: usize) {
    let mut pieces = (0..PIECES).map(|number| piece(index, number));
    store.put_streamed(&key(index), OBJECT, &mut pieces);
}

/// Puts objects of 64 MiB, 64 KiB at a time, and flushes them in the end.
pub struct Streams {
    count: usize,
}

impl Streams {
    /// So many objects.
    pub const fn new(count: usize) -> Self {
        Self { count }
    }
}

impl Workload for Streams {
    fn part(&self) -> &'static str {
        "Put in pieces"
    }

    fn specs(&self) -> Vec<Spec> {
        let (object, piece) = (size(OBJECT as u64), size(PIECE as u64));
        vec![Spec {
            name: format!("stream {} x {object} in {piece}, and sync", self.count),
            unit: "object",
            ops: self.count,
            by: By::Wall,
            targets: vec![Target::new(Of::FastestOf(&["files", FILES]), 1.1)],
        }]
    }

    fn start(&self) -> Start {
        Start::Empty
    }

    fn run(&self, seat: &mut Seat) -> Vec<(usize, Spent)> {
        let store = seat.store();
        let ((), spent) = time(self.count, || {
            (0..self.count).for_each(|index| put(store, index));
            store.sync();
        });
        vec![(0, spent)]
    }

    fn check(&self, seat: &Seat, thorough: bool) {
        assert_eq!(seat.store().list("").keys, self.count, "{}", seat.entry.name);
        for index in (0..self.count).step_by(if thorough { 4 } else { 10 }) {
            seat.store().get(&key(index), &mut |found| {
                assert_eq!(found.len(), OBJECT, "{}", seat.entry.name);
                for (number, found) in found.chunks(PIECE).enumerate() {
                    assert!(found == piece(index, number), "piece {number} is what was put");
                }
            });
        }
    }

    fn raws(&self, dir: &Path) -> Vec<Raw> {
        vec![Raw::sequential(0, dir, self.count, OBJECT, PIECE)]
    }
}
