//! `pack` and `extract` are each other's inverse and never spoil what is there.

use std::fs;

use super::{Place, args, bytes, cfb, names_in, tree_of};

#[test]
fn extract_gives_back_the_tree_that_was_packed() {
    let place = Place::new();
    let contents: Vec<(String, Vec<u8>)> = [0, 1, 63, 64, 65, 4095, 4096, 4097, 70_000, 3 << 20]
        .iter()
        .map(|&len| (format!("sizes/{len}"), bytes(len)))
        .collect();
    let mut files: Vec<(&str, &[u8])> =
        contents.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    files.extend([
        ("empty/", &b""[..]),
        ("Привет/ÄÖ", b"x"),
        ("a/b/c/d/e", b"deep"),
        ("-l", b"no option"),
    ]);
    let folder = place.fill("in", &files);
    for version in ["3", "4"] {
        let (file, out) =
            (place.path(&format!("new/v{version}")), place.path(&format!("out{version}")));
        let file_text = file.to_str().expect("a readable path");
        let out_text = out.to_str().expect("a readable path");
        let packed = cfb(args("pack", &folder, &[file_text, "--version", version]));
        assert_eq!(packed.done(), "");
        let info = cfb(args("info", &file, &["--json"]));
        assert_eq!(info.json()["version"].to_string(), version);
        assert_eq!(cfb(args("check", &file, &[])).done(), "");
        assert_eq!(cfb(args("extract", &file, &["--to", out_text])).done(), "");
        assert_eq!(tree_of(&out), tree_of(&folder));
    }
}

#[test]
fn equal_folders_make_equal_files() {
    let place = Place::new();
    let files: [(&str, &[u8]); 3] = [("b", b"2"), ("a", b"1"), ("c/d", b"3")];
    let reversed: Vec<_> = files.iter().rev().copied().collect();
    let (one, other) = (place.fill("one", &files), place.fill("other", &reversed));
    let file = |name: &str| place.path(name).to_str().expect("readable").to_owned();
    cfb(args("pack", &one, &[&file("1")])).done();
    cfb(args("pack", &other, &[&file("2")])).done();
    assert_eq!(fs::read(file("1")).expect("packed"), fs::read(file("2")).expect("packed"));
}

#[test]
fn one_stream_or_one_storage_is_extracted_under_its_own_name() {
    let place = Place::new();
    let file = place.packed(&[("top", b"t"), ("s/one", b"1"), ("s/u/two", b"22")]);
    let out = |name: &str| place.path(name).to_str().expect("readable").to_owned();
    cfb(args("extract", &file, &["s/one", "--to", &out("stream")])).done();
    assert_eq!(names_in(&place.path("stream")), ["one"]);
    cfb(args("extract", &file, &["/s", "--to", &out("storage")])).done();
    let expected = place.fill("expected", &[("s/one", b"1"), ("s/u/two", b"22")]);
    assert_eq!(tree_of(&place.path("storage")), tree_of(&expected));
}

#[test]
fn the_list_tells_sizes_and_reads_the_file_back() {
    let place = Place::new();
    let folder = place.fill("in", &[("a", b"12345"), ("s/b", &bytes(5000))]);
    let file = place.path("x.cfb");
    let run = cfb(args("pack", &folder, &[file.to_str().expect("readable"), "--list"]));
    let lines: Vec<&str> = run.done().lines().collect();
    assert_eq!(lines[0], "   5  -                    /a");
    assert_eq!(lines[1], "   -  -                    /s/");
    assert_eq!(lines[2], "5000  -                    /s/b");
    let file_len = fs::metadata(&file).expect("packed").len();
    let file_len = format!("{},{:03}", file_len / 1000, file_len % 1000);
    assert_eq!(lines[4], format!("1 storage, 2 streams, file of {file_len} bytes"));
    assert!(lines[5].starts_with("packed  5,005 bytes in "), "{}", lines[5]);
    assert!(lines[6].starts_with("read    5,005 bytes in "), "{}", lines[6]);
}

#[test]
fn a_file_that_is_there_is_replaced_only_on_request() {
    let place = Place::new();
    let folder = place.fill("in", &[("a", b"new")]);
    let file = place.path("x.cfb");
    let file_text = file.to_str().expect("readable");
    fs::write(&file, b"precious").expect("written");
    cfb(args("pack", &folder, &[file_text])).refused("--force");
    assert_eq!(fs::read(&file).expect("still there"), b"precious");
    cfb(args("pack", &folder, &[file_text, "--force"])).done();
    assert_eq!(cfb(args("cat", &file, &["a"])).done(), "new");

    let out = place.fill("out", &[("a", b"precious"), ("b", b"other")]);
    let out_text = out.to_str().expect("readable");
    cfb(args("extract", &file, &["--to", out_text])).refused("--force");
    assert_eq!(fs::read(out.join("a")).expect("still there"), b"precious");
    cfb(args("extract", &file, &["--to", out_text, "--force"])).done();
    assert_eq!(fs::read(out.join("a")).expect("replaced"), b"new");
    assert_eq!(names_in(&out), ["a", "b"]);
    assert_eq!(names_in(place.folder.path()), ["in", "out", "x.cfb"]);
}

#[test]
fn what_cannot_be_stored_stops_the_work_or_is_left_out() {
    let place = Place::new();
    let long = "x".repeat(32);
    let folder = place.fill("in", &[("a", b"1"), (&long, b"2"), ("s!/below", b"3")]);
    let file = place.path("x.cfb");
    let file_text = file.to_str().expect("readable");

    let run = cfb(args("pack", &folder, &[file_text]));
    run.refused("nothing is done");
    assert!(run.err().contains(&long) && run.err().contains("s!"), "{}", run.err());
    assert_eq!(names_in(place.folder.path()), ["in"]);

    let run = cfb(args("pack", &folder, &[file_text, "--skip"]));
    assert_eq!(run.code(), Some(1), "{}", run.err());
    assert!(run.err().contains(&long), "{}", run.err());
    assert_eq!(cfb(args("ls", &file, &["-R"])).done(), "/a\n");
}

#[test]
fn the_file_being_made_is_not_packed_into_itself() {
    let place = Place::new();
    let folder = place.fill("in", &[("a", b"1")]);
    let file = folder.join("x.cfb");
    for _ in 0..2 {
        cfb(args("pack", &folder, &[file.to_str().expect("readable"), "--force"])).done();
        assert_eq!(cfb(args("ls", &file, &[])).done(), "a\n");
    }
}

#[test]
fn the_class_of_the_root_is_set() {
    let place = Place::new();
    let folder = place.fill("in", &[("a", b"1")]);
    let file = place.path("x.cfb");
    let class = "00020906-0000-0000-c000-000000000046";
    cfb(args("pack", &folder, &[file.to_str().expect("readable"), "--clsid", class])).done();
    assert_eq!(cfb(args("info", &file, &["--json"])).json()["clsid"], class);
}

#[cfg(unix)]
#[test]
fn links_to_folders_are_not_followed_in_either_direction() {
    use std::os::unix::fs::symlink;

    let place = Place::new();
    let folder = place.fill("in", &[("a", b"1")]);
    symlink(&folder, folder.join("loop")).expect("a link");
    symlink(folder.join("a"), folder.join("b")).expect("a link");
    let file = place.path("y.cfb");
    let run = cfb(args("pack", &folder, &[file.to_str().expect("readable"), "--skip"]));
    assert_eq!(run.code(), Some(1), "{}", run.err());
    assert_eq!(cfb(args("ls", &file, &["-R"])).done(), "/a\n/b\n");

    // A link that lies where a folder is to be made leads out of the target.
    let elsewhere = place.fill("elsewhere", &[]);
    let out = place.fill("out", &[]);
    symlink(&elsewhere, out.join("s")).expect("a link");
    let file = place.packed(&[("s/secret", b"1")]);
    let run = cfb(args("extract", &file, &["--to", out.to_str().expect("readable")]));
    run.refused("cannot make the folder");
    assert_eq!(names_in(&elsewhere), Vec::<String>::new());
}
