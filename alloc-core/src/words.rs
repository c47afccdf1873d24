//! Searches and fills over bits in 64-bit words, a word at a time.
//!
//! Bit `i` is bit `i % 64` of word `i / 64`. Positions are `u32`, as sector
//! indices are. Nothing here knows what a set bit means.

/// Bits in a word.
pub(crate) const BITS: u32 = u64::BITS;

/// Index of the word with bit `at`.
#[inline]
pub(crate) const fn word_of(at: u32) -> usize {
    (at / BITS) as usize
}

/// Bit `at` within its word.
#[inline]
pub(crate) const fn bit_of(at: u32) -> u64 {
    1 << (at % BITS)
}

/// How many words hold `bits` bits.
#[inline]
pub(crate) const fn words_for(bits: u32) -> usize {
    bits.div_ceil(BITS) as usize
}

/// The first bit of word `word`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "words hold at most u32::MAX bits in all")]
pub(crate) const fn first_bit(word: usize) -> u32 {
    (word as u32) * BITS
}

/// The bits of word `word` that lie in `start..end`, which touches that word.
#[inline]
fn mask(word: usize, start: u32, end: u32) -> u64 {
    let mut mask = !0;
    if word_of(start) == word {
        mask &= !0 << (start % BITS);
    }
    if word_of(end) == word {
        // not reached when `end` is the first bit of the word
        mask &= bit_of(end) - 1;
    }
    mask
}

/// Calls `change` with each word that `start..end` touches, and the bits of it
/// that lie in the range. A full mask for all words in between.
#[inline]
pub(crate) fn for_each_word(
    words: &mut [u64],
    start: u32,
    end: u32,
    mut change: impl FnMut(usize, &mut u64, u64),
) {
    if start >= end {
        return;
    }
    let (first, last) = (word_of(start), word_of(end - 1));
    for (i, word) in words[first..=last].iter_mut().enumerate() {
        change(first + i, word, mask(first + i, start, end));
    }
}

/// How many bits of `start..end` are set.
pub(crate) fn count_ones(words: &[u64], start: u32, end: u32) -> u32 {
    if start >= end {
        return 0;
    }
    let (first, last) = (word_of(start), word_of(end - 1));
    let masked = |i: usize| words[i] & mask(i, start, end);
    (first..=last).map(|i| masked(i).count_ones()).sum()
}

/// The first set bit at or after `from`.
pub(crate) fn next_one(words: &[u64], from: u32) -> Option<u32> {
    let first = word_of(from);
    let mut word = words.get(first)? & (!0 << (from % BITS));
    let mut at = first;
    while word == 0 {
        at += 1;
        word = *words.get(at)?;
    }
    Some(first_bit(at) + word.trailing_zeros())
}

/// The first clear bit at or after `from`; `None` when all words to the end
/// are full.
pub(crate) fn next_zero(words: &[u64], from: u32) -> Option<u32> {
    let first = word_of(from);
    let mut word = !words.get(first)? & (!0 << (from % BITS));
    let mut at = first;
    while word == 0 {
        at += 1;
        word = !*words.get(at)?;
    }
    Some(first_bit(at) + word.trailing_zeros())
}

/// The bits of `word` at which `count` set bits in a row begin, all within the
/// word; `count` is 1 to 64.
#[inline]
pub(crate) const fn starts_of(word: u64, count: u32) -> u64 {
    // After a step, a bit of `starts` says that `have` set bits begin there;
    // two such stretches `step <= have` apart make one of `have + step`.
    let (mut starts, mut have) = (word, 1);
    while have < count && starts != 0 {
        let step = if count - have < have { count - have } else { have };
        starts &= starts >> step;
        have += step;
    }
    starts
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// The same question a bit at a time, sharing no code with the kernels.
    fn bits(words: &[u64]) -> Vec<bool> {
        words.iter().flat_map(|w| (0..64).map(move |b| (w >> b) % 2 == 1)).collect()
    }

    fn samples() -> Vec<Vec<u64>> {
        let mut all = Vec::from([Vec::from([0; 3]), Vec::from([!0; 3])]);
        for zero in [0, 1, 62, 63] {
            all.push(Vec::from([!0, !(1 << zero), !0]));
            all.push(Vec::from([0, 1 << zero, 0]));
        }
        let mut x = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..20 {
            let mut next = || {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                x
            };
            all.push((0..3).map(|_| next() & next()).collect());
            all.push((0..3).map(|_| next() | next() | next()).collect());
        }
        all
    }

    #[test]
    fn searches_agree_with_one_bit_at_a_time() {
        for words in samples() {
            let bits = bits(&words);
            for from in 0..200_u32 {
                let rest = bits.get(from as usize..).unwrap_or(&[]);
                let find = |bit| rest.iter().position(|&b| b == bit).map(|i| from as usize + i);
                assert_eq!(next_one(&words, from).map(|i| i as usize), find(true));
                assert_eq!(next_zero(&words, from).map(|i| i as usize), find(false));
            }
        }
    }

    #[test]
    fn fills_and_counts_agree_with_one_bit_at_a_time() {
        for words in samples() {
            for (start, end) in [(0, 0), (0, 64), (5, 6), (63, 65), (64, 128), (1, 192), (70, 70)] {
                let mut real = words.clone();
                for_each_word(&mut real, start, end, |_, word, mask| *word ^= mask);
                let mut slow = bits(&words);
                let range = start as usize..end as usize;
                let ones = slow[range.clone()].iter().filter(|&&b| b).count();
                assert_eq!(count_ones(&words, start, end) as usize, ones);
                slow[range].iter_mut().for_each(|b| *b = !*b);
                assert_eq!(bits(&real), slow, "{start}..{end}");
            }
        }
    }

    #[test]
    fn starts_of_runs_agree_with_one_bit_at_a_time() {
        for word in samples().concat() {
            let bits = bits(&[word]);
            for count in 1..=64 {
                let starts = starts_of(word, count);
                for at in 0..64_usize {
                    let run = bits.get(at..at + count as usize);
                    let slow = run.is_some_and(|run| run.iter().all(|&b| b));
                    assert_eq!((starts >> at) % 2 == 1, slow, "{word:#x} {count} {at}");
                }
            }
        }
    }
}
