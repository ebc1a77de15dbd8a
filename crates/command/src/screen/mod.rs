//! The output of a command.
//!
//! | module | contents |
//! | --- | --- |
//! | [`out`] | the functions that write to standard output and error |
//! | [`shown`] | hidden characters in text from other sources, made visible |
//! | [`text`] | the formats of numbers, bytes and times; text in columns |
//! | [`look`] | the size, colours and characters of a terminal |
//! | [`line`](mod@line) | a line that is never wider than its screen |
//! | [`terminal`] | a block of lines that is redrawn in place |
//! | [`caret`] | a problem in a text, shown with carets |
//! | [`xml`] | text that is safe in XML and HTML |

pub mod caret;
pub mod line;
pub mod look;
pub mod out;
pub mod shown;
pub mod terminal;
pub mod text;
pub mod xml;
