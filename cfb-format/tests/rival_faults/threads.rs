//! Handles and files may be used from many threads at once; nothing panics and nothing locks up.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use cfb_format::{CompoundFile, Entry, Error, MemStorage, Stream};

use crate::common::files::{File, VERSIONS, create, ends, judged, open};
use crate::common::raw::pattern;

#[test]
fn handles_files_and_entries_are_send_and_sync() {
    fn both<T: Send + Sync + 'static>() {}
    both::<Stream<MemStorage>>();
    both::<Stream<std::fs::File>>();
    both::<CompoundFile<MemStorage>>();
    both::<CompoundFile<std::fs::File>>();
    both::<Entry>();
    both::<Error>();
}

#[test]
fn b38_handing_back_the_storage_during_a_call_in_another_thread_is_an_error_at_most() {
    ends("handing back the storage", || {
        for turn in 0..500 {
            let storage = MemStorage::new();
            let file = CompoundFile::create_in(storage.clone()).unwrap();
            let mut stream = file.create_stream("s").unwrap();
            let writer = thread::spawn(move || {
                for nth in 0..turn % 20 {
                    stream.write_all(&pattern(nth, 300)).unwrap();
                }
            });
            match file.into_storage() {
                Ok(_) => {}
                Err(Error::StreamsOpen { count }) => assert_eq!(count, 1),
                Err(other) => panic!("{other:?}"),
            }
            writer.join().unwrap();
            let expected: Vec<u8> = (0..turn % 20).flat_map(|nth| pattern(nth, 300)).collect();
            let read = open(&storage.to_vec()).unwrap().read_stream("s").unwrap();
            assert!(read == expected, "{} bytes of {}", read.len(), expected.len());
        }
    });
}

#[test]
fn b39_walking_while_another_thread_writes_ends() {
    ends("walking beside a writer", || {
        let file: Arc<File> = Arc::new(create(VERSIONS[0]));
        for nth in 0..50 {
            file.write_stream(&format!("{nth}"), b"x").unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..2)
            .map(|nth| {
                let (mut stream, stop) =
                    (file.create_stream(&format!("w{nth}")).unwrap(), stop.clone());
                thread::spawn(move || {
                    while !stop.load(SeqCst) {
                        stream.write_all(&pattern(nth, 100)).unwrap();
                        if stream.entry().unwrap().len() > 1_000_000 {
                            stream.set_len(0).unwrap();
                        }
                    }
                })
            })
            .collect();
        for turn in 0..1000 {
            for entry in file.walk() {
                assert_eq!(file.entry(&entry).unwrap().name(), entry.name());
            }
            if turn % 100 == 0 {
                file.flush().unwrap();
            }
        }
        stop.store(true, SeqCst);
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(judged(&file).1.items.len(), 53);
    });
}

#[test]
fn b39_walking_while_another_thread_creates_and_removes_ends() {
    ends("walking beside a remover", || {
        let file: Arc<File> = Arc::new(create(VERSIONS[0]));
        let other = Arc::clone(&file);
        let changer = thread::spawn(move || {
            for nth in 0..2000 {
                other.write_stream(&format!("{}", nth % 70), &pattern(nth, 90)).unwrap();
                if nth % 3 == 2 {
                    other.remove_stream(&format!("{}", nth % 70)).unwrap();
                }
            }
        });
        for _ in 0..500 {
            for entry in file.walk() {
                match file.entry(&entry) {
                    Ok(again) => assert_eq!(again.name(), entry.name()),
                    Err(Error::Stale) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
        changer.join().unwrap();
        judged(&file);
    });
}

#[test]
fn b39_streams_written_by_many_threads_come_out_whole() {
    ends("writing from four threads", || {
        for version in VERSIONS {
            let file = Arc::new(create(version));
            let threads: Vec<_> = (0..4)
                .map(|nth| {
                    let file = Arc::clone(&file);
                    thread::spawn(move || {
                        let mut stream = file.create_stream(&format!("{nth}")).unwrap();
                        for piece in pattern(nth, 200_000).chunks(1777) {
                            stream.write_all(piece).unwrap();
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            let (bytes, account) = judged(&file);
            for nth in 0..4 {
                assert!(account.content(&bytes, &format!("{nth}")) == pattern(nth, 200_000));
            }
        }
    });
}
