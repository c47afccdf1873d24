//! Heap bytes of each structure, counted by the allocator below it, in bits a
//! sector of the device.

use std::time::Duration;

use super::table::{Bound, Cell, Table};
use super::{Bench, Report};
use crate::churn::{Churn, SEED};
use crate::fill::{Fill, ONE_M, SIXTEEN_M};
use crate::rivals::{BTreePair, HiBitSet, OffsetAlloc, Ours, RangeAlloc, RangeMap, Rival, Roaring};
use crate::rng::Rng;

pub(super) fn measure(bench: &Bench, report: &mut Report) {
    let mut table = Table::new(
        "Memory",
        "Bits a sector, from the bytes that the structure gives back to the heap when it is \
         dropped. \"Used\": after 100,000 more allocations and frees of 1 to 128 sectors in \
         random order.",
        &[
            "device",
            "alloc-core, loaded",
            "used",
            "BTreeMap pair",
            "offset-allocator 0.2",
            "range-alloc 0.1.5",
            "rangemap 1.8",
            "roaring 0.12",
            "hibitset 0.6",
        ],
    );
    let mut worst: f64 = 0.0;
    for fill in [ONE_M, SIXTEEN_M].into_iter().flat_map(Fill::all) {
        bench.say(&format!("memory, {fill}"));
        let words = fill.free_words();
        let loaded = bits::<Ours>(bench, &fill, &words, 0).expect("held");
        let used = bits::<Ours>(bench, &fill, &words, 100_000).expect("held");
        worst = worst.max(loaded).max(used);
        table.row(vec![
            Cell::Text(fill.to_string()),
            loaded.into(),
            used.into(),
            bits::<BTreePair>(bench, &fill, &words, 0).into(),
            bits::<OffsetAlloc>(bench, &fill, &words, 0).into(),
            bits::<RangeAlloc>(bench, &fill, &words, 0).into(),
            bits::<RangeMap>(bench, &fill, &words, 0).into(),
            bits::<Roaring>(bench, &fill, &words, 0).into(),
            bits::<HiBitSet>(bench, &fill, &words, 0).into(),
        ]);
    }
    report.tables.push(table);
    let churned = churned(bench, report);
    report.bounds.push(Bound::at_most(
        "memory: bits a sector, the worst of all states",
        worst.max(churned),
        1.25,
    ));
}

/// Bits a sector of a structure in state `fill` after `ops` random operations.
fn bits<R: Rival>(bench: &Bench, fill: &Fill, words: &[u64], ops: usize) -> Option<f64> {
    let mut rival = R::load(fill, words)?;
    exercise(&mut rival, ops);
    Some(bench.bytes_of(rival) as f64 * 8.0 / f64::from(fill.sectors))
}

/// Small objects come and go, so that whatever index there is fills up. All
/// are released at the end.
fn exercise<R: Rival>(rival: &mut R, ops: usize) {
    let mut rng = Rng::new(19);
    let mut held: Vec<R::Object> = Vec::new();
    for _ in 0..ops {
        if held.len() > 1_000 || (!held.is_empty() && rng.below(2) == 0) {
            rival.release(held.swap_remove(rng.below(held.len())));
        } else {
            let count = 1 + u32::try_from(rng.below(128)).expect("small");
            held.extend(rival.allocate(count));
        }
    }
    for object in held {
        rival.release(object);
    }
}

/// Ours after churn, at both sizes.
fn churned(bench: &Bench, report: &mut Report) -> f64 {
    let mut table = Table::new(
        "Memory after churn",
        "Bits a sector of alloc-core after every object was replaced about nine times.",
        &["device", "bits"],
    );
    let mut worst: f64 = 0.0;
    for sectors in [ONE_M, SIXTEEN_M] {
        for used in [5_000, 9_000, 9_900] {
            let mut churn = Churn::<Ours>::new(sectors, used, SEED).expect("held");
            let objects = churn.objects() as u64 * 9;
            churn.run(&bench.clock, objects, Duration::from_mins(1));
            let bits = bench.bytes_of(churn.into_rival()) as f64 * 8.0 / f64::from(sectors);
            worst = worst.max(bits);
            table.row(vec![format!("{}M {} %", sectors >> 20, used / 100).into(), bits.into()]);
        }
    }
    report.tables.push(table);
    worst
}
