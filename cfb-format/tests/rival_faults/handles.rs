//! Handles are tied to their entry: whatever happens around them, they reach it or say that it is gone.

use std::io::{BufRead, Read, Seek, SeekFrom, Write};

use cfb_format::{CompoundFile, Error, MemStorage, Stream};

use crate::common::files::{File, VERSIONS, create, judged, open, saved};
use crate::common::raw::pattern;

const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

#[test]
fn b04_removing_a_node_with_two_children_leaves_other_handles_alone() {
    for version in VERSIONS {
        for len in [50, 5000] {
            for (gone, gone_name) in NAMES.iter().enumerate() {
                let file = create(version);
                let mut content: Vec<Vec<u8>> = (0..7).map(|nth| pattern(nth, len)).collect();
                let mut handles: Vec<Stream<MemStorage>> = Vec::new();
                for (name, content) in NAMES.iter().zip(&content) {
                    let mut handle = file.create_stream(name).unwrap();
                    handle.write_all(content).unwrap();
                    handles.push(handle);
                }
                file.remove_stream(*gone_name).unwrap();
                for (nth, handle) in handles.iter().enumerate() {
                    if nth == gone {
                        assert!(matches!(handle.write_at(b"nowhere", 5), Err(Error::Stale)));
                        continue;
                    }
                    let text = format!("through {}", NAMES[nth]);
                    handle.write_at(text.as_bytes(), 5).unwrap();
                    content[nth][5..5 + text.len()].copy_from_slice(text.as_bytes());
                    assert_eq!(handle.entry().unwrap().name(), NAMES[nth]);
                }
                drop(handles);
                let (bytes, account) = judged(&file);
                assert_eq!(account.items.len(), 7, "the root and six streams");
                for nth in (0..7).filter(|&nth| nth != gone) {
                    assert_eq!(
                        account.content(&bytes, NAMES[nth]),
                        content[nth],
                        "without {gone_name}: {}",
                        NAMES[nth]
                    );
                }
            }
        }
    }
}

/// Every way to use a handle says that its entry is gone.
fn expect_stale(handle: &mut Stream<MemStorage>) {
    let mut buf = [0; 10];
    assert!(matches!(handle.read_at(&mut buf, 0), Err(Error::Stale)));
    assert!(matches!(handle.write_at(b"nowhere", 0), Err(Error::Stale)));
    assert!(matches!(handle.set_len(0), Err(Error::Stale)));
    assert!(matches!(handle.set_len(100_000), Err(Error::Stale)));
    assert!(matches!(handle.entry(), Err(Error::Stale)));
    assert!(matches!(handle.extents(), Err(Error::Stale)));
    assert!(handle.seek(SeekFrom::Start(0)).and_then(|_| handle.read(&mut buf)).is_err());
    assert!(handle.write_all(b"nowhere").and_then(|()| handle.flush()).is_err());
}

#[test]
fn b05_handle_of_a_removed_stream_is_stale_for_ever() {
    for version in VERSIONS {
        for len in [0, 60, 5000] {
            let file = create(version);
            file.write_stream("other", &pattern(1, 64)).unwrap();
            file.write_stream("gone", &pattern(2, len)).unwrap();
            let mut handle = file.open_stream("gone").unwrap();
            let id = handle.entry().unwrap().id();
            file.remove_stream("gone").unwrap();
            expect_stale(&mut handle);
            // The slot and the sectors get a new owner of the same name.
            file.write_stream("gone", &pattern(3, len)).unwrap();
            expect_stale(&mut handle);
            assert!(
                matches!(file.read_stream(id), Err(Error::Stale)),
                "an old id does not name the new entry"
            );
            drop(handle);
            let (bytes, account) = judged(&file);
            assert_eq!(account.content(&bytes, "other"), pattern(1, 64));
            assert_eq!(account.content(&bytes, "gone"), pattern(3, len));
        }
    }
}

#[test]
fn b05_unflushed_data_of_a_removed_stream_goes_nowhere() {
    let file = create(VERSIONS[0]);
    file.write_stream("other", &pattern(1, 64)).unwrap();
    let mut handle = file.create_stream("gone").unwrap();
    handle.write_all(&pattern(2, 3000)).unwrap();
    file.remove_stream("gone").unwrap();
    file.write_stream("new", &pattern(3, 3000)).unwrap();
    drop(handle);
    let (bytes, account) = judged(&file);
    assert_eq!(account.content(&bytes, "other"), pattern(1, 64));
    assert_eq!(account.content(&bytes, "new"), pattern(3, 3000));
}

#[test]
fn b05_handles_below_a_removed_storage_are_stale() {
    let file = create(VERSIONS[0]);
    file.create_storage_all("s/t").unwrap();
    let mut handle = file.create_stream("s/t/deep").unwrap();
    handle.write_all(b"deep").unwrap();
    file.write_stream("other", b"other").unwrap();
    file.remove_all("s").unwrap();
    expect_stale(&mut handle);
    let (bytes, account) = judged(&file);
    assert_eq!(account.items.len(), 2);
    assert_eq!(account.content(&bytes, "other"), b"other");
}

#[test]
fn b10_write_through_one_handle_and_truncation_through_another_happen_in_order() {
    for version in VERSIONS {
        for len in [100, 6000] {
            let file = create(version);
            let mut writer = file.create_stream("s").unwrap();
            let other = file.open_stream("s").unwrap();
            writer.write_all(&pattern(1, len)).unwrap();
            assert_eq!(
                other.read_to_vec().unwrap(),
                pattern(1, len),
                "what was written is there for all handles"
            );
            other.set_len(0).unwrap();
            writer.write_all(&pattern(2, len)).unwrap();
            writer.flush().unwrap();
            writer.flush().unwrap();
            let expected: Vec<u8> = std::iter::repeat_n(0, len).chain(pattern(2, len)).collect();
            assert_eq!(other.read_to_vec().unwrap(), expected, "the gap reads as zeros");
            drop((writer, other));
            let (bytes, account) = judged(&file);
            assert_eq!(account.content(&bytes, "s"), expected);
        }
    }
}

#[test]
fn b11_flushing_the_file_flushes_its_open_streams() {
    for version in VERSIONS {
        let file = create(version);
        let mut small = file.create_stream("small").unwrap();
        let mut large = file.create_stream("large").unwrap();
        small.write_all(&pattern(1, 1000)).unwrap();
        large.write_all(&pattern(2, 100_000)).unwrap();
        let (bytes, account) = judged(&file);
        assert_eq!(account.content(&bytes, "small"), pattern(1, 1000));
        assert_eq!(account.content(&bytes, "large"), pattern(2, 100_000));
        drop((small, large));
        assert_eq!(saved(&file), bytes);
    }
}

#[test]
fn b12_dropping_the_file_before_its_streams_loses_nothing() {
    for version in VERSIONS {
        let storage = MemStorage::new();
        let file = cfb_format::CreateOptions::new()
            .version(version)
            .create_storage(storage.clone())
            .unwrap();
        let mut small = file.create_stream("small").unwrap();
        let mut large = file.create_stream("large").unwrap();
        small.write_all(b"before, ").unwrap();
        large.write_all(&pattern(1, 50_000)).unwrap();
        drop(file);
        small.write_all(b"after").unwrap();
        large.write_all(&pattern(2, 50_000)).unwrap();
        drop(small);
        drop(large);
        let file = open(&storage.to_vec()).unwrap();
        assert_eq!(file.read_stream("small").unwrap(), b"before, after");
        assert_eq!(
            file.read_stream("large").unwrap(),
            [pattern(1, 50_000), pattern(2, 50_000)].concat()
        );
        judged(&file);
    }
}

#[test]
fn b12_handing_back_the_storage_while_a_stream_is_open_is_refused_and_loses_nothing() {
    let storage = MemStorage::new();
    let file = CompoundFile::create_in(storage.clone()).unwrap();
    let mut stream = file.create_stream("s").unwrap();
    stream.write_all(b"content").unwrap();
    assert!(matches!(file.into_storage(), Err(Error::StreamsOpen { count: 1 })));
    stream.write_all(b", more").unwrap();
    drop(stream);
    assert_eq!(open(&storage.to_vec()).unwrap().read_stream("s").unwrap(), b"content, more");
}

#[test]
fn b12_handing_back_the_storage_flushes() {
    let file: File = create(VERSIONS[0]);
    file.write_stream("s", b"content").unwrap();
    let bytes = file.into_storage().unwrap().to_vec();
    assert_eq!(open(&bytes).unwrap().read_stream("s").unwrap(), b"content");
}

#[test]
fn b61_consuming_more_than_the_buffer_holds_does_no_harm() {
    let file = create(VERSIONS[0]);
    file.write_stream("s", &pattern(1, 10_000)).unwrap();
    let mut stream = file.open_stream("s").unwrap();
    let held = stream.fill_buf().unwrap().len();
    assert!(held > 0);
    stream.consume(held + 1_000_000);
    let mut buf = [0; 100];
    let count = stream.read(&mut buf).unwrap();
    let at = stream.stream_position().unwrap();
    assert!(at <= 10_000, "still inside the stream");
    let from = usize::try_from(at).unwrap() - count;
    assert_eq!(buf[..count], pattern(1, 10_000)[from..from + count]);
    stream.consume(usize::MAX);
    stream.seek(SeekFrom::Start(5)).unwrap();
    stream.read_exact(&mut buf).unwrap();
    assert_eq!(buf[..], pattern(1, 10_000)[5..105]);
}
