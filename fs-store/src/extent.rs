//! Runs of sectors as they are recorded: in which block file, from where, how many.

use alloc_core::{Run, SectorCount, SectorId};
use smallvec::SmallVec;

use crate::codec::{Decoder, put_varint};

/// Consecutive sectors of one block file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Extent {
    /// Number of the block file.
    pub(crate) file: u16,
    /// First sector.
    pub(crate) start: u32,
    /// How many, never zero.
    pub(crate) count: u32,
}

/// The sectors of one thing, in its order. Nearly always one extent.
pub(crate) type Extents = SmallVec<[Extent; 1]>;

impl Extent {
    pub(crate) fn new(file: u16, run: Run) -> Self {
        Self { file, start: run.start().get(), count: run.count().get() }
    }

    pub(crate) fn run(self) -> Run {
        Run::new(SectorId::new(self.start), SectorCount::new(self.count))
    }

    /// Appends the extent to a record.
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        put_varint(out, self.file.into());
        put_varint(out, self.start.into());
        put_varint(out, self.count.into());
    }

    /// Takes an extent off a record. `None` if it cannot be one.
    pub(crate) fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        let file = from.varint()?.try_into().ok()?;
        let start: u32 = from.varint()?.try_into().ok()?;
        let count: u32 = from.varint()?.try_into().ok()?;
        // The end must be a sector number too.
        (count > 0 && start.checked_add(count).is_some()).then_some(Self { file, start, count })
    }
}

/// Appends extents with their count before them.
pub(crate) fn encode_extents(extents: &[Extent], out: &mut Vec<u8>) {
    put_varint(out, extents.len() as u64);
    for extent in extents {
        extent.encode(out);
    }
}

/// Takes extents off a record.
pub(crate) fn decode_extents(from: &mut Decoder<'_>) -> Option<Extents> {
    let count = from.count(3)?;
    (0..count).map(|_| Extent::decode(from)).collect()
}

/// How many sectors they are together.
pub(crate) fn sectors_in(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| u64::from(extent.count)).sum()
}

/// Appends an extent, joined to the last one where they touch.
pub(crate) fn push(extents: &mut Extents, extent: Extent) {
    if let Some(last) = extents.last_mut()
        && last.file == extent.file
        && last.start + last.count == extent.start
        && let Some(count) = last.count.checked_add(extent.count)
    {
        last.count = count;
        return;
    }
    extents.push(extent);
}

/// Cuts the first `count` sectors off.
pub(crate) fn cut(extents: &mut Extents, count: u64) -> Extents {
    let mut left = count;
    let mut taken = Extents::new();
    let mut rest = Extents::new();
    for extent in extents.drain(..) {
        let take = u32::try_from(left.min(extent.count.into())).expect("at most the extent");
        if take > 0 {
            push(&mut taken, Extent { count: take, ..extent });
            left -= u64::from(take);
        }
        if take < extent.count {
            rest.push(Extent { start: extent.start + take, count: extent.count - take, ..extent });
        }
    }
    *extents = rest;
    taken
}

/// Where the bytes from `offset` on of what lies in `extents` are: pieces as
/// block file, byte offset in it and length, at most `len` bytes together.
pub(crate) fn pieces(
    extents: &[Extent],
    sector_bytes: u32,
    offset: u64,
    len: u64,
) -> impl Iterator<Item = (u16, u64, u64)> {
    let (mut skip, mut left) = (offset, len);
    let bytes = u64::from(sector_bytes);
    extents.iter().filter_map(move |extent| {
        let size = u64::from(extent.count) * bytes;
        if skip >= size || left == 0 {
            skip = skip.saturating_sub(size);
            return None;
        }
        let piece = (extent.file, u64::from(extent.start) * bytes + skip, (size - skip).min(left));
        skip = 0;
        left -= piece.2;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(file: u16, start: u32, count: u32) -> Extent {
        Extent { file, start, count }
    }

    #[test]
    fn extents_come_back_and_cannot_reach_past_the_last_sector_number() {
        let extents = [extent(0, 5, 7), extent(3, u32::MAX - 1, 1)];
        let mut out = Vec::new();
        encode_extents(&extents, &mut out);
        assert_eq!(decode_extents(&mut Decoder::new(&out)).unwrap()[..], extents);
        let mut out = Vec::new();
        encode_extents(&[extent(0, u32::MAX, 1)], &mut out);
        assert_eq!(decode_extents(&mut Decoder::new(&out)), None);
    }

    #[test]
    fn pieces_follow_the_extents() {
        let extents = [extent(0, 2, 2), extent(1, 10, 1), extent(0, 8, 4)];
        let of = |offset, len| pieces(&extents, 512, offset, len).collect::<Vec<_>>();
        assert_eq!(of(0, 512), [(0, 1024, 512)]);
        assert_eq!(of(1000, 600), [(0, 2024, 24), (1, 5120, 512), (0, 4096, 64)]);
        assert_eq!(of(1536, 100), [(0, 4096, 100)]);
        assert_eq!(of(1 << 40, 1), []);
        assert_eq!(of(0, 0), []);
    }

    #[test]
    fn extents_are_cut_between_sectors() {
        let mut extents = Extents::from_slice(&[extent(0, 2, 2), extent(1, 10, 4)]);
        assert_eq!(cut(&mut extents, 3)[..], [extent(0, 2, 2), extent(1, 10, 1)]);
        assert_eq!(extents[..], [extent(1, 11, 3)]);
        assert!(cut(&mut extents, 0).is_empty());
        assert_eq!(cut(&mut extents, 3)[..], [extent(1, 11, 3)]);
        assert!(extents.is_empty());
    }

    #[test]
    fn touching_extents_join() {
        let mut extents = Extents::new();
        push(&mut extents, extent(0, 1, 2));
        push(&mut extents, extent(0, 3, 2));
        push(&mut extents, extent(1, 5, 2));
        assert_eq!(extents[..], [extent(0, 1, 4), extent(1, 5, 2)]);
    }
}
