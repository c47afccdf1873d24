//! Seeded numbers: the same on every machine and in every run.

/// `SplitMix64`: one add and three mixing steps a number, good enough to place
/// sectors and short enough to read.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// A generator that gives the same numbers for the same seed.
    ///
    /// ```
    /// use bench_suite::rng::Rng;
    /// assert_eq!(Rng::new(7).next_u64(), Rng::new(7).next_u64());
    /// ```
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, without a division.
    ///
    /// # Panics
    ///
    /// When `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "there is no number below 0");
        let wide = u128::from(self.next_u64()) * bound as u128;
        usize::try_from(wide >> 64).expect("the product's upper half is below `bound`")
    }

    /// A number in `0.0..1.0`, in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A standard normal number (Box-Muller).
    pub fn normal(&mut self) -> f64 {
        // 1 - unit() is in (0, 1], so the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A log-normal size: `median` times e to a normal number of deviation
    /// `sigma`, at least 1.
    pub fn log_normal(&mut self, median: f64, sigma: f64) -> u32 {
        let size = median * (sigma * self.normal()).exp();
        // `as` saturates, and no workload here has sizes near the limit.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let size = size.round() as u32;
        size.max(1)
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_all_log_normal_sizes_are_below_the_median() {
        let mut rng = Rng::new(1);
        let below = (0..20_000).filter(|_| rng.log_normal(64.0, 1.2) < 64).count();
        assert!((9_600..10_400).contains(&below), "{below} of 20000 below the median");
    }

    #[test]
    fn shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Rng::new(2).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
