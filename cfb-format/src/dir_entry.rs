//! One directory entry: decoding with leniency, and encoding back.

use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

use crate::dir_tree::Color;
use crate::finding::{Finding, FindingCode};
use crate::layout::{
    END_OF_CHAIN, NAME_UNITS, NO_STREAM, RawDirEntry, TYPE_ROOT, TYPE_STORAGE, TYPE_STREAM,
    TYPE_UNUSED,
};
use crate::name::{Name, forbidden, repeat};
use crate::version::{Geometry, Version};

/// What a directory entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// The root storage: the first entry of every file.
    Root,
    /// A storage: holds storages and streams.
    Storage,
    /// A stream: holds bytes.
    Stream,
}

/// The fields that most entries leave at zero; kept apart for the few that do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extra {
    /// As in the file: a GUID in little-endian order.
    pub(crate) clsid: [u8; 16],
    pub(crate) state_bits: u32,
    pub(crate) created: u64,
    pub(crate) modified: u64,
}

/// One entry in memory.
#[derive(Clone, Debug)]
pub(crate) struct DirEntry {
    pub(crate) kind: EntryKind,
    pub(crate) color: Color,
    pub(crate) name: Name,
    pub(crate) left: u32,
    pub(crate) right: u32,
    pub(crate) child: u32,
    /// The slot of the storage that holds it; its own slot for the root.
    pub(crate) parent: u32,
    pub(crate) start_sector: u32,
    /// Bytes of the stream; of the mini stream for the root; zero for storages.
    pub(crate) len_bytes: u64,
}

/// There is one for each entry of the file, looked at in any order: a cache line.
const _: () = assert!(size_of::<DirEntry>() <= 64);

impl DirEntry {
    pub(crate) fn new(kind: EntryKind, name: Name, parent: u32) -> Self {
        Self {
            kind,
            color: Color::Black,
            name,
            left: NO_STREAM,
            right: NO_STREAM,
            child: NO_STREAM,
            parent,
            start_sector: if kind == EntryKind::Storage { 0 } else { END_OF_CHAIN },
            len_bytes: 0,
        }
    }

    /// Decodes the entry in `slot`; `None` for a type that is none of the
    /// format's. What is overlooked goes to `found`.
    pub(crate) fn decode(
        raw: &RawDirEntry,
        slot: u32,
        geometry: Geometry,
        found: &mut dyn FnMut(Finding),
    ) -> Option<(Self, Extra)> {
        let kind = match raw.object_type {
            TYPE_STORAGE => EntryKind::Storage,
            TYPE_STREAM => EntryKind::Stream,
            TYPE_ROOT => EntryKind::Root,
            _ => return None,
        };
        let mut tell = |broken: bool, code: FindingCode| {
            if broken {
                found(Finding::new(code).at_entry(slot));
            }
        };
        let name = decode_name(raw, &mut tell);
        tell(raw.color > 1, FindingCode::EntryColor);
        let extra = Extra {
            clsid: raw.clsid,
            state_bits: raw.state_bits.get(),
            created: raw.created.get(),
            modified: raw.modified.get(),
        };
        let start_sector = raw.start_sector.get();
        let mut len_bytes = raw.stream_len.get();
        match kind {
            EntryKind::Stream => {
                tell(raw.child.get() != NO_STREAM, FindingCode::EntryStreamChild);
                tell(extra.clsid != [0; 16], FindingCode::EntryStreamClsid);
                tell(extra.state_bits != 0, FindingCode::EntryStreamState);
                tell(extra.created != 0 || extra.modified != 0, FindingCode::EntryStreamTimes);
            }
            EntryKind::Storage => {
                tell(start_sector != 0, FindingCode::EntryStorageStart);
                tell(len_bytes != 0, FindingCode::EntryStorageLen);
                len_bytes = 0;
            }
            EntryKind::Root => {
                tell(extra.created != 0, FindingCode::RootCreated);
                let siblings = raw.left.get() & raw.right.get() != NO_STREAM;
                tell(siblings, FindingCode::RootSiblings);
            }
        }
        if geometry.version == Version::V3 && len_bytes > u64::from(u32::MAX) {
            tell(true, FindingCode::EntryHighLen);
            len_bytes &= u64::from(u32::MAX);
        }
        tell(len_bytes > geometry.version.max_stream_bytes(), FindingCode::EntryTooLong);
        if kind == EntryKind::Stream && len_bytes == 0 {
            tell(start_sector != END_OF_CHAIN, FindingCode::StreamEmptyStart);
        }
        let entry = Self {
            kind,
            color: if raw.color == 0 { Color::Red } else { Color::Black },
            name,
            left: raw.left.get(),
            right: raw.right.get(),
            child: if kind == EntryKind::Stream { NO_STREAM } else { raw.child.get() },
            parent: 0,
            start_sector,
            len_bytes,
        };
        Some((entry, extra))
    }

    /// The entry's 128 bytes. [MS-CFB] 2.6.1
    pub(crate) fn encode(&self, extra: &Extra) -> RawDirEntry {
        let units = self.name.units();
        let mut name = [U16::ZERO; NAME_UNITS];
        for (field, &unit) in name.iter_mut().zip(units) {
            *field = U16::new(unit);
        }
        // A name of 32 units exists in the wild; it leaves no room for the null.
        let name_bytes = (units.len() + 1).min(NAME_UNITS) * 2;
        RawDirEntry {
            name,
            name_len: U16::new(u16::try_from(name_bytes).expect("at most 64")),
            object_type: match self.kind {
                EntryKind::Root => TYPE_ROOT,
                EntryKind::Storage => TYPE_STORAGE,
                EntryKind::Stream => TYPE_STREAM,
            },
            color: u8::from(self.color == Color::Black),
            left: U32::new(self.left),
            right: U32::new(self.right),
            child: U32::new(self.child),
            clsid: extra.clsid,
            state_bits: U32::new(extra.state_bits),
            created: U64::new(extra.created),
            modified: U64::new(extra.modified),
            start_sector: U32::new(self.start_sector),
            stream_len: U64::new(self.len_bytes),
        }
    }
}

/// The name, up to the first null or the length the entry gives, whichever
/// other readers go by: the length, less one unit for the null if one is there.
fn decode_name(raw: &RawDirEntry, tell: &mut dyn FnMut(bool, FindingCode)) -> Name {
    let len_bytes = raw.name_len.get();
    let mut units = [0_u16; NAME_UNITS];
    for (unit, field) in units.iter_mut().zip(&raw.name) {
        *unit = field.get();
    }
    let possible = len_bytes.is_multiple_of(2) && (2..=64).contains(&len_bytes);
    let end = usize::from(len_bytes / 2).saturating_sub(1);
    if possible && end > 0 && is_plain(&raw.name, end) {
        return Name::from_wild(&units[..end]);
    }
    tell(!possible && len_bytes != 0, FindingCode::EntryNameLength);
    let mut end = usize::from(len_bytes.min(64)).div_ceil(2);
    if end > 0 && units[end - 1] == 0 {
        end -= 1;
    } else if end > 0 {
        tell(true, FindingCode::EntryNameTerminator);
    }
    tell(units[end..].iter().any(|&unit| unit != 0), FindingCode::EntryNamePadding);
    // A length field that counts too much takes further nulls in.
    while end > 0 && units[end - 1] == 0 {
        end -= 1;
        tell(true, FindingCode::EntryNameLength);
    }
    let units = &units[..end];
    tell(units.is_empty(), FindingCode::EntryNameEmpty);
    tell(units.contains(&0), FindingCode::EntryNameNull);
    let forbidden = |unit: &u16| [b'/', b'\\', b':', b'!'].iter().any(|&c| u16::from(c) == *unit);
    tell(units.iter().any(forbidden), FindingCode::EntryNameCharacter);
    let surrogate = |unit: &u16| (0xD800..0xE000).contains(unit);
    let lone = units.iter().any(surrogate)
        && char::decode_utf16(units.iter().copied()).any(|char| char.is_err());
    tell(lone, FindingCode::EntryNameSurrogate);
    Name::from_wild(units)
}

/// Whether a name field has a name of `len` units that may be created, nulls
/// behind it, and no surrogates. Looks at four units at a time, for the sake of
/// the many names of which there is nothing to tell.
fn is_plain(field: &[U16; NAME_UNITS], len: usize) -> bool {
    let (fours, _) = field.as_bytes().as_chunks::<8>();
    let has_null = |four: u64| four.wrapping_sub(repeat(1)) & !four & repeat(0x8000);
    let mut fault = 0;
    for (four, at) in fours.iter().zip((0..).step_by(4)) {
        let four = u64::from_le_bytes(*four);
        let behind = match len.saturating_sub(at) {
            0 => {
                fault |= four;
                continue;
            }
            inside @ 1..=3 => u64::MAX << (16 * inside),
            _ => 0,
        };
        fault |= four & behind;
        // Any unit that is no fault, where the name has ended.
        let four = four | (repeat(0x61) & behind);
        let not_surrogate = (four & repeat(0xF800)) ^ repeat(0xD800);
        fault |= forbidden(four) | has_null(not_surrogate);
    }
    fault == 0
}

/// A slot that holds nothing. [MS-CFB] 2.6.3
pub(crate) fn unused_entry() -> RawDirEntry {
    RawDirEntry {
        name: [U16::ZERO; NAME_UNITS],
        name_len: U16::ZERO,
        object_type: TYPE_UNUSED,
        color: 0,
        left: U32::new(NO_STREAM),
        right: U32::new(NO_STREAM),
        child: U32::new(NO_STREAM),
        clsid: [0; 16],
        state_bits: U32::ZERO,
        created: U64::ZERO,
        modified: U64::ZERO,
        start_sector: U32::ZERO,
        stream_len: U64::ZERO,
    }
}

/// Whether an unused slot is as a writer should leave it; writers of all
/// kinds leave its links at zero or at "none".
pub(crate) fn is_blank(raw: &RawDirEntry) -> bool {
    let link = |field: U32| field.get() == NO_STREAM || field.get() == 0;
    raw.name == [U16::ZERO; NAME_UNITS]
        && raw.name_len == U16::ZERO
        && link(raw.left)
        && link(raw.right)
        && link(raw.child)
        && raw.clsid == [0; 16]
        && raw.state_bits == U32::ZERO
        && raw.stream_len == U64::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(raw: &RawDirEntry) -> (Option<DirEntry>, Vec<FindingCode>) {
        let mut codes = Vec::new();
        let entry = DirEntry::decode(raw, 1, Geometry::new(Version::V3), &mut |finding| {
            codes.push(finding.code());
        });
        (entry.map(|(entry, _)| entry), codes)
    }

    fn stream(name: &str) -> RawDirEntry {
        DirEntry::new(EntryKind::Stream, Name::new(name).unwrap(), 0).encode(&Extra::default())
    }

    #[test]
    fn an_encoded_entry_decodes_without_findings() {
        let (entry, codes) = decode(&stream("Ünïcode"));
        assert_eq!(codes, []);
        assert_eq!(entry.unwrap().name.to_string_lossy(), "Ünïcode");
    }

    #[test]
    fn high_bits_of_a_version_3_size_are_dropped_and_found() {
        let mut raw = stream("a");
        raw.start_sector = U32::new(7);
        raw.stream_len = U64::new(0xDEAD_BEEF_0000_1000);
        let (entry, codes) = decode(&raw);
        assert_eq!(entry.unwrap().len_bytes, 0x1000);
        assert_eq!(codes, [FindingCode::EntryHighLen]);
    }

    #[test]
    fn name_without_its_null_is_read_whole() {
        let mut raw = stream("abc");
        raw.name_len = U16::new(6);
        let (entry, codes) = decode(&raw);
        assert_eq!(entry.unwrap().name.to_string_lossy(), "abc");
        assert_eq!(codes, [FindingCode::EntryNameTerminator]);
    }

    #[test]
    fn impossible_name_length_is_cut_to_the_field() {
        let mut raw = stream("abc");
        raw.name_len = U16::new(0xFFFF);
        let (entry, codes) = decode(&raw);
        assert_eq!(entry.unwrap().name.to_string_lossy(), "abc");
        assert!(codes.contains(&FindingCode::EntryNameLength));
    }

    #[test]
    fn unknown_type_is_no_entry() {
        let mut raw = stream("a");
        raw.object_type = 0xFF;
        assert!(decode(&raw).0.is_none());
        assert!(is_blank(&unused_entry()));
    }
}
