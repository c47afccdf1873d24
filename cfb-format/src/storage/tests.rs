//! Every storage does what a plain vector of bytes does.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};

#[derive(Clone, Debug)]
enum Op {
    Write { offset: u64, bytes: Vec<u8> },
    Read { offset: u64, len_bytes: usize },
    SetLen(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0_u64..300, vec(1_u8.., 0..60)).prop_map(|(offset, bytes)| Op::Write { offset, bytes }),
        3 => (0_u64..400, 0_usize..100).prop_map(|(offset, len_bytes)| Op::Read { offset, len_bytes }),
        1 => (0_u64..400).prop_map(Op::SetLen),
    ]
}

/// Does the same to `storage` and to a vector, comparing all there is to see.
fn agrees_with_a_vector(storage: &dyn Storage, ops: &[Op]) {
    let mut model: Vec<u8> = Vec::new();
    for op in ops {
        match op {
            Op::Write { offset, bytes } => {
                storage.write_at(bytes, *offset).expect("writes");
                let start = usize::try_from(*offset).expect("small");
                let end = start + bytes.len();
                if !bytes.is_empty() {
                    model.resize(model.len().max(end), 0);
                    model[start..end].copy_from_slice(bytes);
                }
            }
            Op::Read { offset, len_bytes } => {
                let mut buf = vec![0; *len_bytes];
                let count = storage.read_at(&mut buf, *offset).expect("reads");
                let start = usize::try_from(*offset).expect("small").min(model.len());
                let end = (start + len_bytes).min(model.len());
                assert_eq!(&buf[..count], &model[start..end]);
            }
            Op::SetLen(len) => {
                storage.set_len(*len).expect("sets its length");
                model.resize(usize::try_from(*len).expect("small"), 0);
            }
        }
        assert_eq!(storage.len().expect("has a length"), model.len() as u64);
        assert_eq!(storage.is_empty().expect("has a length"), model.is_empty());
    }
    let mut buf = vec![0; model.len() + 1];
    assert_eq!(storage.read_at(&mut buf, 0).expect("reads"), model.len());
    assert_eq!(&buf[..model.len()], model);
    storage.sync().expect("syncs");
}

/// Reads and writes at most three bytes a call, and is interrupted every other time.
struct Grudging {
    inner: Cursor<Vec<u8>>,
    calls_count: usize,
}

impl Grudging {
    fn new() -> Self {
        Self { inner: Cursor::new(Vec::new()), calls_count: 0 }
    }

    fn next_call(&mut self) -> io::Result<()> {
        self.calls_count += 1;
        if self.calls_count % 2 == 1 { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }
}

impl Read for Grudging {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.next_call()?;
        let count = buf.len().min(3);
        self.inner.read(&mut buf[..count])
    }
}

impl Write for Grudging {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.next_call()?;
        self.inner.write(&buf[..buf.len().min(3)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Grudging {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

fn truncate(inner: &mut Cursor<Vec<u8>>, len: u64) -> io::Result<()> {
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
    inner.get_mut().resize(len, 0);
    Ok(())
}

proptest! {
    #[test]
    fn storages_agree_with_a_vector(ops in vec(op(), 1..60)) {
        agrees_with_a_vector(&MemStorage::new(), &ops);
        agrees_with_a_vector(&Arc::new(MemStorage::new()), &ops);
        agrees_with_a_vector(&ReadWrite::new(Cursor::new(Vec::new())), &ops);
        agrees_with_a_vector(&ReadWrite::with_set_len(Cursor::new(Vec::new()), truncate), &ops);
        agrees_with_a_vector(&ReadWrite::new(Grudging::new()), &ops);
        agrees_with_a_vector(&tempfile::tempfile().expect("a temporary file"), &ops);
    }
}

#[test]
fn bytes_are_read_and_never_written() {
    let bytes: &[u8] = b"0123456789";
    let storages: [Box<dyn Storage>; 4] = [
        Box::new(bytes),
        Box::new(Arc::<[u8]>::from(bytes)),
        Box::new(Box::<[u8]>::from(bytes)),
        Box::new(ReadOnly::new(Cursor::new(bytes))),
    ];
    for storage in storages {
        let mut buf = [0; 4];
        for (offset, expected) in [(0, "0123"), (8, "89"), (10, ""), (11, ""), (u64::MAX, "")] {
            let count = storage.read_at(&mut buf, offset).expect("reads");
            assert_eq!(&buf[..count], expected.as_bytes());
        }
        for refusal in [storage.write_at(b"x", 0), storage.set_len(3), storage.set_len(11)] {
            let error = refusal.expect_err("read only");
            assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
        }
        assert_eq!(storage.len().expect("has a length"), 10);
        storage.sync().expect("nothing to do");
    }
}

#[test]
fn borrowed_bytes_are_lent_out_whole() {
    let bytes: &[u8] = b"0123456789";
    let lent = Storage::as_slice(&bytes).expect("in memory");
    assert!(std::ptr::eq(lent, bytes));
    assert!(Storage::as_slice(&MemStorage::new()).is_none(), "it can change");
    assert!(bytes.is_memory() && MemStorage::new().is_memory());
    assert!(!tempfile::tempfile().expect("a temporary file").is_memory());
}

#[test]
fn short_reads_and_interruptions_are_taken_in_stride() {
    let mut inner = Grudging::new();
    inner.inner.get_mut().extend_from_slice(b"0123456789");
    let storage = ReadOnly::new(inner);
    let mut buf = [0; 8];
    assert_eq!(storage.read_at(&mut buf, 1).expect("reads"), 8);
    assert_eq!(&buf, b"12345678");

    // Files, too, may give and take less than they could.
    let mut grudging = storage.into_inner();
    let count = read_full(&mut buf, 4, |buf, at| {
        grudging.inner.set_position(at);
        grudging.read(buf)
    });
    assert_eq!(count.expect("reads"), 6);
    assert_eq!(&buf[..6], b"456789");
    write_all(b"abcdefgh", 1, |buf, at| {
        grudging.inner.set_position(at);
        grudging.write(buf)
    })
    .expect("writes");
    assert_eq!(grudging.inner.get_ref(), b"0abcdefgh9");
    let refusal = write_all(b"ab", 0, |_, _| Ok(0)).expect_err("nothing is taken");
    assert_eq!(refusal.kind(), io::ErrorKind::WriteZero);
}

/// Counts seeks.
struct Seeks(Cursor<Vec<u8>>, usize);

impl Read for Seeks {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl Seek for Seeks {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.1 += 1;
        self.0.seek(to)
    }
}

#[test]
fn reading_on_does_not_seek() {
    let storage = ReadOnly::new(Seeks(Cursor::new(vec![7; 100]), 0));
    let mut buf = [0; 10];
    for offset in (0..100).step_by(10) {
        assert_eq!(storage.read_at(&mut buf, offset).expect("reads"), 10);
    }
    assert_eq!(storage.into_inner().1, 1);
}

#[test]
fn impossible_sizes_are_errors_and_change_nothing() {
    let storage = MemStorage::from(b"abc".to_vec());
    for offset in [u64::MAX, u64::MAX - 1, i64::MAX as u64] {
        let error = storage.write_at(b"x", offset).expect_err("no such memory");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        let error = storage.set_len(offset).expect_err("no such memory");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }
    assert_eq!(storage.to_vec(), b"abc");

    let file = tempfile::tempfile().expect("a temporary file");
    Storage::write_at(&file, b"abc", 0).expect("writes");
    let error = Storage::write_at(&file, b"x", u64::MAX).expect_err("no such offset");
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    assert_eq!(Storage::read_at(&file, &mut [0; 4], u64::MAX).expect("past the end"), 0);
    assert_eq!(Storage::len(&file).expect("has a length"), 3);
}

#[test]
fn last_handle_gives_the_vector_itself() {
    let bytes = Vec::with_capacity(1_000);
    let storage = MemStorage::from(bytes);
    let other = storage.clone();
    storage.write_at(b"abc", 0).expect("writes");
    assert_eq!(other.into_vec(), b"abc");
    assert_eq!(storage.into_vec().capacity(), 1_000, "no copy");
}
