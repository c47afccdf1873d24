//! Free runs below a place, and which of them a piece goes to.

use std::collections::BTreeSet;

use alloc_core::{Chain, FreeMap, Run, SectorCount, SectorId};

/// Free runs by length, then place.
pub(super) struct Holes {
    runs: BTreeSet<(u32, u32)>,
    /// Pieces of so many sectors are not divided where the budget ends.
    at_once: u32,
}

/// A piece of a chain that moves: its sectors from `first` on go to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) first: u32,
    pub(super) to: Run,
}

impl Holes {
    /// What is free before the sector `target`.
    pub(super) fn below(map: &FreeMap, target: u32, at_once: u32) -> Self {
        let runs = map.free_runs().take_while(|run| run.start().get() < target);
        let runs = runs.map(|run| {
            let start = run.start().get();
            (run.end().get().min(target) - start, start)
        });
        Self { runs: runs.collect(), at_once }
    }

    /// Where the sectors of a chain that lie at or behind `target` go, as far as the
    /// `budget` reaches.
    ///
    /// A chain that lies there whole gets one run where there is one. Other pieces
    /// go to the shortest hole that has room, or are split over the longest.
    /// What the budget leaves for another time finds its place before what moved.
    pub(super) fn place(&mut self, chain: &Chain, target: u32, budget: &mut u32) -> Vec<Move> {
        let count = chain.sector_count().get();
        let mut plan = Vec::new();
        if *budget == 0 {
            return plan;
        }
        let is_behind = chain.runs().all(|run| run.start().get() >= target);
        if is_behind && let Some(hole) = self.fit(count) {
            self.take_end(hole, 0, count, budget, &mut plan);
            return plan;
        }
        let mut pieces = Vec::new();
        let mut at = 0;
        for run in chain.runs() {
            let skip = target.saturating_sub(run.start().get()).min(run.count().get());
            let rest = run.count().get() - skip;
            if rest > 0 {
                pieces.push((run.start().get() + skip, at + skip, rest));
            }
            at += run.count().get();
        }
        // From the end of the file, which is to be cut off.
        pieces.sort_unstable_by(|a, b| b.cmp(a));
        for (_, first, mut count) in pieces {
            while count > 0 && *budget > 0 {
                let (hole, part) = match self.fit(count) {
                    Some(hole) => (hole, count),
                    None => match self.runs.last() {
                        Some(&longest) => (longest, longest.0),
                        None => return plan,
                    },
                };
                count -= self.take_end(hole, first + count - part, part, budget, &mut plan);
            }
        }
        plan
    }

    /// The shortest hole of at least `count` sectors.
    fn fit(&self, count: u32) -> Option<(u32, u32)> {
        self.runs.range((count, 0)..).next().copied()
    }

    /// Moves the end of `part` sectors of a chain from `first` on, as much of it as the
    /// budget allows, to where it lies when all of the part is at the front of the hole.
    /// Gives how many sectors that is; one at least while there is any budget.
    fn take_end(
        &mut self,
        hole: (u32, u32),
        first: u32,
        part: u32,
        budget: &mut u32,
        plan: &mut Vec<Move>,
    ) -> u32 {
        let (len, start) = hole;
        let count = if part <= self.at_once { part } else { part.min(*budget) };
        *budget = budget.saturating_sub(count);
        self.runs.remove(&hole);
        let before = part - count;
        for (len, start) in [(before, start), (len - part, start + part)] {
            if len > 0 {
                self.runs.insert((len, start));
            }
        }
        let to = Run::new(SectorId::new(start + before), SectorCount::new(count));
        plan.push(Move { first: first + before, to });
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u32, count: u32) -> Run {
        Run::new(SectorId::new(start), SectorCount::new(count))
    }

    /// Free: 2..5, 10..16, 30..32 below 40.
    fn holes() -> Holes {
        Holes { runs: BTreeSet::from([(3, 2), (6, 10), (2, 30)]), at_once: 4 }
    }

    #[test]
    fn chain_behind_the_target_gets_the_shortest_run_that_has_room() {
        let chain = Chain::from_runs([run(50, 2), run(60, 1)]);
        let plan = holes().place(&chain, 40, &mut 100);
        assert_eq!(plan, [Move { first: 0, to: run(2, 3) }]);
    }

    #[test]
    fn only_what_lies_behind_the_target_moves() {
        let chain = Chain::from_runs([run(38, 4), run(20, 3), run(50, 3)]);
        let mut budget = 100;
        let plan = holes().place(&chain, 40, &mut budget);
        let expected = [Move { first: 7, to: run(2, 3) }, Move { first: 2, to: run(30, 2) }];
        assert_eq!((plan.as_slice(), budget), (&expected[..], 95));
    }

    #[test]
    fn piece_without_a_hole_is_split_over_the_longest() {
        let chain = Chain::from_runs([run(50, 8)]);
        let plan = holes().place(&chain, 40, &mut 100);
        assert_eq!(plan, [Move { first: 2, to: run(10, 6) }, Move { first: 0, to: run(30, 2) }]);
    }

    #[test]
    fn short_chain_moves_at_once() {
        let (chain, mut budget) = (Chain::from_runs([run(50, 4)]), 2);
        let plan = holes().place(&chain, 40, &mut budget);
        assert_eq!((plan.as_slice(), budget), (&[Move { first: 0, to: run(10, 4) }][..], 0));
        assert_eq!(holes().place(&chain, 40, &mut budget), []);
    }

    #[test]
    fn what_the_budget_leaves_joins_what_has_moved() {
        let mut holes = Holes { runs: BTreeSet::from([(6, 10), (2, 30)]), at_once: 1 };
        let mut chain = Chain::from_runs([run(50, 5)]);
        for (budget, expected) in [(2, run(13, 2)), (2, run(11, 2)), (1, run(10, 1))] {
            let plan = holes.place(&chain, 40, &mut { budget });
            assert_eq!(plan.len(), 1);
            assert_eq!(plan[0].to, expected);
            let at = SectorCount::new(plan[0].first);
            assert_eq!(chain.replace(at, Chain::from_runs([expected])).run_count(), 1);
        }
        assert_eq!(chain, Chain::from_runs([run(10, 5)]));
    }
}
