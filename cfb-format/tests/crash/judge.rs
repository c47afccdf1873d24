//! What is left on a disk is a strictly valid file with exactly one of the states that are allowed, and the next commit
//! finds every sector again.

use std::ops::RangeInclusive;

use cfb_format::{CompoundFile, Finding, FindingCode, OpenOptions, Strictness};

use super::disk::SimDisk;
use super::script::{Step, Tree, perform};
use crate::common::raw::inspect;

/// Sectors that were written for a commit that never was. No writer can help that, and the next commit drops them.
fn is_remains(finding: &Finding) -> bool {
    matches!(finding.code(), FindingCode::FileTrailingData | FindingCode::FilePartialSector)
}

/// Opens `image` strict and says which of `states` it has; `within` says which it may have.
///
/// # Errors
///
/// What is wrong.
pub(crate) fn state_of(
    image: &[u8],
    states: &[Tree],
    within: RangeInclusive<usize>,
) -> Result<usize, String> {
    let options = OpenOptions::new().strictness(Strictness::Strict);
    let file = options.open_storage(image).map_err(|error| format!("does not open: {error}"))?;
    let mut findings = file.check().map_err(|error| format!("cannot be checked: {error}"))?;
    findings.retain(|finding| !is_remains(finding));
    if let Some(first) = findings.first() {
        return Err(format!("{first} and {} more findings", findings.len() - 1));
    }
    let mut differences = Vec::new();
    for at in within.clone().rev() {
        match states[at].difference(&file) {
            None => return Ok(at),
            Some(difference) => differences.push(format!("not state {at}: {difference}")),
        }
    }
    for (at, state) in states.iter().enumerate() {
        if !within.contains(&at) && state.difference(&file).is_none() {
            differences.push(format!("it is state {at}"));
        }
    }
    Err(differences.join("; "))
}

/// Commits one more change to what was left, and accounts for every sector.
///
/// # Errors
///
/// What is wrong.
pub(crate) fn goes_on(image: &[u8], state: &Tree) -> Result<(), String> {
    let disk = SimDisk::new(image.to_vec());
    let options = OpenOptions::new().write(true);
    let told = |error| format!("after the crash: {error}");
    let file = options.open_storage(disk.clone()).map_err(told)?;
    let mut state = state.clone();
    let step = Step::Write("/after the crash".to_owned(), 77, 700);
    perform(&file, None, &step).map_err(told)?;
    state.apply(&step);
    file.flush().map_err(told)?;
    is_sound(&file, &disk, &state).map_err(|wrong| format!("after the next commit: {wrong}"))
}

/// A file just flushed agrees with its disk and with `state`, and no sector is without an owner.
///
/// # Errors
///
/// What is wrong.
pub(crate) fn is_sound(
    file: &CompoundFile<SimDisk>,
    disk: &SimDisk,
    state: &Tree,
) -> Result<(), String> {
    if let Some(difference) = state.difference(file) {
        return Err(format!("memory: {difference}"));
    }
    let findings = file.check().map_err(|error| error.to_string())?;
    if let Some(first) = findings.first() {
        return Err(format!("{first} and {} more findings", findings.len() - 1));
    }
    let usage = file.usage().map_err(|error| error.to_string())?;
    if usage.unowned_sectors > 0 {
        return Err(format!("{} sectors leaked", usage.unowned_sectors));
    }
    let image = disk.image();
    state_of(&image, std::slice::from_ref(state), 0..=0)?;
    let mut complaints = inspect(&image).complaints;
    // A writer that commits may count its commits there. 2.2
    complaints.retain(|complaint| !complaint.starts_with("transaction signature"));
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
}
