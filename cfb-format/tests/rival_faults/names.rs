//! Names are checked before anything changes, and ordered by UTF-16 units.

use cfb_format::Error;

use crate::common::files::{VERSIONS, create, judged, open, open_strict, saved};
use crate::common::raw::{Build, entry, inspect, n32, pattern, units};

/// Tries to give `name` to an entry in every way there is; each must be refused.
fn refused_everywhere(name: &str) {
    for version in VERSIONS {
        let file = create(version);
        file.write_stream("stays", b"content").unwrap();
        file.create_storage("storage").unwrap();
        let alive = file.open_stream("stays").unwrap();
        alive.write_at(b"CON", 0).unwrap();
        let bad = |result: Result<(), Error>| match result {
            Err(Error::BadName { name: told, .. }) => assert_eq!(told, name),
            other => panic!("{name:?}: {other:?}"),
        };
        bad(file.create_stream(name).map(drop));
        bad(file.create_new_stream(name).map(drop));
        bad(file.write_stream(name, b"x"));
        bad(file.create_storage(name).map(drop));
        bad(file.create_storage_all(name).map(drop));
        bad(file.create_stream(&format!("storage/{name}")).map(drop));
        bad(file.rename("stays", name).map(drop));
        bad(file.move_to("stays", &format!("storage/{name}")).map(drop));
        bad(file.copy("stays", name).map(drop));
        bad(file.copy_into("stays", &create(version), name).map(drop));
        assert_eq!(file.walk().count(), 3, "nothing was created");
        alive.write_at(b"tent", 3).unwrap();
        drop(alive);
        let (bytes, _) = judged(&file);
        assert_eq!(open(&bytes).unwrap().read_stream("stays").unwrap(), b"CONtent");
    }
}

#[test]
fn b01_name_of_32_to_64_units_is_refused_and_the_file_stays_openable() {
    for len in [32, 33, 40, 63, 64] {
        refused_everywhere(&"n".repeat(len));
    }
    refused_everywhere(&"𐐀".repeat(16));
    let file = create(VERSIONS[0]);
    let longest = ["n".repeat(31), "ÿ".repeat(31), "𐐀".repeat(15)];
    for name in &longest {
        file.write_stream(name, name.as_bytes()).unwrap();
    }
    let (bytes, _) = judged(&file);
    for name in &longest {
        assert_eq!(open(&bytes).unwrap().read_stream(name).unwrap(), name.as_bytes());
    }
}

#[test]
fn b02_name_of_65_units_and_more_is_refused_while_streams_are_open() {
    for len in [65, 66, 1000, 100_000] {
        refused_everywhere(&"n".repeat(len));
    }
}

#[test]
fn b03_forbidden_characters_are_refused() {
    for name in ["a:b", "a!b", "a\\b", ":", "!", "\\", "a\0b", "\0"] {
        refused_everywhere(name);
    }
    let file = create(VERSIONS[0]);
    file.write_stream("a", b"x").unwrap();
    assert!(
        matches!(file.rename("a", "b/c"), Err(Error::BadName { .. })),
        "a slash is no part of a name"
    );
    assert!(
        matches!(file.rename("a", ""), Err(Error::BadName { .. })),
        "a name has at least one unit"
    );
    judged(&file);
}

#[test]
fn control_characters_in_names_are_allowed() {
    let file = create(VERSIONS[0]);
    for name in ["\u{5}SummaryInformation", "\u{1}CompObj", "\u{6}DataSpaces"] {
        file.write_stream(name, b"x").unwrap();
    }
    let (_, account) = judged(&file);
    assert_eq!(account.items.len(), 4);
}

/// Two names of two units each: by scalar value the second comes first, by UTF-16 unit the first one.
const SUPPLEMENTARY: &str = "\u{10400}";
const TWO_LIGATURES: &str = "\u{FB00}\u{FB00}";

#[test]
fn b17_names_are_ordered_by_utf16_unit() {
    for version in VERSIONS {
        let file = create(version);
        for name in [TWO_LIGATURES, SUPPLEMENTARY, "ab", "\u{E000}x", "zz", "\u{1F600}"] {
            file.write_stream(name, name.as_bytes()).unwrap();
        }
        let (bytes, account) = judged(&file);
        let order: Vec<_> = account.items[1..].iter().map(|item| item.path.as_str()).collect();
        assert_eq!(order, ["ab", "zz", SUPPLEMENTARY, "\u{1F600}", "\u{E000}x", TWO_LIGATURES]);
        for name in order {
            assert_eq!(open(&bytes).unwrap().read_stream(name).unwrap(), name.as_bytes());
        }
    }
}

#[test]
fn b17b_wrong_order_of_siblings_costs_nothing() {
    let mut image = Build::new(3).stream("aa", b"1").stream("bb", b"2").stream("cc", b"3").image();
    image.put_name("bb", &units("zz"), 6);
    assert!(matches!(open_strict(&image.bytes), Err(Error::NotStrict { .. })));
    let file = open(&image.bytes).unwrap();
    let found = file.check().unwrap();
    assert!(found.iter().any(|finding| finding.code().as_str() == "dir.order"), "{found:?}");
    for (name, content) in [("aa", b"1"), ("zz", b"2"), ("cc", b"3"), ("ZZ", b"2")] {
        assert_eq!(file.read_stream(name).unwrap(), content);
    }
    file.write_stream("dd", b"4").unwrap();
    file.remove_stream("cc").unwrap();
    let file = open(&saved(&file)).unwrap();
    for (name, content) in [("aa", b"1"), ("zz", b"2"), ("dd", b"4")] {
        assert_eq!(file.read_stream(name).unwrap(), content);
    }
    assert!(!file.exists("cc"));
}

#[test]
fn b17c_order_by_utf16_unit_is_accepted() {
    for version in [3, 4] {
        let image = Build::new(version)
            .stream(SUPPLEMENTARY, b"1")
            .stream(TWO_LIGATURES, b"2")
            .stream("ab", b"3")
            .image();
        inspect(&image.bytes).expect_sound();
        let file = open_strict(&image.bytes).unwrap();
        assert_eq!(file.findings(), []);
        assert_eq!(file.read_stream(SUPPLEMENTARY).unwrap(), b"1");
        assert_eq!(file.read_stream(TWO_LIGATURES).unwrap(), b"2");
    }
}

/// A file whose storage `S` has streams with the names `.`, `..` and none, as some writers make them.
fn odd_names() -> Vec<u8> {
    let mut image = Build::new(3)
        .storage("S")
        .stream("S/dot", &pattern(1, 100))
        .stream("S/up", &pattern(2, 200))
        .stream("S/none", &pattern(3, 300))
        .stream("S/x", &pattern(4, 5000))
        .image();
    image.put_name("S/dot", &units("."), 4);
    image.put_name("S/up", &units(".."), 6);
    image.put_name("S/none", &[], 2);
    // The order by name is now: none, dot, x, up. The tree is linked anew.
    let [none, dot, x, up] = ["S/none", "S/dot", "S/x", "S/up"]
        .map(|path| (n32(image.slot(path)), image.slot_at(image.slot(path))));
    for (at, left, right, colour) in [
        (dot.1, none.0, x.0, 1),
        (none.1, u32::MAX, u32::MAX, 1),
        (x.1, u32::MAX, up.0, 1),
        (up.1, u32::MAX, u32::MAX, 0),
    ] {
        image.put_u32(at + entry::LEFT, left);
        image.put_u32(at + entry::RIGHT, right);
        image.put(at + entry::COLOUR, &[colour]);
    }
    image.put_u32(image.at("S", entry::CHILD), dot.0);
    image.bytes
}

#[test]
fn b29_every_entry_that_a_walk_gives_can_be_opened() {
    let file = open(&odd_names()).unwrap();
    let mut seen = Vec::new();
    for entry in file.walk().filter(cfb_format::Entry::is_stream) {
        let content = file.read_stream(&entry).unwrap();
        assert_eq!(file.open_stream(&entry).unwrap().entry().unwrap().name(), entry.name());
        seen.push((entry.name().clone(), content.len()));
    }
    seen.sort();
    assert_eq!(
        seen,
        [(String::new(), 300), (".".into(), 100), ("..".into(), 200), ("x".into(), 5000)]
    );
}

#[test]
fn b29_entries_with_odd_names_can_be_written_renamed_and_removed() {
    let file = open(&odd_names()).unwrap();
    for (nth, entry) in file.children("S").unwrap().into_iter().enumerate() {
        file.open_stream(&entry).unwrap().write_at(b"written", 10).unwrap();
        if nth % 2 == 0 {
            file.rename(&entry, &format!("renamed {nth}")).unwrap();
        } else {
            file.remove_stream(&entry).unwrap();
        }
    }
    let (bytes, account) = judged(&file);
    assert_eq!(account.items.len(), 4);
    assert_eq!(&account.content(&bytes, "S/renamed 0")[10..17], b"written");
}

#[test]
fn cp_copy_of_a_storage_takes_odd_names_along() {
    let from = open(&odd_names()).unwrap();
    let to = create(VERSIONS[1]);
    from.copy_into("S", &to, "T").unwrap();
    from.copy("S", "U").unwrap();
    for (file, path) in [(&to, "T"), (&from, "U")] {
        let children = file.children(path).unwrap();
        let names: Vec<_> = children.iter().map(cfb_format::Entry::name).collect();
        // The order of names of one length is by unit; no name at all is none that a new entry may have.
        assert_eq!(names, [".", "x", "_", ".."]);
        for (child, (seed, len)) in children.iter().zip([(1, 100), (4, 5000), (3, 300), (2, 200)]) {
            assert!(file.read_stream(child).unwrap() == pattern(seed, len), "{}", child.name());
        }
    }
    judged(&to);
}
