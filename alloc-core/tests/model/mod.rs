//! The slow allocator: a set of free sectors, without an idea of speed.
//!
//! `Model::step` does one operation with the real allocator and with the set,
//! and compares everything that can be observed. It needs nothing but
//! `alloc_core` and `std`, so the fuzz target includes this file too.
//!
//! An operation names things by position, modulo how many there are: every
//! sequence of operations is a valid one.

#![allow(dead_code, reason = "each of the including targets uses a part")]

use std::collections::BTreeSet;

use alloc_core::{
    Allocator, Chain, FreeMap, MapError, NoSpace, Reservation, Run, SectorCount, SectorId,
    Transaction, Window,
};

/// One thing to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// A new chain, wherever it fits.
    Allocate { count: u16 },
    /// A new chain, at a goal if possible.
    AllocateAt { count: u16, goal: u16 },
    /// A new chain of pieces, each at least so long.
    Pieces { count: u16, min: u8 },
    /// A chain grows, with its window.
    Extend { chain: u8, count: u16 },
    /// A chain's window is given back; another kind of window is chosen.
    Trim { chain: u8, min: u8, max: u16 },
    /// A chain's tail is given back.
    Truncate { chain: u8, len: u16 },
    /// A part of a chain is given back.
    ReleasePart { chain: u8, from: u16, count: u16 },
    /// A whole chain is given back.
    Release { chain: u8 },
    /// Part of a chain moves: as many new sectors replace the old.
    Replace { chain: u8, from: u16, count: u16 },
    /// Just these sectors are taken, if they are free.
    Take { at: u16, count: u16 },
    /// Every so manyeth sector is taken: many free runs of one length.
    Comb { at: u16, stride: u8, teeth: u8 },
    /// Sectors taken by `Take` and `Comb` are given back.
    GiveBack { at: u16, count: u16 },
    /// The device grows.
    Grow { by: u16 },
    /// The device shrinks, if its last sectors are free.
    Shrink { by: u16 },
    /// The device shrinks to its last used sector.
    ShrinkToFit,
    /// Sectors are promised.
    Reserve { count: u16 },
    /// Promised sectors are taken.
    Redeem { reservation: u8, count: u16 },
    /// A promise is given up.
    Cancel { reservation: u8 },
    /// What changed since the last commit or rollback stays.
    Commit,
    /// What changed since the last commit or rollback is undone.
    Rollback,
    /// The map is made anew from its words or its used runs.
    Rebuild { from_words: bool },
}

impl Op {
    /// An operation out of any three numbers.
    pub(crate) fn from_numbers(kind: u8, which: u8, number: u16) -> Self {
        let (chain, small) = (which, u16::from(which));
        match kind % 26 {
            0 | 1 => Self::Allocate { count: number },
            2 => Self::Allocate { count: small },
            3 => Self::AllocateAt { count: small, goal: number },
            4 => Self::Pieces { count: number, min: which },
            5..=7 => Self::Extend { chain, count: number % 8 },
            8 => Self::Extend { chain, count: number },
            9 => Self::Trim { chain, min: number.to_le_bytes()[0] % 16, max: number },
            10 => Self::Truncate { chain, len: number },
            11 | 12 => Self::ReleasePart { chain, from: number, count: small },
            13 | 14 => Self::Release { chain },
            15 => Self::Replace { chain, from: number, count: small },
            16 => Self::Take { at: number, count: small },
            17 => Self::Grow { by: small },
            18 => Self::Shrink { by: small },
            19 if number.is_multiple_of(4) => Self::ShrinkToFit,
            19 | 20 => Self::Reserve { count: number % 200 },
            21 if which.is_multiple_of(2) => Self::Cancel { reservation: which / 2 },
            21 => Self::Redeem { reservation: which / 2, count: number },
            22 if which.is_multiple_of(3) => Self::Rebuild { from_words: number.is_multiple_of(2) },
            22 => Self::Commit,
            23 => Self::Rollback,
            24 => Self::Comb { at: number, stride: which % 16, teeth: which },
            _ => Self::GiveBack { at: number, count: small },
        }
    }
}

/// A chain in use. Sectors in `Vec`s are what the chain should have.
struct Stream {
    chain: Chain,
    window: Window,
    sectors: Vec<u32>,
}

impl Stream {
    fn new(chain: Chain) -> Self {
        let sectors = sectors_of(&chain);
        Self { chain, window: Window::none(), sectors }
    }

    fn copy(&self) -> Self {
        Self { chain: self.chain.clone(), window: Window::none(), sectors: self.sectors.clone() }
    }
}

/// The allocator and the slow one.
pub(crate) struct Model {
    real: Allocator,
    /// Free sectors.
    free: BTreeSet<u32>,
    total: u32,
    streams: Vec<Stream>,
    reservations: Vec<Reservation>,
    reserved: u32,
    changes: Transaction,
    /// Sectors taken since the last commit, and those given back that were
    /// not.
    fresh: BTreeSet<u32>,
    deferred: BTreeSet<u32>,
    /// The state at the last commit: what a rollback leads back to.
    committed_free: BTreeSet<u32>,
    committed_streams: Vec<Stream>,
    /// Sectors taken for good by `Op::Take`.
    fixed: BTreeSet<u32>,
    committed_fixed: BTreeSet<u32>,
}

fn count(count: u32) -> SectorCount {
    SectorCount::new(count)
}

fn id(at: u32) -> SectorId {
    SectorId::new(at)
}

fn range(run: Run) -> std::ops::Range<u32> {
    run.start().get()..run.end().get()
}

fn sectors_of(chain: &Chain) -> Vec<u32> {
    chain.runs().flat_map(range).collect()
}

/// The maximal runs of a set, as (start, length).
fn runs_of(set: &BTreeSet<u32>) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &at in set {
        match runs.last_mut() {
            Some((start, len)) if *start + *len == at => *len += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}

fn pick(which: u8, of: usize) -> Option<usize> {
    usize::from(which).checked_rem(of)
}

/// Whether what was chosen is what the documentation says.
fn check_choice(chain: &Chain, wanted: u32, goal: Option<u32>, free: &[(u32, u32)], exact: bool) {
    let Some(first) = chain.first() else {
        return assert_eq!(wanted, 0);
    };
    let fits_at = |goal| free.iter().any(|&(s, len)| s <= goal && goal + wanted <= s + len);
    if let Some(goal) = goal.filter(|&goal| fits_at(goal)) {
        assert_eq!((first, chain.run_count()), (id(goal), 1), "the goal was free");
        return;
    }
    let best = free.iter().map(|&(_, len)| len).filter(|&len| len >= wanted).min();
    if let Some(best) = best {
        assert_eq!(chain.run_count(), 1, "{wanted} fit into a run of {best}");
        let chosen = free.iter().find(|&&(start, _)| id(start) == first).map(|&(_, len)| len);
        let chosen = chosen.expect("the front of a free run is taken");
        assert!(!exact || fits_best(chosen, best), "{chosen} for {wanted}, the best is {best}");
    } else if exact && free.iter().all(|&(_, len)| len < 512) {
        let mut lens: Vec<u32> = free.iter().map(|&(_, len)| len).collect();
        lens.sort_unstable_by(|a, b| b.cmp(a));
        let (mut left, mut fewest) = (wanted, 0);
        while left > 0 {
            left = left.saturating_sub(lens[fewest]);
            fewest += 1;
        }
        assert!(chain.run_count() <= fewest, "{} runs, {fewest} do", chain.run_count());
    }
}

/// Best fit: exact below 512 sectors, within 1/64 above.
fn fits_best(chosen: u32, best: u32) -> bool {
    chosen <= best + if best < 512 { 0 } else { best / 64 }
}

impl Model {
    /// A device of `total` free sectors.
    pub(crate) fn new(total: u32) -> Self {
        Self::over(FreeMap::new(count(total)))
    }

    /// A device whose bins hold so few candidates that they overflow.
    pub(crate) fn with_tiny_bins(total: u32, bytes: usize, bin: u16) -> Self {
        Self::over(FreeMap::with_tiny_bins(count(total), bytes, bin))
    }

    fn over(map: FreeMap) -> Self {
        let total = map.total().get();
        let free: BTreeSet<u32> = (0..total).collect();
        Self {
            real: Allocator::new(map),
            committed_free: free.clone(),
            free,
            total,
            streams: Vec::new(),
            reservations: Vec::new(),
            reserved: 0,
            changes: Transaction::new(),
            fresh: BTreeSet::new(),
            deferred: BTreeSet::new(),
            committed_streams: Vec::new(),
            fixed: BTreeSet::new(),
            committed_fixed: BTreeSet::new(),
        }
    }

    fn available(&self) -> u32 {
        u32::try_from(self.free.len()).unwrap() - self.reserved
    }

    /// Does `op` both ways and compares.
    pub(crate) fn step(&mut self, op: Op) {
        self.apply(op);
        self.compare();
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Allocate { count } => self.allocate(u32::from(count), None),
            Op::AllocateAt { count, goal } => {
                let goal = u32::from(goal) % (self.total + 2);
                self.allocate(u32::from(count), Some(goal));
            }
            Op::Pieces { count, min } => self.pieces(u32::from(count), u32::from(min)),
            Op::Extend { chain, count } => self.extend(chain, u32::from(count)),
            Op::Trim { chain, min, max } => self.trim(chain, u32::from(min), u32::from(max)),
            Op::Truncate { chain, len } => self.truncate(chain, len),
            Op::ReleasePart { chain, from, count } => self.release_part(chain, from, count),
            Op::Release { chain } => self.release(chain),
            Op::Replace { chain, from, count } => self.replace(chain, from, count),
            Op::Take { at, count } => self.take(u32::from(at), u32::from(count)),
            Op::Comb { at, stride, teeth } => {
                let step = 2 + u32::from(stride);
                for tooth in 0..u32::from(teeth) {
                    self.take(u32::from(at) % (self.total + 1) + tooth * step, 1);
                }
            }
            Op::GiveBack { at, count } => self.give_back(u32::from(at), u32::from(count)),
            Op::Grow { by } => self.grow(u32::from(by)),
            Op::Shrink { by } => self.shrink(u32::from(by)),
            Op::ShrinkToFit => self.shrink_to_fit(),
            Op::Reserve { count } => self.reserve(u32::from(count)),
            Op::Redeem { reservation, count } => self.redeem(reservation, u32::from(count)),
            Op::Cancel { reservation } => self.cancel(reservation),
            Op::Commit => self.commit(),
            Op::Rollback => self.rollback(),
            Op::Rebuild { from_words } => self.rebuild(from_words),
        }
    }

    /// The sectors of a chain that came out of the allocator just now: they
    /// must have been free.
    fn took(&mut self, chain: &Chain) {
        for run in chain.runs() {
            self.took_run(run);
            self.changes.note_taken(run);
            self.fresh.extend(range(run));
        }
    }

    fn took_run(&mut self, run: Run) {
        for at in range(run) {
            assert!(self.free.remove(&at), "{} was handed out and is not free", id(at));
        }
    }

    /// Gives sectors back, through the transaction.
    fn give(&mut self, chain: &Chain) {
        for run in chain.runs() {
            self.changes.release(&mut self.real, run);
            for at in range(run) {
                let new = if self.fresh.remove(&at) { &mut self.free } else { &mut self.deferred };
                assert!(new.insert(at), "the model gives back what it has");
            }
        }
    }

    fn allocate(&mut self, wanted: u32, goal: Option<u32>) {
        let available = self.available();
        let before = runs_of(&self.free);
        let exact = self.real.map().bins_are_complete();
        match self.real.allocate(count(wanted), goal.map(id)) {
            Ok(chain) => {
                assert!(wanted <= available, "{wanted} out of {available}");
                assert_eq!(chain.sector_count(), count(wanted));
                check_choice(&chain, wanted, goal, &before, exact);
                self.took(&chain);
                self.streams.push(Stream::new(chain));
            }
            Err(error) => {
                assert!(wanted > available, "{wanted} of {available}: {error}");
                assert_eq!(error, NoSpace { wanted: count(wanted), free: count(available) });
            }
        }
    }

    fn pieces(&mut self, wanted: u32, min: u32) {
        let there: u32 =
            runs_of(&self.free).iter().map(|&(_, len)| len).filter(|&len| len >= min).sum();
        let most = wanted.min(self.available());
        let chain = self.real.allocate_pieces(count(wanted), count(min));
        let got = chain.sector_count().get();
        assert!(got <= most && got >= most.min(there).min(got.max(1)), "{got} of {most}");
        if got < most {
            let left = runs_of(&self.free).iter().map(|&(_, len)| len).sum::<u32>() - got;
            assert!(left > 0);
        }
        self.took(&chain);
        if got < most {
            let longest = runs_of(&self.free).iter().map(|&(_, len)| len).max();
            assert!(longest.is_none_or(|len| len < min.max(1)), "{longest:?} left, {min} wanted");
        }
        self.streams.push(Stream::new(chain));
    }

    fn extend(&mut self, chain: u8, wanted: u32) {
        let Some(which) = pick(chain, self.streams.len()) else { return };
        let available = self.available();
        let stream = &mut self.streams[which];
        let old_window = stream.window.run();
        let old_chain = stream.chain.clone();
        let there = available + stream.window.sector_count().get();
        let result = self.real.extend(&mut stream.chain, &mut stream.window, count(wanted));
        if let Err(error) = result {
            assert!(wanted > there);
            assert_eq!(error, NoSpace { wanted: count(wanted), free: count(there) });
            assert_eq!((&stream.chain, stream.window.run()), (&old_chain, old_window));
            return;
        }
        assert!(wanted <= there, "{wanted} out of {there}");
        let added = stream.chain.slice(old_chain.sector_count(), count(wanted));
        let new_window = stream.window.run();
        // the window's sectors were used as far as the map goes
        self.free.extend(old_window.into_iter().flat_map(range));
        let in_place = old_chain.end().is_some_and(|end| self.free.contains(&end.get()));
        if in_place && wanted > 0 {
            assert_eq!(added.first(), old_chain.end(), "a chain grows in place if it can");
        }
        let stream = &mut self.streams[which];
        stream.sectors.extend(sectors_of(&added));
        self.took(&added);
        if let Some(window) = new_window {
            self.took_run(window);
            assert_eq!(Some(window.start()), self.streams[which].chain.end(), "a window is ahead");
        }
    }

    fn trim(&mut self, chain: u8, min: u32, max: u32) {
        let Some(which) = pick(chain, self.streams.len()) else { return };
        self.drop_window(which);
        self.streams[which].window = match min {
            0 => Window::none(),
            1 => Window::doubling(),
            _ => Window::doubling_within(count(min), count(max.max(min))),
        };
    }

    fn drop_window(&mut self, which: usize) {
        let window = &mut self.streams[which].window;
        self.free.extend(window.run().into_iter().flat_map(range));
        self.real.trim(window);
        assert_eq!(window.run(), None);
    }

    fn truncate(&mut self, chain: u8, len: u16) {
        let Some(which) = pick(chain, self.streams.len()) else { return };
        self.drop_window(which);
        let stream = &mut self.streams[which];
        let len = usize::from(len) % (stream.sectors.len() + 1);
        let cut = stream.chain.truncate(count(u32::try_from(len).unwrap()));
        assert_eq!(sectors_of(&cut), stream.sectors.split_off(len));
        self.give(&cut);
    }

    fn release_part(&mut self, chain: u8, from: u16, part: u16) {
        let Some(which) = pick(chain, self.streams.len()) else { return };
        self.drop_window(which);
        let stream = &mut self.streams[which];
        let from = usize::from(from) % (stream.sectors.len() + 1);
        let part = usize::from(part).min(stream.sectors.len() - from);
        let (at, len) = (u32::try_from(from).unwrap(), u32::try_from(part).unwrap());
        let mut middle = stream.chain.split_off(count(at));
        let tail = middle.split_off(count(len));
        stream.chain.append(tail);
        let slow: Vec<u32> = stream.sectors.drain(from..from + part).collect();
        assert_eq!(sectors_of(&middle), slow);
        self.give(&middle);
    }

    fn release(&mut self, chain: u8) {
        let Some(which) = pick(chain, self.streams.len()) else { return };
        self.drop_window(which);
        let stream = self.streams.remove(which);
        self.give(&stream.chain);
    }

    fn replace(&mut self, chain: u8, from: u16, part: u16) {
        let Some(which) = pick(chain, self.streams.len()) else { return };
        let stream = &self.streams[which];
        let from = usize::from(from) % (stream.sectors.len() + 1);
        let part = usize::from(part).min(stream.sectors.len() - from);
        let (at, len) = (u32::try_from(from).unwrap(), u32::try_from(part).unwrap());
        if stream.sectors.len() == from + part {
            // the chain's end moves away from its window
            self.drop_window(which);
        }
        let Ok(new) = self.real.allocate(count(len), None) else {
            return assert!(len > self.available());
        };
        self.took(&new);
        let stream = &mut self.streams[which];
        let old = stream.chain.replace(count(at), new.clone());
        let slow: Vec<u32> = stream.sectors.splice(from..from + part, sectors_of(&new)).collect();
        assert_eq!(sectors_of(&old), slow);
        self.give(&old);
    }

    fn take(&mut self, at: u32, len: u32) {
        let at = at % (self.total + 1);
        let Some(run) = Run::between(id(at), id(at + len)) else { return };
        let used = range(run).find(|at| !self.free.contains(at));
        let mut map = self.real.map().clone();
        let expected = match used {
            _ if at + len > self.total => {
                Err(MapError::OutOfRange { run, total: count(self.total) })
            }
            Some(at) => Err(MapError::AlreadyUsed { at: id(at) }),
            None => Ok(()),
        };
        assert_eq!(map.try_take(run), expected);
        if expected.is_err() {
            assert_eq!(&map, self.real.map());
            return;
        }
        if len > self.available() {
            return;
        }
        self.real.take(run);
        let chain = Chain::from_runs([run]);
        self.took(&chain);
        self.fixed.extend(range(run));
    }

    fn give_back(&mut self, at: u32, len: u32) {
        let at = at % (self.total + 1);
        let inside: BTreeSet<u32> = self.fixed.range(at..at + len).copied().collect();
        for (start, len) in runs_of(&inside) {
            self.give(&Chain::from_runs([Run::new(id(start), count(len))]));
        }
        self.fixed.retain(|at| !inside.contains(at));
    }

    fn grow(&mut self, by: u32) {
        if self.total + by > 1 << 14 {
            return;
        }
        self.real.grow(count(self.total + by));
        self.free.extend(self.total..self.total + by);
        // growth is not undone by a rollback
        self.committed_free.extend(self.total..self.total + by);
        self.total += by;
    }

    fn shrink(&mut self, by: u32) {
        let to = self.total.saturating_sub(by);
        let used = (to..self.total).rev().find(|at| !self.free.contains(at));
        let before = self.real.map().clone();
        let result = self.real.shrink(count(to));
        match (result, used) {
            (Ok(()), None) => self.cut_to(to),
            (Err(MapError::InUse { last, wanted }), Some(at)) => {
                assert_eq!((last, wanted), (id(at), count(to)));
                assert_eq!(&before, self.real.map());
            }
            (Err(MapError::Reserved { .. }), None) => {
                assert!(self.available() < self.total - to);
                assert_eq!(&before, self.real.map());
            }
            wrong => panic!("shrinking by {by}: {wrong:?}"),
        }
    }

    fn cut_to(&mut self, to: u32) {
        assert!(self.total - to <= self.available(), "reserved sectors stay");
        self.free.split_off(&to);
        // a sector that was used at the last commit is deferred, so used
        self.committed_free.split_off(&to);
        self.total = to;
    }

    fn shrink_to_fit(&mut self) {
        let end = (0..self.total).rev().find(|at| !self.free.contains(at)).map_or(0, |at| at + 1);
        let to = self.real.shrink_to_fit().get();
        assert_eq!(to, end.max(self.total - self.available().min(self.total - end)));
        self.cut_to(to);
    }

    fn reserve(&mut self, wanted: u32) {
        match self.real.reserve(count(wanted)) {
            Ok(reservation) => {
                assert!(wanted <= self.available());
                self.reserved += wanted;
                self.reservations.push(reservation);
            }
            Err(error) => {
                let free = count(self.available());
                assert_eq!(error, NoSpace { wanted: count(wanted), free });
                assert!(wanted > free.get());
            }
        }
    }

    fn redeem(&mut self, which: u8, wanted: u32) {
        let Some(which) = pick(which, self.reservations.len()) else { return };
        let reservation = &mut self.reservations[which];
        let wanted = wanted % (reservation.sector_count().get() + 1);
        let chain = self.real.allocate_reserved(reservation, count(wanted), None);
        assert_eq!(chain.sector_count(), count(wanted));
        self.reserved -= wanted;
        self.took(&chain);
        self.streams.push(Stream::new(chain));
    }

    fn cancel(&mut self, which: u8) {
        let Some(which) = pick(which, self.reservations.len()) else { return };
        let reservation = self.reservations.remove(which);
        self.reserved -= reservation.sector_count().get();
        self.real.cancel(reservation);
    }

    fn commit(&mut self) {
        self.changes.commit(&mut self.real);
        self.free.append(&mut self.deferred);
        self.fresh.clear();
        self.committed_free.clone_from(&self.free);
        // windows hold sectors that belong to no committed stream
        for stream in &self.streams {
            self.committed_free.extend(stream.window.run().into_iter().flat_map(range));
        }
        self.committed_streams = self.streams.iter().map(Stream::copy).collect();
        self.committed_fixed.clone_from(&self.fixed);
    }

    fn rollback(&mut self) {
        (0..self.streams.len()).for_each(|which| self.drop_window(which));
        self.changes.rollback(&mut self.real);
        self.fresh.clear();
        self.deferred.clear();
        self.free.clone_from(&self.committed_free);
        self.streams = self.committed_streams.iter().map(Stream::copy).collect();
        self.fixed.clone_from(&self.committed_fixed);
    }

    fn rebuild(&mut self, from_words: bool) {
        let old = self.real.map();
        let total = count(self.total);
        let new = if from_words {
            FreeMap::from_free_words(total, old.words().to_vec())
        } else {
            let used: BTreeSet<u32> =
                (0..self.total).filter(|at| !self.free.contains(at)).collect();
            let used = runs_of(&used).into_iter().map(|(at, len)| Run::new(id(at), count(len)));
            FreeMap::from_used_runs(total, used).expect("used runs do not overlap")
        };
        assert_eq!(&new, old);
        let kept: Vec<u32> =
            self.reservations.drain(..).map(|kept| kept.sector_count().get()).collect();
        self.real = Allocator::new(new);
        for kept in kept {
            self.reservations.push(self.real.reserve(count(kept)).expect("it was there before"));
        }
    }

    /// Everything that can be observed, both ways.
    fn compare(&mut self) {
        let map = self.real.map();
        let runs = runs_of(&self.free);
        assert_eq!(map.total().get(), self.total);
        assert_eq!(map.free_count().get() as usize, self.free.len());
        assert_eq!(map.run_count() as usize, runs.len());
        let real: Vec<(u32, u32)> =
            map.free_runs().map(|run| (run.start().get(), run.count().get())).collect();
        assert_eq!(real, runs);
        self.real.verify().expect("the allocator's facts hold");
        self.changes.verify(map).expect("the transaction's facts hold");
        assert_eq!(self.changes.taken_count().get() as usize, self.fresh.len());
        assert_eq!(self.changes.deferred_count().get() as usize, self.deferred.len());
        assert!(self.fresh.iter().all(|&at| self.changes.is_fresh(id(at))));
        assert_eq!(self.real.available().get(), self.available());

        let longest = runs.iter().map(|&(_, len)| len).max();
        assert_eq!(map.largest_run().map(|run| run.count().get()), longest);
        let tail = runs.last().filter(|&&(start, len)| start + len == self.total);
        assert_eq!(map.trailing_free().get(), tail.map_or(0, |&(_, len)| len));
        let stats = self.real.stats();
        assert_eq!((stats.free, stats.largest), (map.free_count(), count(longest.unwrap_or(0))));
        assert_eq!(stats.runs_by_log2.iter().sum::<u32>() as usize, runs.len());

        for stream in &self.streams {
            assert_eq!(sectors_of(&stream.chain), stream.sectors);
            stream.chain.verify().expect("runs are maximal and distinct");
        }
        self.compare_places(&runs);
        self.compare_searches(&runs);
    }

    /// Point queries, at some places.
    fn compare_places(&self, runs: &[(u32, u32)]) {
        let map = self.real.map();
        let step = (self.total as usize / 40).max(1);
        for at in (0..=self.total + 1).step_by(step) {
            let free = self.free.contains(&at);
            assert_eq!(map.is_free(id(at)), free);
            assert_eq!(map.next_free(id(at)), self.free.range(at..).next().copied().map(id));
            // the run that holds `at`, if one does
            let run = runs.iter().rfind(|&&(start, _)| start <= at).filter(|_| free);
            let run = run.map(|&(start, len)| Run::new(id(start), count(len)));
            assert_eq!(map.free_run_at(id(at)), run);
            let used = run.map_or(id(at), Run::end);
            assert_eq!(map.next_used(id(at)), (used.get() < self.total).then_some(used));
        }
    }

    /// A search finds a run if and only if there is one; the shortest below
    /// 512 sectors.
    fn compare_searches(&self, runs: &[(u32, u32)]) {
        // searching drops wrong candidates: the copy must not spare the
        // allocator from meeting them
        let mut map = self.real.map().clone();
        let lens = (1..70).chain((70..200).step_by(7)).chain(511..515).chain(1023..1026);
        let around = runs.iter().flat_map(|&(_, len)| [len, len + 1]).take(20);
        for wanted in lens.chain(around) {
            let best = runs.iter().map(|&(_, len)| len).filter(|&len| len >= wanted).min();
            let exact = map.bins_are_complete();
            let found = map.find(count(wanted), None);
            assert_eq!(found.is_some(), best.is_some(), "a run of {wanted}, best {best:?}");
            let Some(found) = found else { continue };
            assert_eq!(found.count().get(), wanted);
            let (_, len) = runs
                .iter()
                .find(|&&(start, _)| id(start) == found.start())
                .expect("the front of a free run is found");
            assert!(*len >= wanted);
            let best = best.unwrap_or(0);
            let fits = !exact || fits_best(*len, best);
            assert!(fits, "{len} for {wanted}, the best is {best}");
        }
        map.verify().expect("searching leaves the facts as they are");
        assert_eq!(&map, self.real.map());
    }

    /// Releases everything: the map must be as good as new.
    pub(crate) fn finish(mut self) {
        while !self.streams.is_empty() {
            self.release(0);
        }
        self.commit();
        while !self.reservations.is_empty() {
            self.cancel(0);
        }
        for (start, len) in runs_of(&std::mem::take(&mut self.fixed)) {
            self.real.release(Run::new(id(start), count(len)));
            self.free.extend(start..start + len);
        }
        self.compare();
        assert_eq!(self.real.map(), &FreeMap::new(count(self.total)), "nothing is lost");
        let all = Run::between(id(0), id(self.total));
        assert_eq!(self.real.map().largest_run(), all);
    }
}
