//! What `check` costs: on every real file, and on files made to cost more than they weigh.

use std::time::{Duration, Instant};

use cfb_format::{CompoundFile, Finding, FindingCode, OpenOptions};
use peakmem_alloc::PeakMemAllocTrait;

use crate::MEMORY;
use crate::common::raw::{Build, Image, NOTHING, colour, entry, kind, pattern};

/// Nothing here takes a tenth of it.
const LONG: Duration = Duration::from_secs(2);

/// Opens and checks; gives the findings and the most memory in use meanwhile.
fn checked(bytes: &[u8], what: &str) -> (Vec<Finding>, usize) {
    MEMORY.reset_peak_memory();
    let start = Instant::now();
    let file = OpenOptions::new().open_storage(bytes).expect("it opens");
    let findings = file.check().expect("it can be checked");
    let (time, peak) = (start.elapsed(), MEMORY.get_peak_memory());
    assert!(time < LONG, "{what}: {time:?}");
    (findings, peak)
}

#[test]
fn every_real_file_is_checked_within_two_seconds_and_six_times_its_size() {
    let Some(corpus) = crate::corpus() else { return };
    let _alone = crate::QUIET.write();
    let mut worst = (0.0, String::new());
    let mut complaints = Vec::new();
    for file in std::fs::read_dir(corpus.join("files")).expect("the files") {
        let path = file.expect("an entry of the folder").path();
        let size = path.metadata().expect("a file of the corpus").len() as usize;
        MEMORY.reset_peak_memory();
        let start = Instant::now();
        let checked = CompoundFile::open(&path).and_then(|file| file.check());
        let (time, peak) = (start.elapsed(), MEMORY.get_peak_memory());
        drop(checked);
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        #[expect(clippy::cast_precision_loss, reason = "a rough share")]
        let share = peak.saturating_sub(FIXED) as f64 / size as f64;
        if share > worst.0 {
            worst = (share, format!("{name}, {peak} bytes for {size}"));
        }
        if peak > 6 * size + FIXED {
            complaints.push(format!("{name}: {peak} bytes of memory for {size}"));
        }
        if time > LONG {
            complaints.push(format!("{name}: {time:?} for {size} bytes"));
        }
    }
    println!("the most memory: {:.2} times the file, {}", worst.0, worst.1);
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

/// What a file of no size costs.
const FIXED: usize = 256 << 10;

/// Fills the directory's unused slots with entries of a kind; `links` gives left, right and child of each.
fn fill(image: &mut Image, kind: u8, links: impl Fn(u32, u32) -> [u32; 3]) -> u32 {
    let last = image.slot_count() as u32 - 1;
    for slot in image.slots.len() as u32..=last {
        let at = image.slot_at(slot as usize);
        let name: Vec<u16> = format!("{slot:031}").encode_utf16().collect();
        for (nth, unit) in name.iter().enumerate() {
            image.put_u16(at + entry::NAME + 2 * nth, *unit);
        }
        image.put_u16(at + entry::NAME_LEN, 64);
        image.put(at + entry::KIND, &[kind]);
        image.put(at + entry::COLOUR, &[colour::BLACK]);
        let [left, right, child] = links(slot, last);
        image.put_u32(at + entry::LEFT, left);
        image.put_u32(at + entry::RIGHT, right);
        image.put_u32(at + entry::CHILD, child);
    }
    last
}

#[test]
fn paths_of_a_deep_directory_take_no_more_than_in_proportion() {
    let _alone = crate::QUIET.write();
    // Each in the one before, and each with a start, which a storage must not have.
    let mut image = Build::new(4).spare_slots(30_000).image();
    let below = |slot, last| [NOTHING, NOTHING, if slot < last { slot + 1 } else { NOTHING }];
    let last = fill(&mut image, kind::STORAGE, below);
    for slot in 1..=last {
        image.put_u32(image.slot_at(slot as usize) + entry::START, 7);
    }
    image.put_u32(image.slot_at(0) + entry::CHILD, 1);
    // All paths together would have fourteen gigabytes.
    let (findings, peak) = checked(&image.bytes, "nested storages");
    let starts = findings.iter().filter(|f| f.code() == FindingCode::EntryStorageStart);
    assert_eq!(starts.clone().count(), last as usize);
    assert!(starts.clone().any(|finding| finding.path().is_some()));
    assert!(starts.clone().all(|finding| finding.entry().is_some()));
    assert!(peak < 8 * image.bytes.len() + (4 << 20), "{peak} for {}", image.bytes.len());
}

#[test]
fn many_entries_in_one_chain_are_all_told_in_the_time_of_one() {
    let _alone = crate::QUIET.write();
    let content = pattern(1, 20 << 20);
    let mut image = Build::new(3).spare_slots(20_000).stream("long", &content).image();
    // Backwards, so that no two links of it are one run.
    let mut chain = image.chain(image.start("long"));
    chain.reverse();
    image.link(&chain);
    image.put_start("long", chain[0]);
    let own = image.slots.len() as u32;
    let beside = |slot, last| [NOTHING, if slot < last { slot + 1 } else { NOTHING }, NOTHING];
    let last = fill(&mut image, kind::STREAM, beside);
    for slot in own..=last {
        let at = image.slot_at(slot as usize);
        image.put_u32(at + entry::START, chain[slot as usize % 1000]);
        image.put_u64(at + entry::SIZE, 19 << 20);
    }
    let long = image.slot_at(image.slot("long"));
    image.put_u32(long + entry::RIGHT, own);
    let (findings, _) = checked(&image.bytes, "many entries in one chain");
    let shared = findings.iter().filter(|f| f.code() == FindingCode::SectorShared);
    assert_eq!(shared.count(), (last - own + 1) as usize);
}
