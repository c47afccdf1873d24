//! A byte that has changed, anywhere in the files, is reported or does no harm: no
//! panic, no wrong byte, and no object that is missing in silence. Only of what a
//! killed process had not flushed, the end may be lost.
//!
//! With `FS_STORE_FLIP_ALL` set, long runs of one byte are changed byte for byte too.

mod common;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use common::{LogDisk, bytes};
use fs_store::{
    Batch, Durability, Error, ListOptions, MemDisk, OpenOptions, PutOptions, Result, Store,
};

type State = BTreeMap<Vec<u8>, Vec<u8>>;
type Files = Vec<(String, Vec<u8>)>;

fn options() -> OpenOptions {
    OpenOptions::new().sector_bytes(512).journal_bytes(16 << 10)
}

/// A small store that has something of everything.
fn fill(store: &Store) -> State {
    let mut state = State::new();
    let durable = PutOptions::new().durability(Durability::Group);
    for n in 0..30_u64 {
        let len = [0, 40, 400, 513, 700][usize::try_from(n % 5).unwrap()];
        let (key, value) = (format!("key/{n}").into_bytes(), bytes(n, len));
        let put =
            if n % 8 == 0 { durable.clone().metadata("type", "text") } else { durable.clone() };
        store.put_with(&key, &value, &put).unwrap();
        state.insert(key, value);
    }
    let value = bytes(7, 17_000);
    store.put_with("chunks", &value, &durable).unwrap();
    state.insert(b"chunks".to_vec(), value);
    for n in 0..5 {
        let key = format!("key/{}", n * 3);
        assert!(store.delete(&key).unwrap());
        state.remove(key.as_bytes());
    }
    store.trim().unwrap();
    state
}

/// What is found wrong, if anything is: bytes that come must be right.
fn look(files: Files, expected: &[&State]) -> Result<Option<Error>> {
    let store = options().open_on(MemDisk::from_files(files))?;
    let mut possible: Vec<&State> = expected.to_vec();
    let mut wrong = None;
    let keys: Vec<Vec<u8>> = expected.iter().flat_map(|state| state.keys().cloned()).collect();
    for key in &keys {
        match store.get(key) {
            Ok(found) => {
                possible.retain(|state| state.get(key).map(Vec::as_slice) == found.as_deref());
            }
            Err(error) => wrong = Some(error),
        }
        assert!(!possible.is_empty(), "{} is another one", key.escape_ascii());
    }
    let list: Result<Vec<_>> = store.list(&ListOptions::new()).and_then(Iterator::collect);
    match list {
        Ok(items) => {
            let found: Vec<&[u8]> = items.iter().map(|item| &item.key[..]).collect();
            possible.retain(|state| state.keys().map(|key| &key[..]).eq(found.iter().copied()));
            assert!(!possible.is_empty(), "the list is of no state");
        }
        Err(error) => wrong = Some(error),
    }
    match store.verify(|_, _| {}) {
        Ok(report) => {
            let mut findings = report.findings;
            assert!(wrong.is_none() || !findings.is_empty(), "unknown to verify: {wrong:?}");
            wrong = findings.pop().or(wrong);
        }
        Err(error) => wrong = Some(error),
    }
    Ok(wrong)
}

/// Changes every byte in turn, or one in `step`, and counts what became of it: refused to open,
/// reported, without harm.
fn flip_everywhere(files: &Files, states: &[&State], step: usize, what: &str) -> [usize; 3] {
    let is_patient = std::env::var_os("FS_STORE_FLIP_ALL").is_some();
    let mut counts = [0; 3];
    for (index, (name, content)) in files.iter().enumerate() {
        for at in (0..content.len()).step_by(step) {
            // In long runs of one byte all are as good as one another.
            let around = &content[at.saturating_sub(64)..(at + 64).min(content.len())];
            if around.iter().all(|byte| *byte == content[at]) && at % 61 != 0 && !is_patient {
                continue;
            }
            let mut files = files.clone();
            files[index].1[at] ^= [0x01, 0x80, 0xFF, 0x10][at % 4];
            let outcome = catch_unwind(AssertUnwindSafe(|| look(files, states)));
            let outcome = outcome.unwrap_or_else(|_| panic!("{what}: byte {at} of {name}"));
            match outcome {
                Err(Error::Io { .. } | Error::Full { .. }) => panic!("{what}: byte {at}: I/O"),
                Err(_) => counts[0] += 1,
                Ok(Some(_)) => counts[1] += 1,
                Ok(None) => counts[2] += 1,
            }
        }
    }
    println!("{what}: {} refused, {} reported, {} harmless", counts[0], counts[1], counts[2]);
    counts
}

#[test]
fn a_changed_byte_of_a_closed_store_is_found_or_harmless() {
    let disk = MemDisk::new();
    let store = options().create(true).open_on(disk.clone()).unwrap();
    let state = fill(&store);
    store.close().unwrap();
    let files = disk.files();
    let [refused, reported, harmless] = flip_everywhere(&files, &[&state], 1, "closed");
    assert!(refused > 0 && reported > 0 && harmless > 0);
}

#[test]
fn a_changed_byte_of_a_long_object_is_found() {
    let disk = MemDisk::new();
    let store = options().create(true).open_on(disk.clone()).unwrap();
    // So long that its checksums lie in sectors of their own.
    let value = bytes(9, 540_000);
    store.put("long", &value).unwrap();
    store.trim().unwrap();
    store.close().unwrap();
    let state = State::from([(b"long".to_vec(), value)]);
    let [_, reported, _] = flip_everywhere(&disk.files(), &[&state], 307, "long");
    assert!(reported >= 540_000 / 307, "{reported}");
}

#[test]
fn a_changed_byte_of_a_journal_costs_no_more_than_what_was_not_flushed() {
    let disk = LogDisk::new();
    let store = options().create(true).journal_bytes(64 << 10).open_on(disk.clone()).unwrap();
    let first = fill(&store);
    store.clone().close().unwrap();
    let mut states = vec![first];
    let durable = PutOptions::new().durability(Durability::Sync);
    // Flushed, each by itself, and so known to be there.
    for n in 0..8_u64 {
        let mut state = states.last().unwrap().clone();
        let (key, value) = (
            format!("new/{n}").into_bytes(),
            bytes(n, 300 + 200 * usize::try_from(n % 3).unwrap()),
        );
        store.put_with(&key, &value, &durable).unwrap();
        state.insert(key, value);
        if n % 4 == 0 {
            store.delete_with(format!("key/{}", 20 + n), &durable).unwrap();
            state.remove(format!("key/{}", 20 + n).as_bytes());
        }
        states.push(state);
    }
    // Not flushed; the last frame knows that all before these are.
    let flushed = states.len() - 1;
    for n in 0..4_u64 {
        let mut state = states.last().unwrap().clone();
        let (key, value) = (format!("late/{n}").into_bytes(), bytes(n, 800));
        let mut batch = Batch::new();
        batch.put(key.clone(), value.clone()).put("again", vec![7 + u8::try_from(n).unwrap(); 400]);
        store.commit(batch).unwrap();
        state.insert(key, value);
        state.insert(b"again".to_vec(), vec![7 + u8::try_from(n).unwrap(); 400]);
        states.push(state);
    }
    let files: Files = disk.files();
    std::mem::forget(store);
    let states: Vec<&State> = states[flushed..].iter().collect();
    let [refused, reported, harmless] = flip_everywhere(&files, &states, 1, "killed");
    assert!(refused > 0 && reported > 0 && harmless > 0);
}

#[test]
fn a_changed_byte_of_what_was_flushed_is_not_taken_for_a_crash() {
    let disk = LogDisk::new();
    let store = options().create(true).journal_bytes(64 << 10).open_on(disk.clone()).unwrap();
    let durable = PutOptions::new().durability(Durability::Sync);
    let mut state = State::new();
    // In sectors, then in the journal, each flushed; the last frame knows of both.
    for (key, len) in [("sectors", 60_000), ("journal", 3000), ("last", 10)] {
        let value = bytes(4, len);
        store.put_with(key, &value, &durable).unwrap();
        state.insert(key.into(), value);
    }
    let files: Files = disk.files();
    std::mem::forget(store);
    let mut without_last = state.clone();
    without_last.remove(&b"last"[..]);
    let states = [&state, &without_last];
    let [refused, reported, _] = flip_everywhere(&files, &states, 53, "flushed");
    assert!(refused >= 3000 / 53, "{refused}");
    assert!(reported >= 60_000 / 53, "{reported}");
}
