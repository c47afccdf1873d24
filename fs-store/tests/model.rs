//! A store does what a `BTreeMap` does, whatever is done to it and in whatever
//! order, and in the end every sector is free or belongs to something.
//!
//! `FS_STORE_MODEL_CASES` sets how many runs are tried.

#[path = "model/mod.rs"]
mod model;

use fs_store::{MAX_KEY_BYTES, MemDisk, OpenOptions};
use model::{Model, Raw, Setup};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// Runs that failed are kept beside this file and run first.
fn config() -> ProptestConfig {
    let cases = std::env::var("FS_STORE_MODEL_CASES").ok().and_then(|cases| cases.parse().ok());
    let kept = FileFailurePersistence::WithSource("regressions");
    ProptestConfig {
        failure_persistence: Some(Box::new(kept)),
        max_shrink_iters: 2000,
        ..ProptestConfig::with_cases(cases.unwrap_or(160))
    }
}

fn setup() -> impl Strategy<Value = Setup> {
    (prop::sample::select(vec![512, 4096, 65_536]), any::<bool>(), any::<bool>()).prop_map(
        |(sector_bytes, is_limited, is_forgetful)| Setup { sector_bytes, is_limited, is_forgetful },
    )
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn store_agrees_with_a_map(setup in setup(), ops in vec(any::<[u8; 6]>().prop_map(Raw), 1..200)) {
        Model::run(setup, &ops);
    }
}

#[test]
fn keys_of_any_length_make_an_index_that_ends() {
    let store = OpenOptions::new().create(true).open_on(MemDisk::new()).expect("a new store");
    let key = |n: u8| [&[b'k'; MAX_KEY_BYTES - 1][..], &[n]].concat();
    for n in 0..60 {
        store.put(key(n), [n]).expect("memory takes all");
    }
    let report = store.verify(|_, _| {}).expect("it can be read");
    assert!(report.is_sound(), "{:?}", report.findings);
    for n in 0..60 {
        assert_eq!(store.get(key(n)).expect("it is whole").as_deref(), Some(&[n][..]));
    }
}
