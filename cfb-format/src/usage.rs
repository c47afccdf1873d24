//! [`Usage`]: where a file's bytes go.

use crate::dir_entry::EntryKind;
use crate::directory::ROOT;
use crate::error::{Doing, Error};
use crate::layout::FREE_SECTOR;
use crate::node::Place;
use crate::state::State;
use crate::storage::Storage;

/// How the bytes of a file are used, as it is in its storage.
///
/// `sectors` is the sum of `free_sectors`, `metadata_sectors`,
/// `mini_stream_sectors`, `data_sectors` and `unowned_sectors`, where no two
/// chains share a sector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Length of the storage.
    pub file_bytes: u64,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Sectors of the file; the header is in front of them.
    pub sectors: u32,
    /// Sectors that belong to nothing.
    pub free_sectors: u32,
    /// Runs of free sectors.
    pub free_runs: u32,
    /// Sectors of FAT, DIFAT, MiniFAT, directory and range lock.
    pub metadata_sectors: u32,
    /// Sectors of the mini stream.
    pub mini_stream_sectors: u32,
    /// Sectors of streams outside the mini stream.
    pub data_sectors: u32,
    /// Sectors marked as used that no stream has; zero in a healthy file.
    pub unowned_sectors: u32,
    /// Mini sectors of the mini stream.
    pub mini_sectors: u32,
    /// Mini sectors that belong to nothing.
    pub free_mini_sectors: u32,
    /// Storages, without the root.
    pub storages: u32,
    /// Streams.
    pub streams: u32,
    /// Bytes of all streams.
    pub stream_bytes: u64,
    /// Runs of sectors or mini sectors over all streams: with
    /// [`non_empty_streams`](Self::non_empty_streams) a measure of fragmentation.
    pub stream_runs: u64,
    /// Streams that have bytes.
    pub non_empty_streams: u32,
    /// Streams that can be read in part only.
    pub damaged_streams: u32,
}

impl Usage {
    /// Runs a stream that has bytes is in, on average: 1 is the best.
    #[expect(clippy::cast_precision_loss, reason = "an average for people")]
    pub fn runs_per_stream(&self) -> f64 {
        self.stream_runs as f64 / f64::from(self.non_empty_streams.max(1))
    }

    /// Bytes in free sectors.
    pub fn free_bytes(&self) -> u64 {
        u64::from(self.free_sectors) * u64::from(self.sector_bytes)
    }

    pub(crate) fn of<S: Storage>(state: &State, storage: &S) -> Result<Self, Error> {
        let file_bytes = storage.len().doing("asking for the length of the storage", 0)?;
        let mut usage = Self {
            file_bytes,
            sector_bytes: state.geometry.sector_bytes(),
            sectors: state.sectors_count(),
            metadata_sectors: state.metadata_sectors(),
            ..Self::default()
        };
        for slot in state.dir.slots() {
            match state.dir.entry(slot).kind {
                EntryKind::Root => {}
                EntryKind::Storage => usage.storages += 1,
                EntryKind::Stream => {
                    let found = state.find_stream(slot);
                    usage.streams += 1;
                    // A damaged file may claim more than there can be.
                    let len_bytes = state.dir.entry(slot).len_bytes;
                    usage.stream_bytes = usage.stream_bytes.saturating_add(len_bytes);
                    usage.stream_runs += found.chain.run_count() as u64;
                    usage.non_empty_streams += u32::from(!found.chain.is_empty());
                    usage.damaged_streams += u32::from(found.damage.is_some());
                    if found.place == Place::Regular {
                        let sectors = found.chain.sector_count().get();
                        usage.data_sectors = usage.data_sectors.saturating_add(sectors);
                    }
                }
            }
        }
        let mut before_is_free = false;
        for sector in 0..usage.sectors {
            let free = state.fat().get(sector).is_none_or(|cell| cell == FREE_SECTOR);
            usage.free_sectors += u32::from(free);
            usage.free_runs += u32::from(free && !before_is_free);
            before_is_free = free;
        }
        // The range lock sector belongs to the format.
        let locked = state
            .range_lock()
            .is_some_and(|sector| state.fat().get(sector).is_some_and(|cell| cell != FREE_SECTOR));
        usage.metadata_sectors += u32::from(locked);
        let mini_stream = state.mini_stream.read().expect("not poisoned");
        usage.mini_stream_sectors = mini_stream.sector_count().get();
        usage.unowned_sectors = usage
            .sectors
            .saturating_sub(usage.free_sectors)
            .saturating_sub(usage.metadata_sectors)
            .saturating_sub(usage.mini_stream_sectors)
            .saturating_sub(usage.data_sectors);
        let mini_bytes = u64::from(state.geometry.mini_bytes());
        let minis = state.dir.entry(ROOT).len_bytes.div_ceil(mini_bytes);
        usage.mini_sectors = u32::try_from(minis).unwrap_or(u32::MAX);
        let in_use = state.mini_fat().cells().iter().zip(0..usage.mini_sectors);
        let in_use = in_use.filter(|(cell, _)| **cell != FREE_SECTOR).count();
        usage.free_mini_sectors =
            usage.mini_sectors.saturating_sub(u32::try_from(in_use).expect("counted by u32"));
        Ok(usage)
    }
}
