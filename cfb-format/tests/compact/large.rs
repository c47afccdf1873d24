//! Files beyond 2 GiB, most of them zeros that take no memory: the sector that is kept for locks stays free of content on
//! the way down.

use cfb_format::{
    CompactOptions, CompoundFile, CreateOptions, OpenOptions, Storage, Strictness, Version,
};

use crate::common::raw::{Owner, inspect, pattern};
use crate::common::storages::SparseStorage;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// The sector of a version 4 file that covers byte `0x7FFFFF00`.
const LOCK_SECTOR: usize = 0x7_FFFE;

/// What is in the large stream, so that most of it is zeros: places and lengths.
const MARKS: [(u64, usize); 5] = [
    (0, 5000),
    (300 * MIB, 100_000),
    (GIB - 1, 9000),
    (GIB + 77 * MIB, 2 << 20),
    (GIB + 200 * MIB - 10, 10),
];
const LARGE: u64 = GIB + 200 * MIB;

fn assert_content(file: &CompoundFile<SparseStorage>) {
    assert!(file.read_stream("small").unwrap() == pattern(1, 3000));
    assert!(file.read_stream("A/last").unwrap() == pattern(2, 5 << 20));
    let large = file.open_stream("A/large").unwrap();
    assert_eq!(large.len(), LARGE);
    for (seed, (at, len)) in (10..).zip(MARKS) {
        let mut back = vec![0; len];
        assert_eq!(large.read_at(&mut back, at).unwrap(), len);
        assert!(back == pattern(seed, len), "{len} bytes at {at}");
    }
    let mut between = vec![1; 5000];
    large.read_at(&mut between, 700 * MIB).unwrap();
    assert!(between.iter().all(|&byte| byte == 0));
}

/// The file is sound, opens strict, and has no content in the lock's sector.
fn assert_sound(storage: &SparseStorage) {
    let account = inspect(storage).expect_sound();
    if let Some(owner) = account.owners.get(LOCK_SECTOR) {
        assert_eq!(*owner, Owner::RangeLock);
    }
    let strict = OpenOptions::new().strictness(Strictness::Strict);
    let file = strict.open_storage(storage.clone()).unwrap();
    assert_eq!(file.check().unwrap(), []);
    assert_content(&file);
}

#[test]
fn a_file_of_more_than_2_gib_is_compacted_across_the_lock_and_below_it() {
    let storage = SparseStorage::new();
    let options = CreateOptions::new().version(Version::V4).in_place(false);
    let file = options.create_storage(storage.clone()).unwrap();
    file.create_storage("A").unwrap();
    file.create_stream("first gap").unwrap().set_len(700 * MIB).unwrap();
    file.create_stream("second gap").unwrap().set_len(900 * MIB).unwrap();
    file.write_stream("small", &pattern(1, 3000)).unwrap();
    let large = file.create_stream("A/large").unwrap();
    large.set_len(LARGE).unwrap();
    for (seed, (at, len)) in (10..).zip(MARKS) {
        large.write_at(&pattern(seed, len), at).unwrap();
    }
    drop(large);
    file.write_stream("A/last", &pattern(2, 5 << 20)).unwrap();
    file.flush().unwrap();
    assert!(storage.len().unwrap() > 2 * GIB + 700 * MIB);
    assert_sound(&storage);

    // What lies on both sides of the lock moves, and the file still reaches it.
    file.remove_stream("first gap").unwrap();
    let compacted = file.compact().unwrap();
    assert!(compacted.won_bytes() >= 690 * MIB, "{compacted:?}");
    assert!(storage.len().unwrap() > 2 * GIB);
    assert_sound(&storage);

    // From beyond the lock to below it.
    file.remove_stream("second gap").unwrap();
    let compacted = CompactOptions::new().sync(false).compact(&file).unwrap();
    assert!(compacted.won_bytes() >= 890 * MIB, "{compacted:?}");
    assert!(storage.len().unwrap() < LARGE + 12 * MIB);
    assert_sound(&storage);
}

#[test]
fn a_new_file_of_more_than_2_gib_leaves_the_lock_alone() {
    let storage = SparseStorage::new();
    let options = CreateOptions::new().version(Version::V4).in_place(false);
    let file = options.create_storage(storage).unwrap();
    file.create_storage("A").unwrap();
    file.write_stream("small", &pattern(1, 3000)).unwrap();
    // Comes first in the new file, so that the other one lies across the lock.
    file.create_stream("A/a").unwrap().set_len(1500 * MIB).unwrap();
    let large = file.create_stream("A/large").unwrap();
    large.set_len(LARGE).unwrap();
    for (seed, (at, len)) in (10..).zip(MARKS) {
        large.write_at(&pattern(seed, len), at).unwrap();
    }
    drop(large);
    file.write_stream("A/last", &pattern(2, 5 << 20)).unwrap();
    file.flush().unwrap();
    let target = SparseStorage::new();
    let compacted = file.compact_into(target.clone()).unwrap();
    assert_eq!(compacted.bytes_after, target.len().unwrap());
    assert!(compacted.bytes_after > 2 * GIB + 500 * MIB);
    assert_sound(&target);
    let file = CompoundFile::from_storage(target).unwrap();
    // Nothing is free but what may lie before the lock.
    assert!(file.open_stream("A/large").unwrap().extents().unwrap().len() <= 2);
}
