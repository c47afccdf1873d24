//! Lengths of runs as classes: one class a length below 512 sectors, 64
//! classes an octave above.
//!
//! Best fit is exact where most requests are, and within 1/64 above; and
//! 1,984 classes cover all lengths.

/// Below this, each length is a class of its own.
pub(crate) const EXACT: u32 = 512;
/// log2 of the classes an octave has.
const STEPS_LOG2: u32 = 6;
/// log2 of [`EXACT`].
const EXACT_LOG2: u32 = EXACT.ilog2();
/// Number of classes: 512, and 64 for each of the 23 octaves from 2^9 on.
pub(crate) const CLASSES: usize = (EXACT + ((32 - EXACT_LOG2) << STEPS_LOG2)) as usize;

/// The class of runs of `len` sectors, `len > 0`.
#[inline]
pub(crate) const fn class_of(len: u32) -> usize {
    if len < EXACT {
        return len as usize;
    }
    let octave = len.ilog2();
    let step = (len >> (octave - STEPS_LOG2)) - (1 << STEPS_LOG2);
    (EXACT + ((octave - EXACT_LOG2) << STEPS_LOG2) + step) as usize
}

/// The least length of a class.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a class is below 2048")]
pub(crate) const fn least_of(class: usize) -> u32 {
    let class = class as u32;
    if class < EXACT {
        return class;
    }
    let octave = EXACT_LOG2 + ((class - EXACT) >> STEPS_LOG2);
    let step = (class - EXACT) & ((1 << STEPS_LOG2) - 1);
    ((1 << STEPS_LOG2) + step) << (octave - STEPS_LOG2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_rise_with_the_length_and_begin_at_their_least() {
        for class in 1..CLASSES {
            let least = least_of(class);
            assert_eq!(class_of(least), class);
            assert_eq!(class_of(least - 1), class - 1, "before {least}");
        }
        assert_eq!(class_of(u32::MAX), CLASSES - 1);
    }

    #[test]
    fn short_lengths_have_classes_of_their_own() {
        for len in 1..EXACT {
            assert_eq!(class_of(len), len as usize);
        }
        assert_eq!((class_of(512), class_of(519), class_of(520)), (512, 512, 513));
    }
}
