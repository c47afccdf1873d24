//! The three numbers of this crate, each its own type: which sector, how many
//! sectors, which byte.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Sub, SubAssign};

/// Index of a sector, counted from the first allocatable sector.
///
/// # Example
///
/// ```
/// use alloc_core::{SectorCount, SectorId};
///
/// let third = SectorId::new(2);
/// assert_eq!(third.checked_add(SectorCount::new(5)), Some(SectorId::new(7)));
/// assert_eq!(third.to_string(), "sector 2");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectorId(u32);

impl SectorId {
    /// The sector with this index.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The index.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The sector `count` sectors further on, or `None` past `u32::MAX`.
    pub const fn checked_add(self, count: SectorCount) -> Option<Self> {
        match self.0.checked_add(count.0) {
            Some(index) => Some(Self(index)),
            None => None,
        }
    }

    /// The sector `count` sectors before, or `None` before sector 0.
    pub const fn checked_sub(self, count: SectorCount) -> Option<Self> {
        match self.0.checked_sub(count.0) {
            Some(index) => Some(Self(index)),
            None => None,
        }
    }

    /// How many sectors lie from `earlier` (included) to this one (excluded),
    /// or `None` when `earlier` comes later.
    pub const fn distance_from(self, earlier: Self) -> Option<SectorCount> {
        match self.0.checked_sub(earlier.0) {
            Some(count) => Some(SectorCount(count)),
            None => None,
        }
    }
}

impl fmt::Display for SectorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sector {}", self.0)
    }
}

impl fmt::Debug for SectorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

/// A number of sectors.
///
/// `+` and `-` panic when the result does not fit, in release builds too: a
/// wrapped count would hand out a sector twice.
///
/// # Example
///
/// ```
/// use alloc_core::SectorCount;
///
/// let sum: SectorCount = [3, 4].map(SectorCount::new).into_iter().sum();
/// assert_eq!(sum - SectorCount::new(2), SectorCount::new(5));
/// assert_eq!(sum.saturating_sub(SectorCount::new(9)), SectorCount::ZERO);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectorCount(u32);

impl SectorCount {
    /// No sectors.
    pub const ZERO: Self = Self(0);
    /// One sector.
    pub const ONE: Self = Self(1);
    /// The most sectors a device can have.
    pub const MAX: Self = Self(u32::MAX);

    /// That many sectors.
    pub const fn new(count: u32) -> Self {
        Self(count)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Whether this is no sectors at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, or `None` past `u32::MAX`.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(count) => Some(Self(count)),
            None => None,
        }
    }

    /// The difference, or `None` below zero.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(count) => Some(Self(count)),
            None => None,
        }
    }

    /// The sum, at most `u32::MAX`.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// How many bytes that many sectors of `sector_bytes` bytes are.
    pub const fn bytes(self, sector_bytes: u32) -> u64 {
        // u32 * u32 fits in u64
        self.0 as u64 * sector_bytes as u64
    }
}

impl Add for SectorCount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.checked_add(other).expect("a count of sectors fits in u32")
    }
}

impl AddAssign for SectorCount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for SectorCount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.checked_sub(other).expect("a count of sectors is not negative")
    }
}

impl SubAssign for SectorCount {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for SectorCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for SectorCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, if self.0 == 1 { "sector" } else { "sectors" })
    }
}

impl fmt::Debug for SectorCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A position in bytes.
///
/// # Example
///
/// ```
/// use alloc_core::ByteOffset;
///
/// assert_eq!(ByteOffset::new(512).checked_add(8), Some(ByteOffset::new(520)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteOffset(u64);

impl ByteOffset {
    /// The position this many bytes from the start.
    pub const fn new(offset: u64) -> Self {
        Self(offset)
    }

    /// The number of bytes from the start.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position `len_bytes` further on, or `None` past `u64::MAX`.
    pub const fn checked_add(self, len_bytes: u64) -> Option<Self> {
        match self.0.checked_add(len_bytes) {
            Some(offset) => Some(Self(offset)),
            None => None,
        }
    }
}

impl fmt::Display for ByteOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn arithmetic_stops_at_the_ends() {
        let last = SectorId::new(u32::MAX);
        assert_eq!(last.checked_add(SectorCount::ONE), None);
        assert_eq!(SectorId::new(0).checked_sub(SectorCount::ONE), None);
        assert_eq!(last.distance_from(SectorId::new(0)), Some(SectorCount::MAX));
        assert_eq!(SectorId::new(0).distance_from(last), None);
        assert_eq!(SectorCount::MAX.checked_add(SectorCount::ONE), None);
        assert_eq!(SectorCount::MAX.saturating_add(SectorCount::ONE), SectorCount::MAX);
        assert_eq!(ByteOffset::new(u64::MAX).checked_add(1), None);
    }

    #[test]
    #[should_panic(expected = "not negative")]
    fn a_negative_count_is_a_panic() {
        let _ = SectorCount::ZERO - SectorCount::ONE;
    }

    #[test]
    fn words_for_people() {
        assert_eq!(format!("{:?} {:?}", SectorId::new(12), SectorCount::new(3)), "s12 3");
        assert_eq!(format!("{}", SectorCount::ONE), "1 sector");
        assert_eq!(format!("{}", ByteOffset::new(7)), "byte 7");
    }
}
