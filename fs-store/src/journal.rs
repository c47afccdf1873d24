//! The journal: commits in their order, each a frame, in segments of sectors.
//!
//! One flush makes frames and the data they refer to durable together: a frame
//! that was not known to be on the medium counts only if its own checksum and
//! those of its data hold. Whoever wants a flush takes everything along that is
//! there by then, so callers at the same time share one.
//!
//! After a flush the next frame begins in a block of its own: what was promised
//! is never written over, not even with the same bytes.
//!
//! A segment that is full names the next one in its last frame. Once a fold has
//! brought all of a segment into the index, the superblock names the segment
//! after it as the first.

use std::io::IoSlice;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::frame::{self, Header, Op, frame_bytes};
use crate::layout::JournalHead;
use crate::space::Space;

/// Frames after a flush begin at multiples of so many bytes.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// Room that is kept for the frame that names the next segment.
const NEXT_BYTES: u64 = 128;

/// The journal of a store that is open for writing.
pub(crate) struct Journal {
    space: Arc<Space>,
    state: Mutex<State>,
    /// Held by the one who writes frames to the file.
    writing: Mutex<()>,
    /// Told when a flush has ended.
    flushed: Condvar,
}

struct State {
    segment: Extent,
    epoch: u64,
    session: u64,
    /// Where the next frame goes, in bytes from the beginning of the segment.
    tail: u64,
    /// Number of the last commit.
    seq: u64,
    /// Frames that are not written yet, by place.
    pending: Vec<Pending>,
    /// Memory of frames that were written, for the next.
    spare: Vec<u8>,
    /// Commits up to this one are in the file.
    written: u64,
    /// Commits up to this one are on the medium.
    durable: u64,
    is_flushing: bool,
    /// How many wait for a flush to end.
    waiting: usize,
    /// Why nothing more can be written.
    broken: Option<Arc<str>>,
}

struct Pending {
    segment: Extent,
    offset: u64,
    bytes: Vec<u8>,
    /// Number of its last commit.
    seq: u64,
}

impl Journal {
    /// A journal that goes on behind `seq`, in an unused segment.
    pub(crate) fn new(space: Arc<Space>, head: JournalHead, session: u64) -> Self {
        let seq = head.seq - 1;
        let state = State {
            segment: head.segment,
            epoch: head.epoch,
            session,
            tail: 0,
            seq,
            pending: Vec::new(),
            spare: Vec::new(),
            written: seq,
            durable: seq,
            is_flushing: false,
            waiting: 0,
            broken: None,
        };
        Self { space, state: Mutex::new(state), writing: Mutex::default(), flushed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error if nothing can be written any more.
    pub(crate) fn check(&self) -> Result<()> {
        self.lock().check()
    }

    /// Nothing is written from now on.
    pub(crate) fn break_off(&self, error: &Error) {
        self.lock().broken.get_or_insert_with(|| error.to_string().into());
        self.flushed.notify_all();
    }

    /// Number of the last commit.
    pub(crate) fn seq(&self) -> u64 {
        self.lock().seq
    }

    /// The segment in use, and its epoch.
    pub(crate) fn segment(&self) -> (Extent, u64) {
        let state = self.lock();
        (state.segment, state.epoch)
    }

    /// Whether a frame with so long a payload fits into the segment.
    pub(crate) fn has_room(&self, payload: usize) -> bool {
        let state = self.lock();
        // A flush may come before the last frame, and move it to the next block.
        let end = (state.tail + frame_bytes(payload)).next_multiple_of(BLOCK_BYTES);
        end + NEXT_BYTES <= self.bytes_of(state.segment)
    }

    fn bytes_of(&self, segment: Extent) -> u64 {
        u64::from(segment.count) * u64::from(self.space.sector_bytes)
    }

    /// Adds a commit, in memory; its number. The caller has seen that there is
    /// room, and keeps others from adding meanwhile.
    pub(crate) fn append(&self, payload: &[u8]) -> u64 {
        let mut state = self.lock();
        let limit = self.bytes_of(state.segment);
        state.append(payload, limit)
    }

    /// Goes on in another segment; the number of the frame that says so, and
    /// the place where the journal begins from there.
    pub(crate) fn rotate(&self, segment: Extent) -> (u64, JournalHead) {
        let mut state = self.lock();
        let epoch = state.epoch + 1;
        let mut payload = Vec::new();
        Op::Next { segment, epoch }.encode(&mut payload);
        let limit = self.bytes_of(state.segment);
        let seq = state.append(&payload, limit);
        (state.segment, state.epoch, state.tail) = (segment, epoch, 0);
        (seq, JournalHead { segment, epoch, seq: seq + 1 })
    }

    /// Begins anew in an unused segment, before anything was added; `epoch` was
    /// never used.
    pub(crate) fn restart(&self, segment: Extent, epoch: u64) -> JournalHead {
        let mut state = self.lock();
        (state.segment, state.epoch, state.tail) = (segment, epoch, 0);
        JournalHead { segment, epoch, seq: state.seq + 1 }
    }

    /// Brings commits up to `seq` to the file: safe if the process dies.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a write fails, [`Error::Broken`] after that.
    pub(crate) fn write_out(&self, seq: u64) -> Result<()> {
        if self.lock().written >= seq {
            return Ok(());
        }
        let _one = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.write_pending(&mut |state| (state.written < seq).then(|| state.take_pending()))
    }

    /// Writes what `take` takes under the lock. The caller holds `writing`.
    fn write_pending(
        &self,
        take: &mut dyn FnMut(&mut State) -> Option<Vec<Pending>>,
    ) -> Result<()> {
        let pending = {
            let mut state = self.lock();
            state.check()?;
            take(&mut state)
        };
        let Some(pending) = pending else { return Ok(()) };
        let files = self.space.files();
        for part in &pending {
            let offset = self.space.offset_of(part.segment) + part.offset;
            let file = &files[usize::from(part.segment.file)];
            if let Err(error) = file.write_at(&[IoSlice::new(&part.bytes)], offset) {
                self.break_off(&error);
                return Err(error);
            }
        }
        let mut state = self.lock();
        if let Some(last) = pending.into_iter().next_back() {
            state.written = last.seq;
            state.spare = last.bytes;
            state.spare.clear();
        }
        Ok(())
    }

    /// Brings commits up to `seq` to the medium. One flush at a time; those who
    /// wait for it share the next.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a write or the flush fails, [`Error::Broken`] after that.
    pub(crate) fn flush(&self, seq: u64) -> Result<()> {
        let mut state = self.lock();
        loop {
            if state.durable >= seq {
                return Ok(());
            }
            state.check()?;
            if !state.is_flushing {
                break;
            }
            state.waiting += 1;
            state = self.flushed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.is_flushing = true;
        drop(state);
        let flushed = self.flush_all();
        let mut state = self.lock();
        state.is_flushing = false;
        if let Ok(seq) = flushed {
            state.durable = seq;
        }
        let is_awaited = state.waiting > 0;
        drop(state);
        if is_awaited {
            self.flushed.notify_all();
        }
        let durable = flushed?;
        self.space.set_durable(durable);
        Ok(())
    }

    /// Writes all frames there are and flushes; the last commit that this covers.
    fn flush_all(&self) -> Result<u64> {
        let mut covered = 0;
        {
            let _one = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
            self.write_pending(&mut |state| {
                covered = state.seq;
                state.tail = state.tail.next_multiple_of(BLOCK_BYTES);
                Some(state.take_pending())
            })?;
        }
        if let Err(error) = self.space.sync() {
            // What the system could not write it forgets; a second flush would
            // succeed without it.
            self.break_off(&error);
            return Err(error);
        }
        Ok(covered)
    }
}

impl State {
    fn check(&self) -> Result<()> {
        match &self.broken {
            None => Ok(()),
            Some(why) => Err(Error::Broken { why: why.to_string() }),
        }
    }

    fn append(&mut self, payload: &[u8], limit: u64) -> u64 {
        assert!(self.tail + frame_bytes(payload.len()) <= limit, "there is room for the frame");
        self.seq += 1;
        let header = Header {
            epoch: self.epoch,
            session: self.session,
            seq: self.seq,
            durable: self.durable,
        };
        let end = |part: &Pending| part.offset + part.bytes.len() as u64;
        let follows = self
            .pending
            .last()
            .is_some_and(|last| last.segment == self.segment && end(last) == self.tail);
        if !follows {
            let bytes = std::mem::take(&mut self.spare);
            let part = Pending { segment: self.segment, offset: self.tail, bytes, seq: 0 };
            self.pending.push(part);
        }
        let last = self.pending.last_mut().expect("there is one");
        frame::encode(header, payload, &mut last.bytes);
        last.seq = self.seq;
        self.tail += frame_bytes(payload.len());
        self.seq
    }

    fn take_pending(&mut self) -> Vec<Pending> {
        std::mem::take(&mut self.pending)
    }
}

/// A commit that was found in a journal.
pub(crate) struct Replayed {
    pub(crate) header: Header,
    pub(crate) ops: Vec<Op>,
}

/// What was found in a journal.
pub(crate) struct Replay {
    pub(crate) commits: Vec<Replayed>,
    /// All segments in use, in their order.
    pub(crate) segments: Vec<Extent>,
    pub(crate) epoch: u64,
}

/// Reads a journal from its head on, up to the first frame that does not count.
///
/// # Errors
///
/// [`Error::Io`]; [`Error::Damaged`] if a frame that was on the medium is not
/// whole, which shows in a frame behind it.
pub(crate) fn replay(space: &Space, head: JournalHead) -> Result<Replay> {
    let mut found = Replay { commits: Vec::new(), segments: vec![head.segment], epoch: head.epoch };
    let (mut segment, mut seq, mut session) = (head.segment, head.seq, None);
    loop {
        let bytes = read_segment(space, segment, found.epoch)?;
        let mut at = 0;
        let mut next = None;
        while next.is_none() {
            let belongs = |header: &Header| {
                header.epoch == found.epoch
                    && header.seq == seq
                    && session.is_none_or(|session| session == header.session)
            };
            let Some((start, header, payload)) = frame_from(&bytes, at, belongs) else { break };
            let Some(ops) = frame::decode_ops(payload, space.sector_bytes) else {
                let why = "it holds an unknown step";
                return Err(space.damaged("a frame of the journal", segment, start as u64, why));
            };
            at = start + usize::try_from(frame_bytes(payload.len())).expect("in memory");
            for op in &ops {
                if let Op::Next { segment, epoch } = op {
                    next = Some((*segment, *epoch));
                }
            }
            session = Some(header.session);
            found.commits.push(Replayed { header, ops });
            seq += 1;
        }
        let Some((following, epoch)) = next else {
            check_tail(
                space,
                segment,
                &bytes[at.min(bytes.len())..],
                at,
                found.epoch,
                session,
                seq,
            )?;
            return Ok(found);
        };
        let is_new = !found.segments.contains(&following) && epoch > found.epoch;
        if !is_new {
            return Err(space.damaged("the journal", segment, 0, "its segments go round"));
        }
        found.segments.push(following);
        (segment, found.epoch) = (following, epoch);
    }
}

/// The next frame from byte `at` on: there, or at the beginning of the next block.
fn frame_from(
    bytes: &[u8],
    at: usize,
    belongs: impl Fn(&Header) -> bool,
) -> Option<(usize, Header, &[u8])> {
    let block = usize::try_from(BLOCK_BYTES).expect("small");
    for start in [at, at.next_multiple_of(block)] {
        if let Some((header, payload)) = bytes.get(start..).and_then(frame::decode)
            && belongs(&header)
        {
            return Some((start, header, payload));
        }
    }
    None
}

/// Bytes of a segment that are read at first: enough for one that is unused.
const FIRST_BYTES: usize = 16 << 10;

/// The bytes of a segment, or the first of them if it has no frame of this use.
fn read_segment(space: &Space, segment: Extent, epoch: u64) -> Result<Vec<u8>> {
    let len = usize::try_from(u64::from(segment.count) * u64::from(space.sector_bytes));
    let len =
        len.map_err(|_| space.damaged("the journal", segment, 0, "a segment is too large"))?;
    let mut bytes = Vec::new();
    space.read_onto(&[segment], 0, len.min(FIRST_BYTES), &mut bytes)?;
    let block = usize::try_from(BLOCK_BYTES).expect("small");
    let is_used = bytes.chunks(block).any(|block| {
        // Enough to see the header of a frame; its end may lie further on.
        block.len() >= frame::HEADER_BYTES && block[8..16] == epoch.to_le_bytes()
    });
    if is_used && len > bytes.len() {
        let rest = len - bytes.len();
        space.read_onto(&[segment], bytes.len() as u64, rest, &mut bytes)?;
    }
    Ok(bytes)
}

/// Looks behind the last frame that counts for one that knows of more being on
/// the medium: then what is missing was damaged, not torn by a crash.
fn check_tail(
    space: &Space,
    segment: Extent,
    rest: &[u8],
    at: usize,
    epoch: u64,
    session: Option<u64>,
    seq: u64,
) -> Result<()> {
    let align = usize::try_from(frame::FRAME_ALIGN).expect("small");
    for start in (0..rest.len()).step_by(align) {
        // Two numbers of the header before its checksum, which costs more.
        let Some(head) = rest.get(start..start + frame::HEADER_BYTES) else { break };
        if head[8..16] != epoch.to_le_bytes() {
            continue;
        }
        if let Some((header, _)) = frame::decode(&rest[start..])
            && header.epoch == epoch
            && session.is_none_or(|session| session == header.session)
            && header.seq > seq
            && header.durable >= seq
        {
            let why = "a commit that was flushed is not whole";
            return Err(space.damaged("the journal", segment, at as u64, why));
        }
    }
    Ok(())
}
