//! The bytes of one stream: where in the damaged file they are, and how sure that is.

use std::ops::Range;

use alloc_core::SectorId;

use super::links::{Found, GAP};
use super::ranges;
use crate::version::Geometry;

/// Consecutive bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Byte offset in the damaged file; `None` for bytes that are lost.
    pub(super) at: Option<u64>,
    pub(super) len: u64,
}

/// The bytes of a stream, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Body {
    pub(super) len: u64,
    pub(super) extents: Vec<Extent>,
    /// Where each extent starts in the stream.
    starts: Vec<u64>,
    pub(super) guessed: Vec<Range<u64>>,
    pub(super) doubtful: Vec<Range<u64>>,
    pub(super) missing: Vec<Range<u64>>,
}

impl Body {
    /// `len` bytes of a stream in sectors of a file of `file_len` bytes.
    pub(super) fn in_sectors(found: &Found, len: u64, geometry: Geometry, file_len: u64) -> Self {
        let unit = u64::from(geometry.sector_bytes());
        let mut body = Self::default();
        for &(start, count) in &found.runs {
            let bytes = count.saturating_mul(unit).min(len - body.len);
            let at = (start != GAP).then(|| geometry.offset_of(SectorId::new(start)).get());
            // What lies past the end of a cut file is lost.
            let there = at.map_or(0, |at| file_len.saturating_sub(at).min(bytes));
            body.push(Extent { at, len: there });
            body.push(Extent { at: None, len: bytes - there });
        }
        body.push(Extent { at: None, len: len - body.len });
        body.guessed = ranges::scaled(&found.guessed, unit, len);
        body.doubtful = ranges::scaled(&found.doubtful, unit, len);
        body
    }

    /// `len` bytes of a stream in mini sectors of `mini_stream`.
    pub(super) fn in_minis(found: &Found, len: u64, unit: u64, mini_stream: &Self) -> Self {
        let mut body = Self {
            guessed: ranges::scaled(&found.guessed, unit, len),
            doubtful: ranges::scaled(&found.doubtful, unit, len),
            ..Self::default()
        };
        for &(start, count) in &found.runs {
            let bytes = count.saturating_mul(unit).min(len - body.len);
            if start == GAP {
                body.push(Extent { at: None, len: bytes });
            } else {
                let from = u64::from(start) * unit;
                body.append_part(mini_stream, &(from..from + bytes));
            }
        }
        body.push(Extent { at: None, len: len - body.len });
        body
    }

    fn push(&mut self, extent: Extent) {
        if extent.len == 0 {
            return;
        }
        if extent.at.is_none() {
            ranges::add(&mut self.missing, self.len..self.len + extent.len);
        }
        self.starts.push(self.len);
        self.extents.push(extent);
        self.len += extent.len;
    }

    /// Appends a window of another body, with what is said about it.
    fn append_part(&mut self, other: &Self, window: &Range<u64>) {
        let at = self.len;
        ranges::copy_within(&other.guessed, window, at, &mut self.guessed);
        ranges::copy_within(&other.doubtful, window, at, &mut self.doubtful);
        let mut from = window.start;
        let mut nth = other.starts.partition_point(|&start| start <= from).saturating_sub(1);
        while from < window.end {
            let Some(extent) = other.extents.get(nth) else { break };
            let skip = from - other.starts[nth];
            let len = extent.len.saturating_sub(skip).min(window.end - from);
            self.push(Extent { at: extent.at.map(|at| at + skip), len });
            from += len;
            nth += 1;
        }
        self.push(Extent { at: None, len: window.end - from });
    }

    /// Cuts off lost bytes at the end.
    pub(super) fn cut_lost_end(&mut self) {
        while let Some(extent) = self.extents.pop_if(|extent| extent.at.is_none()) {
            self.starts.pop();
            self.len -= extent.len;
        }
    }

    /// Whether every byte is doubtful.
    pub(super) fn is_doubtful(&self) -> bool {
        ranges::total(&self.doubtful) == self.len
    }

    /// Bytes that are there.
    pub(super) fn there(&self) -> u64 {
        self.extents.iter().filter(|extent| extent.at.is_some()).map(|extent| extent.len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Version;

    #[test]
    fn bytes_past_the_end_of_the_file_are_missing() {
        let found = Found::of(vec![(0, 2), (GAP, 1), (5, 1)]);
        let body = Body::in_sectors(&found, 2000, Geometry::new(Version::V3), 1400);
        assert_eq!(body.missing.first(), Some(&(888..2000)));
        assert_eq!(body.extents[0], Extent { at: Some(512), len: 888 });
        assert_eq!((body.len, body.there()), (2000, 888));
        let mini = Found::of(vec![(13, 2)]);
        let small = Body::in_minis(&mini, 100, 64, &body);
        assert_eq!(small.extents[0], Extent { at: Some(512 + 832), len: 56 });
        assert_eq!(small.missing.first(), Some(&(56..100)));
    }
}
