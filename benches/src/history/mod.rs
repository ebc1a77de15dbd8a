//! The linearizability checker: how long histories of many operations take, and beside porcupine.
//!
//! [`decide`] asks for time and memory on histories whose values are distinct, of 4 and of 16 clients, valid and
//! with one wrong answer. [`porcupine`] runs both checkers in turn on Jepsen's etcd logs and on a register's
//! history; it needs Go, and is left out where there is none. [`record`] asks what recording costs.

pub mod decide;
pub mod generate;
pub mod porcupine;
pub mod record;

use crate::args::Args;
use crate::error::Error;

/// Runs all and prints the tables.
///
/// # Errors
/// When an answer is wrong, or porcupine can be started and fails.
pub fn run(args: &Args) -> Result<(), Error> {
    record::run(args)?;
    decide::run(args)?;
    porcupine::run(args)
}
