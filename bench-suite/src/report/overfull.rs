//! Searches that fail, and devices with next to nothing left: where a structure
//! that scans would show it.

use std::hint::black_box;

use super::table::{Bound, Cell, Table};
use super::{Bench, Report};
use crate::clock::{Spent, median};
use crate::fill::{Fill, ONE_M, SIXTEEN_M};
use crate::ops::{BATCH, Batch, FailingSearch};
use crate::rivals::{BTreePair, OffsetAlloc, Ours, Rival};

/// Searches between two looks at the clock.
const SEARCHES: u64 = 4_096;

pub(super) fn measure(bench: &Bench, report: &mut Report) {
    failing_searches(bench, report);
    nearly_full(bench, report);
    full(bench, report);
}

fn failing_searches(bench: &Bench, report: &mut Report) {
    bench.say("searches that fail");
    let mut table = Table::new(
        "A search that fails",
        "CPU ns to find out that no free run is long enough (one sector more than the longest \
         has). \"First\": the first search after loading, once.",
        &["device", "alloc-core", "first", "BTreeMap pair", "offset-allocator 0.2"],
    );
    let mut worst: f64 = 0.0;
    let states = [ONE_M, SIXTEEN_M].into_iter().flat_map(Fill::all);
    for fill in states.filter(|fill| fill.used_per_myriad > 0) {
        let words = fill.free_words();
        let mut ours = FailingSearch::<Ours>::load(&fill, &words).expect("not empty");
        let ((), first) = bench.clock.time(1, || ours.search());
        let mut trees = FailingSearch::<BTreePair>::load(&fill, &words);
        let mut offset = FailingSearch::<OffsetAlloc>::load(&fill, &words);
        let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..bench.rounds() {
            a.push(searches(bench, &mut ours));
            b.extend(trees.as_mut().map(|search| searches(bench, search)));
            c.extend(offset.as_mut().map(|search| searches(bench, search)));
        }
        let ns = median(&mut a);
        worst = worst.max(ns);
        table.row(vec![
            Cell::Text(fill.to_string()),
            ns.into(),
            first.cpu_ns.into(),
            median(&mut b).into(),
            median(&mut c).into(),
        ]);
    }
    report.bounds.push(Bound::at_most(
        "a search that fails: ns, the worst of all states",
        worst,
        20.0,
    ));
    report.tables.push(table);
}

fn searches<R: Rival>(bench: &Bench, search: &mut FailingSearch<R>) -> f64 {
    let ((), spent) = bench.clock.time(SEARCHES, || (0..SEARCHES).for_each(|_| search.search()));
    spent.per_op()
}

fn nearly_full(bench: &Bench, report: &mut Report) {
    bench.say("99.99 % full");
    let mut table = Table::new(
        "99.99 % full, 16M sectors",
        "CPU ns an operation. \"Gather\": objects of 16 sectors where most runs are shorter, ns \
         a sector.",
        &["", "allocate 1", "free 1", "gather 16", "free those"],
    );
    let mut worst: f64 = 0.0;
    for fill in [Fill::random(SIXTEEN_M, 9_999), Fill::clustered(SIXTEEN_M, 9_999)] {
        let words = fill.free_words();
        let ours = scarce::<Ours>(bench, &fill, &words);
        worst = ours.iter().copied().fold(worst, f64::max);
        for (title, figures) in [
            (Ours::TITLE, Some(ours)),
            (BTreePair::TITLE, Some(scarce::<BTreePair>(bench, &fill, &words))),
        ] {
            let mut row = vec![Cell::Text(format!("{title}, {:?}", fill.pattern).to_lowercase())];
            row.extend(figures.into_iter().flatten().map(Cell::from));
            table.row(row);
        }
    }
    report.bounds.push(Bound::at_most(
        "99.99 % full: ns, the worst of allocate, free and gather",
        worst,
        250.0,
    ));
    report.tables.push(table);
}

/// Single sectors out and back, then small objects that have to be gathered.
fn scarce<R: Rival>(bench: &Bench, fill: &Fill, words: &[u64]) -> [f64; 4] {
    let mut singles = Batch::<R>::load(fill, words, 1, BATCH).expect("some sectors are free");
    let mut rival = R::load(fill, words).expect("held");
    let objects = (rival.free() / 16 - 1) as usize;
    let mut held = Vec::with_capacity(objects);
    let mut figures: [Vec<f64>; 4] = Default::default();
    for _ in 0..bench.rounds() {
        let size = singles.size() as u64;
        let ((), spent) = bench.clock.time(size, || singles.allocate());
        figures[0].push(spent.per_op());
        singles.shuffle();
        let ((), spent) = bench.clock.time(size, || singles.release());
        figures[1].push(spent.per_op());

        let sectors = objects as u64 * 16;
        let ((), spent) = bench.clock.time(sectors, || {
            for _ in 0..objects {
                held.push(rival.allocate(16).expect("there is room"));
            }
        });
        figures[2].push(spent.per_op());
        let ((), spent) = bench.clock.time(sectors, || {
            for object in held.drain(..) {
                rival.release(object);
            }
        });
        figures[3].push(spent.per_op());
    }
    figures.map(|mut rounds| median(&mut rounds))
}

fn full(bench: &Bench, report: &mut Report) {
    bench.say("full");
    let words = vec![0; SIXTEEN_M as usize / 64];
    let mut ours = Ours::load(&Fill::empty(SIXTEEN_M), &words).expect("held");
    let mut rounds = Vec::new();
    for _ in 0..bench.rounds() {
        let (found, spent): (bool, Spent) = bench.clock.time(SEARCHES, || {
            // Without the black box the loop comes down to one look.
            (0..SEARCHES).any(|_| black_box(&mut ours).allocate(black_box(16)).is_some())
        });
        assert!(!found, "nothing is free");
        rounds.push(spent.per_op());
    }
    report.bounds.push(Bound::at_most(
        "100 % full: ns until an allocation is refused",
        median(&mut rounds),
        20.0,
    ));
}
