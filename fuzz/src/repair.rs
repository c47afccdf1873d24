//! Damages, repairs, reopens: whatever the bytes, the result is strictly valid, in proportion to the input, and is what
//! the report says.

use std::sync::OnceLock;

use cfb_format::{
    CompoundFile, CreateOptions, Entry, Error, MemStorage, OpenOptions, Recovery, RepairOptions,
    RepairReport, Strictness, Version, repair,
};

/// Repairs `data` as a file, and as damages to sound files of both versions.
///
/// # Panics
///
/// Where the result breaks a promise of the crate.
pub fn cfb_repair(data: &[u8]) {
    repaired(data);
    for sound in sound_files() {
        let mut bytes = sound.clone();
        for &damage in data.as_chunks::<6>().0.iter().take(24) {
            apply(damage, &mut bytes);
        }
        repaired(&bytes);
    }
}

fn sound_files() -> &'static [Vec<u8>; 2] {
    static FILES: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    FILES.get_or_init(|| [Version::V3, Version::V4].map(sound_file))
}

/// Small and large streams in nested storages, some of them in pieces.
fn sound_file(version: Version) -> Vec<u8> {
    let memory = MemStorage::new();
    let file =
        CreateOptions::new().version(version).create_storage(memory.clone()).expect("memory");
    file.create_storage_all("a/b/c").expect("new");
    for (nth, storage) in ["", "a/", "a/b/", "a/b/c/"].into_iter().enumerate() {
        for (at, len) in [0, 30, 700, 4095, 4096, 9000].into_iter().enumerate() {
            let content: Vec<u8> = (0..len).map(|byte| (byte / 3 + nth * 7 + at) as u8).collect();
            file.write_stream(&format!("{storage}stream {nth}{at}"), &content).expect("memory");
        }
        file.flush().expect("memory");
    }
    let grown = file.open_stream("stream 05").expect("just written");
    grown.write_at(&[0x77; 5000], 9000).expect("memory");
    drop(grown);
    file.flush().expect("memory");
    memory.to_vec()
}

/// Two bytes of place, two of length, one each of kind and value.
fn apply(damage: [u8; 6], bytes: &mut Vec<u8>) {
    let [low, high, len, long, kind, value] = damage;
    let at = usize::from(u16::from_le_bytes([low, high])) % (bytes.len() + 1);
    let len = usize::from(len) + if long % 4 == 0 { 16 * usize::from(long) } else { 0 };
    let end = (at + len).min(bytes.len());
    match kind % 6 {
        0 => bytes[at..end].fill(value),
        1 => bytes[at..end].fill(0),
        2 => bytes[at..end].fill(0xFF),
        3 => bytes[at..end].iter_mut().for_each(|byte| *byte ^= value),
        4 => {
            let from = usize::from(value) * 128 % (bytes.len() + 1);
            let count = (end - at).min(bytes.len() - from);
            bytes.copy_within(from..from + count, at);
        }
        _ => bytes.truncate(at.max(512)),
    }
}

/// Repairs, and repairs the result again: the second time nothing is left to do.
fn repaired(bytes: &[u8]) {
    let Some((report, file, length)) = repair_once(bytes) else { return };
    let most = 4 * bytes.len() + (4 << 20);
    assert!(length <= most, "{length} bytes of {}", bytes.len());
    let again = file.storage().to_vec();
    let (second, sound, _) = repair_once(&again).expect("a sound file is found");
    assert!(second.is_whole(), "a sound file is whole: {second}");
    assert!(second.findings().is_empty(), "a sound file has no findings: {second}");
    let saved = report.streams().iter().filter(|stream| stream.recovery() != Recovery::Lost);
    assert_eq!(second.streams().len(), saved.count(), "{report}\n{second}");
    for entry in file.walk().filter(Entry::is_stream) {
        let content = file.read_stream(&entry).expect("a sound stream");
        assert!(sound.read_stream(entry.path()).expect("the same stream") == content);
    }
}

fn repair_once(bytes: &[u8]) -> Option<(RepairReport, CompoundFile<MemStorage>, usize)> {
    let target = MemStorage::new();
    let report = match repair(bytes, target.clone(), &RepairOptions::new()) {
        Ok(report) => report,
        Err(Error::NoCompoundFile { .. }) => return None,
        Err(error) => panic!("memory can be read and written: {error}"),
    };
    let length = target.to_vec().len();
    let options = OpenOptions::new().strictness(Strictness::Strict);
    let file = options.open_storage(target).expect("what repair writes opens strict");
    assert_eq!(file.check().expect("memory can be read"), []);
    // The path that a lost stream would have may be another's.
    for stream in report.streams().iter().filter(|stream| stream.recovery() != Recovery::Lost) {
        let entry = file.entry(stream.path()).expect("the report names streams of the file");
        assert_eq!(entry.len(), stream.len(), "{stream}");
    }
    Some((report, file, length))
}
