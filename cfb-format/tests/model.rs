//! Random operations with many handles held agree with the slow, obvious file, and what is written passes strict
//! validation and an independent audit that accounts for every sector.

#![allow(clippy::cast_possible_truncation, reason = "sizes here are small by construction")]

#[path = "model/mod.rs"]
mod model;

use cfb_format::Version;
use model::{Model, Raw};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

fn raw() -> impl Strategy<Value = Raw> {
    any::<[u8; 6]>().prop_map(Raw)
}

/// The established crate's strict mode reads what the library wrote.
fn the_rival_accepts(bytes: Vec<u8>) {
    let file = cfb::CompoundFile::open_strict(std::io::Cursor::new(bytes))
        .expect("crate cfb opens it, strict");
    assert!(file.walk().count() >= 1);
}

/// Runs that failed are kept beside this file and run first.
fn config(cases: u32) -> ProptestConfig {
    let kept = FileFailurePersistence::WithSource("regressions");
    ProptestConfig {
        failure_persistence: Some(Box::new(kept)),
        ..ProptestConfig::with_cases(cases)
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn version_3_agrees_with_the_map(in_place in any::<bool>(), ops in vec(raw(), 1..120)) {
        the_rival_accepts(Model::run(Version::V3, in_place, false, &ops));
    }

    #[test]
    fn version_4_agrees_with_the_map(in_place in any::<bool>(), ops in vec(raw(), 1..120)) {
        the_rival_accepts(Model::run(Version::V4, in_place, false, &ops));
    }
}

proptest! {
    #![proptest_config(config(40))]

    #[test]
    fn files_of_many_entries_agree_with_the_map(four in any::<bool>(), in_place in any::<bool>(), ops in vec(raw(), 1..300)) {
        let version = if four { Version::V4 } else { Version::V3 };
        the_rival_accepts(Model::run(version, in_place, true, &ops));
    }
}
