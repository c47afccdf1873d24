//! What calls cost, counted in calls on the disk. The numbers are exact and the
//! same on every machine.

mod common;

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use common::bytes;
use fs_store::{
    Batch, Disk, DiskFile, Durability, ListOptions, MemDisk, OpenOptions, PutOptions, Store,
};

/// Calls and bytes since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Io {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
    flushes: u64,
}

/// A disk in memory that counts what is asked of it.
#[derive(Clone, Default)]
struct Counting {
    memory: MemDisk,
    counts: Arc<[AtomicU64; 5]>,
}

impl Counting {
    /// What was asked since the last call of this.
    fn take(&self) -> Io {
        let [reads, read_bytes, writes, written_bytes, flushes] =
            [0, 1, 2, 3, 4].map(|at: usize| self.counts[at].swap(0, Relaxed));
        Io { reads, read_bytes, writes, written_bytes, flushes }
    }

    fn count(&self, at: usize, by: u64) {
        self.counts[at].fetch_add(by, Relaxed);
    }
}

struct CountingFile {
    file: Arc<dyn DiskFile>,
    disk: Counting,
}

impl Disk for Counting {
    fn open(&self, name: &str, create: bool, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.memory.open(name, create, write)?;
        Ok(Arc::new(CountingFile { file, disk: self.clone() }))
    }

    fn sync(&self) -> io::Result<()> {
        self.count(4, 1);
        self.memory.sync()
    }
}

impl DiskFile for CountingFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(buf, offset)?;
        self.disk.count(0, 1);
        self.disk.count(1, read as u64);
        Ok(read)
    }

    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.disk.count(2, 1);
        self.disk.count(3, pieces.iter().map(|piece| piece.len() as u64).sum());
        self.file.write_at(pieces, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.punch(offset, len)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.count(4, 1);
        self.file.sync()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
}

fn store() -> (Store, Counting) {
    let disk = Counting::default();
    let store = OpenOptions::new().create(true).open_on(disk.clone()).unwrap();
    // Room in the file, so that it does not grow in what is counted.
    store.put("room", vec![0; 24 << 20]).unwrap();
    store.delete("room").unwrap();
    store.sync().unwrap();
    disk.take();
    (store, disk)
}

fn durable() -> PutOptions {
    PutOptions::new().durability(Durability::Sync)
}

#[test]
fn a_durable_put_of_a_small_value_is_one_write_and_one_flush() {
    for (len, written_bytes) in [(0, 72), (100, 176), (4096, 4168), (32 << 10, 32_840)] {
        let (store, disk) = store();
        store.put_with("key", bytes(1, len), &durable()).unwrap();
        let io = disk.take();
        assert_eq!(io, Io { writes: 1, flushes: 1, written_bytes, ..Io::default() }, "{len} bytes");
    }
}

#[test]
fn a_durable_delete_is_one_write_and_one_flush() {
    let (store, disk) = store();
    store.put_with("key", bytes(1, 4096), &durable()).unwrap();
    disk.take();
    assert!(store.delete_with("key", &durable()).unwrap());
    let io = disk.take();
    assert_eq!(io, Io { writes: 1, flushes: 1, written_bytes: 56, ..Io::default() });
}

#[test]
fn a_durable_put_of_a_mebibyte_is_at_most_three_writes_and_one_flush() {
    let value = bytes(1, 1 << 20);
    let (store, disk) = store();
    store.put_with("whole", &value, &durable()).unwrap();
    let io = disk.take();
    assert!(io.writes <= 3, "{io:?}");
    assert_eq!(io, Io { writes: 2, flushes: 1, written_bytes: 1_052_760, ..Io::default() }, "put");
    store.put_reader_with("stream", &value[..], &durable()).unwrap();
    let io = disk.take();
    assert!(io.writes <= 3, "{io:?}");
    assert_eq!(
        io,
        Io { writes: 3, flushes: 1, written_bytes: 1_052_760, ..Io::default() },
        "put_reader"
    );
}

#[test]
fn a_thousand_puts_in_a_durable_batch_are_at_most_40_writes_and_one_flush() {
    let (store, disk) = store();
    let mut batch = Batch::new();
    for n in 0..1000 {
        batch.put(format!("key/{n}"), bytes(n, 4096));
    }
    store.commit_with(batch, Durability::Sync).unwrap();
    let io = disk.take();
    assert!(io.writes <= 40, "{io:?}");
    assert_eq!(io, Io { writes: 2, flushes: 1, written_bytes: 4_126_944, ..Io::default() });
}

#[test]
fn a_range_of_4_kib_is_one_read_of_at_most_68_kib() {
    for len in [100_000, 500_000, 64 << 20] {
        let (store, disk) = store();
        let value = bytes(1, len);
        store.put("key", &value).unwrap();
        disk.take();
        let mut reader = store.reader("key").unwrap().unwrap();
        let mut buf = [0; 4096];
        let mut is_first = true;
        for start in [50_000_usize, 70_001, 16_384, 0, 95_000] {
            reader.read_exact_at(&mut buf, start as u64).unwrap();
            assert!(buf == value[start..start + 4096]);
            let io = disk.take();
            // The first time, a block of checksums of 4 KiB too, if they are too many for the record.
            let sums = u64::from(is_first && len > 512 << 10);
            is_first = false;
            assert_eq!(io.reads, 1 + sums, "{len}: {io:?}");
            assert!(io.read_bytes <= (64 << 10) + 4096 + sums * 4096, "{len}: {io:?}");
            // A range lies in one chunk or in two; the last chunk may be short.
            let chunk = 16 << 10;
            let end = (start + 4096).next_multiple_of(chunk).min(len);
            let chunks = (end - start / chunk * chunk) as u64;
            assert_eq!(io.read_bytes, chunks + sums * 4096, "{len}, {start}");
        }
        assert!(store.get_range("key", 50_000..54_096).unwrap().unwrap() == value[50_000..54_096]);
        let io = disk.take();
        // The checksums are known by now.
        let read_bytes = 16 << 10;
        assert_eq!(io, Io { reads: 1, read_bytes, ..Io::default() }, "{len}: get_range");
    }
}

/// Opens a store of `count` small objects.
fn open_many(count: u32) -> Io {
    let disk = Counting::default();
    let store = OpenOptions::new().create(true).open_on(disk.clone()).unwrap();
    for first in (0..count).step_by(10_000) {
        let mut batch = Batch::new();
        for n in first..(first + 10_000).min(count) {
            batch.put(format!("dir/{n:08}"), n.to_le_bytes().to_vec());
        }
        store.commit(batch).unwrap();
    }
    store.close().unwrap();
    disk.take();
    let store = OpenOptions::new().open_on(disk.clone()).unwrap();
    let io = disk.take();
    assert_eq!(store.usage().unwrap().objects, u64::from(count));
    let last = ListOptions::new().reverse().limit(1);
    let item = store.list(&last).unwrap().next().unwrap().unwrap();
    assert_eq!(item.key, format!("dir/{:08}", count - 1));
    io
}

#[test]
fn opening_a_store_of_many_objects_takes_a_few_reads() {
    let io = open_many(100_000);
    assert!(io.reads <= 64, "{io:?}");
    assert_eq!(io, Io { reads: 4, read_bytes: 65_579, flushes: 1, ..Io::default() });
}

#[test]
#[ignore = "takes a minute"]
fn opening_a_store_of_a_million_objects_takes_a_few_reads() {
    let io = open_many(1_000_000);
    assert!(io.reads <= 64, "{io:?}");
    assert_eq!(io, Io { reads: 4, read_bytes: 65_579, flushes: 1, ..Io::default() });
}
