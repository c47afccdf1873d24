//! The superblock, and the numbers that the format consists of. FORMAT.md shows
//! the same bytes as tables.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::checksum;
use crate::codec::{Decoder, put_varint};
use crate::extent::Extent;

/// The version that this library writes.
pub(crate) const VERSION: u32 = 1;

/// First bytes of a superblock.
pub(crate) const MAGIC: [u8; 8] = *b"FSSTORE\n";

/// First bytes of block files beyond the first.
pub(crate) const FILE_MAGIC: [u8; 8] = *b"FSBLOCK\n";

/// A superblock has a place of so many bytes to itself, so that a write that
/// tears harms no other one.
pub(crate) const SLOT_BYTES: u64 = 4096;

/// Two copies of the superblock of an even generation, then two of an odd one.
pub(crate) const SLOTS: u64 = 4;

/// Sectors of the free map in one page: 32 KiB of bits.
pub(crate) const PAGE_SECTORS: u32 = 8 * (32 << 10);

/// Bytes of a page of the free map.
pub(crate) const PAGE_BYTES: usize = 32 << 10;

/// Name of the file that the writer keeps locked.
pub(crate) const LOCK_FILE: &str = "lock";

/// Name of block file `number`.
pub(crate) fn file_name(number: u16) -> String {
    format!("blocks-{number:05}")
}

/// Sectors at the beginning of each block file that are never handed out.
pub(crate) fn reserved_sectors(file: u16, sector_bytes: u32) -> u32 {
    let bytes = if file == 0 { SLOTS * SLOT_BYTES } else { SLOT_BYTES };
    u32::try_from(bytes.div_ceil(sector_bytes.into())).expect("a few")
}

/// Something of the store's own in one extent, with its length and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Blob {
    pub(crate) extent: Extent,
    /// Length in bytes, at most the extent's.
    pub(crate) len: u32,
    pub(crate) crc: u32,
}

impl Blob {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.extent.encode(out);
        put_varint(out, self.len.into());
        out.extend_from_slice(&self.crc.to_le_bytes());
    }

    pub(crate) fn decode(from: &mut Decoder<'_>, sector_bytes: u32) -> Option<Self> {
        let extent = Extent::decode(from)?;
        let len: u32 = from.varint()?.try_into().ok()?;
        let crc = from.u32()?;
        let fits = u64::from(len).div_ceil(sector_bytes.into()) == u64::from(extent.count);
        fits.then_some(Self { extent, len, crc })
    }
}

/// Where a journal is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalHead {
    /// The first segment.
    pub(crate) segment: Extent,
    /// The number of its use; frames of other uses do not count.
    pub(crate) epoch: u64,
    /// Number of the first frame.
    pub(crate) seq: u64,
}

/// What a store is, as of its last fold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) sector_bytes: u32,
    /// Made at random when the store is created.
    pub(crate) store_id: u64,
    /// Counts superblocks.
    pub(crate) generation: u64,
    pub(crate) journal: JournalHead,
    /// The root of the index; none if it is empty.
    pub(crate) root: Option<Blob>,
    /// Levels of the index; 0 if it is empty, 1 if the root is a leaf.
    pub(crate) levels: u8,
    /// The table of the pages of the free map.
    pub(crate) map_table: Option<Blob>,
    /// How many block files there are.
    pub(crate) files: u16,
    /// A block file does not grow beyond so many sectors.
    pub(crate) file_sectors: u32,
    /// Objects in the index.
    pub(crate) objects: u64,
    /// Their bytes.
    pub(crate) object_bytes: u64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawBlob {
    file: U32,
    start: U32,
    count: U32,
    len: U32,
    crc: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    magic: [u8; 8],
    version: U32,
    sector_bytes: U32,
    store_id: U64,
    generation: U64,
    journal_file: U32,
    journal_start: U32,
    journal_count: U32,
    levels: U32,
    journal_epoch: U64,
    journal_seq: U64,
    root: RawBlob,
    map_table: RawBlob,
    files: U32,
    file_sectors: U32,
    objects: U64,
    object_bytes: U64,
    crc: U32,
}

fn raw_blob(blob: Option<Blob>) -> RawBlob {
    let blob =
        blob.unwrap_or(Blob { extent: Extent { file: 0, start: 0, count: 0 }, len: 0, crc: 0 });
    RawBlob {
        file: u32::from(blob.extent.file).into(),
        start: blob.extent.start.into(),
        count: blob.extent.count.into(),
        len: blob.len.into(),
        crc: blob.crc.into(),
    }
}

/// An extent from a superblock; `None` if it cannot be one.
fn extent(file: U32, start: U32, count: U32) -> Option<Extent> {
    let (start, count) = (start.get(), count.get());
    let file = file.get().try_into().ok()?;
    (count > 0 && start.checked_add(count).is_some()).then_some(Extent { file, start, count })
}

/// What is wrong with a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadSuperblock {
    /// It is none, or not whole.
    NotOne,
    /// It is one of a format that came later.
    Version(u32),
}

impl Superblock {
    /// The bytes of its place.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let raw = Raw {
            magic: MAGIC,
            version: VERSION.into(),
            sector_bytes: self.sector_bytes.into(),
            store_id: self.store_id.into(),
            generation: self.generation.into(),
            journal_file: u32::from(self.journal.segment.file).into(),
            journal_start: self.journal.segment.start.into(),
            journal_count: self.journal.segment.count.into(),
            levels: u32::from(self.levels).into(),
            journal_epoch: self.journal.epoch.into(),
            journal_seq: self.journal.seq.into(),
            root: raw_blob(self.root),
            map_table: raw_blob(self.map_table),
            files: u32::from(self.files).into(),
            file_sectors: self.file_sectors.into(),
            objects: self.objects.into(),
            object_bytes: self.object_bytes.into(),
            crc: 0.into(),
        };
        let mut bytes = raw.as_bytes().to_vec();
        let end = bytes.len();
        let crc = checksum(&bytes[..end - 4]);
        bytes[end - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes.resize(usize::try_from(SLOT_BYTES).expect("small"), 0);
        bytes
    }

    /// Reads the bytes of its place.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BadSuperblock> {
        let (raw, _) = Raw::ref_from_prefix(bytes).map_err(|_| BadSuperblock::NotOne)?;
        let whole = &bytes[..size_of::<Raw>() - 4];
        if raw.magic != MAGIC {
            return Err(BadSuperblock::NotOne);
        }
        // In every version these bytes have their checksum here, so that a damaged
        // version is not taken for a later one.
        if checksum(whole) != raw.crc.get() || raw.version.get() == 0 {
            return Err(BadSuperblock::NotOne);
        }
        if raw.version.get() > VERSION {
            return Err(BadSuperblock::Version(raw.version.get()));
        }
        Self::from_raw(raw).ok_or(BadSuperblock::NotOne)
    }

    fn from_raw(raw: &Raw) -> Option<Self> {
        let sector_bytes = raw.sector_bytes.get();
        if !is_sector_size(sector_bytes) {
            return None;
        }
        let blob = |raw: &RawBlob| {
            if raw.count.get() == 0 {
                return Some(None);
            }
            let extent = extent(raw.file, raw.start, raw.count)?;
            let blob = Blob { extent, len: raw.len.get(), crc: raw.crc.get() };
            let sectors = u64::from(blob.len).div_ceil(sector_bytes.into());
            (sectors == u64::from(extent.count)).then_some(Some(blob))
        };
        let segment = extent(raw.journal_file, raw.journal_start, raw.journal_count)?;
        let journal =
            JournalHead { segment, epoch: raw.journal_epoch.get(), seq: raw.journal_seq.get() };
        Some(Self {
            sector_bytes,
            store_id: raw.store_id.get(),
            generation: raw.generation.get(),
            journal,
            root: blob(&raw.root)?,
            levels: raw.levels.get().try_into().ok()?,
            map_table: blob(&raw.map_table)?,
            files: raw.files.get().try_into().ok()?,
            file_sectors: raw.file_sectors.get(),
            objects: raw.objects.get(),
            object_bytes: raw.object_bytes.get(),
        })
    }

    /// Byte offsets of its two places in the first block file.
    pub(crate) fn offsets(generation: u64) -> [u64; 2] {
        let first = generation % 2 * 2 * SLOT_BYTES;
        [first, first + SLOT_BYTES]
    }
}

/// Whether sectors may be so large.
pub(crate) fn is_sector_size(bytes: u32) -> bool {
    bytes.is_power_of_two() && (512..=64 << 10).contains(&bytes)
}

/// The first bytes of block file `number`, other than the first.
pub(crate) fn encode_file_header(store_id: u64, number: u16) -> Vec<u8> {
    let mut bytes = FILE_MAGIC.to_vec();
    bytes.extend_from_slice(&store_id.to_le_bytes());
    bytes.extend_from_slice(&u32::from(number).to_le_bytes());
    let crc = checksum(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn superblock() -> Superblock {
        let extent = Extent { file: 2, start: 70, count: 2 };
        Superblock {
            sector_bytes: 4096,
            store_id: 0x0123_4567_89AB_CDEF,
            generation: 12,
            journal: JournalHead { segment: extent, epoch: 5, seq: 99 },
            root: Some(Blob { extent, len: 5000, crc: 0xABCD }),
            levels: 3,
            map_table: None,
            files: 3,
            file_sectors: 1 << 20,
            objects: 1000,
            object_bytes: 1 << 40,
        }
    }

    #[test]
    fn superblocks_come_back() {
        let superblock = superblock();
        assert_eq!(Superblock::decode(&superblock.encode()), Ok(superblock));
    }

    #[test]
    fn any_changed_byte_is_noticed() {
        let bytes = superblock().encode();
        for at in 0..size_of::<Raw>() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_ne!(Superblock::decode(&changed), Ok(superblock()), "byte {at}");
        }
        assert_eq!(Superblock::decode(&bytes[..50]), Err(BadSuperblock::NotOne));
    }

    #[test]
    fn later_versions_are_refused_by_name() {
        let mut bytes = superblock().encode();
        bytes[8] = 9;
        assert_eq!(Superblock::decode(&bytes), Err(BadSuperblock::NotOne), "a damaged one");
        let end = size_of::<Raw>();
        let crc = checksum(&bytes[..end - 4]);
        bytes[end - 4..end].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Superblock::decode(&bytes), Err(BadSuperblock::Version(9)));
    }

    #[test]
    fn copies_of_two_generations_have_places_of_their_own() {
        let mut places: Vec<u64> = [6, 7].into_iter().flat_map(Superblock::offsets).collect();
        places.sort_unstable();
        assert_eq!(places, [0, 4096, 8192, 12288]);
        assert_eq!(Superblock::offsets(6), Superblock::offsets(8));
    }
}
