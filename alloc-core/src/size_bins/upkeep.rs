//! What keeps the bins filled and within their memory: filling them from a
//! bitmap, sweeping it for bins that have run dry, dropping wrong candidates.

use super::SizeBins;
use crate::bitmap::Bitmap;
use crate::class_set::ClassSet;
use crate::size_class::{CLASSES, class_of, least_of};
use crate::stacks::ROOM;
use crate::words::BITS;

/// Candidates a bin takes before it is looked through for wrong ones the first
/// time.
pub(super) const FIRST_LIMIT: u16 = 24;
/// How far one sweep reads: 2^15 words, a quarter of a megabyte.
const SWEEP_SECTORS: u32 = 1 << 21;
/// How many runs one sweep looks at.
const SWEEP_RUNS: u32 = 4096;
/// After so many runs a sweep decides whether to go on with all lengths.
const SAMPLE_RUNS: u32 = 128;
/// What looking at a run costs, in words read.
const RUN_STEPS: u32 = 4;

impl SizeBins {
    /// Files every run, in order of address. Once the bins of the shortest
    /// lengths are full, their runs are not even looked at.
    pub(super) fn file_all(&mut self, bits: &Bitmap) {
        let room = self.candidates.max_chunks() * usize::from(ROOM);
        if bits.count_runs() as usize > room / 8 * 7 {
            // not all can be filed: some of each length, and no more of those
            let share = u16::try_from(room / 16).unwrap_or(u16::MAX);
            self.bin_limit = self.bin_limit.min(share).max(1);
        }
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
            self.limits = super::Limits::for_total(total);
            self.candidates.set_max_bytes(self.limits.bytes);
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

    /// Refills flagged bins that have run dry from a stretch of the bitmap,
    /// for the sake of bin `class`. Gives how many sectors it has covered.
    ///
    /// Where runs are few, all such bins are refilled on the way. Where there
    /// is more than one run a word, only runs from `class` on are looked at,
    /// which the bitmap finds without stopping at the others.
    #[cold]
    pub(super) fn sweep(&mut self, class: usize, bits: &Bitmap) -> u32 {
        let total = bits.total();
        if self.cursor >= total {
            self.cursor = 0;
        }
        let dry = self.flagged.without(&self.filled);
        let begin = self.cursor;
        let mut at = if bits.is_free(begin) { bits.run_start(begin) } else { begin };
        let stop = total.min(begin.saturating_add(SWEEP_SECTORS));
        // `max_chunks` fits in u32, like the sectors it stands for
        let share = self.candidates.max_chunks() / 16 * usize::from(ROOM);
        let share = u16::try_from(share).unwrap_or(u16::MAX);
        let most = share.max(self.bin_limit).min(self.limits.bin);
        let (mut least, mut runs) = (dry.next(0).unwrap_or(class), 0);
        self.missed.insert_below(least, &self.flagged);
        loop {
            let Some((start, end)) = bits.next_run(at, stop, least_of(least)) else {
                at = at.max(stop);
                break;
            };
            at = end;
            let found = class_of(end - start);
            if self.flagged.contains(found) {
                let room = dry.contains(found) && self.candidates.count(found) < most;
                if room && self.candidates.push(found, start).is_ok() {
                    self.filled.insert(found);
                } else {
                    self.missed.insert(found);
                }
            }
            runs += 1;
            if runs == SWEEP_RUNS || self.candidates.count(class) >= most {
                break;
            }
            if runs == SAMPLE_RUNS && at.saturating_sub(begin) < SAMPLE_RUNS * BITS {
                least = class;
                self.missed.insert_below(class, &self.flagged);
            }
        }
        self.cursor = at;
        let covered = at.saturating_sub(begin);
        self.debt = covered / BITS + runs * RUN_STEPS;
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
    pub(super) fn make_room_in(&mut self, class: usize, bits: &Bitmap) -> bool {
        if self.flagged.contains(class) && self.candidates.count(class) >= self.bin_limit {
            return false;
        }
        self.purge(class, bits);
        !self.candidates.is_full(class)
    }

    /// Drops the wrong and the doubled candidates of a bin, and sets its limit
    /// to three times what remains: so the next time at least two thirds of
    /// what is looked at have come since.
    pub(super) fn purge(&mut self, class: usize, bits: &Bitmap) {
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
    /// eighth is free, lowers the limit of every bin until it is. So the cost
    /// is spread over as many candidates to come.
    #[cold]
    pub(super) fn make_room(&mut self, bits: &Bitmap) {
        let classes = self.candidates.stack_count();
        let chunks = self.candidates.max_chunks();
        for class in 0..classes {
            self.purge(class, bits);
        }
        if self.candidates.chunks_used() < chunks / 4 {
            self.bin_limit = self.limits.bin.min(self.bin_limit.saturating_mul(2));
        }
        while self.candidates.chunks_left() <= chunks / 8 {
            if self.bin_limit <= ROOM {
                // a chunk for each length in use is the least that works
                let bytes = self.candidates.max_bytes();
                self.candidates.set_max_bytes(bytes + bytes / 4);
                return;
            }
            self.bin_limit = (self.bin_limit / 4 * 3).max(ROOM);
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
}

/// The limit of a bin with `count` right candidates.
fn limit_for(count: u16, bin_limit: u16) -> u16 {
    count.saturating_mul(3).max(FIRST_LIMIT).min(bin_limit)
}
