//! The operations and how six bytes name one. Entries, handles and sizes are named by position modulo how many
//! there are, so every sequence of bytes is a valid run, and a shorter one is too.

use std::fmt;

/// Six bytes from proptest or from a fuzzer, and the operation that they name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw(pub(crate) [u8; 6]);

/// One call on a compound file or on a stream handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    CreateStream { parent: u8, name: u8 },
    CreateNewStream { parent: u8, name: u8 },
    CreateStorage { parent: u8, name: u8 },
    CreateStorageAll { parent: u8, first: u8, second: u8 },
    CreateMany { parent: u8, count: u8 },
    WriteStream { parent: u8, name: u8, len: u32 },
    Open { entry: u8 },
    Close { handle: u8 },
    WriteAt { handle: u8, at: u8, len: u32 },
    Append { handle: u8, len: u32 },
    WriteThroughCursor { handle: u8, at: u8, len: u32 },
    SetLen { handle: u8, len: u32 },
    ReadAt { handle: u8, at: u8, len: u32 },
    ReadThroughCursor { handle: u8, at: u8, step: u8 },
    Extents { handle: u8 },
    RemoveStream { entry: u8 },
    RemoveStorage { entry: u8 },
    RemoveAll { entry: u8 },
    Rename { entry: u8, name: u8 },
    MoveTo { entry: u8, parent: u8, name: u8 },
    Copy { entry: u8, parent: u8, name: u8 },
    SetMeta { entry: u8, value: u8 },
    Flush,
    Reopen { strict: bool, flush: bool },
    CompareAll,
}

impl Raw {
    /// The operation that the bytes name; `wide` runs create entries by the dozen.
    pub(crate) fn op(self, wide: bool) -> Op {
        let [kind, a, b, c, index, extra] = self.0;
        let len = size(index, extra);
        match kind % 40 {
            0 | 1 => Op::CreateStream { parent: a, name: b },
            2 => Op::CreateNewStream { parent: a, name: b },
            3 | 4 => Op::CreateStorage { parent: a, name: b },
            5 => Op::CreateStorageAll { parent: a, first: b, second: c },
            6 | 30 if wide => Op::CreateMany { parent: a, count: b },
            6..=9 => Op::WriteStream { parent: a, name: b, len },
            10..=13 => Op::Open { entry: a },
            14 => Op::Close { handle: a },
            15..=17 => Op::WriteAt { handle: a, at: b, len },
            18 | 19 => Op::Append { handle: a, len },
            20 => Op::WriteThroughCursor { handle: a, at: b, len },
            21..=23 => Op::SetLen { handle: a, len },
            24 => Op::ReadAt { handle: a, at: b, len },
            25 => Op::ReadThroughCursor { handle: a, at: b, step: c },
            26 => Op::Extents { handle: a },
            27 | 28 => Op::RemoveStream { entry: a },
            29 => Op::RemoveStorage { entry: a },
            30 | 38 => Op::RemoveAll { entry: a },
            31 | 32 => Op::Rename { entry: a, name: b },
            33 => Op::MoveTo { entry: a, parent: b, name: c },
            34 => Op::Copy { entry: a, parent: b, name: c },
            35 => Op::SetMeta { entry: a, value: b },
            36 => Op::Flush,
            37 => Op::Reopen { strict: a.is_multiple_of(2), flush: b.is_multiple_of(2) },
            _ => Op::CompareAll,
        }
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} = {:?}", self.0, self.op(false))
    }
}

/// Sizes on both sides of every border: nothing, a mini sector, a sector of each version, the mini stream's
/// cutoff, many sectors, and more than one FAT sector covers.
const SIZES: [u32; 32] = [
    0, 1, 2, 63, 64, 65, 128, 129, 511, 512, 513, 1000, 1024, 2048, 3000, 4032, 4095, 4096, 4097,
    4608, 5000, 8191, 8192, 8193, 12_288, 16_384, 20_000, 32_768, 65_537, 70_000, 100_000, 131_072,
];

fn size(index: u8, extra: u8) -> u32 {
    let base = SIZES[usize::from(index) % SIZES.len()];
    // One in four is off every border.
    if extra >= 192 { base + u32::from(extra - 192) } else { base }
}

/// Names of the entries: two that differ only in case, the longest that the format allows, control characters,
/// and letters whose upper case takes one unit, two units, or lies outside the basic plane.
const NAMES: [&str; 20] = [
    "a",
    "b",
    "Data",
    "DATA",
    "data2",
    "\u{1}CompObj",
    "\u{5}SummaryInformation",
    "ÄÖ",
    "äö",
    "Привет",
    "ПРИВЕТ",
    "ß",
    "ÿÿ",
    "日本語",
    "\u{10428}",
    "name of thirty-one UTF-16 units",
    "z",
    "Workbook",
    "file.txt",
    "with space",
];

/// The name that a byte picks.
pub(crate) fn name(index: u8) -> &'static str {
    NAMES[usize::from(index) % NAMES.len()]
}

/// Names are one when these are equal. [MS-CFB] 2.6.4
pub(crate) fn key(name: &str) -> Vec<u16> {
    name.encode_utf16().map(super::audit::upper).collect()
}

/// `len` bytes that differ from those of another seed and at another place.
pub(crate) fn pattern(seed: u32, len: u32) -> Vec<u8> {
    let byte = |i: u32| ((i ^ seed.rotate_left(16)).wrapping_mul(0x9E37_79B1) >> 24) as u8;
    (0..len).map(|i| byte(i).wrapping_add(seed as u8)).collect()
}
