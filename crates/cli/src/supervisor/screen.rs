//! What a run shows on stderr while it goes on: the task's output, and on a terminal lines below it that
//! tell how far it has come.
//!
//! A thread of its own writes, so that a reader that stands still (a pager, a stopped terminal) never holds
//! up the task: what it does not take in time is left out, and told.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use chongming_executor_process::Echo;

use crate::error::CliError;
use crate::output::console::terminal_size;
use crate::output::live::Live;

/// Output that may wait for the reader.
const ROOM: usize = 1024 * 1024;
/// How long output that finds no room waits for it, before it is left out.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long the reader may stand still at the end, before the rest is left to it no more.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// The longest piece of a line that is held back until its end, while there is a line below it.
const LONGEST_PIECE: usize = 8 * 1024;

/// Stderr, during a run.
pub(crate) struct Screen(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    output: Vec<u8>,
    skipped: u64,
    /// The reader stands still: nothing waits for it until it moves.
    lags: bool,
    lines: Option<Vec<String>>,
    lines_changed: bool,
    /// Nothing more will come.
    is_over: bool,
    /// Nothing more can be written.
    is_gone: bool,
    /// How often the reader took something.
    writes: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, at_most: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, at_most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Takes output in; never waits long.
    fn push(&self, output: &[u8]) {
        let mut state = self.lock();
        let until = Instant::now() + PATIENCE;
        while !state.is_gone && !state.lags && state.output.len() + output.len() > ROOM {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.lags = true;
            } else {
                state = self.wait(state, left);
            }
        }
        if state.is_gone || state.is_over {
            return;
        }
        if state.lags {
            state.skipped += output.len() as u64;
        } else {
            state.output.extend_from_slice(output);
            self.changed.notify_all();
        }
    }
}

impl Screen {
    /// Starts the thread that writes to this process's stderr.
    pub(crate) fn on_stderr() -> Result<Self, CliError> {
        let is_terminal = io::stderr().is_terminal();
        Self::on(io::stderr(), is_terminal)
    }

    fn on(out: impl Write + Send + 'static, is_terminal: bool) -> Result<Self, CliError> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let writer = Writer { shared: Arc::clone(&shared), pen: Pen::new(out, is_terminal) };
        let spawned =
            thread::Builder::new().name("screen".to_owned()).spawn(move || writer.write());
        spawned.map_err(|error| CliError::new(format!("cannot start a thread: {error}")))?;
        Ok(Self(shared))
    }

    /// Takes the task's output.
    pub(crate) fn echo(&self) -> Echo {
        let shared = Arc::clone(&self.0);
        Arc::new(move |output| shared.push(output))
    }

    /// Writes a line of our own. The text must be harmless.
    pub(crate) fn note(&self, line: &str) {
        self.0.push(format!("{line}\n").as_bytes());
    }

    /// Shows these lines below the output.
    pub(crate) fn show(&self, lines: Vec<String>) {
        let mut state = self.0.lock();
        if state.lines.as_ref() != Some(&lines) {
            state.lines = Some(lines);
            state.lines_changed = true;
            self.0.changed.notify_all();
        }
    }

    /// Writes the rest and takes the line below away; gives up on a reader that stands still.
    pub(crate) fn finish(&self) {
        let mut state = self.0.lock();
        state.is_over = true;
        self.0.changed.notify_all();
        let mut seen = state.writes;
        let mut until = Instant::now() + LAST_PATIENCE;
        while !state.is_gone {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.0.wait(state, left);
            if state.writes != seen {
                seen = state.writes;
                until = Instant::now() + LAST_PATIENCE;
            }
        }
    }
}

/// The thread that writes.
struct Writer<W: Write> {
    shared: Arc<Shared>,
    pen: Pen<W>,
}

impl<W: Write> Writer<W> {
    fn write(mut self) {
        let mut is_over = false;
        while !is_over {
            let (output, lines);
            {
                let mut state = self.shared.lock();
                while state.output.is_empty() && !state.lines_changed && !state.is_over {
                    let waited = self.shared.changed.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
                is_over = state.is_over;
                let skipped = std::mem::take(&mut state.skipped);
                let mut taken = std::mem::take(&mut state.output);
                if skipped > 0 {
                    let told =
                        format!("\n[{skipped} bytes are not shown here; the log has them]\n");
                    taken.extend_from_slice(told.as_bytes());
                }
                output = taken;
                lines =
                    std::mem::take(&mut state.lines_changed).then(|| state.lines.clone()).flatten();
                state.lags = false;
                self.shared.changed.notify_all();
            }
            let written = self.pen.write(&output, lines, is_over);
            let mut state = self.shared.lock();
            state.writes += 1;
            // Nobody reads any more, which is no concern of the task.
            state.is_gone = written.is_err() || is_over;
            is_over = state.is_gone;
            self.shared.changed.notify_all();
        }
    }
}

/// Writes plainly, or around a line on a terminal.
enum Pen<W: Write> {
    Plain(W),
    Live { live: Live<W>, piece: Vec<u8> },
}

impl<W: Write> Pen<W> {
    fn new(out: W, is_terminal: bool) -> Self {
        if is_terminal {
            Self::Live { live: Live::new(out), piece: Vec::new() }
        } else {
            Self::Plain(out)
        }
    }

    fn write(
        &mut self,
        output: &[u8],
        lines: Option<Vec<String>>,
        is_last: bool,
    ) -> io::Result<()> {
        match self {
            Self::Plain(out) => {
                out.write_all(output)?;
                out.flush()
            }
            Self::Live { live, piece } => {
                piece.extend_from_slice(output);
                if is_last {
                    live.clear()?;
                }
                let whole = match piece.iter().rposition(|byte| *byte == b'\n') {
                    _ if is_last || piece.len() > LONGEST_PIECE => piece.len(),
                    Some(end) => end + 1,
                    None => 0,
                };
                if whole > 0 {
                    let text: Vec<u8> = piece.drain(..whole).collect();
                    live.above(&text)?;
                }
                match lines {
                    Some(lines) if !is_last => live.draw(&lines, terminal_size()),
                    Some(_) | None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn output_is_written_as_it_comes() {
        let page = Page::default();
        let screen = Screen::on(page.clone(), false).unwrap();
        let echo = screen.echo();
        echo(b"no line end");
        screen.note(" here");
        echo(&[0xff - 0x80, b'\n']);
        screen.finish();
        assert_eq!(page.text(), "no line end here\n\x7f\n");
        echo(b"too late");
        assert!(!page.text().contains("late"));
    }

    #[test]
    fn on_a_terminal_the_line_stays_below_whole_lines_and_goes_in_the_end() {
        let page = Page::default();
        let mut pen = Pen::new(page.clone(), true);
        pen.write(b"one\ntw", Some(vec!["bar".to_owned()]), false).unwrap();
        pen.write(b"o\n", None, false).unwrap();
        pen.write(b"end", Some(vec!["late".to_owned()]), true).unwrap();
        let erase = "\x1b[1A\r\x1b[J";
        assert_eq!(page.text(), format!("one\nbar\n{erase}two\nbar\n{erase}end\n"));
    }

    #[test]
    fn a_reader_that_left_is_no_concern_of_the_task() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let screen = Screen::on(Gone, false).unwrap();
        let echo = screen.echo();
        (0..100).for_each(|_| echo(&[b'x'; 64 * 1024]));
        screen.finish();
    }

    #[test]
    fn a_reader_that_stands_still_holds_nothing_up_and_is_told_what_it_missed() {
        /// Takes nothing until it is let go.
        struct Still(Arc<(Mutex<bool>, Condvar)>, Page);
        impl Write for Still {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let (is_free, changed) = &*self.0;
                let mut free = is_free.lock().unwrap();
                while !*free {
                    free = changed.wait(free).unwrap();
                }
                self.1.write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (gate, page) = (Arc::new((Mutex::new(false), Condvar::new())), Page::default());
        let screen = Screen::on(Still(Arc::clone(&gate), page.clone()), false).unwrap();
        let echo = screen.echo();
        let piece = vec![b'x'; 256 * 1024];
        (0..40).for_each(|_| echo(&piece));
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
        screen.finish();
        let text = page.text();
        assert!(text.contains(" bytes are not shown here; the log has them]"));
        assert!(text.len() < 40 * piece.len());
    }
}
