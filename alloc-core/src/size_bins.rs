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

use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::bitmap::Bitmap;
use crate::size_class::{CLASSES, EXACT, class_of, least_of};
use crate::stacks::{ClassSet, Stacks};
use crate::{Run, VerifyError};

/// Candidates a bin takes before it is looked through for wrong ones the first
/// time.
const FIRST_LIMIT: u16 = 14;
/// How far one sweep reads: 2^15 words, a quarter of a megabyte.
const SWEEP_SECTORS: u32 = 1 << 21;
/// How many runs one sweep looks at.
const SWEEP_RUNS: u32 = 2048;
/// How many candidates of a class with several lengths are tried before the
/// next class, where all of them fit.
const TRIES: usize = 8;

/// Limits on memory, chosen from the size of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Chunks of candidates in all bins together.
    pub(crate) chunks: u32,
    /// Candidates in one bin.
    pub(crate) bin: u16,
}

impl Limits {
    /// A fifth of a bit a sector for the bins and their candidates; the bitmap
    /// and its summaries take 1.033 bits. One bin takes half of the
    /// candidates at first, and less as soon as they are short: so that the
    /// many short runs of a badly fragmented device leave room for the few
    /// long ones.
    pub(crate) fn for_total(total: u32) -> Self {
        // 64 bits a bin, 256 bits a chunk; `CLASSES` is below 2048
        let bins = u32::try_from(class_of(total.max(1)) + 1).unwrap_or(u32::MAX) * 64;
        let chunks = ((total / 5).saturating_sub(bins) / 256).max(128);
        let bin = u16::try_from(chunks / 2 * 7).unwrap_or(u16::MAX - 1).min(u16::MAX - 1);
        Self { chunks, bin }
    }
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
    /// Where the next sweep goes on, and how far it is to the end of the
    /// circle.
    cursor: u32,
    circle_left: u32,
}

impl SizeBins {
    /// The bins of a device, filled from its bitmap. O(words + runs filed).
    pub(crate) fn new(bits: &Bitmap, limits: Option<Limits>) -> Self {
        let fixed_limits = limits.is_some();
        let limits = limits.unwrap_or_else(|| Limits::for_total(bits.total()));
        let mut filed = Self {
            candidates: Stacks::new(limits.chunks, FIRST_LIMIT.min(limits.bin)),
            filled: ClassSet::new(),
            flagged: ClassSet::new(),
            missed: ClassSet::new(),
            longest: 0,
            bin_limit: limits.bin,
            limits,
            fixed_limits,
            cursor: 0,
            circle_left: bits.total(),
        };
        filed.file_all(bits);
        filed
    }

    /// Files every run, in order of address. Once the bins of the shortest
    /// lengths are full, their runs are not even looked at.
    fn file_all(&mut self, bits: &Bitmap) {
        let (mut from, mut least) = (0, 1);
        while let Some((start, end)) = bits.next_run(from, bits.total(), least_of(least)) {
            let class = class_of(end - start);
            self.longest = self.longest.max(end - start);
            let full = self.candidates.count(class) >= self.bin_limit;
            if full || !self.file_in(class, start, bits) {
                self.leave_out(class);
                while self.flagged.contains(least) && least + 1 < CLASSES {
                    least += 1;
                    self.cursor = start;
                }
            }
            from = end;
        }
        for class in 0..self.candidates.stack_count() {
            let count = self.candidates.count(class);
            self.candidates.set_limit(class, limit_for(count, self.bin_limit));
        }
        self.missed = ClassSet::new();
    }

    /// Follows the device to a new size.
    pub(crate) fn resized(&mut self, total: u32) {
        if !self.fixed_limits {
            let was = self.limits.bin;
            self.limits = Limits::for_total(total);
            self.candidates.set_max_chunks(self.limits.chunks);
            if self.bin_limit == was || self.bin_limit > self.limits.bin {
                self.bin_limit = self.limits.bin;
            }
        }
        if self.flagged.is_empty() || self.cursor >= total {
            // what was missed so far counts for the new circle too
            (self.cursor, self.circle_left) = (0, total);
        } else {
            self.circle_left = self.circle_left.max(total);
        }
    }

    /// Files a maximal free run; the bitmap shows it already.
    #[inline]
    pub(crate) fn push(&mut self, start: u32, len: u32, bits: &Bitmap) {
        self.longest = self.longest.max(len);
        let class = class_of(len);
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
        if !bits.is_free(start) || start > 0 && bits.is_free(start - 1) {
            return None;
        }
        let end = bits.next_used(start);
        (class_of(end - start) == class).then_some(end)
    }

    /// The next right candidate of a bin, taken off it.
    #[inline]
    fn pop_checked(&mut self, class: usize, bits: &Bitmap) -> Option<(u32, u32)> {
        while let Some(start) = self.pop(class) {
            if let Some(end) = Self::checked(class, start, bits) {
                return Some((start, end));
            }
        }
        None
    }

    /// A free run of at least `count` sectors, `count > 0`, taken out of the
    /// bins: the shortest such run while `count` is below 512 and no bin is
    /// flagged; near the shortest otherwise. `None` proves that there is none.
    ///
    /// The caller files what it leaves of the run.
    #[inline]
    pub(crate) fn pop_fit(&mut self, count: u32, bits: &Bitmap) -> Option<(u32, u32)> {
        if count > self.longest {
            return None;
        }
        let own = class_of(count);
        let all_fit = least_of(own) == count;
        if !all_fit && let Some(run) = self.pop_fit_among(own, count, TRIES, bits) {
            return Some(run);
        }
        let mut from = if all_fit { own } else { own + 1 };
        let mut swept = self.flagged.is_empty();
        loop {
            let filled = self.filled.next(from);
            if !swept
                && let Some(dry) = self.next_dry(from).filter(|&dry| filled.is_none_or(|f| dry < f))
            {
                // one sweep a search: what it does not find waits for the next
                swept = true;
                self.sweep(dry, bits);
                continue;
            }
            let Some(class) = filled else { break };
            if let Some(run) = self.pop_checked(class, bits) {
                return Some(run);
            }
            from = class;
        }
        self.last_resort(count, own, all_fit, bits)
    }

    /// The rest of the own class, then the bitmap itself if some bin is not
    /// complete, then the proof.
    #[cold]
    fn last_resort(
        &mut self,
        count: u32,
        own: usize,
        all_fit: bool,
        bits: &Bitmap,
    ) -> Option<(u32, u32)> {
        if !all_fit && let Some(run) = self.pop_fit_among(own, count, usize::MAX, bits) {
            return Some(run);
        }
        if self.flagged.next(own).is_some() {
            let first = if all_fit { own } else { own + 1 };
            let mut left = bits.total();
            while left > 0
                && let Some(dry) = self.next_dry(first)
            {
                left = left.saturating_sub(self.sweep(dry, bits));
                while let Some(class) = self.filled.next(first) {
                    if let Some(run) = self.pop_checked(class, bits) {
                        return Some(run);
                    }
                }
            }
            if let Some((start, end)) = bits.next_run(0, bits.total(), count) {
                self.forget(start, end - start);
                return Some((start, end));
            }
            while let Some(class) = self.flagged.next(first) {
                self.flagged.remove(class);
                self.missed.remove(class);
            }
        }
        self.longest = count - 1;
        None
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
    fn pop_fit_among(
        &mut self,
        class: usize,
        count: u32,
        tries: usize,
        bits: &Bitmap,
    ) -> Option<(u32, u32)> {
        let mut short: SmallVec<[u32; TRIES]> = SmallVec::new();
        let mut found = None;
        while short.len() < tries
            && let Some((start, end)) = self.pop_checked(class, bits)
        {
            if end - start >= count {
                found = Some((start, end));
                break;
            }
            short.push(start);
        }
        while let Some(start) = short.pop() {
            // into chunks that were just emptied
            if self.candidates.push(class, start).is_ok() {
                self.filled.insert(class);
            } else {
                self.leave_out(class);
            }
        }
        found
    }

    /// A run of the greatest class there is, taken out of the bins: the
    /// longest below 512 sectors, within 1/64 of it above; while bins are
    /// flagged, near that. `None` when no sector is free.
    pub(crate) fn pop_longest(&mut self, bits: &Bitmap) -> Option<(u32, u32)> {
        let mut before = CLASSES;
        let mut swept = self.flagged.is_empty();
        loop {
            let filled = self.filled.prev(before);
            if !swept {
                // a flagged class above the greatest filled one is dry
                let flagged = self.flagged.prev(before);
                if let Some(dry) = flagged.filter(|&dry| filled.is_none_or(|f| dry > f)) {
                    swept = true;
                    self.sweep(dry, bits);
                    continue;
                }
            }
            let Some(class) = filled else { break };
            if let Some(run) = self.pop_checked(class, bits) {
                return Some(run);
            }
            before = class + 1;
        }
        let found = bits.next_run(0, bits.total(), 1);
        if let Some((start, end)) = found {
            self.forget(start, end - start);
        }
        found
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

    /// Refills flagged bins from a stretch of the bitmap, for the sake of bin
    /// `class`, which has run dry. Gives how many sectors it has covered.
    #[cold]
    fn sweep(&mut self, class: usize, bits: &Bitmap) -> u32 {
        let total = bits.total();
        if self.cursor >= total {
            self.cursor = 0;
        }
        // shorter runs are passed over
        self.missed.insert_below(class, &self.flagged);
        let begin = self.cursor;
        let mut at = if bits.is_free(begin) { bits.run_start(begin) } else { begin };
        let stop = total.min(begin.saturating_add(SWEEP_SECTORS));
        let enough = (self.bin_limit / 2).max(1);
        let mut runs_left = SWEEP_RUNS;
        loop {
            let Some((start, end)) = bits.next_run(at, stop, least_of(class)) else {
                at = at.max(stop);
                break;
            };
            at = end;
            let found = class_of(end - start);
            if self.flagged.contains(found) {
                let room = self.candidates.count(found) < enough;
                if room && self.candidates.push(found, start).is_ok() {
                    self.filled.insert(found);
                } else {
                    self.missed.insert(found);
                }
            }
            runs_left -= 1;
            if runs_left == 0 || self.candidates.count(class) >= enough {
                break;
            }
        }
        self.cursor = at;
        let covered = at.saturating_sub(begin);
        self.circle_left = self.circle_left.saturating_sub(covered);
        if self.circle_left == 0 {
            self.flagged = core::mem::replace(&mut self.missed, ClassSet::new());
            self.circle_left = total;
        }
        covered
    }

    /// Looks through a bin at its limit and drops what is wrong in it. Whether
    /// there is room then.
    #[cold]
    fn make_room_in(&mut self, class: usize, bits: &Bitmap) -> bool {
        if self.flagged.contains(class) && self.candidates.count(class) >= self.bin_limit {
            return false;
        }
        self.purge(class, bits);
        !self.candidates.is_full(class)
    }

    /// Drops the wrong and the doubled candidates of a bin, and sets its limit
    /// to twice what remains: so the next time at least half as many
    /// candidates have come as are looked at.
    fn purge(&mut self, class: usize, bits: &Bitmap) {
        let mut starts = self.candidates.take_all(class);
        starts.sort_unstable();
        starts.dedup();
        starts.retain(|&start| Self::checked(class, start, bits).is_some());
        self.filled.remove(class);
        // the lowest address on top
        for &start in starts.iter().rev() {
            if self.candidates.push(class, start).is_err() {
                self.leave_out(class);
                break;
            }
            self.filled.insert(class);
        }
        let count = self.candidates.count(class);
        self.candidates.set_limit(class, limit_for(count, self.bin_limit));
    }

    /// Makes room in the pool: drops what is wrong; then, if less than an
    /// eighth is free, lowers the limit of every bin until a quarter is. So
    /// the cost is spread over as many candidates to come.
    #[cold]
    fn make_room(&mut self, bits: &Bitmap) {
        let classes = self.candidates.stack_count();
        let chunks = self.candidates.max_chunks();
        (0..classes).for_each(|class| self.purge(class, bits));
        if self.candidates.chunks_used() < chunks / 4 {
            self.bin_limit = self.limits.bin.min(self.bin_limit.saturating_mul(2));
        }
        if self.candidates.chunks_left() > chunks / 8 {
            return;
        }
        while self.candidates.chunks_left() <= chunks / 4 {
            if self.bin_limit == 1 {
                // a chunk for each class in use: the least that works
                self.candidates.set_max_chunks(chunks + chunks / 4 + 1);
                return;
            }
            self.bin_limit /= 2;
            for class in 0..classes {
                if self.candidates.count(class) > self.bin_limit {
                    while self.candidates.count(class) > self.bin_limit {
                        self.candidates.pop(class);
                    }
                    self.leave_out(class);
                }
                let count = self.candidates.count(class);
                self.candidates.set_limit(class, limit_for(count, self.bin_limit));
            }
        }
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

/// The limit of a bin with `count` right candidates.
fn limit_for(count: u16, bin_limit: u16) -> u16 {
    count.saturating_mul(2).max(FIRST_LIMIT).min(bin_limit)
}

const _: () = assert!(EXACT > 0 && CLASSES <= 2048);
