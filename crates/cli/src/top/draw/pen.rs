//! Writes text and styles to the terminal's cells, clipped to their space.

use millstream_command::screen::text;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

/// The abilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    pub(crate) color: bool,
    pub(crate) unicode: bool,
}

/// The role of a text, which determines its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Strong,
    Faint,
    Good,
    Bad,
    /// A limit that is reached, or another cause of waiting.
    Busy,
}

/// Draws into a buffer.
pub(super) struct Pen<'a> {
    buffer: &'a mut Buffer,
    theme: Theme,
}

impl<'a> Pen<'a> {
    pub(super) fn new(buffer: &'a mut Buffer, theme: Theme) -> Self {
        Self { buffer, theme }
    }

    pub(super) fn columns(&self) -> u16 {
        self.buffer.area.width
    }

    pub(super) fn rows(&self) -> u16 {
        self.buffer.area.height
    }

    pub(super) fn unicode(&self) -> bool {
        self.theme.unicode
    }

    fn style(&self, tone: Tone) -> Style {
        let style = Style::new();
        match (tone, self.theme.color) {
            (Tone::Plain, _) => style,
            (Tone::Strong, _) => style.add_modifier(Modifier::BOLD),
            (Tone::Faint, _) => style.add_modifier(Modifier::DIM),
            (Tone::Good, true) => style.fg(Color::Green),
            (Tone::Bad, true) => style.fg(Color::Red),
            (Tone::Busy, true) => style.fg(Color::Yellow),
            (Tone::Good | Tone::Bad | Tone::Busy, false) => style.add_modifier(Modifier::BOLD),
        }
    }

    /// Writes text at a position, clipped at the end of the line.
    pub(super) fn text(&mut self, column: u16, row: u16, tone: Tone, words: &str) {
        let room = self.columns().saturating_sub(column);
        self.within(column, row, room, tone, words);
    }

    /// Writes text at a position, clipped to `room` columns.
    pub(super) fn within(&mut self, column: u16, row: u16, room: u16, tone: Tone, words: &str) {
        let room = room.min(self.columns().saturating_sub(column));
        if row >= self.rows() || room == 0 {
            return;
        }
        let shown = text::printable(words);
        let mut shown = text::fit(&shown, room.into()).into_owned();
        if !self.theme.unicode {
            shown = shown
                .chars()
                .map(|c| match c {
                    '…' => '~',
                    '·' => '|',
                    '→' => '>',
                    c if c.is_ascii() => c,
                    _ => '?',
                })
                .collect();
        }
        let style = self.style(tone);
        let place = self.buffer.area;
        self.buffer.set_stringn(place.x + column, place.y + row, shown, room.into(), style);
    }

    /// Writes as many whole parts as fit on a line, with separators between the parts. The first part is clipped if it
    /// does not fit.
    pub(super) fn parts(&mut self, row: u16, parts: &[&str]) {
        let toned: Vec<_> = parts.iter().map(|part| (Tone::Faint, (*part).to_owned())).collect();
        self.toned_parts(row, &toned);
    }

    /// Writes parts like [`parts`](Self::parts), each in its own tone.
    pub(super) fn toned_parts(&mut self, row: u16, parts: &[(Tone, String)]) {
        let mut column = 0_u16;
        for (tone, part) in parts {
            let wide = u16::try_from(text::width(&text::printable(part))).unwrap_or(u16::MAX);
            if column > 0 {
                if column.saturating_add(3).saturating_add(wide) > self.columns() {
                    continue;
                }
                self.text(column, row, Tone::Faint, " · ");
                column += 3;
            }
            self.text(column, row, *tone, part);
            column = column.saturating_add(wide);
        }
    }

    /// Inverts the colours of a line.
    pub(super) fn reverse(&mut self, row: u16) {
        let mut line = self.buffer.area;
        if row < line.height {
            (line.y, line.height) = (line.y + row, 1);
            self.buffer.set_style(line, Style::new().add_modifier(Modifier::REVERSED));
        }
    }

    /// Clears a rectangle.
    pub(super) fn clear(&mut self, column: u16, row: u16, columns: u16, rows: u16) {
        for y in row..row.saturating_add(rows).min(self.rows()) {
            for x in column..column.saturating_add(columns).min(self.columns()) {
                let place = self.buffer.area;
                self.buffer[(place.x + x, place.y + y)].reset();
            }
        }
    }
}
