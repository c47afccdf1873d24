//! The places where fuzzing made another library panic, grow without end or destroy its file: each kind of file, by hand.

use cfb_format::Error;

use crate::common::abuse::withstands_use;
use crate::common::files::{ends, judged, open, saved};
use crate::common::raw::{Build, END, FREE, Image, entry, n32, pattern, units};

/// Five streams, of which the forgery may damage some.
fn sample(version: u16) -> Image {
    Build::new(version)
        .stream("a", &pattern(1, 100))
        .stream("b", &pattern(2, 2000))
        .stream("c", &pattern(3, 30_000))
        .stream("d", &pattern(4, 40_000))
        .stream("e", &pattern(5, 64))
        .image()
}

fn all_but(damaged: &[&str]) -> Vec<(String, Vec<u8>)> {
    let whole = [("a", 1, 100), ("b", 2, 2000), ("c", 3, 30_000), ("d", 4, 40_000), ("e", 5, 64)];
    let whole = whole.into_iter().filter(|(path, ..)| !damaged.contains(path));
    whole.map(|(path, seed, len)| (path.to_string(), pattern(seed, len))).collect()
}

fn withstands(
    damaged: &'static [&'static str],
    forge: impl Fn(&mut Image) + Send + Clone + 'static,
) {
    for version in [3, 4] {
        let forge = forge.clone();
        ends("using a forged file", move || {
            let mut image = sample(version);
            forge(&mut image);
            withstands_use(&image.bytes, &all_but(damaged));
        });
    }
}

#[test]
fn site_freeing_a_mini_chain_that_leaves_the_mini_fat() {
    for cell in [5000, 0xFFFF_FFFA, FREE] {
        withstands(&["b"], move |image| image.put_mini_cell(image.start("b") + 3, cell));
    }
}

#[test]
fn site_allocating_past_the_last_fat_sector() {
    for sectors in [1, 200, 1200] {
        withstands(&[], move |image| {
            image.bytes.resize(image.bytes.len() + sectors * image.sector_bytes, 0x55);
        });
    }
}

#[test]
fn site_extending_a_chain_that_leaves_the_fat() {
    for cell in [100_000, 0xFFFF_FFFA, FREE] {
        withstands(&["c"], move |image| image.put_cell(image.start("c") + 3, cell));
        withstands(&["c"], move |image| image.put_start("c", cell));
    }
}

#[test]
fn site_extending_the_mini_stream_whose_chain_leaves_the_fat() {
    for cell in [100_000, 0xFFFF_FFFA, FREE] {
        withstands(&["a", "b", "e"], move |image| image.put_start("", cell));
    }
}

#[test]
fn site_removing_an_entry_that_the_tree_order_hides() {
    // Each name in turn becomes the greatest, so that a search by order misses it or its neighbours.
    for name in ["a", "b", "c", "d", "e"] {
        let mut image = sample(3);
        image.put_name(name, &units("z"), 4);
        for gone in ["a", "b", "c", "d", "e", "z"] {
            let file = open(&image.bytes).unwrap();
            let path = if gone == name { "z" } else { gone };
            if !file.exists(path) {
                continue;
            }
            file.remove_stream(path).unwrap();
            assert!(!file.exists(path));
            file.write_stream(path, b"again").unwrap();
            let file = open(&saved(&file)).unwrap();
            assert_eq!(file.read_stream(path).unwrap(), b"again");
            assert_eq!(file.children("/").unwrap().len(), 5);
        }
    }
}

#[test]
fn site_inserting_a_name_that_is_there_where_order_would_not_have_it() {
    let mut image = sample(3);
    image.put_name("a", &units("z"), 4);
    let file = open(&image.bytes).unwrap();
    assert!(matches!(file.create_new_stream("z"), Err(Error::AlreadyExists { .. })));
    assert!(matches!(file.create_new_stream("Z"), Err(Error::AlreadyExists { .. })));
    file.write_stream("z", b"replaced").unwrap();
    let file = open(&saved(&file)).unwrap();
    assert_eq!(file.read_stream("z").unwrap(), b"replaced");
    assert_eq!(file.children("/").unwrap().len(), 5);
}

#[test]
fn site_two_entries_of_one_name_can_both_be_reached_and_removed() {
    for version in [3, 4] {
        let mut image = sample(version);
        image.put_name("b", &units("a"), 4);
        let file = open(&image.bytes).unwrap();
        let twins: Vec<_> =
            file.children("/").unwrap().into_iter().filter(|entry| entry.name() == "a").collect();
        assert_eq!(twins.len(), 2);
        let mut lens: Vec<_> =
            twins.iter().map(|twin| file.read_stream(twin).unwrap().len()).collect();
        lens.sort_unstable();
        assert_eq!(lens, [100, 2000]);
        file.remove_stream(&twins[0]).unwrap();
        assert!(file.exists("a"), "the other one is found now");
        file.remove_stream(&twins[1]).unwrap();
        assert!(!file.exists("a"));
        file.write_stream("a", b"one again").unwrap();
        let (_, account) = judged(&file);
        assert_eq!(account.items.len(), 5);
    }
}

#[test]
fn site_zeroing_the_tail_of_a_chain_that_is_too_short() {
    withstands(&["c"], |image| image.put_cell(image.start("c"), END));
    withstands(&["c"], |image| image.put_size("c", 1_000_000));
    for version in [3, 4] {
        let mut image = sample(version);
        image.put_cell(image.start("c"), END);
        let file = open(&image.bytes).unwrap();
        let stream = file.open_stream("c").unwrap();
        let _ = stream.set_len(35_000);
        let _ = stream.write_at(b"past the gap", 29_000);
        let _ = stream.set_len(20_000);
        drop(stream);
        let file = open(&saved(&file)).unwrap();
        for (path, content) in all_but(&["c"]) {
            assert!(file.read_stream(path.as_str()).unwrap() == content, "{path}");
        }
    }
}

#[test]
fn site_zeroing_the_tail_of_a_mini_chain_that_is_too_short() {
    withstands(&["b"], |image| image.put_mini_cell(image.start("b"), END));
    withstands(&["e"], |image| image.put_size("e", 4000));
    for version in [3, 4] {
        let mut image = sample(version);
        image.put_mini_cell(image.start("b"), END);
        let file = open(&image.bytes).unwrap();
        let stream = file.open_stream("b").unwrap();
        let _ = stream.set_len(3000);
        let _ = stream.write_at(b"past the gap", 1500);
        let _ = stream.set_len(1000);
        let _ = stream.set_len(100_000);
        drop(stream);
        let file = open(&saved(&file)).unwrap();
        for (path, content) in all_but(&["b"]) {
            assert!(file.read_stream(path.as_str()).unwrap() == content, "{path}");
        }
    }
}

#[test]
fn site_writing_into_the_whole_part_of_a_damaged_stream_that_shares_sectors() {
    for version in [3, 4] {
        let mut image = sample(version);
        let kept = 5 * image.sector_bytes;
        image.put_cell(image.start("c") + 4, END);
        image.put_start("d", image.start("c"));
        let file = open(&image.bytes).unwrap();
        let stream = file.open_stream("c").unwrap();
        stream.write_at(b"written", 100).unwrap();
        let mut expected = pattern(3, 30_000)[..kept].to_vec();
        let mut part = vec![0; 50_000];
        assert_eq!(file.open_stream("d").unwrap().read_at(&mut part, 0).unwrap(), kept);
        assert!(part[..kept] == expected, "the other stream has its own bytes");
        expected[100..107].copy_from_slice(b"written");
        assert_eq!(stream.read_at(&mut part, 0).unwrap(), kept);
        assert!(part[..kept] == expected);
        drop(stream);
        let file = open(&saved(&file)).unwrap();
        assert_eq!(file.open_stream("c").unwrap().read_at(&mut part, 0).unwrap(), kept);
        assert!(part[..kept] == expected);
        for (path, content) in all_but(&["c", "d"]) {
            assert!(file.read_stream(path.as_str()).unwrap() == content, "{path}");
        }
    }
}

#[test]
fn site_mini_stream_that_is_smaller_than_its_mini_sectors() {
    // Freeing would take the size below zero.
    for size in [0, 64, 1024] {
        withstands(&["a", "b", "e"], move |image| image.put_size("", size));
    }
}

#[test]
fn site_mini_stream_without_a_size_but_with_a_chain() {
    withstands(&["a", "b", "e"], |image| {
        image.put_size("", 0);
        image.put_start("", END);
    });
}

#[test]
fn site_stream_with_a_size_and_no_chain() {
    withstands(&["c"], |image| image.put_start("c", END));
    withstands(&["b"], |image| image.put_start("b", END));
}

#[test]
fn site_stream_with_a_chain_and_no_size() {
    withstands(&["c"], |image| image.put_size("c", 0));
    withstands(&["b"], |image| image.put_size("b", 0));
}

#[test]
fn site_stream_whose_size_and_start_are_of_different_kinds() {
    // A small size with a sector of the FAT, a large size with a mini sector.
    withstands(&["c"], |image| image.put_size("c", 300));
    withstands(&["b"], |image| image.put_size("b", 5000));
}

#[test]
fn site_storage_that_is_its_own_child() {
    for version in [3, 4] {
        ends("using a storage that holds itself", move || {
            let mut image = Build::new(version)
                .storage("S")
                .stream("S/x", &pattern(1, 100))
                .stream("y", &pattern(2, 100))
                .image();
            image.put_u32(image.at("S", entry::CHILD), n32(image.slot("S")));
            withstands_use(&image.bytes, &[("y".to_string(), pattern(2, 100))]);
            let mut image = Build::new(version)
                .storage("S")
                .stream("S/x", &pattern(1, 100))
                .stream("y", &pattern(2, 100))
                .image();
            image.put_u32(image.at("S", entry::CHILD), 0);
            withstands_use(&image.bytes, &[("y".to_string(), pattern(2, 100))]);
        });
    }
}
