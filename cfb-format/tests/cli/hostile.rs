//! Files that somebody made to do harm, or that have come to harm: nothing
//! leaves the target folder, nothing drives the terminal, what is intact is saved.

use std::fs;
use std::path::Path;

use super::{Place, args, bytes, cfb, names_in, tree_of};

/// Gives the entry called `old` another name of as many units, past all checks.
fn rename_behind(file: &Path, old: &str, new: &[u16]) {
    let utf16 =
        |units: &[u16]| units.iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<_>>();
    let mut bytes = fs::read(file).expect("packed");
    let (old, new) = (utf16(&old.encode_utf16().collect::<Vec<_>>()), utf16(new));
    assert_eq!(old.len(), new.len());
    let at = entry_of(&bytes, &old);
    bytes[at..at + new.len()].copy_from_slice(&new);
    fs::write(file, bytes).expect("written");
}

/// Byte offset of the directory entry whose name starts with these bytes.
fn entry_of(bytes: &[u8], name: &[u8]) -> usize {
    (512..bytes.len()).step_by(128).find(|&at| bytes[at..].starts_with(name)).expect("an entry")
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Makes the chain of a stream run into nothing after `sectors` sectors.
fn break_chain(file: &Path, name: &str, sectors: usize) {
    let mut bytes = fs::read(file).expect("packed");
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let start = u32_at(&bytes, entry_of(&bytes, &name) + 0x74) as usize;
    let fat_sector = |nth: usize| u32_at(&bytes, 76 + 4 * nth) as usize;
    let cell_of = |sector: usize| (fat_sector(sector / 128) + 1) * 512 + sector % 128 * 4;
    let last = (1..sectors).fold(start, |at, _| u32_at(&bytes, cell_of(at)) as usize);
    let cell = cell_of(last);
    bytes[cell..cell + 4].copy_from_slice(&0xFFFF_FFF0_u32.to_le_bytes());
    fs::write(file, bytes).expect("written");
}

#[test]
fn names_no_file_system_takes_are_extracted_and_packed_again() {
    let place = Place::new();
    let names = [
        "%u0005SummaryInformation",
        "%u0043ON",
        ".%u002E",
        "%u002E",
        "a%u002E",
        "b%u0020",
        "c%u002A%u003F",
        "%u0025u0041",
        "plain",
    ];
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, name.as_bytes())).collect();
    let file = place.packed(&files);
    let listed = cfb(args("ls", &file, &["--json"])).json();
    let mut stored: Vec<&str> = listed
        .as_array()
        .expect("an array")
        .iter()
        .filter_map(|row| row["name"].as_str())
        .collect();
    stored.sort_unstable();
    assert_eq!(
        stored,
        ["\u{5}SummaryInformation", "%u0041", ".", "..", "CON", "a.", "b ", "c*?", "plain"]
    );

    let out = place.path("out");
    cfb(args("extract", &file, &["--to", out.to_str().expect("readable")])).done();
    assert_eq!(tree_of(&out), tree_of(&place.path("packed")));
    assert_eq!(names_in(place.folder.path()), ["out", "packed", "x.cfb"]);
}

#[test]
fn a_name_with_slashes_stays_inside_the_target() {
    let place = Place::new();
    let file = place.packed(&[("s/ABCDEFGHI", b"gotcha"), ("s/KLM", b"x"), ("BBBB/y", b"z")]);
    rename_behind(&file, "ABCDEFGHI", &"../../evi".encode_utf16().collect::<Vec<_>>());
    rename_behind(&file, "BBBB", &"/abs".encode_utf16().collect::<Vec<_>>());

    let out = place.path("deep/out");
    cfb(args("extract", &file, &["--to", out.to_str().expect("readable")])).done();
    let expected = place.fill(
        "expected",
        &[("s/..%u002F..%u002Fevi", b"gotcha"), ("s/KLM", b"x"), ("%u002Fabs/y", b"z")],
    );
    assert_eq!(tree_of(&out), tree_of(&expected));
    assert_eq!(names_in(place.folder.path()), ["deep", "expected", "packed", "x.cfb"]);

    // What is printed can be given back.
    assert_eq!(cfb(args("ls", &file, &["s"])).done(), "KLM\n..%u002F..%u002Fevi\n");
    assert_eq!(cfb(args("cat", &file, &["s/..%u002F..%u002Fevi"])).done(), "gotcha");
    cfb(args("mv", &file, &["s/..%u002F..%u002Fevi", "s/tamed"])).done();
    cfb(args("rm", &file, &["-r", "%u002Fabs"])).done();
    assert_eq!(cfb(args("ls", &file, &["-R"])).done(), "/s/\n/s/KLM\n/s/tamed\n");
}

#[test]
fn half_a_surrogate_pair_is_told_by_its_units() {
    let place = Place::new();
    let file = place.packed(&[("QQQ", b"1")]);
    rename_behind(&file, "QQQ", &[0x41, 0xD800, 0x42]);
    let run = cfb(args("ls", &file, &["--json"]));
    run.done();
    let rows = run.json();
    assert_eq!(rows[0]["name_utf16"], serde_json::json!([0x41, 0xD800, 0x42]));
    assert_eq!(rows[0]["path"], "/A%uD800B");
    assert_eq!(cfb(args("cat", &file, &["A%uD800B"])).done(), "1");
    let out = place.path("out");
    cfb(args("extract", &file, &["--to", out.to_str().expect("readable")])).done();
    assert_eq!(names_in(&out), ["A%uD800B"]);
}

#[test]
fn names_that_one_file_system_takes_for_the_same_get_two_files() {
    let place = Place::new();
    let file = place.packed(&[("aaa", b"1"), ("bbb", b"2")]);
    rename_behind(&file, "bbb", &"AAA".encode_utf16().collect::<Vec<_>>());
    let out = place.path("out");
    cfb(args("extract", &file, &["--to", out.to_str().expect("readable")])).done();
    let expected = place.fill("expected", &[("aaa", b"1"), ("AAA%u", b"2")]);
    assert_eq!(tree_of(&out), tree_of(&expected));
}

#[test]
fn nothing_a_file_says_drives_the_terminal() {
    let place = Place::new();
    let file = place.packed(&[("QQQQ", b"1")]);
    rename_behind(&file, "QQQQ", &"\u{1b}[2J".encode_utf16().collect::<Vec<_>>());
    for arguments in [
        args("ls", &file, &[]),
        args("ls", &file, &["-lR"]),
        args("tree", &file, &[]),
        args("check", &file, &[]),
        args("cat", &file, &["\u{1b}[2K"]),
    ] {
        let run = cfb(&arguments);
        let text = format!("{}{}", run.out(), run.err());
        assert!(!text.contains('\u{1b}'), "{arguments:?}: {text:?}");
    }
    assert_eq!(cfb(args("ls", &file, &[])).done(), "%u001B[2J\n");
}

#[test]
fn of_a_damaged_stream_the_intact_part_is_saved() {
    let place = Place::new();
    let large = bytes(60_000);
    let file = place.packed(&[("before", b"1"), ("large", &large), ("other", &large)]);
    break_chain(&file, "large", 20);

    let run = cfb(args("cat", &file, &["large", "other"]));
    assert_eq!(run.code(), Some(1));
    assert_eq!(run.0.stdout, [&large[..20 * 512], &large[..]].concat());
    let reported: Vec<&str> = run.err().lines().collect();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].starts_with("cfb: large is damaged: read 10,240 of 60,000 bytes: "));

    let out = place.path("out");
    let run = cfb(args("extract", &file, &["--to", out.to_str().expect("readable")]));
    assert_eq!((run.code(), run.out()), (Some(1), ""));
    assert!(run.err().contains("/large is damaged"), "{}", run.err());
    assert_eq!(run.err().lines().count(), 1, "{}", run.err());
    assert_eq!(fs::read(out.join("large")).expect("saved"), large[..20 * 512]);
    assert_eq!(fs::read(out.join("other")).expect("saved"), large);
    assert_eq!(names_in(&out), ["before", "large", "other"]);

    let run = cfb(args("check", &file, &[]));
    assert_eq!((run.code(), run.err()), (Some(1), ""));
    assert!(run.out().contains("error"), "{}", run.out());
}

#[test]
fn entries_out_of_reach_are_not_passed_over_in_silence() {
    let place = Place::new();
    let file = place.packed(&[("aaa", b"1"), ("bbb", b"2"), ("ccc", b"3")]);
    let mut bytes = fs::read(&file).expect("packed");
    // The child of the root is the middle one of the three.
    let root = entry_of(&bytes, b"R\0o\0o\0t\0");
    bytes[root + 0x4C..root + 0x50].copy_from_slice(&1000_u32.to_le_bytes());
    fs::write(&file, bytes).expect("written");

    let out = place.path("out");
    for run in [
        cfb(args("ls", &file, &[])),
        cfb(args("tree", &file, &[])),
        cfb(args("extract", &file, &["--to", out.to_str().expect("readable")])),
    ] {
        assert_eq!(run.code(), Some(1), "{}", run.err());
        assert!(run.err().starts_with("cfb: entries may be missing: "), "{}", run.err());
    }
}

#[test]
fn a_file_cut_anywhere_is_read_or_refused() {
    let place = Place::new();
    let file = place.packed(&[("large", &bytes(5000)), ("s/small", b"1")]);
    let whole = fs::read(&file).expect("packed");
    for len in (0..whole.len()).step_by(97) {
        fs::write(&file, &whole[..len]).expect("written");
        let out = place.path(&format!("out{len}"));
        let run = cfb(args("extract", &file, &["--to", out.to_str().expect("readable")]));
        match run.code() {
            Some(0) => assert_eq!(tree_of(&out), tree_of(&place.path("packed"))),
            Some(1 | 2) => assert_ne!(run.err(), "", "a loss is told"),
            other => panic!("cut to {len}: {other:?} {}", run.err()),
        }
        let run = cfb(args("check", &file, &[]));
        assert!(matches!(run.code(), Some(0..=2)), "cut to {len}: {:?}", run.code());
    }
}
