//! Tables for people: a header line, two spaces between columns, no borders.

use chongming_core::Status;

use super::color::Tone;
use super::escape::visible;
use super::width::{push_cut, width};

/// Between two columns.
const GAP: &str = "  ";

/// What an empty cell shows.
const EMPTY: &str = "-";

/// A column is not cut below this many columns while others can still give way.
const READABLE: usize = 8;

/// Who gives way first when a table is wider than the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shrink {
    /// Free text: cut first.
    Early,
    /// What a reader copies (an id) or compares (a number): cut when nothing else is left.
    Late,
}

/// One column's heading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    title: &'static str,
    shrink: Shrink,
}

impl Column {
    /// A column of free text.
    pub(crate) const fn text(title: &'static str) -> Self {
        Self { title, shrink: Shrink::Early }
    }

    /// A column that keeps its width as long as possible.
    pub(crate) const fn key(title: &'static str) -> Self {
        Self { title, shrink: Shrink::Late }
    }
}

/// The text of one cell, harmless by construction.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// Text from anywhere; what a terminal would obey is escaped.
    pub(crate) fn new(text: &str) -> Self {
        Self::toned(text, Tone::Plain)
    }

    /// Text with a meaning that is shown as a colour.
    pub(crate) fn toned(text: &str, tone: Tone) -> Self {
        let text = if text.is_empty() { EMPTY } else { text };
        Self { text: visible(text).into_owned(), tone }
    }

    /// A task's status in its colour.
    pub(crate) fn status(status: Status) -> Self {
        Self::toned(status.as_str(), Tone::of_status(status))
    }

    /// What is absent.
    pub(crate) fn empty() -> Self {
        Self::new("")
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl From<Option<&str>> for Cell {
    fn from(text: Option<&str>) -> Self {
        Self::new(text.unwrap_or_default())
    }
}

/// A table of `N` columns.
#[derive(Clone, Debug)]
pub(crate) struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[Cell; N]>,
}

impl<const N: usize> Table<N> {
    /// A table without rows.
    pub(crate) fn new(columns: [Column; N]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: [Cell; N]) {
        self.rows.push(cells);
    }

    /// The header and the rows, a line each. `room` is the width of the terminal; without one
    /// nothing is cut.
    pub(crate) fn lines(&self, room: Option<usize>, color: bool) -> Vec<String> {
        let widths = self.widths(room);
        let header = self.columns.map(|column| Cell::toned(column.title, Tone::Header));
        std::iter::once(&header)
            .chain(&self.rows)
            .map(|cells| line(cells, &widths, room, color))
            .collect()
    }

    fn widths(&self, room: Option<usize>) -> [usize; N] {
        let mut widths = self.columns.map(|column| width(column.title));
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = width(&cell.text).max(*widest);
            }
        }
        let Some(room) = room else { return widths };
        let room = room.saturating_sub(GAP.len() * N.saturating_sub(1));
        // No column needs more than the whole line; this bounds the steps below.
        widths = widths.map(|width| width.min(room));
        let mut total: usize = widths.iter().sum();
        while total > room {
            let floor = |column: &Column| width(column.title).max(READABLE);
            let widest = |late: bool, floor: &dyn Fn(&Column) -> usize| {
                let candidates = self.columns.iter().zip(&widths).enumerate();
                candidates
                    .filter(|(_, (column, _))| late || column.shrink == Shrink::Early)
                    .filter(|(_, (column, width))| **width > floor(column))
                    .max_by_key(|(_, (_, width))| **width)
                    .map(|(index, _)| index)
            };
            let Some(index) = widest(false, &floor)
                .or_else(|| widest(true, &floor))
                .or_else(|| widest(true, &|_| 1))
            else {
                break;
            };
            if let Some(width) = widths.get_mut(index) {
                *width -= 1;
                total -= 1;
            }
        }
        widths
    }
}

fn line(cells: &[Cell], widths: &[usize], room: Option<usize>, color: bool) -> String {
    let mut out = String::new();
    let mut column = 0; // where the pen stands
    let mut cell_at = 0; // where the cell belongs
    for (cell, &cell_width) in cells.iter().zip(widths) {
        // On a terminal narrower than the gaps themselves the rest is left out.
        if room.is_some_and(|room| cell_at + cell_width > room) {
            break;
        }
        while column < cell_at {
            out.push(' ');
            column += 1;
        }
        cell.tone.paint(&mut out, color, |out| column += push_cut(out, &cell.text, cell_width));
        cell_at += cell_width + GAP.len();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<3> {
        let mut table =
            Table::new([Column::key("TASK_ID"), Column::text("NAME"), Column::key("STATUS")]);
        table.row(["demo-1".into(), "A-同步".into(), Cell::status(Status::Running)]);
        table.row(["d".into(), "🎉 party for everybody".into(), Cell::empty()]);
        table
    }

    #[test]
    fn columns_align_whatever_the_script() {
        assert_eq!(
            table().lines(None, false),
            [
                "TASK_ID  NAME                    STATUS",
                "demo-1   A-同步                  running",
                "d        🎉 party for everybody  -",
            ]
        );
    }

    #[test]
    fn free_text_gives_way_first_and_every_line_fits() {
        assert_eq!(
            table().lines(Some(30), false),
            [
                "TASK_ID  NAME          STATUS",
                "demo-1   A-同步        running",
                "d        🎉 party fo…  -",
            ]
        );
        for room in 0..60 {
            for line in table().lines(Some(room), false) {
                assert!(width(&line) <= room, "{room}: {line}");
            }
        }
    }

    #[test]
    fn hostile_cells_stay_on_their_line() {
        let mut table = Table::new([Column::key("TASK_ID"), Column::text("REASON")]);
        table.row(["a\nb".into(), "\x1b[31mred".into()]);
        let lines = table.lines(None, false);
        assert_eq!(lines, ["TASK_ID  REASON", "a\\nb     \\x1b[31mred"]);
    }

    #[test]
    fn colour_does_not_move_columns() {
        let plain = |line: &str| {
            let mut out = String::new();
            let mut rest = line;
            while let Some((before, after)) = rest.split_once('\x1b') {
                out.push_str(before);
                rest = after.split_once('m').map_or("", |(_, rest)| rest);
            }
            out + rest
        };
        let colored: Vec<String> = table().lines(None, true).iter().map(|l| plain(l)).collect();
        assert_eq!(colored, table().lines(None, false));
    }
}
