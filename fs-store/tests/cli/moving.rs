//! Folders and tar streams go in and come out.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;

use fs_store::{PutOptions, Store};

use crate::{Place, bytes, files_in};

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
