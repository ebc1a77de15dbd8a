//! A block of lines at the bottom of a terminal. Each drawing replaces the previous one.
//!
//! Between two drawings, the cursor is below the block. To draw again, it moves up to the start of the block. If the
//! terminal has become narrower meanwhile, it has wrapped the old lines. So the number of rows of the old block is
//! computed with the current width. The terminal's state is not changed (no raw mode, no hidden cursor), so nothing has
//! to be restored if the process is killed.

use std::fmt::Write as _;
use std::io::{self, Stderr, Write};

use super::{shown, text};

/// Draws a block of lines, which replaces the previous block.
#[derive(Debug)]
pub struct Terminal<W> {
    out: W,
    /// The widths of the lines that are on the terminal now.
    drawn: Vec<usize>,
}

impl Terminal<Stderr> {
    /// The terminal on standard error.
    #[expect(clippy::disallowed_methods, reason = "lines are shown before they are drawn")]
    pub fn of_stderr() -> Self {
        Self::new(io::stderr())
    }
}

impl<W: Write> Terminal<W> {
    /// A terminal on which nothing has been drawn yet.
    pub fn new(out: W) -> Self {
        Self { out, drawn: Vec::new() }
    }

    /// Replaces the block by `lines` on a terminal of `columns` columns.
    ///
    /// # Errors
    /// Returns the stream's error if a write fails.
    pub fn draw(&mut self, lines: &[String], columns: usize) -> io::Result<()> {
        let mut text = self.home(columns);
        for line in lines {
            let line = shown::page(line).replace('\n', " ");
            // The rest of the row is erased, because the old line may be longer than the new line.
            let _ = writeln!(text, "{line}\x1b[K");
        }
        text.push_str("\x1b[J");
        self.drawn = lines.iter().map(|line| text::width(&without_escapes(line))).collect();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Removes the block, so that other text can be written in its place.
    ///
    /// # Errors
    /// Returns the stream's error if a write fails.
    pub fn clear(&mut self, columns: usize) -> io::Result<()> {
        if self.drawn.is_empty() {
            return Ok(());
        }
        let text = self.home(columns) + "\x1b[J";
        self.drawn.clear();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// The sequence that moves the cursor to the start of the block.
    fn home(&self, columns: usize) -> String {
        let rows: usize = self.drawn.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
        if rows == 0 { String::new() } else { format!("\r\x1b[{rows}A") }
    }
}

/// The text without its colour escapes.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once("\x1b[") {
        out.push_str(before);
        rest = escape.split_once('m').map_or("", |(_, after)| after);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(terminal: &mut Terminal<Vec<u8>>) -> String {
        String::from_utf8(std::mem::take(&mut terminal.out)).unwrap()
    }

    #[test]
    fn a_block_is_drawn_over_the_one_before() {
        let mut terminal = Terminal::new(Vec::new());
        terminal.draw(&["one".into(), "\x1b[1mtwo\x1b[0m".into()], 10).unwrap();
        assert_eq!(drawn(&mut terminal), "one\x1b[K\n\x1b[1mtwo\x1b[0m\x1b[K\n\x1b[J");
        terminal.draw(&["three".into()], 10).unwrap();
        assert_eq!(drawn(&mut terminal), "\r\x1b[2Athree\x1b[K\n\x1b[J");
        terminal.clear(10).unwrap();
        assert_eq!(drawn(&mut terminal), "\r\x1b[1A\x1b[J");
        terminal.clear(10).unwrap();
        assert_eq!(drawn(&mut terminal), "");
    }

    #[test]
    fn lines_wrapped_by_a_narrower_terminal_are_counted_as_they_stand() {
        let mut terminal = Terminal::new(Vec::new());
        terminal.draw(&["0123456789".into(), String::new()], 80).unwrap();
        drawn(&mut terminal);
        terminal.draw(&["x".into()], 4).unwrap();
        assert_eq!(drawn(&mut terminal), "\r\x1b[4Ax\x1b[K\n\x1b[J");
    }
}
