//! One file, several who have it open: readers see one state, writers take turns.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use cfb_format::{CompoundFile, CreateOptions, Error, OpenOptions};

/// A path that is gone afterwards.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("cfb-shared-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_second_writer_is_told_at_once_and_the_file_is_left_alone() {
    let place = Place::new("writers");
    let first = CompoundFile::create(&place.0).unwrap();
    first.write_stream("a", b"first").unwrap();
    first.flush().unwrap();
    let before = fs::read(&place.0).unwrap();
    assert!(matches!(CompoundFile::open_rw(&place.0), Err(Error::Locked)));
    assert!(matches!(CompoundFile::create(&place.0), Err(Error::Locked)));
    assert!(matches!(CreateOptions::new().create(&place.0), Err(Error::Locked)));
    assert_eq!(fs::read(&place.0).unwrap(), before);
    drop(first);
    let second = CompoundFile::open_rw(&place.0).unwrap();
    assert_eq!(second.read_stream("a").unwrap(), b"first");
}

#[test]
fn a_reader_keeps_its_state_until_it_is_saved_over_and_then_is_told() {
    let place = Place::new("reader");
    let writer = CompoundFile::create(&place.0).unwrap();
    // Beyond what a reader has from opening the file.
    writer.write_stream("large", &vec![1; 1 << 20]).unwrap();
    writer.flush().unwrap();
    let reader = CompoundFile::open(&place.0).unwrap();
    writer.write_stream("large", &vec![2; 1 << 20]).unwrap();
    // Written, but not saved: the old state is there.
    assert_eq!(reader.read_stream("large").unwrap(), vec![1; 1 << 20]);
    writer.flush().unwrap();
    assert!(matches!(reader.read_stream("large"), Err(Error::ChangedUnderneath)));
    assert_eq!(
        CompoundFile::open(&place.0).unwrap().read_stream("large").unwrap(),
        vec![2; 1 << 20]
    );

    let unwatched = OpenOptions::new().watch(false).open(&place.0).unwrap();
    writer.write_stream("small", b"x").unwrap();
    writer.flush().unwrap();
    assert_eq!(
        unwatched.read_stream("large").unwrap(),
        vec![2; 1 << 20],
        "at the reader's own risk"
    );
}

#[test]
fn readers_never_see_a_mixture_of_states() {
    let place = Place::new("mixture");
    let writer = CompoundFile::create(&place.0).unwrap();
    let save = |turn: u8| {
        for name in ["a", "b", "c"] {
            writer.write_stream(name, &vec![turn; 150_000 + usize::from(turn) * 700]).unwrap();
            writer.write_stream(&format!("small {name}"), &[turn; 900]).unwrap();
        }
        writer.flush().unwrap();
    };
    save(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let (mut whole, mut told) = (0, 0);
            while !done.load(Ordering::Relaxed) || whole == 0 {
                match read_all(&place.0) {
                    Ok(bytes) => {
                        assert!(bytes.iter().all(|&byte| byte == bytes[0]), "one state");
                        whole += 1;
                    }
                    Err(Error::ChangedUnderneath) => told += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            (whole, told)
        });
        for turn in 1..=200 {
            save(turn);
        }
        done.store(true, Ordering::Relaxed);
        let (whole, told) = reading.join().unwrap();
        assert!(whole > 0, "{whole} whole, {told} told");
    });
}

fn read_all(path: &PathBuf) -> Result<Vec<u8>, Error> {
    let file = CompoundFile::open(path)?;
    let mut all = Vec::new();
    for name in ["a", "small c", "b", "small a", "c", "small b"] {
        all.extend(file.read_stream(name)?);
    }
    Ok(all)
}
