//! The way up: what the body says, written before it goes on, so that a crash loses nothing but progress.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use chongming_core::Progress;

use crate::protocol::Up;

/// Progress is passed on no more often than this; the latest counts.
const BETWEEN_PROGRESS: Duration = Duration::from_millis(50);

/// Takes lines from any thread.
pub(super) struct Uplink {
    pipe: Mutex<Pipe>,
    waiting: Condvar,
}

struct Pipe {
    file: File,
    /// Not passed on yet.
    progress: Option<Progress>,
    /// When progress was passed on last.
    progressed: Option<Instant>,
}

impl Uplink {
    /// Writes to this pipe.
    pub(super) fn start(pipe: OwnedFd) -> Arc<Self> {
        let pipe = Pipe { file: File::from(pipe), progress: None, progressed: None };
        let uplink = Arc::new(Self { pipe: Mutex::new(pipe), waiting: Condvar::new() });
        let late = Arc::clone(&uplink);
        // Without this thread the latest progress comes with the next one, or at the end.
        let _ = thread::Builder::new().name("progress".to_owned()).spawn(move || late.pass_on());
        uplink
    }

    /// Says something; waits while the pipe is full.
    pub(super) fn send(&self, line: &str) {
        self.pipe().write(line);
    }

    /// Says how far it is, at once or with the next chance; takes the place of an earlier one that was not
    /// passed on.
    pub(super) fn progress(&self, progress: Progress) {
        let mut pipe = self.pipe();
        let is_first = pipe.progress.replace(progress).is_none();
        if pipe.time_to_progress().is_zero() {
            pipe.pass_on();
        } else if is_first {
            drop(pipe);
            self.waiting.notify_one();
        }
    }

    /// Says last what has not been passed on.
    pub(super) fn finish(&self) {
        self.pipe().pass_on();
    }

    /// Passes waiting progress on when its time has come. Never returns.
    fn pass_on(&self) {
        let mut pipe = self.pipe();
        loop {
            let left = pipe.time_to_progress();
            pipe = match &pipe.progress {
                None => self.waiting.wait(pipe).unwrap_or_else(PoisonError::into_inner),
                Some(_) if left.is_zero() => {
                    pipe.pass_on();
                    pipe
                }
                Some(_) => {
                    let waited = self.waiting.wait_timeout(pipe, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn pipe(&self) -> MutexGuard<'_, Pipe> {
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pipe {
    /// When nobody reads, the supervisor is gone, and the thread that hears its orders ends this process.
    fn write(&mut self, line: &str) {
        let _ = self.file.write_all(line.as_bytes());
    }

    fn pass_on(&mut self) {
        if let Some(progress) = self.progress.take() {
            self.progressed = Some(Instant::now());
            self.write(&Up::Progress(progress).encode());
        }
    }

    fn time_to_progress(&self) -> Duration {
        let waited = self.progressed.map_or(BETWEEN_PROGRESS, |last| last.elapsed());
        BETWEEN_PROGRESS.saturating_sub(waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::io::{BufRead, BufReader};

    fn progress(done: f64) -> Progress {
        Progress { done, total: None, unit: None, message: None }
    }

    #[test]
    fn all_lines_and_the_latest_progress_arrive() {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let uplink = Uplink::start(writer);
        let read = thread::spawn(move || {
            let lines = BufReader::new(File::from(reader)).lines().map_while(Result::ok);
            lines.take_while(|line| line != "end").collect::<Vec<_>>()
        });
        for n in 0..100_000 {
            uplink.progress(progress(f64::from(n)));
            if n % 1000 == 0 {
                uplink.send(&format!("{n} {}\n", "x".repeat(2000)));
            }
        }
        uplink.finish();
        uplink.send("end\n");
        let lines = read.join().unwrap();
        let (reports, others): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| line.contains("progress"));
        assert_eq!(others.len(), 100);
        assert!(reports.len() < 50_000);
        let last = reports.last().unwrap();
        assert_eq!(Up::parse(last.as_bytes()), Ok(Up::Progress(progress(99_999.0))));
    }

    #[test]
    fn progress_that_waits_is_passed_on_by_itself() {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let uplink = Uplink::start(writer);
        let mut lines = BufReader::new(File::from(reader)).lines();
        for done in [1.0, 2.0] {
            uplink.progress(progress(done));
        }
        for done in [1.0, 2.0] {
            let line = lines.next().unwrap().unwrap();
            assert_eq!(Up::parse(line.as_bytes()), Ok(Up::Progress(progress(done))));
        }
    }

    #[test]
    fn nobody_who_reads_stops_nobody() {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let uplink = Uplink::start(writer);
        drop(reader);
        uplink.send(&"x".repeat(1_000_000));
        uplink.progress(progress(1.0));
        uplink.finish();
    }
}
