//! Eight threads that write, read, delete, list, look at snapshots, fold and trim
//! at the same time see no wrong byte, do not stop one another for good, and
//! leave no sector behind.
//!
//! `FS_STORE_SOAK_SECONDS` sets how long they go on.

mod common;

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use common::Rng;
use fs_store::{
    Batch, DirDisk, Disk, Durability, Error, ListOptions, MemDisk, OpenOptions, PutOptions, Store,
};

const KEYS: u64 = 60;

fn key(number: u64) -> String {
    format!("{}/{number}", number % 4)
}

/// Bytes that tell the key they were put for, and are other ones each time.
fn value(key: u64, version: u64, len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(len + 16);
    let mut word = 0_u64;
    while out.len() < len {
        // Key and version in each 16 bytes: no part of another object passes.
        out.extend_from_slice(&(key << 48 | version).to_le_bytes());
        out.extend_from_slice(&(word ^ version.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_le_bytes());
        word += 1;
    }
    out.truncate(len);
    out
}

/// Sees that bytes are one of the values of their key, from `start` on.
fn expect_value(key: u64, bytes: &[u8], what: &str) {
    let Some(head) = bytes.first_chunk::<8>() else { return };
    let head = u64::from_le_bytes(*head);
    assert_eq!(head >> 48, key, "{what}: bytes of another key");
    let version = head & ((1 << 48) - 1);
    assert!(bytes == value(key, version, bytes.len()), "{what}: mixed bytes");
}

struct Soak {
    store: Store,
    versions: AtomicU64,
    until: Instant,
    counts: [AtomicU64; 10],
}

impl Soak {
    fn put(&self, rng: &mut Rng) -> fs_store::Result<()> {
        let number = rng.below(KEYS);
        let version = self.versions.fetch_add(1, Relaxed);
        let most = [500, 6000, 60_000, 700_000][usize::try_from(rng.below(4)).unwrap()];
        let value = value(number, version, usize::try_from(16 + rng.below(most)).unwrap());
        let durability = match rng.below(12) {
            0 => Durability::Sync,
            1 => Durability::Group,
            _ => Durability::Buffered,
        };
        let put = PutOptions::new().durability(durability);
        if rng.chance(3) {
            let mut writer = self.store.writer_with(key(number), &put)?;
            for piece in value.chunks(50_000) {
                writer.append(piece)?;
            }
            if !rng.chance(5) {
                writer.commit()?;
            }
        } else {
            self.store.put_with(key(number), &value, &put)?;
        }
        Ok(())
    }

    fn batch(&self, rng: &mut Rng) -> fs_store::Result<()> {
        let mut batch = Batch::new();
        for _ in 0..=rng.below(12) {
            let number = rng.below(KEYS);
            if rng.chance(3) {
                batch.delete(key(number));
            } else {
                let version = self.versions.fetch_add(1, Relaxed);
                let len = usize::try_from(16 + rng.below(9000)).unwrap();
                batch.put(key(number), value(number, version, len));
            }
        }
        // Two that always change together.
        let version = self.versions.fetch_add(1, Relaxed);
        let len = usize::try_from(16 + rng.below(3000)).unwrap();
        for number in [KEYS, KEYS + 1] {
            batch.put(key(number), value(number, version, len));
        }
        self.store.commit(batch)
    }

    fn read(&self, rng: &mut Rng) -> fs_store::Result<()> {
        let number = rng.below(KEYS);
        match rng.below(3) {
            0 => {
                if let Some(bytes) = self.store.get(key(number))? {
                    expect_value(number, &bytes, "get");
                }
            }
            1 => {
                let mut out = Vec::new();
                if self.store.get_into(key(number), &mut out)? {
                    expect_value(number, &out, "get_into");
                }
            }
            _ => {
                if let Some(mut reader) = self.store.reader(key(number))? {
                    let len = usize::try_from(reader.len()).unwrap();
                    let mut first = vec![0; len.min(100)];
                    reader.read_exact_at(&mut first, 0)?;
                    // The key goes on meanwhile; the reader does not.
                    if rng.chance(4) {
                        self.put(rng)?;
                    }
                    let mut all = Vec::new();
                    reader.read_to_end(&mut all).expect("it is whole");
                    assert_eq!(all.len(), len);
                    assert!(all.starts_with(&first), "a reader that moves on");
                    expect_value(number, &all, "reader");
                }
            }
        }
        Ok(())
    }

    fn look(&self, rng: &mut Rng) -> fs_store::Result<()> {
        let snapshot = self.store.snapshot();
        if rng.chance(3) {
            std::thread::sleep(Duration::from_millis(rng.below(5)));
        }
        let pair = [KEYS, KEYS + 1].map(|number| snapshot.get(key(number)));
        if let [Ok(Some(first)), Ok(Some(second))] = &pair {
            expect_value(KEYS, first, "snapshot");
            let version = |bytes: &[u8]| bytes[..6].to_vec();
            assert_eq!(version(first), version(second), "one batch, seen by halves");
        }
        for found in pair {
            found?;
        }
        let mut count = 0;
        for item in snapshot.list(&ListOptions::new())? {
            let item = item?;
            count += 1;
            if rng.chance(6) {
                let number = String::from_utf8_lossy(&item.key);
                let number = number.rsplit('/').next().unwrap().parse().unwrap();
                let bytes = snapshot.get(&item.key)?.expect("it is in the list");
                assert_eq!(bytes.len() as u64, item.stat.expect("asked for").len);
                expect_value(number, &bytes, "snapshot");
            }
        }
        assert_eq!(count, snapshot.len());
        Ok(())
    }

    fn work(&self, seed: u64) {
        let mut rng = Rng(seed);
        while Instant::now() < self.until {
            let kind = usize::try_from(rng.below(100)).unwrap();
            let (which, done) = match kind {
                0..25 => (0, self.put(&mut rng)),
                25..35 => (1, self.batch(&mut rng)),
                35..72 => (2, self.read(&mut rng)),
                72..82 => (3, self.store.delete(key(rng.below(KEYS))).map(drop)),
                82..92 => (4, self.look(&mut rng)),
                92..95 => {
                    // A value tells its number, which both names have.
                    let number = rng.below(KEYS);
                    let (name, other) = (key(number), format!("other/{number}"));
                    let moved = self.store.rename(&name, &other);
                    let back = moved.and_then(|()| self.store.rename(&other, &name));
                    (5, if matches!(back, Err(Error::NotFound { .. })) { Ok(()) } else { back })
                }
                95 => (6, self.store.trim().map(drop)),
                96 => (7, self.store.sync()),
                97 => (8, self.store.usage().map(drop)),
                _ => {
                    let report = self.store.verify(|_, _| {});
                    (9, report.map(|report| assert!(report.is_sound(), "{:?}", report.findings)))
                }
            };
            done.unwrap_or_else(|error| panic!("operation {which}: {error}"));
            self.counts[which].fetch_add(1, Relaxed);
        }
    }
}

fn soak(disk: impl Disk + Clone + 'static, sector_bytes: u32, seconds: u64) {
    let options = OpenOptions::new()
        .create(true)
        .sector_bytes(sector_bytes)
        .journal_bytes(128 << 10)
        .block_file_bytes(16 << 20)
        .cache_bytes(300_000);
    let soak = Soak {
        store: options.open_on(disk.clone()).unwrap(),
        versions: AtomicU64::new(1),
        until: Instant::now() + Duration::from_secs(seconds),
        counts: [const { AtomicU64::new(0) }; 10],
    };
    std::thread::scope(|scope| {
        for seed in 0..8 {
            let soak = &soak;
            scope.spawn(move || soak.work(seed));
        }
    });
    let counts = soak.counts.map(AtomicU64::into_inner);
    println!(
        "sectors of {sector_bytes}: puts, batches, reads, deletes, snapshots, renames, trims, syncs, usage, verify: {counts:?}"
    );
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    // Nobody is there any more: every sector is free or somebody's.
    let store = soak.store;
    for _ in 0..2 {
        store.sync().unwrap();
        let report = store.verify(|_, _| {}).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
    }
    let used = |store: &Store| {
        let usage = store.usage().unwrap();
        assert_eq!(usage.waiting_bytes, 0, "{usage:?}");
        (
            usage.objects,
            usage.object_bytes,
            usage.file_bytes - usage.free_bytes - usage.journal_bytes,
        )
    };
    let before = used(&store);
    store.close().unwrap();
    let store = options.open_on(disk).unwrap();
    assert_eq!(used(&store), before, "sectors that nobody owns");
    for item in store.list(&ListOptions::new()).unwrap() {
        store.delete(&item.unwrap().key).unwrap();
    }
    store.trim().unwrap();
    assert!(store.verify(|_, _| {}).unwrap().is_sound());
}

fn seconds() -> u64 {
    let seconds = std::env::var("FS_STORE_SOAK_SECONDS").ok();
    seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(3)
}

#[test]
fn eight_threads_on_a_disk_in_memory_see_no_wrong_byte() {
    soak(MemDisk::new(), 512, seconds());
}

#[test]
fn eight_threads_in_a_directory_see_no_wrong_byte() {
    let dir = tempfile::tempdir().unwrap();
    soak(DirDisk::new(dir.path()), 4096, seconds());
}

#[test]
fn a_reader_beside_the_writer_sees_no_wrong_byte_or_is_told() {
    let disk = MemDisk::new();
    let options = OpenOptions::new()
        .sector_bytes(512)
        .journal_bytes(64 << 10)
        .block_file_bytes(16 << 20)
        .cache_bytes(300_000);
    let soak = Soak {
        store: options.clone().create(true).open_on(disk.clone()).unwrap(),
        versions: AtomicU64::new(1),
        until: Instant::now() + Duration::from_secs(seconds()),
        counts: [const { AtomicU64::new(0) }; 10],
    };
    let (mut read, mut told) = (0_u64, 0_u64);
    std::thread::scope(|scope| {
        scope.spawn(|| soak.work(1));
        while Instant::now() < soak.until {
            let mut look = || -> fs_store::Result<()> {
                let store = options.clone().read_only(true).open_on(disk.clone())?;
                for number in 0..KEYS {
                    if let Some(bytes) = store.get(key(number))? {
                        expect_value(number, &bytes, "beside the writer");
                        read += 1;
                    }
                }
                for item in store.list(&ListOptions::new())? {
                    item?;
                }
                Ok(())
            };
            match look() {
                Ok(()) => {}
                Err(Error::ChangedUnderneath) => told += 1,
                Err(error) => panic!("{error}"),
            }
        }
    });
    println!("{read} objects read, {told} times told that the writer came between");
    assert!(read > 0);
}
