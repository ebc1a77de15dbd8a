//! Objects that are independent of the crate's specifications, random histories of these objects, a checker that tries
//! every order, and the clock of a thread.

pub(crate) mod generate;
pub(crate) mod object;
pub(crate) mod oracle;
pub(crate) mod random;
pub(crate) mod thread_time;
