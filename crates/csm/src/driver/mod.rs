//! Claims about a success rate, and the driver that decides them.

mod claim;
mod decide;
mod resample;
mod schedule;

pub(crate) use claim::{Region, Tests, log_part};

pub use self::{
    claim::{Claim, Setup, Verdict},
    decide::{Driver, Progress, Status},
    schedule::report_due,
};
