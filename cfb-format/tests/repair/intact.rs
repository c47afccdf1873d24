//! An intact file loses nothing and gains nothing.

use cfb_format::{CompoundFile, Entry, MemStorage, Recovery, RepairOptions, Version, repair};

use crate::common::files::open;
use crate::judge::repaired;
use crate::samples::{small, with_difat};

/// What has to be the same of an entry.
fn facts<S: cfb_format::Storage>(file: &CompoundFile<S>) -> Vec<(String, String, Vec<u8>)> {
    let facts = |entry: Entry| {
        let content =
            if entry.is_stream() { file.read_stream(&entry).unwrap() } else { Vec::new() };
        let meta = format!(
            "{:?} {} {} {:?} {:?}",
            entry.kind(),
            entry.clsid(),
            entry.state_bits(),
            entry.created(),
            entry.modified()
        );
        (entry.path().to_owned(), meta, content)
    };
    file.walk().map(facts).collect()
}

#[test]
fn an_intact_file_gives_the_same_entries_and_no_finding() {
    for sample in small().into_iter().chain([with_difat()]) {
        let repaired = repaired(&sample.bytes).unwrap().unwrap();
        assert!(repaired.report.is_whole(), "{}: {}", sample.name, repaired.report);
        assert_eq!(repaired.report.findings(), [], "{}", sample.name);
        assert_eq!(repaired.report.renamed_count(), 0);
        assert_eq!(
            repaired.report.count(Recovery::Whole),
            sample.streams.len() as u64,
            "{}",
            sample.name
        );
        let original = open(&sample.bytes).unwrap();
        assert!(facts(&repaired.file) == facts(&original), "{}", sample.name);
    }
}

#[test]
fn the_damaged_file_is_not_touched_and_the_version_can_be_chosen() {
    for sample in small() {
        let target = MemStorage::new();
        let source = sample.bytes.clone();
        let options = RepairOptions::new().version(Version::V4);
        let report = repair(&source[..], target.clone(), &options).unwrap();
        assert_eq!(source, sample.bytes);
        assert_eq!(report.version(), Version::V4);
        assert_eq!(CompoundFile::from_storage(target).unwrap().version(), Version::V4);
    }
}

#[test]
fn what_is_no_compound_file_is_an_error() {
    let text = b"Some text that is long enough to be anything. ".repeat(300);
    for bytes in [vec![], vec![0; 100], vec![0; 5000], vec![0xFF; 20_000], text] {
        assert!(repaired(&bytes).unwrap().is_none());
    }
}
