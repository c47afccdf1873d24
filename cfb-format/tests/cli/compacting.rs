//! `compact`: the same content in fewer bytes, and how many were won.

use std::fs;
use std::path::PathBuf;

use super::{Place, args, bytes, cfb, names_in, tree_of};

/// A packed file, and what it was packed from, less what was removed.
fn with_holes(place: &Place) -> PathBuf {
    let file = place.packed(&[
        ("first", &b"x".repeat(60_000)),
        ("one", b"1"),
        ("small", &[b'y'; 3000]),
        ("sub/two", &bytes(50_000)),
        ("sub/three", &[3; 300]),
    ]);
    cfb(args("rm", &file, &["first", "small"])).done();
    for name in ["first", "small"] {
        fs::remove_file(place.path("packed").join(name)).expect("packed from");
    }
    file
}

#[test]
fn a_new_file_has_the_same_content_and_no_trace_of_what_was_deleted() {
    let place = Place::new();
    let (file, small) = (with_holes(&place), place.path("small.cfb"));
    let before = fs::read(&file).expect("packed");
    let run = cfb(args("compact", &file, &["-o", small.to_str().unwrap(), "--json"]));
    run.done();
    let after = fs::read(&small).expect("made");
    let report = run.json();
    assert_eq!(report["bytes_before"], before.len());
    assert_eq!(report["bytes_after"], after.len());
    assert_eq!(report["won_bytes"], before.len() - after.len());
    assert_eq!(fs::read(&file).expect("still there"), before);
    assert!(after.len() < 54_000, "{}", after.len());
    for deleted in [[b'x'; 64], [b'y'; 64]] {
        assert!(before.windows(64).any(|window| window == deleted), "it was there");
        assert!(!after.windows(64).any(|window| window == deleted));
    }
    cfb(args("check", &small, &[])).done();
    let folder = place.path("extracted");
    cfb(args("extract", &small, &["--to", folder.to_str().unwrap()])).done();
    assert_eq!(tree_of(&folder), tree_of(&place.path("packed")));

    let again = place.path("again.cfb");
    let run = cfb(args("compact", &small, &["-o", again.to_str().unwrap()]));
    assert!(run.done().starts_with("0 bytes won: "), "{}", run.out());
    assert_eq!(fs::read(&again).expect("made"), after, "equal content makes equal files");
}

#[test]
fn a_file_that_is_there_is_replaced_only_on_request() {
    let place = Place::new();
    let (file, small) = (with_holes(&place), place.path("small.cfb"));
    fs::write(&small, b"old").expect("written");
    let output = ["-o", small.to_str().unwrap()];
    cfb(args("compact", &file, &output)).refused("--force replaces it");
    assert_eq!(fs::read(&small).expect("still there"), b"old");
    cfb(args("compact", &file, &[&output[..], &["--force"]].concat())).done();
    cfb(args("check", &small, &[])).done();

    let itself = ["-o", file.to_str().unwrap(), "--force"];
    cfb(args("compact", &file, &itself)).refused("it is the file to be compacted");
    cfb(args("compact", &small.with_file_name("none"), &["-o", "new.cfb"])).refused("cannot open");
    assert_eq!(names_in(place.path("x.cfb").parent().unwrap()), ["packed", "small.cfb", "x.cfb"]);
}

#[test]
fn a_damaged_stream_is_kept_up_to_its_damage_and_told() {
    let place = Place::new();
    let (file, small) = (with_holes(&place), place.path("small.cfb"));
    let content = fs::read(&file).expect("packed");
    let two = bytes(50_000);
    let at = content.windows(512).position(|window| *window == two[..512]).expect("its start");
    fs::write(&file, &content[..at + 20_000]).expect("cut");
    let run = cfb(args("compact", &file, &["-o", small.to_str().unwrap(), "--json"]));
    assert_eq!(run.code(), Some(1), "{}", run.err());
    assert!(run.err().contains("/sub/two"), "{}", run.err());
    assert_eq!(run.json()["damaged"], serde_json::json!(["/sub/two"]));
    let kept = cfb(args("cat", &small, &["sub/two"])).0.stdout;
    assert!(two.starts_with(&kept) && !kept.is_empty());
}

#[test]
fn a_file_is_compacted_where_it_is() {
    let place = Place::new();
    let file = with_holes(&place);
    let before = fs::metadata(&file).expect("packed").len();
    let run = cfb(args("compact", &file, &["--json"]));
    run.done();
    let report = run.json();
    let after = fs::metadata(&file).expect("still there").len();
    assert_eq!((&report["bytes_before"], &report["bytes_after"]), (&before.into(), &after.into()));
    assert!(after < 56_000 && report["streams_moved"] != 0, "{report}");
    cfb(args("check", &file, &[])).done();
    let folder = place.path("extracted");
    cfb(args("extract", &file, &["--to", folder.to_str().unwrap()])).done();
    assert_eq!(tree_of(&folder), tree_of(&place.path("packed")));
    assert!(cfb(args("compact", &file, &[])).done().starts_with("0 bytes won: "));
    cfb(args("compact", &file, &["--force"])).refused("--output");
}

#[test]
fn a_wipe_leaves_nothing_that_was_deleted() {
    let place = Place::new();
    let file = place.packed(&[("kept", b"kept"), ("gone", &[b'x'; 3000]), ("also", &[1; 9000])]);
    cfb(args("rm", &file, &["gone"])).done();
    let has_x = || fs::read(&file).expect("there").windows(64).any(|window| window == [b'x'; 64]);
    assert!(has_x());
    cfb(args("compact", &file, &["--wipe"])).done();
    assert!(!has_x());
    assert_eq!(cfb(args("cat", &file, &["kept"])).done(), "kept");
}

#[test]
fn a_file_in_use_is_not_compacted() {
    let place = Place::new();
    let file = with_holes(&place);
    let before = fs::read(&file).expect("packed");
    let open = cfb_format::CompoundFile::open_rw(&file).expect("it opens");
    cfb(args("compact", &file, &[])).refused("cannot open");
    drop(open);
    assert_eq!(fs::read(&file).expect("there"), before);
}
