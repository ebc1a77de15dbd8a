//! Objects other than the crate's own specifications, random histories of them, a checker that tries every order, and a
//! thread's own clock.

pub(crate) mod generate;
pub(crate) mod object;
pub(crate) mod oracle;
pub(crate) mod random;
pub(crate) mod thread_time;
