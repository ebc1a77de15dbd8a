//! Claims about a success rate, and the driver that decides them.

mod claim;
mod decide;
mod schedule;

pub use claim::{Claim, Setup, Verdict};
pub(crate) use claim::{Region, Tests, log_part};
pub use decide::{Driver, Progress, Status};
pub use schedule::report_due;
