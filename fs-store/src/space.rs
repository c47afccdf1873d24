//! Where things go: the block files, what is free in them, and when what was
//! given up may be used again.
//!
//! What a commit gives up is still needed: by readers that opened it before,
//! and by the state that a crash would bring back until the commit has been
//! flushed. So it waits in a queue with two numbers: the tick of the clock at
//! which nobody new could see it, and the number of the commit. It becomes free
//! when every reader began at that tick or later, and that commit is durable.
//!
//! A reader that only wants a few bytes does without a pin: it notes the clock,
//! looks up, reads, and asks afterwards whether anything given up since has been
//! made free ([`Space::is_undisturbed`]); if so it starts again.

use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use quick_cache::sync::Cache;

use alloc_core::{Allocator, FreeMap, Run, SectorCount, SectorId};

use crate::block_file::BlockFile;
use crate::disk::Disk;
use crate::error::{Doing, Error, Result};
use crate::extent::{Extent, Extents, pieces, push};
use crate::layout::{encode_file_header, file_name, reserved_sectors};

/// A file grows by at least so much at once.
const LEAST_GROWTH_BYTES: u64 = 256 << 10;

/// And by at most so much ahead of what is wanted.
const MOST_GROWTH_BYTES: u64 = 64 << 20;

/// A file grows by this part of its size.
const GROWTH_PART: u64 = 64;

/// An object in pieces has about so many at most, unless the files cannot grow or
/// much is free: then more in proportion, up to [`MORE_PIECES`] if all is.
const MOST_PIECES: u64 = 64;

/// See [`MOST_PIECES`].
const MORE_PIECES: u64 = 4096;

/// This part of all sectors is left for runs to be found in: with less free, files
/// grow before objects are put into pieces.
const SLACK_PART: u64 = 64;

/// The block files of a store.
pub(crate) struct Space {
    disk: Arc<dyn Disk>,
    pub(crate) sector_bytes: u32,
    limits: Limits,
    files: RwLock<Arc<[Arc<BlockFile>]>>,
    state: Mutex<State>,
    /// Held while a file grows, so that one grows at a time.
    growing: Mutex<()>,
    /// Moves when something can no longer be seen by those who begin now.
    clock: AtomicU64,
    /// Everything given up until this tick may have been used again.
    reclaimed: AtomicU64,
    /// Blocks of checksums of long objects that were read last: by the version of
    /// the object, the block file and the byte offset in it.
    pub(crate) sum_blocks: Cache<(u64, u16, u64), Arc<[u32]>>,
}

/// So many of 4 KiB are kept: those of 32 objects of 64 MiB.
const SUM_BLOCKS: usize = 160;

/// How large files may become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) store_id: u64,
    /// Sectors of one block file.
    pub(crate) file_sectors: u32,
    /// Bytes of all block files together.
    pub(crate) total_bytes: u64,
}

struct State {
    maps: Vec<Allocator>,
    freed: VecDeque<Freed>,
    /// Sectors in `freed`.
    waiting: u64,
    /// Ticks at which readers began, and how many began there.
    pins: BTreeMap<u64, usize>,
    /// Commits up to this one are on the medium.
    durable: u64,
    /// Sectors that are taken and belong to no commit yet.
    unsettled: u64,
    /// Sectors that objects must leave, so that what is there can still be changed.
    reserve: u64,
}

struct Freed {
    tick: u64,
    seq: u64,
    extent: Extent,
}

/// What an allocation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Bytes of objects: may lie in pieces, and leaves the reserve alone.
    Object,
    /// The store's own: in one run.
    Own,
}

/// Figures of the block files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpaceUsage {
    pub(crate) total: u64,
    pub(crate) free: u64,
    pub(crate) waiting: u64,
    pub(crate) unsettled: u64,
}

/// Keeps what a reader can see from being used again.
pub(crate) struct Pin {
    space: Arc<Space>,
    tick: u64,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.space.lock();
        let count = state.pins.get_mut(&self.tick).expect("pinned");
        *count -= 1;
        if *count == 0 {
            state.pins.remove(&self.tick);
        }
    }
}

impl State {
    /// Makes free what nobody needs any more; the last tick of it.
    fn reclaim(&mut self, clock: u64) -> Option<u64> {
        let oldest = self.pins.first_key_value().map_or(clock, |(&tick, _)| tick);
        let mut last = None;
        while let Some(front) = self.freed.front()
            && front.tick <= oldest
            && front.seq <= self.durable
        {
            let Freed { tick, extent, .. } = self.freed.pop_front().expect("just seen");
            self.waiting -= u64::from(extent.count);
            self.maps[usize::from(extent.file)].release(extent.run());
            last = Some(tick);
        }
        last
    }

    fn flush_helps(&self, count: u64) -> bool {
        self.waiting > 0 && self.waiting >= count.max(self.total() / SLACK_PART)
    }

    fn free_count(&self) -> u64 {
        self.maps.iter().map(|map| u64::from(map.map().free_count().get())).sum()
    }

    fn total(&self) -> u64 {
        self.maps.iter().map(|map| u64::from(map.map().total().get())).sum()
    }

    /// One run in any of the files.
    fn take_run(&mut self, count: u64, goal: Option<Extent>) -> Option<Extent> {
        let count = SectorCount::new(count.try_into().ok()?);
        let order = goal.map(|goal| usize::from(goal.file)).into_iter().chain(0..self.maps.len());
        for file in order {
            let number = u16::try_from(file).expect("few files");
            let goal = goal.filter(|goal| goal.file == number);
            let goal = goal.map(|goal| SectorId::new(goal.start + goal.count));
            if let Some(run) = self.maps[file].find(count, goal) {
                self.maps[file].take(run);
                return Some(Extent::new(number, run));
            }
        }
        None
    }

    /// Pieces of at least `least` sectors, or nothing if they are not enough.
    fn take_pieces(&mut self, count: u64, least: u32) -> Option<Extents> {
        if self.free_count() < count {
            return None;
        }
        let mut left = count;
        let mut taken = Extents::new();
        for file in 0..self.maps.len() {
            let want = SectorCount::new(u32::try_from(left).unwrap_or(u32::MAX));
            let least = SectorCount::new(least).min(want);
            if want.is_zero() {
                break;
            }
            for run in self.maps[file].allocate_pieces(want, least).runs() {
                left -= u64::from(run.count().get());
                push(&mut taken, Extent::new(u16::try_from(file).expect("few files"), run));
            }
        }
        if left == 0 {
            return Some(taken);
        }
        for extent in taken {
            self.maps[usize::from(extent.file)].release(extent.run());
        }
        None
    }
}

impl Space {
    /// The space of files of which `used` sectors are in use, a map each.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        files: Vec<Arc<BlockFile>>,
        maps: Vec<FreeMap>,
        sector_bytes: u32,
        limits: Limits,
    ) -> Self {
        assert_eq!(files.len(), maps.len(), "a map a file");
        let state = State {
            maps: maps.into_iter().map(Allocator::new).collect(),
            freed: VecDeque::new(),
            waiting: 0,
            pins: BTreeMap::new(),
            durable: 0,
            unsettled: 0,
            reserve: 0,
        };
        Self {
            disk,
            sector_bytes,
            limits,
            files: RwLock::new(files.into()),
            state: Mutex::new(state),
            growing: Mutex::new(()),
            clock: AtomicU64::new(1),
            reclaimed: AtomicU64::new(0),
            sum_blocks: Cache::new(SUM_BLOCKS),
        }
    }

    // No call under this lock can panic with half a change done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The block files there are.
    pub(crate) fn files(&self) -> Arc<[Arc<BlockFile>]> {
        Arc::clone(&self.files.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Byte offset of a sector in its file.
    pub(crate) fn offset_of(&self, extent: Extent) -> u64 {
        u64::from(extent.start) * u64::from(self.sector_bytes)
    }

    /// What is recorded in an extent, from byte `offset` of it on, breaks a rule.
    pub(crate) fn damaged(
        &self,
        what: &'static str,
        extent: Extent,
        offset: u64,
        why: &'static str,
    ) -> Error {
        Error::damaged(what, file_name(extent.file), self.offset_of(extent) + offset, why)
    }

    /// Sectors for so many bytes.
    pub(crate) fn sectors_for(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.sector_bytes.into())
    }

    // ------------------------------------------------------------ time

    /// Now.
    pub(crate) fn now(&self) -> u64 {
        self.clock.load(Ordering::Acquire)
    }

    /// Moves the clock. What was visible before and is not any more must have
    /// been hidden by then.
    pub(crate) fn tick(&self) {
        self.clock.fetch_add(1, Ordering::AcqRel);
    }

    /// Keeps all that can be seen from now on until the pin is dropped.
    pub(crate) fn pin(self: &Arc<Self>) -> Pin {
        let mut state = self.lock();
        let tick = self.now();
        *state.pins.entry(tick).or_default() += 1;
        Pin { space: Arc::clone(self), tick }
    }

    /// Keeps what another pin keeps.
    pub(crate) fn pin_again(self: &Arc<Self>, pin: &Pin) -> Pin {
        *self.lock().pins.entry(pin.tick).or_default() += 1;
        Pin { space: Arc::clone(self), tick: pin.tick }
    }

    /// Whether nothing that could be seen at tick `began` has been used again.
    pub(crate) fn is_undisturbed(&self, began: u64) -> bool {
        std::sync::atomic::fence(Ordering::SeqCst);
        self.reclaimed.load(Ordering::Acquire) <= began
    }

    /// Sectors that are given up by commit `seq`, invisible to those who begin at
    /// the next tick.
    pub(crate) fn give_up(&self, extents: impl IntoIterator<Item = Extent>, seq: u64) {
        let mut state = self.lock();
        let tick = self.now() + 1;
        for extent in extents {
            state.waiting += u64::from(extent.count);
            state.freed.push_back(Freed { tick, seq, extent });
        }
    }

    /// All commits up to `seq` are on the medium.
    pub(crate) fn set_durable(&self, seq: u64) {
        let mut state = self.lock();
        state.durable = state.durable.max(seq);
        self.reclaim(&mut state);
    }

    fn reclaim(&self, state: &mut State) {
        if let Some(tick) = state.reclaim(self.now()) {
            self.reclaimed.fetch_max(tick, Ordering::AcqRel);
        }
    }

    // ------------------------------------------------------------ sectors

    /// Takes `count` sectors. They are the caller's until [`Space::settle`] or
    /// [`Space::release`]. `flush` makes the commits so far durable; it is called
    /// when that would make enough sectors free.
    ///
    /// # Errors
    ///
    /// [`Error::Full`], and those of `flush`.
    pub(crate) fn allocate(
        &self,
        count: u64,
        purpose: Purpose,
        goal: Option<Extent>,
        flush: &dyn Fn() -> Result<()>,
    ) -> Result<Extents> {
        assert!(count > 0, "nothing to allocate");
        let mut has_flushed = false;
        loop {
            let mut state = self.lock();
            if let Some(taken) = self.take(&mut state, count, purpose, goal, false) {
                return Ok(taken);
            }
            if !has_flushed && state.flush_helps(count) {
                drop(state);
                has_flushed = true;
                flush()?;
                continue;
            }
            let wanted = count + if purpose == Purpose::Object { state.reserve } else { 0 };
            drop(state);
            let Err(refusal) = self.grow(wanted) else { continue };
            let mut state = self.lock();
            if let Some(taken) = self.take(&mut state, count, purpose, goal, true) {
                return Ok(taken);
            }
            if !has_flushed && state.waiting > 0 {
                drop(state);
                has_flushed = true;
                flush()?;
                continue;
            }
            let bytes = u64::from(self.sector_bytes);
            let free = match purpose {
                Purpose::Object => state.free_count().saturating_sub(state.reserve),
                Purpose::Own => state.free_count(),
            };
            return Err(Error::Full { wanted: count * bytes, free: free * bytes, source: refusal });
        }
    }

    fn take(
        &self,
        state: &mut State,
        count: u64,
        purpose: Purpose,
        goal: Option<Extent>,
        is_last: bool,
    ) -> Option<Extents> {
        if let Some(run) = self.take_one(state, count, purpose, goal) {
            return Some(run);
        }
        if purpose == Purpose::Own || state.free_count() < count + state.reserve {
            return None;
        }
        let is_ample = state.free_count() >= count + state.total() / SLACK_PART;
        if !is_ample && !is_last {
            return None;
        }
        let pieces = MOST_PIECES + MORE_PIECES * state.free_count() / state.total().max(1);
        let least = u32::try_from(count.div_ceil(pieces)).unwrap_or(u32::MAX);
        let taken = state.take_pieces(count, if is_last { 1 } else { least })?;
        state.unsettled += count;
        Some(taken)
    }

    /// Takes `count` sectors in one run, if there is one: nothing grows for it.
    pub(crate) fn try_run(
        &self,
        count: u64,
        purpose: Purpose,
        goal: Option<Extent>,
    ) -> Option<Extents> {
        self.take_one(&mut self.lock(), count, purpose, goal)
    }

    fn take_one(
        &self,
        state: &mut State,
        count: u64,
        purpose: Purpose,
        goal: Option<Extent>,
    ) -> Option<Extents> {
        self.reclaim(state);
        if purpose == Purpose::Object && state.free_count() < count + state.reserve {
            return None;
        }
        let run = state.take_run(count, goal)?;
        state.unsettled += count;
        Some(Extents::from_elem(run, 1))
    }

    /// Whether a flush would make enough free for `count` sectors, and so much that
    /// it is worth its time.
    pub(crate) fn flush_helps(&self, count: u64) -> bool {
        self.lock().flush_helps(count)
    }

    /// Whether `count` sectors can be had from what is free, in runs or pieces,
    /// without using up what is left for runs.
    pub(crate) fn is_ample(&self, count: u64) -> bool {
        let state = self.lock();
        state.free_count() >= count + state.reserve + state.total() / SLACK_PART
    }

    /// Sectors that were taken are part of a commit now.
    pub(crate) fn settle(&self, extents: impl IntoIterator<Item = Extent>) {
        let count: u64 = extents.into_iter().map(|extent| u64::from(extent.count)).sum();
        self.lock().unsettled -= count;
    }

    /// Gives back sectors that were taken and never became part of a commit.
    pub(crate) fn release(&self, extents: impl IntoIterator<Item = Extent>) {
        let mut state = self.lock();
        for extent in extents {
            state.unsettled -= u64::from(extent.count);
            state.maps[usize::from(extent.file)].release(extent.run());
        }
    }

    /// Objects are to leave so many sectors free.
    pub(crate) fn set_reserve(&self, sectors: u64) {
        self.lock().reserve = sectors;
    }

    /// Sees to it that what objects are to leave is there: for those that need no
    /// sectors themselves, but fill the index.
    ///
    /// # Errors
    ///
    /// [`Error::Full`], and those of `flush`.
    pub(crate) fn keep_reserve(&self, flush: &dyn Fn() -> Result<()>) -> Result<()> {
        let missing = || {
            let mut state = self.lock();
            self.reclaim(&mut state);
            let free = state.free_count();
            (free < state.reserve).then_some((state.reserve, free))
        };
        let Some((reserve, _)) = missing() else { return Ok(()) };
        let Err(refusal) = self.grow(reserve) else { return Ok(()) };
        flush()?;
        let Some((reserve, free)) = missing() else { return Ok(()) };
        let bytes = u64::from(self.sector_bytes);
        Err(Error::Full { wanted: reserve * bytes, free: free * bytes, source: refusal })
    }

    /// Makes a file larger, or adds one, so that `count` sectors in one run are
    /// free then.
    ///
    /// # Errors
    ///
    /// What the system said, or nothing if it is the limit of the store.
    fn grow(&self, count: u64) -> Result<(), Option<std::io::Error>> {
        let _one = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = u64::from(self.sector_bytes);
        let (last, total, all, trailing) = {
            let state = self.lock();
            let last = state.maps.len() - 1;
            let map = state.maps[last].map();
            if u64::from(map.largest_run().map_or(0, |run| run.count().get())) >= count {
                return Ok(()); // somebody else has made room
            }
            (last, map.total().get(), state.total(), u64::from(map.trailing_free().get()))
        };
        let room = self.limits.total_bytes / bytes;
        let ahead = (u64::from(total) * bytes / GROWTH_PART)
            .clamp(LEAST_GROWTH_BYTES, MOST_GROWTH_BYTES)
            .div_ceil(bytes);
        let needed = count.saturating_sub(trailing);
        let in_file = u64::from(self.limits.file_sectors - total.min(self.limits.file_sectors));
        if needed > in_file {
            return self.add_file(count, room.saturating_sub(all));
        }
        let most = in_file.min(room.saturating_sub(all));
        if needed > most {
            return Err(None);
        }
        let file = Arc::clone(&self.files()[last]);
        // When the step cannot be had, just what is needed can perhaps.
        let steps = [needed.max(ahead).min(most), needed];
        let mut refusal = None;
        for step in steps {
            let new = u64::from(total) + step;
            match file.set_len(new * bytes) {
                Ok(()) => {
                    let new = u32::try_from(new).expect("within the limit of a file");
                    self.lock().maps[last].grow(SectorCount::new(new));
                    return Ok(());
                }
                Err(error) => refusal = Some(error),
            }
        }
        Err(refusal)
    }

    /// Adds a block file with `count` free sectors.
    fn add_file(&self, count: u64, room: u64) -> Result<(), Option<std::io::Error>> {
        let files = self.files();
        let Ok(number) = u16::try_from(files.len()) else { return Err(None) };
        let reserved = reserved_sectors(number, self.sector_bytes);
        let sectors = count + u64::from(reserved);
        if sectors > u64::from(self.limits.file_sectors) || sectors > room {
            return Err(None);
        }
        let total = u32::try_from(sectors).expect("within the limit of a file");
        let name = file_name(number);
        let file = match self.disk.open(&name, true, true) {
            // What a crash has left of one that was never used.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                self.disk.open(&name, false, true).map_err(Some)?
            }
            opened => opened.map_err(Some)?,
        };
        let header = encode_file_header(self.limits.store_id, number);
        file.set_len(0).map_err(Some)?;
        file.set_len(sectors * u64::from(self.sector_bytes)).map_err(Some)?;
        file.write_at(&[IoSlice::new(&header)], 0).map_err(Some)?;
        // It must be there before anything refers to it.
        file.sync().map_err(Some)?;
        self.disk.sync().map_err(Some)?;
        let mut map = FreeMap::new(SectorCount::new(total));
        map.take(Run::new(SectorId::new(0), SectorCount::new(reserved)));
        let files: Vec<_> =
            files.iter().cloned().chain([Arc::new(BlockFile::new(name, file))]).collect();
        *self.files.write().unwrap_or_else(PoisonError::into_inner) = files.into();
        self.lock().maps.push(Allocator::new(map));
        Ok(())
    }

    /// Gives the free ends of all files back to the system, and what is free in
    /// them too, where it can. How many bytes that are.
    pub(crate) fn trim(&self) -> Result<u64> {
        let _one = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = u64::from(self.sector_bytes);
        let mut won = 0;
        for (number, file) in self.files().iter().enumerate() {
            let before = file.allocated_bytes()?;
            let (total, left) = {
                let mut state = self.lock();
                self.reclaim(&mut state);
                let map = &mut state.maps[number];
                (map.map().total(), map.shrink_to_fit())
            };
            let len = u64::from(left.get()) * bytes;
            if let Err(error) = file.set_len(len) {
                self.lock().maps[number].grow(total);
                return Err(error).doing("cutting off", &file.name, len);
            }
            // Taken while they are punched, so that nobody writes to them.
            let holes: Vec<Run> = {
                let mut state = self.lock();
                let map = &mut state.maps[number];
                let holes = map.map().free_runs().collect::<Vec<_>>();
                for &hole in &holes {
                    map.take(hole);
                }
                state.unsettled +=
                    holes.iter().map(|hole| u64::from(hole.count().get())).sum::<u64>();
                holes
            };
            let punched = holes.iter().try_for_each(|hole| {
                let offset = u64::from(hole.start().get()) * bytes;
                file.punch(offset, hole.count().bytes(self.sector_bytes))
            });
            let mut state = self.lock();
            for hole in holes {
                state.unsettled -= u64::from(hole.count().get());
                state.maps[number].release(hole);
            }
            drop(state);
            punched?;
            won += before.saturating_sub(file.allocated_bytes()?);
        }
        Ok(won)
    }

    /// Figures.
    pub(crate) fn usage(&self) -> SpaceUsage {
        let mut state = self.lock();
        self.reclaim(&mut state);
        SpaceUsage {
            total: state.total(),
            free: state.free_count(),
            waiting: state.waiting,
            unsettled: state.unsettled,
        }
    }

    // ------------------------------------------------------------ bytes

    /// Brings what was written to all files to the medium.
    pub(crate) fn sync(&self) -> Result<()> {
        self.files().iter().try_for_each(|file| file.sync())
    }

    /// Writes bytes to sectors, from byte `offset` of them on, and zeros up to
    /// the end of the last sector.
    pub(crate) fn write(
        &self,
        extents: &[Extent],
        offset: u64,
        bytes: &[IoSlice<'_>],
    ) -> Result<()> {
        let sector_bytes = u64::from(self.sector_bytes);
        let len: u64 = bytes.iter().map(|piece| piece.len() as u64).sum();
        let padding =
            vec![
                0;
                usize::try_from((offset + len).next_multiple_of(sector_bytes) - offset - len)
                    .expect("small")
            ];
        let files = self.files();
        let mut sources = bytes.iter().map(|piece| &piece[..]).chain([&padding[..]]);
        let mut source: &[u8] = &[];
        for (file, at, mut left) in
            pieces(extents, self.sector_bytes, offset, len + padding.len() as u64)
        {
            let mut parts = Vec::with_capacity(bytes.len().min(16) + 1);
            while left > 0 {
                while source.is_empty() {
                    source = sources.next().expect("as many bytes as room");
                }
                let count = source.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let (part, rest) = source.split_at(count);
                parts.push(IoSlice::new(part));
                left -= count as u64;
                source = rest;
            }
            files[usize::from(file)].write_at(&parts, at)?;
        }
        Ok(())
    }

    /// Writes zeros.
    pub(crate) fn clear(&self, extent: Extent) -> Result<()> {
        let zeros = vec![0; 256 << 10];
        let len = u64::from(extent.count) * u64::from(self.sector_bytes);
        for at in (0..len).step_by(zeros.len()) {
            let count = usize::try_from(len - at).unwrap_or(zeros.len()).min(zeros.len());
            self.write(&[extent], at, &[IoSlice::new(&zeros[..count])])?;
        }
        Ok(())
    }

    /// Appends `len` bytes of what lies in sectors, from byte `offset` of them on.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Damaged`] if a file is too short.
    pub(crate) fn read_onto(
        &self,
        extents: &[Extent],
        offset: u64,
        len: usize,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        let files = self.files();
        for (file, at, len) in pieces(extents, self.sector_bytes, offset, len as u64) {
            let before = buf.len();
            let len = usize::try_from(len).expect("at most what was asked for");
            let block_file = file_of(&files, file, at)?;
            block_file.read_onto(buf, len, at)?;
            if buf.len() < before + len {
                return Err(too_short(block_file, at));
            }
        }
        Ok(())
    }

    /// Fills `buf` with what lies in sectors, from byte `offset` of them on.
    ///
    /// # Errors
    ///
    /// As [`Space::read_onto`].
    pub(crate) fn read_into(&self, extents: &[Extent], offset: u64, buf: &mut [u8]) -> Result<()> {
        let files = self.files();
        let mut rest = buf;
        for (file, at, len) in pieces(extents, self.sector_bytes, offset, rest.len() as u64) {
            let (part, after) =
                rest.split_at_mut(usize::try_from(len).expect("at most the buffer"));
            let block_file = file_of(&files, file, at)?;
            if block_file.read_at(part, at)? < part.len() {
                return Err(too_short(block_file, at));
            }
            rest = after;
        }
        Ok(())
    }
}

fn file_of(files: &[Arc<BlockFile>], file: u16, at: u64) -> Result<&Arc<BlockFile>> {
    let missing =
        || Error::damaged("an extent", file_name(file), at, "there is no such block file");
    files.get(usize::from(file)).ok_or_else(missing)
}

fn too_short(file: &BlockFile, at: u64) -> Error {
    Error::damaged("an extent", file.name.clone(), at, "the file ends before it")
}
