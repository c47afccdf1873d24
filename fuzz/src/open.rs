//! Any bytes: they open or are refused, what opens can be read and modified, and a modification harms nothing
//! that it does not name.

use std::collections::BTreeSet;

use cfb_format::{CompoundFile, Entry, EntryId, MemStorage, OpenOptions, Strictness, Version};

use crate::cfb_model::audit;

/// Bytes written by the modifications below, and room for the metadata that they may need.
const GROWTH: usize = 600_000;

/// Opens `data` both ways, reads everything, then modifies and reopens what opened.
///
/// # Panics
///
/// Where reading or writing breaks a promise of the crate.
pub fn cfb_open(data: &[u8]) {
    for strictness in [Strictness::Strict, Strictness::Tolerant] {
        let storage = MemStorage::from(data.to_vec());
        let options = OpenOptions::new().strictness(strictness).write(true);
        let Ok(file) = options.open_storage(storage.clone()) else { continue };
        let before = Snapshot::of(&file);
        assert_eq!(storage.to_vec(), data, "reading writes nothing");
        modify(&file, &storage, before, strictness);
    }
}

/// What a file says and holds before it is modified.
struct Snapshot {
    codes: BTreeSet<&'static str>,
    /// Streams, with their content where they are sound.
    streams: Vec<(EntryId, Option<Vec<u8>>)>,
}

impl Snapshot {
    fn of(file: &CompoundFile<MemStorage>) -> Self {
        let streams = file.walk().filter(Entry::is_stream);
        let streams = streams.map(|entry| (entry.id(), read(file, &entry))).collect();
        drop(file.usage());
        Self { codes: codes(file), streams }
    }
}

fn codes(file: &CompoundFile<MemStorage>) -> BTreeSet<&'static str> {
    let found = file.check().expect("memory can be read");
    found.iter().chain(&file.findings()).map(|finding| finding.code().as_str()).collect()
}

/// The whole content, or nothing when a part is damaged.
fn read(file: &CompoundFile<MemStorage>, entry: &Entry) -> Option<Vec<u8>> {
    let stream = file.open_stream(entry).ok()?;
    let mut all = Vec::new();
    let mut buf = [0; 4096];
    loop {
        match stream.read_at(&mut buf, all.len() as u64) {
            Ok(0) => break,
            Ok(read) => all.extend_from_slice(&buf[..read]),
            Err(_) => return None,
        }
    }
    assert_eq!(all.len() as u64, entry.len(), "a stream that is read without an error is whole");
    Some(all)
}

/// Adds, overwrites, resizes and removes, then looks at everything again.
fn modify(
    file: &CompoundFile<MemStorage>,
    storage: &MemStorage,
    before: Snapshot,
    strictness: Strictness,
) {
    let start_bytes = storage.to_vec().len();
    let added: [(&str, usize); 3] =
        [("fuzz small", 100), ("fuzz large", 70_000), ("fuzz empty", 0)];
    for (name, len) in added {
        file.write_stream(name, &vec![0x5A; len]).expect("a file that opens takes a new stream");
    }
    let mut kept = before.streams;
    let mut changed = Vec::new();
    for len in [0, 3000, 50_000] {
        if kept.len() > 1 {
            let (id, _) = kept.swap_remove(kept.len() / 2);
            file.open_stream(id)
                .expect("a listed stream opens")
                .set_len(0)
                .expect("any stream can be emptied");
            let stream = file.open_stream(id).expect("a listed stream opens");
            stream.write_at(&vec![0xC3; len], 0).expect("and written anew");
            changed.push((id, len));
        }
    }
    if let Some((id, content)) = kept.pop() {
        let handle = file.open_stream(id).expect("a listed stream opens");
        file.remove_stream(id).expect("a listed stream can be removed");
        let stale = handle.read_at(&mut [0; 1], 0);
        assert!(
            matches!(stale, Err(cfb_format::Error::Stale)),
            "a removed stream of {content:?}: {stale:?}"
        );
    }
    if let Some((id, _)) = kept.last() {
        file.rename(*id, "fuzz renamed").expect("a listed stream can be renamed");
    }
    file.flush().expect("memory takes all");
    let bytes = storage.to_vec();
    assert!(
        bytes.len() <= start_bytes + GROWTH,
        "grew from {start_bytes} to {} bytes",
        bytes.len()
    );

    for (id, len) in &changed {
        let stream = file.open_stream(*id).expect("a changed stream opens");
        let content = stream.read_to_vec().expect("and is sound");
        assert!(
            content.len() == *len && content.iter().all(|&b| b == 0xC3),
            "and holds what was written"
        );
    }
    let path = |id: EntryId| file.entry(id).expect("an untouched entry").path().to_owned();
    let told: Vec<_> = kept.iter().map(|(id, _)| path(*id)).collect();
    let again =
        OpenOptions::new().strictness(strictness).open_storage(MemStorage::from(bytes.clone()));
    let again = again.unwrap_or_else(|error| panic!("does not reopen {strictness:?}: {error:?}"));
    let new: Vec<_> = codes(&again).difference(&before.codes).copied().collect();
    assert!(new.is_empty(), "new findings {new:?} beside {:?}", before.codes);
    for (name, len) in added {
        let content = again.read_stream(name).expect("an added stream is sound");
        assert!(content.len() == len && content.iter().all(|&b| b == 0x5A), "content of {name}");
    }
    // Wild names may be empty, hold slashes, or stand twice: compare in the order of the walk.
    let mut real: Vec<_> = again.walk().filter(Entry::is_stream).collect();
    for ((_, content), path) in kept.iter().zip(told) {
        let Some(content) = content else { continue };
        let same =
            |entry: &Entry| entry.path() == path && read(&again, entry).as_ref() == Some(content);
        let at =
            real.iter().position(same).unwrap_or_else(|| panic!("{path:?} has lost its content"));
        real.swap_remove(at);
    }
    if before.codes.is_empty() && strictness == Strictness::Strict {
        sound_in_every_way(&bytes);
    }
}

/// A file without findings before is one of ours now.
fn sound_in_every_way(bytes: &[u8]) {
    let file = OpenOptions::new()
        .open_storage(MemStorage::from(bytes.to_vec()))
        .expect("it opened before");
    if file.version() == Version::V3 || bytes.len().is_multiple_of(4096) {
        audit(bytes);
    }
}
