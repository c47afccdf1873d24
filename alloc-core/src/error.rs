//! What can go wrong, with the numbers: one type per kind of call.

use crate::{Run, SectorCount, SectorId};

/// There are not enough free sectors. Nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{wanted} wanted, {free} free")]
pub struct NoSpace {
    /// How many sectors the call asked for.
    pub wanted: SectorCount,
    /// How many it could have had: free and not reserved.
    pub free: SectorCount,
}

impl NoSpace {
    /// How many sectors are missing: by how much the device has to grow.
    pub const fn missing(self) -> SectorCount {
        self.wanted.saturating_sub(self.free)
    }
}

/// A free map cannot do what data from outside asks of it. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// A run reaches past the end of the device.
    #[error("{run} of a device with {total}")]
    OutOfRange {
        /// The run asked for.
        run: Run,
        /// The size of the device.
        total: SectorCount,
    },
    /// A sector to be taken is used.
    #[error("{at} is used already")]
    AlreadyUsed {
        /// The first such sector.
        at: SectorId,
    },
    /// A sector to be released is free.
    #[error("{at} is free already")]
    AlreadyFree {
        /// The first such sector.
        at: SectorId,
    },
    /// A sector that shrinking would cut off is used.
    #[error("{last} is used, so the device cannot shrink to {wanted}")]
    InUse {
        /// The last used sector.
        last: SectorId,
        /// The size asked for.
        wanted: SectorCount,
    },
    /// Shrinking would cut off sectors that are free but reserved.
    #[error("{reserved} reserved, and only {free} would be free")]
    Reserved {
        /// How many sectors are reserved.
        reserved: SectorCount,
        /// How many free sectors would remain.
        free: SectorCount,
    },
}

/// A table of links breaks a rule of chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A link leads out of the table.
    #[error("{at} links to {to}, which the table does not have")]
    OutOfRange {
        /// The sector with the link, the last one of the intact part. Equal to
        /// `to` when the chain's very start is out of range.
        at: SectorId,
        /// Where the link leads.
        to: SectorId,
    },
    /// A chain enters a sector whose cell is no link and no end of chain.
    #[error("a chain enters {at}, whose cell holds {found:#x}")]
    NotInAChain {
        /// The sector entered; the intact part ends before it.
        at: SectorId,
        /// What its cell holds.
        found: u32,
    },
    /// A chain comes back to one of its own sectors.
    #[error("a chain comes back to {at}")]
    Cycle {
        /// The first sector met twice; the intact part holds it once.
        at: SectorId,
    },
    /// A chain enters a sector of another chain.
    #[error("a chain enters {at}, which another chain has")]
    CrossLink {
        /// The first shared sector; the intact part ends before it.
        at: SectorId,
    },
    /// A chain is longer than the caller allowed.
    #[error("a chain goes on to {at} after its {max}")]
    TooLong {
        /// The first sector too many; the intact part ends before it.
        at: SectorId,
        /// The limit.
        max: SectorCount,
    },
}

/// A fact about a [`Chain`](crate::Chain) that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// Two runs that follow each other could be one.
    #[error("{first} and {second} touch but are not one run")]
    NotMerged {
        /// The earlier run.
        first: Run,
        /// The later run.
        second: Run,
    },
    /// A sector is in the chain twice.
    #[error("{first} and {second} share a sector")]
    Overlap {
        /// One of the runs.
        first: Run,
        /// The other.
        second: Run,
    },
    /// The cumulated counts do not rise.
    #[error("run {index} is empty")]
    Empty {
        /// Position of the run in the chain.
        index: usize,
    },
}

/// A fact about a free map, an allocator or a transaction that does not hold:
/// a bug of this crate, found by `verify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// A bit beyond the last sector says "free".
    #[error("a bit at or after {total}, the end of the device, says free")]
    DeadBit {
        /// The size of the device.
        total: SectorCount,
    },
    /// A counter differs from what the bitmap shows.
    #[error("{what}: counted {counted}, kept {kept}")]
    Count {
        /// What is counted.
        what: &'static str,
        /// The number according to the bitmap.
        counted: u32,
        /// The number kept beside it.
        kept: u32,
    },
    /// A summary bit differs from what it sums up.
    #[error("summary {tree}, level {level}: word {word} is wrong")]
    Summary {
        /// Which of the trees.
        tree: &'static str,
        /// Level, 0 next to the bitmap.
        level: usize,
        /// Word within the level.
        word: usize,
    },
    /// A free run is in no size bin, though none has overflowed.
    #[error("free {run} is not among the candidates of its length")]
    LostRun {
        /// The run.
        run: Run,
    },
    /// The lists of candidates are not consistent in themselves.
    #[error("size bin {class}: {what}")]
    Bin {
        /// The size class.
        class: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// More sectors are reserved than free.
    #[error("{reserved} reserved, {free} free")]
    Reserved {
        /// Sectors promised.
        reserved: SectorCount,
        /// Sectors there.
        free: SectorCount,
    },
    /// A run that a transaction holds is free in the map.
    #[error("{run} belongs to a transaction and is not wholly used")]
    NotHeld {
        /// The run.
        run: Run,
    },
    /// A transaction counts a sector as taken and as given back.
    #[error("{run} is taken and released in one transaction")]
    TakenAndReleased {
        /// The run.
        run: Run,
    },
}
