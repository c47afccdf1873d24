//! Ours and the rest behind one trait, so that every row of a table runs the
//! same code around the structure it measures.
//!
//! A rival implements [`Source`]: one run out, one run back. [`Rival`] follows
//! from it and adds objects: one run where there is one, else the largest
//! pieces the rival can find, all or nothing. Ours implements [`Rival`]
//! directly, with its own [`alloc_core::Allocator`] making that choice.
//!
//! Each adapter uses its crate in the way that is fastest for it: free sectors
//! are stored rather than used ones where that saves a search, bulk loaders are
//! used where there are some, and handles are kept for the crates that need
//! them.

mod bitvec_naive;
mod btree_pair;
mod hibitset;
mod offset;
mod ours;
mod range_alloc;
mod rangemap;
mod roaring;
mod words;

use smallvec::SmallVec;

pub use self::bitvec_naive::BitvecNaive;
pub use self::btree_pair::BTreePair;
pub use self::hibitset::HiBitSet;
pub use self::offset::OffsetAlloc;
pub use self::ours::Ours;
pub use self::range_alloc::RangeAlloc;
pub use self::rangemap::RangeMap;
pub use self::roaring::Roaring;
pub use self::words::Words;
use crate::fill::Fill;

/// What a structure can do at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Which free run it prefers.
    pub policy: &'static str,
    /// It can find runs of more than one sector.
    pub runs: bool,
    /// It can take back a part of what it gave.
    pub frees_parts: bool,
    /// Its search walks the free runs or the bitmap: cost grows with the device.
    pub linear: bool,
}

/// One object's pieces. Nearly all objects have one, kept inline.
pub type Pieces<P> = SmallVec<[P; 1]>;

/// A run as (first sector, sectors).
pub type RawRun = (u32, u32);

/// Something that hands out runs of sectors and takes them back.
pub trait Source: Sized {
    /// Row title.
    const NAME: &'static str;
    /// What it can do.
    const FACTS: Facts;
    /// What has to be kept to give a run back.
    type Piece: Copy;

    /// The structure in the state `fill`, whose free sectors are the 1 bits of
    /// `free_words`; `None` when it cannot hold that many runs.
    fn from_fill(fill: &Fill, free_words: &[u64]) -> Option<Self>;

    /// Takes one run of `count` sectors.
    ///
    /// # Errors
    ///
    /// When there is none: the count to try next, less than `count`; 0 when
    /// nothing is left.
    fn take_run(&mut self, count: u32) -> Result<Self::Piece, u32>;

    /// Gives a piece back.
    fn give(&mut self, piece: Self::Piece);

    /// Whether some free run has at least `count` sectors.
    fn has_run(&mut self, count: u32) -> bool;

    /// Free sectors.
    fn free_sectors(&self) -> u32;

    /// Free runs, counted the slow way if need be; `None` where the crate does
    /// not tell.
    fn free_runs(&self) -> Option<usize>;

    /// An empty device with objects of these sizes put on it, one after the
    /// other from the first sector on.
    fn laid_out(sectors: u32, counts: &[u32]) -> Option<(Self, Vec<Pieces<Self::Piece>>)> {
        let fill = Fill::empty(sectors);
        let mut source = Self::from_fill(&fill, &fill.free_words())?;
        let objects = counts.iter().map(|&count| gather(&mut source, count));
        let objects = objects.collect::<Option<Vec<_>>>()?;
        Some((source, objects))
    }
}

/// One run, or the largest pieces there are; nothing is taken when that is not
/// enough.
fn gather<S: Source>(source: &mut S, count: u32) -> Option<Pieces<S::Piece>> {
    let mut pieces = Pieces::new();
    let (mut missing, mut attempt) = (count, count);
    while missing > 0 {
        match source.take_run(attempt) {
            Ok(piece) => {
                pieces.push(piece);
                missing -= attempt;
                attempt = missing;
            }
            Err(0) => {
                for piece in pieces {
                    source.give(piece);
                }
                return None;
            }
            Err(smaller) => {
                assert!(smaller < attempt, "{}: {smaller} is not less than {attempt}", S::NAME);
                attempt = smaller;
            }
        }
    }
    Some(pieces)
}

/// Something that places objects on a device and removes them.
pub trait Rival: Sized {
    /// Row title.
    const TITLE: &'static str;
    /// What it can do.
    const ABILITIES: Facts;
    /// Where an object lies.
    type Object;
    /// What searches.
    type Finder;

    /// The structure in the state `fill`, whose free sectors are the 1 bits of
    /// `free_words`; `None` when it cannot hold that.
    fn load(fill: &Fill, free_words: &[u64]) -> Option<Self>;

    /// Places an object of `count` sectors, in as few pieces as the structure
    /// finds; `None`, and nothing taken, when there is no room.
    fn allocate(&mut self, count: u32) -> Option<Self::Object>;

    /// Removes an object.
    fn release(&mut self, object: Self::Object);

    /// Pieces of an object.
    fn extents(object: &Self::Object) -> usize;

    /// The part that searches, as it stands.
    fn into_finder(self) -> Self::Finder;

    /// Searches for a free run of at least `count` sectors; takes nothing.
    fn search(finder: &mut Self::Finder, count: u32) -> bool;

    /// Free sectors.
    fn free(&self) -> u32;

    /// Free runs; `None` where the crate does not tell.
    fn count_free_runs(&self) -> Option<usize>;

    /// An empty device with objects of these sizes put on it one after the
    /// other.
    fn with_objects(sectors: u32, counts: &[u32]) -> Option<(Self, Vec<Self::Object>)>;
}

impl<S: Source> Rival for S {
    const TITLE: &'static str = S::NAME;
    const ABILITIES: Facts = S::FACTS;
    type Object = Pieces<S::Piece>;
    type Finder = S;

    fn load(fill: &Fill, free_words: &[u64]) -> Option<Self> {
        S::from_fill(fill, free_words)
    }

    fn allocate(&mut self, count: u32) -> Option<Self::Object> {
        if count > self.free_sectors() { None } else { gather(self, count) }
    }

    fn release(&mut self, object: Self::Object) {
        for piece in object {
            self.give(piece);
        }
    }

    fn extents(object: &Self::Object) -> usize {
        object.len()
    }

    fn into_finder(self) -> S {
        self
    }

    fn search(finder: &mut S, count: u32) -> bool {
        finder.has_run(count)
    }

    fn free(&self) -> u32 {
        self.free_sectors()
    }

    fn count_free_runs(&self) -> Option<usize> {
        self.free_runs()
    }

    fn with_objects(sectors: u32, counts: &[u32]) -> Option<(Self, Vec<Self::Object>)> {
        S::laid_out(sectors, counts)
    }
}

/// Those that can continue an object in place and take parts of it back.
pub trait Extends: Rival {
    /// What is kept of an object that grows: made from its last run.
    type Tail;

    /// The tail of an object whose last run is `last`, all of it used.
    fn tail(last: RawRun) -> Self::Tail;

    /// Takes the `count` sectors right behind the object, if they are free.
    fn extend(&mut self, tail: &mut Self::Tail, count: u32) -> bool;

    /// Gives the object's last `count` sectors back.
    fn cut(&mut self, tail: &mut Self::Tail, count: u32);
}

/// What an extendable rival needs: a claim on exact sectors, and part of a run
/// given back.
pub trait Exact: Source<Piece = RawRun> {
    /// Takes exactly `count` sectors from `start` on, if all of them are free.
    fn take_exact(&mut self, start: u32, count: u32) -> bool;
}

impl<S: Exact> Extends for S {
    type Tail = RawRun;

    fn tail(last: RawRun) -> RawRun {
        last
    }

    fn extend(&mut self, (start, length): &mut RawRun, count: u32) -> bool {
        let done = self.take_exact(*start + *length, count);
        if done {
            *length += count;
        }
        done
    }

    fn cut(&mut self, (start, length): &mut RawRun, count: u32) {
        *length -= count;
        self.give((*start + *length, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fill::runs;
    use crate::rng::Rng;

    /// Random objects come and go; whatever is handed out was free, and in the
    /// end everything is free again in one run.
    fn keeps_account<R: Rival>(fill: &Fill, sizes: usize) {
        let words = fill.free_words();
        let mut rival = R::load(fill, &words).expect("this fill is held by every rival");
        let free: u32 = words.iter().map(|word| word.count_ones()).sum();
        assert_eq!(rival.free(), free, "{}", R::TITLE);
        if let Some(counted) = rival.count_free_runs() {
            assert_eq!(counted, runs(&words).count(), "{}", R::TITLE);
        }

        let mut rng = Rng::new(3);
        let mut objects = Vec::new();
        let mut taken = 0;
        for _ in 0..400 {
            if rng.below(3) == 0 && !objects.is_empty() {
                let (object, count) = objects.swap_remove(rng.below(objects.len()));
                rival.release(object);
                taken -= count;
            } else {
                let count = 1 + u32::try_from(rng.below(sizes)).expect("small");
                if let Some(object) = rival.allocate(count) {
                    assert!(R::extents(&object) >= 1);
                    objects.push((object, count));
                    taken += count;
                }
            }
            assert_eq!(rival.free(), free - taken, "{}", R::TITLE);
        }
        assert!(taken > 0, "{} placed nothing", R::TITLE);
        for (object, _) in objects {
            rival.release(object);
        }
        assert_eq!(rival.free(), free, "{}", R::TITLE);
        if let Some(counted) = rival.count_free_runs() {
            assert_eq!(counted, runs(&words).count(), "{}", R::TITLE);
        }
    }

    #[test]
    fn every_rival_keeps_account_of_what_it_gives() {
        let fill = Fill::clustered(1 << 16, 5_000);
        keeps_account::<Ours>(&fill, 200);
        keeps_account::<BTreePair>(&fill, 200);
        keeps_account::<OffsetAlloc>(&fill, 200);
        keeps_account::<RangeAlloc>(&fill, 200);
        keeps_account::<RangeMap>(&fill, 200);
        keeps_account::<Roaring>(&fill, 200);
        keeps_account::<BitvecNaive>(&fill, 200);
        keeps_account::<Words>(&fill, 200);
        keeps_account::<HiBitSet>(&fill, 1);
    }

    fn places_objects_one_after_the_other<R: Rival>() {
        let counts = [5, 100, 64, 1, 30];
        let (rival, objects) = R::with_objects(1 << 12, &counts).expect("fits");
        assert_eq!(rival.free(), (1 << 12) - 200, "{}", R::TITLE);
        assert!(objects.iter().all(|object| R::extents(object) == 1), "{}", R::TITLE);
    }

    #[test]
    fn objects_on_an_empty_device_have_one_extent_each() {
        places_objects_one_after_the_other::<Ours>();
        places_objects_one_after_the_other::<BTreePair>();
        places_objects_one_after_the_other::<OffsetAlloc>();
        places_objects_one_after_the_other::<RangeAlloc>();
        places_objects_one_after_the_other::<RangeMap>();
        places_objects_one_after_the_other::<Roaring>();
        places_objects_one_after_the_other::<BitvecNaive>();
        places_objects_one_after_the_other::<Words>();
    }

    fn searches_exactly<R: Rival>() {
        let fill = Fill::clustered(1 << 16, 9_000);
        let words = fill.free_words();
        let longest = runs(&words).map(|(_, count)| count).max().expect("some are free");
        let mut finder = R::load(&fill, &words).expect("held by every rival").into_finder();
        assert!(!R::search(&mut finder, longest + 1), "{} finds what is not there", R::TITLE);
        if R::TITLE != OffsetAlloc::NAME {
            // offset-allocator rounds the request up to a bin and may miss it.
            assert!(R::search(&mut finder, longest), "{} misses the longest run", R::TITLE);
        }
    }

    #[test]
    fn searches_find_the_longest_run_and_nothing_longer() {
        searches_exactly::<Ours>();
        searches_exactly::<BTreePair>();
        searches_exactly::<OffsetAlloc>();
        searches_exactly::<RangeAlloc>();
        searches_exactly::<RangeMap>();
        searches_exactly::<Roaring>();
        searches_exactly::<BitvecNaive>();
        searches_exactly::<Words>();
    }

    fn extends_into_the_gap_and_no_further<R: Extends>() {
        let mut words = vec![0; 16];
        crate::fill::fill(&mut words, 100, 20, true);
        let fill = Fill::empty(1_024);
        let mut rival = R::load(&fill, &words).expect("held by every rival");
        let mut tail = R::tail((90, 10));
        assert!(rival.extend(&mut tail, 8), "{}", R::TITLE);
        assert!(rival.extend(&mut tail, 12), "{}", R::TITLE);
        assert!(!rival.extend(&mut tail, 1), "{} extends into used sectors", R::TITLE);
        assert_eq!(rival.free(), 0, "{}", R::TITLE);
        rival.cut(&mut tail, 5);
        assert_eq!(rival.free(), 5, "{}", R::TITLE);
        assert!(!rival.extend(&mut tail, 6), "{} extends into used sectors", R::TITLE);
        assert!(rival.extend(&mut tail, 5), "{}", R::TITLE);
    }

    #[test]
    fn extensions_stop_at_the_next_used_sector() {
        extends_into_the_gap_and_no_further::<Ours>();
        extends_into_the_gap_and_no_further::<BTreePair>();
        extends_into_the_gap_and_no_further::<RangeMap>();
        extends_into_the_gap_and_no_further::<Roaring>();
        extends_into_the_gap_and_no_further::<BitvecNaive>();
        extends_into_the_gap_and_no_further::<Words>();
    }
}
