//! Whatever is gathered, drained, and fails: readers see what was written.

use super::*;
use crate::storage::MemStorage;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Memory that passes for a disk: it counts calls and fails on demand.
#[derive(Default)]
pub(super) struct Counting {
    memory: MemStorage,
    writes: Mutex<Vec<(u64, usize)>>,
    reads: Mutex<Vec<(u64, usize)>>,
    /// Writes that still succeed, plus one; 0 means all.
    fail_at: AtomicUsize,
}

impl Counting {
    pub(super) fn take_writes(&self) -> Vec<(u64, usize)> {
        std::mem::take(&mut *self.writes.lock().expect("no panic"))
    }

    fn take_reads(&self) -> Vec<(u64, usize)> {
        std::mem::take(&mut *self.reads.lock().expect("no panic"))
    }

    fn fail_after(&self, writes_count: usize) {
        self.fail_at.store(writes_count + 1, Ordering::SeqCst);
    }

    fn heal(&self) {
        self.fail_at.store(0, Ordering::SeqCst);
    }
}

impl Storage for Counting {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.reads.lock().expect("no panic").push((offset, buf.len()));
        self.memory.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        match self.fail_at.load(Ordering::SeqCst) {
            0 => {}
            1 => return Err(io::ErrorKind::StorageFull.into()),
            more => self.fail_at.store(more - 1, Ordering::SeqCst),
        }
        self.writes.lock().expect("no panic").push((offset, buf.len()));
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

/// All there is to read, through `behind`.
fn content(behind: &WriteBehind, storage: &Counting) -> Vec<u8> {
    let stored = storage.len().expect("has a length");
    let len = usize::try_from(stored.max(behind.look().end())).expect("small");
    let mut buf = vec![0xEE; len + 1];
    assert_eq!(behind.read(storage, &mut buf, 0).expect("reads"), len);
    buf.truncate(len);
    buf
}

#[test]
fn a_megabyte_of_small_writes_in_a_row_is_one_call() {
    let (behind, storage) = (WriteBehind::new(), Counting::default());
    let piece = [7; 4_000];
    for offset in (0..1_052_000).step_by(4_000) {
        behind.write(&storage, &piece, offset).expect("gathers");
    }
    assert_eq!(storage.take_writes(), [(0, 1_052_000)]);
    behind.drain(&storage).expect("drains");
    assert_eq!(content(&behind, &storage), storage.memory.to_vec());
}

#[test]
fn memory_is_used_again_while_bytes_stream_and_given_back_by_a_full_drain() {
    let (behind, storage) = (WriteBehind::new(), Counting::default());
    let mut memory = Vec::new();
    for row in 0..3_u8 {
        let start = u64::from(row) * 2_000_003;
        for offset in (start..).step_by(4_000).take(300) {
            behind.write(&storage, &[row; 4_000], offset).expect("gathers");
        }
        memory.push(behind.look().pending.address());
        assert_eq!(storage.take_writes(), [(start, 1_052_000)], "the rest is pending");
        behind.drain_from(&storage, 1).expect("drains");
        assert_eq!(storage.take_writes(), [(start + 1_052_000, 148_000)]);
        assert!(behind.look().spare.capacity() > 1 << 20);
    }
    assert!(memory.iter().all(|&address| address == memory[0]), "one memory: {memory:?}");
    behind.drain(&storage).expect("nothing is left");
    assert_eq!(behind.look().spare.capacity(), 0);
    for row in 0..3_u8 {
        let start = usize::from(row) * 2_000_003;
        assert_eq!(storage.memory.to_vec()[start..start + 1_200_000], vec![row; 1_200_000]);
    }
}

#[test]
fn large_writes_go_straight_through_unless_they_lie_over_gathered_bytes() {
    let (behind, storage) = (WriteBehind::new(), Counting::default());
    behind.write(&storage, b"small", 99_998).expect("gathers");
    behind.write(&storage, &vec![1; 65_536], 0).expect("writes");
    assert_eq!(storage.take_writes(), [(0, 65_536)]);
    behind.write(&storage, &vec![2; 65_536], 65_536).expect("gathers");
    assert_eq!(storage.take_writes(), []);
    assert_eq!(content(&behind, &storage)[99_990..100_010], [2; 20]);
    behind.drain(&storage).expect("drains");
    assert_eq!(storage.take_writes(), [(65_536, 65_536)]);
    behind.drain(&storage).expect("nothing is left");
    assert_eq!(storage.take_writes(), []);
}

#[test]
fn memory_is_written_at_once() {
    let (behind, storage) = (WriteBehind::new(), MemStorage::new());
    behind.write(&storage, b"a", 1).expect("writes");
    assert_eq!(storage.to_vec(), b"\0a");
    assert!(!behind.is_occupied());
}

#[test]
fn a_read_asks_the_storage_once_or_not_at_all() {
    let (behind, storage) = (WriteBehind::new(), Counting::default());
    storage.memory.write_at(&[b'.'; 100], 0).expect("memory");
    for offset in [10, 30, 50] {
        behind.write(&storage, b"0123456789", offset).expect("gathers");
    }
    let mut buf = [0; 100];
    let cases = [
        (12..18, vec![]),
        (0..15, vec![(0, 10)]),
        (5..65, vec![(5, 60)]),
        (15..35, vec![(20, 10)]),
        (15..55, vec![(20, 30)]),
    ];
    let expected = b"..........0123456789..........0123456789..........0123456789........................................";
    for (range, reads) in cases {
        let buf = &mut buf[..range.len()];
        assert_eq!(behind.read(&storage, buf, range.start as u64).expect("reads"), range.len());
        assert_eq!(buf, &expected[range]);
        assert_eq!(storage.take_reads(), reads);
    }
}

#[test]
fn gathered_bytes_past_the_end_extend_the_storage_with_zeros() {
    let (behind, storage) = (WriteBehind::new(), Counting::default());
    behind.write(&storage, b"end", 20).expect("gathers");
    assert_eq!(storage.len().expect("memory"), 0);
    assert_eq!(content(&behind, &storage), b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0end");
    let mut buf = [9; 8];
    for (offset, expected) in [(2, 8), (18, 5), (23, 0), (30, 0), (u64::MAX, 0)] {
        assert_eq!(behind.read(&storage, &mut buf, offset).expect("reads"), expected);
    }
}

#[test]
fn a_failed_drain_keeps_what_is_not_written_under_newer_bytes() {
    let (behind, storage) = (WriteBehind::new(), Counting::default());
    behind.write(&storage, b"first", 0).expect("gathers");
    behind.write(&storage, b"second", 100).expect("gathers");
    storage.fail_after(1);
    let error = behind.drain(&storage).expect_err("the second call fails");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(storage.take_writes(), [(0, 5)]);
    behind.write(&storage, b"SEC", 100).expect("gathers");
    assert_eq!(&content(&behind, &storage)[100..], b"SECond");
    storage.heal();
    behind.drain(&storage).expect("drains");
    assert_eq!(storage.take_writes(), [(100, 6)], "only what was left");
    assert_eq!(&storage.memory.to_vec()[100..], b"SECond");
}

#[test]
fn a_full_memory_reports_the_failure_and_keeps_the_bytes() {
    let limits = Limits { direct: 1_000, drain: 100, extent: 200 };
    let (behind, storage) = (WriteBehind::with_limits(limits), Counting::default());
    storage.fail_after(0);
    behind.write(&storage, &[1; 30], 0).expect("gathers");
    behind.write(&storage, &[2; 30], 30).expect_err("full, and the drain fails");
    assert_eq!(content(&behind, &storage), [[1; 30], [2; 30]].concat());
    storage.heal();
    behind.write(&storage, &[3; 30], 60).expect("drains");
    assert_eq!(storage.memory.to_vec(), [[1; 30], [2; 30], [3; 30]].concat());
}

#[derive(Clone, Debug)]
enum Op {
    Write { offset: u64, len_bytes: usize, fill: u8 },
    Drain,
    DrainAndCut(u64),
}

fn op() -> impl Strategy<Value = (Op, Option<usize>)> {
    let op = prop_oneof![
        6 => (0_u64..600, 1_usize..90, any::<u8>())
            .prop_map(|(offset, len_bytes, fill)| Op::Write { offset, len_bytes, fill }),
        1 => Just(Op::Drain),
        1 => (0_u64..700).prop_map(Op::DrainAndCut),
    ];
    // The second is the number of writes after which the storage fails.
    (op, prop::option::weighted(0.3, 0_usize..4))
}

proptest! {
    #[test]
    fn failing_drains_lose_nothing(ops in vec(op(), 1..60), from in 0_u64..700, len_bytes in 0_usize..200) {
        let limits = Limits { direct: 64, drain: 1_000, extent: 128 };
        let (behind, storage) = (WriteBehind::with_limits(limits), Counting::default());
        let mut model: Vec<u8> = Vec::new();
        for (op, fails) in ops {
            if let Some(writes_count) = fails {
                storage.fail_after(writes_count);
            }
            match op {
                Op::Write { offset, len_bytes, fill } => {
                    // A refused direct write is nobody's promise; a gathered one is kept.
                    let is_gathered = len_bytes < limits.direct
                        || behind.overlaps(offset..offset + len_bytes as u64);
                    let result = behind.write(&storage, &vec![fill; len_bytes], offset);
                    if is_gathered || result.is_ok() {
                        let start = usize::try_from(offset).expect("small");
                        model.resize(model.len().max(start + len_bytes), 0);
                        model[start..start + len_bytes].fill(fill);
                    }
                }
                Op::Drain => {
                    if behind.drain(&storage).is_ok() {
                        prop_assert_eq!(storage.memory.to_vec(), &model[..]);
                        prop_assert!(!behind.is_occupied());
                    }
                }
                Op::DrainAndCut(len) => {
                    if behind.drain(&storage).is_ok() {
                        let len = len.min(model.len() as u64);
                        storage.set_len(len).expect("memory");
                        model.truncate(usize::try_from(len).expect("small"));
                    }
                }
            }
            storage.heal();
            prop_assert_eq!(&content(&behind, &storage), &model);
            let mut buf = vec![0xEE; len_bytes];
            let count = behind.read(&storage, &mut buf, from).expect("reads");
            let start = usize::try_from(from).expect("small").min(model.len());
            prop_assert_eq!(&buf[..count], &model[start..(start + len_bytes).min(model.len())]);
        }
        behind.drain(&storage).expect("healed");
        prop_assert_eq!(storage.memory.to_vec(), model);
    }
}

/// Says when a write of few bytes begins, and waits for leave to do it.
struct Gated {
    inner: Counting,
    begins: Mutex<Sender<u64>>,
    leave: Mutex<Receiver<bool>>,
}

impl Storage for Gated {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        if buf.len() > 1_000 {
            return self.inner.write_at(buf, offset);
        }
        // Nobody may listen any more.
        let _ = self.begins.lock().expect("no panic").send(offset);
        if self.leave.lock().expect("no panic").recv().expect("the test gives leave") {
            self.inner.write_at(buf, offset)
        } else {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `meanwhile` while a drain of "old bytes" at 0 waits inside its write,
/// then lets that succeed or fail.
fn during_a_drain(
    succeeds: bool,
    meanwhile: impl FnOnce(&WriteBehind, &Gated),
) -> (WriteBehind, Gated) {
    let ((begins, begun), (give_leave, leave)) = (channel(), channel());
    let storage =
        Gated { inner: Counting::default(), begins: Mutex::new(begins), leave: Mutex::new(leave) };
    let behind = WriteBehind::new();
    behind.write(&storage, b"old bytes", 0).expect("gathers");
    thread::scope(|scope| {
        // If `meanwhile` panics, this goes away, and the drain does not wait for ever.
        let give_leave = give_leave;
        let drain = scope.spawn(|| behind.drain(&storage));
        assert_eq!(begun.recv().expect("the drain writes"), 0);
        meanwhile(&behind, &storage);
        give_leave.send(succeeds).expect("the drain waits");
        assert_eq!(drain.join().expect("no panic").is_ok(), succeeds);
        // Whatever comes later may write.
        for _ in 0..8 {
            give_leave.send(true).expect("the storage listens");
        }
    });
    (behind, storage)
}

#[test]
fn readers_and_writers_do_not_wait_for_a_drain() {
    for succeeds in [true, false] {
        let (behind, storage) = during_a_drain(succeeds, |behind, storage| {
            let mut buf = [0; 12];
            assert_eq!(behind.read(storage, &mut buf, 0).expect("reads"), 9);
            assert_eq!(&buf[..9], b"old bytes");
            behind.write(storage, b"new", 0).expect("gathers");
            assert_eq!(behind.read(storage, &mut buf, 0).expect("reads"), 9);
            assert_eq!(&buf[..9], b"new bytes");
            assert_eq!(behind.look().end(), 9);
        });
        let mut buf = [0; 12];
        assert_eq!(behind.read(&storage, &mut buf, 0).expect("reads"), 9);
        assert_eq!(&buf[..9], b"new bytes");
        behind.drain(&storage).expect("drains");
        assert_eq!(storage.inner.memory.to_vec(), b"new bytes");
    }
}

#[test]
fn a_large_write_over_bytes_in_flight_is_not_overtaken_by_them() {
    let (behind, storage) = during_a_drain(true, |behind, storage| {
        behind.write(storage, &vec![1; 65_536], 0).expect("gathers");
    });
    behind.drain(&storage).expect("drains");
    assert_eq!(storage.inner.memory.to_vec(), vec![1; 65_536]);
}

#[test]
fn a_panic_in_the_storage_loses_nothing() {
    let ((begins, begun), (give_leave, leave)) = (channel(), channel::<bool>());
    let broken =
        Gated { inner: Counting::default(), begins: Mutex::new(begins), leave: Mutex::new(leave) };
    drop(give_leave);
    let behind = WriteBehind::new();
    behind.write(&broken, b"bytes", 0).expect("gathers");
    let panics = thread::scope(|scope| scope.spawn(|| behind.drain(&broken)).join().is_err());
    assert!(panics && begun.recv().is_ok());
    behind.write(&broken, b"B", 0).expect("gathers");
    let storage = Counting::default();
    behind.drain(&storage).expect("drains");
    assert_eq!(storage.memory.to_vec(), b"Bytes");
}

#[test]
fn readers_never_go_back_in_time_during_drains() {
    const CELLS: u64 = 8;
    const ROUNDS: u64 = 3_000;
    let limits = Limits { direct: 64, drain: 200, extent: 64 };
    let (behind, storage) = (WriteBehind::with_limits(limits), Counting::default());
    let written: Vec<AtomicU64> = (0..CELLS).map(|_| AtomicU64::new(0)).collect();
    let read = |cell: u64| {
        let mut buf = [0; 8];
        let count = behind.read(&storage, &mut buf, cell * 16).expect("reads");
        if count < 8 { 0 } else { u64::from_le_bytes(buf) }
    };
    thread::scope(|scope| {
        for half in 0..2 {
            let (behind, storage, written) = (&behind, &storage, &written);
            scope.spawn(move || {
                for round in 1..=ROUNDS {
                    let cell = (round * 7 + half * 4) % 4 + half * 4;
                    behind.write(storage, &round.to_le_bytes(), cell * 16).expect("writes");
                    let index = usize::try_from(cell).expect("small");
                    written[index].store(round, Ordering::SeqCst);
                    if round % 5 == half {
                        behind.drain(storage).expect("drains");
                    }
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for step in 0..ROUNDS * 2 {
                    let cell = step % CELLS;
                    let index = usize::try_from(cell).expect("small");
                    let before = written[index].load(Ordering::SeqCst);
                    let seen = read(cell);
                    assert!(before <= seen && seen <= ROUNDS, "cell {cell}: {before}, then {seen}");
                }
            });
        }
    });
    behind.drain(&storage).expect("drains");
    for (cell, last) in (0..CELLS).zip(&written) {
        assert_eq!(read(cell), last.load(Ordering::SeqCst));
    }
}
