//! What is known about one file: the audit's codes, the findings of `check`, and the raw bytes where neither tells.

use std::collections::BTreeSet;
use std::path::Path;

use cfb_format::{CompoundFile, Error, Finding, FindingCode};

/// One file of the corpus.
pub(crate) struct Facts {
    pub(crate) name: String,
    /// Codes of `index.tsv`.
    pub(crate) audit: BTreeSet<String>,
    pub(crate) findings: Vec<Finding>,
    /// Their names, as the rows have them.
    ours: BTreeSet<&'static str>,
    /// Nothing could be checked: no header, or no directory.
    pub(crate) is_refused: bool,
    bytes: Vec<u8>,
}

/// The name of a finding in the rows. Two codes say different things of the root than of other entries.
fn key(finding: &Finding) -> &'static str {
    match (finding.code(), finding.entry()) {
        (FindingCode::ChainEnd, Some(0)) => "stream.chain-end of the root",
        (FindingCode::RootType, Some(1..)) => "root.type of another entry",
        (code, _) => code.as_str(),
    }
}

impl Facts {
    pub(crate) fn of(folder: &Path, name: &str, audit: &str) -> Self {
        let bytes = std::fs::read(folder.join(name)).expect("a file of the corpus");
        let checked = CompoundFile::open(folder.join(name)).and_then(|file| file.check());
        let (findings, is_refused) = match checked {
            Ok(findings) => (findings, false),
            Err(Error::Corrupt { .. }) => (Vec::new(), true),
            Err(error) => panic!("{name}: {error}"),
        };
        // Every code is followed by how often it was met.
        let codes = audit.split(',').filter_map(|code| Some(code.rsplit_once(':')?.0.to_owned()));
        Self {
            name: name.to_owned(),
            audit: codes.collect(),
            ours: findings.iter().map(key).collect(),
            findings,
            is_refused,
            bytes,
        }
    }

    /// Whether the audit has one of these codes.
    pub(crate) fn audited(&self, codes: &[&str]) -> bool {
        codes.iter().any(|code| self.audit.contains(*code))
    }

    /// Whether `check` has one of these findings.
    pub(crate) fn found(&self, codes: &[&str]) -> bool {
        codes.iter().any(|code| self.ours.contains(code))
    }

    /// Every name that `check` gave.
    pub(crate) fn found_all(&self) -> &BTreeSet<&'static str> {
        &self.ours
    }

    /// The slots of the findings of one code.
    pub(crate) fn slots(&self, code: FindingCode) -> impl Iterator<Item = u32> {
        let findings = self.findings.iter().filter(move |finding| finding.code() == code);
        findings.filter_map(Finding::entry)
    }

    fn u32_at(&self, at: usize) -> u32 {
        let bytes = self.bytes.get(at..at + 4);
        bytes.map_or(u32::MAX, |bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    fn sector_bytes(&self) -> usize {
        if self.bytes.get(0x1E) == Some(&12) { 4096 } else { 512 }
    }

    fn sector_at(&self, sector: u32) -> usize {
        (sector as usize + 1) * self.sector_bytes()
    }

    /// Where the directory's sectors are, by the part of the FAT that the header names.
    fn directory(&self) -> Vec<usize> {
        let cells = self.sector_bytes() / 4;
        let (mut at, mut sectors) = (self.u32_at(0x30), Vec::new());
        while self.sector_at(at) < self.bytes.len() && sectors.len() < 100_000 {
            sectors.push(self.sector_at(at));
            let fat = self.u32_at(0x4C + 4 * (at as usize / cells).min(108));
            at = if fat < u32::MAX / 2 {
                self.u32_at(self.sector_at(fat) + at as usize % cells * 4)
            } else {
                u32::MAX - 1
            };
        }
        sectors
    }

    /// The 128 bytes of a slot, as far as the file has them.
    pub(crate) fn slot(&self, slot: u32) -> &[u8] {
        let per_sector = self.sector_bytes() / 128;
        let at = self.directory().get(slot as usize / per_sector).copied();
        let at = at.map_or(self.bytes.len(), |at| at + slot as usize % per_sector * 128);
        &self.bytes[at.min(self.bytes.len())..(at + 128).min(self.bytes.len())]
    }

    /// Whether the directory ends in a sector that the end of the file cuts short.
    pub(crate) fn has_cut_directory(&self) -> bool {
        self.directory().iter().any(|at| at + self.sector_bytes() > self.bytes.len())
    }
}
