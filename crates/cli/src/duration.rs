//! Durations as people write them: a number with a unit.

use std::fmt;
use std::time::Duration;

use crate::output::escape::visible;

/// No time-out, delay or age is longer than this; it keeps every later addition to a time in range.
const LONGEST: Duration = Duration::from_secs(36_525 * 24 * 60 * 60);

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DurationError {
    /// It is not a number with a unit.
    Malformed(String),
    /// It is longer than a hundred years.
    TooLong(String),
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(text) => write!(
                f,
                "`{}` is not a duration: write a number with a unit, such as 500ms, 30s, 5m, 2h or 30d",
                visible(text)
            ),
            Self::TooLong(text) => {
                write!(
                    f,
                    "the duration `{}` is longer than a hundred years (36525d)",
                    visible(text)
                )
            }
        }
    }
}

impl std::error::Error for DurationError {}

/// Reads `500ms`, `30s`, `1.5s`, `5m`, `2h` or `30d`.
pub(crate) fn parse(text: &str) -> Result<Duration, DurationError> {
    let malformed = || DurationError::Malformed(text.to_owned());
    let too_long = || DurationError::TooLong(text.to_owned());

    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(malformed)?;
    let (number, unit) = text.split_at_checked(unit_at).ok_or_else(malformed)?;
    let unit_nanos: u128 = match unit {
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 60 * 60 * 1_000_000_000,
        "d" => 24 * 60 * 60 * 1_000_000_000,
        _ => return Err(malformed()),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(whole) || !fraction.is_none_or(is_digits) {
        return Err(malformed());
    }
    // All digits, so the only way to fail is to be too large.
    let whole: u64 = whole.parse().map_err(|_| too_long())?;
    let mut nanos = u128::from(whole).checked_mul(unit_nanos).ok_or_else(too_long)?;
    let mut place = unit_nanos;
    for digit in fraction.unwrap_or_default().bytes() {
        // A tenth of a unit, a hundredth …, until the digits no longer reach a nanosecond.
        nanos += place * u128::from(digit - b'0') / 10;
        place /= 10;
    }
    let nanos = u64::try_from(nanos).map_err(|_| too_long())?;
    let duration = Duration::from_nanos(nanos);
    if duration > LONGEST { Err(too_long()) } else { Ok(duration) }
}

/// A duration for a column of a table: two units at most, so that it is read at a glance.
pub(crate) fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{seconds}.{}s", duration.subsec_millis() / 100),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_with_a_unit_is_a_duration() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("1.5s", 1_500),
            ("0s", 0),
            ("5m", 300_000),
            ("0.5m", 30_000),
            ("2h", 7_200_000),
            ("30d", 2_592_000_000),
            ("36525d", 3_155_760_000_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("1.000000001s"), Ok(Duration::new(1, 1)));
        assert_eq!(parse("0.99999999999999999999999999s"), Ok(Duration::from_nanos(999_999_999)));
    }

    #[test]
    fn anything_else_is_not() {
        for text in [
            "",
            "5",
            "s",
            "5 s",
            " 5s",
            "5s ",
            "-5s",
            "+5s",
            "5S",
            "5 parsecs",
            "1e3s",
            ".5s",
            "1.s",
            "1.2.3s",
            "5sec",
            "1m30s",
            "inf",
            "NaNs",
            "٣s",
            "5µs",
            "5w",
        ] {
            assert_eq!(parse(text), Err(DurationError::Malformed(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn what_would_overflow_is_too_long() {
        for text in ["36526d", "99999999999999999999d", "18446744073709551615d", "876601h"] {
            assert_eq!(parse(text), Err(DurationError::TooLong(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn short_form_has_two_units_at_most() {
        for (millis, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (7_449, "7.4s"),
            (59_999, "59.9s"),
            (61_000, "1m01s"),
            (3_660_000, "1h01m"),
            (90_000_000, "1d01h"),
        ] {
            assert_eq!(short(Duration::from_millis(millis)), text);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9.]{0,40}(ms|s|m|h|d|\\PC)?") {
            if let Ok(duration) = parse(&text) {
                prop_assert!(duration <= LONGEST);
            }
        }
    }
}
