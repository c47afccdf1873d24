//! `ls`, `tree`, `cat`, `info`, `check`: results on standard output, everything
//! else on standard error, exit codes as documented.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use super::{Place, args, bytes, cfb, command, tree_of};

#[test]
fn ls_prints_names_and_marks_storages() {
    let place = Place::new();
    let file = place.packed(&[("one", b"1"), ("sub/two", b"22"), ("sub/deep/three", b"333")]);
    // Order is that of the format: shorter names first.
    assert_eq!(cfb(args("ls", &file, &[])).done(), "one\nsub/\n");
    assert_eq!(cfb(args("ls", &file, &["sub"])).done(), "two\ndeep/\n");
    assert_eq!(cfb(args("ls", &file, &["/SUB/TWO"])).done(), "two\n");
    assert_eq!(
        cfb(args("ls", &file, &["-R"])).done(),
        "/one\n/sub/\n/sub/two\n/sub/deep/\n/sub/deep/three\n"
    );
    assert_eq!(
        cfb(args("ls", &file, &["-l", "sub"])).done(),
        "2  -                    two\n-  -                    deep/\n"
    );
    cfb(args("ls", &file, &["nothing"])).refused("no entry nothing");
}

#[test]
fn ls_prints_json_that_parses() {
    let place = Place::new();
    let file = place.packed(&[("one", b"1"), ("sub/%u0005two", b"22")]);
    let run = cfb(args("ls", &file, &["-R", "--json"]));
    run.done();
    assert_eq!(
        run.json(),
        serde_json::json!([
            { "path": "/one", "name": "one", "kind": "stream", "size": 1 },
            { "path": "/sub", "name": "sub", "kind": "storage" },
            { "path": "/sub/%u0005two", "name": "\u{5}two", "kind": "stream", "size": 2 },
        ])
    );
}

#[test]
fn tree_draws_every_level() {
    let place = Place::new();
    let file = place.packed(&[("a/x/deep", &[0; 1500]), ("a/y", b"12"), ("b/", b""), ("c/z", b"")]);
    let run = cfb(args("tree", &file, &[]));
    let (title, rest) = run.done().split_once('\n').expect("lines");
    assert!(title.ends_with("x.cfb"), "{title}");
    assert_eq!(
        rest,
        "\
├── a/
│   ├── x/
│   │   └── deep  1,500
│   └── y  2
├── b/
└── c/
    └── z  0
4 storages, 3 streams, 1,502 bytes
"
    );
}

#[test]
fn names_of_installer_packages_are_shown_and_found_decoded() {
    let place = Place::new();
    let stored = cfb_format::encode_msi_name("!Property");
    let folder = place.fill("in", &[(&stored, b"value"), ("%u0005SummaryInformation", b"")]);
    let file = place.path("x.msi");
    let class = "000c1084-0000-0000-c000-000000000046";
    cfb(args("pack", &folder, &[file.to_str().expect("readable"), "--clsid", class])).done();

    assert_eq!(cfb(args("ls", &file, &[])).done(), "!Property\n%u0005SummaryInformation\n");
    assert_eq!(cfb(args("cat", &file, &["!Property"])).done(), "value");
    assert_eq!(cfb(args("cat", &file, &[&stored])).done(), "value");
    let raw = cfb(args("ls", &file, &["--msi", "never"]));
    assert_eq!(raw.done().lines().next(), Some(stored.as_str()));
    let row = &cfb(args("ls", &file, &["--json"])).json()[0];
    assert_eq!((&row["name"], &row["msi_name"]), (&stored.as_str().into(), &"!Property".into()));

    // Packed again, a folder gives the names of the file only if they are those.
    let out = place.path("out");
    let out_text = out.to_str().expect("readable");
    cfb(args("extract", &file, &["--to", out_text])).done();
    assert_eq!(tree_of(&out), tree_of(&folder));
    cfb(args("extract", &file, &["!Property", "--to", out_text, "--msi", "auto"])).done();
    assert_eq!(fs::read(out.join("!Property")).expect("extracted"), b"value");
}

#[test]
fn cat_writes_the_bytes_of_streams_and_nothing_else() {
    let place = Place::new();
    let large = bytes(2_500_000);
    let file = place.packed(&[("large", &large), ("small", b"tail")]);
    let run = cfb(args("cat", &file, &["large", "small"]));
    assert_eq!((run.code(), run.err()), (Some(0), ""));
    assert_eq!(run.0.stdout, [&large[..], b"tail"].concat());
    cfb(args("cat", &file, &["small", "nothing"])).refused("no entry nothing");
    cfb(args("cat", &file, &["/"])).refused("is a storage");
}

#[test]
fn info_counts_what_is_there() {
    let place = Place::new();
    let file = place.packed(&[("large", &bytes(100_000)), ("small", b"tail"), ("s/", b"")]);
    let run = cfb(args("info", &file, &["--json"]));
    run.done();
    let info = run.json();
    let file_len = fs::metadata(&file).expect("packed").len();
    assert_eq!(info["file_bytes"], file_len);
    assert_eq!(info["stream_bytes"], 100_004);
    assert_eq!((info["streams"].as_u64(), info["storages"].as_u64()), (Some(2), Some(1)));
    assert_eq!(info["sector_bytes"], 512);
    assert_eq!(info["findings"], serde_json::json!({ "notes": 0, "warnings": 0, "errors": 0 }));
    let text = cfb(args("info", &file, &[]));
    assert!(text.done().contains("100,004 bytes"), "{}", text.out());
}

#[test]
fn a_broken_rule_is_a_finding_and_strict_refuses_it() {
    let place = Place::new();
    let file = place.packed(&[("a", b"1")]);
    let mut bytes = fs::read(&file).expect("packed");
    bytes[8] = 1; // The header's CLSID has to be zero.
    fs::write(&file, bytes).expect("written");

    assert_eq!(cfb(args("cat", &file, &["a"])).done(), "1");
    cfb(args("cat", &file, &["a", "--strict"])).refused("cannot open");
    let run = cfb(args("check", &file, &[]));
    assert_eq!((run.code(), run.err()), (Some(1), ""));
    assert!(run.out().starts_with("warning  header.clsid: "), "{}", run.out());
    let run = cfb(args("check", &file, &["--json"]));
    assert_eq!(run.code(), Some(1));
    assert_eq!(run.json()[0]["code"], "header.clsid");
}

#[test]
fn what_is_no_compound_file_is_refused_with_the_reason() {
    let place = Place::new();
    let file = place.path("x");
    for verb in ["ls", "tree", "info", "check", "extract"] {
        cfb(args(verb, &file, &[])).refused("cannot open");
    }
    fs::write(&file, b"plain text, long enough to be read as a header?").expect("written");
    cfb(args("ls", &file, &[])).refused("cannot open");
    fs::write(&file, vec![b'x'; 2000]).expect("written");
    cfb(args("ls", &file, &[])).refused("not a compound file");
}

#[test]
fn a_wrong_command_line_exits_with_2() {
    for wrong in [&["ls"][..], &["fly"], &[], &["cat", "x"], &["ls", "--deep", "x"]] {
        let run = cfb(wrong);
        assert_eq!(run.code(), Some(2), "{wrong:?}");
        assert!(run.err().contains("Usage"), "{}", run.err());
    }
}

#[test]
fn help_of_every_verb_has_examples() {
    for verb in
        ["ls", "tree", "cat", "extract", "pack", "add", "rm", "mv", "info", "check", "repair"]
    {
        let run = cfb([verb, "--help"]);
        assert!(run.done().contains(&format!("Examples:\n  cfb {verb} ")), "{verb}");
    }
    assert!(cfb(["--help"]).done().contains("Exit codes:"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    let file = place.packed(&[("large", &bytes(3_000_000))]);
    let mut child = command()
        .args(args("cat", &file, &["large"]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdout = child.stdout.take().expect("it is piped");
    stdout.read_exact(&mut [0; 10]).expect("ten bytes come");
    drop(stdout);
    let ended = child.wait_with_output().expect("the command ends");
    assert_eq!((ended.status.code(), &ended.stderr[..]), (Some(0), &b""[..]));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_an_error() {
    let place = Place::new();
    let file = place.packed(&[("a", b"1")]);
    for arguments in [args("ls", &file, &[]), args("cat", &file, &["a"])] {
        let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let run = command().args(arguments).stdout(full).output().expect("the command starts");
        assert_eq!(run.status.code(), Some(2));
        let text = String::from_utf8_lossy(&run.stderr);
        assert!(text.contains("cannot write to standard output"), "{text}");
    }
}
