//! Real files: every stream that independent readers agree on is read as they read it, damaged files end in
//! content or a typed error at a bounded cost, and whatever opens can be copied and modified.
//!
//! `CFB_CORPUS` names the folder of files; without it each test says that it was skipped.

#![allow(clippy::cast_possible_truncation, reason = "sizes here are small by construction")]

#[path = "corpus/contents.rs"]
mod contents;
#[path = "corpus/copy.rs"]
mod copy;
#[path = "corpus/golden.rs"]
mod golden;
#[path = "corpus/modify.rs"]
mod modify;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use cfb_format::{CompoundFile, MemStorage, OpenOptions, Strictness, Version};
use contents::{Content, contents};
use copy::copied;
use golden::Components;
use modify::{Random, modified};
use peakmem_alloc::{INSTRUMENTED_SYSTEM, PeakMemAlloc, PeakMemAllocTrait};

#[global_allocator]
static MEMORY: &PeakMemAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

/// Held for writing while memory is measured, so that no other test allocates meanwhile.
static QUIET: RwLock<()> = RwLock::new(());

/// Golden entries that the specification contradicts, each with the reason.
const WRONG_IN_GOLDEN: [(&str, &str); 0] = [];

fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("CFB_CORPUS").filter(|folder| !folder.is_empty());
    if folder.is_none() {
        eprintln!("skipped: CFB_CORPUS names no folder of compound files");
    }
    folder.map(PathBuf::from)
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(folder).expect("a folder of the corpus");
    let mut files: Vec<_> =
        listed.map(|file| file.expect("an entry of the folder").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

fn short(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

/// Runs `check` over all of `items` on two threads and fails with the list of what it complains of.
fn each<T: Sync>(
    items: &[T],
    name: impl Fn(&T) -> String + Sync,
    check: impl Fn(&T) -> Vec<String> + Sync,
) {
    let next = AtomicUsize::new(0);
    let complaints = Mutex::new(Vec::new());
    let work = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = catch_unwind(AssertUnwindSafe(|| check(item)))
                .unwrap_or_else(|panic| vec![format!("panic: {}", message(&*panic))]);
            let found = found.into_iter().map(|complaint| format!("{}: {complaint}", name(item)));
            complaints.lock().expect("no panic under the lock").extend(found);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let mut complaints = complaints.into_inner().expect("no panic under the lock");
    complaints.sort();
    let of = items.len();
    assert!(
        complaints.is_empty(),
        "{} complaints in {of} files:\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of an unknown kind")
}

#[test]
fn every_golden_stream_is_read_as_other_readers_read_it() {
    let Some(corpus) = corpus() else { return };
    let _others_may_run = QUIET.read();
    let known = |file: &str| WRONG_IN_GOLDEN.iter().any(|(wrong, _)| *wrong == file);
    let golden: Vec<_> =
        golden::read(&corpus).into_iter().filter(|golden| !known(&golden.file)).collect();
    assert!(!golden.is_empty(), "golden.jsonl is empty");
    each(
        &golden,
        |golden| golden.file.clone(),
        |golden| {
            let file = match CompoundFile::open(corpus.join("files").join(&golden.file)) {
                Ok(file) => file,
                Err(error) => return vec![format!("does not open: {error}")],
            };
            let items = contents(&file);
            let mut complaints = Vec::new();
            let mut real: Vec<_> = items
                .iter()
                .filter_map(|item| Some((&item.path, item.content.as_ref()?)))
                .collect();
            for (path, len, hash) in &golden.streams {
                let listed = Content { len: *len, hash: hash.clone(), error: None };
                match real.iter().position(|(real, content)| *real == path && **content == listed) {
                    Some(at) => _ = real.swap_remove(at),
                    None => complaints.push(format!("no stream {path:?} of {len} bytes, {hash}")),
                }
            }
            complaints.extend(
                real.iter().map(|(path, content)| format!("{path:?} has {content:?} instead")),
            );
            let storages =
                items.iter().filter(|item| item.content.is_none()).map(|item| item.path.clone());
            let storages: Vec<_> = storages.collect();
            // An entry holds 31 units: a longer name is a reader's own, for a storage without one.
            let stored = |path: &&Components| path.iter().all(|name| name.0.len() <= 31);
            let missing =
                golden.storages.iter().filter(stored).filter(|path| !storages.contains(path));
            complaints.extend(missing.map(|path| format!("no storage {path:?}")));
            complaints
        },
    );
}

#[test]
fn every_file_ends_in_content_or_an_error_within_two_seconds_and_eight_times_its_size() {
    let Some(corpus) = corpus() else { return };
    let _alone = QUIET.write();
    let mut files = files_in(&corpus.join("files"));
    files.extend(files_in(&corpus.join("interop")));
    let mut complaints = Vec::new();
    for path in files {
        let size = usize::try_from(path.metadata().expect("a file of the corpus").len())
            .expect("a small file");
        MEMORY.reset_peak_memory();
        let start = Instant::now();
        let end = catch_unwind(|| read_everything(&path));
        let (time, peak) = (start.elapsed(), MEMORY.get_peak_memory());
        if end.is_err() {
            complaints.push(format!("{}: panics", short(&path)));
        }
        if time > Duration::from_secs(2) {
            complaints.push(format!("{}: takes {time:?} for {size} bytes", short(&path)));
        }
        if peak > 8 * size + (16 << 20) {
            complaints.push(format!("{}: takes {peak} bytes of memory for {size}", short(&path)));
        }
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

/// Opens the file both ways and asks for all there is: entries, streams in pieces and whole, checks.
fn read_everything(path: &Path) {
    for strictness in [Strictness::Strict, Strictness::Tolerant] {
        let Ok(file) = OpenOptions::new().strictness(strictness).open(path) else { continue };
        for item in contents(&file) {
            if item.content.is_some() {
                // Whole as well: the vector must follow what is there, not what the entry claims.
                drop(file.read_stream(&item.entry));
            }
        }
        drop(file.check());
        drop(file.usage());
    }
}

#[test]
fn files_of_other_writers_are_read_completely_and_hold_the_same_tree() {
    let Some(corpus) = corpus() else { return };
    let _others_may_run = QUIET.read();
    let mut trees = Vec::new();
    for path in files_in(&corpus.join("interop")) {
        let file =
            CompoundFile::open(&path).unwrap_or_else(|error| panic!("{}: {error}", short(&path)));
        let mut streams: Vec<_> = contents(&file)
            .into_iter()
            .filter_map(|item| Some((item.path, item.content?)))
            // SheetJS adds this stream of its own to every file.
            .filter(|(path, _)| !matches!(&path[..], [name] if format!("{name:?}").ends_with("Sh33tJ5")))
            .collect();
        streams.sort_by(|a, b| a.0.cmp(&b.0));
        for (stream, content) in &streams {
            assert_eq!(content.error, None, "{stream:?} in {}", short(&path));
        }
        if !short(&path).starts_with("jscfb_min") {
            assert_eq!(streams.len(), 174, "streams in {}", short(&path));
            trees.push((short(&path), streams));
        }
    }
    assert!(trees.len() >= 2, "only {} files to compare", trees.len());
    for (name, tree) in &trees[1..] {
        assert!(*tree == trees[0].1, "{name} differs from {}", trees[0].0);
    }
}

#[test]
fn every_file_that_opens_can_be_copied_to_each_version_and_reopens_strict() {
    let Some(corpus) = corpus() else { return };
    let _others_may_run = QUIET.read();
    each(
        &files_in(&corpus.join("files")),
        |path| short(path),
        |path| {
            let Ok(source) = CompoundFile::open(path) else { return vec![] };
            let items = contents(&source);
            [Version::V3, Version::V4]
                .into_iter()
                .filter_map(|version| copied(&source, &items, version).err())
                .map(|complaint| format!("copied: {complaint}"))
                .collect()
        },
    );
}

#[test]
fn every_file_that_opens_can_be_modified_without_new_findings() {
    let Some(corpus) = corpus() else { return };
    let _others_may_run = QUIET.read();
    each(
        &files_in(&corpus.join("files")),
        |path| short(path),
        |path| {
            let bytes = std::fs::read(path).expect("a file of the corpus");
            let seed = bytes
                .iter()
                .fold(bytes.len() as u64, |seed, &b| seed.rotate_left(5) ^ u64::from(b));
            let mut complaints = Vec::new();
            for in_place in [false, true] {
                let storage = MemStorage::from(bytes.clone());
                let options = OpenOptions::new().write(true).in_place(in_place);
                let Ok(file) = options.open_storage(storage.clone()) else { return vec![] };
                complaints.extend(modified(file, storage, Random(seed | 1)).err());
            }
            complaints
        },
    );
}
