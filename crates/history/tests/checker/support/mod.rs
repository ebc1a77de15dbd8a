//! Objects that are not the crate's own specifications, random histories of them, and a checker that tries everything.

pub(crate) mod generate;
pub(crate) mod object;
pub(crate) mod oracle;
pub(crate) mod random;
