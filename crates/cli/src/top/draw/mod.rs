//! Draws the screen: a pure function of the data, the selection and the size.
//!
//! | file | draws |
//! | --- | --- |
//! | [`pen`] | text and styles, clipped to their space |
//! | [`table`] | columns that are omitted on a narrow terminal, and rows that scroll |
//! | [`spark`] | a line of bars |
//! | [`list`] | all runs |
//! | [`run`] | one run |
//! | [`overlay`] | help, typed values, confirmations |

mod list;
mod overlay;
mod pen;
mod run;
mod spark;
mod table;

use ratatui::buffer::Buffer;

pub(crate) use self::pen::Theme;
use self::pen::{Pen, Tone};
use super::history::History;
use super::view::{Listed, Overlay, View};

/// The minimum size of the terminal. On a smaller terminal, only a message is drawn.
const MIN_SIZE: (u16, u16) = (20, 4);

/// Draws the whole terminal.
pub(crate) fn draw(buffer: &mut Buffer, theme: Theme, view: &View, list: &[Listed], history: &History) {
    let mut pen = Pen::new(buffer, theme);
    if pen.columns() < MIN_SIZE.0 || pen.rows() < MIN_SIZE.1 {
        pen.text(0, 0, Tone::Plain, "too small");
        return;
    }
    match &view.open {
        None => list::draw(&mut pen, view, list),
        Some(open) => run::draw(&mut pen, view, open, history),
    }
    footer(&mut pen, view);
    overlay::draw(&mut pen, &view.overlay);
}

/// Draws the last line: the result of a change, or the keys.
fn footer(pen: &mut Pen<'_>, view: &View) {
    let row = pen.rows() - 1;
    if let Overlay::Filter { typed } = &view.overlay {
        return pen.text(0, row, Tone::Strong, &format!("show names with: {typed}_"));
    }
    match (&view.message, &view.open) {
        (Some(Ok(done)), _) => pen.text(0, row, Tone::Good, done),
        (Some(Err(why)), _) => pen.text(0, row, Tone::Bad, why),
        (None, None) => pen.parts(row, &["? help", "Enter opens", "q quits"]),
        (None, Some(_)) => {
            let table = "Tab other table";
            pen.parts(
                row,
                &["? help", "q quits", "Enter changes", "d drains", table, "/ finds", "s sorts", "Esc all runs"],
            );
        }
    }
}

#[cfg(test)]
mod tests;
