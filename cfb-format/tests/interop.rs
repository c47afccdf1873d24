//! Other readers accept what this library writes, and read the same content from it.
//!
//! The tools are looked for, never installed: `gsf` and `7zz` (or `7z`) in the `PATH`, and a Python with olefile
//! in `CFB_PYTHON` or as `python3`. `.ci/run` installs them. A test whose tool is missing says so and passes.

#![allow(clippy::cast_possible_truncation, reason = "sizes here are small by construction")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cfb_format::{CreateOptions, Version};
use sha2::{Digest, Sha256};

const VERSIONS: [Version; 2] = [Version::V3, Version::V4];

/// Path with slashes, and content.
type Tree = BTreeMap<String, Vec<u8>>;

/// 200 streams of every kind of size, in storages three deep, with names in several scripts; together more than
/// the 109 FAT sectors that a version 3 header can list.
fn tree() -> Tree {
    let storages = ["", "Storage 1", "Storage 1/Vnořená", "Ünïcödé", "Каталог/Вложенный/третий"];
    let names = [
        "stream",
        "Поток",
        "ストリーム",
        "Straße",
        "ÄÖÜ",
        "file.with.dots",
        "with space",
        "e\u{301}",
    ];
    let sizes =
        [0, 1, 63, 64, 65, 511, 512, 513, 4095, 4096, 4097, 20_000, 65_536, 100_000, 260_000];
    (0..200)
        .map(|i| {
            let name = format!("{}{i}", names[i % names.len()]);
            let storage = storages[i % storages.len()];
            let path = if storage.is_empty() { name } else { format!("{storage}/{name}") };
            let len = if i == 77 { 3_000_000 } else { sizes[i % sizes.len()] };
            (path, (0..len).map(|at: usize| ((at / 3) ^ (at >> 9) ^ i) as u8).collect())
        })
        .collect()
}

/// Writes the tree in such an order that sectors are freed and reused on the way.
fn write(folder: &Path, version: Version) -> (PathBuf, Tree) {
    let tree = tree();
    let path = folder.join(format!("{version:?}.cfb"));
    let file = CreateOptions::new().version(version).create(&path).expect("a new file");
    for (at, (path, content)) in tree.iter().enumerate() {
        if let Some((storage, _)) = path.rsplit_once('/') {
            file.create_storage_all(storage).expect("a storage that is new or there");
        }
        file.write_stream(path.as_str(), content).expect("a new stream");
        if at % 7 == 0 {
            file.write_stream("passing", &vec![1; at * 500]).expect("a stream that goes again");
            file.flush().expect("the disk takes it");
        }
        if at % 14 == 0 {
            file.remove_stream("passing").expect("just written");
        }
    }
    if file.exists("passing") {
        file.remove_stream("passing").expect("just seen");
    }
    file.flush().expect("the disk takes it");
    assert!(
        path.metadata().expect("just written").len() > 7 << 20,
        "more than the header's FAT sectors cover"
    );
    (path, tree)
}

/// Runs a tool; `None`, said aloud, where it is not there.
fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    let output = Command::new(program).args(arguments).env("LC_ALL", "C.UTF-8").output();
    match output {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("skipped: {program} cannot be run: {error}");
            None
        }
    }
}

fn stdout(output: &Output, what: &str) -> String {
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn hash(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[test]
fn crate_cfb_strict_reads_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for version in VERSIONS {
        let (path, tree) = write(folder.path(), version);
        let file = std::fs::File::open(path).expect("just written");
        let mut file = cfb::CompoundFile::open_strict(file).expect("crate cfb opens it, strict");
        let streams = file.walk().filter(cfb::Entry::is_stream).count();
        assert_eq!(streams, tree.len());
        for (path, content) in &tree {
            let mut real = Vec::new();
            let mut stream = file.open_stream(path).expect("a stream of the tree");
            std::io::Read::read_to_end(&mut stream, &mut real).expect("a sound stream");
            assert!(real == *content, "{version:?}, {path}");
        }
    }
}

#[test]
fn olefile_reads_it() {
    // It doubts every transaction signature; [MS-CFB] 2.2 has one for programs that save as this library does.
    const SCRIPT: &str = "
import hashlib, sys
import olefile
ole = olefile.OleFileIO(sys.argv[1], raise_defects=olefile.DEFECT_INCORRECT)
for path in ole.listdir():
    data = ole.openstream(path).read()
    print(hashlib.sha256(data).hexdigest(), len(data), '/'.join(path))
for kind, text in ole.parsing_issues:
    if 'transaction_signature_number' not in text:
        print('issue', 0, text)
";
    let python = std::env::var("CFB_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    match run(&python, &["-c", "import olefile"]) {
        Some(output) if output.status.success() => {}
        Some(_) => return eprintln!("skipped: {python} has no olefile"),
        None => return,
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for version in VERSIONS {
        let (path, tree) = write(folder.path(), version);
        let path = path.to_str().expect("a plain path");
        let output =
            run(&python, &["-X", "utf8", "-c", SCRIPT, path]).expect("it ran a moment ago");
        let mut real: Vec<_> = stdout(&output, "olefile").lines().map(str::to_owned).collect();
        real.sort();
        let line = |(path, content): (&String, &Vec<u8>)| {
            format!("{} {} {path}", hash(content), content.len())
        };
        let mut expected: Vec<_> = tree.iter().map(line).collect();
        expected.sort();
        assert_eq!(real, expected, "{version:?}");
    }
}

#[test]
fn libgsf_reads_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for version in VERSIONS {
        let (path, tree) = write(folder.path(), version);
        let path = path.to_str().expect("a plain path");
        let Some(output) = run("gsf", &["list", path]) else { return };
        let listed =
            stdout(&output, "gsf list").lines().filter(|line| line.starts_with('f')).count();
        assert_eq!(listed, tree.len(), "{version:?}");
        for (name, content) in &tree {
            let output = run("gsf", &["cat", path, name]).expect("it ran a moment ago");
            assert!(output.status.success() && output.stdout == *content, "{version:?}, {name}");
        }
    }
}

#[test]
fn seven_zip_reads_it() {
    let programs = ["7zz", "7z"];
    let there = |program: &&&str| Command::new(program).output().is_ok();
    let Some(program) = programs.iter().find(there) else {
        return eprintln!("skipped: neither 7zz nor 7z is there");
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    for version in VERSIONS {
        let (path, tree) = write(folder.path(), version);
        let out = folder.path().join(format!("out {version:?}"));
        let to = format!("-o{}", out.display());
        let output =
            run(program, &["x", "-y", "-tCompound", &to, path.to_str().expect("a plain path")]);
        let text = stdout(&output.expect("it ran a moment ago"), program);
        assert!(text.contains("Everything is Ok"), "{text}");
        for (name, content) in &tree {
            let real = std::fs::read(out.join(name))
                .unwrap_or_else(|error| panic!("{version:?}, {name}: {error}"));
            assert!(real == *content, "{version:?}, {name}");
        }
    }
}
