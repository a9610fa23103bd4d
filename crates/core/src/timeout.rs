//! The three independent time-outs (spec 2).

use std::time::Duration;

/// Limits on how long a task may take; the earliest that runs out wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeout {
    /// From the first time it is `queued` to its first `starting`; void from then on.
    pub start: Option<Duration>,
    /// One attempt, from `starting` on, paused time not counted.
    pub per_attempt: Option<Duration>,
    /// Since the last checkpoint (or output of a plain command), paused time not counted.
    pub idle: Option<Duration>,
}
