//! Damages files in known ways and measures how much of their streams each reader gives back: the table of the README.
//!
//! ```sh
//! cargo run --release -p cfb-format --example rescue_table
//! ```
//!
//! Beside `cfb_format::repair`: crate `cfb`, and olefile and 7-Zip where they are installed (`CFB_PYTHON` names a Python
//! that has olefile; `7zz` or `7z` in the `PATH`).

#![allow(clippy::cast_possible_truncation, reason = "the files are small by construction")]

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cfb_format::{
    CompoundFile, CreateOptions, Entry, MemStorage, Recovery, RepairOptions, Version, repair,
};

/// Streams by path.
type Streams = BTreeMap<String, Vec<u8>>;

/// A sound file, its streams, and where their bytes are.
struct Sample {
    bytes: Vec<u8>,
    streams: Streams,
    places: BTreeMap<String, Vec<(usize, usize)>>,
    sector: usize,
    fat: Vec<usize>,
    difat: Vec<usize>,
    mini_fat: Vec<usize>,
    dir: Vec<usize>,
}

fn content(seed: usize, len: usize) -> Vec<u8> {
    let mut state = (seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let bytes = (0..len).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    });
    bytes.collect()
}

impl Sample {
    /// A file of storages and streams of all sizes; `turns` for streams that grew by turns and lie in pieces.
    fn new(version: Version, turns: bool, scale: usize) -> Self {
        let memory = MemStorage::new();
        let file = CreateOptions::new().version(version).create_storage(memory.clone()).unwrap();
        let sizes = [0, 20, 300, 1500, 4095, 4096, 9000, 30_000, 90_000, 250_000];
        let mut streams = Vec::new();
        for (nth, storage) in ["", "Documents/", "Documents/2026/", "Pictures/"].iter().enumerate()
        {
            if !storage.is_empty() {
                file.create_storage(storage.trim_end_matches('/')).unwrap();
            }
            for (at, size) in sizes.iter().enumerate() {
                let len = if *size > 80_000 { size * scale } else { *size };
                streams.push((format!("{storage}stream {nth}{at}"), content(nth * 10 + at, len)));
            }
        }
        if turns {
            for round in 0..8 {
                for (path, bytes) in &streams {
                    let piece = bytes.len().div_ceil(8);
                    let from = (round * piece).min(bytes.len());
                    let to = ((round + 1) * piece).min(bytes.len());
                    let stream = match round {
                        0 => file.create_stream(path).unwrap(),
                        _ => file.open_stream(path.as_str()).unwrap(),
                    };
                    stream.write_at(&bytes[from..to], from as u64).unwrap();
                }
                file.flush().unwrap();
            }
        } else {
            for (path, bytes) in &streams {
                file.write_stream(path, bytes).unwrap();
            }
        }
        file.flush().unwrap();
        let extents = |path: &str| {
            let extents = file.open_stream(path).unwrap().extents().unwrap();
            extents.iter().map(|e| (e.offset as usize, e.len_bytes as usize)).collect()
        };
        let places = streams.iter().map(|(path, _)| (path.clone(), extents(path))).collect();
        let bytes = memory.to_vec();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let sector = version.sector_bytes() as usize;
        let at = |sector_number: u32| (sector_number as usize + 1) * sector;
        let mut fat: Vec<usize> =
            (0..109).map(|n| word(0x4C + 4 * n)).filter(|&n| n < 0xFFFF_FFFA).map(at).collect();
        let mut difat = Vec::new();
        let mut next = word(0x44);
        while next < 0xFFFF_FFFA {
            difat.push(at(next));
            let named = (0..sector / 4 - 1).map(|n| word(at(next) + 4 * n));
            fat.extend(named.filter(|&n| n < 0xFFFF_FFFA).map(at));
            next = word(at(next) + sector - 4);
        }
        let chain = |first: u32| {
            let (mut next, mut chain) = (first, Vec::new());
            while next < 0xFFFF_FFFA {
                chain.push(at(next));
                let n = next as usize;
                next = word(fat[n / (sector / 4)] + n % (sector / 4) * 4);
            }
            chain
        };
        let (dir, mini_fat) = (chain(word(0x30)), chain(word(0x3C)));
        Self {
            streams: streams.into_iter().collect(),
            places,
            sector,
            dir,
            mini_fat,
            difat,
            fat,
            bytes,
        }
    }
}

/// What is done to a file; gives its bytes after that.
type Damage = fn(&Sample) -> Vec<u8>;

fn zeroed(sample: &Sample, places: &[usize]) -> Vec<u8> {
    let mut bytes = sample.bytes.clone();
    for &at in places {
        bytes[at..at + sample.sector].fill(0);
    }
    bytes
}

fn noise(sample: &Sample, at: usize, len: usize) -> Vec<u8> {
    let mut bytes = sample.bytes.clone();
    bytes[at..at + len].copy_from_slice(&content(at, len));
    bytes
}

const DAMAGES: [(&str, Damage); 18] = [
    ("none", |s| s.bytes.clone()),
    ("header: all of it zero", |s| zeroed(s, &[0])),
    ("header: version and sector size", |s| noise(s, 0x18, 10)),
    ("header: start of the directory", |s| noise(s, 0x30, 4)),
    ("header: start of the MiniFAT", |s| noise(s, 0x3C, 4)),
    ("header: list of FAT sectors", |s| noise(s, 0x4C, 436)),
    ("DIFAT sectors: zero", |s| zeroed(s, &s.difat)),
    ("FAT: 64 bytes of noise", |s| noise(s, s.fat[0] + 64, 64)),
    ("FAT: a sector zero", |s| zeroed(s, &s.fat[s.fat.len() / 2..=s.fat.len() / 2])),
    ("FAT: all of it zero", |s| zeroed(s, &s.fat)),
    ("MiniFAT: all of it zero", |s| zeroed(s, &s.mini_fat)),
    ("directory: the root entry", |s| noise(s, s.dir[0], 128)),
    ("directory: a sector of noise", |s| noise(s, s.dir[s.dir.len() / 2], s.sector)),
    ("directory: two entries swapped", |s| {
        let mut bytes = s.bytes.clone();
        for at in 0..128 {
            bytes.swap(s.dir[0] + 128 + at, s.dir[0] + 256 + at);
        }
        bytes
    }),
    ("directory: all of it zero", |s| zeroed(s, &s.dir)),
    ("header and FAT: all zero", |s| zeroed(s, &[&[0], &s.fat[..]].concat())),
    ("cut to three quarters", |s| s.bytes[..s.bytes.len() / 4 * 3].to_vec()),
    ("cut to a quarter", |s| s.bytes[..s.bytes.len() / 4].to_vec()),
];

/// Bytes of the streams that the damage does not touch, and how many of them a reader gave.
#[derive(Clone, Copy, Default)]
struct Share {
    whole: u64,
    got: u64,
    /// Of these, not vouched for.
    guessed: u64,
}

fn score(sample: &Sample, damaged: &[u8], read: &Streams, share: &mut Share) {
    for (path, original) in &sample.streams {
        let places = &sample.places[path];
        let touched = places
            .iter()
            .any(|&(at, len)| damaged.get(at..at + len) != Some(&sample.bytes[at..at + len]));
        if touched || original.is_empty() {
            continue;
        }
        let same = |content: &Vec<u8>| content.iter().zip(original).filter(|(a, b)| a == b).count();
        let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
        let named =
            read.iter().filter(|(other, _)| name(other) == name(path)).map(|row| same(row.1));
        let alike = read.values().filter(|content| content.get(..16) == original.get(..16));
        let best = named.chain(alike.map(same)).max().unwrap_or(0);
        share.whole += original.len() as u64;
        // Chance alone gives one byte in 256.
        share.got += if best * 50 < original.len() { 0 } else { best as u64 };
    }
}

fn by_repair(damaged: &[u8], share: &mut Share) -> Streams {
    let target = MemStorage::new();
    let Ok(report) = repair(damaged, target.clone(), &RepairOptions::new()) else {
        return Streams::new();
    };
    let file = CompoundFile::from_storage(target).unwrap();
    for stream in report.streams().iter().filter(|s| s.recovery() == Recovery::Guessed) {
        let ranges = stream.guessed().iter().chain(stream.doubtful());
        share.guessed += ranges.map(|range| range.end - range.start).sum::<u64>().min(stream.len());
    }
    let streams = file.walk().filter(Entry::is_stream);
    streams.map(|entry| (entry.path().to_owned(), file.read_stream(&entry).unwrap())).collect()
}

fn by_crate_cfb(damaged: &[u8]) -> Streams {
    let read = || {
        let mut streams = Streams::new();
        let mut file = cfb::CompoundFile::open(Cursor::new(damaged)).ok()?;
        let paths: Vec<_> =
            file.walk().filter(cfb::Entry::is_stream).map(|e| e.path().to_owned()).collect();
        for path in paths {
            let mut bytes = Vec::new();
            if let Ok(stream) = file.open_stream(&path) {
                // What comes before an error counts.
                let _ = stream.take(1 << 30).read_to_end(&mut bytes);
            }
            streams.insert(path.to_string_lossy().into_owned(), bytes);
        }
        Some(streams)
    };
    catch_unwind(AssertUnwindSafe(read)).ok().flatten().unwrap_or_default()
}

const OLEFILE: &str = "
import os, sys
import olefile
ole = olefile.OleFileIO(sys.argv[1])
for nth, path in enumerate(ole.listdir()):
    try:
        data = ole.openstream(path).read()
    except Exception:
        continue
    with open(os.path.join(sys.argv[2], '%d-%s' % (nth, path[-1])), 'wb') as out:
        out.write(data)
";

/// Runs a tool that leaves streams as files in a folder. One that does not end is ended.
fn by_tool(mut command: Command, folder: &Path) -> Streams {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("it ran before");
    let started = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if started.elapsed() > Duration::from_secs(30) {
            child.kill().expect("a child");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut streams = Streams::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                let name = path.file_name().expect("a file").to_string_lossy().into_owned();
                let name = name.split_once('-').map_or(name.clone(), |(_, name)| name.to_owned());
                streams.insert(format!("{}/{name}", streams.len()), bytes);
            }
        }
    }
    streams
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

fn main() {
    let python = std::env::var("CFB_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let olefile = runs(&python, &["-c", "import olefile"]);
    let seven_zip = ["7zz", "7z"].into_iter().find(|program| runs(program, &["i"]));
    let samples = [
        Sample::new(Version::V3, false, 1),
        Sample::new(Version::V3, true, 1),
        Sample::new(Version::V3, false, 16),
        Sample::new(Version::V4, false, 1),
        Sample::new(Version::V4, true, 1),
    ];
    // From here on, a panic is the result of another reader.
    std::panic::set_hook(Box::new(|_| {}));
    let mut out = std::io::stdout().lock();
    let mut line = |text: &str| writeln!(out, "{text}").expect("somebody reads");
    line("| damage | `repair` | of it guessed | olefile | 7-Zip | crate `cfb` |");
    line("|---|--:|--:|--:|--:|--:|");
    for (what, damage) in DAMAGES {
        let mut rows: Vec<[Share; 4]> = Vec::new();
        for sample in &samples {
            let mut shares = [Share::default(); 4];
            let damaged = damage(sample);
            let folder = tempfile::tempdir().expect("a temporary folder");
            let path = folder.path().join("damaged");
            std::fs::write(&path, &damaged).expect("the disk takes it");
            let read = by_repair(&damaged, &mut shares[0]);
            score(sample, &damaged, &read, &mut shares[0]);
            if olefile {
                let to = folder.path().join("ole");
                std::fs::create_dir(&to).expect("a folder");
                let mut command = Command::new(&python);
                command.args(["-c", OLEFILE]).args([&path, &to]);
                score(sample, &damaged, &by_tool(command, &to), &mut shares[1]);
            }
            if let Some(program) = seven_zip {
                let to = folder.path().join("7z");
                std::fs::create_dir(&to).expect("a folder");
                let mut command = Command::new(program);
                command.args(["x", "-y", "-tCompound"]);
                command.arg(format!("-o{}", to.display())).arg(&path);
                score(sample, &damaged, &by_tool(command, &to), &mut shares[2]);
            }
            score(sample, &damaged, &by_crate_cfb(&damaged), &mut shares[3]);
            rows.push(shares);
        }
        // The mean over the files, in thousandths: a large file counts like a small one.
        let mean = |part: fn(Share) -> u64, reader: usize| {
            let shares = rows.iter().map(|row| row[reader]).filter(|share| share.whole > 0);
            let parts: Vec<u64> = shares.map(|share| part(share) * 1000 / share.whole).collect();
            let mean = parts.iter().sum::<u64>() / (parts.len() as u64).max(1);
            format!("{}.{} %", mean / 10, mean % 10)
        };
        let cell = |reader: usize, is_there: bool| {
            if is_there { mean(|share| share.got, reader) } else { "-".to_owned() }
        };
        line(&format!(
            "| {what} | {} | {} | {} | {} | {} |",
            cell(0, true),
            mean(|share| share.guessed.min(share.got), 0),
            cell(1, olefile),
            cell(2, seven_zip.is_some()),
            cell(3, true)
        ));
    }
}
