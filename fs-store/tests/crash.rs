//! A machine that dies at any moment: whatever was acknowledged as durable is
//! there afterwards, every batch is whole or absent, and nothing leaks.

mod common;

use std::collections::BTreeMap;

use common::{LogDisk, Medium, Rng, bytes};
use fs_store::{Batch, Durability, ListOptions, MemDisk, OpenOptions, PutOptions, Store};

type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// One commit: the state after it, and between which calls it was made and promised.
struct Commit {
    state: State,
    /// Calls when it began.
    begun: usize,
    /// Calls when it returned.
    done: usize,
    is_durable: bool,
}

fn options() -> OpenOptions {
    OpenOptions::new().create(true).sector_bytes(512).journal_bytes(48 << 10)
}

fn state_of(store: &Store) -> State {
    let items = store.list(&ListOptions::new()).unwrap();
    let value = |key: &[u8]| store.get(key).unwrap().unwrap().to_vec();
    items.map(|item| item.unwrap().key.to_vec()).map(|key| (key.clone(), value(&key))).collect()
}

/// Does random things to a store; all commits, the empty one first.
fn work(disk: &LogDisk, seed: u64, steps: u64) -> Vec<Commit> {
    let mut rng = Rng(seed);
    let mut store = options().open_on(disk.clone()).unwrap();
    let mut state = State::new();
    let first = disk.calls_count();
    let mut commits =
        vec![Commit { state: state.clone(), begun: first, done: first, is_durable: true }];
    for step in 0..steps {
        let begun = disk.calls_count();
        let durability = match rng.below(3) {
            0 => Durability::Buffered,
            1 => Durability::Group,
            _ => Durability::Sync,
        };
        let key = |rng: &mut Rng| format!("key/{}", rng.below(12)).into_bytes();
        let len = |rng: &mut Rng| match rng.below(5) {
            0 => rng.below(600),
            1 => rng.below(5000),
            2 => rng.below(40_000),
            3 => 0,
            _ => rng.below(150_000),
        };
        let mut is_durable = durability != Durability::Buffered;
        match rng.below(10) {
            0..=3 => {
                let (key, len) = (key(&mut rng), len(&mut rng));
                let value = bytes(seed ^ (step << 20), usize::try_from(len).unwrap());
                let put = PutOptions::new().durability(durability);
                store.put_with(&key, &value, &put).unwrap();
                state.insert(key, value);
            }
            4 => {
                let (key, len) = (key(&mut rng), len(&mut rng));
                let value = bytes(seed ^ (step << 20), usize::try_from(len).unwrap());
                let put = PutOptions::new().durability(durability);
                store.put_reader_with(&key, &value[..], &put).unwrap();
                state.insert(key, value);
            }
            5 => {
                let key = key(&mut rng);
                let delete = PutOptions::new().durability(durability);
                store.delete_with(&key, &delete).unwrap();
                is_durable &= state.remove(&key).is_some();
            }
            6 => {
                let (from, to) = (key(&mut rng), key(&mut rng));
                if let Some(value) = state.get(&from).cloned()
                    && from != to
                {
                    store
                        .rename_with(&from, &to, &PutOptions::new().durability(durability))
                        .unwrap();
                    state.remove(&from);
                    state.insert(to, value);
                } else {
                    is_durable = false;
                }
            }
            7 | 8 => {
                let mut batch = Batch::new();
                // Now and then one that is longer than the journal.
                let is_long = rng.chance(6);
                for part in 0..=if is_long { 200 } else { rng.below(6) } {
                    let key = key(&mut rng);
                    if rng.chance(3) {
                        batch.delete(key.clone());
                        state.remove(&key);
                    } else {
                        let len = if is_long { rng.below(500) } else { len(&mut rng) };
                        let len = usize::try_from(len).unwrap();
                        let value = bytes(seed ^ (step << 20) ^ part, len);
                        batch.put(key.clone(), value.clone());
                        state.insert(key, value);
                    }
                }
                store.commit_with(batch, durability).unwrap();
                is_durable = false; // a batch of nothing promises nothing
            }
            _ => match rng.below(4) {
                0 => {
                    store.close().unwrap();
                    is_durable = true;
                    store = options().open_on(disk.clone()).unwrap();
                }
                1 => {
                    store.trim().unwrap();
                    is_durable = true;
                }
                _ => {
                    store.sync().unwrap();
                    is_durable = true;
                }
            },
        }
        commits.push(Commit { state: state.clone(), begun, done: disk.calls_count(), is_durable });
    }
    // Dies without closing.
    std::mem::forget(store);
    commits
}

/// Opens what a crash left and finds one of the states that may be there, besides
/// one more key perhaps.
fn check(
    disk: MemDisk,
    commits: &[Commit],
    least: usize,
    most: usize,
    besides: Option<&[u8]>,
    what: &str,
) {
    let store = match options().open_on(disk.clone()) {
        Ok(store) => store,
        Err(error) => panic!("{what}: {error}"),
    };
    if let Some(key) = besides {
        store.delete(key).unwrap();
    }
    let found = state_of(&store);
    let is_one = commits[least..=most].iter().any(|commit| commit.state == found);
    assert!(is_one, "{what}: none of the states {least} to {most}");
    let report = store.verify(|_, _| {}).unwrap();
    assert!(report.is_sound(), "{what}: {:?}", report.findings);
    store
        .put_with("after", b"it goes on", &PutOptions::new().durability(Durability::Sync))
        .unwrap();
    drop(store);
    let store = options().open_on(disk).unwrap();
    assert_eq!(store.get("after").unwrap().as_deref(), Some(&b"it goes on"[..]), "{what}");
    store.delete("after").unwrap();
    assert_eq!(state_of(&store), found, "{what}: after it was opened again");
    assert!(store.verify(|_, _| {}).unwrap().is_sound(), "{what}");
}

/// Cuts at every call.
fn cut_everywhere(seed: u64, steps: u64, tries: u64) {
    let disk = LogDisk::new();
    let commits = work(&disk, seed, steps);
    let calls = disk.calls();
    let mut medium = Medium::default();
    let mut rng = Rng(seed ^ 0xABCD);
    for cut in 0..=calls.len() {
        if cut > 0 {
            medium.call(&calls[cut - 1]);
        }
        if cut < commits[0].done {
            continue; // being created: there may be no store yet
        }
        let begun = commits.iter().rposition(|commit| commit.begun <= cut).unwrap();
        let acked = commits.iter().rposition(|commit| commit.done <= cut).unwrap();
        let durable =
            commits.iter().rposition(|commit| commit.is_durable && commit.done <= cut).unwrap();
        let what = format!("seed {seed}, cut at {cut} of {}", calls.len());
        check(medium.whole(), &commits, acked, begun, None, &format!("{what}, the process"));
        for nth in 0..tries.min(1 + medium.perhaps_count() as u64 * 2) {
            let what = format!("{what}, the machine, try {nth}");
            check(medium.torn(&mut rng), &commits, durable, begun, None, &what);
        }
    }
}

#[test]
fn whatever_was_promised_is_there_after_a_cut_at_any_call() {
    for seed in 0..6 {
        cut_everywhere(seed, 40, 3);
    }
}

#[test]
fn long_runs_survive_too() {
    cut_everywhere(100, 150, 1);
}

#[test]
fn a_machine_may_die_while_the_store_is_opened_after_its_process_has_died() {
    let seed = 7;
    let disk = LogDisk::new();
    let commits = work(&disk, seed, 60);
    let calls = disk.calls();
    let mut medium = Medium::default();
    let mut rng = Rng(seed);
    for cut in 0..=calls.len() {
        if cut > 0 {
            medium.call(&calls[cut - 1]);
        }
        if cut < commits[0].done || !rng.chance(4) {
            continue;
        }
        let begun = commits.iter().rposition(|commit| commit.begun <= cut).unwrap();
        let durable =
            commits.iter().rposition(|commit| commit.is_durable && commit.done <= cut).unwrap();
        // Nothing of what the process had not flushed is lost yet, or is safe.
        let again = LogDisk::on(medium.whole());
        let store = options().open_on(again.clone()).unwrap();
        store.put("new", bytes(cut as u64, 30_000)).unwrap();
        store.delete("new").unwrap();
        std::mem::forget(store);
        let mut medium = medium.clone();
        let later = again.calls();
        for (nth, call) in later.iter().enumerate() {
            medium.call(call);
            let what = format!("cut at {cut}, then at {nth} of {}", later.len());
            check(medium.torn(&mut rng), &commits, durable, begun, Some(&b"new"[..]), &what);
        }
    }
}
