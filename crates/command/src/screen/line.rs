//! A line of a screen that never exceeds its width.

use super::look::{Look, Paint};
use super::{shown, text};

/// Collects pieces of text, with or without colours, and cuts the text that does not fit.
#[derive(Debug)]
pub struct Line {
    text: String,
    room: usize,
    look: Look,
}

impl Line {
    /// An empty line with room for `columns` columns.
    pub fn new(columns: usize, look: Look) -> Self {
        Self { text: String::new(), room: columns, look }
    }

    /// Adds text. Text that does not fit into the remaining room is cut.
    pub fn add(&mut self, paint: Option<Paint>, text: &str) -> &mut Self {
        // Hidden characters are replaced before the text is measured.
        let text = shown::line(text);
        let text = text::fit(&text, self.room);
        self.room -= text::width(&text);
        let text = if self.look.unicode { text } else { text.replace('…', "~").into() };
        match paint {
            Some(paint) => self.text += &self.look.paint(paint, &text),
            None => self.text += &text,
        }
        self
    }

    /// Adds a separator and a part, or nothing if the whole part does not fit. The first part of a line has no
    /// separator, and is cut if it does not fit.
    pub fn part(&mut self, paint: Option<Paint>, text: &str) -> &mut Self {
        if self.text.is_empty() {
            return self.add(paint, text);
        }
        let separator = self.look.separator();
        if text::width(separator) + text::width(text) <= self.room {
            self.add(None, separator).add(paint, text);
        }
        self
    }

    /// Adds a bar that is filled up to `share`, or nothing if the whole bar does not fit.
    pub fn bar(&mut self, share: f64, columns: usize) -> &mut Self {
        if columns <= self.room {
            self.room -= columns;
            self.text += &self.look.bar(share, columns);
        }
        self
    }

    /// The finished line.
    pub fn done(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_do_not_fit_are_left_out_whole() {
        let mut line = Line::new(12, Look::FILE);
        line.part(None, "alpha").part(None, "too long").part(None, "beta");
        assert_eq!(line.done(), "alpha · beta");
        let mut line = Line::new(4, Look::FILE);
        line.part(None, "alpha").part(None, "x");
        assert_eq!(line.done(), "alp…");
    }
}
