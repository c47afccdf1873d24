//! `alloc-core` and its rivals under divan: one operation at a time, churn,
//! streams growing in turn, tables.
//!
//! Each iteration is a batch; the throughput line is operations a second. A
//! structure is loaded once a row, and what an iteration did is undone before
//! the next. What a structure cannot do has no row; those that search by walking
//! run at 1 M sectors only, in small batches. divan measures wall time: on a busy
//! machine take the ratios from `alloc-report`, which measures CPU time.

#![allow(clippy::cast_precision_loss, reason = "counts here stay far below 2^52")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use alloc_core::{Chain, FreeMap, Run, SectorCount, SectorId};
use bench_suite::churn::{Churn, SEED};
use bench_suite::clock::Clock;
use bench_suite::fill::{Fill, ONE_M, Pattern, SIXTEEN_M};
use bench_suite::growth::{Growth, Turn};
use bench_suite::ops::{Batch, Extensions, FailingSearch, batch_of};
use bench_suite::rivals::{
    BTreePair, BitvecNaive, Exact, Extends, HiBitSet, OffsetAlloc, Ours, RangeAlloc, RangeMap,
    Rival, Roaring, Words,
};
use bench_suite::tables::{END_OF_CHAIN, FREE, Table, encode};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

/// The bitmaps of the states, made once: most rows share them.
fn words(fill: &Fill) -> Arc<Vec<u64>> {
    static MADE: LazyLock<Mutex<HashMap<Fill, Arc<Vec<u64>>>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(made.entry(*fill).or_insert_with(|| Arc::new(fill.free_words())))
}

/// Every state at both sizes.
fn everywhere() -> Vec<Fill> {
    [ONE_M, SIXTEEN_M].into_iter().flat_map(Fill::all).collect()
}

/// States with long runs: empty or clustered.
fn long_runs() -> Vec<Fill> {
    let mut states = everywhere();
    states.retain(|fill| fill.pattern == Pattern::Clustered && fill.used_per_myriad < 9_999);
    states
}

/// States with runs of 1,024 and more.
fn longer_runs() -> Vec<Fill> {
    let mut states = long_runs();
    states.retain(|fill| fill.sectors > ONE_M || fill.used_per_myriad < 9_900);
    states
}

/// States with long runs and something used.
fn clustered() -> Vec<Fill> {
    let mut states = long_runs();
    states.retain(|fill| fill.used_per_myriad > 0);
    states
}

/// States with something used.
fn not_empty() -> Vec<Fill> {
    let mut states = everywhere();
    states.retain(|fill| fill.used_per_myriad > 0);
    states
}

/// Those of `states` whose number of free runs fits a table of nodes or ranges.
fn few_runs(mut states: Vec<Fill>) -> Vec<Fill> {
    states.retain(|fill| fill.pattern == Pattern::Clustered || fill.used_per_myriad >= 9_900);
    states
}

/// Those of `states` for structures that search by walking.
fn small(states: Vec<Fill>) -> Vec<Fill> {
    let mut states = few_runs(states);
    states.retain(|fill| fill.sectors == ONE_M);
    states
}

fn allocating<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill, count: u32) {
    let batch = Batch::<R>::load(fill, &words(fill), count, batch_of::<R>()).expect("can do it");
    let size = batch.size();
    let batch = RefCell::new(batch);
    bencher
        .counter(ItemsCount::new(size))
        .with_inputs(|| batch.borrow_mut().release())
        .bench_local_values(|()| batch.borrow_mut().allocate());
}

fn freeing<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill, count: u32) {
    let batch = Batch::<R>::load(fill, &words(fill), count, batch_of::<R>()).expect("can do it");
    let size = batch.size();
    let batch = RefCell::new(batch);
    bencher
        .counter(ItemsCount::new(size))
        .with_inputs(|| {
            batch.borrow_mut().allocate();
            batch.borrow_mut().shuffle();
        })
        .bench_local_values(|()| batch.borrow_mut().release());
}

fn extending<R: Extends>(bencher: Bencher<'_, '_>, fill: &Fill) {
    let batch = Extensions::<R>::load(fill, &words(fill), batch_of::<R>()).expect("can do it");
    let size = batch.size();
    let (batch, extended) = (RefCell::new(batch), RefCell::new(false));
    bencher
        .counter(ItemsCount::new(size))
        .with_inputs(|| {
            if extended.replace(true) {
                batch.borrow_mut().cut();
            }
        })
        .bench_local_values(|()| batch.borrow_mut().extend());
}

fn failing<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
    let mut search = FailingSearch::<R>::load(fill, &words(fill)).expect("can do it");
    let times: u32 = if R::ABILITIES.linear { 1 } else { 1_024 };
    bencher
        .counter(ItemsCount::new(times))
        .bench_local(|| (0..times).for_each(|_| search.search()));
}

fn loading<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
    let words = words(fill);
    bencher
        .counter(ItemsCount::new(fill.sectors))
        .bench_local(|| R::load(fill, &words).expect("can do it"));
}

/// One run of `N` sectors, many times.
#[divan::bench_group(sample_size = 1, sample_count = 20, max_time = 0.5)]
mod allocate {
    use super::{
        BTreePair, Bencher, BitvecNaive, Fill, HiBitSet, OffsetAlloc, Ours, RangeAlloc, RangeMap,
        Rival, Roaring, Words, allocating, everywhere, few_runs, long_runs, longer_runs, small,
    };

    #[divan::bench(types = [Ours, BTreePair, HiBitSet], args = everywhere())]
    fn one<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        allocating::<R>(bencher, fill, 1);
    }

    #[divan::bench(types = [OffsetAlloc], args = few_runs(everywhere()))]
    fn one_by_nodes<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        allocating::<R>(bencher, fill, 1);
    }

    #[divan::bench(
        types = [RangeAlloc, RangeMap, Roaring, BitvecNaive, Words],
        args = small(everywhere()),
    )]
    fn one_by_walking<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        allocating::<R>(bencher, fill, 1);
    }

    #[divan::bench(types = [Ours, BTreePair, OffsetAlloc], args = long_runs())]
    fn run_of_64<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        allocating::<R>(bencher, fill, 64);
    }

    #[divan::bench(types = [Ours, BTreePair, OffsetAlloc], args = longer_runs())]
    fn run_of_1024<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        allocating::<R>(bencher, fill, 1_024);
    }

    #[divan::bench(types = [RangeAlloc, RangeMap, Roaring, BitvecNaive, Words], args = small(long_runs()))]
    fn run_of_64_by_walking<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        allocating::<R>(bencher, fill, 64);
    }

    #[divan::bench(types = [RangeAlloc, RangeMap, Roaring, BitvecNaive, Words], args = small(longer_runs()))]
    fn run_of_1024_by_walking<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        allocating::<R>(bencher, fill, 1_024);
    }
}

/// The same runs back, in random order.
#[divan::bench_group(sample_size = 1, sample_count = 20, max_time = 0.5)]
mod free {
    use super::{
        BTreePair, Bencher, BitvecNaive, Fill, HiBitSet, OffsetAlloc, Ours, RangeAlloc, RangeMap,
        Rival, Roaring, Words, everywhere, few_runs, freeing, long_runs, longer_runs, small,
    };

    #[divan::bench(types = [Ours, BTreePair, HiBitSet], args = everywhere())]
    fn one<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        freeing::<R>(bencher, fill, 1);
    }

    #[divan::bench(types = [OffsetAlloc], args = few_runs(everywhere()))]
    fn one_by_nodes<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        freeing::<R>(bencher, fill, 1);
    }

    #[divan::bench(
        types = [RangeAlloc, RangeMap, Roaring, BitvecNaive, Words],
        args = small(everywhere()),
    )]
    fn one_to_walkers<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        freeing::<R>(bencher, fill, 1);
    }

    #[divan::bench(types = [Ours, BTreePair, OffsetAlloc], args = long_runs())]
    fn run_of_64<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        freeing::<R>(bencher, fill, 64);
    }

    #[divan::bench(types = [Ours, BTreePair, OffsetAlloc], args = longer_runs())]
    fn run_of_1024<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        freeing::<R>(bencher, fill, 1_024);
    }

    #[divan::bench(types = [RangeAlloc, RangeMap, Roaring, BitvecNaive, Words], args = small(long_runs()))]
    fn run_of_64_to_walkers<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        freeing::<R>(bencher, fill, 64);
    }

    #[divan::bench(types = [RangeAlloc, RangeMap, Roaring, BitvecNaive, Words], args = small(longer_runs()))]
    fn run_of_1024_to_walkers<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        freeing::<R>(bencher, fill, 1_024);
    }
}

/// Eight sectors right behind what is there, all over the device.
#[divan::bench(
    types = [Ours, BTreePair, RangeMap, Roaring, BitvecNaive, Words],
    args = clustered(),
    sample_size = 1,
    sample_count = 20,
    max_time = 0.5,
)]
fn extend<R: Extends>(bencher: Bencher<'_, '_>, fill: &Fill) {
    extending::<R>(bencher, fill);
}

/// A search for one sector more than the longest free run has.
#[divan::bench_group(sample_size = 1, sample_count = 20, max_time = 0.5)]
mod failing_search {
    use super::{
        BTreePair, Bencher, BitvecNaive, Fill, OffsetAlloc, Ours, RangeAlloc, RangeMap, Rival,
        Roaring, Words, failing, few_runs, not_empty, small,
    };

    #[divan::bench(types = [Ours, BTreePair], args = not_empty())]
    fn indexed<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        failing::<R>(bencher, fill);
    }

    #[divan::bench(types = [OffsetAlloc], args = few_runs(not_empty()))]
    fn by_nodes<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        failing::<R>(bencher, fill);
    }

    #[divan::bench(
        types = [RangeAlloc, RangeMap, Roaring, BitvecNaive, Words],
        args = small(not_empty()),
    )]
    fn by_walking<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        failing::<R>(bencher, fill);
    }
}

/// The structure from a bitmap of the device; items are sectors.
#[divan::bench_group(sample_size = 1, sample_count = 5, max_time = 0.5)]
mod load {
    use super::{
        BTreePair, Bencher, BitvecNaive, Fill, HiBitSet, OffsetAlloc, Ours, RangeAlloc, RangeMap,
        Rival, Roaring, Words, everywhere, few_runs, loading, small,
    };

    #[divan::bench(
        types = [Ours, BTreePair, RangeMap, Roaring, BitvecNaive, Words],
        args = everywhere(),
    )]
    fn any<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        loading::<R>(bencher, fill);
    }

    #[divan::bench(types = [OffsetAlloc], args = few_runs(everywhere()))]
    fn nodes<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        loading::<R>(bencher, fill);
    }

    #[divan::bench(types = [RangeAlloc, HiBitSet], args = small(everywhere()))]
    fn small_devices<R: Rival>(bencher: Bencher<'_, '_>, fill: &Fill) {
        loading::<R>(bencher, fill);
    }
}

/// Log-normal objects out and new ones in; items are objects. Wall time of the
/// whole loop, the drawing of sizes included.
#[divan::bench_group(sample_size = 1, sample_count = 10, max_time = 1)]
mod churn {
    use super::{
        BTreePair, Bencher, BitvecNaive, Churn, Clock, Duration, ItemsCount, ONE_M, OffsetAlloc,
        Ours, RangeAlloc, RangeMap, Rival, Roaring, SEED, SIXTEEN_M, Words,
    };

    fn churning<R: Rival>(bencher: Bencher<'_, '_>, sectors: u32, used: u32, objects: u64) {
        let clock = Clock::calibrated();
        let mut churn = Churn::<R>::new(sectors, used * 100, SEED).expect("can do it");
        churn.run(&clock, objects * 8, Duration::from_secs(2));
        bencher
            .counter(ItemsCount::new(objects))
            .bench_local(|| churn.run(&clock, objects, Duration::from_secs(10)));
    }

    #[divan::bench(types = [Ours, BTreePair, OffsetAlloc], args = [90, 99])]
    fn at_16m<R: Rival>(bencher: Bencher<'_, '_>, percent: u32) {
        churning::<R>(bencher, SIXTEEN_M, percent, 16_384);
    }

    #[divan::bench(
        types = [Ours, BTreePair, OffsetAlloc, RangeAlloc, RangeMap, Roaring, BitvecNaive, Words],
        args = [90, 99],
    )]
    fn at_1m<R: Rival>(bencher: Bencher<'_, '_>, percent: u32) {
        let objects = if R::ABILITIES.linear { 512 } else { 16_384 };
        churning::<R>(bencher, ONE_M, percent, objects);
    }
}

/// Streams that take turns, one sector each time; items are sectors.
#[divan::bench_group(sample_size = 1, sample_count = 10, max_time = 1)]
mod growth {
    use super::{
        BTreePair, Bencher, Clock, Exact, Fill, Growth, ItemsCount, ONE_M, RangeMap, Turn, words,
    };

    const EACH: usize = 4_096;

    const fn growth(streams: usize) -> Growth {
        Growth { streams, sectors_each: EACH, turn: Turn::RoundRobin }
    }

    #[divan::bench(args = [2, 16, 256])]
    fn with_windows(bencher: Bencher<'_, '_>, streams: usize) {
        let (clock, fill) = (Clock::calibrated(), Fill::empty(ONE_M * 4));
        let words = words(&fill);
        bencher
            .counter(ItemsCount::new(streams * EACH))
            .bench_local(|| growth(streams).ours(&clock, &fill, &words));
    }

    #[divan::bench(types = [BTreePair, RangeMap], args = [2, 16, 256])]
    fn in_place_where_free<R: Exact>(bencher: Bencher<'_, '_>, streams: usize) {
        let (clock, fill) = (Clock::calibrated(), Fill::empty(ONE_M * 4));
        let words = words(&fill);
        bencher
            .counter(ItemsCount::new(streams * EACH))
            .bench_local(|| growth(streams).rival::<R>(&clock, &fill, &words));
    }
}

/// Next-pointer tables; items are cells or sectors.
#[divan::bench_group(sample_size = 1, sample_count = 10, max_time = 1)]
mod tables {
    use super::{
        Bencher, Chain, END_OF_CHAIN, FREE, Fill, FreeMap, ItemsCount, Run, SIXTEEN_M, SectorCount,
        SectorId, Table, clustered, encode, few_runs, words,
    };

    /// Cells of a contiguous stream of 256 MiB, by bytes a sector.
    #[divan::bench(args = [512, 4_096])]
    fn cells_of_a_run(bencher: Bencher<'_, '_>, sector_bytes: u32) {
        let sectors = (256 << 20) / sector_bytes;
        let run = Run::new(SectorId::new(0), SectorCount::new(sectors));
        let chain = Chain::from_runs([run]);
        let mut cells = vec![FREE; sectors as usize];
        bencher
            .counter(ItemsCount::new(sectors))
            .bench_local(|| alloc_core::write_chain(&mut cells, &chain, END_OF_CHAIN));
    }

    #[divan::bench(args = [512, 4_096])]
    fn bytes_of_cells(bencher: Bencher<'_, '_>, sector_bytes: usize) {
        let cells = vec![FREE; (256 << 20) / sector_bytes];
        let mut bytes = vec![0; cells.len() * 4];
        bencher.counter(ItemsCount::new(cells.len())).bench_local(|| encode(&cells, &mut bytes));
    }

    #[divan::bench(args = few_runs(clustered()))]
    fn to_a_free_map(bencher: Bencher<'_, '_>, fill: &Fill) {
        let table = Table::of(fill, &words(fill), u32::MAX, 4);
        let total = SectorCount::new(fill.sectors);
        bencher.counter(ItemsCount::new(fill.sectors)).bench_local(|| {
            FreeMap::from_free_words(total, alloc_core::free_words(&table.cells, FREE))
        });
    }

    #[divan::bench(args = [8, 64, 1_024, u32::MAX])]
    fn to_chains(bencher: Bencher<'_, '_>, longest: u32) {
        let fill = Fill::clustered(SIXTEEN_M, 9_000);
        let table = Table::of(&fill, &words(&fill), longest, 4);
        bencher.counter(ItemsCount::new(table.chained())).bench_local(|| table.walk());
    }

    #[divan::bench(args = [8, 64, 1_024, u32::MAX])]
    fn to_chains_link_by_link(bencher: Bencher<'_, '_>, longest: u32) {
        let fill = Fill::clustered(SIXTEEN_M, 9_000);
        let table = Table::of(&fill, &words(&fill), longest, 4);
        bencher.counter(ItemsCount::new(table.chained())).bench_local(|| table.walk_link_by_link());
    }
}
