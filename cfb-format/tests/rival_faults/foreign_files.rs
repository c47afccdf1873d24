//! Files of other writers and damaged files can be changed without harm to what is whole in them.

use cfb_format::{CreateOptions, Error, MemStorage, Version};

use crate::common::abuse::withstands_use;
use crate::common::files::{VERSIONS, ends, judged, open, open_strict, saved};
use crate::common::raw::{Build, END, FREE, Image, header, inspect, pattern};

const STREAMS: [(&str, usize); 6] = [
    ("one", 100),
    ("two", 200),
    ("S/three", 3000),
    ("empty", 0),
    ("big", 20_000),
    ("large", 30_000),
];

fn sample(version: u16) -> Image {
    let build = Build::new(version).storage("S");
    let build = STREAMS
        .iter()
        .zip(0..)
        .fold(build, |build, ((path, len), seed)| build.stream(path, &pattern(seed, *len)));
    build.image()
}

/// Every stream of the sample but these.
fn all_but(damaged: &[&str]) -> Vec<(String, Vec<u8>)> {
    let whole = STREAMS.iter().zip(0..).filter(|((path, _), _)| !damaged.contains(path));
    whole.map(|((path, len), seed)| ((*path).to_string(), pattern(seed, *len))).collect()
}

fn withstands(
    version: u16,
    damaged: &'static [&'static str],
    forge: impl Fn(&mut Image) + Send + 'static,
) {
    ends("using a forged file", move || {
        let mut image = sample(version);
        forge(&mut image);
        withstands_use(&image.bytes, &all_but(damaged));
    });
}

#[test]
fn b07_b14_file_with_more_sectors_than_the_fat_covers_can_be_written() {
    for version in [3, 4] {
        for more in [1, 511, 512, 100_000, 5_000_000] {
            withstands(version, &[], move |image| {
                image.bytes.extend(std::iter::repeat_n(0xAA, more));
            });
        }
    }
}

#[test]
fn b07_b14_creating_over_old_bytes_leaves_none_of_them() {
    for version in VERSIONS {
        let storage = MemStorage::from(vec![0xAA; 1_000_000]);
        let file = CreateOptions::new().version(version).create_storage(storage).unwrap();
        file.write_stream("s", &pattern(1, 100)).unwrap();
        let (bytes, _) = judged(&file);
        assert!(bytes.len() < 50_000);
        let file = open(&bytes).unwrap();
        file.write_stream("t", &pattern(2, 100_000)).unwrap();
        judged(&file);
    }
}

#[test]
fn b08_b09_mini_stream_start_out_of_range_costs_that_stream_only() {
    for version in [3, 4] {
        for start in
            [1000, 4095, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFA, 0xFFFF_FFFC, 0xFFFF_FFFD, END, FREE]
        {
            withstands(version, &["two"], move |image| image.put_start("two", start));
        }
    }
}

#[test]
fn b08_b09_stream_start_out_of_range_costs_that_stream_only() {
    for version in [3, 4] {
        for start in [1000, 0x7FFF_FFFF, 0xFFFF_FFFA, 0xFFFF_FFFC, 0xFFFF_FFFD, END, FREE] {
            withstands(version, &["big"], move |image| image.put_start("big", start));
        }
    }
}

#[test]
fn b18_sector_that_two_chains_have_costs_at_most_these_two_streams() {
    for version in [3, 4] {
        withstands(version, &["big", "large"], |image| {
            let (big, large) = (image.start("big"), image.start("large"));
            image.put_cell(big + 2, large + 3);
        });
        withstands(version, &["one", "S/three"], |image| {
            let (one, three) = (image.start("one"), image.start("S/three"));
            image.put_mini_cell(one, three + 3);
        });
    }
}

#[test]
fn b19_mini_fat_cell_out_of_range_costs_one_stream() {
    for version in [3, 4] {
        for cell in [1000, 0x7FFF_FFFF, 0xFFFF_FFFA, 0xFFFF_FFFC, FREE] {
            withstands(version, &["S/three"], move |image| {
                image.put_mini_cell(image.start("S/three") + 5, cell);
            });
        }
    }
}

#[test]
fn b19_first_mini_fat_sector_that_does_not_exist_costs_the_small_streams() {
    for version in [3, 4] {
        for start in [FREE, END, 1000] {
            withstands(version, &["one", "two", "S/three"], move |image| {
                image.put_u32(header::FIRST_MINI_FAT, start);
            });
        }
    }
}

#[test]
fn b23_empty_stream_with_a_start_sector_owns_nothing() {
    for version in [3, 4] {
        for start in [0, 1, 5, 1000, 0xFFFF_FFFA, FREE] {
            let mut image = sample(version);
            image.put_start("empty", start);
            assert!(
                matches!(open_strict(&image.bytes), Err(Error::NotStrict { .. })),
                "start {start:#x}"
            );

            let file = open(&image.bytes).unwrap();
            file.write_stream("empty", b"xyz").unwrap();
            let (bytes, account) = judged(&file);
            assert_eq!(account.content(&bytes, "empty"), b"xyz");
            for (path, content) in all_but(&["empty"]) {
                assert!(account.content(&bytes, &path) == content, "{path}");
            }

            let file = open(&image.bytes).unwrap();
            file.remove_stream("empty").unwrap();
            file.write_stream("new", &pattern(50, 300)).unwrap();
            let (bytes, account) = judged(&file);
            for (path, content) in all_but(&["empty"]) {
                assert!(account.content(&bytes, &path) == content, "{path}");
            }
        }
    }
}

#[test]
fn b23_growing_an_empty_stream_with_a_start_sector_reads_zeros() {
    let mut image = sample(3);
    image.put_start("empty", 0);
    let file = open(&image.bytes).unwrap();
    file.open_stream("empty").unwrap().set_len(100).unwrap();
    assert_eq!(file.read_stream("empty").unwrap(), [0; 100]);
    judged(&file);
}

#[test]
fn b46_stream_that_starts_in_the_directory_does_not_let_it_be_overwritten() {
    for version in [3, 4] {
        withstands(version, &["big"], |image| image.put_start("big", image.dir[0]));
        withstands(version, &["big"], |image| image.put_start("big", image.fat[0]));
        withstands(version, &["big"], |image| image.put_start("big", image.mini_fat[0]));
        withstands(version, &["big"], |image| image.put_start("big", image.mini_stream[0]));
    }
}

#[test]
fn b46_two_streams_with_one_start_are_told_and_part_when_written() {
    for version in [3, 4] {
        for (a, b) in [("big", "large"), ("one", "two")] {
            let mut image = sample(version);
            image.put_start(a, image.start(b));
            image.put_size(a, image.u64(image.at(b, crate::common::raw::entry::SIZE)));
            assert!(matches!(open_strict(&image.bytes), Err(Error::NotStrict { .. })));
            let file = open(&image.bytes).unwrap();
            let findings = file.check().unwrap();
            assert!(
                findings.iter().any(|finding| finding.code().as_str().ends_with("shared")),
                "{findings:?}"
            );
            for path in [a, b] {
                file.write_stream(path, &pattern(60, 10_000)).unwrap();
                file.write_stream(path, path.as_bytes()).unwrap();
            }
            let file = open(&saved(&file)).unwrap();
            assert_eq!(file.read_stream(a).unwrap(), a.as_bytes());
            assert_eq!(file.read_stream(b).unwrap(), b.as_bytes());
        }
        withstands(version, &["big", "large"], |image| {
            image.put_start("big", image.start("large"));
        });
        withstands(version, &["one", "two"], |image| image.put_start("one", image.start("two")));
    }
}

#[test]
fn b46_copy_of_a_shared_stream_is_its_own() {
    let mut image = sample(3);
    image.put_start("big", image.start("large"));
    let file = open(&image.bytes).unwrap();
    file.copy("large", "copy").unwrap();
    assert!(file.read_stream("copy").unwrap() == pattern(5, 30_000));
    file.remove_stream("big").unwrap();
    let file = open(&saved(&file)).unwrap();
    assert!(file.read_stream("copy").unwrap() == pattern(5, 30_000));
}

#[test]
fn sample_is_sound_before_it_is_forged() {
    for version in [3, 4] {
        let image = sample(version);
        inspect(&image.bytes).expect_sound();
        assert_eq!(open_strict(&image.bytes).unwrap().findings(), []);
        withstands_use(&image.bytes, &all_but(&[]));
    }
    assert_eq!(open(&sample(3).bytes).unwrap().version(), Version::V3);
}
