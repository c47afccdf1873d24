//! Sound files to be damaged, with everything that is in them.

use std::io::Write;

use cfb_format::{CreateOptions, FileTime, MemStorage, Version};
use uuid::Uuid;

use crate::common::raw::{Account, Build, Owner, inspect, kind, pattern};

/// A sound file and what is in it.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) account: Account,
    /// Path and content of every stream; no two have the same name.
    pub(crate) streams: Vec<(String, Vec<u8>)>,
}

impl Sample {
    fn new(name: &str, bytes: Vec<u8>) -> Self {
        let account = inspect(&bytes).expect_sound();
        let streams = account.items.iter().filter(|item| item.kind == kind::STREAM);
        let streams = streams.map(|item| item.path.clone()).collect::<Vec<_>>();
        let streams = streams.into_iter().map(|path| {
            let content = account.content(&bytes, &path);
            (path, content)
        });
        Self { name: name.to_owned(), streams: streams.collect(), bytes, account }
    }

    pub(crate) fn sector_bytes(&self) -> usize {
        self.account.sector_bytes as usize
    }

    /// Byte ranges of the sectors that one owner has.
    pub(crate) fn sectors_of(&self, owner: Owner) -> Vec<usize> {
        let owners = self.account.owners.iter().enumerate();
        let sectors = owners.filter(|(_, of)| **of == owner);
        sectors.map(|(sector, _)| (sector + 1) * self.sector_bytes()).collect()
    }

    /// Where each part of the FAT is.
    pub(crate) fn fat_places(&self) -> Vec<usize> {
        let word = |at: usize| u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap());
        let mut named: Vec<u32> = (0..109).map(|nth| word(0x4C + 4 * nth)).collect();
        let mut next = word(0x44);
        while next < 0xFFFF_FFFA {
            let at = (next as usize + 1) * self.sector_bytes();
            named.extend((0..self.sector_bytes() / 4 - 1).map(|nth| word(at + 4 * nth)));
            next = word(at + self.sector_bytes() - 4);
        }
        named.retain(|&sector| sector < 0xFFFF_FFFA);
        named.into_iter().map(|sector| (sector as usize + 1) * self.sector_bytes()).collect()
    }

    /// Where each part of the `MiniFAT` is.
    pub(crate) fn mini_fat_places(&self) -> Vec<usize> {
        self.chain_at(0x3C)
    }

    /// Where in the file each sector or mini sector of a stream is, with its length.
    pub(crate) fn places(&self, path: &str) -> Vec<(usize, usize)> {
        let item = self.account.item(path);
        let sector_bytes = self.sector_bytes();
        let place = |&unit: &u32| {
            let unit = unit as usize;
            if item.len < 4096 {
                let byte = unit * 64;
                let sector = self.account.mini_stream[byte / sector_bytes] as usize;
                ((sector + 1) * sector_bytes + byte % sector_bytes, 64)
            } else {
                ((unit + 1) * sector_bytes, sector_bytes)
            }
        };
        item.chain.iter().map(place).collect()
    }

    /// Where the slot of an entry is.
    pub(crate) fn slot_at(&self, slot: u32) -> usize {
        let sectors = self.directory();
        let per_sector = self.sector_bytes() / 128;
        sectors[slot as usize / per_sector] + slot as usize % per_sector * 128
    }

    /// Where the directory's sectors are, in its order.
    pub(crate) fn directory(&self) -> Vec<usize> {
        self.chain_at(0x30)
    }

    /// Where the sectors of the chain are whose start is a field of the header.
    fn chain_at(&self, field: usize) -> Vec<usize> {
        let first = u32::from_le_bytes(self.bytes[field..field + 4].try_into().unwrap());
        let (mut at, mut sectors) = (first, Vec::new());
        while at < 0xFFFF_FFFA {
            sectors.push((at as usize + 1) * self.sector_bytes());
            at = self.account.fat[at as usize];
        }
        sectors
    }
}

/// Nested storages, large and small streams, each in one piece.
pub(crate) fn plain(version: u16) -> Sample {
    let mut build = Build::new(version)
        .storage("Docs")
        .storage("Docs/Deep")
        .storage("Docs/Deep/Deeper")
        .storage("Pics")
        .stream("empty", &[])
        .stream("Docs/large", &pattern(1, 20_000))
        .stream("Docs/Deep/larger", &pattern(2, 33_333))
        .stream("Docs/Deep/Deeper/largest", &pattern(3, 70_000))
        .stream("Pics/at the cutoff", &pattern(4, 4096))
        .stream("Pics/below the cutoff", &pattern(5, 4095));
    for nth in 0..17 {
        let storage = ["", "Docs/", "Pics/", "Docs/Deep/Deeper/"][nth as usize % 4];
        let path = format!("{storage}small {nth}");
        build = build.stream(&path, &pattern(100 + nth, 60 + 173 * nth as usize % 2900));
    }
    Sample::new(&format!("plain version {version}"), build.image().bytes)
}

/// Written by the library in turns, so that chains are in pieces; with free sectors, classes and times.
pub(crate) fn worn(version: Version) -> Sample {
    let memory = MemStorage::new();
    let file = CreateOptions::new().version(version).create_storage(memory.clone()).unwrap();
    for (nth, path) in ["A", "A/B", "C"].into_iter().enumerate() {
        file.create_storage(path).unwrap();
        file.set_clsid(path, Uuid::from_u128(0x1234_5678 + nth as u128)).unwrap();
        file.set_state_bits(path, 7 + nth as u32).unwrap();
        file.set_created(path, FileTime::from_raw(130_000_000_000_000_000)).unwrap();
        file.set_modified(path, FileTime::from_raw(131_000_000_000_000_000 + nth as u64)).unwrap();
    }
    file.set_clsid("/", Uuid::from_u128(99)).unwrap();
    let paths = ["first", "A/second", "A/B/third", "C/fourth", "A/fifth", "C/sixth"];
    let mut streams: Vec<_> = paths.iter().map(|path| file.create_stream(path).unwrap()).collect();
    for round in 0..6 {
        for (nth, stream) in streams.iter_mut().enumerate() {
            stream.write_all(&pattern(round * 10 + nth as u32, 900 + 2200 * nth)).unwrap();
            stream.flush().unwrap();
        }
        file.write_stream(&format!("passing {round}"), &pattern(round, 9000)).unwrap();
        file.flush().unwrap();
    }
    for round in [1, 2, 4] {
        file.remove_stream(format!("passing {round}").as_str()).unwrap();
    }
    for nth in 0..9 {
        file.write_stream(&format!("A/tiny {nth}"), &pattern(200 + nth, 30 * nth as usize))
            .unwrap();
    }
    drop(streams);
    file.flush().unwrap();
    Sample::new(&format!("worn {version:?}"), memory.to_vec())
}

/// Streams that grew by turns, so that all of the larger ones are in eight pieces.
pub(crate) fn turns(version: Version) -> Sample {
    let memory = MemStorage::new();
    let file = CreateOptions::new().version(version).create_storage(memory.clone()).unwrap();
    let sizes = [20, 300, 1500, 4095, 4096, 9000, 20_000, 50_000];
    let mut streams = Vec::new();
    for (nth, storage) in ["", "A/", "A/B/"].iter().enumerate() {
        if !storage.is_empty() {
            file.create_storage(storage.trim_end_matches('/')).unwrap();
        }
        for (at, &len) in sizes.iter().enumerate() {
            let content = pattern((1 + nth * 10 + at) as u32, len + 700 * nth);
            streams.push((format!("{storage}stream {nth}{at}"), content));
        }
    }
    for round in 0..8 {
        for (path, bytes) in &streams {
            let piece = bytes.len().div_ceil(8);
            let (from, to) = (round * piece, ((round + 1) * piece).min(bytes.len()));
            let stream = match round {
                0 => file.create_stream(path).unwrap(),
                _ => file.open_stream(path.as_str()).unwrap(),
            };
            stream.write_at(&bytes[from.min(to)..to], from as u64).unwrap();
        }
        file.flush().unwrap();
    }
    drop(file);
    Sample::new(&format!("by turns {version:?}"), memory.to_vec())
}

/// Large enough for DIFAT sectors.
pub(crate) fn with_difat() -> Sample {
    let mut build = Build::new(3).storage("Big");
    for nth in 0..8 {
        build = build.stream(&format!("Big/stream {nth}"), &pattern(nth, 2_000_000 + nth as usize));
    }
    for nth in 0..5 {
        build = build.stream(&format!("little {nth}"), &pattern(50 + nth, 500));
    }
    let sample = Sample::new("with DIFAT sectors", build.image().bytes);
    assert!(sample.account.count(Owner::Difat) >= 2, "more than one DIFAT sector");
    sample
}

/// The small ones.
pub(crate) fn small() -> Vec<Sample> {
    vec![plain(3), plain(4), worn(Version::V3), worn(Version::V4)]
}
