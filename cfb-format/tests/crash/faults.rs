//! The same runs with a call of the disk failing: the error is told, the disk keeps a committed state, and once the
//! disk works again nothing is lost.

use cfb_format::Error;

use super::cases::{Base, Case, write};
use super::cuts::{Report, in_order_from, unsynced, unsynced_lossy};
use super::disk::{Effect, Failure, Fault};
use super::judge::{is_sound, state_of};
use super::run::{Commit, Mode, Run};
use super::script::Tree;

/// What is done about the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The call is made again.
    Retry,
    /// Everything is dropped while the disk is still broken.
    GiveUp,
    /// The disk works again, the file is flushed, and the call is made again.
    FlushAndRetry,
    /// Other changes are made, then the call is made again; and all that is cut anywhere.
    ChangeAndRetry,
}

impl Then {
    /// Whether the disk stays broken until it is healed.
    pub(crate) const fn is_forever(self) -> bool {
        matches!(self, Self::GiveUp | Self::FlushAndRetry)
    }
}

const EFFECTS: [Effect; 3] = [Effect::Nothing, Effect::Half, Effect::All];

/// Runs a case once for each of its calls and each way to fail and to go on.
pub(crate) fn break_everywhere(base: &Base, case: &Case, mode: Mode) -> Report {
    let mut report = Report::default();
    let mut clean = Run::new(&base.image, &base.tree, mode, case.held);
    if let Err(wrong) = clean.steps(&case.steps) {
        report.fault(wrong);
        return report;
    }
    for call in 0..clean.disk.calls() {
        let turn = EFFECTS[call % 3];
        let ways = [
            (Then::Retry, EFFECTS[0]),
            (Then::Retry, EFFECTS[1]),
            (Then::Retry, EFFECTS[2]),
            (Then::GiveUp, turn),
            (Then::FlushAndRetry, turn),
            (Then::ChangeAndRetry, turn),
        ];
        for (nth, (then, effect)) in ways.into_iter().enumerate() {
            let failure =
                if (call + nth).is_multiple_of(2) { Failure::Full } else { Failure::Broken };
            let fault = Fault { call, forever: then.is_forever(), failure, effect };
            report.cuts += 1;
            if let Err(wrong) = broken(base, case, mode, fault, then, &mut report) {
                report.fault(format!("{fault:?}, {then:?}: {wrong}"));
            }
        }
    }
    report
}

/// Runs a case with one call failing.
///
/// # Errors
///
/// What is wrong.
pub(crate) fn broken(
    base: &Base,
    case: &Case,
    mode: Mode,
    fault: Fault,
    then: Then,
    report: &mut Report,
) -> Result<(), String> {
    let mut run = Run::new(&base.image, &base.tree, mode, case.held);
    run.disk.break_at(fault);
    let mut told = false;
    let mut first_cut = 0;
    for step in &case.steps {
        let Err(error) = run.step(step) else { continue };
        if std::mem::replace(&mut told, true) {
            return Err(format!("{step:?} fails again: {error}"));
        }
        is_typed(&error, fault).map_err(|wrong| format!("{step:?}: {wrong}"))?;
        keeps_a_state(&run).map_err(|wrong| format!("when {step:?} failed: {wrong}"))?;
        first_cut = run.disk.log_len();
        if fault.forever && step.is_commit() && run.step(step).is_ok() {
            return Err(format!("{step:?} works on a broken disk when called again"));
        }
        match then {
            Then::Retry => {}
            Then::GiveUp => {
                // What memory has may still be on its way.
                run.commits.push(Commit { from: run.disk.log_len(), to: None });
                run.states.push(Tree::of(run.file()).map_err(|error| error.to_string())?);
                run.close();
                return keeps_a_state(&run).map_err(|wrong| format!("after the drop: {wrong}"));
            }
            Then::FlushAndRetry => {
                run.disk.heal();
                agrees_after_a_flush(&mut run)?;
            }
            Then::ChangeAndRetry => {
                run.steps(&[write("/other large", 70, 6000), write("/other small", 71, 600)])?;
            }
        }
        run.step(step).map_err(|error| format!("{step:?} fails when called again: {error}"))?;
    }
    if run.disk.failed() > 0 && !told {
        return Err("the error is not told".to_owned());
    }
    if then == Then::ChangeAndRetry {
        let name = format!("{fault:?}, other changes, then");
        let seed = fault.call as u64;
        match mode {
            Mode::Flush => report.add(&name, in_order_from(&run, first_cut)),
            Mode::Sync => {
                report.add(&name, unsynced(&run, first_cut, 4, 4, seed));
                report.add(&format!("{name}, lossy"), unsynced_lossy(&run, first_cut, seed));
            }
        }
    }
    // The fault may be past the last call.
    run.disk.heal();
    is_sound(run.file(), &run.disk, &run.tree)?;
    run.close();
    let last = run.states.len() - 1;
    state_of(&run.disk.image(), &run.states, last..=last).map(drop)
}

/// Runs a case once for each of its reads, which fails.
pub(crate) fn break_reads(base: &Base, case: &Case, mode: Mode) -> Report {
    let mut report = Report::default();
    let mut clean = Run::new(&base.image, &base.tree, mode, case.held);
    let opened = clean.disk.reads();
    if let Err(wrong) = clean.steps(&case.steps) {
        report.fault(wrong);
        return report;
    }
    for read in opened..clean.disk.reads() {
        report.cuts += 1;
        if let Err(wrong) = unread(base, case, mode, read) {
            report.fault(format!("read {} fails: {wrong}", read - opened));
        }
    }
    report
}

fn unread(base: &Base, case: &Case, mode: Mode, read: usize) -> Result<(), String> {
    let mut run = Run::new(&base.image, &base.tree, mode, case.held);
    run.disk.break_read(read);
    for step in &case.steps {
        if run.step(step).is_err() {
            keeps_a_state(&run).map_err(|wrong| format!("when {step:?} failed: {wrong}"))?;
            run.step(step).map_err(|error| format!("{step:?} fails again: {error}"))?;
        }
    }
    is_sound(run.file(), &run.disk, &run.tree)
}

fn is_typed(error: &Error, fault: Fault) -> Result<(), String> {
    match error {
        Error::Io { source, .. } if fault.failure.is(source) => Ok(()),
        other => Err(format!("{:?} is told as {other:?}", fault.failure)),
    }
}

/// What the disk has now is a state that it may have.
fn keeps_a_state(run: &Run) -> Result<(), String> {
    let calls = run.disk.log_len();
    state_of(&run.disk.image(), &run.states, run.allowed(calls, calls)).map(drop)
}

/// Whatever the failed call has left of its change in memory, a flush brings it to the disk.
fn agrees_after_a_flush(run: &mut Run) -> Result<(), String> {
    let tree = Tree::of(run.file()).map_err(|error| error.to_string())?;
    let from = run.disk.log_len();
    run.file().flush().map_err(|error| format!("the flush fails: {error}"))?;
    run.commits.push(Commit { from, to: Some(run.disk.log_len()) });
    run.states.push(tree.clone());
    is_sound(run.file(), &run.disk, &tree).map_err(|wrong| format!("flushed after it: {wrong}"))
}
