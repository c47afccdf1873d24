//! `add`, `rm`, `mv` change what they name and nothing else; when they refuse,
//! nothing has changed.

use std::fs;
use std::path::Path;

use super::{Place, args, bytes, cfb, cfb_with_input};

/// Everything the file lists, and the rules it breaks: none.
#[track_caller]
fn listing(file: &Path) -> String {
    assert_eq!(cfb(args("check", file, &[])).done(), "");
    cfb(args("ls", file, &["-R"])).done().to_owned()
}

#[track_caller]
fn content(file: &Path, path: &str) -> String {
    cfb(args("cat", file, &[path])).done().to_owned()
}

#[test]
fn add_stores_a_file_under_a_path() {
    let place = Place::new();
    let file = place.packed(&[("a", b"1"), ("s/b", b"2")]);
    let source = place.path("source");
    fs::write(&source, b"new").expect("written");
    let source = source.to_str().expect("readable");

    cfb(args("add", &file, &[source, "c"])).done();
    cfb(args("add", &file, &[source, "/s"])).done();
    cfb(args("add", &file, &[source, "t/u/v", "--parents"])).done();
    cfb(args("add", &file, &[source, "t/%u0001x"])).done();
    assert_eq!(listing(&file), "/a\n/c\n/s/\n/s/b\n/s/source\n/t/\n/t/u/\n/t/u/v\n/t/%u0001x\n");
    for path in ["c", "s/source", "t/u/v", "t/%u0001x"] {
        assert_eq!(content(&file, path), "new");
    }
    cfb(args("add", &file, &[source, "w/x"])).refused("cannot store w/x");
    cfb(args("add", &file, &[source, "w/"])).refused("cannot store w/source");
    cfb(args("add", &file, &["-", "s/"])).refused("give the name");
    cfb(args("add", &file, &["nothing", "x"])).refused("cannot read nothing");
}

#[test]
fn add_takes_standard_input() {
    let place = Place::new();
    let file = place.packed(&[]);
    let input = bytes(2_345_678);
    let run = cfb_with_input(args("add", &file, &["-", "s/x", "-p"]), &input);
    assert_eq!(run.done(), "");
    assert_eq!(cfb(args("cat", &file, &["s/x"])).0.stdout, input);
}

#[test]
fn add_replaces_only_on_request() {
    let place = Place::new();
    let file = place.packed(&[("Data", &bytes(9000)), ("s/x", b"1")]);
    cfb_with_input(args("add", &file, &["-", "data"]), b"new").refused("--force");
    cfb_with_input(args("add", &file, &["-", "s", "-f"]), b"new").refused("give the name");
    cfb_with_input(args("add", &file, &["-", "data", "-f"]), b"new").done();
    assert_eq!(listing(&file), "/s/\n/s/x\n/Data\n");
    assert_eq!(content(&file, "Data"), "new");
}

#[cfg(target_os = "linux")]
#[test]
fn add_that_fails_half_way_leaves_the_old_stream() {
    let place = Place::new();
    let file = place.packed(&[("Data", b"old")]);
    // Opens, and fails at the first read: nothing is mapped at address 0.
    cfb(args("add", &file, &["/proc/self/mem", "Data", "-f"])).refused("cannot store Data");
    assert_eq!(listing(&file), "/Data\n");
    assert_eq!(content(&file, "Data"), "old");
}

#[test]
fn add_stores_a_folder_with_all_it_holds_or_nothing() {
    let place = Place::new();
    let file = place.packed(&[("a", b"1")]);
    let folder = place.fill("new", &[("x", b"2"), ("y/z", b"3")]);
    cfb(args("add", &file, &[folder.to_str().expect("readable"), "/"])).done();
    assert_eq!(listing(&file), "/a\n/new/\n/new/x\n/new/y/\n/new/y/z\n");

    let folder = place.fill("bad", &[("x", b"2"), ("forbidden!", b"3")]);
    cfb(args("add", &file, &[folder.to_str().expect("readable"), "b"])).refused("forbidden!");
    assert_eq!(listing(&file), "/a\n/new/\n/new/x\n/new/y/\n/new/y/z\n");
}

#[test]
fn rm_removes_all_that_is_named_or_nothing() {
    let place = Place::new();
    let file = place.packed(&[("a", b"1"), ("b", &bytes(9000)), ("s/x", b"2"), ("s/t/y", b"3")]);
    let before = fs::read(&file).expect("packed");
    cfb(args("rm", &file, &["a", "s"])).refused("-r removes those");
    cfb(args("rm", &file, &["a", "nothing"])).refused("no entry nothing");
    cfb(args("rm", &file, &["-r", "/"])).refused("root");
    assert_eq!(fs::read(&file).expect("unchanged"), before);

    cfb(args("rm", &file, &["b", "/B"])).done();
    assert_eq!(listing(&file), "/a\n/s/\n/s/t/\n/s/t/y\n/s/x\n");
    let after = fs::metadata(&file).expect("there").len();
    assert!(after + 9000 <= before.len() as u64, "{after} bytes: the file shrinks");
    cfb(args("rm", &file, &["-r", "s/t/y", "s", "s/x"])).done();
    assert_eq!(listing(&file), "/a\n");
}

#[test]
fn mv_renames_and_moves() {
    let place = Place::new();
    let file = place.packed(&[("a", b"1"), ("s/b", b"2"), ("t/", b"")]);
    cfb(args("mv", &file, &["a", "c"])).done();
    cfb(args("mv", &file, &["c", "s"])).done();
    cfb(args("mv", &file, &["s", "t/u"])).done();
    cfb(args("mv", &file, &["t/u/b", "t/u/B"])).done();
    assert_eq!(listing(&file), "/t/\n/t/u/\n/t/u/B\n/t/u/c\n");
    assert_eq!((content(&file, "t/u/c"), content(&file, "t/u/b")), ("1".into(), "2".into()));
}

#[test]
fn mv_refuses_what_would_lose_or_tangle_entries() {
    let place = Place::new();
    let file = place.packed(&[("a", b"1"), ("b", b"2"), ("s/t/x", b"3")]);
    let before = fs::read(&file).expect("packed");
    cfb(args("mv", &file, &["a", "b"])).refused("--force");
    cfb(args("mv", &file, &["s", "s/t"])).refused("inside itself");
    cfb(args("mv", &file, &["s", "s/t/x", "-f"])).refused("inside itself");
    cfb(args("mv", &file, &["a", "nothing/"])).refused("no storage nothing/");
    cfb(args("mv", &file, &["a", "nothing/a"])).refused("no entry nothing");
    cfb(args("mv", &file, &["/", "x"])).refused("root");
    cfb(args("mv", &file, &["a", "bad!"])).refused("cannot move a to bad!");
    assert_eq!(fs::read(&file).expect("unchanged"), before);

    cfb(args("mv", &file, &["a", "b", "-f"])).done();
    assert_eq!(listing(&file), "/b\n/s/\n/s/t/\n/s/t/x\n");
    assert_eq!(content(&file, "b"), "1");
}
