//! All rows in one run, and whether they keep the bounds.

use std::fmt::Write as _;

use serde::Serialize;

use super::contestant::Entry;
use super::measure::{Figure, Options, Row, measure};
use super::work::durable::Threads;
use super::work::{By, Of, Sizes, THREADS, all};
use super::{churn, memory};
use crate::report::table::{Bound, Cell, Table, of_bounds};

/// How many times one thread so many threads have to be.
const THREAD_GAINS: [(usize, f64); 3] = [(4, 2.4), (16, 4.5), (64, 5.5)];

/// Rows, tables of other kinds, and bounds.
#[derive(Debug, Serialize)]
pub struct StoreReport {
    /// Processor, how many of them, and how busy they were at the start.
    pub machine: String,
    /// Rounds in which contestants took turns.
    pub rounds: usize,
    /// What is asked, what was measured.
    pub bounds: Vec<Bound>,
    /// Everything that is timed.
    pub rows: Vec<Row>,
    /// Everything that is counted.
    pub tables: Vec<Table>,
}

impl StoreReport {
    /// Measures everything that `options` ask for.
    pub fn measure(options: &Options, entries: &[Entry]) -> Self {
        let machine = crate::report::machine();
        let sizes = if options.quick { Sizes::QUICK } else { Sizes::FULL };
        let mut rows = Vec::new();
        for work in all(sizes) {
            rows.extend(measure(options, entries, &*work));
        }
        let mut bounds: Vec<_> = rows.iter().flat_map(bounds_of).collect();
        bounds.extend(thread_gains(&rows));
        let mut tables = Vec::new();
        churn::measure(options, entries, sizes.churned, &mut tables, &mut bounds);
        let counts = (sizes.large, sizes.many);
        memory::measure(options, entries, counts, &mut tables, &mut bounds);
        Self { machine, rounds: options.rounds, bounds, rows, tables }
    }

    /// Whether every bound is kept.
    pub fn all_met(&self) -> bool {
        self.bounds.iter().all(Bound::met)
    }

    /// The report as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("Machine: {}. Rounds: {}.\n", self.machine, self.rounds);
        if !self.bounds.is_empty() {
            let _ = write!(text, "\n### Bounds\n\n{}", of_bounds(&self.bounds).to_markdown());
        }
        if !self.rows.is_empty() {
            let _ = write!(text, "\n### All rows\n\n{}", summary(&self.rows).to_markdown());
        }
        let mut parts: Vec<&str> = self.rows.iter().map(|row| &*row.part).collect();
        parts.dedup();
        for part in parts {
            let rows: Vec<_> = self.rows.iter().filter(|row| row.part == part).collect();
            let _ = write!(text, "\n### {part}\n\n{}", of_stores(&rows).to_markdown());
        }
        for table in &self.tables {
            let _ = write!(text, "\n### {}\n\n{}\n\n", table.title, table.note);
            text.push_str(&table.to_markdown());
        }
        text
    }
}

/// The figure of the fastest of these.
fn fastest<'a>(figures: impl Iterator<Item = &'a Figure>, by: By) -> Option<&'a Figure> {
    figures.min_by(|a, b| a.by(by).total_cmp(&b.by(by)))
}

/// With what a target compares, if it took part.
fn other(row: &Row, of: Of) -> Option<&Figure> {
    match of {
        Of::Fastest => fastest(row.rivals.iter(), row.by),
        Of::FastestThatCopies => fastest(row.rivals.iter().filter(|rival| !rival.borrows), row.by),
        Of::FastestOf(names) => {
            fastest(row.rivals.iter().filter(|rival| names.contains(&&*rival.name)), row.by)
        }
        Of::Raw(name) => row.raw.iter().find(|raw| raw.name == name),
    }
}

/// The targets of a row as bounds. Without ours there are none.
fn bounds_of(row: &Row) -> Vec<Bound> {
    let Some(ours) = &row.ours else { return Vec::new() };
    let bound = |target: &super::work::Target| {
        let other = other(row, target.of)?;
        let what = format!("{}: ours / {}", row.name, other.name);
        Some(Bound::at_most(what, ours.by(row.by) / other.by(row.by), target.bound))
    };
    row.targets.iter().filter_map(bound).collect()
}

/// How much faster many threads are than one.
fn thread_gains(rows: &[Row]) -> Vec<Bound> {
    let wall = |threads| {
        let name = Threads::name(threads);
        Some(rows.iter().find(|row| row.name == name)?.ours.as_ref()?.wall_ns)
    };
    debug_assert_eq!(THREADS[0], 1, "one thread is measured");
    THREAD_GAINS
        .into_iter()
        .filter_map(|(threads, bound)| {
            let what = format!("{}: times one thread", Threads::name(threads));
            Some(Bound::at_least(what, wall(1)? / wall(threads)?, bound))
        })
        .collect()
}

/// Microseconds, and who it was.
fn cells(figure: Option<&Figure>, by: By) -> [Cell; 2] {
    match figure {
        Some(figure) => [(figure.by(by) / 1e3).into(), figure.name.as_str().into()],
        None => [Cell::Nothing(()), Cell::Nothing(())],
    }
}

/// A line a row: ours, the fastest rival, plain calls.
fn summary(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "",
        "",
        &[
            "row",
            "µs a",
            "time",
            "ours",
            "fastest rival",
            "",
            "plain calls",
            "",
            "ours / rival",
            "ours / raw",
            "rival / raw",
        ],
    );
    for row in rows {
        let ours = row.ours.as_ref();
        let rival = fastest(row.rivals.iter(), row.by);
        // What the target names, or else the first.
        let named = row.targets.iter().find_map(|target| match target.of {
            Of::Raw(_) => other(row, target.of),
            _ => None,
        });
        let raw = named.or(row.raw.first());
        let ratio = |a: Option<&Figure>, b: Option<&Figure>| {
            Cell::from(a.zip(b).map(|(a, b)| a.by(row.by) / b.by(row.by)))
        };
        let [rival_time, rival_name] = cells(rival, row.by);
        let [raw_time, raw_name] = cells(raw, row.by);
        table.row(vec![
            row.name.as_str().into(),
            row.unit.as_str().into(),
            match row.by {
                By::Wall => "wall",
                By::Cpu => "CPU",
            }
            .into(),
            ours.map(|ours| ours.by(row.by) / 1e3).into(),
            rival_time,
            rival_name,
            raw_time,
            raw_name,
            ratio(ours, rival),
            ratio(ours, raw),
            ratio(rival, raw),
        ]);
    }
    table
}

/// A line a store: wall and CPU time of every row of a part. A star: one round only.
fn of_stores(rows: &[&Row]) -> Table {
    let mut columns = vec!["store".to_owned()];
    for row in rows {
        columns.push(format!("{}, wall µs a {}", row.name, row.unit));
        columns.push("CPU µs".to_owned());
    }
    let columns: Vec<_> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new("", "", &columns);
    let figures = |row: &Row| -> Vec<Figure> {
        row.ours.iter().chain(&row.rivals).chain(&row.raw).cloned().collect()
    };
    let mut names: Vec<String> = Vec::new();
    for figure in rows.iter().flat_map(|row| figures(row)) {
        if !names.contains(&figure.name) {
            names.push(figure.name);
        }
    }
    // Plain calls last, whichever row they are from.
    names.sort_by_key(|name| name.starts_with("raw: "));
    for name in names {
        let mut cells = vec![Cell::from(name.as_str())];
        for row in rows {
            match figures(row).into_iter().find(|figure| figure.name == name) {
                None => cells.extend([Cell::Nothing(()), Cell::Nothing(())]),
                Some(figure) => {
                    cells.extend([(figure.wall_ns / 1e3).into(), (figure.cpu_ns / 1e3).into()]);
                }
            }
        }
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::raw::{PREAD, PREAD_CRC};
    use crate::store::work::Target;

    fn figure(name: &str, ns: f64, borrows: bool) -> Figure {
        Figure { name: name.to_owned(), wall_ns: ns * 2.0, cpu_ns: ns, rounds: 5, borrows }
    }

    fn row(ours: Option<f64>, targets: Vec<Target>) -> Row {
        Row {
            part: "Part".to_owned(),
            name: "get".to_owned(),
            unit: "get".to_owned(),
            ops: 1,
            by: By::Cpu,
            ours: ours.map(|ns| figure("ours", ns, false)),
            rivals: vec![figure("copies", 20.0, false), figure("borrows", 10.0, true)],
            raw: vec![figure(PREAD, 5.0, false), figure(PREAD_CRC, 8.0, false)],
            targets,
        }
    }

    #[test]
    fn a_bound_names_the_rival_it_compares_with() {
        let targets = vec![
            Target::new(Of::Fastest, 1.0),
            Target::new(Of::FastestThatCopies, 1.0),
            Target::new(Of::Raw(PREAD_CRC), 1.5),
            Target::new(Of::FastestOf(&["RocksDB"]), 1.0),
        ];
        let bounds = bounds_of(&row(Some(16.0), targets));
        let found: Vec<_> =
            bounds.iter().map(|bound| (&*bound.what, bound.figure, bound.met())).collect();
        assert_eq!(
            found,
            [
                ("get: ours / borrows", 1.6, false),
                ("get: ours / copies", 0.8, true),
                ("get: ours / raw: pread, crc32c", 2.0, false),
            ]
        );
    }

    #[test]
    fn without_ours_there_are_no_bounds_and_rivals_are_still_shown() {
        let row = row(None, vec![Target::new(Of::Fastest, 1.0)]);
        assert!(bounds_of(&row).is_empty());
        let text = summary(std::slice::from_ref(&row)).to_markdown();
        assert!(text.contains("| get | get | CPU | - | 0.010 | borrows |"), "{text}");
        let text = of_stores(&[&row]).to_markdown();
        assert!(text.contains("| copies | 0.040 | 0.020 |"), "{text}");
    }

    #[test]
    fn threads_are_compared_with_one() {
        let named = |threads, ns| Row { name: Threads::name(threads), ..row(Some(ns), Vec::new()) };
        let bounds = thread_gains(&[named(1, 12.0), named(4, 4.0)]);
        assert_eq!(bounds.len(), 1);
        assert!((bounds[0].figure - 3.0).abs() < 1e-9 && bounds[0].met());
    }
}
