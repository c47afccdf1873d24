//! Pieces of a storage's future content.

use super::buffer::Buffer;
use crate::storage::Storage;
use std::collections::btree_map::{self, BTreeMap};
use std::io;
use std::ops::Range;

/// Memory of an extent beside its bytes.
const OVERHEAD: usize = 64;

/// Bytes by their offset. No two extents overlap, none is empty; they may touch.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents {
    by_start: BTreeMap<u64, Buffer>,
    len_bytes: usize,
}

fn end_of(start: u64, bytes: &[u8]) -> u64 {
    start + bytes.len() as u64
}

/// `to - from` for two places in one buffer.
fn distance(from: u64, to: u64) -> usize {
    usize::try_from(to - from).expect("both lie in one buffer")
}

impl Extents {
    pub(super) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// About the memory that the extents take: their bytes, and for each a
    /// place in the map and in the heap.
    pub(super) fn weight_bytes(&self) -> usize {
        self.len_bytes + OVERHEAD * self.by_start.len()
    }

    /// End of the last extent, 0 without any.
    pub(super) fn end(&self) -> u64 {
        self.by_start.last_key_value().map_or(0, |(&start, bytes)| end_of(start, bytes))
    }

    /// The extents with a byte in `range`, in ascending order.
    fn within(&self, range: &Range<u64>) -> btree_map::Range<'_, u64, Buffer> {
        let before = self.by_start.range(..=range.start).next_back();
        let before = before.filter(|&(&start, bytes)| end_of(start, bytes) > range.start);
        let first = before.map_or(range.start, |(&start, _)| start);
        // An empty range has no byte, though it may lie inside an extent.
        let end = if range.is_empty() { first } else { range.end };
        self.by_start.range(first..end)
    }

    /// True if some extent has a byte in `range`.
    pub(super) fn overlaps(&self, range: &Range<u64>) -> bool {
        self.within(range).next().is_some()
    }

    /// Puts `bytes` at `start`, over what is there.
    ///
    /// What follows an extent is appended to it while that has at most
    /// `extent_max` bytes, so appending costs its bytes. What precedes an extent
    /// becomes one of its own: to put it in front would move all of it each
    /// time. O(bytes + extents touched x log extents).
    ///
    /// A new extent takes the memory of `spare`, and leaves it empty.
    pub(super) fn put(
        &mut self,
        start: u64,
        mut bytes: &[u8],
        extent_max: usize,
        spare: &mut Vec<u8>,
    ) {
        let mut at = start;
        while !bytes.is_empty() {
            let next = self.by_start.range(at.saturating_add(1)..).next().map(|(&next, _)| next);
            let before = self.by_start.range_mut(..=at).next_back();
            let before = before.map(|(&start, old)| (start, distance_or_max(start, at), old));
            let count = match before {
                Some((_, inside, old)) if inside < old.len() => {
                    let count = bytes.len().min(old.len() - inside);
                    old[inside..inside + count].copy_from_slice(&bytes[..count]);
                    count
                }
                before => {
                    let room = next.map_or(usize::MAX, |next| distance_or_max(at, next));
                    let count = bytes.len().min(room).min(extent_max);
                    match before {
                        Some((start, inside, old))
                            if inside == old.len() && inside + count <= extent_max =>
                        {
                            old.push(start, &bytes[..count], extent_max);
                        }
                        _ => {
                            let memory = std::mem::take(spare);
                            let new = Buffer::new(at, &bytes[..count], extent_max, memory);
                            self.by_start.insert(at, new);
                        }
                    }
                    self.len_bytes += count;
                    count
                }
            };
            at += count as u64;
            bytes = &bytes[count..];
        }
    }

    /// Puts all of `newer` over what is there.
    pub(super) fn put_all(&mut self, newer: Self, extent_max: usize) {
        for (start, bytes) in newer.by_start {
            self.put(start, &bytes, extent_max, &mut Vec::new());
        }
    }

    /// The memory of the longest extent, for other bytes.
    pub(super) fn into_spare(self) -> Vec<u8> {
        let longest = self.by_start.into_values().max_by_key(|bytes| bytes.len());
        longest.map_or_else(Vec::new, Buffer::into_spare)
    }

    /// Forgets the bytes in `range`. O(extents touched x log extents), and a copy
    /// of what the last one keeps.
    pub(super) fn remove(&mut self, range: Range<u64>) {
        while let Some((&start, _)) = self.within(&range).next() {
            let mut bytes = self.by_start.remove(&start).expect("just found");
            let end = end_of(start, &bytes);
            self.len_bytes -= distance(start.max(range.start), end.min(range.end));
            if end > range.end {
                let rest = &bytes[distance(start, range.end)..];
                let rest = Buffer::new(range.end, rest, rest.len(), Vec::new());
                self.by_start.insert(range.end, rest);
            }
            if start < range.start {
                bytes.truncate(distance(start, range.start));
                self.by_start.insert(start, bytes);
            }
        }
    }

    /// Copies what there is of `range` into `buf`, whose first byte is `base`,
    /// and gives the parts of `range` that are not there.
    pub(super) fn read(&self, range: Range<u64>, buf: &mut [u8], base: u64) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        for (&start, bytes) in self.within(&range) {
            if start > at {
                gaps.push(at..start);
                at = start;
            }
            let end = end_of(start, bytes).min(range.end);
            buf[distance(base, at)..distance(base, end)]
                .copy_from_slice(&bytes[distance(start, at)..distance(start, end)]);
            at = end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    /// Writes all extents in ascending order, joining those that touch up to
    /// `call_max` bytes a call. Gives the offset up to which all is written.
    pub(super) fn write_to<S: Storage + ?Sized>(
        &self,
        storage: &S,
        call_max: usize,
    ) -> (u64, io::Result<()>) {
        let mut written = 0;
        let mut joined = Buffer::default();
        let mut extents = self.by_start.iter().peekable();
        while let Some((&start, bytes)) = extents.next() {
            let mut call: &[u8] = bytes;
            joined.truncate(0);
            while let Some((_, next)) = extents.next_if(|&(&next_start, next)| {
                next_start == end_of(start, call) && call.len() + next.len() <= call_max
            }) {
                if joined.is_empty() {
                    let memory = std::mem::take(&mut joined).into_spare();
                    joined = Buffer::new(start, bytes, call_max, memory);
                }
                joined.push(start, next, call_max);
                call = &joined;
            }
            if let Err(error) = storage.write_at(call, start) {
                return (written, Err(error));
            }
            written = end_of(start, call);
        }
        (written, Ok(()))
    }
}

/// `to - from`, or `usize::MAX` where that is more.
fn distance_or_max(from: u64, to: u64) -> usize {
    usize::try_from(to - from).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::MemStorage;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const MAX: usize = 16;

    impl Extents {
        /// Where the first extent's bytes lie, less what they skip.
        pub(in super::super) fn address(&self) -> usize {
            self.by_start.first_key_value().map_or(0, |(_, bytes)| bytes.as_ptr().addr() & !63)
        }

        fn shape(&self) -> Vec<(u64, usize)> {
            self.by_start.iter().map(|(&start, bytes)| (start, bytes.len())).collect()
        }
    }

    #[test]
    fn appending_makes_one_extent_and_prepending_does_not() {
        let mut extents = Extents::default();
        for start in 10..14 {
            extents.put(start, b"x", MAX, &mut Vec::new());
        }
        assert_eq!(extents.shape(), [(10, 4)]);
        extents.put(8, b"ab", MAX, &mut Vec::new());
        assert_eq!(extents.shape(), [(8, 2), (10, 4)]);
        extents.put(9, b"12345678", MAX, &mut Vec::new());
        assert_eq!(extents.shape(), [(8, 2), (10, 7)]);
        extents.put(0, &[7; 100], MAX, &mut Vec::new());
        assert!(extents.shape().iter().all(|&(_, len)| len <= MAX), "{:?}", extents.shape());
        assert_eq!(extents.weight_bytes(), 100 + OVERHEAD * extents.shape().len());
    }

    #[test]
    fn touching_extents_go_out_in_one_call_up_to_a_limit() {
        let mut extents = Extents::default();
        for start in [8, 4, 0, 20, 12] {
            extents.put(start, &[1; 4], 4, &mut Vec::new());
        }
        assert_eq!(extents.shape().len(), 5);
        for (call_max, calls) in [
            (4, vec![(0, 4), (4, 4), (8, 4), (12, 4), (20, 4)]),
            (8, vec![(0, 8), (8, 8), (20, 4)]),
            (99, vec![(0, 16), (20, 4)]),
        ] {
            let storage = super::super::tests::Counting::default();
            let (written, result) = extents.write_to(&storage, call_max);
            result.expect("writes");
            assert_eq!(written, 24);
            assert_eq!(storage.take_writes(), calls);
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        Put(u64, Vec<u8>),
        Remove(Range<u64>),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (0_u64..100, vec(any::<u8>(), 0..40)).prop_map(|(start, bytes)| Op::Put(start, bytes)),
            (0_u64..120, 0_u64..120).prop_map(|(start, end)| Op::Remove(start..end)),
        ]
    }

    proptest! {
        #[test]
        fn extents_agree_with_single_bytes(ops in vec(op(), 1..40), from in 0_u64..150, len in 0_u64..50) {
            let mut extents = Extents::default();
            let mut model: BTreeMap<u64, u8> = BTreeMap::new();
            for op in ops {
                match op {
                    Op::Put(start, bytes) => {
                        extents.put(start, &bytes, MAX, &mut Vec::new());
                        model.extend((start..).zip(bytes));
                    }
                    Op::Remove(range) => {
                        model.retain(|at, _| !range.contains(at));
                        extents.remove(range);
                    }
                }
                let shape = extents.shape();
                prop_assert!(shape.iter().all(|&(_, len)| (1..=MAX).contains(&len)));
                prop_assert!(shape.windows(2).all(|pair| pair[0].0 + pair[0].1 as u64 <= pair[1].0));
                prop_assert_eq!(extents.len_bytes, model.len());
                prop_assert_eq!(extents.end(), model.last_key_value().map_or(0, |(&at, _)| at + 1));
                let range = from..from + len;
                let mut buf = vec![0; usize::try_from(len).expect("small")];
                let gaps = extents.read(range.clone(), &mut buf, from);
                for (at, &byte) in range.clone().zip(&buf) {
                    let is_gap = gaps.iter().any(|gap| gap.contains(&at));
                    prop_assert_eq!((!is_gap).then_some(byte), model.get(&at).copied());
                }
                prop_assert!(gaps.windows(2).all(|pair| pair[0].end < pair[1].start));
                prop_assert!(gaps.iter().all(|gap| gap.start < gap.end));
                let hit = len > 0 && model.range(range.clone()).next().is_some();
                prop_assert_eq!(extents.overlaps(&range), hit);
            }
            let storage = MemStorage::new();
            extents.write_to(&storage, MAX).1.expect("memory");
            for (at, byte) in (0..).zip(storage.into_vec()) {
                prop_assert_eq!(byte, model.get(&at).copied().unwrap_or(0));
            }
        }
    }
}
