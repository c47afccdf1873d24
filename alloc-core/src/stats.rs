//! Numbers about free runs and about chains, for reports and benchmarks.

use crate::{Chain, FreeMap, SectorCount};

/// Counts of a [`FreeMap`], from [`FreeMap::stats`].
///
/// # Example
///
/// ```
/// use alloc_core::{FreeMap, Run, SectorCount, SectorId};
///
/// let mut map = FreeMap::new(SectorCount::new(100));
/// map.take(Run::new(SectorId::new(3), SectorCount::new(20)));
/// let stats = map.stats();
/// assert_eq!((stats.free, stats.runs), (SectorCount::new(80), 2));
/// assert_eq!(stats.largest, SectorCount::new(77));
/// assert_eq!((stats.runs_by_log2[1], stats.runs_by_log2[6]), (1, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeStats {
    /// The size of the device.
    pub total: SectorCount,
    /// Free sectors.
    pub free: SectorCount,
    /// Maximal runs of free sectors.
    pub runs: u32,
    /// The length of the longest.
    pub largest: SectorCount,
    /// How many free runs have from `2^i` up to, not including, `2^(i + 1)`
    /// sectors.
    pub runs_by_log2: [u32; 32],
    /// How many free sectors those runs have in all.
    pub sectors_by_log2: [u32; 32],
    /// Sectors promised by [`Allocator::reserve`](crate::Allocator::reserve);
    /// zero for a map alone.
    pub reserved: SectorCount,
}

impl FreeStats {
    pub(crate) fn of(map: &FreeMap) -> Self {
        let mut stats = Self {
            total: map.total(),
            free: map.free_count(),
            runs: map.run_count(),
            largest: SectorCount::ZERO,
            runs_by_log2: [0; 32],
            sectors_by_log2: [0; 32],
            reserved: SectorCount::ZERO,
        };
        for run in map.free_runs() {
            let count = run.count();
            stats.largest = stats.largest.max(count);
            let log2 = count.get().ilog2() as usize;
            stats.runs_by_log2[log2] += 1;
            stats.sectors_by_log2[log2] += count.get();
        }
        stats
    }

    /// Sectors a free run has on average; 0.0 when there is none.
    pub fn mean_run(&self) -> f64 {
        ratio(self.free.get().into(), self.runs.into())
    }
}

/// Counts over chains, added up one by one.
///
/// # Example
///
/// ```
/// use alloc_core::{Chain, ChainStats, Run, SectorCount, SectorId};
///
/// let run = |start, count| Run::new(SectorId::new(start), SectorCount::new(count));
/// let chains = [Chain::from_runs([run(0, 4)]), Chain::from_runs([run(9, 1), run(5, 3)])];
/// let stats: ChainStats = chains.iter().collect();
/// assert_eq!((stats.chains, stats.extents, stats.sectors), (2, 3, 8));
/// assert_eq!(stats.extents_per_chain(), 1.5);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainStats {
    /// Chains that are not empty.
    pub chains: u64,
    /// Their runs.
    pub extents: u64,
    /// Their sectors.
    pub sectors: u64,
    /// Chains of one run.
    pub contiguous: u64,
    /// The most runs a chain has.
    pub most_extents: u64,
}

impl ChainStats {
    /// Counts `chain`, unless it is empty.
    pub fn add(&mut self, chain: &Chain) {
        let extents = chain.run_count() as u64;
        if extents == 0 {
            return;
        }
        self.chains += 1;
        self.extents += extents;
        self.sectors += u64::from(chain.sector_count().get());
        self.contiguous += u64::from(extents == 1);
        self.most_extents = self.most_extents.max(extents);
    }

    /// Runs a chain has on average; 0.0 when there is no chain.
    pub fn extents_per_chain(&self) -> f64 {
        ratio(self.extents, self.chains)
    }

    /// Sectors a run has on average; 0.0 when there is no run.
    pub fn mean_extent(&self) -> f64 {
        ratio(self.sectors, self.extents)
    }
}

impl<'a> FromIterator<&'a Chain> for ChainStats {
    fn from_iter<I: IntoIterator<Item = &'a Chain>>(chains: I) -> Self {
        let mut stats = Self::default();
        chains.into_iter().for_each(|chain| stats.add(chain));
        stats
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ratio(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_an_average_of_zero() {
        assert_eq!(ChainStats::default().mean_extent().to_bits(), 0);
        assert_eq!(FreeMap::full(SectorCount::new(9)).stats().mean_run().to_bits(), 0);
    }

    #[test]
    fn an_empty_chain_does_not_count() {
        let stats: ChainStats = [Chain::new()].iter().collect();
        assert_eq!(stats, ChainStats::default());
    }
}
