//! A few rows of the store report under divan.

use std::cell::RefCell;

use bench_suite::store::contestant::{self, Entry};
use bench_suite::store::measure::Seat;
use bench_suite::store::work::batches::Batch;
use bench_suite::store::work::durable::OneByOne;
use bench_suite::store::work::reads::{Medium, Small};
use bench_suite::store::work::{Start, Workload};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

/// The names of the stores that flush each object: the others have less to do.
fn stores() -> Vec<&'static str> {
    contestant::all().iter().filter(|entry| entry.durable).map(|entry| entry.name).collect()
}

fn entry(name: &str) -> Entry {
    contestant::all().into_iter().find(|entry| entry.name == name).expect("it is one of all")
}

/// A round of `work` as often as divan asks for.
fn bench(bencher: Bencher<'_, '_>, name: &str, work: &dyn Workload, ops: usize) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made");
    let seat = RefCell::new(Seat::new(entry(name), dir.path()));
    if work.start() == Start::Kept {
        let mut seat = seat.borrow_mut();
        seat.fresh();
        work.fill(&mut seat);
    }
    bencher
        .counter(ItemsCount::new(ops))
        .with_inputs(|| {
            if work.start() == Start::Empty {
                seat.borrow_mut().fresh();
            }
        })
        .bench_local_values(|()| work.run(&mut seat.borrow_mut()));
}

/// A group of rows: one for each store.
macro_rules! rows {
    ($($name:ident: $work:expr, $ops:expr;)*) => {$(
        #[divan::bench(args = stores(), sample_size = 1, sample_count = 10, max_time = 2)]
        fn $name(bencher: Bencher<'_, '_>, store: &str) {
            bench(bencher, store, &$work, $ops);
        }
    )*};
}

rows! {
    put_1000_x_4_kib_in_a_batch: Batch::small(1_000), 1_000;
    put_100_x_4_kib_each_durable: OneByOne::small(100), 100;
    get_1000_x_4_kib_twice: Small::new(1_000), 2_000;
    get_100_x_256_kib_twice: Medium::new(100), 200;
}
