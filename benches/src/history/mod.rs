//! The linearizability checker on long histories, and compared with porcupine.
//!
//! [`decide`] measures time and memory on histories of distinct values, of 4 and of 16 clients, valid and with one
//! wrong answer. [`porcupine`] runs both checkers in turn on Jepsen's etcd logs and on a register's history; it needs
//! Go, and is skipped without it. [`record`] measures the cost of recording.

pub mod decide;
pub mod generate;
pub mod porcupine;
pub mod record;

use crate::args::Args;
use crate::error::Error;

/// Runs all parts and prints the tables.
///
/// # Errors
/// Fails when an answer is wrong, or when porcupine starts but fails.
pub fn run(args: &Args) -> Result<(), Error> {
    record::run(args)?;
    decide::run(args)?;
    porcupine::run(args)
}
