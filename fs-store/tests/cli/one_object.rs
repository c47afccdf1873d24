//! One object at a time: put, get, cat, mv, rm, stat.

use std::fs;

use crate::{Place, bytes};

#[test]
fn what_is_put_comes_back_from_cat_and_get() {
    let place = Place::with(&[]);
    let long = bytes(3_000_000);
    fs::write(place.path("in"), &long).unwrap();
    assert_eq!(place.run(["put", "s", "a/long", "in"]).done(), "");
    assert_eq!(place.run_with(["put", "s", "a/short"], b"few").done(), "");
    assert_eq!(place.run(["cat", "s", "a/short", "a/short"]).done(), "fewfew");
    assert_eq!(place.run(["cat", "s", "a/long"]).0.stdout, long);
    let part = place.run(["cat", "s", "a/long", "--offset", "999999", "--length", "1000"]);
    assert_eq!(part.0.stdout, long[999_999..1_000_999]);

    assert_eq!(place.run(["get", "s", "a/long", "out"]).done(), "");
    assert_eq!(fs::read(place.path("out")).unwrap(), long);
    place.run(["get", "s", "a/short", "out"]).refused(2, "--force");
    assert_eq!(fs::read(place.path("out")).unwrap(), long);
    place.run(["get", "s", "a/short", "out", "--force"]).done();
    assert_eq!(fs::read(place.path("out")).unwrap(), b"few");
    fs::create_dir(place.path("d")).unwrap();
    place.run(["get", "s", "a/short", "d"]).done();
    assert_eq!(fs::read(place.path("d/short")).unwrap(), b"few");
}

#[test]
fn a_store_is_made_only_on_request() {
    let place = Place::with(&[]);
    place.run_with(["put", "new", "a"], b"1").refused(2, "there is no store here");
    assert!(!place.path("new").exists());
    place.run_with(["put", "--create", "new", "a"], b"1").done();
    assert_eq!(place.contents("new")[&b"a"[..]], b"1");
    place.run(["ls", "nowhere"]).refused(2, "there is no store here");
}

#[test]
fn keys_that_are_not_there_are_exit_code_1() {
    let place = Place::with(&[("a", b"1"), ("b", b"2")]);
    for args in [
        &["cat", "s", "a", "none"][..],
        &["get", "s", "none", "out"],
        &["rm", "s", "a", "none"],
        &["mv", "s", "none", "c"],
        &["stat", "s", "none"],
    ] {
        place.run(args).refused(1, "there is no object \"none\"");
    }
    assert!(!place.path("out").exists());
    assert_eq!(place.run(["ls", "s"]).done(), "a\nb\n");
    place.run(["rm", "s", "--force", "a", "none"]).done();
    assert_eq!(place.run(["ls", "s"]).done(), "b\n");
}

#[test]
fn conditions_hold_or_nothing_happens() {
    let place = Place::with(&[("a", b"1")]);
    place.run_with(["put", "s", "a", "--new"], b"2").refused(1, "already");
    place.run_with(["put", "s", "b", "--replace"], b"2").refused(1, "no object");
    let stat = place.run(["stat", "s", "a", "--json"]).json();
    let version = stat[0]["version"].as_u64().unwrap();
    let other = (version + 1).to_string();
    place.run_with(["put", "s", "a", "--if-version", &other], b"2").refused(1, "version");
    assert_eq!(place.run(["cat", "s", "a"]).done(), "1");
    let version = version.to_string();
    place.run_with(["put", "s", "a", "--if-version", &version], b"2").done();
    assert_eq!(place.run(["cat", "s", "a"]).done(), "2");
    place.run(["put", "s", "a", "--new", "--replace"]).refused(2, "cannot be used with");
}

#[test]
fn objects_move_and_go() {
    let place = Place::with(&[("a", b"1"), ("b", b"2"), ("x/1", b""), ("x/2", b""), ("y", b"")]);
    place.run(["mv", "--new", "s", "a", "b"]).refused(1, "already");
    place.run(["mv", "s", "a", "c"]).done();
    assert_eq!(place.run(["cat", "s", "c"]).done(), "1");
    let gone = place.run(["rm", "s", "--prefix", "x/", "--json"]);
    assert_eq!(gone.json()["deleted"], 2);
    assert_eq!(place.run(["ls", "s"]).done(), "b\nc\ny\n");
    place.run(["rm", "s"]).refused(2, "required");
}

#[test]
fn stat_tells_what_is_known_of_an_object() {
    let place = Place::with(&[]);
    let meta = ["--meta", "type=text/plain", "--meta", "x=a=b"];
    let put = ["put", "s", "k", "--json"].into_iter().chain(meta);
    let put = place.run_with(put, b"123456789").json();
    let stat = place.run(["stat", "s", "k", "--json"]).json();
    assert_eq!(stat[0], put);
    assert_eq!(put["len"], 9);
    assert_eq!(put["crc32c"], "e3069283");
    assert_eq!(put["metadata"]["type"], "text/plain");
    assert_eq!(put["metadata"]["x"], "a=b");
    let text = place.run(["stat", "s", "k"]);
    let lines: Vec<&str> = text.done().lines().collect();
    assert_eq!(lines[..2], ["key       k", "length    9 bytes"]);
    assert!(lines.contains(&"metadata  type=text/plain"), "{lines:?}");
}
