//! The process's output: stdout for results, stderr for all that accompanies them.

use std::fmt;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use super::color::{ColorChoice, ColorEnvironment};
use super::escape::visible_lines;
use super::table::Table;
use crate::error::CliError;
use crate::has_no_stdout;

/// Where a command writes.
///
/// A reader of stdout that went away (`ps | head`) is no error: the rest is dropped, and the
/// command ends as it would have. Any other failure to write is the command's failure: a script
/// must not take half a list for the whole.
pub(crate) struct Console {
    out: BufWriter<Box<dyn Write + Send>>,
    reader_left: bool,
    out_is_terminal: bool,
    out_color: bool,
    err_is_terminal: bool,
    err_color: bool,
}

impl Console {
    /// The console of this process.
    pub(crate) fn of_process(choice: ColorChoice) -> Self {
        let environment = ColorEnvironment::from_process();
        let out: Box<dyn Write + Send> =
            if has_no_stdout() { Box::new(Closed) } else { Box::new(io::stdout()) };
        let out_is_terminal = io::stdout().is_terminal();
        let err_is_terminal = io::stderr().is_terminal();
        Self {
            out: BufWriter::new(out),
            reader_left: false,
            out_is_terminal,
            out_color: choice.enabled(out_is_terminal, environment),
            err_is_terminal,
            err_color: choice.enabled(err_is_terminal, environment),
        }
    }

    /// Writes bytes to stdout, buffered.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        if self.reader_left {
            return Ok(());
        }
        let result = self.out.write_all(bytes);
        self.settle(result)
    }

    /// Writes a line to stdout. The text must already be harmless.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), CliError> {
        self.write(line.as_bytes())?;
        self.write(b"\n")
    }

    /// Writes several lines to stdout.
    pub(crate) fn lines(&mut self, lines: &[String]) -> Result<(), CliError> {
        lines.iter().try_for_each(|line| self.line(line))
    }

    /// Writes a table to stdout, fit to the terminal if it is one.
    pub(crate) fn table<const N: usize>(&mut self, table: &Table<N>) -> Result<(), CliError> {
        let lines = table.lines(self.table_width(), self.out_color);
        self.lines(&lines)
    }

    /// Makes all that was written visible to the reader.
    pub(crate) fn flush(&mut self) -> Result<(), CliError> {
        if self.reader_left {
            return Ok(());
        }
        let result = self.out.flush();
        self.settle(result)
    }

    /// Writes out what is left; to be called once, before the exit code is decided.
    pub(crate) fn finish(mut self) -> Result<(), CliError> {
        self.flush()
    }

    /// Whether the reader of stdout has gone away: a command that writes without end can stop.
    pub(crate) fn reader_left(&self) -> bool {
        self.reader_left
    }

    /// The width that tables on stdout have to fit; none into a file or pipe.
    pub(crate) fn table_width(&self) -> Option<usize> {
        self.out_is_terminal.then(terminal_size).map(|(columns, _)| columns)
    }

    /// Whether stdout shows colour.
    pub(crate) fn out_color(&self) -> bool {
        self.out_color
    }

    /// Whether stdout is a terminal.
    pub(crate) fn out_is_terminal(&self) -> bool {
        self.out_is_terminal
    }

    /// Whether stderr shows colour.
    pub(crate) fn err_color(&self) -> bool {
        self.err_color
    }

    /// Whether stderr is a terminal, so that a line on it can be drawn anew.
    pub(crate) fn err_is_terminal(&self) -> bool {
        self.err_is_terminal
    }

    fn settle(&mut self, result: io::Result<()>) -> Result<(), CliError> {
        match result {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.reader_left = true;
                Ok(())
            }
            Err(error) => {
                // What is still buffered would fail again, with the same message.
                self.reader_left = true;
                Err(CliError::new(format!("cannot write to standard output: {error}")))
            }
        }
    }
}

/// A standard output that this process was never given.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("it was closed when this program was started"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console")
            .field("reader_left", &self.reader_left)
            .field("out_is_terminal", &self.out_is_terminal)
            .finish_non_exhaustive()
    }
}

/// The terminal's columns and rows; 80 × 24 when it does not say.
pub(crate) fn terminal_size() -> (usize, usize) {
    terminal_size::terminal_size()
        .map(|(columns, rows)| (usize::from(columns.0), usize::from(rows.0)))
        .filter(|(columns, rows)| *columns > 0 && *rows > 0)
        .unwrap_or((80, 24))
}

/// Prints an error to stderr. That stderr cannot be written is nothing to fail for: there is
/// nobody left to tell.
pub(crate) fn print_error(error: &CliError) {
    let _ = error.write_to(&mut io::stderr().lock());
}

/// Prints something worth knowing to stderr, as harmlessly as [`print_error`] does.
pub(crate) fn print_note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "note: {}", visible_lines(text));
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    pub(crate) type Sink = Arc<Mutex<Vec<u8>>>;

    struct Capture(Sink);

    impl Write for Capture {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    fn console_on(out: Box<dyn Write + Send>) -> Console {
        Console {
            out: BufWriter::new(out),
            reader_left: false,
            out_is_terminal: false,
            out_color: false,
            err_is_terminal: false,
            err_color: false,
        }
    }

    /// A console that writes to memory.
    pub(crate) fn console() -> (Console, Sink) {
        let sink = Sink::default();
        (console_on(Box::new(Capture(Arc::clone(&sink)))), sink)
    }

    /// What was written to it.
    pub(crate) fn captured(sink: &Sink) -> String {
        String::from_utf8(sink.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_reader_that_left_ends_the_output_quietly() {
        let mut console = console_on(Box::new(Failing(ErrorKind::BrokenPipe)));
        console.line("x").unwrap();
        console.flush().unwrap();
        assert!(console.reader_left());
        console.line("y").unwrap();
        console.finish().unwrap();
    }

    #[test]
    fn a_full_device_is_an_error_told_once() {
        let mut console = console_on(Box::new(Failing(ErrorKind::StorageFull)));
        console.line("x").unwrap();
        let error = console.flush().unwrap_err();
        assert!(error.message.contains("standard output"), "{error}");
        console.finish().unwrap();
    }
}
