//! The bodies of the fuzz targets: each takes any bytes and panics where a promise of the crates is broken.
//!
//! They are here, and not in `fuzz_targets/`, so that libFuzzer and the plain `smoke` runner drive the same code.

#[path = "../../alloc-core/tests/model/mod.rs"]
#[allow(clippy::pedantic, reason = "the model of another crate, under that crate's lints")]
mod alloc_model;
#[path = "../../cfb-format/tests/model/mod.rs"]
#[allow(dead_code, reason = "the model serves several tests; none needs all of it")]
mod cfb_model;
#[path = "../../cfb-format/tests/common/mod.rs"]
#[allow(clippy::pedantic, reason = "helpers of another crate's tests, under that crate's lints")]
mod common;
#[path = "../../cfb-format/tests/crash/mod.rs"]
#[allow(dead_code, reason = "the simulated disk serves several tests; none needs all of it")]
mod crash;
mod open;
mod repair;
mod round_trip;
#[path = "../../fs-store/tests/model/mod.rs"]
mod store_model;

use cfb_format::Version;

pub use open::cfb_open;
pub use repair::cfb_repair;
pub use round_trip::cfb_round_trip;

/// A target: its name, as `cargo fuzz run` knows it, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 7] = [
    ("alloc_ops", alloc_ops),
    ("cfb_failing_disk", cfb_failing_disk),
    ("cfb_open", cfb_open),
    ("cfb_ops", cfb_ops),
    ("cfb_repair", cfb_repair),
    ("cfb_round_trip", cfb_round_trip),
    ("store_ops", store_ops),
];

/// Four bytes pick a device, every four that follow one operation of the model.
pub fn alloc_ops(data: &[u8]) {
    let Some((&[low, high, bytes, bin], rest)) = data.split_first_chunk() else { return };
    let total = u32::from(u16::from_le_bytes([low, high])) % 9000;
    let mut model = if bytes == 0 {
        alloc_model::Model::new(total)
    } else {
        // Small bins overflow soon, a path that large devices take rarely.
        let bytes = usize::from(bytes) * 24;
        alloc_model::Model::with_tiny_bins(total.max(300), bytes, 1 + u16::from(bin % 8))
    };
    let (ops, _) = rest.as_chunks();
    for &[kind, which, low, high] in ops.iter().take(300) {
        let number = u16::from_le_bytes([low, high]);
        model.step(alloc_model::Op::from_numbers(kind, which, number));
    }
    model.finish();
}

/// The first byte picks version, kind of run and of save, every six bytes that follow one operation of the model.
pub fn cfb_ops(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let version = if first & 1 == 0 { Version::V3 } else { Version::V4 };
    let (raw, _) = rest.as_chunks::<6>();
    let ops: Vec<_> = raw.iter().take(400).map(|&bytes| cfb_model::Raw(bytes)).collect();
    cfb_model::Model::run(version, first & 4 != 0, first & 2 != 0, &ops);
}

/// Four bytes pick the file, how it commits and which call of its disk fails, every four that follow one operation.
/// The run is cut wherever a crash may cut it.
///
/// # Panics
///
/// Where what is left is not exactly the state of a commit, or an error costs anything.
pub fn cfb_failing_disk(data: &[u8]) {
    crash::random::run_bytes(data).expect_no_fault("a random run");
}

/// The first byte picks the kind of store, every six bytes that follow one operation of the model.
pub fn store_ops(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let setup = store_model::Setup {
        sector_bytes: [512, 4096, 65_536][usize::from(first >> 2) % 3],
        is_limited: first & 1 != 0,
        is_forgetful: first & 2 != 0,
    };
    let (raw, _) = rest.as_chunks::<6>();
    let ops: Vec<_> = raw.iter().take(300).map(|&bytes| store_model::Raw(bytes)).collect();
    store_model::Model::run(setup, &ops);
}
