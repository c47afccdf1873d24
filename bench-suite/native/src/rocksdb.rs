//! `RocksDB`: a log-structured merge tree whose larger values lie in blob files.

use std::path::Path;

use bench_suite::store::contestant::{Contestant, Item, Listed};
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Direction, IteratorMode, Options, WriteBatch,
    WriteOptions,
};

/// Bytes of the cache: no workload reads more than this again and again.
const CACHE_BYTES: usize = 512 << 20;

/// Values of so many bytes go to blob files, as with fjall.
const BLOB_BYTES: u64 = 1_024;

struct Rocks(DB);

/// A store in `dir`.
pub(crate) fn open(dir: &Path) -> Box<dyn Contestant> {
    let cache = Cache::new_lru_cache(CACHE_BYTES);
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&cache);
    blocks.set_bloom_filter(10.0, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::None);
    options.set_enable_blob_files(true);
    options.set_min_blob_size(BLOB_BYTES);
    options.set_enable_blob_gc(true);
    options.set_blob_cache(&cache);
    options.set_max_background_jobs(2);
    Box::new(Rocks(DB::open(&options, dir).expect("RocksDB opens")))
}

fn durable() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(true);
    options
}

impl Contestant for Rocks {
    fn put_batch(&self, items: &[Item]) {
        let mut batch = WriteBatch::default();
        for (key, value) in items {
            batch.put(key, value);
        }
        self.0.write_opt(batch, &durable()).expect("committing works");
    }

    fn put_durable(&self, key: &str, value: &'static [u8]) {
        self.0.put_opt(key, value, &durable()).expect("inserting works");
    }

    fn put_streamed(
        &self,
        key: &str,
        len_bytes: usize,
        pieces: &mut dyn Iterator<Item = &'static [u8]>,
    ) {
        let mut value = Vec::with_capacity(len_bytes);
        pieces.for_each(|piece| value.extend_from_slice(piece));
        self.0.put(key, value).expect("inserting works");
    }

    fn sync(&self) {
        self.0.flush_wal(true).expect("flushing works");
    }

    fn get(&self, key: &str, see: &mut dyn FnMut(&[u8])) {
        see(&self.0.get_pinned(key).expect("reading works").expect("the object is there"));
    }

    fn delete_batch(&self, keys: &[String]) {
        let mut batch = WriteBatch::default();
        for key in keys {
            batch.delete(key);
        }
        self.0.write_opt(batch, &durable()).expect("committing works");
    }

    fn list(&self, prefix: &str) -> Listed {
        let mut listed = Listed::default();
        for item in self.0.iterator(IteratorMode::From(prefix.as_bytes(), Direction::Forward)) {
            let (key, _) = item.expect("listing works");
            if !key.starts_with(prefix.as_bytes()) {
                break;
            }
            listed.add(&key);
        }
        listed
    }
}
