//! A file that ends early gives what is left of it.

use cfb_format::Error;

use crate::cases::{STREAMS, sample};
use crate::common::abuse::{bears_anything, withstands_use};
use crate::common::files::{ends, open};
use crate::common::raw::{Build, pattern};

#[test]
fn file_cut_at_any_sector_gives_whole_streams_or_typed_errors() {
    for version in [3, 4] {
        let whole = sample(version);
        for sectors in 0..whole.sectors() {
            for more in [0, 1, whole.sector_bytes / 2] {
                let mut image = whole.clone();
                image.cut(sectors, more);
                ends("reading a truncated file", move || {
                    let Ok(file) = open(&image.bytes) else { return };
                    for ((path, len), seed) in STREAMS.iter().zip(0..) {
                        match file.read_stream(*path) {
                            Ok(content) => assert!(
                                content == pattern(seed, *len),
                                "{path} at {sectors} sectors"
                            ),
                            Err(Error::Corrupt(_) | Error::NotFound { .. }) => {}
                            Err(other) => panic!("{path} at {sectors} sectors: {other:?}"),
                        }
                    }
                });
            }
        }
    }
}

#[test]
fn streams_in_front_of_the_cut_are_whole_and_survive_writing() {
    for version in [3, 4] {
        let whole = Build::new(version)
            .stream("small", &pattern(1, 500))
            .stream("first", &pattern(2, 9000))
            .stream("second", &pattern(3, 9000))
            .image();
        let intact =
            [("small".to_string(), pattern(1, 500)), ("first".to_string(), pattern(2, 9000))];
        for kept in 0..3 {
            for more in [0, 100] {
                let mut image = whole.clone();
                if image.start("second") + kept >= image.sectors() {
                    continue;
                }
                image.cut(image.start("second") + kept, more);
                let intact = intact.clone();
                ends("using a truncated file", move || {
                    let file = open(&image.bytes).unwrap();
                    let mut part = Vec::new();
                    let mut stream = file.open_stream("second").unwrap();
                    assert!(std::io::Read::read_to_end(&mut stream, &mut part).is_err());
                    assert_eq!(part.len(), kept as usize * image.sector_bytes + more);
                    assert!(part == pattern(3, 9000)[..part.len()]);
                    drop((stream, file));
                    withstands_use(&image.bytes, &intact);
                });
            }
        }
    }
}

#[test]
fn file_cut_anywhere_bears_any_use() {
    for version in [3, 4] {
        let whole = sample(version);
        for sectors in 0..whole.sectors() {
            for more in [0, whole.sector_bytes - 1] {
                let mut image = whole.clone();
                image.cut(sectors, more);
                ends("using a truncated file", move || bears_anything(&image.bytes));
            }
        }
    }
}
