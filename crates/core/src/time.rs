//! Wall-clock timestamps, the clock port, and a clock that tests set by hand.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A point in time: microseconds since 1970-01-01T00:00:00Z.
///
/// Shown and parsed as RFC 3339 with six digits, in UTC.
///
/// ```
/// # use chongming_core::Timestamp;
/// let t: Timestamp = "2026-02-28T23:59:59.000001Z".parse().unwrap();
/// assert_eq!(t.to_string(), "2026-02-28T23:59:59.000001Z");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(NonZeroU64);

/// Turns the order of signed numbers into that of unsigned ones; only `i64::MIN` becomes 0, which leaves
/// room for `None`: a waiting task has many times that have not come yet.
const SIGN: u64 = 1 << 63;

impl Timestamp {
    /// From microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        match NonZeroU64::new(micros as u64 ^ SIGN) {
            Some(ordered) => Self(ordered),
            None => Self(NonZeroU64::MIN),
        }
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        (self.0.get() ^ SIGN) as i64
    }

    /// This much later; saturates instead of overflowing.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        let delay = i64::try_from(delay.as_micros()).unwrap_or(i64::MAX);
        Self::from_micros(self.as_micros().saturating_add(delay))
    }

    /// This much earlier; saturates instead of overflowing.
    #[must_use]
    pub fn before(self, delay: Duration) -> Self {
        let delay = i64::try_from(delay.as_micros()).unwrap_or(i64::MAX);
        Self::from_micros(self.as_micros().saturating_sub(delay))
    }

    /// Time since `earlier`; zero when a stepped clock makes it negative.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let micros = self.as_micros().saturating_sub(earlier.as_micros());
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(d) => Self::from_micros(i64::try_from(d.as_micros()).unwrap_or(i64::MAX)),
            Err(e) => {
                Self::from_micros(-i64::try_from(e.duration().as_micros()).unwrap_or(i64::MAX))
            }
        }
    }
}

const DAY: i64 = 86_400;

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.as_micros();
        let (seconds, micros) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
        let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let (year, month, day) = civil(days);
        let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{micros:06}Z")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Days since the epoch → (year, month, day) in the proleptic Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let doe = shifted.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

/// The inverse of [`civil`].
fn days(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

/// A text that is not a timestamp as [`Timestamp`] prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTimestamp(String);

impl fmt::Display for InvalidTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a time such as 2026-01-31T08:00:00.000000Z", self.0)
    }
}

impl std::error::Error for InvalidTimestamp {}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| InvalidTimestamp(text.chars().take(60).collect()))
    }
}

fn parse(text: &str) -> Option<Timestamp> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let number = |part: Option<&str>, width: usize| {
        part.filter(|p| p.len() == width && p.bytes().all(|b| b.is_ascii_digit()))?
            .parse::<i64>()
            .ok()
    };
    let mut parts = date.split('-');
    let (year, month, day) =
        (number(parts.next(), 4)?, number(parts.next(), 2)?, number(parts.next(), 2)?);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "000000"));
    let mut fields = clock.split(':');
    let (h, m, s) =
        (number(fields.next(), 2)?, number(fields.next(), 2)?, number(fields.next(), 2)?);
    let micros = number(Some(fraction), 6)?;
    let at = days(year, month, day);
    let whole = parts.next().is_none() && fields.next().is_none();
    let valid = whole && civil(at) == (year, month, day) && h < 24 && m < 60 && s < 60;
    valid.then(|| Timestamp::from_micros((at * DAY + h * 3600 + m * 60 + s) * 1_000_000 + micros))
}

/// Where time comes from: only the controller reads it; every decision takes time as an argument.
pub trait Clock: Send + Sync {
    /// Wall-clock time, for timestamps only.
    fn wall(&self) -> Timestamp;
    /// Time since some fixed start that never goes backwards, for durations and deadlines.
    fn monotonic(&self) -> Duration;
    /// Both readings at once.
    fn now(&self) -> Moment {
        Moment { wall: self.wall(), mono: self.monotonic() }
    }
}

/// One reading of both clocks (spec 1: timestamps from the wall clock, deadlines from the monotonic one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Wall-clock time.
    pub wall: Timestamp,
    /// Monotonic time since the clock's start.
    pub mono: Duration,
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        SystemTime::now().into()
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that stands still until it is told to move.
#[derive(Debug)]
pub struct ManualClock(Mutex<Moment>);

impl ManualClock {
    /// Starts at this wall-clock time.
    #[must_use]
    pub fn starting_at(wall: Timestamp) -> Self {
        Self(Mutex::new(Moment { wall, mono: Duration::ZERO }))
    }

    /// Moves both clocks forward.
    pub fn advance(&self, by: Duration) {
        let mut moment = self.moment();
        *moment = Moment { wall: moment.wall.after(by), mono: moment.mono.saturating_add(by) };
    }

    /// Steps the wall clock only, as an administrator or NTP would.
    pub fn step_wall(&self, wall: Timestamp) {
        self.moment().wall = wall;
    }

    fn moment(&self) -> std::sync::MutexGuard<'_, Moment> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> Timestamp {
        self.moment().wall
    }

    fn monotonic(&self) -> Duration {
        self.moment().mono
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_dates() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_798_761_600_123_456, "2027-01-01T00:00:00.123456Z"),
        ] {
            assert_eq!(Timestamp::from_micros(micros).to_string(), text);
            assert_eq!(text.parse(), Ok(Timestamp::from_micros(micros)));
        }
    }

    #[test]
    fn refuses_what_is_no_time() {
        for bad in ["", "2026-02-29T00:00:00Z", "2026-01-01 00:00:00Z", "2026-01-01T24:00:00Z", "x"]
        {
            assert!(bad.parse::<Timestamp>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_extremes_keep_their_order() {
        let times = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX].map(Timestamp::from_micros);
        assert!(times.is_sorted());
        assert_eq!(times.map(Timestamp::as_micros)[1..], [i64::MIN + 1, -1, 0, 1, i64::MAX]);
        assert_eq!(size_of::<Option<Timestamp>>(), 8);
    }

    proptest! {
        #[test]
        fn print_and_parse_agree(micros in -62_135_596_800_000_000i64..253_402_300_799_999_999) {
            let t = Timestamp::from_micros(micros);
            prop_assert_eq!(t.to_string().parse::<Timestamp>(), Ok(t));
        }
    }
}
