//! Streams that grow in turn, one sector at a time: the load that tears streams
//! apart when each takes just the sector it needs.

use alloc_core::{Allocator, Chain, FreeMap, SectorCount, Window};

use crate::clock::{Clock, Spent};
use crate::fill::Fill;
use crate::rivals::Exact;
use crate::rng::Rng;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// One after the other, round and round.
    RoundRobin,
    /// A random one each time.
    Random,
}

/// How many streams grow, how far, in which order.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Streams.
    pub streams: usize,
    /// Sectors of each at the end (on average, with random turns).
    pub sectors_each: usize,
    /// Order of turns.
    pub turn: Turn,
}

/// What growing cost and how the streams lie at the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grown {
    /// One operation a sector; includes closing the streams.
    pub spent: Spent,
    /// Runs of all streams together.
    pub runs: u64,
    /// Sectors neither free nor in a stream after the streams are closed.
    pub reserved: u64,
}

impl Grown {
    /// Mean length of a run, in sectors.
    pub fn mean_run(&self) -> f64 {
        self.spent.ops as f64 / self.runs as f64
    }
}

impl Growth {
    /// The stream whose turn it is at each step, drawn before the clock starts.
    fn turns(&self) -> Vec<u32> {
        let mut rng = Rng::new(13);
        (0..self.streams * self.sectors_each)
            .map(|step| match self.turn {
                Turn::RoundRobin => step % self.streams,
                Turn::Random => rng.below(self.streams),
            })
            .map(|stream| u32::try_from(stream).expect("few streams"))
            .collect()
    }

    /// Grows the streams on ours, each with a doubling window.
    ///
    /// # Panics
    ///
    /// When the device of state `fill` has no room for them.
    pub fn ours(&self, clock: &Clock, fill: &Fill, free_words: &[u64]) -> Grown {
        let turns = self.turns();
        let map = FreeMap::from_free_words(SectorCount::new(fill.sectors), free_words.to_vec());
        let mut allocator = Allocator::new(map);
        let before = allocator.map().free_count().get();
        let mut streams: Vec<(Chain, Window)> =
            (0..self.streams).map(|_| (Chain::new(), Window::doubling())).collect();
        let one = SectorCount::new(1);
        let ((), spent) = clock.time(turns.len() as u64, || {
            for &turn in &turns {
                let (chain, window) = &mut streams[turn as usize];
                allocator.extend(chain, window, one).expect("there is room");
            }
            for (_, window) in &mut streams {
                allocator.trim(window);
            }
        });
        let taken = u64::from(before - allocator.map().free_count().get());
        let held: u64 =
            streams.iter().map(|(chain, _)| u64::from(chain.sector_count().get())).sum();
        assert_eq!(held, turns.len() as u64, "every turn adds one sector");
        let runs = streams.iter().map(|(chain, _)| chain.run_count() as u64).sum();
        Grown { spent, runs, reserved: taken - held }
    }

    /// Grows the streams on a rival: in place where the next sector is free,
    /// else with one sector from elsewhere.
    ///
    /// # Panics
    ///
    /// When the device of state `fill` has no room for them.
    pub fn rival<R: Exact>(&self, clock: &Clock, fill: &Fill, free_words: &[u64]) -> Grown {
        let turns = self.turns();
        let mut rival = R::from_fill(fill, free_words).expect("held by every rival that extends");
        let before = rival.free_sectors();
        let mut streams: Vec<Vec<(u32, u32)>> = vec![Vec::new(); self.streams];
        let ((), spent) = clock.time(turns.len() as u64, || {
            for &turn in &turns {
                let stream = &mut streams[turn as usize];
                if let Some((start, count)) = stream.last_mut()
                    && rival.take_exact(*start + *count, 1)
                {
                    *count += 1;
                } else {
                    stream.push(rival.take_run(1).expect("there is room"));
                }
            }
        });
        let taken = u64::from(before - rival.free_sectors());
        let runs = streams.iter().map(|stream| stream.len() as u64).sum();
        Grown { spent, runs, reserved: taken - turns.len() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals::BTreePair;

    #[test]
    fn streams_in_turn_get_long_runs_from_ours_and_single_sectors_from_trees() {
        let clock = Clock::calibrated();
        let fill = Fill::empty(1 << 18);
        let words = fill.free_words();
        for turn in [Turn::RoundRobin, Turn::Random] {
            let growth = Growth { streams: 16, sectors_each: 4_096, turn };
            let ours = growth.ours(&clock, &fill, &words);
            assert!(ours.mean_run() > 100.0, "{} sectors a run", ours.mean_run());
            assert_eq!(ours.reserved, 0);
            let trees = growth.rival::<BTreePair>(&clock, &fill, &words);
            assert!(trees.mean_run() < 3.0, "{} sectors a run", trees.mean_run());
        }
    }
}
