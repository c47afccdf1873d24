//! FAT of a contiguous stream; a table of 16 M cells back into a free map and
//! into chains.

use std::hint::black_box;

use alloc_core::{Chain, FreeMap, Run, SectorCount, SectorId};
use bitvec::prelude::{BitVec, Lsb0};

use super::table::{Bound, Cell, Table};
use super::{Bench, Report};
use crate::clock::median;
use crate::fill::{Fill, SIXTEEN_M};
use crate::tables::{END_OF_CHAIN, FREE, Table as Links, encode, read_through};

/// The stream of the write measurement.
const STREAM_BYTES: usize = 256 << 20;
/// It is copied in parts of this size, larger than any cache.
const PART_BYTES: usize = 64 << 20;
/// Cells that are encoded at a time, 64 KiB: a writer uses its buffer again.
const PIECE_CELLS: usize = 1 << 14;

pub(super) fn measure(bench: &Bench, report: &mut Report) {
    writing(bench, report);
    reading(bench, report);
}

fn writing(bench: &Bench, report: &mut Report) {
    bench.say("FAT of a contiguous stream");
    let mut table = Table::new(
        "FAT of a contiguous stream of 256 MiB",
        "CPU us: cells from the run, cells to little-endian bytes in a buffer of 64 KiB that is \
         used again, and copying the stream's data in memory. They take turns, so the table is \
         cold each time.",
        &[
            "sector bytes",
            "sectors",
            "cells",
            "bytes",
            "memcpy of the data",
            "(cells + bytes) / memcpy %",
        ],
    );
    let from = vec![1_u8; PART_BYTES];
    let mut to = vec![2_u8; PART_BYTES];
    for sector_bytes in [512, 4_096] {
        let sectors = STREAM_BYTES / sector_bytes;
        let count = SectorCount::new(u32::try_from(sectors).expect("few"));
        let chain = Chain::from_runs([Run::new(SectorId::new(0), count)]);
        let mut cells = vec![FREE; sectors];
        let mut bytes = vec![0; PIECE_CELLS * 4];
        let mut figures: [Vec<f64>; 3] = Default::default();
        for _ in 0..bench.rounds() {
            let ((), spent) = bench.clock.time(1, || {
                alloc_core::write_chain(black_box(&mut cells), &chain, END_OF_CHAIN);
            });
            figures[0].push(spent.cpu_ns / 1e3);
            let ((), spent) = bench.clock.time(1, || {
                for piece in cells.chunks(PIECE_CELLS) {
                    encode(piece, black_box(&mut bytes[..piece.len() * 4]));
                }
            });
            figures[1].push(spent.cpu_ns / 1e3);
            let ((), spent) = bench.clock.time(1, || {
                for _ in 0..STREAM_BYTES / PART_BYTES {
                    black_box(&mut to).copy_from_slice(black_box(&from));
                }
            });
            figures[2].push(spent.cpu_ns / 1e3);
        }
        let [cells, bytes, copy] = figures.map(|mut rounds| median(&mut rounds));
        let percent = (cells + bytes) * 100.0 / copy;
        table.row(vec![
            (sector_bytes as f64).into(),
            (sectors as f64).into(),
            cells.into(),
            bytes.into(),
            copy.into(),
            percent.into(),
        ]);
        report.bounds.push(Bound::at_most(
            format!("FAT of 256 MiB in {sector_bytes} B sectors: % of the memcpy"),
            percent,
            1.0,
        ));
    }
    report.tables.push(table);
}

/// The tables that are read back.
fn patterns() -> [(&'static str, Fill, u32, usize); 5] {
    let clustered = Fill::clustered(SIXTEEN_M, 9_000);
    [
        ("99.99 % clustered, runs of 65,536", Fill::clustered(SIXTEEN_M, 9_999), 1 << 16, 4),
        ("90 % clustered, runs as they lie", clustered, u32::MAX, 4),
        ("90 % clustered, runs of 64", clustered, 64, 4),
        ("50 % clustered, runs as they lie", Fill::clustered(SIXTEEN_M, 5_000), u32::MAX, 4),
        ("50 % random", Fill::random(SIXTEEN_M, 5_000), u32::MAX, 4),
    ]
}

fn reading(bench: &Bench, report: &mut Report) {
    let mut table = Table::new(
        "A table of 16M cells back into a free map and chains",
        "CPU ns: a cell for the free map and for reading the table once (memory speed); a sector \
         for chains. Beside: `bitvec` collecting a bit a cell, and chains link by link. Chains \
         have four runs in random places.",
        &[
            "table",
            "read once",
            "free bits",
            "free bits + free map",
            "bitvec, a bit a cell",
            "mean run",
            "chains",
            "link by link",
        ],
    );
    let mut worst: f64 = 0.0;
    for (index, (name, fill, longest, runs_each)) in patterns().into_iter().enumerate() {
        bench.say(&format!("table of 16M cells, {name}"));
        let links = Links::of(&fill, &fill.free_words(), longest, runs_each);
        let figures = read_back(bench, &links);
        let [once, bits, map, naive, chains, by_link] = figures;
        let mean_run = links.chained() as f64 / links.runs as f64;
        table.row(vec![
            Cell::from(name),
            once.into(),
            bits.into(),
            map.into(),
            naive.into(),
            mean_run.into(),
            chains.into(),
            by_link.into(),
        ]);
        worst = worst.max(map);
        if index == 0 {
            let what = "table of 16M cells to chains, long runs: ns a sector";
            report.bounds.push(Bound::at_most(what, chains, 0.5));
        }
    }
    let what = "table of 16M cells to a free map: ns a cell, the worst of all tables";
    report.bounds.push(Bound::at_most(what, worst, 0.6));
    report.tables.push(table);
}

fn read_back(bench: &Bench, links: &Links) -> [f64; 6] {
    let cells = links.cells.as_slice();
    let count = cells.len() as u64;
    let total = SectorCount::new(u32::try_from(count).expect("a cell a sector"));
    let mut figures: [Vec<f64>; 6] = Default::default();
    for _ in 0..bench.rounds() {
        let (_, spent) = bench.clock.time(count, || black_box(read_through(black_box(cells))));
        figures[0].push(spent.per_op());
        let (_, spent) = bench.clock.time(count, || alloc_core::free_words(black_box(cells), FREE));
        figures[1].push(spent.per_op());
        let (_, spent) = bench.clock.time(count, || {
            FreeMap::from_free_words(total, alloc_core::free_words(black_box(cells), FREE))
        });
        figures[2].push(spent.per_op());
        let (_, spent) = bench.clock.time(count, || {
            black_box(cells).iter().map(|&cell| cell == FREE).collect::<BitVec<u64, Lsb0>>()
        });
        figures[3].push(spent.per_op());
        let (met, spent) = bench.clock.time(links.chained(), || links.walk());
        assert_eq!(met, links.chained(), "every sector of every chain is met once");
        figures[4].push(spent.per_op());
        let (met, spent) = bench.clock.time(links.chained(), || links.walk_link_by_link());
        assert_eq!(met, links.chained(), "every sector of every chain is met once");
        figures[5].push(spent.per_op());
    }
    figures.map(|mut rounds| median(&mut rounds))
}
