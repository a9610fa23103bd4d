//! When a failed attempt is followed by another (spec 2).

use std::num::NonZeroU32;
use std::time::Duration;

use crate::failure::{Failure, FailureKind};

/// Delay between two attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Backoff {
    /// At once.
    #[default]
    None,
    /// Always the same.
    Fixed(Duration),
    /// `base · factor^(n−1)` before attempt n+1, at most `max`, spread by `jitter`.
    Exponential {
        /// Delay before the second attempt.
        base: Duration,
        /// Growth per attempt; below 1 or NaN counts as 1.
        factor: f64,
        /// Upper limit.
        max: Duration,
        /// Share of the delay that is drawn by chance, 0 to 1: 0.2 spreads by ± 20 %.
        jitter: f64,
    },
}

/// Longest delay of any back-off, so that no input makes an endless one: 365 days.
pub const MAX_DELAY: Duration = Duration::from_secs(365 * 86_400);

impl Backoff {
    /// Delay after the attempt with this number (1 is the first); `chance` is a random number in 0..1.
    #[must_use]
    pub fn delay(&self, attempt: u32, chance: f64) -> Duration {
        match *self {
            Self::None => Duration::ZERO,
            Self::Fixed(delay) => delay.min(MAX_DELAY),
            Self::Exponential { base, factor, max, jitter } => {
                let factor = if factor > 1.0 { factor } else { 1.0 };
                let limit = max.min(MAX_DELAY).as_secs_f64();
                let grown = base.as_secs_f64() * factor.powf(f64::from(attempt.max(1) - 1));
                let spread = 1.0 + unit(jitter) * (2.0 * unit(chance) - 1.0);
                // `min` also turns an overflow to infinity (or 0 · infinity = NaN) into the limit.
                Duration::try_from_secs_f64((grown.min(limit) * spread).min(limit)).unwrap_or(max)
            }
        }
    }
}

/// `x` forced into 0..=1; NaN counts as 0.
fn unit(x: f64) -> f64 {
    if x > 0.0 { x.min(1.0) } else { 0.0 }
}

/// How often, when and after which failures a task is tried again.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// All attempts, the first included.
    pub max_attempts: NonZeroU32,
    /// Delay between attempts.
    pub backoff: Backoff,
    /// Which kinds are retried; `None` = every retryable kind.
    pub retry_on: Option<Vec<FailureKind>>,
}

impl Default for RetryPolicy {
    /// One attempt, no retry.
    fn default() -> Self {
        Self { max_attempts: NonZeroU32::MIN, backoff: Backoff::None, retry_on: None }
    }
}

impl RetryPolicy {
    /// This many attempts in all, without delay. 0 counts as 1.
    #[must_use]
    pub fn attempts(max_attempts: u32) -> Self {
        let max_attempts = NonZeroU32::new(max_attempts).unwrap_or(NonZeroU32::MIN);
        Self { max_attempts, ..Self::default() }
    }

    /// With this delay between attempts.
    #[must_use]
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Is this failure one to try again, attempts permitting?
    #[must_use]
    pub fn covers(&self, failure: &Failure) -> bool {
        failure.retryable
            && failure.kind.is_retryable()
            && self.retry_on.as_ref().is_none_or(|kinds| kinds.contains(&failure.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exponential(base: u64, factor: f64, max: u64, jitter: f64) -> Backoff {
        let millis = Duration::from_millis;
        Backoff::Exponential { base: millis(base), factor, max: millis(max), jitter }
    }

    #[test]
    fn exponential_grows_up_to_its_limit() {
        let backoff = exponential(50, 2.0, 1000, 0.0);
        let delays: Vec<_> = (1..=7).map(|n| backoff.delay(n, 0.5).as_millis()).collect();
        assert_eq!(delays, [50, 100, 200, 400, 800, 1000, 1000]);
    }

    #[test]
    fn jitter_spreads_evenly_around_the_delay() {
        let backoff = exponential(1000, 2.0, 10_000, 0.2);
        assert_eq!(backoff.delay(1, 0.0).as_millis(), 800);
        assert_eq!(backoff.delay(1, 0.5).as_millis(), 1000);
        assert_eq!(backoff.delay(1, 1.0).as_millis(), 1200);
    }

    #[test]
    fn what_is_retried() {
        let any = RetryPolicy::attempts(3);
        let some = RetryPolicy { retry_on: Some(vec![FailureKind::Crashed]), ..any.clone() };
        let failure = |kind| Failure::new(kind, "x");
        assert!(any.covers(&failure(FailureKind::ExitCode)));
        assert!(!some.covers(&failure(FailureKind::ExitCode)));
        assert!(some.covers(&failure(FailureKind::Crashed)));
        assert!(!any.covers(&failure(FailureKind::Crashed).permanent()));
        for kind in [FailureKind::ResultInvalid, FailureKind::Lost, FailureKind::TimeoutStart] {
            let forced = RetryPolicy { retry_on: Some(vec![kind]), ..any.clone() };
            assert!(!forced.covers(&Failure { retryable: true, ..failure(kind) }), "{kind}");
        }
    }

    proptest! {
        #[test]
        fn no_input_makes_an_endless_or_negative_delay(
            attempt: u32, base: u64, max: u64, factor: f64, jitter: f64, chance: f64,
        ) {
            let delay = exponential(base, factor, max, jitter).delay(attempt, chance);
            prop_assert!(delay <= MAX_DELAY);
            prop_assert!(delay <= Duration::from_millis(max).saturating_add(Duration::from_nanos(1000)));
        }
    }
}
