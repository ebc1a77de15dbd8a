//! The race that fences decide, and this program again in another world.

mod again;
mod race;

pub(crate) use again::{again, forbid, forbid_membarrier, is_again};
pub(crate) use race::both_missed;
