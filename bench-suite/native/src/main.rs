//! The store report with two more contestants: LMDB and `RocksDB`.

#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use std::process::ExitCode;

use bench_suite::store::command;
use bench_suite::store::contestant::{self, Entry};

/// The stores of `bench-suite`, and those of this crate.
fn all() -> Vec<Entry> {
    let mut all = contestant::all();
    #[cfg(feature = "lmdb")]
    all.push(Entry { borrows: true, ..Entry::rival("LMDB", lmdb::open) });
    #[cfg(feature = "rocksdb")]
    all.push(Entry::rival("RocksDB", rocksdb::open));
    all
}

fn main() -> ExitCode {
    command::run(all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_gives_back_what_was_put() {
        for entry in all() {
            let dir = tempfile::tempdir().unwrap();
            contestant::check(&entry, dir.path());
        }
    }
}
