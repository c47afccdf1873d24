//! How the command behaves, whatever the verb.

use std::io::Read as _;
use std::process::Stdio;

use fs_store::PutOptions;

use crate::{Place, Run, bytes, command};

#[test]
fn who_stops_reading_early_makes_no_error() {
    let place = Place::with(&[("long", &bytes(4_000_000))]);
    for args in [&["cat", "s", "long"][..], &["export", "s", "-"]] {
        let mut child = command()
            .args(args)
            .current_dir(place.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut start = [0; 10];
        child.stdout.as_mut().unwrap().read_exact(&mut start).unwrap();
        drop(child.stdout.take());
        let run = Run(child.wait_with_output().unwrap());
        assert_eq!((run.code(), run.err()), (Some(0), ""));
    }
}

#[test]
fn misuse_is_exit_code_2() {
    let place = Place::with(&[]);
    for args in [&[][..], &["frob"], &["cat", "s"], &["put", "s", "k", "none"], &["cat", "s", "%_"]]
    {
        let run = place.run(args);
        let expected = if args.last() == Some(&"%_") { 1 } else { 2 };
        assert_eq!((run.code(), run.out()), (Some(expected), ""), "{args:?}");
        assert_ne!(run.err(), "", "{args:?}");
    }
    place.run(["put", "s", ""]).refused(2, "1 to 4096 bytes");
}

#[test]
fn every_verb_has_help_with_examples() {
    let place = Place::with(&[]);
    let verbs =
        ["put", "get", "cat", "ls", "rm", "mv", "stat", "du", "verify", "trim", "import", "export"];
    for verb in verbs {
        let help = place.run([verb, "--help"]);
        let example = format!("fs-store {verb} ");
        assert!(help.done().contains("Examples:") && help.out().contains(&example), "{verb}");
    }
    let version = place.run(["--version"]);
    assert_eq!(version.done(), format!("fs-store {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn metadata_of_the_library_is_shown_escaped() {
    let place = Place::with(&[]);
    let store = place.store();
    store.put_with("k", b"", &PutOptions::new().metadata("raw", &b"\xFF\n"[..])).unwrap();
    store.close().unwrap();
    let stat = place.run(["stat", "s", "k", "--json"]).json();
    assert_eq!(stat[0]["metadata"]["raw"], "%FF%0A");
}
