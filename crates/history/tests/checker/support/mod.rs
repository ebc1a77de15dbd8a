//! Objects that are not the crate's own specifications, random histories of them, a checker that tries everything,
//! and a thread's own clock.

pub(crate) mod generate;
pub(crate) mod object;
pub(crate) mod oracle;
pub(crate) mod random;
pub(crate) mod thread_time;
