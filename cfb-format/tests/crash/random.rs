//! Runs from any bytes: which file, what is done to it, which call fails, and how it is cut.

use cfb_format::Version;

use super::cases::{Base, Case};
use super::cuts::{Report, in_order, unsynced};
use super::disk::{Effect, Failure, Fault};
use super::faults::{Then, broken};
use super::run::{Mode, Run};
use super::script::{Step, Tree};

/// Operations of one run.
const MAX_STEPS: usize = 40;
/// Bytes of all streams; the runs stay short.
const MAX_BYTES: usize = 300_000;
/// Random cuts of an interval between syncs.
const ROUNDS: usize = 6;

/// Four bytes pick the file, the mode and the fault, every four that follow one operation. Gives what is wrong.
pub(crate) fn run_bytes(data: &[u8]) -> Report {
    let mut report = Report::default();
    let Some((&[flags, kind, call, seed], rest)) = data.split_first_chunk() else { return report };
    let version = if flags & 1 == 0 { Version::V3 } else { Version::V4 };
    let mode = if flags & 2 == 0 { Mode::Flush } else { Mode::Sync };
    let base = if flags & 8 == 0 { Base::mixed(version) } else { Base::empty(version) };
    let (numbers, _) = rest.as_chunks::<4>();
    let case =
        Case { name: "random", steps: steps(numbers, &base.tree, mode), held: flags & 4 != 0 };
    let then = match kind % 8 {
        0..3 => None,
        3 => Some(Then::Retry),
        4 => Some(Then::GiveUp),
        5 => Some(Then::FlushAndRetry),
        _ => Some(Then::ChangeAndRetry),
    };
    let wrong = if let Some(then) = then {
        let effect = [Effect::Nothing, Effect::Half, Effect::All][usize::from(kind / 8 % 3)];
        let failure = if kind < 128 { Failure::Full } else { Failure::Broken };
        let fault = Fault { call: call.into(), forever: then.is_forever(), failure, effect };
        let result = broken(&base, &case, mode, fault, then, &mut report);
        result.map_err(|wrong| format!("{fault:?}, {then:?}: {wrong}"))
    } else {
        let mut run = Run::new(&base.image, &base.tree, mode, case.held);
        run.steps(&case.steps).map(|()| {
            let cuts = match mode {
                Mode::Flush => in_order(&run),
                Mode::Sync => unsynced(&run, 0, 6, ROUNDS, seed.into()),
            };
            report.add("cut", cuts);
        })
    };
    if let Err(wrong) = wrong {
        report.fault(wrong);
    }
    if report.wrong > 0 {
        report.told.insert(0, format!("{}, {mode:?}, {:?}", base.name, case.steps));
    }
    report
}

/// Each operation names live entries by position modulo how many there are, so every sequence is valid.
fn steps(numbers: &[[u8; 4]], tree: &Tree, mode: Mode) -> Vec<Step> {
    let mut tree = tree.clone();
    let mut committed = tree.clone();
    let mut steps = Vec::new();
    for (seed, &[op, which, low, high]) in (100..).zip(numbers).take(MAX_STEPS) {
        let which = usize::from(which);
        let number = usize::from(low) | usize::from(high) << 8;
        let len = number % [70, 1000, 5000, 40_000][which % 4];
        let pick = |from: &[String]| from.get(which % from.len().max(1)).cloned();
        let list = |keep: &dyn Fn(&str, bool) -> bool| -> Vec<String> {
            let kept = |(path, is_stream): &(&String, bool)| keep(path, *is_stream);
            let entries = tree.0.iter().map(|(path, node)| (path, node.content.is_some()));
            entries.filter(kept).map(|(path, _)| path.clone()).collect()
        };
        let storages = list(&|_, is_stream| !is_stream);
        let streams = list(&|_, is_stream| is_stream);
        let movable = list(&|path, _| path != "/");
        let new = |parent: &str| {
            let name = format!("{}{}", char::from(b'f' + low % 9), high % 4);
            let path = format!("{}/{name}", parent.trim_end_matches('/'));
            (!tree.0.contains_key(&path)).then_some((path, name))
        };
        let parent = storages[number / 7 % storages.len()].as_str();
        let step = match op % 16 {
            0..3 => new(parent).map(|(path, _)| Step::Write(path, seed, len)),
            3 => pick(&streams).map(|path| Step::Write(path, seed, len)),
            4 | 5 => pick(&streams).map(|path| {
                let old = tree.0[&path].content.as_ref().map_or(0, Vec::len);
                Step::WriteAt(path, number * 31 % (old + 1), seed, len)
            }),
            6 => pick(&streams).map(|path| Step::SetLen(path, len)),
            7 => pick(&streams).map(Step::Remove),
            8 => new(parent).map(|(path, _)| Step::Storage(path)),
            9 => pick(&movable).map(Step::RemoveAll),
            10 => pick(&movable).and_then(|path| {
                let parent = &path[..path.rfind('/').expect("a slash in front")];
                new(parent).map(|(_, name)| Step::Rename(path.clone(), name))
            }),
            11 => pick(&movable)
                .filter(|path| !parent.starts_with(path.as_str()))
                .and_then(|path| new(parent).map(|(to, _)| Step::Move(path, to))),
            12 => pick(&storages).map(|path| Step::StateBits(path, seed)),
            13 if mode == Mode::Flush => Some(Step::Sync),
            14 if which.is_multiple_of(4) => Some(Step::Revert),
            15 if which.is_multiple_of(3) => Some(Step::Compact(which.is_multiple_of(2))),
            _ => Some(Step::Commit),
        };
        let Some(step) = step else { continue };
        let mut after = if step == Step::Revert { committed.clone() } else { tree.clone() };
        after.apply(&step);
        let bytes: usize =
            after.0.values().filter_map(|node| node.content.as_ref()).map(Vec::len).sum();
        if bytes <= MAX_BYTES {
            tree = after;
            if step.is_commit() {
                committed = tree.clone();
            }
            steps.push(step);
        }
    }
    steps.push(Step::Commit);
    steps
}
