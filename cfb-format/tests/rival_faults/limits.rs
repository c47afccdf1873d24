//! Sizes past a version's limits are refused; the range-lock sector is left alone.

use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};

use cfb_format::{CompoundFile, CreateOptions, Error, Storage, Version};

use crate::common::files::{VERSIONS, create, judged};
use crate::common::raw::{END, FREE, Owner, inspect, pattern};
use crate::common::storages::SparseStorage;

const GIB: u64 = 1 << 30;
/// The sector of a version 4 file that covers byte 0x7FFFFF00.
const LOCK_SECTOR: u32 = 0x7_FFFE;

fn sparse(version: Version) -> (SparseStorage, CompoundFile<SparseStorage>) {
    let storage = SparseStorage::new();
    let file = CreateOptions::new().version(version).create_storage(storage.clone()).unwrap();
    (storage, file)
}

#[test]
fn b15_version_3_refuses_streams_past_2_gib() {
    let (storage, file) = sparse(Version::V3);
    let mut stream = file.create_stream("s").unwrap();
    stream.write_all(b"content").unwrap();
    for len in [0x8000_0001, 4 * GIB - 1, 4 * GIB, 4 * GIB + 5000, 1 << 40] {
        assert!(matches!(stream.set_len(len), Err(Error::TooLong { .. })), "{len:#x}");
        assert!(matches!(stream.write_at(b"x", len - 1), Err(Error::TooLong { .. })), "{len:#x}");
        stream.seek(SeekFrom::Start(len - 1)).unwrap();
        let error = stream.write_all(b"x").and_then(|()| stream.flush()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }
    assert_eq!(stream.read_to_vec().unwrap(), b"content");
    drop(stream);
    file.flush().unwrap();
    assert!(storage.len().unwrap() < 5000);
    inspect(&storage).expect_sound();
}

#[test]
fn b15_version_3_stream_of_more_than_1_gib_comes_back_whole() {
    let (storage, file) = sparse(Version::V3);
    let stream = file.create_stream("s").unwrap();
    let len = GIB + 5000;
    stream.set_len(len).unwrap();
    stream.write_at(&pattern(1, 1000), len - 1000).unwrap();
    drop(stream);
    file.flush().unwrap();
    inspect(&storage).expect_sound();
    let file = CompoundFile::from_storage(storage).unwrap();
    let stream = file.open_stream("s").unwrap();
    assert_eq!(file.entry("s").unwrap().len(), len);
    let mut tail = vec![0; 2000];
    assert_eq!(stream.read_at(&mut tail, len - 2000).unwrap(), 2000);
    assert_eq!(tail, [vec![0; 1000], pattern(1, 1000)].concat());
}

#[test]
fn b15_version_4_stream_of_more_than_4_gib_comes_back_whole() {
    let (storage, file) = sparse(Version::V4);
    let stream = file.create_stream("s").unwrap();
    let len = 4 * GIB + 5000;
    stream.set_len(len).unwrap();
    for at in [0, 2 * GIB - 500, 4 * GIB - 500, len - 1000] {
        stream.write_at(&pattern(1, 1000), at).unwrap();
    }
    drop(stream);
    file.flush().unwrap();
    inspect(&storage).expect_sound();
    let file = CompoundFile::from_storage(storage).unwrap();
    let stream = file.open_stream("s").unwrap();
    assert_eq!(file.entry("s").unwrap().len(), len);
    let mut piece = vec![0; 1000];
    for at in [0, 2 * GIB - 500, 4 * GIB - 500, len - 1000] {
        assert_eq!(stream.read_at(&mut piece, at).unwrap(), 1000);
        assert_eq!(piece, pattern(1, 1000));
    }
}

/// The file is sound and nothing but the range lock has the sector at 0x7FFFFF00.
fn expect_range_lock(storage: &SparseStorage) {
    let account = inspect(storage).expect_sound();
    assert_eq!(account.owners[LOCK_SECTOR as usize], Owner::RangeLock);
    assert_eq!(account.fat[LOCK_SECTOR as usize], END);
    let strict = cfb_format::OpenOptions::new().strictness(cfb_format::Strictness::Strict);
    assert_eq!(strict.open_storage(storage.clone()).unwrap().findings(), []);
}

#[test]
fn b16_range_lock_sector_is_left_out_of_a_stream_that_is_made_in_one_go() {
    let (storage, file) = sparse(Version::V4);
    let stream = file.create_stream("s").unwrap();
    stream.set_len(2 * GIB + (64 << 20)).unwrap();
    let at = 2 * GIB - (4 << 20);
    let content = pattern(7, 8 << 20);
    stream.write_at(&content, at).unwrap();
    file.flush().unwrap();
    expect_range_lock(&storage);
    drop((stream, file));
    let file = CompoundFile::from_storage(storage).unwrap();
    let mut back = vec![0; content.len()];
    assert_eq!(file.open_stream("s").unwrap().read_at(&mut back, at).unwrap(), back.len());
    assert!(back == content);
}

#[test]
fn b16_range_lock_sector_is_left_out_while_streams_grow_past_it() {
    let (storage, file) = sparse(Version::V4);
    file.create_stream("filler").unwrap().set_len(2 * GIB - (1 << 20)).unwrap();
    let mut streams: Vec<_> =
        (0..3).map(|nth| file.create_stream(&format!("s{nth}")).unwrap()).collect();
    for turn in 0..100 {
        for (stream, seed) in streams.iter_mut().zip(0..) {
            stream.write_all(&pattern(100 * seed + turn, 8192)).unwrap();
        }
        if turn % 25 == 0 {
            file.flush().unwrap();
        }
    }
    file.flush().unwrap();
    expect_range_lock(&storage);
    for (stream, seed) in streams.iter_mut().zip(0..) {
        let expected: Vec<u8> =
            (0..100).flat_map(|turn| pattern(100 * seed + turn, 8192)).collect();
        let mut back = Vec::new();
        stream.seek(SeekFrom::Start(0)).unwrap();
        stream.read_to_end(&mut back).unwrap();
        assert!(back == expected, "stream {seed}");
    }
}

#[test]
fn b16_file_that_shrinks_below_2_gib_gives_the_range_lock_sector_back() {
    let (storage, file) = sparse(Version::V4);
    file.write_stream("first", &pattern(1, 10_000)).unwrap();
    file.create_stream("big").unwrap().set_len(3 * GIB).unwrap();
    file.flush().unwrap();
    expect_range_lock(&storage);
    file.remove_stream("big").unwrap();
    file.flush().unwrap();
    let account = inspect(&storage).expect_sound();
    assert!(storage.len().unwrap() < 100_000, "the freed tail is given back");
    assert!(account.fat.get(LOCK_SECTOR as usize).is_none_or(|&cell| cell == FREE));
}

#[test]
fn b24_lengths_near_2_to_the_64_are_refused() {
    for version in VERSIONS {
        let file = create(version);
        let mut stream = file.create_stream("s").unwrap();
        stream.write_all(b"content").unwrap();
        let near =
            [0, 1, 63, 64, 509, 510, 511, 512, 513, 4095, 4096, 4097, 1 << 32, 1 << 62, 1 << 63];
        for len in near.map(|below| u64::MAX - below) {
            let refused =
                |result| matches!(result, Err(Error::TooLong { .. } | Error::FileFull { .. }));
            assert!(refused(stream.set_len(len)), "{len:#x}");
            assert!(refused(stream.write_at(b"x", len)), "{len:#x}");
            let mut buf = [0; 100];
            assert_eq!(stream.read_at(&mut buf, len).unwrap(), 0, "{len:#x}");
            if let Ok(at) = stream.seek(SeekFrom::Start(len)) {
                assert_eq!(at, len);
                assert!(stream.write_all(b"x").and_then(|()| stream.flush()).is_err(), "{len:#x}");
                assert_eq!(stream.read(&mut buf).unwrap(), 0, "{len:#x}");
            }
        }
        assert_eq!(stream.read_to_vec().unwrap(), b"content");
        assert_eq!(stream.entry().unwrap().len(), 7);
        drop(stream);
        judged(&file);
    }
}

#[test]
fn b24_seeks_to_before_the_start_are_refused_and_do_not_move() {
    let file = create(Version::V3);
    file.write_stream("s", b"content").unwrap();
    let mut stream = file.open_stream("s").unwrap();
    stream.seek(SeekFrom::Start(3)).unwrap();
    for seek in [
        SeekFrom::End(i64::MIN),
        SeekFrom::Current(i64::MIN),
        SeekFrom::End(-8),
        SeekFrom::Current(-4),
    ] {
        assert_eq!(stream.seek(seek).unwrap_err().kind(), ErrorKind::InvalidInput, "{seek:?}");
        assert_eq!(stream.stream_position().unwrap(), 3);
    }
    assert_eq!(stream.seek(SeekFrom::End(i64::MAX)).unwrap(), 7 + i64::MAX.unsigned_abs());
    assert_eq!(stream.read(&mut [0; 10]).unwrap(), 0);
    assert_eq!(stream.seek(SeekFrom::End(-4)).unwrap(), 3);
    assert_eq!(stream.read(&mut [0; 10]).unwrap(), 4);
}
