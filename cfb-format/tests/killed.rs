//! A process that is killed while it commits to a real file leaves the state of a commit: the last that it knew to be
//! done, or the one it was about to make.
//!
//! The test starts itself as a child, which commits in a loop, and kills it after some milliseconds; the next child
//! goes on where the killed one stopped. What a commit does depends on its number alone, and the number is in the file.
//! `CFB_KILLS` sets how many children are killed.

#![allow(clippy::cast_possible_truncation, reason = "sizes here are small by construction")]

mod common;
#[allow(dead_code, reason = "the operations serve several tests; none needs all of them")]
#[path = "crash/script.rs"]
mod script;

use std::fs::{self, File, OpenOptions as FsOptions};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cfb_format::{CompoundFile, CreateOptions, OpenOptions, Storage, Strictness, Version};
use script::{Step, Tree, perform};

/// The environment variable that makes the child one.
const FOLDER: &str = "CFB_KILLED_FOLDER";
/// The stream that has the number of the last commit.
const NUMBER: &str = "/number";
/// Names of streams; a few, so that they are met again.
const NAMES: usize = 24;

/// The file, and beside it the number of the last commit that was known to be done.
fn paths(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("file.cfb"), folder.join("done"))
}

/// A number that follows from `commit` and `nth` alone.
fn dice(commit: u32, nth: u32) -> usize {
    let mut bits = u64::from(commit) << 32 | u64::from(nth);
    for _ in 0..2 {
        bits = (bits ^ bits >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    (bits >> 33) as usize
}

/// What the commit of this number does to a file that has `tree`, its number last.
fn steps(commit: u32, tree: &Tree) -> Vec<Step> {
    let mut tree = tree.clone();
    let mut steps = Vec::new();
    for nth in 0..=dice(commit, 0) as u32 % 4 {
        let dice = |which: u32| dice(commit, 8 * (nth + 1) + which);
        let folder = ["", "/one", "/two"][dice(1) % 3];
        let path = format!("{folder}/{}", dice(2) % NAMES);
        let len = [60, 900, 4200, 40_000][dice(3) % 4];
        let len = 1 + dice(4) % len;
        let there = tree.0.get(&path).and_then(|node| node.content.as_ref()).map(Vec::len);
        let step = match (dice(5) % 12, there) {
            (0 | 1, Some(old)) => Step::WriteAt(path, dice(6) % (old + 1), commit, len),
            (2, Some(_)) => Step::SetLen(path, len),
            (3 | 4, Some(_)) => Step::Remove(path),
            (5, _) => Step::StateBits("/one".to_owned(), commit),
            (6, Some(_)) => {
                let to = format!("/two/moved {}", dice(6) % 4);
                if tree.0.contains_key(&to) { Step::Remove(to) } else { Step::Move(path, to) }
            }
            _ => Step::Write(path, commit, len),
        };
        tree.apply(&step);
        steps.push(step);
    }
    // Eight bytes that say the number.
    steps.push(Step::Write(NUMBER.to_owned(), commit, 8));
    steps
}

/// The file's content before the first commit.
fn start() -> Vec<Step> {
    let number = Step::Write(NUMBER.to_owned(), 0, 8);
    vec![Step::Storage("/one".to_owned()), Step::Storage("/two".to_owned()), number]
}

/// The commit whose number the file has: the last known one or the next.
fn number_of(file: &CompoundFile<File>, known: u32) -> Option<u32> {
    let found = file.read_stream(NUMBER).ok()?;
    [known, known + 1].into_iter().find(|&commit| common::raw::pattern(commit, 8) == found)
}

fn done(path: &Path) -> Option<u32> {
    let bytes = fs::read(path).ok()?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// The child: goes on from the last commit and never ends by itself.
#[test]
#[ignore = "started by the other test, and killed by it"]
fn child_commits_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (path, done_path) = paths(Path::new(&folder));
    let file = CompoundFile::open_rw(&path).expect("what a killed child leaves opens");
    let mut tree = Tree::of(&file).expect("it can be read");
    let known = done(&done_path).expect("the parent wrote it");
    let mut commit = number_of(&file, known).expect("the number is there");
    let acknowledged = FsOptions::new().write(true).open(&done_path).expect("it can be written");
    println!("ready");
    loop {
        commit += 1;
        for step in steps(commit, &tree) {
            perform(&file, None, &step).expect("the disk takes all");
            tree.apply(&step);
        }
        if commit.is_multiple_of(8) { file.sync() } else { file.flush() }
            .expect("the disk takes all");
        acknowledged.write_at(&commit.to_le_bytes(), 0).expect("the disk takes all");
    }
}

/// A child that is just being started has the parent's open files for a moment, and their locks with them: held while
/// a file is open for writing, and while a child starts.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn_child(folder: &Path) -> Child {
    let one = one_at_a_time();
    let mut child = Command::new(std::env::current_exe().expect("this test is a file"))
        .args(["--ignored", "--exact", "child_commits_until_it_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("this test can be run");
    drop(one);
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let ready = output.lines().map_while(Result::ok).any(|line| line.contains("ready"));
    if !ready {
        child.wait().expect("it has ended");
        panic!("the child ended before it was ready");
    }
    child
}

/// Kills children one after another, and judges what each leaves.
fn kill_children(version: Version, kills: u32) {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, done_path) = paths(folder.path());
    let mut tree = Tree::new();
    {
        let _one = one_at_a_time();
        let file = CreateOptions::new().version(version).create(&path).expect("a new file");
        for step in start() {
            perform(&file, None, &step).expect("the disk takes all");
            tree.apply(&step);
        }
        file.sync().expect("the disk takes all");
    }
    fs::write(&done_path, 0_u32.to_le_bytes()).expect("the disk takes all");
    let (mut last, mut ahead) = (0, 0);
    for kill in 0..kills {
        let mut child = spawn_child(folder.path());
        std::thread::sleep(Duration::from_micros(1000 + dice(kill, 99) as u64 % 19_000));
        child.kill().expect("the child runs until it is killed");
        child.wait().expect("it has ended");

        let known = done(&done_path).expect("four bytes");
        let options = OpenOptions::new().strictness(Strictness::Strict);
        let file = options.open(&path).unwrap_or_else(|error| {
            panic!("{version}, kill {kill}, commit {known} was done: does not open: {error}")
        });
        let found = number_of(&file, known).unwrap_or_else(|| {
            panic!("{version}, kill {kill}: neither commit {known}, which was done, nor the next")
        });
        for commit in last + 1..=found {
            for step in steps(commit, &tree) {
                tree.apply(&step);
            }
        }
        let difference = tree.difference(&file);
        assert_eq!(difference, None, "{version}, kill {kill}, commit {found}, {known} was done");
        // The next child starts from here, and may be killed before it says that it has done anything.
        fs::write(&done_path, found.to_le_bytes()).expect("the disk takes all");
        last = found;
        ahead += u32::from(found > known);
    }
    println!("{version}: {kills} kills, {last} commits, {ahead} times the next one was there");
    assert!(last > kills, "the children commit before they are killed: {last} commits");
    let _one = one_at_a_time();
    let file = CompoundFile::open_rw(&path).expect("a sound file");
    file.write_stream("/last", b"nothing of what the killed ones began is left")
        .expect("there is space");
    assert_eq!(file.check().expect("a sound file"), []);
    assert_eq!(file.usage().expect("a sound file").unowned_sectors, 0);
}

fn kills() -> u32 {
    std::env::var("CFB_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(110)
}

#[test]
fn killed_writer_of_a_v3_file_leaves_a_committed_state() {
    kill_children(Version::V3, kills());
}

#[test]
fn killed_writer_of_a_v4_file_leaves_a_committed_state() {
    kill_children(Version::V4, kills());
}
