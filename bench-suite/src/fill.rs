//! Devices in a known state: how many sectors, how full, and how the free
//! sectors lie.

use std::fmt;

use crate::rng::Rng;

/// A device of 2^20 sectors.
pub const ONE_M: u32 = 1 << 20;
/// A device of 2^24 sectors.
pub const SIXTEEN_M: u32 = 1 << 24;

/// Median length of a free run on a clustered device, in sectors, and of an
/// object in the churn.
pub const MEDIAN_SECTORS: f64 = 64.0;
/// Deviation of the logarithm of those lengths.
pub const SIGMA: f64 = 1.2;

/// How the free sectors lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// Every sector is free or used on its own.
    Random,
    /// Log-normal free runs between log-normal used runs.
    Clustered,
}

/// One device: size, fullness, pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fill {
    /// Sectors of the device, a multiple of 64.
    pub sectors: u32,
    /// Used sectors in ten thousand.
    pub used_per_myriad: u32,
    /// How they lie.
    pub pattern: Pattern,
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}M ", self.sectors >> 20)?;
        if self.used_per_myriad == 0 {
            return f.write_str("empty");
        }
        let pattern = match self.pattern {
            Pattern::Random => "random",
            Pattern::Clustered => "clustered",
        };
        write!(f, "{} % {pattern}", f64::from(self.used_per_myriad) / 100.0)
    }
}

impl Fill {
    /// The device with nothing on it.
    pub const fn empty(sectors: u32) -> Self {
        Self { sectors, used_per_myriad: 0, pattern: Pattern::Clustered }
    }

    /// Free sectors scattered one by one.
    pub const fn random(sectors: u32, used_per_myriad: u32) -> Self {
        Self { sectors, used_per_myriad, pattern: Pattern::Random }
    }

    /// Free sectors in log-normal runs.
    pub const fn clustered(sectors: u32, used_per_myriad: u32) -> Self {
        Self { sectors, used_per_myriad, pattern: Pattern::Clustered }
    }

    /// The states every structure is measured in: empty, and 50, 90 and 99 %
    /// full, random and clustered.
    pub fn usual(sectors: u32) -> Vec<Self> {
        let mut all = vec![Self::empty(sectors)];
        for used in [5_000, 9_000, 9_900] {
            all.push(Self::random(sectors, used));
            all.push(Self::clustered(sectors, used));
        }
        all
    }

    /// [`usual`](Self::usual), and the two at 99.99 %.
    pub fn all(sectors: u32) -> Vec<Self> {
        let mut all = Self::usual(sectors);
        all.push(Self::random(sectors, 9_999));
        all.push(Self::clustered(sectors, 9_999));
        all
    }

    /// One bit a sector, lowest first, 1 = free. Takes a few ns a sector.
    ///
    /// # Panics
    ///
    /// When the number of sectors is no multiple of 64.
    ///
    /// ```
    /// use bench_suite::fill::Fill;
    /// let words = Fill::random(1 << 20, 9_000).free_words();
    /// let free: u32 = words.iter().map(|word| word.count_ones()).sum();
    /// assert_eq!(free / 1_000, 104);
    /// ```
    pub fn free_words(&self) -> Vec<u64> {
        assert!(self.sectors.is_multiple_of(64), "{} sectors are no whole words", self.sectors);
        let words = self.sectors as usize / 64;
        let mut rng = Rng::new(0xF111 + u64::from(self.used_per_myriad));
        match (self.used_per_myriad, self.pattern) {
            (0, _) => vec![u64::MAX; words],
            (used, Pattern::Random) => {
                let used = f64::from(used) / 10_000.0;
                (0..words)
                    .map(|_| (0..64).fold(0, |w, bit| w | u64::from(rng.unit() >= used) << bit))
                    .collect()
            }
            (used, Pattern::Clustered) => {
                let used = f64::from(used);
                let median_used = MEDIAN_SECTORS * used / (10_000.0 - used);
                let mut bits = vec![0; words];
                let mut at = rng.log_normal(median_used, SIGMA);
                while at < self.sectors {
                    let free = rng.log_normal(MEDIAN_SECTORS, SIGMA).min(self.sectors - at);
                    fill(&mut bits, at, free, true);
                    at = (at + free).saturating_add(rng.log_normal(median_used, SIGMA));
                }
                bits
            }
        }
    }
}

/// Sets `count` bits from `start` on to `value`, a word at a time.
pub fn fill(words: &mut [u64], start: u32, count: u32, value: bool) {
    let end = start + count;
    let mut at = start;
    while at < end {
        let bit = at % 64;
        let here = (64 - bit).min(end - at);
        let mask = (u64::MAX >> (64 - here)) << bit;
        let word = &mut words[at as usize / 64];
        *word = if value { *word | mask } else { *word & !mask };
        at += here;
    }
}

/// The maximal runs of 1 bits, in order, as (start, count). Skips 64 sectors a
/// step where all are alike.
pub fn runs(words: &[u64]) -> Runs<'_> {
    Runs { words, index: 0, rest: words.first().copied().unwrap_or(0) }
}

/// Iterator of [`runs`].
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    words: &'a [u64],
    index: usize,
    /// Bits of the current word that were not given out yet.
    rest: u64,
}

impl Iterator for Runs<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        while self.rest == 0 {
            self.index += 1;
            self.rest = *self.words.get(self.index)?;
        }
        let bit = self.rest.trailing_zeros();
        let start = word_start(self.index) + bit;
        let mut length = (!(self.rest >> bit)).trailing_zeros().min(64);
        if bit + length < 64 {
            self.rest &= u64::MAX << (bit + length);
            return Some((start, length));
        }
        length = 64 - bit;
        self.rest = 0;
        while let Some(&word) = self.words.get(self.index + 1) {
            self.index += 1;
            if word == u64::MAX {
                length += 64;
                continue;
            }
            let more = word.trailing_ones();
            length += more;
            self.rest = word & (u64::MAX << more);
            break;
        }
        Some((start, length))
    }
}

/// First sector of a word.
fn word_start(index: usize) -> u32 {
    u32::try_from(index * 64).expect("devices here have fewer than 2^32 sectors")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slow way: one bit a step.
    fn runs_bit_by_bit(words: &[u64]) -> Vec<(u32, u32)> {
        let mut found: Vec<(u32, u32)> = Vec::new();
        for sector in 0..word_start(words.len()) {
            if words[sector as usize / 64] >> (sector % 64) & 1 == 0 {
                continue;
            }
            match found.last_mut() {
                Some((start, count)) if *start + *count == sector => *count += 1,
                _ => found.push((sector, 1)),
            }
        }
        found
    }

    #[test]
    fn runs_are_those_found_bit_by_bit() {
        for fill in Fill::all(1 << 14) {
            let words = fill.free_words();
            assert_eq!(runs(&words).collect::<Vec<_>>(), runs_bit_by_bit(&words), "{fill}");
        }
        let edges = [u64::MAX, u64::MAX, 1, 1 << 63, u64::MAX << 63, 3 << 62, u64::MAX];
        assert_eq!(runs(&edges).collect::<Vec<_>>(), runs_bit_by_bit(&edges));
        assert_eq!(runs(&[]).count(), 0);
    }

    #[test]
    fn fill_and_runs_are_inverse() {
        let mut words = vec![0; 8];
        for (start, count) in [(3, 5), (60, 10), (127, 2), (192, 64), (300, 212)] {
            fill(&mut words, start, count, true);
        }
        let expected = [(3, 5), (60, 10), (127, 2), (192, 64), (300, 212)];
        assert_eq!(runs(&words).collect::<Vec<_>>(), expected);
        fill(&mut words, 310, 100, false);
        assert_eq!(runs(&words).skip(4).collect::<Vec<_>>(), [(300, 10), (410, 102)]);
    }

    #[test]
    fn fills_are_about_as_full_as_they_say() {
        for device in Fill::usual(ONE_M) {
            let free: u32 = device.free_words().iter().map(|word| word.count_ones()).sum();
            let wanted = f64::from(ONE_M) * (1.0 - f64::from(device.used_per_myriad) / 10_000.0);
            let ratio = f64::from(free) / wanted;
            assert!((0.6..1.6).contains(&ratio), "{device}: {free} free sectors, wanted {wanted}");
        }
    }
}
