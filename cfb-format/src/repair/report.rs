//! What [`repair`](crate::repair) says it found and saved.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use super::ranges;
use crate::finding::{Finding, FindingCode};
use crate::version::Version;

/// Findings of one code that the text has.
const EXAMPLES: u64 = 4;

/// How much of a stream was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recovery {
    /// Every byte, by links that nothing contradicts.
    Whole,
    /// Every byte, but some by a guess, or from sectors that another stream
    /// lays claim to as well; or the length does not fit the sectors.
    Guessed,
    /// Some bytes; the others are missing and read as zeros.
    Partial,
    /// No byte: the entry is known, its content is not in the file. The new
    /// file does not have the stream.
    Lost,
}

impl Recovery {
    /// A stable name for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Guessed => "guessed",
            Self::Partial => "partial",
            Self::Lost => "lost",
        }
    }
}

/// One stream of the damaged file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairedStream {
    pub(super) path: String,
    pub(super) recovery: Recovery,
    pub(super) len_bytes: u64,
    pub(super) promised_bytes: u64,
    pub(super) missing: Vec<Range<u64>>,
    pub(super) guessed: Vec<Range<u64>>,
    pub(super) doubtful: Vec<Range<u64>>,
    pub(super) is_orphan: bool,
    pub(super) is_nameless: bool,
}

impl RepairedStream {
    /// Path in the new file; of a lost stream, the one it would have.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How much of it was saved.
    pub const fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Length in the new file.
    pub const fn len(&self) -> u64 {
        self.len_bytes
    }

    /// Whether the stream has no bytes in the new file.
    pub const fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    /// Length that the damaged file's entry gives. The new one is shorter when
    /// the end is missing and would be out of proportion to the file.
    pub const fn promised_len(&self) -> u64 {
        self.promised_bytes
    }

    /// Byte ranges that are not in the damaged file. They read as zeros, so
    /// that what comes after them keeps its offset.
    pub fn missing(&self) -> &[Range<u64>] {
        &self.missing
    }

    /// Byte ranges that no link leads to: taken because they lie right behind
    /// what comes before, or have just the length that is missing.
    pub fn guessed(&self) -> &[Range<u64>] {
        &self.guessed
    }

    /// Byte ranges in sectors that another stream lays claim to as well.
    pub fn doubtful(&self) -> &[Range<u64>] {
        &self.doubtful
    }

    /// Whether no storage of the damaged file is known to have held it.
    pub const fn is_orphan(&self) -> bool {
        self.is_orphan
    }

    /// Whether the entry is lost, and the stream is a chain of sectors that no
    /// entry has: its name is made up, its length rounded up to whole sectors.
    pub const fn is_nameless(&self) -> bool {
        self.is_nameless
    }

    /// Bytes that were copied from the damaged file.
    pub fn recovered_bytes(&self) -> u64 {
        let mut missing = Vec::new();
        ranges::copy_within(&self.missing, &(0..self.len_bytes), 0, &mut missing);
        self.len_bytes - ranges::total(&missing)
    }
}

impl fmt::Display for RepairedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<7}  {:?}", self.recovery.as_str(), self.path)?;
        if self.recovery == Recovery::Lost {
            return write!(f, ": none of {} bytes", self.promised_bytes);
        }
        write!(f, ": {} bytes", self.recovered_bytes())?;
        if self.recovered_bytes() != self.promised_bytes {
            write!(f, " of {}", self.promised_bytes)?;
        }
        for (what, ranges) in
            [("missing", &self.missing), ("guessed", &self.guessed), ("doubtful", &self.doubtful)]
        {
            if ranges.is_empty() {
                continue;
            }
            write!(f, ", {what}")?;
            for range in ranges.iter().take(4) {
                write!(f, " {}..{}", range.start, range.end)?;
            }
            if ranges.len() > 4 {
                write!(f, " and {} more ranges", ranges.len() - 4)?;
            }
        }
        Ok(())
    }
}

/// What was wrong with a file, and what of it is in the new one.
///
/// `Display` gives it as text: what was wrong, every stream that is not whole,
/// the totals.
#[derive(Clone, Debug)]
pub struct RepairReport {
    pub(super) version: Version,
    pub(super) sector_bytes: u32,
    pub(super) findings: Vec<Finding>,
    pub(super) streams: Vec<RepairedStream>,
    pub(super) storages_count: u64,
    pub(super) renamed_count: u64,
}

impl RepairReport {
    /// Version of the new file.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Bytes of a sector of the damaged file, as its header has it or as its
    /// content shows.
    pub const fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// What was wrong with the header, the tables and the directory.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Every stream of the damaged file, the lost ones included.
    pub fn streams(&self) -> &[RepairedStream] {
        &self.streams
    }

    /// Storages in the new file, the root not counted.
    pub const fn storages_count(&self) -> u64 {
        self.storages_count
    }

    /// Entries that got another name, because theirs is forbidden or taken.
    pub const fn renamed_count(&self) -> u64 {
        self.renamed_count
    }

    /// Streams of one outcome.
    pub fn count(&self, recovery: Recovery) -> u64 {
        self.streams.iter().filter(|stream| stream.recovery == recovery).count() as u64
    }

    /// Bytes of streams that were copied.
    pub fn recovered_bytes(&self) -> u64 {
        self.streams.iter().map(RepairedStream::recovered_bytes).sum()
    }

    /// Whether every stream is whole and in its storage.
    pub fn is_whole(&self) -> bool {
        self.streams.iter().all(|stream| stream.recovery == Recovery::Whole && !stream.is_orphan)
    }
}

impl fmt::Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One cause often breaks a rule at many places: some of them tell it.
        let mut told: BTreeMap<FindingCode, u64> = BTreeMap::new();
        for finding in &self.findings {
            let count = told.entry(finding.code()).or_default();
            *count += 1;
            if *count <= EXAMPLES {
                writeln!(f, "{:<7}  {finding}", "found")?;
            }
        }
        for (code, count) in told.iter().filter(|(_, count)| **count > EXAMPLES) {
            writeln!(f, "{:<7}  {} more of {code}", "found", count - EXAMPLES)?;
        }
        for stream in self.streams.iter().filter(|stream| stream.recovery != Recovery::Whole) {
            writeln!(f, "{stream}")?;
        }
        let count = |recovery| self.count(recovery);
        write!(
            f,
            "{} streams: {} whole, {} guessed, {} in part, {} lost; {} bytes recovered",
            self.streams.len(),
            count(Recovery::Whole),
            count(Recovery::Guessed),
            count(Recovery::Partial),
            count(Recovery::Lost),
            self.recovered_bytes(),
        )
    }
}
