//! Cuts a stream into lines in bounded memory.

use std::mem;

/// Longest line of the task protocol, in bytes, without its end; a longer one is refused.
pub const MAX_LINE: usize = 16 * 1024 * 1024;
/// Memory that is kept between lines.
const KEEP: usize = 64 * 1024;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// All of it.
    Whole(Vec<u8>),
    /// The beginning of one that is too long; the rest is thrown away.
    TooLong(Vec<u8>),
}

/// What came of the line so far.
#[derive(Debug)]
pub(crate) struct Lines {
    begun: Vec<u8>,
    discarding: bool,
    limit: usize,
}

impl Lines {
    /// With lines of at most `limit` bytes.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { begun: Vec::new(), discarding: false, limit }
    }

    /// Takes what was read.
    pub(crate) fn feed(&mut self, bytes: &[u8], on_line: &mut impl FnMut(Line)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (piece, complete) = match piece.strip_suffix(b"\n") {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            if !self.discarding {
                let room = self.limit - self.begun.len();
                self.begun.extend(piece.iter().take(room));
                if piece.len() > room {
                    self.discarding = true;
                    on_line(Line::TooLong(mem::take(&mut self.begun)));
                } else if complete {
                    on_line(Line::Whole(self.take()));
                }
            }
            self.discarding &= !complete;
        }
    }

    /// The stream has ended: a last line needs no end of its own.
    pub(crate) fn finish(&mut self, on_line: &mut impl FnMut(Line)) {
        if !self.begun.is_empty() {
            on_line(Line::Whole(mem::take(&mut self.begun)));
        }
    }

    fn take(&mut self) -> Vec<u8> {
        if self.begun.len() > KEEP {
            return mem::take(&mut self.begun);
        }
        let line = self.begun.clone();
        self.begun.clear();
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_give_the_same_lines() {
        let whole = |text: &str| Line::Whole(text.into());
        let long = || Line::TooLong("12345678".into());
        let expected = [
            whole("one"),
            whole(""),
            long(),
            whole("12345678"),
            long(),
            whole("two"),
            whole("end"),
        ];
        for size in 1..40 {
            let mut lines = Lines::new(8);
            let mut got = Vec::new();
            let text = b"one\n\n123456789\n12345678\n12345678901234567890\ntwo\nend";
            for piece in text.chunks(size) {
                lines.feed(piece, &mut |line| got.push(line));
                assert!(lines.begun.len() <= 8);
            }
            lines.finish(&mut |line| got.push(line));
            assert_eq!(got, expected, "{size}");
        }
    }
}
