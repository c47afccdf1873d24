//! Whatever is read, written and cut off: readers see what the storage has.

use super::*;
use crate::storage::MemStorage;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread;

/// Memory that passes for a disk, and remembers what was read.
#[derive(Default)]
struct Disk {
    memory: MemStorage,
    reads: Mutex<Vec<(u64, usize)>>,
    /// Called after the bytes of a read were taken and before it returns.
    during_read: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// Reads that reach past this byte fail; 0 means none.
    bad_from: AtomicU64,
}

impl Disk {
    fn cache_of(bytes: Vec<u8>) -> ReadCache<Self> {
        ReadCache::new(Self { memory: bytes.into(), ..Self::default() })
    }
}

impl Storage for Disk {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.reads.lock().expect("no panic").push((offset, buf.len()));
        let bad_from = self.bad_from.load(Ordering::Relaxed);
        if bad_from > 0 && offset + buf.len() as u64 > bad_from {
            return Err(io::Error::other("a bad sector"));
        }
        let count = self.memory.read_at(buf, offset)?;
        let meanwhile = self.during_read.lock().expect("no panic").take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.memory.write_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.memory.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.memory.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes of which no two stretches are alike.
fn sample(len: u32) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]).collect()
}

impl ReadCache<Disk> {
    fn take_reads(&self) -> Vec<(u64, usize)> {
        std::mem::take(&mut *self.inner().reads.lock().expect("no panic"))
    }

    /// Reads ahead, and compares with what the disk has.
    fn see(&self, offset: u64, len: usize) {
        let mut buf = vec![0xEE; len];
        let count = self.ahead().read_at(&mut buf, offset).expect("reads");
        assert_eq!(buf[..count], *expected(&self.inner().memory.to_vec(), offset, len));
    }
}

fn expected(bytes: &[u8], offset: u64, len: usize) -> &[u8] {
    let from = usize::try_from(offset).expect("small").min(bytes.len());
    &bytes[from..(from + len).min(bytes.len())]
}

#[test]
fn small_file_is_read_in_one_call() {
    let cache = Disk::cache_of(sample(100_001));
    cache.read_head(100_001).expect("reads");
    for offset in (0..101_000).step_by(777) {
        cache.see(offset, 2_000);
        let mut buf = [0; 10];
        cache.read_at(&mut buf, offset).expect("reads");
    }
    assert_eq!(cache.take_reads(), [(0, 100_001)]);
}

#[test]
fn blocks_double_while_reads_go_on_and_start_small_after_a_jump() {
    let cache = Disk::cache_of(sample(400_000));
    cache.read_head(400_000).expect("reads");
    for offset in (0..300_000).step_by(100) {
        cache.see(offset, 100);
    }
    // A piece that lies across the end of a block is read from its own start.
    let reads = cache.take_reads();
    let ends: Vec<u64> = reads.iter().map(|&(offset, len)| offset + len as u64).collect();
    assert_eq!(ends, [131_072, 135_168, 143_360, 159_744, 192_512, 258_048, 323_584]);
    let again = reads.windows(2).zip(&ends).map(|(pair, end)| end - pair[1].0).max();
    assert!(again < Some(100), "{reads:?}");
    cache.see(10_000, 64);
    cache.see(8_192, 4_000);
    cache.see(390_000, 64);
    assert_eq!(cache.take_reads(), [(8_192, 4_096), (389_120, 4_096)]);
}

#[test]
fn looking_never_moves_the_window() {
    let cache = Disk::cache_of(sample(200_000));
    cache.see(5_000, 10);
    let mut buf = [0; 10];
    cache.read_at(&mut buf, 150_000).expect("reads");
    cache.see(5_010, 10);
    assert_eq!(cache.take_reads(), [(4_096, 4_096), (150_000, 10)]);
}

#[test]
fn end_of_the_storage_is_known_until_something_is_written_behind_it() {
    let cache = Disk::cache_of(sample(5_000));
    cache.see(4_900, 500);
    cache.see(9_000, 500);
    assert_eq!(cache.take_reads(), [(4_096, 4_096)]);
    cache.write_at(b"more", 9_100).expect("writes");
    cache.see(9_000, 500);
    cache.see(4_900, 500);
    assert_eq!(cache.take_reads().len(), 2);
}

#[test]
fn bytes_that_a_write_overtook_are_not_kept() {
    let cache = Disk::cache_of(sample(50_000));
    let (in_read, has_read) = channel();
    let (go_on, may_go_on) = channel();
    *cache.inner().during_read.lock().expect("no panic") = Some(Box::new(move || {
        in_read.send(()).expect("the writer waits");
        may_go_on.recv().expect("the writer sends");
    }));
    let mut buf = [0; 100];
    thread::scope(|scope| {
        let reader = scope.spawn(|| cache.ahead().read_at(&mut buf, 20_000));
        has_read.recv().expect("the reader sends");
        cache.write_at(&[9; 100], 20_000).expect("writes");
        go_on.send(()).expect("the reader waits");
        reader.join().expect("no panic").expect("reads");
    });
    assert_eq!(buf, sample(50_000)[20_000..20_100], "old bytes, asked for before the write");
    cache.see(20_000, 100);
}

#[test]
fn block_that_cannot_be_read_does_not_cost_the_bytes_that_can() {
    let cache = Disk::cache_of(sample(50_000));
    cache.inner().bad_from.store(10_000, Ordering::Relaxed);
    cache.see(9_000, 500);
    assert_eq!(cache.take_reads(), [(8_192, 4_096), (9_000, 500)]);
    let error = cache.ahead().read_at(&mut [0; 500], 9_900).expect_err("these are bad");
    assert_eq!(error.to_string(), "a bad sector");
}

#[test]
fn memory_is_passed_straight_through() {
    let cache = ReadCache::new(MemStorage::from(sample(9_000)));
    cache.read_head(9_000).expect("reads");
    let mut buf = [0; 50];
    cache.ahead().read_at(&mut buf, 100).expect("reads");
    assert_eq!(buf, sample(9_000)[100..150]);
    assert!(cache.look().bytes.is_empty());
}

#[derive(Clone, Debug)]
enum Op {
    Head,
    Look { offset: u64, len: usize },
    Ahead { offset: u64, len: usize },
    On { len: usize },
    Write { offset: u64, len: usize, byte: u8 },
    SetLen { len: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    let place = || (0..300_000_u64, 0..5_000_usize);
    prop_oneof![
        1 => Just(Op::Head),
        3 => place().prop_map(|(offset, len)| Op::Look { offset, len }),
        6 => place().prop_map(|(offset, len)| Op::Ahead { offset, len }),
        6 => (0..70_000_usize).prop_map(|len| Op::On { len }),
        2 => (place(), any::<u8>())
            .prop_map(|((offset, len), byte)| Op::Write { offset, len, byte }),
        1 => (0..300_000_u64).prop_map(|len| Op::SetLen { len }),
    ]
}

proptest! {
    #[test]
    fn every_read_gives_what_plain_bytes_have(len in 0..250_000_u32, ops in vec(op(), 1..60)) {
        let cache = Disk::cache_of(sample(len));
        let mut plain = sample(len);
        let mut last = 0;
        for op in ops {
            match op {
                Op::Head => cache.read_head(plain.len() as u64).expect("reads"),
                Op::Look { offset, len } => {
                    let mut buf = vec![0xEE; len];
                    let count = cache.read_at(&mut buf, offset).expect("reads");
                    prop_assert_eq!(&buf[..count], expected(&plain, offset, len));
                }
                Op::Ahead { offset, len } => {
                    cache.see(offset, len);
                    last = offset + len as u64;
                }
                Op::On { len } => {
                    cache.see(last, len);
                    last += len as u64;
                }
                Op::Write { offset, len, byte } => {
                    cache.write_at(&vec![byte; len], offset).expect("writes");
                    let offset = usize::try_from(offset).expect("small");
                    if len > 0 {
                        plain.resize(plain.len().max(offset + len), 0);
                        plain[offset..offset + len].fill(byte);
                    }
                }
                Op::SetLen { len } => {
                    cache.set_len(len).expect("works");
                    plain.resize(usize::try_from(len).expect("small"), 0);
                }
            }
            let window = cache.look();
            prop_assert!(window.bytes.len() <= HEAD_BYTES);
            prop_assert_eq!(
                &window.bytes[..],
                expected(&plain, window.start, window.bytes.len())
            );
            drop(window);
            prop_assert_eq!(cache.inner().memory.to_vec(), &plain[..]);
        }
    }
}

#[test]
fn reader_never_sees_bytes_older_than_a_write_it_knows_of() {
    const SLOTS: u64 = 1_000;
    let cache = Disk::cache_of(vec![0; 64 * 1_000]);
    let done = AtomicBool::new(false);
    // The number of the last round that was written to every slot.
    let written = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..2_u64 {
            let (cache, done, written) = (&cache, &done, &written);
            scope.spawn(move || {
                let mut slot = thread * 500;
                while !done.load(Ordering::Acquire) {
                    let round = written.load(Ordering::Acquire);
                    let mut buf = [0; 8];
                    cache.ahead().read_at(&mut buf, slot * 64).expect("reads");
                    let seen = u64::from_le_bytes(buf);
                    assert!(seen >= round, "slot {slot}: {seen} after round {round}");
                    slot = (slot * 7 + 1 + thread) % SLOTS;
                }
            });
        }
        for round in 1..=60_u64 {
            for slot in 0..SLOTS {
                cache.write_at(&round.to_le_bytes(), slot * 64).expect("writes");
            }
            written.store(round, Ordering::Release);
        }
        done.store(true, Ordering::Release);
    });
    cache.see(0, 64_000);
}
