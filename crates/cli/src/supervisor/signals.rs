//! The signals that end a run: asked for by a person, or by whatever ends this process.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;

use crate::error::CliError;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Ctrl-C: a person stops the run.
    Stop,
    /// This process is to end.
    ShutDown,
    /// There was a signal before: no more grace.
    Kill,
}

/// A terminal that is closed and its shell both send a SIGHUP, and a service manager may send one
/// behind its SIGTERM: within this time they are one. Who sends it twice insists.
const SAME_HANGUP: Duration = Duration::from_secs(1);

/// The signals, caught from now on.
pub(crate) struct Caught(SignalsInfo<WithOrigin>);

impl Caught {
    /// Catches them. A SIGHUP that is ignored (`nohup`) stays so.
    pub(crate) fn new() -> Result<Self, CliError> {
        let mut wanted = vec![SIGINT, SIGTERM];
        if !is_ignored(SIGHUP) {
            wanted.push(SIGHUP);
        }
        SignalsInfo::new(wanted).map(Self).map_err(|error| unable(&error))
    }

    /// Tells each of them, for as long as the process lives.
    pub(crate) fn tell(self, tell: impl Fn(Wish) + Send + 'static) -> Result<(), CliError> {
        let Self(mut signals) = self;
        let mut wishes = Wishes::default();
        let listen = move || {
            for origin in &mut signals {
                let sent = Sent {
                    signal: origin.signal,
                    by: origin.process.map(|process| process.pid),
                    at: Instant::now(),
                };
                wishes.next(sent).into_iter().for_each(&tell);
            }
        };
        let spawned = thread::Builder::new().name("signals".to_owned()).spawn(listen);
        spawned.map(drop).map_err(|error| unable(&error))
    }
}

fn unable(error: &io::Error) -> CliError {
    CliError::new(format!("cannot listen for signals: {error}"))
}

/// A signal that came.
#[derive(Clone, Copy)]
struct Sent {
    signal: i32,
    /// The process that sent it; none for the system itself.
    by: Option<i32>,
    at: Instant,
}

impl Sent {
    /// Is it the same hang-up as the first signal, told by somebody else or in another way?
    fn repeats(self, first: Self) -> bool {
        let insists = first.signal == SIGHUP && self.by.is_some() && self.by == first.by;
        self.signal == SIGHUP && self.at.duration_since(first.at) < SAME_HANGUP && !insists
    }
}

/// What signals ask for, one after another.
#[derive(Default)]
struct Wishes {
    first: Option<Sent>,
}

impl Wishes {
    fn next(&mut self, sent: Sent) -> Option<Wish> {
        match self.first {
            None => {
                self.first = Some(sent);
                Some(if sent.signal == SIGINT { Wish::Stop } else { Wish::ShutDown })
            }
            Some(first) if sent.repeats(first) => None,
            Some(_) => Some(Wish::Kill),
        }
    }
}

/// Did whoever started this process have the signal ignored? Where the system does not tell, no.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The process that sends in these tests.
    const SENDER: Option<i32> = Some(7);

    #[test]
    fn the_first_signal_asks_and_the_second_insists() {
        let at = Instant::now();
        for (signals, second) in [
            ([(SIGINT, None), (SIGINT, None)], Some(Wish::Kill)),
            ([(SIGTERM, SENDER), (SIGTERM, SENDER)], Some(Wish::Kill)),
            ([(SIGHUP, SENDER), (SIGINT, SENDER)], Some(Wish::Kill)),
            ([(SIGHUP, SENDER), (SIGHUP, SENDER)], Some(Wish::Kill)),
            ([(SIGHUP, None), (SIGHUP, SENDER)], None),
            ([(SIGHUP, SENDER), (SIGHUP, None)], None),
            ([(SIGHUP, None), (SIGHUP, None)], None),
            ([(SIGHUP, Some(8)), (SIGHUP, SENDER)], None),
            ([(SIGTERM, SENDER), (SIGHUP, SENDER)], None),
        ] {
            let mut asked = Wishes::default();
            let [first, told] = signals.map(|(signal, by)| asked.next(Sent { signal, by, at }));
            let wish = if signals[0].0 == SIGINT { Wish::Stop } else { Wish::ShutDown };
            assert_eq!((first, told), (Some(wish), second), "{signals:?}");
        }
    }

    #[test]
    fn a_hang_up_that_comes_late_is_another() {
        let mut asked = Wishes::default();
        let first = Sent { signal: SIGHUP, by: None, at: Instant::now() };
        asked.next(first);
        assert_eq!(asked.next(Sent { at: first.at + SAME_HANGUP, ..first }), Some(Wish::Kill));
    }
}
