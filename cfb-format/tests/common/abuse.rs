//! Uses a forged file in every way that changes it, and checks that what was whole stays whole.

use std::collections::BTreeSet;

use cfb_format::{Entry, EntryId, Error, FindingCode, MemStorage, OpenOptions, Severity};

use super::files::{File, open, saved};
use super::raw::pattern;

/// Streams of a forged file that the forgery does not touch: path and content.
pub(crate) type Intact = [(String, Vec<u8>)];

/// Kinds of deviations.
pub(crate) type Codes = BTreeSet<FindingCode>;

/// All codes that the library finds in a file.
pub(crate) fn codes(bytes: &[u8]) -> Codes {
    let file = OpenOptions::new().open_storage(MemStorage::from(bytes.to_vec())).unwrap();
    let checked = file.check().unwrap();
    checked.iter().chain(&file.findings()).map(cfb_format::Finding::code).collect()
}

#[track_caller]
fn expect_intact(file: &File, intact: &Intact, but: Option<&str>) {
    for (path, content) in intact.iter().filter(|(path, _)| Some(path.as_str()) != but) {
        let read =
            file.read_stream(path.as_str()).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(read == *content, "{path} has changed");
    }
}

/// Saves the file, and checks that it opens again, holds what is intact and shows no new kind of deviation.
#[track_caller]
fn reopened(file: &File, before: &Codes, intact: &Intact, but: Option<&str>) -> File {
    let bytes = saved(file);
    let new: Vec<_> = codes(&bytes).difference(before).copied().collect();
    assert_eq!(new, [], "deviations that the file did not have before");
    let again = open(&bytes).unwrap();
    expect_intact(&again, intact, but);
    again
}

/// The entry's path as the tests write it.
fn path_of(file: &File, id: EntryId) -> String {
    let entry = file.entry(id).unwrap();
    entry.path().strip_prefix('/').expect("paths are absolute").to_string()
}

fn streams(file: &File) -> Vec<Entry> {
    file.walk().filter(Entry::is_stream).collect()
}

/// Adds to, overwrites in, and removes from the file until nothing is left of it.
///
/// Panics if an intact stream changes or is lost, if what is written does not come back, if the saved file shows a kind of
/// deviation that the forged one did not, or if it grows by much more than what is written.
pub(crate) fn withstands_use(bytes: &[u8], intact: &Intact) {
    let before = codes(bytes);
    adds(bytes, &before, intact);
    overwrites(bytes, &before, intact);
    removes_one(bytes, &before, intact);
    removes_all(bytes, &before, intact);
}

/// A quick part of [`withstands_use`], for large files.
pub(crate) fn withstands_adding(bytes: &[u8], intact: &Intact) {
    let before = codes(bytes);
    adds(bytes, &before, intact);
    removes_all(bytes, &before, intact);
}

fn adds(bytes: &[u8], before: &Codes, intact: &Intact) {
    let file = open(bytes).unwrap();
    let added = [
        ("new small", pattern(91, 100)),
        ("new large", pattern(92, 50_000)),
        ("new storage/inner", pattern(93, 4000)),
    ];
    file.create_storage("new storage").unwrap();
    for (path, content) in &added {
        file.write_stream(path, content).unwrap();
    }
    expect_intact(&file, intact, None);
    let again = reopened(&file, before, intact, None);
    for (path, content) in &added {
        assert!(again.read_stream(*path).unwrap() == *content, "{path} has changed");
    }
    let grown = saved(&again).len().saturating_sub(bytes.len());
    assert!(grown < 54_100 + 40 * 4096, "the file grew by {grown} bytes");
}

fn overwrites(bytes: &[u8], before: &Codes, intact: &Intact) {
    let file = open(bytes).unwrap();
    let ids: Vec<_> = streams(&file).iter().map(Entry::id).collect();
    for id in ids {
        let file = open(bytes).unwrap();
        let path = path_of(&file, id);
        let stream = file.open_stream(id).unwrap();
        for len in [300_usize, 6000, 5000, 40_000, 10, 4096, 4095, 64, 0, 20_000] {
            let content = pattern(94, len);
            stream.set_len(0).unwrap();
            stream.write_at(&content, 0).unwrap();
            assert!(stream.read_to_vec().unwrap() == content, "{path:?} at {len} bytes");
        }
        expect_intact(&file, intact, Some(&path));
        stream.set_len(30_000).unwrap();
        stream.write_at(b"end", 29_997).unwrap();
        let expected = [pattern(94, 20_000), vec![0; 9997], b"end".to_vec()].concat();
        drop(stream);
        let again = reopened(&file, before, intact, Some(&path));
        assert!(
            again.read_stream(id).unwrap_or_default() == expected
                || again.read_stream(path.as_str()).unwrap() == expected
        );
        let grown = saved(&again).len().saturating_sub(bytes.len());
        assert!(grown < 40_000 + 40 * 4096, "overwriting {path:?}: the file grew by {grown} bytes");
    }
}

fn removes_one(bytes: &[u8], before: &Codes, intact: &Intact) {
    for id in streams(&open(bytes).unwrap()).iter().map(Entry::id) {
        let file = open(bytes).unwrap();
        let path = path_of(&file, id);
        let count = streams(&file).len();
        file.remove_stream(id).unwrap();
        assert_eq!(streams(&file).len(), count - 1);
        expect_intact(&file, intact, Some(&path));
        file.write_stream("in its place", &pattern(95, 7000)).unwrap();
        let again = reopened(&file, before, intact, Some(&path));
        assert!(again.read_stream("in its place").unwrap() == pattern(95, 7000));
    }
}

fn removes_all(bytes: &[u8], before: &Codes, intact: &Intact) {
    let file = open(bytes).unwrap();
    let mut left = intact.to_vec();
    let ids: Vec<_> = streams(&file).iter().map(Entry::id).collect();
    for id in ids {
        let path = path_of(&file, id);
        left.retain(|(intact, _)| *intact != path);
        file.remove_stream(id).unwrap();
        expect_intact(&file, &left, None);
    }
    let again = reopened(&file, before, &[], None);
    assert_eq!(streams(&again).len(), 0);
    again.remove_all("/").unwrap();
    let again = reopened(&again, before, &[], None);
    assert_eq!(again.walk().count(), 1, "the root is left");
    again.write_stream("alone", b"alone").unwrap();
    assert_eq!(reopened(&again, before, &[], None).read_stream("alone").unwrap(), b"alone");
}

/// Like [`withstands_use`] for bytes of which nothing is known: calls may fail, but never panic; what is written to the file
/// comes back; what could be read and was left alone stays; and once everything is removed nothing is damaged any more.
pub(crate) fn bears_anything(bytes: &[u8]) {
    let Ok(file) = open(bytes) else { return };
    let _ = file.check();
    let before = streams(&file);
    let mut left_alone = Vec::new();
    for entry in before.iter().step_by(2) {
        let unique = before.iter().filter(|other| other.path() == entry.path()).count() == 1;
        if let (Ok(content), true) = (file.read_stream(entry), unique) {
            left_alone.push((entry.path().to_string(), content));
        }
    }
    let mut written = vec![("/new small", pattern(91, 100)), ("/new large", pattern(92, 9000))];
    written.retain(|(path, content)| file.write_stream(path, content).is_ok());
    for (nth, entry) in before.iter().skip(1).step_by(2).enumerate() {
        let _ = change(&file, entry, nth);
    }
    let bytes = saved(&file);
    let again = open(&bytes).expect("what the library has written opens");
    for (path, content) in &written {
        let read = again.read_stream(*path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(read == *content, "{path} has changed");
    }
    let after = streams(&again);
    for (path, content) in &left_alone {
        let entry = after.iter().find(|entry| entry.path() == path);
        let entry = entry.unwrap_or_else(|| panic!("{path}, left alone, is gone"));
        let read =
            again.read_stream(entry).unwrap_or_else(|error| panic!("{path}, left alone: {error}"));
        assert!(read == *content, "{path}, left alone, has changed");
    }

    again.remove_all("/").unwrap();
    again.write_stream("alone", &pattern(94, 5000)).unwrap();
    let bytes = saved(&again);
    let again = open(&bytes).expect("what the library has written opens");
    assert_eq!(again.walk().count(), 2);
    assert!(again.read_stream("alone").unwrap() == pattern(94, 5000));
    let mut damage = codes(&bytes);
    damage
        .retain(|code| code.severity() == Severity::Error && !code.as_str().starts_with("header."));
    assert_eq!(damage, Codes::new(), "nothing is left that could be damaged");
}

/// Changes one stream of a file in one of several ways.
fn change(file: &File, entry: &Entry, way: usize) -> Result<(), Error> {
    let stream = file.open_stream(entry)?;
    match way % 8 {
        0 => file.remove_stream(entry),
        1 => stream.write_at(&pattern(93, 5000), 100),
        2 => stream.set_len(70),
        3 => stream.set_len(10_000),
        4 => file.copy(entry, "new copy").and_then(|_| stream.set_len(0)),
        5 => file.rename(entry, "new name"),
        6 => stream.write_at(b"few", 10).and_then(|()| stream.set_len(5000)),
        _ => {
            file.create_storage("new storage")?;
            file.move_to(entry, "new storage/moved")
        }
    }
}
