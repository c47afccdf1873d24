//! Objects of log-normal size come and go on a device that stays full.
//!
//! The device starts empty and is filled with objects one after the other. Then
//! batches of random objects are removed and as many sectors' worth of new ones
//! placed. After some turnovers what is free lies in the holes that the
//! structure's own policy leaves, and that is the state to measure in.

use std::time::{Duration, Instant};

use crate::clock::{Clock, Spent};
use crate::fill::{MEDIAN_SECTORS, SIGMA};
use crate::rivals::Rival;
use crate::rng::Rng;

/// Objects removed, then placed, between two looks at the clock. At 99 % of
/// 16 M sectors that is 5 % of what is free, so the device stays as full.
const BATCH: usize = 64;

/// A structure with its objects.
#[derive(Debug)]
pub struct Churn<R: Rival> {
    rival: R,
    objects: Vec<(R::Object, u32)>,
    rng: Rng,
    used: u64,
    target: u64,
    /// Kept from batch to batch for their memory.
    leaving: Vec<R::Object>,
    sizes: Vec<u32>,
    placed: Vec<Option<R::Object>>,
}

/// The seed of the churn where one is enough.
pub const SEED: u64 = 11;

/// What some churn cost and what it left.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Placing objects; one operation an object.
    pub allocate: Spent,
    /// Removing objects; one operation an object.
    pub release: Spent,
    /// Objects placed.
    pub objects: u64,
    /// Their extents.
    pub extents: u64,
    /// Objects in one extent.
    pub whole: u64,
    /// Objects for which the structure found no room although there was some.
    pub refused: u64,
}

impl Tally {
    /// CPU nanoseconds to place and remove an object.
    pub fn pair_ns(&self) -> f64 {
        self.allocate.per_op() + self.release.per_op()
    }

    /// Mean extents of the objects placed.
    pub fn extents_per_object(&self) -> f64 {
        self.extents as f64 / self.objects as f64
    }
}

impl<R: Rival> Churn<R> {
    /// A device of `sectors`, filled to `used_per_myriad` ten-thousandths with
    /// objects drawn from `seed`; `None` when the structure cannot hold it.
    pub fn new(sectors: u32, used_per_myriad: u32, seed: u64) -> Option<Self> {
        let mut rng = Rng::new(seed);
        let target = u64::from(sectors) * u64::from(used_per_myriad) / 10_000;
        let mut counts = Vec::new();
        let mut used = 0;
        while used < target {
            let count = rng.log_normal(MEDIAN_SECTORS, SIGMA);
            used += u64::from(count);
            counts.push(count);
        }
        let (rival, placed) = R::with_objects(sectors, &counts)?;
        Some(Self {
            rival,
            objects: placed.into_iter().zip(counts).collect(),
            rng,
            used,
            target,
            leaving: Vec::new(),
            sizes: Vec::new(),
            placed: Vec::new(),
        })
    }

    /// Churns at least `objects` removals, or until `budget` of wall time is
    /// used up, and says what it cost.
    pub fn run(&mut self, clock: &Clock, objects: u64, budget: Duration) -> Tally {
        let start = Instant::now();
        let mut tally = Tally::default();
        while tally.release.ops < objects && start.elapsed() < budget {
            self.batch(clock, &mut tally);
        }
        tally
    }

    fn batch(&mut self, clock: &Clock, tally: &mut Tally) {
        for _ in 0..BATCH {
            let (object, count) = self.objects.swap_remove(self.rng.below(self.objects.len()));
            self.leaving.push(object);
            self.used -= u64::from(count);
        }
        let removed = self.leaving.len() as u64;
        let (rival, leaving) = (&mut self.rival, &mut self.leaving);
        let ((), spent) = clock.time(removed, || {
            for object in leaving.drain(..) {
                rival.release(object);
            }
        });
        tally.release.add(spent);

        self.sizes.clear();
        let mut used = self.used;
        while used < self.target {
            let count = self.rng.log_normal(MEDIAN_SECTORS, SIGMA);
            used += u64::from(count);
            self.sizes.push(count);
        }
        self.placed.reserve(self.sizes.len());
        let (rival, placed, sizes) = (&mut self.rival, &mut self.placed, &self.sizes);
        let ((), spent) = clock.time(sizes.len() as u64, || {
            for &count in sizes {
                placed.push(rival.allocate(count));
            }
        });
        tally.allocate.add(spent);

        for (object, &count) in self.placed.drain(..).zip(&self.sizes) {
            let Some(object) = object else {
                tally.refused += 1;
                continue;
            };
            let extents = R::extents(&object) as u64;
            tally.objects += 1;
            tally.extents += extents;
            tally.whole += u64::from(extents == 1);
            self.used += u64::from(count);
            self.objects.push((object, count));
        }
    }

    /// Free runs now; `None` where the structure does not tell.
    pub fn free_runs(&self) -> Option<usize> {
        self.rival.count_free_runs()
    }

    /// Free sectors now.
    pub fn free_sectors(&self) -> u32 {
        self.rival.free()
    }

    /// Objects now.
    pub const fn objects(&self) -> usize {
        self.objects.len()
    }

    /// The structure without its objects, for measuring its memory.
    pub fn into_rival(self) -> R {
        self.rival
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals::{BTreePair, Ours};

    #[test]
    fn churn_keeps_the_device_as_full_as_it_was() {
        let mut churn = Churn::<BTreePair>::new(1 << 18, 9_000, SEED).expect("fits");
        let tally = churn.run(&Clock::calibrated(), 2_000, Duration::from_mins(1));
        assert_eq!(tally.refused, 0);
        assert!(tally.objects > 1_500 && tally.extents >= tally.objects);
        let held: u64 = churn.objects.iter().map(|&(_, count)| u64::from(count)).sum();
        assert_eq!(held + u64::from(churn.free_sectors()), 1 << 18);
        assert!((235_929..245_000).contains(&held), "{held} sectors used");
    }

    #[test]
    fn ours_fragments_no_more_than_the_tree_pair() {
        let clock = Clock::calibrated();
        let mut ours = Churn::<Ours>::new(1 << 18, 9_500, SEED).expect("fits");
        let mut trees = Churn::<BTreePair>::new(1 << 18, 9_500, SEED).expect("fits");
        let ours = ours.run(&clock, 5_000, Duration::from_mins(1));
        let trees = trees.run(&clock, 5_000, Duration::from_mins(1));
        let (ours, trees) = (ours.extents_per_object(), trees.extents_per_object());
        assert!(ours <= trees * 1.1, "{ours} extents an object, the trees {trees}");
    }
}
