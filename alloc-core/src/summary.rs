//! [`Summary`]: a 64-ary tree over flags, to jump to the next or previous set
//! one in as many steps as there are levels.

use alloc::vec;
use alloc::vec::Vec;

/// Flags, with one bit above each 64 that says "one of them is set", and so on
/// up to a single word. 1.6 % more bits than the flags themselves.
///
/// The levels above the flags are touched only when a word of flags becomes
/// zero or stops being zero.
#[derive(Clone)]
pub(crate) struct Summary {
    /// The flags.
    flags: Vec<u64>,
    /// Level above level; the last one is one word. Empty when `flags` is one
    /// word or none.
    upper: Vec<Vec<u64>>,
}

const fn bit(at: usize) -> u64 {
    1 << (at % 64)
}

/// Bits `start..=last` of the word that holds them all.
fn mask(start: usize, last: usize) -> u64 {
    (!0 << (start % 64)) & (!0 >> (63 - last % 64))
}

impl Summary {
    /// The tree over these flags.
    pub(crate) fn from_flags(flags: Vec<u64>) -> Self {
        let mut upper: Vec<Vec<u64>> = Vec::new();
        while let Some(level) = next_level(upper.last().unwrap_or(&flags)) {
            upper.push(level);
        }
        Self { flags, upper }
    }

    /// Word `at` of the flags has stopped being zero.
    fn set_above(&mut self, mut at: usize) {
        for level in &mut self.upper {
            let was = level[at / 64];
            level[at / 64] |= bit(at);
            if was != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// Word `at` of the flags has become zero.
    fn clear_above(&mut self, mut at: usize) {
        for level in &mut self.upper {
            level[at / 64] &= !bit(at);
            if level[at / 64] != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// Whether one of the flags `start..end` is set.
    #[inline]
    pub(crate) fn has_any(&self, start: usize, end: usize) -> bool {
        start < end && self.next(start).is_some_and(|at| at < end)
    }

    /// Sets the flags `start..end`.
    #[inline]
    pub(crate) fn set_range(&mut self, start: usize, end: usize) {
        if start >= end {
            return;
        }
        if start / 64 == (end - 1) / 64 {
            let word = &mut self.flags[start / 64];
            let was = *word;
            *word |= mask(start, end - 1);
            if was == 0 {
                self.set_above(start / 64);
            }
        } else {
            self.set_long_range(start, end);
        }
    }

    fn set_long_range(&mut self, mut start: usize, mut end: usize) {
        for level in core::iter::once(&mut self.flags).chain(&mut self.upper) {
            fill(level, start, end - 1, true);
            (start, end) = (start / 64, (end - 1) / 64 + 1);
        }
    }

    /// Clears the flags `start..end`.
    #[inline]
    pub(crate) fn clear_range(&mut self, start: usize, end: usize) {
        if start >= end {
            return;
        }
        if start / 64 == (end - 1) / 64 {
            let word = &mut self.flags[start / 64];
            *word &= !mask(start, end - 1);
            if *word == 0 {
                self.clear_above(start / 64);
            }
        } else {
            self.clear_long_range(start, end);
        }
    }

    fn clear_long_range(&mut self, mut start: usize, mut end: usize) {
        for level in core::iter::once(&mut self.flags).chain(&mut self.upper) {
            if start >= end {
                return;
            }
            fill(level, start, end - 1, false);
            // words inside the range are zero now; those at its edges may not be
            let (first, last) = (start / 64, (end - 1) / 64);
            start = if level[first] == 0 { first } else { first + 1 };
            end = if level[last] == 0 { last + 1 } else { last };
        }
    }

    /// The first set flag at or after `from`.
    #[inline]
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let word = self.flags.get(from / 64)? & (!0 << (from % 64));
        if word != 0 {
            return Some(from / 64 * 64 + word.trailing_zeros() as usize);
        }
        self.next_above(from / 64 + 1)
    }

    /// The first set flag in word `at` of the flags or a later one.
    fn next_above(&self, mut at: usize) -> Option<usize> {
        for (height, level) in self.upper.iter().enumerate() {
            let word = level.get(at / 64)? & (!0 << (at % 64));
            if word != 0 {
                let mut at = at / 64 * 64 + word.trailing_zeros() as usize;
                for level in self.upper[..height].iter().rev() {
                    at = at * 64 + level[at].trailing_zeros() as usize;
                }
                return Some(at * 64 + self.flags[at].trailing_zeros() as usize);
            }
            at = at / 64 + 1;
        }
        None
    }

    /// The last set flag before `before`.
    #[inline]
    pub(crate) fn prev(&self, before: usize) -> Option<usize> {
        let at = before.checked_sub(1)?;
        let word = self.flags[at / 64] & (!0 >> (63 - at % 64));
        if word != 0 {
            return Some(at / 64 * 64 + 63 - word.leading_zeros() as usize);
        }
        self.prev_above(at / 64)
    }

    /// The last set flag in a word of the flags before word `before`.
    fn prev_above(&self, mut before: usize) -> Option<usize> {
        for (height, level) in self.upper.iter().enumerate() {
            let at = before.checked_sub(1)?;
            let word = level[at / 64] & (!0 >> (63 - at % 64));
            if word != 0 {
                let mut at = at / 64 * 64 + 63 - word.leading_zeros() as usize;
                for level in self.upper[..height].iter().rev() {
                    at = at * 64 + 63 - level[at].leading_zeros() as usize;
                }
                return Some(at * 64 + 63 - self.flags[at].leading_zeros() as usize);
            }
            before = at / 64;
        }
        None
    }

    /// Makes the tree `len` flags long. New flags are clear; flags cut off
    /// must be clear. Amortised O(flags added / 64).
    pub(crate) fn resize(&mut self, len: usize) {
        let mut words = len.div_ceil(64);
        self.flags.resize(words, 0);
        for height in 0.. {
            if words <= 1 {
                self.upper.truncate(height);
                return;
            }
            words = words.div_ceil(64);
            if let Some(level) = self.upper.get_mut(height) {
                level.resize(words, 0);
            } else {
                let below = if height == 0 { &self.flags } else { &self.upper[height - 1] };
                self.upper.push(summed(below));
            }
        }
    }

    /// Gives back memory that is not needed after a large shrink.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.flags.shrink_to_fit();
        self.upper.iter_mut().for_each(Vec::shrink_to_fit);
    }

    /// Whether the flag is set.
    pub(crate) fn get(&self, at: usize) -> bool {
        self.flags[at / 64] & bit(at) != 0
    }

    /// The level and word of the first summary that is wrong.
    pub(crate) fn first_wrong(&self) -> Option<(usize, usize)> {
        let mut below = &self.flags;
        for (height, level) in self.upper.iter().enumerate() {
            let right = summed(below);
            if let Some(word) = (0..right.len()).find(|&i| level.get(i) != Some(&right[i])) {
                return Some((height + 1, word));
            }
            below = level;
        }
        (below.len() > 1).then_some((self.upper.len(), 0))
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let words: usize = self.upper.iter().map(Vec::capacity).sum();
        (words + self.flags.capacity()) * 8 + self.upper.capacity() * size_of::<Vec<u64>>()
    }
}

/// The level above `below`, if there is to be one.
fn next_level(below: &[u64]) -> Option<Vec<u64>> {
    (below.len() > 1).then(|| summed(below))
}

/// A word of `below` a bit.
fn summed(below: &[u64]) -> Vec<u64> {
    let mut level = vec![0; below.len().div_ceil(64)];
    for (at, _) in below.iter().enumerate().filter(|(_, word)| **word != 0) {
        level[at / 64] |= bit(at);
    }
    level
}

/// Sets or clears bits `start..=last`.
fn fill(words: &mut [u64], start: usize, last: usize, set: bool) {
    let mut change = |at: usize, mask: u64| {
        if set {
            words[at] |= mask;
        } else {
            words[at] &= !mask;
        }
    };
    if start / 64 == last / 64 {
        change(start / 64, mask(start, last));
    } else {
        change(start / 64, mask(start, start | 63));
        change(last / 64, mask(last & !63, last));
        words[start / 64 + 1..last / 64].fill(if set { !0 } else { 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every answer of the tree against a plain vector of flags.
    fn compare(tree: &Summary, slow: &[bool]) {
        assert_eq!(tree.first_wrong(), None);
        let step = (slow.len() / 50).max(1);
        for at in (0..slow.len()).step_by(step).chain([slow.len() - 1]) {
            assert_eq!(tree.get(at), slow[at]);
            let next = slow[at..].iter().position(|&flag| flag).map(|i| at + i);
            assert_eq!(tree.next(at), next, "next from {at}");
            assert_eq!(tree.prev(at), slow[..at].iter().rposition(|&flag| flag), "prev of {at}");
        }
    }

    #[test]
    fn ranges_and_single_flags_agree_with_a_plain_vector() {
        for len in [1_usize, 63, 64, 65, 4096, 4097, 300_000] {
            let (mut tree, mut slow) =
                (Summary::from_flags(vec![0; len.div_ceil(64)]), vec![false; len]);
            let mut seed = len;
            for step in 0..40 {
                seed = seed.wrapping_mul(0x5851_F42D).wrapping_add(0x1405_7B7E) % (1 << 40);
                let start = seed % len;
                let end = (start + 1 + (seed >> 20) % (len / 3 + 1)).min(len);
                if step % 2 == 0 {
                    tree.set_range(start, end);
                } else {
                    tree.clear_range(start, end);
                }
                slow[start..end].fill(step % 2 == 0);
                compare(&tree, &slow);
                tree.set_range(start, start + 1);
                slow[start] = true;
                tree.clear_range(end - 1, end);
                slow[end - 1] = false;
                compare(&tree, &slow);
            }
        }
    }

    #[test]
    fn growing_flag_by_flag_adds_levels_that_know_the_old_flags() {
        let mut tree = Summary::from_flags(Vec::new());
        let mut slow = Vec::new();
        for len in 1..=5000 {
            tree.resize(len);
            slow.push(len % 1500 == 1);
            if slow[len - 1] {
                tree.set_range(len - 1, len);
            }
            if len % 500 == 0 {
                compare(&tree, &slow);
            }
        }
        for len in (1..5000).rev() {
            tree.clear_range(len, len + 1);
            tree.resize(len);
            slow.truncate(len);
            if len % 500 == 1 {
                compare(&tree, &slow);
            }
        }
    }
}
