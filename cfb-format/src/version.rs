//! The two versions of the format and what follows from each.

use std::fmt;

use alloc_core::{ByteOffset, SectorId};

use crate::layout::{MINI_SECTOR_SHIFT, MINI_STREAM_CUTOFF, RANGE_LOCK_OFFSET};
use crate::node::Place;

/// A major version of the format. [MS-CFB] 2.2
///
/// ```
/// use cfb_format::Version;
///
/// assert_eq!(Version::V3.sector_bytes(), 512);
/// assert_eq!(Version::V4.sector_bytes(), 4096);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 512-byte sectors, files up to 2 GiB; what every reader knows.
    #[default]
    V3,
    /// 4096-byte sectors, files up to 16 TiB.
    V4,
}

impl Version {
    /// The number in the header: 3 or 4.
    pub const fn number(self) -> u16 {
        match self {
            Self::V3 => 3,
            Self::V4 => 4,
        }
    }

    /// Bytes of a sector: 512 or 4096.
    pub const fn sector_bytes(self) -> u32 {
        1 << self.sector_shift()
    }

    /// The longest stream, in bytes: 2 GiB in version 3, 2^63 - 1 in version 4. [MS-CFB] 2.6.1
    pub const fn max_stream_bytes(self) -> u64 {
        match self {
            Self::V3 => 0x8000_0000,
            Self::V4 => i64::MAX as u64,
        }
    }

    pub(crate) const fn sector_shift(self) -> u16 {
        match self {
            Self::V3 => 9,
            Self::V4 => 12,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}", self.number())
    }
}

/// Where things are in one file: sizes as its header gives them, and the one
/// answer to "at which byte is sector *n*?".
///
/// Real files exist whose sector size does not fit their version, so the
/// shift is kept beside the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) version: Version,
    sector_shift: u16,
    /// Streams shorter than this, in bytes, live in the mini stream.
    pub(crate) mini_cutoff: u32,
}

impl Geometry {
    pub(crate) const fn new(version: Version) -> Self {
        Self { version, sector_shift: version.sector_shift(), mini_cutoff: MINI_STREAM_CUTOFF }
    }

    /// For a header that disagrees with its version.
    pub(crate) fn odd(version: Version, sector_shift: u16, cutoff: u32) -> Self {
        assert!((7..=16).contains(&sector_shift), "a sector shift of {sector_shift}");
        Self { version, sector_shift, mini_cutoff: cutoff }
    }

    pub(crate) const fn sector_bytes(self) -> u32 {
        1 << self.sector_shift
    }

    pub(crate) const fn sector_shift(self) -> u16 {
        self.sector_shift
    }

    /// Sectors or mini sectors for a stream of `len_bytes`.
    pub(crate) fn units_for(self, place: Place, len_bytes: u64) -> u64 {
        match place {
            Place::Regular => self.sectors_for(len_bytes),
            Place::Mini => self.minis_for(len_bytes),
        }
    }

    /// Bytes of a sector or mini sector.
    pub(crate) const fn unit_bytes(self, place: Place) -> u32 {
        match place {
            Place::Regular => self.sector_bytes(),
            Place::Mini => self.mini_bytes(),
        }
    }

    #[expect(clippy::unused_self, reason = "a size of the file like the others")]
    pub(crate) const fn mini_bytes(self) -> u32 {
        1 << MINI_SECTOR_SHIFT
    }

    /// Mini sectors in a sector of the mini stream.
    pub(crate) const fn minis_per_sector(self) -> u32 {
        1 << (self.sector_shift - MINI_SECTOR_SHIFT)
    }

    /// Cells in a sector of the FAT, MiniFAT or (less one link) DIFAT.
    pub(crate) const fn cells_per_sector(self) -> u32 {
        self.sector_bytes() / 4
    }

    /// Directory entries in a sector.
    pub(crate) const fn entries_per_sector(self) -> u32 {
        self.sector_bytes() / 128
    }

    /// The first byte of a sector. The header takes the place of one sector
    /// in front of sector 0, also where sectors are 4096 bytes. 2.2
    pub(crate) fn offset_of(self, sector: SectorId) -> ByteOffset {
        ByteOffset::new((u64::from(sector.get()) + 1) << self.sector_shift)
    }

    /// Byte offset of the end of a file of `sectors_count` sectors.
    pub(crate) fn end_of(self, sectors_count: u32) -> u64 {
        (u64::from(sectors_count) + 1) << self.sector_shift
    }

    /// Sectors that a stream of `len_bytes` takes.
    pub(crate) fn sectors_for(self, len_bytes: u64) -> u64 {
        len_bytes.div_ceil(u64::from(self.sector_bytes()))
    }

    /// Mini sectors that a stream of `len_bytes` takes.
    pub(crate) fn minis_for(self, len_bytes: u64) -> u64 {
        len_bytes.div_ceil(u64::from(self.mini_bytes()))
    }

    /// Whether a stream of this length lives in the mini stream. 2.2
    pub(crate) fn is_mini(self, len_bytes: u64) -> bool {
        len_bytes < u64::from(self.mini_cutoff)
    }

    /// The sector that must stay free of data. 2.7
    pub(crate) fn range_lock_sector(self) -> u32 {
        u32::try_from((RANGE_LOCK_OFFSET >> self.sector_shift) - 1).expect("2 GiB / 128 fits")
    }

    /// The most sectors that a file of this geometry may have: in version 3
    /// it ends before the range lock, in version 4 the numbers run out.
    pub(crate) fn max_sectors(self) -> u32 {
        match self.version {
            Version::V3 => self.range_lock_sector(),
            Version::V4 => crate::layout::MAX_REGULAR_SECTOR,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sector_zero_follows_a_header_of_one_sector() {
        assert_eq!(Geometry::new(Version::V3).offset_of(SectorId::new(0)).get(), 512);
        assert_eq!(Geometry::new(Version::V4).offset_of(SectorId::new(0)).get(), 4096);
    }

    #[test]
    fn range_lock_sector_covers_the_locked_bytes() {
        for version in [Version::V3, Version::V4] {
            let geometry = Geometry::new(version);
            let sector = SectorId::new(geometry.range_lock_sector());
            let start = geometry.offset_of(sector).get();
            assert!(start <= RANGE_LOCK_OFFSET);
            assert!(start + u64::from(geometry.sector_bytes()) > RANGE_LOCK_OFFSET);
        }
        assert_eq!(Geometry::new(Version::V4).range_lock_sector(), 0x7_FFFE);
    }
}
