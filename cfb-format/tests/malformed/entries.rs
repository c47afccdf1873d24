//! Departures in single directory entries. [MS-CFB] 2.6.1 to 2.6.3

use crate::cases::{bends, breaks, damages, forged, forged_in, judge, sample};
use crate::common::abuse::withstands_use;
use crate::common::files::{ends, open, open_strict};
use crate::common::raw::{Build, END, FREE, Image, entry, header, n32, pattern, units};

#[test]
fn start_and_size_of_a_storage_mean_nothing() {
    for start in [END, FREE, 1, 5000] {
        forged(&breaks(&["entry.storage-start"]), |image| image.put_start("Store", start));
        forged(&breaks(&["entry.storage-start"]), |image| image.put_start("Bare", start));
    }
    for size in [1, 4096, u64::MAX] {
        forged(&breaks(&["entry.storage-size"]), |image| image.put_size("Store", size));
    }
}

#[test]
fn class_state_and_times_of_a_stream_are_kept_from_harm() {
    forged(&breaks(&["entry.stream-clsid"]), |image| {
        image.put(image.at("one", entry::CLSID), &[0x55; 16]);
    });
    forged(&bends(&["entry.stream-state"]), |image| {
        image.put_u32(image.at("one", entry::STATE), 7);
    });
    for field in [entry::CREATED, entry::MODIFIED] {
        for time in [1, 0x01D5_0000_0000_0000, u64::MAX] {
            forged(&breaks(&["entry.stream-times"]), |image| {
                image.put_u64(image.at("one", field), time);
            });
        }
    }
}

#[test]
fn times_that_are_no_dates_are_given_raw() {
    for version in [3, 4] {
        let mut image = sample(version);
        image.put_u64(image.at("Store", entry::CREATED), u64::MAX);
        image.put_u64(image.at("Store", entry::MODIFIED), 0x8000_0000_0000_0000);
        let file = open_strict(&image.bytes).unwrap();
        let storage = file.entry("Store").unwrap();
        assert_eq!(storage.created().raw(), u64::MAX);
        assert_eq!(storage.modified().raw(), 0x8000_0000_0000_0000);
        let _ = storage.created().to_system_time();
        let _ = storage.modified().to_system_time();
    }
}

#[test]
fn times_of_a_foreign_stream_can_be_read() {
    let mut image = sample(3);
    image.put_u64(image.at("one", entry::CREATED), 0x01D5_1234_5678_9ABC);
    let file = open(&image.bytes).unwrap();
    assert_eq!(file.entry("one").unwrap().created().raw(), 0x01D5_1234_5678_9ABC);
}

#[test]
fn root_by_any_name_is_the_root() {
    for name in ["R", "\\", "ROOT ENTRY", "Whatever it is"] {
        forged(&breaks(&["root.name"]), |image| {
            image.put_name("", &units(name), 2 * u16::try_from(name.len()).unwrap() + 2);
        });
    }
    forged(&breaks(&["root.name", "entry.name-empty"]), |image| image.put_name("", &[], 0));
}

#[test]
fn creation_time_of_the_root_is_found() {
    forged(&breaks(&["root.created"]), |image| {
        image.put_u64(image.at("", entry::CREATED), 0x01D5_0000_0000_0000);
    });
}

#[test]
fn root_entry_of_another_kind_is_taken_as_the_root_or_refused_with_its_kind() {
    for kind in [0, 1, 2, 3, 0xFF] {
        for version in [3, 4] {
            let mut image = sample(version);
            image.put(image.at("", entry::KIND), &[kind]);
            match open(&image.bytes) {
                Ok(_) => judge(&image.bytes, &damages(&["root.type"], &[])),
                Err(cfb_format::Error::Corrupt(cfb_format::Corruption::NoRoot { found })) => {
                    assert_eq!(found, kind);
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn high_half_of_a_version_3_size_means_nothing() {
    for high in [1_u64, 0xDEAD_BEEF, 0xFFFF_FFFF] {
        forged_in(3, &bends(&["entry.size-high"]), |image| {
            image.put_size("big", (high << 32) + 20_000);
        });
        forged_in(3, &bends(&["entry.size-high"]), |image| {
            image.put_size("one", (high << 32) + 100);
        });
        forged_in(3, &bends(&["entry.size-high"]), |image| {
            let at = image.at("", entry::SIZE);
            image.put_u64(at, (high << 32) + image.u64(at));
        });
    }
}

#[test]
fn size_past_the_version_s_limit_costs_that_stream() {
    for size in [0x8000_0001, 0xFFFF_FFFF] {
        forged_in(3, &damages(&["entry.size-limit"], &["big"]), |image| {
            image.put_size("big", size);
        });
    }
    for size in [1 << 62, u64::MAX] {
        forged_in(4, &damages(&["entry.size-limit", "stream.broken"], &["big"]), |image| {
            image.put_size("big", size);
        });
    }
    forged(&damages(&["stream.broken"], &["big"]), |image| image.put_size("big", 0x7000_0000));
    forged(&damages(&["stream.broken"], &["one"]), |image| image.put_size("one", 4000));
}

#[test]
fn empty_stream_with_a_start_is_found() {
    for start in [0, 1, 5000, FREE] {
        forged(&breaks(&["stream.empty-start"]), |image| image.put_start("none", start));
    }
}

#[test]
fn start_past_the_end_costs_that_stream() {
    for start in [5000, 0x0064_0064, 0xFFFF_FFFA, END, FREE] {
        forged(&damages(&["stream.broken"], &["big"]), |image| image.put_start("big", start));
        forged(&damages(&["stream.broken"], &["two"]), |image| image.put_start("two", start));
    }
}

/// Gives the stream `one` another name, in the file only, and expects to read it under `expected`.
fn renamed(code: &'static str, strict_refuses: bool, expected: &str, name: &[u16], len_bytes: u16) {
    for version in [3, 4] {
        let mut image = sample(version);
        image.put_name("one", name, len_bytes);
        let file = open(&image.bytes).unwrap();
        let entry = file.walk().into_iter().find(|entry| entry.name() == expected);
        let entry = entry.unwrap_or_else(|| panic!("{expected:?} is not there"));
        assert_eq!(file.read_stream(&entry).unwrap(), pattern(0, 100));
        let found: Vec<_> = file
            .check()
            .unwrap()
            .iter()
            .chain(&file.findings())
            .map(|f| f.code().as_str())
            .collect();
        assert!(found.contains(&code), "{code} is not in {found:?}");
        assert!(open_strict(&image.bytes).is_err() || !strict_refuses);
        ends("using a file with an odd name", move || {
            withstands_use(&image.bytes, &crate::cases::all_but(&["one"]));
        });
    }
}

#[test]
fn name_without_terminator_is_read_whole() {
    renamed("entry.name-terminator", true, "one", &units("one"), 6);
    renamed("entry.name-terminator", true, &"n".repeat(32), &units(&"n".repeat(32)), 64);
}

#[test]
fn name_length_that_is_odd_or_too_long_is_put_right() {
    renamed("entry.name-length", true, "one", &units("one"), 7);
    renamed("entry.name-length", true, "one", &units("one"), 10);
    renamed("entry.name-length", true, "one", &units("one"), 0xFFFF);
    renamed("entry.name-length", true, "one", &units("one"), 66);
}

#[test]
fn name_with_a_null_inside_is_read() {
    let mut image = sample(3);
    image.put_name("one", &[b'o'.into(), 0, b'e'.into()], 8);
    let file = open(&image.bytes).unwrap();
    let found: Vec<_> =
        file.check().unwrap().iter().chain(&file.findings()).map(|f| f.code().as_str()).collect();
    assert!(found.contains(&"entry.name-null"), "{found:?}");
    let content = pattern(0, 100);
    assert!(
        file.walk()
            .into_iter()
            .any(|entry| file.read_stream(&entry).is_ok_and(|read| read == content))
    );
    assert!(open_strict(&image.bytes).is_err());
    withstands_use(&image.bytes, &crate::cases::all_but(&["one"]));
}

#[test]
fn name_with_forbidden_characters_is_read() {
    for name in ["o/e", "o\\e", "o:e", "o!e", "/", "//"] {
        renamed(
            "entry.name-character",
            true,
            name,
            &units(name),
            2 * u16::try_from(name.len()).unwrap() + 2,
        );
    }
}

#[test]
fn name_with_half_a_surrogate_pair_is_read() {
    renamed("entry.name-surrogate", false, "a\u{FFFD}b", &[0x61, 0xD800, 0x62], 8);
    renamed("entry.name-surrogate", false, "\u{FFFD}", &[0xDC00], 4);
    let mut image = sample(3);
    image.put_name("one", &[0x61, 0xD800], 6);
    let file = open(&image.bytes).unwrap();
    assert!(
        file.walk().into_iter().any(|entry| entry.name_utf16() == [0x61, 0xD800]),
        "the units are given as they are"
    );
}

#[test]
fn empty_name_is_read() {
    renamed("entry.name-empty", true, "", &[], 2);
    renamed("entry.name-empty", true, "", &[], 0);
}

#[test]
fn storage_without_a_name_keeps_its_children_apart() {
    let mut image = Build::new(3)
        .storage("S")
        .stream("S/x", &pattern(1, 100))
        .stream("x", &pattern(2, 200))
        .image();
    image.put_name("S", &[], 2);
    // Shorter names come first: the nameless storage is before `x` now as it was before.
    let file = open(&image.bytes).unwrap();
    let lens: Vec<_> = file
        .walk()
        .filter(cfb_format::Entry::is_stream)
        .map(|entry| file.read_stream(&entry).unwrap().len())
        .collect();
    assert_eq!(lens.iter().sum::<usize>(), 300);
    assert_eq!(file.read_stream("x").unwrap(), pattern(2, 200));
    let storage =
        file.children("/").unwrap().into_iter().find(|entry| entry.name().is_empty()).unwrap();
    assert_eq!(file.children(&storage).unwrap().len(), 1);
}

#[test]
fn garbage_after_the_name_is_noted() {
    forged(&bends(&["entry.name-padding"]), |image| image.put(image.at("one", 40), &[0xAB; 20]));
    forged(&bends(&["entry.name-padding"]), |image| {
        image.put(image.at("Store", 20), &[0x00, 0xD8]);
    });
}

#[test]
fn only_empty_streams_need_no_tables() {
    for version in [3, 4] {
        let image = Build::new(version).stream("a", &[]).stream("b", &[]).image();
        assert_eq!(image.u32(header::MINI_FAT_COUNT), 0);
        assert_eq!(open_strict(&image.bytes).unwrap().check().unwrap(), []);
        withstands_use(
            &image.bytes,
            &[("a".to_string(), Vec::new()), ("b".to_string(), Vec::new())],
        );
    }
}

#[test]
fn stream_of_exactly_the_cutoff_has_sectors_of_its_own() {
    for version in [3, 4] {
        let image = Build::new(version)
            .stream("below", &pattern(1, 4095))
            .stream("at", &pattern(2, 4096))
            .image();
        let file = open_strict(&image.bytes).unwrap();
        assert!(file.read_stream("at").unwrap() == pattern(2, 4096));
        assert!(file.read_stream("below").unwrap() == pattern(1, 4095));
    }
}

#[test]
fn every_field_of_an_entry_may_be_the_greatest_number() {
    for version in [3, 4] {
        let fields = [entry::LEFT, entry::RIGHT, entry::CHILD, entry::START, entry::STATE];
        for path in ["one", "Store", "big", "none"] {
            for field in fields {
                let mut image: Image = sample(version);
                image.put_u32(image.at(path, field), 0xFFFF_FFFA);
                ends("using a forged file", move || {
                    crate::common::abuse::bears_anything(&image.bytes);
                });
            }
            let mut image = sample(version);
            image.put_u32(image.at(path, entry::LEFT), n32(image.slot(path)));
            ends("using a forged file", move || crate::common::abuse::bears_anything(&image.bytes));
        }
    }
}
