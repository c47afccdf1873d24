//! Files from the wild: each opened, listed and read to the last byte.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use super::base::Medium;
use super::measure::{Options, Row, Times};
use super::work::{Target, grouped};
use crate::clock::Clock;

/// One file of the corpus.
struct Sample {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// Everything below `dir`.
fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

/// Streams and bytes of them that could be read.
type Found = (u64, u64);

fn read_ours<S: cfb_format::Storage>(storage: S, buf: &mut Vec<u8>) -> Option<Found> {
    let file = cfb_format::OpenOptions::new().open_storage(storage).ok()?;
    let (mut streams, mut bytes) = (0, 0);
    for entry in file.walk().filter(cfb_format::Entry::is_stream) {
        buf.clear();
        if let Ok(mut stream) = file.open_stream(&entry) {
            // An error ends one damaged stream.
            let _ = stream.read_to_end(buf);
        }
        streams += 1;
        bytes += black_box(&*buf).len() as u64;
    }
    Some((streams, bytes))
}

fn read_rival<F: Read + Seek>(io: F, buf: &mut Vec<u8>) -> Option<Found> {
    let mut file = cfb::CompoundFile::open(io).ok()?;
    let entries: Vec<_> = file.walk().filter(cfb::Entry::is_stream).collect();
    let (mut streams, mut bytes) = (0, 0);
    for entry in entries {
        buf.clear();
        if let Ok(mut stream) = file.open_stream(entry.path()) {
            let _ = stream.read_to_end(buf);
        }
        streams += 1;
        bytes += black_box(&*buf).len() as u64;
    }
    Some((streams, bytes))
}

/// Adds up what `read` finds in all samples.
fn all(samples: &[Sample], mut read: impl FnMut(&Sample) -> Option<Found>) -> Found {
    samples
        .iter()
        .filter_map(&mut read)
        .fold((0, 0), |sum, found| (sum.0 + found.0, sum.1 + found.1))
}

/// Times the three on one medium.
fn row(options: &Options, clock: &Clock, samples: &[Sample], medium: Medium) -> Row {
    let (mut ours, mut rival, mut raw) = (Times::default(), Times::default(), Times::default());
    let count = samples.len() as u64;
    let mut buf = Vec::new();
    let open = |sample: &Sample| File::open(&sample.path).expect("it was read before");
    let mut found = [(0, 0); 2];
    for round in 0..=options.rounds {
        let (ours_found, a) = clock.time(count, || match medium {
            Medium::Memory => all(samples, |sample| read_ours(&sample.bytes[..], &mut buf)),
            Medium::File => all(samples, |sample| read_ours(open(sample), &mut buf)),
        });
        let (rival_found, b) = clock.time(count, || match medium {
            Medium::Memory => {
                all(samples, |sample| read_rival(Cursor::new(&sample.bytes[..]), &mut buf))
            }
            Medium::File => all(samples, |sample| read_rival(open(sample), &mut buf)),
        });
        let ((), c) = clock.time(count, || {
            for sample in samples {
                buf.clear();
                match medium {
                    Medium::Memory => buf.extend_from_slice(&sample.bytes),
                    Medium::File => {
                        open(sample).read_to_end(&mut buf).expect("it was read before");
                    }
                }
                black_box(&buf);
            }
        });
        found = [ours_found, rival_found];
        if round > 0 {
            ours.push(a);
            rival.push(b);
            raw.push(c);
        }
    }
    let [(streams, bytes), (rival_streams, rival_bytes)] = found;
    Row {
        part: "Corpus".to_owned(),
        name: format!("open, list and read {} files", grouped(count)),
        unit: "file".to_owned(),
        ops: count,
        medium,
        version: None,
        ours: ours.figure(),
        rival: rival.figure(),
        raw: raw.figure(),
        note: Some(format!(
            "cfb-format read {} B of {} streams, crate cfb {} B of {} streams",
            grouped(bytes),
            grouped(streams),
            grouped(rival_bytes),
            grouped(rival_streams)
        )),
        targets: vec![Target::faster("corpus", 3.0)],
    }
}

/// Measures the files below `dir` that both crates open.
pub fn measure(options: &Options, clock: &Clock, dir: &Path) -> Vec<Row> {
    if !options.wants("corpus") {
        return Vec::new();
    }
    options.say("corpus");
    let mut paths = Vec::new();
    files_below(dir, &mut paths);
    paths.sort();
    let mut buf = Vec::new();
    let mut samples = Vec::new();
    for path in paths {
        let Ok(bytes) = fs::read(&path) else { continue };
        let both = read_ours(&bytes[..], &mut buf).is_some()
            && read_rival(Cursor::new(&bytes[..]), &mut buf).is_some();
        if both {
            samples.push(Sample { path, bytes });
        }
    }
    if samples.is_empty() {
        return Vec::new();
    }
    [Medium::Memory, Medium::File].map(|medium| row(options, clock, &samples, medium)).into()
}
