//! 2, 16 and 256 streams growing in turn.

use std::time::Duration;

use super::table::{Bound, Cell, Table};
use super::{Bench, Report};
use crate::churn::{Churn, SEED};
use crate::clock::median;
use crate::fill::{Fill, SIXTEEN_M};
use crate::growth::{Grown, Growth, Turn};
use crate::rivals::{BTreePair, Ours};

/// Sectors of each stream at the end: 2 MiB in sectors of 512 bytes.
const SECTORS_EACH: usize = 4_096;

pub(super) fn measure(bench: &Bench, report: &mut Report) {
    let mut table = Table::new(
        "Streams growing in turn by one sector, 16M sectors",
        "4,096 sectors each. CPU ns a sector, closing the streams included; \"left\": sectors \
         still reserved after that. \"After churn\": 90 % full, every object replaced twice. The \
         trees extend in place where the next sector is free, else take one elsewhere.",
        &["streams, device", "alloc-core ns", "mean run", "left", "BTreeMap pair ns", "mean run"],
    );
    let fill = Fill::empty(SIXTEEN_M);
    for (words, state) in [(fill.free_words(), "empty"), (aged(bench), "90 % after churn")] {
        for streams in [2, 16, 256] {
            for (turn, order) in [(Turn::RoundRobin, "round robin"), (Turn::Random, "random turns")]
            {
                let what = format!("{streams} streams, {order}, {state}");
                bench.say(&what);
                let growth = Growth { streams, sectors_each: SECTORS_EACH, turn };
                let ours = repeated(bench, || growth.ours(&bench.clock, &fill, &words));
                let trees =
                    repeated(bench, || growth.rival::<BTreePair>(&bench.clock, &fill, &words));
                table.row(vec![
                    Cell::from(what.as_str()),
                    ours.0.into(),
                    ours.1.mean_run().into(),
                    (ours.1.reserved as f64).into(),
                    trees.0.into(),
                    trees.1.mean_run().into(),
                ]);
                if turn == Turn::RoundRobin {
                    bound(report, &what, ours);
                }
            }
        }
    }
    report.tables.push(table);
}

/// The free sectors of ours after churn, a bit each.
fn aged(bench: &Bench) -> Vec<u64> {
    bench.say("churn, for streams to grow on");
    let mut churn = Churn::<Ours>::new(SIXTEEN_M, 9_000, SEED).expect("held");
    let objects = churn.objects() as u64 * 2;
    churn.run(&bench.clock, objects, Duration::from_mins(1));
    churn.into_rival().map().words().to_vec()
}

fn bound(report: &mut Report, what: &str, (ns, grown): (f64, Grown)) {
    let mean = grown.mean_run();
    report.bounds.push(Bound::at_least(format!("{what}: sectors a run"), mean, 200.0));
    report.bounds.push(Bound::at_most(format!("{what}: ns a sector"), ns, 5.0));
    let reserved = grown.reserved as f64;
    report.bounds.push(Bound::at_most(format!("{what}: reserved after close"), reserved, 0.0));
}

/// Median ns a sector, and the last result: they are all alike but for time.
fn repeated(bench: &Bench, grow: impl Fn() -> Grown) -> (f64, Grown) {
    let runs: Vec<Grown> = (0..bench.rounds()).map(|_| grow()).collect();
    let mut ns: Vec<f64> = runs.iter().map(|grown| grown.spent.per_op()).collect();
    (median(&mut ns), *runs.last().expect("at least one round"))
}
