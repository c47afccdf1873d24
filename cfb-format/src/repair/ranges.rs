//! Ascending ranges of bytes or units that do not touch.

use std::ops::Range;

/// Adds a range that does not start before the last one; what touches is joined.
pub(super) fn add(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    if range.is_empty() {
        return;
    }
    match ranges.last_mut() {
        Some(last) if last.start <= range.start && range.start <= last.end => {
            last.end = last.end.max(range.end);
        }
        Some(last) if last.start > range.start => {
            ranges.push(range);
            normalize(ranges);
        }
        _ => ranges.push(range),
    }
}

/// Sorts and joins.
fn normalize(ranges: &mut Vec<Range<u64>>) {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges.drain(..) {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    *ranges = joined;
}

/// The parts of `ranges` within `window`, counted from its start, moved to `at`.
pub(super) fn copy_within(
    ranges: &[Range<u64>],
    window: &Range<u64>,
    at: u64,
    to: &mut Vec<Range<u64>>,
) {
    let first = ranges.partition_point(|range| range.end <= window.start);
    for range in ranges[first..].iter().take_while(|range| range.start < window.end) {
        let start = range.start.max(window.start) - window.start;
        let end = range.end.min(window.end) - window.start;
        add(to, at + start..at + end);
    }
}

/// Units as bytes, cut to `len`.
pub(super) fn scaled(ranges: &[Range<u64>], unit: u64, len: u64) -> Vec<Range<u64>> {
    let mut scaled = Vec::new();
    for range in ranges {
        add(&mut scaled, (range.start * unit).min(len)..(range.end * unit).min(len));
    }
    scaled
}

/// How many are in the ranges.
pub(super) fn total(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_joined_whatever_their_order() {
        let mut ranges = Vec::new();
        for range in [10..20, 30..40, 20..25, 5..5, 0..2, 24..31] {
            add(&mut ranges, range);
        }
        assert_eq!(ranges, [0..2, 10..40]);
        assert_eq!(total(&ranges), 32);
        let mut copied = Vec::new();
        copy_within(&ranges, &(1..12), 100, &mut copied);
        assert_eq!(copied, [100..101, 109..111]);
        assert_eq!(scaled(&ranges, 64, 1000), [0..128, 640..1000]);
    }
}
