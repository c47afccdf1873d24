//! A storage that fails is told to the caller each time, and costs nothing once it works again.

use std::io::{ErrorKind, Write};

use cfb_format::{CompoundFile, CreateOptions, Error, FileTime, MemStorage, OpenOptions, Version};

use crate::common::files::{VERSIONS, create, judged, open, saved};
use crate::common::raw::{inspect, pattern};
use crate::common::storages::BreakingStorage;

type Breaking = BreakingStorage<MemStorage>;

fn breaking(version: Version) -> (MemStorage, Breaking, CompoundFile<Breaking>) {
    let bytes = MemStorage::new();
    let storage = BreakingStorage::new(bytes.clone());
    let file = CreateOptions::new().version(version).create_storage(storage.clone()).unwrap();
    (bytes, storage, file)
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull)
}

#[test]
fn b10_b33_failed_flush_fails_again_until_the_data_is_written() {
    for version in VERSIONS {
        for len in [100, 3000, 20_000] {
            let (bytes, storage, file) = breaking(version);
            file.write_stream("old", &pattern(1, 6000)).unwrap();
            let mut stream = file.create_stream("s").unwrap();
            file.flush().unwrap();
            storage.break_after(0);
            let written = stream.write_all(&pattern(2, len));
            let told = [file.flush(), file.flush(), file.flush()];
            for result in &told {
                assert!(is_full(result.as_ref().unwrap_err()), "{result:?}");
            }
            storage.heal();
            if written.is_err() {
                stream.write_all(&pattern(2, len)).unwrap();
            }
            stream.flush().unwrap();
            file.flush().unwrap();
            let account = inspect(&bytes.to_vec()).expect_sound();
            assert_eq!(account.content(&bytes.to_vec(), "s"), pattern(2, len));
            assert_eq!(account.content(&bytes.to_vec(), "old"), pattern(1, 6000));
        }
    }
}

#[test]
fn b33_a_flush_that_breaks_at_any_write_can_be_repeated() {
    for version in VERSIONS {
        for changes in 0..40 {
            let (bytes, storage, file) = breaking(version);
            for nth in 0..20 {
                file.write_stream(&format!("old {nth}"), &pattern(nth, 400 * nth as usize))
                    .unwrap();
            }
            file.flush().unwrap();
            storage.break_after(changes);
            let write = |path: &str, content: &[u8]| {
                if file.write_stream(path, content).is_err() {
                    storage.heal();
                    file.write_stream(path, content).unwrap();
                    storage.break_after(0);
                }
            };
            write("small", &pattern(50, 3000));
            write("large", &pattern(51, 100_000));
            write("old 3", &pattern(52, 5000));
            write("old 19", &pattern(53, 50));
            let broken = file.flush();
            storage.heal();
            file.flush().unwrap();
            let account = inspect(&bytes.to_vec()).expect_sound();
            for (path, content) in [
                ("small", pattern(50, 3000)),
                ("large", pattern(51, 100_000)),
                ("old 3", pattern(52, 5000)),
                ("old 19", pattern(53, 50)),
                ("old 18", pattern(18, 7200)),
            ] {
                assert!(
                    account.content(&bytes.to_vec(), path) == content,
                    "{path} after {changes} changes, {broken:?}"
                );
            }
        }
    }
}

#[test]
fn b33_failed_removal_or_shrinking_can_be_repeated() {
    for changes in 0..12 {
        let (bytes, storage, file) = breaking(Version::V3);
        for nth in 0..10 {
            file.write_stream(&format!("{nth}"), &pattern(nth, 1000 * nth as usize)).unwrap();
        }
        file.flush().unwrap();
        storage.break_after(changes);
        let _ = file.remove_stream("9");
        let _ = file.open_stream("8").unwrap().set_len(10);
        let _ = file.flush();
        storage.heal();
        if file.exists("9") {
            file.remove_stream("9").unwrap();
        }
        file.open_stream("8").unwrap().set_len(10).unwrap();
        file.flush().unwrap();
        let account = inspect(&bytes.to_vec()).expect_sound();
        assert_eq!(account.items.len(), 10);
        assert_eq!(account.content(&bytes.to_vec(), "8"), pattern(8, 8000)[..10]);
        assert_eq!(account.content(&bytes.to_vec(), "7"), pattern(7, 7000));
    }
}

#[test]
fn b31_file_opened_for_reading_changes_neither_in_memory_nor_in_the_storage() {
    let file = create(Version::V3);
    file.write_stream("s", b"content").unwrap();
    file.create_storage("d").unwrap();
    let bytes = saved(&file);
    let storage = MemStorage::from(bytes.clone());
    let file = OpenOptions::new().write(false).open_storage(storage.clone()).unwrap();
    assert!(!file.is_writable());
    let mut stream = file.open_stream("s").unwrap();
    let refused =
        |result: Result<(), Error>| assert!(matches!(result, Err(Error::ReadOnly)), "{result:?}");
    refused(file.create_stream("new").map(drop));
    refused(file.create_new_stream("new").map(drop));
    refused(file.create_stream("s").map(drop));
    refused(file.write_stream("new", b"x"));
    refused(file.create_storage("new").map(drop));
    refused(file.create_storage_all("d/new").map(drop));
    refused(file.remove_stream("s"));
    refused(file.remove_storage("d"));
    refused(file.remove_all("d"));
    refused(file.rename("s", "new").map(drop));
    refused(file.move_to("s", "d/s").map(drop));
    refused(file.copy("s", "new").map(drop));
    refused(file.set_state_bits("d", 1));
    refused(file.set_created("d", FileTime::now()));
    refused(file.set_modified("d", FileTime::now()));
    refused(file.touch("d"));
    refused(stream.write_at(b"x", 0));
    refused(stream.set_len(0));
    assert_eq!(
        stream.write_all(b"x").and_then(|()| stream.flush()).unwrap_err().kind(),
        ErrorKind::PermissionDenied
    );
    assert!(!file.exists("new") && file.exists("s") && file.exists("d"));
    assert_eq!(file.read_stream("s").unwrap(), b"content");
    drop((stream, file));
    assert_eq!(storage.to_vec(), bytes);
}

#[test]
fn b31_slice_is_opened_for_reading_only() {
    let file = create(Version::V3);
    file.write_stream("s", b"content").unwrap();
    let bytes = saved(&file);
    let file = CompoundFile::from_storage(bytes.as_slice());
    let file = match file {
        Ok(file) => file,
        Err(_) => OpenOptions::new().open_storage(bytes.as_slice()).unwrap(),
    };
    assert_eq!(file.read_stream("s").unwrap(), b"content");
    let failed = file.write_stream("new", b"x").and_then(|()| file.flush());
    assert!(failed.is_err());
}

#[test]
fn b31_failed_creation_leaves_no_entry_behind() {
    for version in VERSIONS {
        let (bytes, storage, file) = breaking(version);
        file.write_stream("s", b"content").unwrap();
        file.flush().unwrap();
        storage.break_after(0);
        if file.write_stream("new", &pattern(1, 1 << 20)).is_err() {
            assert!(!file.exists("new"), "a creation that failed left an entry");
        }
        storage.heal();
        file.flush().unwrap();
        let account = inspect(&bytes.to_vec()).expect_sound();
        assert_eq!(account.content(&bytes.to_vec(), "s"), b"content");
    }
}

#[test]
fn b57_touching_the_root_sets_its_modification_time_as_documented() {
    let file = create(Version::V3);
    file.set_modified("/", FileTime::ZERO).unwrap();
    file.touch("/").unwrap();
    let touched = file.root().modified();
    assert_ne!(touched, FileTime::ZERO);
    file.create_storage("d").unwrap();
    file.set_modified("d", FileTime::ZERO).unwrap();
    file.touch("d").unwrap();
    assert_ne!(file.entry("d").unwrap().modified(), FileTime::ZERO);
    let (bytes, account) = judged(&file);
    assert_eq!(account.items[0].modified, touched.raw());
    assert_eq!(open(&bytes).unwrap().root().modified(), touched);
}
