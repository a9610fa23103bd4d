//! The signals that end a run: asked for by a person, or by whatever ends this process.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

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

/// A terminal that is closed and its shell both send a SIGHUP: within this time they are one.
const SAME_HANGUP: Duration = Duration::from_secs(1);

/// The signals, caught from now on.
pub(crate) struct Caught(Signals);

impl Caught {
    /// Catches them. A SIGHUP that is ignored (`nohup`) stays so. A file that may grow no more
    /// (`ulimit -f`) is an error to the one who writes, and does not end this process.
    pub(crate) fn new() -> Result<Self, CliError> {
        signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(|error| unable(&error))?;
        let mut wanted = vec![SIGINT, SIGTERM];
        if !is_ignored(SIGHUP) {
            wanted.push(SIGHUP);
        }
        Signals::new(wanted).map(Self).map_err(|error| unable(&error))
    }

    /// Tells each of them, for as long as the process lives.
    pub(crate) fn tell(self, tell: impl Fn(Wish) + Send + 'static) -> Result<(), CliError> {
        let Self(mut signals) = self;
        let mut wishes = Wishes::default();
        let listen = move || {
            for signal in signals.forever() {
                wishes.next(signal, Instant::now()).into_iter().for_each(&tell);
            }
        };
        let spawned = thread::Builder::new().name("signals".to_owned()).spawn(listen);
        spawned.map(drop).map_err(|error| unable(&error))
    }
}

fn unable(error: &io::Error) -> CliError {
    CliError::new(format!("cannot listen for signals: {error}"))
}

/// What signals ask for, one after another.
#[derive(Default)]
struct Wishes {
    first: Option<Instant>,
}

impl Wishes {
    fn next(&mut self, signal: i32, now: Instant) -> Option<Wish> {
        match self.first {
            None => {
                self.first = Some(now);
                Some(if signal == SIGINT { Wish::Stop } else { Wish::ShutDown })
            }
            Some(first) if signal == SIGHUP && now.duration_since(first) < SAME_HANGUP => None,
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

    #[test]
    fn the_first_signal_asks_and_the_second_insists() {
        let now = Instant::now();
        for (signals, wishes) in [
            ([SIGINT, SIGINT], [Some(Wish::Stop), Some(Wish::Kill)]),
            ([SIGTERM, SIGTERM], [Some(Wish::ShutDown), Some(Wish::Kill)]),
            ([SIGHUP, SIGINT], [Some(Wish::ShutDown), Some(Wish::Kill)]),
            ([SIGHUP, SIGHUP], [Some(Wish::ShutDown), None]),
            ([SIGTERM, SIGHUP], [Some(Wish::ShutDown), None]),
        ] {
            let mut asked = Wishes::default();
            assert_eq!(signals.map(|signal| asked.next(signal, now)), wishes, "{signals:?}");
        }
        let mut asked = Wishes::default();
        asked.next(SIGHUP, now);
        assert_eq!(asked.next(SIGHUP, now + SAME_HANGUP), Some(Wish::Kill));
    }
}
