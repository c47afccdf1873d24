//! Compound files by hand: a builder in which every field can be forged, and an inspector that accounts for every sector.
//!
//! Nothing here uses the library or shares a constant with it. It follows the text of [MS-CFB] in the slowest, most obvious
//! way, so that it can be the judge of what the library writes and the source of what the library reads.

mod account;
mod build;
mod entries;
mod image;
mod inspect;
mod names;
mod tree;

pub(crate) use account::{Account, Item, Owner, RawSource};
pub(crate) use build::Build;
pub(crate) use image::Image;
pub(crate) use inspect::inspect;
pub(crate) use names::{name_order, units};

/// FAT cell of a sector that belongs to nothing. [MS-CFB] 2.1
pub(crate) const FREE: u32 = 0xFFFF_FFFF;
/// FAT cell of the last sector of a chain. [MS-CFB] 2.1
pub(crate) const END: u32 = 0xFFFF_FFFE;
/// FAT cell of a FAT sector. [MS-CFB] 2.1
pub(crate) const FAT: u32 = 0xFFFF_FFFD;
/// FAT cell of a DIFAT sector. [MS-CFB] 2.1
pub(crate) const DIFAT: u32 = 0xFFFF_FFFC;
/// The largest number of a sector; greater cells mean something else. [MS-CFB] 2.1
pub(crate) const LARGEST_SECTOR: u32 = 0xFFFF_FFFA;
/// "No entry" in a sibling or child field. [MS-CFB] 2.6.1
pub(crate) const NOTHING: u32 = 0xFFFF_FFFF;

/// Streams from this size on live in sectors of their own. [MS-CFB] 2.2
pub(crate) const CUTOFF: u64 = 4096;
/// Bytes of a mini sector. [MS-CFB] 2.2
pub(crate) const MINI: u64 = 64;
/// Bytes of a directory entry. [MS-CFB] 2.6.1
pub(crate) const SLOT: usize = 128;
/// FAT sectors that the header itself names. [MS-CFB] 2.2
pub(crate) const IN_HEADER: usize = 109;
/// The offset whose sector is kept for byte-range locks. [MS-CFB] 2.8
pub(crate) const RANGE_LOCK: u64 = 0x7FFF_FF00;

/// Where the header's fields are. [MS-CFB] 2.2
pub(crate) mod header {
    pub(crate) const SIGNATURE: usize = 0x00;
    pub(crate) const CLSID: usize = 0x08;
    pub(crate) const MINOR: usize = 0x18;
    pub(crate) const MAJOR: usize = 0x1A;
    pub(crate) const BYTE_ORDER: usize = 0x1C;
    pub(crate) const SHIFT: usize = 0x1E;
    pub(crate) const MINI_SHIFT: usize = 0x20;
    pub(crate) const RESERVED: usize = 0x22;
    pub(crate) const DIR_COUNT: usize = 0x28;
    pub(crate) const FAT_COUNT: usize = 0x2C;
    pub(crate) const FIRST_DIR: usize = 0x30;
    pub(crate) const TRANSACTION: usize = 0x34;
    pub(crate) const CUTOFF: usize = 0x38;
    pub(crate) const FIRST_MINI_FAT: usize = 0x3C;
    pub(crate) const MINI_FAT_COUNT: usize = 0x40;
    pub(crate) const FIRST_DIFAT: usize = 0x44;
    pub(crate) const DIFAT_COUNT: usize = 0x48;
    pub(crate) const DIFAT: usize = 0x4C;
}

/// Where a directory entry's fields are. [MS-CFB] 2.6.1
pub(crate) mod entry {
    pub(crate) const NAME: usize = 0x00;
    pub(crate) const NAME_LEN: usize = 0x40;
    pub(crate) const KIND: usize = 0x42;
    pub(crate) const COLOUR: usize = 0x43;
    pub(crate) const LEFT: usize = 0x44;
    pub(crate) const RIGHT: usize = 0x48;
    pub(crate) const CHILD: usize = 0x4C;
    pub(crate) const CLSID: usize = 0x50;
    pub(crate) const STATE: usize = 0x60;
    pub(crate) const CREATED: usize = 0x64;
    pub(crate) const MODIFIED: usize = 0x6C;
    pub(crate) const START: usize = 0x74;
    pub(crate) const SIZE: usize = 0x78;
}

/// Kinds of directory entries. [MS-CFB] 2.6.1
pub(crate) mod kind {
    pub(crate) const UNUSED: u8 = 0;
    pub(crate) const STORAGE: u8 = 1;
    pub(crate) const STREAM: u8 = 2;
    pub(crate) const ROOT: u8 = 5;
}

/// Colours of directory entries. [MS-CFB] 2.6.1
pub(crate) mod colour {
    pub(crate) const RED: u8 = 0;
    pub(crate) const BLACK: u8 = 1;
}

/// A count or position as the 32-bit number that the file holds.
pub(crate) fn n32(number: usize) -> u32 {
    u32::try_from(number).expect("the test's files are small")
}

/// The content of a test stream: `len_bytes` bytes that differ by `seed` and by position.
pub(crate) fn pattern(seed: u32, len_bytes: usize) -> Vec<u8> {
    let mut state = u64::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(len_bytes + 8);
    while bytes.len() < len_bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len_bytes);
    bytes
}
