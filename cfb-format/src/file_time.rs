//! The time stamps of entries.

use std::fmt;
use std::time::{Duration, SystemTime};

/// Units of 100 ns in a second.
const PER_SECOND: u64 = 10_000_000;

/// From 1601-01-01 to 1970-01-01: 369 years, 89 of them leap years, in units of 100 ns.
const UNIX_EPOCH: u64 = (369 * 365 + 89) * 86_400 * PER_SECOND;

/// A point in time as Windows counts it: units of 100 ns since 1601-01-01 00:00 UTC.
///
/// Zero in a compound file means that no time was recorded. [MS-CFB] 2.6.1
///
/// `Display` writes it as RFC 3339 does.
///
/// # Examples
///
/// ```
/// use cfb_format::FileTime;
/// use std::time::{Duration, SystemTime};
///
/// let time = FileTime::from_raw(0x01BA_B44B_1392_1E80);
/// assert_eq!(time.to_string(), "1995-11-16T17:43:45Z");
///
/// let system_time = SystemTime::UNIX_EPOCH + Duration::from_secs(816_543_825);
/// assert_eq!(time.to_system_time(), Some(system_time));
/// assert_eq!(FileTime::try_from(system_time), Ok(time));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileTime(u64);

impl FileTime {
    /// No time recorded.
    pub const ZERO: Self = Self(0);

    /// The time that a file holds as `raw`, in units of 100 ns since 1601.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// Units of 100 ns since 1601, as a file holds it.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The system's time now; [`ZERO`](Self::ZERO) if its clock stands before 1601.
    pub fn now() -> Self {
        Self::try_from(SystemTime::now()).unwrap_or_default()
    }

    /// The same point in time as the system counts it. `None` for
    /// [`ZERO`](Self::ZERO), and where the system has no such time.
    ///
    /// A file can name times up to the year 60056.
    pub fn to_system_time(self) -> Option<SystemTime> {
        let duration = |units: u64| {
            let nanos = u32::try_from(units % PER_SECOND * 100).expect("less than a second");
            Duration::new(units / PER_SECOND, nanos)
        };
        match self.0 {
            0 => None,
            raw if raw < UNIX_EPOCH => {
                SystemTime::UNIX_EPOCH.checked_sub(duration(UNIX_EPOCH - raw))
            }
            raw => SystemTime::UNIX_EPOCH.checked_add(duration(raw - UNIX_EPOCH)),
        }
    }
}

/// A time that no [`FileTime`] can name: before 1601, or after the year 60056.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the time lies before the year 1601 or after the year 60056")]
pub struct FileTimeRangeError;

/// Rounds down to 100 ns.
impl TryFrom<SystemTime> for FileTime {
    type Error = FileTimeRangeError;

    fn try_from(time: SystemTime) -> Result<Self, FileTimeRangeError> {
        let raw = match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => (after.as_nanos() / 100).checked_add(u128::from(UNIX_EPOCH)),
            Err(error) => {
                let before = error.duration().as_nanos().div_ceil(100);
                u128::from(UNIX_EPOCH).checked_sub(before)
            }
        };
        let raw = raw.and_then(|raw| u64::try_from(raw).ok());
        raw.map(Self).ok_or(FileTimeRangeError)
    }
}

/// `1995-11-16T17:43:45Z`, with seven more digits if it is no whole second.
impl fmt::Display for FileTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, fraction) = (self.0 / PER_SECOND, self.0 % PER_SECOND);
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
        write!(f, "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if fraction != 0 {
            write!(f, ".{fraction:07}")?;
        }
        f.write_str("Z")
    }
}

/// Year, month and day of the day `days` days after 1601-01-01.
///
/// The year 1601 opens a round of 400 years, so each round, century, leap
/// period and year is of one length but for the last in it, which is a day
/// longer or shorter: hence the `min`.
fn date(days: u64) -> (u64, u64, u64) {
    let (rounds, days) = (days / 146_097, days % 146_097);
    let centuries = (days / 36_524).min(3);
    let days = days - centuries * 36_524;
    let (periods, days) = (days / 1_461, days % 1_461);
    let years = (days / 365).min(3);
    let mut day = days - years * 365;
    let is_leap = years == 3 && (periods != 24 || centuries == 3);
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    (1_601 + 400 * rounds + 100 * centuries + 4 * periods + years, month, day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unix(seconds: i64, nanos: u32) -> SystemTime {
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let epoch = SystemTime::UNIX_EPOCH;
        let at = if seconds < 0 { epoch - whole } else { epoch + whole };
        at + Duration::from_nanos(nanos.into())
    }

    #[test]
    fn known_times_convert() {
        let known = [
            (1, "1601-01-01T00:00:00.0000001Z"),
            (UNIX_EPOCH, "1970-01-01T00:00:00Z"),
            (0x01BA_B44B_12F9_8800, "1995-11-16T17:43:44Z"),
            (125_911_584_000_000_000, "2000-01-01T00:00:00Z"),
            (125_963_423_990_000_001, "2000-02-29T23:59:59.0000001Z"),
            (u64::MAX, "60056-05-28T05:36:10.9551615Z"),
        ];
        for (raw, text) in known {
            assert_eq!(FileTime::from_raw(raw).to_string(), text);
        }
        let time = FileTime::try_from(unix(951_868_799, 199)).expect("in range");
        assert_eq!(time.raw(), 125_963_423_990_000_001, "rounded down");
    }

    #[test]
    fn times_before_1970_round_down_too() {
        let time = FileTime::try_from(unix(-1, 950)).expect("in range");
        assert_eq!(time.raw(), UNIX_EPOCH - PER_SECOND + 9);
        assert_eq!(time.to_system_time(), Some(unix(-1, 900)));
    }

    #[test]
    fn times_out_of_range_are_errors() {
        let first = SystemTime::UNIX_EPOCH - Duration::from_hours(3_234_576);
        assert_eq!(FileTime::try_from(first), Ok(FileTime::ZERO));
        let before = first - Duration::from_nanos(100);
        assert_eq!(FileTime::try_from(before), Err(FileTimeRangeError));
        if let Some(late) = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(1 << 61)) {
            assert_eq!(FileTime::try_from(late), Err(FileTimeRangeError));
        }
        if let Some(last) = FileTime::from_raw(u64::MAX).to_system_time() {
            assert_eq!(FileTime::try_from(last), Ok(FileTime(u64::MAX)));
            let late = last + Duration::from_nanos(100);
            assert_eq!(FileTime::try_from(late), Err(FileTimeRangeError));
        }
    }

    #[test]
    fn zero_is_no_time() {
        assert_eq!(FileTime::ZERO.to_system_time(), None);
        assert_eq!(FileTime::default(), FileTime::ZERO);
        assert!(FileTime::now() > FileTime::from_raw(UNIX_EPOCH));
    }

    proptest! {
        #[test]
        fn conversion_is_undone(raw in 1_u64..) {
            let time = FileTime::from_raw(raw);
            if let Some(system_time) = time.to_system_time() {
                prop_assert_eq!(FileTime::try_from(system_time), Ok(time));
            }
        }
    }

    #[test]
    fn every_day_follows_the_day_before() {
        let (mut year, mut month, mut day) = (1601, 1, 1);
        for days in 0..300_000 {
            assert_eq!(date(days), (year, month, day));
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u64::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }
}
