//! Many objects and the store as a whole: ls, du, trim, verify.

use std::collections::BTreeMap;
use std::fs;

use crate::{Place, bytes, damage, files_in};

#[test]
fn lists_have_prefix_delimiter_and_direction() {
    let objects: Vec<(&str, &[u8])> =
        vec![("a", b"1"), ("d/1", b"22"), ("d/2", b""), ("d/e/3", b""), ("e", b"")];
    let place = Place::with(&objects);
    let ls = |args: &[&str]| {
        let run = place.run(["ls", "s"].iter().chain(args));
        run.done().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(ls(&[]), ["a", "d/1", "d/2", "d/e/3", "e"]);
    assert_eq!(ls(&["--delimiter", "/"]), ["a", "d/", "e"]);
    assert_eq!(ls(&["--prefix", "d/", "--delimiter", "/"]), ["d/1", "d/2", "d/e/"]);
    assert_eq!(ls(&["--reverse", "--limit", "2"]), ["e", "d/e/3"]);
    assert_eq!(ls(&["--start-after", "d/2"]), ["d/e/3", "e"]);
    assert_eq!(ls(&["--prefix", "z"]), [""; 0]);
    let long = ls(&["-l", "--delimiter", "/"]);
    assert!(long[0].starts_with("           1  20") && long[0].ends_with("  a"), "{long:?}");
    assert_eq!(long[1], format!("{:>12}  {:<19}  d/", "-", "-"));
    let json = place.run(["ls", "s", "--json", "-d", "/"]).json();
    assert_eq!(json[0]["len"], 1);
    assert_eq!(json[1], serde_json::json!({ "key": "d/", "is_prefix": true }));
    place.run(["ls", "s", "--delimiter", "ab"]).refused(2, "one byte");
}

#[test]
fn keys_of_any_bytes_are_printed_and_taken_escaped() {
    let place = Place::with(&[]);
    let store = place.store();
    for key in [&b"a\x1B[2J"[..], b"\xFF", b"%41", b"100%"] {
        store.put(key, key).unwrap();
    }
    store.close().unwrap();
    assert_eq!(place.run(["ls", "s"]).done(), "%2541\n100%\na%1B[2J\n%FF\n");
    assert_eq!(place.run(["cat", "s", "a%1B[2J"]).0.stdout, b"a\x1B[2J");
    assert_eq!(place.run(["cat", "s", "%2541", "100%", "%FF"]).0.stdout, b"%41100%\xFF");
    let none = place.run(["cat", "s", "\x1B[2J"]);
    assert_eq!(none.code(), Some(1));
    assert!(!none.err().contains('\x1B'), "{:?}", none.err());
}

#[test]
fn du_sums_up_by_prefix_and_tells_of_the_store() {
    let long = bytes(100_000);
    let place = Place::with(&[("a/1", &long), ("a/2", b"12"), ("b/c/1", b"123"), ("x", b"1234")]);
    let du = place.run(["du", "s", "--json"]).json();
    let groups = du["groups"].as_array().unwrap();
    let figures: Vec<_> = groups
        .iter()
        .map(|group| (group["prefix"].as_str().unwrap(), &group["objects"], &group["bytes"]))
        .map(|(name, objects, bytes)| (name, objects.as_u64().unwrap(), bytes.as_u64().unwrap()))
        .collect();
    assert_eq!(figures, [("%_", 1, 4), ("a/", 2, 100_002), ("b/", 1, 3)]);
    assert_eq!((&du["objects"], &du["bytes"]), (&4.into(), &100_009.into()));
    assert_eq!(du["store"]["objects"], 4);
    assert_eq!(du["store"]["object_bytes"], 100_009);
    let len = fs::metadata(place.path("s").join("blocks-00000")).unwrap().len();
    assert_eq!(du["store"]["file_bytes"], len);
    let below = place.run(["du", "s", "--prefix", "b/", "--json"]).json();
    assert_eq!(below["groups"][0]["prefix"], "b/c/");
    assert_eq!((&below["objects"], &below["store"]["objects"]), (&1.into(), &4.into()));
    let text = place.run(["du", "s"]);
    assert!(text.done().contains("100,002         2 objects  a/\n"), "{}", text.out());
}

#[test]
fn trim_makes_files_shorter() {
    let place = Place::with(&[("a", &bytes(8_000_000)), ("b", b"1")]);
    let figure = |name: &str| {
        let du = place.run(["du", "s", "--json"]).json();
        du["store"][name].as_u64().unwrap()
    };
    place.run(["rm", "s", "a"]).done();
    let (len, allocated) = (figure("file_bytes"), figure("allocated_bytes"));
    let trimmed = place.run(["trim", "s", "--json"]).json();
    assert!(figure("file_bytes") < len, "{trimmed}");
    assert_eq!(trimmed["won_bytes"], allocated - figure("allocated_bytes"));
    assert_eq!(trimmed["file_bytes"], figure("file_bytes"));
    assert_eq!(place.run(["cat", "s", "b"]).done(), "1");
    assert!(place.run(["trim", "s"]).done().ends_with(" left\n"));
}

#[test]
fn verify_finds_damage_and_others_keep_away_from_it() {
    let long = bytes(100_000);
    let place = Place::with(&[("bad", &long), ("good", b"1")]);
    assert_eq!(place.run(["verify", "s"]).done(), "2 objects, 100,001 bytes: nothing is wrong\n");
    damage(&place, &long);
    for read_only in [&[][..], &["--read-only"]] {
        let run = place.run(["verify", "s", "--json"].iter().chain(read_only));
        assert_eq!((run.code(), run.err()), (Some(1), ""));
        let report = run.json();
        let finding = &report["findings"][0];
        assert_eq!(report["findings"].as_array().unwrap().len(), 1, "{report}");
        assert_eq!((&finding["key"], &finding["start"]), (&"bad".into(), &0.into()));
        assert_eq!(finding["file"], "blocks-00000");
    }
    let text = place.run(["verify", "s"]);
    assert!(text.out().ends_with("1 finding\n"), "{}", text.out());
    place.run(["cat", "s", "bad"]).refused(1, "do not match their checksum");
    place.run(["get", "s", "bad", "out"]).refused(1, "do not match their checksum");
    assert!(!place.path("out").exists());
    assert_eq!(fs::read_dir(place.folder.path()).unwrap().count(), 1, "nothing half done is left");

    let export = place.run(["export", "s", "out"]);
    assert_eq!(export.code(), Some(1));
    assert!(export.err().contains("left out bad"), "{}", export.err());
    assert_eq!(files_in(&place.path("out")), BTreeMap::from([("good".into(), b"1".to_vec())]));
    let export = place.run(["export", "s", "-"]);
    assert_eq!(export.code(), Some(1));
    assert!(export.err().contains("the stream ends within bad"), "{}", export.err());
}

#[test]
fn one_program_at_a_time_changes_a_store() {
    let place = Place::with(&[("a", b"1")]);
    let store = place.store();
    place.run_with(["put", "s", "b"], b"2").refused(2, "open for writing");
    assert_eq!(place.run(["cat", "s", "a"]).done(), "1");
    drop(store);
    place.run_with(["put", "s", "b"], b"2").done();
}
