//! Churn at 16 M sectors, 90, 99 and 99.99 % full.

use std::time::Duration;

use super::table::{Bound, Cell, Table};
use super::{Bench, Report};
use crate::churn::{Churn, SEED, Tally};
use crate::clock::median;
use crate::fill::SIXTEEN_M;
use crate::rivals::{
    BTreePair, BitvecNaive, Facts, OffsetAlloc, Ours, RangeAlloc, RangeMap, Rival, Roaring, Words,
};

/// A structure in the middle of its churn.
trait Contender {
    fn title(&self) -> &'static str;
    fn facts(&self) -> Facts;
    fn run(&mut self, bench: &Bench, objects: u64, budget: Duration) -> Tally;
    fn free_runs(&self) -> Option<usize>;
    fn free_sectors(&self) -> u32;
    fn bits_per_sector(self: Box<Self>, bench: &Bench) -> f64;
}

impl<R: Rival> Contender for Churn<R> {
    fn title(&self) -> &'static str {
        R::TITLE
    }

    fn facts(&self) -> Facts {
        R::ABILITIES
    }

    fn run(&mut self, bench: &Bench, objects: u64, budget: Duration) -> Tally {
        Churn::run(self, &bench.clock, objects, budget)
    }

    fn free_runs(&self) -> Option<usize> {
        Churn::free_runs(self)
    }

    fn free_sectors(&self) -> u32 {
        Churn::free_sectors(self)
    }

    fn bits_per_sector(self: Box<Self>, bench: &Bench) -> f64 {
        let rival = self.into_rival();
        bench.bytes_of(rival) as f64 * 8.0 / f64::from(SIXTEEN_M)
    }
}

/// One row's measurements.
struct Row {
    title: &'static str,
    facts: Facts,
    aged: u64,
    allocate: f64,
    release: f64,
    pair: f64,
    fastest: f64,
    wall: f64,
    objects: u64,
    extents: u64,
    whole: u64,
    refused: u64,
    free_runs: Option<usize>,
    free_sectors: u32,
    bits: f64,
}

impl Row {
    fn extents_per_object(&self) -> f64 {
        self.extents as f64 / self.objects as f64
    }
}

fn contenders(used_per_myriad: u32, linear_too: bool) -> Vec<Box<dyn Contender>> {
    fn add<R: Rival + 'static>(list: &mut Vec<Box<dyn Contender>>, used_per_myriad: u32) {
        if let Some(churn) = Churn::<R>::new(SIXTEEN_M, used_per_myriad, SEED) {
            list.push(Box::new(churn));
        }
    }
    let mut list = Vec::new();
    add::<Ours>(&mut list, used_per_myriad);
    add::<OffsetAlloc>(&mut list, used_per_myriad);
    add::<BTreePair>(&mut list, used_per_myriad);
    if linear_too {
        add::<RangeAlloc>(&mut list, used_per_myriad);
        add::<RangeMap>(&mut list, used_per_myriad);
        add::<Roaring>(&mut list, used_per_myriad);
        add::<Words>(&mut list, used_per_myriad);
        add::<BitvecNaive>(&mut list, used_per_myriad);
    }
    list
}

/// Ages every contender, then lets them take turns.
fn rows(bench: &Bench, used_per_myriad: u32, linear_too: bool) -> Vec<Row> {
    // Eight turnovers: what is free then lies as the policy leaves it.
    let aging = 1_000_000;
    let slice = if bench.options.quick { 65_536 } else { 131_072 };
    let patience = if bench.options.quick { 500 } else { 3_000 };
    let turn = if bench.options.quick { 100 } else { 300 };
    let mut list = contenders(used_per_myriad, linear_too);
    let mut aged: Vec<u64> = Vec::new();
    for contender in &mut list {
        bench.say(&format!("churn, aging {}", contender.title()));
        // Those that search by walking would need hours for a million objects.
        let limit = if contender.facts().linear { patience } else { 60_000 };
        aged.push(contender.run(bench, aging, Duration::from_millis(limit)).release.ops);
    }
    bench.say("churn, in turns");
    let mut tallies: Vec<Vec<Tally>> = list.iter().map(|_| Vec::new()).collect();
    for _ in 0..bench.rounds() {
        for (contender, tallies) in list.iter_mut().zip(&mut tallies) {
            // The others have filled the caches in between; a bitmap of 16 M
            // sectors is two megabytes to bring back.
            let limit = if contender.facts().linear { turn / 4 } else { 10_000 };
            contender.run(bench, slice / 2, Duration::from_millis(limit));
            let limit = if contender.facts().linear { turn } else { 10_000 };
            tallies.push(contender.run(bench, slice, Duration::from_millis(limit)));
        }
    }
    list.into_iter()
        .zip(tallies)
        .zip(aged)
        .map(|((contender, tallies), aged)| row(bench, contender, &tallies, aged))
        .collect()
}

fn row(bench: &Bench, contender: Box<dyn Contender>, tallies: &[Tally], aged: u64) -> Row {
    let of =
        |figure: fn(&Tally) -> f64| median(&mut tallies.iter().map(figure).collect::<Vec<_>>());
    let sum = |count: fn(&Tally) -> u64| tallies.iter().map(count).sum::<u64>();
    Row {
        title: contender.title(),
        facts: contender.facts(),
        aged,
        allocate: of(|tally| tally.allocate.per_op()),
        release: of(|tally| tally.release.per_op()),
        pair: of(Tally::pair_ns),
        fastest: tallies.iter().map(Tally::pair_ns).fold(f64::INFINITY, f64::min),
        wall: of(|tally| tally.allocate.wall_per_op() + tally.release.wall_per_op()),
        objects: sum(|tally| tally.objects),
        extents: sum(|tally| tally.extents),
        whole: sum(|tally| tally.whole),
        refused: sum(|tally| tally.refused),
        free_runs: contender.free_runs(),
        free_sectors: contender.free_sectors(),
        bits: contender.bits_per_sector(bench),
    }
}

pub(super) fn measure(bench: &Bench, report: &mut Report) {
    for (used_per_myriad, percent) in [(9_000, "90"), (9_900, "99"), (9_999, "99.99")] {
        let rows = rows(bench, used_per_myriad, used_per_myriad < 9_999);
        let ours = &rows[0];
        match used_per_myriad {
            9_000 => ratios(&rows, report),
            9_900 => {}
            _ => report.bounds.push(Bound::at_most(
                "churn 16M 99.99 %: ns an extent, allocated and freed",
                ours.pair / ours.extents_per_object(),
                500.0,
            )),
        }
        report.tables.push(tabulated(&rows, percent));
    }
    ageing(bench, report);
}

/// Objects replaced between two figures of [`ageing`].
const AGE_STEP: u64 = 100_000;

/// How extents an object develop at 99 %, where best fit runs out of runs that
/// fit. This depends much on the objects drawn, hence several seeds.
fn ageing(bench: &Bench, report: &mut Report) {
    let seeds: &[u64] = if bench.options.quick { &[1, 2] } else { &[1, 2, 3, 4, 5] };
    let mut table = Table::new(
        "Ageing at 99 %, 16M sectors",
        "Extents of the objects placed, mean over the seeds, from a freshly filled device on. \
         \"First million\": all objects placed until a million are replaced; least and most are of \
         the last 100,000 of them.",
        &["", "first million", "at 100,000", "at 500,000", "at 1,000,000", "least", "most"],
    );
    let ours = aged::<Ours>(bench, seeds);
    report.bounds.push(Bound::at_most(
        "churn 16M 99 %: extents an object, the first million",
        ours[0],
        1.35,
    ));
    report.bounds.push(Bound::at_most(
        "churn 16M 99 %: extents an object, after a million",
        ours[3],
        1.35,
    ));
    let trees = aged::<BTreePair>(bench, seeds);
    for (title, figures) in [(Ours::TITLE, ours), (BTreePair::TITLE, trees)] {
        let mut row = vec![Cell::from(title)];
        row.extend(figures.map(|figure| Cell::Text(format!("{figure:.3}"))));
        table.row(row);
    }
    report.tables.push(table);
}

/// Mean extents: of the first million objects; around 100,000,
/// 500,000 and 1,000,000; and the least and most of the last over the seeds.
fn aged<R: Rival>(bench: &Bench, seeds: &[u64]) -> [f64; 6] {
    let mut sums = [0.0; 4];
    let (mut best, mut worst) = (f64::INFINITY, 0.0_f64);
    for &seed in seeds {
        bench.say(&format!("ageing at 99 %, {}, seed {seed}", R::TITLE));
        let mut churn = Churn::<R>::new(SIXTEEN_M, 9_900, seed).expect("held");
        let steps: Vec<Tally> =
            (0..10).map(|_| churn.run(&bench.clock, AGE_STEP, Duration::from_mins(1))).collect();
        let sum =
            |steps: &[Tally], count: fn(&Tally) -> u64| steps.iter().map(count).sum::<u64>() as f64;
        sums[0] += sum(&steps, |step| step.extents) / sum(&steps, |step| step.objects);
        sums[1] += steps[0].extents_per_object();
        sums[2] += steps[4].extents_per_object();
        let last = steps[9].extents_per_object();
        sums[3] += last;
        (best, worst) = (best.min(last), worst.max(last));
    }
    let [first, early, middle, last] = sums.map(|sum| sum / seeds.len() as f64);
    [first, early, middle, last, best, worst]
}

/// The bounds on the cost of an object at 90 %.
fn ratios(rows: &[Row], report: &mut Report) {
    let ours = &rows[0];
    for row in &rows[1..] {
        let least = match row.title {
            "BTreeMap pair" => 3.5,
            "offset-allocator 0.2" | "raw u64 words" | "bitvec, bit interface" => 1.0,
            _ => 10.0,
        };
        report.bounds.push(Bound::at_least(
            format!("churn 16M 90 %: {} / alloc-core, allocate + free", row.title),
            row.pair / ours.pair,
            least,
        ));
    }
    report.bounds.push(Bound::at_most(
        "churn 16M 90 %: extents an object",
        ours.extents_per_object(),
        1.01,
    ));
}

fn tabulated(rows: &[Row], percent: &str) -> Table {
    let mut table = Table::new(
        format!("Churn, 16M sectors, {percent} % full"),
        "Log-normal objects (median 64 sectors, sigma 1.2), as few extents as the structure \
         finds. CPU ns an object. \"Refused\": objects for which it found no room though there was \
         enough free in all; where that is common, the times are those of refusals. \"Aged\": \
         objects replaced before the measurement; the walking structures are stopped early, \
         which flatters them.",
        &[
            "",
            "policy",
            "frees parts",
            "allocate ns",
            "free ns",
            "pair ns",
            "pair / ours",
            "fastest round",
            "pair, wall ns",
            "extents / object",
            "in one extent %",
            "free runs",
            "mean free run",
            "bits / sector",
            "refused",
            "aged",
        ],
    );
    for row in rows {
        let free_runs = row.free_runs.map(|runs| runs as f64);
        table.row(vec![
            Cell::from(row.title),
            row.facts.policy.into(),
            if row.facts.frees_parts { "yes" } else { "no" }.into(),
            row.allocate.into(),
            row.release.into(),
            row.pair.into(),
            (row.pair / rows[0].pair).into(),
            row.fastest.into(),
            row.wall.into(),
            Cell::Text(format!("{:.3}", row.extents_per_object())),
            (row.whole as f64 * 100.0 / row.objects as f64).into(),
            free_runs.into(),
            free_runs.map(|runs| f64::from(row.free_sectors) / runs).into(),
            row.bits.into(),
            (row.refused as f64).into(),
            (row.aged as f64).into(),
        ]);
    }
    table
}
