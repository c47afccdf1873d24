//! A process that is killed while its threads put, delete and commit batches
//! leaves what was acknowledged, of each thread: the last thing that was known to
//! be done, or the one that was under way. For this every durability will do.
//!
//! The test starts itself as a child, which works in a loop, and kills it after
//! some milliseconds; the next child goes on where the killed one stopped. What a
//! thread does depends on a number alone. `FS_STORE_KILLS` sets how many children
//! are killed.

#![cfg(unix)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Rng, bytes};
use fs_store::{Batch, Durability, ListOptions, OpenOptions, PutOptions, Store};

/// The environment variable that makes the child one.
const FOLDER: &str = "FS_STORE_KILLED_FOLDER";

const THREADS: u64 = 3;

/// Number and length of what each key of a thread has.
type State = BTreeMap<Vec<u8>, (u64, usize)>;

enum Change {
    Put(Vec<u8>, usize),
    Delete(Vec<u8>),
    Rename(Vec<u8>, Vec<u8>),
}

/// What a thread does as number `number`, and how.
struct Step {
    changes: Vec<Change>,
    durability: Durability,
    streams: bool,
    then_syncs: bool,
    then_trims: bool,
}

fn step(thread: u64, number: u64, state: &State) -> Step {
    let mut rng = Rng(thread << 40 | number);
    let durability = match rng.below(8) {
        0 => Durability::Group,
        1 => Durability::Sync,
        _ => Durability::Buffered,
    };
    let count = if rng.chance(3) { 1 + rng.below(5) } else { 1 };
    let mut there = state.clone();
    let mut changes = Vec::new();
    for _ in 0..count {
        let key = |rng: &mut Rng| format!("{thread}/{}", rng.below(25)).into_bytes();
        let (key, to) = (key(&mut rng), key(&mut rng));
        let most = [400, 5000, 40_000, 250_000][usize::try_from(rng.below(4)).unwrap()];
        let len = usize::try_from(rng.below(most)).unwrap();
        let is_there = there.contains_key(&key);
        let change = match rng.below(10) {
            0..=2 if is_there => Change::Delete(key),
            3 if is_there && key != to => Change::Rename(key, to),
            _ => Change::Put(key, len),
        };
        apply(&change, number, &mut there);
        changes.push(change);
    }
    Step {
        changes,
        durability,
        streams: rng.chance(2),
        then_syncs: rng.chance(40),
        then_trims: rng.chance(120),
    }
}

fn apply(change: &Change, number: u64, state: &mut State) {
    match change {
        Change::Put(key, len) => drop(state.insert(key.clone(), (number, *len))),
        Change::Delete(key) => drop(state.remove(key)),
        Change::Rename(from, to) => {
            let moved = state.remove(from).expect("it is there");
            state.insert(to.clone(), moved);
        }
    }
}

/// The bytes that a put gives a key, or one that is renamed later.
fn value(thread: u64, number: u64, len: usize) -> Vec<u8> {
    bytes(thread << 50 | number << 20 | len as u64, len)
}

fn state_at(thread: u64, number: u64, mut state: State, from: u64) -> State {
    for number in from + 1..=number {
        for change in &step(thread, number, &state.clone()).changes {
            apply(change, number, &mut state);
        }
    }
    state
}

fn options() -> OpenOptions {
    OpenOptions::new()
        .create(true)
        .sector_bytes(4096)
        .journal_bytes(128 << 10)
        .block_file_bytes(8 << 20)
}

fn perform(store: &Store, thread: u64, number: u64, step: &Step) -> fs_store::Result<()> {
    let put = PutOptions::new().durability(step.durability);
    match &step.changes[..] {
        [Change::Put(key, len)] if step.streams => {
            let value = value(thread, number, *len);
            store.put_reader_with(key, &value[..], &put).map(drop)?;
        }
        [Change::Put(key, len)] => {
            store.put_with(key, value(thread, number, *len), &put).map(drop)?;
        }
        [Change::Delete(key)] => assert!(store.delete_with(key, &put)?, "it is there"),
        [Change::Rename(from, to)] => store.rename_with(from, to, &put)?,
        changes => {
            let mut batch = Batch::new();
            for change in changes {
                match change {
                    Change::Put(key, len) => batch.put(key.clone(), value(thread, number, *len)),
                    Change::Delete(key) => batch.delete(key.clone()),
                    Change::Rename(from, to) => batch.rename(from.clone(), to.clone()),
                };
            }
            store.commit_with(batch, step.durability)?;
        }
    }
    if step.then_syncs {
        store.sync()?;
    }
    if step.then_trims {
        store.trim()?;
    }
    Ok(())
}

/// The numbers that are known to be done, a thread each.
fn read_done(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path).expect("it is there");
    let (numbers, _) = bytes.as_chunks();
    numbers.iter().map(|number| u64::from_le_bytes(*number)).collect()
}

/// The child: goes on from the last numbers and never ends by itself.
#[test]
#[ignore = "started by the other test, and killed by it"]
fn child_works_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let done = read_done(&folder.join("done"));
    let store = options().open(folder.join("store")).expect("what a killed child leaves opens");
    let log = fs::OpenOptions::new().write(true).open(folder.join("done")).expect("it is there");
    println!("ready");
    std::thread::scope(|scope| {
        for (thread, mut number) in (0..).zip(done) {
            let (store, log) = (&store, &log);
            scope.spawn(move || {
                let mut state = state_at(thread, number, State::new(), 0);
                loop {
                    number += 1;
                    let step = step(thread, number, &state);
                    perform(store, thread, number, &step).expect("the disk takes all");
                    state = state_at(thread, number, state, number - 1);
                    log.write_all_at(&number.to_le_bytes(), thread * 8).expect("the disk takes it");
                }
            });
        }
    });
}

fn spawn_child(folder: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("this test is a file"))
        .args(["--ignored", "--exact", "child_works_until_it_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("this test can be run");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let ready = output.lines().map_while(Result::ok).any(|line| line.contains("ready"));
    if !ready {
        child.wait().expect("it has ended");
        panic!("the child ended before it was ready");
    }
    child
}

/// Whether a thread's keys have exactly this state.
fn is_state(store: &Store, thread: u64, state: &State) -> bool {
    let prefix = format!("{thread}/");
    let list = store.list(&ListOptions::new().prefix(prefix)).expect("it is whole");
    let keys: Vec<_> = list.map(|item| item.expect("it is whole").key).collect();
    keys.len() == state.len()
        && keys.iter().zip(state).all(|(found, (key, (number, len)))| {
            let bytes = store.get(found).expect("it is whole").expect("it is in the list");
            found == key && bytes == value(thread, *number, *len)
        })
}

#[test]
fn what_a_killed_process_has_acknowledged_is_there() {
    let kills = std::env::var("FS_STORE_KILLS").ok().and_then(|kills| kills.parse().ok());
    let kills: u64 = kills.unwrap_or(200);
    let folder = tempfile::tempdir().expect("a folder");
    options().open(folder.path().join("store")).expect("a new store").close().expect("it closes");
    let mut states = vec![(0_u64, State::new()); usize::try_from(THREADS).unwrap()];
    let mut rng = Rng(kills);
    let mut ahead = 0;
    for kill in 0..kills {
        let numbers: Vec<u8> = states.iter().flat_map(|(number, _)| number.to_le_bytes()).collect();
        fs::write(folder.path().join("done"), numbers).expect("the disk takes it");
        let mut child = spawn_child(folder.path());
        std::thread::sleep(Duration::from_micros(500 + rng.below(20_000)));
        child.kill().expect("it runs until it is killed");
        child.wait().expect("it has ended");

        let done = read_done(&folder.path().join("done"));
        let store = options().open(folder.path().join("store"));
        let store = store.unwrap_or_else(|error| panic!("kill {kill}: {error}"));
        for (thread, (known, (number, state))) in (0..).zip(done.iter().zip(&mut states)) {
            let mut found = state_at(thread, *known, state.clone(), *number);
            *number = *known;
            if !is_state(&store, thread, &found) {
                found = state_at(thread, known + 1, found, *known);
                *number += 1;
                ahead += 1;
                let is_next = is_state(&store, thread, &found);
                assert!(is_next, "kill {kill}: neither {known} of thread {thread} nor the next");
            }
            *state = found;
        }
        let report = store.verify(|_, _| {}).expect("it can be read");
        assert!(report.is_sound(), "kill {kill}: {:?}", report.findings);
        let objects: usize = states.iter().map(|(_, state)| state.len()).sum();
        assert_eq!(store.usage().expect("it has files").objects, objects as u64);
        store.close().expect("the disk takes all");
    }
    let steps: u64 = states.iter().map(|(number, _)| number).sum();
    println!("{kills} kills, {steps} steps, {ahead} times the one under way was there");
    assert!(steps > 2 * kills, "the children work before they are killed: {steps} steps");
    let store = options().create(false).open(folder.path().join("store")).expect("it is whole");
    for _ in 0..2 {
        store.sync().expect("the disk takes all");
        assert!(store.verify(|_, _| {}).expect("it can be read").is_sound());
    }
    assert_eq!(store.usage().expect("it has files").waiting_bytes, 0);
}
