//! The race that shows whether fences work, and the repetition of a test under other conditions.

mod again;
mod race;

pub(crate) use again::{again, forbid, forbid_membarrier, is_again};
pub(crate) use race::both_missed;
