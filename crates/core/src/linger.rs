//! A short look-out before a thread goes to sleep.

use std::thread;
use std::time::{Duration, Instant};

/// About what it costs to be woken on a processor that has gone idle: whoever looks out for longer than
/// that wastes more than can be won.
const LOOK_OUT: Duration = Duration::from_micros(50);

/// Lets others run for a moment in the hope that they bring work; `true` once there is some. To sleep and
/// be woken costs more than a small task does, and who waits this way finds more to do at once.
pub(crate) fn linger(has_work: impl Fn() -> bool) -> bool {
    let since = Instant::now();
    loop {
        thread::yield_now();
        if has_work() {
            return true;
        }
        if since.elapsed() > LOOK_OUT {
            return false;
        }
    }
}
