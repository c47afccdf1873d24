//! Every byte of [MS-CFB] section 2 as structs and constants, without behaviour.
//!
//! The structs mirror the specification field for field, so this file can be
//! checked against it with a ruler. Rules live beside the checked types
//! (`header.rs`, `dir_entry.rs`).

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first eight bytes of every compound file. 2.2
pub(crate) const SIGNATURE: [u8; 8] = [0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];
/// What the specification asks a writer to put into the minor version. 2.2
pub(crate) const MINOR_VERSION: u16 = 0x003E;
/// Little-endian integers. 2.2
pub(crate) const BYTE_ORDER: u16 = 0xFFFE;
/// Bytes of the header, whatever the sector size. 2.2
pub(crate) const HEADER_BYTES: usize = 512;
/// FAT sectors that the header lists itself; later ones are listed in DIFAT sectors. 2.2
pub(crate) const HEADER_DIFAT_LEN: usize = 109;
/// Streams shorter than this live in the mini stream. 2.2
pub(crate) const MINI_STREAM_CUTOFF: u32 = 4096;
/// A mini sector is 64 bytes. 2.2
pub(crate) const MINI_SECTOR_SHIFT: u16 = 6;
/// Bytes of a directory entry. 2.6.1
pub(crate) const DIR_ENTRY_BYTES: usize = 128;
/// UTF-16 units of the name field, the terminating null included. 2.6.1
pub(crate) const NAME_UNITS: usize = 32;

/// The largest number that is a sector. 2.1
pub(crate) const MAX_REGULAR_SECTOR: u32 = 0xFFFF_FFFA;
/// FAT cell of a DIFAT sector. 2.1
pub(crate) const DIFAT_SECTOR: u32 = 0xFFFF_FFFC;
/// FAT cell of a FAT sector. 2.1
pub(crate) const FAT_SECTOR: u32 = 0xFFFF_FFFD;
/// FAT cell of a chain's last sector. 2.1
pub(crate) const END_OF_CHAIN: u32 = 0xFFFF_FFFE;
/// FAT cell of a sector that belongs to nothing. 2.1
pub(crate) const FREE_SECTOR: u32 = 0xFFFF_FFFF;
/// No sibling, no child. 2.6.1
pub(crate) const NO_STREAM: u32 = 0xFFFF_FFFF;

/// First byte of the range that Windows locks: no stream data may lie in the
/// sector that holds it. 2.7
pub(crate) const RANGE_LOCK_OFFSET: u64 = 0x7FFF_FF00;

/// Object types of a directory entry. 2.6.1
pub(crate) const TYPE_UNUSED: u8 = 0;
pub(crate) const TYPE_STORAGE: u8 = 1;
pub(crate) const TYPE_STREAM: u8 = 2;
pub(crate) const TYPE_ROOT: u8 = 5;

/// The file's first 512 bytes. 2.2
#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct RawHeader {
    /// Must be [`SIGNATURE`].
    pub(crate) signature: [u8; 8],
    /// Must be zero.
    pub(crate) clsid: [u8; 16],
    /// Should be [`MINOR_VERSION`].
    pub(crate) minor_version: U16,
    /// 3 or 4.
    pub(crate) major_version: U16,
    /// Must be [`BYTE_ORDER`].
    pub(crate) byte_order: U16,
    /// 9 in version 3, 12 in version 4.
    pub(crate) sector_shift: U16,
    /// Must be [`MINI_SECTOR_SHIFT`].
    pub(crate) mini_sector_shift: U16,
    /// Must be zero.
    pub(crate) reserved: [u8; 6],
    /// Zero in version 3.
    pub(crate) dir_sectors_count: U32,
    pub(crate) fat_sectors_count: U32,
    pub(crate) first_dir_sector: U32,
    /// Counted up by writers that support transactions, else zero.
    pub(crate) transaction_signature: U32,
    /// Must be [`MINI_STREAM_CUTOFF`].
    pub(crate) mini_stream_cutoff: U32,
    pub(crate) first_mini_fat_sector: U32,
    pub(crate) mini_fat_sectors_count: U32,
    pub(crate) first_difat_sector: U32,
    pub(crate) difat_sectors_count: U32,
    /// The first FAT sectors, padded with [`FREE_SECTOR`].
    pub(crate) difat: [U32; HEADER_DIFAT_LEN],
}

/// One directory entry. 2.6.1
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct RawDirEntry {
    /// UTF-16LE, null-terminated.
    pub(crate) name: [U16; NAME_UNITS],
    /// Bytes of `name` in use, the null included.
    pub(crate) name_len: U16,
    pub(crate) object_type: u8,
    /// 0 red, 1 black.
    pub(crate) color: u8,
    pub(crate) left: U32,
    pub(crate) right: U32,
    pub(crate) child: U32,
    pub(crate) clsid: [u8; 16],
    pub(crate) state_bits: U32,
    pub(crate) created: U64,
    pub(crate) modified: U64,
    pub(crate) start_sector: U32,
    /// In bytes. Version 3 files use the low 32 bits only.
    pub(crate) stream_len: U64,
}

const _: () = {
    assert!(size_of::<RawHeader>() == HEADER_BYTES);
    assert!(std::mem::offset_of!(RawHeader, dir_sectors_count) == 0x28);
    assert!(std::mem::offset_of!(RawHeader, difat) == 0x4C);
    assert!(size_of::<RawDirEntry>() == DIR_ENTRY_BYTES);
    assert!(std::mem::offset_of!(RawDirEntry, clsid) == 0x50);
    assert!(std::mem::offset_of!(RawDirEntry, start_sector) == 0x74);
};
