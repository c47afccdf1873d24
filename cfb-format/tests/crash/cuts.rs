//! Every image that a crash of the process or of the machine may leave of a run.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;

use super::Random;
use super::disk::{Call, UNIT_BYTES, put};
use super::judge::{goes_on, state_of};
use super::run::Run;

/// Intervals between syncs with at most so many calls are cut in every way.
pub(crate) const WAYS: usize = 10;
/// Units of one write after which it is torn, at most.
const TEARS: usize = 8;
/// Faults told of one run; one is enough to see, and a broken order shows thousands.
const TOLD: usize = 4;

/// What the cuts of one or more runs showed.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) cuts: usize,
    /// Images that differ.
    pub(crate) images: usize,
    pub(crate) wrong: usize,
    pub(crate) told: Vec<String>,
}

impl Report {
    pub(crate) fn fault(&mut self, what: String) {
        self.wrong += 1;
        if self.told.len() < TOLD {
            self.told.push(what);
        }
    }

    pub(crate) fn add(&mut self, name: &str, other: Self) {
        self.cuts += other.cuts;
        self.images += other.images;
        self.wrong += other.wrong;
        self.told.extend(other.told.into_iter().map(|what| format!("{name}: {what}")));
        if other.wrong > TOLD {
            self.told.push(format!("{name}: {} such in all", other.wrong));
        }
    }

    /// How much was tried.
    pub(crate) fn counts(&self) -> String {
        format!("{} cuts and faults, {} different images", self.cuts, self.images)
    }

    /// Panics with all that is wrong.
    pub(crate) fn expect_no_fault(&self, what: &str) {
        assert!(
            self.wrong == 0,
            "{what}: {} of {} are wrong:\n  {}",
            self.wrong,
            self.cuts,
            self.told.join("\n  ")
        );
    }
}

/// Judges images of one run; those that were seen before, only once.
struct Cutter<'a> {
    run: &'a Run,
    log: Vec<Call>,
    seen: HashSet<(u64, usize, usize)>,
    gone_on: HashSet<u64>,
    report: Report,
}

impl<'a> Cutter<'a> {
    fn new(run: &'a Run) -> Self {
        Self {
            run,
            log: run.disk.log(),
            seen: HashSet::new(),
            gone_on: HashSet::new(),
            report: Report::default(),
        }
    }

    fn judge(&mut self, image: &[u8], within: RangeInclusive<usize>, cut: impl Fn() -> String) {
        self.report.cuts += 1;
        let mut hasher = DefaultHasher::new();
        image.hash(&mut hasher);
        let hash = hasher.finish();
        if !self.seen.insert((hash, *within.start(), *within.end())) {
            return;
        }
        self.report.images += 1;
        let states = &self.run.states;
        let judged = state_of(image, states, within).and_then(|state| {
            if self.gone_on.insert(hash) { goes_on(image, &states[state]) } else { Ok(()) }
        });
        if let Err(wrong) = judged {
            self.report.fault(format!("cut {}: {wrong}", cut()));
        }
    }
}

/// What a call is, for people.
fn describe(call: &Call) -> String {
    match call {
        Call::Write { at, bytes } => format!("{}@{at:#x}", bytes.len()),
        Call::SetLen(len) => format!("len {len:#x}"),
        Call::Sync => "sync".to_owned(),
        Call::FailedSync => "failed sync".to_owned(),
    }
}

/// Byte counts after which a write of `len` bytes is torn: all where they are few.
fn tears(len: usize) -> Vec<usize> {
    let units = len.div_ceil(UNIT_BYTES);
    if units <= TEARS {
        return (1..units).map(|unit| unit * UNIT_BYTES).collect();
    }
    let mut at: Vec<usize> = (0..TEARS).map(|nth| 1 + nth * (units - 2) / (TEARS - 1)).collect();
    at.dedup();
    at.into_iter().map(|unit| unit * UNIT_BYTES).collect()
}

/// Cuts a run after every call, and within the last write, with every call before in its order.
pub(crate) fn in_order(run: &Run) -> Report {
    in_order_from(run, 0)
}

/// Like [`in_order`], with the first `first` calls always done.
pub(crate) fn in_order_from(run: &Run, first: usize) -> Report {
    let mut cutter = Cutter::new(run);
    let mut image = run.base.clone();
    for call in &cutter.log[..first] {
        call.apply(&mut image);
    }
    for nth in first..=cutter.log.len() {
        cutter.judge(&image, run.allowed(nth, nth), || format!("after {nth} calls"));
        let Some(call) = cutter.log.get(nth).cloned() else { break };
        if let Call::Write { at, bytes } = &call {
            let before = image.clone();
            for tear in tears(bytes.len()) {
                put(&mut image, *at, &bytes[..tear]);
                let cut = || format!("after {nth} calls and {tear} bytes of {}", describe(&call));
                cutter.judge(&image, run.allowed(nth, nth + 1), cut);
                image.clone_from(&before);
            }
        }
        call.apply(&mut image);
    }
    cutter.report
}

/// Cuts a run with every synced call done and any of the later ones: in every way where they are at most `ways`, and
/// in `rounds` random ones, some of them with writes torn and the order changed. Syncs before call `first` are not cut.
pub(crate) fn unsynced(run: &Run, first: usize, ways: usize, rounds: usize, seed: u64) -> Report {
    unsynced_calls(Cutter::new(run), first, ways, rounds, seed)
}

/// Like [`unsynced`], with the writes lost for good that a failed sync should have made safe: systems that fail to
/// write do not always try again.
pub(crate) fn unsynced_lossy(run: &Run, first: usize, seed: u64) -> Report {
    let mut cutter = Cutter::new(run);
    for at in 0..cutter.log.len() {
        if !matches!(cutter.log[at], Call::FailedSync) {
            continue;
        }
        let doubtful = cutter.log[..at].iter_mut().rev();
        for call in doubtful.take_while(|call| !matches!(call, Call::Sync)) {
            if matches!(call, Call::Write { .. }) {
                *call = Call::FailedSync;
            }
        }
    }
    unsynced_calls(cutter, first, 3, 4, seed)
}

fn unsynced_calls(
    mut cutter: Cutter<'_>,
    first: usize,
    ways: usize,
    rounds: usize,
    seed: u64,
) -> Report {
    let run = cutter.run;
    let mut random = Random::new(seed);
    let mut safe_image = run.base.clone();
    let mut safe = 0;
    while safe <= cutter.log.len() {
        let is_sync = |call: &Call| matches!(call, Call::Sync);
        let end =
            cutter.log[safe..].iter().position(is_sync).map_or(cutter.log.len(), |at| safe + at);
        let calls = cutter.log[safe..end].to_vec();
        if end >= first {
            interval(&mut cutter, &safe_image, safe, &calls, (ways, rounds), &mut random);
        }
        for call in &calls {
            call.apply(&mut safe_image);
        }
        safe = end + 1;
    }
    cutter.report
}

/// Does a call, or every third time only some units of a write.
fn apply_torn(image: &mut Vec<u8>, call: &Call, random: &mut Random) {
    match call {
        Call::Write { at, bytes } if random.below(3) == 0 => {
            for (unit, piece) in bytes.chunks(UNIT_BYTES).enumerate() {
                if random.below(2) == 0 {
                    put(image, at + (unit * UNIT_BYTES) as u64, piece);
                }
            }
        }
        call => call.apply(image),
    }
}

fn interval(
    cutter: &mut Cutter<'_>,
    safe_image: &[u8],
    safe: usize,
    calls: &[Call],
    (ways, rounds): (usize, usize),
    random: &mut Random,
) {
    let count = calls.len();
    let subset = |cutter: &mut Cutter<'_>, chosen: &[usize], mut tear: Option<&mut Random>| {
        let mut image = safe_image.to_vec();
        let torn = tear.is_some();
        for &nth in chosen {
            match &mut tear {
                Some(random) => apply_torn(&mut image, &calls[nth], random),
                None => calls[nth].apply(&mut image),
            }
        }
        let last = chosen.iter().max().map_or(safe, |&nth| safe + nth + 1);
        let within = cutter.run.allowed_unsynced(&cutter.log, safe, last);
        cutter.judge(&image, within, || {
            let names: Vec<String> = chosen.iter().map(|&nth| describe(&calls[nth])).collect();
            let torn = if torn { ", torn" } else { "" };
            format!("{safe} calls synced, then of {count} [{}]{torn}", names.join(", "))
        });
    };
    if count <= ways {
        for bits in 0..1_usize << count {
            let chosen: Vec<usize> = (0..count).filter(|nth| bits >> nth & 1 == 1).collect();
            subset(cutter, &chosen, None);
        }
    } else {
        for prefix in 0..=count {
            subset(cutter, &(0..prefix).collect::<Vec<_>>(), None);
        }
        for dropped in 0..count {
            subset(cutter, &(0..count).filter(|&nth| nth != dropped).collect::<Vec<_>>(), None);
        }
    }
    if count == 0 {
        return;
    }
    for round in 0..rounds {
        let keep = 1 + random.below(7);
        let mut chosen: Vec<usize> = (0..count).filter(|_| random.below(8) < keep).collect();
        if round % 2 == 0 {
            for at in (1..chosen.len()).rev() {
                chosen.swap(at, random.below(at + 1));
            }
        }
        let mut torn = Random::new(random.below(usize::MAX) as u64);
        subset(cutter, &chosen, (round % 3 != 0).then_some(&mut torn));
    }
}
