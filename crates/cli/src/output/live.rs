//! Lines that are drawn anew in place on a terminal: a progress bar, the table of a pipeline.

use std::io::{self, Write};

use super::width::cut;

/// A block of lines at the bottom of the output.
///
/// Its owner writes everything else that goes to the same terminal through [`Live::above`], so that
/// the block stays at the bottom and nothing is drawn over.
#[derive(Debug)]
pub(crate) struct Live<W: Write> {
    out: W,
    drawn: usize,
    lines: Vec<String>,
}

impl<W: Write> Live<W> {
    /// An empty block on a terminal.
    pub(crate) fn new(out: W) -> Self {
        Self { out, drawn: 0, lines: Vec::new() }
    }

    /// Draws these lines in place of the last ones, cut to the terminal's columns and rows (a line
    /// that wraps or scrolls away could not be erased). The text must be harmless and without
    /// colour sequences longer than the room.
    pub(crate) fn draw(
        &mut self,
        lines: &[String],
        (columns, rows): (usize, usize),
    ) -> io::Result<()> {
        let room = rows.saturating_sub(1).max(1);
        self.lines = lines.iter().take(room).map(|line| fit(line, columns)).collect();
        let frame = [self.erasure(), self.frame()].concat();
        self.send(&frame)?;
        self.drawn = self.lines.len();
        Ok(())
    }

    /// Writes text above the block: whole lines, in one piece with the block's redrawing so that
    /// nothing flickers.
    pub(crate) fn above(&mut self, text: &[u8]) -> io::Result<()> {
        let mut frame = self.erasure().into_bytes();
        frame.extend_from_slice(text);
        if !text.is_empty() && !text.ends_with(b"\n") {
            frame.push(b'\n');
        }
        frame.extend_from_slice(self.frame().as_bytes());
        self.out.write_all(&frame)?;
        self.out.flush()?;
        self.drawn = self.lines.len();
        Ok(())
    }

    /// Takes the block off the terminal.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.lines.clear();
        let frame = self.erasure();
        self.drawn = 0;
        self.send(&frame)
    }

    fn send(&mut self, frame: &str) -> io::Result<()> {
        self.out.write_all(frame.as_bytes())?;
        self.out.flush()
    }

    fn erasure(&self) -> String {
        match self.drawn {
            0 => String::new(),
            // Up to the first line of the block, to its first column; erase to the end.
            drawn => format!("\x1b[{drawn}A\r\x1b[J"),
        }
    }

    fn frame(&self) -> String {
        self.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }
}

/// Cuts a line that has no colour; a coloured one comes from a table that was made to fit.
fn fit(line: &str, columns: usize) -> String {
    if line.contains('\x1b') { line.to_owned() } else { cut(line, columns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(steps: impl FnOnce(&mut Live<&mut Vec<u8>>)) -> String {
        let mut out = Vec::new();
        steps(&mut Live::new(&mut out));
        String::from_utf8(out).unwrap()
    }

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn a_second_drawing_replaces_the_first() {
        let text = drawn(|live| {
            live.draw(&lines(&["a", "b"]), (80, 24)).unwrap();
            live.draw(&lines(&["c"]), (80, 24)).unwrap();
            live.clear().unwrap();
        });
        assert_eq!(text, "a\nb\n\x1b[2A\r\x1b[Jc\n\x1b[1A\r\x1b[J");
    }

    #[test]
    fn other_output_goes_above_the_block() {
        let text = drawn(|live| {
            live.draw(&lines(&["bar"]), (80, 24)).unwrap();
            live.above(b"log").unwrap();
        });
        assert_eq!(text, "bar\n\x1b[1A\r\x1b[Jlog\nbar\n");
    }

    #[test]
    fn the_block_never_outgrows_the_terminal() {
        let text = drawn(|live| {
            live.draw(&lines(&["abcdef", "b", "c", "d"]), (4, 3)).unwrap();
        });
        assert_eq!(text, "abc…\nb\n");
    }
}
