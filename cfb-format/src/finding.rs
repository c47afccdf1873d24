//! Deviations from the specification that a file shows and a reader can live with.

use std::fmt;

/// How much a deviation matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Unusual, or against a SHOULD: a strict open accepts it.
    Note,
    /// A MUST is broken, but every byte of every stream is where it should be.
    Warning,
    /// Content is lost, doubtful or shared.
    Error,
}

macro_rules! finding_codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $severity:ident, $section:literal, $sentence:literal;)+) => {
        /// Which rule a [`Finding`] is about. The text form is stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FindingCode {
            $(#[doc = $sentence] $name,)+
        }

        impl FindingCode {
            /// Every code, in the order of the specification's sections.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The stable name, `area.rule`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// How much it matters.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)+ }
            }

            /// The section of [MS-CFB] that has the rule.
            pub const fn section(self) -> &'static str {
                match self { $(Self::$name => $section,)+ }
            }

            /// What is wrong, as a sentence without a full stop.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$name => $sentence,)+ }
            }
        }
    };
}

finding_codes! {
    HeaderSignature = "header.signature", Error, "2.2", "the file does not start with the signature";
    HeaderClsid = "header.clsid", Warning, "2.2", "the header's CLSID is not zero";
    HeaderMinorVersion = "header.minor-version", Note, "2.2", "the header's minor version is not 0x3E";
    HeaderMajorVersion = "header.major-version", Error, "2.2", "the header's major version is neither 3 nor 4";
    HeaderByteOrder = "header.byte-order", Warning, "2.2", "the header's byte order mark is not 0xFFFE";
    HeaderSectorShift = "header.sector-shift", Warning, "2.2", "the sector size does not fit the version";
    HeaderMiniSectorShift = "header.mini-sector-shift", Warning, "2.2", "the mini sector size is not 64 bytes";
    HeaderReserved = "header.reserved", Warning, "2.2", "reserved bytes of the header are not zero";
    HeaderDirSectors = "header.dir-sectors", Warning, "2.2", "the header's number of directory sectors is wrong";
    HeaderFatSectors = "header.fat-sectors", Warning, "2.2", "the header's number of FAT sectors is wrong";
    HeaderCutoff = "header.mini-stream-cutoff", Warning, "2.2", "the mini stream cutoff is not 4096 bytes";
    HeaderMiniFatSectors = "header.minifat-sectors", Warning, "2.2", "the header's number of MiniFAT sectors is wrong";
    HeaderDifatSectors = "header.difat-sectors", Warning, "2.2", "the header's number of DIFAT sectors is wrong";
    HeaderPadding = "header.padding", Warning, "2.2", "the header sector is not zero after the header";
    FilePartialSector = "file.partial-sector", Note, "2.1", "the last sector of the file is cut short";
    FileCutMetadata = "file.cut-metadata", Error, "2.1", "the end of the file cuts off a part of the directory or of a table";
    FileTrailingData = "file.trailing-data", Note, "2.3", "the file has sectors that the FAT does not cover";
    SectorUnused = "sector.orphan", Warning, "2.3", "an allocated sector belongs to nothing";
    SectorShared = "sector.shared", Error, "2.3", "a sector belongs to two chains";
    RangeLock = "sector.range-lock", Error, "2.7", "the range lock sector is not marked as the end of a chain";
    FatUnreadable = "fat.unreadable", Error, "2.3", "a part of the FAT cannot be read";
    FatCellPastEnd = "fat.cell-past-end", Warning, "2.3", "the FAT has cells in use past the end of the file";
    FatNotMarked = "fat.not-marked", Warning, "2.3", "a FAT sector is not marked as one in the FAT";
    FatMarkedWrongly = "fat.marked-wrongly", Warning, "2.3", "a sector is marked as FAT or DIFAT sector and is none";
    FatBadCell = "fat.bad-cell", Warning, "2.3", "a FAT cell holds a reserved value or a sector past the end";
    DifatNotMarked = "difat.not-marked", Warning, "2.5", "a DIFAT sector is not marked as one in the FAT";
    DifatEntry = "difat.entry", Warning, "2.5", "a DIFAT entry names no sector of the file";
    DifatRepeated = "difat.repeated", Warning, "2.5", "two DIFAT entries name one sector";
    DifatPadding = "difat.padding", Warning, "2.5", "unused DIFAT entries are not free marks";
    DifatChain = "difat.chain", Warning, "2.5", "the DIFAT chain does not end as it should";
    MiniFatChain = "minifat.chain", Error, "2.4", "the MiniFAT's chain is broken";
    MiniFatPastEnd = "minifat.past-end", Warning, "2.4", "the MiniFAT has cells in use past the end of the mini stream";
    MiniFatShort = "minifat.short", Error, "2.4", "the MiniFAT does not cover the mini stream";
    MiniSectorUnused = "mini-sector.orphan", Warning, "2.4", "an allocated mini sector belongs to nothing";
    MiniSectorShared = "mini-sector.shared", Error, "2.4", "a mini sector belongs to two streams";
    DirChain = "dir.chain", Error, "2.6", "the directory's chain is broken";
    DirUnusedSlot = "dir.unused-slot", Warning, "2.6.1", "an unused directory entry is not zeroed";
    DirOrphan = "dir.orphan", Warning, "2.6.4", "a directory entry is in no storage";
    DirLink = "dir.link", Error, "2.6.4", "a directory entry links to a slot that does not exist";
    DirLoop = "dir.loop", Error, "2.6.4", "a directory entry is reached twice";
    DirUnusedReached = "dir.unused-reached", Error, "2.6.4", "a directory entry in a storage has no type";
    DirOrder = "dir.order", Warning, "2.6.4", "the entries of a storage are out of order";
    DirDuplicate = "dir.duplicate-name", Error, "2.6.4", "two entries of a storage have the same name";
    DirTwoReds = "dir.two-reds", Warning, "2.6.4", "a red entry has a red child";
    DirRedRoot = "dir.red-root", Note, "2.6.4", "the top entry of a storage's tree is red";
    DirBlackHeight = "dir.black-height", Note, "2.6.4", "the paths of a storage's tree have different numbers of black entries";
    EntryNameLength = "entry.name-length", Warning, "2.6.1", "the length of an entry's name is not possible";
    EntryNameTerminator = "entry.name-terminator", Warning, "2.6.1", "an entry's name does not end with a null";
    EntryNamePadding = "entry.name-padding", Note, "2.6.1", "an entry's name field is not zero after the name";
    EntryNameEmpty = "entry.name-empty", Warning, "2.6.1", "an entry has no name";
    EntryNameNull = "entry.name-null", Warning, "2.6.1", "an entry's name has a null inside";
    EntryNameCharacter = "entry.name-character", Warning, "2.6.1", "an entry's name has a forbidden character";
    EntryNameSurrogate = "entry.name-surrogate", Note, "2.6.1", "an entry's name is not valid UTF-16";
    EntryColor = "entry.color", Warning, "2.6.1", "an entry's colour is neither red nor black";
    EntryStreamChild = "entry.stream-child", Warning, "2.6.1", "a stream has a child";
    EntryStreamClsid = "entry.stream-clsid", Warning, "2.6.1", "a stream has a CLSID";
    EntryStreamState = "entry.stream-state", Note, "2.6.1", "a stream has state bits";
    EntryStreamTimes = "entry.stream-times", Warning, "2.6.1", "a stream has times";
    EntryStorageStart = "entry.storage-start", Warning, "2.6.3", "a storage has a starting sector";
    EntryStorageLen = "entry.storage-size", Warning, "2.6.3", "a storage has a size";
    EntryHighLen = "entry.size-high", Note, "2.6.3", "a version 3 stream's size has high bits set";
    EntryTooLong = "entry.size-limit", Error, "2.6.3", "a stream is longer than its version allows";
    RootType = "root.type", Error, "2.6.2", "the root entry is not the first one of the directory";
    RootName = "root.name", Warning, "2.6.2", "the root entry's name is not \"Root Entry\"";
    RootCreated = "root.created", Warning, "2.6.2", "the root entry has a creation time";
    RootSiblings = "root.siblings", Warning, "2.6.2", "the root entry has siblings";
    RootStart = "root.start", Note, "2.6.2", "the root entry has no mini stream, and a starting sector";
    RootLen = "root.size", Warning, "2.6.2", "the mini stream's size is not a multiple of 64";
    MiniStreamShort = "ministream.short", Error, "2.6.2", "the mini stream's chain is shorter than its size";
    MiniStreamLong = "ministream.long", Note, "2.6.2", "the mini stream's chain is longer than its size";
    StreamEmptyStart = "stream.empty-start", Warning, "2.6.3", "an empty stream has a starting sector";
    ChainEnd = "stream.chain-end", Warning, "2.3", "a chain does not end with the mark for it";
    StreamBroken = "stream.broken", Error, "2.6.3", "a stream's chain is broken or too short";
    StreamChainLong = "stream.chain-long", Note, "2.6.3", "a stream's chain is longer than its size";
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One deviation: the rule, where it is, and the numbers.
///
/// ```
/// use cfb_format::{FindingCode, Severity};
///
/// assert_eq!(FindingCode::SectorShared.as_str(), "sector.shared");
/// assert_eq!(FindingCode::SectorShared.severity(), Severity::Error);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Finding {
    code: FindingCode,
    offset: Option<u64>,
    sector: Option<u32>,
    entry: Option<u32>,
    path: Option<String>,
    found: Option<u64>,
    expected: Option<u64>,
}

impl Finding {
    pub(crate) const fn new(code: FindingCode) -> Self {
        Self {
            code,
            offset: None,
            sector: None,
            entry: None,
            path: None,
            found: None,
            expected: None,
        }
    }

    pub(crate) const fn at_byte(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    pub(crate) const fn at_sector(mut self, sector: u32) -> Self {
        self.sector = Some(sector);
        self
    }

    pub(crate) const fn at_entry(mut self, slot: u32) -> Self {
        self.entry = Some(slot);
        self
    }

    pub(crate) fn named(mut self, path: String) -> Self {
        self.path = Some(path);
        self
    }

    pub(crate) fn found(mut self, found: impl Into<u64>) -> Self {
        self.found = Some(found.into());
        self
    }

    pub(crate) fn expected(mut self, expected: impl Into<u64>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// The rule.
    pub const fn code(&self) -> FindingCode {
        self.code
    }

    /// How much it matters.
    pub const fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// Byte offset in the file, where the deviation is one field.
    pub const fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// The sector or mini sector concerned.
    pub const fn sector(&self) -> Option<u32> {
        self.sector
    }

    /// The directory slot concerned.
    pub const fn entry(&self) -> Option<u32> {
        self.entry
    }

    /// The path of the entry concerned. Left out where a directory is so deep that
    /// the paths of all findings would be many times as long as the directory.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// What the file says, where it is a number.
    pub const fn found_value(&self) -> Option<u64> {
        self.found
    }

    /// What the rule asks for, where it is a number.
    pub const fn expected_value(&self) -> Option<u64> {
        self.expected
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.sentence())?;
        match (self.found, self.expected) {
            (Some(found), Some(expected)) => write!(f, ": {found:#x} for {expected:#x}")?,
            (Some(found), None) => write!(f, ": {found:#x}")?,
            (None, Some(expected)) => write!(f, ": not {expected:#x}")?,
            (None, None) => {}
        }
        if let Some(sector) = self.sector {
            write!(f, ", sector {sector}")?;
        }
        if let Some(entry) = self.entry {
            write!(f, ", entry {entry}")?;
        }
        if let Some(path) = &self.path {
            write!(f, " {path:?}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", byte {offset:#x}")?;
        }
        write!(f, " ([MS-CFB] {})", self.code.section())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique() {
        let mut names: Vec<_> = FindingCode::ALL.iter().map(|code| code.as_str()).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_finding_reads_as_a_sentence() {
        let finding = Finding::new(FindingCode::HeaderCutoff)
            .at_byte(0x38)
            .found(8192_u32)
            .expected(4096_u32);
        assert_eq!(
            finding.to_string(),
            "the mini stream cutoff is not 4096 bytes: 0x2000 for 0x1000, byte 0x38 ([MS-CFB] 2.2)"
        );
    }
}
