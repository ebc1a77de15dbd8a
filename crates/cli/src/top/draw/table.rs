//! A table that fits its space: the least important columns are omitted first, and the rows scroll to the selected row.

use millstream_command::screen::text;

use super::pen::{Pen, Tone};

/// The minimum and the maximum width of the first column, which contains names.
const NAMES: (usize, usize) = (8, 30);
/// The gap between two columns.
const GAP: usize = 2;

/// A cell: a tone and a text.
pub(super) type Cell = (Tone, String);

/// A column with a heading and a cell for each row.
pub(super) struct Column {
    heading: &'static str,
    cells: Vec<Cell>,
    /// The order in which columns are omitted: the column with the highest value first. The name column always stays.
    spare: u8,
    /// Whether the cells are words, which are aligned left. Numbers are aligned right.
    words: bool,
    /// The maximum width of the column.
    most: usize,
}

impl Column {
    pub(super) fn names(heading: &'static str, cells: Vec<Cell>) -> Self {
        Self { heading, cells, spare: 0, words: true, most: NAMES.1 }
    }

    pub(super) fn words(heading: &'static str, spare: u8, most: usize, cells: Vec<Cell>) -> Self {
        Self { heading, cells, spare, words: true, most }
    }

    pub(super) fn numbers(heading: &'static str, spare: u8, cells: Vec<Cell>) -> Self {
        Self { heading, cells, spare, words: false, most: usize::MAX }
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|(_, cell)| text::width(&text::printable(cell)));
        cells.chain([text::width(self.heading)]).max().unwrap_or(0).min(self.most)
    }
}

/// A table with its selection.
pub(super) struct Table {
    /// The columns. The first column contains the names.
    pub(super) columns: Vec<Column>,
    /// The selected row, if the table has the focus.
    pub(super) selected: Option<usize>,
}

impl Table {
    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// Returns the columns that fit, each with its width.
    fn fitting(&self, room: usize) -> Vec<(&Column, usize)> {
        let mut shown: Vec<(&Column, usize)> = self.columns.iter().map(|column| (column, column.width())).collect();
        let wide =
            |shown: &[(&Column, usize)]| shown.iter().map(|(_, width)| width + GAP).sum::<usize>().saturating_sub(GAP);
        while wide(&shown) > room {
            let over = wide(&shown) - room;
            if shown[0].1 > NAMES.0 {
                shown[0].1 = shown[0].1.saturating_sub(over).max(NAMES.0);
                continue;
            }
            let least = (1..shown.len()).max_by_key(|&column| shown[column].0.spare);
            let Some(least) = least else {
                shown[0].1 = room;
                break;
            };
            shown.remove(least);
            // The name column may use the freed space. Only if that is not enough is another column omitted.
            shown[0].1 = shown[0].0.width();
        }
        shown
    }

    /// Draws the heading at `row`, and up to `rows` rows below it. Returns the number of rows drawn, including the
    /// heading.
    pub(super) fn draw(&self, pen: &mut Pen<'_>, row: u16, rows: u16) -> u16 {
        let shown = self.fitting(pen.columns().into());
        let line = |pen: &mut Pen<'_>, at: u16, cell: &dyn Fn(&Column) -> Cell| {
            let mut column = 0_u16;
            for (of, width) in &shown {
                let (tone, words) = cell(of);
                let words = text::printable(&words);
                let words = if of.words { text::fit(&words, *width).into_owned() } else { text::right(&words, *width) };
                let room = u16::try_from(*width).unwrap_or(u16::MAX);
                pen.within(column, at, room, tone, &words);
                column = column.saturating_add(room).saturating_add(GAP as u16);
            }
        };
        line(pen, row, &|column| (Tone::Faint, column.heading.to_owned()));
        let (all, room) = (self.rows(), usize::from(rows));
        let selected = self.selected.unwrap_or(0).min(all.saturating_sub(1));
        // If not all rows fit, one line is left for the note that there are more rows.
        let fits = if all > room { room.saturating_sub(1).max(1) } else { room };
        let first = (selected + 1).saturating_sub(fits);
        let end = all.min(first + fits);
        let mut at = row + 1;
        for place in first..end {
            line(pen, at, &|column| column.cells.get(place).cloned().unwrap_or((Tone::Plain, String::new())));
            if self.selected == Some(place) {
                pen.reverse(at);
            }
            at += 1;
        }
        let hidden = all - (end - first);
        if hidden > 0 && at < row + 1 + rows {
            pen.text(0, at, Tone::Faint, &format!("{} to {} of {}", first + 1, end, text::count(all as u64)));
            at += 1;
        }
        at - row
    }
}
