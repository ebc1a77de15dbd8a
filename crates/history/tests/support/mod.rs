//! Objects that are not the crate's own specifications, random histories of them, and a checker that tries everything.

#![allow(dead_code)] // Each test program uses a part of it.

pub(crate) mod generate;
pub(crate) mod object;
pub(crate) mod oracle;
pub(crate) mod random;
