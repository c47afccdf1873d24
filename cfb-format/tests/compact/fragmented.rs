//! Files that have been through a lot.

use cfb_format::{CompoundFile, CreateOptions, FileTime, MemStorage, Storage, Uuid, Version};

use crate::common::raw::pattern;

/// What is deleted from every file: not to be found afterwards.
pub(crate) const MARKER: &[u8] = b"deleted: nobody is to read this again";

/// The streams of a file: path and content.
pub(crate) type Content = Vec<(String, Vec<u8>)>;

/// What the sizes of streams are, in turn.
pub(crate) fn sizes(seed: usize) -> [usize; 7] {
    [10 + seed, 700, 4095, 4096, 9000 + seed * 3, 60_000, 33_333]
}

/// Entries and streams of the content number `seed`.
pub(crate) fn content(seed: usize, count: usize) -> Content {
    let sizes = sizes(seed);
    let mut content: Content = (0..count)
        .map(|i| {
            let folder = ["", "/letters", "/letters/old", "/Zoo"][i % 4];
            (format!("{folder}/stream {i}"), pattern((seed + i) as u32, sizes[i % 7] + i))
        })
        .collect();
    content.push(("/empty".to_owned(), Vec::new()));
    content
}

fn storages<S: Storage>(file: &CompoundFile<S>) {
    for path in ["/letters", "/letters/old", "/Zoo"] {
        file.create_storage(path).unwrap();
    }
    file.set_clsid("/Zoo", Uuid::from_u128(0x1234_5678)).unwrap();
    file.set_state_bits("/letters", 77).unwrap();
    file.set_modified("/letters/old", FileTime::from_raw(130_000_000_000_000_000)).unwrap();
}

/// Writes `content` in one go.
pub(crate) fn straight(version: Version, content: &Content) -> CompoundFile<MemStorage> {
    let file = CreateOptions::new().version(version).create_storage(MemStorage::new()).unwrap();
    storages(&file);
    for (path, bytes) in content {
        file.write_stream(path, bytes).unwrap();
    }
    file.flush().unwrap();
    file
}

/// In so many turns streams grow.
const TURNS: usize = 4;

/// Arrives at `content` by many detours: streams grow in turn, others come and go between them. Saves write nothing over
/// if `atomic`.
pub(crate) fn fragmented_in<S: Storage>(
    storage: S,
    version: Version,
    content: &Content,
    atomic: bool,
) -> CompoundFile<S> {
    let options = CreateOptions::new().version(version).in_place(!atomic);
    let file = options.create_storage(storage).unwrap();
    storages(&file);
    let long = MARKER.repeat(600);
    let short = MARKER.repeat(20);
    for turn in 0..TURNS {
        for (i, (path, bytes)) in content.iter().enumerate().rev() {
            let stream = file.open_stream(path.as_str());
            let stream = stream.or_else(|_| file.create_stream(path)).unwrap();
            let (from, to) = (bytes.len() * turn / TURNS, bytes.len() * (turn + 1) / TURNS);
            stream.write_at(&bytes[from..to], from as u64).unwrap();
            if i % 5 == turn {
                file.write_stream(&format!("/gone {turn} {i}"), &long).unwrap();
                file.write_stream(&format!("/gone too {turn} {i}"), &short).unwrap();
            }
            if i % 7 == 0 {
                file.flush().unwrap();
            }
        }
    }
    let gone: Vec<_> = file.walk().filter(|entry| entry.path().starts_with("/gone")).collect();
    for entry in gone {
        file.remove_stream(&entry).unwrap();
    }
    file.flush().unwrap();
    file
}

pub(crate) fn fragmented(version: Version, content: &Content) -> CompoundFile<MemStorage> {
    fragmented_in(MemStorage::new(), version, content, true)
}

/// Fails unless the file has exactly this content.
#[track_caller]
pub(crate) fn assert_content<S: Storage>(file: &CompoundFile<S>, content: &Content) {
    let streams = file.walk().filter(cfb_format::Entry::is_stream).count();
    assert_eq!(streams, content.len());
    for (path, bytes) in content {
        assert!(file.read_stream(path.as_str()).unwrap() == *bytes, "{path} differs");
    }
    assert_eq!(file.entry("/Zoo").unwrap().clsid(), Uuid::from_u128(0x1234_5678));
    assert_eq!(file.entry("/letters").unwrap().state_bits(), 77);
}

/// Whether the bytes have a part of what was deleted.
pub(crate) fn has_marker(bytes: &[u8]) -> bool {
    bytes.windows(16).any(|window| window == &MARKER[9..25])
}
