//! A short look-out before a thread goes to sleep.

use std::thread;

/// How often others are let run. Some microseconds when nobody wants to.
const TURNS: u32 = 30;

/// Lets others run for a moment in the hope that they bring work; `true` once there is some. To sleep and
/// be woken costs more than a small task does, and who waits this way finds more to do at once.
pub(crate) fn linger(has_work: impl Fn() -> bool) -> bool {
    (0..TURNS).any(|_| {
        thread::yield_now();
        has_work()
    })
}
