//! The rows of the compound file report under divan, in memory.

use std::cell::RefCell;

use bench_suite::cfb::base::Base;
use bench_suite::cfb::contestant::{Contestant, Ours, Raw, Rival, Version};
use bench_suite::cfb::names::Script;
use bench_suite::cfb::work::appending::{Appends, Turn};
use bench_suite::cfb::work::opening::Opening;
use bench_suite::cfb::work::reading::{CopyOut, RandomReads, ReadStreams};
use bench_suite::cfb::work::removing::{Removal, Removes, Reuse, Rewrite};
use bench_suite::cfb::work::writing::{Creates, Overwrite, WriteStreams};
use bench_suite::cfb::work::{Session, Start, Workload};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

/// Times the middle part of `work`, as often as divan asks for.
fn bench<C: Contestant<Base = Vec<u8>>>(
    bencher: Bencher<'_, '_>,
    version: Version,
    work: &impl Workload,
) {
    let mut session = Session::<C>::new(version, work.shape(version), work.buffer_bytes());
    let mut home = Vec::new();
    session.base = Some(Vec::new());
    if work.start() != Start::Empty {
        work.set_up(&mut session);
        session.close();
    }
    let session = RefCell::new(session);
    bencher
        .counter(ItemsCount::new(work.ops()))
        .with_inputs(|| {
            let mut session = session.borrow_mut();
            session.close();
            let base = session.base.take().expect("the file is closed");
            base.put_back(&mut home);
            session.base = Some(match work.start() {
                Start::Empty => Vec::fresh(&mut home),
                Start::OwnFile | Start::SameFile => Vec::again(&mut home),
            });
            work.begin(&mut session);
        })
        .bench_local_values(|()| work.run(&mut session.borrow_mut()));
}

/// A group of rows for ours, rival and raw in both versions.
macro_rules! rows {
    ($($name:ident: $work:expr;)*) => {$(
        #[divan::bench(
            types = [Ours<Vec<u8>>, Rival<Vec<u8>>, Raw<Vec<u8>>],
            args = Version::ALL,
            sample_size = 1,
            sample_count = 10,
            max_time = 2,
        )]
        fn $name<C: Contestant<Base = Vec<u8>>>(bencher: Bencher<'_, '_>, version: Version) {
            bench::<C>(bencher, version, &$work);
        }
    )*};
}

rows! {
    write_1000_x_64_b: WriteStreams::new(1_000, 64, 1 << 20);
    write_1000_x_1_kib: WriteStreams::new(1_000, 1_024, 1 << 20);
    write_1000_x_8_kib: WriteStreams::new(1_000, 8_192, 1 << 20);
    write_64_mib_in_4_kib: WriteStreams::new(1, 64 << 20, 4 << 10);
    write_64_mib_in_64_kib: WriteStreams::new(1, 64 << 20, 64 << 10);
    overwrite_64_mib: Overwrite::in_place(64 << 20, 64 << 10);
    read_1000_x_1_kib: ReadStreams::new(1_000, 1_024, 1 << 20);
    read_64_mib_in_4_kib: ReadStreams::new(1, 64 << 20, 4 << 10);
    read_64_mib_in_64_kib: ReadStreams::new(1, 64 << 20, 64 << 10);
    random_reads_of_4_kib: RandomReads::new(64 << 20, 2_000, 4_096);
    copy_64_mib: CopyOut::new(64 << 20);
    open_10000_entries: Opening::open(10_000, 100);
    walk_10000_entries: Opening::walk(10_000, 100);
    look_up_10000_paths: Opening::look_up(Script::Ascii, 10_000);
    look_up_10000_cyrillic_paths: Opening::look_up(Script::Cyrillic, 10_000);
    append_in_turn_reopened: Appends::new(64, 64, Turn::Reopened);
    append_in_turn_and_flush: Appends::new(64, 64, Turn::Kept);
    remove_1000_x_1_kib: Removes::new(1_000, 1_024, Removal::All, 1_000);
    write_16_mib_into_freed_space: Rewrite::new(16 << 20, Reuse::Write);
    create_10000: Creates::shuffled(Script::Ascii, 10_000);
    create_10000_cyrillic: Creates::shuffled(Script::Cyrillic, 10_000);
}
