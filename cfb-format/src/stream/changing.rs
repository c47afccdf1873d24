//! How a stream's bytes and its length change.

use alloc_core::{Chain, SectorCount};

use super::Stream;
use crate::error::Error;
use crate::node::{Beside, Body, Place};
use crate::shared::ZEROS;
use crate::storage::Storage;
use crate::write_behind::DIRECT_BYTES;

/// What becomes of a length beyond the one asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// It stays.
    Longer,
    /// It is cut.
    Exactly,
    /// It is cut, and no byte of the old content stays.
    Nothing,
}

impl<S: Storage> Stream<S> {
    /// Sets the length to (at least) `len` and writes `bytes` at `offset`.
    ///
    /// Decides under the file's lock, which sectors to use; lets it go; does
    /// the I/O; and lets the new length count only when that succeeded.
    pub(super) fn change(
        &self,
        len: u64,
        offset: u64,
        bytes: &[u8],
        keep: Keep,
    ) -> Result<(), Error> {
        let shared = &self.shared;
        let max_bytes = shared.geometry.version.max_stream_bytes();
        if len > max_bytes {
            return Err(Error::TooLong { len_bytes: len, max_bytes });
        }
        let mut state = shared.change_state()?;
        let atomic = state.atomic;
        let mut body = self.node.body.write().expect("not poisoned");
        body.live()?;
        state.release_beside(&mut body);
        let old_len = self.node.len();
        let new_len = if keep == Keep::Longer { len.max(old_len) } else { len };
        if new_len == old_len && bytes.is_empty() {
            return Ok(());
        }
        if let Some(damage) = &body.damage
            && keep != Keep::Nothing
            && (new_len > body.intact.max(old_len) || offset + bytes.len() as u64 > body.intact)
        {
            return Err(damage.clone().into());
        }
        body.changed = true;

        let place = if shared.geometry.is_mini(new_len) { Place::Mini } else { Place::Regular };
        if new_len == 0 {
            body.leave_chain(Chain::default(), place);
        }
        if body.chain.is_empty() {
            body.place = place;
        }
        // What a damaged stream has lost gets no sectors.
        let damaged = body.damage.is_some() && keep != Keep::Nothing;
        let held = if damaged { new_len.min(body.intact) } else { new_len };
        let replaces = keep == Keep::Nothing && !body.chain.is_empty();
        let moves = replaces || body.place != place || state.has_shared(body.place, &body.chain);
        if moves {
            let mut chain = Chain::default();
            state.extend(place, &mut chain, held)?;
            drop(state);
            let kept = if replaces { 0 } else { old_len.min(held) };
            let copied = shared
                .copy_chain((body.place, &body.chain), (place, &chain), 0..kept)
                .and_then(|()| self.fill(place, &chain, old_len, offset, bytes))
                .and_then(|()| self.pad(place, &chain, held, bytes));
            if let Err(error) = copied {
                body.discard(place, chain);
                return Err(error);
            }
            body.leave_chain(chain, place);
            body.note_fresh(0..u64::MAX);
        } else {
            let Body { chain, ahead_sectors, .. } = &mut *body;
            let before = chain.sector_count();
            // The first bytes may be all, and a length that is set is likely
            // to stay: nothing is taken ahead then.
            if place == Place::Regular && !chain.is_empty() && !bytes.is_empty() && !damaged {
                state.extend_ahead(chain, held, ahead_sectors)?;
            } else {
                state.extend(place, chain, held)?;
            }
            let grew = chain.sector_count() != before;
            let touched = old_len.min(offset)..offset + bytes.len() as u64;
            let saved_len = body.saved_len(state.saves_count);
            let kept = touched.start..touched.end.min(saved_len);
            let replacement = state.replacement(&mut body, &kept)?;
            drop(state);
            if let Some((first, new)) = replacement {
                self.fill_beside(&mut body, first, new, old_len.min(held), held, offset, bytes)?;
            } else {
                self.fill(place, &body.chain, old_len, offset, bytes)?;
                if grew {
                    self.pad(place, &body.chain, held, bytes)?;
                }
            }
            if atomic {
                let unit = u64::from(self.unit_bytes(place));
                if grew {
                    body.note_fresh(before.bytes(self.unit_bytes(place))..u64::MAX);
                }
                if !touched.is_empty() {
                    let mut start = touched.start - touched.start % unit;
                    if touched.start >= saved_len {
                        // The bytes before may be saved ones, in the same sector.
                        start = start.max(saved_len);
                    }
                    body.note_fresh(start..touched.end.next_multiple_of(unit));
                }
            } else {
                body.note_fresh(0..u64::MAX);
            }
        }
        if keep == Keep::Nothing || new_len <= body.intact {
            body.damage = None;
        }
        self.node.set_len(new_len);
        self.node.content_changed();
        Ok(())
    }

    /// Writes bytes to sectors that were taken for them before, if they go there and
    /// the stream grows no longer by them: nothing is to be decided then.
    pub(super) fn write_beside(
        &self,
        body: &mut Body,
        offset: u64,
        bytes: &[u8],
    ) -> Result<bool, Error> {
        let Some(Beside { first, run }) = body.beside else { return Ok(false) };
        let unit = self.unit_bytes(Place::Regular);
        let start = SectorCount::new(first).bytes(unit);
        let (end, len) = (offset + bytes.len() as u64, self.node.len());
        let begins = offset == start || (offset < start && body.is_fresh(&(offset..start)));
        let sectors = end.saturating_sub(start).div_ceil(unit.into());
        if !begins || end > len || sectors > run.count().get().into() {
            return Ok(false);
        }
        let sectors = SectorCount::new(u32::try_from(sectors).expect("no more than the run"));
        let (Some(now), later) = run.split_at(sectors) else { return Ok(false) };
        let next = first + sectors.get();
        body.beside = later.map(|run| Beside { first: next, run });
        self.fill_beside(body, first, now.into(), len, len, offset, bytes)?;
        body.note_fresh(start..SectorCount::new(next).bytes(unit));
        self.node.content_changed();
        Ok(true)
    }

    /// Writes bytes beside what is there: to `new`, which then takes the place of
    /// the sectors of the chain from `first` on. What these have before and behind
    /// the bytes, up to `kept`, is copied. Nothing has changed after an error.
    #[expect(clippy::too_many_arguments, reason = "one step of a change, apart for its length")]
    fn fill_beside(
        &self,
        body: &mut Body,
        first: u32,
        new: Chain,
        kept: u64,
        held: u64,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let place = body.place;
        let unit = self.unit_bytes(place);
        let count = new.sector_count();
        let old = body.chain.replace(SectorCount::new(first), new);
        let chain = &body.chain;
        let start = SectorCount::new(first).bytes(unit);
        let end = start + count.bytes(unit);
        let keep = |range| self.shared.copy_from((place, &old), start, (place, chain), range);
        let copied = keep(start..offset.min(kept).min(end))
            .and_then(|()| self.fill(place, chain, self.node.len(), offset, bytes))
            .and_then(|()| keep((offset + bytes.len() as u64).max(start)..end.min(kept)))
            .and_then(|()| if end < held { Ok(()) } else { self.pad(place, chain, held, bytes) });
        if let Err(error) = copied {
            let new = body.chain.replace(SectorCount::new(first), old);
            body.discard(place, new);
            return Err(error);
        }
        body.discard(place, old);
        body.note_spliced(first, count.get());
        Ok(())
    }

    /// Bytes of a sector or mini sector.
    fn unit_bytes(&self, place: Place) -> u32 {
        self.shared.geometry.unit_bytes(place)
    }

    /// Zeros between the old end and `offset`, then the bytes.
    fn fill(
        &self,
        place: Place,
        chain: &Chain,
        old_len: u64,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Error> {
        if offset > old_len {
            self.shared.zero_chain(place, chain, old_len, offset)?;
        }
        self.shared.write_chain(place, chain, offset, bytes)
    }

    /// Zeros from the end of the stream to the end of its last new sector, so
    /// that neighbours in the storage are gathered to one write, and nothing
    /// that was deleted shows through.
    fn pad(&self, place: Place, chain: &Chain, len: u64, bytes: &[u8]) -> Result<(), Error> {
        let end = len.next_multiple_of(self.unit_bytes(place).into());
        if bytes.is_empty() || bytes.len() >= DIRECT_BYTES || end == len {
            return Ok(());
        }
        let zeros = &ZEROS[..usize::try_from(end - len).expect("less than a sector")];
        self.shared.write_chain(place, chain, len, zeros)
    }
}

#[cfg(test)]
mod tests {
    use crate::{CompoundFile, CreateOptions, MemStorage, Version};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// An atomic file in memory with one saved stream.
    fn saved(version: Version, bytes: &[u8]) -> CompoundFile<MemStorage> {
        let options = CreateOptions::new().version(version).in_place(false);
        let file = options.create_storage(MemStorage::new()).unwrap();
        file.write_stream("a", bytes).unwrap();
        file.flush().unwrap();
        file
    }

    /// What a crash would leave.
    fn left_of(file: &CompoundFile<MemStorage>) -> Vec<u8> {
        let left = file.storage().to_vec();
        CompoundFile::from_storage(&left[..]).unwrap().read_stream("a").unwrap()
    }

    #[test]
    fn stream_written_over_from_start_to_end_lies_in_one_run_again() {
        for version in [Version::V3, Version::V4] {
            for piece in [1_000, 4_096, 5_000, 65_536, 1 << 20] {
                let file = saved(version, &vec![1; 3 << 20]);
                let stream = file.open_stream("a").unwrap();
                for (turn, at) in (0..3 << 20).step_by(piece).enumerate() {
                    let len = piece.min((3 << 20) - at);
                    stream.write_at(&vec![turn.to_le_bytes()[0]; len], at as u64).unwrap();
                }
                assert!(stream.extents().unwrap().len() <= 2, "{version}, pieces of {piece}");
                assert_eq!(left_of(&file), vec![1; 3 << 20]);
                file.flush().unwrap();
                let left = left_of(&file);
                assert!(
                    (0..3 << 20).all(|at| left[at] == (at / piece).to_le_bytes()[0]),
                    "pieces of {piece}"
                );
                assert_eq!(file.check().unwrap(), []);
            }
        }
    }

    /// Lengths are in units of 100 bytes.
    #[derive(Clone, Copy, Debug)]
    enum Op {
        /// Writes on where the last write ended.
        Next(u16),
        Jump(u16, u16),
        SetLen(u16),
        Flush,
        Reopen,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            8 => (1_u16..200).prop_map(Op::Next),
            2 => (0_u16..1_000, 1_u16..100).prop_map(|(at, len)| Op::Jump(at, len)),
            1 => (0_u16..1_200).prop_map(Op::SetLen),
            1 => Just(Op::Flush),
            1 => Just(Op::Reopen),
        ]
    }

    proptest! {
        #[test]
        fn what_was_saved_stays_until_the_next_save(
            ops in vec(op(), 1..60), version in prop_oneof![Just(Version::V3), Just(Version::V4)],
        ) {
            let mut model = vec![1; 100_000];
            let mut left = model.clone();
            let file = saved(version, &model);
            let mut stream = file.open_stream("a").unwrap();
            let mut at = 0;
            for (turn, op) in ops.into_iter().enumerate() {
                match op {
                    Op::Next(units) | Op::Jump(_, units) => {
                        if let Op::Jump(to, _) = op {
                            at = usize::from(to) * 100;
                        }
                        let bytes = vec![turn.to_le_bytes()[0] + 2; usize::from(units) * 100];
                        stream.write_at(&bytes, at as u64).unwrap();
                        let end = at + bytes.len();
                        model.resize(model.len().max(end), 0);
                        model[at..end].copy_from_slice(&bytes);
                        at = end;
                    }
                    Op::SetLen(units) => {
                        model.resize(usize::from(units) * 100, 0);
                        stream.set_len(model.len() as u64).unwrap();
                    }
                    Op::Flush => {
                        file.flush().unwrap();
                        left.clone_from(&model);
                        prop_assert_eq!(file.check().unwrap(), []);
                    }
                    Op::Reopen => {
                        drop(stream);
                        stream = file.open_stream("a").unwrap();
                    }
                }
                prop_assert!(left_of(&file) == left, "a crash after {op:?}, call {turn}");
                prop_assert!(stream.read_to_vec().unwrap() == model, "{op:?}, call {turn}");
            }
            drop(stream);
            file.flush().unwrap();
            prop_assert_eq!(left_of(&file), model);
            prop_assert_eq!(file.check().unwrap(), []);
        }
    }
}
