//! A watchdog for tests that might hang, and a gate that holds back a stage's code.

mod gate;
mod time;
#[path = "../../../ring/tests/support/watchdog.rs"]
mod watchdog;

pub(crate) use gate::Gate;
pub(crate) use time::ms;
pub(crate) use watchdog::{LONG, in_time};
