//! One operation at a time, in batches that are undone between measurements,
//! so that a structure is loaded once and measured often.

use crate::fill::{Fill, runs};
use crate::rivals::{Extends, Rival};
use crate::rng::Rng;

/// Operations a batch for structures whose cost does not grow with the device.
pub const BATCH: usize = 1_024;
/// Operations a batch for those that walk: enough for a mean, few enough to
/// wait for.
pub const BATCH_LINEAR: usize = 16;
/// Sectors by which [`Extensions`] extend.
pub const EXTEND_BY: u32 = 8;

/// Operations a batch for this structure.
pub const fn batch_of<R: Rival>() -> usize {
    if R::ABILITIES.linear { BATCH_LINEAR } else { BATCH }
}

/// Objects of one size, allocated together and released together.
#[derive(Debug)]
pub struct Batch<R: Rival> {
    rival: R,
    count: u32,
    limit: usize,
    held: Vec<R::Object>,
    rng: Rng,
}

impl<R: Rival> Batch<R> {
    /// At most `limit` objects of `count` sectors on a device in state `fill`;
    /// `None` when the structure cannot do that or there is room for none.
    pub fn load(fill: &Fill, free_words: &[u64], count: u32, limit: usize) -> Option<Self> {
        if count > 1 && !R::ABILITIES.runs {
            return None;
        }
        // Only as many as there is room for in one piece: this measures runs.
        let fitting = runs(free_words).map(|(_, length)| (length / count) as usize);
        let limit = limit.min(fitting.sum::<usize>() / 2);
        if limit == 0 {
            return None;
        }
        let rival = R::load(fill, free_words)?;
        let held = Vec::with_capacity(limit);
        Some(Self { rival, count, limit, held, rng: Rng::new(5) })
    }

    /// Objects in a whole batch.
    pub const fn size(&self) -> usize {
        self.limit
    }

    /// Allocates until the batch is whole.
    ///
    /// # Panics
    ///
    /// When the structure finds no room: `load` made sure there is some.
    pub fn allocate(&mut self) {
        while self.held.len() < self.limit {
            self.held.push(self.rival.allocate(self.count).expect("there is room for the batch"));
        }
    }

    /// Puts the batch into random order, as objects die.
    pub fn shuffle(&mut self) {
        self.rng.shuffle(&mut self.held);
    }

    /// Releases the batch.
    pub fn release(&mut self) {
        for object in self.held.drain(..) {
            self.rival.release(object);
        }
    }
}

/// Objects all over the device that have room behind them.
#[derive(Debug)]
pub struct Extensions<R: Extends> {
    rival: R,
    tails: Vec<R::Tail>,
}

impl<R: Extends> Extensions<R> {
    /// At most `limit` objects that can grow by [`EXTEND_BY`]; `None` when there
    /// is none.
    pub fn load(fill: &Fill, free_words: &[u64], limit: usize) -> Option<Self> {
        let mut rng = Rng::new(6);
        let mut gaps: Vec<u32> = runs(free_words)
            .filter(|&(start, count)| start > 0 && count >= EXTEND_BY)
            .map(|(start, _)| start)
            .collect();
        rng.shuffle(&mut gaps);
        gaps.truncate(limit);
        if gaps.is_empty() {
            return None;
        }
        let rival = R::load(fill, free_words)?;
        Some(Self { rival, tails: gaps.into_iter().map(|gap| R::tail((gap - 1, 1))).collect() })
    }

    /// Objects in the batch.
    pub const fn size(&self) -> usize {
        self.tails.len()
    }

    /// Extends every object once.
    ///
    /// # Panics
    ///
    /// When one cannot be extended: `load` made sure that it can.
    pub fn extend(&mut self) {
        for tail in &mut self.tails {
            assert!(self.rival.extend(tail, EXTEND_BY), "{} did not extend", R::TITLE);
        }
    }

    /// Takes back what [`extend`](Self::extend) added.
    pub fn cut(&mut self) {
        for tail in &mut self.tails {
            self.rival.cut(tail, EXTEND_BY);
        }
    }
}

/// A search for one sector more than the longest free run has.
#[derive(Debug)]
pub struct FailingSearch<R: Rival> {
    finder: R::Finder,
    wanted: u32,
}

impl<R: Rival> FailingSearch<R> {
    /// `None` when the structure has no search for runs, cannot hold the state,
    /// or the device is empty, where there is nothing to search.
    pub fn load(fill: &Fill, free_words: &[u64]) -> Option<Self> {
        let longest = runs(free_words).map(|(_, count)| count).max().unwrap_or(0);
        if !R::ABILITIES.runs || longest == fill.sectors {
            return None;
        }
        Some(Self { finder: R::load(fill, free_words)?.into_finder(), wanted: longest + 1 })
    }

    /// Searches once.
    ///
    /// # Panics
    ///
    /// When something is found.
    pub fn search(&mut self) {
        let found = R::search(&mut self.finder, std::hint::black_box(self.wanted));
        assert!(!found, "{} found it", R::TITLE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals::{BTreePair, HiBitSet, Ours, Words};

    #[test]
    fn batches_can_be_repeated() {
        let fill = Fill::clustered(1 << 16, 9_000);
        let words = fill.free_words();
        let mut batch = Batch::<Ours>::load(&fill, &words, 64, 10).expect("there is room");
        let free = batch.rival.free();
        for _ in 0..3 {
            batch.allocate();
            assert_eq!(batch.rival.free(), free - 640);
            batch.shuffle();
            batch.release();
            assert_eq!(batch.rival.free(), free);
        }
        assert!(Batch::<HiBitSet>::load(&fill, &words, 64, 10).is_none());
        assert!(Batch::<Words>::load(&fill, &words, 1 << 16, 10).is_none());
    }

    #[test]
    fn extensions_can_be_repeated() {
        let fill = Fill::clustered(1 << 16, 9_000);
        let words = fill.free_words();
        let mut ours = Extensions::<Ours>::load(&fill, &words, 20).expect("there are gaps");
        let mut trees = Extensions::<BTreePair>::load(&fill, &words, 20).expect("there are gaps");
        let free = ours.rival.free();
        for _ in 0..3 {
            ours.extend();
            trees.extend();
            assert_eq!(ours.rival.free(), free - 20 * EXTEND_BY);
            assert_eq!(trees.rival.free(), free - 20 * EXTEND_BY);
            ours.cut();
            trees.cut();
        }
        assert_eq!((ours.rival.free(), trees.rival.free()), (free, free));
    }

    #[test]
    fn failing_search_wants_more_than_the_longest_run() {
        let fill = Fill::random(1 << 16, 9_900);
        FailingSearch::<Ours>::load(&fill, &fill.free_words()).expect("full enough").search();
        let empty = Fill::empty(1 << 16);
        assert!(FailingSearch::<Ours>::load(&empty, &empty.free_words()).is_none());
    }
}
