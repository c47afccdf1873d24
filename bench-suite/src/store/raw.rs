//! Plain calls: the same bytes to one file, one flush, `pread`, `memcpy`.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crc_fast::CrcAlgorithm;

use super::data::value;
use super::measure::time;
use crate::clock::{Spent, median};
use crate::rng::Rng;

/// Plain calls that a row is compared with.
pub struct Raw {
    /// Which row of the workload.
    pub row: usize,
    /// As the report calls it.
    pub name: &'static str,
    /// Does it once.
    pub round: Box<dyn FnMut() -> Spent>,
}

/// Name of [`Raw::sequential`].
pub const SEQUENTIAL: &str = "raw: sequential write, fdatasync";
/// Name of [`Raw::flushes`].
pub const FLUSH: &str = "raw: write in place, fdatasync";
/// Name of [`Raw::preads`] into the same memory each time.
pub const PREAD: &str = "raw: pread";
/// Name of [`Raw::preads`] into memory that is new each time.
pub const PREAD_NEW: &str = "raw: pread, new memory";
/// Name of [`Raw::preads`] with a checksum.
pub const PREAD_CRC: &str = "raw: pread, crc32c";
/// Bytes that `fs-store` has a checksum of, and has to read for a part of them.
pub const CHUNK: usize = 16 << 10;
/// Name of [`Raw::preads`] of a whole chunk with its checksum.
pub const PREAD_CHUNK: &str = "raw: pread, crc32c of 16 KiB";
/// Name of [`Raw::memcpy`].
pub const MEMCPY: &str = "raw: memcpy";

/// What is read from where.
#[derive(Clone, Copy, Debug)]
pub struct Preads {
    /// As the report calls it.
    pub name: &'static str,
    /// Bytes of the file.
    pub file_bytes: usize,
    /// Bytes of a read.
    pub len_bytes: usize,
    /// Reads a round.
    pub ops: usize,
}

impl Raw {
    /// Writes `ops` values of `len_bytes` to a new file, in writes of `piece`
    /// bytes, and flushes it once.
    pub fn sequential(row: usize, dir: &Path, ops: usize, len_bytes: usize, piece: usize) -> Self {
        let path = dir.join("raw-sequential");
        let round = move || {
            // A file that was not removed would be written over, which is another thing.
            let _ = fs::remove_file(&path);
            let ((), spent) = time(ops, || {
                let mut file = File::create_new(&path).expect("the file is new");
                for index in 0..ops * len_bytes / piece {
                    file.write_all(value(index, piece)).expect("writing works");
                }
                file.sync_data().expect("flushing works");
            });
            fs::remove_file(&path).expect("removing works");
            spent
        };
        Self { row, name: SEQUENTIAL, round: Box::new(round) }
    }

    /// Writes `len_bytes` over bytes of a file that were written before, and
    /// flushes; the middle of `ops` times.
    ///
    /// # Panics
    ///
    /// When the file cannot be written.
    pub fn flushes(row: usize, dir: &Path, ops: usize, len_bytes: usize) -> Self {
        let mut file = nameless(dir);
        for index in 0..ops {
            file.write_all(value(index, len_bytes)).expect("writing works");
        }
        file.sync_all().expect("flushing works");
        let round = move || {
            each(ops, |index| {
                let offset = (index * len_bytes) as u64;
                file.write_all_at(value(index + 1, len_bytes), offset).expect("writing works");
                file.sync_data().expect("flushing works");
            })
        };
        Self { row, name: FLUSH, round: Box::new(round) }
    }

    /// Reads at random multiples of the length of a read.
    ///
    /// # Panics
    ///
    /// When the file cannot be written.
    pub fn preads(row: usize, dir: &Path, of: Preads) -> Self {
        let Preads { name, file_bytes, len_bytes, ops } = of;
        let mut file = nameless(dir);
        for index in 0..file_bytes >> 20 {
            file.write_all(value(index, 1 << 20)).expect("writing works");
        }
        let mut rng = Rng::new(11);
        let places = (file_bytes >> 20 << 20) / len_bytes;
        let offsets: Vec<_> = (0..ops).map(|_| (rng.below(places) * len_bytes) as u64).collect();
        let mut kept = vec![0; len_bytes];
        let round = move || {
            let read = |buf: &mut [u8], offset| {
                file.read_exact_at(buf, offset).expect("reading works");
                if name == PREAD_CRC || name == PREAD_CHUNK {
                    black_box(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, buf));
                }
                black_box(&buf[0]);
            };
            let ((), spent) = time(ops, || {
                for &offset in &offsets {
                    if name == PREAD_NEW {
                        read(&mut vec![0; len_bytes], offset);
                    } else {
                        read(&mut kept, offset);
                    }
                }
            });
            spent
        };
        Self { row, name, round: Box::new(round) }
    }

    /// Copies values of `len_bytes` in memory.
    pub fn memcpy(row: usize, ops: usize, len_bytes: usize) -> Self {
        let mut to = vec![0; len_bytes];
        let round = move || {
            let ((), spent) = time(ops, || {
                for index in 0..ops {
                    to.copy_from_slice(value(index, len_bytes));
                    black_box(&to[0]);
                }
            });
            spent
        };
        Self { row, name: MEMCPY, round: Box::new(round) }
    }
}

/// A file that goes away with its handle.
fn nameless(dir: &Path) -> File {
    tempfile::tempfile_in(dir).expect("a file can be made")
}

/// The middle of the times that `work` takes for each of `ops`, as one operation.
pub fn each(ops: usize, mut work: impl FnMut(usize)) -> Spent {
    let (mut walls, mut cpus) = (Vec::with_capacity(ops), Vec::with_capacity(ops));
    for index in 0..ops {
        let ((), spent) = time(1, || work(index));
        walls.push(spent.wall_ns);
        cpus.push(spent.cpu_ns);
    }
    Spent { cpu_ns: median(&mut cpus), wall_ns: median(&mut walls), ops: 1 }
}
