//! Numbers, times and host paths as text.

use std::path::Path;

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

/// A count with its noun: `1 object`, `2,000 objects`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// Nanoseconds since 1970 to the second, as `2004-02-29 23:59:58`, in UTC.
pub(crate) fn time(nanos: u64) -> String {
    let Civil { year, month, day, hour, minute, second } = Civil::of(nanos);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// In full, as `2004-02-29T23:59:58.123456789Z`.
pub(crate) fn exact_time(nanos: u64) -> String {
    let Civil { year, month, day, hour, minute, second } = Civil::of(nanos);
    let nanos = nanos % 1_000_000_000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

/// A moment taken apart.
struct Civil {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

impl Civil {
    fn of(nanos: u64) -> Self {
        let seconds = nanos / 1_000_000_000;
        let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
        // Years are counted from March, so that the leap day is their last, and
        // in eras of 400 years (146,097 days), which are all alike. 1970-01-01 is
        // 719,468 days after 0000-03-01, where an era starts.
        let days = days + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Months from March: 31, 30, 31, 30, 31 days, 153 together, again and again.
        let month_from_march = (5 * day_of_year + 2) / 153;
        let in_next_year = u64::from(month_from_march >= 10);
        Self {
            year: 400 * era + year_of_era + in_next_year,
            month: if in_next_year == 1 { month_from_march - 9 } else { month_from_march + 3 },
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            hour: second_of_day / 3_600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(count(1, "object"), "1 object");
        assert_eq!(count(1_000, "object"), "1,000 objects");
    }

    #[test]
    fn known_moments_are_told_right() {
        let at = |seconds: u64| time(seconds * 1_000_000_000);
        assert_eq!(at(0), "1970-01-01 00:00:00");
        assert_eq!(at(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(at(951_868_800), "2000-03-01 00:00:00");
        assert_eq!(at(1_704_067_199), "2023-12-31 23:59:59");
        assert_eq!(at(1_704_067_200), "2024-01-01 00:00:00");
        assert_eq!(exact_time(1_078_099_198_000_000_042), "2004-02-29T23:59:58.000000042Z");
        assert_eq!(time(u64::MAX), "2554-07-21 23:34:33");
    }
}
