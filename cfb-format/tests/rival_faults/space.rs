//! Space is reused in long runs, tables do not grow for nothing, and a write costs what its bytes cost.

use std::io::{Read, Seek, SeekFrom, Write};

use cfb_format::{CompoundFile, CreateOptions, MemStorage, Version};

use crate::common::files::{VERSIONS, create, ends, judged, open, saved};
use crate::common::raw::{Build, Owner, inspect, pattern};
use crate::common::storages::CountingStorage;

#[test]
fn b06_deleting_and_creating_a_small_stream_over_and_over_does_not_grow_the_file() {
    for version in VERSIONS {
        let file = create(version);
        file.write_stream("s", b"1").unwrap();
        let first = saved(&file).len();
        for _ in 0..1000 {
            file.remove_stream("s").unwrap();
            file.write_stream("s", b"1").unwrap();
            file.flush().unwrap();
        }
        let (bytes, account) = judged(&file);
        assert_eq!(account.count(Owner::MiniFat), 1);
        assert!(bytes.len() <= first + 4 * usize::try_from(account.sector_bytes).unwrap());
    }
}

#[test]
fn b06_rewriting_a_small_stream_after_each_reopen_does_not_grow_the_file() {
    for version in VERSIONS {
        let file = create(version);
        file.write_stream("s", b"1").unwrap();
        let mut bytes = saved(&file);
        let first = bytes.len();
        for turn in 0..100 {
            let file = open(&bytes).unwrap();
            file.write_stream("s", format!("{turn}").as_bytes()).unwrap();
            bytes = saved(&file);
        }
        let account = inspect(&bytes).expect_sound();
        assert_eq!(account.count(Owner::MiniFat), 1);
        assert!(bytes.len() <= first + 4 * usize::try_from(account.sector_bytes).unwrap());
        assert_eq!(account.content(&bytes, "s"), b"99");
    }
}

#[test]
fn b06_mini_fat_has_exactly_the_sectors_that_its_cells_need() {
    for (version, per_sector) in [(Version::V3, 128), (Version::V4, 1024)] {
        let file = create(version);
        for nth in 0..=(2 * per_sector) {
            file.write_stream(&format!("{nth}"), b"1").unwrap();
            if (nth + 1) % per_sector == 0 {
                let (_, account) = judged(&file);
                assert_eq!(account.count(Owner::MiniFat), (nth + 1) / per_sector);
            }
        }
        let (_, account) = judged(&file);
        assert_eq!(account.count(Owner::MiniFat), 3);
    }
}

#[test]
fn b28_freed_space_is_reused_in_one_run() {
    for version in VERSIONS {
        let file = create(version);
        let len = 4 << 20;
        file.write_stream("a", &pattern(1, len)).unwrap();
        file.write_stream("b", &pattern(2, 5000)).unwrap();
        let before = saved(&file).len();
        file.remove_stream("a").unwrap();
        file.flush().unwrap();
        let mut stream = file.create_stream("c").unwrap();
        for chunk in pattern(3, len).chunks(64 << 10) {
            stream.write_all(chunk).unwrap();
        }
        let extents = stream.extents().unwrap();
        drop(stream);
        let (bytes, account) = judged(&file);
        // The first chunk may fill a smaller hole, since its stream's length is not known yet.
        assert!(extents.len() <= 2, "{extents:?}");
        assert_eq!(account.pieces("c"), extents.len());
        let most = before + 4 * usize::try_from(account.sector_bytes).unwrap();
        assert!(bytes.len() <= most, "{} bytes after, {before} before", bytes.len());
        assert!(account.content(&bytes, "c") == pattern(3, len));
    }
}

#[test]
fn b28_freed_space_is_reused_in_one_run_after_a_reopen() {
    let file = create(Version::V3);
    for (nth, len) in [(0, 1 << 20), (1, 5000), (2, 1 << 20), (3, 5000)] {
        file.write_stream(&format!("{nth}"), &pattern(nth, len)).unwrap();
    }
    file.remove_stream("0").unwrap();
    file.remove_stream("2").unwrap();
    let bytes = saved(&file);
    let file = open(&bytes).unwrap();
    // A little less than each hole: some tables may have moved into it.
    file.write_stream("new", &pattern(9, 1_000_000)).unwrap();
    let (after, account) = judged(&file);
    assert_eq!(account.pieces("new"), 1);
    assert!(after.len() <= bytes.len() + 4 * 512, "{} bytes of {}", after.len(), bytes.len());
}

fn counting(
    version: Version,
) -> (CountingStorage<MemStorage>, CompoundFile<CountingStorage<MemStorage>>) {
    let storage = CountingStorage::new(MemStorage::new());
    let file = CreateOptions::new().version(version).create_storage(storage.clone()).unwrap();
    (storage, file)
}

#[test]
fn wa_flush_writes_what_changed_and_not_the_whole_buffer() {
    for (version, sector_bytes) in [(Version::V3, 512), (Version::V4, 4096)] {
        for flush_file in [false, true] {
            let (storage, file) = counting(version);
            let mut stream = file.create_stream("s").unwrap();
            stream.write_all(&pattern(1, 1 << 20)).unwrap();
            file.flush().unwrap();
            storage.take();
            for nth in 0..1000 {
                stream.write_all(&pattern(nth, 100)).unwrap();
                stream.flush().unwrap();
                if flush_file {
                    file.flush().unwrap();
                }
            }
            let counts = storage.take();
            // The 100 bytes touch two sectors at most; header, FAT, directory and DIFAT a sector each.
            assert!(counts.written_bytes <= 1000 * 6 * sector_bytes, "{version:?}: {counts:?}");
            assert!(counts.writes <= 6000, "{version:?}: {counts:?}");
        }
    }
}

#[test]
fn wa_overwriting_a_byte_after_reading_a_lot_writes_little() {
    let (storage, file) = counting(Version::V3);
    file.write_stream("s", &pattern(1, 4 << 20)).unwrap();
    let mut stream = file.open_stream("s").unwrap();
    file.flush().unwrap();
    std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
    storage.take();
    for nth in 0..100 {
        stream.seek(SeekFrom::Start(nth * 40_000)).unwrap();
        stream.write_all(b"x").unwrap();
        stream.flush().unwrap();
    }
    let counts = storage.take();
    assert!(counts.written_bytes <= 100 * 6 * 512, "{counts:?}");
}

#[test]
fn wa_removing_many_small_streams_costs_a_few_writes() {
    for version in VERSIONS {
        ends("removing 10,000 small streams", move || {
            let (storage, file) = counting(version);
            for nth in 0..10_000 {
                file.write_stream(&format!("{nth}"), &pattern(nth, 1000)).unwrap();
            }
            file.flush().unwrap();
            storage.take();
            for nth in 0..10_000 {
                file.remove_stream(&format!("{nth}")).unwrap();
            }
            file.flush().unwrap();
            let counts = storage.take();
            assert!(counts.writes <= 32, "{counts:?}");
            assert!(counts.reads <= 16, "{counts:?}");
        });
    }
}

#[test]
fn wa_small_random_read_reads_little() {
    for version in VERSIONS {
        let (storage, file) = counting(version);
        file.write_stream("s", &pattern(1, 8 << 20)).unwrap();
        file.flush().unwrap();
        let content = pattern(1, 8 << 20);
        let mut stream = file.open_stream("s").unwrap();
        storage.take();
        let mut buf = [0; 4096];
        for nth in 0..1000_usize {
            let at = nth * 7_654_321 % (content.len() - buf.len());
            stream.seek(SeekFrom::Start(at as u64)).unwrap();
            stream.read_exact(&mut buf).unwrap();
            assert_eq!(buf[..], content[at..at + buf.len()]);
        }
        let counts = storage.take();
        assert!(counts.read_bytes <= 1000 * 8192, "{counts:?}");
        for nth in 0..1000_usize {
            let at = nth * 7_654_321 % (content.len() - buf.len());
            assert_eq!(stream.read_at(&mut buf, at as u64).unwrap(), buf.len());
        }
        let counts = storage.take();
        assert!(counts.read_bytes <= 1000 * 8192, "{counts:?}");
        assert!(counts.reads <= 1000, "{counts:?}");
    }
}

#[test]
fn b70_forged_mini_stream_size_does_not_fill_the_disk() {
    for (version, size) in
        [(3, 256 << 20), (3, 0xFFFF_FFC0), (4, 256 << 20), (4, 1 << 63), (4, u64::MAX - 63)]
    {
        ends("writing one byte", move || {
            let mut image = Build::new(version)
                .stream("a", &pattern(1, 100))
                .stream("b", &pattern(2, 5000))
                .image();
            image.put_size("", size);
            let file = open(&image.bytes).unwrap();
            assert!(!file.check().unwrap().is_empty());
            file.write_stream("new", b"x").unwrap();
            let bytes = saved(&file);
            let most = image.bytes.len() + 8 * image.sector_bytes;
            assert!(
                bytes.len() <= most,
                "{size:#x}: {} bytes of {}",
                bytes.len(),
                image.bytes.len()
            );
            let file = open(&bytes).unwrap();
            assert_eq!(file.read_stream("new").unwrap(), b"x");
            assert_eq!(file.read_stream("a").unwrap(), pattern(1, 100));
            assert_eq!(file.read_stream("b").unwrap(), pattern(2, 5000));
        });
    }
}
