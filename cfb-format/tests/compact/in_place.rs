//! In place: the same content in a shorter file, whoever has it open.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cfb_format::{
    CompactOptions, Compacted, CompoundFile, MemStorage, OpenOptions, Storage, Version,
};

use crate::common::files::VERSIONS;
use crate::common::raw::{Build, pattern};
use crate::common::storages::BreakingStorage;
use crate::fragmented::{
    Content, MARKER, assert_content, content, fragmented, fragmented_in, has_marker, straight,
};

/// Length in bytes of a new file of the same content.
fn best<S: Storage>(file: &CompoundFile<S>) -> u64 {
    file.compact_into(MemStorage::new()).unwrap().bytes_after
}

/// Fails unless the file is sound, has the content and is short.
#[track_caller]
fn assert_compact(file: &CompoundFile<MemStorage>, compacted: &Compacted, content: &Content) {
    let len = file.storage().to_vec().len() as u64;
    assert_eq!(compacted.bytes_after, len);
    assert_eq!(file.check().unwrap(), []);
    assert_content(file, content);
    let usage = file.usage().unwrap();
    let metadata = u64::from(usage.metadata_sectors) * u64::from(usage.sector_bytes);
    let best = best(file);
    println!("{len} bytes, best {best}, metadata {metadata}, {:.2} runs", usage.runs_per_stream());
    assert!(len <= best + metadata, "{len} bytes, best {best}, metadata {metadata}");
    assert_eq!(usage.unowned_sectors, 0);
    let memory = file.storage().to_vec();
    let again = CompoundFile::from_storage(&memory[..]).unwrap();
    assert_content(&again, content);
}

#[test]
fn fragmented_file_becomes_as_short_as_a_new_one_by_its_metadata_or_less() {
    for version in VERSIONS {
        for atomic in [true, false] {
            for (seed, count) in [(1, 0), (2, 3), (3, 12), (4, 60), (5, 300)] {
                let content = content(seed, count);
                let file = fragmented_in(MemStorage::new(), version, &content, atomic);
                let before = file.storage().to_vec().len() as u64;
                let compacted = file.compact().unwrap();
                println!("{version}, {atomic}, {count}: {before} before");
                assert_compact(&file, &compacted, &content);
                assert!(compacted.bytes_after <= before);
            }
        }
    }
}

#[test]
fn file_with_difat_sectors_becomes_short() {
    let mut content = content(6, 40);
    content.push(("/long".to_owned(), pattern(9, 8_000_000)));
    content.push(("/as long".to_owned(), pattern(10, 9_000_000)));
    let file = fragmented(Version::V3, &content);
    let compacted = file.compact().unwrap();
    assert!(compacted.won_bytes() > 800_000, "{compacted:?}");
    assert_ne!(file.storage().to_vec()[0x48], 0, "it has DIFAT sectors");
    assert_compact(&file, &compacted, &content);

    file.remove_stream("/long").unwrap();
    file.remove_stream("/as long").unwrap();
    content.truncate(content.len() - 2);
    let compacted = file.compact().unwrap();
    assert_eq!(file.storage().to_vec()[0x48], 0, "no more");
    assert_compact(&file, &compacted, &content);
}

#[test]
fn stream_at_the_end_moves_into_one_run_but_for_what_fills_the_last_gaps() {
    for version in VERSIONS {
        let content = content(7, 4);
        let file = straight(version, &content);
        file.write_stream("/gap", &vec![1; 9_000_000]).unwrap();
        file.write_stream("/Zoo/last", &pattern(1, 8_500_000)).unwrap();
        file.flush().unwrap();
        file.remove_stream("/gap").unwrap();
        let compacted = file.compact().unwrap();
        assert!(compacted.streams_moved >= 1 && compacted.moved_bytes >= 8_500_000);
        let extents = file.open_stream("/Zoo/last").unwrap().extents().unwrap();
        let longest = extents.iter().map(|extent| extent.len_bytes).max().unwrap();
        assert!(longest > 8_300_000 && extents.len() < 10, "{extents:?}");
        file.remove_stream("/Zoo/last").unwrap();
        let compacted = file.compact().unwrap();
        assert_compact(&file, &compacted, &content);
    }
}

#[test]
fn compact_file_is_left_as_it_is() {
    for version in VERSIONS {
        let memory = MemStorage::new();
        straight(version, &content(8, 30)).compact_into(memory.clone()).unwrap();
        let before = memory.to_vec();
        let file = CompoundFile::from_storage(memory).unwrap();
        let compacted = file.compact().unwrap();
        assert_eq!((compacted.streams_moved, compacted.won_bytes()), (0, 0));
        assert!(file.storage().to_vec() == before);
    }
}

#[test]
fn open_handles_read_and_write_on() {
    for version in VERSIONS {
        let mut content = content(9, 40);
        let file = fragmented(version, &content);
        let handles: Vec<_> =
            content.iter().map(|(path, _)| file.open_stream(path.as_str()).unwrap()).collect();
        for handle in &handles {
            handle.write_at(b"changed", 3).unwrap();
        }
        file.compact().unwrap();
        for (handle, (path, bytes)) in handles.iter().zip(&mut content) {
            if bytes.is_empty() {
                bytes.resize(3, 0);
            }
            let end = bytes.len().max(10);
            bytes.resize(end, 0);
            bytes[3..10].copy_from_slice(b"changed");
            assert!(handle.read_to_vec().unwrap() == *bytes, "{path}");
            handle.write_at(b"more", bytes.len() as u64).unwrap();
            bytes.extend(b"more");
        }
        drop(handles);
        let compacted = file.compact().unwrap();
        assert_compact(&file, &compacted, &content);
    }
}

#[test]
fn other_threads_read_and_write_meanwhile() {
    for version in VERSIONS {
        for atomic in [true, false] {
            let content = content(10, 60);
            let file = fragmented_in(MemStorage::new(), version, &content, atomic);
            file.create_stream("/small").unwrap().set_len(3000).unwrap();
            file.create_stream("/large").unwrap().set_len(300_000).unwrap();
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    for _ in 0..20 {
                        for (path, bytes) in &content {
                            assert!(file.read_stream(path.as_str()).unwrap() == *bytes, "{path}");
                        }
                    }
                });
                for (path, len) in [("/small", 3000_u64), ("/large", 300_000)] {
                    let file = &file;
                    threads.spawn(move || {
                        let stream = file.open_stream(path).unwrap();
                        for round in 0..2000_u64 {
                            let at = round * 37 % (len - 8);
                            stream.write_at(&round.to_le_bytes(), at).unwrap();
                            let mut read = [0; 8];
                            stream.read_at(&mut read, at).unwrap();
                            assert_eq!(u64::from_le_bytes(read), round, "{path} at {at}");
                        }
                    });
                }
                for _ in 0..10 {
                    file.compact().unwrap();
                }
            });
            file.remove_stream("/small").unwrap();
            file.remove_stream("/large").unwrap();
            let compacted = file.compact().unwrap();
            assert_compact(&file, &compacted, &content);
        }
    }
}

#[test]
fn small_stream_is_written_while_the_mini_stream_moves() {
    let file = straight(Version::V3, &content(14, 4));
    for round in 0..20 {
        file.write_stream("/gap", &vec![1; 4_000_000]).unwrap();
        for i in 0..800 {
            file.write_stream(&format!("/Zoo/{i}"), &[7; 4000]).unwrap();
        }
        file.flush().unwrap();
        file.remove_stream("/gap").unwrap();
        let (is_started, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let stream = file.open_stream("/Zoo/2").unwrap();
                let mut model = vec![[7; 8]; 500];
                for count in 0_u64.. {
                    let at = count % 500 * 8;
                    let slot = &mut model[at as usize / 8];
                    let mut read = [0; 8];
                    stream.read_at(&mut read, at).unwrap();
                    assert_eq!(read, *slot, "round {round}, write {count}");
                    *slot = count.to_le_bytes();
                    stream.write_at(slot, at).unwrap();
                    is_started.store(true, Ordering::Relaxed);
                    if is_done.load(Ordering::Relaxed) {
                        break;
                    }
                }
                assert!(stream.read_to_vec().unwrap() == model.concat(), "round {round}");
            });
            while !is_started.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let compacted = file.compact().unwrap();
            is_done.store(true, Ordering::Relaxed);
            assert!(compacted.moved_bytes >= 3_000_000, "{compacted:?}");
        });
        for i in 0..800 {
            file.remove_stream(format!("/Zoo/{i}").as_str()).unwrap();
        }
        file.compact().unwrap();
    }
    assert_eq!(file.check().unwrap(), []);
}

#[test]
fn file_never_gets_longer_on_the_way_than_by_its_metadata() {
    for version in VERSIONS {
        let content = content(11, 200);
        let memory = MemStorage::new();
        let storage = Longest { inner: memory, longest: AtomicU64::new(0) };
        let file = fragmented_in(storage, version, &content, true);
        file.flush().unwrap();
        let usage = file.usage().unwrap();
        let metadata = u64::from(usage.metadata_sectors) * u64::from(usage.sector_bytes);
        file.storage().longest.store(0, Ordering::Relaxed);
        let compacted = file.compact().unwrap();
        let longest = file.storage().longest.load(Ordering::Relaxed);
        assert!(longest <= compacted.bytes_before + metadata, "{longest}: {compacted:?}");
        assert!(compacted.bytes_after < compacted.bytes_before / 2);
    }
}

#[test]
fn wiped_file_has_nothing_that_was_deleted() {
    for version in VERSIONS {
        for atomic in [true, false] {
            let content = content(12, 50);
            let file = fragmented_in(MemStorage::new(), version, &content, atomic);
            // Behind the ends of streams too, of which one is open.
            let secret = MARKER.repeat(400);
            let open = file.create_stream("/Zoo/open").unwrap();
            open.write_at(&secret, 0).unwrap();
            for (path, len) in [("/Zoo/a", 2000), ("/Zoo/b", 14_000)] {
                file.write_stream(path, &secret[..len]).unwrap();
            }
            file.flush().unwrap();
            for path in ["/Zoo/open", "/Zoo/a", "/Zoo/b"] {
                let stream = file.open_stream(path).unwrap();
                let len = stream.len() / 2 + 3;
                stream.set_len(len).unwrap();
                stream.write_at(&vec![7; len as usize], 0).unwrap();
            }
            CompactOptions::new().compact(&file).unwrap();
            CompactOptions::new().wipe(true).compact(&file).unwrap();
            assert!(!has_marker(&file.storage().to_vec()), "{version}, {atomic}");
            let text: Vec<u8> = "gone too".encode_utf16().flat_map(u16::to_le_bytes).collect();
            let bytes = file.storage().to_vec();
            assert!(!bytes.windows(16).any(|window| window == text), "names too");
            for path in ["/Zoo/open", "/Zoo/a", "/Zoo/b"] {
                assert!(file.read_stream(path).unwrap().iter().all(|&byte| byte == 7));
                file.remove_stream(path).unwrap();
            }
            let compacted = CompactOptions::new().wipe(true).compact(&file).unwrap();
            assert_compact(&file, &compacted, &content);
            assert!(!file.storage().to_vec().windows(64).any(|window| window == [7; 64]));
        }
    }
}

#[test]
fn without_a_wipe_something_is_left_that_the_test_finds() {
    let content = content(12, 50);
    let file = fragmented(Version::V3, &content);
    // What is left behind lies here or there; some of so many is not written over.
    for i in 0..8 {
        file.write_stream(&format!("/Zoo/{i}"), &MARKER.repeat(54 << i)).unwrap();
    }
    file.flush().unwrap();
    for i in 0..8 {
        file.open_stream(&format!("/Zoo/{i}")).unwrap().set_len(1).unwrap();
    }
    file.compact().unwrap();
    assert!(has_marker(&file.storage().to_vec()));
}

#[test]
fn failing_storage_costs_nothing_and_the_next_attempt_goes_on() {
    for version in VERSIONS {
        let content = content(13, 14);
        let image = fragmented(version, &content).into_storage().unwrap().to_vec();
        let mut fails = 0;
        for changes in 0.. {
            let storage = BreakingStorage::new(MemStorage::from(image.clone()));
            let options = OpenOptions::new().write(true).in_place(false);
            let file = options.open_storage(storage).unwrap();
            file.storage().break_after(changes);
            let result = CompactOptions::new().wipe(true).compact(&file);
            assert_content(&file, &content);
            if result.is_ok() {
                break;
            }
            fails += 1;
            file.storage().heal();
            file.compact().unwrap();
            assert_eq!(file.check().unwrap(), []);
            assert_content(&file, &content);
        }
        assert!(fails > 10, "{fails}");
    }
}

#[test]
fn chains_that_are_longer_than_their_streams_are_cut() {
    for version in [3, 4] {
        let mut image = Build::new(version)
            .stream("/a", &pattern(1, 30_000))
            .stream("/b", &pattern(2, 3000))
            .stream("/c", &pattern(3, 40_000))
            .stream("/d", &pattern(4, 2000))
            .image();
        let cut = [("/a", 5000), ("/b", 100), ("/c", 39_000), ("/d", 1)];
        for (path, len) in cut {
            image.put_size(path, len);
        }
        let file = CompoundFile::from_storage(MemStorage::from(image.bytes)).unwrap();
        let compacted = file.compact().unwrap();
        assert!(compacted.won_bytes() > 20_000, "{compacted:?}");
        assert_eq!(file.check().unwrap(), []);
        for ((path, len), seed) in cut.into_iter().zip(1..) {
            let len = len as usize;
            assert!(file.read_stream(path).unwrap() == pattern(seed, 40_000)[..len], "{path}");
        }
    }
}

/// Knows how long it has been.
struct Longest {
    inner: MemStorage,
    longest: AtomicU64,
}

impl Storage for Longest {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.longest.fetch_max(offset + buf.len() as u64, Ordering::Relaxed);
        self.inner.write_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.longest.fetch_max(len, Ordering::Relaxed);
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
