//! A disk that fails: a call gives an error or has happened, what was there before
//! stays whole and can be read, and after the store is opened again everything
//! that was promised is there and nothing leaks.

mod common;

use std::collections::BTreeMap;

use common::{Fails, LogDisk, Medium, Rng, bytes};
use fs_store::{
    Batch, Disk, Durability, Error, ListOptions, OpenOptions, PutOptions, Result, Store,
};

type State = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> OpenOptions {
    OpenOptions::new()
        .create(true)
        .sector_bytes(512)
        .journal_bytes(32 << 10)
        .block_file_bytes(4 << 20)
        .cache_bytes(20_000)
}

fn state_of(store: &Store) -> Result<State> {
    let mut state = State::new();
    for item in store.list(&ListOptions::new())? {
        let key = item?.key.to_vec();
        let value = store.get(&key)?.expect("it is in the list");
        state.insert(key, value.to_vec());
    }
    Ok(state)
}

/// What the store has that stands for one that did not open.
const NOWHERE: &[u8] = b"nowhere";

/// A state that may be there after the machine has died.
struct Commit {
    state: State,
    /// Calls that the disk had done when it was promised; never, if it was not.
    durable: Option<usize>,
}

/// What one run of a script has come to.
struct Outcome {
    commits: Vec<Commit>,
    /// The store, unless it did not open.
    store: Option<Store>,
    /// What was being done when it failed, after which it may have happened or not.
    doubtful: Option<State>,
    failures: usize,
}

impl Outcome {
    fn state(&self) -> &State {
        &self.commits.last().expect("the empty one").state
    }
}

/// Does one step; the state after it, and whether it is promised.
fn step(rng: &mut Rng, store: &mut Store, disk: &LogDisk, state: &State) -> (State, Result<bool>) {
    let mut next = state.clone();
    let durability = [Durability::Buffered, Durability::Group, Durability::Sync];
    let durability = durability[usize::try_from(rng.below(3)).unwrap()];
    let put = PutOptions::new().durability(durability);
    let key = |rng: &mut Rng| format!("key/{}", rng.below(14)).into_bytes();
    let value = |rng: &mut Rng| {
        let most = [500, 3000, 40_000, 180_000][usize::try_from(rng.below(4)).unwrap()];
        let len = rng.below(most);
        bytes(rng.next(), usize::try_from(len).unwrap())
    };
    let is_durable = durability != Durability::Buffered;
    let done = match rng.below(12) {
        0..=3 => {
            let (key, value) = (key(rng), value(rng));
            let done = store.put_with(&key, &value, &put);
            next.insert(key, value);
            done.map(|_| is_durable)
        }
        4 => {
            let (key, value) = (key(rng), value(rng));
            let done = store.put_reader_with(&key, &value[..], &put);
            next.insert(key, value);
            done.map(|_| is_durable)
        }
        5 | 6 => {
            let key = key(rng);
            let was_there = next.remove(&key).is_some();
            store.delete_with(&key, &put).map(|_| is_durable && was_there)
        }
        7 | 8 => {
            let mut batch = Batch::new();
            for _ in 0..=rng.below(5) {
                let (key, value) = (key(rng), value(rng));
                if rng.chance(4) {
                    batch.delete(key.clone());
                    next.remove(&key);
                } else {
                    batch.put(key.clone(), value.clone());
                    next.insert(key, value);
                }
            }
            store.commit_with(batch, durability).map(|()| false)
        }
        9 => store.trim().map(|_| true),
        10 => store.sync().map(|()| true),
        _ => {
            let closed = store.clone().close();
            let nowhere = options().open_on(fs_store::MemDisk::new()).unwrap();
            nowhere.put(NOWHERE, b"").unwrap();
            drop(std::mem::replace(store, nowhere));
            closed.and_then(|()| {
                *store = options().open_on(disk.clone())?;
                Ok(true)
            })
        }
    };
    (next, done)
}

/// Runs a script on a disk of which calls fail.
fn run(disk: &LogDisk, seed: u64, steps: u64) -> Outcome {
    let mut rng = Rng(seed);
    let first = Commit { state: State::new(), durable: Some(0) };
    let mut outcome = Outcome { commits: vec![first], store: None, doubtful: None, failures: 0 };
    let mut store = match options().open_on(disk.clone()) {
        Ok(store) => store,
        Err(error) => {
            assert!(matches!(error, Error::Io { .. }), "{error}");
            outcome.failures = 1;
            return outcome;
        }
    };
    for number in 0..steps {
        let what = format!("seed {seed}, step {number}");
        let before = outcome.state().clone();
        let (next, done) = step(&mut rng, &mut store, disk, &before);
        match done {
            Ok(is_durable) => {
                let durable = is_durable.then(|| disk.calls_count());
                outcome.commits.push(Commit { state: next, durable });
            }
            Err(error) => {
                outcome.failures += 1;
                let probe = store.delete("there is none");
                let is_broken = matches!(store.writer("any"), Err(Error::Broken { .. }));
                if !is_broken {
                    let is_clean = matches!(error, Error::Io { .. } | Error::Full { .. });
                    assert!(is_clean, "{what}: {error:?}");
                    probe.unwrap_or_else(|error| panic!("{what}: {error}"));
                }
                let found = state_of(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
                if found.contains_key(NOWHERE) {
                    outcome.doubtful = Some(next);
                    return outcome;
                }
                if is_broken {
                    assert!(found == before || found == next, "{what}: readable, {error}");
                    let put = store.put("more", b"x");
                    assert!(matches!(put, Err(Error::Broken { .. })), "{what}: {put:?}");
                    let batch =
                        store.commit(std::mem::take(Batch::new().put("more", b"x".to_vec())));
                    assert!(matches!(batch, Err(Error::Broken { .. })), "{what}");
                    outcome.doubtful = Some(next);
                    outcome.store = Some(store);
                    return outcome;
                }
                assert!(found == before, "{what}: an error, but something changed: {error}");
            }
        }
    }
    outcome.store = Some(store);
    outcome
}

/// Bytes in use by everything but the journal.
fn used(store: &Store) -> u64 {
    let usage = store.usage().unwrap();
    assert_eq!(usage.waiting_bytes, 0, "{usage:?}");
    usage.file_bytes - usage.free_bytes - usage.journal_bytes
}

/// Opens a disk and finds one of the states; nothing is leaked.
fn check(disk: impl Disk + Clone + 'static, states: &[&State], what: &str) {
    let store = options().open_on(disk.clone());
    let store = store.unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = state_of(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(states.contains(&&found), "{what}: none of {} states", states.len());
    let report = store.verify(|_, _| {}).unwrap();
    assert!(report.is_sound(), "{what}: {:?}", report.findings);
    store.put_with("more", [7; 9000], &PutOptions::new().durability(Durability::Sync)).unwrap();
    assert!(store.delete("more").unwrap());
    account(store, disk, what);
}

/// What a store says is in use is what it finds in use when it is opened again.
fn account(store: Store, disk: impl Disk + 'static, what: &str) {
    for _ in 0..2 {
        store.sync().unwrap();
        let report = store.verify(|_, _| {}).unwrap();
        assert!(report.is_sound(), "{what}: {:?}", report.findings);
    }
    let before = used(&store);
    store.close().unwrap();
    let store = options().open_on(disk).unwrap();
    assert_eq!(used(&store), before, "{what}: sectors that nobody owns");
}

/// Judges what a run has left: in memory, in the files, and on the medium.
fn judge(disk: &LogDisk, outcome: Outcome, rng: &mut Rng, what: &str) {
    disk.fail(Fails::default());
    let last = outcome.state().clone();
    let mut states = vec![&last];
    states.extend(&outcome.doubtful);
    let mut medium = Medium::default();
    disk.calls().iter().for_each(|call| medium.call(call));
    // A machine that dies in the very first write of a superblock may leave neither
    // a store nor nothing, and nobody has been promised anything.
    let was_made = outcome.store.is_some() || outcome.commits.len() > 1;
    for nth in 0..3 {
        let torn = medium.torn(rng);
        if !was_made && matches!(options().open_on(torn.clone()), Err(Error::Damaged { .. })) {
            continue;
        }
        let durable = outcome.commits.iter().rposition(|commit| commit.durable.is_some());
        let mut states: Vec<&State> =
            outcome.commits[durable.unwrap()..].iter().map(|commit| &commit.state).collect();
        states.extend(&outcome.doubtful);
        check(torn, &states, &format!("{what}, the machine, try {nth}"));
    }
    match outcome.store {
        Some(store) if outcome.doubtful.is_none() => {
            store.sync().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(state_of(&store).unwrap() == last, "{what}");
            account(store, disk.clone(), what);
        }
        store => drop(store),
    }
    check(disk.clone(), &states, &format!("{what}, the process"));
}

/// Every call fails, in every way.
fn fail_everywhere(seed: u64, steps: u64) -> (usize, usize) {
    let disk = LogDisk::new();
    let whole = run(&disk, seed, steps);
    assert_eq!(whole.failures, 0);
    drop(whole);
    let calls = disk.tried();
    let mut rng = Rng(seed);
    let mut failures = 0;
    for at in 0..calls {
        for (forever, is_full, growth_only) in [
            (false, false, false),
            (true, false, false),
            (false, true, false),
            (true, true, false),
            (true, true, true),
        ] {
            let fails = Fails { at: Some(at), forever, is_full, growth_only };
            let what = format!("seed {seed}, call {at} of {calls}, {fails:?}");
            let disk = LogDisk::new();
            disk.fail(fails);
            let outcome = run(&disk, seed, steps);
            failures += outcome.failures;
            judge(&disk, outcome, &mut rng, &what);
        }
    }
    (calls, failures)
}

#[test]
fn any_call_may_fail_and_nothing_is_lost() {
    let (mut calls, mut failures) = (0, 0);
    for seed in 0..4 {
        let (more, failed) = fail_everywhere(seed, 30);
        (calls, failures) = (calls + more, failures + failed);
    }
    println!("{calls} calls failed in five ways, {failures} operations with them");
    assert!(failures > calls, "most failures are felt");
}

#[test]
fn a_read_that_fails_is_told_and_the_next_one_is_right() {
    let disk = LogDisk::new();
    let store = options().open_on(disk.clone()).unwrap();
    let mut state = State::new();
    for n in 0..120_u64 {
        let len = [300, 5000, 700_000][usize::from(n.is_multiple_of(7)) + usize::from(n == 5)];
        let (key, value) = (format!("key/{n}").into_bytes(), bytes(n, len));
        store.put(&key, &value).unwrap();
        state.insert(key, value);
    }
    store.close().unwrap();
    let all = |disk: &LogDisk| -> Result<State> {
        let store = options().open_on(disk.clone())?;
        let state = state_of(&store)?;
        let report = store.verify(|_, _| {})?;
        assert!(report.findings.iter().all(|found| matches!(found, Error::Io { .. })));
        if let Some(error) = report.findings.into_iter().next() {
            return Err(error);
        }
        let snapshot = store.snapshot();
        store.copy("key/5", "copy")?;
        store.rename("copy", "renamed")?;
        let mut bytes = Vec::new();
        store.get_into("renamed", &mut bytes)?;
        assert_eq!(snapshot.get("key/5")?.unwrap(), bytes);
        assert!(store.delete("renamed")?);
        store.trim()?;
        Ok(state)
    };
    disk.fail_read(None);
    assert_eq!(all(&disk).unwrap(), state);
    let reads = disk.reads();
    let mut failed = 0;
    for at in 0..reads {
        disk.fail_read(Some(at));
        match all(&disk) {
            Ok(found) => assert_eq!(found, state, "read {at}"),
            Err(Error::Io { .. }) => failed += 1,
            Err(error) => panic!("read {at}: {error}"),
        }
        disk.fail_read(None);
        let store = options().open_on(disk.clone()).unwrap();
        for key in ["copy", "renamed"] {
            store.delete(key).unwrap();
        }
        assert_eq!(state_of(&store).unwrap(), state, "after read {at} has failed");
    }
    assert!(failed > reads / 2, "{failed} of {reads} failed reads were felt");
}

/// Puts until there is no more room; how many were refused.
fn fill(store: &Store, state: &mut State, rng: &mut Rng) -> usize {
    let mut refused = 0;
    for n in 0..20_000_u64 {
        let most = [400, 9000, 300_000][usize::try_from(rng.below(3)).unwrap()];
        let key = format!("key/{n}").into_bytes();
        let value = bytes(rng.next(), usize::try_from(1 + rng.below(most)).unwrap());
        let before = store.usage().unwrap();
        let done = match rng.below(3) {
            0 => store.put(&key, &value).map(drop),
            1 => store.put_reader(&key, &value[..]).map(drop),
            _ => store.commit(std::mem::take(Batch::new().put(key.clone(), value.clone()))),
        };
        match done {
            Ok(()) => drop(state.insert(key, value)),
            Err(Error::Full { wanted, .. }) => {
                assert!(wanted > 0);
                let after = store.usage().unwrap();
                let counts = (after.objects, after.object_bytes, after.file_bytes);
                assert_eq!(counts, (before.objects, before.object_bytes, before.file_bytes));
                assert_eq!(store.contains(&key).unwrap(), state.contains_key(&key));
                refused += 1;
                if refused > 200 {
                    break;
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
    refused
}

#[test]
fn a_full_disk_takes_deletes_and_trims_and_then_puts_again() {
    for (seed, sector_bytes) in [(1, 512), (2, 4096), (3, 16_384)] {
        let mut rng = Rng(seed);
        let disk = LogDisk::new();
        let options = || options().sector_bytes(sector_bytes).block_file_bytes(1 << 30);
        let mut store = options().open_on(disk.clone()).unwrap();
        let mut state = State::new();
        store.put("first", vec![1; 6 << 20]).unwrap();
        store.delete("first").unwrap();
        disk.fail(Fails { at: Some(0), forever: true, is_full: true, growth_only: true });
        assert!(fill(&store, &mut state, &mut rng) > 200, "{sector_bytes}");
        assert!(state.len() > 20, "{sector_bytes}: {}", state.len());
        for round in 0..6 {
            let what = format!("sectors of {sector_bytes}, round {round}");
            assert_eq!(state_of(&store).unwrap(), state, "{what}");
            let won = store.trim();
            won.unwrap_or_else(|error| panic!("{what}: {error}"));
            let keys: Vec<Vec<u8>> = state.keys().filter(|_| rng.chance(2)).cloned().collect();
            let mut batch = Batch::new();
            for key in &keys {
                state.remove(key);
                if rng.chance(2) {
                    batch.delete(key.clone());
                } else {
                    assert!(store.delete(key).unwrap_or_else(|error| panic!("{what}: {error}")));
                }
            }
            store.commit(batch).unwrap_or_else(|error| panic!("{what}: {error}"));
            if round % 2 == 1 {
                store.close().unwrap_or_else(|error| panic!("{what}: {error}"));
                store = options().open_on(disk.clone()).unwrap();
            }
            let left: usize = state.values().map(Vec::len).sum();
            let before = state.len();
            fill(&store, &mut state, &mut rng);
            assert!(state.len() > before, "{what}: {left} bytes are left, and no put goes");
        }
        disk.fail(Fails::default());
        let report = store.verify(|_, _| {}).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        assert_eq!(state_of(&store).unwrap(), state);
    }
}

#[test]
fn a_disk_full_of_small_objects_takes_deletes() {
    for sector_bytes in [4096, 512] {
        let disk = LogDisk::new();
        let options = OpenOptions::new().create(true).sector_bytes(sector_bytes);
        let store = options.open_on(disk.clone()).unwrap();
        store.put("first", vec![1; 10 << 20]).unwrap();
        store.delete("first").unwrap();
        disk.fail(Fails { at: Some(0), forever: true, is_full: true, growth_only: true });
        let mut keys = Vec::new();
        for n in 0..200_000_u64 {
            let key = format!("key/{n:06}");
            match store.put(&key, bytes(n, 300)) {
                Ok(_) => keys.push(key),
                Err(Error::Full { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!((5_000..199_999).contains(&keys.len()), "{}", keys.len());
        let mut rng = Rng(3);
        for n in 0..keys.len() * 9 / 10 {
            let index = usize::try_from(rng.below(keys.len() as u64)).unwrap();
            let deleted = store.delete(keys.swap_remove(index));
            let usage = store.usage();
            assert!(deleted.unwrap_or_else(|error| panic!(
                "{sector_bytes}: delete {n}, {} left: {error}, {usage:?}",
                keys.len()
            )));
        }
        for n in 0..1000 {
            store.put(format!("new/{n}"), bytes(n, 300)).unwrap();
        }
        let report = store.verify(|_, _| {}).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        assert_eq!(report.objects, keys.len() as u64 + 1000);
    }
}
