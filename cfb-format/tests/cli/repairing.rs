//! `repair`: a new file of what is left, a report, and the damaged file as it was.

use std::fs;

use super::{Place, args, bytes, cfb, names_in, tree_of};

/// A packed file of which a part is overwritten with zeros.
fn damaged(place: &Place, range: std::ops::Range<usize>) -> (std::path::PathBuf, Vec<u8>) {
    let file = place.packed(&[("one", b"1"), ("sub/two", &bytes(5000)), ("sub/three", &[3; 300])]);
    let mut damaged = fs::read(&file).expect("packed");
    damaged[range].fill(0);
    fs::write(&file, &damaged).expect("written");
    (file, damaged)
}

#[test]
fn a_file_without_a_header_is_repaired_whole() {
    let place = Place::new();
    let (file, damaged) = damaged(&place, 0..512);
    cfb(args("ls", &file, &[])).refused("not a compound file");
    let saved = place.path("saved.cfb");
    let run = cfb(args("repair", &file, &["-o", saved.to_str().unwrap()]));
    let out = run.done();
    assert!(out.starts_with("found    header.signature: "), "{out}");
    assert!(
        out.ends_with("3 streams: 3 whole, 0 guessed, 0 in part, 0 lost; 5,301 bytes recovered\n"),
        "{out}"
    );
    assert_eq!(fs::read(&file).expect("still there"), damaged, "the damaged file is only read");

    let folder = place.path("extracted");
    cfb(args("extract", &saved, &["--to", folder.to_str().unwrap()])).done();
    assert_eq!(tree_of(&folder), tree_of(&place.path("packed")));
}

#[test]
fn a_cut_file_says_which_bytes_are_missing() {
    let place = Place::new();
    let (file, damaged) = damaged(&place, 0..0);
    let two = bytes(5000);
    let at = damaged.windows(512).position(|window| *window == two[..512]).expect("its start");
    fs::write(&file, &damaged[..at + 1000]).expect("written");
    let saved = place.path("saved.cfb");
    let run = cfb(args("repair", &file, &["-o", saved.to_str().unwrap(), "--json"]));
    assert_eq!((run.code(), run.err()), (Some(1), ""));
    let report = run.json();
    let streams = report["streams"].as_array().expect("an array");
    let stream = streams.iter().find(|stream| stream["path"] == "/sub/two").expect("in part");
    assert_eq!(stream["recovery"], "partial");
    assert_eq!(stream["missing"], serde_json::json!([[1000, 5000]]));
    assert_eq!(report["partial"], 1);
    let content = cfb(args("cat", &saved, &["sub/two"])).0.stdout;
    assert!(content[..1000] == two[..1000] && content[1000..] == [0; 4000]);
}

#[test]
fn the_new_file_never_takes_the_place_of_the_damaged_one() {
    let place = Place::new();
    let (file, damaged) = damaged(&place, 0..512);
    for extra in [&[][..], &["--force"]] {
        let rest = [&["-o", file.to_str().unwrap()], extra].concat();
        cfb(args("repair", &file, &rest)).refused("it is the damaged file");
    }
    assert_eq!(fs::read(&file).expect("still there"), damaged);

    let saved = place.path("saved.cfb");
    fs::write(&saved, b"old").expect("written");
    cfb(args("repair", &file, &["-o", saved.to_str().unwrap()])).refused("--force replaces it");
    assert_eq!(fs::read(&saved).expect("still there"), b"old");
    cfb(args("repair", &file, &["-f", "-o", saved.to_str().unwrap()])).code();
    assert_ne!(fs::read(&saved).expect("replaced"), b"old");
}

#[test]
fn what_is_no_compound_file_leaves_nothing_behind() {
    let place = Place::new();
    let file = place.path("x");
    fs::write(&file, vec![b'x'; 9000]).expect("written");
    let saved = place.path("saved.cfb");
    let run = cfb(args("repair", &file, &["-o", saved.to_str().unwrap()]));
    run.refused("nothing in 9000 bytes looks like a part of a compound file");
    assert_eq!(names_in(place.folder.path()), ["x"]);
}
