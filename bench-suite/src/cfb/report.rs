//! All rows in one run, and whether they keep the bounds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use serde::Serialize;

use super::measure::{self, Options, Row};
use super::names::Script;
use super::rows::{Sizes, Visitor, visit_all};
use super::work::{Of, Target, Workload};
use super::{contestant::Version, corpus, flushes, memory, threads};
use crate::clock::Clock;
use crate::report::table::{Bound, Cell, Table, of_bounds};

/// Rows, tables of other kinds, and bounds.
#[derive(Debug, Serialize)]
pub struct CfbReport {
    /// Processor, how many of them, and how busy they were at the start.
    pub machine: String,
    /// Rounds in which contestants took turns.
    pub rounds: usize,
    /// What is asked, what was measured.
    pub bounds: Vec<Bound>,
    /// Bounds that single rows miss.
    pub misses: Vec<Bound>,
    /// Everything that is timed.
    pub rows: Vec<Row>,
    /// Everything that is counted.
    pub tables: Vec<Table>,
}

/// Measures each workload on both media in both versions.
struct Runner<'a> {
    options: &'a Options,
    clock: Clock,
    rows: Vec<Row>,
}

impl Visitor for Runner<'_> {
    fn visit<W: Workload>(&mut self, work: &W) {
        for version in Version::ALL {
            let Self { options, clock, rows } = self;
            rows.extend(measure::measure::<Vec<u8>, W>(options, clock, work, version));
            rows.extend(measure::measure::<File, W>(options, clock, work, version));
        }
    }
}

impl CfbReport {
    /// Measures everything that `options` ask for, and the corpus if there is one.
    pub fn measure(options: &Options, corpus: Option<&Path>) -> Self {
        let sizes = if options.quick { Sizes::QUICK } else { Sizes::FULL };
        let machine = crate::report::machine();
        let mut runner = Runner { options, clock: Clock::calibrated(), rows: Vec::new() };
        visit_all(sizes, &mut runner);
        let Runner { clock, mut rows, .. } = runner;
        if let Some(dir) = corpus {
            rows.extend(corpus::measure(options, &clock, dir));
        }
        let (mut tables, mut counted) = (Vec::new(), Vec::new());
        threads::measure(options, sizes, &mut tables, &mut counted);
        flushes::measure(options, &mut tables, &mut counted);
        memory::measure(options, sizes, &mut tables, &mut counted);

        let mut misses = Vec::new();
        let mut bounds = bounds_of(&rows, &mut misses);
        bounds.extend(comparisons(&rows));
        bounds.extend(counted);
        Self { machine, rounds: options.rounds, bounds, misses, rows, tables }
    }

    /// Whether every bound is kept.
    pub fn all_met(&self) -> bool {
        self.bounds.iter().all(Bound::met)
    }

    /// The report as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("Machine: {}. Rounds: {}.\n", self.machine, self.rounds);
        text.push_str("\n### Bounds\n\n");
        text.push_str(&of_bounds(&self.bounds).to_markdown());
        if !self.misses.is_empty() {
            text.push_str("\n### Rows that miss a bound\n\n");
            text.push_str(&of_bounds(&self.misses).to_markdown());
        }
        let mut parts: Vec<&str> = self.rows.iter().map(|row| &*row.part).collect();
        parts.dedup();
        for part in parts {
            let _ = write!(text, "\n### {part}\n\n");
            text.push_str(&table_of(self.rows.iter().filter(|row| row.part == part)).to_markdown());
            for row in self.rows.iter().filter(|row| row.part == part) {
                if let Some(note) = &row.note {
                    let _ = write!(text, "\n{}: {note}.\n", row.full_name());
                }
            }
        }
        for table in &self.tables {
            let _ = write!(text, "\n### {}\n\n{}\n\n", table.title, table.note);
            text.push_str(&table.to_markdown());
        }
        text
    }
}

/// Rows as a table: microseconds an operation.
fn table_of<'a>(rows: impl Iterator<Item = &'a Row>) -> Table {
    let mut table = Table::new(
        "",
        "",
        &[
            "row",
            "medium",
            "µs CPU a",
            "ours",
            "cfb 0.16",
            "raw",
            "cfb / ours",
            "ours / raw",
            "wall: ours",
            "cfb 0.16",
            "raw",
            "cfb / ours",
        ],
    );
    for row in rows {
        let version = row.version.map(|version| format!(" {version:?}")).unwrap_or_default();
        table.row(vec![
            Cell::Text(row.name.clone()),
            Cell::Text(format!("{}{version}", row.medium)),
            Cell::Text(row.unit.clone()),
            (row.ours.cpu_ns / 1e3).into(),
            (row.rival.cpu_ns / 1e3).into(),
            (row.raw.cpu_ns / 1e3).into(),
            row.rival_to_ours().into(),
            row.ours_to_raw().into(),
            (row.ours.wall_ns / 1e3).into(),
            (row.rival.wall_ns / 1e3).into(),
            (row.raw.wall_ns / 1e3).into(),
            (row.rival.wall_ns / row.ours.wall_ns).into(),
        ]);
    }
    table
}

/// One row against one target.
fn bound_on(row: &Row, target: Target, what: String) -> Bound {
    match target.of {
        Of::RivalToOurs => Bound::at_least(what, row.rival_to_ours(), target.bound),
        Of::OursToRaw => Bound::at_most(what, row.ours_to_raw(), target.bound),
        Of::Nanoseconds => Bound::at_most(what, row.ours.cpu_ns, target.bound),
    }
}

/// A line for each target: the worst of its rows. Rows that miss one go to `misses`.
fn bounds_of(rows: &[Row], misses: &mut Vec<Bound>) -> Vec<Bound> {
    let mut groups: BTreeMap<String, Vec<(f64, Bound, String)>> = BTreeMap::new();
    let all = rows.iter().flat_map(|row| {
        let slower = Target::faster("every row", 1.0);
        row.targets.iter().copied().chain([slower]).map(move |target| (row, target))
    });
    for (row, target) in all {
        let of = match target.of {
            Of::RivalToOurs => "cfb / ours",
            Of::OursToRaw => "ours / raw",
            Of::Nanoseconds => "ours",
        };
        let group = match (target.of, row.medium) {
            (Of::RivalToOurs, _) if target.name == "every row" => format!("{}: {of}", target.name),
            (_, medium) => format!("{}, {medium}: {of}", target.name),
        };
        let bound = bound_on(row, target, format!("{}: {of}", row.full_name()));
        if !bound.met() {
            misses.push(bound.clone());
        }
        // Above 1: kept, by so much.
        let margin = match target.of {
            Of::RivalToOurs => bound.figure / bound.bound,
            Of::OursToRaw | Of::Nanoseconds => bound.bound / bound.figure,
        };
        groups.entry(group).or_default().push((margin, bound, row.full_name()));
    }
    groups
        .into_iter()
        .filter_map(|(group, mut members)| {
            let count = members.len();
            let met = members.iter().filter(|(_, bound, _)| bound.met()).count();
            members.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (_, worst, row) = members.into_iter().next()?;
            Some(Bound { what: format!("{group}; {met} of {count} rows, worst: {row}"), ..worst })
        })
        .collect()
}

/// Bounds on one row through another: the same medium and version, the fastest round of each.
fn comparisons(rows: &[Row]) -> Vec<Bound> {
    let mut bounds = Vec::new();
    let mut compare = |what: &str, row: &str, to: &str, bound: f64| {
        let mut worst: Option<(f64, String)> = None;
        for a in rows.iter().filter(|a| matches(&a.name, row)) {
            let same = |b: &&Row| (b.medium, b.version) == (a.medium, a.version);
            let Some(b) = rows.iter().filter(|b| matches(&b.name, to)).find(same) else { continue };
            let ratio = a.ours.fastest_cpu_ns / b.ours.fastest_cpu_ns;
            if worst.as_ref().is_none_or(|(before, _)| ratio > *before) {
                worst = Some((ratio, a.full_name()));
            }
        }
        if let Some((ratio, name)) = worst {
            bounds.push(Bound::at_most(format!("{what}; worst: {name}"), ratio, bound));
        }
    };
    for script in Script::ALL {
        if script != Script::Ascii {
            let what = script.name();
            let row = format!("create *shuffled, {what}");
            compare(&format!("creates: {what} / ASCII"), &row, "create *shuffled, ASCII", 1.3);
            let row = format!("look up *, {what}");
            compare(&format!("look-ups: {what} / ASCII"), &row, "look up *, ASCII", 1.3);
        }
    }
    compare(
        "removing is linear: each of 40,000 / each of 4,000",
        "remove all of 40,000 *",
        "remove all of 4,000 *",
        1.5,
    );
    compare(
        "a flush every 1,000 streams / one",
        "write *a flush every 1,000",
        "write *one flush",
        1.3,
    );
    compare("freed space read back / fresh file", "read *freed space", "read *a fresh file", 1.1);
    bounds
}

/// Whether `name` is `pattern`, in which a star stands for anything.
fn matches(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => name.starts_with(start) && name.ends_with(end),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfb::base::Medium;
    use crate::cfb::measure::Figure;

    fn row(name: &str, ours: f64, targets: Vec<Target>) -> Row {
        let figure = |cpu_ns| Figure { cpu_ns, fastest_cpu_ns: cpu_ns, wall_ns: cpu_ns };
        Row {
            part: "Part".to_owned(),
            name: name.to_owned(),
            unit: "stream".to_owned(),
            ops: 1,
            medium: Medium::Memory,
            version: Some(Version::V3),
            ours: figure(ours),
            rival: figure(100.0),
            raw: figure(10.0),
            note: None,
            targets,
        }
    }

    #[test]
    fn a_target_shows_its_worst_row_and_how_many_meet_it() {
        let targets = vec![Target::near_raw("all", 2.0)];
        let rows = [row("a", 15.0, targets.clone()), row("b", 30.0, targets.clone())];
        let mut misses = Vec::new();
        let bounds = bounds_of(&rows, &mut misses);
        let all = bounds.iter().find(|bound| bound.what.starts_with("all")).unwrap();
        assert_eq!(all.what, "all, memory: ours / raw; 1 of 2 rows, worst: b, memory V3");
        assert!((all.figure - 3.0).abs() < 1e-9 && !all.met());
        assert_eq!(misses.len(), 1);
    }

    #[test]
    fn a_row_slower_than_the_rival_is_a_miss() {
        let mut misses = Vec::new();
        let bounds = bounds_of(&[row("a", 101.0, Vec::new())], &mut misses);
        assert!(!bounds[0].met() && misses[0].what == "a, memory V3: cfb / ours");
    }

    #[test]
    fn scripts_are_compared_with_ascii() {
        let rows = [
            row("create 10, shuffled, ASCII", 10.0, Vec::new()),
            row("create 10, shuffled, CJK", 14.0, Vec::new()),
        ];
        let bounds = comparisons(&rows);
        assert_eq!(bounds.len(), 1);
        assert!((bounds[0].figure - 1.4).abs() < 1e-9 && !bounds[0].met());
    }
}
