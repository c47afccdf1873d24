//! [`SizeBins`]: free runs by length, as candidates that are checked when they
//! are taken.
//!
//! To whoever changes this next. The bitmap is the truth; a bin holds starts
//! of runs that had the bin's length when they were filed. What keeps this
//! correct is one rule: **whenever a maximal free run comes to be, it is
//! filed**, so that each one is in the bin of its length, unless that bin is
//! `flagged`. Candidates that have become wrong stay until someone meets them.
//!
//! A bin is flagged when something was left out of it because of the limits on
//! memory. A `sweep` over the bitmap refills flagged bins that have run dry, a
//! stretch at a time. After a full circle, a bin that left nothing out since
//! the circle began (`missed`) is complete again.
//!
//! `longest` is at least the length of every free run. It rises when a longer
//! run is filed and falls when a search proves that there is none: so a search
//! that fails costs something once, and then nothing.

mod upkeep;

use alloc::vec::Vec;

use smallvec::SmallVec;

use self::upkeep::FIRST_LIMIT;
use crate::bitmap::Bitmap;
use crate::class_set::ClassSet;
use crate::size_class::{CLASSES, EXACT, class_of, least_of};
use crate::stacks::{Offered, Stacks};
use crate::{Run, VerifyError};

/// How many chunks of a bin are looked at for the lowest address.
const LOOK_CHUNKS: u16 = 16;
/// What a search in bins that are not complete puts aside for sweeps, in words
/// read.
const STEPS_PER_SEARCH: u32 = 64;
/// How many candidates of a class with several lengths are tried before the
/// next class, where all of them fit.
const TRIES: usize = 8;

/// Limits on memory, chosen from the size of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The bins and their candidates.
    pub(crate) bytes: usize,
    /// Candidates in one bin.
    pub(crate) bin: u16,
}

impl Limits {
    /// A fifth of a bit a sector; the bitmap and its summaries take 1.033
    /// bits. One bin takes half of the candidates at first, and less as soon
    /// as memory is short: so that the many short runs of a badly fragmented
    /// device leave room for the few long ones.
    pub(crate) fn for_total(total: u32) -> Self {
        let bytes = (total as usize / 40).max(8 << 10);
        // three candidates in 16 bytes
        let bin = u16::try_from(bytes / 32 * 3).unwrap_or(u16::MAX).min(u16::MAX - 1);
        Self { bytes, bin }
    }
}

/// A free run chosen for a request. It lies on top of its bin still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Its bin, or `CLASSES` when it is in none.
    class: usize,
}

/// Free runs by length.
#[derive(Clone)]
pub(crate) struct SizeBins {
    candidates: Stacks,
    filled: ClassSet,
    flagged: ClassSet,
    /// Flagged bins that left something out since the circle began.
    missed: ClassSet,
    /// At least the length of every free run.
    longest: u32,
    /// Candidates in one bin: what the limits say, or less while memory is
    /// short.
    bin_limit: u16,
    limits: Limits,
    fixed_limits: bool,
    /// Whether the lowest of a bin's candidates is taken, as far as a short
    /// look shows, and not just the last one filed.
    lowest_first: bool,
    /// Where the next sweep goes on, and how far it is to the end of the
    /// circle.
    cursor: u32,
    circle_left: u32,
    /// Steps of sweeping that searches have still to make up for.
    debt: u32,
}

impl SizeBins {
    /// The bins of a device, filled from its bitmap. O(words + runs filed).
    pub(crate) fn new(bits: &Bitmap, limits: Option<Limits>) -> Self {
        let fixed_limits = limits.is_some();
        let limits = limits.unwrap_or_else(|| Limits::for_total(bits.total()));
        let mut filed = Self {
            candidates: Stacks::new(limits.bytes, FIRST_LIMIT.min(limits.bin)),
            filled: ClassSet::new(),
            flagged: ClassSet::new(),
            missed: ClassSet::new(),
            longest: 0,
            bin_limit: limits.bin,
            limits,
            fixed_limits,
            lowest_first: false,
            cursor: 0,
            circle_left: bits.total(),
            debt: 0,
        };
        filed.file_all(bits);
        filed
    }

    /// Says how many sectors are free. On a nearly full device it pays to
    /// prefer low addresses among runs of one length: the free sectors at high
    /// ones then merge to long runs.
    #[inline]
    pub(crate) fn note_free(&mut self, free: u32, total: u32) {
        self.lowest_first = free < total / 32;
    }

    /// Files a maximal free run; the bitmap shows it already.
    #[inline]
    pub(crate) fn push(&mut self, start: u32, len: u32, bits: &Bitmap) {
        self.longest = self.longest.max(len);
        let class = class_of(len);
        if self.candidates.offer(class, start) == Offered::Taken {
            self.filled.insert(class);
        } else {
            self.push_with_care(class, start, bits);
        }
    }

    /// `push` where the bin is at its limit, or the pool.
    #[cold]
    fn push_with_care(&mut self, class: usize, start: u32, bits: &Bitmap) {
        if self.candidates.is_full(class) && !self.make_room_in(class, bits)
            || !self.file_in(class, start, bits)
        {
            self.leave_out(class);
        }
    }

    /// Puts a candidate in its bin if the pool has room, or can be given some.
    #[inline]
    fn file_in(&mut self, class: usize, start: u32, bits: &Bitmap) -> bool {
        if self.candidates.push(class, start).is_err() {
            self.make_room(bits);
            if self.candidates.count(class) >= self.bin_limit
                || self.candidates.push(class, start).is_err()
            {
                return false;
            }
        }
        self.filled.insert(class);
        true
    }

    #[cold]
    fn leave_out(&mut self, class: usize) {
        self.flagged.insert(class);
        self.missed.insert(class);
    }

    /// Takes the candidate off its bin if it lies on top. An optimisation: one
    /// that stays is found to be wrong later.
    #[inline]
    pub(crate) fn forget(&mut self, start: u32, len: u32) {
        let class = class_of(len);
        if self.candidates.top(class) == Some(start) {
            self.pop(class);
        }
    }

    #[inline]
    fn pop(&mut self, class: usize) -> Option<u32> {
        let start = self.candidates.pop(class);
        if self.candidates.count(class) == 0 {
            self.filled.remove(class);
        }
        start
    }

    /// Where the run ends that begins at `start`, if a maximal free run of
    /// this class does.
    #[inline]
    fn checked(class: usize, start: u32, bits: &Bitmap) -> Option<u32> {
        let end = bits.run_from(start)?;
        (class_of(end - start) == class).then_some(end)
    }

    /// The uppermost right candidate of a bin; wrong ones above are dropped.
    #[inline]
    fn top_checked(&mut self, class: usize, bits: &Bitmap) -> Option<Fit> {
        loop {
            if self.lowest_first {
                self.candidates.raise_least(class, LOOK_CHUNKS);
            }
            let start = self.candidates.top(class)?;
            if let Some(end) = Self::checked(class, start, bits) {
                return Some(Fit { start, end, class });
            }
            self.pop(class);
        }
    }

    /// A free run of at least `count` sectors, `count > 0`: the shortest such
    /// run if that is below 512 and no bin is flagged; near the shortest
    /// otherwise. `None` proves that there is none.
    #[inline]
    pub(crate) fn fit(&mut self, count: u32, bits: &Bitmap) -> Option<Fit> {
        if count > self.longest {
            return None;
        }
        let own = class_of(count);
        if count < EXACT && self.flagged.is_empty() {
            while let Some(class) = self.filled.next(own) {
                if let Some(fit) = self.top_checked(class, bits) {
                    return Some(fit);
                }
            }
        }
        self.fit_with_care(count, own, bits)
    }

    /// `fit` where the own class may not do, or bins may not be complete.
    fn fit_with_care(&mut self, count: u32, own: usize, bits: &Bitmap) -> Option<Fit> {
        let all_fit = least_of(own) == count;
        if !all_fit && let Some(fit) = self.fit_among(own, count, TRIES, bits) {
            return Some(fit);
        }
        let from = if all_fit { own } else { own + 1 };
        let mut may_sweep = self.may_sweep();
        loop {
            let filled = self.filled.next(from);
            if may_sweep
                && let Some(dry) = self.next_dry(from).filter(|&dry| filled.is_none_or(|f| dry < f))
            {
                may_sweep = false;
                self.sweep(dry, bits);
                continue;
            }
            let Some(class) = filled else { break };
            if let Some(fit) = self.top_checked(class, bits) {
                return Some(fit);
            }
        }
        self.last_resort(count, own, all_fit, bits)
    }

    /// Whether a search may sweep for the sake of a better fit. Once, and only
    /// when the searches since the last sweep have made up for it: else the
    /// next longer run does.
    fn may_sweep(&mut self) -> bool {
        self.debt = self.debt.saturating_sub(STEPS_PER_SEARCH);
        self.debt == 0 && !self.flagged.is_empty()
    }

    /// The rest of the own class, then the bitmap itself if some bin is not
    /// complete, then the proof.
    #[cold]
    fn last_resort(&mut self, count: u32, own: usize, all_fit: bool, bits: &Bitmap) -> Option<Fit> {
        if !all_fit && let Some(fit) = self.fit_among(own, count, usize::MAX, bits) {
            return Some(fit);
        }
        if self.flagged.next(own).is_some() {
            let first = if all_fit { own } else { own + 1 };
            let mut left = bits.total();
            while left > 0
                && let Some(dry) = self.next_dry(first)
            {
                left = left.saturating_sub(self.sweep(dry, bits));
                while let Some(class) = self.filled.next(first) {
                    if let Some(fit) = self.top_checked(class, bits) {
                        return Some(fit);
                    }
                }
            }
            if let Some((start, end)) = bits.next_run(0, bits.total(), count) {
                return Some(self.unfiled(start, end));
            }
            while let Some(class) = self.flagged.next(first) {
                self.flagged.remove(class);
                self.missed.remove(class);
            }
        }
        self.longest = count - 1;
        None
    }

    /// A run that the bitmap has shown.
    fn unfiled(&mut self, start: u32, end: u32) -> Fit {
        self.forget(start, end - start);
        Fit { start, end, class: CLASSES }
    }

    /// Nothing is taken of the run.
    pub(crate) fn keep(&mut self, fit: Fit, bits: &Bitmap) {
        if fit.class == CLASSES {
            self.push(fit.start, fit.end - fit.start, bits);
        }
    }

    /// The front of the run has been taken, up to `cut`; the bitmap shows it
    /// already.
    #[inline]
    pub(crate) fn cut(&mut self, fit: Fit, cut: u32, bits: &Bitmap) {
        let rest = fit.end - cut;
        if fit.class < CLASSES {
            if rest > 0 && class_of(rest) == fit.class {
                self.candidates.set_top(fit.class, cut);
                return;
            }
            self.pop(fit.class);
        }
        if rest > 0 {
            self.push(cut, rest, bits);
        }
    }

    /// The first flagged class from `from` on whose bin is empty.
    fn next_dry(&self, mut from: usize) -> Option<usize> {
        loop {
            let class = self.flagged.next(from)?;
            if !self.filled.contains(class) {
                return Some(class);
            }
            from = class + 1;
        }
    }

    /// A run of at least `count` sectors from a class that has shorter ones
    /// too, looking at no more than `tries` right candidates.
    fn fit_among(&mut self, class: usize, count: u32, tries: usize, bits: &Bitmap) -> Option<Fit> {
        let mut passed: SmallVec<[u32; TRIES]> = SmallVec::new();
        let mut found = None;
        while passed.len() < tries
            && let Some(fit) = self.top_checked(class, bits)
        {
            self.pop(class);
            if fit.end - fit.start >= count {
                found = Some(fit);
                break;
            }
            passed.push(fit.start);
        }
        // into chunks that were just emptied; the found one on top
        for start in passed.into_iter().rev().chain(found.map(|fit| fit.start)) {
            if self.candidates.push(class, start).is_ok() {
                self.filled.insert(class);
            } else {
                self.leave_out(class);
            }
        }
        found
    }

    /// A run of the greatest class there is: the longest below 512 sectors,
    /// within 1/64 of it above; while bins are flagged, near that. `None` when
    /// no sector is free.
    pub(crate) fn longest_fit(&mut self, bits: &Bitmap) -> Option<Fit> {
        let mut may_sweep = self.may_sweep();
        loop {
            let filled = self.filled.prev(CLASSES);
            if may_sweep {
                // a flagged class above the greatest filled one is dry
                let flagged = self.flagged.prev(CLASSES);
                if let Some(dry) = flagged.filter(|&dry| filled.is_none_or(|f| dry > f)) {
                    may_sweep = false;
                    self.sweep(dry, bits);
                    continue;
                }
            }
            let Some(class) = filled else { break };
            if let Some(fit) = self.top_checked(class, bits) {
                return Some(fit);
            }
        }
        let (start, end) = bits.next_run(0, bits.total(), 1)?;
        Some(self.unfiled(start, end))
    }

    /// The longest free run. O(candidates of its class and above), or
    /// O(words) when one of those bins is flagged.
    pub(crate) fn longest_run(&self, bits: &Bitmap) -> Option<(u32, u32)> {
        let mut before = CLASSES;
        while let Some(class) = self.filled.prev(before) {
            if self.flagged.next(class).is_some() {
                break;
            }
            let runs = self.candidates.iter(class).filter_map(|start| {
                let end = Self::checked(class, start, bits)?;
                Some((start, end))
            });
            // of equal ones the first, which does not depend on the bins' order
            let longest = runs.max_by_key(|&(start, end)| (end - start, core::cmp::Reverse(start)));
            if longest.is_some() {
                return longest;
            }
            before = class;
        }
        let (mut longest, mut from, mut least) = (None, 0, 1);
        if self.flagged.is_empty() {
            return None;
        }
        while let Some((start, end)) = bits.next_run(from, bits.total(), least) {
            (longest, from, least) = (Some((start, end)), end, end - start + 1);
        }
        longest
    }

    /// Whether no bin is flagged.
    pub(crate) fn is_complete(&self) -> bool {
        self.flagged.is_empty()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.candidates.heap_bytes()
    }

    /// Checks that every free run is in its bin or the bin flagged, and the
    /// bins in themselves. O(runs log candidates).
    pub(crate) fn verify(&self, bits: &Bitmap) -> Result<(), VerifyError> {
        let classes = self.candidates.stack_count();
        if !self.candidates.is_consistent() {
            return Err(VerifyError::Bin { class: classes, what: "chunks are lost or shared" });
        }
        let mut filed = Vec::new();
        for class in 0..CLASSES {
            let starts = self.candidates.iter(class);
            filed.extend(starts.map(|start| (class, start)));
            if self.filled.contains(class) != (self.candidates.count(class) > 0) {
                return Err(VerifyError::Bin { class, what: "filled and empty" });
            }
            if self.candidates.count(class) > self.limits.bin {
                return Err(VerifyError::Bin { class, what: "too full" });
            }
            if self.missed.contains(class) && !self.flagged.contains(class) {
                return Err(VerifyError::Bin { class, what: "missed and not flagged" });
            }
        }
        filed.sort_unstable();
        let mut from = 0;
        while let Some((start, end)) = bits.next_run(from, bits.total(), 1) {
            let class = class_of(end - start);
            let known = filed.binary_search(&(class, start)).is_ok();
            if end - start > self.longest || !known && !self.flagged.contains(class) {
                return Err(VerifyError::LostRun { run: Run::span(start, end) });
            }
            from = end;
        }
        Ok(())
    }
}

const _: () = assert!(EXACT > 0 && CLASSES <= 2048);
