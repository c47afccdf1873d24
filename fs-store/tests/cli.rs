//! The command `fs-store` does what its help says, seen from outside: what it
//! prints, what it leaves on the disk, and how it exits.
#![cfg(feature = "cli")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fs_store::{OpenOptions, PutOptions, Store};
use tempfile::TempDir;

/// The command, ready for its arguments.
fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fs-store"))
}

/// What came of one run.
struct Run(Output);

impl Run {
    fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    fn out(&self) -> &str {
        str::from_utf8(&self.0.stdout).expect("text")
    }

    fn err(&self) -> &str {
        str::from_utf8(&self.0.stderr).expect("text")
    }

    /// Exit code 0 and silence on standard error. Gives back the output.
    #[track_caller]
    fn done(&self) -> &str {
        assert_eq!((self.code(), self.err()), (Some(0), ""));
        self.out()
    }

    /// This exit code, an error that says `why`, and nothing on standard output.
    #[track_caller]
    fn refused(&self, code: i32, why: &str) {
        assert_eq!(self.code(), Some(code), "{}", self.err());
        assert!(self.err().contains(why), "{:?} lacks {why:?}", self.err());
        assert_eq!(self.out(), "");
    }

    #[track_caller]
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.out()).expect("JSON")
    }
}

/// A folder for one test, with a store `s` in it.
struct Place {
    folder: TempDir,
}

impl Place {
    /// A place where `s` has these objects.
    fn with(objects: &[(&str, &[u8])]) -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a folder for the test") };
        let store = Store::create(place.path("s")).expect("a store");
        for (key, value) in objects {
            store.put(key, value).expect("put");
        }
        store.close().expect("closed");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the command in the folder of the test with `input` on standard input.
    fn run_with<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>, input: &[u8]) -> Run {
        let mut child = command()
            .args(args)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        let input = input.to_vec();
        // Beside the reading of the output; a command that refuses may be gone
        // before it has read anything.
        let feeding = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().expect("the command ends");
        feeding.join().expect("fed");
        Run(output)
    }

    fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Run {
        self.run_with(args, b"")
    }

    fn store(&self) -> Store {
        Store::open(self.path("s")).expect("opens")
    }

    /// All keys and values of the store `name`.
    fn contents(&self, name: &str) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let store = OpenOptions::new().read_only(true).open(self.path(name)).expect("opens");
        let list = store.list(&fs_store::ListOptions::new()).expect("listed");
        let keys = list.map(|item| item.expect("an item").key);
        keys.map(|key| (key.to_vec(), store.get(&key).expect("read").expect("there").to_vec()))
            .collect()
    }
}

/// Bytes that differ from place to place.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 512 * 7 + at % 251).to_le_bytes()[0]).collect()
}

/// All files below a folder, with their bytes.
fn files_in(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).expect("below it").to_str().expect("text");
            files.insert(name.replace('\\', "/"), fs::read(&path).expect("a file"));
        }
    }
    files
}

/// Changes a byte of the one object that has `len` bytes of `pattern`.
fn damage(place: &Place, pattern: &[u8]) {
    let path = place.path("s").join("blocks-00000");
    let mut file = fs::read(&path).expect("a block file");
    let at = file.windows(64).position(|window| window == &pattern[..64]).expect("it is there");
    file[at] ^= 1;
    fs::write(&path, file).expect("written");
}

// ---------------------------------------------------------------- one object

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

// ---------------------------------------------------------------- many objects

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

// ---------------------------------------------------------------- import and export

#[test]
fn a_folder_goes_in_and_comes_out() {
    let place = Place::with(&[]);
    let long = bytes(1_000_000);
    for (name, value) in [("in/a", &b"1"[..]), ("in/b/c", b""), ("in/b/long", &long)] {
        let path = place.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value).unwrap();
    }
    let import = place.run(["import", "s", "in", "--prefix", "p/"]);
    assert_eq!(import.done(), "3 objects, 1,000,001 bytes imported\n");
    assert_eq!(place.run(["ls", "s"]).done(), "p/a\np/b/c\np/b/long\n");
    let export = place.run(["export", "s", "out", "--prefix", "p/", "--json"]).json();
    assert_eq!(export, serde_json::json!({ "objects": 3, "bytes": 1_000_001, "left_out": 0 }));
    assert_eq!(files_in(&place.path("out")), files_in(&place.path("in")));
    let modified = fs::metadata(place.path("out/a")).unwrap().modified().unwrap();
    let stat = place.store().stat("p/a").unwrap().unwrap();
    let nanos = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    assert_eq!(u64::try_from(nanos).unwrap() / 1_000, stat.modified / 1_000);
    place.run(["export", "s", "out"]).refused(2, "not empty");
}

#[test]
fn no_key_leads_out_of_the_folder_and_all_come_back() {
    let keys = [
        "../up",
        "/abs",
        "/abs/x",
        "a",
        "a/",
        "a//b",
        "a/../../b",
        "a/./b",
        "..",
        ".",
        "x%41",
        "x%_",
        "y",
        "y%_",
        "y/z",
    ];
    let objects: Vec<(&str, &[u8])> = keys.iter().map(|key| (*key, key.as_bytes())).collect();
    let place = Place::with(&objects);
    let store = place.store();
    store.put(b"\xFF\0", b"bytes").unwrap();
    store.close().unwrap();

    place.run(["export", "s", "deep/out"]).done();
    let files = files_in(&place.path("deep"));
    assert_eq!(files.len(), keys.len() + 1);
    assert!(files.keys().all(|name| name.starts_with("out/")), "{files:?}");
    assert!(files.contains_key("out/%2E./up") && files.contains_key("out/%_/abs%_"), "{files:?}");
    let names = fs::read_dir(place.folder.path()).unwrap().count();
    assert_eq!(names, 2, "nothing beside the store and the folder");

    place.run(["import", "--create", "t", "deep/out"]).done();
    assert_eq!(place.contents("t"), place.contents("s"));
    let stream = place.run(["export", "s", "-"]);
    assert_eq!((stream.code(), stream.err()), (Some(0), ""));
    place.run_with(["import", "--create", "u", "-"], &stream.0.stdout).done();
    assert_eq!(place.contents("u"), place.contents("s"));

    place.run(["import", "--create", "--literal", "v", "deep/out"]).done();
    assert!(place.contents("v").contains_key(&b"%2E./up"[..]));
}

#[test]
fn tar_streams_are_those_of_tar() {
    let long_name = "n/".repeat(80) + "end";
    let long = bytes(700_000);
    let place = Place::with(&[("a", b"1"), (&long_name, &long)]);
    let stream = place.run(["export", "s", "-"]).0.stdout;
    let mut archive = tar::Archive::new(&stream[..]);
    let mut found = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut value = Vec::new();
        entry.read_to_end(&mut value).unwrap();
        assert!(entry.header().mtime().unwrap() > 1_600_000_000);
        found.insert(entry.path().unwrap().to_str().unwrap().to_owned(), value);
    }
    assert_eq!(found, BTreeMap::from([("a".to_owned(), b"1".to_vec()), (long_name, long)]));

    // One as others write it: folders, `./`, links, a key that comes twice.
    let mut builder = tar::Builder::new(Vec::new());
    let mut add = |kind: tar::EntryType, name: &str, value: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_size(value.len() as u64);
        // As it is, dots and all, which `append_data` would refuse.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, value).unwrap();
    };
    add(tar::EntryType::Directory, "./d/", b"");
    add(tar::EntryType::Regular, "./d/x", b"first");
    add(tar::EntryType::Regular, "./big", &bytes(600_000));
    add(tar::EntryType::Regular, "./d/x", b"second");
    add(tar::EntryType::Symlink, "./link", b"");
    add(tar::EntryType::Regular, "../up", b"kept as it is");
    let stream = builder.into_inner().unwrap();
    let import = place.run_with(["import", "--create", "t", "-", "--json"], &stream);
    assert_eq!(import.code(), Some(1));
    assert!(import.err().contains("left out ./link: it is no file"), "{}", import.err());
    assert_eq!(import.json()["left_out"], 1);
    let contents = place.contents("t");
    assert_eq!(contents[&b"d/x"[..]], b"second");
    assert_eq!(contents[&b"big"[..]], bytes(600_000));
    assert_eq!(contents[&b"../up"[..]], b"kept as it is");
    assert_eq!(contents.len(), 3);

    // Cut off in the middle: an error, and what came before is kept.
    for len in [100_000, 400_000] {
        let cut = place.run_with(["import", "--create", "u", "-"], &stream[..len]);
        cut.refused(2, "stopped after 1 object, 5 bytes imported: cannot store ./big");
    }
    assert_eq!(place.contents("u"), BTreeMap::from([(b"d/x".to_vec(), b"first".to_vec())]));
}

#[test]
fn metadata_goes_through_tar_streams() {
    let place = Place::with(&[]);
    let store = place.store();
    let options = PutOptions::new()
        .metadata("type", "text/plain")
        .metadata("a=b\n%41", &b"\xFF\n= %41"[..])
        .metadata("", "");
    let keys = ["short", "long/".repeat(40).leak(), "no metadata"];
    store.put_with(keys[0], b"1", &options).unwrap();
    store.put_with(keys[1], bytes(500_000), &options).unwrap();
    store.put(keys[2], b"").unwrap();
    let metadata = keys.map(|key| store.stat(key).unwrap().unwrap().metadata);
    assert_eq!(metadata.each_ref().map(Vec::len), [3, 3, 0]);
    store.close().unwrap();
    let stream = place.run(["export", "s", "-"]).0.stdout;
    place.run_with(["import", "--create", "t", "-"], &stream).done();
    assert_eq!(place.contents("t"), place.contents("s"));
    let store = Store::open(place.path("t")).unwrap();
    assert_eq!(keys.map(|key| store.stat(key).unwrap().unwrap().metadata), metadata);
}

#[test]
fn many_small_files_go_in_few_commits() {
    const FILES: usize = 9_000;
    let place = Place::with(&[]);
    let mut builder = tar::Builder::new(Vec::new());
    for number in 0..FILES {
        let value = format!("value {number}");
        let mut header = tar::Header::new_gnu();
        header.set_size(value.len() as u64);
        let name = format!("{:02}/{number}", number % 100);
        builder.append_data(&mut header, name, value.as_bytes()).unwrap();
    }
    let stream = builder.into_inner().unwrap();
    let import = place.run_with(["import", "s", "-", "--json"], &stream).json();
    assert_eq!(import["objects"], FILES);
    let store = place.store();
    assert_eq!(store.usage().unwrap().objects, FILES as u64);
    assert_eq!(store.get("50/8950").unwrap().as_deref(), Some(&b"value 8950"[..]));
    // Each object has the number of its commit.
    let version = store.put("last", b"").unwrap().version;
    assert!(version < 20, "{version} commits");
}

#[test]
fn an_import_of_the_folder_with_the_store_leaves_the_store_out() {
    let place = Place::with(&[]);
    fs::write(place.path("a"), b"1").unwrap();
    place.run(["import", "s", "."]).done();
    assert_eq!(place.run(["ls", "s"]).done(), "a\n");
}

// ---------------------------------------------------------------- the command

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
