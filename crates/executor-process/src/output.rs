//! What a child writes: read without blocking, kept in its log, echoed, its last errors remembered.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use chongming_core::ACTIVITY_RESOLUTION;
use rustix::io::{Errno, read};

use crate::Echo;
use crate::log_file::LogFile;

/// How much of the latest stderr a failure's message carries.
const TAIL_BYTES: usize = 2048;
/// More than a pipe can hold: bounds the last read of a pipe that somebody still writes to.
const PIPE_MAX_BYTES: usize = 1024 * 1024;

/// One of the two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// Is there more to come?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// The stream has ended; its descriptor should be let go.
    Ended,
}

/// Both streams of one child.
pub(crate) struct Output {
    out: Option<OwnedFd>,
    err: Option<OwnedFd>,
    log: Option<LogFile>,
    log_problem: Option<String>,
    tail: Vec<u8>,
    last_activity: Option<Instant>,
}

impl Output {
    /// From the read ends, which must not block.
    pub(crate) fn new(out: OwnedFd, err: OwnedFd, log: Option<LogFile>) -> Self {
        Self { out: Some(out), log, ..Self::of_errors(err) }
    }

    /// Of a process whose standard output nobody wants.
    pub(crate) fn of_errors(err: OwnedFd) -> Self {
        Self {
            out: None,
            err: Some(err),
            log: None,
            log_problem: None,
            tail: Vec::new(),
            last_activity: None,
        }
    }

    /// The descriptor of a stream that is still open.
    pub(crate) fn descriptor(&self, stream: Stream) -> Option<BorrowedFd<'_>> {
        match stream {
            Stream::Out => self.out.as_ref(),
            Stream::Err => self.err.as_ref(),
        }
        .map(OwnedFd::as_fd)
    }

    /// Lets a stream go.
    pub(crate) fn close(&mut self, stream: Stream) {
        match stream {
            Stream::Out => self.out = None,
            Stream::Err => self.err = None,
        }
    }

    /// Reads once what is there. `true` = there was something.
    pub(crate) fn read(
        &mut self,
        stream: Stream,
        buffer: &mut [u8],
        echo: Option<&Echo>,
    ) -> (State, bool) {
        let Some(fd) = self.descriptor(stream) else { return (State::Ended, false) };
        match read(fd, &mut *buffer) {
            Ok(0) => (State::Ended, false),
            Ok(length) => {
                if let Some(output) = buffer.get(..length) {
                    self.take(stream, output, echo);
                }
                (State::Open, true)
            }
            Err(Errno::AGAIN | Errno::INTR) => (State::Open, false),
            Err(_) => (State::Ended, false),
        }
    }

    /// Reads what is still there of both streams, without waiting for those who hold them open.
    pub(crate) fn drain(&mut self, buffer: &mut [u8], echo: Option<&Echo>) {
        for stream in [Stream::Out, Stream::Err] {
            let rounds = PIPE_MAX_BYTES / buffer.len().max(1) + 1;
            for _ in 0..rounds {
                if self.read(stream, buffer, echo) != (State::Open, true) {
                    break;
                }
            }
            self.close(stream);
        }
    }

    /// Is it time to report a sign of life again?
    pub(crate) fn is_activity(&mut self, now: Instant) -> bool {
        let due = self.last_activity.is_none_or(|last| now - last >= ACTIVITY_RESOLUTION);
        if due {
            self.last_activity = Some(now);
        }
        due
    }

    /// The tail of stderr.
    pub(crate) fn error_tail(&self) -> String {
        let start = self.tail.len().saturating_sub(TAIL_BYTES);
        let tail = self.tail.get(start..).unwrap_or_default();
        // Where the cut falls into a character, the rest of it is dropped.
        let whole = if start == 0 {
            tail
        } else {
            let skip = tail.iter().take(3).take_while(|byte| (**byte & 0xC0) == 0x80).count();
            tail.get(skip..).unwrap_or_default()
        };
        String::from_utf8_lossy(whole).into_owned()
    }

    /// What went wrong with the log, if anything did.
    pub(crate) fn log_problem(&self) -> Option<&str> {
        self.log_problem.as_deref()
    }

    fn take(&mut self, stream: Stream, output: &[u8], echo: Option<&Echo>) {
        if stream == Stream::Err {
            self.tail.extend_from_slice(output);
            if self.tail.len() > 4 * TAIL_BYTES {
                // One byte more than is shown: it tells that something was cut.
                self.tail.drain(..self.tail.len() - TAIL_BYTES - 1);
            }
        }
        self.keep(output, echo);
    }

    /// Adds a text to the log and to the echo.
    pub(crate) fn keep(&mut self, output: &[u8], echo: Option<&Echo>) {
        if let Some(echo) = echo {
            echo(output);
        }
        if let Some(Err(error)) = self.log.as_mut().map(|log| log.write(output)) {
            let problem = format!("the rest of this output is not kept in its log: {error}");
            if let Some(echo) = echo {
                echo(format!("\nchongming: {problem}\n").as_bytes());
            }
            self.log_problem = Some(problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::sync::{Arc, Mutex};

    fn pipe() -> (OwnedFd, OwnedFd) {
        pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap()
    }

    #[test]
    fn a_stream_that_somebody_holds_open_does_not_block() {
        let ((out, out_writer), (err, err_writer)) = (pipe(), pipe());
        rustix::io::write(&out_writer, b"out").unwrap();
        rustix::io::write(&err_writer, b"bad\xff").unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let copy = Arc::clone(&seen);
        let echo: Echo = Arc::new(move |bytes| copy.lock().unwrap().extend_from_slice(bytes));
        let mut output = Output::new(out, err, None);
        let mut buffer = [0; 64];
        assert_eq!(output.read(Stream::Out, &mut buffer, Some(&echo)), (State::Open, true));
        assert_eq!(output.read(Stream::Out, &mut buffer, Some(&echo)), (State::Open, false));
        output.drain(&mut buffer, Some(&echo));
        assert_eq!(*seen.lock().unwrap(), b"outbad\xff");
        assert_eq!(output.error_tail(), "bad\u{FFFD}");
        assert!(rustix::io::write(&err_writer, b"x").is_err(), "closed");
    }

    #[test]
    fn the_tail_of_endless_errors_is_bounded_and_whole() {
        let ((out, _), (err, _)) = (pipe(), pipe());
        let mut output = Output::new(out, err, None);
        for _ in 0..5000 {
            output.take(Stream::Err, "ä漢".as_bytes(), None);
        }
        let tail = output.error_tail();
        assert!(tail.len() <= TAIL_BYTES && tail.len() > TAIL_BYTES - 6);
        assert!(!tail.contains('\u{FFFD}') && tail.ends_with("ä漢"));
        assert!(output.tail.len() <= 4 * TAIL_BYTES + 5);
    }

    #[test]
    fn a_tail_cut_within_a_character_is_whole_at_each_length() {
        for length in 0..6 {
            let ((out, _), (err, _)) = (pipe(), pipe());
            let mut output = Output::new(out, err, None);
            let errors = "漢".repeat(3 * TAIL_BYTES) + &"x".repeat(length);
            output.take(Stream::Err, errors.as_bytes(), None);
            assert!(!output.error_tail().contains('\u{FFFD}'), "{length}");
        }
    }

    #[test]
    fn signs_of_life_are_counted_once_in_a_while() {
        let ((out, _), (err, _)) = (pipe(), pipe());
        let (mut output, now) = (Output::new(out, err, None), Instant::now());
        assert!(output.is_activity(now));
        assert!(!output.is_activity(now + ACTIVITY_RESOLUTION / 2));
        assert!(output.is_activity(now + ACTIVITY_RESOLUTION));
    }
}
