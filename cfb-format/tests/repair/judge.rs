//! What a repair has to hold to, whatever the damage.

use std::ops::Range;

use cfb_format::{
    Error, MemStorage, Recovery, RepairOptions, RepairReport, RepairedStream, repair,
};

use crate::common::files::{File, open_strict};
use crate::samples::Sample;

/// A repaired file.
pub(crate) struct Repaired {
    pub(crate) report: RepairReport,
    pub(crate) file: File,
    /// The report's streams with their content in the new file.
    pub(crate) streams: Vec<(RepairedStream, Vec<u8>)>,
}

/// Repairs bytes; the result must be strictly valid and hold what the report says. `None` where nothing is found.
pub(crate) fn repaired(bytes: &[u8]) -> Result<Option<Repaired>, String> {
    let target = MemStorage::new();
    let report = match repair(bytes, target.clone(), &RepairOptions::new()) {
        Ok(report) => report,
        Err(Error::NoCompoundFile { .. }) => return Ok(None),
        Err(error) => return Err(format!("no repair: {error}")),
    };
    let file = open_strict(&target.to_vec()).map_err(|error| format!("not strict: {error}"))?;
    let findings = file.check().map_err(|error| error.to_string())?;
    if let Some(finding) = findings.first() {
        return Err(format!("the new file has a finding: {finding}"));
    }
    let mut streams = Vec::new();
    for stream in report.streams() {
        if stream.recovery() == Recovery::Lost {
            streams.push((stream.clone(), Vec::new()));
            continue;
        }
        let content = file
            .read_stream(stream.path())
            .map_err(|error| format!("{:?} does not read: {error}", stream.path()))?;
        if content.len() as u64 != stream.len() {
            return Err(format!("{stream} has {} bytes", content.len()));
        }
        streams.push((stream.clone(), content));
    }
    let in_file = file.walk().filter(cfb_format::Entry::is_stream).count();
    if in_file != streams.iter().filter(|(s, _)| s.recovery() != Recovery::Lost).count() {
        return Err(format!("{in_file} streams in the file, and not as many in the report"));
    }
    Ok(Some(Repaired { report, file, streams }))
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().expect("a path has a last name")
}

fn is_in(ranges: &[Range<u64>], at: u64) -> bool {
    ranges.iter().any(|range| range.contains(&at))
}

/// Complains of bytes that are wrong although the report vouches for them. `touched` names the bytes that were damaged.
pub(crate) fn unmarked(
    repaired: &Repaired,
    sample: &Sample,
    touched: &[Range<usize>],
) -> Vec<String> {
    let mut complaints = Vec::new();
    for (stream, content) in &repaired.streams {
        if stream.is_nameless() || stream.recovery() == Recovery::Lost {
            continue;
        }
        let original = sample.streams.iter().find(|(path, _)| name(path) == name(stream.path()));
        let is_hit = |path: &str| {
            let slot = sample.slot_at(sample.account.item(path).slot);
            touched.iter().any(|hit| slot < hit.end && hit.start < slot + 128)
        };
        let wrong = |path: &str, original: &[u8]| {
            let ends = [content.len(), original.len()];
            let unit = if original.len() < 4096 { 64 } else { sample.sector_bytes() };
            let alike = ends[0].div_ceil(unit) == ends[1].div_ceil(unit);
            // The length is in the entry: within the last sector, nothing tells that it was hit.
            let end =
                if is_hit(path) && alike { ends[0].min(ends[1]) } else { ends[0].max(ends[1]) };
            (0..end).find(|&at| {
                let marked = [stream.missing(), stream.guessed(), stream.doubtful()]
                    .iter()
                    .any(|ranges| is_in(ranges, at as u64));
                content.get(at) != original.get(at) && !marked
            })
        };
        // A length that is said to be unsure.
        let marks = [stream.guessed(), stream.doubtful()];
        let all = |ranges: &[Range<u64>]| ranges.iter().map(|r| r.end - r.start).sum::<u64>();
        let whole = marks.iter().any(|ranges| all(ranges) == stream.len());
        if stream.recovery() == Recovery::Guessed
            && (whole || marks.iter().all(|ranges| ranges.is_empty()))
        {
            continue;
        }
        let at = match original {
            Some((path, _)) if is_touched(sample, path, touched) => continue,
            Some((path, original)) => wrong(path, original),
            None => Some(0),
        };
        // An entry whose name was hit is told by its content.
        let renamed =
            |(path, original): &(String, Vec<u8>)| is_hit(path) && wrong(path, original).is_none();
        if at.is_some() && sample.streams.iter().any(renamed) {
            continue;
        }
        if let Some(at) = at {
            complaints.push(format!("byte {at} is wrong and not marked: {stream}"));
        }
    }
    complaints
}

/// Whether the content of a stream was damaged.
pub(crate) fn is_touched(sample: &Sample, path: &str, touched: &[Range<usize>]) -> bool {
    let places = sample.places(path);
    places.iter().any(|&(at, len)| touched.iter().any(|hit| at < hit.end && hit.start < at + len))
}

/// The greatest part of a stream's bytes, in thousandths, that some stream of the new file has where they were.
fn share(repaired: &Repaired, path: &str, original: &[u8]) -> usize {
    if original.is_empty() {
        return 1000;
    }
    let same = |content: &[u8]| content.iter().zip(original).filter(|(a, b)| a == b).count();
    let named = repaired.streams.iter().filter(|(stream, _)| name(stream.path()) == name(path));
    let best = named.map(|(_, content)| same(content)).max().unwrap_or(0);
    if best * 100 >= original.len() * 99 {
        return 1000;
    }
    let any = repaired.streams.iter().filter(|(_, content)| {
        content.len().abs_diff(original.len()) < 4096 && content.get(..8) == original.get(..8)
    });
    let best = any.map(|(_, content)| same(content)).max().unwrap_or(0).max(best);
    best * 1000 / original.len()
}

/// Repairs a damaged sample and complains of everything that is not as it must be: `expected` says which streams have to
/// come back.
pub(crate) fn judge(
    sample: &Sample,
    damaged: &[u8],
    touched: &[Range<usize>],
    what: &str,
    expected: impl Fn(&str) -> bool,
) -> Vec<String> {
    judge_guesses(sample, damaged, touched, what, expected, |_| false)
}

/// The same, and `guessed` says of which streams it has to be told that they are not certain.
pub(crate) fn judge_guesses(
    sample: &Sample,
    damaged: &[u8],
    touched: &[Range<usize>],
    what: &str,
    expected: impl Fn(&str) -> bool,
    guessed: impl Fn(&str) -> bool,
) -> Vec<String> {
    let repaired = match repaired(damaged) {
        Ok(Some(repaired)) => repaired,
        Ok(None) if !sample.streams.iter().any(|(path, _)| expected(path)) => return vec![],
        Ok(None) => return vec![format!("{}, {what}: no compound file is found", sample.name)],
        Err(complaint) => return vec![format!("{}, {what}: {complaint}", sample.name)],
    };
    let mut complaints = unmarked(&repaired, sample, touched);
    let certain = repaired.streams.iter().filter(|(row, _)| row.recovery() == Recovery::Whole);
    let certain = certain.filter(|(row, _)| guessed(&row.path()[1..]));
    complaints.extend(certain.map(|(row, _)| format!("a guess passes for certain: {row}")));
    for (path, original) in &sample.streams {
        if is_touched(sample, path, touched) || !expected(path) {
            continue;
        }
        let share = share(&repaired, path, original);
        if share < 990 {
            complaints.push(format!("{share} of 1000 bytes of {path:?} came back"));
        }
    }
    let report = &repaired.report;
    let last = complaints.len().saturating_sub(1);
    let told = |(nth, text): (usize, &String)| {
        let report = if nth == last { format!("\n{report}") } else { String::new() };
        format!("{}, {what}: {text}{report}", sample.name)
    };
    complaints.iter().enumerate().map(told).collect()
}

/// The bytes with a range overwritten, in each of three ways.
pub(crate) fn overwritten(
    bytes: &[u8],
    range: &Range<usize>,
) -> impl Iterator<Item = (&'static str, Vec<u8>)> + use<> {
    let (bytes, range) = (bytes.to_vec(), range.clone());
    ["zeros", "ones", "noise"].into_iter().map(move |how| {
        let mut damaged = bytes.clone();
        let mut state = (range.start as u64) << 20 | range.len() as u64 | 1 << 60;
        for byte in &mut damaged[range.clone()] {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = match how {
                "zeros" => 0,
                "ones" => 0xFF,
                _ => (state >> 32) as u8,
            };
        }
        (how, damaged)
    })
}

/// Fails with a few of the complaints.
#[track_caller]
pub(crate) fn expect_none(complaints: &[String], cases: usize) {
    let some = complaints
        .iter()
        .take(std::env::var("CFB_SHOW").map_or(8, |n| n.parse().unwrap()))
        .cloned()
        .collect::<Vec<_>>()
        .join("\n\n");
    assert!(complaints.is_empty(), "{} complaints in {cases} cases:\n{some}", complaints.len());
}
