//! A file that is being changed when the process or the machine dies has exactly the state of a commit: runs on a
//! simulated disk are cut at every call, with any of the calls that were not synced, and broken at every call.
//!
//! `CFB_CRASH_ROUNDS` sets how many random cuts each interval between two syncs gets beside the systematic ones, and
//! a tenth of how many random runs there are.

#![allow(clippy::cast_possible_truncation, reason = "sizes here are small by construction")]

mod common;
#[path = "crash/mod.rs"]
mod crash;

use cfb_format::Version;
use crash::Random;
use crash::cases::{self, Base, Case};
use crash::cuts::{Report, WAYS, in_order, unsynced};
use crash::faults::{break_everywhere, break_reads};
use crash::judge::state_of;
use crash::random::run_bytes;
use crash::run::{Mode, Run};
use crash::script::Step;

const V3: Version = Version::V3;
const V4: Version = Version::V4;

/// Random cuts of each interval between syncs.
fn rounds() -> usize {
    std::env::var("CFB_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(40)
}

fn judge(report: &Report, what: &str) {
    println!("{what}: {}", report.counts());
    report.expect_no_fault(what);
}

/// Runs every case and cuts it as its mode allows.
fn cut(base: &Base, cases: &[Case], mode: Mode, rounds: usize) {
    let mut report = Report::default();
    for (seed, case) in cases.iter().enumerate() {
        let mut run = Run::new(&base.image, &base.tree, mode, case.held);
        let name = format!("{}{}", case.name, if case.held { ", held" } else { "" });
        let done = run.steps(&case.steps);
        // Nothing is left to commit, so this must not put at risk what is safe.
        run.close();
        match done {
            Err(wrong) => report.fault(format!("{name}: {wrong}")),
            Ok(()) if mode == Mode::Flush => report.add(&name, in_order(&run)),
            Ok(()) => report.add(&name, unsynced(&run, 0, WAYS, rounds, seed as u64)),
        }
    }
    judge(&report, &format!("{}, {mode:?}", base.name));
}

/// Runs every case with every call failing.
fn fail(base: &Base, cases: &[Case], mode: Mode) {
    let mut report = Report::default();
    for case in cases {
        let name = format!("{}{}", case.name, if case.held { ", held" } else { "" });
        report.add(&name, break_everywhere(base, case, mode));
    }
    judge(&report, &format!("{}, {mode:?}, failing", base.name));
}

/// A run of each kind in which both ways to commit take turns.
fn in_turn() -> Vec<Case> {
    let commits = cases::all().into_iter().filter(|case| case.steps.len() > 6);
    let alternate = |mut case: Case| {
        let commits = case.steps.iter_mut().filter(|step| step.is_commit());
        for (nth, commit) in commits.enumerate() {
            *commit = if nth % 2 == 0 { Step::Flush } else { Step::Sync };
        }
        case
    };
    commits.map(alternate).collect()
}

/// What needs only a root to work on.
fn on_empty() -> Vec<Case> {
    let alone = ["create", "change nothing", "empty the file and fill it"];
    let on_empty = |case: &Case| {
        alone.iter().any(|name| case.name.starts_with(name)) && case.name != "create a storage"
    };
    cases::all().into_iter().filter(on_empty).collect()
}

#[test]
fn v3_flushes_cut_anywhere_leave_a_committed_state() {
    cut(&Base::mixed(V3), &cases::all(), Mode::Flush, 0);
}

#[test]
fn v4_flushes_cut_anywhere_leave_a_committed_state() {
    cut(&Base::mixed(V4), &cases::all(), Mode::Flush, 0);
}

#[test]
fn flushes_and_syncs_in_turn_cut_anywhere_leave_a_committed_state() {
    for version in [V3, V4] {
        cut(&Base::mixed(version), &in_turn(), Mode::Flush, 0);
    }
}

#[test]
fn v3_syncs_survive_any_loss_of_unsynced_calls() {
    cut(&Base::mixed(V3), &cases::all(), Mode::Sync, rounds());
}

#[test]
fn v4_syncs_survive_any_loss_of_unsynced_calls() {
    cut(&Base::mixed(V4), &cases::all(), Mode::Sync, rounds());
}

#[test]
fn first_content_of_an_empty_file_is_there_or_not() {
    for version in [V3, V4] {
        for mode in [Mode::Flush, Mode::Sync] {
            cut(&Base::empty(version), &on_empty(), mode, rounds());
        }
    }
}

#[test]
fn files_with_difat_sectors_keep_a_committed_state() {
    for base in [Base::with_difat(), Base::before_difat()] {
        for mode in [Mode::Flush, Mode::Sync] {
            cut(&base, &cases::large(&base), mode, 4);
        }
    }
}

#[test]
fn v3_failed_calls_are_told_and_cost_nothing_when_flushing() {
    fail(&Base::mixed(V3), &cases::all(), Mode::Flush);
}

#[test]
fn v3_failed_calls_are_told_and_cost_nothing_when_syncing() {
    fail(&Base::mixed(V3), &cases::all(), Mode::Sync);
}

#[test]
fn v4_failed_calls_are_told_and_cost_nothing_when_flushing() {
    fail(&Base::mixed(V4), &cases::all(), Mode::Flush);
}

#[test]
fn v4_failed_calls_are_told_and_cost_nothing_when_syncing() {
    fail(&Base::mixed(V4), &cases::all(), Mode::Sync);
}

#[test]
fn failed_calls_cost_nothing_where_difat_sectors_come_and_go() {
    for (base, case) in [(Base::with_difat(), 2), (Base::before_difat(), 0)] {
        fail(&base, &cases::large(&base)[case..=case], Mode::Flush);
    }
}

#[test]
fn reads_that_fail_cost_nothing() {
    for version in [V3, V4] {
        let base = Base::mixed(version);
        let mut report = Report::default();
        for case in cases::all() {
            report.add(case.name, break_reads(&base, &case, Mode::Flush));
        }
        judge(&report, &format!("{}, reads failing", base.name));
    }
}

#[test]
fn handles_that_are_dropped_commit_whole_or_not_at_all() {
    for version in [V3, V4] {
        let base = Base::mixed(version);
        let mut report = Report::default();
        for case in cases::all() {
            let mut run = Run::new(&base.image, &base.tree, Mode::Flush, case.held);
            let name = case.name;
            if let Err(wrong) = run.steps(&case.steps[..case.steps.len() - 1]) {
                report.fault(format!("{name}: {wrong}"));
            }
            run.close_uncommitted();
            report.add(name, in_order(&run));
            if let Err(wrong) = state_of(&run.disk.image(), &[run.tree], 0..=0) {
                report.fault(format!("{name}: after the drop: {wrong}"));
            }
        }
        judge(&report, &format!("{}, dropped", base.name));
    }
}

#[test]
fn files_left_by_a_crash_survive_the_next_one() {
    let first = |case: &&Case| {
        [
            "create a large stream",
            "create 300 streams",
            "change again and again",
            "lengthen a stream",
        ]
        .contains(&case.name)
    };
    let all = cases::all();
    let next = all.iter().find(|case| case.name.starts_with("several")).expect("it is there");
    for version in [V3, V4] {
        let base = Base::mixed(version);
        let mut report = Report::default();
        for case in all.iter().filter(first) {
            let mut run = Run::new(&base.image, &base.tree, Mode::Flush, case.held);
            run.steps(&case.steps).expect("nothing fails");
            let mut image = base.image.clone();
            let mut seed = 0;
            for (nth, call) in run.disk.log().iter().enumerate() {
                call.apply(&mut image);
                let name = format!("{} up to call {nth}, then", case.name);
                let within = run.allowed(nth + 1, nth + 1);
                let state = match state_of(&image, &run.states, within) {
                    Ok(state) => &run.states[state],
                    Err(wrong) => {
                        report.fault(format!("{name} nothing: {wrong}"));
                        continue;
                    }
                };
                seed += 1;
                let mode = if seed % 2 == 0 { Mode::Flush } else { Mode::Sync };
                let mut again = Run::new(&image, state, mode, false);
                if let Err(wrong) = again.steps(&next.steps) {
                    report.fault(format!("{name} {wrong}"));
                    continue;
                }
                let cuts = match mode {
                    Mode::Flush => in_order(&again),
                    Mode::Sync => unsynced(&again, 0, WAYS, 4, seed),
                };
                report.add(&name, cuts);
            }
        }
        judge(&report, &format!("{}, crashed twice", base.name));
    }
}

#[test]
fn commits_one_after_another_use_the_same_space() {
    for version in [V3, V4] {
        let base = Base::mixed(version);
        let case = cases::all().into_iter().find(|case| case.name == "change again and again");
        let case = case.expect("it is there");
        let mut run = Run::new(&base.image, &base.tree, Mode::Flush, case.held);
        let mut lens = Vec::new();
        for _ in 0..40 {
            run.steps(&case.steps).expect("nothing fails");
            lens.push(run.disk.image().len());
        }
        let (early, late) = lens.split_at(20);
        assert!(late.iter().max() <= early.iter().max(), "{version}: the file grows: {lens:?}");
    }
}

#[test]
fn commits_without_a_change_write_nothing() {
    for version in [V3, V4] {
        let base = Base::mixed(version);
        let mut wrong = Vec::new();
        for case in cases::all() {
            let mut run = Run::new(&base.image, &base.tree, Mode::Flush, case.held);
            run.steps(&case.steps).expect("nothing fails");
            let calls = run.disk.log_len();
            run.steps(&[Step::Flush]).expect("nothing fails");
            let more = run.disk.log_len() - calls;
            if more > 0 {
                wrong.push(format!("{}: {more} calls", case.name));
            }
        }
        assert_eq!(wrong, Vec::<String>::new(), "{version}");
    }
}

#[test]
fn random_runs_keep_a_committed_state() {
    let mut report = Report::default();
    for seed in 0..10 * rounds() {
        let mut random = Random::new(7000 + seed as u64);
        let data: Vec<u8> =
            (0..4 + 4 * (3 + random.below(20))).map(|_| random.below(256) as u8).collect();
        report.add(&format!("seed {seed}"), run_bytes(&data));
    }
    judge(&report, "random runs");
}
