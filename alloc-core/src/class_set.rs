//! [`ClassSet`]: a set of size classes.

/// A set of size classes, all below 2048, with the least and the greatest member
/// in a few steps.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ClassSet {
    words: [u64; 32],
    /// Which of the words are not zero.
    above: u32,
}

impl ClassSet {
    pub(crate) const fn new() -> Self {
        Self { words: [0; 32], above: 0 }
    }

    #[inline]
    pub(crate) fn insert(&mut self, class: usize) {
        self.words[class / 64] |= 1 << (class % 64);
        self.above |= 1 << (class / 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, class: usize) {
        self.words[class / 64] &= !(1 << (class % 64));
        if self.words[class / 64] == 0 {
            self.above &= !(1 << (class / 64));
        }
    }

    /// The members that are not in `other`.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let mut rest = Self::new();
        let mut from = 0;
        while let Some(class) = self.next(from) {
            if !other.contains(class) {
                rest.insert(class);
            }
            from = class + 1;
        }
        rest
    }

    /// Adds the members of `other` that are below `before`.
    pub(crate) fn insert_below(&mut self, before: usize, other: &Self) {
        let mut from = 0;
        while let Some(class) = other.next(from).filter(|&class| class < before) {
            self.insert(class);
            from = class + 1;
        }
    }

    #[inline]
    pub(crate) fn contains(&self, class: usize) -> bool {
        self.words[class / 64] & (1 << (class % 64)) != 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.above == 0
    }

    /// The least member that is not below `from`, `from` being at most 2048.
    #[inline]
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let word = self.words.get(from / 64)? & (!0 << (from % 64));
        if word != 0 {
            return Some(from / 64 * 64 + word.trailing_zeros() as usize);
        }
        let above = self.above & (!1_u32 << (from / 64));
        if above == 0 {
            return None;
        }
        let at = above.trailing_zeros() as usize;
        Some(at * 64 + self.words[at].trailing_zeros() as usize)
    }

    /// The greatest member below `before`.
    pub(crate) fn prev(&self, before: usize) -> Option<usize> {
        // a cold path: at most 32 words
        (0..before.div_ceil(64)).rev().find_map(|at| {
            let keep = before - at * 64;
            let mask = if keep >= 64 { !0 } else { (1 << keep) - 1 };
            let word = self.words[at] & mask;
            (word != 0).then(|| at * 64 + 63 - word.leading_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_classes_know_their_order() {
        let members = [0, 1, 63, 64, 700, 1983, 2047];
        let mut set = ClassSet::new();
        for class in members {
            set.insert(class);
        }
        for from in 0..2048 {
            assert_eq!(set.next(from), members.iter().copied().find(|&m| m >= from));
            assert_eq!(set.prev(from), members.iter().copied().rfind(|&m| m < from));
            assert_eq!(set.contains(from), members.contains(&from));
        }
        assert_eq!((set.prev(2048), set.next(2048)), (Some(2047), None));
        for class in members {
            set.remove(class);
        }
        assert!(set.is_empty() && set.prev(2048).is_none() && set.next(0).is_none());
    }
}
