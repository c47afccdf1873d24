//! Every operation, in every state, beside every rival that can do it.

use super::table::{Cell, Table};
use super::{Bench, Report};
use crate::clock::{Spent, median};
use crate::fill::{Fill, ONE_M, SIXTEEN_M};
use crate::ops::{Batch, Extensions, FailingSearch, batch_of};
use crate::rivals::{
    BTreePair, BitvecNaive, Extends, HiBitSet, OffsetAlloc, Ours, RangeAlloc, RangeMap, Rival,
    Roaring, Words,
};

/// One row's part of a round.
type Turn = Box<dyn FnMut(&Bench) -> Spent>;

/// An operation of the table.
#[derive(Clone, Copy, Debug)]
enum Op {
    Allocate(u32),
    Free(u32),
    Extend,
    Fail,
    Load,
}

impl Op {
    const ALL: [Self; 9] = [
        Self::Allocate(1),
        Self::Free(1),
        Self::Allocate(64),
        Self::Free(64),
        Self::Allocate(1_024),
        Self::Free(1_024),
        Self::Extend,
        Self::Fail,
        Self::Load,
    ];

    fn title(self) -> String {
        match self {
            Self::Allocate(count) => format!("Allocate {count}"),
            Self::Free(count) => format!("Free {count}, in random order"),
            Self::Extend => "Extend by 8 in place, all over the device".to_owned(),
            Self::Fail => "A search that fails, again and again".to_owned(),
            Self::Load => "Load from a bitmap, ns a sector".to_owned(),
        }
    }

    /// What `R` does in a round; `None` when it cannot.
    fn turn<R: Rival + 'static>(self, fill: Fill, words: &[u64]) -> Option<Turn> {
        match self {
            Self::Allocate(count) | Self::Free(count) => {
                let mut batch = Batch::<R>::load(&fill, words, count, batch_of::<R>())?;
                let size = batch.size() as u64;
                let frees = matches!(self, Self::Free(_));
                Some(Box::new(move |bench| {
                    let ((), allocate) = bench.clock.time(size, || batch.allocate());
                    batch.shuffle();
                    let ((), release) = bench.clock.time(size, || batch.release());
                    if frees { release } else { allocate }
                }))
            }
            Self::Fail => {
                let mut search = FailingSearch::<R>::load(&fill, words)?;
                let times = if R::ABILITIES.linear { 1 } else { batch_of::<R>() as u64 };
                Some(Box::new(move |bench| {
                    bench.clock.time(times, || (0..times).for_each(|_| search.search())).1
                }))
            }
            Self::Load => {
                let words = words.to_vec();
                R::load(&fill, &words)?;
                Some(Box::new(move |bench| {
                    let sectors = u64::from(fill.sectors);
                    bench.clock.time(sectors, || R::load(&fill, &words)).1
                }))
            }
            Self::Extend => None,
        }
    }

    /// The same for those that can extend.
    fn turn_extending<R: Extends + 'static>(self, fill: Fill, words: &[u64]) -> Option<Turn> {
        if !matches!(self, Self::Extend) {
            return self.turn::<R>(fill, words);
        }
        let mut batch = Extensions::<R>::load(&fill, words, batch_of::<R>())?;
        let size = batch.size() as u64;
        Some(Box::new(move |bench| {
            let ((), spent) = bench.clock.time(size, || batch.extend());
            batch.cut();
            spent
        }))
    }
}

/// Row titles with each row's turn.
fn turns(op: Op, fill: Fill, words: &[u64]) -> [(&'static str, Option<Turn>); 9] {
    [
        (Ours::TITLE, op.turn_extending::<Ours>(fill, words)),
        (BTreePair::TITLE, op.turn_extending::<BTreePair>(fill, words)),
        (OffsetAlloc::TITLE, op.turn::<OffsetAlloc>(fill, words)),
        (RangeAlloc::TITLE, op.turn::<RangeAlloc>(fill, words)),
        (RangeMap::TITLE, op.turn_extending::<RangeMap>(fill, words)),
        (Roaring::TITLE, op.turn_extending::<Roaring>(fill, words)),
        (HiBitSet::TITLE, op.turn::<HiBitSet>(fill, words)),
        (BitvecNaive::TITLE, op.turn_extending::<BitvecNaive>(fill, words)),
        (Words::TITLE, op.turn_extending::<Words>(fill, words)),
    ]
}

pub(super) fn measure(bench: &Bench, report: &mut Report) {
    let sizes: &[u32] = if bench.options.quick { &[ONE_M] } else { &[ONE_M, SIXTEEN_M] };
    for &sectors in sizes {
        let states: Vec<(Fill, Vec<u64>)> =
            Fill::usual(sectors).into_iter().map(|fill| (fill, fill.free_words())).collect();
        for op in Op::ALL {
            bench.say(&format!("{}, {}M", op.title(), sectors >> 20));
            let mut columns = vec![String::new()];
            let mut rows: Vec<Vec<Cell>> = Vec::new();
            for (fill, words) in &states {
                columns.push(fill.to_string().split_once(' ').expect("size and state").1.into());
                let figures = column(bench, op, *fill, words);
                rows.resize_with(figures.len(), Vec::new);
                for (row, (title, ns)) in rows.iter_mut().zip(figures) {
                    if row.is_empty() {
                        row.push(title.into());
                    }
                    row.push(ns.into());
                }
            }
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            let title = format!("{}, {}M sectors", op.title(), sectors >> 20);
            let mut table = Table::new(title, "", &columns);
            rows.retain(|row| row[1..].iter().any(|cell| *cell != Cell::Nothing(())));
            for row in rows {
                table.row(row);
            }
            report.tables.push(table);
        }
    }
}

/// All rows of one state, in turns.
fn column(bench: &Bench, op: Op, fill: Fill, words: &[u64]) -> Vec<(&'static str, f64)> {
    let rounds = if matches!(op, Op::Load) { 3 } else { bench.rounds().min(5) };
    let mut turns = turns(op, fill, words);
    let mut figures = vec![Vec::new(); turns.len()];
    for _ in 0..rounds {
        for ((_, turn), figures) in turns.iter_mut().zip(&mut figures) {
            figures.extend(turn.as_mut().map(|turn| turn(bench).per_op()));
        }
    }
    turns.iter().zip(figures).map(|((title, _), mut ns)| (*title, median(&mut ns))).collect()
}
