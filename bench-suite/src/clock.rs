//! CPU time of this thread beside wall time, with the clock's own cost taken off.
//!
//! On a machine that others use as well, wall time measures the others. The
//! thread's CPU clock stops while the thread waits, so ratios of CPU times hold
//! on a busy machine too.

use std::time::{Duration, Instant};

use cpu_time::ThreadTime;

/// CPU time and wall time of some work, and how many operations it was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// This thread's CPU time in nanoseconds.
    pub cpu_ns: f64,
    /// Wall time in nanoseconds.
    pub wall_ns: f64,
    /// Operations done in that time.
    pub ops: u64,
}

impl Spent {
    /// CPU nanoseconds an operation; not a number when nothing was done.
    pub fn per_op(&self) -> f64 {
        self.cpu_ns / self.ops as f64
    }

    /// Wall nanoseconds an operation; not a number when nothing was done.
    pub fn wall_per_op(&self) -> f64 {
        self.wall_ns / self.ops as f64
    }

    /// Adds `other` to this.
    pub fn add(&mut self, other: Self) {
        self.cpu_ns += other.cpu_ns;
        self.wall_ns += other.wall_ns;
        self.ops += other.ops;
    }
}

/// The clocks and what reading them costs.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    cpu_overhead_ns: f64,
    wall_overhead_ns: f64,
}

impl Default for Clock {
    fn default() -> Self {
        Self::calibrated()
    }
}

impl Clock {
    /// Measures what an empty measurement shows (0.2-0.5 us: the thread clock
    /// is a system call), so that later ones can leave it out.
    pub fn calibrated() -> Self {
        let raw = Self { cpu_overhead_ns: 0.0, wall_overhead_ns: 0.0 };
        let mut cpu = Vec::new();
        let mut wall = Vec::new();
        for _ in 0..2_000 {
            let ((), spent) = raw.time(1, || ());
            cpu.push(spent.cpu_ns);
            wall.push(spent.wall_ns);
        }
        Self { cpu_overhead_ns: median(&mut cpu), wall_overhead_ns: median(&mut wall) }
    }

    /// Runs `work` once and says what it cost as `ops` operations.
    pub fn time<T>(&self, ops: u64, work: impl FnOnce() -> T) -> (T, Spent) {
        let wall = Instant::now();
        let cpu = ThreadTime::now();
        let result = work();
        let cpu_ns = nanos(cpu.elapsed()) - self.cpu_overhead_ns;
        let wall_ns = nanos(wall.elapsed()) - self.wall_overhead_ns;
        (result, Spent { cpu_ns: cpu_ns.max(0.0), wall_ns: wall_ns.max(0.0), ops })
    }
}

fn nanos(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

/// The middle value (of an even number, the lower of the two); NaN of none.
///
/// ```
/// assert_eq!(bench_suite::clock::median(&mut [3.0, 1.0, 2.0]), 2.0);
/// ```
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n => values[(n - 1) / 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spent_adds_up_times_and_operations() {
        let mut sum = Spent { cpu_ns: 10.0, wall_ns: 20.0, ops: 1 };
        sum.add(Spent { cpu_ns: 30.0, wall_ns: 60.0, ops: 3 });
        assert_eq!(sum.ops, 4);
        assert!((sum.per_op() - 10.0).abs() < 1e-9 && (sum.wall_per_op() - 20.0).abs() < 1e-9);
    }

    #[test]
    fn median_is_the_lower_middle_value() {
        assert!((median(&mut [4.0, 1.0, 3.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!(median(&mut []).is_nan());
    }
}
