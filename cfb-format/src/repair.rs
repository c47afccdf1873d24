//! From a damaged file to a new, valid one.
//!
//! ```text
//! Source   the damaged bytes by sector; one look at all of them, if it comes to that
//!   fat      FAT sectors: by the DIFAT, else by what their cells say
//!   entries  directory sectors and the tree; orphans
//!   links    which sectors belong to which stream, by evidence
//!   plan     the three together, for one sector size: a Body for each stream
//! output   the new file and the report
//! ```
//!
//! Nothing of the damaged file is believed because of where it stands. The
//! header and the DIFAT are believed where what they name looks like what it
//! should be. A chain is believed where it has the length that the entry
//! gives and ends with the mark for it; what has lost a link is completed by
//! guesses, which the report names. All loops are bounded by the file's size.

mod body;
mod entries;
mod fat;
mod links;
mod output;
mod plan;
mod ranges;
mod report;
mod shape;
mod source;

pub use report::{Recovery, RepairReport, RepairedStream};

use zerocopy::{FromBytes, IntoBytes};

use self::plan::Plan;
use self::source::Source;
use crate::error::{Doing, Error};
use crate::finding::{Finding, FindingCode};
use crate::header::Header;
use crate::layout::{HEADER_BYTES, MINI_STREAM_CUTOFF, RawHeader, SIGNATURE};
use crate::storage::Storage;
use crate::version::{Geometry, Version};

/// How [`repair`] writes the new file.
///
/// ```
/// use cfb_format::{RepairOptions, Version};
///
/// let options = RepairOptions::new().version(Version::V4).orphanage("Lost and found");
/// assert_ne!(options, RepairOptions::default());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairOptions {
    version: Option<Version>,
    orphanage: String,
}

impl Default for RepairOptions {
    fn default() -> Self {
        Self { version: None, orphanage: "Recovered".to_owned() }
    }
}

impl RepairOptions {
    /// The damaged file's version; orphans in the storage `Recovered`.
    pub fn new() -> Self {
        Self::default()
    }

    /// The version of the new file.
    #[must_use]
    pub const fn version(mut self, version: Version) -> Self {
        self.version = Some(version);
        self
    }

    /// The name of the storage, in the root, for what no storage is known to
    /// have held. It is made only if there is such a thing; if an entry has
    /// the name, a number is added.
    #[must_use]
    pub fn orphanage(mut self, name: impl Into<String>) -> Self {
        self.orphanage = name.into();
        self
    }
}

/// Writes everything that is left of a damaged compound file into a new one.
///
/// `damaged` is only read. What `target` holds is replaced by a file that a
/// strict open accepts, whatever the damage. The report tells what was wrong
/// and, for each stream, which of its bytes are missing, guessed or doubtful.
/// Missing bytes read as zeros, so that the others keep their offsets.
///
/// An intact file gives the same storages, streams, classes, state bits and
/// times. Fields that the format forbids (such as the times of a stream) and
/// forbidden characters in names are not taken over.
///
/// Works without a usable header, DIFAT, FAT, `MiniFAT` or directory, as far
/// as the rest makes up for it: FAT and directory sectors are recognised by
/// their content, lost links are replaced by the sectors right behind, entries
/// that no storage holds any more go to a storage of their own, and so do
/// chains without an entry. Content of streams is not looked at: a stream
/// whose bytes were overwritten is copied as it is.
///
/// Reads the file once or twice, and once for each of the two sector sizes
/// where the header does not tell. Takes some 20 bytes of memory a sector.
///
/// # Errors
///
/// [`Error::NoCompoundFile`] when nothing looks like one, [`Error::FileFull`]
/// when the new file does not fit into its version, [`Error::Io`] of either
/// storage. The target then holds a part of the new file.
///
/// # Example
///
/// ```
/// use cfb_format::{CompoundFile, MemStorage, RepairOptions, repair};
///
/// let file = CompoundFile::create_in(MemStorage::new())?;
/// file.write_stream("letter", &[7; 5000])?;
/// let mut bytes = file.into_storage()?.into_vec();
/// bytes[..512].fill(0); // the header is gone
/// assert!(CompoundFile::from_storage(MemStorage::from(bytes.clone())).is_err());
///
/// let target = MemStorage::new();
/// let report = repair(&bytes[..], target.clone(), &RepairOptions::new())?;
/// assert!(report.is_whole());
/// let repaired = CompoundFile::from_storage(target)?;
/// assert_eq!(repaired.read_stream("letter")?, [7; 5000]);
/// # Ok::<(), cfb_format::Error>(())
/// ```
pub fn repair<S: Storage, T: Storage>(
    damaged: S,
    target: T,
    options: &RepairOptions,
) -> Result<RepairReport, Error> {
    let len = damaged.len().doing("asking for the length of the storage", 0)?;
    let mut head = vec![0; HEADER_BYTES];
    let count = damaged.read_at(&mut head, 0).doing("reading the header", 0)?;
    head[count..].fill(0);

    let mut best: Option<(Source<'_, S>, Plan)> = None;
    for guess in guesses(&head, &damaged, len)? {
        let source = Source::new(&damaged, len, guess.geometry);
        let mut plan = Plan::of(&source, &guess.header, guess.findings)?;
        // Nothing can be better than a reading in which all fits.
        let fits = plan.root.is_some() && plan.misfits == 0 && guess.by_header;
        if !guess.by_header && plan.proofs == 0 {
            plan.doubt_all();
        }
        if best.as_ref().is_none_or(|(_, best)| plan.evidence() > best.evidence()) {
            best = Some((source, plan));
        }
        if fits {
            break;
        }
    }
    let (source, plan) = best.expect("at least two sector sizes were tried");
    if plan.dir_sectors_count == 0 && (plan.marked_count == 0 || plan.nodes.len() == 1) {
        return Err(Error::NoCompoundFile { len_bytes: len });
    }
    output::write(&source, plan, target, options)
}

/// A header to be tried.
struct Guess {
    header: Header,
    geometry: Geometry,
    findings: Vec<Finding>,
    /// Whether version and sector size are what the file's own header says.
    by_header: bool,
}

/// The header as it is, and with each of the two sector sizes.
fn guesses<S: Storage>(head: &[u8], damaged: &S, len: u64) -> Result<Vec<Guess>, Error> {
    let raw = RawHeader::read_from_bytes(head).expect("512 bytes");
    let mut guesses: Vec<Guess> = Vec::new();
    let mut add = |version: Option<Version>| {
        let mut raw = raw.clone();
        let mut findings = Vec::new();
        if raw.signature != SIGNATURE {
            findings.push(Finding::new(FindingCode::HeaderSignature).at_byte(0));
            raw.signature = SIGNATURE;
        }
        if let Some(version) = version {
            if raw.major_version.get() != version.number() {
                let finding = Finding::new(FindingCode::HeaderMajorVersion).at_byte(0x1A);
                findings.push(finding.found(raw.major_version.get()).expected(version.number()));
            }
            if raw.sector_shift.get() != version.sector_shift() {
                let finding = Finding::new(FindingCode::HeaderSectorShift).at_byte(0x1E);
                findings
                    .push(finding.found(raw.sector_shift.get()).expected(version.sector_shift()));
            }
            raw.major_version = version.number().into();
            raw.sector_shift = version.sector_shift().into();
            if raw.mini_stream_cutoff.get() != MINI_STREAM_CUTOFF {
                let finding = Finding::new(FindingCode::HeaderCutoff).at_byte(0x38);
                findings
                    .push(finding.found(raw.mini_stream_cutoff.get()).expected(MINI_STREAM_CUTOFF));
            }
            raw.mini_stream_cutoff = MINI_STREAM_CUTOFF.into();
        }
        if let Ok((header, geometry)) = Header::decode(raw.as_bytes(), &mut findings)
            && guesses.iter().all(|guess| guess.geometry != geometry)
        {
            guesses.push(Guess { header, geometry, findings, by_header: version.is_none() });
        }
    };
    add(None);
    // A header sector of 4096 bytes is zero behind the header.
    let mut rest = [0xFF; 4096 - HEADER_BYTES];
    let count = damaged
        .read_at(&mut rest, HEADER_BYTES as u64)
        .doing("reading the header", HEADER_BYTES as u64)?;
    let padded = count == rest.len() && rest.iter().all(|&byte| byte == 0);
    let first = if padded && len.is_multiple_of(4096) { Version::V4 } else { Version::V3 };
    let second = if first == Version::V3 { Version::V4 } else { Version::V3 };
    add(Some(first));
    add(Some(second));
    Ok(guesses)
}
