//! A new file: every stream in one run, and nothing of the old file's history.

use cfb_format::{
    CompactOptions, CompoundFile, Entry, MemStorage, OpenOptions, Strictness, Version,
};

use crate::common::files::VERSIONS;
use crate::common::raw::pattern;
use crate::common::storages::BreakingStorage;
use crate::fragmented::{
    Content, MARKER, assert_content, content, fragmented, has_marker, straight,
};

fn rewritten(file: &CompoundFile<MemStorage>) -> Vec<u8> {
    let target = MemStorage::new();
    // What was there is dropped.
    cfb_format::Storage::write_at(&target, &MARKER.repeat(100_000), 0).unwrap();
    let compacted = file.compact_into(target.clone()).unwrap();
    let bytes = target.to_vec();
    assert_eq!(compacted.bytes_after, bytes.len() as u64);
    assert_eq!(compacted.damaged, []);
    bytes
}

fn judge(bytes: &[u8], content: &Content) {
    let file = OpenOptions::new().strictness(Strictness::Strict).open_storage(bytes).unwrap();
    assert_eq!(file.check().unwrap(), []);
    assert_content(&file, content);
    let usage = file.usage().unwrap();
    assert_eq!((usage.free_sectors, usage.free_mini_sectors, usage.unowned_sectors), (0, 0, 0));
    assert_eq!(usage.stream_runs, u64::from(usage.non_empty_streams), "one run each");
    // In walk order, large ones and small ones.
    for is_small in [true, false] {
        let streams = file.walk().filter(Entry::is_stream);
        let streams = streams.filter(|entry| !entry.is_empty() && (entry.len() < 4096) == is_small);
        let starts = streams.map(|entry| {
            let extents = file.open_stream(&entry).unwrap().extents().unwrap();
            assert!(extents.len() == 1, "{} has {} pieces", entry.path(), extents.len());
            extents[0].offset
        });
        assert!(starts.collect::<Vec<u64>>().is_sorted());
    }
}

#[test]
fn new_file_has_every_stream_in_one_run_and_in_walk_order() {
    for version in VERSIONS {
        for (seed, count) in [(1, 0), (2, 3), (3, 60)] {
            let content = content(seed, count);
            let file = fragmented(version, &content);
            assert!(
                count < 60 || file.usage().unwrap().runs_per_stream() > 1.2,
                "it is fragmented"
            );
            judge(&rewritten(&file), &content);
        }
    }
}

#[test]
fn equal_content_makes_equal_bytes_whatever_the_history() {
    for version in VERSIONS {
        let content = content(5, 40);
        let mut backwards = content.clone();
        backwards.reverse();
        let one = rewritten(&straight(version, &content));
        assert!(one == rewritten(&straight(version, &backwards)), "{version}, another order");
        assert!(one == rewritten(&fragmented(version, &content)), "{version}, another history");
        let again = CompoundFile::from_storage(MemStorage::from(one.clone())).unwrap();
        assert!(one == rewritten(&again), "{version}, compacted twice");
        again.set_state_bits("/letters", 78).unwrap();
        assert!(one != rewritten(&again), "{version}, other content");
    }
}

#[test]
fn nothing_that_was_deleted_is_in_the_new_file() {
    for version in VERSIONS {
        let file = fragmented(version, &content(6, 30));
        assert!(has_marker(&file.storage().to_vec()), "it is in the old one");
        assert!(!has_marker(&rewritten(&file)));
    }
}

#[test]
fn bytes_behind_the_end_of_a_stream_are_zeros() {
    for version in VERSIONS {
        let file = straight(version, &content(7, 3));
        for (path, len) in [("/small", 3000), ("/large", 70_000)] {
            file.write_stream(path, &MARKER.repeat(len / MARKER.len())).unwrap();
            file.open_stream(path).unwrap().set_len(len as u64 / 2).unwrap();
            file.open_stream(path).unwrap().write_at(&vec![0; len / 2], 0).unwrap();
        }
        file.flush().unwrap();
        assert!(has_marker(&file.storage().to_vec()));
        let bytes = rewritten(&file);
        assert!(!has_marker(&bytes));
    }
}

#[test]
fn large_file_with_difat_sectors_is_rewritten() {
    let mut content = content(8, 20);
    content.push(("/long".to_owned(), pattern(9, 8_000_000)));
    let file = fragmented(Version::V3, &content);
    let bytes = rewritten(&file);
    assert_ne!(bytes[0x48], 0, "it has DIFAT sectors");
    judge(&bytes, &content);
}

#[test]
fn what_is_not_flushed_yet_is_in_the_new_file() {
    let content = content(9, 9);
    let file = straight(Version::V3, &content[..4].to_vec());
    let mut open = Vec::new();
    for (path, bytes) in &content[4..] {
        let stream = file.create_stream(path).unwrap();
        stream.write_at(bytes, 0).unwrap();
        open.push(stream);
    }
    judge(&rewritten(&file), &content);
}

#[test]
fn failing_target_is_an_error_and_leaves_no_file_that_looks_complete() {
    let content = content(10, 12);
    let file = fragmented(Version::V3, &content);
    let mut fails = 0;
    for changes in 0.. {
        let memory = MemStorage::new();
        let target = BreakingStorage::new(memory.clone());
        target.break_after(changes);
        match CompactOptions::new().compact_into(&file, &target) {
            Ok(_) => {
                judge(&memory.to_vec(), &content);
                break;
            }
            Err(error) => assert!(matches!(error, cfb_format::Error::Io { .. }), "{error}"),
        }
        fails += 1;
        target.heal();
        assert!(CompoundFile::from_storage(memory).is_err(), "after {changes} changes");
    }
    assert!(fails > 10, "{fails}");
}
