//! The cost of a call is the cost of its bytes, counted in calls on the storage and bytes through them. The
//! numbers are exact and the same on every machine.

#![allow(clippy::cast_possible_truncation, reason = "sizes here are small by construction")]

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

mod common;

use cfb_format::{CompoundFile, CreateOptions, MemStorage, OpenOptions, Storage, Version};
use common::storages::SparseStorage;

const VERSIONS: [Version; 2] = [Version::V3, Version::V4];
const MIB: u64 = 1 << 20;

/// Memory that counts what is asked of it.
#[derive(Clone)]
struct Counting<S = MemStorage> {
    inner: S,
    counts: Arc<[AtomicU64; 4]>,
}

/// Calls and bytes since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Io {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
}

impl<S> Counting<S> {
    fn new(inner: S) -> Self {
        Self { inner, counts: Arc::default() }
    }

    /// What was asked since the last call of this.
    fn take(&self) -> Io {
        let [reads, read_bytes, writes, written_bytes] =
            [0, 1, 2, 3].map(|i: usize| self.counts[i].swap(0, Relaxed));
        Io { reads, read_bytes, writes, written_bytes }
    }

    fn count(&self, at: usize, bytes: usize) {
        self.counts[at].fetch_add(1, Relaxed);
        self.counts[at + 1].fetch_add(bytes as u64, Relaxed);
    }
}

impl<S: Storage> Storage for Counting<S> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.inner.read_at(buf, offset)?;
        self.count(0, read);
        Ok(read)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.count(2, buf.len());
        self.inner.write_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

/// A new file with `count` streams of `len` bytes, flushed.
fn file_of(version: Version, count: usize, len: usize) -> (CompoundFile<Counting>, Counting) {
    let storage = Counting::new(MemStorage::new());
    let file = CreateOptions::new()
        .version(version)
        .create_storage(storage.clone())
        .expect("an empty file");
    for i in 0..count {
        file.write_stream(format!("stream {i}").as_str(), &vec![i as u8; len])
            .expect("memory takes all");
    }
    file.flush().expect("memory takes all");
    (file, storage)
}

/// Version, length of each stream, write calls, bytes written; the empty file that `create` writes is counted too.
const CREATING: [(Version, usize, u64, u64); 8] = [
    (Version::V3, 0, 4, 131_584),
    (Version::V3, 64, 5, 200_704),
    (Version::V3, 1024, 5, 1_228_288),
    (Version::V3, 4000, 8, 4_449_792),
    (Version::V4, 0, 4, 147_968),
    (Version::V4, 64, 5, 216_064),
    (Version::V4, 1024, 5, 1_237_504),
    (Version::V4, 4000, 8, 4_438_016),
];

#[test]
fn creating_a_thousand_streams_takes_at_most_32_writes() {
    for (version, len, writes, written_bytes) in CREATING {
        let (_file, storage) = file_of(version, 1000, len);
        let io = storage.take();
        assert!(io.writes <= 32, "{version:?}, {len} bytes each: {io:?}");
        let expected = Io { reads: 0, read_bytes: 0, writes, written_bytes };
        assert_eq!(io, expected, "{version:?}, {len} bytes each");
        // The file once, and before that the empty one.
        let size = storage.len().expect("memory knows its length") + 4 * 4096;
        assert!(io.written_bytes <= size, "{version:?}, {len} bytes each: {io:?} for {size}");
    }
}

#[test]
fn creating_a_thousand_streams_through_handles_costs_no_more() {
    for version in VERSIONS {
        let storage = Counting::new(MemStorage::new());
        let file = CreateOptions::new()
            .version(version)
            .create_storage(storage.clone())
            .expect("an empty file");
        for i in 0..1000u32 {
            let mut stream =
                file.create_stream(format!("stream {i}").as_str()).expect("a new name");
            io::Write::write_all(&mut stream, &[i as u8; 1024]).expect("memory takes all");
        }
        file.flush().expect("memory takes all");
        let io = storage.take();
        let (_file, storage) = file_of(version, 1000, 1024);
        assert_eq!(io, storage.take(), "{version:?}: as much as by whole contents");
    }
}

#[test]
fn a_long_stream_in_chunks_takes_one_write_a_chunk_and_sixteen_more() {
    for version in VERSIONS {
        let storage = Counting::new(MemStorage::new());
        let file = CreateOptions::new()
            .version(version)
            .create_storage(storage.clone())
            .expect("an empty file");
        let mut stream = file.create_stream("long").expect("a new name");
        let chunk = vec![0xA5; 1 << 20];
        for _ in 0..64 {
            io::Write::write_all(&mut stream, &chunk).expect("memory takes all");
        }
        drop(stream);
        file.flush().expect("memory takes all");
        let io = storage.take();
        assert!(io.writes <= 64 + 16, "{version:?}: {io:?}");
        let exact = if version == Version::V3 { (68, 67_644_416) } else { (68, 67_195_392) };
        assert_eq!((io.writes, io.written_bytes, io.reads), (exact.0, exact.1, 0), "{version:?}");
        // Metadata: a FAT cell a sector, and a little.
        let sector_bytes = if version == Version::V3 { 512 } else { 4096 };
        let metadata = 64 * MIB / sector_bytes * 4 + (64 << 10);
        assert!(io.written_bytes <= 64 * MIB * 102 / 100 + metadata, "{version:?}: {io:?}");
        assert_eq!(
            storage.inner.to_vec().len() as u64 / MIB,
            64,
            "and the file is as long as its content"
        );
    }
}

/// Version, length of each stream, read calls, bytes read.
const OPENING: [(Version, usize, u64, u64); 10] = [
    (Version::V3, 0, 1, 131_072),
    (Version::V3, 64, 4, 265_728),
    (Version::V3, 1024, 4, 333_312),
    (Version::V3, 4000, 4, 546_816),
    (Version::V3, 5000, 3, 301_056),
    (Version::V4, 0, 3, 266_240),
    (Version::V4, 64, 4, 270_336),
    (Version::V4, 1024, 4, 331_776),
    (Version::V4, 4000, 4, 524_288),
    (Version::V4, 5000, 3, 270_336),
];

#[test]
fn opening_a_file_of_a_thousand_streams_takes_at_most_8_reads() {
    for (version, len, reads, read_bytes) in OPENING {
        let (file, storage) = file_of(version, 1000, len);
        drop(file);
        storage.take();
        let file =
            OpenOptions::new().open_storage(storage.clone()).expect("what was written opens");
        let io = storage.take();
        assert!(io.reads <= 8, "{version:?}, {len} bytes each: {io:?}");
        let expected = Io { reads, read_bytes, writes: 0, written_bytes: 0 };
        assert_eq!(io, expected, "{version:?}, {len} bytes each");
        assert_eq!(file.walk().count(), 1001);
        assert_eq!(storage.take().reads, 0, "listing needs no more");
    }
}

#[test]
fn a_random_read_of_4_kib_reads_at_most_8_kib() {
    for version in VERSIONS {
        let (file, storage) = file_of(version, 1, 8 << 20);
        drop(file);
        let file =
            OpenOptions::new().open_storage(storage.clone()).expect("what was written opens");
        let mut stream = file.open_stream("stream 0").expect("it is there");
        let mut buf = vec![0; 4096];
        stream.read_exact(&mut buf).expect("8 MiB are there");
        storage.take();
        for at in [5_000_000, 77, 8_000_000, 1_234_567, 4096 * 700] {
            stream.seek(SeekFrom::Start(at)).expect("any place can be sought");
            stream.read_exact(&mut buf).expect("8 MiB are there");
            let io = storage.take();
            assert!(io.read_bytes <= 8192 && io.reads <= 2, "{version:?}, read at {at}: {io:?}");
            stream.read_at(&mut buf, at / 2).expect("8 MiB are there");
            let io = storage.take();
            // What was read when the file was opened is still there.
            let exact = if at < 128 << 10 { (0, 0) } else { (1, 4096) };
            assert_eq!((io.reads, io.read_bytes), exact, "{version:?}, read_at {at}");
        }
    }
}

/// Version, length of each stream, read calls, bytes read: after open, which has read the first 128 KiB.
const READING_SMALL: [(Version, usize, u64, u64); 6] = [
    (Version::V3, 64, 0, 0),
    (Version::V3, 1024, 17, 922_112),
    (Version::V3, 4000, 63, 4_048_064),
    (Version::V4, 64, 0, 0),
    (Version::V4, 1024, 17, 913_408),
    (Version::V4, 4000, 63, 4_052_096),
];

#[test]
fn reading_a_thousand_small_streams_takes_a_call_for_64_kib() {
    for (version, len, reads, read_bytes) in READING_SMALL {
        let (file, storage) = file_of(version, 1000, len);
        drop(file);
        let file =
            OpenOptions::new().open_storage(storage.clone()).expect("what was written opens");
        storage.take();
        for i in 0..1000_u32 {
            let bytes = file.read_stream(format!("stream {i}").as_str()).expect("it is there");
            assert_eq!(bytes, vec![i as u8; len]);
        }
        let io = storage.take();
        let expected = Io { reads, read_bytes, writes: 0, written_bytes: 0 };
        assert_eq!(io, expected, "{version:?}, {len} bytes each");
        assert!(io.read_bytes <= (1000 * len as u64) * 21 / 20 + 4096, "{version:?}: {io:?}");
    }
}

#[test]
fn jumping_among_small_streams_reads_a_block_each() {
    for version in VERSIONS {
        let (file, storage) = file_of(version, 1000, 2000);
        drop(file);
        let file =
            OpenOptions::new().open_storage(storage.clone()).expect("what was written opens");
        storage.take();
        for i in [900, 200, 500, 990, 300] {
            file.read_stream(format!("stream {i}").as_str()).expect("it is there");
            let io = storage.take();
            assert!(io.reads == 1 && [4096, 8192].contains(&io.read_bytes), "{version:?}: {io:?}");
        }
    }
}

#[test]
fn a_flush_without_changes_touches_nothing() {
    for version in VERSIONS {
        let (file, storage) = file_of(version, 100, 1000);
        storage.take();
        file.flush().expect("memory takes all");
        drop(file);
        assert_eq!(storage.take(), Io { reads: 0, read_bytes: 0, writes: 0, written_bytes: 0 });
    }
}

#[test]
fn changing_one_small_stream_among_a_thousand_writes_little() {
    for version in VERSIONS {
        let (file, storage) = file_of(version, 1000, 1024);
        drop(file);
        let file = CompoundFile::from_storage(storage.clone()).expect("what was written opens");
        storage.take();
        file.write_stream("stream 500", &[7; 1000]).expect("memory takes all");
        file.flush().expect("memory takes all");
        let io = storage.take();
        let exact = if version == Version::V3 { (2, 5_120) } else { (4, 22_016) };
        let expected = Io { reads: 0, read_bytes: 0, writes: exact.0, written_bytes: exact.1 };
        assert_eq!(io, expected, "{version:?}");
    }
}

#[test]
fn changing_1_kib_of_1_gib_writes_its_sectors_and_those_that_tell_of_them() {
    // Version 3 lists 16,384 FAT sectors in 129 DIFAT sectors, which are a chain from the header.
    for (version, writes, written_bytes) in [(Version::V3, 4, 72_704), (Version::V4, 3, 20_992)] {
        let storage = Counting::new(SparseStorage::new());
        let file = CreateOptions::new()
            .version(version)
            .create_storage(storage.clone())
            .expect("an empty file");
        let stream = file.create_stream("long").expect("a new name");
        stream.set_len(1 << 30).expect("sparse");
        file.sync().expect("sparse");
        storage.take();
        stream.write_at(&[7; 1024], (1 << 29) + 300).expect("it is there");
        file.sync().expect("sparse");
        let io = storage.take();
        let most = if version == Version::V3 { 256 << 10 } else { 64 << 10 };
        assert!(io.written_bytes <= most, "{version:?}: {io:?}");
        assert_eq!((io.writes, io.written_bytes), (writes, written_bytes), "{version:?}: {io:?}");
        let mut buf = [0; 1026];
        stream.read_at(&mut buf, (1 << 29) + 299).expect("it is there");
        assert_eq!((buf[0], &buf[1..1025], buf[1025]), (0, &[7; 1024][..], 0), "{version:?}");
    }
}

#[test]
fn reading_on_in_small_pieces_takes_few_calls_and_jumping_reads_little() {
    for version in VERSIONS {
        let (file, storage) = file_of(version, 1, 4 << 20);
        let mut stream = file.open_stream("stream 0").expect("it is there");
        storage.take();
        let mut buf = [0; 4096];
        for _ in 0..1024 {
            stream.read_exact(&mut buf).expect("4 MiB are there");
        }
        // 4, 8, .. 512 KiB, then 1 MiB at a time: eight pieces of 1,020 KiB, and 3.004 more.
        let io = storage.take();
        assert_eq!((io.reads, io.read_bytes), (12, 4 << 20), "{version:?}");
        for at in [1000, 500_000, 77] {
            stream.seek(SeekFrom::Start(at)).expect("any place can be sought");
            stream.read_exact(&mut buf[..16]).expect("4 MiB are there");
            let io = storage.take();
            assert_eq!((io.reads, io.read_bytes), (1, 512), "{version:?}, read at {at}");
        }
    }
}
