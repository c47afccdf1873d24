//! One thread and two threads that read different streams of one file.
//!
//! On a busy machine two threads may share a processor, so that the clock on
//! the wall shows the neighbours. What counts here is each thread's wall time
//! less the time that it was ready and had no processor: the system keeps that
//! figure. Time spent waiting for a lock is in it.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Read;
use std::sync::{Barrier, Mutex};
use std::time::Instant;

use super::base::Base;
use super::contestant::{Contestant, Ours, Shape, Version};
use super::measure::Options;
use super::names::{Names, Script};
use super::rows::Sizes;
use super::work::size;
use crate::clock::median;
use crate::report::table::{Bound, Cell, Table};

/// Pieces that are read.
const CHUNK: usize = 64 << 10;

/// Streams, and threads at most.
const STREAMS: usize = 2;

/// Nanoseconds this thread was ready to run and did not; 0 where the system does not tell.
fn waited_ns() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0.0)
}

/// Runs `read(index)` in `threads` threads at once; nanoseconds until the last was done.
fn in_threads(threads: usize, read: &(impl Fn(usize) + Sync)) -> f64 {
    let barrier = Barrier::new(threads);
    let needed = |index: usize| {
        barrier.wait();
        let (start, waited) = (Instant::now(), waited_ns());
        read(index);
        start.elapsed().as_secs_f64() * 1e9 - (waited_ns() - waited)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads).map(|index| scope.spawn(move || needed(index))).collect();
        threads.into_iter().map(|thread| thread.join().expect("reading works")).fold(0.0, f64::max)
    })
}

/// How often more two threads read in the same time than one.
fn speed_up(rounds: usize, read: &(impl Fn(usize) + Sync)) -> f64 {
    let mut ratios: Vec<_> = (0..=rounds)
        .map(|_| STREAMS as f64 * in_threads(1, read) / in_threads(STREAMS, read))
        .skip(1)
        .collect();
    median(&mut ratios)
}

/// Reads a stream to its end.
fn drain(reader: &mut impl Read) {
    let mut buf = vec![0; CHUNK];
    while reader.read(&mut buf).expect("reading works") > 0 {
        black_box(&buf);
    }
}

fn measure_in<B: Base + Sync>(
    options: &Options,
    each: u64,
    version: Version,
    table: &mut Table,
    bounds: &mut Vec<Bound>,
) {
    let name = format!("two threads, {} {version:?}", B::MEDIUM);
    if !options.wants(&name) {
        return;
    }
    options.say(&name);
    let names = Names::sorted(Script::Ascii, STREAMS);
    let shape = Shape { each, ..Shape::default() };
    let mut home = B::home(&options.dir, "threads");
    let mut file = Ours::create(B::fresh(&mut home), version, shape);
    for key in names.keys() {
        let mut handle = file.create_stream(key);
        for _ in 0..each >> 20 {
            file.append(&mut handle, &vec![5; 1 << 20]);
        }
    }
    file.close().put_back(&mut home);

    let file = cfb_format::CompoundFile::from_storage(B::again(&mut home).into_storage());
    let file = file.expect("the file opens");
    let ours = speed_up(options.rounds, &|index| {
        drain(&mut file.open_stream(names.key(index).path).expect("it is there"));
    });
    B::from_storage(file.into_storage().expect("no stream is open")).put_back(&mut home);

    // Streams of the rival do not leave their thread, but each can open its own.
    let file = cfb::CompoundFile::open(B::again(&mut home).into_io()).expect("the file opens");
    let file = Mutex::new(file);
    let rival = speed_up(options.rounds, &|index| {
        let path = names.key(index).path;
        let stream = file.lock().expect("no thread panics").open_stream(path);
        drain(&mut stream.expect("it is there"));
    });
    let file = file.into_inner().expect("no thread panics");
    B::from_io(file.into_inner()).put_back(&mut home);

    let base = B::again(&mut home);
    let raw = speed_up(options.rounds, &|index| {
        let mut buf = vec![0; CHUNK];
        let mut at = index as u64 * each;
        for _ in 0..each / CHUNK as u64 {
            base.read_at(&mut buf, at);
            black_box(&buf);
            at += CHUNK as u64;
        }
    });
    base.put_back(&mut home);
    B::clear(&mut home);

    let version_name = Cell::Text(format!("{version:?}"));
    let medium = Cell::Text(B::MEDIUM.to_string());
    table.row(vec![medium, version_name, ours.into(), rival.into(), raw.into()]);
    bounds.push(Bound::at_least(format!("{name}: speed of one"), ours, 1.8));
}

/// Measures and adds a table and its bounds.
pub fn measure(options: &Options, sizes: Sizes, tables: &mut Vec<Table>, bounds: &mut Vec<Bound>) {
    let each = sizes.large / 2;
    let mut table = Table::new(
        "Two threads",
        &format!(
            "Two threads that each read a stream of {} in pieces of {}, against one that reads \
             one: how often more bytes in the same time. Time without a processor is left out.",
            size(each),
            size(CHUNK as u64)
        ),
        &["medium", "version", "cfb-format", "cfb 0.16", "raw"],
    );
    for version in Version::ALL {
        measure_in::<Vec<u8>>(options, each, version, &mut table, bounds);
        measure_in::<File>(options, each, version, &mut table, bounds);
    }
    if !table.rows.is_empty() {
        tables.push(table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_held_while_reading_shows_as_no_gain() {
        let lock = Mutex::new(());
        let read = |_: usize| {
            let _held = lock.lock().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        let gain = speed_up(3, &read);
        assert!(gain < 1.5, "{gain}");
    }
}
