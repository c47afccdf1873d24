//! One bit a sector, and two summary trees above: the truth about which
//! sectors are free. The only file that names bitvec.
//!
//! To whoever changes this next: bitvec is the owner of the words and nothing
//! else. Its bit-by-bit calls cost two to nine times the word kernels here, so
//! all reading and writing goes through `words()` and `words_mut()`.

use alloc::vec::Vec;

use bitvec::order::Lsb0;
use bitvec::vec::BitVec;

use crate::VerifyError;
use crate::summary::Summary;
use crate::words::{BITS, bit_of, count_ones, first_bit, starts_of, word_of, words_for};
use crate::{SectorCount, words};

/// A growing row of bits, in 64-bit words. Bits past the end are clear.
#[derive(Clone)]
pub(crate) struct Bits {
    store: BitVec<u64, Lsb0>,
}

impl Bits {
    pub(crate) fn new(len: u32, value: bool) -> Self {
        let mut store = BitVec::repeat(value, words_for(len) * BITS as usize);
        if value {
            clear_tail(store.as_raw_mut_slice(), len);
        }
        Self { store }
    }

    /// The first `len` bits of `words`; missing words are clear.
    pub(crate) fn from_words(len: u32, mut words: Vec<u64>) -> Self {
        words.resize(words_for(len), 0);
        clear_tail(&mut words, len);
        words.shrink_to_fit();
        Self { store: BitVec::from_vec(words) }
    }

    #[inline]
    pub(crate) fn words(&self) -> &[u64] {
        self.store.as_raw_slice()
    }

    #[inline]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        self.store.as_raw_mut_slice()
    }

    /// Makes the row `len` bits long. New bits are clear; bits cut off must be
    /// clear. Amortised O(bits added / 64): room grows by an eighth at a time,
    /// because doubling would cost a whole bit a sector.
    pub(crate) fn resize(&mut self, len: u32) {
        let count = words_for(len);
        if count == self.words().len() {
            return;
        }
        let mut words = core::mem::take(&mut self.store).into_vec();
        if count > words.capacity() {
            words.reserve_exact(count.max(count / 8 * 9) - words.len());
        }
        words.resize(count, 0);
        if count < words.capacity() / 2 {
            words.shrink_to_fit();
        }
        self.store = BitVec::from_vec(words);
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.store.capacity() / 8
    }
}

impl PartialEq for Bits {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl Eq for Bits {}

/// Clears the bits at and after `len`.
fn clear_tail(words: &mut [u64], len: u32) {
    if !len.is_multiple_of(BITS) {
        words[word_of(len)] &= bit_of(len) - 1;
    }
}

/// Which sectors are free: a set bit is a free sector. Bits past the last
/// sector are clear, that is used, so no run reaches over the end.
///
/// `any` flags the words with a free sector, `used` those with a used one: so
/// the next free and the next used sector are found over any distance in a
/// few steps.
#[derive(Clone)]
pub(crate) struct Bitmap {
    bits: Bits,
    any: Summary,
    used: Summary,
    total: u32,
}

impl Bitmap {
    pub(crate) fn new(total: u32, free: bool) -> Self {
        Self::over(Bits::new(total, free), total)
    }

    /// From words whose set bits are the free sectors.
    pub(crate) fn from_words(total: u32, words: Vec<u64>) -> Self {
        Self::over(Bits::from_words(total, words), total)
    }

    fn over(bits: Bits, total: u32) -> Self {
        let flags = |flag: fn(u64) -> bool| {
            let groups = bits.words().chunks(64);
            let sum = |group: &[u64]| {
                let words = group.iter().enumerate();
                words.fold(0, |sum, (i, &word)| sum | u64::from(flag(word)) << i)
            };
            Summary::from_flags(groups.map(sum).collect())
        };
        let (any, used) = (flags(|word| word != 0), flags(|word| word != !0));
        Self { bits, any, used, total }
    }

    #[inline]
    pub(crate) fn total(&self) -> u32 {
        self.total
    }

    pub(crate) fn words(&self) -> &[u64] {
        self.bits.words()
    }

    /// Whether the sector is free; `false` past the end.
    #[inline]
    pub(crate) fn is_free(&self, at: u32) -> bool {
        self.bits.words().get(word_of(at)).is_some_and(|word| word & bit_of(at) != 0)
    }

    pub(crate) fn count_free(&self, start: u32, end: u32) -> u32 {
        count_ones(self.bits.words(), start, end)
    }

    /// How many maximal runs of free sectors there are. O(total / 64).
    pub(crate) fn count_runs(&self) -> u32 {
        let mut before = 0;
        let starts = self.bits.words().iter().map(|&word| {
            let starts = word & !(word << 1 | before);
            before = word >> 63;
            starts.count_ones()
        });
        starts.sum()
    }

    /// The first used sector at or after `from`; `total` when there is none.
    #[inline]
    pub(crate) fn next_used(&self, from: u32) -> u32 {
        if from >= self.total {
            return self.total;
        }
        let words = self.bits.words();
        let here = !words[word_of(from)] >> (from % BITS);
        if here != 0 {
            return from + here.trailing_zeros();
        }
        self.run_end_from(word_of(from) + 1)
    }

    /// The first used sector in word `at` or a later one; `total` when there
    /// is none. Most runs end in the next word, which is at hand.
    #[inline]
    fn run_end_from(&self, at: usize) -> u32 {
        let words = self.bits.words();
        let Some(word) = words.get(at) else { return self.total };
        if *word != !0 {
            return first_bit(at) + word.trailing_ones();
        }
        match self.used.next(at + 1) {
            Some(word) => first_bit(word) + words[word].trailing_ones(),
            None => self.total,
        }
    }

    /// The first free sector at or after `from`; `total` when there is none.
    #[inline]
    pub(crate) fn next_free(&self, from: u32) -> u32 {
        if from >= self.total {
            return self.total;
        }
        let words = self.bits.words();
        let here = words[word_of(from)] >> (from % BITS);
        if here != 0 {
            return from + here.trailing_zeros();
        }
        let next = word_of(from) + 1;
        if let Some(word) = words.get(next).filter(|word| **word != 0) {
            return first_bit(next) + word.trailing_zeros();
        }
        match self.any.next(next) {
            Some(word) => first_bit(word) + words[word].trailing_zeros(),
            None => self.total,
        }
    }

    /// Where the free run begins that holds `at`, a free sector.
    #[inline]
    pub(crate) fn run_start(&self, at: u32) -> u32 {
        let words = self.bits.words();
        let below = !words[word_of(at)] << (63 - at % BITS);
        if below != 0 {
            return at + 1 - below.leading_zeros();
        }
        let Some(before) = word_of(at).checked_sub(1) else { return 0 };
        if words[before] != !0 {
            return first_bit(before) + BITS - words[before].leading_ones();
        }
        match self.used.prev(before) {
            Some(word) => first_bit(word) + BITS - words[word].leading_ones(),
            None => 0,
        }
    }

    /// Where the run of free sectors begins that ends before `end`; `end` when
    /// the sector before is used.
    ///
    /// Asks nothing but "is that in this word?", which is mostly so: whether a
    /// neighbour is free is a coin toss, and a branch on it a loss.
    #[inline]
    pub(crate) fn run_start_before(&self, end: u32) -> u32 {
        let words = self.bits.words();
        if !end.is_multiple_of(BITS) {
            let used = !words[word_of(end)] << (BITS - end % BITS);
            if used != 0 {
                return end - used.leading_zeros();
            }
        }
        let Some(before) = word_of(end).checked_sub(1) else { return 0 };
        if words[before] != !0 {
            return first_bit(before) + BITS - words[before].leading_ones();
        }
        match self.used.prev(before) {
            Some(word) => first_bit(word) + BITS - words[word].leading_ones(),
            None => 0,
        }
    }

    /// Makes the used sectors `start..end` free, `start < end <= total`, and
    /// gives the ends of the free run they are in then.
    ///
    /// If one of them is free, gives the first such and changes nothing.
    #[inline]
    pub(crate) fn give(&mut self, start: u32, end: u32) -> Result<(u32, u32), u32> {
        let (first, last) = (word_of(start), word_of(end - 1));
        let (head, tail) = (!0 << (start % BITS), !0 >> (63 - (end - 1) % BITS));
        let free = match &self.bits.words()[first..=last] {
            [word] => word & head & tail,
            [before, .., after] => before & head | after & tail,
            [] => 0,
        };
        if free != 0 || self.any.has_any(first + 1, last) {
            return Err(self.next_free(start));
        }
        let (before, after) = (self.run_start_before(start), self.next_used(end));
        self.set_free(start, end);
        Ok((before, after))
    }

    /// Where the run ends that begins at `start`, if a maximal free run does.
    #[inline]
    pub(crate) fn run_from(&self, start: u32) -> Option<u32> {
        let words = self.bits.words();
        let at = word_of(start);
        let word = *words.get(at)?;
        let before = match start % BITS {
            0 => at > 0 && words[at - 1] >> 63 == 1,
            bit => word >> (bit - 1) & 1 == 1,
        };
        // two words, so that most runs end within; zeros are shifted in, and
        // what lies past the device is used
        let next = words.get(at + 1).copied().unwrap_or(0);
        let here = (u128::from(next) << BITS | u128::from(word)) >> (start % BITS);
        if here & 1 == 0 || before {
            return None;
        }
        let ones = here.trailing_ones();
        if ones < 2 * BITS - start % BITS {
            return Some(start + ones);
        }
        Some(self.run_end_from(at + 2))
    }

    /// Makes `start..end` free. `start < end <= total`.
    #[inline]
    pub(crate) fn set_free(&mut self, start: u32, end: u32) {
        let (first, last) = (word_of(start), word_of(end - 1));
        let (head, tail) = (!0 << (start % BITS), !0 >> (63 - (end - 1) % BITS));
        let words = &mut self.bits.words_mut()[first..=last];
        // Flags are touched only where they change: they are far from the
        // words, and reading them costs as much as all the rest.
        let (was_empty, full_from, full_end) = match words {
            [word] => {
                let was = *word;
                *word |= head & tail;
                (was == 0, first + usize::from(*word != !0), last + 1)
            }
            [before, middle @ .., after] => {
                let was_empty = *before == 0 || *after == 0 || !middle.is_empty();
                *before |= head;
                fill(middle, !0);
                *after |= tail;
                (was_empty, first + usize::from(*before != !0), last + usize::from(*after == !0))
            }
            [] => return,
        };
        if was_empty {
            self.any.set_range(first, last + 1);
        }
        self.used.clear_range(full_from, full_end);
    }

    /// Makes `start..end` used. `start < end <= total`.
    #[inline]
    pub(crate) fn set_used(&mut self, start: u32, end: u32) {
        let (first, last) = (word_of(start), word_of(end - 1));
        let (head, tail) = (!0 << (start % BITS), !0 >> (63 - (end - 1) % BITS));
        let words = &mut self.bits.words_mut()[first..=last];
        let (was_full, empty_from, empty_end) = match words {
            [word] => {
                let was = *word;
                *word &= !(head & tail);
                (was == !0, first + usize::from(*word != 0), last + 1)
            }
            [before, middle @ .., after] => {
                let was_full = *before == !0 || *after == !0 || !middle.is_empty();
                *before &= !head;
                fill(middle, 0);
                *after &= !tail;
                (was_full, first + usize::from(*before != 0), last + usize::from(*after == 0))
            }
            [] => return,
        };
        if was_full {
            self.used.set_range(first, last + 1);
        }
        self.any.clear_range(empty_from, empty_end);
    }

    /// The first run of at least `min` free sectors, `min > 0`, that begins at
    /// or after `from` and before `stop`; sectors before `from` count as used.
    /// Reads each word once, and skips full and empty stretches.
    pub(crate) fn next_run(&self, from: u32, stop: u32, min: u32) -> Option<(u32, u32)> {
        let words = self.bits.words();
        let mut at = word_of(from);
        let mut word = words.get(at)? & (!0 << (from % BITS));
        // where the run began that reaches the end of the word before
        let mut open = first_bit(at);
        loop {
            let first = first_bit(at);
            if word == !0 {
                // the run goes on to the next word that has a used sector
                match self.used.next(at + 1) {
                    Some(next) => (at, word) = (next, words[next]),
                    None => return (self.total - open >= min).then_some((open, self.total)),
                }
                continue;
            }
            let lead = word.trailing_ones();
            if first + lead - open >= min {
                return Some((open, first + lead));
            }
            if min < BITS {
                let starts = starts_of(word & (!0 << lead), min);
                if starts != 0 {
                    let start = first + starts.trailing_zeros();
                    return (start < stop).then(|| (start, self.next_used(start)));
                }
            }
            let tail = word.leading_ones();
            at += 1;
            if tail == 0 {
                at = self.any.next(at)?;
                open = first_bit(at);
            } else {
                open = first + BITS - tail;
                if at == words.len() {
                    return (open < stop && self.total - open >= min).then_some((open, self.total));
                }
            }
            if open >= stop {
                return None;
            }
            word = words[at];
        }
    }

    /// Adds free sectors at the end. Amortised O(sectors added / 64).
    pub(crate) fn grow(&mut self, total: u32) {
        let (old, count) = (self.total, words_for(total));
        if total == old {
            return;
        }
        let before = self.bits.words().len();
        if count != before {
            self.bits.resize(total);
            self.any.resize(count);
            self.used.resize(count);
            self.used.set_range(before, count);
        }
        self.total = total;
        self.set_free(old, total);
    }

    /// Cuts sectors off at the end.
    pub(crate) fn shrink(&mut self, total: u32) {
        if total == self.total {
            return;
        }
        self.set_used(total, self.total);
        self.total = total;
        let (before, count) = (self.bits.words().len(), words_for(total));
        self.used.clear_range(count, before);
        self.bits.resize(total);
        self.any.resize(count);
        self.used.resize(count);
        if count < before / 2 {
            self.any.shrink_to_fit();
            self.used.shrink_to_fit();
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.bits.heap_bytes() + self.any.heap_bytes() + self.used.heap_bytes()
    }

    /// Checks the dead bits and both trees against the words.
    pub(crate) fn verify(&self) -> Result<(), VerifyError> {
        let words = self.bits.words();
        let total = SectorCount::new(self.total);
        let dead = match self.total % BITS {
            0 => 0,
            live => words.last().map_or(0, |word| word >> live),
        };
        if words.len() != words_for(self.total) || dead != 0 {
            return Err(VerifyError::DeadBit { total });
        }
        for (tree, name) in [(&self.any, "any"), (&self.used, "used")] {
            let right = |word: u64| if name == "any" { word != 0 } else { word != !0 };
            let wrong = |&i: &usize| tree.get(i) != right(words[i]);
            if let Some(word) = (0..words.len()).find(wrong) {
                return Err(VerifyError::Summary { tree: name, level: 0, word });
            }
            if let Some((level, word)) = tree.first_wrong() {
                return Err(VerifyError::Summary { tree: name, level, word });
            }
        }
        let tail = words::next_one(words, self.total);
        if tail.is_some() { Err(VerifyError::DeadBit { total }) } else { Ok(()) }
    }
}

/// Sets all words. Most runs span few words, for which a call of `memset` is
/// the larger part of the cost.
#[inline]
fn fill(words: &mut [u64], value: u64) {
    match words {
        [] => {}
        [a] => *a = value,
        [a, b] => (*a, *b) = (value, value),
        [a, b, c] => (*a, *b, *c) = (value, value, value),
        _ => words.fill(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximal runs of at least `min`, a bit at a time.
    fn slow_runs(bits: &[bool], min: u32) -> Vec<(u32, u32)> {
        let mut runs = Vec::new();
        let mut start = None;
        for (at, free) in (0..).zip(bits.iter().copied().chain([false])) {
            match (start, free) {
                (None, true) => start = Some(at),
                (Some(begun), false) => {
                    if at - begun >= min {
                        runs.push((begun, at));
                    }
                    start = None;
                }
                _ => {}
            }
        }
        runs
    }

    fn fast_runs(map: &Bitmap, min: u32) -> Vec<(u32, u32)> {
        let mut runs = Vec::new();
        let mut from = 0;
        while let Some(run) = map.next_run(from, map.total(), min) {
            runs.push(run);
            from = run.1;
        }
        runs
    }

    fn compare(map: &Bitmap, slow: &[bool]) {
        map.verify().unwrap();
        assert_eq!(map.count_runs() as usize, slow_runs(slow, 1).len());
        for min in [1, 2, 3, 31, 32, 33, 62, 63, 64, 65, 127, 128, 129, 200] {
            assert_eq!(fast_runs(map, min), slow_runs(slow, min), "runs of {min}");
        }
        for (start, end) in slow_runs(slow, 1) {
            for at in [start, start + (end - start) / 2, end - 1] {
                assert_eq!((map.run_start(at), map.next_used(at)), (start, end));
            }
            assert_eq!(
                (map.next_free(end), map.run_start_before(end)),
                (slow_next(slow, end), start)
            );
        }
    }

    fn slow_next(bits: &[bool], from: u32) -> u32 {
        let found = (from as usize..bits.len()).find(|&i| bits[i]).unwrap_or(bits.len());
        u32::try_from(found).unwrap()
    }

    #[test]
    fn every_length_at_every_place_is_found() {
        for len in [1, 62, 63, 64, 65, 66, 126, 127, 128, 129, 190] {
            for start in 0..130 {
                for end_gap in [0, 1, 7] {
                    let total = start + len + end_gap;
                    let mut map = Bitmap::new(total, false);
                    let mut slow = alloc::vec![false; total as usize];
                    map.set_free(start, start + len);
                    slow[start as usize..(start + len) as usize].fill(true);
                    compare(&map, &slow);
                }
            }
        }
    }

    #[test]
    fn a_run_is_cut_where_the_search_begins_and_not_where_it_stops() {
        let map = Bitmap::new(1000, true);
        assert_eq!(map.next_run(100, 200, 5), Some((100, 1000)));
        assert_eq!(map.next_run(64, 200, 936), Some((64, 1000)));
        assert_eq!(map.next_run(65, 200, 936), None);
        let mut map = Bitmap::new(1000, false);
        map.set_free(127, 300);
        assert_eq!(map.next_run(0, 128, 150), Some((127, 300)));
        assert_eq!(map.next_run(0, 127, 150), None);
    }

    #[test]
    fn sets_grows_and_shrinks_agree_with_one_bit_at_a_time() {
        let (mut map, mut slow) = (Bitmap::new(0, true), Vec::new());
        let mut seed = 1_u32;
        let mut next = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) % below
        };
        for step in 0..400 {
            let total = map.total();
            let start = next(total + 1);
            let end = start + next((total - start).min(300) + 1);
            match step % 4 {
                0 => {
                    let total = total + next(90);
                    map.grow(total);
                    slow.resize(total as usize, true);
                }
                1 if step % 12 == 1 => {
                    let total = total - next(total.min(70) + 1);
                    map.shrink(total);
                    slow.truncate(total as usize);
                }
                2 if start < end => {
                    map.set_free(start, end);
                    slow[start as usize..end as usize].fill(true);
                }
                _ if start < end => {
                    map.set_used(start, end);
                    slow[start as usize..end as usize].fill(false);
                }
                _ => {}
            }
            compare(&map, &slow);
        }
    }

    #[test]
    fn room_for_growth_stays_near_an_eighth() {
        let mut map = Bitmap::new(1 << 16, true);
        for total in (1 << 16)..(1 << 18) {
            map.grow(total + 1);
        }
        map.verify().unwrap();
        let bits = map.heap_bytes() * 8;
        assert!(bits < (1 << 18) * 6 / 5, "{bits} bits for {}", 1 << 18);
    }
}
