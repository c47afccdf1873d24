//! Space: objects go, others of other sizes come, ten times over. What is
//! compared is what the folder takes up on the disk with what has to be there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::contestant::{Entry, FileCount, Item};
use super::data::{key, value};
use super::measure::{Options, Seat, time};
use super::work::grouped;
use crate::clock::median;
use crate::report::table::{Bound, Table};
use crate::rng::Rng;

/// Bytes of a sector: an object takes up whole ones.
const SECTOR: u64 = 4_096;

/// How often half goes.
const TIMES: usize = 10;

/// Name of these rows.
const NAME: &str = "space after churn";

/// Bytes that the blocks of all files in `dir` take up on the disk.
pub fn physical_bytes(dir: &Path) -> u64 {
    let below = |entry: fs::DirEntry| {
        // A store may remove a file of its own just now.
        let Ok(metadata) = entry.metadata() else { return 0 };
        if metadata.is_dir() { physical_bytes(&entry.path()) } else { metadata.blocks() * 512 }
    };
    fs::read_dir(dir).map_or(0, |entries| entries.flatten().map(below).sum())
}

/// A size: half are below 8 KiB, most between 1 and 64 KiB.
fn some_size(rng: &mut Rng) -> usize {
    rng.log_normal(8_192.0, 1.0).clamp(64, 256 << 10) as usize
}

/// Puts `count` new objects.
fn put(seat: &Seat, live: &mut BTreeMap<usize, usize>, next: &mut usize, count: usize) {
    let mut rng = Rng::new(*next as u64);
    let indices = *next..*next + count;
    *next += count;
    let items: Vec<Item> = indices
        .map(|index| {
            let size = some_size(&mut rng);
            live.insert(index, size);
            (key(index), value(index, size))
        })
        .collect();
    for items in items.chunks(1_000) {
        seat.store().put_batch(items);
    }
}

/// What one store did.
struct Churned {
    /// Bytes on the disk.
    physical: u64,
    /// Bytes of the sectors of live objects.
    live: u64,
    /// Nanoseconds an object, in a batch that is flushed.
    delete_ns: f64,
}

fn churn(options: &Options, entry: Entry, count: usize) -> Churned {
    let mut seat = Seat::new(entry, &options.dir);
    seat.fresh();
    let (mut live, mut next) = (BTreeMap::new(), 0);
    let mut rng = Rng::new(17);
    put(&seat, &mut live, &mut next, count);
    let mut deletes = Vec::new();
    for _ in 0..TIMES {
        let mut indices: Vec<_> = live.keys().copied().collect();
        rng.shuffle(&mut indices);
        indices.truncate(count / 2);
        let keys: Vec<_> = indices.iter().map(|&index| key(index)).collect();
        let ((), spent) = time(keys.len(), || seat.store().delete_batch(&keys));
        deletes.push(spent.wall_per_op());
        for index in indices {
            live.remove(&index);
        }
        put(&seat, &mut live, &mut next, count / 2);
    }
    seat.store().sync();
    let physical = physical_bytes(seat.dir());
    assert_eq!(seat.store().list("").keys, live.len(), "{}", entry.name);
    for (&index, &size) in live.iter().step_by(7) {
        seat.store().get(&key(index), &mut |found| {
            assert!(found == value(index, size), "object {index} in {}", entry.name);
        });
    }
    let live = live.values().map(|&size| (size as u64).next_multiple_of(SECTOR)).sum();
    Churned { physical, live, delete_ns: median(&mut deletes) }
}

/// Measures and adds a table and its bounds.
pub fn measure(
    options: &Options,
    entries: &[Entry],
    count: usize,
    tables: &mut Vec<Table>,
    bounds: &mut Vec<Bound>,
) {
    if !options.wants(NAME) {
        return;
    }
    let fewer = count / 5;
    let mut table = Table::new(
        "Space after churn",
        &format!(
            "{} objects (log-normal, half below 8 KiB), {} where each is a file; half of them goes \
             in one batch and as many of other sizes come, {TIMES} times. Usage: blocks of all \
             files in the folder, the store still open; live: objects in whole sectors of 4 KiB, \
             no index.",
            grouped(count),
            grouped(fewer),
        ),
        &["store", "live, MB", "usage, MB", "usage / live", "delete, µs each"],
    );
    for &entry in entries {
        options.say(&format!("{NAME}: {}", entry.name));
        let Churned { physical, live, delete_ns } =
            churn(options, entry, if entry.files == FileCount::Few { count } else { fewer });
        let ratio = physical as f64 / live as f64;
        table.row(vec![
            entry.name.into(),
            (live as f64 / 1e6).into(),
            (physical as f64 / 1e6).into(),
            ratio.into(),
            (delete_ns / 1e3).into(),
        ]);
        if entry.ours {
            bounds.push(Bound::at_most(format!("{NAME}: usage / live sectors"), ratio, 1.05));
            bounds.push(Bound::at_most("delete in a batch: ns each", delete_ns, 1_000.0));
        }
    }
    tables.push(table);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::contestant;

    #[test]
    fn files_take_up_their_sectors_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            rounds: 1,
            quick: true,
            dir: dir.path().to_owned(),
            only: None,
            progress: false,
        };
        let files = contestant::all().into_iter().find(|entry| entry.name == "files").unwrap();
        let Churned { physical, live, .. } = churn(&options, files, 40);
        assert!(physical >= live, "{physical} bytes on the disk for {live}");
        assert!(physical < live * 2, "{physical} bytes on the disk for {live}");
    }
}
