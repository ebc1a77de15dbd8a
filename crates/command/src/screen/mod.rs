//! The output of a command.
//!
//! | module | holds |
//! | --- | --- |
//! | [`out`] | the only way to standard output and error |
//! | [`shown`] | text that is not the program's own, made visible |
//! | [`text`] | numbers, bytes and times as text; text in columns |
//! | [`look`] | the size, colours and characters of a terminal |
//! | [`line`](mod@line) | a line that is never too wide |
//! | [`terminal`] | lines that are drawn again in their place |
//! | [`caret`] | a problem in a text, with carets below its places |
//! | [`xml`] | text inside XML and HTML |

pub mod caret;
pub mod line;
pub mod look;
pub mod out;
pub mod shown;
pub mod terminal;
pub mod text;
pub mod xml;
