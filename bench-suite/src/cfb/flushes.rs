//! Bytes that reach the storage when little has changed: counted, not timed.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cfb_format::{MemStorage, Storage};

use super::contestant::Version;
use super::measure::Options;
use super::work::size;
use crate::report::table::{Bound, Cell, Table};

/// Writes of 100 B, each flushed.
const COUNT: usize = 1_000;

/// Bytes written so far.
#[derive(Clone, Debug, Default)]
struct Count(Arc<AtomicU64>);

impl Count {
    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// A storage that looks like a file.
struct CountedStorage(MemStorage, Count);

impl Storage for CountedStorage {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.1.add(buf.len());
        self.0.write_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The same for the rival.
struct CountedIo(Cursor<Vec<u8>>, Count);

impl Read for CountedIo {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl Seek for CountedIo {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl Write for CountedIo {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.add(bytes.len());
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes a flush on average, and the most.
struct Written {
    average: f64,
    most: f64,
}

/// Writes 100 B and flushes, again and again.
fn written_by(stream: &mut impl Write, count: &Count) -> Written {
    count.take();
    let each: Vec<u64> = (0..COUNT)
        .map(|_| {
            stream.write_all(&[9; 100]).expect("memory can be written");
            stream.flush().expect("memory can be written");
            count.take()
        })
        .collect();
    let sum: u64 = each.iter().sum();
    let most = each.iter().copied().max().unwrap_or(0);
    Written { average: sum as f64 / COUNT as f64, most: most as f64 }
}

fn ours(version: Version, first: usize, in_place: bool) -> Written {
    let version = match version {
        Version::V3 => cfb_format::Version::V3,
        Version::V4 => cfb_format::Version::V4,
    };
    let count = Count::default();
    let storage = CountedStorage(MemStorage::new(), count.clone());
    let options = cfb_format::CreateOptions::new().version(version).in_place(in_place);
    let file = options.create_storage(storage).expect("memory can be written");
    let mut stream = file.create_stream("/a").expect("there is no other");
    stream.write_all(&vec![1; first]).expect("memory can be written");
    stream.flush().expect("memory can be written");
    written_by(&mut stream, &count)
}

fn rival(version: Version, first: usize) -> Written {
    let version = match version {
        Version::V3 => cfb::Version::V3,
        Version::V4 => cfb::Version::V4,
    };
    let count = Count::default();
    let io = CountedIo(Cursor::default(), count.clone());
    let mut file = cfb::CompoundFile::create_with_version(version, io).expect("memory");
    let mut stream = file.create_stream("/a").expect("there is no other");
    stream.write_all(&vec![1; first]).expect("memory can be written");
    stream.flush().expect("memory can be written");
    written_by(&mut stream, &count)
}

/// Counts and adds a table and its bounds.
pub fn measure(options: &Options, tables: &mut Vec<Table>, bounds: &mut Vec<Bound>) {
    if !options.wants("bytes written by flushes") {
        return;
    }
    options.say("bytes written by flushes");
    let mut table = Table::new(
        "Bytes written by a flush",
        "100 B are appended to a stream and flushed, 1,000 times. What changes is a sector of \
         data, one of the directory and sometimes one of the FAT; if nothing that was saved is \
         written over, also the FAT or MiniFAT each time, and the header.",
        &["after", "version", "atomic, average", "most", "in place", "most", "cfb 0.16", "most"],
    );
    for version in Version::ALL {
        for first in [0, 8_192] {
            let atomic = ours(version, first, false);
            let (in_place, rival) = (ours(version, first, true), rival(version, first));
            table.row(vec![
                Cell::Text(size(first as u64)),
                Cell::Text(format!("{version:?}")),
                atomic.average.into(),
                atomic.most.into(),
                in_place.average.into(),
                in_place.most.into(),
                rival.average.into(),
                rival.most.into(),
            ]);
            let sector_bytes = version.sector_bytes() as f64;
            let what = format!("bytes a flush of 100 B after {}, {version:?}", size(first as u64));
            let bound = 3.0 * sector_bytes;
            bounds.push(Bound::at_most(format!("{what}, in place"), in_place.average, bound));
            // Data, directory, FAT, MiniFAT, and the header.
            let bound = 4.0 * sector_bytes + 512.0;
            bounds.push(Bound::at_most(format!("{what}, atomic"), atomic.average, bound));
        }
    }
    tables.push(table);
}
