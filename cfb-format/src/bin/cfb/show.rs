//! Numbers, times and host paths as text.

use std::path::Path;

use cfb_format::FileTime;

use crate::escape;

/// A path of the host, safe to print.
pub(crate) fn path(path: &Path) -> String {
    escape::printable(&path.to_string_lossy())
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 stream`, `2,000 streams`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// To the second, as `2004-02-29 23:59:58`, in UTC. `None` when no time is set.
pub(crate) fn time(time: FileTime) -> Option<String> {
    let at = Civil::from_raw(time.raw())?;
    Some(format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        at.year, at.month, at.day, at.hour, at.minute, at.second
    ))
}

/// In full, as `2004-02-29T23:59:58.1234567Z`. `None` when no time is set.
pub(crate) fn exact_time(time: FileTime) -> Option<String> {
    let at = Civil::from_raw(time.raw())?;
    Some(format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:07}Z",
        at.year, at.month, at.day, at.hour, at.minute, at.second, at.ticks
    ))
}

/// A FILETIME taken apart. Every `u64` has one: the last year is 60056.
struct Civil {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    /// Of 100 ns.
    ticks: u64,
}

impl Civil {
    fn from_raw(raw: u64) -> Option<Self> {
        if raw == 0 {
            return None;
        }
        let (seconds, ticks) = (raw / 10_000_000, raw % 10_000_000);
        let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);

        // Years are counted from March, so that the leap day is their last,
        // and in eras of 400 years (146,097 days), which are all alike.
        // 1601-01-01 is 306 days after 1600-03-01, where an era starts.
        let days = days + 306;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Months from March: 31, 30, 31, 30, 31 days, 153 together, again and again.
        let month_from_march = (5 * day_of_year + 2) / 153;
        let in_next_year = u64::from(month_from_march >= 10);
        Some(Self {
            year: 1600 + 400 * era + year_of_era + in_next_year,
            month: if in_next_year == 1 { month_from_march - 9 } else { month_from_march + 3 },
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            hour: second_of_day / 3_600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
            ticks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(raw: u64) -> String {
        exact_time(FileTime::from_raw(raw)).expect("a time is set")
    }

    #[test]
    fn digits_are_grouped_by_three() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(count(1, "stream"), "1 stream");
        assert_eq!(count(1_000, "stream"), "1,000 streams");
    }

    #[test]
    fn known_moments_are_told_right() {
        assert_eq!(time(FileTime::from_raw(0)), None);
        assert_eq!(exact(1), "1601-01-01T00:00:00.0000001Z");
        // The Unix epoch is 11,644,473,600 s after 1601-01-01.
        let unix = |seconds: u64| (11_644_473_600 + seconds) * 10_000_000;
        assert_eq!(exact(unix(0)), "1970-01-01T00:00:00.0000000Z");
        assert_eq!(exact(unix(951_782_400)), "2000-02-29T00:00:00.0000000Z");
        assert_eq!(exact(unix(951_868_800)), "2000-03-01T00:00:00.0000000Z");
        assert_eq!(exact(unix(1_078_099_198) + 42), "2004-02-29T23:59:58.0000042Z");
        assert_eq!(exact(unix(1_704_067_199)), "2023-12-31T23:59:59.0000000Z");
        assert_eq!(exact(unix(1_704_067_200)), "2024-01-01T00:00:00.0000000Z");
        assert_eq!(exact(u64::MAX), "60056-05-28T05:36:10.9551615Z");
    }

    #[test]
    fn a_host_path_cannot_drive_the_terminal() {
        assert_eq!(path(Path::new("/tmp/%u0041\u{1b}[2J")), "/tmp/%u0041%u001B[2J");
    }
}
