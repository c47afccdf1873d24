//! One open stream: what its handles share.

use std::ops::Range;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use alloc_core::{Chain, Run};

use crate::error::{Corruption, Error};
use crate::state::Found;

/// What a stream takes ahead first, and at most, in sectors; it doubles from
/// one to the other while the stream grows.
const MIN_AHEAD_SECTORS: u32 = 8;
pub(crate) const MAX_AHEAD_SECTORS: u32 = 1024;

/// What a stream of so many sectors takes ahead when it grows for the first
/// time since it was settled: half its length, so that streams that grow in
/// turn and are flushed after each turn get runs that grow with them. Not
/// more, since each flush takes it back and writes the FAT sectors it was in.
pub(crate) fn ahead_sectors(len_sectors: u32) -> u32 {
    (len_sectors / 2).clamp(MIN_AHEAD_SECTORS, MAX_AHEAD_SECTORS / 2)
}

/// Where a stream's bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In sectors of the file.
    Regular,
    /// In mini sectors of the mini stream.
    Mini,
}

/// A stream with at least one handle.
///
/// Lock order: the file's state before a node's body. Readers take the body
/// alone, shared, for the length of one read; so reads of different streams
/// never wait for each other. A writer takes both, decides, lets the state
/// go, and keeps the body while its bytes are on their way.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) slot: u32,
    /// How many handles there are. The last one is dropped with the state held.
    handles: AtomicUsize,
    len: AtomicU64,
    /// Counts changes, so that buffered bytes can be told to be old.
    version: AtomicU64,
    /// Whether it is on the state's list of closed streams, and was closed again
    /// since it came to the end of that. With the state held.
    pub(crate) is_listed: AtomicBool,
    pub(crate) is_used_again: AtomicBool,
    pub(crate) body: RwLock<Body>,
}

/// Where an open stream's sectors are.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) place: Place,
    pub(crate) chain: Chain,
    /// Sectors to take beyond what is needed when the stream grows next: so
    /// that streams growing in turn get long runs, and most writes decide
    /// nothing. They are part of the chain until the stream is settled.
    pub(crate) ahead_sectors: u32,
    /// Bytes that can be read, where the file is damaged: `damage` says why not all.
    pub(crate) intact: u64,
    pub(crate) damage: Option<Corruption>,
    /// Chains left behind by a move, to be given back when the state is next at hand.
    pub(crate) garbage: Vec<(Place, Chain)>,
    pub(crate) removed: bool,
    /// Whether the entry or the tables may differ from this.
    pub(crate) changed: bool,
    /// Bytes of the stream that nothing else refers to, the saved state
    /// included: those can be written where they are.
    pub(crate) fresh: Range<u64>,
    /// Sectors that took the place of others, as first and count: the table
    /// does not have them yet.
    pub(crate) spliced: Vec<(u32, u32)>,
    pub(crate) beside: Option<Beside>,
    /// So many sectors are taken for the next [`Beside`].
    pub(crate) beside_sectors: u32,
    saved: SavedLen,
}

/// Sectors that were taken for those of the chain from the `first`th on, which the
/// saved state refers to: a stream is being written over, and is likely to go on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    pub(crate) first: u32,
    pub(crate) run: Run,
}

/// How many bytes of a stream a saved state may refer to. Those behind them can
/// be written where they are, also in a sector that has some of them.
#[derive(Debug)]
struct SavedLen {
    /// Never less than what a saved state has.
    at_most: u64,
    /// The length when the stream was last settled, and how many saves there had
    /// been by then: the next one saved that length.
    settled: u64,
    saves_count: u64,
}

impl Body {
    /// Whether all bytes of a range can be written where they are.
    pub(crate) fn is_fresh(&self, range: &Range<u64>) -> bool {
        self.fresh.start <= range.start && range.end <= self.fresh.end
    }

    /// Notes that the bytes of a range can be written where they are.
    pub(crate) fn note_fresh(&mut self, range: Range<u64>) {
        let touch = range.start <= self.fresh.end && self.fresh.start <= range.end;
        self.fresh = if touch && !self.fresh.is_empty() {
            self.fresh.start.min(range.start)..self.fresh.end.max(range.end)
        } else {
            range
        };
    }

    /// Leaves sectors behind, to be given back at the next chance.
    pub(crate) fn discard(&mut self, place: Place, chain: Chain) {
        match self.garbage.last_mut() {
            Some((last_place, last)) if *last_place == place => last.append(chain),
            _ => self.garbage.push((place, chain)),
        }
    }

    /// Notes that `count` sectors from the `first`th on took the place of others.
    pub(crate) fn note_spliced(&mut self, first: u32, count: u32) {
        match self.spliced.last_mut() {
            Some((start, before)) if *start + *before == first => *before += count,
            _ => self.spliced.push((first, count)),
        }
    }

    /// How many sectors to take beyond the `count` that a write at `offset` is to
    /// replace: none, unless it goes on where the last one ended.
    pub(crate) fn sectors_beside(&mut self, offset: u64, count: u32) -> u32 {
        let goes_on = !self.fresh.is_empty()
            && (self.fresh.start..=self.fresh.end).contains(&offset)
            && self.damage.is_none();
        if !goes_on || count > MAX_AHEAD_SECTORS / 4 {
            self.beside_sectors = MIN_AHEAD_SECTORS;
            return 0;
        }
        let wanted = self.beside_sectors.max(4 * count);
        self.beside_sectors = (wanted * 2).min(MAX_AHEAD_SECTORS);
        wanted
    }

    /// Goes over to another chain. The old one is given back at the next chance.
    pub(crate) fn leave_chain(&mut self, new: Chain, place: Place) {
        let old = std::mem::replace(&mut self.chain, new);
        self.discard(self.place, old);
        self.spliced.clear();
        self.fresh = 0..0;
        self.place = place;
        (self.saved.at_most, self.saved.settled) = (0, 0);
    }

    /// Bytes that a saved state may refer to, after so many saves.
    pub(crate) const fn saved_len(&mut self, saves_count: u64) -> u64 {
        if saves_count > self.saved.saves_count {
            self.saved.at_most = self.saved.settled;
        }
        self.saved.at_most
    }

    /// The next save is going to have this length, if it succeeds.
    pub(crate) fn note_settled(&mut self, len: u64, saves_count: u64) {
        let at_most = self.saved_len(saves_count).max(len);
        self.saved = SavedLen { at_most, settled: len, saves_count };
    }

    /// # Errors
    ///
    /// [`Error::Stale`] when the entry was removed.
    pub(crate) fn live(&self) -> Result<(), Error> {
        if self.removed { Err(Error::Stale) } else { Ok(()) }
    }
}

impl Node {
    /// `is_saved` if the saved state has the same length, after so many saves.
    pub(crate) fn new(slot: u32, len: u64, found: Found, is_saved: bool, saves_count: u64) -> Self {
        // Sectors that an empty stream gets are nobody else's.
        let at_most = if is_saved || len == 0 { len } else { u64::MAX };

        let ahead_sectors = ahead_sectors(found.chain.sector_count().get());
        Self {
            slot,
            handles: AtomicUsize::new(0),
            len: AtomicU64::new(len),
            version: AtomicU64::new(0),
            is_listed: AtomicBool::new(false),
            is_used_again: AtomicBool::new(false),
            body: RwLock::new(Body {
                place: found.place,
                chain: found.chain,
                ahead_sectors,
                intact: found.intact,
                damage: found.damage,
                garbage: Vec::new(),
                removed: false,
                changed: false,
                fresh: 0..0,
                spliced: Vec::new(),
                beside: None,
                beside_sectors: MIN_AHEAD_SECTORS,
                saved: SavedLen { at_most, settled: len, saves_count },
            }),
        }
    }

    /// To be called with the state held, or for another handle beside one.
    pub(crate) fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::AcqRel);
    }

    /// To be called with the state held. Says whether there are others.
    pub(crate) fn drop_handle(&self) -> bool {
        self.handles.fetch_sub(1, Ordering::AcqRel) > 1
    }

    pub(crate) fn has_handles(&self) -> bool {
        self.handles.load(Ordering::Acquire) > 0
    }

    /// Bytes of the stream.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// To be called with the body held for writing.
    pub(crate) fn set_len(&self, len: u64) {
        self.len.store(len, Ordering::Release);
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// To be called with the body held for writing, after each change of content.
    pub(crate) fn content_changed(&self) {
        // One writer at a time: no locked instruction, which would wait for
        // all that was written before.
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use crate::{CompoundFile, CreateOptions, MemStorage};

    /// An atomic file in memory with 5,000 bytes in the stream "a", saved.
    fn saved() -> CompoundFile<MemStorage> {
        let options = CreateOptions::new().in_place(false);
        let file = options.create_storage(MemStorage::new()).unwrap();
        file.write_stream("a", &[1; 5000]).unwrap();
        file.flush().unwrap();
        file
    }

    /// What a crash would leave.
    fn left_of(file: &CompoundFile<MemStorage>) -> Vec<u8> {
        let left = file.storage().to_vec();
        CompoundFile::from_storage(&left[..]).unwrap().read_stream("a").unwrap()
    }

    #[test]
    fn bytes_behind_the_saved_ones_are_written_in_the_same_sector() {
        let file = saved();
        let stream = file.open_stream("a").unwrap();
        for turn in 0..40 {
            let extents = stream.extents().unwrap();
            let len = stream.len();
            stream.write_at(&[2; 7], len).unwrap();
            assert_eq!(stream.extents().unwrap()[0].offset, extents[0].offset);
            assert_eq!(left_of(&file).len(), 5000 + 7 * turn);
            file.flush().unwrap();
        }
        let expected = [[1; 5000].as_slice(), &[2; 280]].concat();
        assert_eq!(left_of(&file), expected);
        assert_eq!(file.check().unwrap(), []);
    }

    #[test]
    fn saved_bytes_that_were_cut_off_are_not_written_over() {
        for reopened in [false, true] {
            let file = saved();
            let stream = file.open_stream("a").unwrap();
            stream.set_len(4900).unwrap();
            if reopened {
                drop(stream);
                for i in 0..200 {
                    file.create_stream(&format!("{i}")).unwrap();
                }
            } else {
                drop(stream);
            }
            let stream = file.open_stream("a").unwrap();
            stream.write_at(&[2; 30], 4900).unwrap();
            stream.write_at(&[3; 300], 4930).unwrap();
            assert_eq!(left_of(&file), [1; 5000]);
            file.flush().unwrap();
            let expected = [[1; 4900].as_slice(), &[2; 30], &[3; 300]].concat();
            assert_eq!(left_of(&file), expected);
            // What was cut off is nobody's now.
            stream.set_len(4910).unwrap();
            file.flush().unwrap();
            let at = stream.extents().unwrap();
            stream.write_at(&[4; 10], 4910).unwrap();
            assert_eq!(stream.extents().unwrap()[0].offset, at[0].offset);
            assert_eq!(left_of(&file), [[1; 4900].as_slice(), &[2; 10]].concat());
        }
    }

    #[test]
    fn streams_that_grow_in_turn_with_a_flush_after_each_turn_get_long_runs() {
        let file = CompoundFile::create_in(MemStorage::new()).unwrap();
        let streams =
            [1, 2, 3, 4, 5, 6, 7, 8_u8].map(|name| file.create_stream(&name.to_string()).unwrap());
        for turn in 0..128_u64 {
            for stream in &streams {
                stream.write_at(&[7; 4096], turn * 4096).unwrap();
            }
            file.flush().unwrap();
        }
        // 128 pieces each, 1,024 in all; eight sectors ahead each time made 649 runs of them.
        let runs: usize = streams.iter().map(|stream| stream.extents().unwrap().len()).sum();
        assert!(runs <= 320, "{runs} runs");
        assert_eq!(file.check().unwrap(), []);
    }
}
